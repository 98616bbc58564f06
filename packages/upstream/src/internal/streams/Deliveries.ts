/** Delivers frames, acknowledgements and errors to callers' sinks. */
import { countUp } from "../../streams/StreamCounts.ts"
import type { Counts } from "../../streams/StreamCounts.ts"
import { Frame } from "../../streams/Topic.ts"
import type { Topic } from "../../streams/Topic.ts"
import type { CallerSeat, SharedTopic } from "./SharedTopic.ts"

/** Delivers frames, acknowledgements and errors to seats (callers' connections). `flush` ends a batch of deliveries. */
export interface Deliveries {
  readonly toSeat: (seat: CallerSeat, frame: Frame) => void
  readonly toAll: (shared: SharedTopic, frame: Frame) => void
  /**
   * Acknowledges the subscriptions that waited for the upstream's acceptance. Sends each of them the initial frame that
   * the upstream sends for a new subscription.
   */
  readonly admit: (shared: SharedTopic) => void
  readonly refuse: (seat: CallerSeat, topic: Topic, message: string, wasSubscribed: boolean) => void
  /** Flushes the sinks used since the previous flush. */
  readonly flush: () => void
}

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

/** Makes the deliveries of a stream hub. */
export const make = (counts: Counts): Deliveries => {
  let dirty: Array<CallerSeat> = []

  const touch = (seat: CallerSeat): void => {
    if (seat.isDirty) return
    seat.isDirty = true
    dirty.push(seat)
  }

  const toSeat: Deliveries["toSeat"] = (seat, frame) => {
    seat.sink.deliver(frame)
    touch(seat)
  }

  return {
    toSeat,
    toAll: (shared, frame) => {
      countUp(counts.deliveries, shared.topic.name, shared.seats.size)
      for (const seat of shared.seats) toSeat(seat, frame)
    },
    admit: (shared) => {
      for (const seat of shared.waiting) {
        seat.sink.subscribed(shared.topic)
        touch(seat)
        shared.seats.add(seat)
        const first = shared.lastAt === undefined ? undefined : firstFrame(shared)
        if (first !== undefined) toSeat(seat, first)
      }
      shared.waiting.clear()
    },
    refuse: (seat, topic, message, wasSubscribed) => {
      seat.sink.refused(topic, message, wasSubscribed)
      touch(seat)
    },
    flush: () => {
      if (dirty.length === 0) return
      const touched = dirty
      dirty = []
      for (const seat of touched) {
        seat.isDirty = false
        seat.sink.flush()
      }
    }
  }
}
