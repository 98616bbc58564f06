/**
 * How a setting is declared: the environment variable, the accepted text, the default and the documentation.
 *
 * Each package declares the settings of its own options. The server's table gathers them; its flags and its file, `--help` and
 * docs/configuration.md are derived from that table, so a text means the same in a served gateway and in an embedded program.
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
  /** What a text has to be; completes "expected …". */
  readonly takes: string
  /** A description of the default. */
  readonly unset: string
  /** Whether a refusal may say what is wrong with the text, which then holds no secret. */
  readonly isTold?: true
  /** Whether a gateway that serves has to start again to take another value. */
  readonly needsRestart?: boolean
}

/** A setting: a `Config` that decodes it and gives its default when it is not set, with its name and documentation. */
export interface Setting<A> extends Config.Config<A>, Texts {
  readonly env: string
  /** The flag of `trigate serve` without its dashes: `read-deadline` for `TRIGATE_READ_DEADLINE`. */
  readonly flag: string
  /** The decoded default. */
  readonly fallback: A
}

const flagName = (env: string): string => env.replace(/^TRIGATE_/u, "").toLowerCase().replaceAll("_", "-")

const make = <A>(env: string, config: Config.Config<A>, fallback: A, texts: Texts): Setting<A> =>
  Object.assign(Config.withDefault(config, fallback), { env, flag: flagName(env), fallback, ...texts })

/** Declares a setting whose default is a text like any other. */
export const withDefault = <A>(
  env: string,
  schema: Schema.Codec<A, string>,
  unset: string,
  texts: Omit<Texts, "unset">
): Setting<A> => make(env, Config.schema(schema, env), Schema.decodeSync(schema)(unset), { unset, ...texts })

/** Declares a setting without a default. */
export const optional = <A>(
  env: string,
  schema: Schema.Codec<A, string>,
  texts: Omit<Texts, "unset">,
  unset = "unset"
): Setting<Option.Option<A>> =>
  make(env, Config.map(Config.schema(schema, env), Option.some), Option.none(), { unset, ...texts })

/** Declares a setting that names several things, by default none. */
export const list = <A>(
  env: string,
  schema: Schema.Codec<ReadonlyArray<A>, string>,
  texts: Omit<Texts, "unset">,
  unset = "unset"
): Setting<ReadonlyArray<A>> => make(env, Config.schema(schema, env), [], { unset, ...texts })

/** Returns the comma-separated words of a text, without the empty ones. */
export const words = (text: string): ReadonlyArray<string> =>
  text.split(",").map((word) => word.trim()).filter((word) => word !== "")

const CommaSeparated = Schema.String.pipe(
  Schema.decodeTo(Schema.Array(Schema.String), {
    decode: SchemaGetter.transform(words),
    encode: SchemaGetter.transform((list) => list.join(","))
  })
)

/** One or more words, comma separated. */
export const nonEmptyWords = <A>(word: Schema.Codec<A, string>) =>
  CommaSeparated.pipe(Schema.decodeTo(Schema.NonEmptyArray(word)))

/** Returns the check of a text that completes "expected …". */
export const filtered = (expected: string, isValid: (text: string) => boolean) =>
  Schema.makeFilter<string>((text) => isValid(text) ? undefined : expected)

/** `*`. */
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

// a text that is set and names no URL is a mistake, unlike an empty one
const namesSomething = filtered("at least one URL", (text) => text === "" || words(text).length > 0)

/** Checks a base URL. */
export const isBaseUrl = filtered(
  "an http or https URL without query",
  (text) => /^https?:\/\/[^\s/?#]+(?:\/[^\s?#]*)?$/u.test(text) && URL.canParse(text)
)

/** Base URLs, redacted because the endpoint key is in the path. */
export const BaseUrls = Schema.String.check(namesSomething).pipe(
  Schema.decodeTo(CommaSeparated),
  Schema.decodeTo(Schema.Array(Schema.RedactedFromValue(Schema.String.check(isBaseUrl))))
)

/** Checks the URL of a WebSocket. */
const isSocketUrl = filtered(
  "a ws or wss URL",
  (text) => /^wss?:\/\/[^\s/?#]+(?:[/?][^\s#]*)?$/u.test(text) && URL.canParse(text)
)

/** URLs of WebSockets, redacted because a key may be in them. */
export const SocketUrls = Schema.String.check(namesSomething).pipe(
  Schema.decodeTo(CommaSeparated),
  Schema.decodeTo(Schema.Array(Schema.RedactedFromValue(Schema.String.check(isSocketUrl))))
)

const units: { readonly [abbreviation: string]: string } = { ms: "millis", s: "seconds", m: "minutes" }

const spelledOut = (text: string): string =>
  text.replace(
    /^([0-9.]+)\s*([a-zA-Z]+)$/u,
    (_, amount: string, unit: string) => `${amount} ${Object.hasOwn(units, unit) ? units[unit] : unit}`
  )

const isPositive = Schema.makeFilter<Duration.Duration>((duration) =>
  Duration.toMillis(duration) > 0 ? undefined : "a duration above zero"
)

/** What {@link Age} accepts. */
export const duration = "a duration with its unit, like `500ms` or `10 seconds`"

/** A duration with its unit. The pattern refuses a bare number: it could be milliseconds or seconds. */
export const Age = Schema.String.check(Schema.isPattern(/^[0-9]+(?:\.[0-9]+)?\s*[a-zA-Z]+$/u)).pipe(
  Schema.decodeTo(Schema.String, {
    decode: SchemaGetter.transform(spelledOut),
    encode: SchemaGetter.passthrough()
  }),
  Schema.decodeTo(Schema.DurationFromString)
)

/** A duration above zero. */
export const Deadline = Age.check(isPositive)

/** What {@link OnOff} accepts. */
export const onOff = "`on` or `off`"
/** What {@link BaseUrls} accepts. */
export const baseUrls = "http(s) base URLs, comma separated, without query"
/** What {@link SocketUrls} accepts. */
export const socketUrls = "ws(s) URLs, comma separated"
/** What {@link Positive} accepts. */
export const positive = "a number above zero"
/** What a setting of type {@link Count} takes. */
export const count = "an integer above zero"

/** The decoded values of settings. */
export type Values<Settings> = { readonly [Name in keyof Settings]: Config.Success<Settings[Name]> }
