/** Delivers the frames of topics to callers. Frames with states are relayed unchanged; duplicate rows are removed. */
import { countUp } from "../../streams/StreamCounts.ts"
import type { Counts } from "../../streams/StreamCounts.ts"
import { Frame } from "../../streams/Topic.ts"
import type { RowCodec } from "../../streams/Topic.ts"
import type { Deliveries } from "./Deliveries.ts"
import { inOrder } from "./RowHistory.ts"
import type { SharedTopic } from "./SharedTopic.ts"

/**
 * The source of a frame's rows.
 *
 * - `stream`: the next frame of a connection.
 * - `overlap`: a frame that may repeat delivered rows.
 * - `refill`: the result of a query.
 */
export type RowSource = "stream" | "overlap" | "refill"

/** Receives the frames of topics. */
export interface TopicFrames {
  /**
   * Delivers a frame of the upstream. `isBuffered` means that the frame was received during a refill; the refill may
   * contain the same rows.
   */
  readonly receive: (shared: SharedTopic, text: string, state: string | undefined, isBuffered?: boolean) => void
  /** Delivers those rows of a frame that callers have not received. */
  readonly receiveRows: (shared: SharedTopic, text: string, source: RowSource) => void
}

/**
 * Makes the receiver of the topics' frames. Calls `reportGap` if rows may be missing, and `observe` with each state.
 */
export const make = (
  counts: Counts,
  deliveries: Deliveries,
  reportGap: (shared: SharedTopic, cause: string) => void,
  now: () => number,
  observe?: (frame: Frame) => void
): TopicFrames => {
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

  const receiveRows: TopicFrames["receiveRows"] = (shared, text, source) => {
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
    receive: (shared, text, state, isBuffered = false) => {
      const at = now()
      const { isFirst } = shared
      shared.isFirst = false
      if (shared.lastAt !== undefined && !isFirst) {
        const passed = at - shared.lastAt
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
      shared.liveSince ??= at
    }
  }
}
