/** Reads the settings from the environment. A mistake stops the start with one line that names the setting. */
import { all, commandLine, settings } from "@trigate/domain/Settings"
import type { Settings } from "@trigate/domain/Settings"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** A setting that cannot be used. The message is one line; it never quotes the value, which may hold an endpoint key. */
export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  setting: Schema.String,
  message: Schema.String
}) {}

const declared = Object.values(settings)

const refusal = ({ message }: Config.ConfigError): SettingsError => {
  const found = declared.find(({ env }) => message.includes(env))
  return found === undefined
    ? new SettingsError({ setting: "", message: "The environment could not be read" })
    : new SettingsError({ setting: found.env, message: `${found.env} is not valid: expected ${found.takes}` })
}

const known: ReadonlySet<string> = new Set([...declared.map(({ env }) => env), ...Object.values(commandLine)])

/** Refuses a name that begins with `TRIGATE_` and is no setting, so that a typing error does not go unnoticed. */
export const refuseUnknown = (names: ReadonlyArray<string>): Effect.Effect<void, SettingsError> => {
  const unknown = names.find((name) => name.startsWith("TRIGATE_") && !known.has(name))
  return unknown === undefined
    ? Effect.void
    : Effect.fail(
      new SettingsError({ setting: unknown, message: `${unknown} is not a setting; see npm start -- --help` })
    )
}

/** All settings, from the `ConfigProvider` of the context. */
export const load: Effect.Effect<Settings, SettingsError> = Effect.mapError(all, refusal)
