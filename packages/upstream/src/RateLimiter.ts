/**
 * What the upstreams let us ask: weight a minute of the official API, request units a second of a node's plan.
 *
 * A call takes its worst case before it goes out and gives back what it did not use. In any minute (second) the calls that
 * start use no more than the limit, and can use all of it. Reads leave a share of the weight to actions. Whoever finds no
 * budget waits in line, as long as it can.
 *
 * Times are those of the clock at which a call starts. What the network adds to them, and how far the clocks of replicas
 * differ, is not covered: a limit somewhat below the upstream's leaves room for it.
 */
import type { Cost, MethodClass } from "@trigate/domain/Operation"
import { worstWeightOf } from "@trigate/domain/Operation"
import type { Settings } from "@trigate/domain/Settings"
import { settings } from "@trigate/domain/Settings"
import type { UpstreamRateLimited } from "@trigate/domain/UpstreamError"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as BudgetMetrics from "./internal/BudgetMetrics.ts"
import * as BudgetPlan from "./internal/BudgetPlan.ts"
import type { SharedWindow } from "./internal/BudgetShared.ts"
import * as BudgetShared from "./internal/BudgetShared.ts"
import * as UpstreamBudget from "./internal/UpstreamBudget.ts"
import * as SharedState from "./SharedState.ts"
import type { UpstreamLabel } from "./Upstream.ts"

/** What a call has taken. */
export interface Spent {
  /** Gives back what the call did not use after all, in units of what it took, and never more than that. */
  readonly refund: (unused: number) => Effect.Effect<void>
}

/** A call that wants to start. */
export interface Ask {
  readonly upstream: UpstreamLabel
  /** A `once` call has a share that reads cannot take, and does not wait for them. */
  readonly class: MethodClass
  readonly cost: Cost
  /** Milliseconds that the call can wait for its turn. */
  readonly maxWait: number
}

/** Lets calls start when their upstream's budget allows it. */
export class RateLimiter extends Context.Service<RateLimiter, {
  /**
   * Takes the worst case of a call, waiting for it up to the call's maxWait.
   *
   * Fails at once where the wait would be longer; `retryAfter` is that wait in whole seconds, if nobody else comes.
   */
  readonly take: (ask: Ask) => Effect.Effect<Spent, UpstreamRateLimited>
}>()("@trigate/upstream/RateLimiter") {}

/** The limit of each upstream; one without a limit has no budget. */
export interface Limits {
  /** Weight a minute. */
  readonly "trading-api"?: number | undefined
  /** Request units a second. */
  readonly "trading-node"?: number | undefined
  /** Request units a second. */
  readonly "token-chain"?: number | undefined
  /** Request units a second. */
  readonly layer2?: number | undefined
}

/** Weight a minute that the venue grants an IP address. */
export const defaultWeight = settings.tradingApiWeight.fallback

/** What a call takes before it goes out: weight of the official API, request units of a node. */
export const worstOf = (upstream: UpstreamLabel, cost: Cost): number =>
  upstream === "trading-api" ? worstWeightOf({ cost }) : cost.requestUnits

const unlimited = Effect.succeed<Spent>({ refund: () => Effect.void })

/** A twentieth of the weight is for actions alone. */
const planOf = (upstream: UpstreamLabel, limit: number): BudgetPlan.Plan =>
  upstream === "trading-api" ? BudgetPlan.make(limit, 60_000, 60, 0.05) : BudgetPlan.make(limit, 1000, 20, 0)

type Share = (upstream: UpstreamLabel, plan: BudgetPlan.Plan) => SharedWindow | undefined

const make = Effect.fnUntraced(function*(limits: Limits, share: Share) {
  const budget = Effect.fnUntraced(function*(upstream: UpstreamLabel) {
    const limit = limits[upstream]
    if (limit === undefined) return () => unlimited
    const plan = planOf(upstream, limit)
    const { left, take } = UpstreamBudget.make(upstream, plan, share(upstream, plan))
    yield* BudgetMetrics.tellLeft(upstream, plan, left)
    return (ask: Ask) => take(worstOf(upstream, ask.cost), ask.class, ask.maxWait)
  })
  const budgets = {
    "trading-api": yield* budget("trading-api"),
    "trading-node": yield* budget("trading-node"),
    "token-chain": yield* budget("token-chain"),
    layer2: yield* budget("layer2")
  }
  return RateLimiter.of({ take: (ask) => budgets[ask.upstream](ask) })
})

/** No budget at all: every call starts at once. */
export const layerUnlimited: Layer.Layer<RateLimiter> = Layer.succeed(
  RateLimiter,
  RateLimiter.of({ take: () => unlimited })
)

/** RateLimiter of this process alone. */
export const layerMemory = (limits: Limits): Layer.Layer<RateLimiter> =>
  Layer.effect(RateLimiter, make(limits, () => undefined))

/** The limits, and where and how long they are shared. */
export interface Options extends Limits {
  /** What the keys begin with; `trigate:{budgets}:` when not given. Who shares a limit has the same. */
  readonly prefix?: string
  /** How long Redis may take for one step; 250 milliseconds when not given. */
  readonly deadline?: Duration.Input
}

/**
 * RateLimiter of everybody with the same Redis and prefix.
 *
 * This process counts for itself besides. While Redis is away, only that holds: each replica keeps the limit, all of them
 * together may not. A metric and the log tell when; no call waits longer than the deadline.
 */
export const layer = (options: Options): Layer.Layer<RateLimiter, never, Redis.Redis> =>
  Layer.effect(
    RateLimiter,
    Effect.gen(function*() {
      const { deadline, prefix = "trigate:{budgets}:" } = options
      const state = yield* SharedState.make({ use: "budgets", ...(deadline === undefined ? {} : { deadline }) })
      return yield* make(options, BudgetShared.make(yield* Redis.Redis, state, prefix))
    })
  )

/** The limits that the settings name. */
export const limitsOf = (
  named: Pick<Settings, "tradingApiWeight" | "tradingNodeRps" | "tokenChainRps" | "layer2Rps">
): Limits => ({
  "trading-api": named.tradingApiWeight,
  "trading-node": Option.getOrUndefined(named.tradingNodeRps),
  "token-chain": Option.getOrUndefined(named.tokenChainRps),
  layer2: Option.getOrUndefined(named.layer2Rps)
})

/** RateLimiter of this process with the limits of `TRIGATE_TRADING_API_WEIGHT` and of the three `TRIGATE_…_RPS`. */
export const layerConfig: Layer.Layer<RateLimiter, Config.ConfigError> = Layer.unwrap(
  Effect.map(
    Config.all({
      tradingApiWeight: settings.tradingApiWeight,
      tradingNodeRps: settings.tradingNodeRps,
      tokenChainRps: settings.tokenChainRps,
      layer2Rps: settings.layer2Rps
    }),
    (named) => layerMemory(limitsOf(named))
  )
)
