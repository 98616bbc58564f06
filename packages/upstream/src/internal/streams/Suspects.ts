/**
 * Finds the subscription because of which the upstream closes a connection.
 *
 * The venue closes the connection, and with it the subscriptions of everybody, when it does not accept one of them. After such a
 * loss those that were new are tried one at a time, while the others resume.
 */
import type { SocketLost } from "../../streams/SocketTransport.ts"
import type { SharedTopic, TopicConnection } from "./SharedTopic.ts"

/** The venue closes a connection within 155 ms of a subscription that it does not accept. */
export const suspectFor = 2_000

/**
 * The lost connections after which the only suspect is refused: one that the upstream has never accepted, one that it has, and one
 * that names nothing that the upstream could object to. An unstable network is the likelier cause the higher the number.
 */
const mostStrikes = { asked: 2, accepted: 5, harmless: 20 }

/** Returns the topics that may be why a connection is lost now; none where the peer or this side had another cause. */
export const young = ({ byRoute }: TopicConnection, { code, reason }: SocketLost, at: number): Array<SharedTopic> => {
  if (code !== 1006 || reason === "silent" || reason === "stale") return []
  const suspects = [...byRoute.values()].filter((shared) =>
    !shared.isProven && (shared.phase === "asked" || shared.phase === "accepted") && at - shared.askedAt < suspectFor
  )
  const likely = suspects.filter(({ topic }) => !topic.isHarmless)
  return likely.length > 0 ? likely : suspects
}

/** Counts a loss against the only suspect, and returns it once it is the culprit. */
export const culprit = (suspects: ReadonlyArray<SharedTopic>): SharedTopic | undefined => {
  const [alone, ...others] = suspects
  if (alone === undefined || others.length > 0) return undefined
  const most = mostStrikes[alone.topic.isHarmless ? "harmless" : alone.wasAccepted ? "accepted" : "asked"]
  return ++alone.strikes >= most ? alone : undefined
}

/** Adds suspects in front of those that wait for their turn. */
export const add = (connection: TopicConnection, suspects: ReadonlyArray<SharedTopic>): void => {
  connection.suspects = [...new Set([...suspects, ...connection.suspects])]
}
