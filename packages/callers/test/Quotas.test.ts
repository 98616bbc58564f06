import { assert, describe, it } from "@effect/vitest"
import * as Quotas from "@trigate/callers/Quotas"
import type { Caller, Quota } from "@trigate/domain/Caller"
import { settableClock } from "@trigate/testing/AdvancingClock"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"

const callerOf = (quota: Quota, id = "key:desk"): Caller => ({ id, scope: {}, quota })

const count = (caller: Caller) => Quotas.Quotas.use((quotas) => quotas.count(caller))

/** What is left after each request, then the seconds after which the refused one may come again. */
const until = Effect.fnUntraced(function*(caller: Caller) {
  const left: Array<number> = []
  for (;;) {
    const next = yield* Effect.result(count(caller))
    if (next._tag === "Failure") return { left, retryAfter: next.failure.retryAfter }
    left.push(next.success.remaining)
    next.success.end()
  }
})

const exceeded = Effect.map(
  Metric.snapshot,
  (all) =>
    all.flatMap(({ attributes, id, state }) =>
      id === "trigate_quota_exceeded_total" && "count" in state ? [`${attributes?.["quota"]} ${state.count}`] : []
    )
)

describe("requests a second", () => {
  it.effect("come at once up to the burst, then evenly", () =>
    Effect.gen(function*() {
      const caller = callerOf({ requestsPerSecond: 2, burst: 5 })
      assert.deepStrictEqual(yield* until(caller), { left: [4, 3, 2, 1, 0], retryAfter: 1 })
      yield* TestClock.adjust(499)
      assert.deepStrictEqual(yield* until(caller), { left: [], retryAfter: 1 })
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* until(caller), { left: [0], retryAfter: 1 })
      yield* TestClock.adjust(2500)
      assert.deepStrictEqual(yield* until(caller), { left: [4, 3, 2, 1, 0], retryAfter: 1 })
    }).pipe(Effect.provide(Quotas.layerMemory)))

  it.effect("are those of a second where no burst is named, and at least one", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* until(callerOf({ requestsPerSecond: 2.5 })), { left: [2, 1, 0], retryAfter: 1 })
      const slow = callerOf({ requestsPerSecond: 0.1 }, "key:slow")
      assert.deepStrictEqual(yield* until(slow), { left: [0], retryAfter: 10 })
      yield* TestClock.adjust(9001)
      assert.deepStrictEqual(yield* until(slow), { left: [], retryAfter: 1 })
    }).pipe(Effect.provide(Quotas.layerMemory)))

  it.effect("are counted for each caller", () =>
    Effect.gen(function*() {
      const quota = { requestsPerSecond: 1 }
      assert.deepStrictEqual(yield* until(callerOf(quota, "key:a")), { left: [0], retryAfter: 1 })
      assert.deepStrictEqual(yield* until(callerOf(quota, "key:b")), { left: [0], retryAfter: 1 })
    }).pipe(Effect.provide(Quotas.layerMemory)))

  it.effect("come back in the time that passes, whatever the clock on the wall is set to", () =>
    Effect.gen(function*() {
      const { clock, set } = yield* settableClock
      const caller = callerOf({ requestsPerSecond: 2, burst: 2 })
      const asked = Effect.provideService(until(caller), Clock.Clock, clock)
      assert.deepStrictEqual(yield* asked, { left: [1, 0], retryAfter: 1 })
      set.shift = -3_600_000
      yield* TestClock.adjust(500)
      assert.deepStrictEqual(yield* asked, { left: [0], retryAfter: 1 })
      set.shift = 3_600_000
      assert.deepStrictEqual(yield* asked, { left: [], retryAfter: 1 })
    }).pipe(Effect.provide(Quotas.layerMemory)))

  it.effect.prop(
    "never exceed the burst and what the time has given",
    {
      gaps: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 900 }))).check(
        Schema.isMaxLength(60)
      ),
      burst: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 8 }))
    },
    ({ burst, gaps }) =>
      Effect.gen(function*() {
        const caller = callerOf({ requestsPerSecond: 4, burst })
        const starts: Array<number> = []
        let now = 0
        for (const gap of gaps) {
          yield* TestClock.adjust(gap)
          now += gap
          if ((yield* Effect.result(count(caller)))._tag === "Success") starts.push(now)
        }
        for (const [index, from] of starts.entries()) {
          for (const [last, to] of starts.entries()) {
            if (last >= index) assert.isAtMost(last - index + 1, burst + Math.floor((to - from) / 250))
          }
        }
      }).pipe(Effect.provide([Quotas.layerMemory, TestClock.layer()]))
  )
})

describe("concurrent calls", () => {
  it.effect("are as many as the quota says, and one more when one has ended", () =>
    Effect.gen(function*() {
      const caller = callerOf({ concurrentCalls: 2 })
      const first = yield* count(caller)
      yield* count(caller)
      assert.strictEqual((yield* Effect.flip(count(caller))).retryAfter, 1)
      first.end()
      yield* count(caller)
      assert.strictEqual((yield* Effect.flip(count(caller)))._tag, "QuotaExceeded")
      assert.deepStrictEqual(yield* exceeded, ["concurrent 2"])
    }).pipe(Effect.provide(Quotas.layerMemory), Effect.provideService(Metric.MetricRegistry, new Map())))

  it.effect("take no request of a second where there are too many of them", () =>
    Effect.gen(function*() {
      const caller = callerOf({ requestsPerSecond: 1, burst: 2, concurrentCalls: 1 })
      const first = yield* count(caller)
      yield* Effect.flip(count(caller))
      first.end()
      assert.strictEqual((yield* count(caller)).remaining, 0)
    }).pipe(Effect.provide(Quotas.layerMemory)))
})

describe("the fields of an answer", () => {
  it("name the burst, the time in which it comes back, and what is left", () => {
    const quota = { requestsPerSecond: 2, burst: 5 }
    assert.deepStrictEqual(Quotas.rateLimitFields(quota, { remaining: 3, reset: 1001 }), {
      policy: `"requests";q=5;w=3`,
      limit: `"requests";r=3;t=2`
    })
    assert.isUndefined(Quotas.rateLimitFields({ concurrentCalls: 3 }, { remaining: 3, reset: 0 }))
  })
})
