import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import { UsedNonces } from "@trigate/trading/UsedNonces"
import * as UsedNoncesRedis from "@trigate/trading/UsedNoncesRedis"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import { isInstalled, redisServer } from "./redisServer.ts"
import { day, isFree, now, open, settled, suite } from "./usedNoncesSuite.ts"

const over = (url: string, options: UsedNoncesRedis.Options = {}) =>
  UsedNoncesRedis.layer(options).pipe(
    Layer.provideMerge(NodeRedis.layer({ url, disableOfflineQueue: true })),
    // the driver logs each connection that a killed server refuses
    Layer.provideMerge(Logger.layer([]))
  )

const degraded = UsedNonces.use((nonces) => nonces.degraded)

const metric = (name: string) =>
  Effect.map(Metric.snapshot, (metrics) => {
    const found = metrics.find(({ id }) => id === name)
    return found !== undefined && "value" in found.state
      ? Number(found.state.value)
      : found !== undefined && "count" in found.state
      ? Number(found.state.count)
      : undefined
  })

describe.runIf(isInstalled)("UsedNonces over Redis", () => {
  // steps take as long as they take: the test clock never reaches the deadline
  suite((options) => Effect.map(redisServer, ({ url }) => over(url, options)))

  it.effect("replicas with one prefix share what was used, and a settlement of one counts for the other", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const claim = yield* open()
        const elsewhere = isFree().pipe(Effect.provide(over(url)))
        assert.isFalse(yield* elsewhere)
        yield* claim.settle("unknown")
        assert.isTrue(yield* elsewhere)
        assert.isTrue(yield* isFree().pipe(Effect.provide(over(url, { prefix: "another:" }))))
      }).pipe(Effect.provide(over(url)))
    }))

  it.effect("a claim that a crashed replica left open is unknown when its lease has passed", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const crashed = yield* open()
        yield* TestClock.adjust(59_999)
        assert.isFalse(yield* isFree())
        yield* TestClock.adjust(1)
        assert.isFalse(yield* isFree({ bytesHash: "cd" }))
        const second = yield* open()
        yield* crashed.settle("known")
        assert.isFalse(yield* isFree())
        yield* second.settle("unknown")
        assert.isTrue(yield* isFree())
      }).pipe(Effect.provide(over(url)))
    }))

  it.effect("leaves nothing behind when it is idle, and goes on after scripts are flushed", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const redis = yield* Redis.Redis
        yield* settled("known", { nonce: now + day })
        yield* settled("known")
        for (const key of ["entries", "expiries"]) {
          const idle = yield* redis.send<number>("PTTL", `trigate:{used-nonces}:${key}`)
          assert.isAtMost(idle, 3 * day)
          assert.isAbove(idle, 3 * day - 60_000)
        }
        yield* redis.send("SCRIPT", "FLUSH")
        assert.isFalse(yield* isFree())
      }).pipe(Effect.provide(over(url)))
    }))

  it.live("Redis killed in the middle: claims are granted unchecked, told, and checked again when it is back", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      yield* Effect.gen(function*() {
        const begin = yield* Clock.currentTimeMillis
        const claim = yield* open()
        assert.isFalse(yield* isFree())
        assert.isFalse(yield* degraded)
        yield* redis.kill
        yield* claim.settle("known")
        const free = yield* Effect.forEach(Array.from({ length: 100 }), () => isFree(), { concurrency: 10 })
        assert.deepStrictEqual(new Set(free), new Set([true]))
        assert.isTrue(yield* degraded)
        assert.strictEqual(yield* metric("trigate_used_nonces_degraded"), 1)
        assert.strictEqual(yield* metric("trigate_used_nonces_unchecked_total"), 100)
        yield* redis.restart
        while (yield* degraded) yield* Effect.yieldNow
        yield* settled("known")
        assert.isFalse(yield* isFree())
        assert.strictEqual(yield* metric("trigate_used_nonces_degraded"), 0)
        assert.isBelow((yield* Clock.currentTimeMillis) - begin, 10_000)
      }).pipe(Effect.provide(over(redis.url)))
    }))

  it.live("a Redis that hangs is given up at the deadline, by claims and by settlements", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      yield* Effect.gen(function*() {
        const claim = yield* open()
        yield* redis.freeze
        const begin = yield* Clock.currentTimeMillis
        yield* claim.close
        const between = yield* Clock.currentTimeMillis
        assert.isTrue(yield* isFree({ nonce: now + 1 }))
        const end = yield* Clock.currentTimeMillis
        assert.isBelow(between - begin, 1000)
        assert.isBelow(end - between, 1000)
        yield* redis.thaw
      }).pipe(Effect.provide(over(redis.url, { deadline: "100 millis" })))
    }))
})
