/** The live state of the gateway: readiness and metrics, read every two seconds while the page is visible. */
import { computed, signal } from "@preact/signals"
import type { Readiness } from "@trigate/api/HealthApi"
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
 * The latest snapshot of the metrics (`to`) and the snapshot one minute before it (`from`). If no snapshot is that old,
 * `from` is the oldest one.
 */
export const lastMinute = computed(() => {
  const all = snapshots.value
  const to = all.at(-1)
  const from = all.at(-Math.ceil(60_000 / period) - 1) ?? all[0]
  return to === undefined || from === undefined || from === to ? undefined : { from, to }
})

const reading = Effect.all({ ready: Health.ready(), metrics: Health.metrics() })

const read = async (): Promise<void> => {
  const outcome = await Gateway.run(reading)
  if ("failure" in outcome) {
    trouble.value = outcome.failure
    return
  }
  const { metrics, ready } = outcome.value
  trouble.value = undefined
  readAt.value = Date.now()
  readiness.value = ready
  snapshots.value = [...snapshots.value, Metrics.read(metrics, performance.now())].slice(-kept)
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
