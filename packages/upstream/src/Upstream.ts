/** Upstreams and the addresses to which their calls are sent, with the settings and the metrics of these calls. */
import { sha256 } from "@noble/hashes/sha2"
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils"
import type { UpstreamLabel } from "@trigate/domain/Caller"
import { counter, gauge, seconds } from "@trigate/domain/unstable/DeclaredMetric"
import * as Setting from "@trigate/domain/unstable/Setting"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Concealment from "./transport/HttpTransport.ts"

/** The metrics, by member name. */
export const metrics = {
  cache: counter(
    "trigate_response_cache_total",
    "Cache lookups and background refreshes, by outcome",
    ["upstream", "operation", "outcome"]
  ),
  cacheBytes: gauge("trigate_response_cache_bytes", "Bytes of cached responses in this process"),
  upstreamCalls: counter("trigate_upstream_calls_total", "Attempts at an upstream, by operation and outcome", [
    "upstream",
    "operation",
    "outcome"
  ]),
  upstreamSeconds: seconds(
    "trigate_upstream_call_seconds",
    "Duration of an attempt at an upstream",
    ["upstream"],
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
  ),
  upstreamWeight: counter("trigate_upstream_weight_total", "Rate-limit weight spent at the venue's API", ["upstream"]),
  upstreamWeightSaved: counter(
    "trigate_upstream_weight_saved_total",
    "Rate-limit weight of reads that did not reach the venue's API, by cache outcome",
    ["upstream", "outcome"]
  ),
  upstreamRequestUnits: counter("trigate_upstream_request_units_total", "Request units spent at node providers", [
    "upstream"
  ]),
  upstreamRetries: counter(
    "trigate_upstream_retries_total",
    "Retries of reads, by the fault of the previous attempt",
    ["upstream", "operation", "cause"]
  ),
  upstreamHedges: counter(
    "trigate_upstream_hedges_total",
    "Hedged reads (sent to a second address because the first address was slow), by the address that responded first",
    ["upstream", "operation", "won"]
  ),
  upstreamEjected: gauge("trigate_upstream_ejected", "Whether an upstream's address is ejected: 0 no, 1 yes", [
    "upstream",
    "address"
  ]),
  upstreamNextProbe: gauge(
    "trigate_upstream_next_probe_seconds",
    "When an ejected address is probed next, in seconds since 1970; 0 for other addresses",
    ["upstream", "address"]
  ),
  upstreamEjections: counter(
    "trigate_upstream_ejections_total",
    "Ejections of an upstream's address, by cause",
    ["upstream", "address", "cause"]
  ),
  upstreamDeferrals: counter(
    "trigate_upstream_deferrals_total",
    "Deferrals of an upstream's address because of a Retry-After",
    ["upstream", "address"]
  ),
  rateLimitAvailable: gauge(
    "trigate_upstream_rate_limit_available",
    "Rate-limit weight or request units available now: to every call, and to signed actions",
    ["upstream", "share"]
  ),
  rateLimitWaits: counter(
    "trigate_upstream_rate_limit_waits_total",
    "Calls that waited for their upstream's rate limit",
    ["upstream"]
  ),
  rateLimitRefused: counter(
    "trigate_upstream_rate_limit_refused_total",
    "Calls refused because the wait for the rate limit would have been too long",
    ["upstream"]
  ),
  rateLimitBeyondShare: counter(
    "trigate_upstream_rate_limit_beyond_share_total",
    "Calls refused because their caller had used up its share of the rate limit",
    ["upstream"]
  ),
  rateLimitCallers: gauge(
    "trigate_upstream_rate_limit_callers",
    "Callers that currently share an upstream's rate limit",
    ["upstream"]
  ),
  quotaWaits: counter("trigate_quota_waits_total", "Calls that waited for their caller's quota", ["quota"]),
  sharedStateDegraded: gauge(
    "trigate_shared_state_degraded",
    "1 while the shared store is unreachable and this process continues without it, otherwise 0",
    ["use"]
  )
} as const

const noLimit = "unset: no limit"

const removedBatches = "has no effect: reads of different callers are no longer sent in one batch, which saved nothing"

/** The settings, by member name in a configuration file. */
export const settings = {
  tradingApiUrl: Setting.list("TRIGATE_TRADING_API_URL", Setting.BaseUrls, {
    group: "Upstreams",
    meaning: "base URLs of the venue's API, in order of preference"
  }),
  tradingNodeUrl: Setting.list("TRIGATE_TRADING_NODE_URL", Setting.BaseUrls, {
    group: "Upstreams",
    meaning: "base URLs of the trading-chain node, with the endpoint key in the path"
  }),
  tradingNodeWsUrl: Setting.list("TRIGATE_TRADING_NODE_WS_URL", Setting.SocketUrls, {
    group: "Upstreams",
    needsRestart: true,
    meaning: "WebSocket URLs of the trading-chain node, for a subscription to new blocks"
  }, "unset: new blocks are polled"),
  layer2WsUrl: Setting.list("TRIGATE_LAYER2_WS_URL", Setting.SocketUrls, {
    group: "Upstreams",
    needsRestart: true,
    meaning: "WebSocket URLs of the layer-2 node, for a subscription to new blocks"
  }, "unset: new blocks are polled"),
  tokenChainUrl: Setting.list("TRIGATE_TOKEN_CHAIN_URL", Setting.BaseUrls, {
    group: "Upstreams",
    meaning: "base URLs of the token-chain node, with the endpoint key in the path"
  }),
  layer2Url: Setting.list("TRIGATE_LAYER2_URL", Setting.BaseUrls, {
    group: "Upstreams",
    meaning: "base URLs of the layer-2 node, with the endpoint key in the path"
  }),
  tradingApiWeight: Setting.withDefault("TRIGATE_TRADING_API_WEIGHT", Setting.Positive, "1200", {
    group: "Limits",
    meaning: "weight per minute that the venue's API grants this IP address"
  }),
  tradingNodeRps: Setting.optional("TRIGATE_TRADING_NODE_RPS", Setting.Positive, {
    group: "Limits",
    meaning: "request units per second of the trading-chain node's plan"
  }, noLimit),
  tokenChainRps: Setting.optional("TRIGATE_TOKEN_CHAIN_RPS", Setting.Positive, {
    group: "Limits",
    meaning: "request units per second of the token-chain node's plan"
  }, noLimit),
  tokenChainStreamRps: Setting.withDefault("TRIGATE_TOKEN_CHAIN_STREAM_RPS", Setting.Positive, "1", {
    group: "Limits",
    meaning: "maximum requests per second to the token-chain node, for all transaction streams of a process together"
  }),
  layer2Rps: Setting.optional("TRIGATE_LAYER2_RPS", Setting.Positive, {
    group: "Limits",
    meaning: "request units per second of the layer-2 node's plan"
  }, noLimit),
  tradingNodeLogBlocks: Setting.optional("TRIGATE_TRADING_NODE_LOG_BLOCKS", Setting.Count, {
    group: "Limits",
    meaning: "maximum blocks in one `eth_getLogs` at the trading-chain nodes; 50 for the public node"
  }, "unset: learned from the nodes' errors"),
  layer2LogBlocks: Setting.optional("TRIGATE_LAYER2_LOG_BLOCKS", Setting.Count, {
    group: "Limits",
    meaning: "maximum blocks in one `eth_getLogs` at the layer-2 nodes"
  }, "unset: learned from the nodes' errors"),
  tradingNodeBatch: Setting.withDefault("TRIGATE_TRADING_NODE_BATCH", Setting.Count, "1", {
    group: "Limits",
    meaning: removedBatches
  }),
  layer2Batch: Setting.withDefault("TRIGATE_LAYER2_BATCH", Setting.Count, "1", {
    group: "Limits",
    meaning: removedBatches
  }),
  logsMaxRequests: Setting.withDefault("TRIGATE_LOGS_MAX_REQUESTS", Setting.Count, "40", {
    group: "Limits",
    meaning: "maximum upstream requests for one `eth_getLogs`"
  }),
  callerFilters: Setting.withDefault("TRIGATE_CALLER_FILTERS", Setting.Count, "100", {
    group: "Limits",
    meaning:
      "maximum number of filters (`eth_newFilter` and similar methods) of one caller; a filter is removed after 5 minutes without a poll"
  }),
  readDeadline: Setting.withDefault("TRIGATE_READ_DEADLINE", Setting.Deadline, "10 seconds", {
    group: "Limits",
    meaning: "deadline of a read, including all attempts"
  }),
  onceDeadline: Setting.withDefault("TRIGATE_ONCE_DEADLINE", Setting.Deadline, "20 seconds", {
    group: "Limits",
    meaning: "deadline of a signed action, including all attempts"
  }),
  traceUpstream: Setting.withDefault("TRIGATE_TRACE_UPSTREAM", Setting.OnOff, "off", {
    group: "Telemetry",
    meaning: "whether requests to upstreams contain the `traceparent` of their span; requires an OTLP endpoint"
  })
}

/** The decoded settings. */
export type Settings = Setting.Values<typeof settings>

export type { UpstreamLabel }

/**
 * An upstream: its label, and its addresses in order of preference. Each address is a secret, because its path contains the
 * endpoint key.
 */
export interface Upstream {
  readonly label: UpstreamLabel
  /** Base URLs without a trailing slash, in order of preference. */
  readonly addresses: ReadonlyArray<Redacted.Redacted>
}

/** The patterns, by upstream, of the route path that providers and documentation append to the base URL. */
const routes: { readonly [L in UpstreamLabel]: RegExp } = {
  "trading-api": /\/(?:exchange|info)\/*$/u,
  "trading-node": /\/(?:evm|info)\/*$/u,
  "token-chain": /\/api\/v2(?:\/jsonRPC)?\/*$/u,
  layer2: /\/+$/u
}

const baseUrl = (label: UpstreamLabel, address: string): string =>
  address.replace(routes[label], "").replace(/\/+$/u, "")

/** Makes an upstream from plain or redacted base URLs; removes trailing slashes, and a trailing route path. */
export const make = (
  label: UpstreamLabel,
  addresses: ReadonlyArray<string | Redacted.Redacted>
): Upstream => ({
  label,
  addresses: addresses.map((address) =>
    Redacted.make(baseUrl(label, typeof address === "string" ? address : Redacted.value(address)), { label })
  )
})

/** The target of a call: one address of an upstream, with the path of the call. */
export interface Target {
  readonly label: UpstreamLabel
  /** The index of the address in its upstream, from 0, for log lines and metrics. */
  readonly address: number
  /** The address without the path of the call. Outlier detection identifies the address by this base URL. */
  readonly base: Redacted.Redacted
  readonly url: Redacted.Redacted
  /** Removes the endpoint key from responses of the address; absent if the address does not contain a key. */
  readonly conceal: Concealment.Conceal | undefined
}

/**
 * Returns the name of a target's address for log lines: the upstream's label and the index of the address, never its
 * URL.
 */
export const targetName = (target: Target): string => `${target.label}#${target.address}`

// caches the result, because parsing a URL is the most expensive part of making a target
const conceals = new WeakMap<Redacted.Redacted, { readonly conceal: Concealment.Conceal | undefined }>()

/** Returns one target for each address of an upstream, in order. */
export const targets = (upstream: Upstream, path: string): ReadonlyArray<Target> =>
  upstream.addresses.map((base, address) => {
    const { conceal } = conceals.get(base) ?? { conceal: Concealment.make(Redacted.value(base)) }
    conceals.set(base, { conceal })
    return {
      label: upstream.label,
      address,
      base,
      url: Redacted.make(`${Redacted.value(base)}${path}`, { label: upstream.label }),
      conceal
    }
  })

const DIGITS = 16

/**
 * Returns the cache namespace of an upstream: its label, and a digest that does not reveal its addresses.
 *
 * Replicas with equal addresses share responses. Different chains do not share responses, and neither do different
 * networks of one chain.
 */
export const cacheSpace = ({ addresses, label }: Upstream): string =>
  `${label}/${bytesToHex(sha256(utf8ToBytes(addresses.map(Redacted.value).join("\n")))).slice(0, DIGITS)}`

/** The batch of one caller. The batch's calls in flight are interrupted when its scope closes. */
export interface Batch {
  readonly scope: Scope.Scope
}

/** The batch in which the reads of a caller are sent; `undefined` outside a batch. */
export const CurrentBatch = Context.Reference<Batch | undefined>("@trigate/upstream/Upstream/CurrentBatch", {
  defaultValue: () => undefined
})

/** Runs an effect whose reads are not sent in its caller's batch, because the effect outlives this batch. */
export const unbatched = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, CurrentBatch, undefined)
