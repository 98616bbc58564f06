/** `Layer2` over the network: JSON-RPC by POST to a node's base URL. */
import { ChainNotConfigured } from "@trigate/domain/errors/RequestError"
import { getTransactionReceipt, serving } from "@trigate/domain/evm/Layer2Operations"
import * as GatewayReads from "@trigate/upstream/evm/GatewayReads"
import * as EvmUpstream from "@trigate/upstream/EvmUpstream"
import * as Pipeline from "@trigate/upstream/Pipeline"
import type { HttpTransport } from "@trigate/upstream/transport/HttpTransport"
import * as HttpTransportHttpClient from "@trigate/upstream/transport/HttpTransportHttpClient"
import * as TransportLayers from "@trigate/upstream/transport/TransportLayers"
import * as Upstream from "@trigate/upstream/Upstream"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as FinalReceipts from "./FinalReceipts.ts"
import { Layer2, make as makeService } from "./Layer2.ts"

export { Layer2 }

/** The upstream URLs of the layer 2, and the limits of its reads. */
export interface Addresses {
  /**
   * Base URLs with the endpoint key in the path, in order of preference. If the list is empty, calls fail with
   * `ChainNotConfigured`.
   */
  readonly addresses: ReadonlyArray<string | Redacted.Redacted>
  /** Whether final receipts are cached. Caching requires additional block requests; see {@link FinalReceipts}. */
  readonly finality?: FinalReceipts.Options
  /** The limits of log queries and filters. */
  readonly evm?: GatewayReads.Bounds
}

const notConfigured = () =>
  new ChainNotConfigured({ chain: "layer2", detail: "No upstream URL of a layer 2 is configured" })

const make = ({ addresses, evm, finality }: Addresses) => {
  const upstream = Upstream.make("layer2", addresses)
  const targets = Upstream.targets(upstream, "")
  const callTargets = () =>
    Arr.isReadonlyArrayNonEmpty(targets) ? Result.succeed(targets) : Result.fail(notConfigured())
  const nodes = EvmUpstream.make({
    upstream,
    targetsOf: callTargets,
    confirm: (read) => {
      const receipts = FinalReceipts.make(
        (call) => Effect.flatMap(Effect.fromResult(callTargets()), (found) => read(call, found)),
        finality
      )
      return ({ operation, request }, answer) =>
        operation.name === getTransactionReceipt.name && Predicate.hasProperty(request, "hash") &&
          Predicate.isString(request.hash)
          ? receipts.confirm(request.hash, answer)
          : undefined
    }
  })
  return Effect.flatMap(nodes, (backend) => GatewayReads.make(backend, { ...evm, serving, label: upstream.label }))
}

/** The URL of the layer 2, and the call policies. */
export interface Options extends Omit<Addresses, "addresses">, Omit<Pipeline.ProcessOptions, "oneChain"> {
  /** Base URL of a node, with the endpoint key in the path, or base URL of a gateway with the path `/l2`. */
  readonly url: string | Redacted.Redacted
}

/**
 * Provides `Layer2` over the request pipeline (limits, cache, retries) in the context. Use this layer if several chains
 * share a pipeline.
 *
 * Each call returns a new layer with a separate `Layer2`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoDeps = (addresses: Addresses): Layer.Layer<Layer2, never, Pipeline.Pipeline> =>
  Layer.effect(Layer2, Effect.map(make(addresses), makeService))

/**
 * Provides `Layer2` over the HTTP transport in the context. Each call returns a new layer with separate limits and a
 * separate cache.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = ({ url, ...options }: Options): Layer.Layer<Layer2, never, HttpTransport> =>
  Layer.provide(layerNoDeps({ ...options, addresses: [url] }), Pipeline.layer(options))

/**
 * Provides {@link layer} over the `HttpClient` of the context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerHttpClient = (options: Options): Layer.Layer<Layer2, never, HttpClient.HttpClient> =>
  Layer.provide(layer(options), HttpTransportHttpClient.layer)

/**
 * Provides {@link layer} over Effect's fetch client.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Layer2Upstream } from "@trigate/layer2"
 * import { Console, Effect } from "effect"
 *
 * const program = Layer2Upstream.Layer2.use(({ chainId }) => Effect.flatMap(chainId(), Console.log))
 *
 * await Effect.runPromise(Effect.provide(program, Layer2Upstream.layerFetch({ url: "http://localhost:8080/l2" })))
 * ```
 */
export const layerFetch = (options: Options): Layer.Layer<Layer2> =>
  Layer.provide(layer(options), TransportLayers.layerFetch)

/**
 * Provides {@link layer} over undici.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerUndici = (options: Options): Layer.Layer<Layer2> =>
  Layer.provide(layer(options), TransportLayers.layerUndici())
