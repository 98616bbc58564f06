import { assert, describe, it } from "@effect/vitest"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import type { CachePolicy } from "@trigate/domain/operations/Operation"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import { Freshness, MaxAge } from "@trigate/upstream/cache/ResponseCache"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"

const minute = 60_000
const rule: CachePolicy = { fresh: 5 * minute, refreshAfter: 4 * minute, staleIfError: 60 * minute }

const settled = TestClock.adjust(0)

/** An upstream that counts its answers; `state` says how it is. */
const makePeer = () => {
  const state = { asked: 0, down: false, status: 200 }
  const send: Effect.Effect<UpstreamResponse.UpstreamResponse, string> = Effect.suspend(() => {
    state.asked += 1
    return state.down
      ? Effect.fail(`down ${state.asked}`)
      : Effect.succeed(UpstreamResponse.json("trading-api", state.status, `"answer ${state.asked}"`))
  })
  return { state, send }
}

type Query = Partial<ResponseCache.Query<UpstreamResponse.UpstreamResponse, string>>

const setup = Effect.fnUntraced(function*(options: Query = {}) {
  const peer = makePeer()
  const { reader } = yield* ResponseCache.ResponseCache
  const { read } = reader<UpstreamResponse.UpstreamResponse, string>({ space: "test", codec: InfoProtocol.codec })
  const query = {
    operation: "spotMeta",
    upstream: "trading-api",
    key: "k",
    cachePolicy: () => rule,
    send: peer.send,
    ...options
  } as const
  const spoken = (answer: UpstreamResponse.UpstreamResponse) => [answer.text, answer.age]
  return { ...peer, query, read, get: Effect.map(read(query), spoken), spoken }
})

const counts = Effect.map(Metric.snapshot, (all) => {
  const found: Record<string, number> = {}
  for (const each of all) {
    if (each.id !== "trigate_response_cache_total" || each.type !== "Counter") continue
    const { outcome, ...labels } = each.attributes ?? {}
    assert.deepStrictEqual(labels, { upstream: "trading-api", operation: "spotMeta" })
    found[String(outcome)] = Number(each.state.count)
  }
  return found
})

const run = <A, E>(test: Effect.Effect<A, E, ResponseCache.ResponseCache>, options: ResponseCache.Options = {}) =>
  test.pipe(
    Effect.provide(ResponseCache.layer(options)),
    Effect.provideService(Metric.MetricRegistry, new Map())
  )

describe("ResponseCache", () => {
  it.effect("asks for a caller who takes no answer as old as the one that is kept", () =>
    run(Effect.gen(function*() {
      const { get } = yield* setup()
      yield* get
      yield* TestClock.adjust(30_000)
      assert.deepStrictEqual(yield* Effect.provideService(get, MaxAge, 30), ["\"answer 1\"", 30])
      assert.deepStrictEqual(yield* Effect.provideService(get, MaxAge, 29), ["\"answer 2\"", undefined])
      assert.deepStrictEqual(yield* get, ["\"answer 2\"", 0])
    })))

  it.effect("asks once while the answer is fresh, and says how old it is", () =>
    run(Effect.gen(function*() {
      const { get, state } = yield* setup({ cachePolicy: () => ({ fresh: 2000, staleIfError: 0 }) })
      assert.deepStrictEqual(yield* get, ["\"answer 1\"", undefined])
      assert.deepStrictEqual(yield* get, ["\"answer 1\"", 0])
      yield* TestClock.adjust(1999)
      assert.deepStrictEqual(yield* get, ["\"answer 1\"", 1])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* get, ["\"answer 2\"", undefined])
      assert.strictEqual(state.asked, 2)
      assert.deepStrictEqual(yield* counts, { hit: 2 })
    })))

  it.effect("makes no response fresh again when the system clock is set back", () =>
    run(Effect.gen(function*() {
      const { get } = yield* setup({ cachePolicy: () => ({ fresh: 2000, staleIfError: 0 }) })
      yield* TestClock.adjust("1 hour")
      yield* get
      yield* TestClock.setTime(0)
      yield* TestClock.adjust(1999)
      assert.deepStrictEqual(yield* get, ["\"answer 1\"", 1])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* get, ["\"answer 2\"", undefined])
    })))

  it.effect("gives the bytes, type and label back as they came", () =>
    run(Effect.gen(function*() {
      const { query, read } = yield* setup()
      const first = yield* read(query)
      const second = yield* read(query)
      assert.deepStrictEqual(second, first.with({ age: 0 }))
      assert.strictEqual(second.body, first.body)
    })))

  it.effect("a herd of 50 costs one exchange, with a rule and without", () =>
    run(Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const peer = makePeer()
      const send = Effect.andThen(Deferred.await(gate), peer.send)
      const { get, query, read } = yield* setup({ send })
      const { cachePolicy: _, ...unkept } = query
      const herd = Array.from({ length: 50 })
      const fibers = yield* Effect.forEach(herd, () => Effect.forkChild(get, { startImmediately: true }))
      const others = yield* Effect.forEach(
        herd,
        () => Effect.forkChild(read({ ...unkept, key: "other" }), { startImmediately: true })
      )
      yield* settled
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(new Set((yield* Fiber.joinAll(fibers)).map(([text]) => text)).size, 1)
      yield* Fiber.joinAll(others)
      assert.strictEqual(peer.state.asked, 2)
      assert.deepStrictEqual(yield* counts, { coalesced: 98 })
    })))

  it.effect("keeps nothing where the rule says nothing", () =>
    run(Effect.gen(function*() {
      const { get, state } = yield* setup({ cachePolicy: () => undefined })
      yield* get
      assert.deepStrictEqual(yield* get, ["\"answer 2\"", undefined])
      assert.strictEqual(state.asked, 2)
    })))

  it.effect("renews an answer once ahead of need, in the background", () =>
    run(Effect.gen(function*() {
      const { get, state } = yield* setup()
      yield* get
      yield* TestClock.adjust(4 * minute - 1)
      assert.deepStrictEqual(yield* get, ["\"answer 1\"", 239])
      yield* settled
      assert.strictEqual(state.asked, 1)
      yield* TestClock.adjust(1)
      const herd = yield* Effect.all(Array.from({ length: 20 }, () => get), { concurrency: 20 })
      assert.deepStrictEqual(herd, Array.from({ length: 20 }, () => ["\"answer 1\"", 240]))
      yield* settled
      assert.strictEqual(state.asked, 2)
      assert.deepStrictEqual(yield* get, ["\"answer 2\"", 0])
      assert.deepStrictEqual(yield* counts, { hit: 22, refreshed: 1 })
    })))

  it.effect("a renewal that fails is counted, nobody hears of it, and it is tried again after 5 seconds", () =>
    run(Effect.gen(function*() {
      const { get, state } = yield* setup()
      yield* get
      yield* TestClock.adjust(4 * minute)
      state.down = true
      for (let hit = 0; hit < 3; hit += 1) {
        assert.deepStrictEqual(yield* get, ["\"answer 1\"", 240])
        yield* settled
      }
      assert.strictEqual(state.asked, 2)
      yield* TestClock.adjust(5000)
      assert.deepStrictEqual(yield* get, ["\"answer 1\"", 245])
      yield* settled
      assert.strictEqual(state.asked, 3)
      assert.deepStrictEqual(yield* counts, { hit: 4, refresh_failed: 2 })
    })))

  it.effect("gives what is stale, with its exact age, while the upstream fails, and not a moment longer than it may", () =>
    run(Effect.gen(function*() {
      const { get, state } = yield* setup()
      yield* get
      state.down = true
      yield* TestClock.adjust(5 * minute)
      assert.deepStrictEqual(yield* get, ["\"answer 1\"", 300])
      assert.strictEqual(state.asked, 2)
      yield* TestClock.adjust(60 * minute - 1)
      assert.deepStrictEqual(yield* get, ["\"answer 1\"", 3899])
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* Effect.flip(get), "down 4")
      assert.deepStrictEqual(yield* counts, { stale: 2 })
    })))

  it.effect("takes an answer that says the upstream cannot now for a failure, where something stale is there", () =>
    run(Effect.gen(function*() {
      const { get, query, read, state } = yield* setup()
      state.status = 503
      assert.strictEqual((yield* read(query)).status, 503)
      state.status = 200
      assert.deepStrictEqual(yield* get, ["\"answer 2\"", undefined])
      yield* TestClock.adjust(5 * minute)
      for (const status of [500, 503, 429]) {
        state.status = status
        assert.deepStrictEqual(yield* get, ["\"answer 2\"", 300])
      }
      state.status = 422
      assert.strictEqual((yield* read(query)).status, 422)
    })))

  it.effect("keeps no error and nothing that the rule does not accept", () =>
    run(Effect.gen(function*() {
      const { get, query, read, state } = yield* setup()
      for (const status of [422, 500, 204]) {
        state.status = status
        assert.strictEqual((yield* read(query)).status, status)
      }
      state.status = 200
      const isCacheable = (answer: UpstreamResponse.UpstreamResponse) => answer.text === "\"answer 5\""
      assert.deepStrictEqual((yield* read({ ...query, isCacheable })).age, undefined)
      assert.deepStrictEqual((yield* read({ ...query, isCacheable })).age, undefined)
      assert.deepStrictEqual(yield* get, ["\"answer 5\"", 0])
      assert.strictEqual(state.asked, 5)
    })))

  it.effect("whoever wants no cached response gets none, not even a stale one, and what comes is kept", () =>
    run(Effect.gen(function*() {
      const { get, state } = yield* setup()
      const fresh = Effect.provideService(get, Freshness, "none")
      yield* get
      assert.deepStrictEqual(yield* fresh, ["\"answer 2\"", undefined])
      assert.deepStrictEqual(yield* get, ["\"answer 2\"", 0])
      state.down = true
      assert.strictEqual(yield* Effect.flip(fresh), "down 3")
      assert.deepStrictEqual(yield* get, ["\"answer 2\"", 0])
    })))

  it.effect("a rule may keep for those who request it only", () =>
    run(Effect.gen(function*() {
      const asked: CachePolicy = { fresh: 1000, staleIfError: 0 }
      const { get, state } = yield* setup({
        cachePolicy: (_now, freshness) => freshness === "block" ? asked : undefined
      })
      const block = Effect.provideService(get, Freshness, "block")
      yield* block
      assert.deepStrictEqual(yield* block, ["\"answer 1\"", 0])
      assert.deepStrictEqual(yield* get, ["\"answer 2\"", undefined])
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(yield* block, ["\"answer 3\"", undefined])
      assert.strictEqual(state.asked, 3)
    })))

  it.effect("callers who want different answers share no call that is under way", () =>
    run(Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const peer = makePeer()
      const send = Effect.andThen(peer.send, (answer) => Effect.as(Deferred.await(gate), answer))
      const { query, read, spoken } = yield* setup()
      const { cachePolicy: _, ...unkept } = query
      const get = Effect.map(read({ ...unkept, send }), spoken)
      const fibers = yield* Effect.forEach(
        [get, get, Effect.provideService(get, Freshness, "none")],
        (each) => Effect.forkChild(each, { startImmediately: true })
      )
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual(yield* Fiber.joinAll(fibers), [
        ["\"answer 1\"", undefined],
        ["\"answer 1\"", undefined],
        ["\"answer 2\"", undefined]
      ])
    })))

  it.effect("an answer that says the upstream cannot now is the leader's own: the others send once more", () =>
    run(Effect.gen(function*() {
      const { send, state } = makePeer()
      const { query, read, spoken } = yield* setup()
      const get = Effect.map(read({ ...query, send: Effect.delay(send, "10 millis") }), spoken)
      state.status = 503
      const fibers = yield* Effect.forEach(
        Array.from({ length: 10 }),
        () => Effect.forkChild(get, { startImmediately: true })
      )
      yield* TestClock.adjust(20)
      const texts = (yield* Fiber.joinAll(fibers)).map(([text]) => text)
      assert.deepStrictEqual(texts, ["\"answer 1\"", ...Array.from({ length: 9 }, () => "\"answer 2\"")])
      assert.strictEqual(state.asked, 2)
    })))

  it.effect("an answer to confirm is given at once, kept when that is confirmed, and checked once at a time", () =>
    run(Effect.gen(function*() {
      const gate = yield* Deferred.make<CachePolicy | undefined>()
      let checks = 0
      const { get, query, read, spoken, state } = yield* setup()
      const { cachePolicy: _, ...unkept } = query
      const confirm = () =>
        Effect.suspend(() => {
          checks += 1
          return Deferred.await(gate)
        })
      const confirmed = Effect.map(read({ ...unkept, confirm }), spoken)
      assert.deepStrictEqual(yield* confirmed, ["\"answer 1\"", undefined])
      assert.deepStrictEqual(yield* confirmed, ["\"answer 2\"", undefined])
      yield* settled
      assert.strictEqual(checks, 1)
      assert.deepStrictEqual(
        yield* Effect.map(read({ ...unkept, confirm: () => undefined }), spoken),
        ["\"answer 3\"", undefined]
      )
      yield* Deferred.succeed(gate, rule)
      yield* settled
      assert.strictEqual((yield* confirmed)[1], 0)
      assert.strictEqual(state.asked, 3)
      assert.deepStrictEqual(yield* get, yield* confirmed)
    })))

  it.effect("readers of different chains share nothing, those of the same do", () =>
    run(Effect.gen(function*() {
      const { query, state } = yield* setup()
      const { reader } = yield* ResponseCache.ResponseCache
      const of = (space: string) =>
        reader<UpstreamResponse.UpstreamResponse, string>({ space, codec: InfoProtocol.codec }).read(query)
      yield* of("one")
      yield* of("two")
      assert.strictEqual(state.asked, 2)
      yield* of("one")
      assert.strictEqual(state.asked, 2)
    })))

  it.effect("holds no more bytes than it may", () =>
    run(
      Effect.gen(function*() {
        const { query, read, state } = yield* setup({
          send: Effect.succeed(UpstreamResponse.json("trading-api", 200, "x"))
        })
        const keys = Array.from({ length: 100 }, (_, index) => `${index}`)
        yield* Effect.forEach(keys, (key) => read({ ...query, key }), { discard: true })
        const all = yield* Metric.snapshot
        const bytes = all.find(({ id }) => id === "trigate_response_cache_bytes")
        assert.isDefined(bytes)
        assert.isAtMost(bytes.type === "Gauge" ? Number(bytes.state.value) : Infinity, 8 * 400)
        assert.strictEqual(state.asked, 0)
      }),
      { maxBytes: 8 * 400 }
    ))
})

describe("ResponseCache with other replicas", () => {
  const shared = (stored: (now: number) => { readonly readAt: number; readonly policy: CachePolicy }) =>
    ResponseCache.layerRedis().pipe(Layer.provide(Layer.succeed(
      Redis.Redis,
      Redis.Redis.of({
        send: <A>(command: string) =>
          Effect.map(Clock.currentTimeMillis, (now) =>
            (command === "GET"
              ? JSON.stringify({
                ...stored(now),
                head: "trading-api application/json",
                form: "bytes",
                body: "\"kept\""
              })
              : "OK") as A).pipe(Effect.delay("10 millis")),
        eval: () => () => Effect.die("not used"),
        reserve: Effect.die("not used"),
        subscribe: () => Effect.die("not used")
      })
    )))

  it.effect("who wants no cached response follows nobody who takes one", () =>
    Effect.gen(function*() {
      const asked: CachePolicy = { fresh: 1000, staleIfError: 0 }
      const { get, state } = yield* setup({
        cachePolicy: (_now, freshness) => freshness === "block" ? asked : undefined
      })
      const fibers = yield* Effect.forEach(
        [Effect.provideService(get, Freshness, "block"), get],
        (each) => Effect.forkChild(each, { startImmediately: true })
      )
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(yield* Fiber.joinAll(fibers), [["\"kept\"", 0], ["\"answer 1\"", undefined]])
      assert.strictEqual(state.asked, 1)
    }).pipe(Effect.provide(shared((now) => ({ readAt: now, policy: { fresh: 1000, staleIfError: 0 } })))))

  for (const [ahead, expected] of [[1000, ["\"kept\"", 0]], [1001, ["\"answer 1\"", undefined]]] as const) {
    it.effect(`what was read ${ahead} ms ahead of the own clock is given as ${expected[0]}`, () =>
      Effect.gen(function*() {
        const { get } = yield* setup()
        const reading = yield* Effect.forkChild(get, { startImmediately: true })
        yield* TestClock.adjust(10)
        assert.deepStrictEqual<unknown>(yield* Fiber.join(reading), expected)
      }).pipe(Effect.provide(shared((now) => ({ readAt: now + ahead, policy: rule })))))
  }
})
