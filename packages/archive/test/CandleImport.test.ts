import { assert, describe, it } from "@effect/vitest"
import * as CandleArchiveMemory from "@trigate/archive/CandleArchive"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleFiles from "@trigate/archive/CandleFiles"
import * as CandleParquet from "@trigate/archive/unstable/CandleParquet"
import type { BarRange, BarRanges, Candle, Series } from "@trigate/domain/candles/Candle"
import { closeTime, openTime, unionRanges } from "@trigate/domain/candles/Candle"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { CandleFormat, csvHeadings } from "@trigate/domain/unstable/candles/CandleText"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { btc, now, origin } from "./archiveSuite.ts"
import { barsOf } from "./market.ts"

/** Runs an effect on an archive of its own. */
const inNew = <A, E>(body: Effect.Effect<A, E, CandleArchive>) => Effect.provide(body, CandleArchiveMemory.layer())

interface Imported {
  readonly report: CandleFiles.Report
  readonly told: ReadonlyArray<CandleFiles.Finding>
}

/** Imports the bytes of a file. */
const imported = Effect.fnUntraced(function*(
  series: Series,
  format: CandleFormat,
  bytes: Uint8Array,
  known?: CandleFiles.Options["known"]
) {
  const told: Array<CandleFiles.Finding> = []
  const options = {
    onFinding: (finding: CandleFiles.Finding) => Effect.sync(() => told.push(finding)),
    progress: () => Effect.void
  }
  const given = known === undefined ? {} : { known }
  if (format !== "parquet") {
    const rows = CandleFiles.textRows(series, format, Stream.make(bytes))
    return { report: yield* CandleFiles.run(series, rows, { ...options, ...given }), told } satisfies Imported
  }
  const file = yield* CandleParquet.read(series, bytes)
  const own = file.known === undefined ? given : { known: file.known }
  return { report: yield* CandleFiles.run(series, file.rows, { ...options, ...own }), told } satisfies Imported
})

/** All that the archive holds of a series, as a file. */
const exported = Effect.fnUntraced(function*(series: Series, format: CandleFormat) {
  const archive = yield* CandleArchive
  const known = yield* CandleFiles.known(archive, series)
  return Utf8.joined(yield* Stream.runCollect(CandleFiles.file(archive, series, known ?? [], format)))
})

/** All that the archive holds of a series. */
const held = (series: Series) => CandleArchive.use(({ read }) => read(series, { from: 0, to: 40_000_000 }))

const Digits = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 99_999 }))
const Spelled = Schema.Struct({ whole: Digits, part: Schema.Literals(["", ".0", ".5", ".00", ".12345678"]) })
const Stretch = Schema.Struct({
  gap: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 30_000 })),
  bars: Schema.Array(Schema.Union([Schema.Undefined, Spelled])).check(Schema.isBetweenLength(1, 8))
})

/** An archive of some stretches, of which some bars had no trade. */
const stretchesOf = ({ coin, interval }: Series, stretches: ReadonlyArray<typeof Stretch.Type>) => {
  let next = 0
  const bars: Array<Candle> = []
  const known: Array<BarRange> = []
  for (const stretch of stretches) {
    const from = next + stretch.gap
    next = from + stretch.bars.length
    known.push({ from, to: next - 1 })
    for (const [index, spelled] of stretch.bars.entries()) {
      if (spelled === undefined) continue
      const price = `${spelled.whole}${spelled.part}`
      const bar = from + index
      bars.push({
        t: openTime(interval, bar),
        T: closeTime(interval, bar),
        s: coin,
        i: interval,
        o: price,
        c: `1${price}`,
        h: `2${price}`,
        l: price,
        v: price,
        n: spelled.whole
      })
    }
  }
  return { bars, known }
}

describe("a file of bars", () => {
  for (const coin of ["@107", "xyz:TSLA"]) {
    it.effect.prop(
      `comes back as the same archive: ${coin}`,
      { stretches: Schema.Array(Stretch).check(Schema.isBetweenLength(1, 4)) },
      ({ stretches }) =>
        Effect.gen(function*() {
          yield* TestClock.setTime(now)
          const series = { coin, interval: "5m" } as const
          const { bars, known } = stretchesOf(series, stretches)
          const fill = CandleArchive.use(({ fill }) => fill(series, known, bars))
          const all = { bars, known: unionRanges([known]) }
          const own: BarRanges = unionRanges(
            bars.map(({ t }) => [{ from: t / 300_000, to: t / 300_000 }])
          )
          for (const format of CandleFormat.literals) {
            const bytes = yield* inNew(Effect.andThen(fill, exported(series, format)))
            yield* inNew(Effect.gen(function*() {
              const first = yield* imported(series, format, bytes)
              assert.deepStrictEqual(first.told, [])
              assert.deepStrictEqual(first.report, {
                rows: bars.length,
                added: bars.length,
                held: 0,
                refused: 0,
                differing: 0
              })
              // a file of lines does not say where nobody traded
              assert.deepStrictEqual(yield* held(series), format === "parquet" ? all : { bars, known: own })
              const again = yield* imported(series, format, bytes)
              assert.deepStrictEqual(again.report, { ...first.report, added: 0, held: bars.length })
            }))
          }
        })
    )
  }

  it.effect("comes back as the same archive where it has no gap, if one says so", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const range = { from: origin, to: origin + 12_000 }
      const bars = barsOf("BTC", "1m", range, 7)
      const fill = CandleArchive.use(({ fill }) => fill(btc, [range], bars))
      for (const format of ["ndjson", "csv"] as const) {
        const bytes = yield* inNew(Effect.andThen(fill, exported(btc, format)))
        const found = yield* inNew(Effect.andThen(imported(btc, format, bytes, "between"), held(btc)))
        assert.deepStrictEqual(found, { bars, known: [range] })
      }
    }))

  const bars = barsOf("BTC", "1m", { from: origin, to: origin + 9 })
  const csvOf = (rows: ReadonlyArray<Candle>) =>
    rows.map(({ T, c, h, l, n, o, t, v }) => [t, T, o, h, l, c, v, n].join(","))

  it.effect("is taken but for its bad bars, each of which is told with its line and what is wrong", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const lines = csvOf(bars)
      const [first = ""] = lines
      const [t = "", T = "", ...rest] = first.split(",")
      const text = [
        csvHeadings,
        ...lines.slice(0, 3),
        [t, T, "1e5", ...rest.slice(1)].join(","),
        [t, T, ...rest].join(","),
        [Number(t) + 1, T, ...rest].join(","),
        [openTime("1m", origin + 3), Number(T), ...rest].join(","),
        "1,2,3",
        "",
        ...lines.slice(4),
        csvOf(barsOf("BTC", "1m", { from: 29_916_667, to: 29_916_667 }))[0],
        lines[9]?.slice(0, 20)
      ].join("\n")
      yield* inNew(Effect.gen(function*() {
        const { report, told } = yield* imported(btc, "csv", Utf8.encode(text), "between")
        assert.deepStrictEqual(told.map(({ row, why }) => `${row} ${why}`), [
          "5 o: Expected a string matching the RegExp ^-?[0-9]+(?:\\.[0-9]+)?$",
          "6 it does not open after the previous bar of the file: sort the bars by open time",
          `7 it opens at ${Number(t) + 1}, which is not the start of a bar of 1m`,
          `8 it closes at ${T}, which is not the end of a bar of 1m`,
          "9 3 columns instead of 8",
          "17 it has not closed yet",
          "18 2 columns instead of 8"
        ])
        assert.deepStrictEqual(report, { rows: 16, added: 9, held: 0, refused: 7, differing: 0 })
        // the bar that was refused may have been one: nobody knows
        assert.deepStrictEqual(yield* held(btc), {
          bars: bars.filter((_, index) => index !== 3),
          known: [{ from: origin, to: origin + 2 }, { from: origin + 4, to: origin + 9 }]
        })
      }))
    }))

  it.effect("changes nothing that is held: what differs is told, and so is a bar where nobody traded", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const range = { from: origin, to: origin + 9 }
      const own = bars.filter((_, index) => index !== 5)
      const given = bars.map((bar, index) => index === 2 ? Object.assign({}, bar, { c: `${bar.c}0`, n: 1 }) : bar)
      const text = given.map((bar) => JSON.stringify(bar)).join("\n")
      yield* inNew(Effect.gen(function*() {
        const archive = yield* CandleArchive
        yield* archive.write(btc, range, own)
        const { report, told } = yield* imported(btc, "ndjson", Utf8.encode(text))
        const [, , third] = bars
        assert.deepStrictEqual(told, [
          {
            row: 3,
            why: `it differs from the stored bar of 2026-08-29T19:02Z: close ${third?.c}0 instead of ${third?.c}, ` +
              `trades 1 instead of ${third?.n}`
          },
          { row: 6, why: "the archive states that there was no trade at 2026-08-29T19:05Z" }
        ])
        assert.deepStrictEqual(report, { rows: 10, added: 0, held: 8, refused: 0, differing: 2 })
        assert.deepStrictEqual(yield* held(btc), { bars: own, known: [range] })
        assert.deepStrictEqual(yield* archive.earlierVersions(btc, range), [])
      }))
    }))

  it.effect("of another coin or interval is refused bar by bar, and what is no file at all at once", () =>
    inNew(Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const [bar] = bars
      const { told } = yield* imported(
        btc,
        "ndjson",
        Utf8.encode(`${JSON.stringify({ ...bar, s: "ETH" })}\nnonsense\n`)
      )
      assert.deepStrictEqual(told, [
        { row: 1, why: "a bar of ETH 1m instead of BTC 1m" },
        { row: 2, why: "not JSON" }
      ])
      const headless = yield* imported(btc, "csv", Utf8.encode(`${csvOf(bars)[0]}\n`))
      assert.deepStrictEqual(headless.told, [{ row: 1, why: `the first line is not ${csvHeadings}` }])
      const failed = yield* Effect.flip(imported(btc, "parquet", Utf8.encode("PAR1 nonsense")))
      assert.strictEqual(failed.message, "it is not a readable parquet file")
      assert.deepStrictEqual(yield* held(btc), { bars: [], known: [] })
    })))
})
