/**
 * How many times reads may be sent again: a share of the traffic, so that an upstream in trouble is not asked twice as much.
 *
 * The rule is Envoy's and Finagle's retry budget: each call deposits a fifth of a token, each further exchange takes one.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { UpstreamLabel } from "./Upstream.ts"

/** The budget of one upstream. */
export interface RetryBudget {
  /** Counts a call. */
  readonly deposit: () => void
  /** Takes a token for one more exchange, where there is one. */
  readonly withdraw: Effect.Effect<boolean>
}

/** The share of calls, and what is granted each second however little traffic there is. */
export interface Options {
  /** Further exchanges for each call; 0.2 when not given. */
  readonly share?: number
  /** Tokens a second besides; 10 when not given, also what a budget begins with. */
  readonly floor?: number
}

// tokens of calm times must not fuel a storm: ten seconds of a thousand calls each
const MOST = 2000

const make = ({ floor = 10, share = 0.2 }: Options = {}): RetryBudget => {
  let fromCalls = 0
  let fromTime = floor
  let lastRefill: number | undefined
  return {
    deposit: () => {
      fromCalls = Math.min(MOST, fromCalls + share)
    },
    withdraw: Effect.map(Clock.currentTimeMillis, (now) => {
      const elapsed = Math.max(0, now - (lastRefill ?? now))
      lastRefill = now
      fromTime = Math.min(floor, fromTime + elapsed * floor / 1000)
      if (fromCalls >= 1) fromCalls -= 1
      else if (fromTime >= 1) fromTime -= 1
      else return false
      return true
    })
  }
}

/** The budget of each upstream, made when it is first needed: calm calls to one must not pay for a storm at another. */
export const each = (options?: Options): (upstream: UpstreamLabel) => RetryBudget => {
  const budgets = new Map<UpstreamLabel, RetryBudget>()
  return (upstream) => {
    const found = budgets.get(upstream)
    if (found !== undefined) return found
    const budget = make(options)
    budgets.set(upstream, budget)
    return budget
  }
}
