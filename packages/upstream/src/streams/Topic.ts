/**
 * Chain-independent subscriptions (topics), as the stream hub handles them: their callers, their latest rows, and the
 * decision which rows are new.
 *
 * A row repeats a known row if both have the same ID and their contents agree. A row that has only the ID of a known
 * row is new: it is delivered and counted, because a lost row is worse than a row that is sent twice.
 *
 * Contents agree if one of them only adds members to the other. The order of the members has no meaning, and `null`
 * means the same as an absent member. The venue encodes one event differently in a frame, in a snapshot and in the
 * response to a query, and its later versions add members, but none of them changes a value of a past event.
 *
 * Equal rows of one frame are different events, so a known row matches at most one row of a frame. A row that equals
 * one of an earlier frame is the same event.
 */
import * as Json from "@trigate/domain/encoding/Encoding"
import type * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Link from "./SocketTransport.ts"

/** A row of a frame, such as one fill. */
export interface Row {
  /** The ID of the row. Rows with different IDs are different events; see `RowSet` for rows with equal IDs. */
  readonly id: string
  /** The JSON of the row, as received. */
  readonly text: string
  /** The time of the row in milliseconds; 0 if the row has none. */
  readonly time: number
}

/** Decodes and encodes the rows of a topic's frames. */
export interface RowCodec {
  /** Decodes the rows of a frame; `undefined` for a frame without rows. */
  readonly read: (text: string) => { readonly rows: ReadonlyArray<Row>; readonly isSnapshot: boolean } | undefined
  /** Encodes rows as a frame in the form of the venue's frames. */
  readonly write: (rows: ReadonlyArray<Row>, kind: "snapshot" | "stream" | "refill") => string
  /** The number of latest rows that a caller who joins later receives first. */
  readonly replayed: number
  /** Whether two events should never have equal IDs, so that such events are counted. */
  readonly hasKey: boolean
}

/** Queries the data that was missed while a connection was lost. */
export interface TopicRefill {
  /** The priority among refills, which run one after another; the lowest rank runs first. */
  readonly rank: number
  /** Returns the frames that a topic missed. */
  readonly load: (missed: {
    /** The time of the last row that was received, in milliseconds. */
    readonly since: number
    /** The last frame before the loss. */
    readonly last: string | undefined
    /** The time span without a connection, in milliseconds. */
    readonly lost: { readonly from: number; readonly to: number }
  }) => Effect.Effect<{
    /** The missed frames in order. */
    readonly texts: ReadonlyArray<string>
    /** Whether the query's response may lack data that the topic missed. */
    readonly hasGap?: boolean
  }, { readonly _tag: string }>
}

/** A subscription at an upstream. */
export interface Topic {
  /** The key of the upstream subscription: topics with equal keys share one upstream subscription. */
  readonly key: string
  /**
   * The identifier by which frames and responses are assigned to topics. A connection carries only one topic for each
   * route, so every frame belongs to one topic.
   */
  readonly route: string
  /** The name of the topic's type, for metrics and documentation. */
  readonly name: string
  readonly delivery: "state" | "snapshot" | "events"
  /** The user whose data the topic contains. */
  readonly user?: string
  /** Whether silence for several times the topic's usual interval indicates a fault. */
  readonly isSteady: boolean
  /** Whether the topic contains no name, such as a coin, that could cause the upstream to close a connection. */
  readonly isHarmless: boolean
  /** Whether each caller gets its own upstream subscription. */
  readonly isUnshared: boolean
  /** The message that subscribes to the topic. */
  readonly subscribe: string
  /** The message that ends the subscription to the topic. */
  readonly unsubscribe: string
  readonly rows?: RowCodec
  readonly refill?: TopicRefill
}

/** A decoded message of the upstream. */
export type Incoming =
  | {
    readonly kind: "data"
    readonly route: string
    /** The identifier of the state that the frame contains, if the topic has several states. */
    readonly state?: string
  }
  /**
   * A response to a subscription, which the upstream may name with other members than the request. So it is
   * assigned to a topic by its route, like a frame.
   */
  | { readonly kind: "subscribed" | "unsubscribed"; readonly route: string }
  | { readonly kind: "refused"; readonly route: string | undefined; readonly message: string }
  /** A message in which the upstream reports that a limit is reached. */
  | {
    readonly kind: "limit"
    readonly of: "users" | "subscriptions" | "messages"
    readonly limit: number
    readonly message: string
  }
  /** A frame of an unknown channel. */
  | { readonly kind: "unknown"; readonly channel: string }
  /** A message without content for callers. */
  | { readonly kind: "noise" }

/** The wire protocol of an upstream's streams. */
export interface StreamProtocol {
  /** The message that keeps an idle connection open. */
  readonly ping: string
  readonly read: (text: string) => Incoming
  /** Returns the upstream's message for a request beyond a limit. */
  readonly refusal: (of: "users" | "subscriptions" | "connections" | "messages", limit: number) => string
  /** Returns the upstream's message for an unacceptable subscription. */
  readonly invalid: (topic: Topic) => string
}

/** A frame for callers, encoded once for all of them. */
export class Frame {
  readonly text: string
  readonly topic: Topic
  /**
   * The identifier of the state that the frame contains; the frame replaces earlier frames with the same identifier.
   * `undefined` for events, which must not be dropped.
   */
  readonly state: string | undefined
  /** The time at which a state was received, in milliseconds; `undefined` for other frames. */
  readonly receivedAt: Json.MonotonicTime | undefined
  /** The encoded bytes for the transport. They are cached when the first caller receives the frame. */
  wire: Uint8Array | undefined

  constructor(text: string, topic: Topic, state?: string, receivedAt?: Json.MonotonicTime) {
    this.text = text
    this.topic = topic
    this.state = state
    this.receivedAt = receivedAt
    this.wire = undefined
  }
}

/** The counters of a stream hub, since it was made. */
export class Counts {
  /** Number of frames received from the upstream, by the name of their topic. */
  readonly frames = new Map<string, number>()
  /** Number of frames delivered to callers, by the name of their topic. */
  readonly deliveries = new Map<string, number>()
  /** Number of lost connections, by cause. */
  readonly reconnects = new Map<string, number>()
  /** Number of gaps in streams that could not be refilled, by the name of the stream's topic. */
  readonly gaps = new Map<string, number>()
  /** Number of rows from refills (queries of data missed while disconnected), by the name of their topic. */
  readonly refilled = new Map<string, number>()
  /** Number of rows with the ID of another row but other content, by the name of their topic. */
  readonly collisions = new Map<string, number>()
  /** Number of frames of unknown channels. */
  unknown = 0
}

/** Increases the count of a name by `by` (default 1). */
export const countUp = (counts: Map<string, number>, name: string, by = 1): void => {
  counts.set(name, (counts.get(name) ?? 0) + by)
}

/** The destination of one caller's frames. Its functions are called in the order of the upstream's frames. */
export interface Sink {
  /** Called once for each accepted subscription, before its first frame. */
  readonly subscribed: (topic: Topic) => void
  readonly deliver: (frame: Frame) => void
  /** Reports that events may be missing between the last frame of a subscription and its next frame. */
  readonly interrupted?: (topic: Topic) => void
  /**
   * Reports that a subscription was refused, or has ended. The subscription receives no further frames. `wasSubscribed`:
   * whether the subscription was acknowledged before, so that the caller has to be made to subscribe again.
   */
  readonly refused: (topic: Topic, message: string, wasSubscribed: boolean) => void
  /** Called after all frames of one batch have been delivered. */
  readonly flush: () => void
}

/** The subscriber of a caller's connection in the stream hub. The connection subscribes through its subscriber. */
export interface Subscriber {
  /** Returns the subscriber's subscriptions. */
  readonly topics: () => Iterable<Topic>
  /** Returns the number of the subscriber's subscriptions. */
  readonly size: () => number
  readonly has: (topic: Topic) => boolean
  /** Subscribes to a topic. The sink receives the acknowledgement or the error, synchronously or later. */
  readonly subscribe: (topic: Topic) => void
  /** Ends a subscription. Returns `false`, and does nothing, if the subscription does not exist. */
  readonly unsubscribe: (topic: Topic) => boolean
  /** Ends all subscriptions of the subscriber. */
  readonly leave: () => void
}

const presentMembers = (value: object): ReadonlyArray<readonly [name: string, value: unknown]> =>
  Object.entries(value).filter(([, member]) => member !== null)

const isPresent = (value: unknown): boolean => value !== null && value !== undefined

/** Returns whether one of two JSON values only adds members to the other. */
export const agree = (one: unknown, other: unknown): boolean => {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((element, index) => agree(element, other[index]))
  }
  if (!Predicate.isObject(one) || !Predicate.isObject(other)) {
    return one === other || !isPresent(one) && !isPresent(other)
  }
  const [fewer, more] = presentMembers(one).length <= presentMembers(other).length ? [one, other] : [other, one]
  return presentMembers(fewer).every(([name, value]) => agree(value, Predicate.hasProperty(more, name) && more[name]))
}

/** The parsed contents of rows that were compared, because one row is compared with all rows that have its ID. */
const contents = new WeakMap<Row, unknown>()

const parseContent = (row: Row): unknown => {
  if (!contents.has(row)) contents.set(row, Result.getOrUndefined(Json.parse(row.text)))
  return contents.get(row)
}

const hasEqualText = (one: Row, other: Row): boolean => one.text === other.text

const hasSameContent = (one: Row, other: Row): boolean => {
  const content = parseContent(one)
  return isPresent(content) && agree(content, parseContent(other))
}

/** Known rows, found by their IDs. */
export class RowSet {
  readonly #byId = new Map<string, Array<Row>>()
  #size = 0

  constructor(rows: Iterable<Row> = []) {
    for (const row of rows) this.add(row)
  }

  get size(): number {
    return this.#size
  }

  /** Adds a row. Returns whether the set already contains a row with the same ID. */
  add(row: Row): boolean {
    const known = this.#byId.get(row.id)
    this.#size++
    if (known === undefined) this.#byId.set(row.id, [row])
    else known.push(row)
    return known !== undefined
  }

  /** Deletes a row that was added. */
  delete(row: Row): void {
    const known = this.#byId.get(row.id) ?? []
    const index = known.indexOf(row)
    if (index < 0) return
    this.#size--
    known.splice(index, 1)
    if (known.length === 0) this.#byId.delete(row.id)
  }

  clear(): void {
    this.#byId.clear()
    this.#size = 0
  }

  /** Returns, for each row of one frame, the known row that it repeats. */
  match(rows: ReadonlyArray<Row>): ReadonlyArray<Row | undefined> {
    const matched = new Set<Row>()
    const find = (row: Row, isRepeat: (known: Row, row: Row) => boolean): Row | undefined => {
      const found = this.#byId.get(row.id)?.find((known) => !matched.has(known) && isRepeat(known, row))
      if (found !== undefined) matched.add(found)
      return found
    }
    // rows with equal text are matched first, so that a row with fewer members does not take the place of another
    const equal = rows.map((row) => find(row, hasEqualText))
    return rows.map((row, index) => equal[index] ?? find(row, hasSameContent))
  }

  /** Returns the rows of one frame that repeat no known row. */
  unseen(rows: ReadonlyArray<Row>): ReadonlyArray<Row> {
    if (this.#size === 0) return rows
    const matched = this.match(rows)
    return rows.filter((_, index) => matched[index] === undefined)
  }

  /** Returns the rows of one frame that repeat no known row, and deletes the known rows that the others repeat. */
  take(rows: ReadonlyArray<Row>): ReadonlyArray<Row> {
    if (this.#size === 0) return rows
    const matched = this.match(rows)
    for (const known of matched) if (known !== undefined) this.delete(known)
    return rows.filter((_, index) => matched[index] === undefined)
  }

  /** Returns whether one of the rows of a frame repeats a known row. */
  hasAnyOf(rows: ReadonlyArray<Row>): boolean {
    return this.unseen(rows).length < rows.length
  }
}

/**
 * Returns a copy of a text. The copy shares no memory with the text, whereas a substring would retain the whole text in
 * memory.
 */
const copyText = (text: string): string => Json.decodeLossy(Json.encode(text))

const copyRow = ({ id, text, time }: Row): Row => {
  const copied = copyText(text)
  return { id: id === text ? copied : id, text: copied, time }
}

/** Multiple of the maximum number of rows up to which rows of one time are retained together. */
const mostTied = 10

/**
 * The latest rows of a topic, up to a maximum number. During a refill it contains all rows, because a refill may repeat
 * buffered frames.
 */
export class RowHistory {
  readonly #most: number
  #isTrimmed = true
  #trimmedUntil = 0
  #rows: Array<Row> = []
  readonly #known = new RowSet()

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#rows.length
  }

  get newest(): Row | undefined {
    return this.#rows.at(-1)
  }

  /** Returns whether one of the rows of a frame was added before. */
  hasAnyOf(rows: ReadonlyArray<Row>): boolean {
    return this.#known.hasAnyOf(rows)
  }

  /**
   * Returns whether a row is not newer than the newest dropped row, so that it may have been delivered and dropped
   * before.
   */
  isTrimmed({ time }: Row): boolean {
    return time > 0 && time <= this.#trimmedUntil
  }

  /**
   * Adds the rows of one frame. Returns the rows that were not added before, and how many of these have the ID of
   * another row.
   */
  add(rows: ReadonlyArray<Row>): { readonly fresh: ReadonlyArray<Row>; readonly collisions: number } {
    const fresh = this.#known.unseen(rows)
    // the rows are copied, because a few of them would otherwise retain the whole text of a long snapshot
    const retained = fresh.length === rows.length ? fresh : fresh.map(copyRow)
    let collisions = 0
    for (const row of retained) {
      if (this.#known.add(row)) collisions++
      this.#rows.push(row)
    }
    if (this.#isTrimmed) this.trim()
    return { fresh, collisions }
  }

  /** Retains every row until the next `trim`. */
  retainAll(): void {
    this.#isTrimmed = false
  }

  /**
   * Drops the oldest rows beyond the limit. Rows of one time are dropped together: a snapshot may contain a row of that
   * time that was never received.
   */
  trim(): void {
    this.#isTrimmed = true
    let surplus = Math.max(0, this.#rows.length - this.#most)
    const oldest = this.#rows[surplus]?.time
    if (this.#rows.length < this.#most * mostTied) {
      while (surplus > 0 && this.#rows[surplus - 1]?.time === oldest) surplus--
    }
    for (const row of this.#rows.splice(0, surplus)) {
      this.#known.delete(row)
      this.#trimmedUntil = Math.max(this.#trimmedUntil, row.time)
    }
  }

  /** Returns the latest rows, oldest first. */
  latest(count: number): ReadonlyArray<Row> {
    return this.#rows.slice(-count)
  }
}

/** Returns the rows in order of time, oldest first. */
export const inOrder = (rows: ReadonlyArray<Row>): ReadonlyArray<Row> => {
  let isSorted = true
  for (let index = 1; index < rows.length; index++) {
    if ((rows[index]?.time ?? 0) < (rows[index - 1]?.time ?? 0)) isSorted = false
  }
  return isSorted ? rows : rows.toSorted((a, b) => a.time - b.time)
}

/** Minimum number of latest rows that are compared to detect duplicates. */
const leastRows = 500

/** An upstream subscription and the callers that share it. */
export class SharedTopic {
  readonly topic: Topic
  readonly key: string
  readonly connection: TopicConnection
  /** The subscribers that receive the frames of the topic. */
  readonly subscribers = new Set<CallerSubscriber>()
  /** The callers that subscribed before the upstream accepted the topic. */
  readonly waiting = new Set<CallerSubscriber>()
  /**
   * `idle`: nothing was sent. `requested`: the upstream has not responded yet. `leaving`: the unsubscription is not
   * confirmed.
   */
  phase: "idle" | "requested" | "accepted" | "leaving" = "idle"
  requestedAt = Json.longAgo
  /** The time at which the subscription was sent last. */
  resumedAt = 0
  /** Whether the upstream has ever acknowledged the topic, on any connection. */
  wasAccepted = false
  /** Whether it is certain that the upstream has accepted the topic, on any connection. */
  isProven = false
  /** The number of times that the upstream closed the connection while only this topic could have caused it. */
  strikes = 0
  /** Whether the topic's next frame is its first frame on the current connection. */
  isFirst = true
  /**
   * The time, by the monotonic clock, of the topic's first frame, or of its acceptance if it has no initial frame;
   * `undefined` before that time.
   */
  liveSince: Json.MonotonicTime | undefined = undefined
  lastAt: Json.MonotonicTime | undefined = undefined
  /**
   * The time at which the topic's connection last received anything before the connection was lost; `undefined` before
   * the first loss.
   */
  lostAt: number | undefined = undefined
  /** The usual interval between two frames in milliseconds; 0 if unknown. */
  interval = 0
  /** Number of consecutive resubscriptions because of silence. */
  silences = 0
  last: Frame | undefined = undefined
  readonly rows: RowHistory
  /**
   * Refilled rows that the upstream may still send. Emptied when the upstream has sent a row newer than
   * `refilledUntil`.
   */
  readonly refilled = new RowSet()
  /** The time of the latest refilled row, in milliseconds. */
  refilledUntil = 0
  /** Frames received during a refill; `undefined` if no refill is running. */
  buffered: Array<string> | undefined = undefined
  /** Whether the connection was lost again during a refill. */
  isRefilledAgain = false
  /** The time, by the monotonic clock, at which the last caller left the topic. */
  emptySince: Json.MonotonicTime | undefined = undefined
  /** The last subscriber. It owns the topic while no one is subscribed, until the upstream has released it. */
  lastCaller = ""

  constructor(topic: Topic, key: string, connection: TopicConnection) {
    this.topic = topic
    this.key = key
    this.connection = connection
    this.rows = new RowHistory(Math.max(leastRows, topic.rows?.replayed ?? 0))
  }
}

/** A connection to the upstream. */
export class TopicConnection {
  readonly byRoute = new Map<string, SharedTopic>()
  /**
   * Topics that are subscribed one at a time, because one of them may have caused the upstream to close the connection.
   */
  suspects: Array<SharedTopic> = []
  link: Link.Link | undefined = undefined
  fiber: Fiber.Fiber<unknown> | undefined = undefined
  isUp = false
  /** The time at which the connection last received a message; `undefined` before the first message. */
  heardAt: Json.MonotonicTime | undefined = undefined
}

/** The functions of the stream hub that all subscribers use. */
export interface SubscriberHub {
  readonly subscribe: (subscriber: CallerSubscriber, topic: Topic) => void
  readonly detach: (shared: SharedTopic, subscriber: CallerSubscriber) => void
  readonly subscribers: Set<CallerSubscriber>
}

/** The subscriber of one caller's connection. A class, so that thousands of subscribers share their functions. */
export class CallerSubscriber implements Subscriber {
  readonly id: number
  readonly caller: string
  readonly sink: Sink
  readonly byKey = new Map<string, SharedTopic>()
  /** The topics whose subscription waits until the upstream has released another one. */
  readonly awaited = new Map<string, Topic>()
  /** Whether frames were delivered since the last flush. */
  isDirty = false
  readonly #hub: SubscriberHub

  constructor(id: number, caller: string, sink: Sink, hub: SubscriberHub) {
    this.id = id
    this.caller = caller
    this.sink = sink
    this.#hub = hub
  }

  topics(): Iterable<Topic> {
    return [...Array.from(this.byKey.values(), ({ topic }) => topic), ...this.awaited.values()]
  }

  size(): number {
    return this.byKey.size + this.awaited.size
  }

  has({ key }: Topic): boolean {
    return this.byKey.has(key) || this.awaited.has(key)
  }

  subscribe(topic: Topic): void {
    this.#hub.subscribe(this, topic)
  }

  unsubscribe({ key }: Topic): boolean {
    const shared = this.byKey.get(key)
    if (shared !== undefined) this.#hub.detach(shared, this)
    return this.awaited.delete(key) || shared !== undefined
  }

  leave(): void {
    this.awaited.clear()
    for (const shared of this.byKey.values()) this.#hub.detach(shared, this)
    this.#hub.subscribers.delete(this)
  }
}

/** Returns whether any caller is subscribed to a topic. */
export const isWanted = ({ subscribers, waiting }: SharedTopic): boolean => subscribers.size + waiting.size > 0

/** Returns the callers who use a topic, or the last one who did. */
export const owners = (shared: SharedTopic): ReadonlyArray<string> =>
  isWanted(shared)
    ? Array.from(new Set([...shared.subscribers, ...shared.waiting]), ({ caller }) => caller)
    : [shared.lastCaller]

/** Returns whether a topic has no initial frame. Such a topic is live as soon as the upstream has accepted it. */
export const isLiveAtOnce = ({ delivery, rows }: Topic): boolean => delivery === "events" && (rows?.replayed ?? 0) === 0

/**
 * Returns whether all data of a topic has been delivered that the upstream sent until its connection last received a
 * frame. After a reconnect, this is the case once the initial frame has been received and missed data has been queried.
 */
export const isUpToDate = ({ buffered, isFirst, phase, topic }: SharedTopic): boolean =>
  phase === "accepted" && buffered === undefined && (!isFirst || isLiveAtOnce(topic))

/** Returns the distinct users of the given topics. */
export const distinctUsers = (topics: Iterable<SharedTopic>): Set<string> => {
  const users = new Set<string>()
  for (const { topic } of topics) if (topic.user !== undefined) users.add(topic.user)
  return users
}
