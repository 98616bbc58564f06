/** Counts requests and their operations; every label comes from a closed set. */
import type * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import type { RequestFacts } from "./RequestFacts.ts"
import * as Series from "./Series.ts"

const requests = Series.make(["route", "status", "outcome"], (attributes) =>
  Metric.counter("trigate_requests_total", {
    description: "Requests by route, HTTP status and outcome",
    incremental: true,
    attributes
  }))
const seconds = Series.make(["route"], (attributes) =>
  Metric.histogram("trigate_request_seconds", {
    description: "Time from a request's head to the end of its handling",
    boundaries: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    attributes
  }))
const operations = Series.make(["operation", "outcome"], (attributes) =>
  Metric.counter("trigate_operations_total", {
    description: "Operations asked for, by name and outcome; a batch counts each of its calls",
    incremental: true,
    attributes
  }))

/** Counts one request that was answered, in the registry of the context. */
export const count = (
  context: Context.Context<never>,
  facts: RequestFacts,
  status: number,
  milliseconds: number
): void => {
  const outcome = facts.error ?? (status < 400 ? "ok" : "refused")
  requests(facts.route, String(status), outcome).updateUnsafe(1, context)
  seconds(facts.route).updateUnsafe(milliseconds / 1000, context)
  for (const { operation, outcome } of facts.operations) operations(operation, outcome).updateUnsafe(1, context)
}
