import { assert, describe, it } from "@effect/vitest"
import * as SharedState from "@trigate/upstream/unstable/SharedState"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as TestClock from "effect/testing/TestClock"

const away = Effect.fail(new SharedState.SharedStoreUnreachable({ detail: "ECONNREFUSED" }))

const gauge = Effect.map(
  Metric.snapshot,
  (all) => all.flatMap((each) => each.id === "trigate_shared_state_degraded" && each.type === "Gauge" ? [each] : [])
)
const degraded = Effect.map(gauge, (all) => all.map(({ attributes, state }) => [attributes, state.value]))

describe("SharedState", () => {
  it.effect("asks the shared store, and goes on alone while it is away", () =>
    Effect.gen(function*() {
      const { orElse } = yield* SharedState.make({ use: "rate-limits" })
      let asked = 0
      let there = false
      const shared = Effect.suspend(() => {
        asked += 1
        return there ? Effect.succeed("shared") : away
      })
      const ask = orElse(shared, Effect.succeed("local"))
      assert.deepStrictEqual(yield* degraded, [[{ use: "rate-limits" }, 0]])
      assert.strictEqual(yield* ask, "local")
      assert.deepStrictEqual(yield* degraded, [[{ use: "rate-limits" }, 1]])
      there = true
      yield* TestClock.adjust(999)
      assert.strictEqual(yield* ask, "local")
      assert.strictEqual(asked, 1)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* ask, "shared")
      assert.deepStrictEqual(yield* degraded, [[{ use: "rate-limits" }, 0]])
      assert.strictEqual(asked, 2)
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())))

  it.effect("waits 250 milliseconds for a store that hangs, and then lets one call ask after each pause, uninterruptible or not", () =>
    Effect.gen(function*() {
      const { orElse } = yield* SharedState.make({ use: "rate-limits" })
      let asked = 0
      const hangs = Effect.suspend(() => {
        asked += 1
        return Effect.never
      })
      const ask = orElse(hangs, Effect.succeed("local"))
      const first = yield* Effect.forkChild(Effect.uninterruptible(ask), { startImmediately: true })
      yield* TestClock.adjust(249)
      assert.isUndefined(first.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* Fiber.join(first), "local")
      yield* TestClock.adjust(1000)
      const second = yield* Effect.forkChild(ask, { startImmediately: true })
      assert.strictEqual(yield* ask, "local")
      assert.strictEqual(asked, 2)
      yield* TestClock.adjust(250)
      assert.strictEqual(yield* Fiber.join(second), "local")
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())))

  it.effect("raises other failures of the store", () =>
    Effect.gen(function*() {
      const { orElse } = yield* SharedState.make({ use: "rate-limits" })
      assert.strictEqual(yield* Effect.flip(orElse(Effect.fail("refused"), Effect.succeed("local"))), "refused")
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())))
})
