/** Which action log the settings ask for: the same for the gateway that writes it and the tool that reads it. */
import type { Settings } from "@trigate/domain/Settings"
import type { Backing } from "@trigate/trading/ActionLog"
import type { Options } from "@trigate/trading/ActionLogSql"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Database from "./Database.ts"

/** The database of the action log; none if `TRIGATE_DATABASE_URL` is not set. */
export const databaseOf = (settings: Settings): Option.Option<Database.Place> =>
  Option.map(settings.databaseUrl, Database.placeOf)

/** Where a live gateway keeps its action log: the database if there is one, else Redis, else memory. */
export const backingOf = (settings: Settings): Backing =>
  Option.match(databaseOf(settings), {
    onNone: () => Option.isSome(settings.redisUrl) ? "Redis" : "memory",
    onSome: ({ kind }) => kind
  })

/** How long an action may be `sent`: its deadline, and some time to record the end. */
export const leaseOf = (settings: Settings): Duration.Duration =>
  Duration.sum(settings.onceDeadline, Duration.seconds(10))

/** The options of a log in a database. */
export const optionsOf = (settings: Settings): Options => ({
  network: settings.network,
  lease: leaseOf(settings)
})
