/**
 * What the commands about a gateway's own stores work on: the stores that its settings name, or a gateway that runs.
 *
 * The settings are found as `trigate serve` finds them. Each command says on standard error what it found, since the same words on
 * another machine, or in another folder, mean another store.
 */
import type { Settings as Decoded } from "@trigate/server/settings/Settings"
import * as Settings from "@trigate/server/settings/SettingsSources"
import * as CallerStore from "@trigate/server/stores/CallerStore"
import type * as Effect from "effect/Effect"
import * as ServeCommand from "./commands/ServeCommand.ts"
import * as Output from "./Output.ts"

/** The flags that name files of settings, as those of `trigate serve`. */
export const files = ServeCommand.files

/** The settings of a gateway whose stores a command uses; `flags` are members that the command has as flags of its own. */
export const settings = (
  given: ServeCommand.Files,
  flags: { readonly [name: string]: string } = {}
) => Settings.read({ ...ServeCommand.sourcesOf(given), flags })

/** Says on standard error which store a command uses: a database by its kind, a file by its path. */
export const tellStore = (what: string, place: CallerStore.Place, { network }: Decoded): Effect.Effect<void> =>
  Output.tell([`${what}: ${place.kind === "SQLite" ? place.file : CallerStore.nameOf(place)} (${network})`])

/** Says on standard error which gateway a command asks. */
export const tellGateway = (what: string, { origin }: { readonly origin: string }): Effect.Effect<void> =>
  Output.tell([`${what}: the gateway at ${origin}`])
