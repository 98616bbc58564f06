/** Queries the data missed while a connection was lost, and merges it into the stream without gaps or duplicates. */
import * as Effect from "effect/Effect"
import { countUp } from "../../streams/StreamCounts.ts"
import type { Counts } from "../../streams/StreamCounts.ts"
import type { StreamProtocol, TopicRefill } from "../../streams/Topic.ts"
import type { Deliveries } from "./Deliveries.ts"
import type { SharedTopic } from "./SharedTopic.ts"
import type { TopicFrames } from "./TopicFrames.ts"

/** The refills (queries of missed data) of a stream hub. */
export interface Refills {
  /**
   * Queries the missed data of a topic. The topic's frames are buffered during the query.
   *
   * If the topic begins with a snapshot, first waits for the snapshot. Then queries only if the snapshot does not reach
   * back far enough.
   */
  readonly start: (shared: SharedTopic) => void
  /** Delivers a frame, or buffers it during a refill. */
  readonly receive: (shared: SharedTopic, text: string, state: string | undefined) => void
}

/** The dependencies of refills. */
export interface Options {
  readonly protocol: StreamProtocol
  readonly frames: TopicFrames
  readonly deliveries: Deliveries
  readonly counts: Counts
  readonly reportGap: (shared: SharedTopic, cause: string) => void
  /** Runs an effect in the background, and interrupts it when the stream hub ends. */
  readonly fork: (effect: Effect.Effect<void>) => void
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
export const make = ({ counts, deliveries, fork, frames, protocol, reportGap }: Options): Refills => {
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

  const load = (shared: SharedTopic, plan: TopicRefill, liveSince: number): void => {
    const since = (shared.rows.newest?.time ?? liveSince) - clockMargin
    const lost = { from: shared.lostAt ?? since, to: shared.askedAt }
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
    start: (shared) => {
      if (shared.topic.delivery !== "snapshot") begin(shared)
    },
    receive: (shared, text, state) => {
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
