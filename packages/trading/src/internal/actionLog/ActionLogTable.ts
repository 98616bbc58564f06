/**
 * The tables of the action log in a SQL database.
 *
 * A migration only adds tables and columns, so that replicas of the preceding version can continue during a rolling
 * update.
 */
import * as Effect from "effect/Effect"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"

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
