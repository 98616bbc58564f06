/** How old answers to queries may be, and what sharing them saves. */
import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import type { Freshness as InfoFreshness } from "@trigate/domain/info/InfoOperations"
import type { Surface } from "@trigate/domain/operations/Operation"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import { Info } from "@trigate/trading/Info"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import { Freshness, MaxAge } from "@trigate/upstream/cache/ResponseCache"
import { Pipeline } from "@trigate/upstream/Pipeline"
import { metrics } from "@trigate/upstream/unstable/Upstream"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as TestClock from "effect/testing/TestClock"

/** A venue whose answers have numbers, so that each says which request it came from. */
const numbered = (body = (count: number) => `[${count}]`) => {
  let count = 0
  return ScriptedTransport.make(() => ScriptedTransport.response(200, body(++count)))
}

const info = (transport: ReturnType<typeof numbered>, infoFreshness: ReadonlyArray<InfoFreshness> = []) =>
  TradingUpstream.layerInfo({ api: ["https://api.test"], node: ["https://node.test/KEY"] }, { infoFreshness }).pipe(
    Layer.provideMerge(transport.layer)
  )

const members = { coin: "BTC", oid: 1, startTime: 0, user: `0x${"0".repeat(40)}` }

const ask = Effect.fnUntraced(
  function*(
    query: { readonly type: string; readonly [member: string]: string | number },
    surface: Surface = "gateway"
  ) {
    const call = yield* InfoProtocol.parseCall(Json.write({ ...members, ...query }), surface, true)
    const { age, text } = yield* Info.use(({ relay }) => relay(call))
    return [text, age] as const
  }
)

const fresh = (type: string, age: Duration.Input): InfoFreshness => ({
  type,
  fresh: Duration.fromInputUnsafe(age)
})

const saved = (outcome: string) => metrics.upstreamWeightSaved.series({ upstream: "trading-api", outcome })

/** What an effect adds to a counter. */
const added = <A, E, R>(counter: Metric.Counter<number>, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const before = (yield* Metric.value(counter)).count
    yield* effect
    return (yield* Metric.value(counter)).count - before
  })

describe("a query", () => {
  for (const type of ["meta", "allPerpMetas", "perpDexs", "perpDexLimits", "perpAnnotation", "outcomeTemplates"]) {
    it.effect(`for what changes rarely is answered from the cache for a minute: ${type}`, () => {
      const transport = numbered()
      return Effect.gen(function*() {
        assert.deepStrictEqual(yield* ask({ type }), ["[1]", undefined])
        yield* TestClock.adjust(59_999)
        assert.deepStrictEqual(yield* ask({ type }), ["[1]", 59])
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(yield* ask({ type }), ["[2]", undefined])
        // a node answers otherwise than the venue
        assert.deepStrictEqual(yield* ask({ type }, "node"), ["[3]", undefined])
      }).pipe(Effect.provide(info(transport)))
    })
  }

  for (const type of ["allMids", "l2Book", "metaAndAssetCtxs", "recentTrades", "borrowLendReserveState"]) {
    it.effect(`for market data that bots poll is answered from the cache for a second: ${type}`, () => {
      const transport = numbered()
      return Effect.gen(function*() {
        assert.deepStrictEqual(yield* ask({ type }), ["[1]", undefined])
        yield* TestClock.adjust(999)
        assert.deepStrictEqual(yield* ask({ type }), ["[1]", 0])
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(yield* ask({ type }), ["[2]", undefined])
      }).pipe(Effect.provide(info(transport)))
    })
  }

  for (const type of ["fundingHistory", "clearinghouseState", "openOrders", "orderStatus", "newToUs"]) {
    it.effect(`for anything else is asked each time: ${type}`, () => {
      const transport = numbered()
      return Effect.gen(function*() {
        yield* ask({ type })
        assert.deepStrictEqual(yield* ask({ type }), ["[2]", undefined])
      }).pipe(Effect.provide(info(transport)))
    })
  }

  const orderWith = (status: string) => `{"status":"order","order":{"order":{"oid":1},"status":"${status}"}}`
  const user = `0x${"1".repeat(40)}`
  const orders: ReadonlyArray<readonly [what: string, oid: number | string, body: string, cached: boolean]> = [
    ["that is filled", 1, orderWith("filled"), true],
    ["that is canceled", 1, orderWith("canceled"), true],
    ["that a check refused", 1, orderWith("perpMarginRejected"), true],
    ["beyond the user's limit of open orders", 1, orderWith("tooManyOpenOrdersRejected"), true],
    ["that is open", 1, orderWith("open"), false],
    ["that was triggered", 1, orderWith("triggered"), false],
    ["in a state that is new to us", 1, orderWith("pausedCanceled"), false],
    ["that nobody knows", 1, `{"status":"unknownOid"}`, false],
    // a client may use it for another order
    ["that a client has named", `0x${"1".repeat(32)}`, orderWith("filled"), false]
  ]
  for (const [what, oid, body, cached] of orders) {
    it.effect(`for the status of an order ${what} is ${cached ? "cached" : "asked each time"}`, () => {
      const transport = numbered(() => body)
      return Effect.gen(function*() {
        const status = ask({ type: "orderStatus", user, oid })
        yield* status
        // later orders of the account do not change it
        yield* Pipeline.use(({ accounts }) => accounts.invalidate([user]))
        yield* TestClock.adjust("30 days")
        assert.deepStrictEqual(yield* status, [body, cached ? 30 * 86_400 : undefined])
        assert.lengthOf(transport.sent, cached ? 1 : 2)
      }).pipe(Effect.provide(info(transport)))
    })
  }

  it.effect("for several accounts is asked again after an action of any of them", () => {
    const transport = numbered()
    const users = [`0x${"2".repeat(40)}`, user]
    const query = Effect.andThen(
      InfoProtocol.parseCall(Json.write({ type: "batchClearinghouseStates", users }), "gateway", true),
      (call) => Info.use(({ relay }) => relay(call))
    )
    return Effect.gen(function*() {
      yield* query
      assert.strictEqual((yield* query).text, "[1]")
      yield* Pipeline.use(({ accounts }) => accounts.invalidate([user]))
      assert.strictEqual((yield* query).text, "[2]")
    }).pipe(Effect.provide(info(transport, [fresh("batchClearinghouseStates", "10 seconds")])))
  })

  it.effect("for the status of an order shares no read that began before its account changed", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const transport = ScriptedTransport.make(() => {
        const status = transport.sent.length === 1 ? "open" : "filled"
        return Effect.as(Deferred.await(gate), ScriptedTransport.response(200, orderWith(status)))
      })
      yield* Effect.gen(function*() {
        const status = ask({ type: "orderStatus", user, oid: 1 })
        const before = yield* Effect.forkChild(status, { startImmediately: true })
        yield* Pipeline.use(({ accounts }) => accounts.invalidate([user]))
        const after = yield* Effect.forkChild(status, { startImmediately: true })
        assert.lengthOf(transport.sent, 2)
        yield* Deferred.succeed(gate, undefined)
        assert.deepStrictEqual(yield* Fiber.join(before), [orderWith("open"), undefined])
        assert.deepStrictEqual(yield* Fiber.join(after), [orderWith("filled"), undefined])
        assert.deepStrictEqual(yield* status, [orderWith("filled"), 0])
      }).pipe(Effect.provide(info(transport)))
    }))

  for (const type of ["l2Book", "clearinghouseState"]) {
    it.effect(`gets a response of at most five seconds where the venue's rate limit is used up: ${type}`, () => {
      const transport = ScriptedTransport.make(() =>
        transport.sent.length === 1 ? ScriptedTransport.response(200, "[1]") : ScriptedTransport.response(429, "null")
      )
      return Effect.gen(function*() {
        yield* ask({ type })
        yield* TestClock.adjust(4999)
        assert.deepStrictEqual(yield* ask({ type }), ["[1]", 4])
        assert.deepStrictEqual(yield* Effect.provideService(ask({ type }), MaxAge, 4), ["null", undefined])
        assert.deepStrictEqual(yield* Effect.provideService(ask({ type }), Freshness, "none"), ["null", undefined])
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(yield* ask({ type }), ["null", undefined])
      }).pipe(Effect.provide(info(transport)))
    })
  }

  it.effect("gets no such response where the setting is 0", () => {
    const transport = ScriptedTransport.make(() =>
      transport.sent.length === 1 ? ScriptedTransport.response(200, "[1]") : ScriptedTransport.response(429, "null")
    )
    return Effect.gen(function*() {
      yield* ask({ type: "clearinghouseState" })
      assert.deepStrictEqual(yield* ask({ type: "clearinghouseState" }), ["null", undefined])
    }).pipe(Effect.provide(
      TradingUpstream.layerInfo({ api: ["https://api.test"] }, { staleWhenLimited: 0 }).pipe(
        Layer.provide(transport.layer)
      )
    ))
  })

  it.effect("that the venue answers with null is asked again: what is asked for may be listed by now", () => {
    const transport = numbered((count) => count === 1 ? "null" : `[${count}]`)
    return Effect.gen(function*() {
      yield* ask({ type: "meta" })
      assert.deepStrictEqual(yield* ask({ type: "meta" }), ["[2]", undefined])
    }).pipe(Effect.provide(info(transport)))
  })

  it.effect("may have an answer as old as the setting says, and none older where the venue fails", () => {
    const transport = ScriptedTransport.make(() =>
      transport.sent.length === 1 ? ScriptedTransport.response(200, "[1]") : ScriptedTransport.response(503, "[]")
    )
    return Effect.gen(function*() {
      yield* ask({ type: "allMids" })
      yield* TestClock.adjust(499)
      assert.deepStrictEqual(yield* ask({ type: "allMids" }), ["[1]", 0])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* ask({ type: "allMids" }), ["[]", undefined])
    }).pipe(Effect.provide(info(transport, [fresh("allMids", 500)])))
  })

  it.effect("about a user is shared by those who ask about the same user", () => {
    const transport = numbered()
    const openOrders = (user: string) => ask({ type: "openOrders", user })
    return Effect.gen(function*() {
      yield* openOrders(`0x${"1".repeat(40)}`)
      assert.deepStrictEqual(yield* openOrders(`0x${"2".repeat(40)}`), ["[2]", undefined])
      assert.deepStrictEqual(yield* openOrders(`0x${"1".repeat(40)}`), ["[1]", 0])
    }).pipe(Effect.provide(info(transport, [fresh("openOrders", "2 seconds")])))
  })

  it.effect("of a caller who wants what is newer goes to the venue, and its answer is there for others", () => {
    const transport = numbered()
    return Effect.gen(function*() {
      yield* ask({ type: "meta" })
      yield* TestClock.adjust(5000)
      assert.deepStrictEqual(yield* Effect.provideService(ask({ type: "meta" }), MaxAge, 4), ["[2]", undefined])
      assert.deepStrictEqual(yield* Effect.provideService(ask({ type: "meta" }), Freshness, "none"), ["[3]", undefined])
      assert.deepStrictEqual(yield* ask({ type: "meta" }), ["[3]", 0])
    }).pipe(Effect.provide(info(transport)))
  })

  it.effect("is cached for a shorter time, or not at all, where the setting says so", () => {
    const transport = numbered((count) => `{"universe":[],"tokens":[],"count":${count}}`)
    return Effect.gen(function*() {
      yield* ask({ type: "meta" })
      assert.strictEqual((yield* ask({ type: "meta" }))[1], undefined)
      yield* ask({ type: "spotMeta" })
      yield* TestClock.adjust(999)
      assert.strictEqual((yield* ask({ type: "spotMeta" }))[1], 0)
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* ask({ type: "spotMeta" }))[1], undefined)
      assert.lengthOf(transport.sent, 4)
    }).pipe(Effect.provide(info(transport, [fresh("meta", 0), fresh("spotMeta", "1 second")])))
  })
})

describe("what sharing saves is counted", () => {
  it.effect("of cached answers and of coalesced queries, by the venue's weights", () => {
    const transport = ScriptedTransport.make(() =>
      Effect.delay(Effect.succeed(ScriptedTransport.response(200, "[]")), 10)
    )
    return Effect.gen(function*() {
      const query = (type: string) => ask({ type })
      const mids = Effect.all([query("allMids"), query("allMids"), query("allMids")], { concurrency: "unbounded" })
      const coalesced = yield* Effect.all([
        added(saved("coalesced"), mids),
        TestClock.adjust(10)
      ], { concurrency: "unbounded" })
      assert.strictEqual(coalesced[0], 4)
      yield* Effect.all([query("meta"), TestClock.adjust(10)], { concurrency: "unbounded" })
      const hit = yield* added(saved("hit"), Effect.all([query("meta"), query("meta"), query("meta")]))
      assert.strictEqual(hit, 60)
    }).pipe(Effect.provide(info(transport)))
  })
})
