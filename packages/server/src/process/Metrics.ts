/**
 * The metrics of a gateway: name, kind, labels and meaning of each.
 *
 * Each package declares its own metrics; this table collects them and adds those of the server. docs/metrics.md, the dashboard
 * and the alert rules in deploy/ are derived from this table or checked against it.
 */
import { metrics as archive } from "@trigate/archive/ArchiveMetrics"
import { metrics as callers } from "@trigate/callers/CallerMetrics"
import type { Declared } from "@trigate/domain/DeclaredMetric"
import { counter, gauge, quotaExceeded, seconds } from "@trigate/domain/DeclaredMetric"
import { metrics as accounts } from "@trigate/trading/accounts/AccountMetrics"
import { metrics as actionLog } from "@trigate/trading/actionLog/ActionLog"
import { metrics as streams } from "@trigate/upstream/streams/StreamMetrics"
import { metrics as upstream } from "@trigate/upstream/UpstreamMetrics"

/** Every metric, in the order of docs/metrics.md. */
export const metrics = {
  requests: counter("trigate_requests_total", "Requests by route, HTTP status and outcome", [
    "route",
    "status",
    "outcome"
  ]),
  requestSeconds: seconds(
    "trigate_request_seconds",
    "Time from a request's head until its response is ready to be written",
    ["route"],
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
  ),
  operations: counter(
    "trigate_operations_total",
    "Requested operations by name and outcome; each call of a batch counts",
    ["operation", "outcome"]
  ),
  bodyBytes: gauge(
    "trigate_request_body_bytes",
    "Bytes reserved for the bodies of requests in flight"
  ),
  unreadBytes: gauge("trigate_unread_answer_bytes", "Bytes of large responses that their callers have not read yet"),
  ...upstream,
  quotaExceeded,
  ...callers,
  callerRequests: counter(
    "trigate_caller_requests_total",
    "Requests by caller group, and by whether a limit refused the request (HTTP 429)",
    ["group", "limited"]
  ),
  settingsRefused: gauge(
    "trigate_settings_refused",
    "1 if the latest SIGHUP found invalid settings, so that the previous settings stay in use; otherwise 0"
  ),
  ...actionLog,
  auditLogLost: counter(
    "trigate_audit_log_lost_total",
    "Lines of the audit log that were lost because the log could not be written"
  ),
  ...archive,
  streamSockets: gauge("trigate_stream_sockets", "Open WebSockets of callers"),
  streamSocketsOpened: counter("trigate_stream_sockets_opened_total", "WebSockets that callers opened"),
  streamClosed: counter("trigate_stream_closed_total", "WebSockets of callers that ended, by reason", ["reason"]),
  streamConflated: counter(
    "trigate_stream_conflated_total",
    "State frames, such as order books, that newer frames replaced before they could be written"
  ),
  ...streams,
  ...accounts,
  buildInfo: gauge("trigate_build_info", "Always 1; the labels are the running versions of Trigate and of Node", [
    "version",
    "node"
  ]),
  // prom-client's names, so that dashboards for Node work unchanged
  processCpuUser: counter("process_cpu_user_seconds_total", "Processor time spent in the program, in seconds"),
  processCpuSystem: counter("process_cpu_system_seconds_total", "Processor time spent in the kernel, in seconds"),
  processCpu: counter("process_cpu_seconds_total", "Processor time spent in the program and in the kernel, in seconds"),
  processStart: gauge("process_start_time_seconds", "When the process started, in seconds since 1970"),
  processResidentMemory: gauge("process_resident_memory_bytes", "Resident memory of the process, in bytes"),
  processOpenFds: {
    ...gauge("process_open_fds", "Open files and sockets"),
    onLinux: true
  },
  heapTotal: gauge("nodejs_heap_size_total_bytes", "Size of the heap, in bytes"),
  heapUsed: gauge("nodejs_heap_size_used_bytes", "Part of the heap that is in use, in bytes"),
  externalMemory: gauge(
    "nodejs_external_memory_bytes",
    "Memory outside of the heap, used by objects in the heap, in bytes"
  ),
  activeResources: gauge("nodejs_active_resources_total", "Active sockets, timers and requests of the event loop"),
  eventLoopLag: gauge("nodejs_eventloop_lag_seconds", "Mean event-loop lag, in seconds"),
  eventLoopLagP99: gauge("nodejs_eventloop_lag_p99_seconds", "99th percentile of the event-loop lag, in seconds"),
  eventLoopLagMax: gauge("nodejs_eventloop_lag_max_seconds", "Maximum event-loop lag, in seconds")
} as const

/** Every metric as a row, for documents and checks. */
export const rows: ReadonlyArray<Pick<Declared, "name" | "kind" | "labels" | "meaning" | "onLinux">> = Object.values(
  metrics
)
