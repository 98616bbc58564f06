/**
 * What a sliding window lets start, and when it will let start more.
 *
 * Time is cut into slots, and what starts in a slot is counted there. The current slot and the `slots` before it overlap
 * every window that ends now, so that what they hold is at least what any such window holds.
 */
import type { MethodClass } from "@trigate/domain/Operation"

/** The bounds of a window of `slots` times `width` milliseconds. */
export interface Plan {
  /** Units of all calls in a window. */
  readonly limit: number
  /** Those of them that reads may take. */
  readonly forReads: number
  readonly slots: number
  /** Milliseconds of a slot. */
  readonly width: number
}

/** Units by who took them, or who wants them. */
export interface Units {
  readonly read: number
  readonly once: number
}

/** What a window may hold at most for a call to start. */
export interface Room {
  readonly reads: number
  readonly all: number
}

/** A slot that holds something. */
export interface Slot extends Units {
  readonly index: number
}

/** The plan of a limit in a window of milliseconds; of a limit below 1, one unit in a window that is longer by as much. */
export const make = (limit: number, window: number, slots: number, reserved: number): Plan => {
  const whole = Math.max(1, Math.floor(limit))
  const kept = reserved === 0 || whole < 2 ? 0 : Math.max(1, Math.floor(whole * reserved))
  return { limit: whole, forReads: whole - kept, slots, width: Math.ceil(window / Math.min(1, limit) / slots) }
}

export const slotAt = (plan: Plan, now: number): number => Math.floor(now / plan.width)

/** The room that a call needs beside what was before it; one that costs more than there is needs an empty window. */
export const room = (plan: Plan, methodClass: MethodClass, cost: number, ahead: Units): Room => ({
  reads: methodClass === "once"
    ? Number.MAX_SAFE_INTEGER
    : plan.forReads - ahead.read - Math.min(cost, plan.forReads),
  all: plan.limit - ahead.read - ahead.once - Math.min(cost, plan.limit)
})

/** What reads and what actions could take at once. */
export const left = (plan: Plan, held: Units): Units => {
  const once = Math.max(0, plan.limit - held.read - held.once)
  return { read: Math.max(0, Math.min(once, plan.forReads - held.read)), once }
}

/** What a window holds that another one does not. */
export const beyond = (held: Units, own: Units): Units => ({
  read: Math.max(0, held.read - own.read),
  once: Math.max(0, held.once - own.once)
})

/** The slot in which so much has left the window; who is before takes what leaves, and that leaves again later. */
const slotWithout = (
  plan: Plan,
  slots: ReadonlyArray<{ readonly index: number; readonly units: number }>,
  excess: number,
  capacity: number,
  current: number
): number => {
  let left = 0
  for (const { index, units } of slots) {
    left += units
    if (left >= excess) return index + plan.slots + 1
  }
  const rounds = Math.ceil((excess - left) / capacity)
  const rest = excess - left - (rounds - 1) * capacity - Math.max(0, capacity - left)
  const round = rounds * (plan.slots + 1)
  return rest > 0 ? slotWithout(plan, slots, rest, capacity, current) + round : current + round
}

/** Milliseconds from `now` until slots, in their order, have left a room; 0 when there is room already. */
export const wait = (plan: Plan, slots: ReadonlyArray<Slot>, { all, reads }: Room, now: number): number => {
  const current = slotAt(plan, now)
  const until = (unitsOf: (slot: Slot) => number, most: number, capacity: number) => {
    const counted = slots.map((slot) => ({ index: slot.index, units: unitsOf(slot) }))
    const excess = counted.reduce((sum, { units }) => sum + units, -most)
    return excess > 0 ? slotWithout(plan, counted, excess, capacity, current) * plan.width - now : 0
  }
  return Math.max(
    until((slot) => slot.read, reads, plan.forReads),
    until((slot) => slot.read + slot.once, all, plan.limit)
  )
}
