/**
 * `ActionLog` in a SQL database, SQLite or Postgres: an action is on disk before its first byte is sent.
 *
 * The primary key (network, claimant, nonce) lets only one replica claim a nonce, so a Postgres is all that replicas
 * need to share. Every step has a deadline. While the database is unreachable, signed actions are refused and nothing
 * is sent.
 *
 * A migration only adds tables and columns, so that replicas of the preceding version can continue during a rolling
 * update.
 */
import { Settled } from "@trigate/domain/actions/ActionOutcome"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as SharedStore from "@trigate/stores/unstable/SharedStore"
import * as SqlStore from "@trigate/stores/unstable/SqlStore"
import * as Arr from "effect/Array"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as SqlClient from "effect/sql/SqlClient"
import * as ActionLog from "./ActionLog.ts"
import * as LoggedAction from "./LoggedAction.ts"

/** The retention limits, and the timeouts of the database. */
export interface Options extends ActionLog.Options {
  /** A name that separates the action logs of several networks in one database. Default: `mainnet`. */
  readonly network?: string
  /**
   * The time after which an unsettled `sent` action becomes `unknown`. It must exceed the duration of an attempt.
   * Default: 1 minute.
   */
  readonly lease?: ActionLog.Lease
  /** Timeout of one step in the database. Default: 1 second. */
  readonly deadline?: Duration.Input
  /**
   * Time between two counts of the unanswered actions, for the gauges. A count includes actions of crashed replicas.
   * Default: 15 seconds.
   */
  readonly countEvery?: Duration.Input
}

const createTable = (bytes: string) => [
  // the claimant is the signer, or the fingerprint if the signer is unknown; the body is stored until the action is
  // settled
  `CREATE TABLE trigate_actions (
    network TEXT NOT NULL,
    claimant TEXT NOT NULL,
    nonce BIGINT NOT NULL,
    fingerprint TEXT NOT NULL,
    action_type TEXT NOT NULL,
    body ${bytes},
    size INTEGER NOT NULL,
    state TEXT NOT NULL,
    sendings INTEGER NOT NULL,
    token TEXT NOT NULL,
    opened_at BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (network, claimant, nonce)
  )`,
  `CREATE INDEX trigate_actions_unanswered ON trigate_actions (network, expires_at, size, state)
    WHERE body IS NOT NULL`,
  "CREATE INDEX trigate_actions_answered ON trigate_actions (network, expires_at) WHERE body IS NULL"
]

const divideActions = [
  "ALTER TABLE trigate_actions ADD COLUMN part TEXT NOT NULL DEFAULT 'familiar'",
  "ALTER TABLE trigate_actions ADD COLUMN caller TEXT NOT NULL DEFAULT ''",
  // the signers with an accepted action
  `CREATE TABLE trigate_signers (
    network TEXT NOT NULL,
    signer TEXT NOT NULL,
    accepted_at BIGINT NOT NULL,
    PRIMARY KEY (network, signer)
  )`,
  `INSERT INTO trigate_signers (network, signer, accepted_at)
    SELECT network, claimant, MAX(opened_at) FROM trigate_actions WHERE state = 'accepted' GROUP BY network, claimant`
]

// replicas of the preceding version neither write nor read the added columns
const settleActions = [
  // how the outcome was determined, as JSON
  "ALTER TABLE trigate_actions ADD COLUMN settled TEXT",
  "ALTER TABLE trigate_actions ADD COLUMN look_up_at BIGINT NOT NULL DEFAULT 0",
  "CREATE INDEX trigate_actions_fingerprint ON trigate_actions (network, fingerprint)",
  `CREATE TABLE trigate_action_cloids (
    network TEXT NOT NULL,
    cloid TEXT NOT NULL,
    claimant TEXT NOT NULL,
    nonce BIGINT NOT NULL,
    PRIMARY KEY (network, cloid, claimant, nonce)
  )`
]

// the account for which an action was signed; empty for the signer's own, null if the preceding version wrote the row
const addVaults = ["ALTER TABLE trigate_actions ADD COLUMN vault TEXT"]

const State = Schema.Literals(LoggedAction.states)
const decodeInserted = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({ sendings: SqlStore.BigintColumn })))
const decodeCounted = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  part: Schema.Literals(["familiar", "strangers"]),
  owner: Schema.String,
  count: SqlStore.BigintColumn,
  bytes: SqlStore.BigintColumn,
  unknown: SqlStore.BigintColumn,
  oldestUnknown: Schema.NullOr(SqlStore.BigintColumn),
  firstExpiry: SqlStore.BigintColumn
})))
const Found = Schema.Struct({
  claimant: Schema.String,
  nonce: SqlStore.BigintColumn,
  fingerprint: Schema.String,
  state: State,
  token: Schema.String,
  attempts: SqlStore.BigintColumn,
  openedAt: SqlStore.BigintColumn,
  leaseUntil: SqlStore.BigintColumn,
  expiresAt: SqlStore.BigintColumn,
  lookUpAt: SqlStore.BigintColumn,
  actionType: Schema.String,
  body: Schema.NullOr(Schema.Uint8Array),
  settled: Schema.NullOr(Schema.fromJsonString(Settled)),
  vault: Schema.NullOr(Schema.String)
})
const decodeFound = Schema.decodeUnknownEffect(Schema.Array(Found))
const isAddress = Schema.is(Encoding.Address)

const entryFrom = ({ body, claimant, settled, vault, ...row }: typeof Found.Type): LoggedAction.Entry => ({
  ...row,
  signer: isAddress(claimant) ? claimant : undefined,
  ...(body === null ? {} : { body, trace: LoggedAction.readTrace(body) }),
  settled: settled ?? undefined,
  vault: vault ?? undefined
})

/** The default timeout of one step in the database. */
export const defaultDeadline = "1 second"

const hasRows = (rows: ReadonlyArray<unknown>): boolean => rows.length > 0

/** The statements of an action log. Each of them is atomic, except that only the first part of an insertion is. */
export interface Statements
  extends
    Pick<ActionLog.Driver<SqlStore.SqlFault>, "count" | "find" | "insert" | "isKnown" | "know" | "trim" | "update">
{
  /** Succeeds if the database is reachable. */
  readonly ping: Effect.Effect<unknown, SqlStore.SqlFault>
}

/** A database with the tables of an action log. */
export interface Database {
  readonly isFile: boolean
  readonly statements: Statements
  /** Runs statements within the deadline. Fails with the reason. */
  readonly step: <A>(
    statements: Effect.Effect<A, SqlStore.SqlFault>,
    afterwards?: Effect.Effect<void>
  ) => Effect.Effect<A, string>
}

/** Converts a failed step to the reason why the log cannot be used. */
export const toReason = ({ detail, reason, tag }: SqlStore.StepFault): string =>
  reason === "away" ? `is unreachable (${detail})` : `is not readable (${tag})`

/** Opens the action log in the database of the context. `prepare`: whether to create the tables on first use. */
export const openDatabase = Effect.fnUntraced(function*(options: Options, prepare: boolean) {
  const network = options.network ?? "mainnet"
  const { isFile, sql, step } = yield* SqlStore.make({
    table: "trigate_migrations",
    ...(prepare
      ? {
        migrations: (bytes) => ({
          "0002_create_actions": createTable(bytes),
          "0003_divide_actions": divideActions,
          "0004_settle_actions": settleActions,
          "0005_add_vaults": addVaults
        }),
        // an earlier, ended process of this gateway left these actions in its file
        prepare: (sql, isFile) =>
          isFile
            ? sql`UPDATE trigate_actions SET state = 'unknown' WHERE network = ${network} AND state = 'sent'`
            : Effect.void
      }
      : {}),
    deadline: options.deadline ?? defaultDeadline,
    toError: toReason
  })

  const ours = sql`network = ${network}`
  const at = ({ claimant, nonce }: LoggedAction.EntryKey) =>
    sql`${ours} AND claimant = ${claimant} AND nonce = ${nonce}`
  const meets = ({ fingerprint, lookUpAt, now, states, token }: LoggedAction.Guard) =>
    sql.and([
      now === undefined
        ? sql`trigate_actions.state IN ${sql.in(states)}`
        : sql`CASE WHEN trigate_actions.state = 'sent' AND trigate_actions.lease_until <= ${now} THEN 'unknown'
            ELSE trigate_actions.state END IN ${sql.in(states)}`,
      ...(fingerprint === undefined ? [] : [sql`trigate_actions.fingerprint = ${fingerprint}`]),
      ...(token === undefined ? [] : [sql`trigate_actions.token = ${token}`]),
      ...(lookUpAt === undefined ? [] : [sql`trigate_actions.look_up_at = ${lookUpAt}`])
    ])

  /** Stores the client order IDs of an action, so that `find` can look up the action by them. */
  const noteCloids = (
    { claimant, nonce }: LoggedAction.EntryKey,
    trace: LoggedAction.ActionTrace | undefined
  ): Effect.Effect<unknown, SqlStore.SqlFault> => {
    const cloids = trace === undefined ? [] : LoggedAction.listCloids(trace)
    const rows: ReadonlyArray<Record<string, unknown>> = cloids.map((cloid) => ({ network, cloid, claimant, nonce }))
    return Arr.isReadonlyArrayNonEmpty(rows)
      ? sql`INSERT INTO trigate_action_cloids ${sql.insert(rows)} ON CONFLICT DO NOTHING`
      : Effect.void
  }

  const select = (selection: ActionLog.Selection, now: number) => {
    if ("key" in selection) return at(selection.key)
    if ("open" in selection) {
      const { open } = selection
      return sql`${ours} AND body IS NOT NULL ${open === "all" ? sql`` : sql`AND fingerprint = ${open.fingerprint}`}
        ORDER BY opened_at, fingerprint`
    }
    if ("due" in selection) {
      return sql`${ours} AND body IS NOT NULL AND look_up_at <= ${now} AND expires_at > ${now}
        AND ${meets({ states: ["unknown"], now })} ORDER BY look_up_at, opened_at LIMIT ${ActionLog.lookupsAtOnce}`
    }
    const named = "id" in selection
      ? sql`fingerprint = ${selection.id}`
      : "cloid" in selection
      ? sql`(claimant, nonce) IN (SELECT claimant, nonce FROM trigate_action_cloids
          WHERE ${ours} AND cloid = ${selection.cloid.toLowerCase()})
          ${selection.signer === undefined ? sql`` : sql`AND claimant = ${selection.signer.toLowerCase()}`}`
      : sql`claimant = ${selection.signer.toLowerCase()} AND nonce = ${selection.nonce}`
    return sql`${ours} AND ${named} AND expires_at > ${now} LIMIT ${LoggedAction.mostFound}`
  }

  const find = Effect.fnUntraced(function*(
    selection: ActionLog.Selection,
    now: number
  ): Effect.fn.Return<ReadonlyArray<LoggedAction.Entry>, SqlStore.SqlFault> {
    // a tool can list the actions of an earlier version, whose table lacks the later columns
    const later = "open" in selection
      ? sql`0 AS "lookUpAt", NULL AS settled, NULL AS vault`
      : sql`look_up_at AS "lookUpAt", settled, vault`
    const rows = yield* Effect.flatMap(
      sql`SELECT claimant, nonce, fingerprint, state, token, sendings AS attempts, opened_at AS "openedAt",
          lease_until AS "leaseUntil", expires_at AS "expiresAt", action_type AS "actionType", body, ${later}
        FROM trigate_actions WHERE ${select(selection, now)}`,
      decodeFound
    )
    const entries = rows.map(entryFrom)
    // replicas of the preceding version do not store client order IDs
    if ("due" in selection) {
      yield* Effect.forEach(entries, (entry) => noteCloids(LoggedAction.entryKey(entry), entry.trace), {
        discard: true
      })
    }
    return entries
  })

  const insert = Effect.fnUntraced(function*(
    { expiresAt, key, leaseUntil, now, part, sending, token }: ActionLog.Opening,
    guard: LoggedAction.Guard
  ) {
    const { actionType, body, caller, fingerprint, trace } = sending
    const row = {
      network,
      claimant: key.claimant,
      part,
      caller,
      nonce: key.nonce,
      fingerprint,
      action_type: actionType,
      vault: trace?.vault ?? "",
      body,
      size: body.length,
      state: "sent",
      sendings: 1,
      token,
      opened_at: now,
      lease_until: leaseUntil,
      expires_at: expiresAt
    }
    const [inserted] = yield* Effect.flatMap(
      sql`INSERT INTO trigate_actions ${sql.insert(row)}
        ON CONFLICT (network, claimant, nonce) DO UPDATE SET
          state = 'sent', sendings = trigate_actions.sendings + 1, token = excluded.token,
          lease_until = excluded.lease_until, expires_at = excluded.expires_at
        WHERE trigate_actions.expires_at > excluded.opened_at AND ${meets(guard)}
        RETURNING sendings`,
      decodeInserted
    )
    if (inserted === undefined) {
      const [standing] = yield* find({ key }, now)
      // an entry that was dropped in the meantime counts as expired
      return standing ?? { state: "forgotten" as const, fingerprint, leaseUntil: 0, expiresAt: 0 }
    }
    if (inserted.sendings > 1) return "repeat" as const
    yield* noteCloids(key, trace)
    return "new" as const
  })

  const update = (key: LoggedAction.EntryKey, guard: LoggedAction.Guard, change: ActionLog.Change) => {
    const entry = sql`${at(key)} AND ${meets(guard)} RETURNING nonce`
    if ("lookUpAt" in change) {
      const lookUpAt = change.lookUpAt ?? Number.MAX_SAFE_INTEGER
      return Effect.map(sql`UPDATE trigate_actions SET look_up_at = ${lookUpAt} WHERE ${entry}`, hasRows)
    }
    const { part, settled, state } = change
    if (state === "gone") return Effect.map(sql`DELETE FROM trigate_actions WHERE ${entry}`, hasRows)
    const settlement = settled === undefined ? null : Encoding.stringify(settled)
    const moved = part === undefined ? sql`` : sql`, part = ${part}`
    const ended = state === "sent" || state === "unknown"
      ? sql``
      : sql`, body = NULL, size = 0, settled = ${settlement}${moved}`
    return Effect.map(sql`UPDATE trigate_actions SET state = ${state}${ended} WHERE ${entry}`, hasRows)
  }

  const dropSettled = (part: LoggedAction.Part, limit: number) =>
    sql`DELETE FROM trigate_actions WHERE ${ours} AND part = ${part} AND body IS NULL AND expires_at <= (
      SELECT expires_at FROM trigate_actions WHERE ${ours} AND part = ${part} AND body IS NULL
      ORDER BY expires_at DESC LIMIT 1 OFFSET ${limit})`

  const trim = Effect.fnUntraced(function*(now: number, settled?: { readonly [P in LoggedAction.Part]: number }) {
    if (settled !== undefined) {
      yield* dropSettled("familiar", settled.familiar)
      yield* dropSettled("strangers", settled.strangers)
      yield* sql`DELETE FROM trigate_signers WHERE ${ours} AND (accepted_at <= ${now - LoggedAction.knownFor}
        OR accepted_at <= (SELECT accepted_at FROM trigate_signers WHERE ${ours}
          ORDER BY accepted_at DESC LIMIT 1 OFFSET ${LoggedAction.maxSigners}))`
    }
    yield* sql`DELETE FROM trigate_actions WHERE ${ours} AND body IS NULL AND expires_at <= ${now}`
    const gone = yield* sql`DELETE FROM trigate_actions
      WHERE ${ours} AND body IS NOT NULL AND expires_at <= ${now} RETURNING nonce`
    if (settled !== undefined) {
      yield* sql`DELETE FROM trigate_action_cloids WHERE ${ours} AND NOT EXISTS (
        SELECT 1 FROM trigate_actions WHERE trigate_actions.network = trigate_action_cloids.network
          AND trigate_actions.claimant = trigate_action_cloids.claimant
          AND trigate_actions.nonce = trigate_action_cloids.nonce)`
    }
    return gone.length
  })

  const statements: Statements = {
    insert,
    update,
    find,
    count: (now) => {
      const unknown = sql`state = 'unknown' OR lease_until <= ${now}`
      return Effect.flatMap(
        sql`SELECT part, CASE part WHEN 'familiar' THEN claimant ELSE caller END AS owner, COUNT(*) AS count,
            SUM(size) AS bytes, SUM(CASE WHEN ${unknown} THEN 1 ELSE 0 END) AS unknown,
            MIN(CASE WHEN ${unknown} THEN opened_at END) AS "oldestUnknown", MIN(expires_at) AS "firstExpiry"
          FROM trigate_actions WHERE ${ours} AND body IS NOT NULL GROUP BY 1, 2`,
        decodeCounted
      )
    },
    trim,
    isKnown: (signer) => Effect.map(sql`SELECT 1 FROM trigate_signers WHERE ${ours} AND signer = ${signer}`, hasRows),
    know: (signer, now) =>
      sql`INSERT INTO trigate_signers ${sql.insert({ network, signer, accepted_at: now })}
        ON CONFLICT (network, signer) DO UPDATE SET accepted_at = excluded.accepted_at`,
    ping: sql`SELECT 1`
  }
  const database: Database = { isFile, statements, step }
  return database
})

/** Makes the driver of an action log in a database. */
const makeDriver = (
  { isFile, statements: { ping, ...statements }, step }: Database,
  prepare: boolean
): ActionLog.Driver<SqlStore.SqlFault> => {
  const outage = SharedStore.makeOutage(ActionLog.metrics.actionLogDegraded.series({}), {
    away: (why: string) => Effect.logError(`Signed actions are refused: the action log ${why}`),
    back: Effect.logInfo("The action log is reachable again")
  })
  return {
    ...statements,
    backing: isFile ? "SQLite" : "Postgres",
    isLocal: false,
    find: (selection, now) =>
      "due" in selection && outage.isAway() ? Effect.succeed([]) : statements.find(selection, now),
    step,
    write: (operations, late = Effect.void) =>
      outage.observe(step(operations, late)).pipe(
        // the statement may have been executed even though the connection broke
        Effect.tapError(() => isFile ? Effect.void : late)
      ),
    ...(prepare ? { prepare: Effect.void } : {}),
    // a file that can be read may refuse writes, for example if the disk is full, so a successful read does not reset
    // the outage of a file
    isUp: Effect.map(
      Effect.isSuccess(isFile ? step(ping) : outage.observe(step(ping))),
      (responds) => responds && !outage.isAway()
    )
  }
}

/** Makes the action log over a database. `prepare`: whether the log sends actions, or only a tool reads it. */
export const make = Effect.fnUntraced(function*(options: Options, database: Database, prepare: boolean) {
  const { log } = yield* ActionLog.make(makeDriver(database, prepare), options)
  return ActionLog.ActionLog.of({ ...log, claim: Effect.fn("ActionLog.claim")(log.claim) })
})

/**
 * Provides the action log of a gateway. Creates its table.
 *
 * A SQLite file belongs to one gateway: actions that an earlier run left `sent` become `unknown` immediately. In
 * Postgres, which several replicas can share, they become `unknown` after the lease.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { SqliteClient } from "@trigate/archive"
 * import { ActionLog, ActionLogSql } from "@trigate/trading"
 * import { Console, Effect, Layer } from "effect"
 *
 * const log = Layer.provide(ActionLogSql.layer(), SqliteClient.layer({ file: "actions.sqlite", mode: "create" }))
 *
 * const program = ActionLog.ActionLog.use(({ unanswered }) => Effect.flatMap(unanswered, Console.log))
 *
 * await Effect.runPromise(Effect.provide(program, log))
 * ```
 * ```text
 * []
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<ActionLog.ActionLog, never, SqlClient.SqlClient> =>
  Layer.effect(
    ActionLog.ActionLog,
    Effect.flatMap(openDatabase(options, true), (database) => make(options, database, true))
  )

/**
 * Provides the action log for a tool that does not send actions, such as `trigate actions`. Creates no table, and
 * changes an entry only if the tool calls `forget` or `conclude`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerExisting = (options: Options = {}): Layer.Layer<ActionLog.ActionLog, never, SqlClient.SqlClient> =>
  Layer.effect(
    ActionLog.ActionLog,
    Effect.flatMap(openDatabase(options, false), (database) => make(options, database, false))
  )
