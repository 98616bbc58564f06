/** Counts what calls cost and how they end; every label comes from a closed set. */
import * as JsonText from "@trigate/domain/JsonText"
import type { Operation } from "@trigate/domain/Operation"
import { weightOf } from "@trigate/domain/Operation"
import * as Relayed from "@trigate/domain/Relayed"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import type { UpstreamLabel } from "./Upstream.ts"
import type { WireError } from "./Wire.ts"

/** How one exchange with an upstream ended. */
export type Outcome = "ok" | "refused" | "rate_limited" | "server_fault" | "not_sent" | "broken" | "abandoned"

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

const outcomeOf = (exit: Exit.Exit<Relayed.Relayed, WireError>): Outcome => {
  if (Exit.isSuccess(exit)) {
    const status = exit.value.status
    if (status === 429) return "rate_limited"
    return status >= 500 ? "server_fault" : status >= 400 ? "refused" : "ok"
  }
  const error = Exit.findErrorOption(exit)
  return error._tag === "None" ? "abandoned" : error.value.sent === "no" ? "not_sent" : "broken"
}

const rowsOf = (operation: Pick<Operation, "cost">, exit: Exit.Exit<Relayed.Relayed, WireError>): number =>
  operation.cost.rowsPerWeight !== undefined && Exit.isSuccess(exit)
    ? JsonText.elements(Relayed.text(exit.value))?.length ?? 0
    : 0

/** Runs one exchange and counts it. */
export const observe = (
  operation: Pick<Operation, "name" | "cost">,
  upstream: UpstreamLabel,
  exchange: Effect.Effect<Relayed.Relayed, WireError>
): Effect.Effect<Relayed.Relayed, WireError> =>
  Effect.flatMap(Clock.currentTimeMillis, (start) =>
    Effect.onExit(exchange, (exit) =>
      Effect.gen(function*() {
        const end = yield* Clock.currentTimeMillis
        const outcome = outcomeOf(exit)
        const at = { upstream }
        yield* Metric.update(Metric.withAttributes(calls, { upstream, operation: operation.name, outcome }), 1)
        yield* Metric.update(Metric.withAttributes(seconds, at), (end - start) / 1000)
        if (outcome === "not_sent") return
        yield* upstream === "trading-api"
          ? Metric.update(Metric.withAttributes(weight, at), weightOf(operation, rowsOf(operation, exit)))
          : Metric.update(Metric.withAttributes(units, at), operation.cost.requestUnits)
      })))
