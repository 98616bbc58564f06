/** `trigate status`: the state that a running gateway reports. */
import * as Health from "@trigate/client/Health"
import { printable } from "@trigate/domain/encoding/Encoding"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import { trader } from "@trigate/domain/unstable/Sandbox"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import * as Schema from "effect/Schema"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Output from "../Output.ts"

const notReady = {
  draining: (gateway: string) => `The ${gateway} is shutting down and accepts no new requests`,
  full: (gateway: string) => `The action log of the ${gateway} is full, so it refuses signed actions`,
  "without-keys": (gateway: string) =>
    `The ${gateway} has not been able to read the keys of its callers yet, so it refuses all callers`
}

/** The gateway responds, but does not accept traffic. */
export class NotReady extends Schema.TaggedError<NotReady>()("NotReady", {
  origin: Schema.String,
  status: Schema.Literals(["draining", "full", "without-keys"])
}) {
  override get message() {
    return notReady[this.status](`gateway at ${this.origin}`)
  }
}

type Readiness = Effect.Success<ReturnType<typeof Health.ready>>

type ChainReadiness = NonNullable<Readiness["chains"]>["trading"]

interface Sample {
  readonly labels: { readonly [name: string]: string }
  readonly value: number
}

/**
 * Parses the samples of a metric from Prometheus text. Does not unescape label values, because the labels of the
 * metrics that are read here contain no escapes.
 */
const samples = (text: string, metric: string): ReadonlyArray<Sample> =>
  [...text.matchAll(new RegExp(`^${metric}\\{(.*)\\} (\\S+)$`, "gmu"))].map(([, labels = "", value]) => ({
    labels: Object.fromEntries(
      [...labels.matchAll(/(\w+)="([^"]*)"/gu)].map(([, name = "", text = ""]) => [name, text])
    ),
    value: Number(value)
  }))

interface UpstreamStatus {
  readonly addresses: number
  /** The number of the upstream's addresses that are ejected (temporarily not used). */
  readonly ejected?: number
  /** The remaining rate limit that reads can use now: API weight of a trading API, request units of a node. */
  readonly rateLimitLeft?: number
}

const upstreamStatus = (metrics: string, upstream: string, addresses: number): UpstreamStatus => {
  const of = (metric: string) => samples(metrics, metric).filter(({ labels }) => labels["upstream"] === upstream)
  const left = of("trigate_upstream_rate_limit_available").find(({ labels }) => labels["share"] === "common")
  return {
    addresses,
    ...(metrics === "" ? {} : { ejected: of("trigate_upstream_ejected").filter(({ value }) => value === 1).length }),
    ...(left === undefined ? {} : { rateLimitLeft: left.value })
  }
}

/**
 * Returns the readiness of a gateway, with values from its metrics. `metrics` is empty if this caller cannot read the
 * metrics.
 */
const statusDocument = (origin: string, { chains, ...readiness }: Readiness, metrics: string) => {
  const version = samples(metrics, "trigate_build_info")[0]?.labels["version"]
  return {
    gateway: origin,
    ...(version === undefined ? {} : { version }),
    ...readiness,
    ...(chains === undefined ? {} : {
      chains: Record.map(chains, ({ mode, upstreams }: ChainReadiness) => ({
        mode,
        upstreams: Record.map(upstreams, (addresses, upstream) => upstreamStatus(metrics, upstream, addresses))
      }))
    })
  }
}

type Status = ReturnType<typeof statusDocument>

const upstreamText = (name: string, { addresses, ejected = 0, rateLimitLeft }: UpstreamStatus): string => {
  const unit = name === "trading-api" ? "weight" : "request units"
  return [
    `${name}: ${addresses} ${addresses === 1 ? "address" : "addresses"}`,
    ...(ejected === 0 ? [] : [`${ejected} ejected`]),
    ...(rateLimitLeft === undefined ? [] : [`${Math.floor(rateLimitLeft)} ${unit} left`])
  ].join(", ")
}

const chainText = ({ mode, upstreams }: NonNullable<Status["chains"]>["trading"]): string =>
  mode === "live"
    ? Object.entries(upstreams).filter(([, { addresses }]) => addresses > 0)
      .map(([name, upstream]) => upstreamText(name, upstream)).join("; ")
    : mode === "sandbox"
    ? "sandbox"
    : "not configured"

const table = (
  { actionLog, chains, degraded = [], eventLog, gateway, network, redis, sandbox, status, version }: Status
): string =>
  Output.facts([
    ["gateway", gateway],
    ["version", version],
    ["status", status],
    ["degraded", degraded.length === 0 ? undefined : degraded.join(", ")],
    ["network", sandbox ? `${network} (sandbox: nothing here is real)` : network],
    ...Object.entries(chains ?? {}).map(([name, chain]) => [name, chainText(chain)] as const),
    ["chains", chains === undefined ? "available on the admin listener: set --gateway to its URL" : undefined],
    ["action log", actionLog && `${actionLog.backing}, ${actionLog.state}, free capacity: ${actionLog.room}`],
    [
      "event log",
      eventLog &&
      `${eventLog.backing}, ${eventLog.state}, ${eventLog.role}, ${eventLog.accounts.live} of ${
        Object.values(eventLog.accounts).reduce((sum, count) => sum + count, 0)
      } accounts complete`
    ],
    ["redis", redis]
  ])

/** `trigate status`. */
export const command = Command.make("status", {}, () =>
  Effect.gen(function*() {
    const access = yield* GatewayAccess.connect
    const [readiness, metrics] = yield* GatewayAccess.over(
      access,
      Effect.all([Health.ready(), Effect.option(Health.metrics())], { concurrency: 2 })
    )
    const status = statusDocument(access.origin, readiness, Option.getOrElse(metrics, () => ""))
    yield* Output.print({ json: status, table: table(status) })
    if (readiness.status !== "ready") return yield* new NotReady({ origin: access.origin, status: readiness.status })
  })).pipe(
    Command.withDescription(
      "Print the state of a gateway: network, chains, upstreams, remaining weight, action log. The exit code is 0 " +
        "if the gateway is ready, otherwise 5"
    ),
    Command.withShortDescription("Print the state of a gateway; the exit code is 0 if the gateway is ready"),
    Command.withExamples([
      { command: "trigate status" },
      { command: "trigate status --gateway http://127.0.0.1:9090 --json", description: "A gateway's admin listener" }
    ]),
    GatewayAccess.options
  )

/** A command line, and its purpose. */
type Step = readonly [commandLine: string, does: string]

const inSandbox: ReadonlyArray<Step> = [
  ["trigate watch book BTC", "the live order book"],
  [`trigate positions ${trader.address}`, "the sandbox's trader: balances, positions, orders"],
  [`TRIGATE_PRIVATE_KEY=${trader.privateKey} trigate order buy 0.01 BTC`, "a paper order; everyone has this key"]
]

const live: ReadonlyArray<Step> = [
  ["trigate status", "chains, upstreams, remaining weight, action log"],
  ["trigate watch mids", "live prices of all coins"],
  ["trigate positions ADDRESS", "your balances, positions and open orders"]
]

const withoutGateway: ReadonlyArray<Step> = [
  ["trigate sandbox", "start a venue in memory: paper orders, no account, no money"],
  ["trigate serve --help", "list every setting of a gateway to the real chains"],
  ["trigate status --gateway URL", "query a gateway on another machine"]
]

const stepLines = (width: number, steps: ReadonlyArray<Step>): ReadonlyArray<string> => {
  const names = Math.max(...steps.map(([commandLine]) => commandLine.length))
  const side = steps.map(([commandLine, does]) => `  ${commandLine.padEnd(names)}  ${does}`)
  return side.every((text) => text.length <= width)
    ? side
    : steps.flatMap(([commandLine, does]) => [`  ${commandLine}`, `      ${does}`])
}

const states = {
  ready: "ready",
  draining: "shutting down",
  full: "refuses signed actions, because its action log is full",
  "without-keys": "refuses all callers, because it cannot read their keys"
} as const

/** `trigate` without a subcommand. Succeeds in every state of the gateway. */
export const home = Command.make("trigate", {}, () =>
  Effect.gen(function*() {
    const access = yield* GatewayAccess.connect
    const { says, steps } = yield* Effect.match(GatewayAccess.over(access, Health.ready()), {
      onFailure: (error) => ({ says: [unwrapReason(error).message], steps: withoutGateway }),
      onSuccess: ({ network, sandbox, status }) => ({
        says: [
          `The gateway at ${access.origin}: ${states[status]}, ` +
          (sandbox ? "a sandbox (nothing here is real)" : `in front of ${network}`),
          `Console: ${access.origin}/  API: ${access.origin}/docs`
        ],
        steps: sandbox ? inSandbox : live
      })
    })
    const width = yield* Output.terminalWidth
    const lines = [
      ...says.map(printable),
      "",
      "Next:",
      ...stepLines(width, steps),
      "",
      "All commands: trigate --help"
    ]
    yield* Console.log(lines.join("\n"))
  })).pipe(GatewayAccess.options)
