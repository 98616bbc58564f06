/**
 * How callers share an upstream's stream limits. Each unit of a limit, such as a subscription, has owners until the
 * upstream has released it: the callers who use it, or the last one who did.
 *
 * While units are free, the number of units of a caller is not limited. If none is free, units without callers are ended
 * first. Then a caller below its share takes a unit from a caller above: the newest of the caller with the most.
 */
import {
  addMillis,
  latest,
  longAgo,
  millisBetween,
  monotonicMillis,
  type MonotonicTime,
  monotonicTime
} from "@trigate/domain/encoding/Encoding"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as ReplicaUse from "./ReplicaUse.ts"
import type { Limits } from "./StreamSettings.ts"
import * as Topics from "./Topic.ts"

/** One unit of a limit: the topics that use it together. */
type Unit = ReadonlyArray<Topics.SharedTopic>

/** One limit, and its units in use, the oldest first. */
interface Ledger {
  readonly units: ReadonlyArray<Unit>
  /** The number of units that this process can have. */
  readonly capacity: number
}

const findCallers = (unit: Unit): Set<string> => new Set(unit.flatMap((shared) => Topics.owners(shared)))

const isIdle = (unit: Unit): boolean => !unit.some(Topics.isWanted)

/**
 * Returns how much of a limit each caller uses. A unit that callers use together counts in equal parts, so that all parts
 * add up to the units in use.
 */
const useByCaller = ({ units }: Ledger): Map<string, number> => {
  const use = new Map<string, number>()
  for (const unit of units) {
    const callers = findCallers(unit)
    for (const caller of callers) use.set(caller, (use.get(caller) ?? 0) + 1 / callers.size)
  }
  return use
}

/** How a caller can get one more unit of a limit: it is free, another unit must be released first, or not at all. */
type Claim = "free" | "refused" | Unit

/**
 * Decides on one more unit of a limit for a caller. `reserved` returns the number of free units that
 * are for other callers, and `isProtected` whether no caller loses a unit.
 */
const claim = (
  ledger: Ledger,
  caller: string,
  reserved: (isBelow: boolean) => number,
  isProtected: (unit: Unit) => boolean = () => false
): Claim => {
  const { capacity, units } = ledger
  const left = capacity - units.length
  if (left > reserved(false)) return "free"
  const use = useByCaller(ledger)
  const own = use.get(caller) ?? 0
  const share = capacity / (use.size + (use.has(caller) ? 0 : 1))
  const isBelow = own + 1 <= share
  if (left > reserved(isBelow)) return "free"
  const idle = oldestIdle(units)
  if (idle !== undefined) return idle
  if (!isBelow) return "refused"
  let most = share
  let found: Claim = "refused"
  for (const unit of units) {
    const callers = [...findCallers(unit)]
    // a unit that a caller within its share uses, too, would be missed by that caller
    if (isProtected(unit) || callers.some((each) => (use.get(each) ?? 0) <= share)) continue
    const greatest = Math.max(...callers.map((each) => use.get(each) ?? 0))
    if (greatest < most) continue
    most = greatest
    found = unit
  }
  return found
}

/** Maximum number of users for whom capacity is reserved because they have priority. */
const maxReserved = 3

/** The decision on a caller's subscription to a topic: at once, after the release of other topics, or an error. */
export type Admission =
  | { readonly _tag: "Admitted" }
  | { readonly _tag: "Behind"; readonly released: ReadonlySet<Topics.SharedTopic>; readonly message: string }
  | { readonly _tag: "Refused"; readonly message: string }

const admitted: Admission = { _tag: "Admitted" }

type Limit = "subscriptions" | "users" | "connections"

/** Groups topics by the user whose data they contain. */
const byUser = (topics: Iterable<Topics.SharedTopic>): Map<string, Array<Topics.SharedTopic>> => {
  const units = new Map<string, Array<Topics.SharedTopic>>()
  for (const shared of topics) {
    const { user } = shared.topic
    if (user === undefined) continue
    const unit = units.get(user)
    if (unit === undefined) units.set(user, [shared])
    else unit.push(shared)
  }
  return units
}

/** Returns the unit that has been without callers for the longest time. */
const oldestIdle = (units: ReadonlyArray<Unit>): Unit | undefined =>
  units.filter(isIdle).toSorted(([a], [b]) =>
    monotonicMillis(a?.emptySince ?? longAgo) - monotonicMillis(b?.emptySince ?? longAgo)
  )[0]

/** The limits of a stream hub, and its state. */
export interface Options {
  readonly limits: Limits
  readonly protocol: Topics.StreamProtocol
  /** All topics that the upstream has not released yet, the oldest first. */
  readonly topics: ReadonlySet<Topics.SharedTopic>
  /** The users who have priority. */
  readonly familiar: ReadonlySet<string> | undefined
  /** Returns how many further connections this process may open. */
  readonly connectionsLeft: () => number
  readonly connections: ReadonlySet<Topics.TopicConnection>
  /** Returns how much of the same limits is used by other replicas. */
  readonly others: () => ReplicaUse.OtherUse
  /** Returns the hub's own use that the other replicas know. */
  readonly reported: () => ReplicaUse.Use
}

/** Makes the ledger of a stream hub. */
export const make = (
  { connections, connectionsLeft, familiar, limits, others, protocol, reported, topics }: Options
) => {
  const most = { subscriptions: limits.subscriptions, users: limits.users }

  const subscriptions = (caller: string): Claim => {
    const shared = reported().subscriptions
    const left = ReplicaUse.left(most.subscriptions, shared + others().subscriptions, topics.size - shared, others())
    // the last tenth of the upstream's limit is reserved for callers below their share
    const tenth = most.subscriptions / 10
    if (left > tenth) return "free"
    const units = Array.from(topics, (each) => [each])
    return claim({ units, capacity: units.length + left }, caller, (isBelow) => isBelow ? 0 : tenth)
  }

  /** Returns the number of users for whom capacity is reserved because they have priority. */
  const reserved = (users: ReadonlyMap<string, Unit>): number => {
    let absent = 0
    for (const user of familiar ?? []) if (!users.has(user) && ++absent === maxReserved) break
    return absent
  }

  const users = (caller: string, user: string): Claim => {
    const own = byUser(topics)
    const { isCurrent, users } = others()
    const shared = new Set([...users, ...isCurrent ? [] : reported().users])
    if (own.has(user) || shared.has(user)) return "free"
    const growth = new Set(own.keys()).difference(shared).size
    const left = ReplicaUse.left(most.users, shared.size, growth, others())
    const forFamiliar = familiar?.has(user) === false ? reserved(own) : 0
    return claim(
      { units: [...own.values()], capacity: own.size + left },
      caller,
      () => forFamiliar,
      ([first]) => familiar?.has(first?.topic.user ?? "") === true
    )
  }

  /** A connection carries one topic of each route, so the topics of one route share the connections. */
  const routes = (caller: string, route: string): Claim => {
    const units = [...connections].flatMap(({ byRoute }): ReadonlyArray<Unit> => {
      const shared = byRoute.get(route)
      return shared === undefined ? [] : [[shared]]
    })
    return claim({ units, capacity: connections.size + connectionsLeft() }, caller, () => 0)
  }

  const refused = (of: Limit, limit: number): Admission => ({
    _tag: "Refused",
    message: protocol.refusal(of, limit)
  })

  const behind = (released: ReadonlySet<Topics.SharedTopic>, of: Limit, limit: number): Admission => ({
    _tag: "Behind",
    released,
    message: protocol.refusal(of, limit)
  })

  /** Decides on the number of users of one caller, which include those whom it has just left. */
  const ofCaller = (caller: string, user: string): Admission | undefined => {
    const own = byUser([...topics].filter((shared) => Topics.owners(shared).includes(caller)))
    if (own.has(user) || own.size < limits.usersOfCaller) return undefined
    const idle = oldestIdle([...own.values()])
    return idle === undefined
      ? refused("users", limits.usersOfCaller)
      : behind(new Set(idle), "users", limits.usersOfCaller)
  }

  return {
    /** Decides on a caller's subscription to a topic. `isNew`: whether the upstream has no such subscription yet. */
    admit: (caller: string, topic: Topics.Topic, isNew: boolean): Admission => {
      const { route, user } = topic
      const refusal = user === undefined ? undefined : ofCaller(caller, user)
      if (refusal !== undefined || !isNew) return refusal ?? admitted
      const claims: ReadonlyArray<readonly [of: Limit, most: number, found: Claim]> = [
        ["subscriptions", most.subscriptions, subscriptions(caller)],
        ["users", most.users, user === undefined ? "free" : users(caller, user)],
        ["connections", limits.connections, routes(caller, route)]
      ]
      const released = new Set<Topics.SharedTopic>()
      let last: Admission = admitted
      for (const [of, limit, found] of claims) {
        if (found === "refused") return refused(of, limit)
        if (found === "free") continue
        for (const shared of found) released.add(shared)
        last = behind(released, of, limit)
      }
      return last
    },
    /** Lowers a limit to the value that the upstream reported. */
    lower: (of: "subscriptions" | "users", limit: number): void => {
      most[of] = Math.min(most[of], limit)
    }
  }
}

/**
 * The length of a minute in milliseconds, with a margin, because messages may arrive at shorter intervals than the
 * intervals at which they are sent.
 */
const minute = 61_000

/** Returns how much of a limit per minute callers who already used some of it leave to a new one. */
const forNewcomers = (most: number): number => Math.floor(most / 10)

/**
 * Makes a limit on events per minute. `most` returns the limit, which changes with the number of replicas. The part
 * `reserved` of it is only for events that must not wait for callers, such as reconnections; the callers share the rest.
 */
export const makeMinuteBudget = (most: () => number, reserved = 0) =>
  Effect.map(Clock.Clock, (clock) => {
    const limit = (isUrgent: boolean) => most() - (isUrgent ? 0 : Math.floor(most() * reserved))
    const now = () => monotonicTime(clock)
    // times of the counted events, oldest first
    let taken: Array<MonotonicTime> = []
    let pausedUntil = longAgo
    const byCaller = new Map<string, Array<MonotonicTime>>()

    const recent = (times: Array<MonotonicTime>): Array<MonotonicTime> => {
      const from = addMillis(now(), -minute)
      return (times[0] ?? now()) > from ? times : times.filter((at) => at > from)
    }

    const left = (isUrgent: boolean): number => {
      if (now() < pausedUntil) return 0
      taken = recent(taken)
      return limit(isUrgent) - taken.length
    }

    /** Waits until the next event is allowed, and counts that event. `isUrgent`: whether it can use the reserve. */
    const take = (isUrgent: boolean): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (left(isUrgent) > 0) {
          taken.push(now())
          return Effect.void
        }
        const free = addMillis(taken[Math.max(0, taken.length - limit(isUrgent))] ?? now(), minute)
        const wait = Math.max(1, millisBetween(now(), latest(pausedUntil, free)))
        return Effect.andThen(Effect.sleep(wait), take(isUrgent))
      })

    /** Counts an event that a caller caused. */
    const note = (caller: string): void => {
      const times = byCaller.get(caller)
      if (times === undefined) byCaller.set(caller, [now()])
      else times.push(now())
    }

    return {
      take,
      /** Counts an event that cannot wait. */
      spend: (): void => void taken.push(now()),
      /** Blocks further events for a minute, because the upstream reported that the limit is reached. */
      exhaust: (): void => {
        pausedUntil = addMillis(now(), minute)
      },
      /** Returns the number of events that are allowed now. */
      left: (): number => left(true),
      note,
      /** Returns whether one more event is within a caller's share of a minute. */
      allows: (caller: string): boolean => {
        let all = 0
        for (const [each, times] of byCaller) {
          const last = recent(times)
          if (last.length === 0) byCaller.delete(each)
          else byCaller.set(each, last)
          all += last.length
        }
        const own = byCaller.get(caller)?.length ?? 0
        const share = (limit(false) - forNewcomers(most())) / (byCaller.size + (own === 0 ? 1 : 0))
        return own + 1 <= share && all + 1 <= limit(false)
      }
    }
  })

/** A limit on the events in any minute. Events beyond the limit wait. */
export type MinuteBudget = Effect.Success<ReturnType<typeof makeMinuteBudget>>
