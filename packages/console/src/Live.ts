/** The live state of the gateway: readiness and metrics, read every two seconds while the page is visible. */
import { computed, signal } from "@preact/signals"
import type { Readiness } from "@trigate/api/HealthApi"
import * as Admin from "@trigate/client/Admin"
import * as Health from "@trigate/client/Health"
import * as Effect from "effect/Effect"
import * as Gateway from "./Gateway.ts"
import * as Metrics from "./Metrics.ts"

/** Milliseconds between two queries of readiness and metrics. */
export const period = 2000

/** Maximum number of stored metric snapshots: those of five minutes. */
const kept = 150

/** The snapshots of the gateway's metrics, oldest first. */
export const snapshots = signal<ReadonlyArray<Metrics.Snapshot>>([])

/** The gateway's readiness, with the mode of each chain. */
export const readiness = signal<Readiness | undefined>(undefined)

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

const reading = Effect.all({ ready: Health.ready(), metrics: Health.metrics() })

/** The gateway's own snapshots of the last minute, before this page was opened. Empty unless the caller is an admin. */
const readEarlier = async (): Promise<ReadonlyArray<Metrics.Snapshot>> => {
  const outcome = await Gateway.run(Admin.minute())
  const now = performance.now()
  return "failure" in outcome ? [] : outcome.value.map(({ age, series }) => Metrics.group(series, now - age * 1000))
}

const read = async (): Promise<void> => {
  const outcome = await Gateway.run(reading)
  if ("failure" in outcome) {
    trouble.value = outcome.failure
    return
  }
  const { metrics, ready } = outcome.value
  const now = Metrics.read(metrics, performance.now())
  const last = snapshots.value.at(-1)
  // the page was just opened, or was hidden
  const isGap = last === undefined || last.time < now.time - 60_000
  const earlier = isGap ? await readEarlier() : snapshots.value
  trouble.value = undefined
  readAt.value = Date.now()
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
