/**
 * The last requests of a gateway, for the pages that watch.
 *
 * They are recorded only while a page watches, so a request costs one comparison otherwise. They are what the access log says of
 * them: no body, no path, of a key its prefix.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { RequestLogEntry } from "./AccessLog.ts"

/** A request, and its place among those that were noted. */
export interface LiveRequest extends RequestLogEntry {
  readonly sequence: number
}

/**
 * The requests of one gateway.
 *
 * @since 0.1.0
 * @category services
 */
export class LiveRequests extends Context.Service<LiveRequests, {
  /** Until when a page watches, in milliseconds since 1970; requests that end later are not recorded. */
  readonly watch: { until: number }
  readonly note: (entry: RequestLogEntry) => void
  /** Returns the requests recorded after one, oldest first; the caller counts as watching for the next 10 seconds. */
  readonly after: (sequence: number) => Effect.Effect<ReadonlyArray<LiveRequest>>
}>()("@trigate/server/requests/LiveRequests") {}

/** Milliseconds for which a page watches after it has asked. */
const attention = 10_000

/** The most requests that are stored: a page cannot show more. */
const most = 500

const make = Effect.map(Clock.currentTimeMillis, (started) => {
  const watch = { until: 0 }
  // those after a restart come after those before it
  let last = started
  let noted: Array<LiveRequest> = []
  return LiveRequests.of({
    watch,
    note: (entry) => {
      // a page that watches asks for these all the time
      if (/^(?:admin|health)\./u.test(entry.route)) return
      noted.push({ ...entry, sequence: last += 1 })
      if (noted.length > most) noted.shift()
    },
    after: (sequence) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        // requests from before a pause would look like a complete list
        if (now >= watch.until) noted = []
        watch.until = now + attention
        return noted.filter((each) => each.sequence > sequence)
      })
  })
})

/**
 * The requests of this process.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<LiveRequests> = Layer.effect(LiveRequests, make)
