/** Lets time pass until an effect ends: for one that waits between its attempts, beside input and output that take real time. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"

export const passing = Effect.fnUntraced(function*<A, E, R>(effect: Effect.Effect<A, E, R>) {
  const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
  while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("10 millis")
  return yield* Fiber.join(fiber)
})
