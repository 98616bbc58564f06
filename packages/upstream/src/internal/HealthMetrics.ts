/** What `/metrics` tells of one address; built once, since labels cost more than what they count. */
import type * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import type { Target } from "../Upstream.ts"

/** Why an address is passed over. */
export type Cause = "retry_after" | "circuit" | "wrong_chain"

/** The metrics of one address, updated where its state changes. */
export interface HealthMetrics {
  readonly circuit: (state: "closed" | "half-open" | "open") => void
  readonly benched: (cause: Cause) => void
}

const circuitState = Metric.gauge("trigate_upstream_circuit_state", {
  description: "Circuit of an upstream's address: 0 closed, 1 half-open, 2 open"
})
const benches = Metric.counter("trigate_upstream_benches_total", {
  description: "How often an upstream's address began to be passed over, by cause",
  incremental: true
})

const numbers = { closed: 0, "half-open": 1, open: 2 } as const

/** The metrics of a target's address in the registry of a context. */
export const make = (target: Target, context: Context.Context<never>): HealthMetrics => {
  const at = { upstream: target.label, address: String(target.address) }
  const state = Metric.withAttributes(circuitState, at)
  const counters = {
    retry_after: Metric.withAttributes(benches, { ...at, cause: "retry_after" }),
    circuit: Metric.withAttributes(benches, { ...at, cause: "circuit" }),
    wrong_chain: Metric.withAttributes(benches, { ...at, cause: "wrong_chain" })
  }
  return {
    circuit: (name) => state.updateUnsafe(numbers[name], context),
    benched: (cause) => counters[cause].updateUnsafe(1, context)
  }
}
