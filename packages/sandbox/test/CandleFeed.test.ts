import { assert, describe, it } from "@effect/vitest"
import type { Candle, CandleInterval } from "@trigate/domain/candles/Candle"
import {
  barAt,
  CandleInterval as IntervalSchema,
  closeTime,
  openTime,
  retainedBars
} from "@trigate/domain/candles/Candle"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import { markets as all } from "@trigate/sandbox/unstable/venue/Assets"
import { bars as barsOf, tape } from "@trigate/sandbox/unstable/venue/CandleBars"
import { sampleRuns } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

// all that differ in more than their facts
const markets = all.slice(0, 20)

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const now = 1_792_000_000_000
const [btc] = markets
assert.isDefined(btc)

const Market = Schema.Literals(markets.map(({ coin }) => coin))
const Instant = Schema.Int.check(Schema.isBetween({ minimum: now - 300 * day, maximum: now + 300 * day }))
const SeedText = Schema.Literals(["trigate", "a", "b"])

const marketOf = (coin: string) => markets.find((market) => market.coin === coin) ?? btc

const bars = (
  interval: CandleInterval,
  startTime: number,
  endTime: number | undefined,
  at = now,
  market = btc,
  seed = "trigate"
) =>
  barsOf(
    seed,
    market,
    { coin: market.coin, interval, startTime, ...(endTime === undefined ? {} : { endTime }) },
    at
  )

const lots = (candle: Candle) => BigInt(candle.v.replace(".", "").padEnd(candle.v.indexOf(".") + 9, "0"))

const summary = (parts: ReadonlyArray<Candle>) => ({
  o: parts[0]?.o,
  c: parts.at(-1)?.c,
  h: Math.max(...parts.map(({ h }) => Number(h))),
  l: Math.min(...parts.map(({ l }) => Number(l))),
  v: parts.reduce((total, candle) => total + lots(candle), 0n),
  n: parts.reduce((total, { n }) => total + n, 0)
})

const finerOf: { readonly [Interval in CandleInterval]?: CandleInterval } = {
  "3m": "1m",
  "5m": "1m",
  "15m": "5m",
  "30m": "15m",
  "1h": "15m",
  "2h": "30m",
  "4h": "1h",
  "8h": "4h",
  "12h": "4h",
  "1d": "12h",
  "3d": "1d",
  "1w": "1d",
  "1M": "1d"
}

describe("CandleFeed", () => {
  it.effect.prop(
    "every bar is the sum of the finer bars in it, whether it is closed or still forming",
    [Market, IntervalSchema, Instant, SeedText, Schema.Boolean],
    ([coin, interval, instant, seed, closed]) =>
      Effect.sync(() => {
        const finer = finerOf[interval] ?? "1m"
        const market = marketOf(coin)
        const at = closed ? closeTime(interval, barAt(interval, instant)) + 1 : instant
        const [bar] = bars(interval, instant - 1, instant - 1, at, market, seed)
        if (bar === undefined) return assert.isAtMost(instant, market.listedAt)
        const parts = bars(finer, bar.t, bar.T, at, market, seed)
        assert.deepStrictEqual(summary(parts), summary([bar]))
      })
  )

  it.effect.prop(
    "a bar holds together: its extremes bound its ends, and its volume is that of its trades",
    [Market, IntervalSchema, Instant],
    ([coin, interval, at]) =>
      Effect.sync(() => {
        for (const bar of bars(interval, at - 3 * day, at, at + 1, marketOf(coin))) {
          const [o, h, l, c] = [bar.o, bar.h, bar.l, bar.c].map(Number)
          assert.isTrue(h !== undefined && l !== undefined && o !== undefined && c !== undefined)
          assert.isAtLeast(Number(h), Math.max(Number(o), Number(c)))
          assert.isAtMost(Number(l), Math.min(Number(o), Number(c)))
          assert.isAbove(Number(l), 0)
          // as at the venue, a coin that is seldom traded has bars without trades
          assert.strictEqual(bar.n > 0, Number(bar.v) > 0)
        }
      }),
    // each run looks at thousands of bars
    { arbitrary: { runs: sampleRuns(30) } }
  )

  it.effect.prop(
    "a forming bar only grows, and is not marked",
    [Market, IntervalSchema, Instant, Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 50_000 }))],
    ([coin, interval, at, later]) =>
      Effect.sync(() => {
        const market = marketOf(coin)
        const [before] = bars(interval, at, at, at + 1, market)
        if (before === undefined) return assert.isAtMost(at, market.listedAt)
        const [after] = bars(interval, before.t, before.t, Math.min(before.T, at + 1 + later), market)
        assert.isDefined(after)
        assert.strictEqual(after.o, before.o)
        assert.isAtLeast(Number(after.h), Number(before.h))
        assert.isAtMost(Number(after.l), Number(before.l))
        assert.isTrue(lots(after) >= lots(before))
        assert.isAtLeast(after.n, before.n)
        assert.deepStrictEqual(Object.keys(before), ["t", "T", "s", "i", "o", "c", "h", "l", "v", "n"])
      })
  )

  it("the forming bar moves with the clock", () => {
    const open = openTime("1h", barAt("1h", now))
    const closes = [1, 2, 3, 4, 5].map((part) => bars("1h", open, open, open + part * 10 * minute)[0]?.c)
    assert.strictEqual(new Set(closes).size, 5)
  })

  it.effect.prop(
    "a bar is in the window when T >= startTime and t <= endTime",
    [IntervalSchema, Instant, Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 * day }))],
    ([interval, startTime, width]) =>
      Effect.sync(() => {
        const all = bars(interval, 0, undefined)
        const endTime = startTime + width
        assert.deepStrictEqual(
          bars(interval, startTime, endTime).map(({ t }) => t),
          all.filter(({ T, t }) => T >= startTime && t <= endTime).map(({ t }) => t)
        )
      }),
    { arbitrary: { runs: sampleRuns(20) } }
  )

  it("a recorded window gives the recorded number of bars", () => {
    const startTime = 1_684_702_007_000
    const kpepe = marketOf("kPEPE")
    const rows = bars("1h", startTime, 1_684_784_807_000, 1_684_784_807_001 + day, kpepe)
    assert.strictEqual(rows.length, 24)
    assert.strictEqual(rows[0]?.t, 1_684_699_200_000)
    assert.strictEqual(rows.at(-1)?.t, 1_684_782_000_000)
  })

  it("only the newest 5000 bars exist; the forming one is the last of them", () => {
    for (const interval of ["1m", "5m", "1h"] as const) {
      const rows = bars(interval, 0, undefined)
      assert.strictEqual(rows.length, retainedBars)
      assert.strictEqual(rows.at(-1)?.t, openTime(interval, barAt(interval, now)))
      assert.strictEqual(rows[0]?.t, openTime(interval, barAt(interval, now) - 4_999))
      assert.deepStrictEqual(bars(interval, 0, (rows[0]?.t ?? 0) - 1), [])
    }
    const rows = bars("1m", 0, undefined)
    assert.strictEqual(bars("1m", 0, undefined, now + minute)[0]?.t, rows[1]?.t)
  })

  it("nothing exists before the listing, and nothing in the future", () => {
    const { listedAt } = btc
    assert.deepStrictEqual(bars("1d", 0, listedAt - 1), [])
    assert.deepStrictEqual(bars("1m", 0, undefined, listedAt), [])
    const [first] = bars("1w", 0, undefined)
    assert.isDefined(first)
    assert.isTrue(first.t <= listedAt && listedAt <= first.T)
    const [day1] = bars("1d", 0, undefined)
    assert.strictEqual(day1?.t, listedAt)
    assert.strictEqual(first.o, day1?.o)
    assert.deepStrictEqual(bars("1m", now + minute, now + day), [])
  })

  it("bars are whole intervals; weeks open on Thursday, months on their first day", () => {
    for (const interval of IntervalSchema.literals) {
      const rows = bars(interval, now - 100 * day, undefined)
      for (const [index, row] of rows.entries()) {
        assert.strictEqual(row.T, closeTime(interval, barAt(interval, row.t)))
        assert.strictEqual(rows[index + 1]?.t ?? row.T + 1, row.T + 1)
        assert.strictEqual(rows[index + 1]?.o ?? row.c, row.c)
      }
    }
    const week = bars("1w", now, undefined)[0]
    assert.strictEqual(new Date(week?.t ?? 0).toUTCString(), "Thu, 08 Oct 2026 00:00:00 GMT")
    const month = bars("1M", now, undefined)[0]
    assert.strictEqual(new Date(month?.t ?? 0).toUTCString(), "Thu, 01 Oct 2026 00:00:00 GMT")
  })

  it("markets of one asset move together, prices look like the coin's, answers decode", () => {
    const close = (coin: string) => Number(bars("1h", now, undefined, now, marketOf(coin))[0]?.c)
    assert.closeTo(close("HYPE"), close("@107"), 0.001)
    assert.match(bars("1m", now, undefined)[0]?.c ?? "", /^\d{5}\.0$/u)
    assert.match(bars("1m", now, undefined, now, marketOf("kPEPE"))[0]?.c ?? "", /^0\.0\d{3,5}$/u)
    assert.match(bars("1m", now, undefined, now, marketOf("kPEPE"))[0]?.v ?? "", /^\d+\.0$/u)
    const decode = Schema.decodeUnknownSync(infoOperations.candleSnapshot.response)
    for (const market of markets) decode(bars("1d", 0, undefined, now, market))
  })

  it("the tape has the trades that the bars count, none in a second that is not over", () => {
    for (const market of markets) {
      const most = Math.ceil(12 * Math.max(market.tradeRate, 4))
      const trades = tape("trigate", market, now + 500, most)
      assert.strictEqual(trades.length, most, market.coin)
      assert.isAtMost(trades[0]?.second ?? Infinity, now / 1_000, market.coin)
      const oldest = Math.ceil((trades.at(-1)?.second ?? 0) / 60) * minute + minute
      const minutes = bars("1m", oldest, now, now, market).filter(({ T }) => T < now - 1_000)
      for (const bar of minutes) {
        const own = trades.filter(({ second }) => second * 1_000 > bar.t && second * 1_000 <= bar.T + 1)
        const traded = own.reduce((sum, each) => sum + each.lots, 0)
        assert.deepStrictEqual(
          [own.length, traded],
          [bar.n, Math.round(Number(bar.v) * 10 ** market.sizeDecimals)],
          `${market.coin} ${bar.t}`
        )
      }
      assert.isAbove(minutes.length, 4, market.coin)
    }
  })

  it("trading is busier at some hours than at others", () => {
    const trades = bars("1h", now - day, undefined).map(({ n }) => n)
    assert.isAbove(new Set(trades).size, 20)
  })

  it("the same seed gives the same bars, another one others", () => {
    const text = (seed: string) => JSON.stringify(bars("15m", now - day, undefined, now, btc, seed))
    assert.strictEqual(text("trigate"), text("trigate"))
    assert.notStrictEqual(text("trigate"), text("other"))
  })
})
