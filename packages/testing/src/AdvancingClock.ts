/** Clocks for tests: one that advances during real input and output, and one whose wall time is set. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"

/** Lets real time pass, in which input and output complete, whatever the clock of the test is. */
export const realTime = (milliseconds: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const timer = setTimeout(() => resume(Effect.void), milliseconds)
    return Effect.sync(() => clearTimeout(timer))
  })

/**
 * Runs an effect while the test clock advances in steps of 10 milliseconds, so that the effect's deadlines expire and
 * its retries start. Without this function, the test clock does not advance.
 *
 * The test clock is at most five times as fast as the real one, so that input and output on a busy machine complete
 * before their deadlines.
 */
export const advancingClock = Effect.fnUntraced(function*<A, E, R>(effect: Effect.Effect<A, E, R>) {
  const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
  while (fiber.pollUnsafe() === undefined) {
    yield* realTime(2)
    yield* TestClock.adjust(10)
  }
  return yield* Fiber.join(fiber)
})

/**
 * Makes a clock whose wall time a test sets, as an operator sets the system clock: `shift` is the number of milliseconds
 * by which it is ahead of the clock in the context. The monotonic time and sleeps are those of the clock in the context.
 */
export const settableClock = Effect.map(Clock.Clock, (clock) => {
  const set = { shift: 0 }
  const millis = () => clock.currentTimeMillisUnsafe() + set.shift
  const nanos = () => BigInt(millis()) * 1_000_000n
  const settable: Clock.Clock = {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: clock.monotonicTimeNanos,
    sleep: (duration) => clock.sleep(duration)
  }
  return { clock: settable, set }
})
