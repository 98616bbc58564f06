import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import { isInstalled, redisServer } from "@trigate/testing/RedisServer"
import { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogRedis from "@trigate/trading/actionLog/ActionLogRedis"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import {
  day,
  isFree,
  now,
  open,
  other,
  refusalOf,
  settled,
  signer,
  states,
  suite,
  unanswered
} from "./actionLogSuite.ts"

const over = (url: string, options: ActionLogRedis.Options = {}) =>
  ActionLogRedis.layer(options).pipe(
    Layer.provideMerge(NodeRedis.layer({ url, disableOfflineQueue: true })),
    // the driver logs each connection that a killed server refuses
    Layer.provideMerge(Logger.layer([]))
  )

const isUp = ActionLog.use((log) => log.isUp)

/** A metric's value; with its label `use` if it has one. */
const metric = (name: string, use?: string) =>
  Effect.map(Metric.snapshot, (metrics) => {
    const found = metrics.find(({ attributes, id }) => id === name && attributes?.["use"] === use)
    return found !== undefined && "value" in found.state
      ? Number(found.state.value)
      : found !== undefined && "count" in found.state
      ? Number(found.state.count)
      : undefined
  })

/** A deadline that no machine reaches: a connection that is gone fails by itself. */
const generous = { deadline: "1 minute", alone: true } as const

/** Asks again and again until it is so; each question takes its time. */
const until = <E, R>(question: Effect.Effect<boolean, E, R>): Effect.Effect<boolean, E, R> =>
  Effect.repeat(question, { until: (answer) => answer })

describe.runIf(isInstalled)("the action log in Redis", () => {
  // steps take as long as they take: the test clock never reaches the deadline
  suite((options) => Effect.map(redisServer, ({ url }) => over(url, options)))

  it.effect("replicas with one prefix share what was used, and a settlement of one counts for the other", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const claim = yield* open()
        const elsewhere = yield* Layer.build(over(url))
        const there = <A, E>(effect: Effect.Effect<A, E, ActionLog>) => Effect.provide(effect, elsewhere)
        assert.include(yield* there(refusalOf()), "is being sent right now")
        yield* claim.settle("unknown")
        assert.include(yield* there(refusalOf({ text: "other" })), "only the same signed content")
        const again = yield* there(open())
        assert.isTrue(again.isRepeat)
        assert.isFalse(yield* isFree())
        // it may have been taken the first time
        yield* again.settle("released")
        assert.isFalse(yield* there(isFree({ text: "other" })))
        yield* there(settled("accepted"))
        assert.include(yield* refusalOf(), "its outcome is known")
        assert.isTrue(yield* isFree().pipe(Effect.provide(over(url, { prefix: "another:" }))))
        // the bytes stay where they were sent
        assert.lengthOf(yield* there(unanswered), 0)
      }).pipe(Effect.provide(over(url)))
    }))

  it.effect("replicas share the signers that they know", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      yield* TestClock.setTime(now)
      yield* Effect.provide(settled("accepted"), over(url))
      yield* Effect.gen(function*() {
        yield* settled("unknown", { text: "stranger", signer: other(1) })
        assert.isFalse(yield* isFree({ signer: other(2) }))
        assert.isTrue(yield* isFree({ nonce: now + 1 }))
      }).pipe(Effect.provide(over(url, { capacity: 10 })))
    }))

  it.effect("an action that a crashed replica had sent is unknown when its lease has passed", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const crashed = yield* Effect.provide(open(), yield* Layer.build(over(url)))
        yield* TestClock.adjust(59_999)
        assert.isFalse(yield* isFree())
        yield* TestClock.adjust(1)
        assert.isFalse(yield* isFree({ text: "other" }))
        const second = yield* open()
        assert.isTrue(second.isRepeat)
        yield* crashed.settle("accepted")
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
        yield* settled("accepted", { nonce: now + day })
        yield* settled("accepted")
        yield* settled("unknown", { nonce: now + 1 })
        const found = yield* redis.send<ReadonlyArray<string>>("KEYS", "*")
        // of each action its state and what it is about; the outcomes; and what finds them
        assert.lengthOf(found, 12)
        const keys = found.filter((key) => !key.startsWith("trigate:{actions}:signer:"))
        assert.lengthOf(keys, 11)
        const known = yield* redis.send<number>("PTTL", `trigate:{actions}:signer:${signer}`)
        assert.isAbove(known, 30 * day - 60_000)
        const idle = yield* Effect.forEach(keys, (key) => redis.send<number>("PTTL", key))
        for (const left of idle) assert.isAtMost(left, 3 * day)
        for (const left of idle) assert.isAbove(left, 2 * day - 60_000)
        const answered = yield* redis.send<number>("PTTL", "trigate:{actions}:answered")
        assert.isAbove(answered, 3 * day - 60_000)
        yield* redis.send("SCRIPT", "FLUSH")
        assert.isFalse(yield* isFree())
      }).pipe(Effect.provide(over(url)))
    }))

  it.live("Redis killed in the middle: each process that may goes on with its own log, tells, and shares again when it is back", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      yield* Effect.gen(function*() {
        const nonce = yield* Clock.currentTimeMillis
        const elsewhere = yield* Layer.build(over(redis.url, generous))
        const there = <A, E>(effect: Effect.Effect<A, E, ActionLog>) => Effect.provide(effect, elsewhere)
        const claim = yield* open({ nonce })
        assert.deepStrictEqual([yield* isUp, yield* there(isFree({ nonce }))], [true, false])
        yield* redis.kill
        yield* claim.settle("accepted")
        // it knows what it sent itself, and not what the other one did
        assert.deepStrictEqual([yield* isFree({ nonce }), yield* there(isFree({ nonce }))], [false, true])
        const before = (yield* metric("trigate_action_log_unshared_total")) ?? 0
        const free = yield* Effect.forEach(
          Array.from({ length: 100 }, (_, index) => nonce + 1 + index),
          (each) => isFree({ nonce: each }),
          { concurrency: 10 }
        )
        assert.deepStrictEqual(new Set(free), new Set([true]))
        assert.isFalse(yield* isUp)
        assert.strictEqual(yield* metric("trigate_shared_state_degraded", "action-log"), 1)
        assert.strictEqual(yield* metric("trigate_action_log_unshared_total"), before + 100)
        yield* redis.restart
        yield* until(isUp)
        yield* until(there(isUp))
        yield* settled("accepted", { nonce: nonce + 1 })
        assert.isFalse(yield* there(isFree({ nonce: nonce + 1 })))
        // an empty Redis does not make a process forget
        assert.isFalse(yield* isFree({ nonce }))
        assert.strictEqual(yield* metric("trigate_shared_state_degraded", "action-log"), 0)
      }).pipe(Effect.provide(over(redis.url, generous)))
    }))

  it.effect("a Redis that hangs is given up at the deadline, by claims and by settlements", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      yield* Effect.gen(function*() {
        const claim = yield* open()
        yield* redis.freeze
        yield* advancingClock(claim.close)
        assert.deepStrictEqual(yield* advancingClock(states), ["unknown"])
        assert.isTrue(yield* advancingClock(isFree({ nonce: now + 1 })))
        assert.isFalse(yield* advancingClock(isUp))
        yield* redis.thaw
      }).pipe(Effect.provide(over(redis.url, { deadline: "100 millis", alone: true })))
    }))

  it.effect("a Redis that is late or away lets nothing be sent, and forgets what it was asked too late", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const claim = yield* open({ nonce: now - 1 })
        yield* claim.settle("unknown")
        yield* redis.freeze
        for (const nonce of [now, now - 1]) {
          const refused = yield* advancingClock(refusalOf({ nonce }))
          assert.strictEqual(
            refused,
            "The action was not sent: the action log is unreachable (Redis is not connected, or did not respond in time)"
          )
        }
        assert.strictEqual(yield* metric("trigate_action_log_degraded"), 1)
        yield* redis.thaw
        yield* until(isFree())
        assert.strictEqual(yield* metric("trigate_action_log_degraded"), 0)
        // the earlier sending may still have been taken
        assert.isFalse(yield* isFree({ nonce: now - 1, text: "other" }))
        assert.isTrue((yield* open({ nonce: now - 1 })).isRepeat)
        yield* redis.kill
        assert.include(yield* refusalOf({ nonce: now + 1 }), "was not sent")
      }).pipe(Effect.provide(over(redis.url)))
    }))

  it.effect("a Redis that goes away while no action is sent is shown by the metric", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        assert.strictEqual(yield* metric("trigate_action_log_degraded"), 0)
        yield* redis.kill
        const isShown = Effect.map(metric("trigate_action_log_degraded"), (shown) => shown === 1)
        yield* advancingClock(Effect.repeat(Effect.delay(isShown, 100), { until: (shown) => shown }))
      }).pipe(Effect.provide(over(redis.url)))
    }))

  it.effect("an end that Redis does not take is written once it is back", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const claim = yield* open()
        yield* redis.freeze
        yield* advancingClock(claim.settle("accepted"))
        yield* redis.thaw
        const elsewhere = yield* Layer.build(over(redis.url))
        const isKnown = Effect.map(refusalOf(), (words) => words?.includes("its outcome is known") === true)
        yield* advancingClock(until(Effect.provide(isKnown, elsewhere)))
      }).pipe(Effect.provide(over(redis.url)))
    }))
})
