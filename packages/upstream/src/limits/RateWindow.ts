/**
 * The use of a rate limit in a sliding window: in total, and by caller.
 *
 * Time is divided into slots. The window consists of the current slot and the `slots` slots before it.
 *
 * Callers divide three quarters of the limit into equal shares. The remaining quarter is reserved for callers within
 * their share, so that a new caller finds capacity immediately. Each caller that was active in this window or the previous
 * one has a share. Above its share, a caller is allowed to use the capacity that other callers do not use. For this
 * purpose, the use of another caller is the higher of two values: its use in this window, and its use in the previous
 * window up to the size of a share. The program itself is not a caller, and is allowed to use the whole limit.
 */
import * as Caller from "@trigate/domain/Caller"
import {
  latest,
  longAgo,
  makeMonotonicTime,
  millisBetween,
  monotonicMillis,
  type MonotonicTime,
  monotonicTime
} from "@trigate/domain/encoding/Encoding"
import type { MethodClass } from "@trigate/domain/operations/Operation"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** The maximum use of a rate window, in units. */
export interface Limit {
  /** Maximum units of all calls. */
  readonly limit: number
  /** Maximum units of reads; the remaining units are reserved for actions. */
  readonly readLimit: number
}

/** The limit of a rate window. The window has a length of `slots` times `width` milliseconds. */
export interface Bounds extends Limit {
  readonly slots: number
  readonly width: number
}

/** A number of units for each method class (reads and actions), used or requested. */
export type Units = { [Class in MethodClass]: number }

/** The units of the calls that started in a slot. */
export interface Slot extends Units {
  readonly index: number
}

/** A call with its cost in units and its caller. The caller is `undefined` for calls of the program itself. */
export interface WindowCall {
  readonly class: MethodClass
  readonly cost: number
  readonly caller: string | undefined
  /** Whether the call refreshes a cached response, and is therefore paced. Default: false. */
  readonly isRefresh?: boolean
}

/** No units. */
export const none: Units = { read: 0, once: 0 }

const sumUnits = ({ once, read }: Units): number => read + once

/**
 * Returns the bounds for `limit` units in `window` milliseconds. A limit below 1 becomes one unit in a proportionally
 * longer window. `reservedPart` is the part of the limit that is reserved for actions, such as 0.05.
 */
export const windowBounds = (limit: number, window: number, slots: number, reservedPart: number): Bounds => {
  const whole = Math.max(1, Math.floor(limit))
  const reserved = reservedPart === 0 || whole < 2 ? 0 : Math.max(1, Math.floor(whole * reservedPart))
  return { limit: whole, readLimit: whole - reserved, slots, width: Math.ceil(window / Math.min(1, limit) / slots) }
}

/**
 * Returns the number and width of the slots for the calls of one caller: a fifth as many slots, each five times as
 * wide.
 *
 * The number is low because slots are stored for each caller, and replicas read the slots of all callers for each call.
 */
export const callerSlots = ({ slots, width }: Pick<Bounds, "slots" | "width">): Pick<Bounds, "slots" | "width"> => ({
  slots: Math.ceil(slots / 5),
  width: width * 5
})

export const slotAt = ({ width }: Pick<Bounds, "width">, now: number): number => Math.floor(now / width)

/**
 * Returns the bounds of the part of a limit that a process is allowed to use while it cannot read the use of other
 * processes. `own` and `others` are the last known use of this process and of those processes: of the units that were
 * free then, this process uses its part.
 */
export const partBounds = (bounds: Bounds, part: number, own: Units, others: Units): Bounds => {
  const ofLimit = (limit: number, held: number, heldByOthers: number) =>
    Math.max(1, Math.floor(Math.min(limit * part, held + Math.max(0, limit - held - heldByOthers) * part)))
  return {
    ...bounds,
    limit: ofLimit(bounds.limit, sumUnits(own), sumUnits(others)),
    readLimit: ofLimit(bounds.readLimit, own.read, others.read)
  }
}

/**
 * Returns the maximum use of the window by reads, in units, at which a call can start. An action can start at any use
 * by reads. `ahead` are the units of the calls that start before this call.
 */
export const maxReads = ({ readLimit }: Limit, { class: methodClass, cost }: WindowCall, ahead: Units): number =>
  methodClass === "once" ? Number.MAX_SAFE_INTEGER : readLimit - ahead.read - Math.min(cost, readLimit)

/**
 * Returns the maximum total use of the window, in units, at which a call can start. `ahead` are the units of the calls
 * that start before this call. For an action, the reads in `ahead` do not count.
 */
export const maxUnits = ({ limit }: Limit, { class: methodClass, cost }: WindowCall, ahead: Units): number =>
  // a call that costs more than the limit starts if the window is empty
  limit - ahead.once - (methodClass === "once" ? 0 : ahead.read) - Math.min(cost, limit)

/**
 * Returns the milliseconds from `now` until a call can start, provided that no further call arrives; 0 if the call can
 * start now.
 *
 * `slots` are in order of time; `ahead` are the units of the calls that start before this call. Assumes that the calls
 * ahead take each unit as soon as it expires, and that the unit then counts for a whole window again.
 */
export const waitTime = (
  bounds: Bounds,
  slots: ReadonlyArray<Slot>,
  call: WindowCall,
  ahead: Units,
  now: number
): number => {
  const until = (limit: number, most: number, unitsOf: (slot: Units) => number) => {
    const held = slots.reduce((sum, slot) => sum + unitsOf(slot), 0)
    if (held <= most) return 0
    // if a call cost more than the limit, its excess units free no capacity when they expire
    const rounds = Math.max(1, Math.ceil((held - most - Math.max(0, held - limit)) / limit))
    const leaves = (slot: number) => (slot + rounds * (bounds.slots + 1)) * bounds.width - now
    let rest = held - most - (rounds - 1) * limit
    for (const slot of slots) {
      rest -= unitsOf(slot)
      if (rest <= 0) return leaves(slot.index)
    }
    return leaves(slotAt(bounds, now))
  }
  return Math.max(
    until(bounds.readLimit, maxReads(bounds, call, ahead), ({ read }) => read),
    until(bounds.limit, maxUnits(bounds, call, ahead), sumUnits)
  )
}

/** Returns the units that callers can use above their shares: three quarters of the limit. */
export const lendable = (limit: number): number => limit - Math.floor(limit / 4)

/** Returns the equal share of one caller in a rate limit; `callers` is the number of callers. */
export const equalShare = (limit: number, callers: number): number => lendable(limit) / callers

/** Returns the maximum units of one caller while the other callers use `others` units in total. */
export const shareCap = (limit: number, callers: number, others: number): number =>
  Math.max(equalShare(limit, callers), lendable(limit) - others)

/** Returns the share of each caller; `callers` is the number of callers. */
export const callerShare = ({ limit, readLimit }: Limit, callers: number): Limit => ({
  limit: equalShare(limit, callers),
  readLimit: equalShare(readLimit, callers)
})

/** Counts the calls that started in a window. Allocates one object per slot, and none per call. */
export class SlidingWindow {
  readonly #bounds: Pick<Bounds, "slots" | "width">
  #current = 0
  /** The slots of the window, in order of time. */
  readonly slots: Array<Slot> = []
  /** The total units of the slots. */
  readonly held: Units = { read: 0, once: 0 }

  constructor(bounds: Pick<Bounds, "slots" | "width">) {
    this.#bounds = bounds
  }

  /** Advances the window to a time and drops expired slots. */
  moveTo(now: number): void {
    this.#current = Math.max(this.#current, slotAt(this.#bounds, now))
    for (let oldest = this.slots[0]; oldest !== undefined && !this.#covers(oldest); oldest = this.slots[0]) {
      this.slots.shift()
      this.held.read -= oldest.read
      this.held.once -= oldest.once
    }
  }

  /** Returns whether the window has capacity for a call and for the units `ahead` of the calls that start before it. */
  fits(limit: Limit, call: WindowCall, ahead: Units): boolean {
    return this.held.read <= maxReads(limit, call, ahead) && sumUnits(this.held) <= maxUnits(limit, call, ahead)
  }

  /** Counts a call in the current slot. Returns the slot. */
  take({ class: methodClass, cost }: WindowCall): Slot {
    let slot = this.slots.at(-1)
    if (slot?.index !== this.#current) this.slots.push(slot = { index: this.#current, read: 0, once: 0 })
    slot[methodClass] += cost
    this.held[methodClass] += cost
    return slot
  }

  /** Subtracts units from the slot in which they were counted, if that slot is still in the window. */
  refund(slot: Slot, methodClass: MethodClass, units: number): void {
    if (!this.#covers(slot)) return
    slot[methodClass] -= units
    this.held[methodClass] -= units
  }

  #covers(slot: Slot): boolean {
    return slot.index >= this.#current - this.#bounds.slots
  }
}

/** The slots in which a call was counted in the two windows of its caller. */
interface OfCaller {
  readonly now: Slot
  readonly lately: Slot
}

/**
 * The use of the limit by one caller: `now` in the current window, `lately` in the current and the previous window
 * together.
 */
class CallerWindow {
  readonly now: SlidingWindow
  readonly lately: SlidingWindow
  /** The time at which the caller last requested a call. */
  seen = 0

  constructor({ slots, width }: Pick<Bounds, "slots" | "width">) {
    this.now = new SlidingWindow({ slots, width })
    this.lately = new SlidingWindow({ slots: 2 * slots + 1, width })
  }

  moveTo(now: number): void {
    this.now.moveTo(now)
    this.lately.moveTo(now)
  }

  take(call: WindowCall): OfCaller {
    return { now: this.now.take(call), lately: this.lately.take(call) }
  }

  refund({ lately, now }: OfCaller, methodClass: MethodClass, units: number): void {
    this.now.refund(now, methodClass, units)
    this.lately.refund(lately, methodClass, units)
  }
}

/** The slots in which a call was counted. */
export interface Taken {
  readonly slot: Slot
  readonly ofCaller?: OfCaller
}

/**
 * Maximum number of client addresses that are counted as separate callers; all further addresses count as one caller.
 * Callers with keys are always counted separately.
 */
export const maxAddresses = 64

const otherAddresses = "address:others"

const isKey = (name: string): boolean => name.startsWith("key:")

/** The window of one process: the use of all calls, and the use of each caller. */
export class RateWindow {
  /** Milliseconds after its last call for which a caller counts as active: two windows. */
  readonly #memory: number
  readonly #ofCaller: Pick<Bounds, "slots" | "width">
  readonly #callers = new Map<string, CallerWindow>()
  #now = 0
  readonly all: SlidingWindow

  constructor(bounds: Pick<Bounds, "slots" | "width">) {
    this.#ofCaller = callerSlots(bounds)
    this.#memory = 2 * (this.#ofCaller.slots + 1) * this.#ofCaller.width
    this.all = new SlidingWindow(bounds)
  }

  moveTo(now: MonotonicTime): void {
    this.#now = Math.max(this.#now, monotonicMillis(now))
    this.all.moveTo(this.#now)
  }

  /** The time to which the window was last advanced. */
  get now(): MonotonicTime {
    return makeMonotonicTime(this.#now)
  }

  /**
   * Returns the name under which a caller is counted, and marks the caller as active; `undefined` for the program
   * itself.
   */
  nameOf(caller: Caller.Caller): string | undefined {
    if (caller === Caller.local) return undefined
    const isToldApart = this.#callers.has(caller.id) || this.#hasRoom() || isKey(caller.id)
    const name = isToldApart ? caller.id : otherAddresses
    this.#windowOf(name).seen = this.#now
    return name
  }

  /** Returns the units that a caller has used in the current window. */
  heldBy(caller: string | undefined): number {
    return caller === undefined ? 0 : sumUnits(this.#windowOf(caller).now.held)
  }

  /** The use of every caller, by name; omits callers whose use is zero. */
  get usedByCaller(): ReadonlyMap<string, number> {
    const used = new Map<string, number>()
    for (const [name, { now }] of this.#callers) {
      now.moveTo(this.#now)
      if (sumUnits(now.held) > 0) used.set(name, sumUnits(now.held))
    }
    return used
  }

  /** The number of callers that were active in this window or the previous one. */
  get callers(): number {
    let count = 0
    for (const { seen } of this.#callers.values()) if (seen > this.#now - this.#memory) count++
    return count
  }

  /** Returns whether the caller of a call stays within its share if the call starts. */
  isWithinShare(bounds: Bounds, call: WindowCall): boolean {
    return call.caller === undefined ||
      this.#windowOf(call.caller).now.fits(callerShare(bounds, this.callers), call, none)
  }

  /** Returns whether the window has capacity for a call and for the units `ahead` of the calls that start before it. */
  fits(bounds: Bounds, call: WindowCall, ahead: Units): boolean {
    if (!this.all.fits(bounds, call, ahead)) return false
    return this.isWithinShare(bounds, call) ||
      call.caller === undefined || this.#windowOf(call.caller).now.fits(this.#capOf(bounds, call.caller), call, none)
  }

  /**
   * Returns the milliseconds until a call can start, provided that no further call arrives; 0 if the call can start
   * now.
   */
  waitOf(bounds: Bounds, call: WindowCall, ahead: Units): number {
    const wait = waitTime(bounds, this.all.slots, call, ahead, this.#now)
    if (call.caller === undefined) return wait
    const cap = { ...this.#ofCaller, ...this.#capOf(bounds, call.caller) }
    return Math.max(wait, waitTime(cap, this.#windowOf(call.caller).now.slots, call, none, this.#now))
  }

  /** Counts a call. Returns its slots. */
  take(call: WindowCall): Taken {
    const slot = this.all.take(call)
    return call.caller === undefined ? { slot } : { slot, ofCaller: this.#windowOf(call.caller).take(call) }
  }

  /** Subtracts units of a call, if those units are still in the window. */
  refund({ ofCaller, slot }: Taken, call: WindowCall, units: number): void {
    this.all.refund(slot, call.class, units)
    if (ofCaller !== undefined && call.caller !== undefined) {
      this.#windowOf(call.caller).refund(ofCaller, call.class, units)
    }
  }

  #windowOf(name: string): CallerWindow {
    let window = this.#callers.get(name)
    if (window === undefined) this.#callers.set(name, window = new CallerWindow(this.#ofCaller))
    window.moveTo(this.#now)
    return window
  }

  /**
   * Returns whether one more client address can be counted separately. First removes callers that are no longer active.
   */
  #hasRoom(): boolean {
    let addresses = 0
    for (const [name, { lately, seen }] of this.#callers) {
      lately.moveTo(this.#now)
      if (lately.slots.length === 0 && seen <= this.#now - this.#memory) this.#callers.delete(name)
      else if (!isKey(name)) addresses++
    }
    return addresses < maxAddresses
  }

  #capOf(bounds: Bounds, caller: string): Limit {
    const callers = this.callers
    const share = callerShare(bounds, callers)
    // use that belongs to no caller is the program's own
    const held = { read: this.all.held.read, all: sumUnits(this.all.held) }
    const used = { read: 0, all: 0 }
    for (const [name, window] of this.#callers) {
      window.moveTo(this.#now)
      const now = window.now.held
      const before = { read: window.lately.held.read - now.read, all: sumUnits(window.lately.held) - sumUnits(now) }
      held.read -= now.read
      held.all -= sumUnits(now)
      if (name === caller) continue
      used.read += Math.max(now.read, Math.min(share.readLimit, before.read))
      used.all += Math.max(sumUnits(now), Math.min(share.limit, before.all))
    }
    return {
      limit: shareCap(bounds.limit, callers, used.all + Math.max(0, held.all)),
      readLimit: shareCap(bounds.readLimit, callers, used.read + Math.max(0, held.read))
    }
  }
}

/** The current use of an upstream's limit, in units: in total (including the program's own calls), and by caller. */
export interface Use {
  readonly upstream: Caller.UpstreamLabel
  readonly all: number
  readonly callers: ReadonlyMap<string, number>
}

/** Returns the current use of the limits in this process. */
export const currentUses = (
  windows: ReadonlyMap<string, RateWindow>,
  clock: Clock.Clock
): ReadonlyArray<Use> => {
  const now = monotonicTime(clock)
  return Caller.upstreamLabels.flatMap((upstream) =>
    [...windows].filter(([key]) => key.startsWith(`${upstream} `)).map(([, window]) => {
      window.moveTo(now)
      return { upstream, all: window.all.held.read + window.all.held.once, callers: window.usedByCaller }
    })
  )
}

/** Makes a budget for the queries of the gateway itself that are sent before those of callers, in weight per minute. */
export const makePriorityWeight = (weight: number) => {
  let minute = 0
  let left = weight
  return {
    /** Takes the weight of a query, and returns whether it was left. */
    take: (cost: number): Effect.Effect<boolean> =>
      Effect.clockWith((clock) => {
        const now = Math.floor(monotonicMillis(monotonicTime(clock)) / 60_000)
        if (now !== minute) left = weight
        minute = now
        const isLeft = cost <= left
        if (isLeft) left -= cost
        return Effect.succeed(isLeft)
      }),
    /** Returns the weight of a query that was not sent. */
    giveBack: (cost: number): void => {
      left = Math.min(weight, left + cost)
    }
  }
}

/** A read that was served from the cache and must be repeated upstream. */
export interface Refresh {
  /** The identity of the refresh. Refreshes with equal keys are merged. */
  readonly key: string
  /** The `id` of the caller that read the stale response. */
  readonly caller: string
  /** The cost of the refresh in units. */
  readonly cost: number
  /** Starts the refresh in the background. */
  readonly start: Effect.Effect<void>
}

interface Waiting {
  refresh: Refresh
  /** The time of the last read that requested the refresh. */
  seen: MonotonicTime
  /** A sum in milliseconds. Each read that receives the cached response adds the response's age at that time. */
  waited: number
  readonly callers: Set<string>
}

/** Milliseconds after which a refresh is dropped if no further read receives the stale response. */
const FORGOTTEN_AFTER = 10_000

/** Maximum number of waiting refreshes, and of callers whose last turn is stored. */
const MOST = 10_000

/** Milliseconds for which refreshes pause after the rate limiter has refused a refresh. */
const PAUSE = 250

/** Returns the units per millisecond that a rate limit provides for refreshes, and the maximum burst in units. */
export const refreshPace = (
  { readLimit, slots, width }: Bounds
): { readonly rate: number; readonly burst: number } => ({
  rate: readLimit * 0.9 / ((slots + 1) * width),
  burst: readLimit * 0.08
})

/**
 * The pacer of one limit, for the refreshes of cached responses.
 *
 * While all calls use the limit more slowly than it refills, a read that needs an upstream request is sent immediately.
 * Otherwise, reads receive the cached response, and the refreshes of cached responses take turns. The next turn goes to
 * the caller that was served longest ago. Of that caller's refreshes, the refresh with the highest score starts first.
 * Each read that receives a cached response adds the age of that response to a sum. The score is this sum, divided by
 * the cost of the refresh. A response that many callers poll therefore stays younger than a response that a single
 * caller polls.
 *
 * Refreshes receive nine tenths of the limit for reads at a constant rate, and can accumulate a burst of 8 % of that
 * limit. Refreshes alone therefore never exhaust a window.
 */
export class Pacer {
  readonly #rate: number
  readonly #burst: number
  /** The units that refreshes are allowed to use now; negative if calls used more units than were refilled. */
  #level: number
  #at = longAgo
  readonly #waiting = new Map<string, Waiting>()
  /** The number of the turn in which each caller was last served. */
  readonly #served = new Map<string, number>()
  #turns = 0

  constructor(bounds: Bounds) {
    const { burst, rate } = refreshPace(bounds)
    this.#rate = rate
    this.#burst = burst
    this.#level = burst
  }

  /** Counts units that a call took; negative units are a refund. */
  use(units: number, now: MonotonicTime): void {
    this.set(this.#levelAt(now) - units, now)
  }

  /** Sets the units that refreshes are allowed to use now, as counted by all replicas. */
  set(level: number, now: MonotonicTime): void {
    // however much a call costs, the level falls at most one burst below zero
    this.#level = Math.max(-this.#burst, Math.min(this.#burst, level))
    this.#at = latest(this.#at, now)
  }

  /** Pauses refreshes, because the rate limiter refused the latest refresh. */
  pause(now: MonotonicTime): void {
    this.set(Math.min(this.#levelAt(now), 0) - this.#rate * PAUSE, now)
  }

  /**
   * Returns whether a read can be sent upstream without waiting for a turn: the limit is refilled faster than it is
   * used, and no refresh waits.
   */
  isIdle(now: MonotonicTime): boolean {
    return this.#waiting.size === 0 && this.#levelAt(now) > 0
  }

  /** Returns whether no refresh is allowed to start now. */
  isSpent(now: MonotonicTime): boolean {
    return this.#levelAt(now) <= 0
  }

  /** Records that a read received a cached response; `age` is the age of that response in milliseconds. */
  wait(refresh: Refresh, age: number, now: MonotonicTime): void {
    let waiting = this.#waiting.get(refresh.key)
    if (waiting === undefined) {
      if (this.#waiting.size >= MOST) return
      this.#waiting.set(refresh.key, waiting = { refresh, seen: now, waited: 0, callers: new Set() })
    }
    waiting.refresh = refresh
    waiting.seen = now
    waiting.waited += age
    waiting.callers.add(refresh.caller)
  }

  /** Removes a waiting refresh, because its response was read upstream in the meantime. */
  forget(key: string): void {
    this.#waiting.delete(key)
  }

  /**
   * Removes and returns the next refresh to start; returns `undefined` if no refresh waits, or none is allowed to start
   * now.
   */
  next(now: MonotonicTime): Refresh | undefined {
    if (this.isSpent(now)) return undefined
    let next: Waiting | undefined
    let turn = Number.POSITIVE_INFINITY
    for (const [key, waiting] of this.#waiting) {
      if (millisBetween(waiting.seen, now) > FORGOTTEN_AFTER) {
        this.#waiting.delete(key)
        continue
      }
      let last = Number.POSITIVE_INFINITY
      for (const caller of waiting.callers) last = Math.min(last, this.#served.get(caller) ?? -1)
      const isBefore = last < turn ||
        last === turn && next !== undefined && waitedFor(waiting) > waitedFor(next)
      if (!isBefore) continue
      next = waiting
      turn = last
    }
    if (next === undefined) return undefined
    this.#waiting.delete(next.refresh.key)
    if (this.#served.size >= MOST) this.#served.clear()
    for (const caller of next.callers) this.#served.set(caller, this.#turns)
    this.#turns += 1
    return next.refresh
  }

  #levelAt(now: MonotonicTime): number {
    return Math.min(this.#burst, this.#level + Math.max(0, millisBetween(this.#at, now)) * this.#rate)
  }
}

const waitedFor = ({ refresh, waited }: Waiting): number => waited / refresh.cost
