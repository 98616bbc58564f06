/**
 * The fair queue of one rate limit: a call starts if there is capacity; otherwise it waits for its turn.
 *
 * The next call to start is the call whose caller would then have the lowest use of the limit. The calls of one caller
 * start in the order of their arrival. Actions start before reads.
 */
import type * as Caller from "@trigate/domain/Caller"
import { addMillis, longAgo, millisBetween, type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
import type { QuotaExceeded, UpstreamRateLimited } from "@trigate/domain/errors/GatewayError"
import * as Operation from "@trigate/domain/operations/Operation"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Metric from "effect/Metric"
import * as Predicate from "effect/Predicate"
import type * as Upstream from "../Upstream.ts"
import type { Bounds, Pacer, Slot, Taken, Units, WindowCall } from "./RateWindow.ts"
import * as RateWindow from "./RateWindow.ts"

/** A call that requests units of a rate limit. */
export interface Ask {
  readonly upstream: Upstream.UpstreamLabel
  /** The method class. A part of the limit is reserved for actions (`once`), and actions do not wait for reads. */
  readonly class: Operation.MethodClass
  readonly cost: Operation.Cost
  readonly caller: Caller.Caller
  /** Maximum milliseconds that the call can wait. */
  readonly maxWait: number
  /** Whether the call refreshes a cached response; see `RateLimiter.IsRefresh`. */
  readonly isRefresh?: boolean | undefined
}

/** The units that a call has taken from a rate limit. */
export interface Permits {
  /** Refunds unused units of the call, at most all of its units. */
  readonly refund: (unused: number) => void
}

/** Returns the units that a call takes before it is sent: weight for the official API, request units for a node. */
export const worstCost = (upstream: Upstream.UpstreamLabel, call: { readonly cost: Operation.Cost }): number =>
  upstream === "trading-api" ? Operation.worstWeight(call) : call.cost.requestUnits

/**
 * Counts a call in the window that replicas share, if the window has capacity for the call and for the units `ahead`,
 * which are the units of the calls before this call in the queue.
 *
 * `own` returns the use of this process by slot, except for calls whose request to the shared window is pending. If the
 * shared window has lost this use, it is restored from `own`.
 */
export type SharedWindow = (
  call: WindowCall,
  ahead: Units,
  callers: number,
  own: () => ReadonlyArray<Slot>
) => Effect.Effect<SharedAnswer | Alone>

/**
 * The result of counting a call while the shared window is unreachable: the replica is allowed only a part of the
 * limit, such as one half.
 */
export interface Alone {
  readonly part: number
  /**
   * Records a call that starts while the shared window is unreachable, so that the call can be reported to the window
   * later.
   */
  readonly started: (call: WindowCall) => void
}

/** The result of counting a call in the rate window that replicas share. */
export interface SharedAnswer extends Permits, Full {
  /** The current use of the shared window. */
  readonly held: Units
  /**
   * The part of the limit that this replica is allowed to use, such as 0.5, if the shared window does not know the use
   * of all other replicas; otherwise `undefined`.
   */
  readonly part?: number
  /** The units that refreshes of cached responses are allowed to use now, if a `Pacer` limits refreshes. */
  readonly level?: number
}

/** How long a call has to wait for capacity, and whether its caller stays within its share of the limit. */
export interface Full {
  /** Milliseconds to wait; 0 if the call can start. */
  readonly wait: number
  /** Whether the caller stays within its share of the limit if the call starts. */
  readonly isWithinShare: boolean
}

interface Waiter extends WindowCall {
  /** The units that the call requests; 0 while the call tries to take them. */
  wants: number
  readonly changed: Latch.Latch
}

/** The waiting calls of one caller and method class, in order of arrival. */
interface WaitingCall {
  readonly waiters: Set<Waiter>
  /** The sum of the units that the waiting calls request. */
  wants: number
}

/** The waiting calls of one method class, by caller. */
type Queue = Map<string | undefined, WaitingCall>

// The next waiting call checks for capacity again after this many milliseconds, because this process is not notified
// when other replicas refund units or when units expire.
const recheckAfter = 250

/** A rate limit: the window that counts its use, and the errors and metrics of waiting and refused calls. */
export interface Limited {
  readonly bounds: Bounds
  readonly window: RateWindow.RateWindow
  readonly shared: SharedWindow | undefined
  readonly pacer?: Pacer
  readonly refusal: (full: Full) => QuotaExceeded | UpstreamRateLimited
  readonly waits: Metric.Counter<number>
  readonly refused: (full: Full) => Metric.Counter<number>
}

/** Enforces one rate limit in this process, and in the shared window, if any. */
export const makeQueue = ({ bounds, pacer, refusal, refused, shared, waits, window }: Limited) => {
  const queues: { readonly [Class in Operation.MethodClass]: Queue } = { read: new Map(), once: new Map() }
  /** The use of other replicas, as last reported by the shared window, and the time until which the report is valid. */
  let others = RateWindow.none
  let othersUntil = longAgo
  /** The use of this process at the time of that report. */
  let ownThen = RateWindow.none
  /** Units of the calls with a pending request to the shared window. */
  const asking: Units = { read: 0, once: 0 }

  const fullFor = (call: WindowCall, ahead: Units): Full => ({
    wait: window.waitOf(bounds, call, ahead),
    isWithinShare: window.isWithinShare(bounds, call)
  })

  const want = (waiter: Waiter, units: number) => {
    const waiting = queues[waiter.class].get(waiter.caller)
    if (waiting !== undefined) waiting.wants += units - waiter.wants
    waiter.wants = units
  }

  const wantedBy = (methodClass: Operation.MethodClass, caller: string | undefined): number =>
    queues[methodClass].get(caller)?.wants ?? 0

  /**
   * Returns a caller's use of the limit; the calls of callers with the lowest use start first. For reads, includes the
   * units of the caller's waiting actions, because actions start before reads.
   */
  const heldBefore = (methodClass: Operation.MethodClass, caller: string | undefined): number =>
    window.heldBy(caller) + (methodClass === "read" ? wantedBy("once", caller) : 0)

  /**
   * Returns the function that converts the units of a call to the units that determine its place in the queue. A call
   * that costs more than a caller's share counts as one share. A call of the program itself starts before others.
   */
  const counted = () => {
    const { limit } = RateWindow.callerShare(bounds, Math.max(1, window.callers))
    return ({ caller }: Pick<WindowCall, "caller">, units: number) => caller === undefined ? 0 : Math.min(units, limit)
  }

  /** Returns the next call of a method class to start: the call whose caller would then have the lowest use. */
  const nextWaiter = (methodClass: Operation.MethodClass): Waiter | undefined => {
    const count = counted()
    let next: Waiter | undefined
    let least = Number.POSITIVE_INFINITY
    for (const [caller, { waiters: [first] }] of queues[methodClass]) {
      if (first === undefined) continue
      const held = heldBefore(methodClass, caller) + count(first, first.cost)
      if (held >= least) continue
      next = first
      least = held
    }
    return next
  }

  /**
   * Returns the total units of the other callers' waiting calls that start before a given call. `caller` is the caller
   * of the given call, and `held` is that caller's use, including the given call.
   */
  const aheadOfOthers = (methodClass: Operation.MethodClass, caller: string | undefined, held: number): number => {
    const count = counted()
    let ahead = 0
    // ties are resolved by the order of the callers' arrival
    let cameBefore = true
    for (const [other, { waiters }] of queues[methodClass]) {
      if (other === caller) {
        cameBefore = false
        continue
      }
      let theirs = heldBefore(methodClass, other)
      for (const waiter of waiters) {
        const after = theirs + count(waiter, waiter.wants)
        if (cameBefore ? after > held : after >= held) break
        theirs += waiter.wants
        ahead += waiter.wants
      }
    }
    return ahead
  }

  /**
   * Returns the units of the waiting calls that start before `call`. `waiter` is the queue entry of `call`, if it has
   * one.
   */
  const unitsAhead = (call: WindowCall, waiter?: Waiter): Units => {
    const { caller, class: methodClass } = call
    if (queues.once.size === 0 && queues.read.size === 0) return RateWindow.none
    let own = 0
    if (waiter === undefined) own = wantedBy(methodClass, caller)
    else {
      for (const other of queues[methodClass].get(caller)?.waiters ?? []) {
        if (other === waiter) break
        own += other.wants
      }
    }
    const held = heldBefore(methodClass, caller) + own + counted()(call, call.cost)
    const once = aheadOfOthers("once", caller, held)
    return methodClass === "once"
      ? { read: 0, once: own + once }
      : { read: own + aheadOfOthers("read", caller, held), once: wantedBy("once", caller) + once }
  }

  const wakeNext = () => {
    if (queues.once.size === 0 && queues.read.size === 0) return
    nextWaiter("once")?.changed.openUnsafe()
    nextWaiter("read")?.changed.openUnsafe()
  }

  const take = (call: WindowCall): Taken => {
    pacer?.use(call.cost, window.now)
    return window.take(call)
  }

  const giveBack = (taken: Taken, call: WindowCall, units: number) => {
    pacer?.use(-units, window.now)
    window.refund(taken, call, units)
  }

  const permits = (taken: Taken, call: WindowCall, refundShared?: Permits["refund"]): Permits => {
    let held = call.cost
    const refund = (unused: number) => {
      const units = Math.max(0, Math.min(held, unused))
      if (units === 0) return
      held -= units
      giveBack(taken, call, units)
      refundShared?.(units)
      wakeNext()
    }
    return { refund }
  }

  const toWindowCall = ({ caller, class: methodClass, cost, isRefresh = false, upstream }: Ask): WindowCall => ({
    class: methodClass,
    cost: worstCost(upstream, { cost }),
    // refreshes are not counted by caller, because the pacer divides them between callers
    caller: isRefresh && pacer !== undefined ? undefined : window.nameOf(caller),
    isRefresh
  })

  const tryTake = (ask: Ask, clock: Clock.Clock): Permits | undefined => {
    if (shared !== undefined) return undefined
    window.moveTo(monotonicTime(clock))
    const call = toWindowCall(ask)
    return window.fits(bounds, call, unitsAhead(call)) ? permits(take(call), call) : undefined
  }

  /**
   * Takes the units of a call if there is capacity for the call and for the units `ahead` of the calls before it in the
   * queue. Otherwise fails with the time to wait.
   */
  const attempt = (call: WindowCall, ahead: Units, clock: Clock.Clock): Effect.Effect<Permits, Full> =>
    Effect.uninterruptibleMask((restore) => {
      window.moveTo(monotonicTime(clock))
      if (!window.fits(bounds, call, ahead)) return Effect.fail(fullFor(call, ahead))
      const taken = take(call)
      if (shared === undefined) return Effect.succeed(permits(taken, call))
      asking[call.class] += call.cost
      const asked = Effect.ensuring(
        shared(call, ahead, window.callers, settled),
        Effect.sync(() => asking[call.class] -= call.cost)
      )
      return Effect.flatMap(asked, (answer): Effect.Effect<Permits, Full> => {
        const now = monotonicTime(clock)
        const given = "started" in answer
          ? startAlone(answer, taken, call, ahead, now)
          : startShared(answer, taken, call, ahead, now)
        // if the caller disconnected during the request to the shared window, the units are refunded
        return Effect.flatMap(
          given,
          (own) => Effect.onInterrupt(restore(Effect.succeed(own)), () => Effect.sync(() => own.refund(call.cost)))
        )
      })
    })

  /**
   * Refunds the units of a call, because the use of other replicas is unknown. Takes them again only if they fit into
   * this process's part of the limit.
   */
  const withinPart = (
    part: number,
    taken: Taken,
    call: WindowCall,
    ahead: Units,
    now: MonotonicTime
  ): Effect.Effect<Taken, Full> => {
    if (now >= othersUntil) others = ownThen = RateWindow.none
    const own = RateWindow.partBounds(bounds, part, ownThen, others)
    window.moveTo(now)
    giveBack(taken, call, call.cost)
    return window.fits(own, call, ahead)
      ? Effect.succeed(take(call))
      : Effect.fail({ wait: window.waitOf(own, call, ahead), isWithinShare: window.isWithinShare(own, call) })
  }

  const startAlone = (
    alone: Alone,
    taken: Taken,
    call: WindowCall,
    ahead: Units,
    now: MonotonicTime
  ): Effect.Effect<Permits, Full> =>
    Effect.map(withinPart(alone.part, taken, call, ahead, now), (again) => {
      alone.started(call)
      return permits(again, call)
    })

  const startShared = (
    answer: SharedAnswer,
    taken: Taken,
    call: WindowCall,
    ahead: Units,
    now: MonotonicTime
  ): Effect.Effect<Permits, Full> => {
    if (answer.level !== undefined) pacer?.set(answer.level, now)
    if (answer.wait > 0) {
      window.refund(taken, call, call.cost)
      if (answer.part === undefined) hear(answer.held, now)
      return Effect.fail(answer)
    }
    if (answer.part !== undefined) {
      return withinPart(answer.part, taken, call, ahead, now).pipe(
        Effect.map((again) => permits(again, call, answer.refund)),
        Effect.tapError(() => Effect.sync(() => answer.refund(call.cost)))
      )
    }
    hear(answer.held, now)
    return Effect.succeed(permits(taken, call, answer.refund))
  }

  const hear = (held: Units, now: MonotonicTime) => {
    others = notOwn(held)
    ownThen = { ...window.all.held }
    othersUntil = addMillis(now, (bounds.slots + 1) * bounds.width)
  }

  /**
   * Returns this process's use by slot. Excludes the calls whose request to the shared window is pending; these are the
   * newest calls.
   */
  const settled = (): ReadonlyArray<Slot> => {
    const rest = { ...asking }
    return window.all.slots.toReversed().map(({ index, ...units }) => {
      const without = (methodClass: Operation.MethodClass): number => {
        const asked = Math.min(rest[methodClass], units[methodClass])
        rest[methodClass] -= asked
        return units[methodClass] - asked
      }
      return { index, read: without("read"), once: without("once") }
    })
  }

  const notOwn = (held: Units): Units => ({
    read: Math.max(0, held.read - window.all.held.read),
    once: Math.max(0, held.once - window.all.held.once)
  })

  /** Waits until the call is next in the queue, and then until there is capacity, at most until the time `giveUp`. */
  const waitForTurn = (
    waiter: Waiter,
    giveUp: MonotonicTime,
    clock: Clock.Clock,
    wasNext: boolean
  ): Effect.Effect<Permits, Full> =>
    Effect.suspend(() => {
      const again = (pause: number, isNext: boolean) =>
        Effect.andThen(
          Effect.timeoutOption(waiter.changed.await, Math.ceil(pause)),
          waitForTurn(waiter, giveUp, clock, isNext)
        )
      waiter.changed.closeUnsafe()
      const now = monotonicTime(clock)
      window.moveTo(now)
      const next = nextWaiter(waiter.class)
      if (waiter !== next) {
        // another call has become the next call; it may still be asleep, so it is woken to check for capacity
        if (wasNext) next?.changed.openUnsafe()
        // waits one millisecond past `giveUp`: if the calls ahead start in the last millisecond, this call can still
        // start
        return now <= giveUp
          ? again(millisBetween(now, giveUp) + 1, false)
          : Effect.fail(fullFor(waiter, unitsAhead(waiter, waiter)))
      }
      want(waiter, 0)
      return attempt(waiter, unitsAhead(waiter, waiter), clock).pipe(Effect.catch((full) => {
        want(waiter, waiter.cost)
        if (full.wait > millisBetween(monotonicTime(clock), giveUp)) return Effect.fail(full)
        const isAlone = shared === undefined && queues[waiter.class].size === 1
        return again(isAlone ? full.wait : Math.min(full.wait, recheckAfter), true)
      }))
    })

  const enqueue = (call: WindowCall, maxWait: number, clock: Clock.Clock) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const waiter: Waiter = { ...call, wants: 0, changed: Latch.makeUnsafe(false) }
        const queue = queues[call.class]
        const waiting = queue.get(call.caller) ?? { waiters: new Set(), wants: 0 }
        queue.set(call.caller, waiting)
        waiting.waiters.add(waiter)
        want(waiter, call.cost)
        return waiter
      }),
      (waiter) => waitForTurn(waiter, addMillis(monotonicTime(clock), maxWait), clock, false),
      (waiter) =>
        Effect.suspend(() => {
          want(waiter, 0)
          const waiters = queues[call.class].get(call.caller)?.waiters
          waiters?.delete(waiter)
          if (waiters?.size === 0) queues[call.class].delete(call.caller)
          // wakes the next calls asynchronously, because the wake-ups of a thousand calls would otherwise nest
          const firsts = [nextWaiter("once"), nextWaiter("read")].filter(Predicate.isNotUndefined)
          return Effect.forEach(firsts, ({ changed }) => changed.open, { discard: true })
        })
    )

  const takeOrWait = (ask: Ask): Effect.Effect<Permits, QuotaExceeded | UpstreamRateLimited> =>
    Effect.withFiber((fiber) => {
      const clock = fiber.getRef(Clock.Clock)
      const taken = tryTake(ask, clock)
      if (taken !== undefined) return Effect.succeed(taken)
      window.moveTo(monotonicTime(clock))
      const call = toWindowCall(ask)
      const first = attempt(call, unitsAhead(call), clock)
      if (pacer !== undefined && call.isRefresh === true) {
        return Effect.mapError(first, (full) => {
          pacer.pause(monotonicTime(clock))
          return refusal(full)
        })
      }
      return first.pipe(
        Effect.catchIf(({ wait }) => wait <= ask.maxWait, () => {
          waits.updateUnsafe(1, fiber.context)
          return enqueue(call, ask.maxWait, clock)
        }),
        Effect.mapError((full) => {
          refused(full).updateUnsafe(1, fiber.context)
          return refusal(full)
        })
      )
    })

  const available = (clock: Clock.Clock): number => {
    window.moveTo(monotonicTime(clock))
    return Math.max(0, bounds.limit - window.all.held.read - window.all.held.once - others.read - others.once)
  }
  const availableToReads = (clock: Clock.Clock): number => {
    const all = available(clock)
    return Math.max(0, Math.min(all, bounds.readLimit - window.all.held.read - others.read))
  }
  return { tryTake, take: takeOrWait, available, availableToReads }
}
