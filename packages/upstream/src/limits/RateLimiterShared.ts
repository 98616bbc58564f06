/**
 * `RateLimiter` whose limits are shared by all processes that use the same store.
 *
 * This module contains the policy: when a process may use the limit alone, which use it reports, and which use it writes
 * into a store that has lost its data. A {@link Driver} counts, and each of its operations is atomic. Each process also counts
 * in its own window.
 *
 * While the store is unreachable, each process uses at most its part of the limit (one half with two processes). It also
 * uses at most the units that other processes had left when the store last responded. The metric
 * `trigate_shared_state_degraded` and the log report the outage. When the store is reachable again, the process writes
 * the calls that it started during the outage, or its complete use if the store has lost it.
 */
import {
  addMillis,
  longAgo,
  millisBetween,
  monotonicMillis,
  type MonotonicTime,
  monotonicTime
} from "@trigate/domain/encoding/Encoding"
import type { MethodClass } from "@trigate/domain/operations/Operation"
import type * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as SharedState from "../SharedState.ts"
import * as RateLimiter from "./RateLimiter.ts"
import * as RateWindow from "./RateWindow.ts"

/** The limits, and the timeout of the store. */
export interface Options extends RateLimiter.Limits {
  /** Timeout of one operation in the store. Default: 250 milliseconds. */
  readonly deadline?: Duration.Input
  /** The windows of this process, for a limiter that replaces an earlier one. Default: new windows. */
  readonly windows?: RateLimiter.Windows["Service"]
}

/** A limit whose use the store counts. Times are in milliseconds. */
export interface SharedLimit {
  /** The name of the limit: an upstream, or the quota of a caller. */
  readonly name: string
  readonly bounds: RateWindow.Bounds
  /** The slots in which the use of one caller is counted. */
  readonly ofCaller: Pick<RateWindow.Bounds, "slots" | "width">
  /** Whether the limit provides units for refreshes of cached responses. */
  readonly isPaced: boolean
  /** The units per millisecond that the limit provides for refreshes, and the maximum burst in units; 0 if not paced. */
  readonly rate: number
  readonly burst: number
  /** The time for which the store retains the use of the limit, and the entries of processes. */
  readonly timeToLive: number
  /** The time for which the store retains the use of callers. */
  readonly timeToLiveOfCallers: number
}

/** Describes a limit for the store. */
export const sharedLimit = (name: string, bounds: RateWindow.Bounds, isPaced: boolean): SharedLimit => {
  const ofCaller = RateWindow.callerSlots(bounds)
  return {
    name,
    bounds,
    ofCaller,
    isPaced,
    ...(isPaced ? RateWindow.refreshPace(bounds) : { burst: 0, rate: 0 }),
    timeToLive: 2 * (bounds.slots + 1) * bounds.width,
    timeToLiveOfCallers: 3 * (ofCaller.slots + 1) * ofCaller.width
  }
}

/** Units of one method class that are counted in a slot of the store. */
export interface SlotUnits {
  readonly slot: number
  readonly class: MethodClass
  readonly units: number
}

/** A call to count. */
export interface Taking {
  /** The identifier of the process. */
  readonly id: string
  /** The current time, in milliseconds, by the wall clock of the process. */
  readonly now: number
  readonly call: RateWindow.WindowCall
  /** The slot of the window, and of the caller's window, in which the call is counted. */
  readonly slot: number
  readonly slotOfCaller: number
  /** See {@link RateWindow.maxReads} and {@link RateWindow.maxUnits}. */
  readonly maxReads: number
  readonly maxUnits: number
  /** The number of active callers that the process knows. */
  readonly callers: number
  /** The processes that have reported since this time, by the wall clock, count as running. */
  readonly since: number
}

/** Describes a call for the counters of a limit; `ahead` are the units of the calls that start before it. */
export const makeTaking = (
  { bounds, ofCaller }: Pick<SharedLimit, "bounds" | "ofCaller">,
  { ahead, ...taking }: Pick<Taking, "id" | "now" | "call" | "callers" | "since"> & { readonly ahead: RateWindow.Units }
): Taking => ({
  ...taking,
  slot: RateWindow.slotAt(bounds, taking.now),
  slotOfCaller: RateWindow.slotAt(ofCaller, taking.now),
  maxReads: RateWindow.maxReads(bounds, taking.call, ahead),
  maxUnits: RateWindow.maxUnits(bounds, taking.call, ahead)
})

/** The result of counting a call. */
export interface Taken {
  /**
   * - `taken`: the call was counted.
   * - `full`: there is no capacity.
   * - `paced`: the call is a refresh, and no units are available to refreshes.
   * - `unknown`: the store does not know the process, which has to join first.
   */
  readonly outcome: "taken" | "full" | "paced" | "unknown"
  /** The use of the window. */
  readonly held: RateWindow.Units
  /** The slots of the window, in order of time. Empty unless there is no capacity. */
  readonly slots: ReadonlyArray<RateWindow.Slot>
  /** Whether the caller stays within its share of the limit if the call starts. */
  readonly isWithinShare: boolean
  /** The maximum use by the caller, and the slots of the caller's window. */
  readonly cap: RateWindow.Limit
  readonly ofCaller: ReadonlyArray<RateWindow.Slot>
  /** The units that refreshes are allowed to use now. */
  readonly level: number
  /** The number of processes that use the limit and have reported since {@link Taking.since}. */
  readonly replicas: number
}

/** The use of one slot by a process. */
export interface OwnUse extends SlotUnits {
  /** The units of calls that started while the store was unreachable. */
  readonly alone: number
  /** The units since the last report of the process. */
  readonly sinceReport: number
  /** The units since shortly before the last report, in which another process may have reported. */
  readonly lately: number
}

/** A process that begins to use a limit, or that writes its use from a time when the store was unreachable. */
export interface Joining {
  readonly id: string
  readonly now: number
  /** Milliseconds for which no other process writes the use of all. */
  readonly lasts: number
  /** The time of the last report of this process, by the system clock, less the difference that clocks may have. */
  readonly since: number
  readonly own: ReadonlyArray<OwnUse>
  /** The use of all processes at the last report of this process. */
  readonly all: ReadonlyArray<SlotUnits>
}

/** Units to refund, and where they were counted: in the window of the limit, or in the window of a caller. */
export interface Refund extends SlotUnits {
  readonly caller: string | undefined
}

/** The counters of one limit in the store. Each operation is atomic. */
export interface Counters {
  /**
   * Counts a call if there is capacity.
   *
   * An action for which there is no capacity is recorded for a second: until it has started or tries again, the reads of
   * all processes leave capacity for it. A slot in the future is from a process whose clock is ahead: it counts, unless it
   * is too far ahead.
   */
  readonly take: (taking: Taking) => Effect.Effect<Taken, SharedState.StoreFault>
  /**
   * Registers a process, and writes its use of the limit. If the store does not know the process, the store has lost its
   * data, or the process has just started. The first process that reported before the loss then also writes the use of
   * all processes, as it was at its last report: processes that have ended since then cannot write theirs. A process that
   * joins after that writes only its use since that report, because the rest is part of the use of all. If an earlier
   * version wrote the use of all, the process writes its use since shortly before its own report.
   *
   * Returns whether the store knew the process.
   */
  readonly join: (joining: Joining) => Effect.Effect<boolean, SharedState.StoreFault>
  /**
   * Reports that a process is running. Returns the use of all processes; `undefined` if the store does not know the
   * process.
   */
  readonly report: (
    id: string,
    now: number
  ) => Effect.Effect<ReadonlyArray<SlotUnits> | undefined, SharedState.StoreFault>
  /** Refunds at most the units that the store has: the others have left the window, or the store has lost them. */
  readonly refund: (refund: Refund) => Effect.Effect<void, SharedState.StoreFault>
  /** Refunds units to the allowance for refreshes of cached responses. */
  readonly refundPace: (units: number) => Effect.Effect<void, SharedState.StoreFault>
}

/** The store. */
export interface Driver {
  /** The clock of the store, in milliseconds since 1970. */
  readonly time: Effect.Effect<number, SharedState.StoreFault>
  /** Returns the counters of a limit. */
  readonly counters: (limit: SharedLimit) => Counters
}

/** Milliseconds after which a read that waits for an action of another process tries again. */
const recheckAfter = 250

/** Milliseconds between two reports of a process, also if it starts no calls. */
const reportEvery = 2000

/** Milliseconds by which the times of two processes may differ. */
const clockMargin = 1000

/** Milliseconds by which the times of a process and of the store may differ. */
const storeClockMargin = 250

/**
 * Makes the clock by which a process numbers the slots of the store. It is the store's clock, so that a wrong system clock
 * does not matter; until the first comparison, it is the system clock.
 */
const makeSlotClock = (time: Driver["time"]) => {
  /** Milliseconds by which this clock is ahead of the monotonic clock. */
  let offset: number | undefined
  return {
    isCompared: (): boolean => offset !== undefined,
    now: (clock: Clock.Clock): number =>
      offset === undefined
        ? clock.currentTimeMillisUnsafe()
        : Math.round(monotonicMillis(monotonicTime(clock)) + offset),
    compare: Effect.clockWith((clock) => {
      const start = monotonicTime(clock)
      return Effect.map(time, (storeTime) => {
        const end = monotonicTime(clock)
        // the store read its clock at an unknown time in between
        if (millisBetween(start, end) > storeClockMargin) return
        const known = offset ?? clock.currentTimeMillisUnsafe() - monotonicMillis(end)
        const found = storeTime - monotonicMillis(start)
        offset = Math.abs(found - known) > storeClockMargin ? found : known
      })
    })
  }
}

/** Milliseconds after its last report for which a process counts as running. */
export const runningFor = 5 * reportEvery

/** The use of the window when the store last counted a call of this process. */
interface CountedUse {
  readonly held: RateWindow.Units
  readonly at: MonotonicTime
  /** The same time by the clock of the slots. */
  readonly wall: number
}

/** The use of all processes at the last report of this process, and its own use shortly before. */
interface ReportedUse {
  readonly at: MonotonicTime
  /** The same time by the clock of the slots. */
  readonly wall: number
  readonly own: ReadonlyMap<number, RateWindow.Slot>
  readonly all: ReadonlyArray<SlotUnits>
}

const sumReported = (bounds: RateWindow.Bounds, { all, at, own, wall }: ReportedUse): RateLimiter.ReportedUnits => {
  const sums = { at, held: { read: 0, once: 0 }, own: { read: 0, once: 0 } }
  const oldest = RateWindow.slotAt(bounds, wall) - bounds.slots
  for (const { class: methodClass, slot, units } of all) if (slot >= oldest) sums.held[methodClass] += units
  for (const { once, read } of own.values()) {
    sums.own.once += once
    sums.own.read += read
  }
  return sums
}

const methodClasses = ["read", "once"] as const

/**
 * Returns the use of all processes that the store lost: that of the last report, and what others have used since then, up
 * to the last call of this process that the store counted.
 */
const findLost = (
  bounds: RateWindow.Bounds,
  { all, wall }: ReportedUse,
  counted: CountedUse | undefined,
  own: ReadonlyArray<OwnUse>
): Pick<Joining, "all" | "since"> => {
  const slot = RateWindow.slotAt(bounds, counted?.wall ?? wall)
  const later = methodClasses.flatMap((methodClass): ReadonlyArray<SlotUnits> => {
    let units = counted?.held[methodClass] ?? 0
    for (const use of all) {
      if (use.class === methodClass && use.slot >= slot - bounds.slots) units -= use.units
    }
    for (const use of own) if (use.class === methodClass) units -= use.sinceReport - use.alone
    return units > 0 ? [{ slot, class: methodClass, units }] : []
  })
  return { all: [...all, ...later], since: Math.max(0, Math.floor((counted?.wall ?? wall) - clockMargin)) }
}

/** Makes a rate limiter whose limits are shared through a store. */
export const make = Effect.fnUntraced(function*({ deadline, windows, ...limits }: Options, driver: Driver) {
  const state = yield* SharedState.make({ use: "rate-limits", ...(deadline === undefined ? {} : { deadline }) })
  const slotClock = makeSlotClock(driver.time)
  const id = (yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)).toString(36)
  // if the queue is full, a refund is lost: the shared limit is then too low until the window has passed, but never too
  // high
  const refunds = yield* Queue.dropping<Effect.Effect<void>>(4096)
  yield* Effect.forkScoped(Effect.forever(Effect.flatten(Queue.take(refunds))))

  // only calls determine whether the store counts as reachable
  const inTime = <A, E>(step: Effect.Effect<A, E>) => Effect.timeout(step, "1 second")
  const compareClocks = Effect.suspend(() =>
    slotClock.isCompared() ? Effect.ignore(inTime(slotClock.compare)) : Effect.void
  )

  /** The reports of this process to the windows that it has used. */
  const reports = new Set<Effect.Effect<void>>()
  let isEnding = false
  // a process that ends writes its last use
  yield* Effect.addFinalizer(() => {
    isEnding = true
    return Effect.forEach(reports, (report) => report, { concurrency: "unbounded", discard: true })
  })
  yield* Effect.forkScoped(Effect.forever(
    Effect.andThen(
      Effect.sleep(reportEvery),
      Effect.suspend(() => Effect.forEach([compareClocks, ...reports], (report) => report, { concurrency: 10 }))
    )
  ))

  const share = (name: string, bounds: RateWindow.Bounds, isPaced: boolean): RateLimiter.SharedWindow => {
    const limit = sharedLimit(name, bounds, isPaced)
    const { ofCaller, rate, timeToLive } = limit
    const lasts = (bounds.slots + 1) * bounds.width
    const counters = driver.counters(limit)
    let replicas = 1
    let isKnown = false
    /**
     * The time until which the store may lack units of other processes. Set when the store has lost this process's
     * entry, because it may then have lost other entries too, and while the store is unreachable, because other processes
     * then start calls that they write later.
     */
    let incompleteUntil = longAgo
    /** The time at which the store was last unreachable. */
    let unreachableAt = longAgo
    /**
     * The units of calls that started while the store was unreachable, and that are not yet written to it. They are
     * grouped by slot of this process's window.
     */
    let alone = new Map<number, RateWindow.Slot>()
    let reported: ReportedUse | undefined
    let counted: CountedUse | undefined
    let latestOwn: (() => ReadonlyArray<RateWindow.Slot>) | undefined
    let usedAt = longAgo

    const noteUnreachable = (clock: Clock.Clock): void => {
      unreachableAt = monotonicTime(clock)
      incompleteUntil = addMillis(unreachableAt, lasts)
    }

    const addAlone = ({ index, once, read }: RateWindow.Slot): void => {
      const slot = alone.get(index) ?? { index, read: 0, once: 0 }
      alone.set(index, { index, read: slot.read + read, once: slot.once + once })
    }

    const started = (clock: Clock.Clock) => (call: RateWindow.WindowCall): void => {
      const index = RateWindow.slotAt(bounds, monotonicMillis(monotonicTime(clock)))
      addAlone({ index, read: 0, once: 0, [call.class]: call.cost })
      for (const oldest of alone.keys()) if (oldest < index - bounds.slots) alone.delete(oldest)
    }

    const join = (own: () => ReadonlyArray<RateWindow.Slot>) =>
      Effect.clockWith((clock) => {
        const written = alone
        alone = new Map()
        const now = slotClock.now(clock)
        // the store numbers the slots by its clock; a slot of this process that overlaps two of them counts in the later one
        const shift = Math.ceil((now - monotonicMillis(monotonicTime(clock))) / bounds.width)
        const { at = longAgo, own: before } = reported ?? {}
        const slots = own().flatMap((slot) =>
          methodClasses.map((methodClass): OwnUse => ({
            slot: slot.index + shift,
            class: methodClass,
            units: slot[methodClass],
            // refunded units are not written
            alone: Math.min(slot[methodClass], written.get(slot.index)?.[methodClass] ?? 0),
            sinceReport: Math.max(0, slot[methodClass] - (before?.get(slot.index)?.[methodClass] ?? 0)),
            lately: (slot.index + 1) * bounds.width > monotonicMillis(at) - 2 * reportEvery ? slot[methodClass] : 0
          }))
        )
        const later = counted !== undefined && counted.at >= at ? counted : undefined
        const lost = reported === undefined ? { all: [], since: 0 } : findLost(bounds, reported, later, slots)
        return counters.join({ id, now, lasts, own: slots, ...lost })
          .pipe(
            Effect.tap((wasKnown) =>
              Effect.sync(() => {
                // the store has lost that use
                if (!wasKnown) counted = undefined
                if (!wasKnown && isKnown) incompleteUntil = addMillis(monotonicTime(clock), lasts)
                isKnown = true
              })
            ),
            // also if the time of the operation is over: units that were written nevertheless count twice, which is safe
            Effect.onExit((exit) =>
              Exit.isSuccess(exit) ? Effect.void : Effect.sync(() => {
                for (const slot of written.values()) addAlone(slot)
              })
            )
          )
      })

    const report = Effect.clockWith((clock) => {
      const own = latestOwn
      const at = monotonicTime(clock)
      if (own === undefined || !isKnown || millisBetween(usedAt, at) > timeToLive) return Effect.void
      // others count a process that reports as one whose later calls the store counts
      if (!isEnding && state.isPaused(at)) return Effect.void
      const written = <A, E>(step: Effect.Effect<A, E>) =>
        Effect.match(inTime(step), { onFailure: () => noteUnreachable(clock), onSuccess: () => {} })
      // the units of an outage are written also if no call follows: other processes need to know them
      if (alone.size > 0) return written(join(own))
      const before = new Map(own().map((slot) => [slot.index, slot]))
      const wall = slotClock.now(clock)
      const reporting = Effect.flatMap(counters.report(id, wall), (all) => {
        if (all === undefined) return Effect.asVoid(join(own))
        reported = { at, wall, own: before, all }
        return Effect.void
      })
      return written(reporting)
    })
    reports.add(report)

    const takeShared = (...[call, ahead, callers, own]: Parameters<RateLimiter.SharedWindow>) =>
      Effect.clockWith((clock) => {
        const now = slotClock.now(clock)
        // a process that has not reported since the store was unreachable may still have to write units
        const reportedFor = Math.min(runningFor, millisBetween(unreachableAt, monotonicTime(clock)) - clockMargin)
        const taking = makeTaking(limit, { id, now, call, callers, ahead, since: Math.floor(now - reportedFor) })
        const { slot, slotOfCaller } = taking
        const later = (refunding: Effect.Effect<void, SharedState.StoreFault>) =>
          Queue.offerUnsafe(refunds, state.orElse(refunding, Effect.void))
        const refund = (units: number) => {
          later(counters.refund({ slot, class: call.class, caller: undefined, units }))
          if (isPaced) later(counters.refundPace(units))
          if (call.caller === undefined) return
          later(counters.refund({ slot: slotOfCaller, class: call.class, caller: call.caller, units }))
        }
        const taken = counters.take(taking)
        return Effect.andThen(alone.size === 0 ? Effect.void : join(own), taken).pipe(
          Effect.filterOrElse(({ outcome }) => outcome !== "unknown", () => Effect.andThen(join(own), taken)),
          Effect.map((found): RateLimiter.SharedPermits => {
            const at = monotonicTime(clock)
            const isComplete = found.replicas >= replicas || at >= incompleteUntil
            if (found.replicas >= replicas || (isComplete && reportedFor === runningFor)) replicas = found.replicas
            if (isComplete) counted = { at, wall: now, held: found.held }
            const use = {
              held: found.held,
              level: found.level,
              refund,
              isWithinShare: true,
              ...(isComplete ? {} : { part: 1 / replicas })
            }
            if (found.outcome === "taken") return { ...use, wait: 0 }
            if (found.outcome === "paced") return { ...use, wait: 1 - found.level / rate }
            const wait = RateWindow.waitTime(bounds, found.slots, call, ahead, now)
            const ownWait = call.caller === undefined
              ? 0
              : RateWindow.waitTime({ ...ofCaller, ...found.cap }, found.ofCaller, call, RateWindow.none, now)
            // a read for which there is capacity waits for an action of another process
            return { ...use, wait: Math.max(wait, ownWait) || recheckAfter, isWithinShare: found.isWithinShare }
          })
        )
      })

    return (call, ahead, callers, own) =>
      Effect.clockWith((clock) => {
        latestOwn = own
        usedAt = monotonicTime(clock)
        const compared = isKnown || slotClock.isCompared() ? Effect.void : Effect.ignore(slotClock.compare)
        return state.orElse<RateLimiter.SharedPermits | RateLimiter.Alone, never, never>(
          Effect.andThen(compared, takeShared(call, ahead, callers, own)),
          // a process that has not reached the store yet does not know whether there are other processes
          Effect.sync(() => {
            noteUnreachable(clock)
            return {
              part: 1 / (isKnown ? replicas : 2),
              started: started(clock),
              ...(reported === undefined ? {} : { reported: sumReported(bounds, reported) })
            }
          })
        )
      })
  }
  return yield* RateLimiter.make(limits, share, windows)
})
