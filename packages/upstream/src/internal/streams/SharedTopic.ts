/** The state of a stream hub: topics that callers share, their connections, and the callers' seats. */
import type * as Fiber from "effect/Fiber"
import type * as Link from "../../streams/Link.ts"
import { RowSet } from "../../streams/RowSet.ts"
import type { Seat, Sink } from "../../streams/Seat.ts"
import type { Frame, Topic } from "../../streams/Topic.ts"
import { RowHistory } from "./RowHistory.ts"

/** An upstream subscription and the callers that share it. */
export interface SharedTopic {
  readonly topic: Topic
  readonly key: string
  readonly connection: TopicConnection
  /** The seats that receive the frames of the topic. */
  readonly seats: Set<CallerSeat>
  /** The callers that subscribed before the upstream accepted the topic. */
  readonly waiting: Set<CallerSeat>
  /**
   * `idle`: nothing was sent. `asked`: the upstream has not responded yet. `leaving`: the unsubscription is not
   * confirmed.
   */
  phase: "idle" | "asked" | "accepted" | "leaving"
  askedAt: number
  /** Whether the upstream has ever acknowledged the topic, on any connection. */
  wasAccepted: boolean
  /** Whether it is certain that the upstream has accepted the topic, on any connection. */
  isProven: boolean
  /** The number of times that the upstream closed the connection while only this topic could have caused it. */
  strikes: number
  /** Whether the topic's next frame is its first frame on the current connection. */
  isFirst: boolean
  /**
   * The time of the topic's first frame, or of its acceptance if it has no initial frame; `undefined` before that time.
   */
  liveSince: number | undefined
  lastAt: number | undefined
  /**
   * The time at which the topic's connection last received anything before the connection was lost; `undefined` before
   * the first loss.
   */
  lostAt: number | undefined
  /** The usual interval between two frames in milliseconds; 0 if unknown. */
  interval: number
  /** Number of consecutive resubscriptions because of silence. */
  silences: number
  last: Frame | undefined
  readonly rows: RowHistory
  /**
   * Refilled rows that the upstream may still send. Emptied when the upstream has sent a row newer than
   * `refilledUntil`.
   */
  readonly refilled: RowSet
  /** The time of the latest refilled row, in milliseconds. */
  refilledUntil: number
  /** Frames received during a refill; `undefined` if no refill is running. */
  buffered: Array<string> | undefined
  /** Whether the connection was lost again during a refill. */
  isRefilledAgain: boolean
  /** The time at which the last caller left the topic. */
  emptySince: number | undefined
}

/** A connection to the upstream. */
export interface TopicConnection {
  readonly id: number
  readonly byRoute: Map<string, SharedTopic>
  /**
   * Topics that are subscribed one at a time, because one of them may have caused the upstream to close the connection.
   */
  suspects: Array<SharedTopic>
  link: Link.Link | undefined
  fiber: Fiber.Fiber<unknown> | undefined
  isUp: boolean
  /** The time at which the connection last received a message; `undefined` before the first message. */
  heardAt: number | undefined
}

/** The functions of the stream hub that all seats use. */
export interface SeatHub {
  readonly subscribe: (seat: CallerSeat, topic: Topic) => void
  readonly detach: (shared: SharedTopic, seat: CallerSeat) => void
  readonly seats: Set<CallerSeat>
}

/** The seat of one caller's connection. A class, so that thousands of seats share their functions. */
export class CallerSeat implements Seat {
  readonly id: number
  readonly caller: string
  readonly sink: Sink
  readonly byKey = new Map<string, SharedTopic>()
  /** Whether frames were delivered since the last flush. */
  isDirty = false
  readonly #hub: SeatHub

  constructor(id: number, caller: string, sink: Sink, hub: SeatHub) {
    this.id = id
    this.caller = caller
    this.sink = sink
    this.#hub = hub
  }

  topics(): Iterable<Topic> {
    return Array.from(this.byKey.values(), ({ topic }) => topic)
  }

  size(): number {
    return this.byKey.size
  }

  has({ key }: Topic): boolean {
    return this.byKey.has(key)
  }

  subscribe(topic: Topic): void {
    this.#hub.subscribe(this, topic)
  }

  unsubscribe({ key }: Topic): boolean {
    const shared = this.byKey.get(key)
    if (shared !== undefined) this.#hub.detach(shared, this)
    return shared !== undefined
  }

  leave(): void {
    for (const shared of this.byKey.values()) this.#hub.detach(shared, this)
    this.#hub.seats.delete(this)
  }
}

/** Minimum number of latest rows that are compared to detect duplicates. */
const leastRows = 500

/** Makes an idle topic of a connection. */
export const make = (topic: Topic, key: string, connection: TopicConnection): SharedTopic => ({
  topic,
  key,
  connection,
  seats: new Set(),
  waiting: new Set(),
  phase: "idle",
  askedAt: 0,
  wasAccepted: false,
  isProven: false,
  strikes: 0,
  isFirst: true,
  liveSince: undefined,
  lastAt: undefined,
  lostAt: undefined,
  interval: 0,
  silences: 0,
  last: undefined,
  rows: new RowHistory(Math.max(leastRows, topic.rows?.replayed ?? 0)),
  refilled: new RowSet(),
  refilledUntil: 0,
  buffered: undefined,
  isRefilledAgain: false,
  emptySince: undefined
})

/** Returns whether any caller is subscribed to a topic. */
export const isWanted = ({ seats, waiting }: SharedTopic): boolean => seats.size + waiting.size > 0

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
