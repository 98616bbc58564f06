import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import type { Caller } from "@trigate/domain/Caller"
import { makeMonotonicTime } from "@trigate/domain/encoding/Encoding"
import type { Cost } from "@trigate/domain/operations/Operation"
import * as Access from "@trigate/simulation/unstable/stores/Access"
import * as RedisRateLimits from "@trigate/simulation/unstable/stores/RedisRateLimits"
import { advancingClock, settableClock } from "@trigate/testing/AdvancingClock"
import { isInstalled, redisServer } from "@trigate/testing/RedisServer"
import type { RedisServer } from "@trigate/testing/RedisServer"
import { sample, sampleRuns, seed } from "@trigate/testing/Sample"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as RateLimiterRedis from "@trigate/upstream/limits/RateLimiterRedis"
import * as RateLimiterShared from "@trigate/upstream/unstable/limits/RateLimiterShared"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { countEqually } from "./rateLimitCounters.ts"
import { action, arrivals, ask, callerOf, candles, most, query, run } from "./rateLimitSchedule.ts"

const immediate = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

/** Counts commands without a reply, and waits until there are none, while the test clock stands still. */
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
  return { over: Layer.effect(Redis.Redis, Effect.map(Redis.Redis, over)), settle, track }
}

type Counted = ReturnType<typeof outstanding>

const prefix = "test:{rate-limit}:"

/** A store of the limits, as a test starts it. */
interface Server extends Pick<RedisServer, "freeze" | "kill" | "restart" | "thaw"> {
  readonly layer: (options: RateLimiterShared.Options, counted: Counted) => Layer.Layer<RateLimiter.RateLimiter>
  /** Empties the store while it is running. */
  readonly flush: Effect.Effect<void>
  /** The use of the limit of the venue's API. */
  readonly held: Effect.Effect<Readonly<Record<string, number>>>
}

/** The limits in Redis, whose clock is the test clock. */
const redisLayer = (url: string, { prefix: of = prefix, ...limits }: RateLimiterRedis.Options, counted: Counted) =>
  Layer.effect(
    RateLimiter.RateLimiter,
    Effect.flatMap(
      Redis.Redis,
      (redis) =>
        RateLimiterShared.make(limits, { ...RateLimiterRedis.makeDriver(redis, of), time: Clock.currentTimeMillis })
    )
  ).pipe(
    Layer.provide(counted.over),
    Layer.provide(Layer.orDie(NodeRedis.layer({ url, disableOfflineQueue: true }))),
    // the driver logs each connection that a killed server refuses
    Layer.provide(Logger.layer([]))
  )

const realServer = Effect.map(redisServer, ({ url, ...server }): Server => {
  const send = <A>(command: string, ...args: ReadonlyArray<string>) =>
    Redis.Redis.use((redis) => redis.send<A>(command, ...args)).pipe(
      Effect.provide(NodeRedis.layer({ url })),
      Effect.orDie
    )
  return {
    ...server,
    layer: (options, counted) => redisLayer(url, options, counted),
    flush: Effect.asVoid(send("FLUSHALL")),
    held: Effect.map(
      send<Record<string, string>>("HGETALL", `${prefix}trading-api:60x1000`),
      (found) => Object.fromEntries(Object.entries(found).map(([field, units]) => [field, Number(units)]))
    )
  }
})

const simulatedServer = Effect.sync((): Server => {
  const store = RedisRateLimits.make()
  const { access, freeze, kill, restart, thaw } = Access.makeSwitched()
  const clear = Effect.sync(store.clear)
  return {
    kill,
    freeze,
    thaw,
    restart: Effect.andThen(clear, restart),
    layer: (options, { track }) => RedisRateLimits.layer(store, (operation) => track(access(operation)), options),
    flush: clear,
    held: Effect.sync(() =>
      Object.fromEntries(
        Array.from(store.snapshot().get("trading-api:60x1000")?.window.of ?? [], ([field, { units }]) => [field, units])
      )
    )
  }
})

/** A replica with a connection and a window of its own. */
const replica = (server: Server, options: RateLimiterShared.Options, counted: Counted = outstanding()) =>
  Effect.map(
    Layer.build(Layer.fresh(server.layer(options, counted))),
    (context) => Context.get(context, RateLimiter.RateLimiter)
  )

/** Calls arrive, wait and ask again at multiples of this, where the clock stops until Redis has answered. */
const grid = 50

const venue = { "trading-api": 1200 }

const starts = Effect.fnUntraced(
  function*(limiter: RateLimiter.RateLimiter["Service"], asked: RateLimiter.PermitRequest) {
    let count = 0
    while ((yield* Effect.exit(limiter.take(asked)))._tag === "Success") count += 1
    return count
  }
)

const degraded = Effect.map(Metric.snapshot, (metrics) => {
  const found = metrics.find(({ attributes, id }) =>
    id === "trigate_shared_state_degraded" && attributes?.["use"] === "rate-limits"
  )
  return found !== undefined && "value" in found.state ? Number(found.state.value) : undefined
})

const servers = [
  { name: "Redis", isInstalled, start: realServer },
  { name: "a simulated Redis", isInstalled: true, start: simulatedServer }
]

describe.each(servers.filter((server) => server.isInstalled))("rate limits over $name", ({ start }) => {
  it.effect("are shared by two replicas, and one can take what the other refunds", () =>
    Effect.gen(function*() {
      const server = yield* start
      const counted = outstanding()
      const one = yield* replica(server, venue, counted)
      const two = yield* replica(server, venue, counted)
      const permits = yield* one.take(ask(candles))
      assert.strictEqual(yield* starts(two, ask(candles)), 9)
      assert.strictEqual((yield* Effect.flip(two.take(ask(candles)))).retryAfter, 61)
      assert.strictEqual((yield* Effect.flip(one.take(ask(candles)))).retryAfter, 61)
      permits.refund(84)
      yield* counted.settle
      assert.strictEqual(yield* starts(two, ask(query)), 9)
      assert.strictEqual(yield* starts(one, ask(action)), 64)
      assert.strictEqual(yield* starts(two, ask(action)), 0)
    }))

  it.effect("flow back to the refreshes of both replicas together", () =>
    Effect.gen(function*() {
      const server = yield* start
      const counted = outstanding()
      const one = yield* replica(server, venue, counted)
      const two = yield* replica(server, venue, counted)
      const refresh = { ...ask(query), isRefresh: true }
      // 91 may be used at once, and the last one may use more than is left
      assert.strictEqual(yield* starts(one, refresh), 5)
      assert.strictEqual(yield* starts(two, refresh), 0)
      assert.isTrue(two.pacerOf("trading-api")?.isSpent(makeMonotonicTime(0)))
      // 1026 of 1140 flow back in 61 seconds
      yield* TestClock.adjust(2000)
      const permits = yield* two.take(refresh)
      assert.strictEqual(yield* starts(one, refresh), 1)
      assert.strictEqual(yield* starts(two, refresh), 0)
      permits.refund(20)
      yield* counted.settle
      assert.strictEqual(yield* starts(one, refresh), 1)
      assert.strictEqual(yield* starts(one, { ...refresh, isRefresh: false }), 50)
    }))

  it.effect("divide into shares of callers, whichever replica they come to", () =>
    Effect.gen(function*() {
      const server = yield* start
      const counted = outstanding()
      const one = yield* replica(server, venue, counted)
      const two = yield* replica(server, venue, counted)
      const hostile = callerOf("address:127.0.0.1")
      const honest = callerOf("key:honest one")
      const asking = (cost: Cost, caller: Caller) => ask(cost, 0, "trading-api", caller)
      for (let n = 0; n < 12; n++) yield* one.take(asking(query, honest))
      assert.strictEqual(yield* starts(two, asking(query, hostile)), 30)
      const refused = yield* Effect.flip(two.take(asking(query, hostile)))
      assert.deepInclude(refused, { _tag: "QuotaExceeded", retryAfter: 65 })
      assert.strictEqual(yield* starts(two, asking(query, honest)), 9)
      const full = yield* Effect.flip(one.take(asking(query, honest)))
      assert.deepInclude(full, { _tag: "QuotaExceeded", retryAfter: 65 })
      assert.strictEqual(yield* starts(one, asking(action, hostile)), 0)
      assert.strictEqual(yield* starts(one, asking(action, honest)), 30)
      // what a caller held in the window before is not lent, and no more than that
      yield* TestClock.adjust(65_000)
      const first = yield* one.take(asking(candles, hostile))
      assert.strictEqual(yield* starts(two, asking(query, hostile)), 16)
      first.refund(84)
      yield* counted.settle
      assert.strictEqual(yield* starts(two, asking(query, hostile)), 4)
      for (let n = 0; n < 21; n++) yield* one.take(asking(query, honest))
    }))

  it.effect("start a waiting call when the calls of all replicas have left the window", () =>
    Effect.gen(function*() {
      const server = yield* start
      const counted = outstanding()
      const one = yield* replica(server, venue, counted)
      const two = yield* replica(server, venue, counted)
      for (let n = 0; n < 57; n++) yield* one.take(ask(query))
      yield* TestClock.adjust(10_500)
      assert.strictEqual((yield* Effect.flip(two.take(ask(query, 50_499)))).retryAfter, 51)
      const begun: Array<number> = []
      const note = Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => begun.push(now)))
      yield* Effect.forkChild(Effect.andThen(two.take(ask(query, 50_500)), note), { startImmediately: true })
      while ((yield* Clock.currentTimeMillis) < 62_000) {
        yield* counted.settle
        yield* TestClock.adjust(250)
      }
      assert.deepStrictEqual(begun, [61_000])
    }))

  it.effect("take nothing for a call that is cancelled while Redis is asked", () =>
    Effect.gen(function*() {
      const server = yield* start
      const limiter = yield* replica(server, venue)
      yield* limiter.take(ask(query))
      yield* server.freeze
      const asking = yield* Effect.forkChild(limiter.take(ask(candles)), { startImmediately: true })
      const leaving = yield* Effect.forkChild(Fiber.interrupt(asking), { startImmediately: true })
      yield* TestClock.adjust(250)
      yield* Fiber.join(leaving)
      assert.strictEqual(yield* starts(limiter, ask(query)), 56)
      yield* server.thaw
    }))

  for (const seed of sample("seeds of two replicas", [1, 2, 3], 1)) {
    it.effect(
      `let two replicas start no more than 1200 a minute together (${seed})`,
      () =>
        Effect.gen(function*() {
          const server = yield* start
          const counted = outstanding()
          const replicas = [yield* replica(server, venue, counted), yield* replica(server, venue, counted)]
          const schedule = yield* arrivals({ seed, rounds: 2, replicas: 2, grid })
          const begun = yield* run(replicas, schedule, { upstream: "trading-api", step: grid, settle: counted.settle })
          assert.isAtMost(most(begun, 60_000), 1200)
          assert.isAtLeast(most(begun, 60_000), 1140)
          assert.strictEqual(yield* degraded, 0)
        })
    )
  }

  const losses = [
    ["is killed", undefined],
    ["is killed and comes back empty", 70_000],
    ["restarts within a second", 41_000]
  ] as const
  for (const [what, restarted] of sample("ways in which Redis is lost", losses, 1)) {
    for (const seed of sample(`seeds when Redis ${what}`, [4, 5], 1)) {
      it.effect(`let two replicas start no more than 1200 a minute together when Redis ${what} (${seed})`, () =>
        Effect.gen(function*() {
          const server = yield* start
          const counted = outstanding()
          const replicas = [yield* replica(server, venue, counted), yield* replica(server, venue, counted)]
          const schedule = yield* arrivals({ seed, rounds: 2, replicas: 2, grid })
          let events: ReadonlyArray<readonly [at: number, event: Effect.Effect<void>]> = [
            [40_000, server.kill],
            ...(restarted === undefined ? [] : [[restarted, server.restart] as const])
          ]
          const begun = yield* run(replicas, schedule, {
            upstream: "trading-api",
            step: grid,
            settle: counted.settle,
            during: (at) => {
              const [next, ...rest] = events
              if (next === undefined || at < next[0]) return Effect.void
              events = rest
              return next[1]
            }
          })
          assert.isAtMost(most(begun, 60_000), 1200)
          for (const replica of [0, 1]) {
            const own = begun.filter((start) => start.replica === replica)
            assert.isAtLeast(own.filter(({ at }) => at > 40_000).length, 50)
          }
          if (restarted === undefined) assert.strictEqual(yield* degraded, 1)
        }))
    }
  }

  it.effect("are written back into a Redis that has forgotten them, and kept in parts until all replicas have done so", () =>
    Effect.gen(function*() {
      const server = yield* start
      const counted = outstanding()
      const one = yield* replica(server, venue, counted)
      const two = yield* replica(server, venue, counted)
      for (let n = 0; n < 25; n++) yield* one.take(ask(query))
      yield* two.take(ask(action))
      yield* TestClock.adjust(1000)
      yield* two.take(ask(query))
      yield* one.take(ask(query))
      yield* server.flush
      // half of what reads may hold are 28 queries, of which it holds 26
      assert.strictEqual(yield* starts(one, ask(query)), 2)
      yield* counted.settle
      assert.deepStrictEqual(yield* server.held, { "0 read": 500, "1 read": 60 })
      assert.strictEqual(yield* starts(two, ask(query)), 28)
      yield* counted.settle
      assert.deepStrictEqual(yield* server.held, { "0 read": 500, "0 once": 1, "1 read": 640 })
      assert.strictEqual(yield* starts(one, ask(action)), 59)
    }))

  it.effect("start an action of one replica before the waiting reads of another", () =>
    Effect.gen(function*() {
      const server = yield* start
      const counted = outstanding()
      const [one, two] = [yield* replica(server, venue, counted), yield* replica(server, venue, counted)]
      for (let second = 0; second < 57; second++) {
        yield* two.take(ask(query))
        yield* TestClock.adjust(1000)
      }
      for (let count = 0; count < 60; count++) yield* one.take(ask(action))
      // reads of the other replica try again before the action, and after it
      for (let count = 0; count < 30; count++) {
        yield* Effect.forkChild(two.take(ask(query, 30_000)), { startImmediately: true })
      }
      yield* counted.settle
      const sent = yield* Effect.forkChild(one.take(ask(action, 10_000)), { startImmediately: true })
      for (let step = 0; step < 5000 / grid; step++) {
        yield* counted.settle
        yield* TestClock.adjust(grid)
      }
      yield* counted.settle
      assert.isDefined(sent.pollUnsafe())
    }))

  /** Lets time pass in steps between which the replicas report. */
  const pass = Effect.fnUntraced(function*(seconds: number, counted: Counted) {
    for (let step = 0; step < seconds; step++) {
      yield* TestClock.adjust(1000)
      yield* counted.settle
    }
  })

  it.effect("contain what a replica used that has ended, when Redis forgets them, and are divided by the others", () =>
    Effect.gen(function*() {
      const server = yield* start
      const counted = outstanding()
      const scope = yield* Scope.make()
      const ended = yield* Scope.provide(replica(server, venue, counted), scope)
      const one = yield* replica(server, venue, counted)
      const two = yield* replica(server, venue, counted)
      for (const each of [ended, one, two]) yield* each.take(ask(query))
      for (let n = 0; n < 29; n++) yield* ended.take(ask(query))
      yield* pass(4, counted)
      yield* Scope.close(scope, Exit.void)
      // the other two are idle, and count as running
      yield* pass(20, counted)
      yield* server.flush
      const later = yield* replica(server, venue, counted)
      yield* pass(2, counted)
      // 25 of the 57 queries of a minute are left
      const counts = [yield* starts(later, ask(query)), yield* starts(one, ask(query)), yield* starts(two, ask(query))]
      assert.strictEqual(counts.reduce((sum, count) => sum + count, 0), 25)
      assert.strictEqual(yield* starts(one, ask(action)), 60)
    }))

  it.effect("contain what a replica used after the last reports, when it has ended and Redis forgets it", () =>
    Effect.gen(function*() {
      const server = yield* start
      const counted = outstanding()
      const scope = yield* Scope.make()
      const ended = yield* Scope.provide(replica(server, venue, counted), scope)
      const one = yield* replica(server, venue, counted)
      for (const each of [ended, one]) yield* each.take(ask(query))
      yield* pass(4, counted)
      for (let n = 0; n < 28; n++) yield* ended.take(ask(query))
      yield* one.take(ask(query))
      yield* one.take(ask(query))
      yield* Scope.close(scope, Exit.void)
      yield* server.flush
      yield* pass(2, counted)
      assert.deepStrictEqual(yield* server.held, { "0 read": 40, "4 read": 600 })
      const later = yield* replica(server, venue, counted)
      // 25 of the 57 queries of a minute are left
      const counts = [yield* starts(later, ask(query)), yield* starts(one, ask(query))]
      assert.strictEqual(counts.reduce((sum, count) => sum + count, 0), 25)
    }))

  it.effect("count once what another replica wrote back, also what was used seconds before Redis forgot it", () =>
    Effect.gen(function*() {
      const server = yield* start
      const counted = outstanding()
      const [one, two] = [yield* replica(server, venue, counted), yield* replica(server, venue, counted)]
      for (const each of [one, two]) for (let n = 0; n < 15; n++) yield* each.take(ask(query))
      yield* pass(4, counted)
      yield* server.flush
      yield* pass(2, counted)
      const counts = [yield* starts(one, ask(query)), yield* starts(two, ask(query))]
      assert.strictEqual(counts.reduce((sum, count) => sum + count, 0), 27)
    }))

  it.effect("count once what was started while a Redis could not be reached that has forgotten nothing", () =>
    Effect.gen(function*() {
      const server = yield* start
      const counted = outstanding()
      const limiter = yield* replica(server, venue, counted)
      for (let n = 0; n < 10; n++) yield* limiter.take(ask(query))
      yield* server.freeze
      const alone = yield* Effect.forkChild(limiter.take(ask(candles)), { startImmediately: true })
      yield* TestClock.adjust(250)
      yield* Fiber.join(alone)
      assert.strictEqual(yield* degraded, 1)
      yield* server.thaw
      const isShared = Effect.gen(function*() {
        yield* TestClock.adjust(1000)
        yield* limiter.take(ask(action))
        yield* counted.settle
        return (yield* degraded) === 0
      })
      yield* advancingClock(Effect.repeat(isShared, { until: (found) => found }))
      // 200 and 104, and 104 once more, since Redis has carried out the call whose answer came too late
      assert.strictEqual(yield* starts(limiter, ask(query)), 36)
    }))

  it.effect("never let a call hang on a Redis that hangs or is killed, and each change is logged once", () =>
    Effect.gen(function*() {
      const server = yield* start
      const lines: Array<string> = []
      const log = Logger.make(({ message }) => {
        lines.push(String(message))
      })
      yield* Effect.gen(function*() {
        const limiter = yield* replica(server, { layer2: 4000 })
        const call = ask({ weight: 0, requestUnits: 1 }, 0, "layer2")
        const take = (count: number) => Effect.replicateEffect(limiter.take(call), count, { discard: true })
        const isShared = Effect.gen(function*() {
          yield* limiter.take(call)
          yield* Effect.sleep(10)
          return (yield* degraded) === 0
        })
        const untilShared = Effect.repeat(isShared, { until: (found) => found })
        yield* take(100)
        assert.strictEqual(yield* degraded, 0)
        yield* server.freeze
        yield* advancingClock(take(500))
        assert.strictEqual(yield* degraded, 1)
        yield* server.thaw
        yield* advancingClock(untilShared)
        yield* server.kill
        yield* advancingClock(take(500))
        assert.strictEqual(yield* degraded, 1)
        yield* server.restart
        yield* advancingClock(untilShared)
      }).pipe(Effect.provide(Logger.layer([log])))
      const words = lines.map((line) => /unreachable|reachable again/u.exec(line)?.[0])
      assert.deepStrictEqual(words, ["unreachable", "reachable again", "unreachable", "reachable again"])
    }))
})

/** Two replicas with a connection each to one simulated Redis. */
const separateReplicas = Effect.gen(function*() {
  const store = RedisRateLimits.make()
  const counted = outstanding()
  const connected = Effect.gen(function*() {
    const { access, ...connection } = Access.makeSwitched()
    const layer = RedisRateLimits.layer(store, (operation) => counted.track(access(operation)), venue)
    const limiter = Context.get(yield* Layer.build(Layer.fresh(layer)), RateLimiter.RateLimiter)
    return { connection, limiter }
  })
  return { clear: Effect.sync(store.clear), counted, one: yield* connected, two: yield* connected }
})

describe("rate limits of replicas that lose Redis, and reach it again at different times", () => {
  it.effect("contain what another replica used while this one had no calls", () =>
    Effect.gen(function*() {
      const { counted, one, two } = yield* separateReplicas
      for (const { limiter } of [one, two, one]) yield* limiter.take(ask(query))
      assert.strictEqual(yield* starts(two.limiter, ask(query)), 54)
      yield* TestClock.adjust(3000)
      yield* counted.settle
      for (const { connection } of [one, two]) yield* connection.kill
      assert.strictEqual(yield* starts(one.limiter, ask(query)), 0)
      // its part of the 60 that are left
      assert.strictEqual(yield* starts(one.limiter, ask(action)), 30)
    }))

  it.effect("contain what each replica used alone", () =>
    Effect.gen(function*() {
      const { counted, one, two } = yield* separateReplicas
      for (const { limiter } of [one, two, one]) yield* limiter.take(ask(query))
      yield* TestClock.adjust(1000)
      for (const { connection } of [one, two]) yield* connection.kill
      assert.strictEqual(yield* starts(two.limiter, ask(query)), 27)
      // one has no calls, and finds in its report that Redis is unreachable
      yield* TestClock.adjust(1500)
      yield* one.connection.restart
      assert.strictEqual(yield* starts(one.limiter, ask(query)), 26)
      yield* two.connection.restart
      // also when both have reported again, in all 57
      yield* TestClock.adjust(4000)
      yield* counted.settle
      const counts = [yield* starts(one.limiter, ask(query)), yield* starts(two.limiter, ask(query))]
      assert.deepStrictEqual(counts, [1, 0])
    }))

  it.effect("contain what a replica uses alone after its report, until a call of it tries Redis again", () =>
    Effect.gen(function*() {
      const { counted, one, two } = yield* separateReplicas
      for (const { limiter } of [one, two, one]) yield* limiter.take(ask(query))
      for (const { connection } of [one, two]) yield* connection.kill
      yield* one.limiter.take(ask(action))
      yield* TestClock.adjust(1500)
      yield* two.limiter.take(ask(action))
      for (const { connection } of [one, two]) yield* connection.restart
      // the report at 2 s, and the calls that try Redis at 2.5 s and 2.4 s
      yield* TestClock.adjust(600)
      yield* counted.settle
      assert.strictEqual(yield* starts(two.limiter, ask(query)), 27)
      yield* TestClock.adjust(300)
      assert.strictEqual(yield* starts(one.limiter, ask(query)), 26)
    }))

  for (const seed of sample("seeds of replicas that lose Redis", [1, 2, 5, 6, 7, 8, 9, 10], 1)) {
    it.effect(`let them start no more than 1200 a minute together (${seed})`, () =>
      Effect.gen(function*() {
        const { clear, counted, one, two } = yield* separateReplicas
        let rest = yield* Effect.gen(function*() {
          const all: Array<readonly [at: number, event: Effect.Effect<void>]> = []
          let at = 0
          for (let outage = 0; outage < 2; outage++) {
            at += yield* Random.nextIntBetween(200, 1400)
            const end = at + (yield* Random.nextIntBetween(4, 600))
            if (yield* Random.nextBoolean) all.push([(end - 0.5) * grid, clear])
            let back = end
            for (const { connection } of [one, two]) {
              const restart = end + (yield* Random.nextIntBetween(0, 60))
              all.push([at * grid, connection.kill], [restart * grid, connection.restart])
              back = Math.max(back, restart)
            }
            at = back
          }
          return all.toSorted(([a], [b]) => a - b)
        }).pipe(Random.withSeed(seed + 1000))
        const schedule = yield* arrivals({ seed, rounds: 2, replicas: 2, grid })
        const begun = yield* run([one.limiter, two.limiter], schedule, {
          upstream: "trading-api",
          step: grid,
          settle: counted.settle,
          during: (at) =>
            Effect.suspend(() => {
              const due = rest.filter(([time]) => time <= at)
              rest = rest.slice(due.length)
              return Effect.forEach(due, ([, event]) => event, { discard: true })
            })
        })
        assert.isAtMost(most(begun, 60_000), 1200)
        assert.isAtLeast(most(begun, 60_000), 600)
      }))
  }
})

describe.runIf(isInstalled)("rate limits in Redis", () => {
  it.effect("are counted by the clock of Redis, also by a replica whose system clock is wrong", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      const make = Effect.map(
        Layer.build(Layer.fresh(Layer.provide(
          RateLimiterRedis.layer({ prefix, ...venue }),
          Layer.orDie(NodeRedis.layer({ url }))
        ))),
        (context) => Context.get(context, RateLimiter.RateLimiter)
      )
      const { clock, set } = yield* settableClock
      set.shift = 7_200_000
      const redis = Context.get(yield* Layer.build(NodeRedis.layer({ url })), Redis.Redis)
      const second = Effect.map(redis.send<ReadonlyArray<string>>("TIME"), ([seconds]) => Number(seconds))
      const [first, one, two] = [yield* second, yield* make, yield* make]
      yield* one.take(ask(candles))
      assert.strictEqual(yield* Effect.provideService(starts(two, ask(candles)), Clock.Clock, clock), 9)
      assert.strictEqual(yield* starts(one, ask(candles)), 0)
      const found = yield* redis.send<Record<string, string>>("HGETALL", `${prefix}trading-api:60x1000`)
      const slots = Object.keys(found).map((field) => Number(field.split(" ")[0]))
      assert.isAtLeast(Math.min(...slots), first)
      assert.isAtMost(Math.max(...slots), yield* second)
    }))

  it.effect("keep a slot no longer than it counts, under a key that names the bounds", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      const counted = outstanding()
      const layer = redisLayer(url, { "trading-api": 1200, layer2: 0.5, prefix: "p:" }, counted)
      const one = Context.get(yield* Layer.build(layer), RateLimiter.RateLimiter)
      const permits = yield* one.take(ask(candles))
      yield* one.take(ask(action))
      yield* one.take(ask(action, 0, "layer2"))
      permits.refund(84)
      yield* counted.settle
      yield* Effect.gen(function*() {
        const redis = yield* Redis.Redis
        assert.deepStrictEqual(yield* redis.send("HGETALL", "p:trading-api:60x1000"), { "0 read": "20", "0 once": "1" })
        assert.deepStrictEqual(yield* redis.send("HGETALL", "p:layer2:20x100"), { "0 once": "1" })
        const left = yield* redis.send<number>("PTTL", "p:trading-api:60x1000")
        assert.isAtMost(left, 122_000)
        assert.isAbove(left, 100_000)
        yield* TestClock.adjust(61_000)
        yield* one.take(ask(query))
        assert.deepStrictEqual(yield* redis.send("HGETALL", "p:trading-api:60x1000"), { "61 read": "20" })
        // a refund that is late, or that comes after Redis lost the slot, takes nothing from others
        permits.refund(20)
        yield* counted.settle
        const late = yield* one.take(ask(query))
        yield* redis.send("FLUSHALL")
        late.refund(20)
        yield* counted.settle
        assert.deepStrictEqual(yield* redis.send("HGETALL", "p:trading-api:60x1000"), {})
      }).pipe(Effect.provide(NodeRedis.layer({ url })))
    }))

  it.effect("count as a simulated Redis does, whatever the order of the operations", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      const redis = Context.get(yield* Layer.build(NodeRedis.layer({ url })), Redis.Redis)
      const outcomes = yield* Effect.forEach(Array.from({ length: sampleRuns(40) }), (_, run) => {
        // nothing expires, as in the real Redis, in which hardly any time passes
        const still: Access.Access = (operation) => Effect.sync(() => operation(0))
        const model = RedisRateLimits.makeDriver(RedisRateLimits.make(), still)
        return countEqually(RateLimiterRedis.makeDriver(redis, `run-${run}:`), model)
      })
      const reached = outcomes.reduce((all, each) => all.union(each), new Set<string>())
      assert.sameMembers([...reached], ["taken", "full", "paced", "unknown"])
    }).pipe(Random.withSeed(seed)))
})
