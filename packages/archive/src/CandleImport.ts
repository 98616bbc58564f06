/**
 * Imports bars from files into the archive. Each bar is validated separately, and archived bars do not change.
 *
 * An invalid bar does not prevent the import of the other bars. Importing the same file again changes nothing.
 */
import type { BarRange, BarRanges, Candle, Series } from "@trigate/domain/candles/Candle"
import { addRange, barAt, belongsTo, openTime, rangesWithin, unionRanges } from "@trigate/domain/candles/Candle"
import type { TextFormat } from "@trigate/domain/candles/CandleText"
import * as CandleText from "@trigate/domain/candles/CandleText"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { Differing } from "./CandleArchive.ts"
import { CandleArchive } from "./CandleArchive.ts"
import { formatMinute } from "./CandleRecorder.ts"

/** A row of an imported file (in a text file, a line): its number, and its bar or the error of decoding the bar. */
export interface Row {
  readonly row: number
  readonly bar: Result.Result<Candle, string>
}

/** A bar that was not imported, with the reason. */
export interface Finding {
  readonly row: number
  readonly why: string
}

/** The result of importing a file. */
export interface Report {
  readonly rows: number
  readonly added: number
  /** The number of bars in the file that were already archived. */
  readonly held: number
  /** The number of rows that are not valid bars of the series, and were not imported. */
  readonly refused: number
  /** The number of bars that differ from the archived bars, and were not imported. */
  readonly differing: number
}

/** Options of an import. */
export interface Options {
  /**
   * How to treat bars that are missing in the file. Default: as gaps.
   *
   * - `between`: if a bar is missing between two bars of the file, no trade took place in its period.
   * - Ranges: the file declares that it is complete in these ranges, so no trade took place in the period of a missing
   *   bar.
   */
  readonly known?: "between" | BarRanges
  readonly onFinding: (finding: Finding) => Effect.Effect<void>
  /** Called every few thousand rows with the number of rows processed. */
  readonly progress: (rows: number) => Effect.Effect<void>
}

/** Decodes the bars of a text file. An incomplete last line is ignored. */
export const textRows = <E, R>(
  { coin, interval }: Series,
  format: TextFormat,
  bytes: Stream.Stream<Uint8Array, E, R>
): Stream.Stream<Row, E, R> => {
  const parseRow = (line: string, index: number): ReadonlyArray<Row> => {
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
    Stream.map(([line, index]) => parseRow(line, index)),
    Stream.flattenIterable
  )
}

/** Returns why the archive refuses a bar; `undefined` if it is valid. */
const findFault = (series: Series, bar: Candle, now: number): string | undefined => {
  const { coin, interval } = series
  if (bar.s !== coin || bar.i !== interval) return `a bar of ${bar.s} ${bar.i} instead of ${coin} ${interval}`
  if (!belongsTo(series, bar)) {
    const open = openTime(interval, barAt(interval, bar.t))
    return bar.t === open
      ? `it closes at ${bar.T}, which is not the end of a bar of ${interval}`
      : `it opens at ${bar.t}, which is not the start of a bar of ${interval}`
  }
  return bar.T >= now ? "it has not closed yet" : undefined
}

const names = { o: "open", h: "high", l: "low", c: "close", v: "volume", n: "trades" } as const

/** Describes how a bar of the file differs from the archived bar. */
const formatDifference = ({ given, held }: Differing): string => {
  if (held === undefined) return `the archive states that there was no trade at ${formatMinute(given.t)}`
  const parts = (["o", "h", "l", "c", "v", "n"] as const).flatMap((name) =>
    given[name] === held[name] ? [] : [`${names[name]} ${given[name]} instead of ${held[name]}`]
  )
  return `it differs from the stored bar of ${formatMinute(given.t)}: ${parts.join(", ")}`
}

/** The number of rows that are imported in one transaction. */
const TOGETHER = 5000

interface Progress extends Report {
  /** The bar number of the last imported bar. */
  readonly last: number
  /** `false` if a row after the last imported bar was refused. */
  readonly isWhole: boolean
}

/** Imports the bars of one file, which must be in ascending order. */
export const run = Effect.fn("CandleImport.run")(function*<E, R>(
  series: Series,
  rows: Stream.Stream<Row, E, R>,
  { known, progress, onFinding }: Options
) {
  const archive = yield* CandleArchive
  const { interval } = series
  const now = yield* Clock.currentTimeMillis

  /**
   * Returns the ranges that become known when a bar is imported: the range of the bar itself, and the ranges since the
   * previous bar that the file declares complete.
   */
  const claimedRanges = (bar: number, { isWhole, last }: Pick<Progress, "isWhole" | "last">): BarRanges => {
    const own: BarRange = { from: bar, to: bar }
    if (!isWhole || known === undefined) return [own]
    if (known === "between") return last < 0 ? [own] : [{ from: last + 1, to: bar }]
    return addRange(rangesWithin(known, { from: last + 1, to: bar }), own)
  }

  const start: Progress = { rows: 0, added: 0, held: 0, refused: 0, differing: 0, last: -1, isWhole: true }

  const taken = Effect.fnUntraced(function*(before: Progress, page: ReadonlyArray<Row>) {
    let { isWhole, last, refused } = before
    const claims: Array<BarRanges> = []
    const rowByBar = new Map<number, number>()
    const bars: Array<Candle> = []
    for (const { bar, row } of page) {
      const number = Result.isSuccess(bar) ? barAt(interval, bar.success.t) : -1
      const why = Result.isFailure(bar)
        ? bar.failure
        : findFault(series, bar.success, now) ??
          (number <= last
            ? "it does not open after the previous bar of the file: sort the bars by open time"
            : undefined)
      if (Result.isFailure(bar) || why !== undefined) {
        refused += 1
        isWhole = false
        yield* onFinding({ row, why: why ?? "" })
        continue
      }
      claims.push(claimedRanges(number, { last, isWhole }))
      bars.push(bar.success)
      rowByBar.set(bar.success.t, row)
      last = number
      isWhole = true
    }
    const { added, differing } = yield* archive.fill(series, unionRanges(claims), bars)
    for (const found of differing) {
      yield* onFinding({ row: rowByBar.get(found.given.t) ?? 0, why: formatDifference(found) })
    }
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
  // the file can declare that it is complete after its last bar, which means that no trade followed
  const rest = isWhole && typeof known === "object"
    ? rangesWithin(known, { from: last + 1, to: barAt(interval, now) - 1 })
    : []
  yield* archive.fill(series, rest, [])
  return report satisfies Report
})
