/**
 * The metrics of a gateway: name, kind, labels and meaning of each, those of the process and of streams, and their
 * samples of the last hour.
 *
 * Each package declares its own metrics; this table collects them and adds those of the server. docs/metrics.md, the
 * dashboard and the alert rules in deploy/ are derived from this table or checked against it.
 *
 * `makeExposition` produces the content of `/metrics`: every metric of the table, including metrics without series.
 *
 * A sample has the totals of counters since the start of the process, so that a reader can compute rates between any
 * two samples.
 */
import { GatewayApi } from "@trigate/api/GatewayApi"
import { type HistorySample, maxSamples, type MinuteSample, sampleSeconds } from "@trigate/api/unstable/AdminApi"
import { metrics as archive } from "@trigate/archive/unstable/CandleRecorder"
import { metrics as callers } from "@trigate/callers/CallerKeys"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { counter, type Declared, gauge, quotaExceeded, seconds } from "@trigate/domain/unstable/DeclaredMetric"
import type { FeedStatus } from "@trigate/evm/unstable/EvmFeed"
import { metrics as actionLog } from "@trigate/trading/actionLog/ActionLog"
import { metrics as guard } from "@trigate/trading/guard/Guard"
import type { SharedStreams } from "@trigate/trading/streams/Streams"
import { metrics as accounts } from "@trigate/trading/unstable/accounts/AccountChecks"
import * as SingleFlight from "@trigate/upstream/cache/ResponseCache"
import { metrics as streams } from "@trigate/upstream/unstable/streams/StreamSettings"
import { metrics as upstream } from "@trigate/upstream/unstable/Upstream"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import * as Record from "effect/Record"
import * as Schedule from "effect/Schedule"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- a gauge is read synchronously
import { readdirSync } from "node:fs"
import { monitorEventLoopDelay } from "node:perf_hooks"

/** Every metric, in the order of docs/metrics.md. */
export const metrics = {
  requests: counter("trigate_requests_total", "Requests by route, HTTP status and outcome", [
    "route",
    "status",
    "outcome"
  ]),
  requestSeconds: seconds(
    "trigate_request_seconds",
    "Time from a request's head until its response is ready to be written",
    ["route"],
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
  ),
  operations: counter(
    "trigate_operations_total",
    "Requested operations by name and outcome; each call of a batch counts",
    ["operation", "outcome"]
  ),
  bodyBytes: gauge(
    "trigate_request_body_bytes",
    "Bytes reserved for the bodies of requests in flight"
  ),
  unreadBytes: gauge("trigate_unread_answer_bytes", "Bytes of large responses that their callers have not read yet"),
  ...upstream,
  quotaExceeded,
  ...callers,
  callerRequests: counter(
    "trigate_caller_requests_total",
    "Requests by caller group, and by whether a limit refused the request (HTTP 429)",
    ["group", "limited"]
  ),
  settingsRefused: gauge(
    "trigate_settings_refused",
    "1 if the latest SIGHUP found invalid settings, so that the previous settings stay in use; otherwise 0"
  ),
  ...actionLog,
  ...guard,
  auditLogLost: counter(
    "trigate_audit_log_lost_total",
    "Lines of the audit log that were lost because the log could not be written"
  ),
  ...archive,
  streamSockets: gauge("trigate_stream_sockets", "Open WebSockets of callers"),
  streamSocketsOpened: counter("trigate_stream_sockets_opened_total", "WebSockets that callers opened"),
  streamClosed: counter("trigate_stream_closed_total", "WebSockets of callers that ended, by reason", ["reason"]),
  streamUnread: gauge("trigate_stream_unread_bytes", "Unread bytes of streams"),
  streamRetained: gauge("trigate_stream_retained_bytes", "Bytes of stored frames, by subscription", ["channel"]),
  callerRetained: gauge(
    "trigate_caller_retained_bytes",
    "Bytes of unread events and log filters, by caller group",
    ["group"]
  ),
  streamConflated: counter(
    "trigate_stream_conflated_total",
    "State frames, such as order books, that newer frames replaced before they could be written"
  ),
  ...streams,
  ...accounts,
  buildInfo: gauge("trigate_build_info", "Always 1; the labels are the running versions of Trigate and of Node", [
    "version",
    "node"
  ]),
  // prom-client's names, so that dashboards for Node work unchanged
  processCpuUser: counter("process_cpu_user_seconds_total", "Processor time spent in the program, in seconds"),
  processCpuSystem: counter("process_cpu_system_seconds_total", "Processor time spent in the kernel, in seconds"),
  processCpu: counter("process_cpu_seconds_total", "Processor time spent in the program and in the kernel, in seconds"),
  processStart: gauge("process_start_time_seconds", "When the process started, in seconds since 1970"),
  processResidentMemory: gauge("process_resident_memory_bytes", "Resident memory of the process, in bytes"),
  processOpenFds: {
    ...gauge("process_open_fds", "Open files and sockets"),
    onLinux: true
  },
  heapTotal: gauge("nodejs_heap_size_total_bytes", "Size of the heap, in bytes"),
  heapUsed: gauge("nodejs_heap_size_used_bytes", "Part of the heap that is in use, in bytes"),
  externalMemory: gauge(
    "nodejs_external_memory_bytes",
    "Memory outside of the heap, used by objects in the heap, in bytes"
  ),
  activeResources: gauge("nodejs_active_resources_total", "Active sockets, timers and requests of the event loop"),
  eventLoopLag: gauge("nodejs_eventloop_lag_seconds", "Mean event-loop lag, in seconds"),
  eventLoopLagP99: gauge("nodejs_eventloop_lag_p99_seconds", "99th percentile of the event-loop lag, in seconds"),
  eventLoopLagMax: gauge("nodejs_eventloop_lag_max_seconds", "Maximum event-loop lag, in seconds")
} as const

/** Every metric as a row, for documents and checks. */
export const rows: ReadonlyArray<Pick<Declared, "name" | "kind" | "labels" | "meaning" | "onLinux">> = Object.values(
  metrics
)

const ignore = (): void => {}

/** Registers a metric series whose value is read on demand. */
const reading = <State>(
  metric: Metric.Metric<number, State>,
  get: (context: Context.Context<never>) => State
): Effect.Effect<Metric.Registration> =>
  Effect.map(
    Effect.context(),
    (context) => Metric.registerUnsafe(metric, context, { get, update: ignore, modify: ignore })
  )

const sampledCounter = (metric: Metric.Counter<number>, read: () => number) =>
  reading(metric, () => ({ count: read(), incremental: true }))

/** Makes a gauge whose value is read at each scrape. */
export const sampledGauge = (metric: Metric.Gauge<number>, read: (context: Context.Context<never>) => number) =>
  reading(metric, (context) => ({ value: read(context) }))

/** Resolution of the event-loop delay histogram, in milliseconds. */
const resolution = 10

/** Milliseconds for which concurrent readers share one reading of the event-loop delay. */
const newestFor = 1000

/** The event-loop delay since the previous reading, in seconds. */
const eventLoopDelay = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      const histogram = monitorEventLoopDelay({ resolution })
      histogram.enable()
      return histogram
    }),
    (histogram) => Effect.sync(() => histogram.disable())
  ),
  (histogram) => {
    let readAt = Utf8.longAgo
    let newest = { mean: 0, p99: 0, max: 0 }
    // the histogram records whole timer intervals; the part of an interval above the resolution is the delay
    const late = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - resolution / 1000)
    return (context: Context.Context<never>) => {
      const now = Utf8.monotonicTime(Context.get(context, Clock.Clock))
      if (histogram.count > 0 && Utf8.millisBetween(readAt, now) >= newestFor) {
        readAt = now
        newest = { mean: late(histogram.mean), p99: late(histogram.percentile(99)), max: late(histogram.max) }
        histogram.reset()
      }
      return newest
    }
  }
)

const microseconds = 1e-6

/** Registers metric series while the scope is open. */
export const registered = (series: ReadonlyArray<Effect.Effect<Metric.Registration>>) =>
  Effect.acquireRelease(Effect.all(series), (registrations) =>
    Effect.sync(() => {
      for (const registration of registrations) registration.remove()
    }))

const register = Effect.gen(function*() {
  const delay = yield* eventLoopDelay
  const version = Context.getOrUndefined(GatewayApi.annotations, OpenApi.Version) ?? "unknown"
  const startedAt = (yield* Clock.currentTimeMillis) / 1000 - process.uptime()
  return yield* registered([
    sampledGauge(metrics.buildInfo.series({ version, node: process.version }), () => 1),
    sampledCounter(metrics.processCpuUser.series({}), () => process.cpuUsage().user * microseconds),
    sampledCounter(metrics.processCpuSystem.series({}), () => process.cpuUsage().system * microseconds),
    sampledCounter(metrics.processCpu.series({}), () => {
      const { system, user } = process.cpuUsage()
      return (user + system) * microseconds
    }),
    sampledGauge(metrics.processStart.series({}), () => startedAt),
    sampledGauge(metrics.processResidentMemory.series({}), () => process.memoryUsage.rss()),
    ...(process.platform === "linux"
      // one entry of the directory is the descriptor that reads the directory
      ? [sampledGauge(metrics.processOpenFds.series({}), () => readdirSync("/proc/self/fd").length - 1)]
      : []),
    sampledGauge(metrics.heapTotal.series({}), () => process.memoryUsage().heapTotal),
    sampledGauge(metrics.heapUsed.series({}), () => process.memoryUsage().heapUsed),
    sampledGauge(metrics.externalMemory.series({}), () => process.memoryUsage().external),
    sampledGauge(metrics.activeResources.series({}), () => process.getActiveResourcesInfo().length),
    sampledGauge(metrics.eventLoopLag.series({}), (context) => delay(context).mean),
    sampledGauge(metrics.eventLoopLagP99.series({}), (context) => delay(context).p99),
    sampledGauge(metrics.eventLoopLagMax.series({}), (context) => delay(context).max)
  ])
})

/**
 * Registers the metrics of this process while the layer's scope is open.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<never> = Layer.effectDiscard(register)

/** Returns the `# HELP` and `# TYPE` lines of a metric without series, so that scrapers know that the metric exists. */
const metricHead = ({ kind, meaning, name }: (typeof rows)[number]): string =>
  `# HELP ${name} ${meaning}\n# TYPE ${name} ${kind}\n`

const rendered = Effect.map(PrometheusMetrics.format(), (text) => {
  const seen = new Set([...text.matchAll(/^# TYPE (\S+) /gmu)].map(([, name]) => name))
  return text +
    rows.filter(({ name, onLinux }) => !seen.has(name) && (onLinux !== true || process.platform === "linux"))
      .map(metricHead).join("")
})

/**
 * Makes an effect that formats all metrics as Prometheus text, in UTF-8.
 *
 * Concurrent readers share one text, made in the next turn of the event loop.
 */
export const makeExposition = Effect.sync((): Effect.Effect<Uint8Array> => {
  const flights = SingleFlight.makeSingleFlight<Uint8Array, never>()
  const send = Effect.andThen(Effect.yieldNow, Effect.map(rendered, Utf8.encode))
  return flights.run({ key: "metrics", send })
})

/** The percentiles of latency in a sample. */
const percentiles = { p50: 0.5, p95: 0.95, p99: 0.99 } as const

/** Maps each field of a sample to its metric, and selects which series of the metric are included. */
const sampled: {
  readonly [Name in Exclude<keyof HistorySample, "time" | keyof typeof percentiles>]-?: {
    readonly metric: string
    readonly counts?: (labels: { readonly [name: string]: string }) => boolean
  }
} = {
  requests: { metric: metrics.requests.name, counts: ({ route = "" }) => isOfCallers(route) },
  failed: {
    metric: metrics.requests.name,
    counts: ({ outcome, route = "" }) => outcome !== "ok" && isOfCallers(route)
  },
  cached: {
    metric: metrics.cache.name,
    // a background refresh sends an upstream request
    counts: ({ outcome = "" }) => !outcome.startsWith("refresh")
  },
  attempts: { metric: metrics.upstreamCalls.name },
  weightLeft: {
    metric: metrics.rateLimitAvailable.name,
    counts: ({ share, upstream }) => upstream === "trading-api" && share === "common"
  },
  weightSaved: { metric: metrics.upstreamWeightSaved.name },
  sockets: { metric: metrics.streamSockets.name },
  deliveries: { metric: metrics.streamDeliveries.name }
}

/**
 * Returns whether a route is for callers. The routes of the console and of probes are not, nor are unmatched requests.
 */
const isOfCallers = (route: string): boolean => !/^(?:admin|health|sandbox)\.|^other$/u.test(route)

/**
 * The samples of one gateway, oldest first.
 *
 * @since 0.1.0
 * @category services
 */
export class MetricHistory extends Context.Service<MetricHistory, {
  readonly samples: Effect.Effect<ReadonlyArray<HistorySample>>
  /** All metrics of the last minute. */
  readonly minute: Effect.Effect<ReadonlyArray<MinuteSample>>
}>()("@trigate/server/process/Metrics/MetricHistory") {}

const readValue = (series: Metric.Metric.Snapshot): number =>
  series.type === "Counter" ? Number(series.state.count) : series.type === "Gauge" ? Number(series.state.value) : 0

const take = Effect.map(Effect.all([Metric.snapshot, Clock.Clock]), ([all, clock]) => ({
  time: clock.currentTimeMillisUnsafe(),
  takenAt: Utf8.monotonicTime(clock),
  all: all.filter(({ id }) => id.startsWith("trigate_"))
}))

/** All series of the gateway at one time. */
type Taken = Effect.Success<typeof take>

/** Returns the number of callers' requests by the upper bound of their latency in seconds. */
const countLatencies = ({ all }: Taken): ReadonlyMap<number, number> => {
  const counts = new Map<number, number>()
  for (const metric of all) {
    if (metric.id !== metrics.requestSeconds.name || metric.type !== "Histogram") continue
    const { route = "" }: { readonly [label: string]: string } = { ...metric.attributes }
    if (!isOfCallers(route)) continue
    const { buckets, count } = metric.state
    for (const [bound, below] of [...buckets.filter(([bound]) => bound !== Infinity), [Infinity, count] as const]) {
      counts.set(bound, (counts.get(bound) ?? 0) + below)
    }
  }
  return counts
}

/** Returns the percentiles of latency of the requests between two times. */
const toPercentiles = (from: Taken, to: Taken): { readonly [Name in keyof typeof percentiles]?: number } => {
  const before = countLatencies(from)
  const grown = [...countLatencies(to)].map(([bound, count]) => [bound, count - (before.get(bound) ?? 0)] as const)
    .toSorted(([one], [other]) => one - other)
  const total = grown.at(-1)?.[1] ?? 0
  if (total <= 0) return {}
  const most = grown.at(-2)?.[0] ?? 0
  return Record.map(
    percentiles,
    (share) => Math.min(most, grown.find(([, count]) => count >= total * share)?.[0] ?? most)
  )
}

const toSample = (earlier: Taken, taken: Taken): HistorySample => {
  const { all, time } = taken
  const sum = (name: keyof typeof sampled): number | undefined => {
    const { counts = () => true, metric } = sampled[name]
    const found = all.filter(({ attributes, id }) => id === metric && counts({ ...attributes }))
    return found.length === 0 ? undefined : found.reduce((total, series) => total + readValue(series), 0)
  }
  const weightLeft = sum("weightLeft")
  return {
    time,
    requests: sum("requests") ?? 0,
    failed: sum("failed") ?? 0,
    cached: sum("cached") ?? 0,
    attempts: sum("attempts") ?? 0,
    weightSaved: sum("weightSaved") ?? 0,
    ...toPercentiles(earlier, taken),
    sockets: sum("sockets") ?? 0,
    deliveries: sum("deliveries") ?? 0,
    ...(weightLeft === undefined ? {} : { weightLeft })
  }
}

type Row = MinuteSample["series"][number]

/** Returns the values of a metric's series as `GET /metrics` names them. */
const toRows = (metric: Metric.Metric.Snapshot): ReadonlyArray<Row> => {
  const row = (suffix: string, value: number, more: Row["labels"] = {}): Row => ({
    name: `${metric.id}${suffix}`,
    labels: { ...metric.attributes, ...more },
    value
  })
  if (metric.type !== "Histogram") return [row("", readValue(metric))]
  const { buckets, count, sum } = metric.state
  return [
    ...buckets.flatMap(([bound, total]) =>
      Number.isFinite(bound) ? [row("_bucket", total, { le: String(bound) })] : []
    ),
    row("_bucket", count, { le: "+Inf" }),
    row("_sum", sum),
    row("_count", count)
  ]
}

/** Number of samples that cover at least the last minute. */
const minuteSamples = Math.ceil(60 / sampleSeconds) + 1

/**
 * Takes samples while the layer's scope is open.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerHistory: Layer.Layer<MetricHistory> = Layer.effect(
  MetricHistory,
  Effect.gen(function*() {
    let samples: ReadonlyArray<HistorySample> = []
    let latest: ReadonlyArray<Taken> = []
    const sample = Effect.map(take, (taken) => {
      latest = [...latest, taken].slice(-minuteSamples)
      samples = [...samples, toSample(latest[0] ?? taken, taken)].slice(-maxSamples)
    })
    yield* Effect.forkScoped(Effect.repeat(sample, Schedule.spaced(`${sampleSeconds} seconds`)))
    return MetricHistory.of({
      samples: Effect.sync(() => samples),
      minute: Effect.map(Clock.Clock, (clock) =>
        latest.map(({ all, takenAt }) => ({
          age: Utf8.millisBetween(takenAt, Utf8.monotonicTime(clock)) / 1000,
          series: all.flatMap(toRows).filter(({ value }) => value !== 0)
        })))
    })
  })
)

type Series = (value: string) => Metric.Metric<number, unknown>

/** Makes a function that publishes the increase of each named count since the previous call. */
const growing = (series: Series, context: Context.Context<never>) => {
  const seen = new Map<string, number>()
  return (counts: ReadonlyMap<string, number>): void => {
    for (const [name, count] of counts) {
      const grown = count - (seen.get(name) ?? 0)
      if (grown === 0) continue
      seen.set(name, count)
      series(name).updateUnsafe(grown, context)
    }
  }
}

/** Makes the function that sets a gauge for each name, and to 0 for the names that are gone. */
const present = (series: Series, context: Context.Context<never>) => {
  const seen = new Set<string>()
  return (values: ReadonlyMap<string, number>): void => {
    for (const name of values.keys()) seen.add(name)
    for (const name of seen) series(name).updateUnsafe(values.get(name) ?? 0, context)
  }
}

/** The metrics of one gateway's streams, in the registry of a context. */
export const make = (context: Context.Context<never>) => {
  const opened = metrics.streamSocketsOpened.series({})
  const conflated = metrics.streamConflated.series({})
  const frames = growing((channel) => metrics.streamFrames.series({ channel }), context)
  const deliveries = growing((channel) => metrics.streamDeliveries.series({ channel }), context)
  const gaps = growing((channel) => metrics.streamGaps.series({ channel }), context)
  const refilled = growing((channel) => metrics.streamRefilled.series({ channel }), context)
  const collisions = growing((channel) => metrics.streamRowCollisions.series({ channel }), context)
  const reconnects = growing((cause) => metrics.streamReconnects.series({ cause }), context)
  const closed = growing((reason) => metrics.streamClosed.series({ reason }), context)
  const reorganisations = growing((chain) => metrics.evmReorganisations.series({ chain }), context)
  const polls = growing((chain) => metrics.evmPolls.series({ chain }), context)
  const logFailures = growing((chain) => metrics.evmLogFailures.series({ chain }), context)
  const callerRetained = present((group) => metrics.callerRetained.series({ group }), context)
  const streamRetained = present((channel) => metrics.streamRetained.series({ channel }), context)
  const followed = new Set<string>()
  const closings = new Map<string, number>()
  let unknownSeen = 0
  return {
    opened: () => opened.updateUnsafe(1, context),
    closed: (reason: string) => void closings.set(reason, (closings.get(reason) ?? 0) + 1),
    conflated: (count: number) => {
      if (count > 0) conflated.updateUnsafe(count, context)
    },
    /** Publishes the counts since the previous call. */
    publish: (
      streams: SharedStreams | undefined,
      open: number,
      unread: number,
      retained: ReadonlyMap<string, number>,
      feeds: ReadonlyArray<FeedStatus>
    ): void => {
      metrics.streamSockets.series({}).updateUnsafe(open, context)
      metrics.streamUnread.series({}).updateUnsafe(unread, context)
      callerRetained(retained)
      closed(closings)
      reorganisations(new Map(feeds.map((feed) => [feed.chain, feed.reorganisations])))
      polls(new Map(feeds.map((feed) => [feed.chain, feed.polls])))
      logFailures(new Map(feeds.map((feed) => [feed.chain, feed.logFailures])))
      for (const { age, chain, head, retained, source, subscriptions } of feeds) {
        // a chain has no series before its first subscription
        if (source === "idle" && !followed.has(chain)) continue
        followed.add(chain)
        metrics.evmSubscriptions.series({ chain }).updateUnsafe(subscriptions, context)
        metrics.evmRetained.series({ chain }).updateUnsafe(retained, context)
        if (head !== undefined) metrics.evmHead.series({ chain }).updateUnsafe(head, context)
        metrics.evmHeadAge.series({ chain }).updateUnsafe((age ?? 0) / 1000, context)
      }
      if (streams === undefined) return
      const status = streams.status()
      const { connections, others, subscriptions, users } = status
      metrics.streamConnections.series({}).updateUnsafe(connections, context)
      metrics.streamSubscriptions.series({}).updateUnsafe(subscriptions, context)
      metrics.streamUsers.series({}).updateUnsafe(users, context)
      const used = {
        connections: others.connections,
        subscriptions: others.subscriptions,
        users: others.users.length
      }
      for (const [limit, count] of Object.entries(used)) {
        metrics.streamOtherReplicas.series({ limit }).updateUnsafe(count, context)
      }
      frames(streams.counts.frames)
      deliveries(streams.counts.deliveries)
      gaps(streams.counts.gaps)
      refilled(streams.counts.refilled)
      collisions(streams.counts.collisions)
      reconnects(streams.counts.reconnects)
      const { unknown } = streams.counts
      if (unknown > unknownSeen) metrics.streamUnknownFrames.series({}).updateUnsafe(unknown - unknownSeen, context)
      unknownSeen = unknown
      const oldest = new Map<string, number>()
      const stored = new Map<string, number>()
      for (const topic of status.topics) {
        stored.set(topic.name, (stored.get(topic.name) ?? 0) + topic.bytes)
        if (topic.age !== undefined) oldest.set(topic.name, Math.max(oldest.get(topic.name) ?? 0, topic.age / 1000))
      }
      streamRetained(stored)
      for (const [channel, seconds] of oldest) {
        metrics.streamAge.series({ channel }).updateUnsafe(seconds, context)
      }
    }
  }
}
