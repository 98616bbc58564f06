/** This process's in-memory copy of the event log of accounts, with synchronous reads. */
import type * as ResumePosition from "@trigate/domain/streams/ResumePosition"
import { RowSet } from "@trigate/upstream/streams/RowSet"
import type { Row } from "@trigate/upstream/streams/Topic"
import type { Bounds, Entry, Tail } from "./EventStore.ts"

/** Receives each entry of the event log, and is notified when the whole log is replaced. */
export interface LogReader {
  readonly appended: (entry: Entry) => void
  readonly replaced: () => void
}

const indexKey = (user: string, name: string): string => `${user} ${name}`

/** The log of one subscription of an account. */
interface LoggedStream {
  readonly entries: Array<Entry>
  /** The rows of the entries, and the rows of dropped entries that have the newest time. */
  readonly rows: RowSet
  /** The newest time of a row, also if its entry was dropped. */
  time: number
  /** The rows of dropped entries that have the newest time: the venue's next snapshot or response may repeat them. */
  dropped: Array<Row>
}

/** A copy of the event log, limited in the number and the age of its rows. */
export class EventLog {
  readonly #bounds: Bounds
  readonly #readers = new Set<LogReader>()
  #entries: Array<Entry> = []
  /** Index of the first retained entry of `#entries`. */
  #first = 0
  #rows = 0
  /** The entries by account and subscription. */
  #streams = new Map<string, LoggedStream>()
  #begun = new Map<string, Pick<Entry, "at" | "seq">>()
  /** The latest time of an event of each account, including dropped entries. */
  #reached = new Map<string, number>()
  #epoch = ""
  #seq = 0
  #start = 0
  /** A time that is not before the time of any dropped entry; 0 if no entry was dropped. */
  #droppedAt = 0

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  /** Returns the position of the newest entry. */
  get head(): ResumePosition.ResumePosition {
    return { epoch: this.#epoch, seq: this.#seq }
  }

  /** Replaces this copy of the event log with the log of a store, and notifies the readers. */
  replace({ begun, entries, epoch, seq, start }: Tail): void {
    this.#epoch = epoch
    this.#entries = []
    this.#first = 0
    this.#rows = 0
    this.#streams = new Map()
    this.#begun = new Map(begun)
    this.#reached = new Map()
    this.#start = start
    // the store does not return the time of the last entry that it dropped
    this.#droppedAt = start === 0 ? 0 : entries[0]?.rows.at(-1)?.time ?? entries[0]?.at ?? 0
    this.#seq = start
    for (const entry of entries) this.#add(entry)
    this.#seq = Math.max(this.#seq, seq)
    for (const reader of this.#readers) reader.replaced()
  }

  /** Appends the next entry; ignores a duplicate. */
  append(entry: Entry): void {
    if (entry.seq <= this.#seq) return
    this.#add(entry)
    for (const reader of this.#readers) reader.appended(entry)
  }

  /** Calls `reader` with each appended entry, until the returned function is called. */
  listen(reader: LogReader): () => void {
    this.#readers.add(reader)
    return () => void this.#readers.delete(reader)
  }

  /**
   * Returns the sequence number after which the event log contains all events of an account; `undefined` if the account
   * is not in the log.
   */
  since(user: string): number | undefined {
    const begun = this.#begun.get(user)
    return begun && Math.max(begun.seq, this.#start)
  }

  /** Returns the time, in milliseconds, after which the event log contains all events of an account. */
  begunAt(user: string): number | undefined {
    const begun = this.#begun.get(user)
    return begun && Math.max(begun.at, this.#droppedAt)
  }

  /**
   * Returns the time, in milliseconds, of the latest event of an account that this copy of the log ever contained.
   * `undefined` if it contained none.
   */
  reachedAt(user: string): number | undefined {
    return this.#begun.has(user) ? this.#reached.get(user) : undefined
  }

  /** Returns the time of the latest event of a subscription, like {@link reachedAt}. */
  streamReachedAt(user: string, name: string): number | undefined {
    return this.#streams.get(indexKey(user, name))?.time
  }

  /** Returns whether the event log contains all events of the given accounts after a position. */
  covers(position: ResumePosition.ResumePosition, users: Iterable<string> = []): boolean {
    if (position.epoch !== this.#epoch || position.seq > this.#seq || position.seq < this.#start) return false
    for (const user of users) {
      const since = this.since(user)
      if (since === undefined || position.seq < since) return false
    }
    return true
  }

  /** Returns the entries of an account and a subscription after a sequence number, oldest first. */
  after(seq: number, user: string, name: string): ReadonlyArray<Entry> {
    return (this.#streams.get(indexKey(user, name))?.entries ?? []).filter((entry) => entry.seq > seq)
  }

  /** Returns the newest rows of an account and a subscription, oldest first; at most `most` rows. */
  newest(user: string, name: string, most: number): ReadonlyArray<Row> {
    const entries = this.#streams.get(indexKey(user, name))?.entries ?? []
    const found: Array<ReadonlyArray<Row>> = []
    let count = 0
    for (let index = entries.length - 1; index >= 0 && count < most; index--) {
      const { rows = [] } = entries[index] ?? {}
      found.push(rows)
      count += rows.length
    }
    return found.toReversed().flat().slice(-most)
  }

  /** Returns the rows of one frame that the event log of an account and a subscription does not contain. */
  unseen(user: string, name: string, rows: ReadonlyArray<Row>): ReadonlyArray<Row> {
    return this.#streams.get(indexKey(user, name))?.rows.unseen(rows) ?? rows
  }

  /** Drops entries older than the maximum age. */
  expire(now: number): void {
    while ((this.#entries[this.#first]?.at ?? now) < now - this.#bounds.age) this.#dropFirst()
  }

  #add(entry: Entry): void {
    this.#seq = entry.seq
    const latest = entry.rows.reduce(
      (newest, { time }) => Math.max(newest, time),
      entry.kind === "begin" ? entry.at : 0
    )
    this.#reached.set(entry.user, Math.max(latest, this.#reached.get(entry.user) ?? 0))
    if (entry.kind === "begin") this.#begun.set(entry.user, { seq: entry.seq, at: entry.at })
    else if (entry.kind === "end") this.#begun.delete(entry.user)
    else {
      const key = indexKey(entry.user, entry.name)
      const stream = this.#streams.get(key) ?? { entries: [], rows: new RowSet(), time: 0, dropped: [] }
      this.#streams.set(key, stream)
      stream.entries.push(entry)
      for (const row of entry.rows) stream.rows.add(row)
      if (latest > stream.time) {
        stream.time = latest
        for (const row of stream.dropped) stream.rows.delete(row)
        stream.dropped = []
      }
    }
    this.#entries.push(entry)
    this.#rows += entry.rows.length
    while (this.#rows > this.#bounds.rows) this.#dropFirst()
  }

  #dropFirst(): void {
    const entry = this.#entries[this.#first]
    if (entry === undefined) return
    this.#first++
    this.#rows -= entry.rows.length
    this.#start = Math.max(this.#start, entry.seq)
    // `time` is by the venue's clock, which can differ from the clock of this process
    for (const { time } of entry.rows) if (time > this.#droppedAt) this.#droppedAt = time
    const stream = this.#streams.get(indexKey(entry.user, entry.name))
    if (stream?.entries[0] === entry) {
      stream.entries.shift()
      for (const row of entry.rows) {
        if (row.time === stream.time) stream.dropped.push(row)
        else stream.rows.delete(row)
      }
    }
    // the array is compacted rarely, because each compaction copies the array
    if (this.#first > 1000 && this.#first * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#first)
      this.#first = 0
    }
  }
}
