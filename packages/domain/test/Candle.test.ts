import { assert, describe, it } from "@effect/vitest"
import { Candle, CandleInterval, CandleWindowRequest } from "@trigate/domain/candles/Candle"
import { candleSnapshot } from "@trigate/domain/info/InfoOperations"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import btc from "./fixtures/candleSnapshot-BTC-15m-docs.json" with { type: "json" }
import eth from "./fixtures/candleSnapshot-ETH-1h.json" with { type: "json" }
import kpepe from "./fixtures/candleSnapshot-kPEPE-1h.json" with { type: "json" }

const decode = Schema.decodeUnknownOption(Candle)
const decodeRequest = Schema.decodeUnknownOption(CandleWindowRequest)
const decodeBody = Schema.decodeUnknownOption(candleSnapshot.request)
const encodeBody = Schema.encodeSync(candleSnapshot.request)

describe("Candle", () => {
  it("reads recorded bars in either key order and writes them back unchanged", () => {
    const recorded = [...btc.response, ...eth.response, ...kpepe.response]
    assert.strictEqual(recorded.length, 50)
    for (const row of recorded) {
      const candle = Option.getOrThrow(decode(row))
      assert.deepStrictEqual({ ...Schema.encodeSync(Candle)(candle) }, { ...row, i: candle.i })
      assert.strictEqual(candle.i, row.i)
    }
  })

  it("keeps volumes as they are printed", () => {
    assert.strictEqual(Option.getOrThrow(decode(kpepe.response[0])).v, "520665683.0")
  })

  it("refuses numbers for prices and an interval that does not exist", () => {
    const [row] = btc.response
    assert.isTrue(Option.isNone(decode({ ...row, o: 29295 })))
    assert.isTrue(Option.isNone(decode({ ...row, o: "1e5" })))
    assert.isTrue(Option.isNone(decode({ ...row, i: "10m" })))
    assert.isTrue(Option.isNone(decode({ ...row, n: 1.5 })))
  })

  it("there are 14 intervals, told apart by letter case", () => {
    assert.strictEqual(CandleInterval.literals.length, 14)
    assert.isTrue(CandleInterval.literals.includes("1m") && CandleInterval.literals.includes("1M"))
  })

  it("an end time may be absent or null; a start time may not be negative", () => {
    const request = { coin: "BTC", interval: "1h", startTime: 0 }
    assert.isTrue(Option.isSome(decodeRequest(request)))
    assert.isTrue(Option.isSome(decodeRequest({ ...request, endTime: null })))
    assert.isTrue(Option.isNone(decodeRequest({ ...request, startTime: -1 })))
    assert.isTrue(Option.isNone(decodeRequest({ ...request, startTime: "0" })))
    assert.isTrue(Option.isNone(decodeRequest({ ...request, coin: "" })))
  })

  it("a window travels wrapped in `req`", () => {
    const request = { coin: "@107", interval: "1M", startTime: 5 } as const
    assert.deepStrictEqual(encodeBody(request), { req: request })
    assert.isTrue(Option.isNone(decodeBody({ type: "candleSnapshot", ...request })))
  })

  it("HTTP 500 null means an unknown coin, other server faults do not", () => {
    assert.isTrue(candleSnapshot.refusal?.matches(UpstreamResponse.json("trading-api", 500, "null")))
    assert.isFalse(candleSnapshot.refusal?.matches(UpstreamResponse.json("trading-api", 500, "{}")))
    assert.isFalse(candleSnapshot.refusal?.matches(UpstreamResponse.json("trading-api", 502, "null")))
  })

  it.effect.prop("a request survives the wire", [CandleWindowRequest], ([request]) =>
    Effect.sync(() => {
      const wire: unknown = JSON.parse(JSON.stringify(encodeBody(request)))
      const read = Option.getOrThrow(decodeBody(wire))
      assert.strictEqual(JSON.stringify(encodeBody(read)), JSON.stringify(encodeBody(request)))
    }))
})
