/** Virtual time that passes beside the decoding of pages. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"

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
