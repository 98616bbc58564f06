/** The trading chain in one call: its services for one network, over undici, with the defaults of a program of one process. */
import * as NonceSource from "@trigate/signing/NonceSource"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as GatewayReads from "@trigate/upstream/evm/GatewayReads"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import { settings as upstreamSettings } from "@trigate/upstream/UpstreamSettings"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ActionLog from "./actionLog/ActionLog.ts"
import * as ActionSettlement from "./actionLog/ActionSettlement.ts"
import * as Admission from "./admission/Admission.ts"
import type { Exchange } from "./Exchange.ts"
import type { Info } from "./Info.ts"
import * as Inspector from "./Inspector.ts"
import type { TradingEvm } from "./TradingEvm.ts"
import { settings } from "./TradingSettings.ts"
import * as TradingUpstream from "./TradingUpstream.ts"

/** The network of the chain, and its admission options. */
export interface ChainOptions extends Admission.Options, TradingUpstream.InfoOptions {
  /** The network that actions are signed for. Admission and the builders of actions read it from `Venue`. */
  readonly network: VenueProfile.Network
  /** Where it is; a method that no address serves fails with `ChainNotConfigured`. */
  readonly addresses: TradingUpstream.Addresses
  /** What logs and filters of the EVM may take. */
  readonly evm?: GatewayReads.Bounds
}

/** The network of the chain, its admission options, and how calls reach it. */
export interface Options extends ChainOptions, Omit<Pipeline.ProcessOptions, "oneChain"> {}

/** The services of the chain, and the network that they are for. */
export type Services = Exchange | Info | Inspector.Inspector | TradingEvm | VenueProfile.Venue

/** The additional services of a program that signs: its action log, and nonces. */
export type Signing = ActionLog.ActionLog | NonceSource.NonceSource

/**
 * The services over the action log and the pipeline of the context; for a log in a database, or a pipeline that is shared.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoDeps = (
  { addresses, evm, infoFreshness, network, staleWhenLimited, ...admission }: ChainOptions
): Layer.Layer<Services, never, ActionLog.ActionLog | Pipeline.Pipeline> =>
  Layer.mergeAll(
    TradingUpstream.layerExchange(addresses),
    Layer.provideMerge(
      ActionSettlement.layer,
      TradingUpstream.layerInfo(addresses, { infoFreshness, staleWhenLimited })
    ),
    TradingUpstream.layerEvm(addresses, evm),
    Inspector.layer(admission)
  ).pipe(Layer.provide(Admission.layer(admission)), Layer.provideMerge(VenueProfile.layer(network)))

/**
 * The services with all that they need. The action log and the nonces are in memory.
 *
 * A function, so that two networks in one program share nothing.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Exchange, Info, Trading } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const trading = Trading.layer({ network: "mainnet", addresses: { api: ["http://localhost:8080"] } })
 *
 * const program = Effect.gen(function*() {
 *   const { allMids } = yield* Info.Info
 *   const { outcome } = yield* Exchange.Exchange
 *   yield* Console.log("BTC" in (yield* allMids()), typeof outcome)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, trading))
 * ```
 * ```text
 * true function
 * ```
 */
export const layer = (options: Options): Layer.Layer<Services | Signing> =>
  layerNoDeps(options).pipe(
    Layer.provide(
      Pipeline.layer({ ...options, oneChain: [{ upstream: TradingUpstream.make(options.addresses).node }] })
    ),
    Layer.provide(HttpTransportUndici.layer()),
    Layer.provideMerge(Layer.merge(ActionLog.layerMemory(), NonceSource.layerMemory()))
  )

/** The options that the settings name. `Config.nested` reads them behind a prefix. */
export const config: Config.Config<Options> = Config.map(
  Config.all({
    admission: Admission.config,
    calls: Pipeline.config,
    logs: Config.all({
      tradingNodeLogBlocks: upstreamSettings.tradingNodeLogBlocks,
      tradingNodeBatch: upstreamSettings.tradingNodeBatch,
      logsMaxRequests: upstreamSettings.logsMaxRequests,
      callerFilters: upstreamSettings.callerFilters
    }),
    chain: Config.all({
      network: settings.network,
      addresses: TradingUpstream.config,
      infoFreshness: settings.infoFreshness,
      staleWhenLimited: settings.staleWhenLimited
    })
  }),
  ({ admission, calls, chain, logs }) => ({
    ...admission,
    ...calls,
    ...chain,
    evm: GatewayReads.toBounds(logs, { logBlocks: logs.tradingNodeLogBlocks, batch: logs.tradingNodeBatch })
  })
)

/**
 * {@link layer} with options from the configuration: those of the settings, or others.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Info, Trading } from "@trigate/trading"
 * import { ConfigProvider, Console, Effect, Layer } from "effect"
 *
 * const environment = ConfigProvider.fromUnknown({ TRIGATE_TRADING_API_URL: "http://localhost:8080" })
 *
 * const program = Info.Info.use(({ allMids }) => Effect.flatMap(allMids(), (mids) => Console.log("BTC" in mids)))
 *
 * await Effect.runPromise(Effect.provide(program, Layer.provide(Trading.layerConfig(), ConfigProvider.layer(environment))))
 * ```
 * ```text
 * true
 * ```
 */
export const layerConfig = (
  options: Config.Wrap<Options> = config
): Layer.Layer<Services | Signing, Config.ConfigError> => Layer.unwrap(Effect.map(Config.unwrap(options), layer))
