/** What is told of budgets: what is left, who waited and who was refused. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type { UpstreamLabel } from "../Upstream.ts"
import type * as BudgetPlan from "./BudgetPlan.ts"

const leftGauge = (upstream: UpstreamLabel, share: "common" | "actions") =>
  Metric.gauge("trigate_upstream_budget_left", {
    description: "Weight or request units that calls can take at once, by upstream and share",
    attributes: { upstream, share }
  })

/** Calls that waited. */
export const waits = (upstream: UpstreamLabel) =>
  Metric.counter("trigate_upstream_budget_waits_total", {
    description: "Calls that waited for their upstream's budget",
    incremental: true,
    attributes: { upstream }
  })

/** Calls that were refused. */
export const refused = (upstream: UpstreamLabel) =>
  Metric.counter("trigate_upstream_budget_refused_total", {
    description: "Calls refused because their upstream's budget was used up for longer than they could wait",
    incremental: true,
    attributes: { upstream }
  })

/**
 * Tells what is left for as long as the scope is open.
 *
 * It is worked out when somebody looks: no call pays for it, and it grows while no call comes.
 */
export const tellLeft = (
  upstream: UpstreamLabel,
  plan: BudgetPlan.Plan,
  left: (clock: Clock.Clock) => BudgetPlan.Units
) =>
  Effect.acquireRelease(
    Effect.contextWith((registered: Context.Context<never>) =>
      Effect.sync(() => {
        const tell = (share: "common" | "actions", of: keyof BudgetPlan.Units) =>
          Metric.registerUnsafe(leftGauge(upstream, share), registered, {
            get: (context) => ({ value: left(Context.get(context, Clock.Clock))[of] }),
            update: () => {},
            modify: () => {}
          })
        const common = tell("common", "read")
        return plan.forReads < plan.limit ? [common, tell("actions", "once")] : [common]
      })
    ),
    (registrations) => Effect.sync(() => registrations.forEach(({ remove }) => remove()))
  )
