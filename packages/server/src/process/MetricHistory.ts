/**
 * Samples of the gateway's main metrics: one every ten seconds for an hour, in memory, for the console's overview; and of
 * all metrics for a minute, so that the console can show the last minute as soon as it is opened.
 *
 * A sample has the totals of counters since the start of the process, so that a reader can compute rates between any
 * two samples.
 */
import type { HistorySample, MinuteSample } from "@trigate/api/AdminApi"
import { maxSamples, sampleSeconds } from "@trigate/api/AdminApi"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Schedule from "effect/Schedule"
import { metrics } from "./Metrics.ts"

/** Maps each field of a sample to its metric, and selects which series of the metric are included. */
const sampled: {
  readonly [Name in Exclude<keyof HistorySample, "time">]-?: {
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
}>()("@trigate/server/process/MetricHistory") {}

const readValue = (series: Metric.Metric.Snapshot): number =>
  series.type === "Counter" ? Number(series.state.count) : series.type === "Gauge" ? Number(series.state.value) : 0

/** All series of the gateway at one time. */
interface Taken {
  readonly time: number
  readonly all: ReadonlyArray<Metric.Metric.Snapshot>
}

const take = Effect.map(Effect.all([Metric.snapshot, Clock.currentTimeMillis]), ([all, time]): Taken => ({
  time,
  all: all.filter(({ id }) => id.startsWith("trigate_"))
}))

const toSample = ({ all, time }: Taken): HistorySample => {
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
export const layer: Layer.Layer<MetricHistory> = Layer.effect(
  MetricHistory,
  Effect.gen(function*() {
    let samples: ReadonlyArray<HistorySample> = []
    let latest: ReadonlyArray<Taken> = []
    const sample = Effect.map(take, (taken) => {
      samples = [...samples, toSample(taken)].slice(-maxSamples)
      latest = [...latest, taken].slice(-minuteSamples)
    })
    yield* Effect.forkScoped(Effect.repeat(sample, Schedule.spaced(`${sampleSeconds} seconds`)))
    return MetricHistory.of({
      samples: Effect.sync(() => samples),
      minute: Effect.map(Clock.currentTimeMillis, (now) =>
        latest.map(({ all, time }) => ({
          age: (now - time) / 1000,
          series: all.flatMap(toRows).filter(({ value }) => value !== 0)
        })))
    })
  })
)
