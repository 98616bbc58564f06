/** Metrics of the action log. */
import { counter, gauge } from "@trigate/domain/DeclaredMetric"

/** The metrics, by their name in the server's table. */
export const metrics = {
  actionLogEntries: gauge(
    "trigate_action_log_entries",
    "Unanswered signed actions: sent by this process, and of unknown outcome in the whole log",
    ["state"]
  ),
  actionLogOldest: gauge(
    "trigate_action_log_oldest_unknown_timestamp_seconds",
    "When the oldest action of unknown outcome was first sent, in seconds since 1970; 0 without one"
  ),
  actionLogDegraded: gauge(
    "trigate_action_log_degraded",
    "1 while the action log cannot be written and signed actions are refused, else 0"
  ),
  actionLogUnshared: counter(
    "trigate_action_log_unshared_total",
    "Actions that were sent without a claim shared with the other replicas, because Redis was unreachable"
  ),
  actionLogSettled: counter(
    "trigate_action_log_settled_total",
    "Actions of unknown outcome that the venue's state has settled without a second sending: `accepted` or `neverArrived`",
    ["state"]
  )
} as const
