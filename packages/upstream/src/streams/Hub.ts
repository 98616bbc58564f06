/**
 * Shares upstream subscriptions between callers. There is one upstream subscription for each distinct topic.
 *
 * Frames pass from an upstream connection to the callers synchronously. Effects run only for operations that wait:
 * connecting, sending messages within the rate limit, and refilling (querying data missed while a connection was lost).
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import type * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as TopicConnections from "../internal/streams/TopicConnections.ts"
import * as ReplicaUse from "./ReplicaUse.ts"
import { SocketTransport } from "./SocketTransport.ts"
import * as StreamLimits from "./StreamSettings.ts"
import * as SharedTopic from "./Topic.ts"

/** Maximum number of users for whom capacity is reserved because they have priority. */
const maxReserved = 3

/**
 * Makes a record of the subscriptions of each caller of a stream hub, without callers at first. `topics` are all current
 * upstream subscriptions of the hub. `familiar` are the users who have priority. `others` returns how much of the same
 * limits is used by other replicas, and `reported` the hub's own use that they know.
 */
export const makeShares = (
  limits: StreamLimits.Limits,
  protocol: SharedTopic.StreamProtocol,
  topics: ReadonlyMap<string, SharedTopic.SharedTopic>,
  familiar: ReadonlySet<string> | undefined,
  others: () => ReplicaUse.OtherUse,
  reported: () => ReplicaUse.Use
) => {
  const most = { subscriptions: limits.subscriptions, users: limits.users }
  /**
   * The topics of each caller. For each topic, the number of the caller's connections (seats) that are subscribed to
   * it.
   */
  const callers = new Map<string, Map<SharedTopic.SharedTopic, number>>()

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
    const users = SharedTopic.distinctUsers(topics.values()).union(shared)
    if (!users.has(user)) {
      const left = ReplicaUse.left(most.users, shared.size, users.size - shared.size, others())
      if (left <= 0 || (familiar?.has(user) === false && left <= reserved(users))) {
        return protocol.refusal("users", most.users)
      }
    }
    const own = SharedTopic.distinctUsers(callers.get(caller)?.keys() ?? [])
    return !own.has(user) && own.size >= limits.usersOfCaller
      ? protocol.refusal("users", limits.usersOfCaller)
      : undefined
  }

  return {
    add: ({ caller }: SharedTopic.CallerSeat, shared: SharedTopic.SharedTopic): void => {
      const own = callers.get(caller) ?? new Map<SharedTopic.SharedTopic, number>()
      callers.set(caller, own)
      own.set(shared, (own.get(shared) ?? 0) + 1)
    },
    remove: ({ caller }: SharedTopic.CallerSeat, shared: SharedTopic.SharedTopic): void => {
      const own = callers.get(caller)
      const seats = (own?.get(shared) ?? 1) - 1
      if (seats > 0) own?.set(shared, seats)
      else own?.delete(shared)
      if (own?.size === 0) callers.delete(caller)
    },
    /**
     * Returns the error message for a caller's subscription to a further topic; `undefined` if the topic is within the
     * limits.
     */
    refusal: (caller: string, topic: SharedTopic.Topic): string | undefined =>
      subscriptionsRefusal(caller) ?? (topic.user === undefined ? undefined : userRefusal(caller, topic.user)),
    /** Lowers a limit to the value that the upstream reported. */
    lower: (of: "subscriptions" | "users", limit: number): void => {
      most[of] = Math.min(most[of], limit)
    }
  }
}

/** Makes the registry over the topics of a stream hub. */
export const makeRegistry = (
  topics: Map<string, SharedTopic.SharedTopic>,
  shares: ReturnType<typeof makeShares>,
  deliveries: TopicConnections.Deliveries,
  now: () => number
) => {
  const detach = (shared: SharedTopic.SharedTopic, seat: SharedTopic.CallerSeat): void => {
    seat.byKey.delete(shared.topic.key)
    shared.seats.delete(seat)
    shared.waiting.delete(seat)
    shares.remove(seat, shared)
    if (!SharedTopic.isWanted(shared)) shared.emptySince = now()
  }

  /** Removes a topic, so that its route can be used by a new topic. */
  const forget = (shared: SharedTopic.SharedTopic): void => {
    if (topics.get(shared.key) === shared) topics.delete(shared.key)
    const { connection, topic } = shared
    if (connection.byRoute.get(topic.route) === shared) connection.byRoute.delete(topic.route)
    connection.suspects = connection.suspects.filter((each) => each !== shared)
  }

  return {
    /** Adds a caller to a topic. The caller then waits for the acknowledgement of the topic. */
    attach: (shared: SharedTopic.SharedTopic, seat: SharedTopic.CallerSeat): void => {
      seat.byKey.set(shared.topic.key, shared)
      shares.add(seat, shared)
      shared.emptySince = undefined
      shared.waiting.add(seat)
      if (shared.phase === "accepted") deliveries.admit(shared)
    },
    detach,
    forget,
    /**
     * Refuses a topic for all of its callers, and removes it. `isInvalid`: whether the upstream would refuse it again,
     * so that no caller should subscribe to it again.
     */
    refuse: (shared: SharedTopic.SharedTopic, message: string, isInvalid = false): void => {
      const subscribed = new Set(isInvalid ? [] : shared.seats)
      for (const seat of [...shared.seats, ...shared.waiting]) {
        detach(shared, seat)
        deliveries.refuse(seat, shared.topic, message, subscribed.has(seat))
      }
      forget(shared)
    }
  }
}

export type TopicRegistry = ReturnType<typeof makeRegistry>

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

const isSilent = ({ interval, lastAt, phase, topic }: SharedTopic.SharedTopic, at: number): boolean =>
  topic.isSteady && phase === "accepted" && lastAt !== undefined && interval > 0 &&
  at - lastAt > Math.max(silentAtLeast, silentIntervals * interval)

/**
 * Returns the function that checks all topics; it has to be called once a second. `grace` is how long a topic without
 * callers is retained, in milliseconds.
 */
export const makeWatch = (
  topics: Map<string, SharedTopic.SharedTopic>,
  connections: ReturnType<typeof TopicConnections.make>,
  counts: SharedTopic.Counts,
  grace: number
) => {
  const revive = (shared: SharedTopic.SharedTopic, at: number): void => {
    shared.silences++
    shared.lastAt = at
    SharedTopic.countUp(counts.reconnects, "stale")
    if (shared.silences <= maxSilences) return connections.askAgain(shared)
    shared.silences = 0
    shared.connection.link?.drop("stale")
  }

  const watch = (shared: SharedTopic.SharedTopic, at: number): void => {
    const { askedAt, connection, emptySince, phase } = shared
    if (emptySince !== undefined && at - emptySince >= grace) {
      topics.delete(shared.key)
      return connections.leave(shared)
    }
    if (phase === "asked" && at - askedAt >= responseWithin && connection.link?.isWaiting() === false) {
      connections.ask(shared)
    }
    if (phase === "accepted" && at - askedAt >= TopicConnections.suspectFor) shared.isProven = true
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

/** The state of a stream hub, for metrics and the console. */
export interface Status {
  readonly connections: number
  readonly subscriptions: number
  readonly users: number
  /** How much of the upstream's limits other replicas use, as of the last exchange with them. */
  readonly others: ReplicaUse.OtherUse
  readonly seats: number
  readonly topics: ReadonlyArray<{
    readonly key: string
    readonly name: string
    readonly callers: number
    /** Milliseconds since the last frame; `undefined` before the first frame. */
    readonly age: number | undefined
    readonly isLive: boolean
  }>
}

/** The shared subscriptions of one upstream. */
export interface Hub {
  /**
   * Makes a seat, through which one connection of a caller subscribes. `caller` is the caller's name. The
   * upstream's limits are divided fairly among the callers.
   */
  readonly join: (caller: string, sink: SharedTopic.Sink) => SharedTopic.Seat
  /**
   * Returns the time, in milliseconds, at which the connection of a topic last received a frame. Returns `undefined`
   * while data of the topic may be missing: until the upstream has accepted the topic and sent its initial frame, and
   * during a refill.
   */
  readonly heardAt: (topicKey: string) => number | undefined
  readonly status: () => Status
  readonly counts: SharedTopic.Counts
}

/** The location of an upstream's streams, and their limits. */
export interface Options {
  /** Returns the URLs in order of preference, for each new connection. */
  readonly addresses: () => ReadonlyArray<Redacted.Redacted>
  readonly protocol: SharedTopic.StreamProtocol
  readonly limits?: Partial<StreamLimits.Limits>
  /**
   * The users, in lower case, who have priority when the limit on distinct users is reached, such as users with
   * accepted actions. Capacity is reserved for up to three of these users while they have no subscription.
   */
  readonly familiar?: ReadonlySet<string>
  /**
   * The service by which replicas report how much of the upstream's limits each of them uses. Default: no other
   * replicas.
   */
  readonly replicas?: ReplicaUse.ReplicaUse["Service"]
  /** Receives each new frame that contains a whole state, once for all callers. */
  readonly observe?: ((frame: SharedTopic.Frame) => void) | undefined
}

/**
 * Returns the topic that was subscribed last and has no response yet. If `isUser` is true, considers only topics with a
 * user. A refusal from the upstream that names no topic refers to the returned topic.
 */
const lastAsked = (
  { byRoute }: SharedTopic.TopicConnection,
  isUser: boolean
): SharedTopic.SharedTopic | undefined => {
  let found: SharedTopic.SharedTopic | undefined
  for (const shared of byRoute.values()) {
    if (shared.phase !== "asked" || (isUser && shared.topic.user === undefined)) continue
    if (found === undefined || shared.askedAt >= found.askedAt) found = shared
  }
  return found
}

/** Makes a stream hub. It connects at the first subscription, and closes its connections when its scope closes. */
export const make = Effect.fnUntraced(function*({ addresses, familiar, protocol, replicas, ...options }: Options) {
  const limits: StreamLimits.Limits = { ...StreamLimits.defaults, ...options.limits }
  const transport = yield* SocketTransport
  const clock = yield* Clock.Clock
  const scope = yield* Scope.Scope
  const run = Effect.runForkWith(yield* Effect.context())
  const fork = <A>(effect: Effect.Effect<A>): Fiber.Fiber<A> => Fiber.runIn(run(effect), scope)
  const newConnections = yield* StreamLimits.makeMinuteBudget(limits.newConnections)
  const messages = yield* StreamLimits.makeMinuteBudget(limits.messages)
  const now = () => clock.currentTimeMillisUnsafe()

  const changes = yield* Queue.sliding<void>(1)
  const topics = new Map<string, SharedTopic.SharedTopic>()
  const seats = new Set<SharedTopic.CallerSeat>()
  const counts = new SharedTopic.Counts()
  let lastSeat = 0
  let others = ReplicaUse.alone
  /** The use of this process at the last exchange with the other replicas. */
  let reported = ReplicaUse.none

  /** The number of gaps that have not been logged yet, by cause and topic name. */
  let gaps = new Map<string, number>()

  const reportGap = ({ seats, topic }: SharedTopic.SharedTopic, cause: string): void => {
    SharedTopic.countUp(counts.gaps, topic.name)
    SharedTopic.countUp(gaps, `${topic.name} (${cause})`)
    for (const { sink } of seats) sink.interrupted?.(topic)
  }

  /**
   * Logs, in one line, the gaps since the previous such line, because the loss of one connection can cause gaps in many
   * streams.
   */
  const logGaps = Effect.suspend(() => {
    if (gaps.size === 0) return Effect.void
    const found = Object.fromEntries(gaps)
    gaps = new Map()
    return Effect.logWarning("Streams have gaps that could not be refilled", found)
  })

  const deliveries = TopicConnections.makeDeliveries(counts)
  const shares = makeShares(limits, protocol, topics, familiar, () => others, () => reported)
  const registry = makeRegistry(topics, shares, deliveries, now)
  const frames = TopicConnections.makeFrames(counts, deliveries, reportGap, now, options.observe)
  const refills = TopicConnections.makeRefills({ protocol, frames, deliveries, counts, reportGap, fork })
  const connections = TopicConnections.make({
    transport,
    addresses,
    protocol,
    left: (open) => {
      const known = reported.connections + others.connections
      return ReplicaUse.left(limits.connections, known, open - reported.connections, others)
    },
    others: () => others.connections,
    newConnections,
    messages,
    counts,
    registry,
    deliveries,
    now,
    fork,
    onText: (connection, text) => receive(connection, text, protocol.read(text))
  })

  /** Handles the upstream's acceptance of a topic, for the first time or after a loss. */
  const accept = (shared: SharedTopic.SharedTopic): void => {
    shared.phase = "accepted"
    shared.wasAccepted = true
    const { refill } = shared.topic
    const isLiveAtOnce = SharedTopic.isLiveAtOnce(shared.topic)
    if (shared.liveSince !== undefined) {
      if (isLiveAtOnce && refill === undefined) reportGap(shared, "reconnect")
      refills.start(shared)
    } else if (isLiveAtOnce) shared.liveSince = now()
    deliveries.admit(shared)
  }

  const receiveData = (
    { byRoute }: SharedTopic.TopicConnection,
    text: string,
    { route, state }: Extract<SharedTopic.Incoming, { kind: "data" }>
  ): void => {
    const shared = byRoute.get(route)
    if (shared === undefined || shared.phase === "leaving") return
    SharedTopic.countUp(counts.frames, shared.topic.name)
    if (shared.phase === "asked") accept(shared)
    refills.receive(shared, text, state)
  }

  /**
   * Delivers a frame of an unknown channel to all callers of the connection. Skips a frame that may contain another
   * user's data.
   */
  const receiveUnknown = ({ byRoute }: SharedTopic.TopicConnection, text: string): void => {
    counts.unknown++
    const all = [...byRoute.values()]
    if (all.some(({ topic }) => topic.user !== undefined)) return
    const reached = new Set<SharedTopic.CallerSeat>()
    for (const { seats, topic } of all) {
      for (const seat of seats) {
        if (reached.has(seat)) continue
        reached.add(seat)
        deliveries.toSeat(seat, new SharedTopic.Frame(text, topic))
      }
    }
  }

  const receive = (connection: SharedTopic.TopicConnection, text: string, read: SharedTopic.Incoming): void => {
    /** Returns the topic of a route if it is in the given phase. */
    const inPhase = (route: string | undefined, phase: SharedTopic.SharedTopic["phase"]) => {
      const shared = route === undefined ? undefined : connection.byRoute.get(route)
      return shared?.phase === phase ? shared : undefined
    }
    switch (read.kind) {
      case "data":
        return receiveData(connection, text, read)
      case "subscribed": {
        const shared = inPhase(read.route, "asked")
        return shared === undefined ? undefined : accept(shared)
      }
      case "unsubscribed": {
        const shared = inPhase(read.route, "leaving")
        return shared === undefined ? undefined : connections.left(shared)
      }
      case "refused": {
        const shared = inPhase(read.route, "asked")
        return shared === undefined ? undefined : registry.refuse(shared, read.message)
      }
      case "limit": {
        if (read.of === "messages") return messages.exhaust()
        shares.lower(read.of, read.limit)
        const shared = lastAsked(connection, read.of === "users")
        return shared === undefined ? undefined : registry.refuse(shared, read.message)
      }
      case "unknown":
        return receiveUnknown(connection, text)
      case "noise":
        return
    }
  }

  /**
   * Returns the topic with the given key if it has subscribers again, but the upstream has not confirmed its
   * unsubscription yet.
   */
  const leaving = (key: string): SharedTopic.SharedTopic | undefined => {
    for (const { byRoute } of connections.open) {
      for (const shared of byRoute.values()) if (shared.key === key && shared.phase === "leaving") return shared
    }
    return undefined
  }

  const start = (topic: SharedTopic.Topic, key: string): SharedTopic.SharedTopic | undefined => {
    const connection = connections.find(topic)
    if (connection === undefined) return undefined
    const shared = new SharedTopic.SharedTopic(topic, key, connection)
    topics.set(key, shared)
    connection.byRoute.set(topic.route, shared)
    Queue.offerUnsafe(changes, undefined)
    return shared
  }

  const subscribe = (seat: SharedTopic.CallerSeat, topic: SharedTopic.Topic): void => {
    const key = topic.isUnshared ? `${topic.key}#${seat.id}` : topic.key
    const known = topics.get(key) ?? leaving(key)
    if (known !== undefined) {
      topics.set(key, known)
      registry.attach(known, seat)
    } else {
      const refusal = shares.refusal(seat.caller, topic)
      const shared = refusal === undefined ? start(topic, key) : undefined
      if (shared === undefined) {
        deliveries.refuse(seat, topic, refusal ?? protocol.refusal("connections", limits.connections), false)
      } else {
        registry.attach(shared, seat)
        connections.ask(shared)
      }
    }
    deliveries.flush()
  }

  if (replicas !== undefined) {
    const exchanging = Effect.gen(function*() {
      yield* Queue.take(changes)
      const own = {
        connections: connections.open.size,
        subscriptions: topics.size,
        users: [...SharedTopic.distinctUsers(topics.values())]
      }
      others = yield* replicas.exchange(own)
      if (others.isCurrent) reported = own
    })
    // a replica that stops releases its part of the limits immediately
    yield* Effect.addFinalizer(() => replicas.exchange(ReplicaUse.none))
    yield* Effect.forkIn(Effect.forever(exchanging), scope)
  }

  const watch = makeWatch(topics, connections, counts, Duration.toMillis(limits.grace))
  const tick = Effect.suspend(() => {
    watch(now())
    Queue.offerUnsafe(changes, undefined)
    deliveries.flush()
    return logGaps
  })
  yield* Effect.forkIn(Effect.forever(Effect.andThen(Effect.sleep("1 second"), tick)), scope)

  const seatHub: SharedTopic.SeatHub = { subscribe, detach: registry.detach, seats }
  const hub: Hub = {
    counts,
    heardAt: (key) => {
      const shared = topics.get(key)
      return shared !== undefined && SharedTopic.isUpToDate(shared) ? shared.connection.heardAt : undefined
    },
    join: (caller, sink) => {
      const seat = new SharedTopic.CallerSeat(++lastSeat, caller, sink, seatHub)
      seats.add(seat)
      return seat
    },
    status: () => {
      const at = now()
      return {
        connections: [...connections.open].filter(({ isUp }) => isUp).length,
        subscriptions: topics.size,
        users: SharedTopic.distinctUsers(topics.values()).size,
        others,
        seats: seats.size,
        topics: [...topics.values()].map(({ key, lastAt, phase, seats, topic, waiting }) => ({
          key,
          name: topic.name,
          callers: seats.size + waiting.size,
          age: lastAt === undefined ? undefined : at - lastAt,
          isLive: phase === "accepted"
        }))
      }
    }
  }
  return hub
})
