/**
 * `ReplicaUse` through a Postgres that the replicas share. Each replica stores its use of the stream limits in one row.
 * A single statement stores the use of one replica and returns the use of the others.
 */
import * as SqlStore from "@trigate/stores/unstable/SqlStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as SqlClient from "effect/sql/SqlClient"
import { SharedStoreUnreachable } from "../SharedState.ts"
import * as ReplicaUse from "./ReplicaUse.ts"

/** The part of the database in which the replicas store their use of the stream limits. */
export interface Options {
  /** A name that separates the replicas of several networks in one database. Default: `mainnet`. */
  readonly network?: string
}

const createTable = `CREATE UNLOGGED TABLE trigate_stream_use (
  network TEXT NOT NULL,
  replica TEXT NOT NULL,
  report TEXT NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (network, replica)
)`

const decodeReports = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({ report: Schema.String })))

const make = Effect.fnUntraced(function*({ network = "mainnet" }: Options) {
  const { sql, step } = yield* SqlStore.make({
    table: "trigate_stream_use_migrations",
    migrations: () => ({ "0001_create_stream_use": [createTable] }),
    toError: ({ tag }) => new SharedStoreUnreachable({ detail: tag })
  })
  const now = sql.literal("(extract(epoch FROM statement_timestamp()) * 1000)::float8")

  const exchanged = (replica: string, report: string) =>
    sql`WITH own AS (
        INSERT INTO trigate_stream_use (network, replica, report, expires_at)
        VALUES (${network}, ${replica}, ${report}, ${now} + ${ReplicaUse.expiresAfter}::float8)
        ON CONFLICT (network, replica) DO UPDATE SET report = excluded.report, expires_at = excluded.expires_at
      ), expired AS (
        DELETE FROM trigate_stream_use WHERE network = ${network} AND replica <> ${replica} AND expires_at <= ${now}
      )
      SELECT report FROM trigate_stream_use WHERE network = ${network} AND replica <> ${replica} AND expires_at > ${now}`

  return yield* ReplicaUse.make({
    name: "Postgres",
    exchange: (replica, report) =>
      Effect.map(
        step(Effect.flatMap(exchanged(replica, report), decodeReports)),
        (rows) => rows.map((row) => row.report)
      )
  })
})

/**
 * Provides `ReplicaUse` through the Postgres of the context. Creates the table on first use.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { PgClient } from "@effect/sql-pg"
 * import { ReplicaUseSql } from "@trigate/upstream"
 * import { Layer, Redacted } from "effect"
 *
 * export const shared = Layer.provide(
 *   ReplicaUseSql.layer(),
 *   PgClient.layer({ url: Redacted.make("postgres://localhost/trigate") })
 * )
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<ReplicaUse.ReplicaUse, never, SqlClient.SqlClient> =>
  Layer.effect(ReplicaUse.ReplicaUse, make(options))
