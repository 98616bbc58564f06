/** Counts requests and their operations; every label comes from a closed set. */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type { RequestFacts } from "./RequestFacts.ts"

const requests = Metric.counter("trigate_requests_total", {
  description: "Requests by route, HTTP status and outcome",
  incremental: true
})
const seconds = Metric.histogram("trigate_request_seconds", {
  description: "Time from a request's head to the end of its handling",
  boundaries: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
})
const operations = Metric.counter("trigate_operations_total", {
  description: "Operations asked for, by name and outcome; a batch counts each of its calls",
  incremental: true
})

/** Counts one request that was answered. */
export const count = Effect.fnUntraced(function*(facts: RequestFacts, status: number, milliseconds: number) {
  const outcome = facts.error ?? (status < 400 ? "ok" : "refused")
  const route = { route: facts.route }
  yield* Metric.update(Metric.withAttributes(requests, { ...route, status: String(status), outcome }), 1)
  yield* Metric.update(Metric.withAttributes(seconds, route), milliseconds / 1000)
  for (const operation of facts.operations) yield* Metric.update(Metric.withAttributes(operations, operation), 1)
})
