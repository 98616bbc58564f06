/**
 * Storage of the event log of accounts: in this process, or in a store that replicas share.
 *
 * One replica owns the log. Its lease has a fencing token, which the store checks at each write. A replica that lost
 * the lease without noticing therefore cannot write.
 */
import type { Row } from "@trigate/upstream/streams/Topic"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
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
  /** The name of the subscription; empty for `begin` and `end`. */
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

/** The store of the event log is unreachable; `detail` is the reason. */
export class EventStoreUnavailable extends Data.TaggedError("EventStoreUnavailable")<{ readonly detail: string }> {}

/** Another replica owns the event log. Nothing was written. */
export class LeaseLost extends Data.TaggedError("LeaseLost") {}

/** The maximum size and age of the event log. */
export interface Bounds {
  /** The maximum number of rows, in total for all accounts. */
  readonly rows: number
  /** The maximum age of a row, in milliseconds. */
  readonly age: number
}

/** The default maximum size and age of the event log. */
export const defaultBounds: Bounds = { rows: 50_000, age: 24 * 3_600_000 }

/** How long the lease of the event log lasts without a renewal, in milliseconds. */
export const leaseFor = 5000

/**
 * Stores the event log.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { EventStore } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { backing, lease } = yield* EventStore.EventStore
 *   yield* Console.log(backing, yield* lease("replica-1"))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, EventStore.layerMemory()))
 * ```
 * ```text
 * memory 1
 * ```
 */
export class EventStore extends Context.Service<EventStore, {
  readonly backing: "memory" | "Redis" | "Postgres"
  /**
   * Acquires or renews the right to write the event log (the lease) for an owner. Returns the fencing token of the
   * lease; `undefined` while another replica owns the log.
   */
  readonly lease: (owner: string) => Effect.Effect<number | undefined, EventStoreUnavailable>
  /**
   * Ends the lease of the event log with the given fencing token, so that another replica can acquire it immediately.
   */
  readonly release: (token: number) => Effect.Effect<void, EventStoreUnavailable>
  /**
   * Appends entries after the event log's last sequence number, in order. Returns the sequence number of the last
   * entry. If an earlier attempt appended the entries but its confirmation was lost, they are not appended again.
   */
  readonly append: (
    token: number,
    after: number,
    entries: ReadonlyArray<NewEntry>
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
}>()("@trigate/trading/accounts/EventStore") {}

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
