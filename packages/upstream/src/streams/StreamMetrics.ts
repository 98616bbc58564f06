/** The metrics of streams from upstreams. */
import { counter, gauge } from "@trigate/domain/DeclaredMetric"

export const metrics = {
  evmHead: gauge("trigate_evm_head", "Number of the latest block that the gateway has received from an EVM chain", [
    "chain"
  ]),
  evmHeadAge: gauge(
    "trigate_evm_head_age_seconds",
    "Seconds since the latest block of an EVM chain was received; 0 without subscriptions",
    [
      "chain"
    ]
  ),
  evmSubscriptions: gauge("trigate_evm_subscriptions", "Distinct subscriptions of callers to an EVM chain", ["chain"]),
  evmReorganisations: counter(
    "trigate_evm_reorganisations_total",
    "Reorgs of an EVM chain",
    [
      "chain"
    ]
  ),
  evmPolls: counter("trigate_evm_head_polls_total", "Polls of the newest block of an EVM chain", ["chain"]),
  evmLogFailures: counter(
    "trigate_evm_log_failures_total",
    "Failed reads of new logs of an EVM chain",
    ["chain"]
  ),
  streamConnections: gauge("trigate_stream_connections", "Open WebSockets to the venue"),
  streamSubscriptions: gauge("trigate_stream_subscriptions", "Distinct subscriptions at the venue"),
  streamUsers: gauge("trigate_stream_users", "Distinct users over all subscriptions at the venue"),
  streamOtherReplicas: gauge(
    "trigate_stream_other_replicas",
    "Use of the venue's stream limits by other replicas, by limit",
    ["limit"]
  ),
  streamFrames: counter("trigate_stream_frames_total", "Frames received from the venue, by subscription", ["channel"]),
  streamDeliveries: counter(
    "trigate_stream_deliveries_total",
    "Frames delivered to callers, by subscription",
    ["channel"]
  ),
  streamReconnects: counter(
    "trigate_stream_reconnects_total",
    "Lost connections to the venue and silent subscriptions, by cause",
    ["cause"]
  ),
  streamRefilled: counter(
    "trigate_stream_refilled_total",
    "Rows refilled by queries after a lost connection, by subscription",
    ["channel"]
  ),
  streamRowCollisions: counter(
    "trigate_stream_row_collisions_total",
    "Rows that have the key of another row but other content, by subscription. All are delivered",
    ["channel"]
  ),
  streamGaps: counter(
    "trigate_stream_gaps_total",
    "Gaps after a lost connection that could not be refilled, by subscription",
    ["channel"]
  ),
  streamUnknownFrames: counter("trigate_stream_unknown_frames_total", "Frames of unknown channels"),
  streamAge: gauge(
    "trigate_stream_age_seconds",
    "Seconds since the last frame of the longest-silent subscription, by subscription name",
    ["channel"]
  )
}
