/**
 * What the upstreams let us ask: weight a minute of the official API, request units a second of a node's plan.
 *
 * A call takes its worst case before it goes out and gives back what it did not use. In any minute (second) the calls that
 * start use no more than the limit. Actions have a share that reads cannot take, and draw on the common one besides.
 * Whoever finds no budget waits in line, as long as it can.
 *
 * Times are those of the clock at which a call starts. What the network adds to them, and how far the clocks of replicas
 * differ, is not covered: a limit somewhat below the upstream's leaves room for it.
 */
import type { Cost, MethodClass } from "@trigate/domain/Operation"
import { worstWeightOf } from "@trigate/domain/Operation"
import type { UpstreamRateLimited } from "@trigate/domain/UpstreamError"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { RateLimiter } from "effect/persistence/RateLimiter"
import type * as BudgetLine from "./internal/BudgetLine.ts"
import * as BudgetStore from "./internal/BudgetStore.ts"
import * as UpstreamBudget from "./internal/UpstreamBudget.ts"
import type { UpstreamLabel } from "./Upstream.ts"
import { limit } from "./UpstreamConfig.ts"

/** What a call has taken. */
export interface Spent {
  /** Gives back what the call did not use after all, in units of what it took, and never more than that. */
  readonly giveBack: (unused: number) => Effect.Effect<void>
}

/** A call that wants to start. */
export interface Ask {
  readonly upstream: UpstreamLabel
  /** A `once` call draws on the reserved share before the common one. */
  readonly class: MethodClass
  readonly cost: Cost
  /** Milliseconds that the call can wait for its turn. */
  readonly patience: number
}

/** Lets calls start when their upstream's budget allows it. */
export class Budgets extends Context.Service<Budgets, {
  /**
   * Takes the worst case of a call, waiting for it up to the call's patience.
   *
   * Fails at once where the wait would be longer; `retryAfter` is that wait in whole seconds, if nobody else comes.
   */
  readonly take: (ask: Ask) => Effect.Effect<Spent, UpstreamRateLimited>
}>()("@trigate/upstream/Budgets") {}

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
export const defaultWeight = 1200

/** What a call takes before it goes out: weight of the official API, request units of a node. */
export const worstOf = (upstream: UpstreamLabel, cost: Cost): number =>
  upstream === "trading-api" ? worstWeightOf({ cost }) : cost.requestUnits

const unlimited = Effect.succeed<Spent>({ giveBack: () => Effect.void })

const make = (limits: Limits, stores: BudgetLine.Stores): Budgets["Service"] => {
  const budget = (upstream: UpstreamLabel) => {
    const limit = limits[upstream]
    if (limit === undefined) return () => unlimited
    const take = upstream === "trading-api"
      ? UpstreamBudget.ofWeight(upstream, limit, stores)
      : UpstreamBudget.ofUnits(upstream, limit, stores)
    return (ask: Ask) => take(worstOf(upstream, ask.cost), ask.class, ask.patience)
  }
  const budgets = {
    "trading-api": budget("trading-api"),
    "trading-node": budget("trading-node"),
    "token-chain": budget("token-chain"),
    layer2: budget("layer2")
  }
  return Budgets.of({ take: (ask) => budgets[ask.upstream](ask) })
}

/** No budget at all: every call starts at once. */
export const layerUnlimited: Layer.Layer<Budgets> = Layer.succeed(Budgets, Budgets.of({ take: () => unlimited }))

/** Budgets of this process alone. */
export const layerMemory = (limits: Limits): Layer.Layer<Budgets> =>
  Layer.effect(Budgets, Effect.map(BudgetStore.own, (own) => make(limits, { own, shared: BudgetStore.none })))

/** The limits, and how long the limiter may take for one step. */
export interface Options extends Limits {
  /** 250 milliseconds when not given. */
  readonly deadline?: Duration.Input
}

/**
 * Budgets shared by everybody with the same limiter, as replicas over one Redis are.
 *
 * This process counts for itself besides. While the limiter is away, only that holds: each replica keeps the limit, all of
 * them together may not. A metric and the log tell when; no call waits longer than the deadline.
 */
export const layer = (options: Options): Layer.Layer<Budgets, never, RateLimiter> =>
  Layer.effect(
    Budgets,
    Effect.gen(function*() {
      const deadline = Duration.fromInputUnsafe(options.deadline ?? "250 millis")
      const shared = yield* BudgetStore.shared(yield* RateLimiter, deadline)
      return make(options, { own: yield* BudgetStore.own, shared })
    })
  )

const limits: Config.Config<Limits> = Config.all({
  "trading-api": Config.withDefault(limit("TRIGATE_TRADING_API_WEIGHT"), defaultWeight),
  "trading-node": Config.withDefault(limit("TRIGATE_TRADING_NODE_RPS"), undefined),
  "token-chain": Config.withDefault(limit("TRIGATE_TOKEN_CHAIN_RPS"), undefined),
  layer2: Config.withDefault(limit("TRIGATE_LAYER2_RPS"), undefined)
})

/** Budgets of this process with the limits of `TRIGATE_TRADING_API_WEIGHT` and of the three `TRIGATE_…_RPS`. */
export const layerConfig: Layer.Layer<Budgets, Config.ConfigError> = Layer.unwrap(Effect.map(limits, layerMemory))
