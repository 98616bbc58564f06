/**
 * Metrics of the process and its subsystems, read at each scrape. They do not slow down requests.
 *
 * `makeExposition` produces the content of `/metrics`: every metric of the table, including metrics without series.
 */
import { GatewayApi } from "@trigate/api/GatewayApi"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as SingleFlight from "@trigate/upstream/cache/SingleFlight"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- a gauge is read synchronously
import { readdirSync } from "node:fs"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { metrics, rows } from "./Metrics.ts"

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

const counter = (metric: Metric.Counter<number>, read: () => number) =>
  reading(metric, () => ({ count: read(), incremental: true }))

/** Makes a gauge whose value is read at each scrape. */
export const gauge = (metric: Metric.Gauge<number>, read: (context: Context.Context<never>) => number) =>
  reading(metric, (context) => ({ value: read(context) }))

/** Resolution of the event-loop delay histogram, in milliseconds. */
const resolution = 10

/** Milliseconds for which concurrent readers share one reading of the event-loop delay. */
const newestFor = 1000

interface Delay {
  readonly mean: number
  readonly p99: number
  readonly max: number
}

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
    let readAt: number | undefined
    let newest: Delay = { mean: 0, p99: 0, max: 0 }
    // the histogram records whole timer intervals; the part of an interval above the resolution is the delay
    const late = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - resolution / 1000)
    return (context: Context.Context<never>): Delay => {
      const now = Context.get(context, Clock.Clock).currentTimeMillisUnsafe()
      if (histogram.count > 0 && (readAt === undefined || now - readAt >= newestFor)) {
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
    gauge(metrics.buildInfo.series({ version, node: process.version }), () => 1),
    counter(metrics.processCpuUser.series({}), () => process.cpuUsage().user * microseconds),
    counter(metrics.processCpuSystem.series({}), () => process.cpuUsage().system * microseconds),
    counter(metrics.processCpu.series({}), () => {
      const { system, user } = process.cpuUsage()
      return (user + system) * microseconds
    }),
    gauge(metrics.processStart.series({}), () => startedAt),
    gauge(metrics.processResidentMemory.series({}), () => process.memoryUsage.rss()),
    ...(process.platform === "linux"
      // one entry of the directory is the descriptor that reads the directory
      ? [gauge(metrics.processOpenFds.series({}), () => readdirSync("/proc/self/fd").length - 1)]
      : []),
    gauge(metrics.heapTotal.series({}), () => process.memoryUsage().heapTotal),
    gauge(metrics.heapUsed.series({}), () => process.memoryUsage().heapUsed),
    gauge(metrics.externalMemory.series({}), () => process.memoryUsage().external),
    gauge(metrics.activeResources.series({}), () => process.getActiveResourcesInfo().length),
    gauge(metrics.eventLoopLag.series({}), (context) => delay(context).mean),
    gauge(metrics.eventLoopLagP99.series({}), (context) => delay(context).p99),
    gauge(metrics.eventLoopLagMax.series({}), (context) => delay(context).max)
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
  const flights = SingleFlight.make<Uint8Array, never>()
  const ask = Effect.andThen(Effect.yieldNow, Effect.map(rendered, Utf8.encode))
  return flights.run({ key: "metrics", ask })
})
