/** The settings of the WebSockets of callers. */
import { Age, Count, count, duration, withDefault } from "@trigate/domain/Setting"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"

/** Converts a setting in KiB to bytes. */
const Kibibytes = Count.pipe(
  Schema.decodeTo(Schema.Finite, {
    decode: SchemaGetter.transform((kibibytes) => kibibytes * 1024),
    encode: SchemaGetter.transform((bytes) => bytes / 1024)
  })
)

/** The settings of streams, by their names in a settings file. */
export const settings = {
  streamCallerSockets: withDefault("TRIGATE_STREAM_CALLER_SOCKETS", Count, "100", {
    group: "Streams",
    needsRestart: true,
    meaning: "maximum open WebSockets and event streams of one caller",
    takes: count
  }),
  streamPerSocket: withDefault("TRIGATE_STREAM_PER_SOCKET", Count, "1000", {
    group: "Streams",
    needsRestart: true,
    meaning: "maximum subscriptions on one WebSocket of a caller",
    takes: count
  }),
  streamCallerMessages: withDefault("TRIGATE_STREAM_CALLER_MESSAGES", Count, "2000", {
    group: "Streams",
    needsRestart: true,
    meaning: "maximum messages per minute from one WebSocket of a caller; beyond the limit, the WebSocket is closed",
    takes: count
  }),
  streamCallerBytesIn: withDefault("TRIGATE_STREAM_CALLER_KIB_IN", Kibibytes, "1024", {
    group: "Streams",
    needsRestart: true,
    meaning:
      "maximum KiB per second from one caller over all of its WebSockets; beyond the limit, the WebSocket is closed",
    takes: count
  }),
  streamCallerBytesOut: withDefault("TRIGATE_STREAM_CALLER_KIB_OUT", Kibibytes, "65536", {
    group: "Streams",
    needsRestart: true,
    meaning:
      "maximum KiB per second to one caller over all of its WebSockets and event streams; beyond the limit, frames are queued",
    takes: count
  }),
  streamPosts: withDefault("TRIGATE_STREAM_POSTS", Count, "100", {
    group: "Streams",
    needsRestart: true,
    meaning: "maximum concurrent requests (`post` messages or JSON-RPC calls) of one WebSocket",
    takes: count
  }),
  streamQueueFrames: withDefault("TRIGATE_STREAM_QUEUE_FRAMES", Count, "10000", {
    group: "Streams",
    needsRestart: true,
    meaning:
      "maximum pending events of a WebSocket whose client does not read; beyond the limit, the WebSocket is closed",
    takes: count
  }),
  streamQueueBytes: withDefault("TRIGATE_STREAM_QUEUE_KIB", Kibibytes, "1024", {
    group: "Streams",
    needsRestart: true,
    meaning:
      "maximum KiB of pending events of a WebSocket whose client does not read; beyond the limit, the WebSocket is closed",
    takes: count
  }),
  streamDrain: withDefault("TRIGATE_STREAM_DRAIN", Age, "5 seconds", {
    group: "Streams",
    needsRestart: true,
    meaning: "time over which WebSockets are closed when the gateway stops",
    takes: duration
  })
}
