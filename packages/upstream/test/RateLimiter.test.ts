import { assert, describe, it } from "@effect/vitest"
import { sample, sampleRuns } from "@trigate/testing/Sample"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as Clock from "effect/Clock"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import type { Start } from "./rateLimitSchedule.ts"
import { action, arrivals, ask, candles, most, query, run } from "./rateLimitSchedule.ts"

const venue = RateLimiter.layerMemory({ "trading-api": 1200 })

const take = (asked: RateLimiter.PermitRequest) => RateLimiter.RateLimiter.use((limiter) => limiter.take(asked))

const tryTake = (asked: RateLimiter.PermitRequest) =>
  RateLimiter.RateLimiter.use((limiter) => Effect.clockWith((clock) => Effect.succeed(limiter.tryTake(asked, clock))))

/** Milliseconds until the call starts or is refused, and the seconds of its refusal. */
const wait = (asked: RateLimiter.PermitRequest) =>
  Effect.gen(function*() {
    const begin = yield* Clock.currentTimeMillis
    const refused = yield* Effect.match(take(asked), {
      onFailure: ({ retryAfter }) => ({ retryAfter }),
      onSuccess: () => ({})
    })
    const after = (yield* Clock.currentTimeMillis) - begin
    if (after > 0) return { after, ...refused }
    return "retryAfter" in refused ? refused : "at once"
  })

const starts = (asked: RateLimiter.PermitRequest) =>
  Effect.gen(function*() {
    let count = 0
    while ((yield* wait(asked)) === "at once") count += 1
    return count
  })

/** Takes all that reads may take; it leaves the window 61 seconds later. */
const fill = Effect.gen(function*() {
  const first = yield* take(ask(candles))
  assert.strictEqual(yield* starts(ask(candles)), 9)
  assert.strictEqual(yield* starts(ask(query)), 5)
  return first
})

const Seed = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))

const joining = (asked: RateLimiter.PermitRequest) => Effect.forkChild(wait(asked), { startImmediately: true })

describe("a limit of 1200 weight a minute", () => {
  it.effect("can be used at once, except for the share of actions, and again when the window has passed", () =>
    Effect.gen(function*() {
      const fibers = yield* Effect.forEach(Array.from({ length: 60 }), () => joining(ask(query, 61_000)))
      assert.strictEqual(yield* starts(ask(action)), 60)
      yield* TestClock.adjust(60_999)
      assert.deepStrictEqual(yield* wait(ask(action)), { retryAfter: 1 })
      yield* TestClock.adjust(1)
      const waits = yield* Effect.forEach(fibers, Fiber.join)
      assert.deepStrictEqual(waits.slice(0, 57), Array.from({ length: 57 }, () => "at once"))
      assert.deepStrictEqual(waits.slice(57), Array.from({ length: 3 }, () => ({ after: 61_000 })))
      assert.strictEqual(yield* starts(ask(query)), 54)
    }).pipe(Effect.provide(venue)))

  it.effect("counts a call that starts late in a slot for a whole slot longer", () =>
    Effect.gen(function*() {
      yield* TestClock.adjust(999)
      assert.strictEqual(yield* starts(ask(query)), 57)
      yield* TestClock.adjust(60_000)
      assert.deepStrictEqual(yield* wait(ask(query)), { retryAfter: 1 })
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* starts(ask(query)), 57)
      yield* TestClock.adjust(1_000_000)
      assert.strictEqual(yield* starts(ask(query)), 57)
    }).pipe(Effect.provide(venue)))

  it.effect("takes a refund of what candles did not use, and of no more", () =>
    Effect.gen(function*() {
      const permits = yield* take(ask(candles))
      permits.refund(83)
      permits.refund(-1000)
      yield* TestClock.adjust(60_999)
      permits.refund(1000)
      permits.refund(1000)
      assert.strictEqual(yield* starts(ask(query)), 57)
    }).pipe(Effect.provide(venue)))

  it.effect("ignores a refund of what has left the window", () =>
    Effect.gen(function*() {
      const permits = yield* take(ask(candles))
      yield* TestClock.adjust(61_000)
      permits.refund(84)
      assert.strictEqual(yield* starts(ask(query)), 57)
    }).pipe(Effect.provide(venue)))

  it.effect("starts waiting calls in the order of their arrival", () =>
    Effect.gen(function*() {
      for (let n = 0; n < 5; n++) yield* take(ask(candles))
      yield* TestClock.adjust(10_000)
      for (let n = 0; n < 5; n++) yield* take(ask(candles))
      assert.strictEqual(yield* starts(ask(query)), 5)
      const costs = [candles, candles, query, candles, candles, query, query, query, query, query, candles]
      const fibers = yield* Effect.forEach(costs, (cost) => joining(ask(cost, 70_000)))
      yield* TestClock.adjust(70_000)
      // 520 units leave first: room for four candles and five queries
      assert.deepStrictEqual(yield* Effect.forEach(fibers, Fiber.join), [
        ...Array.from({ length: 9 }, () => ({ after: 51_000 })),
        { after: 61_000 },
        { after: 61_000 }
      ])
    }).pipe(Effect.provide(venue)))

  it.effect("lets no call overtake that would take what the first of the queue waits for", () =>
    Effect.gen(function*() {
      for (let n = 0; n < 10; n++) yield* take(ask(candles))
      const first = yield* joining(ask(candles, 61_000))
      assert.deepStrictEqual(yield* wait(ask(query)), { retryAfter: 61 })
      yield* Fiber.interrupt(first)
      assert.strictEqual(yield* wait(ask(query)), "at once")
    }).pipe(Effect.provide(venue)))

  it.effect("refuses a call at once if its wait, behind the queue, would be longer than its max wait", () =>
    Effect.gen(function*() {
      yield* fill
      assert.deepStrictEqual(yield* wait(ask(query, 60_999)), { retryAfter: 61 })
      yield* Effect.forEach(Array.from({ length: 10 }), () => joining(ask(candles, 61_000)))
      assert.deepStrictEqual(yield* wait(ask(candles, 121_999)), { retryAfter: 122 })
      const last = yield* joining(ask(candles, 122_000))
      yield* TestClock.adjust(122_000)
      assert.deepStrictEqual(yield* Fiber.join(last), { after: 122_000 })
    }).pipe(Effect.provide(venue)))

  it.effect("refuses waiting reads when more actions come than they can wait for", () =>
    Effect.gen(function*() {
      yield* fill
      yield* TestClock.adjust(30_000)
      const read = yield* joining(ask(query, 40_000))
      const behind = yield* joining(ask(query, 31_000))
      assert.strictEqual(yield* starts(ask(action)), 60)
      const actions = yield* Effect.forEach(Array.from({ length: 1140 }), () => joining(ask(action, 31_000)))
      yield* TestClock.adjust(31_000)
      for (const waiting of actions) assert.deepStrictEqual(yield* Fiber.join(waiting), { after: 31_000 })
      assert.deepStrictEqual(yield* Fiber.join(read), { after: 31_000, retryAfter: 30 })
      assert.deepStrictEqual(yield* Fiber.join(behind), { after: 31_000, retryAfter: 30 })
      yield* TestClock.adjust(30_000)
      assert.strictEqual(yield* wait(ask(query)), "at once")
    }).pipe(Effect.provide(venue)))

  it.effect("refuses a call at the end of its max wait when the call before it waits for longer", () =>
    Effect.gen(function*() {
      yield* fill
      yield* joining(ask(query, 122_000))
      const actions = yield* Effect.forEach(Array.from({ length: 60 }), () => joining(ask(action)))
      yield* Effect.forEach(actions, Fiber.join)
      const behind = yield* joining(ask(query, 61_000))
      yield* TestClock.adjust(60_000)
      yield* Effect.forEach(Array.from({ length: 1200 }), () => joining(ask(action, 61_000)))
      yield* TestClock.adjust(1001)
      assert.deepStrictEqual(yield* Fiber.join(behind), { after: 61_001, retryAfter: 61 })
    }).pipe(Effect.provide(venue)))

  it.effect("takes nothing for a call that is cancelled while it waits", () =>
    Effect.gen(function*() {
      yield* fill
      const leaving = yield* Effect.forEach(Array.from({ length: 20 }), () => joining(ask(candles, 200_000)))
      const last = yield* joining(ask(query, 200_000))
      yield* TestClock.adjust(1000)
      yield* Effect.forEach(leaving, Fiber.interrupt)
      yield* TestClock.adjust(60_000)
      assert.deepStrictEqual(yield* Fiber.join(last), { after: 61_000 })
      assert.strictEqual(yield* starts(ask(query)), 56)
    }).pipe(Effect.provide(venue)))

  it.effect("lets a refund start the first of the queue at once, and no call behind it earlier", () =>
    Effect.gen(function*() {
      const first = yield* fill
      const waiting = yield* Effect.forEach([candles, query], (cost) => joining(ask(cost, 61_000)))
      yield* TestClock.adjust(100)
      first.refund(84)
      yield* TestClock.adjust(100)
      first.refund(20)
      yield* TestClock.adjust(60_800)
      assert.deepStrictEqual(yield* Effect.forEach(waiting, Fiber.join), [{ after: 200 }, { after: 61_000 }])
    }).pipe(Effect.provide(venue)))

  it.effect("lets 60 actions start while reads use their whole share and wait", () =>
    Effect.gen(function*() {
      yield* fill
      yield* Effect.forEach([1, 2, 3], () => joining(ask(candles, 61_000)))
      assert.strictEqual(yield* starts(ask(action)), 60)
      assert.deepStrictEqual(yield* wait(ask(action)), { retryAfter: 61 })
      const waiting = yield* joining(ask(action, 61_000))
      yield* TestClock.adjust(61_000)
      assert.deepStrictEqual(yield* Fiber.join(waiting), { after: 61_000 })
    }).pipe(Effect.provide(venue)))

  it.effect("can be used by actions alone, which start before reads that wait", () =>
    Effect.gen(function*() {
      const first = yield* take(ask(action))
      const second = yield* take(ask(candles))
      assert.strictEqual(yield* starts(ask(action)), 1095)
      const read = yield* joining(ask(query, 61_000))
      const once = yield* joining(ask(action, 61_000))
      yield* TestClock.adjust(10)
      first.refund(1)
      yield* TestClock.adjust(10)
      second.refund(20)
      yield* TestClock.adjust(10)
      assert.deepStrictEqual([yield* Fiber.join(read), yield* Fiber.join(once)], [{ after: 20 }, { after: 10 }])
    }).pipe(Effect.provide(venue)))
})

describe("tryTake", () => {
  const isTaken = (asked: RateLimiter.PermitRequest) => Effect.map(tryTake(asked), (permits) => permits !== undefined)

  it.effect("takes what has room now, and answers undefined for a call that would have to wait", () =>
    Effect.gen(function*() {
      for (let n = 0; n < 11; n++) assert.isDefined(yield* tryTake(ask(candles)))
      assert.strictEqual(yield* starts(ask(query)), 0)
      assert.isUndefined(yield* tryTake(ask(query, 61_000)))
      assert.isDefined(yield* tryTake(ask(action)))
      assert.strictEqual(yield* starts(ask(action)), 59)
      assert.isUndefined(yield* tryTake(ask(action, 61_000)))
      yield* TestClock.adjust(60_999)
      assert.isUndefined(yield* tryTake(ask(query)))
      yield* TestClock.adjust(1)
      assert.isDefined(yield* tryTake(ask(query)))
    }).pipe(Effect.provide(RateLimiter.layerMemory({ "trading-api": 1204 }))))

  it.effect("does not overtake calls that wait, except that actions do not wait for reads", () =>
    Effect.gen(function*() {
      const first = yield* fill
      const read = yield* joining(ask(candles, 61_000))
      first.refund(84)
      assert.isFalse(yield* isTaken(ask(query)))
      assert.strictEqual(yield* starts(ask(action)), 144)
      const once = yield* joining(ask(action, 61_000))
      assert.isFalse(yield* isTaken(ask(action)))
      yield* Fiber.interrupt(read)
      yield* Fiber.interrupt(once)
      assert.isFalse(yield* isTaken(ask(action)))
      first.refund(1)
      assert.isTrue(yield* isTaken(ask(action)))
      assert.isFalse(yield* isTaken(ask(action)))
    }).pipe(Effect.provide(venue)))

  it.effect("loses no permits beside take, refunds and cancelled calls", () =>
    Effect.gen(function*() {
      const taken: Array<RateLimiter.Permits | undefined> = []
      for (let n = 0; n < 5; n++) taken.push(yield* tryTake(ask(candles)), yield* take(ask(candles)))
      const waiting = yield* Effect.forEach([candles, candles, query], (cost) => joining(ask(cost, 61_000)))
      assert.isUndefined(yield* tryTake(ask(candles)))
      yield* Effect.forEach(waiting.slice(0, 2), Fiber.interrupt)
      assert.deepStrictEqual(yield* Fiber.join(waiting[2] ?? assert.fail()), "at once")
      for (const permits of taken) permits?.refund(104)
      // all of it, but for the query that waited
      assert.strictEqual(yield* starts(ask(query)), 56)
      assert.strictEqual(yield* starts(ask(action)), 60)
    }).pipe(Effect.provide(venue)))

  for (const limit of sample("limits with tryTake", [1200, 110], 1)) {
    it.effect.prop(
      `takes exactly when take does not wait, and keeps a limit of ${limit} with it`,
      { seed: Seed },
      ({ seed }) =>
        Effect.gen(function*() {
          const outcomes = { taken: 0, late: 0 }
          /** Takes with `tryTake` and with `take` in turn, and asks the other one for the same answer. */
          const mixed = (limiter: RateLimiter.RateLimiter["Service"], asked: RateLimiter.PermitRequest) =>
            Effect.gen(function*() {
              const permits = yield* Effect.clockWith((clock) => Effect.succeed(limiter.tryTake(asked, clock)))
              if (permits === undefined) {
                outcomes.late += 1
                assert.isTrue(Exit.isFailure(yield* Effect.exit(limiter.take({ ...asked, maxWait: 0 }))))
                return yield* limiter.take(asked)
              }
              outcomes.taken += 1
              if (outcomes.taken % 2 === 0) return permits
              permits.refund(RateLimiter.worstCost("trading-api", asked))
              return yield* Effect.orDie(limiter.take({ ...asked, maxWait: 0 }))
            })
          const schedule = yield* arrivals({ seed, rounds: 2, replicas: 1, pace: limit / 1200 })
          const begun = yield* run([yield* RateLimiter.RateLimiter], schedule, {
            upstream: "trading-api",
            step: 60_000,
            settle: Effect.void,
            take: mixed
          })
          assert.isAtMost(most(begun, 60_000), limit)
          assert.isAbove(outcomes.taken, 20)
          assert.isAbove(outcomes.late, 20)
        }).pipe(Effect.provide(RateLimiter.layerMemory({ "trading-api": limit }))),
      {
        arbitrary: { runs: sampleRuns(12) }
      }
    )
  }

  it.effect("answers the same permits where there is no limit", () =>
    Effect.gen(function*() {
      const permits = yield* tryTake(ask(candles))
      assert.isDefined(permits)
      assert.strictEqual(permits, yield* tryTake(ask(action)))
      assert.strictEqual(permits, yield* take(ask(action)))
    }).pipe(Effect.provide(RateLimiter.layerUnlimited)))
})

describe("a small limit of weight", () => {
  const small = (limit: number) => RateLimiter.layerMemory({ "trading-api": limit })

  for (const [limit, reads, actions] of [[100, 4, 20], [21, 1, 1], [20, 1, 0]] as const) {
    it.effect(`of ${limit} names the second at which the next call can start`, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* starts(ask(query)), reads)
        const refused = yield* Effect.flip(take(ask(query)))
        assert(refused._tag === "UpstreamRateLimited")
        assert.strictEqual(refused.upstream, "trading-api")
        assert.strictEqual(refused.retryAfter, 61)
        assert.strictEqual(yield* starts(ask(action)), actions)
        yield* TestClock.adjust(60_999)
        assert.deepStrictEqual(yield* wait(ask(query)), { retryAfter: 1 })
        yield* TestClock.adjust(1)
        assert.strictEqual(yield* wait(ask(query)), "at once")
      }).pipe(Effect.provide(small(limit))))
  }

  it.effect("lets a call start alone that costs more than the limit", () =>
    Effect.gen(function*() {
      yield* take(ask(action))
      assert.deepStrictEqual(yield* wait(ask(candles)), { retryAfter: 61 })
      yield* TestClock.adjust(61_000)
      const permits = yield* take(ask(candles))
      assert.deepStrictEqual(yield* wait(ask(action)), { retryAfter: 61 })
      permits.refund(84)
      assert.strictEqual(yield* starts(ask(query)), 3)
    }).pipe(Effect.provide(small(100))))

  it.effect("has no share for actions if it is 1 or 0.5", () =>
    Effect.gen(function*() {
      const limiter = yield* RateLimiter.RateLimiter
      yield* limiter.take(ask(action))
      assert.strictEqual((yield* Effect.flip(limiter.take(ask(action)))).retryAfter, 61)
    }).pipe(
      Effect.provide(small(1)),
      Effect.andThen(
        Effect.gen(function*() {
          yield* take(ask(query))
          assert.strictEqual((yield* Effect.flip(take(ask(action)))).retryAfter, 122)
        }).pipe(Effect.provide(small(0.5)))
      )
    ))
})

describe("a limit of request units a second", () => {
  const plan = (limit: number) => RateLimiter.layerMemory({ "token-chain": limit })
  const call = (requestUnits = 1, maxWait = 0) => ask({ weight: 0, requestUnits }, maxWait, "token-chain")

  for (
    const [limit, units, later] of [[1, 1, 1050], [2.5, 2, 1050], [50, 50, 1050], [0.5, 1, 2100], [
      0.3,
      1,
      3507
    ]] as const
  ) {
    it.effect(`of ${limit} lets ${units} start in ${later} milliseconds`, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* starts(call()), units)
        assert.deepStrictEqual(yield* wait(call()), { retryAfter: Math.ceil(later / 1000) })
        yield* TestClock.adjust(later - 1)
        assert.deepStrictEqual(yield* wait(call()), { retryAfter: 1 })
        yield* TestClock.adjust(1)
        assert.strictEqual(yield* starts(call()), units)
      }).pipe(Effect.provide(plan(limit))))
  }

  it.effect("lets a call start alone that costs more units than a second has", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* starts(call(3)), 1)
      assert.deepStrictEqual(yield* wait(call(1, 1049)), { retryAfter: 2 })
      assert.deepStrictEqual(yield* wait(call(1, 1050)), { after: 1050 })
      assert.deepStrictEqual(yield* wait(call(3)), { retryAfter: 2 })
    }).pipe(Effect.provide(plan(2)), (test) => Effect.andThen(Effect.forkChild(TestClock.adjust(1050)), test)))

  it.effect("does not limit the other upstreams", () =>
    Effect.gen(function*() {
      for (const upstream of ["trading-api", "trading-node", "layer2"] as const) {
        for (let n = 0; n < 1000; n++) assert.strictEqual(yield* wait(ask(candles, 0, upstream)), "at once")
      }
    }).pipe(Effect.provide(plan(1))))

  it.effect("allocates nothing where there is none", () =>
    Effect.gen(function*() {
      const limiter = yield* RateLimiter.RateLimiter
      assert.strictEqual(limiter.take(ask(candles)), limiter.take(ask(action)))
    }).pipe(Effect.provide(RateLimiter.layerUnlimited)))
})

describe("the metrics", () => {
  const metrics = Effect.map(
    Metric.snapshot,
    (all) =>
      Object.fromEntries(
        all.flatMap(({ attributes, id, state }) =>
          id.startsWith("trigate_upstream_rate_limit_") && attributes?.["upstream"] === "trading-node"
            ? [[
              [id.slice("trigate_upstream_rate_limit_".length), attributes["share"]].join(" ").trim(),
              "value" in state ? Number(state.value) : "count" in state ? Number(state.count) : undefined
            ]]
            : []
        )
      )
  )

  it.effect("tell what is available, and how many calls waited and were refused", () =>
    Effect.gen(function*() {
      const call = ask({ weight: 0, requestUnits: 1 }, 0, "trading-node")
      assert.deepStrictEqual(yield* metrics, { callers: 0, "available common": 12 })
      yield* take(call)
      assert.deepStrictEqual(yield* metrics, { callers: 0, "available common": 11 })
      assert.strictEqual(yield* starts(call), 11)
      const waiting = yield* joining({ ...call, maxWait: 1050 })
      assert.strictEqual(yield* starts(call), 0)
      assert.deepStrictEqual(yield* metrics, { callers: 0, "available common": 0, waits_total: 1, refused_total: 2 })
      yield* TestClock.adjust(1050)
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(yield* metrics, { callers: 0, "available common": 11, waits_total: 1, refused_total: 2 })
      yield* TestClock.adjust(1050)
      assert.deepStrictEqual(yield* metrics, { callers: 0, "available common": 12, waits_total: 1, refused_total: 2 })
    }).pipe(
      Effect.provide(RateLimiter.layerMemory({ "trading-node": 12 })),
      Effect.andThen(metrics),
      // a limiter whose scope is closed reports nothing
      Effect.map((after) => assert.deepStrictEqual(after, { waits_total: 1, refused_total: 2 })),
      Effect.provideService(Metric.MetricRegistry, new Map())
    ))

  it.effect("tell what reads and what actions can take of the weight", () =>
    Effect.gen(function*() {
      const available = Effect.map(Metric.snapshot, (all) =>
        Object.fromEntries(all.flatMap(({ attributes, state }) =>
          attributes?.["share"] === undefined ? [] : [[attributes["share"], state]]
        )))
      yield* take(ask(candles))
      yield* take(ask(action))
      assert.deepStrictEqual(yield* available, { common: { value: 1036 }, actions: { value: 1095 } })
      assert.strictEqual(yield* starts(ask(action)), 1095)
      assert.deepStrictEqual(yield* available, { common: { value: 0 }, actions: { value: 0 } })
    }).pipe(Effect.provide(venue), Effect.provideService(Metric.MetricRegistry, new Map())))
})

describe("limits from the environment", () => {
  const configured = (settings: { readonly [name: string]: string }) =>
    Layer.unwrap(Effect.map(RateLimiter.config, RateLimiter.layerMemory)).pipe(
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(settings)))
    )
  const units = (upstream: "trading-node" | "token-chain" | "layer2") =>
    ask({ weight: 0, requestUnits: 1 }, 0, upstream)

  it.effect("are the venue's 1200 alone where nothing is set", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* starts(ask(query)), 57)
      for (let n = 0; n < 100; n++) assert.strictEqual(yield* wait(units("layer2")), "at once")
    }).pipe(Effect.provide(configured({}))))

  it.effect("are those that the settings name", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* starts(ask(query)), 11)
      assert.strictEqual(yield* starts(units("trading-node")), 1)
      assert.strictEqual(yield* starts(units("token-chain")), 8)
      assert.strictEqual(yield* starts(units("layer2")), 40)
    }).pipe(Effect.provide(configured({
      TRIGATE_TRADING_API_WEIGHT: "240",
      TRIGATE_TRADING_NODE_RPS: "0.1",
      TRIGATE_TOKEN_CHAIN_RPS: "8",
      TRIGATE_LAYER2_RPS: "40"
    }))))

  it.effect("are refused unless they are numbers above zero", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Effect.provide(RateLimiter.RateLimiter, configured({ TRIGATE_LAYER2_RPS: "0" })))
      assert.include(error.message, "TRIGATE_LAYER2_RPS")
    }))
})

describe("no window exceeds the limit", () => {
  for (const limit of sample("limits a minute", [1200, 300, 110], 1)) {
    it.effect.prop(`of ${limit} a minute`, { seed: Seed }, ({ seed }) =>
      Effect.gen(function*() {
        const schedule = yield* arrivals({ seed, rounds: 2, replicas: 1, pace: limit / 1200 })
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

  it.effect("and a caller that always asks for more can use all of it, minute after minute", () =>
    Effect.gen(function*() {
      const begun: Array<Start> = []
      for (let at = 0; at < 600_000; at += 500) {
        let used = 0
        while (used < 15 && (yield* wait(ask(action))) === "at once") used += 1
        begun.push({ at, used, replica: 0 })
        yield* TestClock.adjust(500)
      }
      assert.strictEqual(most(begun, 60_000), 1200)
      // a call counts for up to a slot longer than a window, which costs one slot in sixty-one
      assert.isAtLeast(begun.reduce((sum, { used }) => sum + used, 0), 0.98 * 12_000)
    }).pipe(Effect.provide(venue)))

  for (const limit of sample("limits a second", [0.5, 1, 2.5, 10, 50], 2)) {
    it.effect.prop(`of ${limit} a second`, { seed: Seed }, ({ seed }) =>
      Effect.gen(function*() {
        const schedule = yield* arrivals({ seed, rounds: 1, replicas: 1, pace: limit })
        const begun = yield* run([yield* RateLimiter.RateLimiter], schedule, {
          upstream: "layer2",
          step: 60_000,
          settle: Effect.void
        })
        const window = Math.max(1000, 1000 / limit)
        assert.isAtMost(most(begun, window), Math.max(1, Math.floor(limit)))
      }).pipe(Effect.provide(RateLimiter.layerMemory({ layer2: limit }))), {
      arbitrary: { runs: sampleRuns(12) }
    })
  }
})
