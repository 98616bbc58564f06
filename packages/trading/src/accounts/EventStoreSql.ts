/**
 * `EventStore` in a Postgres that replicas share. Stores the entries of the event log, the start of each account's log,
 * and a lease: the exclusive right of one replica to write the log, with a fencing token.
 *
 * The lease uses the database's clock. An append locks the row of its log and checks the token in one transaction, so
 * no other owner can write in between. A read is one statement, and therefore one snapshot.
 */
import * as SqlStore from "@trigate/stores/unstable/SqlStore"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as SqlClient from "effect/sql/SqlClient"
import * as EventStore from "./AccountEvents.ts"

/** The location and the limits of the event log. */
export interface Options {
  /** A name that separates the event logs of several networks in one database. Default: `mainnet`. */
  readonly network?: string
  readonly bounds?: EventStore.Bounds
}

/** Maximum number of entries in one read. */
export const maxRead = 500

/** Maximum number of entries that one statement inserts: a statement accepts 65 535 parameters, and an entry has 8. */
const maxInserted = 1000

const createTables = [
  `CREATE TABLE trigate_event_logs (
    network TEXT NOT NULL PRIMARY KEY,
    epoch TEXT NOT NULL,
    seq BIGINT NOT NULL,
    start BIGINT NOT NULL,
    owner TEXT,
    token BIGINT NOT NULL,
    leased_until DOUBLE PRECISION NOT NULL
  )`,
  // the rows of an entry stay text, so that the venue's numbers are preserved
  `CREATE TABLE trigate_event_entries (
    network TEXT NOT NULL,
    seq BIGINT NOT NULL,
    kind TEXT NOT NULL,
    account TEXT NOT NULL,
    name TEXT NOT NULL,
    span INTEGER NOT NULL,
    entry_rows TEXT NOT NULL,
    stored_at BIGINT NOT NULL,
    PRIMARY KEY (network, seq)
  )`,
  "CREATE INDEX trigate_event_entries_by_age ON trigate_event_entries (network, stored_at)",
  `CREATE TABLE trigate_event_accounts (
    network TEXT NOT NULL,
    account TEXT NOT NULL,
    begun_seq BIGINT,
    begun_at BIGINT,
    wanted_until BIGINT,
    PRIMARY KEY (network, account)
  )`
]

const decodeLease = Schema.decodeUnknownEffect(
  Schema.Tuple([Schema.Struct({ token: Schema.NullOr(Schema.FiniteFromString), time: Schema.FiniteFromString })])
)

const decodeAppended = Schema.decodeUnknownEffect(
  Schema.Array(Schema.Struct({ epoch: Schema.String, seq: Schema.FiniteFromString }))
)

const decodeAccounts = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({ account: Schema.String })))

const decodeTail = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  epoch: Schema.String,
  seq: Schema.FiniteFromString,
  start: Schema.FiniteFromString,
  begun: Schema.fromJsonString(
    Schema.Array(Schema.Struct({ user: Schema.String, seq: Schema.Finite, at: Schema.Finite }))
  ),
  entries: Schema.fromJsonString(Schema.Array(Schema.Struct({
    seq: Schema.Finite,
    kind: EventStore.EntryKind,
    user: Schema.String,
    name: Schema.String,
    rows: EventStore.RowsText,
    at: Schema.Finite
  })))
})))

const encodeRows = Schema.encodeSync(EventStore.RowsText)

/** The statements of the event log. Each of them is atomic. See {@link EventStore.EventStore}. */
export interface Statements {
  readonly lease: (owner: string) => Effect.Effect<EventStore.LeaseAttempt, SqlStore.SqlFault>
  readonly release: (token: number) => Effect.Effect<unknown, SqlStore.SqlFault>
  /** Returns the log's position after the entries; `undefined` if the lease is lost. */
  readonly append: (
    appending: EventStore.Appending
  ) => Effect.Effect<EventStore.Position | undefined, SqlStore.SqlFault>
  /** Returns the log after a sequence number. The IDs of rows are those that were stored. */
  readonly readAfter: (seq: number) => Effect.Effect<EventStore.Tail | undefined, SqlStore.SqlFault>
  readonly want: (user: string, until: number) => Effect.Effect<unknown, SqlStore.SqlFault>
  readonly wanted: (now: number) => Effect.Effect<ReadonlyArray<string>, SqlStore.SqlFault>
}

/** A database with the tables of an event log. */
export interface Database {
  readonly statements: Statements
  /** Runs statements within the deadline. */
  readonly step: <A>(
    statements: Effect.Effect<A, SqlStore.SqlFault>
  ) => Effect.Effect<A, EventStore.EventStoreUnavailable>
}

/** The timeout of one step, and the conversion of its faults. */
export const stepOptions = {
  deadline: "1 second",
  toError: ({ tag }: SqlStore.StepFault) => new EventStore.EventStoreUnavailable({ detail: tag })
} as const

/** Opens the event log in the database of the context. Creates its tables on first use. */
export const openDatabase = Effect.fnUntraced(function*(network: string) {
  const newEpoch = yield* EventStore.makeName
  const { sql, step } = yield* SqlStore.make({
    table: "trigate_event_log_migrations",
    migrations: () => ({ "0001_create_event_log": createTables }),
    prepare: (sql) =>
      sql`INSERT INTO trigate_event_logs (network, epoch, seq, start, token, leased_until)
        VALUES (${network}, ${newEpoch}, 0, 0, 0, 0) ON CONFLICT DO NOTHING`,
    ...stepOptions
  })
  const now = sql.literal("(extract(epoch FROM clock_timestamp()) * 1000)::float8")

  const insert = (entries: ReadonlyArray<EventStore.Entry>) => {
    const values = entries.map((entry) => ({
      network,
      seq: entry.seq,
      kind: entry.kind,
      account: entry.user,
      name: entry.name,
      span: EventStore.span(entry),
      entry_rows: encodeRows(entry.rows),
      stored_at: entry.at
    }))
    return Effect.forEach(
      Arr.chunksOf(values, maxInserted),
      (chunk) => sql`INSERT INTO trigate_event_entries ${sql.insert(chunk)}`,
      { discard: true }
    )
  }

  const begin = ({ at, seq, user }: EventStore.Entry) =>
    sql`INSERT INTO trigate_event_accounts (network, account, begun_seq, begun_at) VALUES (${network}, ${user}, ${seq}, ${at})
      ON CONFLICT (network, account) DO UPDATE SET begun_seq = excluded.begun_seq, begun_at = excluded.begun_at`

  const end = ({ user }: EventStore.Entry) =>
    sql`UPDATE trigate_event_accounts SET begun_seq = NULL, begun_at = NULL
      WHERE network = ${network} AND account = ${user}`

  /** Drops the entries up to a sequence number, and expired ones. */
  const trim = (seq: number, at: number, bounds: EventStore.Bounds) =>
    sql`WITH dropped AS (
        DELETE FROM trigate_event_entries WHERE network = ${network} AND seq <= greatest(
          ${seq}::bigint,
          (SELECT max(seq) FROM trigate_event_entries WHERE network = ${network} AND stored_at < ${at - bounds.age})
        ) RETURNING seq
      )
      UPDATE trigate_event_logs SET start = greatest(start, (SELECT max(seq) FROM dropped)) WHERE network = ${network}`

  /** Drops the entries that the writer has dropped from its copy. */
  const drop = Effect.fnUntraced(function*({ begun, seqs }: EventStore.Dropped) {
    if (seqs.length === 0) return
    yield* sql`DELETE FROM trigate_event_entries WHERE network = ${network} AND ${sql.in("seq", seqs)}`
    for (const [user, { at, seq }] of begun) {
      yield* sql`UPDATE trigate_event_accounts SET begun_seq = ${seq}, begun_at = ${at}
        WHERE network = ${network} AND account = ${user} AND begun_seq < ${seq}`
    }
  })

  const statements: Statements = {
    lease: (owner) =>
      Effect.map(
        Effect.flatMap(
          sql`WITH leased AS (
              UPDATE trigate_event_logs SET
                token = CASE WHEN owner = ${owner} AND leased_until > ${now} THEN token ELSE token + 1 END,
                owner = ${owner},
                leased_until = ${now} + ${EventStore.leaseFor}::float8
              WHERE network = ${network} AND (owner IS NULL OR owner = ${owner} OR leased_until <= ${now})
              RETURNING token
            )
            SELECT (SELECT token::text FROM leased) AS token, floor(${now})::bigint::text AS time`,
          decodeLease
        ),
        ([{ time, token }]) => ({ time, token: token ?? undefined })
      ),
    release: (token) => sql`UPDATE trigate_event_logs SET owner = NULL WHERE network = ${network} AND token = ${token}`,
    append: ({ after, at, bounds, dropped, entries, token }) =>
      sql.withTransaction(Effect.gen(function*() {
        const seq = after + EventStore.totalSpan(entries)
        const [log] = yield* decodeAppended(
          yield* sql`SELECT epoch, seq::text FROM trigate_event_logs
            WHERE network = ${network} AND token = ${token} AND owner IS NOT NULL AND leased_until > ${now} FOR UPDATE`
        )
        if (log === undefined || log.seq === seq) return log
        if (log.seq !== after) return undefined
        yield* sql`UPDATE trigate_event_logs SET seq = ${seq} WHERE network = ${network}`
        let next = after
        const numbered = entries.map((entry) => ({ ...entry, seq: next += EventStore.span(entry), at }))
        yield* insert(numbered)
        for (const entry of numbered) {
          if (entry.kind === "begin") yield* begin(entry)
          if (entry.kind === "end") yield* end(entry)
        }
        if (dropped !== undefined) yield* drop(dropped)
        yield* trim(dropped === undefined ? seq - bounds.rows : 0, at, bounds)
        return { epoch: log.epoch, seq }
      })),
    readAfter: (after) =>
      Effect.map(
        Effect.flatMap(
          sql`SELECT epoch, seq::text, start::text,
            (SELECT coalesce(json_agg(json_build_object('user', account, 'seq', begun_seq, 'at', begun_at)), '[]')::text
              FROM trigate_event_accounts WHERE network = ${network} AND begun_seq IS NOT NULL) AS begun,
            (SELECT coalesce(json_agg(json_build_object(
                'seq', seq, 'kind', kind, 'user', account, 'name', name, 'rows', entry_rows, 'at', stored_at
              ) ORDER BY seq), '[]')::text
              FROM (
                SELECT * FROM trigate_event_entries WHERE network = ${network} AND seq > ${after} ORDER BY seq LIMIT ${maxRead}
              ) AS entries) AS entries
          FROM trigate_event_logs WHERE network = ${network}`,
          decodeTail
        ),
        ([tail]) => tail && { ...tail, begun: new Map(tail.begun.map(({ user, ...begun }) => [user, begun])) }
      ),
    want: (user, until) =>
      sql`INSERT INTO trigate_event_accounts (network, account, wanted_until) VALUES (${network}, ${user}, ${until})
            ON CONFLICT (network, account) DO UPDATE SET wanted_until = excluded.wanted_until`,
    wanted: (at) =>
      Effect.map(
        Effect.flatMap(
          sql`SELECT account FROM trigate_event_accounts WHERE network = ${network} AND wanted_until > ${at} ORDER BY account`,
          decodeAccounts
        ),
        (rows) => rows.map(({ account }) => account)
      )
  }
  const database: Database = { statements, step }
  return database
})

/** Makes the event store of one replica over a database. */
export const make = (
  { statements, step }: Database,
  bounds = EventStore.defaultBounds
): EventStore.EventStore["Service"] => {
  const clock = EventStore.makeStoreClock()
  return EventStore.EventStore.of({
    backing: "Postgres",
    lease: (owner) => Effect.flatMap(step(statements.lease(owner)), clock.set),
    release: (token) => Effect.asVoid(step(statements.release(token))),
    append: Effect.fnUntraced(function*(token, after, entries, dropped) {
      const at = yield* clock.now
      const appended = yield* step(statements.append({ token, after, at, bounds, entries, dropped }))
      if (appended === undefined) return yield* new EventStore.LeaseLost()
      return { ...appended, at }
    }),
    readAfter: Effect.fnUntraced(function*(after) {
      const tail = yield* step(statements.readAfter(after))
      if (tail === undefined) {
        return yield* new EventStore.EventStoreUnavailable({ detail: "the database contains no event log" })
      }
      return { ...tail, entries: tail.entries.map(EventStore.restored) }
    }),
    want: (user) =>
      Effect.flatMap(
        clock.now,
        (at) => Effect.asVoid(step(statements.want(user, at + EventStore.wantFor)))
      ),
    wanted: Effect.flatMap(clock.now, (at) => step(statements.wanted(at)))
  })
}

/**
 * Provides the event log in the Postgres of the context. Creates its tables on first use.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { PgClient } from "@effect/sql-pg"
 * import { EventStoreSql } from "@trigate/trading"
 * import { Layer, Redacted } from "effect"
 *
 * export const shared = Layer.provide(
 *   EventStoreSql.layer(),
 *   PgClient.layer({ url: Redacted.make("postgres://localhost/trigate") })
 * )
 * ```
 */
export const layer = (
  { bounds, network = "mainnet" }: Options = {}
): Layer.Layer<EventStore.EventStore, never, SqlClient.SqlClient> =>
  Layer.effect(EventStore.EventStore, Effect.map(openDatabase(network), (database) => make(database, bounds)))
