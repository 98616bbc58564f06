/** Time of tests over real sockets: it stands still, on every machine, until a test adjusts its `TestClock`. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import { vi } from "vitest"

/** The whole-call deadline of these tests, in milliseconds; no timer of the process but those below is as long. */
export const deadline = 990

/** The deadline of a probe, in milliseconds. */
export const probeDeadline = 5000

/** How much of the deadline an address gets while another one is left, in milliseconds. */
export const firstShare = deadline / 2

let timers = new Map<number, PromiseWithResolvers<void>>()

const timerOf = (milliseconds: number): PromiseWithResolvers<void> => {
  const timer = timers.get(milliseconds) ?? Promise.withResolvers()
  timers.set(milliseconds, timer)
  return timer
}

/** Ends when a timer of this length has been set since the clock of the test rules. */
export const isTimed = (milliseconds: number) => Effect.promise(() => timerOf(milliseconds).promise)

/**
 * Lets the timers of exchanges follow the clock of the test, as sleeping fibers do. The real ones come back with the scope.
 *
 * They are known by their length: those of undici and of the server run as usual. One test at a time can
 * do this: the timers belong to the process.
 */
export const deadlinesOnTestClock = Effect.acquireRelease(
  Effect.map(Effect.context(), (context) => {
    const real = { setTimeout, clearTimeout }
    const waiting = new Map<unknown, Fiber.Fiber<void>>()
    const run = Effect.runForkWith(context)
    timers = new Map()
    vi.stubGlobal("setTimeout", (callback: () => void, delay?: number, ...args: ReadonlyArray<unknown>) => {
      if (delay !== deadline && delay !== firstShare && delay !== probeDeadline) {
        return real.setTimeout(callback, delay, ...args)
      }
      const handle = {}
      waiting.set(handle, run(Effect.andThen(Effect.sleep(delay), Effect.sync(callback))))
      timerOf(delay).resolve()
      return handle
    })
    vi.stubGlobal("clearTimeout", (handle: NodeJS.Timeout | undefined) => {
      const fiber = waiting.get(handle)
      if (fiber === undefined) real.clearTimeout(handle)
      else fiber.interruptUnsafe()
    })
  }),
  () => Effect.sync(() => vi.unstubAllGlobals())
)

/** The shortest random pauses, that is none: no time has to pass before a call is sent again. */
export const withoutJitter = Effect.provideService(Random.Random, {
  nextDoubleUnsafe: () => 0,
  nextIntUnsafe: () => 0
})

/** Begins a call, waits for `ready`, lets `milliseconds` pass, and gives what the call ends with: then, and not before. */
export const endsAfter = Effect.fnUntraced(function*<A, E, R, E2, R2>(
  milliseconds: number,
  call: Effect.Effect<A, E, R>,
  ready: Effect.Effect<unknown, E2, R2>
) {
  const fiber = yield* Effect.forkChild(call, { startImmediately: true })
  yield* ready
  yield* TestClock.adjust(milliseconds - 1)
  assert.isUndefined(fiber.pollUnsafe())
  yield* TestClock.adjust(1)
  return yield* Fiber.join(fiber)
})
