/** `Exchange` over HTTP. Provides this service, and `Venue`: the network for which actions are signed. */
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as HttpTransport from "@trigate/upstream/transport/HttpTransport"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as ActionLogMemory from "./actionLog/ActionLogMemory.ts"
import * as Admission from "./admission/Admission.ts"
import type { Exchange } from "./Exchange.ts"
import * as TradingUpstream from "./TradingUpstream.ts"

export { Exchange } from "./Exchange.ts"

/** The upstream URL, the network of signed actions, the admission options, and the call policies. */
export interface Options extends Admission.Options, Omit<Pipeline.ProcessOptions, "oneChain"> {
  /** Base URL of the venue's API or of a Trigate gateway. The URL may end in `/exchange`. */
  readonly url: string | Redacted.Redacted
  /** The network for which actions are signed; action builders read it from `Venue`. */
  readonly network: VenueProfile.Network
}

/**
 * Provides `Exchange` over the transport of the context. The service's action log is in memory; use
 * `Trading.layerNoDeps` for a persistent one.
 *
 * Each call returns a new layer with a separate action log and separate limits.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  { network, url, ...options }: Options
): Layer.Layer<Exchange | VenueProfile.Venue, never, HttpTransport.HttpTransport> =>
  TradingUpstream.layerExchange({ api: [url] }).pipe(
    Layer.provide([Admission.layer(options), ActionLogMemory.layer(), Pipeline.layer(options)]),
    Layer.provideMerge(VenueProfile.layer(network))
  )

/**
 * Provides {@link layer} over the `HttpClient` of the context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerHttpClient = (
  options: Options
): Layer.Layer<Exchange | VenueProfile.Venue, never, HttpClient.HttpClient> =>
  Layer.provide(layer(options), HttpTransport.layer)

/**
 * Provides {@link layer} over Effect's fetch client.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerFetch = (options: Options): Layer.Layer<Exchange | VenueProfile.Venue> =>
  Layer.provide(layer(options), HttpTransport.layerFetch)

/**
 * Provides {@link layer} over undici.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { ActionBuilder, Signer } from "@trigate/signing"
 * import { ExchangeUpstream } from "@trigate/trading"
 * import { Clock, Console, Effect, Layer, Redacted } from "effect"
 *
 * const order = { asset: 1, side: "buy", priceInQuote: "1100.5", sizeInBase: "0.2" } as const
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = Effect.gen(function*() {
 *   const nonce = yield* Clock.currentTimeMillis
 *   const signed = yield* ActionBuilder.placeOrders({ orders: [order] }, { nonce })
 *   const { submit } = yield* ExchangeUpstream.Exchange
 *   const { entries } = yield* submit(signed)
 *   yield* Console.log(entries.map(({ _tag }) => _tag))
 * }).pipe(Effect.provide(Layer.merge(
 *   ExchangeUpstream.layerUndici({ url: "http://localhost:8080", network: "mainnet" }),
 *   Signer.layerPrivateKey(key)
 * )))
 *
 * await Effect.runPromise(program)
 * ```
 * ```text
 * [ 'Resting' ]
 * ```
 */
export const layerUndici = (options: Options): Layer.Layer<Exchange | VenueProfile.Venue> =>
  Layer.provide(layer(options), HttpTransport.layerUndici())
