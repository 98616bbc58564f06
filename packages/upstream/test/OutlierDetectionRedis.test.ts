import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import { OutlierDetection } from "@trigate/upstream/OutlierDetection"
import * as OutlierDetectionRedis from "@trigate/upstream/OutlierDetectionRedis"
import type { Target } from "@trigate/upstream/Upstream"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Redis from "effect/persistence/Redis"
import { isInstalled, redisServer } from "../../trading/test/redisServer.ts"
import { exchanges, targets } from "./exchanges.ts"

/** A replica of its own: its connection, its views, its metrics. */
const replica = Effect.fnUntraced(function*(url: string, options: OutlierDetectionRedis.Options = {}) {
  const registry = new Map()
  const context = yield* Layer.build(
    OutlierDetectionRedis.layer(options).pipe(
      Layer.provideMerge(NodeRedis.layer({ url, disableOfflineQueue: true })),
      // the driver logs each connection that a killed server refuses
      Layer.provideMerge(Logger.layer([]))
    )
  ).pipe(Effect.provideService(Metric.MetricRegistry, registry))
  const driven = yield* Effect.provideContext(exchanges, Context.pick(OutlierDetection)(context))
  const metric = (name: string) =>
    Effect.map(
      Effect.provideService(Metric.snapshot, Metric.MetricRegistry, registry),
      (all) => all.flatMap((each) => each.id === name && "value" in each.state ? [each.state.value] : [])
    )
  const mayAsk = (target: Target) => Effect.map(driven.health.usable([target]), (usable) => usable.targets.length > 0)
  return { ...driven, metric, mayAsk, redis: Context.get(context, Redis.Redis) }
})

/** A deadline that a busy machine does not miss: without it a replica goes on alone, as it should. */
const patient = { deadline: "10 seconds" } as const

const until = Effect.fnUntraced(function*(condition: Effect.Effect<boolean>) {
  while (!(yield* condition)) yield* Effect.yieldNow
})

const quiet = Effect.provide(Logger.layer([]))

describe.runIf(isInstalled)("circuits over Redis", () => {
  it.live("what one replica opens is open for the other, one of both probes, and both close", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      const [only] = targets(1)
      const one = yield* replica(url, patient)
      const two = yield* replica(url, patient)
      assert.strictEqual(yield* two.run(only, "healthy"), "healthy")
      yield* one.faults(only, 5)
      assert.isFalse(yield* one.mayAsk(only))
      yield* until(Effect.map(two.mayAsk(only), (may) => !may))
      assert.strictEqual((yield* Effect.flip(two.run(only, "healthy"))).toString(), "AddressClosed")
      assert.strictEqual(two.made.count, 1)
      assert.deepStrictEqual(yield* two.metric("trigate_upstream_circuit_state"), [2])

      const answer = yield* Deferred.make<void>()
      const calls = (from: typeof one) =>
        Effect.forEach(
          Arr.makeBy(50, () => from.run(only, "healthy", Deferred.await(answer))),
          (call) => Effect.forkChild(Effect.result(call), { startImmediately: true })
        )
      const before = one.made.count + two.made.count
      const fibers: Array<Fiber.Fiber<unknown>> = []
      yield* until(
        Effect.gen(function*() {
          fibers.push(...yield* calls(one), ...yield* calls(two))
          yield* Effect.yieldNow
          return one.made.count + two.made.count > before
        }).pipe(quiet)
      )
      fibers.push(...yield* calls(one), ...yield* calls(two))
      // a command that follows all the others on each connection: whatever was asked is answered
      yield* one.redis.send("PING")
      yield* two.redis.send("PING")
      assert.strictEqual(one.made.count + two.made.count, before + 1)
      yield* Deferred.succeed(answer, undefined)
      yield* Fiber.joinAll(fibers)
      yield* until(Effect.zipWith(one.mayAsk(only), two.mayAsk(only), (first, second) => first && second))
      assert.strictEqual(yield* one.run(only, "healthy"), "healthy")
      assert.strictEqual(yield* two.run(only, "healthy"), "healthy")
      assert.deepStrictEqual(yield* two.metric("trigate_upstream_circuit_state"), [0])
    }).pipe(quiet))

  it.live("keeps no part of an address in Redis", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      const [only] = targets(1)
      const one = yield* replica(url, patient)
      yield* one.faults(only, 5)
      const keys = yield* one.redis.send<ReadonlyArray<string>>("KEYS", "*")
      assert.deepStrictEqual(keys.map((key) => key.replace(/[0-9a-f]{32}$/u, "<digest>")), [
        "trigate:circuit:layer2:<digest>"
      ])
    }).pipe(quiet))

  it.live("Redis killed in the middle: circuits go on in the process, and are shared again when it is back", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      const [first, second] = targets(2)
      const one = yield* replica(redis.url, patient)
      const begin = yield* Clock.currentTimeMillis
      yield* one.faults(first, 3)
      yield* redis.kill
      yield* one.faults(first, 5)
      assert.isFalse(yield* one.mayAsk(first))
      assert.deepStrictEqual(yield* one.metric("trigate_shared_state_degraded"), [1])
      const healthy = Arr.makeBy(100, () => one.run(second ?? first, "healthy"))
      assert.deepStrictEqual(new Set(yield* Effect.all(healthy, { concurrency: 10 })), new Set(["healthy"]))
      yield* redis.restart
      yield* until(Effect.map(one.metric("trigate_shared_state_degraded"), ([value]) => value === 0))
      const two = yield* replica(redis.url, patient)
      yield* two.run(second ?? first, "healthy")
      yield* one.faults(second ?? first, 5)
      yield* until(Effect.map(two.mayAsk(second ?? first), (may) => !may))
      assert.isBelow((yield* Clock.currentTimeMillis) - begin, 15_000)
    }).pipe(quiet))

  it.live("a Redis that hangs costs the first faulty calls its deadline, the others nothing, and holds up no end", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      const [only] = targets(1)
      const end = yield* Effect.scoped(
        Effect.gen(function*() {
          const one = yield* replica(redis.url, { deadline: "100 millis" })
          yield* one.faults(only, 1)
          yield* redis.freeze
          const begin = yield* Clock.currentTimeMillis
          const faults = Arr.makeBy(20, () => Effect.result(one.run(only, "faulty")))
          yield* Effect.all(faults, { concurrency: "unbounded" })
          assert.isFalse(yield* one.mayAsk(only))
          const end = yield* Clock.currentTimeMillis
          assert.isBelow(end - begin, 3000)
          yield* redis.thaw
          return end
        }).pipe(quiet)
      )
      assert.isBelow((yield* Clock.currentTimeMillis) - end, 3000)
    }).pipe(quiet))
})
