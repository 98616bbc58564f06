import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import { cachedForGood } from "@trigate/domain/operations/Operation"
import type { CachePolicy } from "@trigate/domain/operations/Operation"
import * as Access from "@trigate/simulation/unstable/stores/Access"
import * as RedisCache from "@trigate/simulation/unstable/stores/RedisCache"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import { isInstalled, redisServer } from "@trigate/testing/RedisServer"
import type { RedisServer } from "@trigate/testing/RedisServer"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import type { CachedResponse } from "@trigate/upstream/cache/ResponseCache"
import { Pacer } from "@trigate/upstream/unstable/limits/RateWindow"
import * as RateWindow from "@trigate/upstream/unstable/limits/RateWindow"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"

const redisAt = (url: string) =>
  // the driver logs each connection that a killed server refuses
  NodeRedis.layer({ url, disableOfflineQueue: true }).pipe(Layer.provideMerge(Logger.layer([])))

// steps take as long as they take on a busy machine
const patient: ResponseCache.RedisOptions = { deadline: "10 seconds" }

const rule: CachePolicy = { fresh: 10_000, refreshAfter: 8000, staleIfError: 50_000 }

const kept = (body: string | Uint8Array, readAt: number): CachedResponse => ({
  content: { head: "trading-api application/json", body },
  readAt: Utf8.makeMonotonicTime(readAt),
  policy: rule
})

const registry = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => Effect.provideService(effect, Metric.MetricRegistry, new Map()))

const metric = (name: string) =>
  Effect.map(
    Metric.snapshot,
    (all) =>
      all.flatMap((each) =>
        each.id === name && (each.type === "Gauge" || each.type === "Counter")
          ? [[each.attributes, Number(each.type === "Gauge" ? each.state.value : each.state.count)] as const]
          : []
      )
  )

const degraded = Effect.map(
  metric("trigate_shared_state_degraded"),
  (all) => all.flatMap(([attributes, value]) => attributes?.["use"] === "cache" ? [value] : [])[0]
)

/** A replica with its own memory, and how often it asked. */
const replica = Effect.fnUntraced(function*(cachePolicy: CachePolicy = rule, pacer?: Pacer) {
  const state = { asked: 0, down: false }
  const { reader } = yield* ResponseCache.ResponseCache
  const { read } = reader<UpstreamResponse.UpstreamResponse, string>({ space: "test", codec: InfoProtocol.codec })
  const get = (key: string) =>
    Effect.map(
      read({
        operation: "spotMeta",
        upstream: "trading-api",
        key,
        cachePolicy: () => cachePolicy,
        pacer,
        send: Effect.suspend(() => {
          state.asked += 1
          return state.down
            ? Effect.fail("down")
            : Effect.succeed(UpstreamResponse.json("trading-api", 200, `"${state.asked}"`))
        })
      }),
      (answer) => [answer.text, answer.age]
    )
  return { state, get }
})

/** A store of the responses, as a test starts it. */
interface Server extends Pick<RedisServer, "freeze" | "kill" | "restart" | "thaw"> {
  readonly layer: (options?: Pick<ResponseCache.RedisOptions, "deadline">) => Layer.Layer<ResponseCache.ResponseCache>
  /** Returns the text that is stored for a response. */
  readonly stored: (key: string) => Effect.Effect<unknown>
}

const realServer = Effect.map(redisServer, ({ url, ...server }): Server => ({
  ...server,
  layer: (options = patient) =>
    Layer.fresh(ResponseCache.layerRedis(options)).pipe(Layer.provide(Layer.orDie(redisAt(url)))),
  stored: (key) =>
    Redis.Redis.use((redis) => redis.send<string | null>("GET", `trigate:cache:${key}`)).pipe(
      Effect.provide(redisAt(url)),
      Effect.orDie
    )
}))

const simulatedServer = Effect.sync((): Server => {
  const store = RedisCache.make()
  const { access, restart, ...server } = Access.makeSwitched()
  const layer: Server["layer"] = (options = patient) => Layer.fresh(RedisCache.layer(store, access, options))
  return {
    ...server,
    restart: Effect.andThen(Effect.sync(store.clear), restart),
    layer: (options) => Layer.provide(layer(options), Logger.layer([])),
    stored: (key) => Effect.sync(() => store.current().responses.get(key)?.value ?? null)
  }
})

const servers = [
  { name: "Redis", isInstalled, start: realServer },
  { name: "a simulated Redis", isInstalled: true, start: simulatedServer }
]

/** Waits, in real time, until the store has a key: it is written behind the answer. */
const written = ({ stored }: Server, key: string) =>
  Effect.gen(function*() {
    while ((yield* stored(key)) === null) yield* Effect.yieldNow
  })

describe.runIf(isInstalled)("ResponseCacheRedis", () => {
  it.effect("gives back text and bytes as they were, under a prefix, for as long as they are of use", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      yield* TestClock.setTime(1_000_000)
      yield* Effect.gen(function*() {
        const cache = yield* ResponseCache.makeRedis(patient)
        for (
          const entry of [
            kept("{\"n\":12345678901234567890}", 1_000_000),
            kept(Utf8.encode("\"₮\""), 990_000)
          ]
        ) {
          yield* cache.put("a", entry)
          assert.deepStrictEqual(yield* cache.get("a"), entry)
        }
        const redis = yield* Redis.Redis
        const left = yield* redis.send<number>("PTTL", "trigate:cache:a")
        assert.isAtMost(left, 50_000)
        assert.isAbove(left, 45_000)
        // a final response is of use for longer than Redis stores it
        yield* cache.put("final", { ...kept("x", 1_000_000), policy: cachedForGood })
        const ofFinal = yield* redis.send<number>("PTTL", "trigate:cache:final")
        assert.isAtMost(ofFinal, 3_600_000)
        assert.isAbove(ofFinal, 3_500_000)
        assert.isUndefined(yield* cache.get("b"))
        yield* cache.put("old", kept("x", 940_000))
        assert.isUndefined(yield* cache.get("old"))
        yield* cache.put("binary", kept(Uint8Array.of(0xff, 0xfe), 1_000_000))
        assert.isUndefined(yield* cache.get("binary"))
        yield* redis.send("SET", "trigate:cache:c", "{\"readAt\":1}")
        assert.isUndefined(yield* cache.get("c"))
      }).pipe(Effect.provide(redisAt(url)))
    }).pipe(registry))
})

describe.each(servers.filter((server) => server.isInstalled))("responses shared through $name", ({ start }) => {
  it.live("what one replica read the others do not read, and they know its age", () =>
    Effect.gen(function*() {
      const server = yield* start
      const test = Effect.gen(function*() {
        const one = yield* replica()
        assert.deepStrictEqual(yield* one.get("k"), ["\"1\"", undefined])
        yield* written(server, "test spotMeta k")
        const other = yield* Effect.provide(
          Effect.gen(function*() {
            const two = yield* replica()
            const herd = yield* Effect.all([two.get("k"), two.get("k")], { concurrency: 2 })
            return { herd, again: yield* two.get("k"), asked: two.state.asked }
          }),
          server.layer()
        )
        assert.deepStrictEqual(other, { herd: [["\"1\"", 0], ["\"1\"", 0]], again: ["\"1\"", 0], asked: 0 })
        assert.deepStrictEqual(yield* metric("trigate_response_cache_total"), [
          [{ upstream: "trading-api", operation: "spotMeta", outcome: "replica_hit" }, 1],
          [{ upstream: "trading-api", operation: "spotMeta", outcome: "coalesced" }, 1],
          [{ upstream: "trading-api", operation: "spotMeta", outcome: "hit" }, 1]
        ])
      })
      yield* Effect.provide(test, server.layer())
    }).pipe(registry))

  it.effect("where refreshes take turns, a response that another replica read later is taken, however old it may be", () =>
    Effect.gen(function*() {
      const server = yield* start
      const limited: CachePolicy = { fresh: 0, staleIfError: 0, staleIfLimited: 5000 }
      const paced = () => {
        const pacer = new Pacer(RateWindow.windowBounds(1200, 60_000, 60, 0.05))
        // another refresh waits, and for less
        pacer.wait({ key: "other", caller: "local", cost: 1000, start: Effect.void }, 1, Utf8.makeMonotonicTime(0))
        return pacer
      }
      yield* Effect.gen(function*() {
        const one = yield* replica(limited, paced())
        assert.deepStrictEqual(yield* one.get("k"), ["\"1\"", undefined])
        yield* Effect.gen(function*() {
          const two = yield* replica(limited, paced())
          assert.deepStrictEqual(yield* two.get("k"), ["\"1\"", undefined])
          yield* TestClock.adjust(3000)
          assert.deepStrictEqual(yield* one.get("k"), ["\"2\"", undefined])
          yield* written(server, "test spotMeta k")
          yield* TestClock.adjust(1000)
          assert.deepStrictEqual(yield* two.get("k"), ["\"2\"", 1])
          assert.deepStrictEqual([one.state.asked, two.state.asked], [2, 1])
        }).pipe(Effect.provide(server.layer()))
      }).pipe(Effect.provide(server.layer()))
    }).pipe(registry))

  it.live("never writes what is fresh for less than a second", () =>
    Effect.gen(function*() {
      const server = yield* start
      yield* Effect.gen(function*() {
        const brief = yield* replica({ fresh: 999, staleIfError: 10_000 })
        yield* brief.get("brief")
        const lasting = yield* replica()
        yield* lasting.get("lasting")
        yield* written(server, "test spotMeta lasting")
        assert.isNull(yield* server.stored("test spotMeta brief"))
      }).pipe(Effect.provide(server.layer()))
    }).pipe(registry))

  it.effect("Redis killed in the middle: reads go on in process, it is told, and shared again when it is back", () =>
    Effect.gen(function*() {
      const server = yield* start
      yield* Effect.gen(function*() {
        const { get, state } = yield* replica()
        yield* get("before")
        yield* written(server, "test spotMeta before")
        yield* server.kill
        yield* Effect.forEach(Array.from({ length: 100 }, (_, index) => `k${index}`), get, { concurrency: 10 })
        assert.deepStrictEqual(yield* get("before"), ["\"1\"", 0])
        assert.strictEqual((yield* get("k7"))[1], 0)
        assert.strictEqual(state.asked, 101)
        assert.strictEqual(yield* degraded, 1)
        yield* server.restart
        let probe = 0
        const isShared = Effect.gen(function*() {
          probe += 1
          yield* get(`probe${probe}`)
          yield* Effect.sleep(10)
          return (yield* degraded) === 0
        })
        yield* advancingClock(Effect.repeat(isShared, { until: (found) => found }))
        yield* get("after")
        yield* written(server, "test spotMeta after")
      }).pipe(Effect.provide(server.layer()))
    }).pipe(registry))

  it.effect("a Redis that hangs delays a read by its deadline at most", () =>
    Effect.gen(function*() {
      const server = yield* start
      yield* Effect.gen(function*() {
        const { get } = yield* replica()
        yield* get("warm")
        yield* server.freeze
        assert.deepStrictEqual((yield* advancingClock(get("cold")))[1], undefined)
        // it is given up for a while: the next one does not wait at all
        assert.deepStrictEqual((yield* get("colder"))[1], undefined)
        yield* server.thaw
      }).pipe(Effect.provide(server.layer({ deadline: "100 millis" })))
    }).pipe(registry))
})
