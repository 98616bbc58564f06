import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import * as Access from "@trigate/simulation/unstable/stores/Access"
import * as RedisActionLog from "@trigate/simulation/unstable/stores/RedisActionLog"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import { isInstalled, redisServer } from "@trigate/testing/RedisServer"
import type { RedisServer } from "@trigate/testing/RedisServer"
import { sampleRuns, seed } from "@trigate/testing/Sample"
import { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogRedis from "@trigate/trading/actionLog/ActionLogRedis"
import type { StoreFault } from "@trigate/upstream/unstable/SharedState"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import type { Entries } from "./actionLogStatements.ts"
import { assertReached, recordEqually } from "./actionLogStatements.ts"
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

/** A store of the shared entries, as a test starts it. */
interface Server extends Pick<RedisServer, "freeze" | "kill" | "restart" | "thaw"> {
  readonly layer: (options?: ActionLogRedis.Options) => Layer.Layer<ActionLog>
}

const realServer = Effect.map(redisServer, ({ url, ...server }): Server => ({
  ...server,
  layer: (options) => Layer.orDie(over(url, options))
}))

const simulatedServer = Effect.sync((): Server => {
  const { access, restart, ...server } = Access.makeSwitched()
  const stores = new Map<string | undefined, RedisActionLog.Store>()
  return {
    ...server,
    restart: Effect.andThen(Effect.sync(() => stores.forEach(({ clear }) => clear())), restart),
    layer: ({ prefix, ...options } = {}) => {
      const store = stores.get(prefix) ?? RedisActionLog.make()
      stores.set(prefix, store)
      return Layer.provideMerge(RedisActionLog.layer(store, access, options), Logger.layer([]))
    }
  }
})

const servers = [
  { name: "Redis", isInstalled, start: realServer },
  { name: "a simulated Redis", isInstalled: true, start: simulatedServer }
]

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

describe.each(servers.filter((server) => server.isInstalled))("the action log in $name", ({ start }) => {
  // steps take as long as they take: the test clock never reaches the deadline
  suite((options) => Effect.map(start, ({ layer }) => layer(options)))

  it.effect("replicas with one prefix share what was used, and a settlement of one counts for the other", () =>
    Effect.gen(function*() {
      const { layer } = yield* start
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const claim = yield* open()
        const elsewhere = yield* Layer.build(layer())
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
        assert.isTrue(yield* isFree().pipe(Effect.provide(layer({ prefix: "another:" }))))
        // the bytes stay where they were sent
        assert.lengthOf(yield* there(unanswered), 0)
      }).pipe(Effect.provide(layer()))
    }))

  it.effect("replicas share the signers that they know", () =>
    Effect.gen(function*() {
      const { layer } = yield* start
      yield* TestClock.setTime(now)
      yield* Effect.provide(settled("accepted"), layer())
      yield* Effect.gen(function*() {
        yield* settled("unknown", { text: "stranger", signer: other(1) })
        assert.isFalse(yield* isFree({ signer: other(2) }))
        assert.isTrue(yield* isFree({ nonce: now + 1 }))
      }).pipe(Effect.provide(layer({ capacity: 10 })))
    }))

  it.effect("an action that a crashed replica had sent is unknown when its lease has passed", () =>
    Effect.gen(function*() {
      const { layer } = yield* start
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const crashed = yield* Effect.provide(open(), yield* Layer.build(layer()))
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
      }).pipe(Effect.provide(layer()))
    }))

  it.live("Redis killed in the middle: each process that may goes on with its own log, tells, and shares again when it is back", () =>
    Effect.gen(function*() {
      const server = yield* start
      yield* Effect.gen(function*() {
        const nonce = yield* Clock.currentTimeMillis
        const elsewhere = yield* Layer.build(server.layer(generous))
        const there = <A, E>(effect: Effect.Effect<A, E, ActionLog>) => Effect.provide(effect, elsewhere)
        const claim = yield* open({ nonce })
        assert.deepStrictEqual([yield* isUp, yield* there(isFree({ nonce }))], [true, false])
        yield* server.kill
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
        yield* server.restart
        yield* until(isUp)
        yield* until(there(isUp))
        yield* settled("accepted", { nonce: nonce + 1 })
        assert.isFalse(yield* there(isFree({ nonce: nonce + 1 })))
        // an empty Redis does not make a process forget
        assert.isFalse(yield* isFree({ nonce }))
        assert.strictEqual(yield* metric("trigate_shared_state_degraded", "action-log"), 0)
      }).pipe(Effect.provide(server.layer(generous)))
    }))

  it.effect("a Redis that hangs is given up at the deadline, by claims and by settlements", () =>
    Effect.gen(function*() {
      const server = yield* start
      yield* Effect.gen(function*() {
        const claim = yield* open()
        yield* server.freeze
        yield* advancingClock(claim.close)
        assert.deepStrictEqual(yield* advancingClock(states), ["unknown"])
        assert.isTrue(yield* advancingClock(isFree({ nonce: now + 1 })))
        assert.isFalse(yield* advancingClock(isUp))
        yield* server.thaw
      }).pipe(Effect.provide(server.layer({ deadline: "100 millis", alone: true })))
    }))

  it.effect("a Redis that is late or away lets nothing be sent, and forgets what it was asked too late", () =>
    Effect.gen(function*() {
      const server = yield* start
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const claim = yield* open({ nonce: now - 1 })
        yield* claim.settle("unknown")
        yield* server.freeze
        for (const nonce of [now, now - 1]) {
          const refused = yield* advancingClock(refusalOf({ nonce }))
          assert.strictEqual(
            refused,
            "The action was not sent: the action log is unreachable (Redis is not connected, or did not respond in time)"
          )
        }
        assert.strictEqual(yield* metric("trigate_action_log_degraded"), 1)
        yield* server.thaw
        yield* until(isFree())
        assert.strictEqual(yield* metric("trigate_action_log_degraded"), 0)
        // the earlier sending may still have been taken
        assert.isFalse(yield* isFree({ nonce: now - 1, text: "other" }))
        assert.isTrue((yield* open({ nonce: now - 1 })).isRepeat)
        yield* server.kill
        assert.include(yield* refusalOf({ nonce: now + 1 }), "was not sent")
      }).pipe(Effect.provide(server.layer()))
    }))

  it.effect("a Redis that goes away while no action is sent is shown by the metric", () =>
    Effect.gen(function*() {
      const server = yield* start
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        assert.strictEqual(yield* metric("trigate_action_log_degraded"), 0)
        yield* server.kill
        const isShown = Effect.map(metric("trigate_action_log_degraded"), (shown) => shown === 1)
        yield* advancingClock(Effect.repeat(Effect.delay(isShown, 100), { until: (shown) => shown }))
      }).pipe(Effect.provide(server.layer()))
    }))

  it.effect("an end that Redis does not take is written once it is back", () =>
    Effect.gen(function*() {
      const server = yield* start
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const claim = yield* open()
        yield* server.freeze
        yield* advancingClock(claim.settle("accepted"))
        yield* server.thaw
        const elsewhere = yield* Layer.build(server.layer())
        const isKnown = Effect.map(refusalOf(), (words) => words?.includes("its outcome is known") === true)
        yield* advancingClock(until(Effect.provide(isKnown, elsewhere)))
      }).pipe(Effect.provide(server.layer()))
    }))
})

describe.runIf(isInstalled)("the action log in Redis", () => {
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

  it.effect("changes entries as one in a simulated Redis does, whatever the order of the operations", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      const redis = Context.get(yield* Layer.build(NodeRedis.layer({ url })), Redis.Redis)
      const entriesOver = (
        { find, insert, isKnown, know, move, update }: ActionLogRedis.SharedEntries
      ): Entries<StoreFault> => ({
        insert,
        update: (key, guard, { part = "familiar", settled, state }) =>
          update(key, guard, { part, settled, state, settledCapacity: 3 }),
        move: (key, { lookUpAt }, to) => move(key, lookUpAt, to),
        find: (selection) => "key" in selection || "open" in selection ? Effect.succeed([]) : find(selection),
        others: [(_, signer) => know(signer), (_, signer) => isKnown(signer)]
      })
      assertReached(
        yield* Effect.forEach(Array.from({ length: sampleRuns(40) }), (_, run) => {
          // nothing expires, as in the real Redis, in which hardly any time passes
          const still: Access.Access = (operation) => Effect.sync(() => operation(0))
          return recordEqually([
            entriesOver(ActionLogRedis.makeEntries(redis, `run-${run}:`)),
            entriesOver(RedisActionLog.makeEntries(RedisActionLog.make(), still))
          ])
        })
      )
    }).pipe(Random.withSeed(seed)))
})
