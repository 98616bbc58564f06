import { assert, describe, it } from "@effect/vitest"
import * as CandleAggregate from "@trigate/archive/unstable/CandleRecorder"
import { barAt, Candle, CandleInterval, closeTime, openTime } from "@trigate/domain/candles/Candle"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import docs from "../../domain/test/fixtures/candleSnapshot-BTC-15m-docs.json" with { type: "json" }
import eth from "../../domain/test/fixtures/candleSnapshot-ETH-1h.json" with { type: "json" }
import kpepe from "../../domain/test/fixtures/candleSnapshot-kPEPE-1h.json" with { type: "json" }
import { barsOf } from "./market.ts"

const minute = (at: number, values: Partial<Candle>): Candle => ({
  t: openTime("1m", at),
  T: closeTime("1m", at),
  s: "BTC",
  i: "1m",
  o: "1.0",
  c: "1.0",
  h: "1.0",
  l: "1.0",
  v: "0.0",
  n: 0,
  ...values
})

const decodeRows = Schema.decodeUnknownSync(Schema.Struct({ response: Schema.Array(Candle) }))

/** The venue's recorded bars. */
const recorded = [docs, eth, kpepe].flatMap((body) => decodeRows(body).response)

const minutes = (count: number) => (at: number): readonly [open: number, close: number] => {
  const length = count * 60_000
  const open = at - at % length
  return [open, open + length - 1]
}

/** Where the bar of each interval begins and ends that contains an instant, by the platform's own calendar. */
const places: { readonly [I in CandleInterval]: (at: number) => readonly [open: number, close: number] } = {
  "1m": minutes(1),
  "3m": minutes(3),
  "5m": minutes(5),
  "15m": minutes(15),
  "30m": minutes(30),
  "1h": minutes(60),
  "2h": minutes(120),
  "4h": minutes(240),
  "8h": minutes(480),
  "12h": minutes(720),
  "1d": minutes(1440),
  "3d": minutes(3 * 1440),
  "1w": (at) => {
    const date = new Date(at)
    const sinceThursday = (date.getUTCDay() + 3) % 7
    const open = Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() - sinceThursday)
    return [open, open + 7 * 86_400_000 - 1]
  },
  "1M": (at) => {
    const date = new Date(at)
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
    return [Date.UTC(year, month), Date.UTC(year, month + 1) - 1]
  }
}

const decimals = (text: string): number => text.length - text.indexOf(".") - 1

const text = (units: number, scale: number): string => {
  const digits = String(units).padStart(scale + 1, "0")
  return `${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

/** Cuts a bar into bars of some of its minutes: trades, volume and prices fall as the dice do. */
const cut = (bar: Candle, dice: ReadonlyArray<number>): ReadonlyArray<Candle> => {
  const first = barAt("1m", bar.t)
  const last = barAt("1m", bar.T)
  const die = (index: number): number => dice[index % dice.length] ?? 0
  const places = [...new Set(dice.map((value) => first + value % (last - first + 1)))].toSorted((a, b) => a - b)
  const scale = Math.max(...[bar.o, bar.c, bar.h, bar.l].map(decimals))
  const unitsOf = (price: string) => Math.round(Number(price) * 10 ** scale)
  const [high, low] = [unitsOf(bar.h), unitsOf(bar.l)]
  const between = (value: number) => {
    const units = low + value % (high - low + 1)
    return units === high ? bar.h : units === low ? bar.l : text(units, scale)
  }
  const volumeScale = decimals(bar.v)
  let volume = Math.round(Number(bar.v) * 10 ** volumeScale)
  let trades = bar.n
  return places.map((place, index) => {
    const isLast = index === places.length - 1
    const [v, n] = isLast ? [volume, trades] : [die(index) % (volume + 1), die(index + 1) % (trades + 1)]
    volume -= v
    trades -= n
    const inside = [between(die(index + 2)), between(die(index + 3))].toSorted((a, b) => Number(a) - Number(b))
    return minute(place, {
      s: bar.s,
      o: index === 0 ? bar.o : between(die(index + 4)),
      c: isLast ? bar.c : between(die(index + 5)),
      // the extremes are reached in minutes of the dice's choice
      h: index === die(0) % places.length ? bar.h : inside[1] ?? bar.h,
      l: index === die(1) % places.length ? bar.l : inside[0] ?? bar.l,
      v: text(v, volumeScale),
      n
    })
  })
}

const larger = (smaller: CandleInterval) =>
  CandleInterval.literals.filter((interval) => CandleAggregate.builds(smaller, interval))

describe("larger bars", () => {
  it("are built of every smaller interval that divides them", () => {
    assert.deepStrictEqual(larger("1m"), CandleInterval.literals.slice(1))
    assert.deepStrictEqual(larger("5m"), ["15m", "30m", "1h", "2h", "4h", "8h", "12h", "1d", "3d", "1w", "1M"])
    assert.deepStrictEqual(larger("8h"), ["1d", "3d", "1w", "1M"])
    assert.deepStrictEqual(larger("12h"), ["1d", "3d", "1w", "1M"])
    assert.deepStrictEqual(larger("1d"), ["3d", "1w", "1M"])
    assert.deepStrictEqual([larger("3d"), larger("1w"), larger("1M")], [[], [], []])
  })

  it.effect.prop(
    "of all 13 intervals are those of the market, whatever the coin and the time",
    {
      coin: Schema.Literals(["BTC", "ETH", "kPEPE", "PURR/USDC", "@107", "xyz:XYZ100"]),
      at: Schema.Int.check(Schema.isBetween({ minimum: 1_761_000_000_000, maximum: 1_795_000_000_000 })),
      interval: Schema.Literals(CandleInterval.literals.slice(1, 11))
    },
    ({ at, coin, interval }) =>
      Effect.sync(() => {
        const last = barAt(interval, at)
        const range = { from: last - 2, to: last }
        const parts = barsOf(coin, "1m", CandleAggregate.smallerRange("1m", interval, range))
        assert.deepStrictEqual(CandleAggregate.buildBars(interval, parts), barsOf(coin, interval, range))
      }),
    { arbitrary: { runs: 40 } }
  )

  // what the venue wrote, at the places of the venue's own calendar
  it.effect.prop(
    "of all 14 intervals are the venue's own, however their trades fall into minutes",
    {
      row: Schema.Literals(recorded.map((_, index) => index)),
      interval: Schema.Literals(CandleInterval.literals),
      at: Schema.Int.check(Schema.isBetween({ minimum: 1_680_000_000_000, maximum: 1_795_000_000_000 })),
      dice: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))).check(
        Schema.isMinLength(6),
        Schema.isMaxLength(24)
      )
    },
    ({ at, dice, interval, row }) =>
      Effect.sync(() => {
        const [t, T] = places[interval](at)
        const bar = { ...recorded[row] ?? minute(0, {}), t, T, i: interval }
        const parts = cut(bar, dice)
        assert.strictEqual(parts.reduce((count, { n }) => count + n, 0), bar.n)
        assert.deepStrictEqual(CandleAggregate.buildBars(interval, parts), [bar])
      }),
    { arbitrary: { runs: 200 } }
  )

  it("of days, weeks and months are those of the market, with the venue's anchors", () => {
    for (const interval of ["1d", "3d", "1w", "1M"] as const) {
      const last = barAt(interval, 1_790_000_000_000)
      const range = { from: last - 2, to: last }
      const hours = barsOf("ETH", "1h", CandleAggregate.smallerRange("1h", interval, range))
      const built = CandleAggregate.buildBars(interval, hours)
      assert.deepStrictEqual(built, barsOf("ETH", interval, range))
    }
    // a week opens on Thursday, a month on its first day
    const [week] = CandleAggregate.buildBars("1w", [minute(29_800_000, {})])
    const [month] = CandleAggregate.buildBars("1M", [minute(29_800_000, {})])
    assert.deepStrictEqual([week?.t, month?.t], [Date.UTC(2026, 7, 27), Date.UTC(2026, 7, 1)])
  })

  it("compare and add decimals, not doubles", () => {
    const [bar] = CandleAggregate.buildBars("3m", [
      minute(0, { o: "9.95", h: "10.0", l: "9.0", c: "9.5", v: "0.1", n: 1 }),
      minute(1, { o: "9.5", h: "9.99999999999999999999", l: "8.99999999999999999999", c: "9.1", v: "0.2", n: 2 }),
      minute(2, { o: "9.1", h: "10.00", l: "9.00", c: "9.2", v: "90071992547409.93", n: 3 })
    ])
    assert.deepStrictEqual(bar, {
      t: 0,
      T: 179_999,
      s: "BTC",
      i: "3m",
      o: "9.95",
      c: "9.2",
      h: "10.0",
      l: "8.99999999999999999999",
      v: "90071992547410.23",
      n: 6
    })
  })

  it("spell volumes as the venue does", () => {
    const volume = (...volumes: ReadonlyArray<string>) =>
      CandleAggregate.buildBars("15m", volumes.map((v, at) => minute(at, { v })))[0]?.v
    assert.strictEqual(volume("0.5", "0.5"), "1.0")
    assert.strictEqual(volume("520665683.0", "1"), "520665684.0")
    assert.strictEqual(volume("0.25", "0.15"), "0.4")
    assert.strictEqual(volume("0.0"), "0.0")
  })

  it("exist where a smaller one does, and are whole where all smaller ones are known", () => {
    assert.deepStrictEqual(
      CandleAggregate.buildBars("5m", [minute(1, {}), minute(11, {})]).map(({ t }) => barAt("5m", t)),
      [0, 2]
    )
    const known = [{ from: 3, to: 19 }, { from: 21, to: 29 }, { from: 31, to: 33 }]
    assert.deepStrictEqual(CandleAggregate.wholeBars("1m", "5m", known), [{ from: 1, to: 3 }, { from: 5, to: 5 }])
    const year = { from: barAt("1d", Date.UTC(2026, 0, 1)), to: barAt("1d", Date.UTC(2026, 2, 30)) }
    const january = barAt("1M", Date.UTC(2026, 0, 1))
    assert.deepStrictEqual(CandleAggregate.wholeBars("1d", "1M", [year]), [{ from: january, to: january + 1 }])
  })
})
