/** Chain-independent subscriptions, as the stream hub handles them. */
import type * as Effect from "effect/Effect"

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
   * A response to a subscription, which the upstream may name with other members than it was asked with. So it is
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
  readonly refusal: (of: "users" | "subscriptions" | "connections", limit: number) => string
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
  readonly receivedAt: number | undefined
  /** The encoded bytes for the transport. They are cached when the first caller receives the frame. */
  wire: Uint8Array | undefined

  constructor(text: string, topic: Topic, state?: string, receivedAt?: number) {
    this.text = text
    this.topic = topic
    this.state = state
    this.receivedAt = receivedAt
    this.wire = undefined
  }
}
