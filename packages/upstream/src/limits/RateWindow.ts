/**
 * The use of a rate limit: by all calls together, and by each caller.
 *
 * Time is cut into slots. The current slot and the `slots` before it cover every window that ends now.
 *
 * Callers share the limit as {@link FairShare} says. Each caller that was here in this window or the one before has a share. Beyond its
 * share a caller may use the part that others leave; each of these counts with its current use, or with its use in the window before, up
 * to its share. The program itself is not a caller, and may use all of the limit.
 */
import type { Caller } from "@trigate/domain/Caller"
import { local } from "@trigate/domain/Caller"
import type { MethodClass } from "@trigate/domain/operations/Operation"
import * as FairShare from "./FairShare.ts"

/** How much calls may hold. */
export interface Limit {
  /** Units that all calls may hold. */
  readonly limit: number
  /** Units of the limit that reads may hold; the rest is for actions alone. */
  readonly readLimit: number
}

/** The limit of a window that is `slots` times `width` milliseconds long. */
export interface Bounds extends Limit {
  readonly slots: number
  readonly width: number
}

/** Units by method class: what calls hold, or what waiting calls want. */
export type Units = { [Class in MethodClass]: number }

/** What the calls hold that started in a slot. */
export interface Slot extends Units {
  readonly index: number
}

/** A call, the units that it takes, and its caller: `undefined` for the program itself. */
export interface WindowCall {
  readonly class: MethodClass
  readonly cost: number
  readonly caller: string | undefined
  /** Whether it refreshes a cached response, and so is paced; false when not given. */
  readonly isRefresh?: boolean
}

/** No units. */
export const none: Units = { read: 0, once: 0 }

const sumUnits = ({ once, read }: Units): number => read + once

/** Bounds for `limit` units in `window` milliseconds; a limit below 1 is one unit in a window longer by that factor. */
export const windowBounds = (limit: number, window: number, slots: number, reservedPart: number): Bounds => {
  const whole = Math.max(1, Math.floor(limit))
  const reserved = reservedPart === 0 || whole < 2 ? 0 : Math.max(1, Math.floor(whole * reservedPart))
  return { limit: whole, readLimit: whole - reserved, slots, width: Math.ceil(window / Math.min(1, limit) / slots) }
}

/**
 * The slots in which the calls of one caller count: a fifth of the number.
 *
 * They are stored for each caller, and replicas read those of all callers for each call.
 */
export const callerSlots = ({ slots, width }: Pick<Bounds, "slots" | "width">): Pick<Bounds, "slots" | "width"> => ({
  slots: Math.ceil(slots / 5),
  width: width * 5
})

export const slotAt = ({ width }: Pick<Bounds, "width">, now: number): number => Math.floor(now / width)

/** Returns the part of a limit that a process may use alone while others hold or may use the rest. */
export const partBounds = (bounds: Bounds, part: number, others: Units): Bounds => {
  const ofLimit = (limit: number, held: number) => Math.max(1, Math.min(Math.floor(limit * part), limit - held))
  return {
    ...bounds,
    limit: ofLimit(bounds.limit, sumUnits(others)),
    readLimit: ofLimit(bounds.readLimit, others.read)
  }
}

/** The most that reads may hold for a call to start after those `ahead` of it; any number for an action. */
export const mostReads = ({ readLimit }: Limit, { class: methodClass, cost }: WindowCall, ahead: Units): number =>
  methodClass === "once" ? Number.MAX_SAFE_INTEGER : readLimit - ahead.read - Math.min(cost, readLimit)

/** The most that all calls may hold for a call to start after those `ahead` of it. Actions do not wait for reads. */
export const mostUnits = ({ limit }: Limit, { class: methodClass, cost }: WindowCall, ahead: Units): number =>
  // a call that costs more than the limit starts alone
  limit - ahead.once - (methodClass === "once" ? 0 : ahead.read) - Math.min(cost, limit)

/**
 * Milliseconds from `now` until a call may start if no other call comes; 0 when it may start now.
 *
 * `slots` are in the order of time. Calls ahead take each unit as soon as it leaves the window, and hold it for a window.
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
    // the units that a call holds beyond the limit are not given to the next call when it leaves
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
    until(bounds.readLimit, mostReads(bounds, call, ahead), ({ read }) => read),
    until(bounds.limit, mostUnits(bounds, call, ahead), sumUnits)
  )
}

/** Returns the share of each caller, for a number of callers. */
export const callerShare = ({ limit, readLimit }: Limit, callers: number): Limit => ({
  limit: FairShare.equalShare(limit, callers),
  readLimit: FairShare.equalShare(readLimit, callers)
})

/** What starts in a window. It allocates a slot at a time, and nothing for a call. */
export class SlidingWindow {
  readonly #bounds: Pick<Bounds, "slots" | "width">
  #current = 0
  /** What started in the window, in the order of time. */
  readonly slots: Array<Slot> = []
  /** What the slots hold together. */
  readonly held: Units = { read: 0, once: 0 }

  constructor(bounds: Pick<Bounds, "slots" | "width">) {
    this.#bounds = bounds
  }

  /** Moves the window to a time and drops the slots that have left it. */
  moveTo(now: number): void {
    this.#current = Math.max(this.#current, slotAt(this.#bounds, now))
    for (let oldest = this.slots[0]; oldest !== undefined && !this.#covers(oldest); oldest = this.slots[0]) {
      this.slots.shift()
      this.held.read -= oldest.read
      this.held.once -= oldest.once
    }
  }

  /** Whether a call may start after those `ahead` of it. */
  fits(limit: Limit, call: WindowCall, ahead: Units): boolean {
    return this.held.read <= mostReads(limit, call, ahead) && sumUnits(this.held) <= mostUnits(limit, call, ahead)
  }

  /** Counts a call in the current slot. Returns the slot. */
  take({ class: methodClass, cost }: WindowCall): Slot {
    let slot = this.slots.at(-1)
    if (slot?.index !== this.#current) this.slots.push(slot = { index: this.#current, read: 0, once: 0 })
    slot[methodClass] += cost
    this.held[methodClass] += cost
    return slot
  }

  /** Takes units out of the slot in which they were counted, while the window holds it. */
  refund(slot: Slot, methodClass: MethodClass, units: number): void {
    if (!this.#covers(slot)) return
    slot[methodClass] -= units
    this.held[methodClass] -= units
  }

  #covers(slot: Slot): boolean {
    return slot.index >= this.#current - this.#bounds.slots
  }
}

/** Where a call of a caller was counted. */
interface OfCaller {
  readonly now: Slot
  readonly lately: Slot
}

/** The current use of one caller, and the maximum with its use in the window before. */
class CallerWindow {
  readonly now: SlidingWindow
  readonly lately: SlidingWindow
  /** When it last wanted to start a call. */
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

/** Where a call was counted. */
export interface Taken {
  readonly slot: Slot
  readonly ofCaller?: OfCaller
}

/** The most addresses that are distinguished; those beyond are counted as one caller. Keys are all distinguished. */
export const mostAddresses = 64

const otherAddresses = "address:others"

const isKey = (name: string): boolean => name.startsWith("key:")

/** The window of one process: what all calls hold, and what those of each caller do. */
export class RateWindow {
  /** Milliseconds after which a caller is forgotten: two windows. */
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

  moveTo(now: number): void {
    this.#now = Math.max(this.#now, now)
    this.all.moveTo(now)
  }

  /** The time to which it was moved last. */
  get now(): number {
    return this.#now
  }

  /** The name under which a caller is counted, and counted as present; none for the program itself. */
  nameOf(caller: Caller): string | undefined {
    if (caller === local) return undefined
    const isToldApart = this.#callers.has(caller.id) || this.#hasRoom() || isKey(caller.id)
    const name = isToldApart ? caller.id : otherAddresses
    this.#windowOf(name).seen = this.#now
    return name
  }

  /** What a caller holds. */
  heldBy(caller: string | undefined): number {
    return caller === undefined ? 0 : sumUnits(this.#windowOf(caller).now.held)
  }

  /** What every caller holds that holds anything, by name. */
  get holders(): ReadonlyMap<string, number> {
    const holders = new Map<string, number>()
    for (const [name, { now }] of this.#callers) {
      now.moveTo(this.#now)
      if (sumUnits(now.held) > 0) holders.set(name, sumUnits(now.held))
    }
    return holders
  }

  /** How many callers were here in the window, or in the one before. */
  get callers(): number {
    let count = 0
    for (const { seen } of this.#callers.values()) if (seen > this.#now - this.#memory) count++
    return count
  }

  /** Whether a call leaves its caller within its share. */
  isWithinShare(bounds: Bounds, call: WindowCall): boolean {
    return call.caller === undefined ||
      this.#windowOf(call.caller).now.fits(callerShare(bounds, this.callers), call, none)
  }

  /** Whether a call may start after those `ahead` of it. */
  fits(bounds: Bounds, call: WindowCall, ahead: Units): boolean {
    if (!this.all.fits(bounds, call, ahead)) return false
    return this.isWithinShare(bounds, call) ||
      call.caller === undefined || this.#windowOf(call.caller).now.fits(this.#capOf(bounds, call.caller), call, none)
  }

  /** Milliseconds until a call may start if no other call comes; 0 when it may start now. */
  waitOf(bounds: Bounds, call: WindowCall, ahead: Units): number {
    const wait = waitTime(bounds, this.all.slots, call, ahead, this.#now)
    if (call.caller === undefined) return wait
    const cap = { ...this.#ofCaller, ...this.#capOf(bounds, call.caller) }
    return Math.max(wait, waitTime(cap, this.#windowOf(call.caller).now.slots, call, none, this.#now))
  }

  /** Counts a call. Returns where it counted. */
  take(call: WindowCall): Taken {
    const slot = this.all.take(call)
    return call.caller === undefined ? { slot } : { slot, ofCaller: this.#windowOf(call.caller).take(call) }
  }

  /** Takes units of a call out again, where the window still holds them. */
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

  /** Whether one more address can be distinguished, once those that use nothing any more are forgotten. */
  #hasRoom(): boolean {
    let addresses = 0
    for (const [name, { lately, seen }] of this.#callers) {
      lately.moveTo(this.#now)
      if (lately.slots.length === 0 && seen <= this.#now - this.#memory) this.#callers.delete(name)
      else if (!isKey(name)) addresses++
    }
    return addresses < mostAddresses
  }

  #capOf(bounds: Bounds, caller: string): Limit {
    const callers = this.callers
    const share = callerShare(bounds, callers)
    // what the callers do not hold, the program itself does
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
      limit: FairShare.shareCap(bounds.limit, callers, used.all + Math.max(0, held.all)),
      readLimit: FairShare.shareCap(bounds.readLimit, callers, used.read + Math.max(0, held.read))
    }
  }
}
