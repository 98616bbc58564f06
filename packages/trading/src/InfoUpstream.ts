/** `Info` over HTTP. Provides only this service, for a program that signs nothing. */
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as HttpTransport from "@trigate/upstream/transport/HttpTransport"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import type { Info } from "./Info.ts"
import * as TradingUpstream from "./TradingUpstream.ts"

export { Info } from "./Info.ts"

/** The upstream URLs of queries, and the call policies. */
export interface Options extends TradingUpstream.InfoOptions, Omit<Pipeline.ProcessOptions, "oneChain"> {
  /** Base URL of the venue's API or of a Trigate gateway. The URL may end in `/info`. */
  readonly url: string | Redacted.Redacted
  /**
   * Base URLs of nodes. Each URL contains the node's endpoint key in its path. While the API is unreachable, nodes
   * serve the queries that they support.
   */
  readonly node?: TradingUpstream.Addresses["node"]
}

/**
 * Provides `Info` over the transport of the context.
 *
 * Each call returns a new layer with separate limits and a separate cache.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = ({ node, url, ...options }: Options): Layer.Layer<Info, never, HttpTransport.HttpTransport> =>
  TradingUpstream.layerInfo({ api: [url], ...(node === undefined ? {} : { node }) }, options).pipe(
    Layer.provide(Pipeline.layer(options))
  )

/**
 * Provides {@link layer} over the `HttpClient` of the context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerHttpClient = (options: Options): Layer.Layer<Info, never, HttpClient.HttpClient> =>
  Layer.provide(layer(options), HttpTransport.layer)

/**
 * Provides {@link layer} over Effect's fetch client.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { InfoUpstream } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const program = InfoUpstream.Info.use(({ candleSnapshot }) =>
 *   candleSnapshot({ coin: "BTC", interval: "1d", startTime: 0 })
 * ).pipe(Effect.flatMap(({ candles }) => Console.log(candles.length > 0)))
 *
 * await Effect.runPromise(Effect.provide(program, InfoUpstream.layerFetch({ url: "http://localhost:8080" })))
 * ```
 * ```text
 * true
 * ```
 */
export const layerFetch = (options: Options): Layer.Layer<Info> =>
  Layer.provide(layer(options), HttpTransport.layerFetch)

/**
 * Provides {@link layer} over undici.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerUndici = (options: Options): Layer.Layer<Info> =>
  Layer.provide(layer(options), HttpTransport.layerUndici())
