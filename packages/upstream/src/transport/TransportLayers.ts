/** Layers of the transport: over Effect's fetch client, or over undici, which is loaded only if used. */
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import type { HttpTransport } from "./HttpTransport.ts"
import * as HttpTransportHttpClient from "./HttpTransportHttpClient.ts"

/**
 * Provides the transport over Effect's fetch client, for browsers, Bun, Deno and workers.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Pipeline, TransportLayers } from "@trigate/upstream"
 * import { Layer } from "effect"
 *
 * export const pipeline = Layer.provide(Pipeline.layer(), TransportLayers.layerFetch)
 * ```
 */
export const layerFetch: Layer.Layer<HttpTransport> = Layer.provide(
  HttpTransportHttpClient.layer,
  FetchHttpClient.layer
)

/**
 * Provides the transport over undici with its own pools. It is the fastest transport in Node.
 *
 * undici is loaded when the layer is built, so that a program with another client is bundled without it.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerUndici = (): Layer.Layer<HttpTransport> =>
  Layer.unwrap(Effect.map(Effect.promise(() => import("./HttpTransportUndici.ts")), ({ layer }) => layer()))
