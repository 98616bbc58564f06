/** `TradingEvm` over HTTP. Provides only this service, over one node. */
import type * as GatewayReads from "@trigate/evm/unstable/EvmFeed"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as HttpTransport from "@trigate/upstream/transport/HttpTransport"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import type { TradingEvm } from "./TradingEvm.ts"
import * as TradingUpstream from "./TradingUpstream.ts"

export { TradingEvm } from "./TradingEvm.ts"

/** The URL of a node, and the call policies. */
export interface Options
  extends Pick<TradingUpstream.Addresses, "nodeArchive">, Omit<Pipeline.ProcessOptions, "oneChain">
{
  /** Base URL of a node or a Trigate gateway. A node's URL contains its endpoint key. The URL may end in `/evm`. */
  readonly url: string | Redacted.Redacted
  /** The limits of log queries and filters. */
  readonly evm?: GatewayReads.Bounds
}

/**
 * Provides `TradingEvm` over the transport of the context.
 *
 * Each call returns a new layer with separate limits and a separate cache.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  { evm, nodeArchive = false, url, ...options }: Options
): Layer.Layer<TradingEvm, never, HttpTransport.HttpTransport> =>
  Layer.provide(TradingUpstream.layerEvm({ node: [url], nodeArchive }, evm), Pipeline.layer(options))

/**
 * Provides {@link layer} over the `HttpClient` of the context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerHttpClient = (options: Options): Layer.Layer<TradingEvm, never, HttpClient.HttpClient> =>
  Layer.provide(layer(options), HttpTransport.layer)

/**
 * Provides {@link layer} over Effect's fetch client.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { TradingEvmUpstream } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const program = TradingEvmUpstream.TradingEvm.use(({ chainId }) => Effect.flatMap(chainId(), Console.log))
 *
 * await Effect.runPromise(Effect.provide(program, TradingEvmUpstream.layerFetch({ url: "http://localhost:8080" })))
 * ```
 * ```text
 * 999n
 * ```
 */
export const layerFetch = (options: Options): Layer.Layer<TradingEvm> =>
  Layer.provide(layer(options), HttpTransport.layerFetch)

/**
 * Provides {@link layer} over undici.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerUndici = (options: Options): Layer.Layer<TradingEvm> =>
  Layer.provide(layer(options), HttpTransport.layerUndici())
