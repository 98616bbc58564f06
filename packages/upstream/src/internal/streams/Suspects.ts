/**
 * Finds the subscription that causes the upstream to close a connection.
 *
 * If the venue does not accept a subscription, it closes the connection, which ends all callers' subscriptions on that
 * connection. After such a loss, the most recent subscriptions are sent one at a time, while the others resume.
 */
import type { SocketLost } from "../../streams/SocketTransport.ts"
import type { SharedTopic, TopicConnection } from "./SharedTopic.ts"

/**
 * Milliseconds for which a new subscription may have caused a close. The venue closes a connection within 155 ms of a
 * subscription that it does not accept.
 */
export const suspectFor = 2_000

/**
 * The number of losses of a connection after which the only suspect is refused. A suspect is a subscription that may
 * have caused a loss. `asked` applies if the upstream never accepted the suspect, and `accepted` if it did. `harmless`
 * applies if the suspect contains no name that the upstream could refuse. A higher number makes it less likely that an
 * unstable network is the cause.
 */
const maxStrikes = { asked: 2, accepted: 5, harmless: 20 }

/**
 * Returns the topics that may have caused the loss of a connection. Returns an empty list if the upstream or the
 * gateway closed the connection for another reason.
 */
export const young = ({ byRoute }: TopicConnection, { code, reason }: SocketLost, at: number): Array<SharedTopic> => {
  if (code !== 1006 || reason === "silent" || reason === "stale") return []
  const suspects = [...byRoute.values()].filter((shared) =>
    !shared.isProven && (shared.phase === "asked" || shared.phase === "accepted") && at - shared.askedAt < suspectFor
  )
  const likely = suspects.filter(({ topic }) => !topic.isHarmless)
  return likely.length > 0 ? likely : suspects
}

/** If there is only one suspect, counts a loss against it. Returns this suspect if it has caused too many losses. */
export const culprit = (suspects: ReadonlyArray<SharedTopic>): SharedTopic | undefined => {
  const [alone, ...others] = suspects
  if (alone === undefined || others.length > 0) return undefined
  const most = maxStrikes[alone.topic.isHarmless ? "harmless" : alone.wasAccepted ? "accepted" : "asked"]
  return ++alone.strikes >= most ? alone : undefined
}

/** Queues suspects (subscriptions that may have caused a loss) before the suspects that are already queued. */
export const add = (connection: TopicConnection, suspects: ReadonlyArray<SharedTopic>): void => {
  connection.suspects = [...new Set([...suspects, ...connection.suspects])]
}
