/** Checks the topics of a stream hub once a second, for expired grace periods, missing responses and silent streams. */
import { countUp } from "../../streams/StreamCounts.ts"
import type { Counts } from "../../streams/StreamCounts.ts"
import type { SharedTopic } from "./SharedTopic.ts"
import { suspectFor } from "./Suspects.ts"
import type { TopicConnections } from "./TopicConnections.ts"

const second = 1000

/** Milliseconds after which a subscription without a response is sent again. */
const responseWithin = 10 * second

/** Milliseconds after which no late frame of an ended subscription can arrive. */
const confirmationWithin = 30 * second

/** A topic counts as silent after this multiple of the usual interval between two of its frames. */
const silentIntervals = 3

/** Minimum milliseconds without a frame before a topic counts as silent. */
const silentAtLeast = 10 * second

/** Number of consecutive resubscriptions of a silent topic before its connection is replaced. */
const maxSilences = 2

const isSilent = ({ interval, lastAt, phase, topic }: SharedTopic, at: number): boolean =>
  topic.isSteady && phase === "accepted" && lastAt !== undefined && interval > 0 &&
  at - lastAt > Math.max(silentAtLeast, silentIntervals * interval)

/**
 * Returns the function that checks all topics; it has to be called once a second. `grace` is how long a topic without
 * callers is retained, in milliseconds.
 */
export const make = (
  topics: Map<string, SharedTopic>,
  connections: TopicConnections,
  counts: Counts,
  grace: number
) => {
  const revive = (shared: SharedTopic, at: number): void => {
    shared.silences++
    shared.lastAt = at
    countUp(counts.reconnects, "stale")
    if (shared.silences <= maxSilences) return connections.askAgain(shared)
    shared.silences = 0
    shared.connection.link?.drop("stale")
  }

  const watch = (shared: SharedTopic, at: number): void => {
    const { askedAt, connection, emptySince, phase } = shared
    if (emptySince !== undefined && at - emptySince >= grace) {
      topics.delete(shared.key)
      return connections.leave(shared)
    }
    if (phase === "asked" && at - askedAt >= responseWithin && connection.link?.isWaiting() === false) {
      connections.ask(shared)
    }
    if (phase === "accepted" && at - askedAt >= suspectFor) shared.isProven = true
    if (isSilent(shared, at)) revive(shared, at)
  }

  return (at: number): void => {
    for (const shared of topics.values()) watch(shared, at)
    for (const connection of connections.open) {
      for (const shared of connection.byRoute.values()) {
        if (shared.phase === "leaving" && at - shared.askedAt >= confirmationWithin) connections.left(shared)
      }
      connections.trySuspects(connection)
    }
  }
}
