import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import * as Budgets from "@trigate/upstream/Budgets"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as RateLimiter from "effect/persistence/RateLimiter"
import * as Redis from "effect/persistence/Redis"
import { isInstalled, redisServer } from "../../trading/test/redisServer.ts"
import { action, arrivals, ask, candles, most, query, run } from "./budgetSchedule.ts"

const immediate = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

/** Commands that have no answer yet, and how to wait until there are none: the test clock stands still meanwhile. */
const outstanding = () => {
  let count = 0
  const track = <A, E>(command: Effect.Effect<A, E>) =>
    Effect.acquireUseRelease(
      Effect.sync(() => count++),
      () => command,
      () => Effect.sync(() => count--)
    )
  const over = (redis: Redis.Redis["Service"]) =>
    Redis.Redis.of({ ...redis, eval: (script) => (...params) => track(redis.eval(script)(...params)) })
  const settle = Effect.gen(function*() {
    for (let quiet = 0; quiet < 3; quiet = count === 0 ? quiet + 1 : 0) yield* immediate
  })
  return { over: Layer.effect(Redis.Redis, Effect.map(Redis.Redis, over)), settle }
}

type Counted = ReturnType<typeof outstanding>

/** A replica: its own connection and its own memory. */
const replica = (url: string, options: Budgets.Options, counted: Counted = outstanding()) =>
  Effect.map(
    Layer.build(Layer.fresh(
      Budgets.layer(options).pipe(
        Layer.provide(RateLimiter.layer),
        Layer.provide(RateLimiter.layerStoreRedis({ prefix: "test:{budgets}:" })),
        Layer.provide(counted.over),
        Layer.provide(NodeRedis.layer({ url, disableOfflineQueue: true })),
        // the driver logs each connection that a killed server refuses
        Layer.provide(Logger.layer([]))
      )
    )),
    (context) => Context.get(context, Budgets.Budgets)
  )

const venue = { "trading-api": 1200 }

const starts = Effect.fnUntraced(function*(budgets: Budgets.Budgets["Service"], asked: Budgets.Ask) {
  let count = 0
  while ((yield* Effect.exit(budgets.take(asked)))._tag === "Success") count += 1
  return count
})

const degraded = Effect.map(Metric.snapshot, (metrics) => {
  const found = metrics.find(({ id }) => id === "trigate_shared_state_degraded")
  assert.deepStrictEqual(found?.attributes, { use: "budgets" })
  return found !== undefined && "value" in found.state ? Number(found.state.value) : undefined
})

describe.runIf(isInstalled)("budgets over Redis", () => {
  it.effect("are one for two replicas, and what one gives back the other can take", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      const one = yield* replica(url, venue)
      const two = yield* replica(url, venue)
      const spent = yield* one.take(ask(candles))
      yield* two.take(ask(candles))
      assert.strictEqual((yield* Effect.flip(two.take(ask(query)))).retryAfter, 4)
      assert.strictEqual((yield* Effect.flip(one.take(ask(query)))).retryAfter, 4)
      yield* spent.giveBack(84)
      // 167 - 104 - 104 + 84: two of 20 and one into debt
      assert.strictEqual(yield* starts(two, ask(query)), 3)
      assert.strictEqual(yield* starts(one, ask(action)), 30)
      assert.strictEqual(yield* starts(two, ask(action)), 0)
    }))

  for (const seed of [1, 2, 3]) {
    it.effect(
      `of two replicas let no more than 1200 a minute through together (${seed})`,
      () =>
        Effect.gen(function*() {
          const { url } = yield* redisServer
          const counted = outstanding()
          const replicas = [yield* replica(url, venue, counted), yield* replica(url, venue, counted)]
          const schedule = yield* arrivals({ seed, rounds: 2, replicas: 2 })
          const begun = yield* run(replicas, schedule, { upstream: "trading-api", step: 100, settle: counted.settle })
          assert.isAtMost(most(begun, 60_000), 1200)
          assert.isAtLeast(most(begun, 60_000), 900)
          assert.strictEqual(yield* degraded, 0)
        }),
      60_000
    )
  }

  it.effect(
    "with Redis killed in the middle go on, and each replica keeps the limit",
    () =>
      Effect.gen(function*() {
        const redis = yield* redisServer
        const counted = outstanding()
        const replicas = [yield* replica(redis.url, venue, counted), yield* replica(redis.url, venue, counted)]
        const schedule = yield* arrivals({ seed: 4, rounds: 2, replicas: 2 })
        let isKilled = false
        const begun = yield* run(replicas, schedule, {
          upstream: "trading-api",
          step: 100,
          settle: counted.settle,
          during: (at) => {
            if (isKilled || at < 40_000) return Effect.void
            isKilled = true
            return redis.kill
          }
        })
        for (const replica of [0, 1]) {
          const own = begun.filter((start) => start.replica === replica)
          assert.isAtMost(most(own, 60_000), 1200)
          assert.isAtLeast(own.filter(({ at }) => at > 40_000).length, 50)
        }
        assert.strictEqual(yield* degraded, 1)
      }),
    60_000
  )

  it.live("Redis killed, hanging and back: no call hangs, and all of it is told once", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      const lines: Array<string> = []
      const log = Logger.make(({ message }) => {
        lines.push(String(message))
      })
      yield* Effect.gen(function*() {
        const budgets = yield* replica(redis.url, { layer2: 4000 })
        const call = ask({ weight: 0, requestUnits: 1 }, 0, "layer2")
        const timed = Effect.fnUntraced(function*(count: number) {
          const begin = yield* Clock.currentTimeMillis
          for (let n = 0; n < count; n++) yield* budgets.take(call)
          return (yield* Clock.currentTimeMillis) - begin
        })
        yield* timed(100)
        assert.strictEqual(yield* degraded, 0)
        yield* redis.freeze
        assert.isBelow(yield* timed(500), 1000)
        assert.strictEqual(yield* degraded, 1)
        yield* redis.thaw
        while ((yield* degraded) === 1) yield* Effect.andThen(budgets.take(call), Effect.sleep(10))
        yield* redis.kill
        assert.isBelow(yield* timed(500), 1000)
        assert.strictEqual(yield* degraded, 1)
        yield* redis.restart
        while ((yield* degraded) === 1) yield* Effect.andThen(budgets.take(call), Effect.sleep(10))
      }).pipe(Effect.provide(Logger.layer([log])))
      assert.deepStrictEqual(lines.map((line) => line.replace(/ \(.*/u, "")), [
        "The shared store of budgets is away: this process counts for itself",
        "The shared store of budgets is back",
        "The shared store of budgets is away: this process counts for itself",
        "The shared store of budgets is back"
      ])
    }))
})
