/**
 * The log of account events: fills, order updates, funding, ledger updates and TWAP slices. It is stored in this
 * process, or in a store that replicas share.
 *
 * One replica owns the log. Its lease has a fencing token, which the store checks at each write. A replica that lost
 * the lease without noticing therefore cannot write.
 *
 * The log contains the events of watched accounts. An account is watched while a caller reads its events, or if a
 * setting names it. The replica that owns the log subscribes at the venue and appends received events.
 *
 * If the log already contains the account, the replica buffers new events and queries the missed ones. It merges both
 * by the venue's row IDs, and then appends them. If events may still be missing, the account begins a new epoch: no
 * caller can resume from a position before the gap.
 */
import * as Json from "@trigate/domain/encoding/Encoding"
import * as Subscription from "@trigate/domain/unstable/streams/Subscription"
import { subscriptions } from "@trigate/domain/unstable/streams/Subscriptions"
import type { LeaseStore } from "@trigate/stores/unstable/SharedStore"
import { type Frame, type Row, RowSet, type Topic } from "@trigate/upstream/unstable/streams/Topic"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { parseRow } from "../streams/VenueProtocol.ts"

/**
 * The origin of the rows in an entry of the event log.
 *
 * - `event`: rows as the venue sent them.
 * - `refill`: rows that a query returned after a lost connection.
 * - `past`: rows from before the account was watched.
 * - `begin`: no rows. Events of the account are complete from here; earlier events may be missing.
 * - `end`: no rows. The owner of the log cannot record the account: its events are incomplete from here.
 */
export const EntryKind = Schema.Literals(["event", "refill", "past", "begin", "end"])
export type EntryKind = typeof EntryKind.Type

/** The schema of an entry's rows as they are stored: JSON text. */
export const RowsText = Schema.fromJsonString(
  Schema.Array(Schema.Struct({ id: Schema.String, text: Schema.String, time: Schema.Finite }))
)

/** Rows of one subscription that were received together. */
export interface NewEntry {
  readonly kind: EntryKind
  /** The account, in lower case. */
  readonly user: string
  /**
   * The name of the subscription. Empty for `end`, and for a `begin` unless events of one subscription are missing
   * before it.
   */
  readonly name: string
  readonly rows: ReadonlyArray<Row>
}

/** An entry of the event log. Rows are numbered without gaps; the entry has the number of its last row. */
export interface Entry extends NewEntry {
  readonly seq: number
  /** The time at which the entry was stored, in milliseconds. */
  readonly at: number
}

/**
 * Makes an entry from its stored form. Derives the IDs and the times of rows from their text, because an earlier version
 * stored other IDs. Only replicas of that version read the stored IDs, during a rolling update.
 */
export const restored = (entry: Entry): Entry => ({
  ...entry,
  rows: entry.rows.map(({ text }) => parseRow(entry.name, text))
})

/** Returns how many sequence numbers an entry uses: one for each row, but at least one. */
export const span = ({ rows }: NewEntry): number => Math.max(1, rows.length)

/** Returns how many sequence numbers the given entries use in total. */
export const totalSpan = (entries: ReadonlyArray<NewEntry>): number =>
  entries.reduce((sum, entry) => sum + span(entry), 0)

/** The entries of a stored log that follow a given position, and the bounds of that log. */
export interface Tail {
  readonly epoch: string
  /** The sequence number of the newest entry. */
  readonly seq: number
  /** The sequence number of the newest entry that was dropped from the event log; 0 if no entry was dropped. */
  readonly start: number
  /** The point at which each account's log starts, by the account's address. */
  readonly begun: ReadonlyMap<string, Pick<Entry, "at" | "seq">>
  readonly entries: ReadonlyArray<Entry>
}

/** The entries that a writer's copy of the event log no longer contains, which the store then drops too. */
export interface Dropped {
  readonly seqs: ReadonlyArray<number>
  /** The points at which the logs of the concerned accounts start now, by the accounts' addresses. */
  readonly begun: ReadonlyMap<string, Pick<Entry, "at" | "seq">>
}

/** The store of the event log is unreachable; `detail` is the reason. */
export class EventStoreUnavailable extends Data.TaggedError("EventStoreUnavailable")<{ readonly detail: string }> {}

/** Another replica owns the event log. Nothing was written. */
export class LeaseLost extends Data.TaggedError("LeaseLost") {}

/** The maximum size and age of the event log. */
export interface Bounds {
  /**
   * The maximum number of rows, in total for all accounts. Beyond, the account with the most rows loses its oldest
   * ones.
   */
  readonly rows: number
  /** The maximum age of a row, in milliseconds. */
  readonly age: number
}

/** The default maximum size and age of the event log. */
export const defaultBounds: Bounds = { rows: 50_000, age: 24 * 3_600_000 }

/** The result of an attempt to acquire or renew the lease of a store. */
export interface LeaseAttempt {
  /** The fencing token; `undefined` if another replica has the lease. */
  readonly token: number | undefined
  /** The time by the store's clock, in milliseconds since 1970. */
  readonly time: number
}

/**
 * Makes the clock by which a replica writes times into a store: the store's clock at the last attempt to acquire the
 * lease, advanced by the monotonic clock. The system clocks of replicas can differ, and a replica that continues the log
 * of another queries missed events from the time at which that log began.
 */
export const makeStoreClock = () => {
  let last: { readonly time: number; readonly readAt: Json.MonotonicTime } | undefined
  return {
    /** Sets the clock, and returns the token of the lease. */
    set: ({ time, token }: LeaseAttempt): Effect.Effect<number | undefined> =>
      Effect.map(Clock.Clock, (clock) => {
        last = { time, readAt: Json.monotonicTime(clock) }
        return token
      }),
    /** Returns the time in milliseconds since 1970; before the first attempt, by the clock of this process. */
    now: Effect.map(Clock.Clock, (clock) =>
      last === undefined
        ? clock.currentTimeMillisUnsafe()
        : Math.floor(last.time + Json.millisBetween(last.readAt, Json.monotonicTime(clock))))
  }
}

/** Entries to append at the time `at`, if the lease with this token is valid and the log ends at `after`. */
export interface Appending {
  readonly token: number
  readonly after: number
  readonly at: number
  readonly bounds: Bounds
  readonly entries: ReadonlyArray<NewEntry>
  /** The entries that the writer has dropped from its copy; `undefined` if the store drops the oldest ones. */
  readonly dropped: Dropped | undefined
}

/** The position of the newest entry of a log. */
export interface Position {
  readonly epoch: string
  readonly seq: number
}

/** How long the lease of the event log lasts without a renewal, in milliseconds. */
export const leaseFor = 5000

/**
 * Stores the event log.
 *
 * Provided by `AccountEvents.layerMemory`, `EventStoreRedis.layer` or `EventStoreSql.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { AccountEvents } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { backing, lease } = yield* AccountEvents.EventStore
 *   yield* Console.log(backing, yield* lease("replica-1"))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, AccountEvents.layerMemory()))
 * ```
 * ```text
 * memory 1
 * ```
 */
export class EventStore extends Context.Service<
  EventStore,
  LeaseStore<EventStoreUnavailable> & {
    readonly backing: "memory" | "Redis" | "Postgres"
    /**
     * Appends entries after the event log's last sequence number, in order. Returns the sequence number of the last
     * entry. If an earlier attempt appended the entries but its confirmation was lost, they are not appended again.
     *
     * The store drops the entries in `dropped`, and expired ones. Without `dropped`, it drops its oldest entries beyond
     * the maximum number of rows.
     */
    readonly append: (
      token: number,
      after: number,
      entries: ReadonlyArray<NewEntry>,
      dropped?: Dropped
    ) => Effect.Effect<
      { readonly epoch: string; readonly seq: number; readonly at: number },
      EventStoreUnavailable | LeaseLost
    >
    /**
     * Reads the entries after a sequence number, oldest first. If there are many entries, returns only the first page.
     */
    readonly readAfter: (seq: number) => Effect.Effect<Tail, EventStoreUnavailable>
    /** Asks the owner of the event log to watch an account for the next {@link wantFor} milliseconds. */
    readonly want: (user: string) => Effect.Effect<void, EventStoreUnavailable>
    /** Returns the accounts that replicas have requested with `want`. */
    readonly wanted: Effect.Effect<ReadonlyArray<string>, EventStoreUnavailable>
  }
>()("@trigate/trading/accounts/AccountEvents/EventStore") {}

/** Milliseconds for which an account is watched after a replica has requested that account. */
export const wantFor = 60_000

/** Generates a random name for an epoch or a replica. */
export const makeName = Effect.map(
  Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER),
  (number) => number.toString(36).padStart(11, "0")
)

/**
 * Makes an in-memory event store for one process. `EventLog` contains the entries, so this store contains only the last
 * sequence number.
 */
export const makeMemory = Effect.gen(function*() {
  const epoch = yield* makeName
  let seq = 0
  return EventStore.of({
    backing: "memory",
    lease: () => Effect.succeed(1),
    release: () => Effect.void,
    append: (_token, _after, entries) =>
      Effect.map(Clock.currentTimeMillis, (at) => {
        for (const entry of entries) seq += span(entry)
        return { epoch, seq, at }
      }),
    readAfter: () => Effect.sync(() => ({ epoch, seq, start: 0, begun: new Map(), entries: [] })),
    want: () => Effect.void,
    wanted: Effect.succeed([])
  })
})

/**
 * Provides an event store in the memory of this process. Each call returns a new layer with a separate store.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (): Layer.Layer<EventStore> => Layer.effect(EventStore, makeMemory)

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
  /** The sequence number of the last `begin` that names the subscription: rows are missing before it. */
  gap: number
  /** The rows of dropped entries that have the newest time: the venue's next snapshot or response may repeat them. */
  dropped: Array<Row>
  /** The newest time of a row whose entry was dropped. */
  droppedAt: number
}

/** The entries of an account, oldest first. */
interface AccountLog {
  /** A dropped entry is `undefined`, so that its rows are not retained until the array is compacted. */
  entries: Array<Entry | undefined>
  /** Index of the first retained entry. */
  first: number
  rows: number
  /** The characters of the rows. */
  characters: number
}

/**
 * Maximum characters of the rows in the event log, on average of its maximum number of rows. Beyond, the account with
 * the most characters loses its oldest rows.
 */
export const rowCharacters = 1024

const charactersIn = ({ rows }: NewEntry): number => rows.reduce((sum, { text }) => sum + text.length, 0)

/** A copy of the event log, limited in the number and the age of its rows. */
export class EventLog {
  readonly #bounds: Bounds
  readonly #readers = new Set<LogReader>()
  #accounts = new Map<string, AccountLog>()
  #rows = 0
  #characters = 0
  /** The entries by account and subscription. */
  #streams = new Map<string, LoggedStream>()
  /** The point after which the log contains all events of an account: its start, or its last dropped entry. */
  #begun = new Map<string, Pick<Entry, "at" | "seq">>()
  #epoch = ""
  #seq = 0
  /** The sequence number of the newest entry that the store dropped, and a time that is not before its time. */
  #start = 0
  #droppedAt = 0
  /** The dropped entries that {@link takeDropped} has not returned yet. */
  #dropped: Array<Pick<Entry, "seq" | "user">> = []

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  /** Returns the position of the newest entry. */
  get head(): Subscription.ResumePosition {
    return { epoch: this.#epoch, seq: this.#seq }
  }

  /** Replaces this copy of the event log with the log of a store, and notifies the readers. */
  replace({ begun, entries, epoch, seq, start }: Tail): void {
    this.#epoch = epoch
    this.#accounts = new Map()
    this.#rows = 0
    this.#characters = 0
    this.#streams = new Map()
    this.#begun = new Map(begun)
    this.#dropped = []
    this.#start = start
    // the store does not return the time of the last entry that it dropped
    this.#droppedAt = start === 0 ? 0 : entries[0]?.rows.at(-1)?.time ?? entries[0]?.at ?? 0
    this.#seq = start
    // an entry before the start of its account's log, as moved by drops, is one whose drop from the store was lost
    const isBegun = new Set(
      entries.filter(({ kind, seq, user }) => kind === "begin" && begun.get(user)?.seq === seq)
        .map(({ user }) => user)
    )
    const isLost = ({ seq, user }: Entry) => seq <= (begun.get(user)?.seq ?? 0) && !isBegun.has(user)
    for (const entry of entries) if (!isLost(entry)) this.#add(entry)
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
   * Returns the time, in milliseconds, of the latest event of a subscription that this copy of the log ever contained.
   * `undefined` if it contained none.
   */
  streamReachedAt(user: string, name: string): number | undefined {
    const time = this.#streams.get(indexKey(user, name))?.time
    return time === 0 ? undefined : time
  }

  /** Returns whether the event log contains all events of the given accounts after a position. */
  covers(position: Subscription.ResumePosition, users: Iterable<string> = []): boolean {
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

  /**
   * Returns the newest rows of an account and a subscription, oldest first; at most `most` rows. No row may be missing
   * between them: rows from before a gap are omitted.
   */
  newest(user: string, name: string, most: number): ReadonlyArray<Row> {
    const { entries = [], gap = 0 } = this.#streams.get(indexKey(user, name)) ?? {}
    const found: Array<ReadonlyArray<Row>> = []
    let count = 0
    for (let index = entries.length - 1; index >= 0 && count < most; index--) {
      const { rows = [], seq = 0 } = entries[index] ?? {}
      if (seq <= gap) break
      found.push(rows)
      count += rows.length
    }
    return found.toReversed().flat().slice(-most)
  }

  /**
   * Returns the rows of one frame that the event log of an account and a subscription did not contain yet. Rows of a
   * query that are not newer than a dropped row were in the log before that row was dropped.
   */
  unseen(user: string, name: string, rows: ReadonlyArray<Row>, isQueried = false): ReadonlyArray<Row> {
    const stream = this.#streams.get(indexKey(user, name))
    if (stream === undefined) return rows
    const { droppedAt, time: newest } = stream
    return stream.rows.unseen(isQueried ? rows.filter(({ time }) => time > droppedAt || time === newest) : rows)
  }

  /** Drops entries older than the maximum age. */
  expire(now: number): void {
    for (const account of this.#accounts.values()) {
      while ((account.entries[account.first]?.at ?? now) < now - this.#bounds.age) this.#dropFirst(account)
    }
  }

  /** Returns the next entries that this copy has dropped, at most `most`. Returns each entry once. */
  takeDropped(most: number): Dropped {
    const dropped = this.#dropped.splice(0, most)
    return {
      seqs: dropped.map(({ seq }) => seq),
      begun: new Map(dropped.flatMap(({ user }) => {
        const begun = this.#begun.get(user)
        return begun === undefined ? [] : [[user, begun]]
      }))
    }
  }

  /** Forgets the dropped entries: another process writes the log, and drops them from the store. */
  forgetDropped(): void {
    this.#dropped = []
  }

  #add(entry: Entry): void {
    this.#seq = entry.seq
    if (entry.kind === "end") this.#begun.delete(entry.user)
    else if (entry.kind === "begin") {
      this.#begun.set(entry.user, { seq: entry.seq, at: entry.at })
      if (entry.name !== "") this.#stream(entry).gap = entry.seq
    } else {
      const stream = this.#stream(entry)
      const latest = entry.rows.reduce((newest, { time }) => Math.max(newest, time), 0)
      stream.entries.push(entry)
      for (const row of entry.rows) stream.rows.add(row)
      if (latest > stream.time) {
        stream.time = latest
        for (const row of stream.dropped) stream.rows.delete(row)
        stream.dropped = []
      }
    }
    const account = this.#accounts.get(entry.user) ?? { entries: [], first: 0, rows: 0, characters: 0 }
    const characters = charactersIn(entry)
    this.#accounts.set(entry.user, account)
    account.entries.push(entry)
    account.rows += entry.rows.length
    account.characters += characters
    this.#rows += entry.rows.length
    this.#characters += characters
    while (this.#rows > this.#bounds.rows) this.#dropFirst(this.#largest(account, "rows"))
    while (this.#characters > this.#bounds.rows * rowCharacters) this.#dropFirst(this.#largest(account, "characters"))
  }

  /** Returns the account with the most rows, so that a busy account loses its own rows before those of others. */
  #largest(latest: AccountLog, by: "characters" | "rows"): AccountLog {
    let largest = latest
    for (const account of this.#accounts.values()) if (account[by] > largest[by]) largest = account
    return largest
  }

  /** The approximate bytes of the rows. */
  get retained(): number {
    return this.#characters
  }

  #stream({ name, user }: Entry): LoggedStream {
    const key = indexKey(user, name)
    const stream = this.#streams.get(key) ??
      { entries: [], rows: new RowSet(), time: 0, gap: 0, dropped: [], droppedAt: 0 }
    this.#streams.set(key, stream)
    return stream
  }

  #dropFirst(account: AccountLog): void {
    const entry = account.entries[account.first]
    if (entry === undefined) return
    this.#dropped.push({ seq: entry.seq, user: entry.user })
    account.entries[account.first] = undefined
    account.first++
    account.rows -= entry.rows.length
    this.#rows -= entry.rows.length
    const characters = charactersIn(entry)
    account.characters -= characters
    this.#characters -= characters
    const begun = this.#begun.get(entry.user)
    if (begun !== undefined) {
      // `time` is by the venue's clock, which can differ from the clock of this process
      const at = entry.rows.reduce((newest, { time }) => Math.max(newest, time), begun.at)
      this.#begun.set(entry.user, { seq: Math.max(begun.seq, entry.seq), at })
    }
    const stream = this.#streams.get(indexKey(entry.user, entry.name))
    if (stream?.entries[0] === entry) {
      stream.entries.shift()
      for (const row of entry.rows) {
        stream.droppedAt = Math.max(stream.droppedAt, row.time)
        if (row.time === stream.time) stream.dropped.push(row)
        else stream.rows.delete(row)
      }
    }
    if (account.first === account.entries.length) this.#accounts.delete(entry.user)
    // the array is compacted rarely, because each compaction copies the array
    if (account.first > 1000 && account.first * 2 > account.entries.length) {
      account.entries = account.entries.slice(account.first)
      account.first = 0
    }
  }
}

/** Maximum number of account events that wait to be written to the event log. */
export const mostPending = 10_000

/** Receives the complete states of watched accounts. */
export interface StateObserver {
  /**
   * The names of the subscriptions whose frames contain a complete state of an account. These subscriptions are opened
   * for each watched account.
   */
  readonly names: ReadonlyArray<string>
  readonly received: (user: string, frame: Frame) => void
  /**
   * Reports that the observer receives no further states of an account, and that the account's log may be incomplete
   * from now on.
   */
  readonly ended: (user: string) => void
}

/** The accounts to log, and the bounds of the event log. */
export interface Options {
  /** Accounts in lower case that are always watched. */
  readonly accounts?: ReadonlyArray<string>
  readonly bounds?: Bounds
  readonly states?: StateObserver | undefined
  /** The maximum number of accounts that one caller is allowed to watch. Default: unlimited. */
  readonly usersOfCaller?: number
}

/** A caller that reads the events of an account. */
export interface Watcher {
  /** The name of the caller. The limit on watched accounts applies to each name separately. */
  readonly caller: string
  /** Reports that the account cannot be watched. No events will follow. */
  readonly refused: (message: string) => void
}

/**
 * The phase of a watched account. `waiting`: not recorded, because the venue or a limit refused it, or because the last
 * writer of the log records it while the store is unreachable. Then: waiting for its subscriptions to be accepted,
 * querying missed events, or complete.
 */
export type Phase = "waiting" | "subscribing" | "refilling" | "live"

/**
 * The role of this process in the event log. `writer`: writes the shared log. `reader`: reads the log that another
 * replica writes. `alone`: continues with a log of its own, because the store is unreachable.
 */
export type Role = "writer" | "reader" | "alone"

/** The state of the event log in this process. */
export interface Status extends Pick<AccountEvents, "backing"> {
  /** Whether the store of the event log is reachable. */
  readonly isUp: boolean
  readonly role: Role
  /** The position of the newest event in this process's copy of the event log. */
  readonly head: Subscription.ResumePosition
  readonly accounts: ReadonlyArray<{ readonly user: string; readonly phase: Phase }>
  /** The number of accounts whose events should arrive, but do not: they are configured, or their log has ended. */
  readonly unrecorded: number
}

/** The log of account events. An account is logged while a caller reads its events, or if a setting names it. */
export interface AccountEvents {
  readonly log: EventLog
  readonly backing: EventStore["Service"]["backing"]
  /** Returns whether a topic's rows are written to the event log while the account of that topic is watched. */
  readonly isLogged: (topic: Topic) => boolean
  /** Watches an account until the returned function is called, and for a grace period after that. */
  readonly watch: (user: string, watcher: Watcher) => () => void
  /**
   * Reads the shared log again if this process's copy does not reach a position. A caller can have such a position
   * because another replica already delivered the event at that position to the caller.
   */
  readonly catchUp: (position: Subscription.ResumePosition) => Effect.Effect<void>
  /** Returns whether the event log of an account is complete and up to date in this process. */
  readonly isLive: (user: string) => boolean
  /** Returns whether this process records an account. */
  readonly isRecording: (user: string) => boolean
  /**
   * Ends the epoch of an account because events are missing from the account's log: callers cannot resume from a
   * position in that epoch.
   */
  readonly interrupt: (user: string) => void
  readonly status: () => Status
}

/** Reads the client order ID from an event, in lower case; returns `undefined` if the event's order has none. */
export type ReadCloid = () => string | undefined

/** Receives an event of an account, whose address is in lower case. */
export type OrderListener = (user: string, readCloid: ReadCloid) => void

/** The path to the client order ID in the rows of each subscription. */
const cloidPaths: ReadonlyMap<string, string> = new Map([
  [subscriptions.orderUpdates.name, "order.cloid"],
  [subscriptions.userFills.name, "cloid"]
])

/** Makes the `OrderEvents` of one chain. It reports no events before `follow` is called. */
export const make = () => {
  const listeners = new Set<OrderListener>()
  return {
    /** Starts to report the events of an event log. */
    follow: (log: EventLog): void =>
      void log.listen({
        appended: ({ kind, name, rows, user }) => {
          const path = cloidPaths.get(name)
          if (path === undefined || kind === "past") return
          for (const { text } of rows) {
            const readCloid = () => {
              const cloid = Subscription.valueAt(Result.getOrUndefined(Json.parse(text)), path)
              return Predicate.isString(cloid) ? cloid.toLowerCase() : undefined
            }
            for (const listener of listeners) listener(user, readCloid)
          }
        },
        replaced: () => {}
      }),
    /** Calls a function with the account of each reported event, until the scope ends. */
    listen: (listener: OrderListener): Effect.Effect<void, never, Scope.Scope> =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => listeners.add(listener)),
        () => Effect.sync(() => listeners.delete(listener))
      ))
  }
}

/** The order events of watched accounts. */
export type OrderEvents = ReturnType<typeof make>
