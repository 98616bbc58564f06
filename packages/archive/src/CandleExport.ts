/**
 * Exports candle history as files: the archived bars of a series (coin and interval), oldest first, as a stream of
 * bytes.
 *
 * Only one chunk of bars is in memory at a time, and other work can run between two chunks. Interrupting the stream
 * stops the reads.
 */
import type { BarRange, BarRanges, Candle, Series } from "@trigate/domain/candles/Candle"
import { barAt, closeTime, hasBar, openTime, rangesWithin } from "@trigate/domain/candles/Candle"
import type { CandleFormat, TextFormat } from "@trigate/domain/candles/CandleText"
import * as CandleText from "@trigate/domain/candles/CandleText"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import type { ArchiveUnavailable } from "@trigate/domain/errors/ArchiveError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { barsPerChunk } from "./BarChunk.ts"
import type { CandleArchive } from "./CandleArchive.ts"

/** The methods of an archive that an export needs. */
export type Source = Pick<CandleArchive["Service"], "known" | "list" | "read">

/**
 * The archive whose bars a gateway exports. Without this service, the gateway exports nothing.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { CandleArchive, CandleArchiveMemory, CandleExport } from "@trigate/archive"
 * import { Layer } from "effect"
 *
 * export const exported = Layer.effect(CandleExport.ExportedArchive, CandleArchive.CandleArchive).pipe(
 *   Layer.provide(CandleArchiveMemory.layer())
 * )
 * ```
 */
export class ExportedArchive extends Context.Service<ExportedArchive, Source>()(
  "@trigate/archive/CandleExport/ExportedArchive"
) {}

/** The maximum value of a JavaScript date, in milliseconds. */
const endOfTime = 8_640_000_000_000_000

/** A series, and the range of its bars to export, by open time in milliseconds (both ends inclusive). */
export interface Wanted extends Series {
  readonly from?: number
  readonly to?: number
}

/**
 * Returns the known (completely recorded) parts of the requested range; `undefined` if the archive does not contain the
 * series.
 */
export const known = Effect.fnUntraced(function*(source: Source, { from = 0, to = endOfTime, ...series }: Wanted) {
  const { interval } = series
  const all = yield* source.known(series, { from: 0, to: barAt(interval, endOfTime) })
  if (all.length === 0) return undefined
  const first = barAt(interval, from)
  return rangesWithin(all, {
    from: openTime(interval, first) < from ? first + 1 : first,
    to: barAt(interval, Math.min(to, endOfTime))
  })
})

/** Yields consecutive ranges that together contain all known bars. Each range is within one chunk. */
function* pageRanges(known: BarRanges): Generator<BarRange> {
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
  series: Series,
  known: BarRanges
): Stream.Stream<ReadonlyArray<Candle>, ArchiveUnavailable> => {
  const last = known.at(-1)?.to ?? -1
  return Stream.fromIterable(pageRanges(known)).pipe(
    Stream.mapEffect(({ from, to }) =>
      Effect.andThen(Effect.yieldNow, source.read(series, { from, to: Math.min(to, last) }))
    ),
    Stream.map((held) => held.bars.filter(({ t }) => hasBar(known, barAt(series.interval, t))))
  )
}

const printers: { readonly [Format in TextFormat]: (bar: Candle) => string } = {
  csv: CandleText.csv,
  ndjson: CandleText.ndjson
}

const text = <E>(format: TextFormat, pages: Stream.Stream<ReadonlyArray<Candle>, E>): Stream.Stream<Uint8Array, E> => {
  const lines = Stream.map(
    Stream.filter(pages, (page) => page.length > 0),
    (page) => Utf8.encode(`${page.map(printers[format]).join("\n")}\n`)
  )
  return format === "csv" ? Stream.concat(Stream.make(Utf8.encode(`${CandleText.csvHeadings}\n`)), lines) : lines
}

/** Converts ranges of bar numbers to times: the first and the last millisecond of each range. */
export const rangeInstants = (
  { interval }: Series,
  known: BarRanges
): ReadonlyArray<{ readonly from: number; readonly to: number }> =>
  known.map(({ from, to }) => ({ from: openTime(interval, from), to: closeTime(interval, to) }))

/** Streams a file with the bars of known (completely recorded) ranges. */
export const file = (
  source: Source,
  series: Series,
  known: BarRanges,
  format: CandleFormat
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
