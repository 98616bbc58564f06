/** The chains over the network, with the stores that the settings select. */
import * as NodeWS from "@effect/platform-node/NodeWS"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import { ExportedArchive } from "@trigate/archive/CandleFiles"
import type * as Quotas from "@trigate/callers/Quotas"
import * as Layer2Upstream from "@trigate/layer2/Layer2Upstream"
import * as MetadataFetchUndici from "@trigate/tokens/metadata/MetadataFetchUndici"
import { MetadataFetch } from "@trigate/tokens/TokenChain"
import * as TokenChainUpstream from "@trigate/tokens/TokenChainUpstream"
import { SharedTransactions } from "@trigate/tokens/transactions/Transactions"
import * as AccountEvents from "@trigate/trading/accounts/AccountEvents"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as Admission from "@trigate/trading/admission/Admission"
import type { Info } from "@trigate/trading/Info"
import * as Streams from "@trigate/trading/streams/Streams"
import type { SharedStreams } from "@trigate/trading/streams/Streams"
import * as Trading from "@trigate/trading/Trading"
import * as AccountMirror from "@trigate/trading/unstable/accounts/AccountMirror"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as FilterStore from "@trigate/upstream/evm/Filters"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as RateLimiterRedis from "@trigate/upstream/limits/RateLimiterRedis"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as ReplicaUse from "@trigate/upstream/streams/ReplicaUse"
import * as SocketTransport from "@trigate/upstream/streams/SocketTransport"
import { HttpTransport } from "@trigate/upstream/transport/HttpTransport"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import * as EvmFeed from "@trigate/upstream/unstable/evm/EvmFeed"
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
import * as GatewayStatus from "./Chains.ts"
import { Chains, feedServing } from "./Chains.ts"
import * as StreamOptions from "./settings/Settings.ts"
import type { Settings } from "./settings/Settings.ts"
import type { SettingsError } from "./settings/SettingsSources.ts"
import { audited } from "./stores/AuditLogWriter.ts"
import type { AuditLogWriter } from "./stores/AuditLogWriter.ts"
import * as Stores from "./stores/Stores.ts"

/** Maximum number of bytes of a WebSocket frame from the venue; the longest known frame has 116 KB. */
const maxPayload = 16 * 1024 * 1024

const construct = Layer.succeed(
  Socket.WebSocketConstructor,
  (url) => new NodeWS.WebSocket(url, { maxPayload, perMessageDeflate: false, handshakeTimeout: 10_000 })
)

/**
 * WebSockets without compression, which the venue does not support either.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSockets: Layer.Layer<SocketTransport.SocketTransport> = Layer.provide(
  SocketTransport.layer,
  construct
)

const outliers = (addresses: Pick<Settings, "tradingNodeUrl" | "layer2Url">) =>
  OutlierDetection.layer({
    oneChain: [
      { upstream: Upstream.make("trading-node", addresses.tradingNodeUrl) },
      { upstream: Upstream.make("layer2", addresses.layer2Url) }
    ]
  })

/**
 * Returns the layer of the configured candle archive. Loads its module only if at least one series is to be recorded.
 */
const archiveLayer = (settings: Settings): Layer.Layer<never> =>
  settings.archive.length === 0
    ? Layer.empty
    : Layer.unwrap(Effect.map(Effect.promise(() => import("./stores/ArchiveStore.ts")), ({ layer }) => layer(settings)))

/** Returns the layer of the candle recorder; an empty layer if no series is to be recorded. */
const recorderLayer = (
  settings: Settings,
  streams: SharedStreams | undefined
): Layer.Layer<never, never, CandleArchive | Info | RateLimiter.RateLimiter> =>
  settings.archive.length === 0
    ? Layer.empty
    : Layer.unwrap(Effect.map(
      Effect.promise(() => import("./stores/ArchiveStore.ts")),
      ({ layerRecorder }) => layerRecorder(settings, streams)
    ))

const services = (settings: Settings, watched: Pick<Trading.ChainOptions, "mirror" | "orders">) =>
  Layer.mergeAll(
    Trading.layerNoDeps({
      ...Admission.toOptions(settings),
      ...watched,
      network: settings.network,
      infoFreshness: settings.infoFreshness,
      staleWhenLimited: settings.staleWhenLimited,
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

const rateLimiter = (
  settings: Settings,
  redis: Option.Option<Redis.Redis["Service"]>,
  windows: RateLimiter.Windows["Service"]
) => {
  const limits = RateLimiter.toLimits(settings)
  return Option.match(redis, {
    onNone: () => RateLimiter.layerMemory(limits, windows),
    onSome: (shared) =>
      // the venue limits the request weight of an IP address on each network separately
      RateLimiterRedis.layer({ ...limits, prefix: `trigate:{rate-limit:${settings.network}}:`, windows }).pipe(
        Layer.provide(Layer.succeed(Redis.Redis, shared))
      )
  })
}

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

/**
 * Provides the live chains and the callers' quotas. If Redis is configured, replicas share rate limits and cached
 * responses through it.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  first: Settings
): Layer.Layer<Chains | Quotas.Quotas, SettingsError, AuditLogWriter> =>
  Layer.unwrap(Effect.sync(() => {
    let longest = first.onceDeadline
    const familiar = new Set<string>()
    const make = Effect.gen(function*() {
      const kept = Context.pick(
        ActionLog.ActionLog,
        FilterStore.FilterStore,
        HttpTransport,
        AccountEvents.EventStore,
        MetadataFetch,
        ReplicaUse.ReplicaUse,
        ResponseCache.ResponseCache,
        SharedTransactions,
        SocketTransport.SocketTransport
      )(
        yield* Effect.context<
          | ActionLog.ActionLog
          | FilterStore.FilterStore
          | AccountEvents.EventStore
          | HttpTransport
          | MetadataFetch
          | ReplicaUse.ReplicaUse
          | ResponseCache.ResponseCache
          | SharedTransactions
          | SocketTransport.SocketTransport
        >()
      )
      const windows = new Map<string, RateWindow>()
      const redis = yield* Effect.serviceOption(Redis.Redis)
      const archive = yield* Effect.serviceOption(CandleArchive)
      const mirrorAge = Duration.toMillis(first.mirrorAge)
      const mirror = mirrorAge > 0 ? yield* AccountMirror.make(mirrorAge) : undefined
      const orders = AccountEvents.make()
      let streams: SharedStreams | undefined
      // settings with the same upstream URLs share one outlier detection, and therefore its ejected URLs
      const detections = yield* LayerMap.make(outliers)
      return Chains.of({
        actionLog: Context.get(kept, ActionLog.ActionLog),
        windows,
        sandbox: undefined,
        openStreams: Effect.fnUntraced(function*(queries, settings) {
          const shared = yield* Effect.provide(
            Streams.makeShared(queries, {
              addresses: () => StreamOptions.toAddresses(settings()),
              familiar,
              replicas: Context.get(kept, ReplicaUse.ReplicaUse),
              limits: StreamOptions.toLimits(settings()),
              events: StreamOptions.toEventLog(settings()),
              mirror,
              orders
            }),
            kept
          )
          streams = shared
          return () => settings().tradingApiUrl.length === 0 ? undefined : shared
        }),
        openFeed: (chain, ask, settings) =>
          Effect.provide(
            EvmFeed.make({
              serving: feedServing[chain],
              ask,
              addresses: () => settings()[feedSettings[chain].sockets],
              pollAtLeast: () => pollAtLeast(settings()[feedSettings[chain].units])
            }),
            kept
          ),
        layerOf: (settings) => {
          const { layer2Url, onceDeadline, readDeadline, traceUpstream, tradingNodeUrl } = settings
          // the longest deadline never decreases, because an action that was sent with older settings can be in flight
          // until the deadline of those settings
          longest = Duration.max(longest, onceDeadline)
          const recorder = Option.match(archive, {
            onNone: () => Layer.empty,
            onSome: (found) => Layer.provide(recorderLayer(settings, streams), Layer.succeed(CandleArchive, found))
          })
          return recorder.pipe(
            Layer.merge(Option.match(archive, { onNone: () => Layer.empty, onSome: Layer.succeed(ExportedArchive) })),
            Layer.provideMerge(services(settings, { mirror, orders })),
            Layer.provide(Pipeline.layerNoDeps({ readDeadline, onceDeadline, traceUpstream })),
            Layer.provide(detections.get({ tradingNodeUrl, layer2Url })),
            Layer.provide(rateLimiter(settings, redis, windows)),
            Layer.provide(Layer.succeedContext(kept)),
            Layer.provide(Option.match(archive, { onNone: () => Layer.empty, onSome: Layer.succeed(CandleArchive) }))
          )
        }
      })
    })
    const redis = Option.map(first.redisUrl, Stores.layerRedis)
    const kept = Layer.effect(Chains, make).pipe(
      Layer.provideMerge(GatewayStatus.layerStoreReadiness),
      Layer.provide(
        Layer.provide(ActionLog.layerNoting(familiar), audited(Stores.layer(first, redis, () => longest)))
      ),
      Layer.provide(archiveLayer(first)),
      Layer.provide([MetadataFetchUndici.layer(), SharedTransactions.layer()]),
      Layer.provide([
        HttpTransportUndici.layer({ connections: 512 }),
        layerSockets,
        Stores.layerReplicas(first, redis)
      ])
    )
    return Layer.merge(
      Option.match(redis, { onNone: () => kept, onSome: (shared) => Layer.provide(kept, shared) }),
      Stores.quotas(first, redis)
    )
  }))
