import { assert, describe, it } from "@effect/vitest"
import * as Budgets from "@trigate/upstream/Budgets"
import * as Clock from "effect/Clock"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { action, arrivals, ask, candles, most, query, run } from "./budgetSchedule.ts"

const venue = Budgets.layerMemory({ "trading-api": 1200 })

const take = (asked: Budgets.Ask) => Budgets.Budgets.use((budgets) => budgets.take(asked))

/** Milliseconds until the call starts, or the seconds of its refusal. */
const wait = (asked: Budgets.Ask) =>
  Effect.gen(function*() {
    const begin = yield* Clock.currentTimeMillis
    return yield* Effect.match(take(asked), {
      onFailure: ({ retryAfter }) => ({ retryAfter }),
      onSuccess: () => "at once" as const
    }).pipe(
      Effect.flatMap((said) =>
        Effect.map(Clock.currentTimeMillis, (end) => end === begin ? said : { after: end - begin })
      )
    )
  })

const starts = (asked: Budgets.Ask) =>
  Effect.gen(function*() {
    let count = 0
    while ((yield* wait(asked)) === "at once") count += 1
    return count
  })

describe("a weight budget of 1200", () => {
  it.effect("lets a burst of 9 queries start, then one query after what it has taken came back", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* starts(ask(query)), 9)
      assert.deepStrictEqual(yield* wait(ask(query)), { retryAfter: 2 })
      // 14 tokens of 73.983 ms bring the bucket from -13 to 1
      yield* TestClock.adjust(1035)
      assert.deepStrictEqual(yield* wait(ask(query)), { retryAfter: 1 })
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* wait(ask(query)), "at once")
      assert.deepStrictEqual(yield* wait(ask(query)), { retryAfter: 2 })
    }).pipe(Effect.provide(venue)))

  it.effect("is used by hand to the second that `retryAfter` names", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* starts(ask(candles)), 2)
      const refused = yield* Effect.flip(take(ask(candles)))
      assert.strictEqual(refused._tag, "UpstreamRateLimited")
      assert.strictEqual(refused.upstream, "trading-api")
      assert.strictEqual(refused.retryAfter, 4)
      yield* TestClock.adjust(4000)
      assert.strictEqual(yield* wait(ask(candles)), "at once")
    }).pipe(Effect.provide(venue)))

  it.effect("takes the worst case of candles and gets back what they did not use, and no more", () =>
    Effect.gen(function*() {
      const spent = yield* take(ask(candles))
      yield* spent.giveBack(83)
      yield* spent.giveBack(1000)
      yield* spent.giveBack(1000)
      // full again: 167 - 104 + 83 + 21
      assert.strictEqual(yield* starts(ask(query)), 9)
    }).pipe(Effect.provide(venue)))

  it.effect("does not get back what came while the call lasted", () =>
    Effect.gen(function*() {
      const spent = yield* take(ask(candles))
      // 104 tokens came, the bucket has been full since
      yield* TestClock.adjust(7700)
      yield* spent.giveBack(84)
      assert.strictEqual(yield* starts(ask(query)), 9)
    }).pipe(Effect.provide(venue)))

  it.effect("waits for its turn, in the order of arrival, expensive calls no longer than cheap ones", () =>
    Effect.gen(function*() {
      yield* starts(ask(query))
      const costs = [candles, query, query, candles, query]
      const fibers = yield* Effect.forEach(costs, (cost) => Effect.forkChild(wait(ask(cost, 30_000))))
      yield* Effect.yieldNow
      yield* TestClock.adjust(30_000)
      // each starts when what those before it took is there again: 14, then 104, 20, 20 and 104 tokens later
      assert.deepStrictEqual(yield* Effect.forEach(fibers, Fiber.join), [
        { after: 1036 },
        { after: 8730 },
        { after: 10_210 },
        { after: 11_690 },
        { after: 19_384 }
      ])
    }).pipe(Effect.provide(venue)))

  it.effect("refuses at once who would wait longer than it can, the line before it included", () =>
    Effect.gen(function*() {
      yield* starts(ask(query))
      yield* Effect.forkChild(take(ask(candles, 10_000)))
      yield* Effect.yieldNow
      assert.deepStrictEqual(yield* wait(ask(query, 8000)), { retryAfter: 9 })
      const waiting = yield* Effect.forkChild(wait(ask(query, 8730)))
      yield* TestClock.adjust(8730)
      assert.deepStrictEqual(yield* Fiber.join(waiting), { after: 8730 })
    }).pipe(Effect.provide(venue)))

  it.effect("who leaves the line has taken nothing", () =>
    Effect.gen(function*() {
      yield* starts(ask(query))
      const leaving = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(take(ask(candles, 60_000))))
      yield* Effect.yieldNow
      yield* TestClock.adjust(1000)
      yield* Effect.forEach(leaving, Fiber.interrupt)
      yield* TestClock.adjust(36)
      assert.strictEqual(yield* wait(ask(query)), "at once")
    }).pipe(Effect.provide(venue)))

  it.effect("the next in line does not wait for what is given back", () =>
    Effect.gen(function*() {
      const [first] = [yield* take(ask(candles)), yield* take(ask(candles))]
      const next = yield* Effect.forkChild(wait(ask(candles, 10_000)))
      yield* Effect.yieldNow
      yield* TestClock.adjust(100)
      yield* first.giveBack(84)
      yield* TestClock.adjust(150)
      assert.deepStrictEqual(yield* Fiber.join(next), { after: 250 })
    }).pipe(Effect.provide(venue)))

  it.effect("what is given back does not bring the second in line before the first", () =>
    Effect.gen(function*() {
      const first = yield* take(ask(candles))
      yield* take(ask(candles))
      const begun: Array<string> = []
      const join = (name: string, cost: typeof query) =>
        Effect.andThen(take(ask(cost, 60_000)), Effect.sync(() => begun.push(name)))
      yield* Effect.forkChild(join("first", candles), { startImmediately: true })
      yield* TestClock.adjust(10)
      yield* Effect.forkChild(join("second", query), { startImmediately: true })
      yield* TestClock.adjust(245)
      yield* first.giveBack(84)
      yield* TestClock.adjust(60_000)
      assert.deepStrictEqual(begun, ["first", "second"])
    }).pipe(Effect.provide(venue)))

  it.effect("reads that take all and wait in line do not delay an action; 30 have room at once", () =>
    Effect.gen(function*() {
      yield* starts(ask(candles))
      yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(take(ask(candles, 60_000))))
      yield* Effect.yieldNow
      assert.strictEqual(yield* starts(ask(action)), 30)
      assert.deepStrictEqual(yield* wait(ask(action)), { retryAfter: 1 })
      const waiting = yield* Effect.forkChild(wait(ask(action, 20_000)))
      yield* TestClock.adjust(660)
      assert.deepStrictEqual(yield* Fiber.join(waiting), { after: 660 })
    }).pipe(Effect.provide(venue)))

  it.effect("actions draw on the common share too, and wait where it is shortest", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* starts(ask(action)), 197)
      const fibers = yield* Effect.forEach(
        Array.from({ length: 10 }),
        () => Effect.forkChild(wait(ask(action, 20_000)))
      )
      yield* TestClock.adjust(1000)
      const waits = yield* Effect.forEach(fibers, Fiber.join)
      assert.deepStrictEqual(waits.at(-1), { after: 666 })
    }).pipe(Effect.provide(venue)))
})

describe("a budget of request units", () => {
  const plan = (limit: number) => Budgets.layerMemory({ "token-chain": limit })
  const call = (requestUnits = 1, patience = 0) => ask({ weight: 0, requestUnits }, patience, "token-chain")

  it.effect("lets one a second start", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* starts(call()), 1)
      yield* TestClock.adjust(999)
      assert.deepStrictEqual(yield* wait(call()), { retryAfter: 1 })
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* starts(call()), 1)
      // two units of one call: when the bucket is full, and the next waits for both
      yield* TestClock.adjust(1000)
      assert.strictEqual(yield* starts(call(2)), 1)
      yield* TestClock.adjust(1999)
      assert.deepStrictEqual(yield* wait(call()), { retryAfter: 1 })
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* starts(call()), 1)
    }).pipe(Effect.provide(plan(1))))

  it.effect("lets one in two seconds start at 0.5", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* starts(call()), 1)
      assert.deepStrictEqual(yield* wait(call()), { retryAfter: 2 })
      yield* TestClock.adjust(1999)
      assert.deepStrictEqual(yield* wait(call()), { retryAfter: 1 })
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* starts(call()), 1)
    }).pipe(Effect.provide(plan(0.5))))

  it.effect("is only of the upstream that has one", () =>
    Effect.gen(function*() {
      for (const upstream of ["trading-api", "trading-node", "layer2"] as const) {
        for (let n = 0; n < 1000; n++) assert.strictEqual(yield* wait(ask(candles, 0, upstream)), "at once")
      }
    }).pipe(Effect.provide(plan(1))))

  it.effect("costs nothing where there is none", () =>
    Effect.gen(function*() {
      const budgets = yield* Budgets.Budgets
      assert.strictEqual(budgets.take(ask(candles)), budgets.take(ask(action)))
    }).pipe(Effect.provide(Budgets.layerUnlimited)))
})

describe("budgets tell", () => {
  const metrics = Effect.map(
    Metric.snapshot,
    (all) =>
      Object.fromEntries(
        all.flatMap(({ attributes, id, state }) =>
          id.startsWith("trigate_upstream_budget_") && attributes?.["upstream"] === "trading-node"
            ? [[
              [id.slice("trigate_upstream_budget_".length), attributes["share"]].join(" ").trim(),
              "value" in state ? Number(state.value) : "count" in state ? Number(state.count) : undefined
            ]]
            : []
        )
      )
  )

  it.effect("what is left, who waited and who was refused", () =>
    Effect.gen(function*() {
      const call = ask({ weight: 0, requestUnits: 1 }, 0, "trading-node")
      yield* take(call)
      assert.deepStrictEqual(yield* metrics, { "left common": 2 })
      assert.strictEqual(yield* starts(call), 2)
      const waiting = yield* Effect.forkChild(take({ ...call, patience: 1000 }), { startImmediately: true })
      assert.strictEqual(yield* starts(call), 0)
      yield* TestClock.adjust(1000)
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(yield* metrics, { "left common": 0, waits_total: 1, refused_total: 2 })
    }).pipe(Effect.provide(Budgets.layerMemory({ "trading-node": 12 }))))
})

describe("budgets of the environment", () => {
  const configured = (settings: { readonly [name: string]: string }) =>
    Budgets.layerConfig.pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(settings))))
  const units = (upstream: "trading-node" | "token-chain" | "layer2") =>
    ask({ weight: 0, requestUnits: 1 }, 0, upstream)

  it.effect("are the venue's 1200 and nothing else where nothing is set", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* starts(ask(query)), 9)
      for (let n = 0; n < 100; n++) assert.strictEqual(yield* wait(units("layer2")), "at once")
    }).pipe(Effect.provide(configured({}))))

  it.effect("are those of each setting", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* starts(ask(query)), 1)
      assert.strictEqual(yield* starts(units("trading-node")), 1)
      assert.strictEqual(yield* starts(units("token-chain")), 2)
      assert.strictEqual(yield* starts(units("layer2")), 10)
    }).pipe(Effect.provide(configured({
      TRIGATE_TRADING_API_WEIGHT: "240",
      TRIGATE_TRADING_NODE_RPS: "0.1",
      TRIGATE_TOKEN_CHAIN_RPS: "8",
      TRIGATE_LAYER2_RPS: "40"
    }))))

  it.effect("are refused where they are no number above zero", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Effect.provide(Budgets.Budgets, configured({ TRIGATE_LAYER2_RPS: "0" })))
      assert.include(error.message, "TRIGATE_LAYER2_RPS")
    }))
})

const Seed = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))

describe("no window holds more than the limit", () => {
  for (const limit of [1200, 300, 250]) {
    it.effect.prop(`of ${limit} a minute`, { seed: Seed }, ({ seed }) =>
      Effect.gen(function*() {
        const schedule = yield* arrivals({ seed, rounds: 2, replicas: 1, pace: limit / 1200 })
        const begun = yield* run([yield* Budgets.Budgets], schedule, {
          upstream: "trading-api",
          step: 60_000,
          settle: Effect.void
        })
        assert.isAtMost(most(begun, 60_000), limit)
      }).pipe(Effect.provide(Budgets.layerMemory({ "trading-api": limit }))), {
      timeout: 60_000,
      arbitrary: { runs: 12 }
    })
  }

  it.effect("and the fullest one holds all of it", () =>
    Effect.gen(function*() {
      let used = 0
      for (let at = 0; at < 59_920; at += 70) {
        used += yield* starts(ask(action))
        yield* TestClock.adjust(70)
      }
      yield* TestClock.adjust(79)
      assert.strictEqual(yield* wait(ask(candles)), "at once")
      assert.strictEqual(used + 104, 1199)
    }).pipe(Effect.provide(venue)))

  for (const limit of [0.5, 1, 2.5, 10, 50]) {
    it.effect.prop(`of ${limit} a second`, { seed: Seed }, ({ seed }) =>
      Effect.gen(function*() {
        const schedule = yield* arrivals({ seed, rounds: 1, replicas: 1, pace: limit })
        const begun = yield* run([yield* Budgets.Budgets], schedule, {
          upstream: "layer2",
          step: 60_000,
          settle: Effect.void
        })
        const window = Math.max(1000, 1000 / limit)
        assert.isAtMost(most(begun, window), Math.max(1, Math.floor(limit)))
      }).pipe(Effect.provide(Budgets.layerMemory({ layer2: limit }))), { timeout: 60_000, arbitrary: { runs: 10 } })
  }
})
