/** The compiler proves these: a directive that expects no error is one itself. */
import { assert, describe, it } from "@effect/vitest"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"

describe("MonotonicTime", () => {
  it("cannot be subtracted from a wall time, compared with one, or replace one", () => {
    const impossible = (wall: number, time: Encoding.MonotonicTime): ReadonlyArray<unknown> => [
      // @ts-expect-error -- a wall time less a monotonic time
      wall - time,
      // @ts-expect-error -- a monotonic time less a wall time
      time - wall,
      // @ts-expect-error -- a deadline is made with `addMillis`
      time + 1000,
      // @ts-expect-error -- a wall time is not before a monotonic time
      wall < time,
      // @ts-expect-error -- nor equal to one
      wall === time,
      // @ts-expect-error -- a duration has two monotonic times
      Encoding.millisBetween(wall, time),
      // @ts-expect-error -- a wall time is not a monotonic time
      Encoding.addMillis(wall, 1000),
      // @ts-expect-error -- a monotonic time is not a wall time
      new Date(time)
    ]
    assert.isFunction(impossible)
  })

  it.effect("measures what has passed, although the system clock was set back", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      yield* TestClock.adjust("1 hour")
      const start = Encoding.monotonicTime(clock)
      yield* TestClock.setTime(0)
      yield* TestClock.adjust(1500)
      const now = Encoding.monotonicTime(clock)
      assert.strictEqual(Encoding.millisBetween(start, now), 1500)
      assert.strictEqual(Encoding.addMillis(start, 1500), now)
      assert.strictEqual(Encoding.latest(start, now), now)
      assert.isTrue(Encoding.longAgo < start)
    }))
})
