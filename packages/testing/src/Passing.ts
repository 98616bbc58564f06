/** Lets the time of a test's `TestClock` pass beside real input and output. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"

/**
 * What an effect ends with while time passes, in steps of 10 milliseconds: for an effect that ends by a deadline, or tries
 * again after a pause. Without it no time passes, so that no deadline is ever the cause of anything.
 */
export const passing = Effect.fnUntraced(function*<A, E, R>(effect: Effect.Effect<A, E, R>) {
  const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
  while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(10)
  return yield* Fiber.join(fiber)
})
