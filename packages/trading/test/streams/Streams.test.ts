import { assert, describe, it } from "@effect/vitest"
import type { Candle } from "@trigate/domain/candles/Candle"
import { subscriptions } from "@trigate/domain/unstable/streams/Subscriptions"
import { Streams } from "@trigate/trading/streams/Streams"
import * as StreamsMemory from "@trigate/trading/streams/StreamsMemory"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"

const trade = (tid: number) => ({
  coin: "BTC",
  side: "B" as const,
  px: "1.0",
  sz: "2.0",
  time: 1000 + tid,
  hash: `0x${"0".repeat(64)}` as const,
  tid
})

const bar = (t: number, c: string): Candle => ({
  t,
  T: t + 59_999,
  s: "BTC",
  i: "1m",
  o: "1.0",
  c,
  h: "2.0",
  l: "0.5",
  v: "3.0",
  n: 1
})

describe("a typed stream", () => {
  it.effect("emits each row of a list, decoded", () =>
    Effect.gen(function*() {
      const { trades } = yield* Streams
      const { send, subscribed } = yield* StreamsMemory.StreamsState
      const seen = yield* Effect.forkChild(Stream.runCollect(Stream.take(trades({ coin: "BTC" }), 3)))
      yield* subscribed(subscriptions.trades, { coin: "BTC" })
      yield* send(subscriptions.trades, { coin: "BTC" }, [trade(1), trade(2)])
      yield* send(subscriptions.trades, { coin: "BTC" }, [trade(3)])
      assert.deepStrictEqual((yield* Fiber.join(seen)).map(({ tid }) => tid), [1, 2, 3])
    }).pipe(Effect.provide(StreamsMemory.layer())))

  it.effect("emits one state after another, to each of its readers", () =>
    Effect.gen(function*() {
      const { candle } = yield* Streams
      const { send, subscribed } = yield* StreamsMemory.StreamsState
      const request = { coin: "BTC", interval: "1m" } as const
      const read = Effect.forkChild(Stream.runCollect(Stream.take(candle(request), 2)))
      const readers = [yield* read, yield* read]
      yield* subscribed(subscriptions.candle, request)
      yield* send(subscriptions.candle, request, [bar(0, "1.5"), bar(60_000, "1.6")])
      for (const reader of readers) {
        assert.deepStrictEqual((yield* Fiber.join(reader)).map(({ c }) => c), ["1.5", "1.6"])
      }
    }).pipe(Effect.provide(StreamsMemory.layer())))

  it.effect("fails with MalformedFrame for a frame that does not decode", () =>
    Effect.gen(function*() {
      const { bbo } = yield* Streams
      const { sendRaw, subscribed } = yield* StreamsMemory.StreamsState
      const failed = yield* Effect.forkChild(Effect.flip(Stream.runDrain(bbo({ coin: "BTC" }))))
      yield* subscribed(subscriptions.bbo, { coin: "BTC" })
      yield* sendRaw(subscriptions.bbo, { coin: "BTC" }, { coin: "BTC", time: 1, bbo: "none" })
      const error = yield* Fiber.join(failed)
      assert.strictEqual(error._tag, "MalformedFrame")
      assert.match(error.message, /^The venue sent a frame of bbo that does not decode: .*\["bbo"\]/su)
      assert.strictEqual(
        error._tag === "MalformedFrame" ? error.frame : "",
        `{"channel":"bbo","data":{"coin":"BTC","time":1,"bbo":"none"}}`
      )
    }).pipe(Effect.provide(StreamsMemory.layer())))

  it.effect("fails with SubscriptionRefused for a request that is none", () =>
    Effect.gen(function*() {
      const { l2Book } = yield* Streams
      const error = yield* Effect.flip(Stream.runDrain(l2Book({ coin: "BTC", mantissa: 2 })))
      assert.strictEqual(error._tag, "SubscriptionRefused")
      assert.strictEqual(error.message, `Invalid subscription {"type":"l2Book","coin":"BTC","mantissa":2}`)
    }).pipe(Effect.provide(StreamsMemory.layer())))
})
