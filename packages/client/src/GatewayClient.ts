/**
 * All calls of a gateway as one service, bound to its connection: for who passes them on, or puts others in their place.
 *
 * Each is a function of its group's module as well (`Info.spotMeta`), which needs a `Connection`. A page that imports those
 * loads what it calls; this module loads everything.
 */
import type { CandleStretch } from "@trigate/domain/CandleWindow"
import type { ServedFailure } from "@trigate/domain/GatewayError"
import type { AnyCodec, Operation } from "@trigate/domain/Operation"
import type { InvalidAddress } from "@trigate/domain/RequestError"
import type { UnknownAsset } from "@trigate/domain/ResourceError"
import type { TokenRpcOperation } from "@trigate/domain/TokenOperations"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Admin from "./Admin.ts"
import * as Candles from "./Candles.ts"
import * as Connection from "./Connection.ts"
import * as Evm from "./Evm.ts"
import * as Exchange from "./Exchange.ts"
import * as Health from "./Health.ts"
import * as Info from "./Info.ts"
import * as Layer2 from "./Layer2.ts"
import * as Tokens from "./Tokens.ts"

/** The calls of a group's module, bound to a connection. */
export type Bound<Group> = {
  readonly [Name in keyof Group]: Group[Name] extends (
    ...args: infer Args
  ) => Effect.Effect<infer A, infer E, Connection.Connection> ? (...args: Args) => Effect.Effect<A, E>
    : Group[Name] extends (
      ...args: infer Args
    ) => Stream.Stream<infer A, infer E, Connection.Connection> ? (...args: Args) => Stream.Stream<A, E>
    : never
}

/** All calls, by group. */
export interface Calls {
  readonly exchange: Bound<typeof Exchange>
  readonly info: Omit<Bound<typeof Info>, "candles"> & {
    /** The bars of a window of any length; see `Info.candles`. */
    readonly candles: (
      ...args: Parameters<typeof Info.candles>
    ) => Stream.Stream<CandleStretch, ServedFailure | UnknownAsset>
  }
  readonly candles: Bound<typeof Candles>
  readonly evm: Bound<typeof Evm>
  readonly tokens: Omit<Bound<typeof Tokens>, "call"> & {
    /** Any method of `tokenRpcOperations`; the result of most is `unknown`, with integers beyond 2^53 as `bigint`. */
    readonly call: <
      Request extends AnyCodec,
      Response extends AnyCodec,
      const Failures extends ReadonlyArray<AnyCodec>
    >(
      operation: Operation<TokenRpcOperation["name"], "read", Request, Response, Failures>,
      params: Request["Encoded"]
    ) => Effect.Effect<Response["Type"], ServedFailure | InvalidAddress | Failures[number]["Type"]>
  }
  readonly layer2: Bound<typeof Layer2>
  readonly health: Bound<typeof Health>
  readonly admin: Bound<typeof Admin>
}

/** All calls over a connection. */
export const make = (connection: Connection.Connection["Service"]): Calls => {
  const bound =
    <Args extends ReadonlyArray<unknown>, A, E>(call: (...args: Args) => Effect.Effect<A, E, Connection.Connection>) =>
    (...args: Args): Effect.Effect<A, E> => Effect.provideService(call(...args), Connection.Connection, connection)
  return {
    exchange: {
      submit: bound(Exchange.submit),
      resolve: bound(Exchange.resolve),
      inspect: bound(Exchange.inspect)
    },
    info: {
      spotMeta: bound(Info.spotMeta),
      raw: bound(Info.raw),
      candleSnapshot: bound(Info.candleSnapshot),
      candles: (...args) => Stream.provideService(Info.candles(...args), Connection.Connection, connection)
    },
    candles: {
      list: bound(Candles.list),
      file: (...args) => Stream.provideService(Candles.file(...args), Connection.Connection, connection),
      bars: (request) => Stream.provideService(Candles.bars(request), Connection.Connection, connection)
    },
    evm: {
      getStorageAt: bound(Evm.getStorageAt),
      gasPrice: bound(Evm.gasPrice),
      bigBlockGasPrice: bound(Evm.bigBlockGasPrice),
      usingBigBlocks: bound(Evm.usingBigBlocks)
    },
    tokens: {
      getTokenData: bound(Tokens.getTokenData),
      getTokenContract: bound(Tokens.getTokenContract),
      packAddress: bound(Tokens.packAddress),
      unpackAddress: bound(Tokens.unpackAddress),
      detectAddress: bound(Tokens.detectAddress),
      call: <Request extends AnyCodec, Response extends AnyCodec, const Failures extends ReadonlyArray<AnyCodec>>(
        operation: Operation<TokenRpcOperation["name"], "read", Request, Response, Failures>,
        params: Request["Encoded"]
      ) =>
        Effect.provideService(
          Tokens.call<Request, Response, Failures>(operation, params),
          Connection.Connection,
          connection
        )
    },
    layer2: { getTransactionReceipt: bound(Layer2.getTransactionReceipt) },
    health: { ready: bound(Health.ready), metrics: bound(Health.metrics) },
    admin: {
      actions: bound(Admin.actions),
      forget: bound(Admin.forget),
      resolve: bound(Admin.resolve),
      keys: bound(Admin.keys),
      createKey: bound(Admin.createKey),
      rotateKey: bound(Admin.rotateKey),
      revokeKeys: bound(Admin.revokeKeys),
      rateLimits: bound(Admin.rateLimits),
      requests: bound(Admin.requests)
    }
  }
}

/** A gateway's typed client. */
export class GatewayClient extends Context.Service<GatewayClient, Calls>()("@trigate/client/GatewayClient") {}

/** The client of the gateway that the options name; see `Connection.layer`. */
export const layer = (options: Connection.Options): Layer.Layer<GatewayClient, never, HttpClient.HttpClient> =>
  Layer.effect(GatewayClient, Effect.map(Connection.Connection, make)).pipe(Layer.provide(Connection.layer(options)))
