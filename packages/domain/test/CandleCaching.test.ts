import { assert, describe, it } from "@effect/vitest"
import type { Candle, CandleWindowRequest } from "@trigate/domain/candles/Candle"
import * as Candles from "@trigate/domain/candles/Candle"
import { CandleInterval } from "@trigate/domain/candles/Candle"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as CandleText from "@trigate/domain/unstable/candles/CandleText"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const hour = 3_600_000
const day = 24 * hour
const newest = 500_000
const now = newest * hour + 1234
const kept = { fresh: day, staleIfError: day }

const window = (startTime: number, endTime?: number | null) => ({
  coin: "BTC",
  interval: "1h" as const,
  startTime,
  ...(endTime === undefined ? {} : { endTime })
})

const barOf = (interval: CandleInterval, bar: number): Candle => ({
  t: Candles.openTime(interval, bar),
  T: Candles.closeTime(interval, bar),
  s: "BTC",
  i: interval,
  o: "1",
  c: "1",
  h: "1",
  l: "1",
  v: "0",
  n: 1
})

/** Whether bars are cacheable: as recognized in a response, and the same as parsed. */
const isCacheable = (request: CandleWindowRequest, answer: Encoding.Json): boolean => {
  const parsed = CandleText.isCacheable(request, answer)
  assert.include([undefined, parsed], CandleText.isInWindow(request, [answer.bytes]))
  return parsed
}

const int = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

describe("Answers to a window of bars", () => {
  it("are kept from 5 seconds after the last bar closed", () => {
    const request = window(newest * hour - 3 * hour, newest * hour - 1)
    assert.isUndefined(Candles.cachePolicy(request, newest * hour - 1))
    assert.isUndefined(Candles.cachePolicy(request, newest * hour + 4999))
    assert.deepStrictEqual(Candles.cachePolicy(request, newest * hour + 5000), kept)
    assert.isUndefined(Candles.cachePolicy(window(newest * hour - 3 * hour, newest * hour), newest * hour + 5000))
  })

  it("are not kept without an end, with one that is to come, or with one before the start", () => {
    const start = (newest - 10) * hour
    for (const end of [undefined, null, now, now + 1, Number.MAX_SAFE_INTEGER, start - 1]) {
      assert.isUndefined(Candles.cachePolicy(window(start, end), now))
    }
    const months = { ...window(0, Number.MAX_SAFE_INTEGER), interval: "1M" as const }
    assert.isUndefined(Candles.cachePolicy(months, now))
    assert.isFalse(isCacheable({ ...months, startTime: 9e15, endTime: 1 }, Encoding.of("[]")))
    assert.isFalse(isCacheable(months, Encoding.of(JSON.stringify([{ s: "BTC", i: "1M", t: 9e15 }]))))
  })

  it("are kept only while the venue has the whole window for a minute to come", () => {
    const oldest = (newest - 4999) * hour
    const end = (newest - 4000) * hour
    const beforeTheHour = (newest + 1) * hour - 60_000
    assert.deepStrictEqual(Candles.cachePolicy(window(oldest, end), now), kept)
    assert.isUndefined(Candles.cachePolicy(window(oldest - 1, end), now))
    assert.deepStrictEqual(Candles.cachePolicy(window(oldest, end), beforeTheHour - 1), kept)
    assert.isUndefined(Candles.cachePolicy(window(oldest, end), beforeTheHour))
  })

  it("are kept only where every row is one of the window, in order", () => {
    const request = window((newest - 3) * hour, (newest - 1) * hour)
    const bar = (offset: number) => barOf("1h", newest - offset)
    const isKept = (rows: unknown) => isCacheable(request, Encoding.of(JSON.stringify(rows)))
    for (const rows of [[], [bar(2)], [bar(3), bar(2), bar(1)], [bar(3), bar(1)]]) {
      assert.isTrue(isKept(rows))
      assert.isTrue(CandleText.isInWindow(request, [Encoding.encode(JSON.stringify(rows))]))
    }
    const others = [
      null,
      {},
      [null],
      [bar(4)],
      [bar(1), bar(0)],
      [bar(2), bar(3)],
      [bar(2), bar(2)],
      [{ ...bar(2), s: "ETH" }],
      [{ ...bar(2), i: "4h" }],
      [{ ...bar(2), t: "x" }]
    ]
    for (const rows of others) assert.isFalse(isKept(rows))
    assert.isFalse(isCacheable(request, Encoding.of("[{\"s\":\"BTC\"")))
  })

  it.effect.prop(
    "never change while they are kept, whatever the venue's clock, gaps and answer time",
    {
      interval: CandleInterval,
      at: int(1_700_000_000_000, 1_800_000_000_000),
      // often at the edge of what is retained
      start: Schema.Union([int(-5001, -4997), int(-5050, 2)]),
      length: int(0, 5050),
      gap: int(0, 4),
      skew: int(-4_000, 50_000)
    },
    ({ at, gap, interval, length, skew, start }) =>
      Effect.sync(() => {
        const current = Candles.barAt(interval, at)
        const startTime = Math.max(0, Candles.openTime(interval, current + start) + 7)
        const endTime = Math.max(0, Candles.openTime(interval, current + start + length) + 11)
        const request = { coin: "BTC", interval, startTime, endTime }
        const first = Candles.barAt(interval, startTime)
        const last = Candles.barAt(interval, endTime)
        const isCached = Candles.cachePolicy(request, at) !== undefined
        const isSettled = endTime >= startTime && Candles.closeTime(interval, last) + 5000 < at &&
          first >= Candles.oldestRetainedBar(interval, at + 60_000)
        assert.strictEqual(isCached, isSettled)
        if (!isCached) return
        // a venue that drops a bar in each `gap`, and keeps the newest 5000 of the others
        const traded = (bar: number) => gap === 0 || bar % (gap + 1) !== 0
        const venueBar = Candles.barAt(interval, at + skew)
        let retained = 0
        const rows: Array<Candle> = []
        for (let bar = venueBar; bar >= first && retained < Candles.retainedBars; bar -= 1) {
          if (!traded(bar)) continue
          retained += 1
          if (bar <= last) rows.unshift(barOf(interval, bar))
        }
        const whole = Array.from({ length: last - first + 1 }, (_, offset) => first + offset).filter(traded)
        assert.deepStrictEqual(rows.map(({ t }) => t), whole.map((bar) => Candles.openTime(interval, bar)))
        assert.isTrue(isCacheable(request, Encoding.of(JSON.stringify(rows))))
        assert.isTrue(CandleText.isInWindow(request, [Encoding.encode(JSON.stringify(rows))]))
        const read = Candles.fromSnapshot(request, rows, at)
        assert.deepStrictEqual([read.coverage, read.forming], ["complete", undefined])
      })
  )
})
