/** Advances a `TestClock` while an effect performs real input and output. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"

/**
 * Runs an effect while the test clock advances in steps of 10 milliseconds, so that the effect's deadlines expire and
 * its retries start. Without this function, the test clock does not advance.
 */
export const advancingClock = Effect.fnUntraced(function*<A, E, R>(effect: Effect.Effect<A, E, R>) {
  const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
  while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(10)
  return yield* Fiber.join(fiber)
})
