/**
 * Declarations of settings: the environment variable, the accepted values, the default and the documentation.
 *
 * Each package declares the settings for its options, and the server collects all settings in one table. Flags, the
 * configuration file, `--help` and docs/configuration.md are derived from that table. A setting therefore has the same
 * meaning in a gateway and in a program that embeds the services.
 */
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"

/** The groups of the settings, in the order of `--help` and docs/configuration.md. */
export const groups = [
  "Listening",
  "Callers",
  "Upstreams",
  "Relaying",
  "Limits",
  "Streams",
  "Caching",
  "Stores",
  "Candle archive",
  "Sandbox",
  "Logs",
  "Telemetry"
] as const

/** The documentation of a setting. */
interface Texts {
  readonly group: (typeof groups)[number]
  readonly meaning: string
  /** The accepted values, as a phrase that follows "expected" in error messages. */
  readonly takes: string
  /** A description of the default. */
  readonly unset: string
  /** Whether error messages are allowed to quote the value. Set only for a setting whose value is not a secret. */
  readonly isPublic?: true
  /** Whether a new value takes effect only after a restart of the gateway. */
  readonly needsRestart?: boolean
}

/** A `Config` that decodes a setting's value or returns its default, with the setting's name and documentation. */
export interface Setting<A> extends Config.Config<A>, Texts {
  readonly env: string
  /** The flag of `trigate serve` without its dashes: `read-deadline` for `TRIGATE_READ_DEADLINE`. */
  readonly flag: string
  /** The decoded default. */
  readonly fallback: A
}

const flagName = (env: string): string => env.replace(/^TRIGATE_/u, "").toLowerCase().replaceAll("_", "-")

/** The documentation of a setting. If the schema is of this module, the accepted values can be omitted. */
type Stated = Omit<Texts, "takes" | "unset"> & Partial<Pick<Texts, "takes">>

const make = <A>(
  env: string,
  config: Config.Config<A>,
  fallback: A,
  schema: unknown,
  texts: Stated & Pick<Texts, "unset">
): Setting<A> =>
  Object.assign(Config.withDefault(config, fallback), {
    takes: accepted.get(schema) ?? "text",
    env,
    flag: flagName(env),
    fallback,
    ...texts
  })

/** Declares a setting with a default. The default is text, and is decoded in the same way as a configured value. */
export const withDefault = <A>(
  env: string,
  schema: Schema.Codec<A, string>,
  unset: string,
  texts: Stated
): Setting<A> => make(env, Config.schema(schema, env), Schema.decodeSync(schema)(unset), schema, { unset, ...texts })

/** Declares a setting without a default. */
export const optional = <A>(
  env: string,
  schema: Schema.Codec<A, string>,
  texts: Stated,
  unset = "unset"
): Setting<Option.Option<A>> =>
  make(env, Config.map(Config.schema(schema, env), Option.some), Option.none(), schema, { unset, ...texts })

/** Declares a setting that contains a list. Default: empty. */
export const list = <A>(
  env: string,
  schema: Schema.Codec<ReadonlyArray<A>, string>,
  texts: Stated,
  unset = "unset"
): Setting<ReadonlyArray<A>> => make(env, Config.schema(schema, env), [], schema, { unset, ...texts })

/** Splits comma-separated text; omits empty items. */
export const words = (text: string): ReadonlyArray<string> =>
  text.split(",").map((word) => word.trim()).filter((word) => word !== "")

const CommaSeparated = Schema.String.pipe(
  Schema.decodeTo(Schema.Array(Schema.String), {
    decode: SchemaGetter.transform(words),
    encode: SchemaGetter.transform((list) => list.join(","))
  })
)

/** Makes a schema of one or more comma-separated words, each decoded by `word`. */
export const nonEmptyWords = <A>(word: Schema.Codec<A, string>) =>
  CommaSeparated.pipe(Schema.decodeTo(Schema.NonEmptyArray(word)))

/** Makes a schema check for text. The error message is `expected`: a phrase that describes valid text. */
export const filtered = (expected: string, isValid: (text: string) => boolean) =>
  Schema.makeFilter<string>((text) => isValid(text) ? undefined : expected)

/** The wildcard `*`. */
export const Any = Schema.Literal("*")

/** `on` or `off`. */
export const OnOff = Schema.Literals(["on", "off"]).pipe(
  Schema.decodeTo(Schema.Boolean, {
    decode: SchemaGetter.transform((word) => word === "on"),
    encode: SchemaGetter.transform((value) => value ? "on" as const : "off" as const)
  })
)

/** A number above zero. */
export const Positive = Schema.FiniteFromString.check(Schema.isGreaterThan(0))

/** An integer above zero. */
export const Count = Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThan(0))

// empty text is accepted and means that the setting is unset; text that contains only commas or spaces is refused
const namesSomething = filtered("at least one URL", (text) => text === "" || words(text).length > 0)

const urls = (isUrl: ReturnType<typeof filtered>) =>
  Schema.String.check(namesSomething).pipe(
    Schema.decodeTo(CommaSeparated),
    Schema.decodeTo(Schema.Array(Schema.RedactedFromValue(Schema.String.check(isUrl))))
  )

/** Checks that a text is a base URL. */
export const isBaseUrl = filtered(
  "an http or https URL without query",
  (text) => /^https?:\/\/[^\s/?#]+(?:\/[^\s?#]*)?$/u.test(text) && URL.canParse(text)
)

/** Comma-separated base URLs. They are redacted because the path can contain the node provider's endpoint key. */
export const BaseUrls = urls(isBaseUrl)

/** Checks that a text is a WebSocket URL. */
const isSocketUrl = filtered(
  "a ws or wss URL",
  (text) => /^wss?:\/\/[^\s/?#]+(?:[/?][^\s#]*)?$/u.test(text) && URL.canParse(text)
)

/** Comma-separated WebSocket URLs. They are redacted because they can contain the node provider's endpoint key. */
export const SocketUrls = urls(isSocketUrl)

const units: { readonly [abbreviation: string]: string } = { ms: "millis", s: "seconds", m: "minutes" }

const spelledOut = (text: string): string =>
  text.replace(
    /^([0-9.]+)\s*([a-zA-Z]+)$/u,
    (_, amount: string, unit: string) => `${amount} ${Object.hasOwn(units, unit) ? units[unit] : unit}`
  )

const isPositive = Schema.makeFilter<Duration.Duration>((duration) =>
  Duration.toMillis(duration) > 0 ? undefined : "a duration above zero"
)

/** The description of {@link Age} for error messages. */
export const duration = "a duration with its unit, like `500ms` or `10 seconds`"

/** A duration with its unit. A bare number is refused, because its unit would be ambiguous. */
export const Age = Schema.String.check(Schema.isPattern(/^[0-9]+(?:\.[0-9]+)?\s*[a-zA-Z]+$/u)).pipe(
  Schema.decodeTo(Schema.String, {
    decode: SchemaGetter.transform(spelledOut),
    encode: SchemaGetter.passthrough()
  }),
  Schema.decodeTo(Schema.DurationFromString)
)

/** A duration above zero. */
export const Deadline = Age.check(isPositive)

/** The description of {@link OnOff} for error messages. */
export const onOff = "`on` or `off`"
/** The description of {@link Positive} for error messages. */
export const positive = "a number above zero"
/** The description of {@link Count} for error messages. */
export const count = "an integer above zero"

/** The accepted values of each schema, for a setting that does not state them. */
const accepted: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  [OnOff, onOff],
  [BaseUrls, "http(s) base URLs, comma separated, without query"],
  [SocketUrls, "ws(s) URLs, comma separated"],
  [Positive, positive],
  [Count, count],
  [Age, duration],
  [Deadline, duration]
])

/** The decoded values of settings. */
export type Values<Settings> = { readonly [Name in keyof Settings]: Config.Success<Settings[Name]> }
