/**
 * `SqlClient` over Node's SQLite, with one connection. The connection is opened on first use, and reopened after an
 * error.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import { classifySqliteError, SqlError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import * as Stream from "effect/Stream"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the mode of a file that SQLite opens by itself
import { closeSync, openSync } from "node:fs"
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite"
import { pathToFileURL } from "node:url"

/** The database file, and whether to create it if it does not exist. */
export interface Options {
  readonly file: string
  /** `create`: the file is created if it does not exist. `existing`: the client fails if the file does not exist. */
  readonly mode: "create" | "existing"
}

/** Makes an error that contains SQLite's error code and message. Node stores them in separate fields of its error. */
const toSqlError = (cause: unknown, operation: string): SqlError => {
  const errno = Predicate.hasProperty(cause, "errcode") && Predicate.isNumber(cause.errcode) ? cause.errcode : undefined
  const message = Predicate.hasProperty(cause, "errstr") && Predicate.isString(cause.errstr) ? cause.errstr : undefined
  return new SqlError({ reason: classifySqliteError({ errno, message, cause }, { message, operation }) })
}

const isInput = (value: unknown): value is SQLInputValue =>
  value === null || Predicate.isString(value) || Predicate.isNumber(value) || Predicate.isBigInt(value) ||
  value instanceof Uint8Array

/** SQLite writes every commit to the disk, so that it survives a power failure. */
const pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"

/**
 * Creates a file that only its owner can access, regardless of the umask. SQLite creates the `-wal` and `-shm` files
 * with the same mode.
 */
const create = (file: string): Effect.Effect<void> =>
  Effect.ignore(Effect.try(() => closeSync(openSync(file, "a", 0o600))))

const open = ({ file, mode }: Options): DatabaseSync => {
  const url = pathToFileURL(file)
  url.searchParams.set("mode", mode === "create" ? "rwc" : "rw")
  return new DatabaseSync(url)
}

const makeConnection = (database: DatabaseSync): Connection => {
  const run = <A>(
    sql: string,
    params: ReadonlyArray<unknown>,
    read: (statement: StatementSync, inputs: ReadonlyArray<SQLInputValue>) => A
  ) => {
    const inputs = params.filter(isInput)
    return inputs.length < params.length
      ? Effect.die(`SQLite supports only null, text, numbers, bigint and bytes as parameters: ${sql}`)
      : Effect.try({ try: () => read(database.prepare(sql), inputs), catch: (cause) => toSqlError(cause, "execute") })
  }
  const all = (sql: string, params: ReadonlyArray<unknown>) =>
    run(sql, params, (statement, inputs) => statement.all(...inputs))
  const values = (sql: string, params: ReadonlyArray<unknown>) =>
    run(sql, params, (statement, inputs) => {
      statement.setReturnArrays(true)
      return statement.all(...inputs).map((row) => Object.values(row))
    })
  const execute: Connection["execute"] = (sql, params, transform) =>
    Effect.map(all(sql, params), (rows) => transform === undefined ? rows : transform(rows))
  return {
    execute,
    executeRaw: all,
    executeStream: (sql, params, transform) =>
      Stream.unwrap(Effect.map(execute(sql, params, transform), (rows) => Stream.fromIterable(rows))),
    executeUnprepared: execute,
    executeValues: values,
    executeValuesUnprepared: values
  }
}

const attempt = <A>(evaluate: () => A) => Effect.try({ try: evaluate, catch: (cause) => toSqlError(cause, "connect") })

const make = Effect.fnUntraced(function*(options: Options) {
  let opened: { readonly database: DatabaseSync; readonly connection: Connection } | undefined
  yield* Effect.addFinalizer(() => Effect.sync(() => opened?.database.close()))
  const connect = Effect.gen(function*() {
    // ignores failures here, because `open` then fails with SQLite's error, which describes the cause better
    if (options.mode === "create") yield* create(options.file)
    const database = yield* attempt(() => open(options))
    yield* Effect.tapError(attempt(() => database.exec(pragmas)), () => Effect.sync(() => database.close()))
    opened = { database, connection: makeConnection(database) }
    return opened.connection
  })
  const acquirers = SqlClient.makeSqliteAcquirers({
    connection: Effect.suspend(() => opened === undefined ? connect : Effect.succeed(opened.connection)),
    semaphore: yield* Semaphore.make(1),
    isTransaction: () => opened?.database.isTransaction === true
  })
  return yield* SqlClient.make({
    ...acquirers,
    compiler: Statement.makeCompilerSqlite(),
    driver: "node-sqlite",
    // `BEGIN IMMEDIATE` waits for a lock. A transaction that begins with a read can fail at its first write if the
    // database is locked
    beginTransaction: "BEGIN IMMEDIATE",
    releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
    spanAttributes: [["db.system.name", "sqlite"]]
  })
})

/**
 * Provides the client of one database file.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { SqliteClient } from "@trigate/archive"
 * import { Console, Effect } from "effect"
 * import { SqlClient } from "effect/sql"
 *
 * const program = SqlClient.SqlClient.use((sql) => Effect.flatMap(sql`SELECT 1 AS one`, Console.log))
 *
 * await Effect.runPromise(Effect.provide(program, SqliteClient.layer({ file: "any.sqlite", mode: "create" })))
 * ```
 */
export const layer = (options: Options): Layer.Layer<SqlClient.SqlClient> =>
  Layer.effect(SqlClient.SqlClient, make(options)).pipe(Layer.provide(Reactivity.layer))
