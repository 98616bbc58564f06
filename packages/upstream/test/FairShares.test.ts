import { assert, describe, it } from "@effect/vitest"
import { local } from "@trigate/domain/Caller"
import type { Caller } from "@trigate/domain/Caller"
import { makeMonotonicTime } from "@trigate/domain/encoding/Encoding"
import type { Cost } from "@trigate/domain/operations/Operation"
import { sampleRuns } from "@trigate/testing/Sample"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as RateWindow from "@trigate/upstream/unstable/limits/RateWindow"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { action, arrivals, ask, callerOf, candles, most, query, run } from "./rateLimitSchedule.ts"

const venue = RateLimiter.layerMemory({ "trading-api": 1200 })

const hostile = callerOf("address:127.0.0.1")
const honest = callerOf("address:127.0.0.2")
const third = callerOf("key:third")

const take = (caller: Caller, cost: Cost, maxWait = 0) =>
  RateLimiter.RateLimiter.use((limiter) => limiter.take(ask(cost, maxWait, "trading-api", caller)))

/** `at once`, the milliseconds of the wait, or the refusal with its seconds. */
const outcome = (caller: Caller, cost: Cost, maxWait = 0) =>
  Effect.gen(function*() {
    const begin = yield* Clock.currentTimeMillis
    const refusal = yield* Effect.match(take(caller, cost, maxWait), {
      onFailure: ({ _tag, retryAfter }) => `${_tag} ${retryAfter}`,
      onSuccess: () => undefined
    })
    const after = (yield* Clock.currentTimeMillis) - begin
    return refusal ?? (after === 0 ? "at once" : `after ${after}`)
  })

/** How many calls start at once, and how the next one is refused. */
const starts = (caller: Caller, cost: Cost) =>
  Effect.gen(function*() {
    for (let count = 0;; count++) {
      const end = yield* outcome(caller, cost)
      if (end !== "at once") return [count, end] as const
    }
  })

const joining = (caller: Caller, cost: Cost, maxWait = 100_000) =>
  Effect.forkChild(outcome(caller, cost, maxWait), { startImmediately: true })

describe("a refusal", () => {
  const textFor = (caller: Caller) =>
    Effect.map(Effect.flip(take(caller, query)), ({ detail }) => detail?.replace(/ in [0-9]+ s/u, ""))
  const advice =
    "it has capacity for this call (TRIGATE_INFO_FRESHNESS and TRIGATE_STALE_WHEN_LIMITED allow more reads to share a " +
    "response, TRIGATE_TRADING_API_WEIGHT sets the limit)"

  it.effect("names the settings that help, and a share only where there are several callers", () =>
    Effect.gen(function*() {
      yield* starts(hostile, query)
      assert.strictEqual(
        yield* textFor(hostile),
        `The rate limit of trading-api is used up, except for a quarter that is reserved for other callers; ${advice}`
      )
      yield* outcome(honest, query)
      assert.strictEqual(
        yield* textFor(hostile),
        `The caller's share of the rate limit of trading-api is used up; ${advice}`
      )
      yield* starts(local, query)
      assert.strictEqual(yield* textFor(local), `The rate limit of trading-api is used up; ${advice}`)
    }).pipe(Effect.provide(venue)))
})

describe("a refresh of a cached response", () => {
  it.effect("takes nothing of its caller's share, does not wait, and lets the next one wait where it finds no room", () =>
    Effect.gen(function*() {
      const limiter = yield* RateLimiter.RateLimiter
      const pacer = limiter.pacerOf("trading-api")
      assert.isDefined(pacer)
      const refresh = { ...ask(query, 10_000, "trading-api", hostile), isRefresh: true }
      yield* starts(hostile, query)
      // 840 of 1140 are taken
      for (let count = 0; count < 15; count++) yield* limiter.take(refresh)
      yield* TestClock.adjust(20_000)
      assert.isFalse(pacer.isSpent(makeMonotonicTime(20_000)))
      assert.strictEqual((yield* Effect.flip(limiter.take(refresh)))._tag, "UpstreamRateLimited")
      assert.isTrue(pacer.isSpent(makeMonotonicTime(20_249)))
      assert.isFalse(pacer.isSpent(makeMonotonicTime(20_251)))
    }).pipe(Effect.provide(venue)))
})

describe("a caller alone", () => {
  it.effect("may hold three quarters of what reads and of what all calls may hold", () =>
    Effect.gen(function*() {
      // 42 queries are 840 of 855, and 60 actions fill 900
      assert.deepStrictEqual(yield* starts(hostile, query), [42, "QuotaExceeded 65"])
      assert.deepStrictEqual(yield* starts(hostile, action), [60, "QuotaExceeded 65"])
      yield* TestClock.adjust(64_999)
      assert.strictEqual(yield* outcome(hostile, query), "QuotaExceeded 1")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* starts(hostile, query), [42, "QuotaExceeded 65"])
    }).pipe(Effect.provide(venue)))

  it.effect("may hold all of it where it is the program itself", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* starts(local, query), [57, "UpstreamRateLimited 61"])
      assert.deepStrictEqual(yield* starts(local, action), [60, "UpstreamRateLimited 61"])
    }).pipe(Effect.provide(venue)))

  it.effect("may start a call that costs more than its share", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* starts(hostile, candles), [1, "QuotaExceeded 65"])
    }).pipe(Effect.provide(RateLimiter.layerMemory({ "trading-api": 100 }))))

  it.effect("may hold all of a limit that has no whole quarter", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* starts(hostile, action), [3, "QuotaExceeded 65"])
    }).pipe(Effect.provide(RateLimiter.layerMemory({ "trading-api": 3 }))))
})

describe("a second caller", () => {
  it.effect("finds a quarter at once, and its share as soon as the first one's calls leave the window", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* starts(hostile, query), [42, "QuotaExceeded 65"])
      // 840 and 15 queries are all that reads may hold
      assert.deepStrictEqual(yield* starts(honest, query), [15, "UpstreamRateLimited 61"])
      yield* TestClock.adjust(61_000)
      assert.deepStrictEqual(yield* starts(hostile, query), [0, "QuotaExceeded 4"])
      // 427 of 855 are its share, and it may have the rest of what the other one does not use: 6 more
      assert.deepStrictEqual(yield* starts(honest, query), [6, "QuotaExceeded 4"])
    }).pipe(Effect.provide(venue)))

  it.effect("sends its actions however many random ones the first one sends", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* starts(hostile, query), [42, "QuotaExceeded 65"])
      assert.deepStrictEqual(yield* starts(hostile, action), [60, "QuotaExceeded 65"])
      assert.deepStrictEqual(yield* starts(honest, action), [300, "UpstreamRateLimited 61"])
    }).pipe(Effect.provide(venue)))

  it.effect("is refused as beyond its share only when it is", () =>
    Effect.gen(function*() {
      yield* take(honest, query)
      assert.deepStrictEqual(yield* starts(hostile, query), [41, "QuotaExceeded 65"])
      assert.deepStrictEqual(yield* starts(honest, query), [15, "UpstreamRateLimited 61"])
    }).pipe(Effect.provide(venue)))
})

describe("what is unused", () => {
  it.effect("is lent: a caller beyond its share may have what the others do not use", () =>
    Effect.gen(function*() {
      yield* take(honest, query)
      yield* take(third, query)
      // the share is 285 of 855, and the others use 40
      assert.deepStrictEqual(yield* starts(hostile, query), [40, "QuotaExceeded 65"])
    }).pipe(Effect.provide(venue)))

  it.effect("is not what another caller used in the window before and has not used again", () =>
    Effect.gen(function*() {
      for (let n = 0; n < 12; n++) yield* take(honest, query)
      yield* TestClock.adjust(65_000)
      // 615 of 855: the share of 427 and what is lent
      assert.deepStrictEqual(yield* starts(hostile, query), [30, "QuotaExceeded 65"])
      assert.deepStrictEqual(yield* starts(third, query), [14, "QuotaExceeded 65"])
      for (let n = 0; n < 12; n++) assert.strictEqual(yield* outcome(honest, query), "at once")
    }).pipe(Effect.provide(venue)))

  it.effect("is all of it again once the others have not called for two windows", () =>
    Effect.gen(function*() {
      for (let n = 0; n < 12; n++) yield* take(honest, query)
      yield* TestClock.adjust(129_999)
      assert.deepStrictEqual(yield* starts(hostile, query), [30, "QuotaExceeded 61"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* starts(hostile, query), [12, "QuotaExceeded 60"])
    }).pipe(Effect.provide(venue)))
})

describe("waiting calls", () => {
  it.effect("start in the order of what their callers then hold, not of their arrival", () =>
    Effect.gen(function*() {
      // the program's own calls use everything for a minute
      for (let n = 0; n < 57; n++) yield* take(local, query)
      const begun: Array<string> = []
      const wait = (caller: Caller) =>
        Effect.forkChild(
          Effect.andThen(take(caller, query, 100_000), Effect.sync(() => begun.push(caller.id))),
          { startImmediately: true }
        )
      for (const caller of [hostile, hostile, hostile, honest, honest, third]) yield* wait(caller)
      yield* TestClock.adjust(61_000)
      const [a, b, c] = [hostile.id, honest.id, third.id]
      assert.deepStrictEqual(begun, [a, b, c, a, b, a])
    }).pipe(Effect.provide(venue)))

  it.effect("of a caller beyond its share do not hold up those of others", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* starts(hostile, query), [42, "QuotaExceeded 65"])
      const waiting = yield* Effect.forEach([1, 2, 3], () => joining(hostile, candles))
      const actions = yield* Effect.forEach([1, 2, 3], () => joining(hostile, action))
      for (let n = 0; n < 14; n++) assert.strictEqual(yield* outcome(honest, query), "at once")
      assert.strictEqual(yield* outcome(honest, action), "at once")
      yield* TestClock.adjust(65_000)
      assert.deepStrictEqual(yield* Effect.forEach(waiting, Fiber.join), Array.from({ length: 3 }, () => "after 65000"))
      assert.deepStrictEqual(yield* Effect.forEach(actions, Fiber.join), Array.from({ length: 3 }, () => "at once"))
    }).pipe(Effect.provide(venue)))

  it.effect("are woken when another caller becomes the next one", () =>
    Effect.gen(function*() {
      for (let n = 0; n < 10; n++) yield* take(hostile, query)
      yield* TestClock.adjust(30_000)
      for (let n = 0; n < 8; n++) yield* take(honest, query)
      for (let n = 0; n < 39; n++) yield* take(local, query)
      const later = yield* joining(honest, candles)
      const sooner = yield* joining(hostile, query)
      // the 200 of the hostile caller leave at 61 s: room for one candle window, which is then what counts most
      yield* TestClock.adjust(31_000)
      assert.deepStrictEqual(yield* Fiber.join(sooner), "after 31000")
      assert.deepStrictEqual(yield* Fiber.join(later), "after 31000")
    }).pipe(Effect.provide(venue)))
})

describe("a stranger with many addresses", () => {
  it("is told apart at 64 of them; the others share one, and keys keep their own", () => {
    const window = new RateWindow.RateWindow({ slots: 60, width: 1000 })
    for (let n = 0; n < 10_000; n++) window.nameOf(callerOf(`address:10.0.${n >> 8}.${n & 255}`))
    assert.strictEqual(window.callers, 65)
    assert.strictEqual(window.nameOf(callerOf("address:10.0.0.63")), "address:10.0.0.63")
    assert.strictEqual(window.nameOf(callerOf("address:10.0.0.64")), "address:others")
    assert.strictEqual(window.nameOf(third), third.id)
    assert.strictEqual(window.callers, 66)
    window.moveTo(makeMonotonicTime(129_999))
    assert.strictEqual(window.callers, 66)
    window.moveTo(makeMonotonicTime(130_000))
    assert.strictEqual(window.callers, 0)
    assert.strictEqual(window.nameOf(callerOf("address:10.0.0.64")), "address:10.0.0.64")
    assert.strictEqual(window.callers, 1)
  })
})

const count = Effect.map(
  Metric.snapshot,
  (all) =>
    Object.fromEntries(
      all.flatMap(({ id, state }) =>
        ["refused_total", "beyond_share_total", "callers"].includes(id.replace("trigate_upstream_rate_limit_", ""))
          ? [[
            id.slice("trigate_upstream_rate_limit_".length),
            "value" in state ? state.value : "count" in state ? state.count : 0
          ]]
          : []
      )
    )
)

describe("the metrics", () => {
  it.effect("tell how many callers there are, and refusals of callers beyond their share from the others", () =>
    Effect.gen(function*() {
      yield* starts(hostile, query)
      yield* starts(hostile, query)
      yield* starts(honest, query)
      assert.deepStrictEqual(yield* count, { refused_total: 1, beyond_share_total: 2, callers: 2 })
    }).pipe(Effect.provide(venue), Effect.provideService(Metric.MetricRegistry, new Map())))
})

const Seed = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))

describe("for random callers and arrivals", () => {
  for (const limit of [300]) {
    it.effect.prop(`no window exceeds the limit of ${limit}`, { seed: Seed }, ({ seed }) =>
      Effect.gen(function*() {
        const schedule = yield* arrivals({
          seed,
          rounds: 2,
          replicas: 1,
          pace: limit / 1200,
          callers: [hostile, hostile, hostile, honest, third, local]
        })
        const begun = yield* run([yield* RateLimiter.RateLimiter], schedule, {
          upstream: "trading-api",
          step: 60_000,
          settle: Effect.void
        })
        assert.isAtMost(most(begun, 60_000), limit)
      }).pipe(Effect.provide(RateLimiter.layerMemory({ "trading-api": limit }))), {
      arbitrary: { runs: sampleRuns(12) }
    })
  }

  // 285 of the 1140 that reads may hold are a share of three callers, and as much is for those that grow
  it.effect.prop(
    "no caller is refused or waits whose calls stay in its share, while such calls grow by a quarter of the limit in a window",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function*() {
        const growing = Effect.fnUntraced(function*(caller: Caller, by: number) {
          for (let round = 1; round <= 8; round++) {
            for (let n = 0; n < Math.min(14, by * round); n++) {
              assert.strictEqual(yield* outcome(caller, query), "at once")
            }
            yield* Effect.sleep(65_000)
          }
        })
        const greedy = Effect.gen(function*() {
          let started = 0
          while ((yield* Clock.currentTimeMillis) < 550_000) {
            const cost = yield* Random.choice([query, query, candles, action])
            if ((yield* outcome(hostile, cost)) === "at once") started += cost.weight
            yield* Effect.sleep(yield* Random.nextIntBetween(0, 800))
          }
          return started
        })
        const attack = yield* Effect.forkChild(greedy, { startImmediately: true })
        yield* TestClock.adjust(yield* Random.nextIntBetween(0, 130_000))
        const by = yield* Random.nextIntBetween(1, 13)
        const fibers = yield* Effect.forEach(
          [growing(honest, by), growing(third, 14 - by)],
          (each) => Effect.forkChild(each, { startImmediately: true })
        )
        yield* TestClock.adjust(700_000)
        yield* Effect.forEach(fibers, Fiber.join, { discard: true })
        // a candle window costs 104, and may be what does not fit into the share
        assert.isAbove(yield* Fiber.join(attack), 8 * (285 - 104))
      }).pipe(Random.withSeed(seed), Effect.provide(venue)),
    { arbitrary: { runs: sampleRuns(12) } }
  )
})

describe("a caller's quota", () => {
  const withQuota = (quota: Caller["quota"], id = "key:desk"): Caller => ({ id, scope: {}, quota })

  it.effect("of weight a minute is kept beside its share, and takes refunds", () =>
    Effect.gen(function*() {
      const desk = withQuota({ weightPerMinute: 110 })
      const first = yield* take(desk, candles)
      assert.strictEqual(yield* outcome(desk, query), "QuotaExceeded 61")
      first.refund(84)
      assert.deepStrictEqual(yield* starts(desk, query), [4, "QuotaExceeded 61"])
      assert.deepStrictEqual(yield* starts(desk, action), [10, "QuotaExceeded 61"])
      assert.strictEqual(yield* outcome(withQuota({ weightPerMinute: 110 }, "key:other"), candles), "at once")
      yield* TestClock.adjust(61_000)
      assert.strictEqual(yield* outcome(desk, query), "at once")
    }).pipe(Effect.provide(venue)))

  it.effect("takes nothing of the upstream for a call that it refuses, and gives back what the upstream refuses", () =>
    Effect.gen(function*() {
      const desk = withQuota({ weightPerMinute: 20 })
      yield* take(local, query)
      assert.deepStrictEqual(yield* starts(local, query), [56, "UpstreamRateLimited 61"])
      assert.strictEqual(yield* outcome(desk, query), "UpstreamRateLimited 61")
      yield* TestClock.adjust(61_000)
      assert.deepStrictEqual(yield* starts(desk, query), [1, "QuotaExceeded 61"])
      assert.deepStrictEqual(yield* starts(local, query), [56, "UpstreamRateLimited 61"])
    }).pipe(Effect.provide(venue)))

  it.effect("of request units a second is for all nodes together, also where they have no limit", () =>
    Effect.gen(function*() {
      const limiter = yield* RateLimiter.RateLimiter
      const desk = withQuota({ unitsPerSecond: 2 })
      const unit: Cost = { weight: 0, requestUnits: 1 }
      yield* limiter.take(ask(unit, 0, "layer2", desk))
      yield* limiter.take(ask(unit, 0, "trading-node", desk))
      const refused = yield* Effect.flip(limiter.take(ask(unit, 0, "token-chain", desk)))
      assert.deepInclude(refused, { _tag: "QuotaExceeded", retryAfter: 2 })
      const waiting = yield* Effect.forkChild(limiter.take(ask(unit, 2000, "layer2", desk)), { startImmediately: true })
      yield* TestClock.adjust(1049)
      assert.isUndefined(waiting.pollUnsafe())
      yield* TestClock.adjust(1)
      yield* Fiber.join(waiting)
    }).pipe(Effect.provide(RateLimiter.layerMemory({}))))
})

describe("a share of anything that is counted by its holder", () => {
  it("lets a holder alone have three quarters, and each of two what the other leaves, at least a half of them", () => {
    assert.strictEqual(RateWindow.shareCap(10, 1, 0), 8)
    assert.strictEqual(RateWindow.shareCap(10, 2, 8), 4)
    assert.strictEqual(RateWindow.shareCap(10, 2, 3), 5)
  })
})
