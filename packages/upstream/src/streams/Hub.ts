/**
 * Shares upstream subscriptions between callers. There is one upstream subscription for each distinct topic.
 *
 * Frames pass from an upstream connection to the callers synchronously. Effects run only for operations that wait:
 * connecting, sending messages within the rate limit, and refilling (querying data missed while a connection was lost).
 */
import { millisBetween, type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
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
import * as StreamShares from "./StreamShares.ts"
import * as SharedTopic from "./Topic.ts"

/**
 * Makes the registry over the topics of a stream hub. `open` are all topics that the upstream has not released yet, and
 * `released` is called after the release of one. `elapsed` returns the monotonic time.
 */
export const makeRegistry = (
  topics: Map<string, SharedTopic.SharedTopic>,
  open: Set<SharedTopic.SharedTopic>,
  deliveries: TopicConnections.Deliveries,
  elapsed: () => MonotonicTime,
  released: () => void
) => {
  const detach = (shared: SharedTopic.SharedTopic, subscriber: SharedTopic.CallerSubscriber): void => {
    subscriber.byKey.delete(shared.topic.key)
    shared.subscribers.delete(subscriber)
    shared.waiting.delete(subscriber)
    if (SharedTopic.isWanted(shared)) return
    shared.emptySince = elapsed()
    shared.lastCaller = subscriber.caller
  }

  /** Removes a topic, so that its route can be used by a new topic. */
  const forget = (shared: SharedTopic.SharedTopic): void => {
    if (topics.get(shared.key) === shared) topics.delete(shared.key)
    const { connection, topic } = shared
    if (connection.byRoute.get(topic.route) === shared) connection.byRoute.delete(topic.route)
    connection.suspects = connection.suspects.filter((each) => each !== shared)
    open.delete(shared)
    released()
  }

  /** Ends a topic for all of its callers. `subscribed` are those who have to be made to subscribe again. */
  const end = (
    shared: SharedTopic.SharedTopic,
    message: string,
    subscribed: ReadonlySet<SharedTopic.CallerSubscriber> = new Set(shared.subscribers)
  ): void => {
    for (const subscriber of [...shared.subscribers, ...shared.waiting]) {
      detach(shared, subscriber)
      deliveries.refuse(subscriber, shared.topic, message, subscribed.has(subscriber))
    }
  }

  return {
    /** Adds a caller to a topic. The caller then waits for the acknowledgement of the topic. */
    attach: (shared: SharedTopic.SharedTopic, subscriber: SharedTopic.CallerSubscriber): void => {
      subscriber.awaited.delete(shared.topic.key)
      subscriber.byKey.set(shared.topic.key, shared)
      shared.emptySince = undefined
      shared.lastCaller = subscriber.caller
      shared.waiting.add(subscriber)
      if (shared.phase === "accepted") deliveries.admit(shared)
    },
    detach,
    forget,
    end,
    /**
     * Refuses a topic for all of its callers, and removes it. `isInvalid`: whether the upstream would refuse it again,
     * so that no caller should subscribe to it again.
     */
    refuse: (shared: SharedTopic.SharedTopic, message: string, isInvalid = false): void => {
      end(shared, message, new Set(isInvalid ? [] : shared.subscribers))
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

const isSilent = ({ interval, lastAt, phase, topic }: SharedTopic.SharedTopic, at: MonotonicTime): boolean =>
  topic.isSteady && phase === "accepted" && lastAt !== undefined && interval > 0 &&
  millisBetween(lastAt, at) > Math.max(silentAtLeast, silentIntervals * interval)

/**
 * Returns the function that checks all topics; it has to be called once a second. `grace` is how long a topic without
 * callers is retained, in milliseconds.
 */
export const makeWatch = (
  topics: Map<string, SharedTopic.SharedTopic>,
  connections: ReturnType<typeof TopicConnections.make>,
  counts: SharedTopic.Counts,
  grace: number,
  leave: (shared: SharedTopic.SharedTopic) => void
) => {
  const revive = (shared: SharedTopic.SharedTopic, at: MonotonicTime): void => {
    shared.silences++
    shared.lastAt = at
    SharedTopic.countUp(counts.reconnects, "stale")
    if (shared.silences <= maxSilences) return connections.resubscribe(shared)
    shared.silences = 0
    shared.connection.link?.drop("stale")
  }

  const watch = (shared: SharedTopic.SharedTopic, at: MonotonicTime): void => {
    const { connection, emptySince, phase, requestedAt } = shared
    if (emptySince !== undefined && millisBetween(emptySince, at) >= grace) return leave(shared)
    if (
      phase === "requested" && millisBetween(requestedAt, at) >= responseWithin &&
      connection.link?.isWaiting() === false
    ) {
      connections.subscribe(shared)
    }
    if (phase === "accepted" && millisBetween(requestedAt, at) >= TopicConnections.suspectFor) shared.isProven = true
    if (isSilent(shared, at)) revive(shared, at)
  }

  return (at: MonotonicTime): void => {
    for (const shared of topics.values()) watch(shared, at)
    for (const connection of connections.open) {
      for (const shared of connection.byRoute.values()) {
        if (shared.phase === "leaving" && millisBetween(shared.requestedAt, at) >= confirmationWithin) {
          connections.left(shared)
        }
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
  readonly subscribers: number
  readonly topics: ReadonlyArray<{
    readonly key: string
    readonly name: string
    readonly callers: number
    /** Milliseconds since the last frame; `undefined` before the first frame. */
    readonly age: number | undefined
    readonly isLive: boolean
    /** The characters of the stored frames. */
    readonly bytes: number
  }>
}

/** The shared subscriptions of one upstream. */
export interface Hub {
  /**
   * Makes a subscriber, through which one connection of a caller subscribes. `caller` is the caller's name. The
   * upstream's limits are divided fairly among the callers.
   */
  readonly join: (caller: string, sink: SharedTopic.Sink) => SharedTopic.Subscriber
  /**
   * Returns the time, in milliseconds, at which the connection of a topic last received a frame. Returns `undefined`
   * while data of the topic may be missing: until the upstream has accepted the topic and sent its initial frame, and
   * during a refill.
   */
  readonly heardAt: (topicKey: string) => MonotonicTime | undefined
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
const lastRequested = (
  { byRoute }: SharedTopic.TopicConnection,
  isUser: boolean
): SharedTopic.SharedTopic | undefined => {
  let found: SharedTopic.SharedTopic | undefined
  for (const shared of byRoute.values()) {
    if (shared.phase !== "requested" || (isUser && shared.topic.user === undefined)) continue
    if (found === undefined || shared.requestedAt >= found.requestedAt) found = shared
  }
  return found
}

/** A subscription that waits until the upstream has released another one. */
interface Awaiting {
  readonly subscriber: SharedTopic.CallerSubscriber
  readonly topic: SharedTopic.Topic
  readonly since: MonotonicTime
}

/** Maximum milliseconds that a subscription waits. */
const awaitedFor = 65_000

/** Maximum number of subscriptions of one caller that wait. */
const mostAwaiting = 100

/** Makes a stream hub. It connects at the first subscription, and closes its connections when its scope closes. */
export const make = Effect.fnUntraced(function*({ addresses, familiar, protocol, replicas, ...options }: Options) {
  const limits: StreamLimits.Limits = { ...StreamLimits.defaults, ...options.limits }
  const transport = yield* SocketTransport
  const clock = yield* Clock.Clock
  const scope = yield* Scope.Scope
  const run = Effect.runForkWith(yield* Effect.context())
  const fork = <A>(effect: Effect.Effect<A>): Fiber.Fiber<A> => Fiber.runIn(run(effect), scope)
  let others = ReplicaUse.alone
  // the limits are those of an IP address, so each replica takes an equal part
  const perReplica = (limit: number) => () => Math.max(1, Math.floor(limit / (others.replicas + 1)))
  const newConnections = yield* StreamShares.makeMinuteBudget(perReplica(limits.newConnections), 1 / 3)
  const messages = yield* StreamShares.makeMinuteBudget(perReplica(limits.messages), 1 / 10)
  const now = () => clock.currentTimeMillisUnsafe()
  const elapsed = () => monotonicTime(clock)

  const changes = yield* Queue.sliding<void>(1)
  /** The topics that callers can join, by key. */
  const topics = new Map<string, SharedTopic.SharedTopic>()
  /** All topics that the upstream has not released yet, the oldest first. */
  const open = new Set<SharedTopic.SharedTopic>()
  let awaiting: Array<Awaiting> = []
  const subscribers = new Set<SharedTopic.CallerSubscriber>()
  const counts = new SharedTopic.Counts()
  let lastSubscriber = 0
  /** The use of this process at the last exchange with the other replicas. */
  let reported = ReplicaUse.none

  /** The number of gaps that have not been logged yet, by cause and topic name. */
  let gaps = new Map<string, number>()

  const reportGap = ({ subscribers, topic }: SharedTopic.SharedTopic, cause: string): void => {
    SharedTopic.countUp(counts.gaps, topic.name)
    SharedTopic.countUp(gaps, `${topic.name} (${cause})`)
    for (const { sink } of subscribers) sink.interrupted?.(topic)
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
  const released = () => {
    if (awaiting.length > 0) fork(Effect.andThen(Effect.yieldNow, Effect.sync(admitAwaiting)))
  }
  const registry = makeRegistry(topics, open, deliveries, elapsed, released)
  const frames = TopicConnections.makeFrames(counts, deliveries, reportGap, elapsed, options.observe)
  const connectionsLeft = (used: number) => {
    const known = reported.connections + others.connections
    return ReplicaUse.left(limits.connections, known, used - reported.connections, others)
  }
  const refills = TopicConnections.makeRefills({ protocol, frames, deliveries, counts, reportGap, fork, now, elapsed })
  const connections = TopicConnections.make({
    transport,
    addresses,
    protocol,
    left: connectionsLeft,
    others: () => others.connections,
    newConnections,
    messages,
    counts,
    registry,
    deliveries,
    now,
    elapsed,
    fork,
    onText: (connection, text) => receive(connection, text, protocol.read(text))
  })

  const shares = StreamShares.make({
    limits,
    protocol,
    topics: open,
    familiar,
    connections: connections.open,
    connectionsLeft: () => connectionsLeft(connections.open.size),
    others: () => others,
    reported: () => reported
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
    } else if (isLiveAtOnce) shared.liveSince = elapsed()
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
    if (shared.phase === "requested") accept(shared)
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
    const reached = new Set<SharedTopic.CallerSubscriber>()
    for (const { subscribers, topic } of all) {
      for (const subscriber of subscribers) {
        if (reached.has(subscriber)) continue
        reached.add(subscriber)
        deliveries.toSubscriber(subscriber, new SharedTopic.Frame(text, topic))
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
        const shared = inPhase(read.route, "requested")
        return shared === undefined ? undefined : accept(shared)
      }
      case "unsubscribed": {
        const shared = inPhase(read.route, "leaving")
        return shared === undefined ? undefined : connections.left(shared)
      }
      case "refused": {
        const shared = inPhase(read.route, "requested")
        return shared === undefined ? undefined : registry.refuse(shared, read.message)
      }
      case "limit": {
        if (read.of === "messages") return messages.exhaust()
        shares.lower(read.of, read.limit)
        const shared = lastRequested(connection, read.of === "users")
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

  /** Subscribes to a topic at the upstream. Returns a limit per minute if the caller has used up its share. */
  const start = (
    subscriber: SharedTopic.CallerSubscriber,
    topic: SharedTopic.Topic,
    key: string
  ): "messages" | "connections" | undefined => {
    if (!messages.allows(subscriber.caller)) return "messages"
    const connection = connections.find(topic, subscriber.caller)
    if (connection === undefined) return "connections"
    messages.note(subscriber.caller)
    const shared = new SharedTopic.SharedTopic(topic, key, connection)
    topics.set(key, shared)
    open.add(shared)
    connection.byRoute.set(topic.route, shared)
    Queue.offerUnsafe(changes, undefined)
    registry.attach(shared, subscriber)
    connections.subscribe(shared)
    return undefined
  }

  /** Makes a subscription wait until the upstream has released a unit of a limit, or until the caller's next minute. */
  const wait = ({ subscriber, since, topic }: Awaiting, message: string): void => {
    const own = awaiting.filter((each) => each.subscriber.caller === subscriber.caller).length
    if (millisBetween(since, elapsed()) < awaitedFor && own < mostAwaiting) {
      subscriber.awaited.set(topic.key, topic)
      return void awaiting.push({ subscriber, topic, since })
    }
    subscriber.awaited.delete(topic.key)
    deliveries.refuse(subscriber, topic, message, false)
  }

  /** Unsubscribes a topic at the upstream. */
  const leave = (shared: SharedTopic.SharedTopic): void => {
    if (topics.get(shared.key) === shared) topics.delete(shared.key)
    messages.note(shared.lastCaller)
    connections.leave(shared)
  }

  const admit = (request: Awaiting): void => {
    const { subscriber, topic } = request
    const key = topic.isUnshared ? `${topic.key}#${subscriber.id}` : topic.key
    const known = topics.get(key) ?? (awaiting.length === 0 ? leaving(key) : undefined)
    const admission = shares.admit(subscriber.caller, topic, known === undefined)
    if (admission._tag === "Refused") {
      subscriber.awaited.delete(topic.key)
      return deliveries.refuse(subscriber, topic, admission.message, false)
    }
    if (admission._tag === "Behind") {
      wait(request, admission.message)
      for (const shared of admission.released) {
        registry.end(shared, admission.message)
        if (shared.phase !== "leaving") leave(shared)
      }
      return
    }
    if (known === undefined) {
      const limit = start(subscriber, topic, key)
      if (limit !== undefined) {
        wait(request, protocol.refusal(limit, limit === "messages" ? limits.messages : limits.connections))
      }
      return
    }
    topics.set(key, known)
    registry.attach(known, subscriber)
  }

  /** Tries the subscriptions again that wait, in their order. */
  const admitAwaiting = (): void => {
    const all = awaiting
    awaiting = []
    for (const each of all) if (each.subscriber.awaited.has(each.topic.key)) admit(each)
    deliveries.flush()
  }

  const subscribe = (subscriber: SharedTopic.CallerSubscriber, topic: SharedTopic.Topic): void => {
    if (awaiting.length > 0) admitAwaiting()
    admit({ subscriber, topic, since: elapsed() })
    deliveries.flush()
  }

  if (replicas !== undefined) {
    const exchanging = Effect.gen(function*() {
      yield* Queue.take(changes)
      const own = {
        connections: connections.open.size,
        subscriptions: open.size,
        users: [...SharedTopic.distinctUsers(open)]
      }
      others = yield* replicas.exchange(own)
      if (others.isCurrent) reported = own
    })
    // a replica that stops releases its part of the limits immediately
    yield* Effect.addFinalizer(() => replicas.exchange(ReplicaUse.none))
    yield* Effect.forkIn(Effect.forever(exchanging), scope)
  }

  const watch = makeWatch(topics, connections, counts, Duration.toMillis(limits.grace), leave)
  const tick = Effect.suspend(() => {
    watch(elapsed())
    admitAwaiting()
    Queue.offerUnsafe(changes, undefined)
    deliveries.flush()
    return logGaps
  })
  yield* Effect.forkIn(Effect.forever(Effect.andThen(Effect.sleep("1 second"), tick)), scope)

  const subscriberHub: SharedTopic.SubscriberHub = { subscribe, detach: registry.detach, subscribers }
  const hub: Hub = {
    counts,
    heardAt: (key) => {
      const shared = topics.get(key)
      return shared !== undefined && SharedTopic.isUpToDate(shared) ? shared.connection.heardAt : undefined
    },
    join: (caller, sink) => {
      const subscriber = new SharedTopic.CallerSubscriber(++lastSubscriber, caller, sink, subscriberHub)
      subscribers.add(subscriber)
      return subscriber
    },
    status: () => {
      const at = elapsed()
      return {
        connections: [...connections.open].filter(({ isUp }) => isUp).length,
        subscriptions: topics.size,
        users: SharedTopic.distinctUsers(topics.values()).size,
        others,
        subscribers: subscribers.size,
        topics: [...topics.values()].map((
          { buffered = [], key, last, lastAt, phase, subscribers, topic, waiting }
        ) => ({
          key,
          name: topic.name,
          callers: subscribers.size + waiting.size,
          age: lastAt === undefined ? undefined : millisBetween(lastAt, at),
          isLive: phase === "accepted",
          bytes: buffered.reduce((sum, { length }) => sum + length, last?.text.length ?? 0)
        }))
      }
    }
  }
  return hub
})
