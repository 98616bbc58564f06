/** Upstream addresses, deadlines and limits as configuration: one reading of a setting for every package that has one. */
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"

const words = (text: string): ReadonlyArray<string> =>
  text.split(",").map((word) => word.trim()).filter((word) => word !== "")

/** Words separated by commas; blanks around them are dropped. */
export const CommaSeparated = Schema.String.pipe(
  Schema.decodeTo(Schema.Array(Schema.String), {
    decode: SchemaGetter.transform(words),
    encode: SchemaGetter.transform((list) => list.join(","))
  })
)

const isBaseUrl = Schema.makeFilter<string>((text) =>
  /^https?:\/\/[^\s/?#]+(?:\/[^\s?#]*)?$/u.test(text) && URL.canParse(text)
    ? undefined
    : "an http or https URL without query"
)

// what is written and names no address is a mistake, not the absence of a setting
const namesSomething = Schema.makeFilter<string>((text) =>
  text === "" || words(text).length > 0 ? undefined : "at least one URL"
)

/** Base URLs separated by commas, each redacted: the endpoint key is in the path. */
export const BaseUrls = Schema.String.check(namesSomething).pipe(
  Schema.decodeTo(CommaSeparated),
  Schema.decodeTo(Schema.Array(Schema.RedactedFromValue(Schema.String.check(isBaseUrl))))
)

/** The base URLs of a setting, in order of preference; none when it is not set. */
export const baseUrls = (name: string): Config.Config<ReadonlyArray<Redacted.Redacted>> =>
  Config.withDefault(Config.schema(BaseUrls, name), [])

const isPositive = Schema.makeFilter<Duration.Duration>((duration) =>
  Duration.toMillis(duration) > 0 ? undefined : "a duration above zero"
)

const abbreviations: { readonly [unit: string]: string } = { ms: "millis", s: "seconds", m: "minutes" }

const spelledOut = (text: string): string =>
  text.replace(
    /^([0-9.]+)\s*([a-zA-Z]+)$/u,
    (_, amount: string, unit: string) => `${amount} ${Object.hasOwn(abbreviations, unit) ? abbreviations[unit] : unit}`
  )

/** A duration with its unit (`10 seconds`, `500ms`); a bare number is refused, nobody can tell its unit. */
export const DurationWithUnit = Schema.String.check(Schema.isPattern(/^[0-9]+(?:\.[0-9]+)?\s*[a-zA-Z]+$/u)).pipe(
  Schema.decodeTo(Schema.String, {
    decode: SchemaGetter.transform(spelledOut),
    encode: SchemaGetter.passthrough()
  }),
  Schema.decodeTo(Schema.DurationFromString.check(isPositive))
)

/** The deadline of a setting. */
export const deadline = (name: string, fallback: Duration.Input): Config.Config<Duration.Duration> =>
  Config.withDefault(Config.schema(DurationWithUnit, name), Duration.fromInputUnsafe(fallback))

const Positive = Schema.FiniteFromString.check(Schema.isGreaterThan(0))

/** The limit of a setting: a number above zero. */
export const limit = (name: string): Config.Config<number> => Config.schema(Positive, name)
