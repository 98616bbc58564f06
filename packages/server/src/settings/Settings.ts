/**
 * The settings of a gateway: the name, the accepted values, the default and the documentation of each.
 *
 * Each library package declares its own settings. The `layerConfig` layers of embedded services read the same settings.
 * This table collects all settings. The flags, the settings file, `--help` and docs/configuration.md are derived from
 * it.
 */
import type { Policies } from "@trigate/domain/actions/Policy"
import { CandleInterval, coinPattern } from "@trigate/domain/candles/Candle"
import { lowerCase } from "@trigate/domain/encoding/Encoding"
import { longestBatch } from "@trigate/domain/evm/EvmProtocol"
import { families } from "@trigate/domain/unstable/evm/EvmMethods"
import * as Setting from "@trigate/domain/unstable/Setting"
import { settings as trading } from "@trigate/trading/unstable/TradingSettings"
import { settings as streams } from "@trigate/upstream/unstable/streams/StreamSettings"
import * as Upstream from "@trigate/upstream/unstable/Upstream"
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as Struct from "effect/Struct"
import { settings as sandbox } from "./SandboxSettings.ts"

// OpenTelemetry uses `true` and `false` where Trigate's settings use `on` and `off`; a settings file can contain either
const TrueFalse = Schema.Literals(["true", "false", "on", "off"]).pipe(
  Schema.decodeTo(Schema.Boolean, {
    decode: SchemaGetter.transform((word) => word === "true" || word === "on"),
    encode: SchemaGetter.transform((value) => value ? "true" as const : "false" as const)
  })
)

const arePairs = Setting.filtered(
  "key=value, comma separated",
  (text) => Setting.words(text).every((word) => /^[^\s=]+=/u.test(word))
)

/** Pairs in OpenTelemetry's format: `key=value,key=value`, the values percent-encoded. */
const Pairs = Schema.String.check(arePairs).pipe(
  Schema.decodeTo(Schema.Record(Schema.String, Schema.StringFromUriComponent), {
    decode: SchemaGetter.transform((text) =>
      Object.fromEntries(
        Setting.words(text).map((word) => {
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

// redacted, because the URL of a collector may contain a key
const OtlpEndpoint = Schema.RedactedFromValue(Schema.String.check(Setting.isBaseUrl))

const Millis = Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThan(0)).pipe(
  Schema.decodeTo(Schema.DurationFromMillis)
)

const Exporter = Schema.Literals(["otlp", "none"])

const Share = Schema.FiniteFromString.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

// a change of these settings takes effect after a restart
const listening = { group: "Listening", needsRestart: true } as const
const limits = { group: "Limits", needsRestart: true } as const
const socketLimits = { group: "Streams", needsRestart: true } as const
const stores = { group: "Stores", needsRestart: true } as const
const telemetry = { group: "Telemetry", needsRestart: true } as const

const exporter = "`otlp` or `none`"
const millis = "an integer of milliseconds above zero"

/** The settings, by their names in a settings file. */
export const telemetrySettings = {
  otelSdkDisabled: Setting.withDefault("OTEL_SDK_DISABLED", TrueFalse, "false", {
    ...telemetry,
    meaning: "disables all exports",
    takes: "`true` or `false`"
  }),
  otlpEndpoint: Setting.optional("OTEL_EXPORTER_OTLP_ENDPOINT", OtlpEndpoint, {
    ...telemetry,
    meaning: "OpenTelemetry collector to which traces, metrics and the program's log are exported; a path like " +
      "`/v1/traces` is appended",
    takes: "an http(s) base URL without query"
  }, "unset: no export"),
  otlpHeaders: Setting.optional("OTEL_EXPORTER_OTLP_HEADERS", SecretPairs, {
    ...telemetry,
    meaning: "headers of each export, such as one with a key of the collector",
    takes: "`name=value`, comma separated, percent-encoded"
  }),
  otlpProtocol: Setting.withDefault(
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    Schema.Literals(["http/protobuf", "http/json"]),
    "http/protobuf",
    {
      ...telemetry,
      meaning: "encoding of the exports",
      takes: "`http/protobuf` or `http/json`"
    }
  ),
  otlpCompression: Setting.withDefault("OTEL_EXPORTER_OTLP_COMPRESSION", Schema.Literals(["none", "gzip"]), "none", {
    ...telemetry,
    meaning: "compression of the exports",
    takes: "`none` or `gzip`"
  }),
  otelServiceName: Setting.optional("OTEL_SERVICE_NAME", Schema.String, {
    ...telemetry,
    meaning: "service name of the gateway",
    takes: "a text"
  }, "unset: `service.name` of the resource attributes, otherwise trigate"),
  otelResourceAttributes: Setting.optional("OTEL_RESOURCE_ATTRIBUTES", Pairs, {
    ...telemetry,
    meaning: "attributes of everything that is exported",
    takes: "`key=value`, comma separated, percent-encoded"
  }),
  otelTracesExporter: Setting.withDefault("OTEL_TRACES_EXPORTER", Exporter, "otlp", {
    ...telemetry,
    meaning: "whether traces are exported",
    takes: exporter
  }),
  otelMetricsExporter: Setting.withDefault("OTEL_METRICS_EXPORTER", Exporter, "otlp", {
    ...telemetry,
    meaning: "whether metrics are exported; `/metrics` always contains them",
    takes: exporter
  }),
  otelLogsExporter: Setting.withDefault("OTEL_LOGS_EXPORTER", Exporter, "otlp", {
    ...telemetry,
    meaning: "whether the program's log is exported; it is always written to standard output",
    takes: exporter
  }),
  otelTracesSampler: Setting.withDefault(
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
      ...telemetry,
      meaning: "which requests are traced; a `parentbased` sampler decides only for requests without a `traceparent`",
      takes: "`always_on`, `always_off`, `traceidratio`, or one of these after `parentbased_`"
    }
  ),
  otelTracesSamplerArg: Setting.withDefault("OTEL_TRACES_SAMPLER_ARG", Share, "1", {
    ...telemetry,
    meaning: "share of the traces that a `traceidratio` sampler samples",
    takes: "a number from 0 to 1"
  }),
  otelSpanDelay: Setting.withDefault("OTEL_BSP_SCHEDULE_DELAY", Millis, "5000", {
    ...telemetry,
    meaning: "time between two exports of spans",
    takes: millis
  }),
  otelMetricInterval: Setting.withDefault("OTEL_METRIC_EXPORT_INTERVAL", Millis, "60000", {
    ...telemetry,
    meaning: "time between two exports of metrics",
    takes: millis
  })
}

/** Converts a setting in KiB to bytes. */
const Kibibytes = Setting.Count.pipe(
  Schema.decodeTo(Schema.Finite, {
    decode: SchemaGetter.transform((kibibytes) => kibibytes * 1024),
    encode: SchemaGetter.transform((bytes) => bytes / 1024)
  })
)

/** The settings of streams, by their names in a settings file. */
export const streamSettings = {
  streamCallerSockets: Setting.withDefault("TRIGATE_STREAM_CALLER_SOCKETS", Setting.Count, "100", {
    ...socketLimits,
    meaning: "maximum open WebSockets and event streams of one caller",
    takes: Setting.count
  }),
  streamPerSocket: Setting.withDefault("TRIGATE_STREAM_PER_SOCKET", Setting.Count, "1000", {
    ...socketLimits,
    meaning: "maximum subscriptions on one WebSocket of a caller",
    takes: Setting.count
  }),
  streamCallerMessages: Setting.withDefault("TRIGATE_STREAM_CALLER_MESSAGES", Setting.Count, "2000", {
    ...socketLimits,
    meaning: "maximum messages per minute from one WebSocket of a caller; beyond the limit, the WebSocket is closed",
    takes: Setting.count
  }),
  streamCallerBytesIn: Setting.withDefault("TRIGATE_STREAM_CALLER_KIB_IN", Kibibytes, "1024", {
    ...socketLimits,
    meaning:
      "maximum KiB per second from one caller over all of its WebSockets; beyond the limit, the WebSocket is closed",
    takes: Setting.count
  }),
  streamCallerBytesOut: Setting.withDefault("TRIGATE_STREAM_CALLER_KIB_OUT", Kibibytes, "65536", {
    ...socketLimits,
    meaning:
      "maximum KiB per second to one caller over all of its WebSockets and event streams; beyond the limit, frames are queued",
    takes: Setting.count
  }),
  streamPosts: Setting.withDefault("TRIGATE_STREAM_POSTS", Setting.Count, "100", {
    ...socketLimits,
    meaning: "maximum concurrent requests (`post` messages or JSON-RPC calls) of one WebSocket",
    takes: Setting.count
  }),
  streamQueueFrames: Setting.withDefault("TRIGATE_STREAM_QUEUE_FRAMES", Setting.Count, "10000", {
    ...socketLimits,
    meaning:
      "maximum pending events of a WebSocket whose client does not read; beyond the limit, the WebSocket is closed",
    takes: Setting.count
  }),
  streamQueueBytes: Setting.withDefault("TRIGATE_STREAM_QUEUE_KIB", Kibibytes, "1024", {
    ...socketLimits,
    meaning:
      "maximum KiB of pending events of a WebSocket whose client does not read; beyond the limit, the WebSocket is closed",
    takes: Setting.count
  }),
  streamDrain: Setting.withDefault("TRIGATE_STREAM_DRAIN", Setting.Age, "5 seconds", {
    ...socketLimits,
    meaning: "time over which WebSockets are closed when the gateway stops",
    takes: Setting.duration
  })
}

const Host = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9.:_-]{1,255}$/u))

// the format of a `Host` header without the port
const HostName = Schema.String.check(
  Schema.isPattern(/^(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])$/u)
)

const Port = Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 65535 }))

const mebibyte = 1024 * 1024

// one caller can use a quarter of the memory, and the largest body must fit in that quarter, before and after
// decompression
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

const namesFile = Setting.filtered("a path without line breaks", (text) => /^[^\r\n\0]{1,4096}$/u.test(text))

// a value other than `open`, `keys` or a `.json` path is more likely a misspelled keyword than a path
const Callers = Schema.String.check(Schema.isPattern(/^(?:open|keys|[^\0]+\.json)$/u))

// only methods that read, because a failed call is sent again, to any node
const isRead = Setting.filtered("a method that only reads", (name) => !/send|submit|subscri|filter/iu.test(name))
const Method = Schema.String.check(Schema.isPattern(/^[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]{1,100}$/u), isRead)
const familyNames = Struct.keys(families)

// an origin as browsers write it: lower case, no default port, no path
const isOrigin = Setting.filtered("an origin", (text) => URL.canParse(text) && new URL(text).origin === text)

const RedisUrl = Schema.RedactedFromValue(Schema.String.check(
  Setting.filtered("a Redis URL", (text) => /^rediss?:\/\/[^\s/?#]+(?:\/[0-9]*)?$/u.test(text) && URL.canParse(text))
))

const DatabaseUrl = Schema.RedactedFromValue(Schema.String.check(
  Setting.filtered("a database URL", (text) =>
    /^postgres(?:ql)?:/u.test(text)
      ? /^postgres(?:ql)?:\/\/[^\s/?#]/u.test(text) && URL.canParse(text)
      : /^(?:(?:sqlite|file):)?[^\s?#:][^?#:]*$/u.test(text))
))

// the name of a coin on a builder-deployed dex contains a colon too
const recordedCoin = new RegExp(`^${coinPattern}:[0-9]+[mhdwM]$`, "u")

/** A coin, or `*` for all coins, and the interval to record. */
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

/** The settings, by their names in a settings file. */
export const settings = {
  host: Setting.withDefault("TRIGATE_HOST", Host, "127.0.0.1", {
    ...listening,
    meaning: "address to listen on",
    takes: "a host name or an IP address"
  }),
  port: Setting.withDefault("TRIGATE_PORT", Port, "8080", {
    ...listening,
    meaning: "port to listen on; 0 selects a free port",
    takes: "a port from 0 to 65535"
  }),
  callers: Setting.optional("TRIGATE_CALLERS", Callers, {
    group: "Callers",
    needsRestart: true,
    meaning:
      "who is allowed to call: clients with a key in the database (`keys`) or in a key file, or every client that can reach the gateway " +
      "(`open`)",
    takes: "`open`, `keys`, or the path of a key file that ends in `.json`"
  }, "unset: every client, if the gateway listens on a loopback address; otherwise the gateway does not start"),
  trustedProxies: Setting.list("TRIGATE_TRUSTED_PROXIES", Setting.nonEmptyWords(Schema.IpNetworkFromString), {
    group: "Callers",
    meaning:
      "proxies whose `Forwarded` or `X-Forwarded-For` is trusted for the client's address; callers without a key are " +
      "identified by that address",
    takes: "networks in CIDR notation like `10.0.0.0/8`, comma separated; one address is `192.0.2.1/32`"
  }, "unset: none"),
  hosts: Setting.optional("TRIGATE_HOSTS", Schema.Union([Setting.Any, Setting.nonEmptyWords(HostName)]), {
    group: "Listening",
    meaning:
      "accepted hosts of requests, besides localhost, its subdomains, 127.0.0.0/8 and [::1]; any other host is " +
      "refused with 421",
    takes: "host names or IP addresses without port, comma separated, or `*`"
  }, "unset: no further hosts if the gateway listens on a loopback address, otherwise any host"),
  adminHost: Setting.withDefault("TRIGATE_ADMIN_HOST", Host, "127.0.0.1", {
    ...listening,
    meaning: "address of the admin listener, which has metrics, readiness in detail, the action log and the console",
    takes: "a host name or an IP address; if other machines can reach it, `TRIGATE_CALLERS` must require keys"
  }),
  adminPort: Setting.optional(
    "TRIGATE_ADMIN_PORT",
    Port,
    {
      ...listening,
      meaning: "port of the admin listener; 0 selects a free port",
      takes: "a port from 0 to 65535"
    },
    "unset: no separate listener; if the callers' listener has a loopback address, it serves the action log and the console"
  ),
  ...trading,
  ...Upstream.settings,
  relayInfo: Setting.withDefault("TRIGATE_RELAY_INFO", Setting.OnOff, "on", {
    group: "Relaying",
    meaning: "relay /info queries of any type, not only of the documented types",
    takes: Setting.onOff
  }),
  relayMethods: Setting.list(
    "TRIGATE_RELAY_METHODS",
    Setting.nonEmptyWords(Schema.Union([Schema.Literals(familyNames), Method])),
    {
      group: "Relaying",
      meaning:
        "JSON-RPC methods that /evm and /l2 relay besides the declared ones, by name or by family; the params of a " +
        "method outside of the families are not validated, and a call can be sent more than once",
      takes:
        `${familyNames.map((name) => `\`${name}\``).join(", ")}, or exact names of methods that do not send, submit, ` +
        "filter or subscribe; comma separated"
    },
    "unset: only the declared methods"
  ),
  batchLimit: Setting.withDefault("TRIGATE_BATCH_LIMIT", BatchCalls, "100", {
    group: "Relaying",
    meaning: "maximum calls in a JSON-RPC batch of /evm and /l2; a batch of more than 100 is forwarded in parts",
    takes: `an integer from 1 to ${longestBatch}`
  }),
  corsOrigins: Setting.optional(
    "TRIGATE_CORS_ORIGINS",
    Schema.Union([Setting.Any, Setting.nonEmptyWords(Schema.String.check(isOrigin))]),
    {
      group: "Callers",
      meaning:
        "origins whose pages are allowed to call the gateway from a browser, and to send actions, transactions and messages",
      takes: "origins like `https://app.example`, comma separated, or `*`"
    },
    "unset: none"
  ),
  maxConnections: Setting.withDefault("TRIGATE_MAX_CONNECTIONS", Setting.Count, "4096", {
    ...limits,
    meaning: "maximum open connections of callers; one client address can use at most a quarter of them",
    takes: "an integer above zero"
  }),
  memoryInFlight: Setting.withDefault("TRIGATE_MEMORY_IN_FLIGHT", MemoryInFlight, "64", {
    ...limits,
    meaning:
      "maximum MiB of the bodies of requests in flight, and separately of responses that clients have not read yet",
    takes: "an integer of MiB, at least 8"
  }),
  maxLag: Setting.withDefault("TRIGATE_MAX_LAG", Setting.Deadline, "100 ms", {
    ...limits,
    meaning:
      "maximum event-loop lag, which is also the interval of the timer that measures it; after five consecutive late timers, new work is refused",
    takes: Setting.duration
  }),
  accessLog: Setting.withDefault("TRIGATE_ACCESS_LOG", Setting.OnOff, "on", {
    group: "Logs",
    meaning: "write one line per request to standard output: JSON, or plain text on a terminal",
    takes: Setting.onOff
  }),
  auditLog: Setting.optional("TRIGATE_AUDIT_LOG", Schema.String.check(namesFile), {
    group: "Logs",
    needsRestart: true,
    meaning:
      "destination of the audit log: a line of JSON for each sent action, with its caller, signer, nonce, digest, " +
      "type and outcome; never the signature",
    takes: "`stdout`, or the path of a file"
  }, "unset: nowhere"),
  redisUrl: Setting.optional("TRIGATE_REDIS_URL", RedisUrl, {
    ...stores,
    meaning:
      "Redis in which replicas share rate limits, quotas, cached responses and, without a database, the nonces of signed " +
      "actions. While Redis is unreachable, each replica counts and caches by itself; " +
      "actions with nonces in Redis are refused",
    takes: "a redis:// or rediss:// URL, with a database number or no path"
  }),
  actionLogAlone: Setting.withDefault("TRIGATE_ACTION_LOG_ALONE", Setting.OnOff, "off", {
    ...stores,
    meaning:
      "send signed actions while Redis, which stores their nonces, is unreachable or late; another replica might then send the same nonce",
    takes: Setting.onOff
  }),
  databaseUrl: Setting.optional("TRIGATE_DATABASE_URL", DatabaseUrl, {
    ...stores,
    meaning:
      "database that stores the callers' keys and the action log, which therefore survives a crash; replicas can share a Postgres database. Without Redis, the database also " +
      "counts quotas and stores the events of accounts. While the database cannot be written, signed actions are refused",
    takes: "a postgres:// URL, or the path of a SQLite file"
  }, "unset: in memory"),
  archive: Setting.list("TRIGATE_ARCHIVE", Setting.nonEmptyWords(RecordedCoin), {
    group: "Candle archive",
    needsRestart: true,
    meaning:
      "coins whose candles are recorded, each with the smallest recorded interval; larger intervals are built from it. " +
      "The candles are stored in the database of `TRIGATE_DATABASE_URL`, otherwise in memory",
    takes:
      "`coin:interval`, such as `BTC:1m,@107:5m,#50:1m`, or `*:1h` for every other perpetual and pair; comma separated"
  }, "unset: nothing is recorded"),
  ...sandbox,
  ...streams,
  ...streamSettings,
  ...telemetrySettings
}

/** The settings by group, with their names. */
export const grouped = Setting.groups.map((group) => ({
  group,
  members: Object.entries(settings).filter(([, setting]) => setting.group === group)
}))

/** The settings that contain upstream URLs. A gateway without any of them serves the sandbox. */
export const addressNames = ["tradingApiUrl", "tradingNodeUrl", "tokenChainUrl", "layer2Url"] as const

/** Returns the flag of a setting in `trigate sandbox`: `seed` for `sandbox-seed`. */
export const sandboxFlag = (flag: string): string => flag.replace(/^sandbox-/u, "")

/**
 * A setting as it was set: its text, and its source, such as `--port`, `TRIGATE_PORT` or `port in trigate.config.yaml`.
 */
export interface GivenSetting {
  readonly text: string
  readonly source: string
}

/** The decoded settings. */
export interface Settings extends Setting.Values<typeof settings> {
  /**
   * The settings that were set, by the name of their environment variable; absent if the settings were not read from
   * sources.
   */
  readonly sources?: ReadonlyMap<string, GivenSetting>
  /** The policies in the file of the setting `guard`; absent if there is none. */
  readonly policies?: Policies
}

/** All settings, decoded from the `ConfigProvider` of the context. */
export const all: Config.Config<Settings> = Config.all(settings)

/** Environment variables that configure only commands other than `trigate serve`. A gateway ignores them. */
export const commandLine = {
  adminKey: "TRIGATE_ADMIN_KEY",
  adminUrl: "TRIGATE_ADMIN_URL",
  gatewayUrl: "TRIGATE_GATEWAY_URL",
  gatewayKey: "TRIGATE_GATEWAY_KEY",
  mcpKey: "TRIGATE_MCP_KEY",
  privateKey: "TRIGATE_PRIVATE_KEY"
} as const

/** Returns the limits of streams. */
export const toLimits = (settings: Settings) => ({
  connections: settings.streamConnections,
  newConnections: settings.streamNewConnections,
  subscriptions: settings.streamSubscriptions,
  users: settings.streamUsers,
  usersOfCaller: settings.streamCallerUsers,
  messages: settings.streamMessages,
  grace: settings.streamGrace
})

/** Returns the watched accounts, and the bounds of their event logs. */
export const toEventLog = ({ eventLogAge, eventLogRows, watchAccounts }: Settings) => ({
  accounts: watchAccounts.map(lowerCase),
  bounds: { rows: eventLogRows, age: Duration.toMillis(eventLogAge) }
})
