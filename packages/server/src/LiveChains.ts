/** The chains over the network, with the stores that the settings select. */
import * as NodeWS from "@effect/platform-node/NodeWS"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import { ExportedArchive } from "@trigate/archive/CandleFiles"
import type * as Quotas from "@trigate/callers/Quotas"
import * as Policy from "@trigate/domain/actions/Policy"
import * as Layer2Upstream from "@trigate/evm/Layer2Upstream"
import * as EvmFeed from "@trigate/evm/unstable/EvmFeed"
import * as FilterStore from "@trigate/evm/unstable/Filters"
import type { NonceSource } from "@trigate/signing/NonceSource"
import * as MetadataFetchUndici from "@trigate/tokens/metadata/MetadataFetchUndici"
import { MetadataFetch } from "@trigate/tokens/TokenChain"
import * as TokenChainUpstream from "@trigate/tokens/TokenChainUpstream"
import { SharedTransactions } from "@trigate/tokens/transactions/Transactions"
import * as AccountEvents from "@trigate/trading/accounts/AccountEvents"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as Admission from "@trigate/trading/admission/Admission"
import * as Guard from "@trigate/trading/guard/Guard"
import { GuardStore } from "@trigate/trading/guard/GuardStore"
import * as Streams from "@trigate/trading/streams/Streams"
import * as Trading from "@trigate/trading/Trading"
import * as AccountMirror from "@trigate/trading/unstable/accounts/AccountMirror"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as RateLimiterRedis from "@trigate/upstream/limits/RateLimiterRedis"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as ReplicaUse from "@trigate/upstream/streams/ReplicaUse"
import * as SocketTransport from "@trigate/upstream/streams/SocketTransport"
import { HttpTransport } from "@trigate/upstream/transport/HttpTransport"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import type { RateWindow } from "@trigate/upstream/unstable/limits/RateWindow"
import * as Upstream from "@trigate/upstream/unstable/Upstream"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as LayerMap from "effect/LayerMap"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Socket from "effect/socket/Socket"
import * as Struct from "effect/Struct"
import { Chains, layerStoreReadiness, type SettingsInForce } from "./Chains.ts"
import { type Settings, toEventLog, toLimits } from "./settings/Settings.ts"
import type { SettingsError } from "./settings/SettingsSources.ts"
import * as AuditLogWriter from "./stores/AuditLogWriter.ts"
import * as Stores from "./stores/Stores.ts"
import { CurrentServices, openFeeds } from "./streams/Sessions.ts"

/** Maximum number of bytes of a WebSocket frame from the venue; the longest known frame has 116 KB. */
const maxPayload = 16 * 1024 * 1024

/** WebSockets without compression, which the venue does not support either. */
const layerSockets: Layer.Layer<SocketTransport.SocketTransport> = Layer.provide(
  SocketTransport.layer,
  Layer.succeed(
    Socket.WebSocketConstructor,
    (url) => new NodeWS.WebSocket(url, { maxPayload, perMessageDeflate: false, handshakeTimeout: 10_000 })
  )
)

/** The services that persist when the settings change. */
const persistent = [
  ActionLog.ActionLog,
  FilterStore.FilterStore,
  HttpTransport,
  AccountEvents.EventStore,
  MetadataFetch,
  ReplicaUse.ReplicaUse,
  ResponseCache.ResponseCache,
  SharedTransactions,
  SocketTransport.SocketTransport
] as const

/** The settings of each EVM chain's feed: its WebSocket URLs, and the request units per second of its node's plan. */
const feedSettings = {
  trading: { sockets: "tradingNodeWsUrl", units: "tradingNodeRps" },
  layer2: { sockets: "layer2WsUrl", units: "layer2Rps" }
} as const

/**
 * Returns the minimum milliseconds between two polls for an EVM chain's newest block. Polls use at most three fifths of
 * the node plan's request units per second. If no plan is configured, the minimum is one second.
 */
const pollAtLeast = (units: Option.Option<number>): number =>
  Option.match(units, { onNone: () => 1000, onSome: (rps) => 1000 / (0.6 * rps) })

/** The users with accepted actions, whose streams have priority, and the used nonces; both from the action log. */
export interface Noted {
  readonly familiar: Set<string>
  readonly nonces: ActionLog.UsedNonces
}

/** Makes what persists when the settings change. */
const makeState = Effect.fnUntraced(function*(
  inForce: SettingsInForce,
  { familiar, nonces }: Noted,
  rateLimits: RateLimits
) {
  const services = Context.pick(...persistent)(
    yield* Effect.context<Context.Service.Identifier<(typeof persistent)[number]>>()
  )
  const first = inForce.current
  const { queries } = yield* CurrentServices
  const mirrorAge = Duration.toMillis(first.mirrorAge)
  const mirror = mirrorAge > 0 ? yield* AccountMirror.make(mirrorAge) : undefined
  const orders = AccountEvents.make()
  const shared = yield* Streams.makeShared(queries, {
    addresses: () => Streams.socketAddresses(inForce.current.tradingApiUrl),
    familiar,
    replicas: Context.get(services, ReplicaUse.ReplicaUse),
    limits: toLimits(first),
    events: toEventLog(first),
    mirror,
    orders
  })
  const guardStore = Option.getOrUndefined(yield* Effect.serviceOption(GuardStore))
  return {
    services,
    guardStore,
    usedNonces: nonces,
    guard: yield* Guard.make({
      policies: first.policies ?? Policy.none,
      info: queries,
      log: Context.get(services, ActionLog.ActionLog),
      store: guardStore,
      audit: yield* AuditLogWriter.current
    }),
    watched: { mirror, orders },
    shared,
    streams: () => inForce.current.tradingApiUrl.length === 0 ? undefined : shared,
    feeds: yield* openFeeds((chain) => ({
      addresses: () => inForce.current[feedSettings[chain].sockets],
      pollAtLeast: () => pollAtLeast(inForce.current[feedSettings[chain].units])
    })),
    windows: new Map<string, RateWindow>(),
    rateLimits,
    archive: yield* Effect.serviceOption(CandleArchive),
    // settings with the same upstream URLs share one outlier detection, and therefore its ejected URLs
    detections: yield* LayerMap.make((urls: Pick<Settings, "tradingNodeUrl" | "layer2Url">) =>
      OutlierDetection.layer({
        oneChain: [
          { upstream: Upstream.make("trading-node", urls.tradingNodeUrl) },
          { upstream: Upstream.make("layer2", urls.layer2Url) }
        ]
      })
    )
  }
})

type ChainState = Effect.Success<ReturnType<typeof makeState>>

/** Returns the layer of the chains' services that follow from the settings. */
const chainServices = (state: ChainState, settings: Settings) =>
  Layer.mergeAll(
    Trading.layerNoDeps({
      ...Admission.toOptions(settings),
      ...state.watched,
      guard: state.guard,
      ...Struct.pick(settings, ["network", "infoFreshness", "staleWhenLimited"]),
      evm: EvmFeed.toBounds(settings, {
        logBlocks: settings.tradingNodeLogBlocks,
        sockets: settings.tradingNodeWsUrl
      }),
      addresses: {
        api: settings.tradingApiUrl,
        node: settings.tradingNodeUrl,
        nodeArchive: settings.tradingNodeArchive
      }
    }),
    TokenChainUpstream.layerNoDeps({
      addresses: settings.tokenChainUrl,
      streamRequestsPerSecond: settings.tokenChainStreamRps
    }),
    Layer2Upstream.layerNoDeps({
      addresses: settings.layer2Url,
      evm: EvmFeed.toBounds(settings, {
        logBlocks: settings.layer2LogBlocks,
        sockets: settings.layer2WsUrl
      })
    })
  )

/** Makes the layer of the rate limits from the settings and from the windows, which persist across changes of them. */
export type RateLimits = (
  settings: Settings,
  windows: RateLimiter.Windows["Service"]
) => Layer.Layer<RateLimiter.RateLimiter>

/** Returns the rate limits. If Redis is configured, all replicas share them. */
const makeRateLimits = Effect.map(Effect.serviceOption(Redis.Redis), (redis): RateLimits => (settings, windows) => {
  const limits = RateLimiter.toLimits(settings)
  return Option.match(redis, {
    onNone: () => RateLimiter.layerMemory(limits, windows),
    onSome: (shared) =>
      // the venue limits the request weight of an IP address on each network separately
      RateLimiterRedis.layer({ ...limits, prefix: `trigate:{rate-limit:${settings.network}}:`, windows }).pipe(
        Layer.provide(Layer.succeed(Redis.Redis, shared))
      )
  })
})

/** Loads the module of the candle archive, which a gateway that records no candles does not need. */
const archiveStore = Effect.promise(() => import("./stores/ArchiveStore.ts"))

/** Returns the layer of the candle recorder and the exported archive; empty if no series is to be recorded. */
const recorder = ({ archive, shared }: ChainState, settings: Settings) =>
  Option.match(archive, {
    onNone: () => Layer.empty,
    onSome: (found) =>
      Layer.merge(
        Layer.provide(
          Layer.unwrap(Effect.map(archiveStore, ({ layerRecorder }) => layerRecorder(settings, shared))),
          Layer.succeed(CandleArchive, found)
        ),
        Layer.succeed(ExportedArchive, found)
      )
  })

/** Returns the layer of everything that follows from the settings. */
const layerServices = (state: ChainState, settings: Settings) => {
  const { layer2Url, onceDeadline, readDeadline, traceUpstream, tradingNodeUrl } = settings
  return recorder(state, settings).pipe(
    Layer.provideMerge(chainServices(state, settings)),
    Layer.provide(Pipeline.layerNoDeps({ readDeadline, onceDeadline, traceUpstream })),
    Layer.provide(state.detections.get({ tradingNodeUrl, layer2Url })),
    Layer.provide(state.rateLimits(settings, state.windows)),
    Layer.provide(Layer.succeedContext(state.services)),
    Layer.provide(Option.match(state.archive, { onNone: () => Layer.empty, onSome: Layer.succeed(CandleArchive) }))
  )
}

/**
 * Makes the live chains over the transports and stores of the context. `ActionLog.layerNoting` updates `noted`.
 */
export const make = (inForce: SettingsInForce, noted: Noted, rateLimits: RateLimits) =>
  Effect.map(makeState(inForce, noted, rateLimits), (state) =>
    Chains.of({
      ...Struct.pick(state, ["feeds", "guard", "guardStore", "streams", "usedNonces", "windows"]),
      actionLog: Context.get(state.services, ActionLog.ActionLog),
      sandbox: undefined,
      layerServices: (settings) => layerServices(state, settings)
    }))

/**
 * Provides the live chains and the callers' quotas. If Redis is configured, replicas share rate limits and cached
 * responses through it.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  inForce: SettingsInForce
): Layer.Layer<
  Chains | NonceSource | Quotas.Quotas,
  SettingsError,
  AuditLogWriter.AuditLogWriter | CurrentServices
> => {
  const first = inForce.current
  const redis = Option.map(first.redisUrl, Stores.layerRedis)
  const noted = { familiar: new Set<string>(), nonces: new ActionLog.UsedNonces() }
  return Layer.effect(Chains, Effect.flatMap(makeRateLimits, (limits) => make(inForce, noted, limits))).pipe(
    Layer.provideMerge(layerStoreReadiness),
    Layer.provide(Stores.guardStore(first, redis) ?? Layer.empty),
    Layer.provide(
      Layer.provide(
        ActionLog.layerNoting(noted),
        AuditLogWriter.audited(Stores.layer(first, redis, () => inForce.onceDeadline))
      )
    ),
    Layer.provide(
      first.archive.length === 0
        ? Layer.empty
        : Layer.unwrap(Effect.map(archiveStore, (store) => store.layer(first)))
    ),
    Layer.provide([
      MetadataFetchUndici.layer(),
      SharedTransactions.layer(),
      HttpTransportUndici.layer({ connections: 512 }),
      layerSockets,
      Stores.layerReplicas(first, redis)
    ]),
    Layer.provide(Option.getOrElse(redis, () => Layer.empty)),
    Layer.merge(Layer.merge(Stores.quotas(first, redis), Stores.nonces(first, redis)))
  )
}
