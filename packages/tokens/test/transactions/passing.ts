/** Random numbers from a seed, and virtual time that passes beside the decoding of pages. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"

/** Numbers below a bound, from a seed (mulberry32). */
export const randomBy = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

/** Lets virtual time pass until a condition holds, up to an hour. */
export const passUntil = Effect.fnUntraced(function*(isDone: () => boolean, meanwhile: () => void = () => undefined) {
  for (let second = 0; second < 3_600 && !isDone(); second += 1) {
    meanwhile()
    yield* TestClock.adjust("1 second")
    // pages are decoded by a module that is loaded on first use
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
  assert.isTrue(isDone(), "an hour passed")
})
