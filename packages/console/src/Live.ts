/** What the page knows of the gateway now: readiness and metrics, read every two seconds while the page is visible. */
import { computed, signal } from "@preact/signals"
import { Readiness } from "@trigate/api/HealthApi"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Gateway from "./Gateway.ts"
import * as Metrics from "./Metrics.ts"

/** Milliseconds between two readings. */
export const period = 2000

/** How many readings the page keeps: five minutes. */
const kept = 150

/** The readings, oldest first. */
export const snapshots = signal<ReadonlyArray<Metrics.Snapshot>>([])

/** How the chains are served. */
export const readiness = signal<Readiness | undefined>(undefined)

/** Why the last reading failed. */
export const trouble = signal<string | undefined>(undefined)

/** The last reading and the one a minute before it, or the oldest. */
export const lastMinute = computed(() => {
  const all = snapshots.value
  const to = all.at(-1)
  const from = all.at(-Math.ceil(60_000 / period) - 1) ?? all[0]
  return to === undefined || from === undefined || from === to ? undefined : { from, to }
})

const decodeReadiness = Schema.decodeUnknownEffect(Schema.fromJsonString(Readiness))

const reading = Effect.gen(function*() {
  const ready = yield* Gateway.text("/health/ready")
  const metrics = yield* Gateway.text("/metrics")
  return { ready: yield* decodeReadiness(ready.text), metrics: metrics.status === 200 ? metrics.text : "" }
})

const readOnce = Effect.match(reading, {
  onFailure: () => {
    trouble.value = "The gateway does not answer"
  },
  onSuccess: ({ metrics, ready }) => {
    trouble.value = undefined
    readiness.value = ready
    snapshots.value = [...snapshots.value, Metrics.read(metrics, performance.now())].slice(-kept)
  }
})

const whileVisible = Effect.suspend(() => document.hidden ? Effect.void : readOnce)

/** Begins to read. */
export const start = (): void => void Gateway.run(Effect.repeat(whileVisible, Schedule.spaced(period)))
