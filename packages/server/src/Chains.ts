/**
 * The chains behind the gateway: live chains if any upstream URL is configured, otherwise the sandbox (simulated
 * chains), never both.
 *
 * Settings can change while a gateway serves. The action log, rate-limit use, cached responses, connections, outlier
 * ejections and the sandbox's state persist across a change. The services that use this state are rebuilt.
 */
import { CandleArchive } from "@trigate/archive/CandleArchive"
import { ExportedArchive } from "@trigate/archive/CandleExport"
import * as Quotas from "@trigate/callers/Quotas"
import { lowerCase } from "@trigate/domain/encoding/Hex"
import * as EvmOperations from "@trigate/domain/evm/EvmOperations"
import * as Layer2Operations from "@trigate/domain/evm/Layer2Operations"
import type { Layer2 } from "@trigate/layer2/Layer2"
import * as Layer2Upstream from "@trigate/layer2/Layer2Upstream"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as SandboxSettings from "@trigate/sandbox/SandboxSettings"
import * as SandboxState from "@trigate/sandbox/SandboxState"
import * as VenueStreams from "@trigate/sandbox/streams/VenueStreams"
import * as VenueArchive from "@trigate/sandbox/venue/VenueArchive"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import { MetadataFetch } from "@trigate/tokens/metadata/MetadataFetch"
import * as MetadataFetchUndici from "@trigate/tokens/metadata/MetadataFetchUndici"
import type { TokenChain } from "@trigate/tokens/TokenChain"
import * as TokenChainUpstream from "@trigate/tokens/TokenChainUpstream"
import * as AccountMirror from "@trigate/trading/accounts/AccountMirror"
import * as EventStore from "@trigate/trading/accounts/EventStore"
import * as EventStoreRedis from "@trigate/trading/accounts/EventStoreRedis"
import * as OrderEvents from "@trigate/trading/accounts/OrderEvents"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as AuditLog from "@trigate/trading/actionLog/AuditLog"
import * as Admission from "@trigate/trading/admission/Admission"
import type { Exchange } from "@trigate/trading/Exchange"
import type { Info } from "@trigate/trading/Info"
import * as Inspector from "@trigate/trading/Inspector"
import type { Queries } from "@trigate/trading/streams/CoinCatalog"
import * as FamiliarUsers from "@trigate/trading/streams/FamiliarUsers"
import * as Streams from "@trigate/trading/streams/Streams"
import type { SharedStreams } from "@trigate/trading/streams/Streams"
import * as Trading from "@trigate/trading/Trading"
import type { TradingEvm } from "@trigate/trading/TradingEvm"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as EvmFeed from "@trigate/upstream/evm/EvmFeed"
import * as FilterStore from "@trigate/upstream/evm/FilterStore"
import * as GatewayReads from "@trigate/upstream/evm/GatewayReads"
import type { AskNode } from "@trigate/upstream/evm/NodeReads"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as RateLimiterRedis from "@trigate/upstream/limits/RateLimiterRedis"
import type { RateWindow } from "@trigate/upstream/limits/RateWindow"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as ReplicaUse from "@trigate/upstream/streams/ReplicaUse"
import * as ReplicaUseRedis from "@trigate/upstream/streams/ReplicaUseRedis"
import { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import { HttpTransport } from "@trigate/upstream/transport/HttpTransport"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import * as Upstream from "@trigate/upstream/Upstream"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as LayerMap from "effect/LayerMap"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import * as GatewayStatus from "./GatewayStatus.ts"
import type { Settings } from "./settings/Settings.ts"
import type { SettingsError } from "./settings/SettingsSources.ts"
import * as ActionLogStore from "./stores/ActionLogStore.ts"
import { AuditLogWriter } from "./stores/AuditLogWriter.ts"
import * as QuotasRedis from "./stores/QuotasRedis.ts"
import * as SharedRedis from "./stores/SharedRedis.ts"
import * as SocketTransportWs from "./streams/SocketTransportWs.ts"

/** The services of the chains, and the service that inspects signed bodies. */
export type Services = Exchange | Info | Inspector.Inspector | TradingEvm | TokenChain | Layer2

/**
 * Builds the chain services from settings. The state of the services persists when the settings change. A change of the
 * network or of the stores has no effect.
 *
 * @since 0.1.0
 * @category services
 */
export class Chains extends Context.Service<Chains, {
  /** The action log, which persists when the settings change. */
  readonly actionLog: ActionLog.ActionLog["Service"]
  /** The use of each upstream's rate limit, by upstream; empty for the sandbox. */
  readonly windows: Map<string, RateWindow>
  readonly layerOf: (settings: Settings) => Layer.Layer<Services>
  /** The sandbox's state; `undefined` for live chains. */
  readonly sandbox: SandboxState.SandboxState["Service"] | undefined
  /** Opens the streams of the trading chain. Each new connection uses the URL in the current settings. */
  readonly openStreams: (
    queries: Queries,
    settings: () => Settings
  ) => Effect.Effect<() => SharedStreams | undefined, never, Scope.Scope>
  /**
   * Opens the feed of an EVM chain, which follows the chain's newest blocks for the callers' subscriptions
   * (`eth_subscribe`). The feed queries the node through `ask`, and uses the current settings.
   */
  readonly openFeed: (
    chain: FeedChain,
    ask: AskNode,
    settings: () => Settings
  ) => Effect.Effect<EvmFeed.EvmFeed, never, Scope.Scope>
}>()("@trigate/server/Chains") {}

/**
 * The layer of the Redis server, if one is configured. All services that use Redis share it, and therefore one
 * connection.
 */
type SharedBy = Option.Option<Layer.Layer<Redis.Redis>>

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

const outliers = (addresses: Pick<Settings, "tradingNodeUrl" | "layer2Url">) =>
  OutlierDetection.layer({
    oneChain: [
      { upstream: Upstream.make("trading-node", addresses.tradingNodeUrl) },
      { upstream: Upstream.make("layer2", addresses.layer2Url) }
    ]
  })

const cache = (redis: SharedBy) =>
  Option.match(redis, {
    onNone: () => ResponseCache.layer(),
    onSome: (shared) => Layer.provide(ResponseCache.layerRedis(), shared)
  })

/** Provides an action log that also writes to the context's audit log, if the context has one. */
const audited = (log: Layer.Layer<ActionLog.ActionLog>): Layer.Layer<ActionLog.ActionLog, never, AuditLogWriter> =>
  Layer.unwrap(Effect.map(AuditLogWriter, ({ write }) =>
    write === undefined
      ? log
      : Layer.provide(AuditLog.layerAudited(), [log, Layer.succeed(AuditLog.AuditLog, { write })])))

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
      evm: GatewayReads.toBounds(settings, {
        logBlocks: settings.tradingNodeLogBlocks,
        batch: settings.tradingNodeBatch,
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
      evm: GatewayReads.toBounds(settings, {
        logBlocks: settings.layer2LogBlocks,
        batch: settings.layer2Batch,
        sockets: settings.layer2WsUrl
      })
    })
  )

/**
 * Returns the layer of a service that all replicas share: through Redis if it is configured, otherwise through
 * Postgres. If neither is configured, each process has its own service.
 */
const acrossReplicas = <S>(
  settings: Settings,
  redis: SharedBy,
  layers: {
    readonly memory: () => Layer.Layer<S>
    readonly redis: () => Layer.Layer<S, never, Redis.Redis>
    /** Loads the Postgres implementation. Called only if Postgres is configured and Redis is not. */
    readonly postgres: () => Promise<Layer.Layer<S, never, SqlClient>>
  }
): Layer.Layer<S> => {
  const postgres = Option.filter(ActionLogStore.findDatabase(settings), ({ kind }) => kind === "Postgres")
  const inPostgres = () =>
    Option.match(postgres, {
      onNone: layers.memory,
      onSome: (place) =>
        Layer.provide(
          Layer.unwrap(Effect.promise(layers.postgres)),
          ActionLogStore.layerDatabase(place, "existing")
        )
    })
  return Option.match(redis, {
    onNone: inPostgres,
    onSome: (client) => Layer.provide(layers.redis(), client)
  })
}

/** Returns the service that counts callers' requests against their quotas. */
const quotas = (settings: Settings, redis: SharedBy): Layer.Layer<Quotas.Quotas> =>
  acrossReplicas(settings, redis, {
    memory: () => Quotas.layerMemory,
    redis: () => QuotasRedis.layer({ prefix: `trigate:{quota:${settings.network}}:` }),
    postgres: () => import("./stores/QuotasSql.ts").then(({ layer }) => layer({ prefix: `${settings.network}:` }))
  })

const streamLimits = (settings: Settings) => ({
  connections: settings.streamConnections,
  newConnections: settings.streamNewConnections,
  subscriptions: settings.streamSubscriptions,
  users: settings.streamUsers,
  usersOfCaller: settings.streamCallerUsers,
  messages: settings.streamMessages,
  grace: settings.streamGrace
})

const eventLog = ({ eventLogAge, eventLogRows, watchAccounts }: Settings) => ({
  accounts: watchAccounts.map(lowerCase),
  bounds: { rows: eventLogRows, age: Duration.toMillis(eventLogAge) }
})

/** Returns the store of account events. Clients that reconnect receive missed events from this store. */
const eventStore = (settings: Settings, redis: SharedBy): Layer.Layer<EventStore.EventStore> => {
  const { bounds } = eventLog(settings)
  return acrossReplicas(settings, redis, {
    memory: EventStore.layerMemory,
    redis: () => EventStoreRedis.layer({ prefix: `trigate:{events:${settings.network}}:`, bounds }),
    postgres: () =>
      import("@trigate/trading/accounts/EventStoreSql").then(({ layer }) =>
        layer({ network: settings.network, bounds })
      )
  })
}

/** Returns the service through which replicas exchange how much of the venue's stream limits they use. */
const replicaUse = (settings: Settings, redis: SharedBy): Layer.Layer<ReplicaUse.ReplicaUse> =>
  acrossReplicas(settings, redis, {
    memory: () => ReplicaUse.layerMemory,
    redis: () => ReplicaUseRedis.layer({ key: `trigate:{streams:${settings.network}}:use` }),
    postgres: () =>
      import("@trigate/upstream/streams/ReplicaUseSql").then(({ layer }) => layer({ network: settings.network }))
  })

/** Returns the WebSocket URLs of the official API: `wss://host/ws` for `https://host`. */
const streamAddresses = ({ tradingApiUrl }: Settings): ReadonlyArray<Redacted.Redacted> =>
  Upstream.make("trading-api", tradingApiUrl).addresses.map((address) =>
    Redacted.make(`${Redacted.value(address).replace(/^http/u, "ws")}/ws`, { label: "trading-api" })
  )

/** The chains that have subscriptions over JSON-RPC. */
export type FeedChain = "trading" | "layer2"

/** For each chain, the chain and protocol of the requests that its block feed sends to the node. */
export const feedServing = { trading: EvmOperations.serving, layer2: Layer2Operations.serving } as const

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

/** Returns the store of callers' EVM filters: in Redis if it is configured, otherwise in this process. */
const filterStore = (settings: Settings, redis: SharedBy) =>
  Option.match(redis, {
    onNone: () => FilterStore.layerMemory(),
    onSome: (shared) =>
      Layer.provide(FilterStore.layerRedis({ prefix: `trigate:{evm-filters:${settings.network}}:` }), shared)
  })

/** Makes the live chains. If Redis is configured, replicas share rate limits and cached responses through it. */
const live = (first: Settings) =>
  Layer.unwrap(Effect.sync(() => {
    let longest = first.onceDeadline
    const familiar = new Set<string>()
    const make = Effect.gen(function*() {
      const kept = Context.pick(
        ActionLog.ActionLog,
        FilterStore.FilterStore,
        HttpTransport,
        EventStore.EventStore,
        MetadataFetch,
        ReplicaUse.ReplicaUse,
        ResponseCache.ResponseCache,
        SocketTransport
      )(
        yield* Effect.context<
          | ActionLog.ActionLog
          | FilterStore.FilterStore
          | EventStore.EventStore
          | HttpTransport
          | MetadataFetch
          | ReplicaUse.ReplicaUse
          | ResponseCache.ResponseCache
          | SocketTransport
        >()
      )
      const windows = new Map<string, RateWindow>()
      const redis = yield* Effect.serviceOption(Redis.Redis)
      const archive = yield* Effect.serviceOption(CandleArchive)
      const mirrorAge = Duration.toMillis(first.mirrorAge)
      const mirror = mirrorAge > 0 ? yield* AccountMirror.make(mirrorAge) : undefined
      const orders = OrderEvents.make()
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
              addresses: () => streamAddresses(settings()),
              familiar,
              replicas: Context.get(kept, ReplicaUse.ReplicaUse),
              limits: streamLimits(settings()),
              events: eventLog(settings()),
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
    const redis = Option.map(first.redisUrl, SharedRedis.layer)
    const kept = Layer.effect(Chains, make).pipe(
      Layer.provideMerge(GatewayStatus.layerStoreReadiness),
      Layer.provide(
        Layer.provide(FamiliarUsers.layerNoting(familiar), audited(ActionLogStore.layer(first, redis, () => longest)))
      ),
      Layer.provide([cache(redis), filterStore(first, redis)]),
      Layer.provide(archiveLayer(first)),
      Layer.provide(MetadataFetchUndici.layer()),
      Layer.provide([
        HttpTransportUndici.layer({ connections: 512 }),
        SocketTransportWs.layer,
        eventStore(first, redis),
        replicaUse(first, redis)
      ])
    )
    return Layer.merge(
      Option.match(redis, { onNone: () => kept, onSome: (shared) => Layer.provide(kept, shared) }),
      quotas(first, redis)
    )
  }))

/** Makes the sandbox. The action log of the sandbox is in memory, separate from the log of live chains. */
const sandbox = () =>
  Layer.effect(
    Chains,
    Effect.map(Effect.context<ActionLog.ActionLog | SandboxState.SandboxState>(), (context) => {
      const kept = Context.pick(ActionLog.ActionLog, SandboxState.SandboxState)(context)
      return Chains.of({
        actionLog: Context.get(kept, ActionLog.ActionLog),
        windows: new Map(),
        sandbox: Context.get(kept, SandboxState.SandboxState),
        openStreams: Effect.fnUntraced(function*(queries, settings) {
          const shared = yield* Streams.makeShared(queries, {
            addresses: [Redacted.make("sandbox")],
            limits: streamLimits(settings()),
            events: eventLog(settings())
          }).pipe(
            Effect.provideService(SocketTransport, VenueStreams.make(Context.get(kept, SandboxState.SandboxState))),
            Effect.provideServiceEffect(EventStore.EventStore, EventStore.makeMemory)
          )
          return () => shared
        }),
        openFeed: (chain, ask) => EvmFeed.make({ serving: feedServing[chain], ask }),
        layerOf: (settings) =>
          Layer.mergeAll(
            Sandbox.layerServices(),
            Inspector.layer(Admission.toOptions(settings)),
            VenueArchive.layer
          ).pipe(
            Layer.provide(Admission.layer(Admission.toOptions(settings))),
            Layer.provide(VenueProfile.layer(settings.network)),
            Layer.provide(Layer.succeedContext(kept))
          )
      })
    })
  ).pipe(Layer.provideMerge(GatewayStatus.layerStoreReadiness))

/**
 * Makes the sandbox's state from the settings. Loads the module that reads recorded prices only if the sandbox replays
 * such prices.
 */
const sandboxState = (
  settings: Settings
): Layer.Layer<SandboxState.SandboxState, SettingsError, FileSystem> => {
  const options = SandboxSettings.toOptions(settings)
  return settings.sandboxPrices.length === 0 ? SandboxState.layer(options) : Layer.unwrap(
    Effect.promise(() => import("./stores/SandboxPrices.ts")).pipe(
      Effect.flatMap(({ read }) => read(settings)),
      Effect.map((prices) => SandboxState.layer({ ...options, prices }))
    )
  )
}

/**
 * Provides the chains, the callers' quotas, and the readiness of the stores. The settings at startup select the stores;
 * later settings do not change them.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  settings: Settings
): Layer.Layer<Chains | Quotas.Quotas, SettingsError, AuditLogWriter | FileSystem> =>
  GatewayStatus.isSandbox(settings)
    ? Layer.merge(
      Layer.provide(sandbox(), [audited(ActionLogMemory.layer()), sandboxState(settings)]),
      Quotas.layerMemory
    )
    : live(settings)
