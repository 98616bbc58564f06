/** The metrics of attempts, by upstream, operation and outcome. */
import type { Cost } from "@trigate/domain/operations/Operation"
import { responseWeight } from "@trigate/domain/operations/Operation"
import type { RetryableFault } from "@trigate/domain/operations/Protocol"
import type * as Context from "effect/Context"
import type { UpstreamLabel } from "../Upstream.ts"
import { metrics } from "../UpstreamMetrics.ts"

/** The result of an attempt. `abandoned` means that the caller disconnected or that a second attempt was faster. */
export type AttemptOutcome = "ok" | "refused" | "abandoned" | Exclude<RetryableFault, "withheld">

/** The context with the metric registry. Updates are synchronous, because every attempt makes several. */
export type Registry = Context.Context<never>

/** The metrics of one operation at one upstream. */
export interface Meter {
  /**
   * Counts an attempt with its actual cost; `rows` is the number of rows in the response, for an operation whose rows
   * cost rate-limit weight.
   */
  readonly attempted: (
    registry: Registry,
    cost: Cost,
    outcome: AttemptOutcome,
    milliseconds: number,
    rows: number
  ) => void
  readonly retried: (registry: Registry, fault: RetryableFault) => void
  readonly hedged: (registry: Registry, won: "first" | "second") => void
}

const memo = <Key, Value>(make: (key: Key) => Value) => {
  const made = new Map<Key, Value>()
  return (key: Key): Value => {
    const found = made.get(key)
    if (found !== undefined) return found
    const value = make(key)
    made.set(key, value)
    return value
  }
}

const make = (upstream: UpstreamLabel, operation: string): Meter => {
  const at = { upstream }
  const named = { upstream, operation }
  const took = metrics.upstreamSeconds.series(at)
  const weighed = metrics.upstreamWeight.series(at)
  const billed = metrics.upstreamRequestUnits.series(at)
  return {
    attempted: (registry, cost, outcome, milliseconds, rows) => {
      metrics.upstreamCalls.series({ ...named, outcome }).updateUnsafe(1, registry)
      took.updateUnsafe(milliseconds / 1000, registry)
      if (outcome === "not_sent") return
      if (upstream === "trading-api") weighed.updateUnsafe(responseWeight({ cost }, rows), registry)
      else billed.updateUnsafe(cost.requestUnits, registry)
    },
    retried: (registry, cause) => metrics.upstreamRetries.series({ ...named, cause }).updateUnsafe(1, registry),
    hedged: (registry, won) => metrics.upstreamHedges.series({ ...named, won }).updateUnsafe(1, registry)
  }
}

/** Makes the function that looks up the metrics of an operation at an upstream. The metrics are made on first use. */
export const meters = () => {
  const ofUpstream = memo((upstream: UpstreamLabel) => memo((operation: string) => make(upstream, operation)))
  return (upstream: UpstreamLabel, operation: string): Meter => ofUpstream(upstream)(operation)
}
