/** The journal's table, and the statements on it that SQLite and Postgres both take. */
import { Address } from "@trigate/domain/Hex"
import { Millis } from "@trigate/domain/Time"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Sending, Settlement, Unanswered } from "./Journal.ts"
import { idOf } from "./Journal.ts"

/** One sending: `token` tells it from other sendings of the same bytes. */
export interface Row extends Sending {
  readonly token: string
  readonly openedAt: number
  /** Until when an answer may still come. */
  readonly leaseUntil: number
}

const createJournal = Effect.flatMap(SqlClient.SqlClient, (sql) => {
  const bytes = sql.literal(sql.onDialectOrElse({ sqlite: () => "BLOB", orElse: () => "BYTEA" }))
  return sql`CREATE TABLE trigate_journal (
    network TEXT NOT NULL,
    id TEXT NOT NULL,
    signer TEXT,
    nonce BIGINT NOT NULL,
    action_type TEXT NOT NULL,
    body ${bytes} NOT NULL,
    size INTEGER NOT NULL,
    opened_at BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    state TEXT NOT NULL,
    doubtful INTEGER NOT NULL,
    token TEXT NOT NULL,
    PRIMARY KEY (network, id)
  )`
})

/** Creates what is missing. */
export const migrate = Migrator.make({})({
  loader: Migrator.fromRecord({ "0001_create_journal": Effect.asVoid(createJournal) }),
  table: "trigate_migrations"
})

const Found = Schema.Struct({
  id: Schema.String,
  signer: Schema.NullOr(Address),
  nonce: Millis,
  actionType: Schema.String,
  body: Schema.Uint8Array,
  openedAt: Millis,
  leaseUntil: Millis,
  state: Schema.Literals(["inFlight", "unknown"])
})

const decodeFound = Schema.decodeUnknownEffect(Schema.Array(Found))
const decodeCount = Schema.decodeUnknownEffect(Schema.Tuple([Schema.Struct({ count: Schema.Natural })]))
const decodeWritten = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({ doubtful: Schema.Literals([0, 1]) })))

/** The statements on the entries of one network. */
export const make = (sql: SqlClient.SqlClient, network: string) => {
  const forget = (id: string) => sql`DELETE FROM trigate_journal WHERE network = ${network} AND id = ${id} RETURNING id`
  const doubt = (id: string, token: string) =>
    sql`UPDATE trigate_journal SET state = 'unknown' WHERE network = ${network} AND id = ${id} AND token = ${token}`
  const withdraw = (id: string, token: string) =>
    sql`DELETE FROM trigate_journal WHERE network = ${network} AND id = ${id} AND token = ${token} AND doubtful = 0`

  const settlements: {
    readonly [S in Settlement]: (id: string, token: string) => Effect.Effect<unknown, SqlError>
  } = {
    decided: forget,
    unknown: doubt,
    // what was in doubt before this sending stays so
    notTaken: (id, token) => Effect.andThen(withdraw(id, token), doubt(id, token))
  }

  return {
    /** Writes a sending down; `full` where the bounds forbid it, `doubtful` where the same bytes were there already. */
    insert: (row: Row, limits: { readonly capacity: number; readonly maxBytes: number }) => {
      const id = idOf(row)
      const values = sql.csv([
        sql`CAST(${network} AS TEXT)`,
        sql`CAST(${id} AS TEXT)`,
        sql`CAST(${row.signer ?? null} AS TEXT)`,
        sql`CAST(${row.nonce} AS BIGINT)`,
        sql`CAST(${row.actionType} AS TEXT)`,
        sql`${row.body}`,
        sql`CAST(${row.body.length} AS INTEGER)`,
        sql`CAST(${row.openedAt} AS BIGINT)`,
        sql`CAST(${row.leaseUntil} AS BIGINT)`,
        sql`'inFlight'`,
        sql`0`,
        sql`CAST(${row.token} AS TEXT)`
      ])
      const mine = sql`network = ${network}`
      const written = Effect.flatMap(
        sql`INSERT INTO trigate_journal
            (network, id, signer, nonce, action_type, body, size, opened_at, lease_until, state, doubtful, token)
          SELECT ${values}
          WHERE EXISTS (SELECT 1 FROM trigate_journal WHERE ${mine} AND id = ${id})
            OR (SELECT COUNT(*) < CAST(${limits.capacity} AS BIGINT)
                AND COALESCE(SUM(size), 0) + CAST(${row.body.length} AS BIGINT) <= CAST(${limits.maxBytes} AS BIGINT)
              FROM trigate_journal WHERE ${mine})
          ON CONFLICT (network, id) DO UPDATE SET
            state = 'inFlight', doubtful = 1, token = excluded.token, lease_until = excluded.lease_until
          RETURNING doubtful`,
        decodeWritten
      )
      return Effect.map(written, ([first]) => first === undefined ? "full" : first.doubtful === 1 ? "doubtful" : "new")
    },
    settle: (id: string, token: string, settlement: Settlement) => settlements[settlement](id, token),
    /** Drops the entries whose nonce is older; how many there were. */
    prune: (nonce: number) =>
      Effect.map(
        sql`DELETE FROM trigate_journal WHERE network = ${network} AND nonce <= ${nonce} RETURNING id`,
        (gone) => gone.length
      ),
    forget: (id: string) => Effect.map(forget(id), (gone) => gone.length > 0),
    /** What another run left open is of a dead process. */
    orphan: sql`UPDATE trigate_journal SET state = 'unknown' WHERE network = ${network} AND state = 'inFlight'`,
    countUnknown: Effect.map(
      Effect.flatMap(
        sql`SELECT CAST(COUNT(*) AS DOUBLE PRECISION) AS count FROM trigate_journal WHERE network = ${network} AND state = 'unknown'`,
        decodeCount
      ),
      ([{ count }]) => count
    ),
    list: (now: number) =>
      Effect.map(
        Effect.flatMap(
          sql`SELECT id, signer, CAST(nonce AS DOUBLE PRECISION) AS nonce, action_type AS "actionType", body,
              CAST(opened_at AS DOUBLE PRECISION) AS "openedAt", CAST(lease_until AS DOUBLE PRECISION) AS "leaseUntil",
              state
            FROM trigate_journal WHERE network = ${network} ORDER BY opened_at, id`,
          decodeFound
        ),
        (rows) =>
          rows.map(({ leaseUntil, signer, state, ...rest }): Unanswered => ({
            ...rest,
            ...(signer === null ? {} : { signer }),
            state: leaseUntil > now ? state : "unknown"
          }))
      )
  }
}
