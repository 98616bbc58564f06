import { assert, describe, it } from "@effect/vitest"
import * as BarChunk from "@trigate/archive/unstable/BarChunk"
import { BitReader, BitWriter } from "@trigate/archive/unstable/BarChunk"
import type { Candle, Series } from "@trigate/domain/candles/Candle"
import {
  barAt,
  belongsTo,
  Candle as CandleSchema,
  CandleInterval,
  closeTime,
  openTime
} from "@trigate/domain/candles/Candle"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Fs from "node:fs"
import { barsOf } from "./market.ts"

const minutes = { coin: "BTC", interval: "1m" } as const

const barWith = (values: Partial<Candle>, at = 0): Candle => ({
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

const again = (series: Series, first: number, bars: ReadonlyArray<Candle>) =>
  BarChunk.decode(series, first, BarChunk.encode(series, first, bars))

const recorded = (name: string): ReadonlyArray<Candle> => {
  const file = new URL(`../../domain/test/fixtures/candleSnapshot-${name}.json`, import.meta.url)
  const document: unknown = JSON.parse(Fs.readFileSync(file, "utf8"))
  return Schema.decodeUnknownSync(Schema.Struct({ response: Schema.Array(CandleSchema) }))(document).response
}

const Digits = (most: number) => Schema.String.check(Schema.isPattern(new RegExp(`^[0-9]{1,${most}}$`, "u")))
const Sign = Schema.Literals(["", "", "", "-"])
const Fraction = Schema.Union([Schema.Literal(""), Digits(9)])
const Spelling = Schema.Struct({ sign: Sign, whole: Digits(12), fraction: Fraction })
const textOf = ({ fraction, sign, whole }: typeof Spelling.Type) =>
  fraction === "" ? `${sign}${whole}` : `${sign}${whole}.${fraction}`

describe("a chunk of bars", () => {
  it("gives recorded bars back as they were", () => {
    for (const name of ["ETH-1h", "kPEPE-1h", "BTC-15m-docs"]) {
      const bars = recorded(name)
      const [head] = bars
      assert(head !== undefined)
      const series = { coin: head.s, interval: head.i }
      const first = barAt(head.i, head.t) - 3
      assert.isTrue(bars.every((bar) => belongsTo(series, bar)))
      assert.deepStrictEqual(again(series, first, bars), bars)
      // none of them had to be written as text
      assert.strictEqual(BarChunk.encode(series, first, bars)[0], 1)
    }
  })

  it("gives the bars of every market and interval back, also where some had no trade", () => {
    for (const coin of ["BTC", "kPEPE", "PURR/USDC", "@107", "xyz:XYZ100"]) {
      for (const interval of CandleInterval.literals) {
        const last = barAt(interval, 1_790_000_000_000)
        const bars = barsOf(coin, interval, { from: last - 150, to: last }, 7)
        assert.deepStrictEqual(again({ coin, interval }, last - 160, bars), bars)
      }
    }
  })

  it("takes at most 24 bytes for a bar of a minute, and in fact far less", () => {
    const sizes = ["BTC", "ETH", "SOL", "HYPE", "kPEPE", "PURR/USDC", "@107"].map((coin) => {
      const first = 29_800_000
      const bars = barsOf(coin, "1m", { from: first, to: first + 999 })
      return BarChunk.encode({ coin, interval: "1m" }, first, bars).length / bars.length
    })
    assert.deepStrictEqual(sizes.filter((size) => size > 12), [])
  })

  it("keeps every spelling: zeros at the end, no decimals, below zero, more digits than a number holds", () => {
    const spellings = [
      ["29258.0", "29258", "29258.10", "0.0"],
      ["-1.5", "1.5", "0", "-0.0"],
      ["007", "1.0", "1.0", "1.0"],
      ["123456789012345678901234567890.5", "1.0", "0.00000000000000000001", "1.0"],
      ["1125899906842624", "0.1", "1", "2"],
      ["1125899906842625", "1125899906842623.9", "1", "2"]
    ]
    for (const [o = "", c = "", h = "", l = ""] of spellings) {
      const bars = [barWith({ o, c, h, l, v: c, n: Number.MAX_SAFE_INTEGER }), barWith({ v: "520665683.0" }, 5)]
      assert.deepStrictEqual(again(minutes, 0, bars), bars)
    }
  })

  it.effect.prop(
    "is exact whatever the numbers are",
    {
      rows: Schema.Array(
        Schema.Struct({ o: Spelling, c: Spelling, h: Spelling, l: Spelling, v: Spelling, n: Schema.Natural })
      )
    },
    ({ rows }) =>
      Effect.sync(() => {
        const bars = rows.slice(0, 500).map(({ c, h, l, n, o, v }, index) =>
          barWith({ o: textOf(o), c: textOf(c), h: textOf(h), l: textOf(l), v: textOf(v), n }, 2 * index)
        )
        assert.deepStrictEqual(again(minutes, 0, bars), bars)
      })
  )

  it.effect.prop(
    "holds columns of any numbers",
    { values: Schema.Array(Schema.Natural), width: Schema.Literals([1, 7, 24, 25, 53]) },
    ({ values, width }) =>
      Effect.sync(() => {
        const writer = new BitWriter()
        writer.column(values)
        writer.bits(2 ** width - 1, width)
        writer.column([...values, Number.MAX_SAFE_INTEGER])
        const reader = new BitReader(writer.finish())
        assert.deepStrictEqual(reader.column(values.length), [...values])
        assert.strictEqual(reader.bits(width), 2 ** width - 1)
        assert.deepStrictEqual(reader.column(values.length + 1), [...values, Number.MAX_SAFE_INTEGER])
      })
  )

  it("knows a bar of its series from every other", () => {
    const bar = barWith({}, 9)
    assert.isTrue(belongsTo(minutes, bar))
    for (const other of [{ t: bar.t + 1 }, { T: bar.T + 1 }, { s: "ETH" }, { i: "3m" as const }]) {
      assert.isFalse(belongsTo(minutes, { ...bar, ...other }))
    }
  })
})
