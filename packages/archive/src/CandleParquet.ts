/** Bars as a Parquet file: times as timestamps, prices and volumes as strings in the venue's format. */
import type { BarRanges, Candle, Series } from "@trigate/domain/candles/Candle"
import { barAt, rangesPattern, readRanges, unionRanges } from "@trigate/domain/candles/Candle"
import { checked, columns } from "@trigate/domain/unstable/candles/CandleText"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type FileMetaData, parquetMetadataAsync, parquetReadObjects } from "hyparquet"
import { ByteWriter, type ColumnSource, ParquetWriter, type SchemaElement } from "hyparquet-writer"
import type { Row } from "./CandleFiles.ts"

/**
 * The key under which the file's metadata contains the known (complete) ranges: `from-to` in milliseconds, separated by
 * commas.
 */
export const knownKey = "trigate:known"

const repetition_type = "REQUIRED"
const time = {
  repetition_type,
  type: "INT64",
  converted_type: "TIMESTAMP_MILLIS",
  logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MILLIS" }
} as const
const text = {
  repetition_type,
  type: "BYTE_ARRAY",
  converted_type: "UTF8",
  logical_type: { type: "STRING" }
} as const
const count = { repetition_type, type: "INT64" } as const

type Name = (typeof columns)[number]

/** The type of each column, and its value in a bar. */
const types: { readonly [N in Name]: readonly [Omit<SchemaElement, "name">, (bar: Candle) => string | bigint] } = {
  open_time: [time, ({ t }) => BigInt(t)],
  close_time: [time, ({ T }) => BigInt(T)],
  open: [text, ({ o }) => o],
  high: [text, ({ h }) => h],
  low: [text, ({ l }) => l],
  close: [text, ({ c }) => c],
  volume: [text, ({ v }) => v],
  trades: [count, ({ n }) => BigInt(n)]
}

const schema = (): Array<SchemaElement> => [
  { name: "bars", num_children: columns.length },
  ...columns.map((name) => ({ name, ...types[name][0] }))
]

const toColumns = (bars: ReadonlyArray<Candle>): Array<ColumnSource> =>
  columns.map((name) => ({ name, data: bars.map(types[name][1]) }))

/** The number of pages in one row group. A page contains up to some thousand bars. */
const pagesPerGroup = 4

/** Encodes bars as a file, with the known (complete) ranges in its metadata. */
export const write = <E>(
  pages: Stream.Stream<ReadonlyArray<Candle>, E>,
  known: ReadonlyArray<{ readonly from: number; readonly to: number }>
): Stream.Stream<Uint8Array, E> =>
  Stream.suspend(() => {
    const writer = new ByteWriter()
    const value = known.map(({ from, to }) => `${from}-${to}`).join(",")
    const file = new ParquetWriter({
      writer,
      schema: schema(),
      kvMetadata: [{ key: knownKey, value }],
      createdBy: "trigate"
    })
    const taken = (): Uint8Array => {
      const bytes = writer.getBytes().slice()
      writer.index = 0
      return bytes
    }
    const groups = Stream.mapEffect(
      Stream.grouped(Stream.filter(pages, (page) => page.length > 0), pagesPerGroup),
      (group) =>
        Effect.map(
          Effect.promise(() => {
            const bars = group.flat()
            return Promise.resolve(file.write({ columnData: toColumns(bars), rowGroupSize: bars.length }))
          }),
          taken
        )
    )
    const end = Stream.fromEffect(Effect.map(Effect.promise(() => Promise.resolve(file.finish())), taken))
    return Stream.concat(groups, end)
  })

/** The bytes are not a Parquet file of bars. */
export class NotParquet extends Schema.TaggedError<NotParquet>()("NotParquet", { message: Schema.String }) {}

const plain = (value: unknown): unknown => typeof value === "bigint" ? Number(value) : value

/** Decodes the known (complete) ranges in a file's metadata; `undefined` if the file does not declare any. */
const readKnown = ({ interval }: Series, { key_value_metadata: entries }: FileMetaData): BarRanges | undefined => {
  const value = entries?.find(({ key }) => key === knownKey)?.value
  if (value === undefined || !rangesPattern.test(value)) return undefined
  return unionRanges([
    readRanges(value, 0).map(({ from, to }) => ({ from: barAt(interval, from), to: barAt(interval, to) }))
  ])
}

/** Decodes the bars of a file, one row group at a time, and the ranges that the file declares as known. */
export const read = Effect.fnUntraced(function*(series: Series, bytes: Uint8Array) {
  const file = Uint8Array.from(bytes).buffer
  const reading = <A>(evaluate: () => Promise<A>) =>
    Effect.tryPromise({
      try: evaluate,
      catch: () => new NotParquet({ message: "it is not a readable parquet file" })
    })
  const metadata = yield* reading(() =>
    parquetMetadataAsync({ byteLength: file.byteLength, slice: (...at) => file.slice(...at) })
  )
  const groups: Array<{ readonly rowStart: number; readonly rowEnd: number }> = []
  for (const { num_rows: rows } of metadata.row_groups) {
    const rowStart = groups.at(-1)?.rowEnd ?? 0
    groups.push({ rowStart, rowEnd: rowStart + Number(rows) })
  }
  const readRows = ({ rowEnd, rowStart }: (typeof groups)[number]) =>
    Effect.map(
      reading<ReadonlyArray<Readonly<Record<string, unknown>>>>(() =>
        parquetReadObjects({ file, metadata, rowStart, rowEnd, parsers: { timestampFromMilliseconds: Number } })
      ),
      (found): ReadonlyArray<Row> =>
        found.map((row, index) => ({
          row: rowStart + index + 1,
          bar: checked({
            t: plain(row["open_time"]),
            T: plain(row["close_time"]),
            s: series.coin,
            i: series.interval,
            o: row["open"],
            c: row["close"],
            h: row["high"],
            l: row["low"],
            v: row["volume"],
            n: plain(row["trades"])
          })
        }))
    )
  return {
    known: readKnown(series, metadata),
    rows: Stream.flattenIterable(Stream.mapEffect(Stream.fromIterable(groups), readRows))
  }
})
