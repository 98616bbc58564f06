/**
 * `CandleArchive` in a SQL database, SQLite or Postgres. A chunk of bars is a row, and a write is one transaction.
 *
 * Each row has a revision, and a write that conflicts with another write is retried, so several processes can write the
 * same series. The tables have a version number of their own. If a later version of the program has changed the tables,
 * this program neither reads nor writes them.
 */
import * as Candle from "@trigate/domain/candles/Candle"
import { addMillis, type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
import { ArchiveUnavailable } from "@trigate/domain/errors/GatewayError"
import * as SqlStore from "@trigate/stores/unstable/SqlStore"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import type * as SqlClient from "effect/sql/SqlClient"
import { barsPerChunk } from "./BarChunk.ts"
import * as CandleArchive from "./CandleArchive.ts"

/** The options of an archive in a database. */
export interface Options {
  /** Separates the archives of several networks in the same database. Default: `mainnet`. */
  readonly network?: string
  /** Timeout of each database operation. Default: 5 seconds. */
  readonly deadline?: Duration.Input
}

const createTables = (bytes: string) => [
  // the bars are the last column, so that SQLite can read the other columns without reading the bars
  `CREATE TABLE trigate_candles (
    network TEXT NOT NULL,
    coin TEXT NOT NULL,
    span TEXT NOT NULL,
    chunk INTEGER NOT NULL,
    known TEXT NOT NULL,
    bars INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    body ${bytes} NOT NULL,
    PRIMARY KEY (network, coin, span, chunk)
  )`,
  `CREATE TABLE trigate_candle_versions (
    network TEXT NOT NULL,
    coin TEXT NOT NULL,
    span TEXT NOT NULL,
    bar INTEGER NOT NULL,
    replaced_at BIGINT NOT NULL,
    body TEXT NOT NULL
  )`,
  "CREATE INDEX trigate_candle_versions_bar ON trigate_candle_versions (network, coin, span, bar)"
]

/**
 * Maximum number of chunks that one query summarizes. There is a limit, because SQLite blocks the event loop during a
 * query.
 */
const chunksAtATime = 1000

/**
 * Time, in milliseconds, for which a summary of a series is cached. A write by this process invalidates the summary; a
 * write by another process does not.
 */
const summaryLasts = 10_000

/** Maximum number of cached summaries: enough for all series of a full page of coins. */
const maxSummaries = Candle.coinsPerPage * Candle.CandleInterval.literals.length

/** The stored text for a chunk in which all bar numbers are known. */
const allKnown = Candle.printRanges([{ from: 0, to: barsPerChunk - 1 }], 0)

const headFields = {
  chunk: Schema.Int,
  known: Schema.String.check(Schema.isPattern(Candle.rangesPattern)),
  bars: SqlStore.BigintColumn,
  revision: SqlStore.BigintColumn
}
const decodeHeads = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct(headFields)))
const decodeChunks = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({ ...headFields, body: Schema.Uint8Array })))
const decodeSeries = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  coin: Schema.String,
  interval: Candle.CandleInterval
})))
const decodeRuns = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  first: Schema.Int,
  last: Schema.Int,
  known: headFields.known,
  chunks: SqlStore.BigintColumn,
  bars: SqlStore.BigintColumn,
  bytes: SqlStore.BigintColumn
})))
const CandleText = Schema.fromJsonString(Candle.Candle)
const decodeVersions = Schema.decodeUnknownEffect(
  Schema.Array(Schema.Struct({ bar: CandleText, replacedAt: SqlStore.BigintColumn }))
)
const encodeBar = Schema.encodeEffect(CandleText)

const unavailable = ({ detail, reason, tag }: SqlStore.StepFault): ArchiveUnavailable =>
  reason === "newer"
    ? new ArchiveUnavailable({ reason, detail })
    : tag === "SchemaError"
    ? new ArchiveUnavailable({
      reason: "damaged",
      detail: "The candle archive contains data that this program cannot have written"
    })
    : new ArchiveUnavailable({ reason: "away", detail: `The candle archive is unreachable (${detail})` })

const make = Effect.fnUntraced(function*(options: Options) {
  const { sql, step } = yield* SqlStore.make({
    table: "trigate_archive_migrations",
    migrations: (bytes) => ({ "0001_create_candles": createTables(bytes) }),
    refuseNewer: (version, known) =>
      `The candle archive was written by a later version of Trigate (its tables have version ${version}, ` +
      `this program knows ${known}): use that version, or another database`,
    deadline: options.deadline ?? "5 seconds",
    toError: unavailable
  })
  const network = options.network ?? "mainnet"
  const seriesCondition = ({ coin, interval }: Candle.Series) =>
    sql`network = ${network} AND coin = ${coin} AND span = ${interval}`

  /** Reads columns of chunks, in order, and decodes the known bars of each. */
  const select = <Row extends { readonly chunk: number; readonly known: string }>(
    columns: string,
    decode: (rows: unknown) => Effect.Effect<ReadonlyArray<Row>, Schema.SchemaError>,
    series: Candle.Series,
    from: number,
    to: number
  ) =>
    step(Effect.map(
      Effect.flatMap(
        sql`SELECT ${sql.literal(columns)} FROM trigate_candles
          WHERE ${seriesCondition(series)} AND chunk BETWEEN ${from} AND ${to} ORDER BY chunk`,
        decode
      ),
      (rows) => rows.map((row) => ({ ...row, known: Candle.readRanges(row.known, row.chunk * barsPerChunk) }))
    ))

  const putChunk = (series: Candle.Series, { body, bars, chunk, known, revision }: CandleArchive.Chunk) => {
    const text = Candle.printRanges(known, chunk * barsPerChunk)
    return revision === 1
      ? sql`INSERT INTO trigate_candles ${
        sql.insert({ network, coin: series.coin, span: series.interval, chunk, known: text, bars, revision, body })
      } ON CONFLICT DO NOTHING RETURNING chunk`
      : sql`UPDATE trigate_candles SET known = ${text}, bars = ${bars}, revision = ${revision}, body = ${body}
        WHERE ${seriesCondition(series)} AND chunk = ${chunk} AND revision = ${revision - 1} RETURNING chunk`
  }

  const put = (
    series: Candle.Series,
    chunks: ReadonlyArray<CandleArchive.Chunk>,
    replaced: ReadonlyArray<CandleArchive.EarlierVersion>
  ) =>
    Effect.gen(function*() {
      for (const chunk of chunks) {
        if ((yield* putChunk(series, chunk)).length === 0) return yield* Effect.fail("outrun" as const)
      }
      for (const { bar, replacedAt } of replaced) {
        yield* sql`INSERT INTO trigate_candle_versions ${
          sql.insert({
            network,
            coin: series.coin,
            span: series.interval,
            bar: Candle.barAt(series.interval, bar.t),
            replaced_at: replacedAt,
            body: yield* encodeBar(bar)
          })
        }`
      }
      return true
    }).pipe(
      sql.withTransaction,
      Effect.catchIf((error) => error === "outrun", () => Effect.succeed(false))
    )

  /**
   * Returns the chunks of a series after a given chunk, combined into runs. Consecutive chunks in which all bar numbers
   * are known form one run, so that fewer rows are read.
   *
   * Each call reads at most {@link chunksAtATime} chunks.
   */
  const runsAfter = (series: Candle.Series, chunk: number) =>
    step(Effect.flatMap(
      sql`SELECT known, MIN(chunk) AS first, MAX(chunk) AS last, COUNT(*) AS chunks, SUM(bars) AS bars, SUM(bytes) AS bytes
        FROM (
          SELECT known, chunk, bars, bytes, chunk - ROW_NUMBER() OVER (PARTITION BY known ORDER BY chunk) AS run
          FROM (
            SELECT known, chunk, bars, LENGTH(body) AS bytes FROM trigate_candles
            WHERE ${seriesCondition(series)} AND chunk > ${chunk} ORDER BY chunk LIMIT ${
        sql.literal(String(chunksAtATime))
      }
          ) AS page
        ) AS numbered
        GROUP BY known, CASE WHEN known = ${allKnown} THEN run ELSE chunk END ORDER BY first`,
      decodeRuns
    ))

  const knownIn = ({ first, known, last }: { readonly first: number; readonly known: string; readonly last: number }) =>
    known === allKnown
      ? [{ from: first * barsPerChunk, to: (last + 1) * barsPerChunk - 1 }]
      : Candle.readRanges(known, first * barsPerChunk)

  const readSummary = Effect.fnUntraced(function*(series: Candle.Series) {
    let summary: CandleArchive.SeriesStatus = { ...series, bars: 0, bytes: 0, known: [] }
    for (let last = -1;;) {
      const runs = yield* runsAfter(series, last)
      summary = {
        ...series,
        bars: runs.reduce((sum, { bars }) => sum + bars, summary.bars),
        bytes: runs.reduce((sum, { bytes }) => sum + bytes, summary.bytes),
        known: Candle.unionRanges([summary.known, ...runs.map(knownIn)])
      }
      last = Math.max(last, ...runs.map((run) => run.last))
      if (runs.reduce((sum, { chunks }) => sum + chunks, 0) < chunksAtATime) return summary
      yield* Effect.yieldNow
    }
  })

  const summaries = new Map<string, { readonly summary: CandleArchive.SeriesStatus; readonly until: MonotonicTime }>()
  let listed:
    | { readonly after: string; readonly series: ReadonlyArray<Candle.Series>; readonly until: MonotonicTime }
    | undefined
  const summarizing = yield* Semaphore.make(1)

  const forget = (series: Candle.Series) => {
    summaries.delete(Candle.seriesKey(series))
    listed = undefined
  }

  /**
   * Returns the series of one page of coins. The coins are in the order of the database, whose collation can differ
   * from JavaScript's.
   */
  const page = Effect.fnUntraced(function*(after: string) {
    const now = monotonicTime(yield* Clock.Clock)
    if (listed?.after === after && listed.until > now) return listed.series
    const rows = yield* step(Effect.flatMap(
      sql`SELECT coin, span AS interval FROM trigate_candles WHERE network = ${network} AND coin IN (
          SELECT coin FROM trigate_candles WHERE network = ${network} AND coin > ${after}
          GROUP BY coin ORDER BY coin LIMIT ${sql.literal(String(Candle.coinsPerPage))}
        )
        GROUP BY coin, span ORDER BY coin`,
      decodeSeries
    ))
    const series = [...Map.groupBy(rows, ({ coin }) => coin).values()].flatMap((own) =>
      own.toSorted(CandleArchive.byInterval)
    )
    listed = { after, series, until: addMillis(now, summaryLasts) }
    return series
  })

  const summarized = Effect.fnUntraced(function*(series: Candle.Series) {
    const now = monotonicTime(yield* Clock.Clock)
    const held = summaries.get(Candle.seriesKey(series))
    if (held !== undefined && held.until > now) return held.summary
    yield* Effect.yieldNow
    const summary = yield* readSummary(series)
    const [oldest] = summaries.keys()
    if (oldest !== undefined && summaries.size >= maxSummaries) summaries.delete(oldest)
    summaries.set(Candle.seriesKey(series), { summary, until: addMillis(now, summaryLasts) })
    return summary
  })

  // the semaphore makes concurrent calls share cached summaries, and use one connection at a time
  const list = (after = "") =>
    summarizing.withPermits(1)(Effect.flatMap(page(after), (series) => Effect.forEach(series, summarized)))

  return CandleArchive.make({
    chunks: (series, from, to) => select("chunk, known, bars, revision, body", decodeChunks, series, from, to),
    heads: (series, from, to) => select("chunk, known, bars, revision", decodeHeads, series, from, to),
    put: (series, chunks, replaced) =>
      Effect.tap(step(put(series, chunks, replaced)), () => Effect.sync(() => forget(series))),
    earlierVersions: (series, { from, to }) =>
      step(Effect.flatMap(
        sql`SELECT body AS bar, replaced_at AS "replacedAt" FROM trigate_candle_versions
          WHERE ${seriesCondition(series)} AND bar BETWEEN ${from} AND ${to} ORDER BY replaced_at, bar`,
        decodeVersions
      )),
    list
  })
})

/**
 * Provides the archive in a database. Creates its tables on first use. While the database is unreachable, all
 * operations fail with `ArchiveUnavailable`.
 *
 * Layers with the same database and the same `network` share an archive.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { CandleArchive, CandleArchiveSql, SqliteClient } from "@trigate/archive"
 * import { Console, Effect, Layer } from "effect"
 *
 * const archive = Layer.provide(CandleArchiveSql.layer(), SqliteClient.layer({ file: "bars.sqlite", mode: "create" }))
 *
 * const program = CandleArchive.CandleArchive.use(({ list }) => Effect.flatMap(list(), Console.log))
 *
 * await Effect.runPromise(Effect.provide(program, archive))
 * ```
 * ```text
 * []
 * ```
 */
export const layer = (
  options: Options = {}
): Layer.Layer<CandleArchive.CandleArchive, never, SqlClient.SqlClient> =>
  Layer.effect(CandleArchive.CandleArchive, make(options))
