/** The budget of one upstream: its window, the line for it, and what is told of both. */
import type { MethodClass } from "@trigate/domain/Operation"
import { UpstreamRateLimited } from "@trigate/domain/UpstreamError"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { UpstreamLabel } from "../Upstream.ts"
import type { Waiter } from "./BudgetLine.ts"
import { BudgetLine } from "./BudgetLine.ts"
import * as BudgetMetrics from "./BudgetMetrics.ts"
import * as BudgetPlan from "./BudgetPlan.ts"
import type { SharedWindow } from "./BudgetShared.ts"
import { BudgetWindow } from "./BudgetWindow.ts"

/** What a call has taken. */
export interface Grant {
  readonly refund: (unused: number) => Effect.Effect<void>
}

export interface UpstreamBudget {
  /** Takes a cost, waiting for it up to the milliseconds of the maxWait. */
  readonly take: (
    cost: number,
    methodClass: MethodClass,
    maxWait: number
  ) => Effect.Effect<Grant, UpstreamRateLimited>
  /** What reads and what actions could take now, as far as this process knows. */
  readonly left: (clock: Clock.Clock) => BudgetPlan.Units
}

/** A call that may not start yet, and after how many milliseconds it could if nobody else came. */
interface Late {
  readonly _tag: "Late"
  readonly wait: number
}

interface Call {
  readonly cost: number
  readonly methodClass: MethodClass
}

type Caller = Fiber.Fiber<unknown, unknown>

const late = (wait: number): Late => ({ _tag: "Late", wait })

// not the time of day: a clock that is set must neither empty the window nor keep it full
const millisOf = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

const refusal = (upstream: UpstreamLabel, wait: number) => {
  const retryAfter = Math.max(1, Math.ceil(wait / 1000))
  return new UpstreamRateLimited({
    upstream,
    retryAfter,
    detail: `The budget of ${upstream} is used up; it lets this call through in ${retryAfter} s`
  })
}

// what other replicas give back brings the turn forward; who waits looks for it this often
const LOOK_AGAIN = 250

const NOBODY: BudgetPlan.Units = { read: 0, once: 0 }

/** Keeps a plan in this process, and in the shared window where there is one. */
export const make = (
  upstream: UpstreamLabel,
  plan: BudgetPlan.Plan,
  shared: SharedWindow | undefined
): UpstreamBudget => {
  const window = new BudgetWindow(plan)
  const lines = { read: new BudgetLine(), once: new BudgetLine() }
  const longestPause = shared === undefined ? Number.POSITIVE_INFINITY : LOOK_AGAIN
  const waits = BudgetMetrics.waits(upstream)
  const refused = BudgetMetrics.refused(upstream)
  /** What the shared window holds of others. */
  let others = NOBODY

  /** Milliseconds until a call has room here beside those who were before; 0 when it has. */
  const waitHere = (caller: Caller, { cost, methodClass }: Call, ahead: BudgetPlan.Units): number => {
    const now = millisOf(caller.getRef(Clock.Clock))
    window.moveTo(now)
    const room = BudgetPlan.room(plan, methodClass, cost, ahead)
    return window.has(room) ? 0 : BudgetPlan.wait(plan, window.slots(), room, now)
  }

  const moveBack = (caller: Caller, slot: number, methodClass: MethodClass, units: number) => {
    window.moveTo(millisOf(caller.getRef(Clock.Clock)))
    window.refund(slot, methodClass, units)
  }

  const grant = (slot: number, { cost, methodClass }: Call, giveBackShared?: Grant["refund"]): Grant => {
    let held = cost
    return {
      refund: (unused) =>
        Effect.withFiber((caller) => {
          const back = Math.max(0, Math.min(held, unused))
          if (back === 0) return Effect.void
          held -= back
          moveBack(caller, slot, methodClass, back)
          lines.once.lookAgain()
          lines.read.lookAgain()
          return giveBackShared === undefined ? Effect.void : giveBackShared(back)
        })
    }
  }

  const startHere = (call: Call): Effect.Effect<Grant> => {
    window.take(call.methodClass, call.cost)
    return Effect.succeed(grant(window.slot, call))
  }

  /** Starts a call that has room here if it has room in the shared window too. */
  const startShared = (ask: SharedWindow, caller: Caller, call: Call, ahead: BudgetPlan.Units) => {
    window.take(call.methodClass, call.cost)
    const { slot } = window
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(ask(call.methodClass, call.cost, ahead), (said): Effect.Effect<Grant, Late> => {
        if (said._tag === "Full") moveBack(caller, slot, call.methodClass, call.cost)
        others = said._tag === "Away" ? NOBODY : BudgetPlan.beyond(said.held, window.held)
        if (said._tag === "Full") return Effect.fail(late(said.wait))
        const granted = grant(slot, call, said._tag === "Away" ? undefined : said.refund)
        // who has left meanwhile has taken nothing
        return Effect.onInterrupt(restore(Effect.succeed(granted)), () => granted.refund(call.cost))
      })
    )
  }

  const decided = (caller: Caller, call: Call, ahead: BudgetPlan.Units, wait: number): Effect.Effect<Grant, Late> => {
    if (wait > 0) return Effect.fail(late(wait))
    return shared === undefined ? startHere(call) : startShared(shared, caller, call, ahead)
  }

  /** Who is before a call, with so much wanted in its own line: reads leave room for the actions that wait. */
  const aheadOf = ({ methodClass }: Call, wanted: number): BudgetPlan.Units =>
    methodClass === "once" ? { read: 0, once: wanted } : { read: wanted, once: lines.once.wanted }

  /** Tries until the call may start or would have to wait longer than it can. */
  const first = (caller: Caller, call: Call, giveUp: number, waiter: Waiter): Effect.Effect<Grant, Late> =>
    Effect.suspend(() => {
      const line = lines[call.methodClass]
      line.look()
      line.want(waiter, 0)
      const ahead = aheadOf(call, 0)
      const tried = decided(caller, call, ahead, waitHere(caller, call, ahead))
      return tried.pipe(Effect.catch((error) => {
        line.want(waiter, call.cost)
        return millisOf(caller.getRef(Clock.Clock)) + error.wait > giveUp
          ? Effect.fail(error)
          : Effect.andThen(
            line.pause(Math.min(Math.ceil(error.wait), longestPause)),
            first(caller, call, giveUp, waiter)
          )
      }))
    })

  const stand = (caller: Caller, call: Call, maxWait: number): Effect.Effect<Grant, Late> => {
    const giveUp = millisOf(caller.getRef(Clock.Clock)) + maxWait
    waits.updateUnsafe(1, caller.context)
    const { methodClass } = call
    const stood = lines[methodClass].stand(
      call.cost,
      // who could start in the last moment does
      maxWait + 1,
      (waiter) => first(caller, call, giveUp, waiter),
      (wanted) => Effect.fail(late(waitHere(caller, call, aheadOf(call, wanted))))
    )
    // reads have left room for it
    return methodClass === "once" ? Effect.ensuring(stood, Effect.sync(() => lines.read.lookAgain())) : stood
  }

  const left = (clock: Clock.Clock): BudgetPlan.Units => {
    window.moveTo(millisOf(clock))
    return BudgetPlan.left(plan, {
      read: window.held.read + others.read,
      once: window.held.once + others.once
    })
  }

  const take: UpstreamBudget["take"] = (cost, methodClass, maxWait) =>
    Effect.withFiber((caller) => {
      const call = { cost, methodClass }
      const ahead = aheadOf(call, lines[methodClass].wanted)
      const wait = waitHere(caller, call, ahead)
      // the usual case, and nothing is left that could refuse it
      if (wait === 0 && shared === undefined) return startHere(call)
      return decided(caller, call, ahead, wait).pipe(
        Effect.catchIf(({ wait }) => wait <= maxWait, () => stand(caller, call, maxWait)),
        Effect.mapError(({ wait }) => {
          refused.updateUnsafe(1, caller.context)
          return refusal(upstream, wait)
        })
      )
    })

  return { take, left }
}
