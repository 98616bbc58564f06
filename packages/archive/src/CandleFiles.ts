/**
 * Candle history as files: exports the archived bars of a series, and imports bars into the archive.
 *
 * Only one chunk of bars is in memory at a time, and other work can run between two chunks. Interrupting the stream
 * stops the reads.
 *
 * An invalid bar does not prevent the import of the other bars. Importing the same file again changes nothing.
 */
import * as Candle from "@trigate/domain/candles/Candle"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import type { ArchiveUnavailable } from "@trigate/domain/errors/GatewayError"
import * as CandleText from "@trigate/domain/unstable/candles/CandleText"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { barsPerChunk } from "./BarChunk.ts"
import { CandleArchive, type Differing } from "./CandleArchive.ts"
import { formatMinute } from "./CandleRecorder.ts"

/** The methods of an archive that an export needs. */
export type Source = Pick<CandleArchive["Service"], "known" | "list" | "read">

/**
 * The archive whose bars a gateway exports. Without this service, the gateway exports nothing.
 *
 * Provided by `Layer.succeed`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { CandleArchive, CandleFiles } from "@trigate/archive"
 * import { Layer } from "effect"
 *
 * export const exported = Layer.effect(CandleFiles.ExportedArchive, CandleArchive.CandleArchive).pipe(
 *   Layer.provide(CandleArchive.layer())
 * )
 * ```
 */
export class ExportedArchive extends Context.Service<ExportedArchive, Source>()(
  "@trigate/archive/CandleFiles/ExportedArchive"
) {}

/** The maximum value of a JavaScript date, in milliseconds. */
const endOfTime = 8_640_000_000_000_000

/** A series, and the range of its bars to export, by open time in milliseconds (both ends inclusive). */
export interface Wanted extends Candle.Series {
  readonly from?: number
  readonly to?: number
}

/**
 * Returns the known (completely recorded) parts of the requested range; `undefined` if the archive does not contain the
 * series.
 */
export const known = Effect.fnUntraced(function*(source: Source, { from = 0, to = endOfTime, ...series }: Wanted) {
  const { interval } = series
  const all = yield* source.known(series, { from: 0, to: Candle.barAt(interval, endOfTime) })
  if (all.length === 0) return undefined
  const first = Candle.barAt(interval, from)
  return Candle.rangesWithin(all, {
    from: Candle.openTime(interval, first) < from ? first + 1 : first,
    to: Candle.barAt(interval, Math.min(to, endOfTime))
  })
})

/** Yields consecutive ranges that together contain all known bars. Each range is within one chunk. */
function* pageRanges(known: Candle.BarRanges): Generator<Candle.BarRange> {
  let next = 0
  for (const range of known) {
    for (let from = Math.max(next, range.from); from <= range.to; from = next) {
      next = (Math.floor(from / barsPerChunk) + 1) * barsPerChunk
      yield { from, to: next - 1 }
    }
  }
}

/** Streams the bars of known (completely recorded) ranges, oldest first, one chunk at a time. */
export const bars = (
  source: Source,
  series: Candle.Series,
  known: Candle.BarRanges
): Stream.Stream<ReadonlyArray<Candle.Candle>, ArchiveUnavailable> => {
  const last = known.at(-1)?.to ?? -1
  return Stream.fromIterable(pageRanges(known)).pipe(
    Stream.mapEffect(({ from, to }) =>
      Effect.andThen(Effect.yieldNow, source.read(series, { from, to: Math.min(to, last) }))
    ),
    Stream.map((held) => held.bars.filter(({ t }) => Candle.hasBar(known, Candle.barAt(series.interval, t))))
  )
}

const printers: { readonly [Format in CandleText.TextFormat]: (bar: Candle.Candle) => string } = {
  csv: CandleText.csv,
  ndjson: CandleText.ndjson
}

const text = <E>(
  format: CandleText.TextFormat,
  pages: Stream.Stream<ReadonlyArray<Candle.Candle>, E>
): Stream.Stream<Uint8Array, E> => {
  const lines = Stream.map(
    Stream.filter(pages, (page) => page.length > 0),
    (page) => Utf8.encode(`${page.map(printers[format]).join("\n")}\n`)
  )
  return format === "csv" ? Stream.concat(Stream.make(Utf8.encode(`${CandleText.csvHeadings}\n`)), lines) : lines
}

/** Converts ranges of bar numbers to times: the first and the last millisecond of each range. */
export const rangeInstants = (
  { interval }: Candle.Series,
  known: Candle.BarRanges
): ReadonlyArray<{ readonly from: number; readonly to: number }> =>
  known.map(({ from, to }) => ({ from: Candle.openTime(interval, from), to: Candle.closeTime(interval, to) }))

/** Streams a file with the bars of known (completely recorded) ranges. */
export const file = (
  source: Source,
  series: Candle.Series,
  known: Candle.BarRanges,
  format: CandleText.CandleFormat
): Stream.Stream<Uint8Array, ArchiveUnavailable> => {
  const pages = bars(source, series, known)
  // the parquet library is loaded on first use only
  return format !== "parquet" ? text(format, pages) : Stream.unwrap(
    Effect.map(
      Effect.promise(() => import("./CandleParquet.ts")),
      ({ write }) => write(pages, rangeInstants(series, known))
    )
  )
}

/** A row of an imported file (in a text file, a line): its number, and its bar or the error of decoding the bar. */
export interface Row {
  readonly row: number
  readonly bar: Result.Result<Candle.Candle, string>
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
  readonly known?: "between" | Candle.BarRanges
  readonly onFinding: (finding: Finding) => Effect.Effect<void>
  /** Called every few thousand rows with the number of rows processed. */
  readonly progress: (rows: number) => Effect.Effect<void>
}

/** Decodes the bars of a text file. An incomplete last line is ignored. */
export const textRows = <E, R>(
  { coin, interval }: Candle.Series,
  format: CandleText.TextFormat,
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
const findFault = (series: Candle.Series, bar: Candle.Candle, now: number): string | undefined => {
  const { coin, interval } = series
  if (bar.s !== coin || bar.i !== interval) return `a bar of ${bar.s} ${bar.i} instead of ${coin} ${interval}`
  if (!Candle.belongsTo(series, bar)) {
    const open = Candle.openTime(interval, Candle.barAt(interval, bar.t))
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
  series: Candle.Series,
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
  const claimedRanges = (bar: number, { isWhole, last }: Pick<Progress, "isWhole" | "last">): Candle.BarRanges => {
    const own: Candle.BarRange = { from: bar, to: bar }
    if (!isWhole || known === undefined) return [own]
    if (known === "between") return last < 0 ? [own] : [{ from: last + 1, to: bar }]
    return Candle.addRange(Candle.rangesWithin(known, { from: last + 1, to: bar }), own)
  }

  const start: Progress = { rows: 0, added: 0, held: 0, refused: 0, differing: 0, last: -1, isWhole: true }

  const taken = Effect.fnUntraced(function*(before: Progress, page: ReadonlyArray<Row>) {
    let { isWhole, last, refused } = before
    const claims: Array<Candle.BarRanges> = []
    const rowByBar = new Map<number, number>()
    const bars: Array<Candle.Candle> = []
    for (const { bar, row } of page) {
      const number = Result.isSuccess(bar) ? Candle.barAt(interval, bar.success.t) : -1
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
    const { added, differing } = yield* archive.fill(series, Candle.unionRanges(claims), bars)
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
    ? Candle.rangesWithin(known, { from: last + 1, to: Candle.barAt(interval, now) - 1 })
    : []
  yield* archive.fill(series, rest, [])
  return report satisfies Report
})
