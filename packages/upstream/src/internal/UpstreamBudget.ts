/** The budget of one upstream: a common share, a reserved one for actions, and what is told of them. */
import { infoOperations } from "@trigate/domain/InfoOperations"
import type { MethodClass } from "@trigate/domain/Operation"
import { worstWeightOf } from "@trigate/domain/Operation"
import { UpstreamRateLimited } from "@trigate/domain/UpstreamError"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type { UpstreamLabel } from "../Upstream.ts"
import * as BudgetLine from "./BudgetLine.ts"
import * as BudgetShare from "./BudgetShare.ts"

/** Takes a cost, waiting for it up to the milliseconds of the patience. */
export type Take = (
  cost: number,
  methodClass: MethodClass,
  patience: number
) => Effect.Effect<BudgetLine.Grant, UpstreamRateLimited>

const worstWeight = Math.max(...Object.values(infoOperations).map(worstWeightOf))

const leftGauge = Metric.gauge("trigate_upstream_budget_left", {
  description: "Weight or request units that calls can take at once, by upstream and share"
})
const waitsCounter = Metric.counter("trigate_upstream_budget_waits_total", {
  description: "Calls that waited for their upstream's budget",
  incremental: true
})
const refusedCounter = Metric.counter("trigate_upstream_budget_refused_total", {
  description: "Calls refused because their upstream's budget was used up for longer than they could wait",
  incremental: true
})

const lineOf = (
  upstream: UpstreamLabel,
  share: "common" | "actions",
  bounds: { readonly limit: number; readonly window: number; readonly worst: number },
  stores: BudgetLine.Stores
) =>
  BudgetLine.make(
    BudgetShare.make(`${upstream}:${share}`, bounds.limit, bounds.window, bounds.worst),
    stores,
    Metric.withAttributes(leftGauge, { upstream, share })
  )

const refusal = (upstream: UpstreamLabel, wait: number) => {
  const retryAfter = Math.max(1, Math.ceil(wait / 1000))
  return new UpstreamRateLimited({
    upstream,
    retryAfter,
    detail: `The budget of ${upstream} is used up; it lets this call through in ${retryAfter} s`
  })
}

const over = (upstream: UpstreamLabel, common: BudgetLine.Line, reserved: BudgetLine.Line | undefined): Take => {
  const waits = Metric.withAttributes(waitsCounter, { upstream })
  const refused = Metric.withAttributes(refusedCounter, { upstream })

  /** Joins the line in which the wait is shortest. */
  const join = (lines: readonly [BudgetLine.Line, ...Array<BudgetLine.Line>], cost: number, patience: number) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const line = lines.reduce((best, next) => next.waitFor(cost, now) < best.waitFor(cost, now) ? next : best)
      const wait = line.waitFor(cost, now)
      return wait > patience
        ? Effect.fail(BudgetLine.late(wait))
        : Effect.andThen(Metric.update(waits, 1), line.join(cost, patience))
    })

  const read = (cost: number, patience: number) =>
    Effect.firstSuccessOf([common.tryNow(cost), Effect.suspend(() => join([common], cost, patience))])

  const once = reserved === undefined ? read : (cost: number, patience: number) =>
    Effect.firstSuccessOf([
      reserved.tryNow(cost),
      common.tryNow(cost),
      Effect.suspend(() => join([reserved, common], cost, patience))
    ])

  return (cost, methodClass, patience) =>
    (methodClass === "once" ? once(cost, patience) : read(cost, patience)).pipe(
      Effect.catch(({ wait }) => Effect.andThen(Metric.update(refused, 1), Effect.fail(refusal(upstream, wait))))
    )
}

/** A tenth of the weight a minute is for actions; the rest is for whoever comes. */
export const ofWeight = (upstream: UpstreamLabel, limit: number, stores: BudgetLine.Stores): Take => {
  const whole = Math.max(1, Math.floor(limit))
  const reserved = Math.floor(whole / 10)
  return over(
    upstream,
    lineOf(upstream, "common", { limit: whole - reserved, window: 60_000, worst: worstWeight }, stores),
    reserved === 0
      ? undefined
      : lineOf(upstream, "actions", { limit: reserved, window: 60_000, worst: 1 }, stores)
  )
}

/** Request units a second; of a limit below 1, one unit in its inverse. */
export const ofUnits = (upstream: UpstreamLabel, limit: number, stores: BudgetLine.Stores): Take =>
  over(
    upstream,
    lineOf(
      upstream,
      "common",
      { limit: Math.max(1, Math.floor(limit)), window: Math.max(1000, 1000 / limit), worst: 1 },
      stores
    ),
    undefined
  )
