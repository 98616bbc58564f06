/**
 * Reads the settings of a gateway from flags, the environment, and the file `trigate.config.{json,yaml,toml}`, and
 * lists those in effect with their sources.
 *
 * An error is one line with the name of the setting as written, its location, and the accepted values. It never quotes
 * the value, which may contain an endpoint key.
 */
import type { SettingValue } from "@trigate/api/unstable/AdminApi"
import * as Policy from "@trigate/domain/actions/Policy"
import * as Json from "@trigate/domain/encoding/Encoding"
import { closestWord } from "@trigate/domain/errors/Problem"
import type * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { parseEnv } from "node:util"
import { addressNames, all, commandLine, sandboxFlag, settings, settings as allSettings } from "./Settings.ts"
import type { GivenSetting, Settings } from "./Settings.ts"

/** An invalid setting. The message is one line; it never quotes the value, which may contain an endpoint key. */
export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  setting: Schema.String,
  message: Schema.String
}) {}

const declared = Object.values(settings)

const names = Struct.keys(settings)

const addresses: ReadonlySet<string> = new Set(addressNames)

/** The settings that were set, by the name of their environment variable. */
type Given = ReadonlyMap<string, GivenSetting>

/** Returns the description of a setting's error, without secrets. */
const describeIssue = (message: string): string | undefined =>
  /^SchemaError\((?<why>[^\n]{1,200})\n {2}at \[/u.exec(message)?.groups?.["why"]

const refusal = (sources: Given) => ({ message }: Config.ConfigError): SettingsError => {
  const found = declared.find(({ env }) => message.includes(env))
  return found === undefined
    ? new SettingsError({ setting: "", message: "The environment could not be read" })
    : new SettingsError({
      setting: found.env,
      message: `${sources.get(found.env)?.source ?? found.env} is not valid: ${
        (found.isPublic === true ? describeIssue(message) : undefined) ?? `expected ${found.takes}`
      }`
    })
}

const nearest = (name: string, known: Iterable<string>): string => {
  const word = closestWord(name, known)
  return word === undefined ? "" : ` (did you mean ${word}?)`
}

const unknown = (setting: string, place: string, known: Iterable<string>): SettingsError =>
  new SettingsError({
    setting,
    message: `${setting}${place} is not a setting${nearest(setting, known)}; see trigate serve --help`
  })

const variables: ReadonlySet<string> = new Set([...declared.map(({ env }) => env), ...Object.values(commandLine)])

/** Environment variables by name; `undefined` if not set. */
export interface Environment {
  readonly [name: string]: string | undefined
}

/** Refuses an unknown name that begins with `TRIGATE_`, so that a misspelled setting is reported. */
const refuseUnknown = (environment: Environment, place: string): Effect.Effect<void, SettingsError> => {
  const found = Object.keys(environment).find((name) => name.startsWith("TRIGATE_") && !variables.has(name))
  return found === undefined ? Effect.void : Effect.fail(unknown(found, place, variables))
}

/** Reads all settings from the `ConfigProvider` of the context. */
export const load: Effect.Effect<Settings, SettingsError> = Effect.mapError(all, refusal(new Map()))

/** The whole environment of the process, because unknown names are refused. */
export const ProcessEnvironment = Context.Reference<Environment>(
  "@trigate/server/settings/SettingsSources/ProcessEnvironment",
  {
    defaultValue: () => process.env
  }
)

/** The sources of settings in addition to the {@link ProcessEnvironment}. */
export interface Sources {
  /** The command-line flags, by setting name. */
  readonly flags?: { readonly [name: string]: string } | undefined
  /** A file of `NAME=value` lines for variables that the environment does not set. */
  readonly environmentFile?: string | undefined
  /** The settings file. Default: `trigate.config.{json,yaml,toml}` in the working directory, if it exists. */
  readonly file?: string | undefined
  /** Whether to ignore upstream URLs from all sources. Default: false. */
  readonly withoutAddresses?: boolean
}

const fault = (message: string): SettingsError => new SettingsError({ setting: "", message })

const readText = (file: string) =>
  Effect.mapError(
    FileSystem.FileSystem.use((files) => files.readFileString(file)),
    () => fault(`${file} cannot be read`)
  )

const assignment = /^\s*(?:export\s+)?[\w.-]+\s*=\s*(?<value>.*)$/u

/**
 * Returns the number of the first line of an environment file that is neither a comment nor an assignment, nor part of
 * a quoted value of several lines.
 */
const findNoAssignment = (text: string): number | undefined => {
  let quote: string | undefined
  for (const [index, line] of text.split(/\r?\n/u).entries()) {
    if (quote !== undefined) {
      if (line.includes(quote)) quote = undefined
      continue
    }
    if (/^\s*(?:#|$)/u.test(line)) continue
    const value = assignment.exec(line)?.groups?.["value"]
    if (value === undefined) return index + 1
    const [first = ""] = value
    if (/["'`]/u.test(first) && !value.slice(1).includes(first)) quote = first
  }
  return undefined
}

/** Reads a file of `NAME=value` lines. */
const readEnvironmentFile = Effect.fnUntraced(function*(file: string) {
  const text = yield* readText(file)
  const line = findNoAssignment(text)
  if (line !== undefined) return yield* fault(`${file} is not valid: its line ${line} is not NAME=value`)
  return parseEnv(text)
})

/**
 * Returns the number of the line at which JSON is not valid: the first line after which no text could complete the
 * document.
 */
const findJsonLine = (text: string): number => {
  const lines = text.split("\n")
  // a text that can be completed is not valid at its end only
  const endings = ["", "0", "\"", "\":0", ":0", "\"\":0", ",0", ",\"\":0"]
  const isOpen = (count: number): boolean => {
    const begun = lines.slice(0, count).join("\n")
    const brackets = closing(begun)
    return endings.some((ending) => Json.isJson(begun + ending + brackets))
  }
  const found = lines.findIndex((_, index) => !isOpen(index + 1))
  return found < 0 ? lines.length : found + 1
}

/** Returns the brackets that close those that a JSON text opens. */
const closing = (text: string): string => {
  const open: Array<string> = []
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"?|[[\]{}]/gu)) {
    if (token === "[") open.push("]")
    else if (token === "{") open.push("}")
    else if (token === "]" || token === "}") open.pop()
  }
  return open.toReversed().join("")
}

const withoutValue = (kind: string) => (error: { readonly message: string }): string => {
  // the parser's own message may quote a value
  const line = /at line (?<line>\d+)/u.exec(error.message)?.groups?.["line"]
  return `is not valid ${kind}${line === undefined ? "" : `: see its line ${line}`}`
}

const unreadable = (cause: unknown) => ({ message: String(cause) })

/** Returns the number of the first line from which on no part of a YAML document can be read. */
const findYamlLine = Effect.fnUntraced(function*<E>(text: string, read: (part: string) => Effect.Effect<unknown, E>) {
  const lines = text.trimEnd().split("\n")
  let line = lines.length
  while (line > 1 && !(yield* Effect.isSuccess(read(lines.slice(0, line - 1).join("\n"))))) line--
  return line
})

/** The parser for each file type. A parser is loaded only if the settings file has its type. */
const parsers: ReadonlyMap<string, (text: string) => Effect.Effect<unknown, string>> = new Map([
  ["json", (text) =>
    Effect.mapError(
      Effect.fromResult(Json.parseStrict(text)),
      () => `is not valid JSON${Json.isJson(text) ? "" : `: see its line ${findJsonLine(text)}`}`
    )],
  ["yaml", (text) =>
    Effect.flatMap(Effect.promise(() => import("effect/encoding/Yaml")), ({ parse }) => {
      const read = (part: string) => Effect.try({ try: () => parse(part), catch: unreadable })
      return read(text).pipe(Effect.catch((error) => {
        const why = withoutValue("YAML")(error)
        return why.includes("line")
          ? Effect.fail(why)
          : Effect.flatMap(findYamlLine(text, read), (line) => Effect.fail(`${why}: see its line ${line}`))
      }))
    })],
  ["toml", (text) =>
    Effect.flatMap(
      Effect.promise(() => import("effect/encoding/Toml")),
      ({ parse }) => Effect.mapError(Effect.fromResult(parse(text)), withoutValue("TOML"))
    )]
])

const isScalar = (value: unknown): value is string | number | boolean =>
  Predicate.isString(value) || Predicate.isNumber(value) || Predicate.isBoolean(value)

const scalarText = (value: string | number | boolean): string =>
  Predicate.isBoolean(value) ? (value ? "on" : "off") : String(value)

/**
 * Formats a value of a settings file as the text of an environment variable; `undefined` if a variable cannot represent
 * the value.
 */
const memberText = (value: unknown): string | undefined => {
  if (value === null) return ""
  if (isScalar(value)) return scalarText(value)
  return Array.isArray(value) && value.every(isScalar) ? value.map(scalarText).join(",") : undefined
}

/** Returns the extension of a file; `yml` is equivalent to `yaml`. */
const fileKind = (file: string): string => file.slice(file.lastIndexOf(".") + 1).toLowerCase().replace(/^yml$/u, "yaml")

/** Reads and parses a file of one of the types of {@link parsers}. `what` describes the expected content. */
const readDocument = Effect.fnUntraced(function*(file: string, what: string) {
  const parse = parsers.get(fileKind(file))
  if (parse === undefined) return yield* fault(`${file} is not ${what}: expected .json, .yaml or .toml`)
  return yield* Effect.mapError(parse(yield* readText(file)), (why) => fault(`${file} ${why}`))
})

/** Reads the policies of a file. Fails with all mistakes in it, each with its path. */
export const readPolicies = Effect.fnUntraced(function*(file: string) {
  const document = yield* readDocument(file, "a file of policies")
  return yield* Effect.mapError(
    Policy.decode(document),
    ({ errors }) =>
      new SettingsError({
        setting: settings.guard.env,
        message: `${file} is not valid: ${
          errors.slice(0, maxMistakes).map(({ message, path }) => `${path.join(".") || "the document"}: ${message}`)
            .join("; ")
        }${errors.length > maxMistakes ? `; and ${errors.length - maxMistakes} more` : ""}`
      })
  )
})

/** Reads the policies of the file that the settings name. */
export const withPolicies = Effect.fnUntraced(function*(settings: Settings): Effect.fn.Return<
  Settings,
  SettingsError,
  FileSystem.FileSystem
> {
  return Option.isNone(settings.guard)
    ? settings
    : { ...settings, policies: yield* readPolicies(settings.guard.value) }
})

/** Maximum number of mistakes in a file of policies that one message lists. */
const maxMistakes = 10

/** Reads a settings file. Returns the text of each setting, by the name of its environment variable. */
const readFile = Effect.fnUntraced(function*(file: string) {
  const members = (yield* readDocument(file, "a settings file")) ?? {}
  if (!Predicate.isObject(members) || Array.isArray(members)) {
    return yield* fault(`${file} is not a settings file: expected an object with settings`)
  }
  const texts = new Map<string, string>()
  for (const [member, value] of Object.entries(members)) {
    const name = names.find((name) => name === member)
    if (name === undefined) return yield* unknown(member, ` in ${file}`, names)
    const { env, takes } = settings[name]
    const text = memberText(value)
    if (text === undefined) {
      return yield* new SettingsError({
        setting: env,
        message: `${member} in ${file} is not valid: expected ${takes}`
      })
    }
    texts.set(env, text)
  }
  return texts
})

const standardFiles = [...parsers.keys()].map((kind) => `trigate.config.${kind}`)

const findFile = Effect.gen(function*() {
  const files = yield* FileSystem.FileSystem
  const found = yield* Effect.filter(standardFiles, (file) => Effect.orElseSucceed(files.exists(file), () => false))
  const [first, second] = found
  if (first !== undefined && second !== undefined) {
    return yield* fault(`${first} and ${second} both exist: remove one, or select one with --config`)
  }
  return Option.fromUndefinedOr(first)
})

/** Reads the settings from all sources. An empty text means that a setting is not set. */
export const read: (
  sources: Sources
) => Effect.Effect<Settings, SettingsError, FileSystem.FileSystem> = Effect.fnUntraced(function*(sources) {
  const { environmentFile, flags = {} } = sources
  const environment = yield* ProcessEnvironment
  const more = environmentFile === undefined ? {} : yield* readEnvironmentFile(environmentFile)
  yield* refuseUnknown(environment, "")
  yield* refuseUnknown(more, ` in ${environmentFile}`)
  const file = sources.file === undefined ? yield* findFile : Option.some(sources.file)
  const members = yield* Option.match(file, {
    onNone: () => Effect.succeed<ReadonlyMap<string, string>>(new Map()),
    onSome: readFile
  })
  const given = new Map<string, GivenSetting>()
  const texts: Record<string, string> = {}
  for (const name of names) {
    if (sources.withoutAddresses === true && addresses.has(name)) continue
    const { env, flag } = settings[name]
    const places: ReadonlyArray<readonly [text: string | undefined, source: string]> = [
      [flags[name], `--${sources.withoutAddresses === true ? sandboxFlag(flag) : flag}`],
      [environment[env], env],
      [more[env], `${env} in ${environmentFile}`],
      [members.get(env), `${name} in ${Option.getOrElse(file, () => "")}`]
    ]
    const [text, source] = places.find(([text]) => text !== undefined && text !== "") ?? []
    if (text === undefined || source === undefined) continue
    texts[env] = text
    given.set(env, { text, source })
  }
  const decoded = yield* all.pipe(
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(texts)),
    Effect.mapError(refusal(given))
  )
  return yield* withPolicies({ ...decoded, sources: given })
})

/**
 * The settings of the gateway, in the order of their declaration. This service is optional for routes that are embedded
 * in another program: without it, they list no settings.
 *
 * @since 0.1.0
 * @category services
 */
export class EffectiveSettings extends Context.Service<EffectiveSettings, ReadonlyArray<SettingValue>>()(
  "@trigate/server/settings/SettingsSources/EffectiveSettings"
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
  return Object.entries(allSettings).map(([member, { env, group, meaning, needsRestart = false, unset }]) =>
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
