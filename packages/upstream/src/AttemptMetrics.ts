/** Counts attempts: how they end, how long they take, what they cost. Every label comes from a closed set. */
import type { Cost } from "@trigate/domain/Operation"
import { weightOf } from "@trigate/domain/Operation"
import type { Fault } from "@trigate/domain/protocol/Protocol"
import type * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import type { UpstreamLabel } from "./Upstream.ts"

/** How an attempt ended; `abandoned` when its caller left or another attempt was faster. */
export type Outcome = "ok" | "refused" | "abandoned" | Exclude<Fault, "withheld">

const attempts = Metric.counter("trigate_upstream_calls_total", {
  description: "Attempts at an upstream, by operation and outcome",
  incremental: true
})
const seconds = Metric.histogram("trigate_upstream_call_seconds", {
  description: "Duration of an attempt at an upstream",
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
  description: "Attempts that followed another one of the same read, by what was wrong with that one",
  incremental: true
})
const hedges = Metric.counter("trigate_upstream_hedges_total", {
  description: "Reads that asked a second address beside a slow one, by whose answer was taken",
  incremental: true
})

/** The context whose metric registry is written to. Updates are synchronous: every attempt makes some. */
type Registry = Context.Context<never>

/** The metrics of one operation at one upstream. */
export interface Meter {
  /** Counts an attempt; the cost is that of this call, and `rows` the length of an answer that is billed by its length. */
  readonly attempted: (registry: Registry, cost: Cost, outcome: Outcome, milliseconds: number, rows: number) => void
  readonly retried: (registry: Registry, fault: Fault) => void
  readonly hedged: (registry: Registry, won: "first" | "second") => void
}

// a labelled metric costs ten times as much to make as to update
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
  const ended = memo((outcome: Outcome) => Metric.withAttributes(attempts, { ...named, outcome }))
  const took = Metric.withAttributes(seconds, at)
  const weighed = Metric.withAttributes(weight, at)
  const billed = Metric.withAttributes(units, at)
  const again = memo((cause: Fault) => Metric.withAttributes(retries, { ...named, cause }))
  const beside = memo((won: "first" | "second") => Metric.withAttributes(hedges, { ...named, won }))
  return {
    attempted: (registry, cost, outcome, milliseconds, rows) => {
      ended(outcome).updateUnsafe(1, registry)
      took.updateUnsafe(milliseconds / 1000, registry)
      if (outcome === "not_sent") return
      if (upstream === "trading-api") weighed.updateUnsafe(weightOf({ cost }, rows), registry)
      else billed.updateUnsafe(cost.requestUnits, registry)
    },
    retried: (registry, fault) => again(fault).updateUnsafe(1, registry),
    hedged: (registry, won) => beside(won).updateUnsafe(1, registry)
  }
}

/** The meters of a gateway, each made when it is first needed. */
export const meters = () => {
  const ofUpstream = memo((upstream: UpstreamLabel) => memo((operation: string) => make(upstream, operation)))
  return (upstream: UpstreamLabel, operation: string): Meter => ofUpstream(upstream)(operation)
}
