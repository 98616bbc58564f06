/** The settings of a running gateway as an operator reads them: value, source and meaning, without secrets. */
import type { SettingValue } from "@trigate/api/AdminApi"
import * as Context from "effect/Context"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { settings as declared } from "./Settings.ts"
import type { GivenSetting, Settings } from "./Settings.ts"

/**
 * The settings of the gateway, in the order of their declaration. This service is optional for routes that are embedded
 * in another program: without it, they list no settings.
 *
 * @since 0.1.0
 * @category services
 */
export class EffectiveSettings extends Context.Service<EffectiveSettings, ReadonlyArray<SettingValue>>()(
  "@trigate/server/settings/EffectiveSettings"
) {}

/** Returns whether a decoded value contains a secret at any depth. */
const isSecret = (value: unknown): boolean =>
  Redacted.isRedacted(value) ||
  (Option.isOption(value)
    ? Option.isSome(value) && isSecret(value.value)
    : Array.isArray(value)
    ? value.some(isSecret)
    : typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype &&
      Object.values(value).some(isSecret))

/** Returns the value and the source of a setting that was set. */
const readGiven = (given: GivenSetting | undefined, isSecret: boolean): Pick<SettingValue, "source" | "value"> => {
  if (given === undefined) return {}
  const { source, text } = given
  return isSecret ? { source } : { source, value: text }
}

/** Lists the settings with their sources. The value of a secret, and of an unset setting, is absent. */
export const list = (settings: Settings): ReadonlyArray<SettingValue> => {
  const secrets = new Set(Object.entries(settings).flatMap(([member, value]) => isSecret(value) ? [member] : []))
  return Object.entries(declared).map(([member, { env, group, meaning, needsRestart = false, unset }]) =>
    Object.assign(readGiven(settings.sources?.get(env), secrets.has(member)), {
      name: env,
      group,
      meaning,
      needsRestart,
      default: unset,
      isSecret: secrets.has(member)
    })
  )
}
