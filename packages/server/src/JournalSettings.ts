/** What the settings say of the journal: the same for the gateway that writes it and for the tool that reads it. */
import type { Settings } from "@trigate/domain/Settings"
import type { Options } from "@trigate/trading/JournalSql"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Database from "./Database.ts"

/** The database, where one is configured. */
export const placeOf = (settings: Settings): Option.Option<Database.Place> =>
  Option.map(settings.databaseUrl, Database.placeOf)

/** How long a signed action may be without an answer: its deadline, and some time to write the end down. */
export const leaseOf = (settings: Settings): Duration.Duration =>
  Duration.sum(settings.onceDeadline, Duration.seconds(10))

/** What the journal has to know. */
export const optionsOf = (settings: Settings): Options => ({
  network: settings.network,
  lease: leaseOf(settings)
})
