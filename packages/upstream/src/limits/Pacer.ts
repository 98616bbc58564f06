/**
 * The turns of refreshes: while reads use a rate limit faster than it refills, cached responses that are stale are
 * refreshed one after another.
 */
import * as Effect from "effect/Effect"
import type { Bounds } from "./RateWindow.ts"

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
  seen: number
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

/** The pacer of one limit. Times are those of a monotonic clock, in milliseconds. */
export class Pacer {
  readonly #rate: number
  readonly #burst: number
  /** The units that refreshes are allowed to use now; negative if calls used more units than were refilled. */
  #level: number
  #at = 0
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
  use(units: number, now: number): void {
    this.set(this.#levelAt(now) - units, now)
  }

  /** Sets the units that refreshes are allowed to use now, as counted by all replicas. */
  set(level: number, now: number): void {
    // however much a call costs, the level falls at most one burst below zero
    this.#level = Math.max(-this.#burst, Math.min(this.#burst, level))
    this.#at = Math.max(this.#at, now)
  }

  /** Pauses refreshes, because the rate limiter refused the latest refresh. */
  pause(now: number): void {
    this.set(Math.min(this.#levelAt(now), 0) - this.#rate * PAUSE, now)
  }

  /**
   * Returns whether a read can be sent upstream without waiting for a turn: the limit is refilled faster than it is
   * used, and no refresh waits.
   */
  isIdle(now: number): boolean {
    return this.#waiting.size === 0 && this.#levelAt(now) > 0
  }

  /** Returns whether no refresh is allowed to start now. */
  isSpent(now: number): boolean {
    return this.#levelAt(now) <= 0
  }

  /** Records that a read received a cached response; `age` is the age of that response in milliseconds. */
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

  /** Removes a waiting refresh, because its response was read upstream in the meantime. */
  forget(key: string): void {
    this.#waiting.delete(key)
  }

  /**
   * Removes and returns the next refresh to start; returns `undefined` if no refresh waits, or none is allowed to start
   * now.
   */
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
