/** The settings of streams from upstreams: the venue's limits for an IP address, and how callers share them. */
import { Age, Count, count, duration, withDefault } from "@trigate/domain/Setting"

/** The settings, by member name in a configuration file. */
export const settings = {
  streamConnections: withDefault("TRIGATE_STREAM_CONNECTIONS", Count, "10", {
    group: "Streams",
    needsRestart: true,
    meaning: "maximum concurrent WebSockets to the venue; the venue's limit for an IP address is 10",
    takes: count
  }),
  streamNewConnections: withDefault("TRIGATE_STREAM_NEW_CONNECTIONS", Count, "30", {
    group: "Streams",
    needsRestart: true,
    meaning: "maximum new WebSockets to the venue per minute; the venue's limit for an IP address is 30",
    takes: count
  }),
  streamSubscriptions: withDefault("TRIGATE_STREAM_SUBSCRIPTIONS", Count, "1000", {
    group: "Streams",
    needsRestart: true,
    meaning:
      "maximum distinct subscriptions at the venue, shared fairly between callers; the venue's limit for an IP address is 1000",
    takes: count
  }),
  streamUsers: withDefault("TRIGATE_STREAM_USERS", Count, "10", {
    group: "Streams",
    needsRestart: true,
    meaning: "maximum distinct users in all subscriptions at the venue; the venue's limit for an IP address is 10",
    takes: count
  }),
  streamMessages: withDefault("TRIGATE_STREAM_MESSAGES", Count, "2000", {
    group: "Streams",
    needsRestart: true,
    meaning: "maximum messages to the venue per minute; the venue's limit for an IP address is 2000",
    takes: count
  }),
  streamGrace: withDefault("TRIGATE_STREAM_GRACE", Age, "10 seconds", {
    group: "Streams",
    needsRestart: true,
    meaning: "how long a subscription at the venue is retained after its last caller has left",
    takes: duration
  }),
  streamCallerUsers: withDefault("TRIGATE_STREAM_CALLER_USERS", Count, "3", {
    group: "Streams",
    needsRestart: true,
    meaning: "maximum distinct users in all subscriptions of one caller",
    takes: count
  })
}
