/**
 * Finds the subscription that causes the upstream to close a connection.
 *
 * The venue closes the connection, with all callers' subscriptions, if it does not accept one of them. After such a loss the new
 * ones are subscribed one at a time, while the others resume.
 */
import type { SocketLost } from "../../streams/SocketTransport.ts"
import type { SharedTopic, TopicConnection } from "./SharedTopic.ts"

/**
 * Milliseconds after a subscription in which it may have caused a close; the venue closes a connection within 155 ms of an
 * unacceptable subscription.
 */
export const suspectFor = 2_000

/**
 * The number of lost connections after which the only suspect is refused: if the upstream never accepted it, if it did, and if it
 * names nothing that the upstream could refuse. The higher the number, the more likely is an unstable network.
 */
const mostStrikes = { asked: 2, accepted: 5, harmless: 20 }

/** Returns the topics that may have caused the loss of a connection; none if the peer or this side had another reason. */
export const young = ({ byRoute }: TopicConnection, { code, reason }: SocketLost, at: number): Array<SharedTopic> => {
  if (code !== 1006 || reason === "silent" || reason === "stale") return []
  const suspects = [...byRoute.values()].filter((shared) =>
    !shared.isProven && (shared.phase === "asked" || shared.phase === "accepted") && at - shared.askedAt < suspectFor
  )
  const likely = suspects.filter(({ topic }) => !topic.isHarmless)
  return likely.length > 0 ? likely : suspects
}

/** Counts a loss against the only suspect. Returns it once it has caused too many. */
export const culprit = (suspects: ReadonlyArray<SharedTopic>): SharedTopic | undefined => {
  const [alone, ...others] = suspects
  if (alone === undefined || others.length > 0) return undefined
  const most = mostStrikes[alone.topic.isHarmless ? "harmless" : alone.wasAccepted ? "accepted" : "asked"]
  return ++alone.strikes >= most ? alone : undefined
}

/** Adds suspects before those that are already queued. */
export const add = (connection: TopicConnection, suspects: ReadonlyArray<SharedTopic>): void => {
  connection.suspects = [...new Set([...suspects, ...connection.suspects])]
}
