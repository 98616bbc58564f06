import { assert, describe, it } from "@effect/vitest"
import { EventLoopLag } from "@trigate/server/unstable/process/Load"
import { settableClock } from "@trigate/testing/AdvancingClock"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"

describe("the lag of the event loop", () => {
  it.effect("is measured by the monotonic clock", () =>
    Effect.gen(function*() {
      const measure = yield* EventLoopLag
      const { clock, set } = yield* settableClock
      const measuring = yield* Effect.forkChild(Effect.provideService(measure(50), Clock.Clock, clock), {
        startImmediately: true
      })
      set.shift = 7_200_000
      yield* TestClock.adjust(50)
      assert.strictEqual(yield* Fiber.join(measuring), 0)
    }))
})
