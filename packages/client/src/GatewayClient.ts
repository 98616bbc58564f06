/**
 * All calls of a gateway as one service, bound to its connection: for programs that forward calls or replace some of
 * them.
 *
 * Each call is also a function in the module of its group (`Info.spotMeta`), which requires a `Connection`. A page that
 * imports such a function loads only the calls it uses; this module loads all of them.
 */
import type { CallFailure, GatewayError, InvalidAddress, WrapReason } from "@trigate/domain/errors/GatewayError"
import type { AnyCodec, Operation } from "@trigate/domain/operations/Operation"
import type { TokenRpcOperation } from "@trigate/domain/tokens/TokenOperations"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import * as Admin from "./Admin.ts"
import * as Candles from "./Candles.ts"
import * as Connection from "./Connection.ts"
import * as Evm from "./Evm.ts"
import * as Exchange from "./Exchange.ts"
import * as Health from "./Health.ts"
import * as Info from "./Info.ts"
import * as Layer2 from "./Layer2.ts"
import * as Switches from "./Switches.ts"
import * as Tokens from "./Tokens.ts"

type AnyCall = (
  ...args: ReadonlyArray<never>
) =>
  | Effect.Effect<unknown, WrapReason<GatewayError>, Connection.Connection>
  | Stream.Stream<unknown, WrapReason<GatewayError>, Connection.Connection>

/** The type of a call whose `Connection` is already provided. */
type BoundCall<Call> = Call extends (
  ...args: infer Args
) => Effect.Effect<infer A, infer E, Connection.Connection> ? (...args: Args) => Effect.Effect<A, E>
  : Call extends (
    ...args: infer Args
  ) => Stream.Stream<infer A, infer E, Connection.Connection> ? (...args: Args) => Stream.Stream<A, E>
  : never

/** The calls of a group's module, bound to a connection. */
export type Bound<Group> = { readonly [Name in keyof Group]: BoundCall<Group[Name]> }

/** All calls, by group. */
export interface Calls {
  readonly exchange: Bound<typeof Exchange>
  readonly info: Bound<typeof Info>
  readonly candles: Bound<typeof Candles>
  readonly evm: Bound<typeof Evm>
  readonly tokens: Omit<Bound<typeof Tokens>, "call"> & {
    /** Calls any method of `tokenRpcOperations`. Most results are `unknown`; integers beyond 2^53 are `bigint`. */
    readonly call: <
      Request extends AnyCodec,
      Response extends AnyCodec,
      const Failures extends ReadonlyArray<AnyCodec>
    >(
      operation: Operation<TokenRpcOperation["name"], "read", Request, Response, Failures>,
      params: Request["Encoded"]
    ) => Effect.Effect<Response["Type"], CallFailure | InvalidAddress | WrapReason<Failures[number]["Type"]>>
  }
  readonly layer2: Bound<typeof Layer2>
  readonly health: Bound<typeof Health>
  readonly switches: Bound<typeof Switches>
  readonly admin: Bound<typeof Admin>
}

/** Binds the calls of a group's module to a connection. */
const bind = (connection: Connection.Connection["Service"]) => {
  interface Bind extends Struct.Lambda {
    (
      call: AnyCall
    ): (
      ...args: ReadonlyArray<never>
    ) => Effect.Effect<unknown, WrapReason<GatewayError>> | Stream.Stream<unknown, WrapReason<GatewayError>>
    readonly "~lambda.out": BoundCall<this["~lambda.in"]>
  }
  return Struct.map(Struct.lambda<Bind>((call) => (...args) => {
    const called = call(...args)
    return Effect.isEffect(called)
      ? Effect.provideService(called, Connection.Connection, connection)
      : Stream.provideService(called, Connection.Connection, connection)
  }))
}

/** Makes all calls over a connection. */
export const make = (connection: Connection.Connection["Service"]): Calls => {
  const bound = bind(connection)
  return {
    exchange: bound(Exchange),
    info: bound(Info),
    candles: bound(Candles),
    evm: bound(Evm),
    tokens: {
      ...bound(Struct.omit(Tokens, ["call"])),
      call: (operation, params) =>
        Effect.provideService(Tokens.call(operation, params), Connection.Connection, connection)
    },
    layer2: bound(Layer2),
    health: bound(Health),
    switches: bound(Switches),
    admin: bound(Admin)
  }
}

/**
 * The typed client of a gateway.
 *
 * Provided by `GatewayClient.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { GatewayClient } from "@trigate/client"
 * import { Console, Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 *
 * const program = Effect.gen(function*() {
 *   const { evm, info } = yield* GatewayClient.GatewayClient
 *   const [wei, mids] = yield* Effect.all([evm.gasPrice(), info.allMids()], { concurrency: "unbounded" })
 *   yield* Console.log(wei > 0n, "BTC" in mids)
 * })
 *
 * const gateway = GatewayClient.layer({ baseUrl: "http://localhost:8080" }).pipe(Layer.provide(FetchHttpClient.layer))
 *
 * await Effect.runPromise(Effect.provide(program, gateway))
 * ```
 * ```text
 * true true
 * ```
 */
export class GatewayClient extends Context.Service<GatewayClient, Calls>()("@trigate/client/GatewayClient") {}

/**
 * Provides the client of the gateway that `options` names; see `Connection.layer`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Connection.Options): Layer.Layer<GatewayClient, never, HttpClient.HttpClient> =>
  Layer.effect(GatewayClient, Effect.map(Connection.Connection, make)).pipe(Layer.provide(Connection.layer(options)))
