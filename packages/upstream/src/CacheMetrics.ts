/** Counts reads that cost the upstream nothing, and why; every label comes from a closed set. */
import type * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import type { UpstreamLabel } from "./Upstream.ts"

/** How a read was answered without an exchange of its own; or what became of one that nobody waited for. */
export type How = "in_flight" | "cache" | "redis" | "stale" | "refreshed_ahead" | "refresh_failed"

/** Counts one read, in the registry of a context. */
export type Count = (how: How, context: Context.Context<never>) => void

const counter = (upstream: UpstreamLabel, operation: string, how: How) =>
  Metric.counter("trigate_reads_shared_total", {
    description: "Reads that were answered without an exchange of their own, and answers renewed ahead of need",
    attributes: { upstream, operation, how },
    incremental: true
  })

const make = (upstream: UpstreamLabel, operation: string): Count => {
  const counters = {
    in_flight: counter(upstream, operation, "in_flight"),
    cache: counter(upstream, operation, "cache"),
    redis: counter(upstream, operation, "redis"),
    stale: counter(upstream, operation, "stale"),
    refreshed_ahead: counter(upstream, operation, "refreshed_ahead"),
    refresh_failed: counter(upstream, operation, "refresh_failed")
  }
  return (how, context) => counters[how].updateUnsafe(1, context)
}

/** The counters of each upstream and operation, built when they are first needed. */
export const counters = (): (upstream: UpstreamLabel, operation: string) => Count => {
  const built = new Map<string, Count>()
  return (upstream, operation) => {
    const key = `${upstream} ${operation}`
    const found = built.get(key)
    if (found !== undefined) return found
    const count = make(upstream, operation)
    built.set(key, count)
    return count
  }
}
