/** Counts what calls cost and how they end; every label comes from a closed set. */
import type { Cost } from "@trigate/domain/Operation"
import { weightOf } from "@trigate/domain/Operation"
import type * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import type { Fault } from "./AttemptResult.ts"
import type { UpstreamLabel } from "./Upstream.ts"

/** How one exchange with an upstream ended. */
export type Outcome = "ok" | "refused" | "abandoned" | Exclude<Fault, "withheld">

const calls = Metric.counter("trigate_upstream_calls_total", {
  description: "Exchanges with an upstream, by operation and outcome",
  incremental: true
})
const seconds = Metric.histogram("trigate_upstream_call_seconds", {
  description: "Time of an exchange with an upstream",
  boundaries: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
})
const weight = Metric.counter("trigate_upstream_weight_total", {
  description: "Weight spent at the official API",
  incremental: true
})
const units = Metric.counter("trigate_upstream_request_units_total", {
  description: "Request units spent at node providers",
  incremental: true
})
const retries = Metric.counter("trigate_upstream_retries_total", {
  description: "Exchanges that followed another one of the same read, by what was wrong with that",
  incremental: true
})
const hedges = Metric.counter("trigate_upstream_hedges_total", {
  description: "Reads that asked a second address beside a slow one, by whose answer was taken",
  incremental: true
})

/** Writes into the registry of a fiber's context, off the effect system: this is done for each exchange. */
type Services = Context.Context<never>

/** The meters of one operation at one upstream. */
export interface Meter {
  /** Counts one exchange and its cost, which is not the same for all calls of a name; `rows` is the length of an answer that is billed by it. */
  readonly exchanged: (services: Services, cost: Cost, outcome: Outcome, milliseconds: number, rows: number) => void
  readonly retried: (services: Services, fault: Fault) => void
  readonly hedged: (services: Services, won: "first" | "second") => void
}

// building a labelled metric costs more than updating it ten times
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
  const ended = memo((outcome: Outcome) => Metric.withAttributes(calls, { ...named, outcome }))
  const took = Metric.withAttributes(seconds, at)
  const weighed = Metric.withAttributes(weight, at)
  const billed = Metric.withAttributes(units, at)
  const again = memo((cause: Fault) => Metric.withAttributes(retries, { ...named, cause }))
  const beside = memo((won: "first" | "second") => Metric.withAttributes(hedges, { ...named, won }))
  return {
    exchanged: (services, cost, outcome, milliseconds, rows) => {
      ended(outcome).updateUnsafe(1, services)
      took.updateUnsafe(milliseconds / 1000, services)
      if (outcome === "not_sent") return
      if (upstream === "trading-api") weighed.updateUnsafe(weightOf({ cost }, rows), services)
      else billed.updateUnsafe(cost.requestUnits, services)
    },
    retried: (services, fault) => again(fault).updateUnsafe(1, services),
    hedged: (services, won) => beside(won).updateUnsafe(1, services)
  }
}

/** The meters of a gateway, each made when it is first needed. */
export const meters = () => {
  const ofUpstream = memo((_upstream: UpstreamLabel) => new Map<string, Meter>())
  return (upstream: UpstreamLabel, operation: string): Meter => {
    const known = ofUpstream(upstream)
    const found = known.get(operation)
    if (found !== undefined) return found
    const meter = make(upstream, operation)
    known.set(operation, meter)
    return meter
  }
}
