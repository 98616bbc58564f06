/** The token chain in one layer, over undici, with the defaults of a single-process program. */
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import { settings } from "@trigate/upstream/unstable/Upstream"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as MetadataFetchUndici from "./metadata/MetadataFetchUndici.ts"
import type { TokenChain } from "./TokenChain.ts"
import * as TokenChainUpstream from "./TokenChainUpstream.ts"

/** The upstream URLs of the chain, and the call policies. */
export interface Options extends TokenChainUpstream.Addresses, Omit<Pipeline.ProcessOptions, "oneChain"> {}

/**
 * Provides `TokenChain` over the context's pipeline, which several chains can share.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoDeps = (options: TokenChainUpstream.Addresses): Layer.Layer<TokenChain, never, Pipeline.Pipeline> =>
  Layer.provide(TokenChainUpstream.layerNoDeps(options), MetadataFetchUndici.layer())

/**
 * Provides `TokenChain` with all its dependencies. Each call returns a new layer with separate limits and a separate
 * cache.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { TokenChain, Tokens } from "@trigate/tokens"
 * import { Console, Effect } from "effect"
 *
 * const address = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"
 *
 * const program = TokenChain.TokenChain.use(({ unpackAddress }) => unpackAddress({ address })).pipe(Effect.flatMap(Console.log))
 *
 * await Effect.runPromise(Effect.provide(program, Tokens.layer({ addresses: ["http://localhost:8080"] })))
 * ```
 * ```text
 * 0:A56FA58BE1381C36C9AEECA74D8A2E66C37DF4BFE93F725EA308AC8F8FDA5635
 * ```
 */
export const layer = (options: Options): Layer.Layer<TokenChain> =>
  layerNoDeps(options).pipe(Layer.provide(Pipeline.layer(options)), Layer.provide(HttpTransportUndici.layer()))

/** Reads the options from the gateway's settings. `Config.nested` adds a prefix to the names of the settings. */
export const config: Config.Config<Options> = Config.map(
  Config.all({
    calls: Pipeline.config,
    addresses: settings.tokenChainUrl,
    streamRequestsPerSecond: settings.tokenChainStreamRps
  }),
  ({ calls, ...chain }) => ({ ...calls, ...chain })
)

/**
 * Provides {@link layer} with options from a `Config`. Default: {@link config}.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Tokens } from "@trigate/tokens"
 * import { ConfigProvider, Layer } from "effect"
 *
 * const environment = ConfigProvider.fromUnknown({ TRIGATE_TOKEN_CHAIN_URL: "http://localhost:8080" })
 *
 * export const tokens = Layer.provide(Tokens.layerConfig(), ConfigProvider.layer(environment))
 * ```
 */
export const layerConfig = (options: Config.Wrap<Options> = config): Layer.Layer<TokenChain, Config.ConfigError> =>
  Layer.unwrap(Effect.map(Config.unwrap(options), layer))
