import { assert, describe, it } from "@effect/vitest"
import * as CandleArchiveMemory from "@trigate/archive/CandleArchive"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import { local } from "@trigate/domain/Caller"
import { barAt, closeTime, openTime } from "@trigate/domain/candles/Candle"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import * as CandleRecording from "@trigate/trading/candles/CandleRecording"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as TestClock from "effect/testing/TestClock"

const now = 1_790_000_000_000

const markets = (...names: ReadonlyArray<string>) =>
  JSON.stringify({ universe: names.map((name) => ({ name, isDelisted: name === "GONE" })) })

const bar = {
  t: openTime("1M", barAt("1M", now) - 1),
  T: closeTime("1M", barAt("1M", now) - 1),
  s: "BTC",
  i: "1M",
  o: "1.0",
  c: "2.0",
  h: "3.0",
  l: "0.5",
  v: "7.0",
  n: 4
}

/** A venue with three coins; each has a bar of a month, and none of another interval. */
const venue = () =>
  ScriptedTransport.make(({ body }) => {
    if (body.includes("\"meta\"")) return ScriptedTransport.response(200, markets("BTC", "GONE"))
    if (body.includes("\"spotMeta\"")) return ScriptedTransport.response(200, markets("@107", "DEAD"))
    if (body.includes("\"DEAD\"")) return ScriptedTransport.response(500, "null")
    const coin = /"coin":"([^"]+)"/u.exec(body)?.[1]
    return ScriptedTransport.response(200, body.includes("\"1M\"") ? JSON.stringify([{ ...bar, s: coin }]) : "[]")
  })

/** The recorder over the venue, under a rate limit that it shares with others. */
const recording = (transport: ReturnType<typeof venue>, options: CandleRecording.Options) => {
  const pipeline = Pipeline.layerNoDeps({ attempts: 1 }).pipe(
    Layer.provide([transport.transport, OutlierDetection.layerAlways, ResponseCache.layer()])
  )
  return CandleRecording.layer(options).pipe(
    Layer.provide(TradingUpstream.layerInfo({ api: ["https://api.test"] })),
    Layer.provide(pipeline),
    Layer.provideMerge(RateLimiter.layerMemory({ "trading-api": 1200 })),
    Layer.provideMerge(CandleArchiveMemory.layer())
  )
}

const quiet = Effect.provide(Logger.layer([]))

describe("recording", () => {
  it.effect("takes every coin that is traded, once, and no coin that the venue does not know", () => {
    const transport = venue()
    return Effect.gen(function*() {
      const once = Effect.repeat(TestClock.adjust(100), { until: () => transport.sent.length >= 14 })
      yield* Effect.andThen(once, TestClock.adjust(60_000))
      const status = yield* (yield* CandleArchive).list()
      assert.deepStrictEqual(
        status.map(({ bars, coin, interval }) => `${coin} ${interval} ${bars}`),
        ["@107 1d 0", "@107 3d 0", "@107 1w 0", "@107 1M 1", "BTC 1d 0", "BTC 3d 0", "BTC 1w 0", "BTC 1M 1"]
      )
      assert.lengthOf(transport.sent, 14)
      assert.lengthOf(transport.sent.filter(({ body }) => body.includes("DEAD")), 4)
    }).pipe(
      Effect.provide(recording(transport, { wishes: [{ coin: "*", interval: "1d" }] })),
      (test) => Effect.andThen(TestClock.setTime(now), test),
      quiet
    )
  })

  it.effect("leaves callers a third of the weight, and waits while they use the rest", () => {
    const transport = venue()
    return Effect.gen(function*() {
      const limiter = yield* RateLimiter.RateLimiter
      // a request of the recorder takes 104 at most, and 400 are left to callers
      const held = yield* limiter.take({
        upstream: "trading-api",
        class: "read",
        caller: local,
        cost: { weight: 700, requestUnits: 1 },
        maxWait: 0
      })
      yield* TestClock.adjust(30_000)
      assert.lengthOf(transport.sent, 0)
      held.refund(100)
      yield* TestClock.adjust(31_000)
      assert.lengthOf(transport.sent, 1)
    }).pipe(
      Effect.provide(recording(transport, { wishes: [{ coin: "BTC", interval: "1M" }] })),
      (test) => Effect.andThen(TestClock.setTime(now), test),
      quiet
    )
  })
})
