/**
 * Bars of files into the archive: each is checked by itself, and what the archive holds stays as it is.
 *
 * A bar that is refused does not keep the others out, and importing the same file again changes nothing.
 */
import type { BarRange, BarRanges } from "@trigate/domain/candles/BarRanges"
import * as Ranges from "@trigate/domain/candles/BarRanges"
import type { Candle } from "@trigate/domain/candles/Candle"
import type { TextFormat } from "@trigate/domain/candles/CandleText"
import * as CandleText from "@trigate/domain/candles/CandleText"
import type { Series } from "@trigate/domain/candles/CandleWindow"
import { barAt, isOf, openOf } from "@trigate/domain/candles/CandleWindow"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { Differing } from "./CandleArchive.ts"
import { CandleArchive } from "./CandleArchive.ts"

/** A bar of a file, or what is wrong with it, and the number of its line or row. */
export interface Row {
  readonly row: number
  readonly bar: Result.Result<Candle, string>
}

/** A bar that was not taken, and why. */
export interface Finding {
  readonly row: number
  readonly why: string
}

/** What became of the bars of a file. */
export interface Report {
  readonly rows: number
  readonly added: number
  /** Bars that the archive held already. */
  readonly held: number
  /** Bars that are none, or none of the series. */
  readonly refused: number
  /** Bars that differ from what the archive holds. */
  readonly differing: number
}

/** What is imported, and who is told. */
export interface Options {
  /**
   * What is known besides the bars themselves. `between`: a bar that is missing between two bars of the file had no trade. Ranges:
   * what the file says of itself. Nothing, where not given: what is missing is a gap.
   */
  readonly known?: "between" | BarRanges
  readonly tell: (finding: Finding) => Effect.Effect<void>
  /** Is told after each few thousand rows how many there were. */
  readonly progress: (rows: number) => Effect.Effect<void>
}

/** The bars of a file of lines; a line at the end that is not whole is none. */
export const textRows = <E, R>(
  { coin, interval }: Series,
  format: TextFormat,
  bytes: Stream.Stream<Uint8Array, E, R>
): Stream.Stream<Row, E, R> => {
  const rowOf = (line: string, index: number): ReadonlyArray<Row> => {
    const row = index + 1
    if (format === "ndjson") return line.trim() === "" ? [] : [{ row, bar: CandleText.readNdjson(line) }]
    if (index > 0) return line.trim() === "" ? [] : [{ row, bar: CandleText.readCsv(coin, interval, line) }]
    return line.trim() === CandleText.csvHeadings
      ? []
      : [{ row, bar: Result.fail(`the first line is not ${CandleText.csvHeadings}`) }]
  }
  return bytes.pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.zipWithIndex,
    Stream.map(([line, index]) => rowOf(line, index)),
    Stream.flattenIterable
  )
}

const minuteOf = (time: number): string => `${DateTime.formatIso(DateTime.makeUnsafe(time)).slice(0, 16)}Z`

/** Why a bar is none that the archive takes; undefined where it is one. */
const faultOf = (series: Series, bar: Candle, now: number): string | undefined => {
  const { coin, interval } = series
  if (bar.s !== coin || bar.i !== interval) return `a bar of ${bar.s} ${bar.i} instead of ${coin} ${interval}`
  if (!isOf(series, bar)) {
    const open = openOf(interval, barAt(interval, bar.t))
    return bar.t === open
      ? `it closes at ${bar.T}, which is not the end of a bar of ${interval}`
      : `it opens at ${bar.t}, between two bars of ${interval}`
  }
  return bar.T >= now ? "it has not closed yet" : undefined
}

const names = { o: "open", h: "high", l: "low", c: "close", v: "volume", n: "trades" } as const

/** How a bar differs from what the archive holds, in words. */
const differenceOf = ({ given, held }: Differing): string => {
  if (held === undefined) return `the archive knows that nobody traded at ${minuteOf(given.t)}`
  const parts = (["o", "h", "l", "c", "v", "n"] as const).flatMap((name) =>
    given[name] === held[name] ? [] : [`${names[name]} ${given[name]} instead of ${held[name]}`]
  )
  return `it differs from the bar that is held of ${minuteOf(given.t)}: ${parts.join(", ")}`
}

/** Rows that are written together. */
const TOGETHER = 5000

interface Progress extends Report {
  /** The last bar that was taken, and whether everything since was. */
  readonly last: number
  readonly isWhole: boolean
}

/** Imports the bars of one file, which have to be in order. */
export const run = Effect.fn("CandleImport.run")(function*<E, R>(
  series: Series,
  rows: Stream.Stream<Row, E, R>,
  { known, progress, tell }: Options
) {
  const archive = yield* CandleArchive
  const { interval } = series
  const now = yield* Clock.currentTimeMillis

  /** What is known once a bar was taken: the bar, and where the file says so, what lies between it and the one before. */
  const claimOf = (bar: number, { isWhole, last }: Pick<Progress, "isWhole" | "last">): BarRanges => {
    const own: BarRange = { from: bar, to: bar }
    if (!isWhole || known === undefined) return [own]
    if (known === "between") return last < 0 ? [own] : [{ from: last + 1, to: bar }]
    return Ranges.add(Ranges.within(known, { from: last + 1, to: bar }), own)
  }

  const start: Progress = { rows: 0, added: 0, held: 0, refused: 0, differing: 0, last: -1, isWhole: true }

  const taken = Effect.fnUntraced(function*(before: Progress, page: ReadonlyArray<Row>) {
    let { isWhole, last, refused } = before
    const claims: Array<BarRanges> = []
    const rowOf = new Map<number, number>()
    const bars: Array<Candle> = []
    for (const { bar, row } of page) {
      const number = Result.isSuccess(bar) ? barAt(interval, bar.success.t) : -1
      const why = Result.isFailure(bar)
        ? bar.failure
        : faultOf(series, bar.success, now) ?? (number <= last ? "it does not open after the bar before it" : undefined)
      if (Result.isFailure(bar) || why !== undefined) {
        refused += 1
        isWhole = false
        yield* tell({ row, why: why ?? "" })
        continue
      }
      claims.push(claimOf(number, { last, isWhole }))
      bars.push(bar.success)
      rowOf.set(bar.success.t, row)
      last = number
      isWhole = true
    }
    const { added, differing } = yield* archive.fill(series, Ranges.union(claims), bars)
    for (const found of differing) yield* tell({ row: rowOf.get(found.given.t) ?? 0, why: differenceOf(found) })
    const after: Progress = {
      rows: before.rows + page.length,
      added: before.added + added,
      held: before.held + bars.length - added - differing.length,
      refused,
      differing: before.differing + differing.length,
      last,
      isWhole
    }
    yield* progress(after.rows)
    return after
  })

  const { isWhole, last, ...report } = yield* Stream.runFoldEffect(Stream.grouped(rows, TOGETHER), () => start, taken)
  // a file may know that nobody traded behind its last bar
  const rest = isWhole && typeof known === "object"
    ? Ranges.within(known, { from: last + 1, to: barAt(interval, now) - 1 })
    : []
  yield* archive.fill(series, rest, [])
  return report satisfies Report
})
