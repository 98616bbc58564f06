/**
 * The latest requests of a gateway, for the console's live view.
 *
 * Requests are recorded only while a console page polls; otherwise a request costs one comparison. The records are
 * access log entries: without bodies and paths, and with only the prefix of a key.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { RequestLogEntry } from "./AccessLog.ts"

/** A request and its sequence number. */
export interface LiveRequest extends RequestLogEntry {
  readonly sequence: number
}

/**
 * The latest requests of one gateway.
 *
 * @since 0.1.0
 * @category services
 */
export class LiveRequests extends Context.Service<LiveRequests, {
  /** The time at which recording ends, in milliseconds since 1970. Later requests are not recorded. */
  readonly watch: { until: number }
  readonly note: (entry: RequestLogEntry) => void
  /**
   * Returns the requests recorded after a sequence number, oldest first. Extends the recording to 10 seconds from now.
   */
  readonly after: (sequence: number) => Effect.Effect<ReadonlyArray<LiveRequest>>
}>()("@trigate/server/requests/LiveRequests") {}

/** Milliseconds for which recording continues after a poll. */
const attention = 10_000

/** Maximum number of requests that are recorded for the console. Each further request replaces the oldest one. */
const most = 500

const make = Effect.map(Clock.currentTimeMillis, (started) => {
  const watch = { until: 0 }
  // starts at the current time, so that sequence numbers also increase across a restart
  let last = started
  let noted: Array<LiveRequest> = []
  return LiveRequests.of({
    watch,
    note: (entry) => {
      // excludes requests that the console sends continuously
      if (/^(?:admin|health)\./u.test(entry.route)) return
      noted.push({ ...entry, sequence: last += 1 })
      if (noted.length > most) noted.shift()
    },
    after: (sequence) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        // drops the requests from before a pause in recording: with them, the list would look as if it had no gap
        if (now >= watch.until) noted = []
        watch.until = now + attention
        return noted.filter((each) => each.sequence > sequence)
      })
  })
})

/**
 * The latest requests of this process.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<LiveRequests> = Layer.effect(LiveRequests, make)
