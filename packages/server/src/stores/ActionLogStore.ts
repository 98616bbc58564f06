/**
 * Selects the action log's store from the settings: for the gateway that writes the log, and for the command `trigate
 * actions`.
 */
import type * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import type { Backing } from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as ActionLogRedis from "@trigate/trading/actionLog/ActionLogRedis"
import * as ActionLogSql from "@trigate/trading/actionLog/ActionLogSql"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redis from "effect/persistence/Redis"
import * as Redacted from "effect/Redacted"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Settings } from "../settings/Settings.ts"

/** The location of a database. */
export type DatabaseLocation =
  | { readonly kind: "Postgres"; readonly url: Redacted.Redacted }
  | { readonly kind: "SQLite"; readonly file: string }

// a SQLite file is configured as `path`, `sqlite:path` or `file:path`
const parseLocation = (url: Redacted.Redacted): DatabaseLocation => {
  const text = Redacted.value(url)
  if (/^postgres(?:ql)?:/u.test(text)) return { kind: "Postgres", url }
  return { kind: "SQLite", file: text.replace(/^(?:sqlite|file):(?:\/\/(?=\/))?/u, "") }
}

/** Returns the action log's database; `None` if `TRIGATE_DATABASE_URL` is not set. */
export const findDatabase = (settings: Settings): Option.Option<DatabaseLocation> =>
  Option.map(settings.databaseUrl, parseLocation)

/** Returns the store of a live gateway's action log: the database if configured, otherwise Redis, otherwise memory. */
export const chooseBacking = (settings: Settings): Backing =>
  Option.match(findDatabase(settings), {
    onNone: () => Option.isSome(settings.redisUrl) ? "Redis" : "memory",
    onSome: ({ kind }) => kind
  })

// the maximum time that an action is in the state `sent`: the deadline of the action, and time to record its outcome
const leaseTime = (onceDeadline: Duration.Duration): Duration.Duration =>
  Duration.sum(onceDeadline, Duration.seconds(10))

/** Returns the options of an action log in a database. */
export const toSqlOptions = ({ network, onceDeadline }: Settings): ActionLogSql.Options => ({
  network,
  lease: leaseTime(onceDeadline)
})

/**
 * Provides the client of a database. In the mode `create`, a SQLite file that does not exist is created.
 *
 * The layer loads the driver when it is built, and connects on first use. A gateway can therefore start while its
 * database is unreachable.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerDatabase = (place: DatabaseLocation, mode: "create" | "existing"): Layer.Layer<SqlClient> =>
  Layer.unwrap(Effect.promise(() =>
    place.kind === "SQLite"
      ? import("@trigate/archive/SqliteClient").then((client) => client.layer({ file: place.file, mode }))
      : import("@effect/sql-pg/PgClient").then((client) =>
        Layer.orDie(client.layer({ url: place.url, applicationName: "trigate", connectTimeout: "2 seconds" }))
      )
  ))

/**
 * Provides the action log of a live gateway. `onceDeadline` returns the current deadline for a call that is sent at
 * most once.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  settings: Settings,
  redis: Option.Option<Layer.Layer<Redis.Redis>>,
  onceDeadline: () => Duration.Duration
): Layer.Layer<ActionLog.ActionLog> => {
  const { actionLogAlone, network } = settings
  const lease = () => leaseTime(onceDeadline())
  const inRedis = () =>
    Option.match(redis, {
      onNone: () => ActionLogMemory.layer(),
      onSome: (shared) =>
        ActionLogRedis.layer({ prefix: `trigate:{actions:${network}}:`, lease, alone: actionLogAlone }).pipe(
          Layer.provide(shared)
        )
    })
  return Option.match(findDatabase(settings), {
    onNone: inRedis,
    onSome: (place) => ActionLogSql.layer({ network, lease }).pipe(Layer.provide(layerDatabase(place, "create")))
  })
}
