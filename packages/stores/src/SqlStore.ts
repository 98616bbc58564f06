/**
 * A store in a SQL database, SQLite or Postgres: its tables, their migrations, and steps with a deadline.
 *
 * The first step creates or upgrades the tables with Effect's `Migrator`, which records in a table of each store the
 * migrations that have run.
 */
import { Millis } from "@trigate/domain/encoding/Encoding"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Predicate from "effect/Predicate"
import * as Record from "effect/Record"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Semaphore from "effect/Semaphore"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as SharedStore from "./SharedStore.ts"

/** A failed operation: a statement, the migration of the tables, or the decoding of the rows. */
export type SqlFault = SqlError | Migrator.MigrationError | Schema.SchemaError

/** Why a step failed. */
export interface StepFault {
  /**
   * - `away`: a statement failed, or the database did not respond in time.
   * - `malformed`: the tables cannot be made, or contain rows that this program cannot have written.
   * - `newer`: a later version of the program has changed the tables.
   */
  readonly reason: "away" | "malformed" | "newer"
  /** The tag of the cause, such as `ConnectionError`; `TimeoutError` after the deadline. */
  readonly tag: string
  /** The cause, without the message of a Postgres server, because it can contain the server's host name. */
  readonly detail: string
}

/** The value of a column of the type `BIGINT`, from 0 to 2^53 - 1. Postgres returns a bigint, SQLite a number. */
export const BigintColumn = Schema.Union([
  Millis,
  Schema.BigInt.pipe(Schema.decodeTo(Millis, SchemaTransformation.transform({ decode: Number, encode: BigInt })))
])

const decodeVersion = Schema.decodeUnknownEffect(Schema.Tuple([Schema.Struct({ version: BigintColumn })]))

/** The tables of a store, its timeout, and its error. */
export interface Options<F> {
  /** The table that records which migrations have run. */
  readonly table: string
  /**
   * The statements of each migration, by its number and name: `0001_create_keys`. `bytes` is the type of a column of
   * bytes. Without migrations, the tables are used as they are.
   */
  readonly migrations?: (bytes: "BLOB" | "BYTEA") => Readonly<Record<string, ReadonlyArray<string>>>
  /** Runs once, after the migrations. */
  readonly prepare?: (sql: SqlClient.SqlClient, isFile: boolean) => Effect.Effect<unknown, SqlFault>
  /** If present, later tables are refused with the detail that this function returns. */
  readonly refuseNewer?: (version: number, known: number) => string
  /** Timeout of a step. Default: none, because the caller limits the time. */
  readonly deadline?: Duration.Input
  /** Converts the fault of a step to the error of the store. */
  readonly toError: (fault: StepFault) => F
}

const isFault = (error: unknown): error is SqlFault =>
  ["SqlError", "MigrationError", "SchemaError"].some((tag) => Predicate.isTagged(error, tag))

const isLocked = (error: unknown): boolean =>
  isFault(error) && error._tag === "SqlError" && error.reason._tag === "LockTimeoutError"

/** The options of a store's steps. */
export interface StepOptions<F> {
  /** Runs before each step. */
  readonly ready: Effect.Effect<void, F | SqlFault>
  /** Whether the database is a SQLite file. */
  readonly isFile: boolean
  /** Timeout of a step. Default: none, because the caller limits the time. */
  readonly deadline?: Duration.Input | undefined
  /** Converts the fault of a step to the error of the store. */
  readonly toError: (fault: StepFault) => F
}

/**
 * Makes the function that runs steps of a store, repeated while another process has locked the SQLite file.
 *
 * A caller that is interrupted, or whose step is late, does not wait for the step: the step is interrupted in the
 * background, because its interruption can take as long as the step itself. After that, `afterwards` runs.
 */
export const makeStep = <F>({ deadline = Duration.infinity, isFile, ready, toError }: StepOptions<F>) => {
  const describe = (fault: SqlFault): StepFault => {
    if (fault._tag !== "SqlError") return { reason: "malformed", tag: fault._tag, detail: fault.message }
    const tag = fault.reason._tag
    return { reason: "away", tag, detail: isFile ? fault.message : tag }
  }
  return <A, E>(effect: Effect.Effect<A, E>, afterwards: Effect.Effect<void> = Effect.void) =>
    Effect.andThen(ready, effect).pipe(
      Effect.retry({ schedule: Schedule.spaced("20 millis"), while: isLocked }),
      Effect.catchIf(isFault, (fault) => Effect.fail(toError(describe(fault)))),
      Effect.interruptible,
      Effect.forkDetach({ startImmediately: true }),
      Effect.flatMap((fiber) =>
        Effect.onInterrupt(
          Fiber.join(fiber),
          () => Effect.forkDetach(Effect.andThen(Fiber.interrupt(fiber), afterwards))
        )
      ),
      Effect.interruptible,
      SharedStore.within(deadline, (detail) => toError({ reason: "away", tag: "TimeoutError", detail }))
    )
}

/** Opens a store in the database of the context. */
export const make = Effect.fnUntraced(
  function*<F>({ deadline, migrations, prepare, refuseNewer, table, toError }: Options<F>) {
    const sql = yield* SqlClient.SqlClient
    const isFile = sql.onDialectOrElse({ sqlite: () => true, orElse: () => false })

    let isReady = migrations === undefined
    const one = yield* Semaphore.make(1)
    const migrate = Effect.gen(function*() {
      if (isReady) return
      const statements = migrations?.(isFile ? "BLOB" : "BYTEA") ?? {}
      yield* Migrator.make({})({
        table,
        loader: Migrator.fromRecord(
          Record.map(statements, (texts) => Effect.forEach(texts, (text) => sql.unsafe(text), { discard: true }))
        )
      })
      if (refuseNewer !== undefined) {
        const known = Number.parseInt(Object.keys(statements).at(-1) ?? "", 10)
        const [{ version }] = yield* decodeVersion(yield* sql`SELECT MAX(migration_id) AS version FROM ${sql(table)}`)
        if (version > known) {
          return yield* Effect.fail(
            toError({ reason: "newer", tag: "NewerTables", detail: refuseNewer(version, known) })
          )
        }
      }
      yield* prepare?.(sql, isFile) ?? Effect.void
      isReady = true
    }).pipe(Effect.provideService(SqlClient.SqlClient, sql), one.withPermits(1))
    const ready = Effect.suspend(() => isReady ? Effect.void : migrate)
    /** Runs a step after the tables are ready. See {@link makeStep}. */
    const step = makeStep({ ready, isFile, deadline, toError })

    return { sql, isFile, step }
  }
)
