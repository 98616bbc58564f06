/** The settings and metrics of streams from upstreams, and the upstream's limits, which the gateway enforces itself. */
import { counter, gauge } from "@trigate/domain/unstable/DeclaredMetric"
import { Age, Count, withDefault } from "@trigate/domain/unstable/Setting"
import * as Duration from "effect/Duration"

/** The limits of an upstream, over all connections of one IP address, and how callers share them. */
export interface Limits {
  /** Maximum number of concurrent connections. */
  readonly connections: number
  /** Maximum number of new connections per minute. */
  readonly newConnections: number
  /** Maximum number of subscriptions over all connections. */
  readonly subscriptions: number
  /** Maximum number of distinct users over all subscriptions. */
  readonly users: number
  /** Maximum number of distinct users in all subscriptions of one caller. */
  readonly usersOfCaller: number
  /** Maximum number of messages sent per minute over all connections. */
  readonly messages: number
  /** How long a subscription is retained after its last caller has left. */
  readonly grace: Duration.Duration
}

/** The limits of the venue. */
export const defaults: Limits = {
  connections: 10,
  newConnections: 30,
  subscriptions: 1000,
  users: 10,
  usersOfCaller: 3,
  messages: 2000,
  grace: Duration.seconds(10)
}

const streams = { group: "Streams", needsRestart: true } as const

/** The settings, by member name in a configuration file. */
export const settings = {
  streamConnections: withDefault("TRIGATE_STREAM_CONNECTIONS", Count, "10", {
    ...streams,
    meaning: "maximum concurrent WebSockets to the venue; the venue's limit for an IP address is 10"
  }),
  streamNewConnections: withDefault("TRIGATE_STREAM_NEW_CONNECTIONS", Count, "30", {
    ...streams,
    meaning: "maximum new WebSockets to the venue per minute; the venue's limit for an IP address is 30"
  }),
  streamSubscriptions: withDefault("TRIGATE_STREAM_SUBSCRIPTIONS", Count, "1000", {
    ...streams,
    meaning:
      "maximum distinct subscriptions at the venue, shared fairly between callers; the venue's limit for an IP address is 1000"
  }),
  streamUsers: withDefault("TRIGATE_STREAM_USERS", Count, "10", {
    ...streams,
    meaning: "maximum distinct users in all subscriptions at the venue; the venue's limit for an IP address is 10"
  }),
  streamMessages: withDefault("TRIGATE_STREAM_MESSAGES", Count, "2000", {
    ...streams,
    meaning: "maximum messages to the venue per minute; the venue's limit for an IP address is 2000"
  }),
  streamGrace: withDefault("TRIGATE_STREAM_GRACE", Age, "10 seconds", {
    ...streams,
    meaning: "how long a subscription at the venue is retained after its last caller has left"
  }),
  streamCallerUsers: withDefault("TRIGATE_STREAM_CALLER_USERS", Count, "3", {
    ...streams,
    meaning: "maximum distinct users in all subscriptions of one caller"
  })
}

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
  evmRetained: gauge(
    "trigate_evm_retained_bytes",
    "Approximate bytes of stored headers, logs and filters of an EVM chain",
    ["chain"]
  ),
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
