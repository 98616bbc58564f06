/**
 * A sliding window: whether a call may start now, and when it may otherwise.
 *
 * Time is cut into slots, and a call counts in the slot in which it starts. The current slot and the `slots` before it
 * cover every window that ends now, so they never hold less than such a window does.
 */
import type { MethodClass } from "@trigate/domain/Operation"

/** The limit of a window that is `slots` times `width` milliseconds long. */
export interface Bounds {
  /** Units that all calls in a window may take. */
  readonly limit: number
  /** Units of the limit that reads may take; the rest is for actions alone. */
  readonly readLimit: number
  readonly slots: number
  readonly width: number
}

/** Units by method class: what calls hold, or what waiting calls want. */
export type Units = { [Class in MethodClass]: number }

/** What the calls hold that started in a slot. */
export interface Slot extends Units {
  readonly index: number
}

/** A call and the units that it takes. */
export interface Call {
  readonly class: MethodClass
  readonly cost: number
}

/** Bounds for `limit` units in `window` milliseconds; a limit below 1 is one unit in a window longer by that factor. */
export const make = (limit: number, window: number, slots: number, reservedPart: number): Bounds => {
  const whole = Math.max(1, Math.floor(limit))
  const reserved = reservedPart === 0 || whole < 2 ? 0 : Math.max(1, Math.floor(whole * reservedPart))
  return { limit: whole, readLimit: whole - reserved, slots, width: Math.ceil(window / Math.min(1, limit) / slots) }
}

export const slotAt = ({ width }: Bounds, now: number): number => Math.floor(now / width)

/** The most that reads may hold for a call to start after those `ahead` of it; any number for an action. */
export const mostReads = ({ readLimit }: Bounds, methodClass: MethodClass, cost: number, ahead: Units): number =>
  methodClass === "once" ? Number.MAX_SAFE_INTEGER : readLimit - ahead.read - Math.min(cost, readLimit)

/** The most that all calls may hold for a call to start after those `ahead` of it. Actions do not wait for reads. */
export const mostUnits = ({ limit }: Bounds, methodClass: MethodClass, cost: number, ahead: Units): number =>
  // a call that costs more than the limit starts alone
  limit - ahead.once - (methodClass === "once" ? 0 : ahead.read) - Math.min(cost, limit)

/**
 * Milliseconds from `now` until a call may start if no other call comes; 0 when it may start now.
 *
 * `slots` are in the order of time. Calls ahead take each unit as soon as it leaves the window, and hold it for a window.
 */
export const waitOf = (bounds: Bounds, slots: ReadonlyArray<Slot>, call: Call, ahead: Units, now: number): number => {
  const until = (limit: number, most: number, unitsOf: (slot: Units) => number) => {
    const held = slots.reduce((sum, slot) => sum + unitsOf(slot), 0)
    if (held <= most) return 0
    // what a call holds beyond the limit is free for nobody when it leaves
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
    until(bounds.readLimit, mostReads(bounds, call.class, call.cost, ahead), ({ read }) => read),
    until(bounds.limit, mostUnits(bounds, call.class, call.cost, ahead), ({ once, read }) => read + once)
  )
}

/** The window of one process. It allocates a slot at a time, and nothing for a call. */
export class SlidingWindow {
  readonly #bounds: Bounds
  #current = 0
  /** What started in the window, in the order of time. */
  readonly slots: Array<Slot> = []
  /** What the slots hold together. */
  readonly held: Units = { read: 0, once: 0 }

  constructor(bounds: Bounds) {
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
  fits(methodClass: MethodClass, cost: number, ahead: Units): boolean {
    const { once, read } = this.held
    return read <= mostReads(this.#bounds, methodClass, cost, ahead) &&
      read + once <= mostUnits(this.#bounds, methodClass, cost, ahead)
  }

  /** Counts a call in the current slot, which it answers. */
  take(methodClass: MethodClass, cost: number): Slot {
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
