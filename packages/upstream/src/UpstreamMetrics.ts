/** Metrics of calls to upstreams, cached responses and rate limits. */
import { counter, gauge, seconds } from "@trigate/domain/DeclaredMetric"

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
  upstreamWeight: counter("trigate_upstream_weight_total", "Rate-limit weight spent at the official API", ["upstream"]),
  upstreamWeightSaved: counter(
    "trigate_upstream_weight_saved_total",
    "Rate-limit weight of reads that did not reach the official API, by cache outcome",
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
