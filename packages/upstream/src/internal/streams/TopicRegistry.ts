/** The upstream topics of a stream hub, with the callers of each topic. */
import type { CallerShares } from "./CallerShares.ts"
import type { Deliveries } from "./Deliveries.ts"
import { isWanted } from "./SharedTopic.ts"
import type { CallerSeat, SharedTopic } from "./SharedTopic.ts"

/** The topics of a stream hub, and the callers of each topic. */
export interface TopicRegistry {
  /** Adds a caller to a topic. The caller then waits for the acknowledgement of the topic. */
  readonly attach: (shared: SharedTopic, seat: CallerSeat) => void
  readonly detach: (shared: SharedTopic, seat: CallerSeat) => void
  /** Removes a topic, so that its route can be used by a new topic. */
  readonly forget: (shared: SharedTopic) => void
  /**
   * Refuses a topic for all of its callers, and removes it. `isInvalid`: whether the upstream would refuse it again, so
   * that no caller should subscribe to it again.
   */
  readonly refuse: (shared: SharedTopic, message: string, isInvalid?: boolean) => void
}

/** Makes the registry over the topics of a stream hub. */
export const make = (
  topics: Map<string, SharedTopic>,
  shares: CallerShares,
  deliveries: Deliveries,
  now: () => number
): TopicRegistry => {
  const detach: TopicRegistry["detach"] = (shared, seat) => {
    seat.byKey.delete(shared.topic.key)
    shared.seats.delete(seat)
    shared.waiting.delete(seat)
    shares.remove(seat, shared)
    if (!isWanted(shared)) shared.emptySince = now()
  }

  const forget: TopicRegistry["forget"] = (shared) => {
    if (topics.get(shared.key) === shared) topics.delete(shared.key)
    const { connection, topic } = shared
    if (connection.byRoute.get(topic.route) === shared) connection.byRoute.delete(topic.route)
    connection.suspects = connection.suspects.filter((each) => each !== shared)
  }

  return {
    attach: (shared, seat) => {
      seat.byKey.set(shared.topic.key, shared)
      shares.add(seat, shared)
      shared.emptySince = undefined
      shared.waiting.add(seat)
      if (shared.phase === "accepted") deliveries.admit(shared)
    },
    detach,
    forget,
    refuse: (shared, message, isInvalid = false) => {
      const subscribed = new Set(isInvalid ? [] : shared.seats)
      for (const seat of [...shared.seats, ...shared.waiting]) {
        detach(shared, seat)
        deliveries.refuse(seat, shared.topic, message, subscribed.has(seat))
      }
      forget(shared)
    }
  }
}
