/** What the hub knows of a subscription, whatever the chain. */
import type * as Effect from "effect/Effect"

/** A row of a frame. */
export interface Row {
  /** Identifies the row within its topic. */
  readonly id: string
  /** Its JSON as received. */
  readonly text: string
  /** Its time in milliseconds; 0 where it has none. */
  readonly time: number
}

/** The rows of a topic's frames: how they are read from a frame, and written into one. */
export interface RowCodec {
  /** The rows of a frame; undefined for a frame that has no rows. */
  readonly read: (text: string) => { readonly rows: ReadonlyArray<Row>; readonly isSnapshot: boolean } | undefined
  /** A frame of some rows, as the venue would send it. */
  readonly write: (rows: ReadonlyArray<Row>, kind: "snapshot" | "stream" | "refill") => string
  /** The number of rows that a late joiner receives; 0 for none. */
  readonly replayed: number
}

/** Finds what a lost connection has missed. */
export interface TopicRefill {
  /** Refills run one after another, the lowest rank first. */
  readonly rank: number
  /** Whether it returns only a part of the missed rows. */
  readonly isPartial?: boolean
  /** The missed frames in their order. `since` is the time of the last row, `last` the last frame before the loss. */
  readonly load: (missed: {
    readonly since: number
    readonly last: string | undefined
  }) => Effect.Effect<ReadonlyArray<string>, { readonly _tag: string }>
}

/** A subscription at an upstream. */
export interface Topic {
  /** Topics with the same key share one upstream subscription. */
  readonly key: string
  /** What its frames show of it. A connection carries one topic of each route, so every frame has one topic. */
  readonly route: string
  /** The name of its kind, for metrics and documents. */
  readonly name: string
  readonly delivery: "state" | "snapshot" | "events"
  /** The user whose data it carries. */
  readonly user?: string
  /** Whether silence for several times its usual interval means a fault. */
  readonly isSteady: boolean
  /** Whether it names nothing because of which the upstream closes a connection, such as a coin. */
  readonly isHarmless: boolean
  /** Whether each caller gets an upstream subscription of its own. */
  readonly isUnshared: boolean
  /** The text that subscribes, and the one that unsubscribes. */
  readonly subscribe: string
  readonly unsubscribe: string
  readonly rows?: RowCodec
  readonly refill?: TopicRefill
}

/** What a text of the upstream is. */
export type Incoming =
  | {
    readonly kind: "data"
    readonly route: string
    /** Which of several states of the topic it is. */
    readonly state?: string
  }
  | { readonly kind: "subscribed" | "unsubscribed"; readonly key: string }
  | { readonly kind: "refused"; readonly key: string | undefined; readonly message: string }
  /** The upstream has said what its limit is. */
  | {
    readonly kind: "limit"
    readonly of: "users" | "subscriptions" | "messages"
    readonly limit: number
    readonly message: string
  }
  /** An unknown channel. */
  | { readonly kind: "unknown"; readonly channel: string }
  /** Nothing that a caller would miss. */
  | { readonly kind: "noise" }

/** The wire protocol of an upstream's streams. */
export interface StreamProtocol {
  /** The text that keeps a quiet connection open. */
  readonly ping: string
  readonly read: (text: string) => Incoming
  /** Returns the upstream's message for a request beyond a limit. */
  readonly refusal: (of: "users" | "subscriptions" | "connections", limit: number) => string
  /** How the upstream refuses a subscription that it does not take. */
  readonly invalid: (topic: Topic) => string
}

/**
 * One frame on its way to callers. It is built once for all of them.
 */
export class Frame {
  readonly text: string
  readonly topic: Topic
  /** Frames with the same state stand for each other, the latest one counts; undefined for events, of which none may be lost. */
  readonly state: string | undefined
  /** When a state was received, in milliseconds; undefined for other frames. */
  readonly receivedAt: number | undefined
  /** The bytes in which a transport writes it, cached by the first caller's. */
  wire: Uint8Array | undefined

  constructor(text: string, topic: Topic, state?: string, receivedAt?: number) {
    this.text = text
    this.topic = topic
    this.state = state
    this.receivedAt = receivedAt
    this.wire = undefined
  }
}
