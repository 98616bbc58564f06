/** Queries the account events that the event log missed, and filters out rows that the log already contains. */
import { RowSet } from "@trigate/upstream/streams/RowSet"
import type { Topic } from "@trigate/upstream/streams/Topic"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { EventLog } from "../../accounts/EventLog.ts"
import type { NewEntry } from "../../accounts/EventStore.ts"

/** Milliseconds by which a query of missed events starts before the newest logged event, because clocks can differ. */
const clockMargin = 5000

/**
 * Returns the entries without the rows that the log or an earlier entry contains. Rows repeat if a connection is lost
 * soon after it was opened: the connection's first snapshot and the query of missed events both return rows that were
 * logged before.
 */
export const withoutRepeats = (log: EventLog, entries: ReadonlyArray<NewEntry>): ReadonlyArray<NewEntry> => {
  const seen = new Map<string, RowSet>()
  return entries.flatMap((entry) => {
    const { kind, name, user } = entry
    if (kind === "begin" || kind === "end") return [entry]
    const key = `${user} ${name}`
    const earlier = seen.get(key) ?? new RowSet()
    seen.set(key, earlier)
    const rows = earlier.unseen(log.unseen(user, name, entry.rows))
    for (const row of rows) earlier.add(row)
    return rows.length === 0 ? [] : [{ ...entry, rows }]
  })
}

/**
 * Returns the time at which the log of a subscription ends. If the log contains no row of the subscription, because
 * there was none or because an earlier process dropped it, the account's other events show until when events were logged.
 */
const findEnd = (log: EventLog, user: string, name: string): number =>
  log.streamReachedAt(user, name) ?? (log.reachedAt(user) ?? 0) - clockMargin

/** Returns the given entries of an account without the rows from before the end of the log. */
export const sinceEnd = (log: EventLog, user: string, entries: ReadonlyArray<NewEntry>): ReadonlyArray<NewEntry> =>
  entries.map((entry) => {
    const end = findEnd(log, user, entry.name)
    return { ...entry, rows: entry.rows.filter(({ time }) => time >= end) }
  })

/**
 * Returns whether the buffered rows of a topic include the newest logged row. If they do, no row is missing between the
 * log and the buffer.
 */
const overlaps = (log: EventLog, user: string, topic: Topic, buffered: ReadonlyArray<NewEntry>): boolean => {
  const newest = new RowSet(log.newest(user, topic.name, 1))
  return topic.delivery === "snapshot" &&
    buffered.some(({ kind, name, rows }) => kind === "past" && name === topic.name && newest.hasAnyOf(rows))
}

/** The missed events that queries returned. */
export interface MissedEvents {
  readonly entries: ReadonlyArray<NewEntry>
  /** Whether no event is missing. `false` if a query failed, or if the venue no longer returns all missed rows. */
  readonly isComplete: boolean
}

/** Queries the events of an account since the end of its log, one query after another. */
export const load = Effect.fnUntraced(
  function*(log: EventLog, user: string, topics: ReadonlyArray<Topic>, buffered: ReadonlyArray<NewEntry>) {
    const entries: Array<NewEntry> = []
    const plans = topics.filter((topic) => !overlaps(log, user, topic, buffered))
      .toSorted((a, b) => (a.refill?.rank ?? 0) - (b.refill?.rank ?? 0))
    for (const { name, refill, rows } of plans) {
      if (refill === undefined || rows === undefined) return { entries, isComplete: false } satisfies MissedEvents
      const to = yield* Clock.currentTimeMillis
      const since = findEnd(log, user, name) - clockMargin
      const loaded = yield* Effect.result(refill.load({ since, last: undefined, lost: { from: since, to } }))
      if (Result.isFailure(loaded)) return { entries, isComplete: false } satisfies MissedEvents
      for (const text of loaded.success.texts) {
        const read = rows.read(text)
        if (read === undefined) continue
        const sorted = read.rows.filter(({ time }) => time >= since).toSorted((a, b) => a.time - b.time)
        entries.push({ kind: "refill", user, name, rows: sorted })
      }
    }
    return { entries, isComplete: true } satisfies MissedEvents
  }
)
