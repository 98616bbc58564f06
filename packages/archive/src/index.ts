/**
 * Every public module of `@trigate/archive` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/archive/…`: Node then loads only those.
 */

/**
 * Candle history without a time limit: each closed bar of a coin and interval is stored once, exactly as the venue
 * formatted it.
 */
export * as CandleArchive from "./CandleArchive.ts"

/** `CandleArchive` in a SQL database, SQLite or Postgres. A chunk of bars is a row, and a write is one transaction. */
export * as CandleArchiveSql from "./CandleArchiveSql.ts"

/** Candle history as files: exports the archived bars of a series, and imports bars into the archive. */
export * as CandleFiles from "./CandleFiles.ts"

/**
 * `SqlClient` over Node's SQLite, with one connection. The connection is opened on first use, and reopened after an
 * error.
 */
export * as SqliteClient from "./SqliteClient.ts"
