/** The place of a caller in the hub, and where its frames go. */
import type { Frame, Topic } from "./Topic.ts"

/** Where the frames of one caller go. Its functions are called in the order of the upstream's frames. */
export interface Sink {
  /** The upstream has accepted a subscription. Called once for each, before its first frame. */
  readonly subscribed: (topic: Topic) => void
  readonly deliver: (frame: Frame) => void
  /** Events of a subscription may be missing before its next frame. */
  readonly interrupted?: (topic: Topic) => void
  /** A subscription was refused, or has ended. No frame of it follows. */
  readonly refused: (topic: Topic, message: string) => void
  /** All frames of one batch have been delivered. */
  readonly flush: () => void
}

/** The place of one caller's connection in the hub. */
export interface Seat {
  /** Its subscriptions. */
  readonly topics: () => Iterable<Topic>
  /** The number of its subscriptions. */
  readonly size: () => number
  readonly has: (topic: Topic) => boolean
  /** Subscribes. The sink receives the acknowledgement or the refusal, at once or later. */
  readonly subscribe: (topic: Topic) => void
  /** Ends a subscription. Returns `false`, and does nothing, if it does not exist. */
  readonly unsubscribe: (topic: Topic) => boolean
  /** Ends all subscriptions. */
  readonly leave: () => void
}
