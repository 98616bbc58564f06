/**
 * Every module of `@trigate/archive` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/archive/…`: Node then loads only those.
 */

/** Metrics of the candle archive and its recorder. */
export * as ArchiveMetrics from "./ArchiveMetrics.ts"

/** A compact, lossless encoding of closed bars: every number is decoded exactly as the venue formatted it. */
export * as BarChunk from "./BarChunk.ts"

/** Columns of integers in few bits: Rice codes with an adaptive parameter. */
export * as BitColumns from "./BitColumns.ts"

/**
 * Builds the bars of a larger interval from the bars of a smaller interval. The result is exact: prices are compared
 * and volumes are added as decimals, never as doubles.
 */
export * as CandleAggregate from "./CandleAggregate.ts"

/**
 * Candle history without a time limit: each closed bar of a coin and interval is stored once, exactly as the venue
 * formatted it.
 */
export * as CandleArchive from "./CandleArchive.ts"

/**
 * `CandleArchive` in memory. When the memory limit is reached, the archive evicts the least recently used bars, whose
 * ranges become gaps.
 */
export * as CandleArchiveMemory from "./CandleArchiveMemory.ts"

/** `CandleArchive` in a SQL database, SQLite or Postgres. A chunk of bars is a row, and a write is one transaction. */
export * as CandleArchiveSql from "./CandleArchiveSql.ts"

/**
 * Exports candle history as files: the archived bars of a series (coin and interval), oldest first, as a stream of
 * bytes.
 */
export * as CandleExport from "./CandleExport.ts"

/** Imports bars from files into the archive. Each bar is validated separately, and archived bars do not change. */
export * as CandleImport from "./CandleImport.ts"

/** Bars as a Parquet file: times as timestamps, prices and volumes as strings in the venue's format. */
export * as CandleParquet from "./CandleParquet.ts"

/** Records candle history: fetches all bars that the venue retains, follows new bars, and fills missed ranges. */
export * as CandleRecorder from "./CandleRecorder.ts"

/** The bars that are received from the streams of series (coin and interval). */
export * as LiveBars from "./LiveBars.ts"

/**
 * `SqlClient` over Node's SQLite, with one connection. The connection is opened on first use, and reopened after an
 * error.
 */
export * as SqliteClient from "./SqliteClient.ts"
