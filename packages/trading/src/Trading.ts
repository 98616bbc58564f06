/** All services of the venue in one layer: one network, over undici, with the defaults of a single-process program. */
import * as GatewayReads from "@trigate/evm/unstable/EvmFeed"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as SocketTransport from "@trigate/upstream/streams/SocketTransport"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import { settings as upstreamSettings } from "@trigate/upstream/unstable/Upstream"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as ActionLog from "./actionLog/ActionLog.ts"
import * as ActionLogMemory from "./actionLog/ActionLogMemory.ts"
import * as ActionSettlement from "./actionLog/ActionSettlement.ts"
import * as Admission from "./admission/Admission.ts"
import type { Exchange } from "./Exchange.ts"
import * as Guard from "./guard/Guard.ts"
import type { Info } from "./Info.ts"
import * as Inspector from "./Inspector.ts"
import * as Streams from "./streams/Streams.ts"
import type { TradingEvm } from "./TradingEvm.ts"
import { settings } from "./TradingSettings.ts"
import * as TradingUpstream from "./TradingUpstream.ts"

/** The network, the upstream URLs, and the admission options of the chain. */
export interface ChainOptions
  extends Admission.Options, ActionSettlement.Options, Guard.GuardOptions, TradingUpstream.InfoOptions
{
  /** The network for which actions are signed. Admission and action builders read it from `Venue`. */
  readonly network: VenueProfile.Network
  /** The upstream URLs. A method fails with `ChainNotConfigured` if none of the URLs serves that method. */
  readonly addresses: TradingUpstream.Addresses
  /** The limits of EVM log queries and filters. */
  readonly evm?: GatewayReads.Bounds
}

/** The options of the chain, and the call policies. */
export interface Options extends ChainOptions, Omit<Pipeline.ProcessOptions, "oneChain"> {
  /** The limits of the streams, and the accounts whose events are logged. */
  readonly streams?: Pick<Streams.Options, "events" | "familiar" | "limits">
}

/** The services of the chain, and its network. */
export type Services = Exchange | Guard.Guard | Info | Inspector.Inspector | TradingEvm | VenueProfile.Venue

/** The additional services for signing: the action log and the nonce source. */
export type Signing = ActionLog.ActionLog | NonceSource.NonceSource

/** The services that {@link layer} provides. */
export type All = Services | Signing | Streams.Streams

/**
 * Provides the services over the action log and the pipeline of the context. Use it with a persistent action log, or
 * with a pipeline that several chains share.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoDeps = (
  { addresses, evm, guard, infoFreshness, mirror, network, orders, policies, staleWhenLimited, ...admission }:
    ChainOptions
): Layer.Layer<Services, never, ActionLog.ActionLog | Pipeline.Pipeline> =>
  Layer.mergeAll(
    Layer.merge(TradingUpstream.layerExchange(addresses), TradingUpstream.layerEvm(addresses, evm)).pipe(
      Layer.provideMerge(Guard.layer({ guard, policies })),
      Layer.provideMerge(ActionSettlement.layer({ orders })),
      Layer.provideMerge(TradingUpstream.layerInfo(addresses, { infoFreshness, staleWhenLimited, mirror }))
    ),
    Inspector.layer(admission)
  ).pipe(Layer.provide(Admission.layer(admission)), Layer.provideMerge(VenueProfile.layer(network)))

/**
 * Provides the services with all their dependencies. The action log and the nonces are in memory. Streams use the
 * WebSockets of the `api` addresses.
 *
 * Each call returns a new layer with separate services, limits and caches: call it once for each network of a program.
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
export const layer = ({ streams, ...options }: Options): Layer.Layer<All> =>
  Streams.layer({ ...streams, addresses: Streams.socketAddresses(options.addresses.api ?? []) }).pipe(
    Layer.provide(SocketTransport.layerWebSocket),
    Layer.provideMerge(layerNoDeps(options)),
    Layer.provide(
      Pipeline.layer({ ...options, oneChain: [{ upstream: TradingUpstream.make(options.addresses).node }] })
    ),
    Layer.provide(HttpTransportUndici.layer()),
    Layer.provideMerge(Layer.merge(ActionLogMemory.layer(), NonceSource.layerMemory()))
  )

/** Reads the options from the gateway's settings. `Config.nested` adds a prefix to the names of the settings. */
export const config: Config.Config<Options> = Config.map(
  Config.all({
    admission: Admission.config,
    calls: Pipeline.config,
    logs: Config.all({
      tradingNodeLogBlocks: upstreamSettings.tradingNodeLogBlocks,
      tradingNodeWsUrl: upstreamSettings.tradingNodeWsUrl,
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
    evm: GatewayReads.toBounds(logs, {
      logBlocks: logs.tradingNodeLogBlocks,
      sockets: logs.tradingNodeWsUrl
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
): Layer.Layer<All, Config.ConfigError> => Layer.unwrap(Effect.map(Config.unwrap(options), layer))
