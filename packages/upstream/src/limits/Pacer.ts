/**
 * Paces the refreshes of cached responses at the rate at which a rate limit flows back.
 *
 * While all calls use less than that, each read may go upstream. Above it, reads get the cached response and refreshes take turns. The
 * caller who was served longest ago comes first. Among that caller's refreshes, the one with the largest sum of served ages per unit of
 * cost comes first, so a response that many callers poll stays younger than one that a single caller polls.
 *
 * Nine tenths of the limit flow back evenly and 8 % may be used at once, so that refreshes alone never fill a window.
 */
import type * as Effect from "effect/Effect"
import type { Bounds } from "./RateWindow.ts"

/** A read that was served from the cache and is to be repeated upstream. */
export interface Refresh {
  /** Refreshes with equal keys are one. */
  readonly key: string
  /** The `id` of the caller who reads. */
  readonly caller: string
  /** Units that it takes. */
  readonly cost: number
  /** Starts it in the background. */
  readonly start: Effect.Effect<void>
}

interface Waiting {
  refresh: Refresh
  /** When it was last asked for. */
  seen: number
  /** How old the cached response was, in milliseconds, summed over the reads that got it. */
  waited: number
  readonly callers: Set<string>
}

/** Milliseconds after which a refresh is dropped if no read asks for it again. */
const FORGOTTEN_AFTER = 10_000

/** The most refreshes and callers that are remembered. */
const MOST = 10_000

/** Milliseconds until the next refresh after one that the rate limiter refused. */
const PAUSE = 250

/** Returns how a limit flows back: units per millisecond, and the units that may be used at once. */
export const refreshPace = (
  { readLimit, slots, width }: Bounds
): { readonly rate: number; readonly burst: number } => ({
  rate: readLimit * 0.9 / ((slots + 1) * width),
  burst: readLimit * 0.08
})

/** The pace of one limit. Times are those of a monotonic clock, in milliseconds. */
export class Pacer {
  readonly #rate: number
  readonly #burst: number
  /** What may be used at once; below 0 while more was used than has flowed back. */
  #level: number
  #at = 0
  readonly #waiting = new Map<string, Waiting>()
  /** The number of the turn in which each caller was served last. */
  readonly #served = new Map<string, number>()
  #turns = 0

  constructor(bounds: Bounds) {
    const { burst, rate } = refreshPace(bounds)
    this.#rate = rate
    this.#burst = burst
    this.#level = burst
  }

  /** Counts units that a call took; negative units are a refund. */
  use(units: number, now: number): void {
    this.set(this.#levelAt(now) - units, now)
  }

  /** Sets what may be used now: replicas share it. */
  set(level: number, now: number): void {
    // one long answer delays refreshes by a burst at most
    this.#level = Math.max(-this.#burst, Math.min(this.#burst, level))
    this.#at = Math.max(this.#at, now)
  }

  /** Pauses refreshes, because the rate limiter refused the last one. */
  pause(now: number): void {
    this.set(Math.min(this.#levelAt(now), 0) - this.#rate * PAUSE, now)
  }

  /** Whether a read may go upstream without taking a turn: the limit flows back faster than it is used, and no refresh waits. */
  isIdle(now: number): boolean {
    return this.#waiting.size === 0 && this.#levelAt(now) > 0
  }

  /** Whether no refresh may start now. */
  isSpent(now: number): boolean {
    return this.#levelAt(now) <= 0
  }

  /** Notes a read that gets a cached response of an age in milliseconds. */
  wait(refresh: Refresh, age: number, now: number): void {
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

  /** Drops a refresh whose response was read meanwhile. */
  forget(key: string): void {
    this.#waiting.delete(key)
  }

  /** Takes the refresh whose turn it is; undefined while none may start. */
  next(now: number): Refresh | undefined {
    if (this.isSpent(now)) return undefined
    let next: Waiting | undefined
    let turn = Number.POSITIVE_INFINITY
    for (const [key, waiting] of this.#waiting) {
      if (now - waiting.seen > FORGOTTEN_AFTER) {
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

  #levelAt(now: number): number {
    return Math.min(this.#burst, this.#level + Math.max(0, now - this.#at) * this.#rate)
  }
}

const waitedFor = ({ refresh, waited }: Waiting): number => waited / refresh.cost
