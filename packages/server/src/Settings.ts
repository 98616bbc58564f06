/**
 * The gateway's settings, read from the environment: name, meaning and default are declared once.
 *
 * The same declarations give the decoded settings, the refusal of unknown names and the text of `--help`. A fault stops
 * the start with one line that names the setting; it never quotes the value, which may hold an endpoint key.
 */
import { longestBatch } from "@trigate/api/JsonRpcSchema"
import { Address } from "@trigate/domain/Hex"
import * as RateLimiter from "@trigate/upstream/RateLimiter"
import * as UpstreamConfig from "@trigate/upstream/UpstreamConfig"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as CommandLineNames from "./CommandLineNames.ts"
import { isDatabaseUrl } from "./Database.ts"

/** What stops the start: one line that names the setting. */
export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  setting: Schema.String,
  message: Schema.String
}) {}

const OnOff = Schema.Literals(["on", "off"])
const Host = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9.:_-]{1,255}$/u))
const Port = Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 65535 }))
const BatchCalls = Schema.FiniteFromString.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 1, maximum: longestBatch })
)
const ActionTypes = UpstreamConfig.CommaSeparated.pipe(
  Schema.decodeTo(Schema.NonEmptyArray(Schema.String.check(Schema.isPattern(/^[A-Za-z][A-Za-z0-9]{0,63}$/u))))
)
// as browsers write it: lower case, no default port, no path
const isOrigin = Schema.makeFilter<string>((text) =>
  URL.canParse(text) && new URL(text).origin === text ? undefined : "an origin"
)
const Origins = Schema.Union([
  Schema.Literal("*"),
  UpstreamConfig.CommaSeparated.pipe(Schema.decodeTo(Schema.NonEmptyArray(Schema.String.check(isOrigin))))
])
// what is configured may be sent again and reach any node
const isRead = Schema.makeFilter<string>((name) =>
  /send|submit|subscri|filter/iu.test(name) ? "a method that only reads" : undefined
)
const MethodNames = UpstreamConfig.CommaSeparated.pipe(
  Schema.decodeTo(
    Schema.NonEmptyArray(Schema.String.check(Schema.isPattern(/^[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]{1,100}$/u), isRead))
  )
)
const RedisUrl = Schema.RedactedFromValue(
  Schema.String.check(
    Schema.makeFilter((text) =>
      /^rediss?:\/\/[^\s/?#]+(?:\/[0-9]*)?$/u.test(text) && URL.canParse(text) ? undefined : "a Redis URL"
    )
  )
)
const DatabaseUrl = Schema.RedactedFromValue(
  Schema.String.check(Schema.makeFilter((text) => isDatabaseUrl(text) ? undefined : "a database URL"))
)
const Addresses = UpstreamConfig.CommaSeparated.pipe(Schema.decodeTo(Schema.NonEmptyArray(Address)))

const onOff = (name: string, fallback: "on" | "off") =>
  Config.schema(OnOff, name).pipe(Config.withDefault(fallback), Config.map((value) => value === "on"))

const optionalLimit = (name: string) => Config.option(UpstreamConfig.limit(name))

const configs = {
  TRIGATE_HOST: Config.withDefault(Config.schema(Host, "TRIGATE_HOST"), "127.0.0.1"),
  TRIGATE_PORT: Config.withDefault(Config.schema(Port, "TRIGATE_PORT"), 8080),
  TRIGATE_NETWORK: Config.withDefault(
    Config.schema(Schema.Literals(["mainnet", "testnet"]), "TRIGATE_NETWORK"),
    "mainnet"
  ),
  TRIGATE_TRADING_API_URL: UpstreamConfig.baseUrls("TRIGATE_TRADING_API_URL"),
  TRIGATE_TRADING_NODE_URL: UpstreamConfig.baseUrls("TRIGATE_TRADING_NODE_URL"),
  TRIGATE_TOKEN_CHAIN_URL: UpstreamConfig.baseUrls("TRIGATE_TOKEN_CHAIN_URL"),
  TRIGATE_LAYER2_URL: UpstreamConfig.baseUrls("TRIGATE_LAYER2_URL"),
  TRIGATE_SIGNERS: Config.option(Config.schema(Addresses, "TRIGATE_SIGNERS")),
  TRIGATE_STRICT: onOff("TRIGATE_STRICT", "off"),
  TRIGATE_RELAY_ACTIONS: Config.option(
    Config.schema(Schema.Union([Schema.Literal("*"), ActionTypes]), "TRIGATE_RELAY_ACTIONS")
  ),
  TRIGATE_RELAY_INFO: onOff("TRIGATE_RELAY_INFO", "on"),
  TRIGATE_RELAY_METHODS: Config.withDefault(Config.schema(MethodNames, "TRIGATE_RELAY_METHODS"), []),
  TRIGATE_BATCH_LIMIT: Config.withDefault(Config.schema(BatchCalls, "TRIGATE_BATCH_LIMIT"), 100),
  TRIGATE_CORS_ORIGINS: Config.option(Config.schema(Origins, "TRIGATE_CORS_ORIGINS")),
  TRIGATE_TRADING_API_WEIGHT: Config.withDefault(
    UpstreamConfig.limit("TRIGATE_TRADING_API_WEIGHT"),
    RateLimiter.defaultWeight
  ),
  TRIGATE_TRADING_NODE_RPS: optionalLimit("TRIGATE_TRADING_NODE_RPS"),
  TRIGATE_TOKEN_CHAIN_RPS: optionalLimit("TRIGATE_TOKEN_CHAIN_RPS"),
  TRIGATE_LAYER2_RPS: optionalLimit("TRIGATE_LAYER2_RPS"),
  TRIGATE_READ_DEADLINE: UpstreamConfig.deadline("TRIGATE_READ_DEADLINE", "10 seconds"),
  TRIGATE_ONCE_DEADLINE: UpstreamConfig.deadline("TRIGATE_ONCE_DEADLINE", "20 seconds"),
  TRIGATE_ACCESS_LOG: onOff("TRIGATE_ACCESS_LOG", "on"),
  TRIGATE_REDIS_URL: Config.option(Config.schema(RedisUrl, "TRIGATE_REDIS_URL")),
  TRIGATE_DATABASE_URL: Config.option(Config.schema(DatabaseUrl, "TRIGATE_DATABASE_URL"))
}

/** The name of a setting. */
export type SettingName = keyof typeof configs

/** What a setting means, what it takes, and its default, as people read it. */
export interface SettingText {
  readonly meaning: string
  readonly takes: string
  readonly fallback: string
}

const baseUrls = "http(s) base URLs, comma separated, without query"
const requestsPerSecond = "a number above zero"
const notYet = "read, has no effect yet"
const duration = "a duration with its unit, like `500ms` or `10 seconds`"

/** The text of every setting, in the order of `--help`. */
export const texts: { readonly [N in SettingName]: SettingText } = {
  TRIGATE_HOST: { meaning: "listen address", takes: "a host name or an IP address", fallback: "127.0.0.1" },
  TRIGATE_PORT: {
    meaning: "listen port; 0 takes a free one",
    takes: "a port from 0 to 65535",
    fallback: "8080"
  },
  TRIGATE_NETWORK: {
    meaning: "which network's signatures are expected",
    takes: "`mainnet` or `testnet`",
    fallback: "mainnet"
  },
  TRIGATE_TRADING_API_URL: {
    meaning: "official API of the trading chain, in order of preference",
    takes: baseUrls,
    fallback: "unset"
  },
  TRIGATE_TRADING_NODE_URL: {
    meaning: "trading-chain node, endpoint key in the path",
    takes: baseUrls,
    fallback: "unset"
  },
  TRIGATE_TOKEN_CHAIN_URL: {
    meaning: "token-chain node, endpoint key in the path",
    takes: baseUrls,
    fallback: "unset"
  },
  TRIGATE_LAYER2_URL: { meaning: "layer-2 node, endpoint key in the path", takes: baseUrls, fallback: "unset" },
  TRIGATE_SIGNERS: {
    meaning: "signers whose actions are relayed",
    takes: "0x addresses, comma separated",
    fallback: "unset: any"
  },
  TRIGATE_STRICT: {
    meaning: "refuse documented action forms that the real wire does not take",
    takes: "`on` or `off`",
    fallback: "off"
  },
  TRIGATE_RELAY_ACTIONS: {
    meaning: "further action types that /exchange relays",
    takes: "action types, comma separated, or `*`",
    fallback: "unset: the four"
  },
  TRIGATE_RELAY_INFO: {
    meaning: "relay queries of /info of any type, not only of the two that are checked and kept",
    takes: "`on` or `off`",
    fallback: "on"
  },
  TRIGATE_RELAY_METHODS: {
    meaning: "further JSON-RPC methods that /evm and /l2 relay as reads, unread; each may be sent more than once",
    takes: "exact method names, comma separated, none that sends, submits, filters or subscribes",
    fallback: "unset: the declared ones"
  },
  TRIGATE_BATCH_LIMIT: {
    meaning: "calls that a JSON-RPC batch of /evm and /l2 may have; more than 100 go out as several batches",
    takes: `an integer from 1 to ${longestBatch}`,
    fallback: "100"
  },
  TRIGATE_CORS_ORIGINS: {
    meaning: "origins whose pages may call the gateway from a browser",
    takes: "origins like `https://app.example`, comma separated, or `*`",
    fallback: "unset: none"
  },
  TRIGATE_TRADING_API_WEIGHT: {
    meaning: "weight a minute that the official API grants this IP address",
    takes: "a number above zero",
    fallback: "1200"
  },
  TRIGATE_TRADING_NODE_RPS: {
    meaning: "request units a second of the trading-chain node's plan",
    takes: requestsPerSecond,
    fallback: "unset: no budget"
  },
  TRIGATE_TOKEN_CHAIN_RPS: {
    meaning: "request units a second of the token-chain node's plan",
    takes: requestsPerSecond,
    fallback: "unset: no budget"
  },
  TRIGATE_LAYER2_RPS: {
    meaning: "request units a second of the layer-2 node's plan",
    takes: requestsPerSecond,
    fallback: "unset: no budget"
  },
  TRIGATE_READ_DEADLINE: { meaning: "whole-call deadline of a read", takes: duration, fallback: "10 seconds" },
  TRIGATE_ONCE_DEADLINE: {
    meaning: "whole-call deadline of a signed action",
    takes: duration,
    fallback: "20 seconds"
  },
  TRIGATE_ACCESS_LOG: {
    meaning: "one JSON line a request on standard output",
    takes: "`on` or `off`",
    fallback: "on"
  },
  TRIGATE_REDIS_URL: {
    meaning:
      "shares used nonces, budgets, circuits and kept answers of several replicas; while it is away each goes on by itself",
    takes: "a redis:// or rediss:// URL, with a database number or no path",
    fallback: "unset"
  },
  TRIGATE_DATABASE_URL: {
    meaning: "where the journal of unanswered signed actions is kept; it survives a crash, and while it cannot be " +
      "written signed actions are refused",
    takes: "a postgres:// URL, or the path of a SQLite file",
    fallback: "unset: in memory"
  }
}

const isSettingName = (name: PropertyKey | undefined): name is SettingName =>
  Predicate.isString(name) && Object.hasOwn(texts, name)

const all = Config.all(configs)

/** The decoded settings, by environment name. */
export type Settings = Config.Success<typeof all>

const nameIn = (error: Config.ConfigError): Option.Option<SettingName> => {
  const found = Object.keys(texts).find((name) => error.message.includes(name))
  return isSettingName(found) ? Option.some(found) : Option.none()
}

const refusal = (error: Config.ConfigError): SettingsError =>
  Option.match(nameIn(error), {
    onNone: () => new SettingsError({ setting: "", message: "The environment could not be read" }),
    onSome: (setting) =>
      new SettingsError({ setting, message: `${setting} is not valid: expected ${texts[setting].takes}` })
  })

/** The refusal of names that begin with `TRIGATE_` and mean nothing: a typing error must not be silent. */
export const refuseUnknown = (names: ReadonlyArray<string>): Effect.Effect<void, SettingsError> => {
  const unknown = names.find((name) =>
    name.startsWith("TRIGATE_") && !Object.hasOwn(texts, name) && !CommandLineNames.all.has(name)
  )
  return unknown === undefined
    ? Effect.void
    : Effect.fail(
      new SettingsError({ setting: unknown, message: `${unknown} is not a setting; see npm start -- --help` })
    )
}

/** The settings of the environment that are read and have no effect yet: whoever sets one is told. */
export const withoutEffect = (names: ReadonlyArray<string>): ReadonlyArray<SettingName> =>
  names.filter(isSettingName).filter((name) => texts[name].meaning.includes(notYet))

/** All settings, from the `ConfigProvider` of the context. */
export const load: Effect.Effect<Settings, SettingsError> = Effect.mapError(all, refusal)
