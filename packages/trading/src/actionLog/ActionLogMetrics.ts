/** Metrics of the action log. */
import { counter, gauge } from "@trigate/domain/DeclaredMetric"

/** The metrics, by their name in the server's table of metrics. */
export const metrics = {
  actionLogEntries: gauge(
    "trigate_action_log_entries",
    "Unanswered signed actions: those in flight from this process, and those of unknown outcome in the whole log",
    ["state"]
  ),
  actionLogOldest: gauge(
    "trigate_action_log_oldest_unknown_timestamp_seconds",
    "Time at which the oldest action of unknown outcome was first sent, in seconds since 1970; 0 if there are no such actions"
  ),
  actionLogDegraded: gauge(
    "trigate_action_log_degraded",
    "1 while the action log cannot be written and signed actions are refused, otherwise 0"
  ),
  actionLogUnshared: counter(
    "trigate_action_log_unshared_total",
    "Actions sent while Redis was unreachable, so that the used nonces were unknown to other replicas"
  ),
  actionsNotKnown: counter(
    "trigate_actions_not_known_total",
    "Relayed signed actions of a type, or with members, that the catalog of this version lacks"
  ),
  actionLogSettled: counter(
    "trigate_action_log_settled_total",
    "Actions of unknown outcome that were settled from the venue's state, without sending them again: `accepted` or `neverArrived`",
    ["state"]
  )
} as const
