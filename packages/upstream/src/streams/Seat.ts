/** A caller's seat in the stream hub (the subscriptions of one connection), and the destination of their frames. */
import type { Frame, Topic } from "./Topic.ts"

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

/** The seat of a caller's connection in the stream hub. The connection subscribes through its seat. */
export interface Seat {
  /** Returns the seat's subscriptions. */
  readonly topics: () => Iterable<Topic>
  /** Returns the number of the seat's subscriptions. */
  readonly size: () => number
  readonly has: (topic: Topic) => boolean
  /** Subscribes to a topic. The sink receives the acknowledgement or the error, synchronously or later. */
  readonly subscribe: (topic: Topic) => void
  /** Ends a subscription. Returns `false`, and does nothing, if the subscription does not exist. */
  readonly unsubscribe: (topic: Topic) => boolean
  /** Ends all subscriptions of the seat. */
  readonly leave: () => void
}
