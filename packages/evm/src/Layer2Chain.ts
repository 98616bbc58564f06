/**
 * Provides `Layer2` over undici, in one layer with all dependencies. The defaults suit a program that runs as a single
 * process.
 */
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import * as Upstream from "@trigate/upstream/unstable/Upstream"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as GatewayReads from "./EvmFeed.ts"
import type { Layer2 } from "./Layer2.ts"
import * as Layer2Upstream from "./Layer2Upstream.ts"

/** The upstream URLs of the chain, and the call policies. */
export interface Options extends Layer2Upstream.Addresses, Omit<Pipeline.ProcessOptions, "oneChain"> {}

/**
 * Provides the service with all its dependencies.
 *
 * Each call returns a new layer with separate limits and a separate cache.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Layer2, Layer2Chain } from "@trigate/evm"
 * import { Console, Effect } from "effect"
 *
 * const program = Layer2.Layer2.use(({ chainId }) => Effect.flatMap(chainId(), Console.log))
 *
 * await Effect.runPromise(Effect.provide(program, Layer2Chain.layer({ addresses: ["http://localhost:8080/l2"] })))
 * ```
 * ```text
 * 31337n
 * ```
 */
export const layer = (options: Options): Layer.Layer<Layer2> =>
  Layer2Upstream.layerNoDeps(options).pipe(
    Layer.provide(Pipeline.layer({ ...options, oneChain: [{ upstream: Upstream.make("layer2", options.addresses) }] })),
    Layer.provide(HttpTransportUndici.layer())
  )

/** Reads the options from the settings. `Config.nested` adds a prefix to their names. */
export const config: Config.Config<Options> = Config.map(
  Config.all({
    calls: Pipeline.config,
    addresses: Upstream.settings.layer2Url,
    logs: Config.all({
      layer2LogBlocks: Upstream.settings.layer2LogBlocks,
      layer2WsUrl: Upstream.settings.layer2WsUrl,
      logsMaxRequests: Upstream.settings.logsMaxRequests,
      callerFilters: Upstream.settings.callerFilters
    })
  }),
  ({ addresses, calls, logs }) => ({
    ...calls,
    addresses,
    evm: GatewayReads.toBounds(logs, {
      logBlocks: logs.layer2LogBlocks,
      sockets: logs.layer2WsUrl
    })
  })
)

/**
 * Provides {@link layer} with options from a `Config`. Default: {@link config}.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Layer2, Layer2Chain } from "@trigate/evm"
 * import { ConfigProvider, Console, Effect, Layer } from "effect"
 *
 * const environment = ConfigProvider.fromUnknown({ TRIGATE_LAYER2_URL: "http://localhost:8080/l2" })
 *
 * const program = Layer2.Layer2.use(({ chainId }) => Effect.flatMap(chainId(), Console.log))
 *
 * await Effect.runPromise(
 *   Effect.provide(program, Layer.provide(Layer2Chain.layerConfig(), ConfigProvider.layer(environment)))
 * )
 * ```
 * ```text
 * 31337n
 * ```
 */
export const layerConfig = (options: Config.Wrap<Options> = config): Layer.Layer<Layer2, Config.ConfigError> =>
  Layer.unwrap(Effect.map(Config.unwrap(options), layer))
