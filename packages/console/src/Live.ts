/** The live state of the gateway: readiness and metrics, read every two seconds while the page is visible. */
import { computed, signal, useSignal } from "@preact/signals"
import type { Readiness } from "@trigate/api/unstable/HealthApi"
import * as Admin from "@trigate/client/Admin"
import type { Connection } from "@trigate/client/Connection"
import * as Health from "@trigate/client/Health"
import * as Effect from "effect/Effect"
import { useEffect } from "preact/hooks"
import * as Gateway from "./Gateway.ts"

/** A series of a metric at one time. */
export interface Series {
  readonly labels: { readonly [name: string]: string }
  readonly value: number
}

/** The series of one `GET /metrics` response by metric name, and the time of the response. */
export interface Snapshot {
  readonly time: number
  readonly series: ReadonlyMap<string, ReadonlyArray<Series>>
}

const line = /^(?<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?<labels>.*)\})? (?<value>\S+)/u
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/gu

const unescaped = (text: string): string => text.replace(/\\(.)/gu, (_, next: string) => next === "n" ? "\n" : next)

/** Parses Prometheus text. Ignores lines that are not series. */
export const readMetrics = (text: string, time: number): Snapshot => {
  const series = new Map<string, Array<Series>>()
  for (const each of text.split("\n")) {
    const { labels = "", name, value } = line.exec(each)?.groups ?? {}
    if (name === undefined) continue
    const found = series.get(name) ?? []
    found.push({
      labels: Object.fromEntries(
        [...labels.matchAll(label)].map(([, key = "", quoted = ""]) => [key, unescaped(quoted)])
      ),
      value: Number(value)
    })
    series.set(name, found)
  }
  return { time, series }
}

/** Makes a snapshot from series of any metrics. */
export const group = (rows: ReadonlyArray<Series & { readonly name: string }>, time: number): Snapshot => ({
  time,
  series: Map.groupBy(rows, ({ name }) => name)
})

type Labels = { readonly [name: string]: string }

const matches = ({ labels }: Series, wanted: Labels): boolean =>
  Object.entries(wanted).every(([name, value]) => labels[name] === value)

const find = (snapshot: Snapshot | undefined, name: string, wanted: Labels): ReadonlyArray<Series> =>
  (snapshot?.series.get(name) ?? []).filter((each) => matches(each, wanted))

const total = (snapshot: Snapshot | undefined, name: string, wanted: Labels): number =>
  find(snapshot, name, wanted).reduce((sum, { value }) => sum + value, 0)

/** Milliseconds between two queries of readiness and metrics. */
export const period = 2000

/** Maximum number of stored metric snapshots: those of five minutes. */
const kept = 150

/** The snapshots of the gateway's metrics, oldest first. */
export const snapshots = signal<ReadonlyArray<Snapshot>>([])

/** The gateway's readiness, with the mode of each chain. */
export const readiness = signal<Readiness | undefined>(undefined)

/** Whether the gateway is a sandbox; `undefined` until the gateway's readiness is known. */
export const isSandbox = computed(() => readiness.value?.sandbox)

/** The error of the latest query of readiness and metrics; `undefined` if the query succeeded. */
export const trouble = signal<string | undefined>(undefined)

/** The time of the latest successful query of readiness and metrics, in milliseconds since 1970. */
export const readAt = signal<number | undefined>(undefined)

/**
 * The latest snapshot of the metrics (`to`) and the newest that is at least a minute older (`from`). If no snapshot is
 * that old, `from` is the oldest one.
 */
export const lastMinute = computed(() => {
  const all = snapshots.value
  const to = all.at(-1)
  const from = all.findLast(({ time }) => to !== undefined && time <= to.time - 60_000) ?? all[0]
  return to === undefined || from === undefined || from === to ? undefined : { from, to }
})

/** Returns the metric's latest series with the given labels. */
export const of = (name: string, wanted: Labels = {}): ReadonlyArray<Series> =>
  find(snapshots.value.at(-1), name, wanted)

/** Returns the sum of the metric's latest series with the given labels. */
export const sum = (name: string, wanted: Labels = {}): number => total(snapshots.value.at(-1), name, wanted)

/** Returns the sum of the metric's series with the given labels in each snapshot, oldest first. */
export const sums = (name: string, wanted: Labels): ReadonlyArray<number> =>
  snapshots.value.map((snapshot) => total(snapshot, name, wanted))

/**
 * Returns the increase of a counter in the last minute; 0 until there are two snapshots. If the gateway restarted in the
 * last minute, returns the counter's latest value.
 */
export const growth = (name: string, wanted: Labels = {}): number => {
  const span = lastMinute.value
  if (span === undefined) return 0
  const now = total(span.to, name, wanted)
  const grown = now - total(span.from, name, wanted)
  return grown < 0 ? now : grown
}

/** Converts an increase in the last minute to a number per second. */
export const perSecond = (count: number): number => {
  const { from, to } = lastMinute.value ?? { from: { time: 0 }, to: { time: 0 } }
  return count / Math.max(1, (to.time - from.time) / 1000)
}

/**
 * Returns a quantile of a histogram's observations, in the histogram's unit; `undefined` if there are no observations.
 * `count` returns the number of observations in a bucket. Default: those of the last minute.
 *
 * The result is the upper bound of the bucket that contains the quantile.
 */
export const quantile = (
  name: string,
  share: number,
  wanted: (series: Series) => boolean,
  count: (series: Series) => number = ({ labels }) => growth(`${name}_bucket`, labels)
): number | undefined => {
  const counts = [...Map.groupBy(of(`${name}_bucket`).filter(wanted), ({ labels }) => labels["le"] ?? "")]
    .map(([le, buckets]) => ({
      bound: le === "+Inf" ? Infinity : Number(le),
      count: buckets.reduce((sum, bucket) => sum + count(bucket), 0)
    }))
    .toSorted((one, other) => one.bound - other.bound)
  const all = counts.at(-1)?.count ?? 0
  return all === 0 ? undefined : counts.find(({ count }) => count >= all * share)?.bound
}

const reading = Effect.all({ ready: Health.ready(), metrics: Health.metrics() })

/** The gateway's own snapshots of the last minute, before this page was opened. Empty unless the caller is an admin. */
const readEarlier = async (): Promise<ReadonlyArray<Snapshot>> => {
  const outcome = await Gateway.run(Admin.minute())
  const now = performance.now()
  return "failure" in outcome ? [] : outcome.value.map(({ age, series }) => group(series, now - age * 1000))
}

const read = async (): Promise<void> => {
  const outcome = await Gateway.run(reading)
  if ("failure" in outcome) {
    trouble.value = outcome.failure
    return
  }
  const { metrics, ready } = outcome.value
  const now = readMetrics(metrics, performance.now())
  const last = snapshots.value.at(-1)
  // the page was just opened, or was hidden
  const isGap = last === undefined || last.time < now.time - 60_000
  const earlier = isGap ? await readEarlier() : snapshots.value
  trouble.value = undefined
  readAt.value = Gateway.now()
  readiness.value = ready
  snapshots.value = [...earlier, now].slice(-kept)
}

/**
 * Runs a function repeatedly while the page is visible, with a pause of `every` milliseconds after each run. Returns a
 * function that stops the repetition.
 */
export const whileVisible = (act: () => Promise<void>, every = period): () => void => {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isOver = false
  const round = async (): Promise<void> => {
    if (!document.hidden) await act()
    if (!isOver) timer = setTimeout(() => void round(), every)
  }
  void round()
  return () => {
    isOver = true
    clearTimeout(timer)
  }
}

/** Starts the queries of readiness and metrics. */
export const start = (): void => void whileVisible(read)

/**
 * Returns the latest response to a call, and a function that repeats the call immediately. The response is `undefined`
 * until the first one arrives.
 */
export const usePolled = <A, E>(
  call: () => Effect.Effect<A, E, Connection>
): readonly [last: Gateway.CallResult<A> | undefined, refresh: () => Promise<void>] => {
  const last = useSignal<Gateway.CallResult<A> | undefined>(undefined)
  const refresh = async (): Promise<void> => {
    last.value = await Gateway.run(call())
  }
  useEffect(() => whileVisible(refresh), [])
  return [last.value, refresh]
}
