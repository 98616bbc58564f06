/**
 * The upstream connections of topics, and the delivery of their frames. After a loss, topics are subscribed again and
 * their gaps are filled.
 *
 * If the venue does not accept a subscription, it closes the connection, which ends all callers' subscriptions on that
 * connection. After such a loss, the most recent subscriptions are sent one at a time, while the others resume.
 */
import { millisBetween, type MonotonicTime } from "@trigate/domain/encoding/Encoding"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Redacted from "effect/Redacted"
import type { TopicRegistry } from "../../streams/Hub.ts"
import * as Link from "../../streams/SocketTransport.ts"
import type { SocketLost, SocketTransport } from "../../streams/SocketTransport.ts"
import type { MinuteBudget } from "../../streams/StreamShares.ts"
import { countUp, Frame, inOrder, isWanted, TopicConnection } from "../../streams/Topic.ts"
import type { CallerSubscriber, Counts, RowCodec, SharedTopic, StreamProtocol } from "../../streams/Topic.ts"
import type { Topic, TopicRefill } from "../../streams/Topic.ts"

/** Returns the initial frame that the upstream would send for a new subscription; `undefined` if it would send none. */
const firstFrame = ({ last, lastAt, liveSince, rows: history, topic }: SharedTopic): Frame | undefined => {
  const { delivery, rows } = topic
  if (delivery === "state") return last
  if (rows === undefined || rows.replayed === 0 || liveSince === undefined || lastAt === undefined) return undefined
  const kind = delivery === "snapshot" ? "snapshot" : "stream"
  return kind === "stream" && history.size === 0
    ? undefined
    : new Frame(rows.write(history.latest(rows.replayed), kind), topic)
}

/**
 * Makes the deliveries of a stream hub: of frames, acknowledgements and errors to subscribers (callers' connections). `flush`
 * ends a batch of deliveries.
 */
export const makeDeliveries = (counts: Counts) => {
  let dirty: Array<CallerSubscriber> = []

  const touch = (subscriber: CallerSubscriber): void => {
    if (subscriber.isDirty) return
    subscriber.isDirty = true
    dirty.push(subscriber)
  }

  const toSubscriber = (subscriber: CallerSubscriber, frame: Frame): void => {
    subscriber.sink.deliver(frame)
    touch(subscriber)
  }

  return {
    toSubscriber,
    toAll: (shared: SharedTopic, frame: Frame): void => {
      countUp(counts.deliveries, shared.topic.name, shared.subscribers.size)
      for (const subscriber of shared.subscribers) toSubscriber(subscriber, frame)
    },
    /**
     * Acknowledges the subscriptions that waited for the upstream's acceptance. Sends each of them the initial frame
     * that the upstream sends for a new subscription.
     */
    admit: (shared: SharedTopic): void => {
      for (const subscriber of shared.waiting) {
        subscriber.sink.subscribed(shared.topic)
        touch(subscriber)
        shared.subscribers.add(subscriber)
        const first = shared.lastAt === undefined ? undefined : firstFrame(shared)
        if (first !== undefined) toSubscriber(subscriber, first)
      }
      shared.waiting.clear()
    },
    refuse: (subscriber: CallerSubscriber, topic: Topic, message: string, wasSubscribed: boolean): void => {
      subscriber.sink.refused(topic, message, wasSubscribed)
      touch(subscriber)
    },
    /** Flushes the sinks used since the previous flush. */
    flush: (): void => {
      if (dirty.length === 0) return
      const touched = dirty
      dirty = []
      for (const subscriber of touched) {
        subscriber.isDirty = false
        subscriber.sink.flush()
      }
    }
  }
}

export type Deliveries = ReturnType<typeof makeDeliveries>

/**
 * The source of a frame's rows.
 *
 * - `stream`: the next frame of a connection.
 * - `overlap`: a frame that may repeat delivered rows.
 * - `refill`: the result of a query.
 */
export type RowSource = "stream" | "overlap" | "refill"

/**
 * Makes the receiver of the topics' frames. Calls `reportGap` if rows may be missing, and `observe` with each state.
 */
export const makeFrames = (
  counts: Counts,
  deliveries: Deliveries,
  reportGap: (shared: SharedTopic, cause: string) => void,
  elapsed: () => MonotonicTime,
  observe?: (frame: Frame) => void
) => {
  /**
   * Delivers rows. An upstream that sends no snapshot does not repeat rows, so only rows that a refill already delivered
   * are omitted.
   */
  const deliverUpdates = (
    shared: SharedTopic,
    text: string,
    codec: RowCodec,
    rows: ReturnType<typeof inOrder>
  ): void => {
    const unseen = shared.refilled.take(rows)
    if (unseen.length === rows.length) deliveries.toAll(shared, new Frame(text, shared.topic))
    else if (unseen.length > 0) deliveries.toAll(shared, new Frame(codec.write(unseen, "stream"), shared.topic))
  }

  /** Delivers those rows of a frame that callers have not received. */
  const receiveRows = (shared: SharedTopic, text: string, source: RowSource): void => {
    const { topic } = shared
    const codec = topic.rows
    const read = codec?.read(text)
    if (codec === undefined || read === undefined) return deliveries.toAll(shared, new Frame(text, topic))
    const wasLive = shared.liveSince !== undefined
    const { newest } = shared.rows
    // a row that was never received but is older than the newest row is from before the subscription
    const sorted = inOrder(read.rows).filter((row) =>
      source === "refill"
        ? newest === undefined || row.time >= newest.time
        : source !== "overlap" || !wasLive || !shared.rows.isTrimmed(row)
    )
    const { collisions, fresh } = shared.rows.add(sorted)
    if (codec.hasKey && collisions > 0) countUp(counts.collisions, topic.name, collisions)
    if (!wasLive || (source === "stream" && codec.replayed === 0)) return deliverUpdates(shared, text, codec, sorted)
    if (fresh.length === 0) return
    const isWhole = fresh.length === read.rows.length
    if (source === "overlap" && newest !== undefined && isWhole && topic.refill === undefined) {
      reportGap(shared, "reconnect")
    }
    if (source === "refill") {
      countUp(counts.refilled, topic.name, fresh.length)
      if (codec.replayed === 0) {
        for (const row of fresh) shared.refilled.add(row)
        shared.refilledUntil = fresh.at(-1)?.time ?? 0
      }
    }
    // after a loss, a snapshot contains the missed rows; callers that received the first snapshot receive only the
    // missed rows
    const isUnchanged = isWhole && !read.isSnapshot && source !== "refill"
    const written = isUnchanged ? text : codec.write(fresh, source === "refill" ? source : "stream")
    deliveries.toAll(shared, new Frame(written, topic))
  }

  return {
    receiveRows,
    /**
     * Delivers a frame of the upstream. `isBuffered` means that the frame was received during a refill; the refill may
     * contain the same rows.
     */
    receive: (shared: SharedTopic, text: string, state: string | undefined, isBuffered = false): void => {
      const at = elapsed()
      const { isFirst } = shared
      shared.isFirst = false
      if (shared.lastAt !== undefined && !isFirst) {
        const passed = millisBetween(shared.lastAt, at)
        shared.interval = shared.interval === 0 ? passed : shared.interval * 0.8 + passed * 0.2
      }
      shared.isProven = true
      shared.silences = 0
      if (shared.topic.delivery === "state") {
        const frame = new Frame(text, shared.topic, state === undefined ? shared.key : `${shared.key}#${state}`, at)
        shared.last = frame
        observe?.(frame)
        deliveries.toAll(shared, frame)
      } else {
        receiveRows(shared, text, isFirst || isBuffered ? "overlap" : "stream")
        if ((shared.rows.newest?.time ?? 0) > shared.refilledUntil) shared.refilled.clear()
      }
      shared.lastAt = at
      shared.liveSince ??= elapsed()
    }
  }
}

/** The result of a refill's query. */
type Loaded = Effect.Success<ReturnType<TopicRefill["load"]>>

/** Tolerance in milliseconds for clock differences and late blocks. */
const clockMargin = 5_000

/** Maximum number of frames that are buffered during a refill. */
const maxBuffered = 10_000

/**
 * Returns whether rows may be missing between the last delivered row and a snapshot: the snapshot has rows, but none of
 * those rows was delivered before.
 */
const isHoleBefore = ({ liveSince, rows, topic }: SharedTopic, text: string): boolean => {
  const read = topic.delivery === "snapshot" && liveSince !== undefined ? topic.rows?.read(text) : undefined
  if (read === undefined) return false
  return read.rows.length > 0 && !rows.hasAnyOf(read.rows)
}

/** Makes the refills of a stream hub. */
export const makeRefills = ({ counts, deliveries, elapsed, fork, frames, now, protocol, reportGap }: {
  readonly now: () => number
  readonly elapsed: () => MonotonicTime
  readonly protocol: StreamProtocol
  readonly frames: ReturnType<typeof makeFrames>
  readonly deliveries: Deliveries
  readonly counts: Counts
  readonly reportGap: (shared: SharedTopic, cause: string) => void
  /** Runs an effect in the background, and interrupts it when the stream hub ends. */
  readonly fork: (effect: Effect.Effect<void>) => void
}) => {
  let queued: Array<{ readonly rank: number; readonly loading: Effect.Effect<void> }> = []
  let isRunning = false

  const receiveText = (shared: SharedTopic, text: string, isBuffered: boolean): void => {
    const read = protocol.read(text)
    frames.receive(shared, text, read.kind === "data" ? read.state : undefined, isBuffered)
  }

  /** Delivers the buffered frames of a topic. */
  const release = (shared: SharedTopic): void => {
    const buffered = shared.buffered ?? []
    shared.buffered = undefined
    for (const text of buffered) receiveText(shared, text, true)
    shared.rows.trim()
  }

  const finish = (shared: SharedTopic, loaded: Loaded | undefined): void => {
    if (loaded === undefined) reportGap(shared, "refill failed")
    if (loaded?.hasGap === true) reportGap(shared, "reconnect")
    for (const text of loaded?.texts ?? []) {
      if (shared.topic.rows === undefined) {
        countUp(counts.refilled, shared.topic.name)
        receiveText(shared, text, false)
      } else frames.receiveRows(shared, text, "refill")
    }
  }

  const load = (shared: SharedTopic, plan: TopicRefill, liveSince: MonotonicTime): void => {
    // by the wall clock of now, because it may have been wrong when the stream began; upstreams take whole milliseconds
    const begunAt = Math.floor(now() - millisBetween(liveSince, elapsed()))
    const since = (shared.rows.newest?.time ?? begunAt) - clockMargin
    const lost = { from: shared.lostAt ?? since, to: shared.resumedAt }
    const done = (loaded: Loaded | undefined): void => {
      // the buffer overflowed: the stream continued without the refill
      if (shared.buffered === undefined) return
      finish(shared, loaded)
      if (shared.isRefilledAgain) {
        shared.isRefilledAgain = false
        load(shared, plan, liveSince)
      } else release(shared)
      deliveries.flush()
    }
    const loading = plan.load({ since, last: shared.last?.text, lost }).pipe(
      Effect.matchCause({ onFailure: () => done(undefined), onSuccess: done })
    )
    queued.push({ rank: plan.rank, loading })
    runNext()
  }

  /** Runs refills one after another, so that they leave the rate limit to callers. */
  const runNext = (): void => {
    if (isRunning) return
    const next = queued.toSorted((a, b) => a.rank - b.rank)[0]
    if (next === undefined) return
    queued = queued.filter((each) => each !== next)
    isRunning = true
    fork(Effect.andThen(
      next.loading,
      Effect.sync(() => {
        isRunning = false
        runNext()
      })
    ))
  }

  const begin = (shared: SharedTopic): void => {
    const { refill } = shared.topic
    if (refill === undefined || shared.liveSince === undefined) return
    if (shared.buffered !== undefined) {
      shared.isRefilledAgain = true
      return
    }
    shared.buffered = []
    shared.rows.retainAll()
    load(shared, refill, shared.liveSince)
  }

  return {
    /**
     * Queries the missed data of a topic. The topic's frames are buffered during the query.
     *
     * If the topic begins with a snapshot, first waits for the snapshot. Then queries only if the snapshot does not
     * reach back far enough.
     */
    start: (shared: SharedTopic): void => {
      if (shared.topic.delivery !== "snapshot") begin(shared)
    },
    /** Delivers a frame, or buffers it during a refill. */
    receive: (shared: SharedTopic, text: string, state: string | undefined): void => {
      if (shared.isFirst && isHoleBefore(shared, text)) {
        shared.isFirst = false
        begin(shared)
      }
      if (shared.buffered === undefined) frames.receive(shared, text, state)
      else if (shared.buffered.push(text) > maxBuffered) {
        reportGap(shared, "refill too slow")
        release(shared)
      }
    }
  }
}

/**
 * Milliseconds for which a new subscription may have caused a close. The venue closes a connection within 155 ms of a
 * subscription that it does not accept.
 */
export const suspectFor = 2_000

/**
 * The number of losses of a connection after which the only suspect is refused. A suspect is a subscription that may
 * have caused a loss. `requested` applies if the upstream never accepted the suspect, and `accepted` if it did. `harmless`
 * applies if the suspect contains no name that the upstream could refuse. A higher number makes it less likely that an
 * unstable network is the cause.
 */
const maxStrikes = { requested: 2, accepted: 5, harmless: 20 }

/**
 * Returns the topics that may have caused the loss of a connection. Returns an empty list if the upstream or the
 * gateway closed the connection for another reason.
 */
export const young = (
  { byRoute }: TopicConnection,
  { code, reason }: SocketLost,
  at: MonotonicTime
): Array<SharedTopic> => {
  if (code !== 1006 || reason === "silent" || reason === "stale") return []
  const suspects = [...byRoute.values()].filter((shared) =>
    !shared.isProven && (shared.phase === "requested" || shared.phase === "accepted") &&
    millisBetween(shared.requestedAt, at) < suspectFor
  )
  const likely = suspects.filter(({ topic }) => !topic.isHarmless)
  return likely.length > 0 ? likely : suspects
}

/** If there is only one suspect, counts a loss against it. Returns this suspect if it has caused too many losses. */
export const findCulprit = (suspects: ReadonlyArray<SharedTopic>): SharedTopic | undefined => {
  const [alone, ...others] = suspects
  if (alone === undefined || others.length > 0) return undefined
  const most = maxStrikes[alone.topic.isHarmless ? "harmless" : alone.wasAccepted ? "accepted" : "requested"]
  return ++alone.strikes >= most ? alone : undefined
}

/** Queues suspects (subscriptions that may have caused a loss) before the suspects that are already queued. */
export const add = (connection: TopicConnection, suspects: ReadonlyArray<SharedTopic>): void => {
  connection.suspects = [...new Set([...suspects, ...connection.suspects])]
}

/** The dependencies of upstream connections. */
export interface Options {
  readonly transport: SocketTransport["Service"]
  readonly addresses: () => ReadonlyArray<Redacted.Redacted>
  readonly protocol: StreamProtocol
  /** Returns how many further connections this process may open, given the number that it has. */
  readonly left: (open: number) => number
  /** Returns the number of connections of other replicas. */
  readonly others: () => number
  readonly newConnections: MinuteBudget
  readonly messages: MinuteBudget
  readonly counts: Counts
  readonly registry: TopicRegistry
  readonly deliveries: Deliveries
  readonly now: () => number
  readonly elapsed: () => MonotonicTime
  /** Runs an effect in the background, and interrupts it when the stream hub ends. */
  readonly fork: (effect: Effect.Effect<never>) => Fiber.Fiber<never>
  readonly onText: (connection: TopicConnection, text: string) => void
}

/** The HTTP status with which an upstream refuses a further connection. */
const tooMany = 429

/** Makes the upstream connections of a stream hub. */
export const make = (options: Options) => {
  const { addresses, counts, deliveries, elapsed, fork, messages, newConnections, now, protocol, registry, transport } =
    options
  const open = new Set<TopicConnection>()

  const send = ({ isUp, link }: TopicConnection, text: string, onSent?: () => void): void => {
    if (isUp) link?.send(text, onSent)
  }

  const noteRequest = (shared: SharedTopic): void => {
    shared.requestedAt = elapsed()
    shared.resumedAt = now()
  }

  /** Subscribes a topic at the upstream, as soon as its connection is open. */
  const subscribe = (shared: SharedTopic): void => {
    if (!shared.connection.isUp) return
    shared.phase = "requested"
    noteRequest(shared)
    shared.isFirst = true
    // the message may be delayed by the message limit
    send(shared.connection, shared.topic.subscribe, () => noteRequest(shared))
  }

  const closeIfEmpty = (connection: TopicConnection): void => {
    if (connection.byRoute.size > 0) return
    open.delete(connection)
    connection.isUp = false
    connection.fiber?.interruptUnsafe()
  }

  /**
   * Subscribes the next topic that may have caused a loss (a suspect), and clears suspects that the upstream has
   * accepted.
   */
  const trySuspects = (connection: TopicConnection): void => {
    for (const cleared of connection.suspects.filter(({ isProven }) => isProven)) {
      if (cleared.phase === "idle") subscribe(cleared)
    }
    connection.suspects = connection.suspects.filter(({ isProven }) => !isProven)
    const [suspect] = connection.suspects
    if (suspect?.phase === "idle") subscribe(suspect)
  }

  const onUp = (connection: TopicConnection): void => {
    connection.isUp = true
    for (const shared of connection.byRoute.values()) {
      if (!connection.suspects.includes(shared)) subscribe(shared)
    }
    trySuspects(connection)
  }

  /** Refuses the topics of a new connection if the upstream accepts no further connection. */
  const onRefused = (connection: TopicConnection): void => {
    const up = [...open].filter(({ isUp }) => isUp).length
    // if this is the only connection, the limit on new connections may be the reason, so the attempts continue
    if (up === 0 || connection.heardAt !== undefined) return
    for (const shared of connection.byRoute.values()) {
      registry.refuse(shared, protocol.refusal("connections", up + options.others()))
    }
    closeIfEmpty(connection)
    deliveries.flush()
  }

  const onDown = (connection: TopicConnection, lost: SocketLost, wasOpen: boolean): void => {
    connection.isUp = false
    if (!wasOpen) return lost.status === tooMany ? onRefused(connection) : undefined
    countUp(counts.reconnects, lost.reason === "silent" || lost.reason === "stale" ? lost.reason : "closed")
    const at = elapsed()
    const { heardAt } = connection
    const suspects = young(connection, lost, at)
    const culprit = findCulprit(suspects)
    for (const shared of connection.byRoute.values()) {
      if (shared.phase === "leaving" && !isWanted(shared)) registry.forget(shared)
      shared.phase = "idle"
      shared.lostAt = heardAt === undefined ? undefined : Math.floor(now() - millisBetween(heardAt, at))
      shared.isFirst = true
    }
    if (culprit === undefined) add(connection, suspects)
    else registry.refuse(culprit, protocol.invalid(culprit.topic), true)
    closeIfEmpty(connection)
    deliveries.flush()
  }

  const connect = (): TopicConnection => {
    const connection = new TopicConnection()
    open.add(connection)
    const running = Effect.flatMap(
      Link.make({
        transport,
        addresses,
        ping: protocol.ping,
        connections: newConnections,
        messages,
        onUp: () => onUp(connection),
        onTexts: (texts) => {
          connection.heardAt = elapsed()
          for (const text of texts) options.onText(connection, text)
          deliveries.flush()
        },
        onDown: (lost, wasOpen) => onDown(connection, lost, wasOpen)
      }),
      (link) => {
        connection.link = link
        return link.run
      }
    )
    connection.fiber = fork(running)
    return connection
  }

  return {
    open,
    subscribe,
    trySuspects,
    /**
     * Returns a connection that can carry a topic; `undefined` if a further connection would exceed the limit of
     * connections, or the caller's share of new ones.
     */
    find: ({ route }: Topic, caller: string): TopicConnection | undefined => {
      for (const connection of open) if (!connection.byRoute.has(route)) return connection
      if (options.left(open.size) <= 0 || !newConnections.allows(caller)) return undefined
      newConnections.note(caller)
      return connect()
    },
    /** Unsubscribes a topic at the upstream. */
    leave: (shared: SharedTopic): void => {
      if (shared.phase === "idle" || !shared.connection.isUp) registry.forget(shared)
      else {
        // late frames may still arrive, so the route stays reserved until the upstream has confirmed the unsubscription
        shared.phase = "leaving"
        shared.requestedAt = elapsed()
        send(shared.connection, shared.topic.unsubscribe)
      }
      closeIfEmpty(shared.connection)
    },
    /** Unsubscribes a topic and subscribes it again. */
    resubscribe: (shared: SharedTopic): void => {
      send(shared.connection, shared.topic.unsubscribe)
      subscribe(shared)
    },
    /** Records that the upstream can no longer send frames of a topic. */
    left: (shared: SharedTopic): void => {
      if (isWanted(shared)) subscribe(shared)
      else registry.forget(shared)
      closeIfEmpty(shared.connection)
    }
  }
}
