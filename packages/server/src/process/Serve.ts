/**
 * Runs a gateway: reads its settings, listens, prints its URL, and serves until it is interrupted. Also the log on
 * standard output.
 *
 * A line is a JSON object. On a terminal, a line is readable text with the fields of that object, in their order.
 */
import { catalogDate, isActionType } from "@trigate/domain/actions/Action"
import { printable, printableLines } from "@trigate/domain/encoding/Encoding"
import type { Backing } from "@trigate/trading/actionLog/ActionLog"
import * as Admission from "@trigate/trading/admission/Admission"
import * as Cause from "effect/Cause"
import * as Console from "effect/Console"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { format as textOf } from "effect/Formatter"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as References from "effect/References"
import * as Result from "effect/Result"
import { isSandbox, makeStatus } from "../Chains.ts"
import * as GatewayServer from "../GatewayServer.ts"
import * as Observe from "../requests/Observe.ts"
import { type Settings as Decoded, settings as declared } from "../settings/Settings.ts"
import * as Settings from "../settings/SettingsSources.ts"
import { AuditLogWriter } from "../stores/AuditLogWriter.ts"
import * as Stores from "../stores/Stores.ts"
import * as Metrics from "./Metrics.ts"

const text = (value: unknown): string => Predicate.isString(value) ? value : textOf(value)

/** Converts a program message to a log line. */
const toLine = ({ cause, date, fiber, logLevel, message }: Logger.Options<unknown>): Observe.Line => ({
  ...fiber.getRef(References.CurrentLogAnnotations),
  time: date.getTime(),
  level: logLevel.toLowerCase(),
  message: Array.isArray(message) ? message.map(text).join(" ") : text(message),
  ...(cause.reasons.length === 0 ? {} : { cause: Cause.pretty(cause) }),
  ...(fiber.cache.tracer === undefined || fiber.cache.span === undefined ? {} : { traceId: fiber.cache.span.traceId })
})

const clockTime = (time: number): string => DateTime.formatIso(DateTime.makeUnsafe(time)).slice(11)

const valueText = (value: unknown): string => {
  if (Array.isArray(value)) return value.map(text).join(",")
  const plain = text(value)
  return printable(/^[^\s"=]+$/u.test(plain) ? plain : JSON.stringify(plain))
}

/**
 * Formats a line for a terminal: the time of day in UTC, the level, the message, and each further field as
 * `name=value`. The cause, if any, follows on separate lines.
 */
export const peopleLine = ({ cause, level, message, time, ...members }: Observe.Line): string => {
  const rest = Object.entries(members).filter(([, value]) =>
    value !== undefined && !(Array.isArray(value) && value.length === 0)
  )
  return [`${clockTime(time)} ${level.toUpperCase().padEnd(5)} ${printable(message)}`]
    .concat(rest.map(([name, value]) => `${name}=${valueText(value)}`)).join(" ") +
    (cause === undefined ? "" : `\n${printableLines(text(cause))}`)
}

/**
 * Makes a logger that converts program messages to text with `format`. The messages can quote text from clients and
 * servers, so control characters are escaped.
 */
export const logger = (format: (line: Observe.Line) => string): Logger.Logger<unknown, string> =>
  Logger.make((options) => printableLines(format(toLine(options))))

/**
 * Writes program messages to standard output, and selects the format of the access log.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<never> = Layer.unwrap(Effect.sync(() => {
  const format = process.stdout.isTTY ? peopleLine : Observe.jsonLine
  return Layer.merge(Layer.succeed(Observe.LineFormat, format), Logger.layer([Logger.withConsoleLog(logger(format))]))
}))

const actionLogs: { readonly [B in Backing]: string } = {
  memory: "in memory, lost when this process ends (set TRIGATE_DATABASE_URL to store it)",
  SQLite: "in a SQLite file that only this gateway uses",
  Postgres: "in Postgres",
  Redis:
    "nonces in Redis; signed bodies in memory, lost when this process ends (set TRIGATE_DATABASE_URL to store them)"
}

const describeCallers = (settings: Decoded): ReadonlyArray<string> => {
  if (Option.isNone(settings.callers)) return []
  const place = Option.flatten(Result.getSuccess(Stores.findLocation(settings)))
  return [
    Option.match(place, {
      onNone: () => "  callers: every client that can reach the gateway (TRIGATE_CALLERS=open)",
      onSome: (found) => `  callers: clients with a key in ${Stores.describeLocation(found)}`
    })
  ]
}

/**
 * Returns the startup lines about relayed actions. They include a warning if any client on the network can have orders
 * relayed.
 */
const actionLines = (settings: Decoded): ReadonlyArray<string> => {
  if (!isSandbox(settings) && settings.tradingApiUrl.length === 0) return []
  const { env } = declared.relayActions
  const { relayActions = "known" } = Admission.toOptions(settings)
  const words = {
    known: `every known type, including orders (to relay fewer types, set ${env})`,
    none: `none (${env}=none)`,
    all: `any type, including unknown ones (${env}=*)`
  } as const
  const actions = `  actions (catalog of ${catalogDate}): ${
    Predicate.isString(relayActions)
      ? words[relayActions]
      : `${relayActions.map((type) => isActionType(type) ? type : `${type} (unknown type)`).join(", ")} (${env})`
  }`
  const relaysOrders = Admission.relays({ relayActions }, "order")
  const isOpen = !Observe.isOwnMachine(settings.host) && Option.contains(settings.callers, "open")
  return relaysOrders && isOpen && !isSandbox(settings) && Option.isNone(settings.signers)
    ? [
      actions,
      `  warning: every client that can reach ${settings.host} can have orders relayed; set ${declared.callers.env} to \`keys\`, ` +
      `or list your signers in ${declared.signers.env}`
    ]
    : [actions]
}

/** Returns the startup line about the guard. */
const describeGuard = ({ guard, policies }: Decoded): ReadonlyArray<string> => {
  if (policies === undefined) return []
  const count = policies.policies.length
  const others = policies.otherAccounts === "refuse"
    ? "actions of other accounts are refused"
    : "actions of other accounts pass"
  return [`  guard: ${count} ${count === 1 ? "policy" : "policies"} in ${Option.getOrElse(guard, () => "")}; ${others}`]
}

/** Returns the startup lines about the recorded candle series. */
const describeArchive = (settings: Decoded): ReadonlyArray<string> => {
  if (settings.archive.length === 0) return []
  const wishes = settings.archive.map(({ coin, interval }) => `${coin}:${interval}`).join(", ")
  const place = Option.match(Stores.findDatabase(settings), {
    onNone: () => "in memory, lost when this process ends (set TRIGATE_DATABASE_URL to store it)",
    onSome: ({ kind }) => `in ${kind}`
  })
  return [`  candle archive of ${wishes}: ${place}`]
}

/** Returns warnings about settings of a removed feature: batches of different callers' reads. */
const batchWarnings = (settings: Decoded): ReadonlyArray<string> =>
  isSandbox(settings)
    ? []
    : (["tradingNodeBatch", "layer2Batch"] as const).filter((batch) => settings[batch] > 1).map((batch) =>
      `${declared[batch].env} has no effect: reads of different callers are no longer sent in one batch`
    )

/** Returns the startup line about the followed venue. A log line before it reports a venue that does not respond. */
const describeFeed = ({ sandboxFeedUrl }: Decoded): ReadonlyArray<string> =>
  Option.isNone(sandboxFeedUrl)
    ? []
    : [`  prices: those of the venue in ${declared.sandboxFeedUrl.env}; orders are matched here, on paper`]

const describeChains = (settings: Decoded, isWanted: boolean): string => {
  const { chains, sandbox } = makeStatus(settings)
  if (sandbox) {
    const why = isWanted ? "" : ", because no TRIGATE_*_URL is set"
    return [
      `  serving the sandbox${why}: nothing here is real`,
      ...describeFeed(settings),
      ...actionLines(settings),
      ...describeGuard(settings)
    ].join("\n")
  }
  const lines = Object.entries(chains).map(([name, { mode, upstreams }]) =>
    mode === "live"
      ? `  ${name}: ${Object.entries(upstreams).map(([label, count]) => `${label} x${count}`).join(", ")}`
      : `  ${name}: not configured`
  )
  return [
    ...lines,
    ...batchWarnings(settings).map((warning) => `  warning: ${warning}`),
    ...actionLines(settings),
    ...describeGuard(settings),
    `  action log: ${actionLogs[Stores.chooseBacking(settings)]}`,
    ...describeArchive(settings)
  ].join("\n")
}

const announce = Effect.fnUntraced(function*(settings: Decoded, isSandboxWanted: boolean) {
  const { address } = yield* HttpServer
  const url = formatAddress(address)
  const admin = yield* GatewayServer.Admin
  const { system, user } = process.cpuUsage()
  yield* Console.log(
    `Trigate listens on ${url} (${isSandbox(settings) ? "sandbox" : settings.network}), ready after ${
      Math.round(process.uptime() * 1000)
    } ms ` +
      `(${Math.round((system + user) / 1000)} ms of processor time)
${[describeChains(settings, isSandboxWanted), ...describeCallers(settings)].join("\n")}
  reference: ${url}/docs  contract: ${url}/openapi.json  state: ${url}/health/ready` +
      (admin.url === url ? "" : `\n  admin: ${admin.url}/health/ready  metrics: ${admin.url}/metrics`) +
      (isSandbox(settings)
        ? `\n  venue: ${url}/exchange, ${url}/info, ${url.replace("http", "ws")}/ws` +
          (admin.hasConsole ? `  control: ${admin.url}/admin/sandbox` : "")
        : "") +
      (admin.hasConsole ? `\n  console: ${admin.url}/` : "")
  )
})

/**
 * Returns the layer that exports telemetry to the configured collector. Loads the layer's module only if a collector is
 * configured.
 */
const telemetry = (settings: Decoded): Layer.Layer<never> => {
  const { otelSdkDisabled, otlpEndpoint } = settings
  return otelSdkDisabled || Option.isNone(otlpEndpoint)
    ? Layer.empty
    : Layer.unwrap(Effect.map(
      Effect.promise(() => import("./Telemetry.ts")),
      ({ layer }) => layer(settings, otlpEndpoint.value)
    ))
}

const read = Effect.fnUntraced(function*(sources: Settings.Sources) {
  const { reload } = yield* GatewayServer.Reload
  const settings = yield* Settings.read(sources)
  const { applied, needsRestart } = yield* reload(settings)
  yield* Effect.logInfo(
    applied.length === 0
      ? "Settings read again: nothing to apply"
      : `Settings read again: ${applied.join(", ")} applied`
  )
  if (needsRestart.length > 0) {
    yield* Effect.logWarning(
      `Restart the gateway to apply ${needsRestart.join(", ")}: until then, the old values are used`
    )
  }
  yield* Effect.forEach(batchWarnings(settings), (warning) => Effect.logWarning(warning))
})

const refused = Metrics.metrics.settingsRefused.series({})

/** Reopens the audit log and reads the settings again at each `SIGHUP`. Invalid settings change nothing. */
const reloadOnHangUp = Effect.fnUntraced(function*(sources: Settings.Sources) {
  const { reopen } = yield* AuditLogWriter
  const hangUps = yield* Queue.sliding<void>(1)
  const onHangUp = () => void Queue.offerUnsafe(hangUps, undefined)
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("SIGHUP", onHangUp)),
    () => Effect.sync(() => process.off("SIGHUP", onHangUp))
  )
  const again = read(sources).pipe(
    Effect.andThen(Metric.update(refused, 0)),
    Effect.catch(({ message }) =>
      Effect.andThen(
        Metric.update(refused, 1),
        Effect.logError(`Settings read again: the old ones stay in use, because ${message}`)
      )
    )
  )
  yield* Effect.forkScoped(Effect.forever(Queue.take(hangUps).pipe(Effect.andThen(reopen), Effect.andThen(again))))
})

/** Serves a gateway with the given settings. Fails with `SettingsError`, or with `StartError` if it cannot listen. */
export const serve = Effect.fnUntraced(function*(sources: Settings.Sources) {
  const settings = yield* Settings.read(sources)
  return yield* Layer.launch(
    Layer.effectDiscard(Effect.andThen(reloadOnHangUp(sources), announce(settings, sources.withoutAddresses === true)))
      .pipe(
        Layer.provide(GatewayServer.layer(settings)),
        Layer.provide(telemetry(settings)),
        // this layer closes after the gateway, so that the last export includes the gateway's final metrics
        Layer.provide(Metrics.layer)
      )
  )
}, Effect.provide(layer))
