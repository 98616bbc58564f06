/** The settings of streams from upstreams: the venue's limits for an IP address, and how callers share them. */
import { Age, Count, count, duration, withDefault } from "@trigate/domain/Setting"

/** The settings, by the name of their member in a configuration file. */
export const settings = {
  streamConnections: withDefault("TRIGATE_STREAM_CONNECTIONS", Count, "10", {
    group: "Streams",
    needsRestart: true,
    meaning: "WebSockets to the venue at the same time; the venue allows an IP address 10",
    takes: count
  }),
  streamNewConnections: withDefault("TRIGATE_STREAM_NEW_CONNECTIONS", Count, "30", {
    group: "Streams",
    needsRestart: true,
    meaning: "new WebSockets to the venue in a minute; the venue allows an IP address 30",
    takes: count
  }),
  streamSubscriptions: withDefault("TRIGATE_STREAM_SUBSCRIPTIONS", Count, "1000", {
    group: "Streams",
    needsRestart: true,
    meaning: "distinct subscriptions at the venue, which allows an IP address 1000; callers share them fairly",
    takes: count
  }),
  streamUsers: withDefault("TRIGATE_STREAM_USERS", Count, "10", {
    group: "Streams",
    needsRestart: true,
    meaning: "distinct users over all subscriptions at the venue, which allows an IP address 10",
    takes: count
  }),
  streamMessages: withDefault("TRIGATE_STREAM_MESSAGES", Count, "2000", {
    group: "Streams",
    needsRestart: true,
    meaning: "messages to the venue in a minute; the venue allows an IP address 2000",
    takes: count
  }),
  streamGrace: withDefault("TRIGATE_STREAM_GRACE", Age, "10 seconds", {
    group: "Streams",
    needsRestart: true,
    meaning: "how long a subscription at the venue stays after its last caller has left",
    takes: duration
  }),
  streamCallerUsers: withDefault("TRIGATE_STREAM_CALLER_USERS", Count, "3", {
    group: "Streams",
    needsRestart: true,
    meaning: "distinct users over all subscriptions of one caller",
    takes: count
  })
}
