import { assert, describe, it } from "@effect/vitest"
import * as SharedStore from "@trigate/stores/unstable/SharedStore"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as TestClock from "effect/testing/TestClock"

describe("the steps of a shared store", () => {
  it.effect("fail after the deadline", () =>
    Effect.gen(function*() {
      const inTime = SharedStore.within("250 millis", (detail) => detail)
      assert.strictEqual(yield* inTime(Effect.succeed("there")), "there")
      const late = yield* Effect.forkChild(Effect.flip(inTime(Effect.never)), { startImmediately: true })
      yield* TestClock.adjust(249)
      assert.isUndefined(late.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* Fiber.join(late), "no response within 250ms")
    }))

  it.effect("report the begin and the end of an outage once", () =>
    Effect.gen(function*() {
      const gauge = Metric.gauge("away")
      const logged: Array<string> = []
      const log = (line: string) => Effect.sync(() => void logged.push(line))
      const outage = SharedStore.makeOutage<string>(gauge, { away: log, back: log("back") })
      const states: Array<readonly [boolean, number]> = []
      for (const fault of [undefined, "first", "second", undefined, undefined, "third"]) {
        const step = fault === undefined ? Effect.void : Effect.fail(fault)
        yield* Effect.ignore(outage.observe(step))
        states.push([outage.isAway(), (yield* Metric.value(gauge)).value])
      }
      assert.deepStrictEqual(logged, ["first", "back", "third"])
      assert.deepStrictEqual(states, [[false, 0], [true, 1], [true, 1], [false, 0], [false, 0], [true, 1]])
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())))
})

describe("a lease", () => {
  it.effect("has one owner, and a new token after it was released", () =>
    Effect.gen(function*() {
      let held: { readonly owner: string; readonly token: number } | undefined
      let tokens = 0
      const released: Array<number> = []
      const store: SharedStore.LeaseStore<never> = {
        lease: (owner) =>
          Effect.sync(() => {
            held ??= { owner, token: ++tokens }
            return held.owner === owner ? held.token : undefined
          }),
        release: (token) =>
          Effect.sync(() => {
            released.push(token)
            if (held?.token === token) held = undefined
          })
      }
      const [one, other] = [SharedStore.makeLease(store, "one"), SharedStore.makeLease(store, "other")]
      yield* one.release
      assert.deepStrictEqual([yield* one.renew, yield* one.renew, yield* other.renew], [1, 1, undefined])
      assert.deepStrictEqual([one.isElsewhere(), other.isElsewhere()], [false, true])
      yield* other.release
      yield* one.release
      assert.deepStrictEqual([yield* other.renew, yield* one.renew], [2, undefined])
      assert.deepStrictEqual([one.isElsewhere(), other.isElsewhere()], [true, false])
      assert.deepStrictEqual(released, [1])
    }))
})
