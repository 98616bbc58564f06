/**
 * Where the event log of accounts is stored: in this process, or in a store that replicas share.
 *
 * One replica owns the log. Its lease has a fencing token, which the store checks at each write: a replica that was replaced
 * without noticing writes nothing.
 */
import type { Row } from "@trigate/upstream/streams/Topic"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"

/**
 * What an entry is.
 *
 * `event`: rows as the venue sent them. `refill`: rows that a query found after a lost connection. `past`: rows from before the account
 * was watched. `begin`: from here on the events of the account are complete; of its earlier ones some may be missing.
 */
export const EntryKind = Schema.Literals(["event", "refill", "past", "begin"])
export type EntryKind = typeof EntryKind.Type

/** The rows of an entry as a store keeps them: JSON text. */
export const RowsText = Schema.fromJsonString(
  Schema.Array(Schema.Struct({ id: Schema.String, text: Schema.String, time: Schema.Finite }))
)

/** Rows of one subscription that arrived together. */
export interface NewEntry {
  readonly kind: EntryKind
  /** The account, in lower case. */
  readonly user: string
  /** The name of the subscription; empty for `begin`. */
  readonly name: string
  readonly rows: ReadonlyArray<Row>
}

/** An entry of the log. Its rows are numbered without a hole, and it has the number of its last row. */
export interface Entry extends NewEntry {
  readonly seq: number
  /** When it was stored, in milliseconds. */
  readonly at: number
}

/** How many numbers an entry takes: one for each of its rows. */
export const span = ({ rows }: NewEntry): number => Math.max(1, rows.length)

/** What a store has after some position. */
export interface Tail {
  readonly epoch: string
  /** The number of the newest entry. */
  readonly seq: number
  /** The number of the newest entry that was dropped; 0 while none was. */
  readonly start: number
  /** When each account began, by its address. */
  readonly begun: ReadonlyMap<string, Pick<Entry, "at" | "seq">>
  readonly entries: ReadonlyArray<Entry>
}

/** The store cannot be reached; `detail` says why. */
export class StoreAway extends Data.TaggedError("StoreAway")<{ readonly detail: string }> {}

/** Another replica owns the log by now. Nothing was written. */
export class LeaseLost extends Data.TaggedError("LeaseLost") {}

/** How much of the log is stored. */
export interface Bounds {
  /** Rows of all accounts together. */
  readonly rows: number
  /** Milliseconds for which a row is stored. */
  readonly age: number
}

/** The bounds that are used when none are given. */
export const defaultBounds: Bounds = { rows: 50_000, age: 24 * 3_600_000 }

/** How long a replica that is silent owns the log, in milliseconds. */
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
  /** Takes or renews the lease of an owner. Returns its fencing token; undefined while another replica owns the log. */
  readonly lease: (owner: string) => Effect.Effect<number | undefined, StoreAway>
  /** Ends a lease, so that another replica does not have to wait for it. */
  readonly release: (token: number) => Effect.Effect<void, StoreAway>
  /** Appends entries in their order, and returns the number of the last one. */
  readonly append: (
    token: number,
    entries: ReadonlyArray<NewEntry>
  ) => Effect.Effect<{ readonly epoch: string; readonly seq: number; readonly at: number }, StoreAway | LeaseLost>
  /** Reads the entries after a number, oldest first: a part of them if there are many. */
  readonly readAfter: (seq: number) => Effect.Effect<Tail, StoreAway>
  /** Asks the owner to watch an account for the next {@link wantFor} milliseconds. */
  readonly want: (user: string) => Effect.Effect<void, StoreAway>
  /** The accounts that replicas want to be watched. */
  readonly wanted: Effect.Effect<ReadonlyArray<string>, StoreAway>
}>()("@trigate/trading/accounts/EventStore") {}

/** Milliseconds for which an account is watched after a replica has asked for it. */
export const wantFor = 60_000

/** Makes the name of an epoch or of a replica. */
export const makeName = Effect.map(
  Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER),
  (number) => number.toString(36).padStart(11, "0")
)

/** A store for one process. The log of the process itself holds the entries, so this stores their number only. */
export const makeMemory = Effect.gen(function*() {
  const epoch = yield* makeName
  let seq = 0
  return EventStore.of({
    backing: "memory",
    lease: () => Effect.succeed(1),
    release: () => Effect.void,
    append: (_token, entries) =>
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
 * The log of one process: it ends with the process. A function, so that two networks in one program share nothing.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (): Layer.Layer<EventStore> => Layer.effect(EventStore, makeMemory)
