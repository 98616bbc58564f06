/** The token chain in one call: its service over undici, with the defaults of a program of one process. */
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import { settings } from "@trigate/upstream/UpstreamSettings"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as MetadataFetchUndici from "./metadata/MetadataFetchUndici.ts"
import type { TokenChain } from "./TokenChain.ts"
import * as TokenChainUpstream from "./TokenChainUpstream.ts"

/** Which chain, and how calls reach it. */
export interface Options extends TokenChainUpstream.Options, Omit<Pipeline.ProcessOptions, "oneChain"> {}

/** The service over the pipeline of the context; for a pipeline that is shared. */
export const layerNoDeps = (options: TokenChainUpstream.Options): Layer.Layer<TokenChain, never, Pipeline.Pipeline> =>
  Layer.provide(TokenChainUpstream.layer(options), MetadataFetchUndici.layer())

/** The service with all that it needs; a function, so that two token chains in one program share nothing. */
export const layer = (options: Options): Layer.Layer<TokenChain> =>
  layerNoDeps(options).pipe(Layer.provide(Pipeline.layer(options)), Layer.provide(HttpTransportUndici.layer()))

/** The options that the settings name. `Config.nested` reads them behind a prefix. */
export const config: Config.Config<Options> = Config.map(
  Config.all({
    calls: Pipeline.config,
    addresses: settings.tokenChainUrl,
    streamRequestsPerSecond: settings.tokenChainStreamRps
  }),
  ({ calls, ...chain }) => ({ ...calls, ...chain })
)

/** {@link layer} with options from the configuration: those of the settings, or others. */
export const layerConfig = (options: Config.Wrap<Options> = config): Layer.Layer<TokenChain, Config.ConfigError> =>
  Layer.unwrap(Effect.map(Config.unwrap(options), layer))
