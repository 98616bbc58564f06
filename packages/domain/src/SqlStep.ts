/** Steps in a SQL database, for the stores of several packages. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type * as Scope from "effect/Scope"
import type * as Migrator from "effect/sql/Migrator"
import type { SqlError } from "effect/sql/SqlError"
import { Millis } from "./encoding/Encoding.ts"

/** A failed step: the statement, the migration of the tables, or the decoding of the rows. */
export type SqlFault = SqlError | Migrator.MigrationError | Schema.SchemaError

/** The value of a column of the type `BIGINT`, from 0 to 2^53 - 1. Postgres returns a bigint, SQLite a number. */
export const BigintColumn = Schema.Union([
  Millis,
  Schema.BigInt.pipe(Schema.decodeTo(Millis, SchemaTransformation.transform({ decode: Number, encode: BigInt })))
])

type Tagged = { readonly _tag: string } | SqlError

const isSqlError = (fault: Tagged): fault is SqlError => fault._tag === "SqlError" && "reason" in fault

/** Returns the tag of a fault. Omits the message of a Postgres server, because it can contain the server's host name. */
export const faultTag = (fault: Tagged): string => isSqlError(fault) ? fault.reason._tag : fault._tag

/** Returns whether a step failed because another process has locked the SQLite file. */
export const isLocked = (fault: Tagged): boolean => isSqlError(fault) && fault.reason._tag === "LockTimeoutError"

/** The schedule on which a step is retried while another process has locked the SQLite file. */
export const lockedSchedule = Schedule.spaced("20 millis")

/**
 * Makes the function that runs a step in `scope`. A caller that is interrupted does not wait for the step: the step is
 * interrupted in the background, because its interruption can take as long as the step itself. After that, `late` runs.
 */
export const runIn =
  (scope: Scope.Scope) =>
  <A, E, R>(step: Effect.Effect<A, E, R>, late: Effect.Effect<void> = Effect.void): Effect.Effect<A, E, R> =>
    Effect.flatMap(
      Effect.forkIn(Effect.interruptible(step), scope, { startImmediately: true }),
      (fiber) =>
        Effect.onInterrupt(
          Fiber.join(fiber),
          () => Effect.forkIn(Effect.andThen(Fiber.interrupt(fiber), late), scope)
        )
    )

/** Returns an effect that runs `prepare`, and does nothing after `prepare` has succeeded once. */
export const untilReady = <E>(prepare: Effect.Effect<unknown, E>): Effect.Effect<void, E> => {
  let isReady = false
  const prepared = Effect.map(prepare, () => {
    isReady = true
  })
  return Effect.suspend(() => isReady ? Effect.void : prepared)
}
