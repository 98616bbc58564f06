/**
 * The tables of the action log in a SQL database, and the SQL statements that read and write the entries of one
 * network.
 *
 * A migration only adds tables and columns, so that replicas of the preceding version can continue during a rolling
 * update.
 */
import type { ActionReference } from "@trigate/domain/actions/ActionRecord"
import { Settled } from "@trigate/domain/actions/ActionRecord"
import { Address } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import * as SqlStep from "@trigate/domain/SqlStep"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as ActionLog from "../../actionLog/ActionLog.ts"
import * as ActionLogQuota from "../../actionLog/ActionLogQuota.ts"
import * as ActionTrace from "../../actionLog/ActionTrace.ts"
import * as LoggedAction from "../../actionLog/LoggedAction.ts"

const createTable = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const bytes = sql.literal(sql.onDialectOrElse({ sqlite: () => "BLOB", orElse: () => "BYTEA" }))
  // the claimant is the signer, or the fingerprint if the signer is unknown; the body is stored until the action is
  // settled
  yield* sql`CREATE TABLE trigate_actions (
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
  )`
  yield* sql`CREATE INDEX trigate_actions_unanswered ON trigate_actions (network, expires_at, size, state)
    WHERE body IS NOT NULL`
  yield* sql`CREATE INDEX trigate_actions_answered ON trigate_actions (network, expires_at) WHERE body IS NULL`
})

const divideActions = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE trigate_actions ADD COLUMN part TEXT NOT NULL DEFAULT 'familiar'`
  yield* sql`ALTER TABLE trigate_actions ADD COLUMN caller TEXT NOT NULL DEFAULT ''`
  // the signers with an accepted action
  yield* sql`CREATE TABLE trigate_signers (
    network TEXT NOT NULL,
    signer TEXT NOT NULL,
    accepted_at BIGINT NOT NULL,
    PRIMARY KEY (network, signer)
  )`
  yield* sql`INSERT INTO trigate_signers (network, signer, accepted_at)
    SELECT network, claimant, MAX(opened_at) FROM trigate_actions WHERE state = 'accepted' GROUP BY network, claimant`
})

// replicas of the preceding version neither write nor read the added columns
const settleActions = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  // how the outcome was determined, as JSON
  yield* sql`ALTER TABLE trigate_actions ADD COLUMN settled TEXT`
  yield* sql`ALTER TABLE trigate_actions ADD COLUMN look_up_at BIGINT NOT NULL DEFAULT 0`
  yield* sql`CREATE INDEX trigate_actions_fingerprint ON trigate_actions (network, fingerprint)`
  yield* sql`CREATE TABLE trigate_action_cloids (
    network TEXT NOT NULL,
    cloid TEXT NOT NULL,
    claimant TEXT NOT NULL,
    nonce BIGINT NOT NULL,
    PRIMARY KEY (network, cloid, claimant, nonce)
  )`
})

// the account for which an action was signed; empty for the signer's own, null if the preceding version wrote the row
const addVaults = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE trigate_actions ADD COLUMN vault TEXT`
})

/** Creates the tables. If they are from an earlier version of the gateway, adds the missing tables and columns. */
export const migrate = Migrator.make({})({
  loader: Migrator.fromRecord({
    "0002_create_actions": createTable,
    "0003_divide_actions": divideActions,
    "0004_settle_actions": settleActions,
    "0005_add_vaults": addVaults
  }),
  table: "trigate_migrations"
})

const decodeInserted = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({ sendings: SqlStep.BigintColumn })))
const decodeStanding = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  state: Schema.Literals(["sent", "accepted", "rejected", "unknown", "forgotten"]),
  fingerprint: Schema.String,
  leaseUntil: SqlStep.BigintColumn,
  expiresAt: SqlStep.BigintColumn
})))
const decodeHoldings = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  part: Schema.Literals(["familiar", "strangers"]),
  holder: Schema.String,
  count: SqlStep.BigintColumn,
  bytes: SqlStep.BigintColumn,
  unknown: SqlStep.BigintColumn,
  oldestUnknown: Schema.NullOr(SqlStep.BigintColumn),
  firstExpiry: SqlStep.BigintColumn
})))
const decodeListed = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  claimant: Schema.String,
  nonce: SqlStep.BigintColumn,
  fingerprint: Schema.String,
  actionType: Schema.String,
  body: Schema.Uint8Array,
  openedAt: SqlStep.BigintColumn,
  leaseUntil: SqlStep.BigintColumn,
  state: Schema.Literals(["sent", "unknown"])
})))
const SettledText = Schema.NullOr(Schema.fromJsonString(Settled))
const decodeFound = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  claimant: Schema.String,
  nonce: SqlStep.BigintColumn,
  fingerprint: Schema.String,
  state: Schema.Literals(["sent", "accepted", "rejected", "unknown", "forgotten"]),
  leaseUntil: SqlStep.BigintColumn,
  body: Schema.NullOr(Schema.Uint8Array),
  settled: SettledText,
  vault: Schema.NullOr(Schema.String)
})))
const decodeTaken = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  claimant: Schema.String,
  nonce: SqlStep.BigintColumn,
  fingerprint: Schema.String,
  openedAt: SqlStep.BigintColumn,
  body: Schema.Uint8Array
})))
const decodeDue = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  claimant: Schema.String,
  nonce: SqlStep.BigintColumn,
  openedAt: SqlStep.BigintColumn,
  lookUpAt: SqlStep.BigintColumn
})))
const isAddress = Schema.is(Address)

/** Encodes, as JSON, how the outcome of an action was determined; `null` if there is nothing to record. */
const printSettled = (settled: Settled | undefined): string | null =>
  settled === undefined ? null : Json.stringify(settled)

const toIdentity = ({ claimant, fingerprint, nonce }: { claimant: string; fingerprint: string; nonce: number }) => ({
  fingerprint,
  nonce,
  ...(isAddress(claimant) ? { signer: claimant } : {})
})

/** Makes the SQL statements for the entries of one network, valid in SQLite and Postgres. */
export const make = (sql: SqlClient.SqlClient, network: string) => {
  const ours = sql`network = ${network}`
  const entry = (sending: LoggedAction.Sending) =>
    sql`${ours} AND claimant = ${LoggedAction.claimantId(sending)} AND nonce = ${sending.nonce}`
  const held = (sending: LoggedAction.Sending, token: string) =>
    sql`${entry(sending)} AND token = ${token} AND state = 'sent'`

  /** Stores the client order IDs of an action, so that `find` can look up the action by them. */
  const noteCloids = (
    { claimant, nonce }: { readonly claimant: string; readonly nonce: number },
    cloids: ReadonlyArray<string>
  ): Effect.Effect<unknown, SqlError> => {
    const rows: ReadonlyArray<Record<string, unknown>> = cloids.map((cloid) => ({ network, cloid, claimant, nonce }))
    return Arr.isReadonlyArrayNonEmpty(rows)
      ? sql`INSERT INTO trigate_action_cloids ${sql.insert(rows)} ON CONFLICT DO NOTHING`
      : Effect.void
  }

  return {
    /**
     * Inserts an action. If the log already has an action with equal signed content, and no process is sending that
     * action, marks it as sent by this process. Returns no database row if neither is possible.
     */
    insert: (
      sending: LoggedAction.Sending,
      part: ActionLogQuota.Part,
      token: string,
      now: number,
      lease: number,
      keep: number
    ) =>
      Effect.flatMap(
        sql`INSERT INTO trigate_actions ${
          sql.insert({
            network,
            claimant: LoggedAction.claimantId(sending),
            part,
            caller: sending.caller,
            nonce: sending.nonce,
            fingerprint: sending.fingerprint,
            action_type: sending.actionType,
            vault: sending.trace?.vault ?? "",
            body: sending.body,
            size: sending.body.length,
            state: "sent",
            sendings: 1,
            token,
            opened_at: now,
            lease_until: now + lease,
            expires_at: LoggedAction.expiryTime(sending.nonce, now, keep)
          })
        }
        ON CONFLICT (network, claimant, nonce) DO UPDATE SET
          state = 'sent', sendings = trigate_actions.sendings + 1, token = excluded.token,
          lease_until = excluded.lease_until, expires_at = excluded.expires_at
        WHERE trigate_actions.fingerprint = excluded.fingerprint
          AND trigate_actions.expires_at > excluded.opened_at
          AND (trigate_actions.state = 'unknown' OR (trigate_actions.state = 'sent'
            AND (trigate_actions.lease_until <= excluded.opened_at
              OR trigate_actions.claimant = trigate_actions.fingerprint)))
        RETURNING sendings`,
        decodeInserted
      ),
    standing: (sending: LoggedAction.Sending) =>
      Effect.flatMap(
        sql`SELECT state, fingerprint, lease_until AS "leaseUntil", expires_at AS "expiresAt"
          FROM trigate_actions WHERE ${entry(sending)}`,
        decodeStanding
      ),
    settle: (
      sending: LoggedAction.Sending,
      token: string,
      remains: LoggedAction.Remains,
      settled: Settled | undefined
    ): Effect.Effect<unknown, SqlError> => {
      if (remains === "gone") return sql`DELETE FROM trigate_actions WHERE ${held(sending, token)}`
      if (remains === "unknown") return sql`UPDATE trigate_actions SET state = 'unknown' WHERE ${held(sending, token)}`
      if (remains === "accepted") {
        return sql`UPDATE trigate_actions SET state = 'accepted', part = 'familiar', body = NULL, size = 0,
            settled = ${printSettled(settled)}
          WHERE ${held(sending, token)}`
      }
      return sql`UPDATE trigate_actions SET state = ${remains}, body = NULL, size = 0, settled = ${
        printSettled(settled)
      } WHERE ${held(sending, token)}`
    },
    /** Reverts an insert that may have been executed after its caller stopped waiting. */
    withdraw: (sending: LoggedAction.Sending, token: string) =>
      Effect.andThen(
        sql`DELETE FROM trigate_actions WHERE ${held(sending, token)} AND sendings = 1`,
        sql`UPDATE trigate_actions SET state = 'unknown' WHERE ${held(sending, token)}`
      ),
    /** Drops expired actions. Returns the number of dropped actions whose outcome was not known yet. */
    dropExpired: Effect.fnUntraced(function*(now: number) {
      yield* sql`DELETE FROM trigate_actions WHERE ${ours} AND body IS NULL AND expires_at <= ${now}`
      const gone = yield* sql`DELETE FROM trigate_actions
        WHERE ${ours} AND body IS NOT NULL AND expires_at <= ${now} RETURNING nonce`
      return gone.length
    }),
    /**
     * Drops the oldest settled actions in one part of the log (known or unknown signers), so that at most `limit`
     * settled actions remain in that part.
     */
    dropAnswered: (part: ActionLogQuota.Part, limit: number) =>
      sql`DELETE FROM trigate_actions WHERE ${ours} AND part = ${part} AND body IS NULL AND expires_at <= (
        SELECT expires_at FROM trigate_actions WHERE ${ours} AND part = ${part} AND body IS NULL
        ORDER BY expires_at DESC LIMIT 1 OFFSET ${limit})`,
    isKnown: (signer: Address) =>
      Effect.map(
        sql`SELECT 1 FROM trigate_signers WHERE ${ours} AND signer = ${signer.toLowerCase()}`,
        (rows) => rows.length > 0
      ),
    know: (signer: Address, now: number) =>
      sql`INSERT INTO trigate_signers ${sql.insert({ network, signer: signer.toLowerCase(), accepted_at: now })}
        ON CONFLICT (network, signer) DO UPDATE SET accepted_at = excluded.accepted_at`,
    dropSigners: (now: number) =>
      sql`DELETE FROM trigate_signers WHERE ${ours} AND (accepted_at <= ${
        now - ActionLogQuota.knownFor
      } OR accepted_at <= (
        SELECT accepted_at FROM trigate_signers WHERE ${ours}
        ORDER BY accepted_at DESC LIMIT 1 OFFSET ${ActionLogQuota.maxSigners}))`,
    forget: Effect.fnUntraced(function*(fingerprint: string) {
      const found = sql`${ours} AND body IS NOT NULL AND fingerprint = ${fingerprint}`
      const gone = yield* sql`DELETE FROM trigate_actions WHERE ${found} AND claimant = fingerprint RETURNING nonce`
      const kept = yield* sql`UPDATE trigate_actions SET state = 'forgotten', body = NULL, size = 0
        WHERE ${found} RETURNING nonce`
      return gone.length + kept.length > 0
    }),
    noteCloids,
    dropCloids: sql`DELETE FROM trigate_action_cloids WHERE ${ours} AND NOT EXISTS (
      SELECT 1 FROM trigate_actions WHERE trigate_actions.network = trigate_action_cloids.network
        AND trigate_actions.claimant = trigate_action_cloids.claimant
        AND trigate_actions.nonce = trigate_action_cloids.nonce)`,
    find: (reference: ActionReference, now: number) => {
      const named = "id" in reference
        ? sql`fingerprint = ${reference.id}`
        : "cloid" in reference
        ? sql`(claimant, nonce) IN (SELECT claimant, nonce FROM trigate_action_cloids
            WHERE ${ours} AND cloid = ${reference.cloid.toLowerCase()})
            ${reference.signer === undefined ? sql`` : sql`AND claimant = ${reference.signer.toLowerCase()}`}`
        : sql`claimant = ${reference.signer.toLowerCase()} AND nonce = ${reference.nonce}`
      return Effect.map(
        Effect.flatMap(
          sql`SELECT claimant, nonce, fingerprint, state, lease_until AS "leaseUntil", body, settled, vault
            FROM trigate_actions WHERE ${ours} AND ${named} AND expires_at > ${now} LIMIT ${LoggedAction.mostFound}`,
          decodeFound
        ),
        (rows) =>
          rows.map(({ body, leaseUntil, settled, state, vault, ...row }): LoggedAction.Recorded => {
            const expiresAfter = body === null ? undefined : ActionTrace.read(body).expiresAfter
            return LoggedAction.recordedFrom({
              ...toIdentity(row),
              state: state === "sent" && leaseUntil <= now ? "unknown" : state,
              settled: settled ?? undefined,
              expiresAfter,
              vault: vault ?? undefined
            })
          }).filter((each) => LoggedAction.isNamed(reference, each))
      )
    },
    /**
     * Reserves and returns the actions of unknown outcome whose lookup at the venue is due. Concurrent calls never
     * return an action twice.
     */
    takeUnknown: Effect.fnUntraced(function*(now: number) {
      const isUnknown = sql`(state = 'unknown' OR (state = 'sent' AND lease_until <= ${now}))`
      const due = yield* Effect.flatMap(
        sql`SELECT claimant, nonce, opened_at AS "openedAt", look_up_at AS "lookUpAt" FROM trigate_actions
          WHERE ${ours} AND body IS NOT NULL AND ${isUnknown} AND look_up_at <= ${now} AND expires_at > ${now}
          ORDER BY look_up_at, opened_at LIMIT ${ActionLog.lookupsAtOnce}`,
        decodeDue
      )
      const taken = yield* Effect.forEach(due, ({ claimant, lookUpAt, nonce, openedAt }) =>
        Effect.flatMap(
          sql`UPDATE trigate_actions SET look_up_at = ${LoggedAction.nextLookup(openedAt, now)}
            WHERE ${ours} AND claimant = ${claimant} AND nonce = ${nonce} AND look_up_at = ${lookUpAt}
              AND body IS NOT NULL AND ${isUnknown}
            RETURNING claimant, nonce, fingerprint, opened_at AS "openedAt", body`,
          decodeTaken
        ))
      const unsettled = taken.flat().map(({ body, claimant, ...row }) => ({
        claimant,
        cloids: ActionTrace.cloids(ActionTrace.read(body)),
        action: {
          ...toIdentity({ claimant, ...row }),
          openedAt: row.openedAt,
          trace: ActionTrace.read(body)
        } satisfies LoggedAction.Unsettled
      }))
      // replicas of the preceding version do not store client order IDs
      yield* Effect.forEach(
        unsettled,
        ({ action, claimant, cloids }) => noteCloids({ claimant, nonce: action.nonce }, cloids),
        { discard: true }
      )
      return unsettled.map(({ action }) => action)
    }),
    conclude: (fingerprint: string, conclusion: LoggedAction.Conclusion, now: number) =>
      Effect.map(
        sql`UPDATE trigate_actions SET state = ${LoggedAction.storedState(conclusion)}, body = NULL, size = 0,
            settled = ${printSettled(conclusion.settled)}
          WHERE ${ours} AND fingerprint = ${fingerprint} AND claimant <> fingerprint AND body IS NOT NULL
            AND (state = 'unknown' OR (state = 'sent' AND lease_until <= ${now}))
          RETURNING nonce`,
        (rows) => rows.length > 0
      ),
    /** Marks as `unknown` the actions that an earlier, ended process of this gateway left in state `sent`. */
    orphan: sql`UPDATE trigate_actions SET state = 'unknown' WHERE ${ours} AND state = 'sent'`,
    /**
     * Counts the unanswered actions and their bytes, by signer or caller. An action whose lease (the time limit for its
     * process to record the outcome) has ended counts as unknown.
     */
    holdings: (now: number) => {
      const unknown = sql`state = 'unknown' OR lease_until <= ${now}`
      return Effect.flatMap(
        sql`SELECT part, CASE part WHEN 'familiar' THEN claimant ELSE caller END AS holder, COUNT(*) AS count,
            SUM(size) AS bytes, SUM(CASE WHEN ${unknown} THEN 1 ELSE 0 END) AS unknown,
            MIN(CASE WHEN ${unknown} THEN opened_at END) AS "oldestUnknown", MIN(expires_at) AS "firstExpiry"
          FROM trigate_actions WHERE ${ours} AND body IS NOT NULL GROUP BY 1, 2`,
        decodeHoldings
      )
    },
    list: (now: number) =>
      Effect.map(
        Effect.flatMap(
          sql`SELECT claimant, nonce, fingerprint, action_type AS "actionType", body, opened_at AS "openedAt",
              lease_until AS "leaseUntil", state
            FROM trigate_actions WHERE ${ours} AND body IS NOT NULL ORDER BY opened_at, fingerprint`,
          decodeListed
        ),
        (rows) =>
          rows.map(({ claimant, leaseUntil, state, ...rest }): LoggedAction.Unanswered => ({
            ...rest,
            ...(isAddress(claimant) ? { signer: claimant } : {}),
            state: leaseUntil > now ? state : "unknown"
          }))
      )
  }
}
