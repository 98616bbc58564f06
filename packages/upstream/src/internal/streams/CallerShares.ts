/** Divides the upstream's limits on subscriptions and on distinct users among callers. */
import * as ReplicaUse from "../../streams/ReplicaUse.ts"
import type { Limits } from "../../streams/StreamLimits.ts"
import type { StreamProtocol, Topic } from "../../streams/Topic.ts"
import { distinctUsers } from "./SharedTopic.ts"
import type { CallerSeat, SharedTopic } from "./SharedTopic.ts"

/** Records the subscriptions of each caller, and checks new subscriptions against the limits. */
export interface CallerShares {
  readonly add: (seat: CallerSeat, shared: SharedTopic) => void
  readonly remove: (seat: CallerSeat, shared: SharedTopic) => void
  /**
   * Returns the error message for a caller's subscription to a further topic; `undefined` if the topic is within the
   * limits.
   */
  readonly refusal: (caller: string, topic: Topic) => string | undefined
  /** Lowers a limit to the value that the upstream reported. */
  readonly lower: (of: "subscriptions" | "users", limit: number) => void
}

/** Maximum number of users for whom capacity is reserved because they have priority. */
const maxReserved = 3

/**
 * Makes a record of the subscriptions of each caller of a stream hub, without callers at first. `topics` are all current
 * upstream subscriptions of the hub. `familiar` are the users who have priority. `others` returns how much of the same
 * limits is used by other replicas, and `reported` the hub's own use that they know.
 */
export const make = (
  limits: Limits,
  protocol: StreamProtocol,
  topics: ReadonlyMap<string, SharedTopic>,
  familiar: ReadonlySet<string> | undefined,
  others: () => ReplicaUse.OtherUse,
  reported: () => ReplicaUse.Use
): CallerShares => {
  const most = { subscriptions: limits.subscriptions, users: limits.users }
  /**
   * The topics of each caller. For each topic, the number of the caller's connections (seats) that are subscribed to
   * it.
   */
  const callers = new Map<string, Map<SharedTopic, number>>()

  /** Returns the number of users for whom capacity is reserved because they have priority. */
  const reserved = (users: ReadonlySet<string>): number => {
    let absent = 0
    for (const user of familiar ?? []) if (!users.has(user) && ++absent === maxReserved) break
    return absent
  }

  const subscriptionsRefusal = (caller: string): string | undefined => {
    const own = callers.get(caller)
    const share = Math.floor(most.subscriptions / Math.max(1, callers.size + (own === undefined ? 1 : 0)))
    const shared = reported().subscriptions
    const known = shared + others().subscriptions
    const left = ReplicaUse.left(most.subscriptions, known, topics.size - shared, others())
    // the last tenth of the upstream's limit is reserved for callers below their share
    return left <= 0 || (left <= most.subscriptions / 10 && (own?.size ?? 0) >= share)
      ? protocol.refusal("subscriptions", most.subscriptions)
      : undefined
  }

  const userRefusal = (caller: string, user: string): string | undefined => {
    const shared = new Set([...others().users, ...others().isCurrent ? [] : reported().users])
    const users = distinctUsers(topics.values()).union(shared)
    if (!users.has(user)) {
      const left = ReplicaUse.left(most.users, shared.size, users.size - shared.size, others())
      if (left <= 0 || (familiar?.has(user) === false && left <= reserved(users))) {
        return protocol.refusal("users", most.users)
      }
    }
    const own = distinctUsers(callers.get(caller)?.keys() ?? [])
    return !own.has(user) && own.size >= limits.usersOfCaller
      ? protocol.refusal("users", limits.usersOfCaller)
      : undefined
  }

  return {
    add: ({ caller }, shared) => {
      const own = callers.get(caller) ?? new Map<SharedTopic, number>()
      callers.set(caller, own)
      own.set(shared, (own.get(shared) ?? 0) + 1)
    },
    remove: ({ caller }, shared) => {
      const own = callers.get(caller)
      const seats = (own?.get(shared) ?? 1) - 1
      if (seats > 0) own?.set(shared, seats)
      else own?.delete(shared)
      if (own?.size === 0) callers.delete(caller)
    },
    refusal: (caller, topic) =>
      subscriptionsRefusal(caller) ?? (topic.user === undefined ? undefined : userRefusal(caller, topic.user)),
    lower: (of, limit) => {
      most[of] = Math.min(most[of], limit)
    }
  }
}
