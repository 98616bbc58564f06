/**
 * The settings of a gateway: the name, the accepted text, the default and the documentation of each, declared once.
 *
 * The server, its flags and its file, the `layerConfig` of every library package, `--help` and docs/configuration.md are derived
 * from this table, so a text means the same in a served gateway and in an embedded program.
 */
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as Struct from "effect/Struct"
import { CandleInterval } from "./candles/Candle.ts"
import { Address } from "./encoding/Hex.ts"
import { archiveSetting, families } from "./evm/EvmMethodTable.ts"
import { freshByDefault, mistakeIn } from "./info/InfoFreshness.ts"
import type { Freshness } from "./info/InfoQueryTable.ts"
import { freshnessSetting, staleWhenLimitedDefault, staleWhenLimitedSetting } from "./info/InfoQueryTable.ts"
import { longestBatch } from "./operations/JsonRpc.ts"

/** The groups of the settings, in the order of `--help` and docs/configuration.md. */
export const groups = [
  "Listening",
  "Callers",
  "Upstreams",
  "Relaying",
  "Limits",
  "Caching",
  "Stores",
  "Candle archive",
  "Logs",
  "Telemetry"
] as const

/** What people are told of a setting. */
interface Texts {
  readonly group: (typeof groups)[number]
  readonly meaning: string
  /** What a text has to be; completes "expected …". */
  readonly takes: string
  /** The default, in words. */
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

const flagOf = (env: string): string => env.replace(/^TRIGATE_/u, "").toLowerCase().replaceAll("_", "-")

const make = <A>(env: string, config: Config.Config<A>, fallback: A, texts: Texts): Setting<A> =>
  Object.assign(Config.withDefault(config, fallback), { env, flag: flagOf(env), fallback, ...texts })

/** A setting whose default is a text like any other. */
const withDefault = <A>(
  env: string,
  schema: Schema.Codec<A, string>,
  unset: string,
  texts: Omit<Texts, "unset">
): Setting<A> => make(env, Config.schema(schema, env), Schema.decodeSync(schema)(unset), { unset, ...texts })

/** A setting without a default. */
const optional = <A>(
  env: string,
  schema: Schema.Codec<A, string>,
  texts: Omit<Texts, "unset">,
  unset = "unset"
): Setting<Option.Option<A>> =>
  make(env, Config.map(Config.schema(schema, env), Option.some), Option.none(), { unset, ...texts })

/** A setting that names several things, by default none. */
const list = <A>(
  env: string,
  schema: Schema.Codec<ReadonlyArray<A>, string>,
  texts: Omit<Texts, "unset">,
  unset = "unset"
): Setting<ReadonlyArray<A>> => make(env, Config.schema(schema, env), [], { unset, ...texts })

const words = (text: string): ReadonlyArray<string> =>
  text.split(",").map((word) => word.trim()).filter((word) => word !== "")

const CommaSeparated = Schema.String.pipe(
  Schema.decodeTo(Schema.Array(Schema.String), {
    decode: SchemaGetter.transform(words),
    encode: SchemaGetter.transform((list) => list.join(","))
  })
)

const someOf = <A>(word: Schema.Codec<A, string>) => CommaSeparated.pipe(Schema.decodeTo(Schema.NonEmptyArray(word)))

const filtered = (expected: string, isValid: (text: string) => boolean) =>
  Schema.makeFilter<string>((text) => isValid(text) ? undefined : expected)

const Any = Schema.Literal("*")

const OnOff = Schema.Literals(["on", "off"]).pipe(
  Schema.decodeTo(Schema.Boolean, {
    decode: SchemaGetter.transform((word) => word === "on"),
    encode: SchemaGetter.transform((value) => value ? "on" as const : "off" as const)
  })
)

const Host = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9.:_-]{1,255}$/u))

// as a `Host` has it, without the port
const HostName = Schema.String.check(
  Schema.isPattern(/^(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])$/u)
)

const Port = Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 65535 }))

const Positive = Schema.FiniteFromString.check(Schema.isGreaterThan(0))

const Count = Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThan(0))

const mebibyte = 1024 * 1024

// a caller may have a quarter of it, which has to hold the largest body before and after decompression
const MemoryInFlight = Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(8)).pipe(
  Schema.decodeTo(Schema.Finite, {
    decode: SchemaGetter.transform((mebibytes) => mebibytes * mebibyte),
    encode: SchemaGetter.transform((bytes) => bytes / mebibyte)
  })
)

const BatchCalls = Schema.FiniteFromString.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 1, maximum: longestBatch })
)

// a text that is set and names no URL is a mistake, unlike an empty one
const namesSomething = filtered("at least one URL", (text) => text === "" || words(text).length > 0)

const namesFile = filtered("a path without line breaks", (text) => /^[^\r\n\0]{1,4096}$/u.test(text))

const isBaseUrl = filtered(
  "an http or https URL without query",
  (text) => /^https?:\/\/[^\s/?#]+(?:\/[^\s?#]*)?$/u.test(text) && URL.canParse(text)
)

// redacted, because the endpoint key is in the path
const BaseUrls = Schema.String.check(namesSomething).pipe(
  Schema.decodeTo(CommaSeparated),
  Schema.decodeTo(Schema.Array(Schema.RedactedFromValue(Schema.String.check(isBaseUrl))))
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

const duration = "a duration with its unit, like `500ms` or `10 seconds`"

// the pattern refuses a bare number: it could be milliseconds or seconds
const Age = Schema.String.check(Schema.isPattern(/^[0-9]+(?:\.[0-9]+)?\s*[a-zA-Z]+$/u)).pipe(
  Schema.decodeTo(Schema.String, {
    decode: SchemaGetter.transform(spelledOut),
    encode: SchemaGetter.passthrough()
  }),
  Schema.decodeTo(Schema.DurationFromString)
)
const decodeAge = Schema.decodeUnknownOption(Age)

const Deadline = Age.check(isPositive)

// a path with another ending is more likely a typing error of one of the words
const Callers = Schema.String.check(Schema.isPattern(/^(?:open|keys|[^\0]+\.json)$/u))

const ActionType = Schema.String.check(Schema.isPattern(/^(?!none$)[A-Za-z][A-Za-z0-9]{0,63}$/u))

// such a method is sent again after a failure, and any node may get it
const isRead = filtered("a method that only reads", (name) => !/send|submit|subscri|filter/iu.test(name))
const Method = Schema.String.check(Schema.isPattern(/^[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]{1,100}$/u), isRead)
const familyNames = Struct.keys(families)

// as browsers write it: lower case, no default port, no path
const isOrigin = filtered("an origin", (text) => URL.canParse(text) && new URL(text).origin === text)

const RedisUrl = Schema.RedactedFromValue(Schema.String.check(
  filtered("a Redis URL", (text) => /^rediss?:\/\/[^\s/?#]+(?:\/[0-9]*)?$/u.test(text) && URL.canParse(text))
))

const DatabaseUrl = Schema.RedactedFromValue(Schema.String.check(
  filtered("a database URL", (text) =>
    /^postgres(?:ql)?:/u.test(text)
      ? /^postgres(?:ql)?:\/\/[^\s/?#]/u.test(text) && URL.canParse(text)
      : /^(?:(?:sqlite|file):)?[^\s?#:][^?#:]*$/u.test(text))
))

// OpenTelemetry writes `true` where the settings of Trigate write `on`; a settings file may have either
const TrueFalse = Schema.Literals(["true", "false", "on", "off"]).pipe(
  Schema.decodeTo(Schema.Boolean, {
    decode: SchemaGetter.transform((word) => word === "true" || word === "on"),
    encode: SchemaGetter.transform((value) => value ? "true" as const : "false" as const)
  })
)

const arePairs = filtered("key=value, comma separated", (text) => words(text).every((word) => /^[^\s=]+=/u.test(word)))

/** Pairs as OpenTelemetry writes them: `key=value,key=value`, the values percent-encoded. */
const Pairs = Schema.String.check(arePairs).pipe(
  Schema.decodeTo(Schema.Record(Schema.String, Schema.StringFromUriComponent), {
    decode: SchemaGetter.transform((text) =>
      Object.fromEntries(
        words(text).map((word) => {
          const end = word.indexOf("=")
          return [word.slice(0, end).trim(), word.slice(end + 1).trim()]
        })
      )
    ),
    encode: SchemaGetter.transform((pairs) => Object.entries(pairs).map(([key, value]) => `${key}=${value}`).join(","))
  })
)

const SecretPairs = Pairs.pipe(
  Schema.decodeTo(Schema.Record(Schema.String, Schema.RedactedFromValue(Schema.String)))
)

// redacted, because a vendor's endpoint may hold a key
const OtlpEndpoint = Schema.RedactedFromValue(Schema.String.check(isBaseUrl))

const Millis = Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThan(0)).pipe(
  Schema.decodeTo(Schema.DurationFromMillis)
)

// a builder's coin has a colon too
const recordedCoin = /^(?:\*|[A-Za-z0-9@/:._-]{1,64}):[0-9]+[mhdwM]$/u

/** A coin, or `*` for all of them, and the interval that is recorded. */
const RecordedCoin = Schema.String.check(Schema.isPattern(recordedCoin)).pipe(
  Schema.decodeTo(Schema.Struct({ coin: Schema.String, interval: Schema.String }), {
    decode: SchemaGetter.transform((text) => {
      const end = text.lastIndexOf(":")
      return { coin: text.slice(0, end), interval: text.slice(end + 1) }
    }),
    encode: SchemaGetter.transform(({ coin, interval }) => `${coin}:${interval}`)
  }),
  Schema.decodeTo(Schema.Struct({ coin: Schema.String, interval: CandleInterval }))
)

/** The types and the ages of a text like `allMids=1s,l2Book=500ms`, or what is wrong with it. */
const readFreshness = (text: string): Result.Result<ReadonlyArray<Freshness>, string> => {
  const list: Array<Freshness> = []
  for (const word of words(text)) {
    const end = word.indexOf("=")
    if (end < 0) return Result.fail(`${word} has no age, as in ${word}=1s`)
    const type = word.slice(0, end).trim()
    const fresh = Option.getOrUndefined(decodeAge(word.slice(end + 1).trim()))
    if (fresh === undefined) return Result.fail(`the age of ${type} is not ${duration}`)
    list.push({ type, fresh })
  }
  const mistake = mistakeIn(list)
  return mistake === undefined ? Result.succeed(list) : Result.fail(mistake)
}

const InfoFreshness = Schema.String.check(
  Schema.makeFilter((text) =>
    Result.match(readFreshness(text), { onFailure: (why) => why, onSuccess: () => undefined })
  )
).pipe(
  Schema.decodeTo(Schema.Array(Schema.Struct({ type: Schema.String, fresh: Schema.Duration })), {
    decode: SchemaGetter.transform((text) => Result.getOrElse(readFreshness(text), () => [])),
    encode: SchemaGetter.transform((list) =>
      list.map(({ fresh, type }) => `${type}=${Duration.toMillis(fresh)}ms`).join(",")
    )
  })
)

const Exporter = Schema.Literals(["otlp", "none"])

const Share = Schema.FiniteFromString.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

// versions of accounts are remembered for longer than any answer may be old
const StaleAge = Age.check(
  Schema.makeFilter<Duration.Duration>((age) => Duration.toMillis(age) <= 60_000 ? undefined : "a minute at most")
)

const namesOf = (types: ReadonlyArray<string>): string => `\`${types.join("`, `")}\``

const onOff = "`on` or `off`"
const exporter = "`otlp` or `none`"
const millis = "an integer of milliseconds above zero"
const baseUrls = "http(s) base URLs, comma separated, without query"
const positive = "a number above zero"
const noLimit = "unset: no limit"

/** Every setting by the name of its member in a file. */
export const settings = {
  host: withDefault("TRIGATE_HOST", Host, "127.0.0.1", {
    group: "Listening",
    needsRestart: true,
    meaning: "address to listen on",
    takes: "a host name or an IP address"
  }),
  port: withDefault("TRIGATE_PORT", Port, "8080", {
    group: "Listening",
    needsRestart: true,
    meaning: "port to listen on; 0 takes a free one",
    takes: "a port from 0 to 65535"
  }),
  callers: optional("TRIGATE_CALLERS", Callers, {
    group: "Callers",
    needsRestart: true,
    meaning:
      "who may call: those with a key in the database (`keys`) or in a key file, or everybody who reaches the gateway " +
      "(`open`)",
    takes: "`open`, `keys`, or the path of a key file that ends in `.json`"
  }, "unset: everybody on a loopback address; on any other the gateway does not start"),
  trustedProxies: list("TRIGATE_TRUSTED_PROXIES", someOf(Schema.IpNetworkFromString), {
    group: "Callers",
    meaning:
      "proxies whose `Forwarded` or `X-Forwarded-For` says where a request comes from; callers without a key are told " +
      "apart by that address",
    takes: "networks in CIDR notation like `10.0.0.0/8`, comma separated; one address is `192.0.2.1/32`"
  }, "unset: none"),
  hosts: optional("TRIGATE_HOSTS", Schema.Union([Any, someOf(HostName)]), {
    group: "Listening",
    meaning: "hosts that requests may ask for besides localhost, its subdomains, 127.0.0.0/8 and [::1]; any other is " +
      "answered with 421",
    takes: "host names or IP addresses without port, comma separated, or `*`"
  }, "unset: none on a loopback address, any on another"),
  adminHost: withDefault("TRIGATE_ADMIN_HOST", Host, "127.0.0.1", {
    group: "Listening",
    needsRestart: true,
    meaning: "address of the admin listener, which has metrics, readiness in detail, the action log and the console",
    takes: "a host name or an IP address; one that others can reach takes `TRIGATE_CALLERS` with keys"
  }),
  adminPort: optional(
    "TRIGATE_ADMIN_PORT",
    Port,
    {
      group: "Listening",
      needsRestart: true,
      meaning: "port of the admin listener; 0 takes a free one",
      takes: "a port from 0 to 65535"
    },
    "unset: no listener of its own; the action log and the console are then beside the rest, on a loopback address only"
  ),
  network: withDefault("TRIGATE_NETWORK", Schema.Literals(["mainnet", "testnet"]), "mainnet", {
    group: "Upstreams",
    meaning: "network whose signatures are expected",
    takes: "`mainnet` or `testnet`"
  }),
  tradingApiUrl: list("TRIGATE_TRADING_API_URL", BaseUrls, {
    group: "Upstreams",
    meaning: "official API of the trading chain, in order of preference",
    takes: baseUrls
  }),
  tradingNodeUrl: list("TRIGATE_TRADING_NODE_URL", BaseUrls, {
    group: "Upstreams",
    meaning: "trading-chain node, with the endpoint key in the path",
    takes: baseUrls
  }),
  tradingNodeArchive: withDefault(archiveSetting, OnOff, "off", {
    group: "Upstreams",
    meaning: "whether the trading-chain nodes are archives: /evm then reads state at any block, not only at the latest",
    takes: onOff
  }),
  tokenChainUrl: list("TRIGATE_TOKEN_CHAIN_URL", BaseUrls, {
    group: "Upstreams",
    meaning: "token-chain node, with the endpoint key in the path",
    takes: baseUrls
  }),
  layer2Url: list("TRIGATE_LAYER2_URL", BaseUrls, {
    group: "Upstreams",
    meaning: "layer-2 node, with the endpoint key in the path",
    takes: baseUrls
  }),
  signers: optional("TRIGATE_SIGNERS", someOf(Address), {
    group: "Relaying",
    meaning: "signers whose actions are relayed",
    takes: "0x addresses, comma separated"
  }, "unset: any"),
  strict: withDefault("TRIGATE_STRICT", OnOff, "off", {
    group: "Relaying",
    meaning: "refuse action forms that are documented but not accepted by the real venue",
    takes: onOff
  }),
  relayActions: optional("TRIGATE_RELAY_ACTIONS", Schema.Union([Any, Schema.Literal("none"), someOf(ActionType)]), {
    group: "Relaying",
    meaning:
      "action types that /exchange relays, alone or inside a multi-sig: those listed, `*` for any type, also an unknown one, " +
      "or `none`",
    takes: "action types, comma separated, `*`, or `none`"
  }, "unset: every known type, orders included"),
  relayInfo: withDefault("TRIGATE_RELAY_INFO", OnOff, "on", {
    group: "Relaying",
    meaning: "relay /info queries of any type, not only those that are typed",
    takes: onOff
  }),
  infoFreshness: list(
    freshnessSetting,
    InfoFreshness,
    {
      group: "Caching",
      meaning:
        "how old answers to /info queries may be, by type, `0s` for none; of `candleSnapshot` it is the bar that is forming. " +
        "Equal queries share an answer until then",
      takes:
        "`type=age`, such as `allMids=500ms,openOrders=2s`, comma separated: up to an hour, up to a minute for what is " +
        "about a user, and never `orderStatus`",
      isTold: true
    },
    `unset: ${namesOf([...freshByDefault(1000), "candleSnapshot"])} a second, ${
      namesOf(freshByDefault(60_000))
    } a minute, ` +
      "`spotMeta` five, the rest not at all"
  ),
  staleWhenLimited: withDefault(staleWhenLimitedSetting, StaleAge, staleWhenLimitedDefault, {
    group: "Caching",
    meaning:
      "how old answers to /info queries may be while they would use more of the rate limit than flows back, the state of users " +
      "included; `0s` answers such queries with 429",
    takes: `${duration}, a minute at most`
  }),
  relayMethods: list("TRIGATE_RELAY_METHODS", someOf(Schema.Union([Schema.Literals(familyNames), Method])), {
    group: "Relaying",
    meaning:
      "JSON-RPC methods that /evm and /l2 relay besides the declared ones, by name or by family; the params of a " +
      "method that no family has are not checked, and a call may be sent more than once",
    takes: `${familyNames.map((name) => `\`${name}\``).join(", ")}, or exact method names, none that sends, submits, ` +
      "filters or subscribes; comma separated"
  }, "unset: the declared ones"),
  batchLimit: withDefault("TRIGATE_BATCH_LIMIT", BatchCalls, "100", {
    group: "Relaying",
    meaning: "most calls in a JSON-RPC batch of /evm and /l2; a batch of more than 100 is sent on as several",
    takes: `an integer from 1 to ${longestBatch}`
  }),
  corsOrigins: optional("TRIGATE_CORS_ORIGINS", Schema.Union([Any, someOf(Schema.String.check(isOrigin))]), {
    group: "Callers",
    meaning: "origins whose pages may call the gateway from a browser, and sign and send through it",
    takes: "origins like `https://app.example`, comma separated, or `*`"
  }, "unset: none"),
  tradingApiWeight: withDefault("TRIGATE_TRADING_API_WEIGHT", Positive, "1200", {
    group: "Limits",
    meaning: "weight per minute that the official API grants this IP address",
    takes: positive
  }),
  tradingNodeRps: optional("TRIGATE_TRADING_NODE_RPS", Positive, {
    group: "Limits",
    meaning: "request units per second of the trading-chain node's plan",
    takes: positive
  }, noLimit),
  tokenChainRps: optional("TRIGATE_TOKEN_CHAIN_RPS", Positive, {
    group: "Limits",
    meaning: "request units per second of the token-chain node's plan",
    takes: positive
  }, noLimit),
  layer2Rps: optional("TRIGATE_LAYER2_RPS", Positive, {
    group: "Limits",
    meaning: "request units per second of the layer-2 node's plan",
    takes: positive
  }, noLimit),
  readDeadline: withDefault("TRIGATE_READ_DEADLINE", Deadline, "10 seconds", {
    group: "Limits",
    meaning: "deadline of a read, over all its attempts",
    takes: duration
  }),
  onceDeadline: withDefault("TRIGATE_ONCE_DEADLINE", Deadline, "20 seconds", {
    group: "Limits",
    meaning: "deadline of a signed action, over all its attempts",
    takes: duration
  }),
  maxConnections: withDefault("TRIGATE_MAX_CONNECTIONS", Count, "4096", {
    group: "Limits",
    needsRestart: true,
    meaning: "most connections that callers may have open; those of one address may have a quarter of them",
    takes: "an integer above zero"
  }),
  memoryInFlight: withDefault("TRIGATE_MEMORY_IN_FLIGHT", MemoryInFlight, "64", {
    group: "Limits",
    needsRestart: true,
    meaning: "MiB that the bodies of requests in flight may take, and as much for answers that nobody has read yet",
    takes: "an integer of MiB, at least 8"
  }),
  maxLag: withDefault("TRIGATE_MAX_LAG", Deadline, "100 ms", {
    group: "Limits",
    needsRestart: true,
    meaning:
      "length of the timers by which the lag of the event loop is measured; while five in turn are late by as much, new work is refused",
    takes: duration
  }),
  accessLog: withDefault("TRIGATE_ACCESS_LOG", OnOff, "on", {
    group: "Logs",
    meaning: "write a line per request to standard output: JSON, or on a terminal a text",
    takes: onOff
  }),
  auditLog: optional("TRIGATE_AUDIT_LOG", Schema.String.check(namesFile), {
    group: "Logs",
    needsRestart: true,
    meaning:
      "where a line of JSON is written for each signed action that is sent, with its caller, signer, nonce, digest, " +
      "type and outcome; never the signature",
    takes: "`stdout`, or the path of a file"
  }, "unset: nowhere"),
  traceUpstream: withDefault("TRIGATE_TRACE_UPSTREAM", OnOff, "off", {
    group: "Telemetry",
    meaning: "send upstreams the `traceparent` of each request's span; nothing is sent without an OTLP endpoint",
    takes: onOff
  }),
  redisUrl: optional("TRIGATE_REDIS_URL", RedisUrl, {
    group: "Stores",
    needsRestart: true,
    meaning:
      "Redis in which replicas share rate limits, quotas, cached responses and, without a database, the nonces of signed " +
      "actions; while it is away each replica works alone, except that signed actions are refused",
    takes: "a redis:// or rediss:// URL, with a database number or no path"
  }),
  actionLogAlone: withDefault("TRIGATE_ACTION_LOG_ALONE", OnOff, "off", {
    group: "Stores",
    needsRestart: true,
    meaning:
      "send signed actions while Redis is away or late, where it holds their nonces: another replica may then send a nonce again",
    takes: onOff
  }),
  databaseUrl: optional("TRIGATE_DATABASE_URL", DatabaseUrl, {
    group: "Stores",
    needsRestart: true,
    meaning:
      "database of the action log, which then survives a crash, and of the callers' keys; replicas may share a Postgres, which " +
      "counts quotas where there is no Redis. While it cannot be written, signed actions are refused",
    takes: "a postgres:// URL, or the path of a SQLite file"
  }, "unset: in memory"),
  archive: list("TRIGATE_ARCHIVE", someOf(RecordedCoin), {
    group: "Candle archive",
    needsRestart: true,
    meaning:
      "coins whose candles are recorded, each with the smallest interval that is followed; larger ones are built from it. " +
      "The database of `TRIGATE_DATABASE_URL` keeps them, and without one the memory",
    takes: "`coin:interval`, such as `BTC:1m,@107:5m`, or `*:1h` for every other coin; comma separated"
  }, "unset: nothing is recorded"),
  otelSdkDisabled: withDefault("OTEL_SDK_DISABLED", TrueFalse, "false", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "export nothing, whatever else is set",
    takes: "`true` or `false`"
  }),
  otlpEndpoint: optional("OTEL_EXPORTER_OTLP_ENDPOINT", OtlpEndpoint, {
    group: "Telemetry",
    needsRestart: true,
    meaning: "OpenTelemetry collector to which traces, metrics and the program's log are exported; a path like " +
      "`/v1/traces` is appended",
    takes: "an http(s) base URL without query"
  }, "unset: no export"),
  otlpHeaders: optional("OTEL_EXPORTER_OTLP_HEADERS", SecretPairs, {
    group: "Telemetry",
    needsRestart: true,
    meaning: "headers of each export, such as a key of the collector",
    takes: "`name=value`, comma separated, percent-encoded"
  }),
  otlpProtocol: withDefault(
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    Schema.Literals(["http/protobuf", "http/json"]),
    "http/protobuf",
    {
      group: "Telemetry",
      needsRestart: true,
      meaning: "encoding of the exports",
      takes: "`http/protobuf` or `http/json`"
    }
  ),
  otlpCompression: withDefault("OTEL_EXPORTER_OTLP_COMPRESSION", Schema.Literals(["none", "gzip"]), "none", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "compression of the exports",
    takes: "`none` or `gzip`"
  }),
  otelServiceName: optional("OTEL_SERVICE_NAME", Schema.String, {
    group: "Telemetry",
    needsRestart: true,
    meaning: "name under which the gateway appears",
    takes: "a text"
  }, "unset: `service.name` of the resource attributes, else trigate"),
  otelResourceAttributes: optional("OTEL_RESOURCE_ATTRIBUTES", Pairs, {
    group: "Telemetry",
    needsRestart: true,
    meaning: "attributes of everything that is exported",
    takes: "`key=value`, comma separated, percent-encoded"
  }),
  otelTracesExporter: withDefault("OTEL_TRACES_EXPORTER", Exporter, "otlp", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "whether traces are exported",
    takes: exporter
  }),
  otelMetricsExporter: withDefault("OTEL_METRICS_EXPORTER", Exporter, "otlp", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "whether metrics are exported; `/metrics` has them in any case",
    takes: exporter
  }),
  otelLogsExporter: withDefault("OTEL_LOGS_EXPORTER", Exporter, "otlp", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "whether the program's log is exported; standard output has it in any case",
    takes: exporter
  }),
  otelTracesSampler: withDefault(
    "OTEL_TRACES_SAMPLER",
    Schema.Literals([
      "always_on",
      "always_off",
      "traceidratio",
      "parentbased_always_on",
      "parentbased_always_off",
      "parentbased_traceidratio"
    ]),
    "parentbased_always_on",
    {
      group: "Telemetry",
      needsRestart: true,
      meaning: "which requests are traced; a `parentbased` sampler decides only for those without a `traceparent`",
      takes: "`always_on`, `always_off`, `traceidratio`, or one of these after `parentbased_`"
    }
  ),
  otelTracesSamplerArg: withDefault("OTEL_TRACES_SAMPLER_ARG", Share, "1", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "share of the traces that a `traceidratio` sampler takes",
    takes: "a number from 0 to 1"
  }),
  otelSpanDelay: withDefault("OTEL_BSP_SCHEDULE_DELAY", Millis, "5000", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "time between two exports of spans",
    takes: millis
  }),
  otelMetricInterval: withDefault("OTEL_METRIC_EXPORT_INTERVAL", Millis, "60000", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "time between two exports of metrics",
    takes: millis
  })
}

/** The settings of each group, with their names. */
export const grouped = groups.map((group) => ({
  group,
  members: Object.entries(settings).filter(([, setting]) => setting.group === group)
}))

/** The decoded settings. */
export type Settings = { readonly [Name in keyof typeof settings]: Config.Success<(typeof settings)[Name]> }

/** All settings, decoded from the `ConfigProvider` of the context. */
export const all: Config.Config<Settings> = Config.all(settings)

/** Environment variables of the command line. A gateway does not read them, and starts where they are set. */
export const commandLine = {
  adminKey: "TRIGATE_ADMIN_KEY",
  adminUrl: "TRIGATE_ADMIN_URL",
  gatewayUrl: "TRIGATE_GATEWAY_URL",
  gatewayKey: "TRIGATE_GATEWAY_KEY",
  privateKey: "TRIGATE_PRIVATE_KEY"
} as const
