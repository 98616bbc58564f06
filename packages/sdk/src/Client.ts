/** The client of a gateway for programs without Effect: promises, async iterables, and errors that are thrown. */
import * as EvmStreams from "@trigate/client/EvmStreams"
import * as GatewayClient from "@trigate/client/GatewayClient"
import * as Streams from "@trigate/client/Streams"
import type { Address } from "@trigate/domain/encoding/Encoding"
import { type CallError, unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as Signing from "@trigate/signing/Orders"
import * as Signer from "@trigate/signing/Signer"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import * as Orders from "./Orders.ts"

/** The URL and the keys of a gateway. */
export interface Options {
  /** The gateway's URL, such as `http://localhost:8080`. */
  readonly baseUrl: string | URL
  /** The caller's key, sent as `Authorization: Bearer` with each request. Default: none. */
  readonly key?: string | undefined
  /** The endpoint key of the gateway's node routes. Default: the gateway's own routes. */
  readonly endpointKey?: string | undefined
  /**
   * The maximum time until a response begins. Then a read fails with `UpstreamUnavailable`; an action may have been
   * executed, and its outcome is determined as after a lost response. Default: 60 seconds.
   */
  readonly timeout?: Duration.Input | undefined
}

/** The key that signs, and the network for which it signs. */
export type SigningOptions =
  & Options
  & {
    /** The network for which actions are signed. Default: the network of the gateway. */
    readonly network?: VenueProfile.Network | undefined
  }
  & (
    /** The private key of an account or of an API wallet, 32 bytes in hex. */
    | { readonly privateKey: string; readonly wallet?: undefined }
    /** A viem account or wallet client. */
    | { readonly wallet: Signer.ViemSigner; readonly privateKey?: undefined }
  )

/** A call with a promise instead of an effect, and an async iterable instead of a stream. */
export type Promised<Call> = Call extends (...args: infer Args) => Effect.Effect<infer A, infer _>
  ? (...args: Args) => Promise<A>
  : Call extends (...args: infer Args) => Stream.Stream<infer A, infer _> ? (...args: Args) => AsyncIterable<A>
  : never

/** The calls of a group. */
export type PromisedGroup<Group> = { readonly [Name in keyof Group]: Promised<Group[Name]> }

/** All calls of a gateway, by group, and its streams. */
export interface Client
  extends
    Omit<{ readonly [Name in keyof GatewayClient.Calls]: PromisedGroup<GatewayClient.Calls[Name]> }, "tokens">,
    AsyncDisposable
{
  readonly tokens: PromisedGroup<Omit<GatewayClient.Calls["tokens"], "call">>
  /** The streams of the venue. A stream ends when the loop over it ends. */
  readonly streams: PromisedGroup<Streams.Methods>
  /** The streams of the EVM chains: blocks, logs and receipts. */
  readonly evmStreams: { readonly [Chain in "evm" | "layer2"]: PromisedGroup<EvmStreams.Methods> }
  /** Ends all streams. */
  readonly close: () => Promise<void>
}

type OrderCalls = Pick<Signing.Orders["Service"], "cancel" | "place" | "placeAll">

/** A client that signs. */
export interface SigningClient extends Client {
  /** The address of the signing key, in lower case. */
  readonly address: Address
  readonly orders: PromisedGroup<OrderCalls> & {
    /** Returns the account for which the key signs: its own account, or the master account of an API wallet. */
    readonly account: () => Promise<Address>
    /**
     * Signs an L1 action of any type (all except transfers and approvals), sends it once, and determines the outcome of
     * a lost response. The members must have the venue's names and order.
     */
    readonly send: (
      action: { readonly type: string; readonly [member: string]: unknown },
      options?: Signing.Options
    ) => Promise<Signing.PlacedAll>
  }
}

/** Any error with which a call rejects. `_tag` identifies its class. */
export type ClientError =
  | Exclude<CallError, { readonly _tag: "RequestError" | "UpstreamError" }>
  | Signing.OrderFailure
  | Streams.StreamFailure
  | Signer.InvalidPrivateKey

/**
 * Returns whether an error of a call has the given tag.
 *
 * @since 0.1.0
 * @category errors
 */
export const isError = <Tag extends ClientError["_tag"]>(
  error: unknown,
  tag: Tag
): error is Extract<ClientError, { readonly _tag: Tag }> => Predicate.isError(error) && Predicate.isTagged(error, tag)

/** The failures of all calls. */
interface Failure {
  readonly _tag: string
}

type AnyCall = (...args: ReadonlyArray<never>) => Effect.Effect<unknown, Failure> | Stream.Stream<unknown, Failure>

/** The frames of this module before those of the program: `formatCaller`, and the function that `makeConverter` returns. */
const ownFrames = 2

/** Returns the stack of a call: the name of the call, and the frames of the program. */
const formatCaller = (name: string): string => {
  const [, ...frames] = (new Error(name).stack ?? "").split("\n")
  return [`    at trigate.${name}`, ...frames.slice(ownFrames)].join("\n")
}

/** Returns the error of a call without its wrapper, with a stack that names the call and the program that called it. */
const toThrown = (cause: Cause.Cause<Failure>, caller: string): unknown => {
  const error = unwrapReason(Cause.squash(cause))
  if (Predicate.isError(error)) {
    const name = Predicate.hasProperty(error, "_tag") ? String(error._tag) : error.name
    const stack = `${name}: ${error.message}\n${caller}`
    Object.defineProperty(error, "stack", { value: stack, configurable: true, writable: true })
  }
  return error
}

/** Returns the function that converts the calls of a group. */
const makeConverter =
  (runtime: ManagedRuntime.ManagedRuntime<never, never>, closed: Effect.Effect<void>) =>
  <Group extends { readonly [Name in keyof Group]: AnyCall }>(title: string, group: Group) => {
    const names = new Map<unknown, string>(Object.entries(group).map(([name, call]) => [call, `${title}.${name}`]))
    interface Convert extends Struct.Lambda {
      (call: AnyCall): (...args: ReadonlyArray<never>) => Promise<unknown> | AsyncIterable<unknown>
      readonly "~lambda.out": Promised<this["~lambda.in"]>
    }
    return Struct.map(
      group,
      Struct.lambda<Convert>((call) => (...args) => {
        const caller = formatCaller(names.get(call) ?? title)
        const called = call(...args)
        // a promise and an iterable reject with the value of a defect
        const fail = (cause: Cause.Cause<Failure>) => Effect.die(toThrown(cause, caller))
        return Effect.isEffect(called)
          ? runtime.runPromise(Effect.catchCause(called, fail))
          : Stream.toAsyncIterable(
            Stream.interruptWhen(called, closed).pipe(Stream.catchCause((cause) => Stream.fromEffect(fail(cause))))
          )
      })
    )
  }

/** Makes the signer. Throws `InvalidPrivateKey` for a malformed key. Loads libsecp256k1 before the first signature. */
const makeSigner = (options: SigningOptions) => {
  if (options.wallet !== undefined) return Effect.runSync(Signer.makeViem(options.wallet))
  const key = Redacted.make(options.privateKey)
  const { address } = Effect.runSync(Signer.makePrivateKey(key))
  const native = Effect.runSync(Effect.cached(Effect.scoped(Layer.build(Signer.layerPrivateKey(key)))))
  return Signer.Signer.of({
    address,
    sign: (signable) =>
      Effect.flatMap(Effect.orDie(native), (services) => Context.get(services, Signer.Signer).sign(signable))
  })
}

const makeOrders = (
  options: SigningOptions,
  { exchange, health, info }: GatewayClient.Calls,
  nonces: NonceSource.NonceSource["Service"]
) => {
  const signer = makeSigner(options)
  let network = options.network
  const service = Effect.gen(function*() {
    if (network === undefined) {
      const ready = yield* Effect.mapError(
        health.ready(),
        (error) => new Signing.NotSent({ reason: unwrapReason(error) })
      )
      network = ready.network
    }
    return yield* Orders.make({ exchange, info }).pipe(
      Effect.provideService(VenueProfile.Venue, VenueProfile.resolve(network)),
      Effect.provideService(NonceSource.NonceSource, nonces),
      Effect.provideService(Signer.Signer, signer)
    )
  })
  const use = <A, E>(call: (orders: Signing.Orders["Service"]) => Effect.Effect<A, E>) => Effect.flatMap(service, call)
  return {
    address: signer.address,
    calls: {
      account: () => use((orders) => orders.account),
      cancel: (order: Signing.OpenOrder, options?: Signing.Options) => use((orders) => orders.cancel(order, options)),
      place: (order: Signing.NewOrder, options?: Signing.Options) => use((orders) => orders.place(order, options)),
      placeAll: (...args: Parameters<Signing.Orders["Service"]["placeAll"]>) =>
        use((orders) => orders.placeAll(...args)),
      send: (
        action: { readonly type: string; readonly [member: string]: unknown },
        { wait, ...options }: Signing.Options = {}
      ) => use((orders) => orders.send((nonce) => ActionBuilder.signL1(action, { ...options, nonce }), { wait }))
    }
  }
}

/** Provides the fetch client with a maximum time until a response begins. */
const layerHttp = (timeout: Duration.Input): Layer.Layer<HttpClient.HttpClient> =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.map(
      HttpClient.HttpClient,
      HttpClient.transform((sending, request) =>
        Effect.timeoutOrElse(sending, {
          duration: timeout,
          orElse: () => new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request }) })
        })
      )
    )
  ).pipe(Layer.provide(FetchHttpClient.layer))

/**
 * Makes a client of a gateway. With a `privateKey` or a `wallet`, it also places orders. Sends nothing yet.
 *
 * Calls return promises, and reject with the error classes of the gateway. Streams are async iterables, which reconnect
 * by themselves. After a lost response, calls of `orders` determine the outcome; they reject
 * with `StillUnknown` if that is not possible.
 *
 * @since 0.1.0
 * @category constructors
 * @example
 * ```ts
 * import { createClient } from "@trigate/sdk"
 *
 * const privateKey = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
 * const trigate = createClient({ baseUrl: "http://localhost:8080", privateKey })
 *
 * const order = await trigate.orders.place({ coin: "ETH", side: "buy", sizeInBase: "0.2", priceInQuote: "1100.5" })
 * console.log(order._tag)
 * await trigate.close()
 * ```
 * ```text
 * Resting
 * ```
 */
export function createClient(options: SigningOptions): SigningClient
export function createClient(options: Options): Client
export function createClient(options: Options | SigningOptions): Client | SigningClient {
  const { baseUrl, endpointKey, key, timeout = "60 seconds" } = options
  const connection = {
    baseUrl,
    ...(endpointKey === undefined ? {} : { endpointKey: Redacted.make(endpointKey) }),
    ...(key === undefined ? {} : { key: Redacted.make(key) })
  }
  const runtime = ManagedRuntime.make(Layer.mergeAll(
    Layer.provide(GatewayClient.layer(connection), layerHttp(timeout)),
    Streams.layerWebSocket(connection),
    EvmStreams.layerWebSocket(connection),
    NonceSource.layerMemory()
  ))
  const { calls, evmStreams, nonces, streams } = runtime.runSync(Effect.all({
    calls: GatewayClient.GatewayClient,
    evmStreams: EvmStreams.EvmStreams,
    nonces: NonceSource.NonceSource,
    streams: Streams.Streams
  }))
  const closed = Deferred.makeUnsafe<void>()
  const convert = makeConverter(runtime, Deferred.await(closed))
  const close = () => Effect.runPromise(Effect.andThen(Deferred.succeed(closed, undefined), runtime.disposeEffect))
  const client: Client = {
    admin: convert("admin", calls.admin),
    candles: convert("candles", calls.candles),
    evm: convert("evm", calls.evm),
    exchange: convert("exchange", calls.exchange),
    health: convert("health", calls.health),
    info: convert("info", calls.info),
    layer2: convert("layer2", calls.layer2),
    switches: convert("switches", calls.switches),
    tokens: convert("tokens", Struct.omit(calls.tokens, ["call"])),
    streams: convert("streams", streams),
    evmStreams: {
      evm: convert("evmStreams.evm", evmStreams.evm),
      layer2: convert("evmStreams.layer2", evmStreams.layer2)
    },
    close,
    [Symbol.asyncDispose]: close
  }
  if (!("privateKey" in options) && !("wallet" in options)) return client
  const orders = makeOrders(options, calls, nonces)
  return { ...client, address: orders.address, orders: convert("orders", orders.calls) }
}
