/**
 * The metrics of a gateway: name, kind, labels and meaning of each, declared once.
 *
 * The series that the code updates, docs/metrics.md, the dashboard and the alert rules in deploy/ are derived from this table or
 * checked against it. No label takes a text of a caller: each has a bounded set of values.
 */
import * as Metric from "effect/Metric"

/** What the values of each label are. */
export const labels = {
  address: "place of the address in its setting, from `0`",
  cause: "for retries what was wrong with the attempt before, for ejections with the address",
  interval: "interval of a bar, such as `1m`",
  node: "version of Node",
  operation:
    "name of a declared operation, the type of a [known query](#known-queries), or `batch`, `probe`, `unsupported`",
  outcome: "`ok`, or what went wrong: the tag of a typed error, or how an attempt or a cached read ended",
  quota: "`requests`, `concurrent`, `weight` or `units`",
  route: "endpoint of the contract such as `exchange.submit`, or `other`",
  share: "`common`, or `actions` for what is reserved for signed actions",
  state: "`sent`, or `unknown`",
  status: "HTTP status",
  upstream: "`trading-api`, `trading-node`, `token-chain` or `layer2`",
  use: "what the shared store is used for",
  version: "version of Trigate",
  won: "`first` or `second`"
} as const

/** A label of a metric. */
export type Label = keyof typeof labels

/** A metric as it is declared. */
export interface Declared<L extends Label = Label, M = unknown> {
  readonly name: string
  readonly kind: "counter" | "gauge" | "histogram"
  readonly labels: ReadonlyArray<L>
  readonly meaning: string
  /** Whether only a gateway on Linux has it. */
  readonly onLinux?: true
  /** The series of some label values. To make one costs ten times as much as to update it, so keep what is used again. */
  readonly series: (attributes: { readonly [Name in L]: string }) => M
}

const counter = <const L extends Label = never>(
  name: string,
  meaning: string,
  labels: ReadonlyArray<L> = []
): Declared<L, Metric.Counter<number>> => ({
  name,
  kind: "counter",
  labels,
  meaning,
  series: (attributes) => Metric.counter(name, { description: meaning, incremental: true, attributes })
})

const gauge = <const L extends Label = never>(
  name: string,
  meaning: string,
  labels: ReadonlyArray<L> = []
): Declared<L, Metric.Gauge<number>> => ({
  name,
  kind: "gauge",
  labels,
  meaning,
  series: (attributes) => Metric.gauge(name, { description: meaning, attributes })
})

const seconds = <const L extends Label>(
  name: string,
  meaning: string,
  labels: ReadonlyArray<L>,
  boundaries: ReadonlyArray<number>
): Declared<L, Metric.Histogram<number>> => ({
  name,
  kind: "histogram",
  labels,
  meaning,
  series: (attributes) => Metric.histogram(name, { description: meaning, boundaries, attributes })
})

/** Every metric, in the order of docs/metrics.md. */
export const metrics = {
  requests: counter("trigate_requests_total", "Requests by route, HTTP status and outcome", [
    "route",
    "status",
    "outcome"
  ]),
  requestSeconds: seconds(
    "trigate_request_seconds",
    "Time from a request's head to the end of its handling",
    ["route"],
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
  ),
  operations: counter(
    "trigate_operations_total",
    "Requested operations by name and outcome; each call of a batch counts",
    ["operation", "outcome"]
  ),
  bodyBytes: gauge("trigate_request_body_bytes", "Bytes of the bodies of requests in flight, read or announced"),
  unreadBytes: gauge("trigate_unread_answer_bytes", "Bytes of large answers that their callers have not read yet"),
  cache: counter(
    "trigate_response_cache_total",
    "Reads answered without an attempt of their own, and background refreshes, by outcome",
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
  upstreamWeight: counter("trigate_upstream_weight_total", "Weight spent at the official API", ["upstream"]),
  upstreamWeightSaved: counter(
    "trigate_upstream_weight_saved_total",
    "Weight that the official API was not asked for, by what answered instead",
    ["upstream", "outcome"]
  ),
  upstreamRequestUnits: counter("trigate_upstream_request_units_total", "Request units spent at node providers", [
    "upstream"
  ]),
  upstreamRetries: counter(
    "trigate_upstream_retries_total",
    "Attempts that followed another one of the same read, by what was wrong with that one",
    ["upstream", "operation", "cause"]
  ),
  upstreamHedges: counter(
    "trigate_upstream_hedges_total",
    "Reads that asked a second address beside a slow one, by whose answer was taken",
    ["upstream", "operation", "won"]
  ),
  upstreamEjected: gauge("trigate_upstream_ejected", "Whether an upstream's address is ejected: 0 no, 1 yes", [
    "upstream",
    "address"
  ]),
  upstreamEjections: counter(
    "trigate_upstream_ejections_total",
    "How often an upstream's address was ejected, by cause",
    ["upstream", "address", "cause"]
  ),
  upstreamDeferrals: counter(
    "trigate_upstream_deferrals_total",
    "How often an upstream's address asked for a pause",
    ["upstream", "address"]
  ),
  rateLimitAvailable: gauge(
    "trigate_upstream_rate_limit_available",
    "Weight or request units that calls can take at once, by upstream and share",
    ["upstream", "share"]
  ),
  rateLimitWaits: counter(
    "trigate_upstream_rate_limit_waits_total",
    "Calls that waited for their upstream's rate limit",
    ["upstream"]
  ),
  rateLimitRefused: counter(
    "trigate_upstream_rate_limit_refused_total",
    "Calls refused because they would have had to wait for too long",
    ["upstream"]
  ),
  rateLimitBeyondShare: counter(
    "trigate_upstream_rate_limit_beyond_share_total",
    "Calls refused because their caller had used up its share of the rate limit",
    ["upstream"]
  ),
  rateLimitCallers: gauge(
    "trigate_upstream_rate_limit_callers",
    "Callers that share an upstream's rate limit now",
    ["upstream"]
  ),
  quotaWaits: counter("trigate_quota_waits_total", "Calls that waited for their caller's quota", ["quota"]),
  quotaExceeded: counter("trigate_quota_exceeded_total", "Requests and calls refused because of their caller's quota", [
    "quota"
  ]),
  actionLogEntries: gauge(
    "trigate_action_log_entries",
    "Signed actions without an answer: sent by this process, and of unknown outcome in the log",
    ["state"]
  ),
  actionLogAway: gauge(
    "trigate_action_log_away",
    "1 while the action log cannot be written and signed actions are refused, else 0"
  ),
  actionLogUnshared: counter(
    "trigate_action_log_unshared_total",
    "Actions that were sent without asking the other replicas, because Redis was away"
  ),
  auditLogLost: counter(
    "trigate_audit_log_lost_total",
    "Lines of the audit log that were lost because it could not be written"
  ),
  archiveBars: counter("trigate_archive_bars_total", "Bars that the recorder added to the candle archive", [
    "interval"
  ]),
  archiveCorrections: counter(
    "trigate_archive_corrections_total",
    "Closed bars that the venue changed afterwards; the archive keeps both versions",
    ["interval"]
  ),
  archiveDifferences: counter(
    "trigate_archive_differences_total",
    "Bars that were built from smaller ones and differ from the venue's own, which then replace them",
    ["interval"]
  ),
  archiveBehind: gauge(
    "trigate_archive_behind_seconds",
    "How long ago the last recorded bar closed, of the coin that is furthest behind"
  ),
  archiveAway: gauge("trigate_archive_away", "1 while the candle archive cannot be used, else 0"),
  sharedStateDegraded: gauge(
    "trigate_shared_state_degraded",
    "1 while the store that replicas share is away and this process goes on alone, else 0",
    ["use"]
  ),
  buildInfo: gauge("trigate_build_info", "Always 1; its labels say what runs", ["version", "node"]),
  // the names that prom-client gives them, so that dashboards for Node work as they are
  processCpuUser: counter("process_cpu_user_seconds_total", "Processor time spent in the program, in seconds"),
  processCpuSystem: counter("process_cpu_system_seconds_total", "Processor time spent in the kernel, in seconds"),
  processCpu: counter("process_cpu_seconds_total", "Processor time spent in both, in seconds"),
  processStart: gauge("process_start_time_seconds", "When the process started, in seconds since 1970"),
  processResidentMemory: gauge("process_resident_memory_bytes", "Memory that the process holds, in bytes"),
  processOpenFds: {
    ...gauge("process_open_fds", "Open files and sockets"),
    onLinux: true
  },
  heapTotal: gauge("nodejs_heap_size_total_bytes", "Size of the heap, in bytes"),
  heapUsed: gauge("nodejs_heap_size_used_bytes", "Part of the heap that is in use, in bytes"),
  externalMemory: gauge("nodejs_external_memory_bytes", "Memory that objects of the heap hold outside of it, in bytes"),
  activeResources: gauge("nodejs_active_resources_total", "Sockets, timers and requests that keep the process alive"),
  eventLoopLag: gauge("nodejs_eventloop_lag_seconds", "How late the event loop ran its timers on average, in seconds"),
  eventLoopLagP99: gauge("nodejs_eventloop_lag_p99_seconds", "How late 99 of 100 timers ran at most, in seconds"),
  eventLoopLagMax: gauge("nodejs_eventloop_lag_max_seconds", "How late the latest timer ran, in seconds")
} as const

/** Every metric as a row: what a document or a check reads of the table. */
export const rows: ReadonlyArray<Pick<Declared, "name" | "kind" | "labels" | "meaning" | "onLinux">> = Object.values(
  metrics
)
