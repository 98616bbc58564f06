/** `TokenChain` over the network: REST and JSON-RPC under `/api/v2` of a node's base URL. */
import { detached } from "@trigate/domain/Caller"
import { ChainNotConfigured } from "@trigate/domain/errors/GatewayError"
import * as TokenProtocol from "@trigate/domain/unstable/tokens/TokenProtocol"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as HttpTransportHttpClient from "@trigate/upstream/transport/HttpTransport"
import type { HttpTransport } from "@trigate/upstream/transport/HttpTransport"
import * as Upstream from "@trigate/upstream/unstable/Upstream"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { layerNone, make as makeService, MetadataFetch, TokenChain } from "./TokenChain.ts"
import * as Transactions from "./transactions/Transactions.ts"

export { TokenChain }

/** The upstream URLs of the token chain, and the limits of its streams. */
export interface Addresses {
  /**
   * Base URLs with the provider's endpoint key in the path, in order of preference. If the list is empty, calls fail
   * with `ChainNotConfigured`.
   *
   * Providers document their URLs with and without `/api/v2` or `/api/v2/jsonRPC` at the end; all three forms are
   * accepted.
   */
  readonly addresses: ReadonlyArray<string | Redacted.Redacted>
  /** Maximum requests per second, in total for all transaction streams. Default: 1. */
  readonly streamRequestsPerSecond?: number
}

const notConfigured = () =>
  new ChainNotConfigured({ chain: "tokens", detail: "No upstream URL of a token chain is configured" })

const make = Effect.fnUntraced(function*({ addresses, streamRequestsPerSecond }: Addresses) {
  const pipeline = yield* Pipeline.Pipeline
  const upstream = Upstream.make("token-chain", addresses)
  // all JSON-RPC calls have the same path, so their targets are made once
  const rpcTargets = Upstream.targets(upstream, "/api/v2/jsonRPC")
  const callTargets = (call: TokenProtocol.TokenRead | TokenProtocol.TokenOnce) => {
    const targets = call.form === "rpc" ? rpcTargets : Upstream.targets(upstream, TokenProtocol.requestPath(call))
    return Arr.isReadonlyArrayNonEmpty(targets) ? Result.succeed(targets) : Result.fail(notConfigured())
  }
  const backend: TokenProtocol.TokenBackend = {
    read: (yield* pipeline.reads({ protocol: TokenProtocol.reads, upstream, targetsOf: callTargets })).read,
    once: (call) =>
      Effect.flatMap(
        Effect.fromResult(callTargets(call)),
        (targets) =>
          detached(pipeline.once({ operation: call.operation, targets, body: TokenProtocol.encodeBody(call) }, {}))
      )
  }
  const { pollInterval, requestsPerSecond } = Transactions.defaults
  return yield* makeService(backend, yield* MetadataFetch, {
    pollInterval,
    requestsPerSecond: streamRequestsPerSecond ?? requestsPerSecond
  })
})

/** The URL of the token chain, and the call policies. */
export interface Options extends Omit<Addresses, "addresses">, Omit<Pipeline.ProcessOptions, "oneChain"> {
  /** Base URL of a node, with the provider's endpoint key in the path, or base URL of a gateway. */
  readonly url: string | Redacted.Redacted
}

/**
 * Provides `TokenChain` over the pipeline and the `MetadataFetch` of the context, for a pipeline that several chains
 * share.
 *
 * Each call returns a new layer with a separate `TokenChain`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoDeps = (
  addresses: Addresses
): Layer.Layer<TokenChain, never, Pipeline.Pipeline | MetadataFetch> => Layer.effect(TokenChain, make(addresses))

/**
 * Provides `TokenChain` over the transport of the context. Each call returns a new layer with separate limits and a
 * separate cache.
 *
 * The service does not fetch metadata documents, so the program contacts only the node. The metadata of tokens with
 * off-chain content is therefore `unresolved`; `Tokens.layer` fetches it.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = ({ url, ...options }: Options): Layer.Layer<TokenChain, never, HttpTransport> =>
  Layer.provide(layerNoDeps({ ...options, addresses: [url] }), [Pipeline.layer(options), layerNone])

/**
 * Provides {@link layer} over the `HttpClient` of the context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerHttpClient = (
  options: Options
): Layer.Layer<TokenChain, never, HttpClient.HttpClient> => Layer.provide(layer(options), HttpTransportHttpClient.layer)

/**
 * Provides {@link layer} over Effect's fetch client.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { TokenChainUpstream } from "@trigate/tokens"
 * import { Console, Effect } from "effect"
 *
 * const address = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"
 *
 * const program = TokenChainUpstream.TokenChain.use(({ getTokenData }) => getTokenData({ address })).pipe(
 *   Effect.flatMap(({ symbol }) => Console.log(symbol))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, TokenChainUpstream.layerFetch({ url: "http://localhost:8080" })))
 * ```
 * ```text
 * TRIG
 * ```
 */
export const layerFetch = (options: Options): Layer.Layer<TokenChain> =>
  Layer.provide(layer(options), HttpTransportHttpClient.layerFetch)

/**
 * Provides {@link layer} over undici.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerUndici = (options: Options): Layer.Layer<TokenChain> =>
  Layer.provide(layer(options), HttpTransportHttpClient.layerUndici())
