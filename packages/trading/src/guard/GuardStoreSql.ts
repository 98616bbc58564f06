/** The store of guards in a SQL database, SQLite or Postgres. */
import * as SqlStore from "@trigate/stores/unstable/SqlStore"
import { SharedStoreUnreachable } from "@trigate/upstream/unstable/SharedState"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as SqlClient from "effect/sql/SqlClient"
import * as GuardStore from "./GuardStore.ts"

/** The part of the database in which guards keep their state. */
export interface Options {
  /** A name that separates the guards of several networks in one database. Default: `mainnet`. */
  readonly network?: string
}

const createTable = `CREATE TABLE trigate_guard (
  network TEXT NOT NULL,
  name TEXT NOT NULL,
  version BIGINT NOT NULL,
  text TEXT NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (network, name)
)`

const decodeFound = Schema.decodeUnknownEffect(
  Schema.Array(Schema.Struct({ version: SqlStore.BigintColumn, text: Schema.String }))
)

const never = 1e15

const make = Effect.fnUntraced(function*({ network = "mainnet" }: Options) {
  const { sql, step } = yield* SqlStore.make({
    table: "trigate_guard_migrations",
    migrations: () => ({ "0001_create_guard": [createTable] }),
    toError: ({ tag }) => new SharedStoreUnreachable({ detail: tag })
  })
  const expiry = (key: string, now: number): number => GuardStore.isLasting(key) ? never : now + GuardStore.storedFor
  return GuardStore.make({
    get: (key) =>
      step(Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        const [found] = yield* decodeFound(
          yield* sql`SELECT version, text FROM trigate_guard WHERE network = ${network} AND name = ${key} AND expires_at > ${now}`
        )
        return found
      })),
    put: (key, version, text) =>
      step(Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        const rows = version === 0
          ? yield* sql`INSERT INTO trigate_guard (network, name, version, text, expires_at)
              VALUES (${network}, ${key}, 1, ${text}, ${expiry(key, now)})
              ON CONFLICT (network, name) DO UPDATE SET version = 1, text = excluded.text, expires_at = excluded.expires_at
              WHERE trigate_guard.expires_at <= ${now}
              RETURNING version`
          : yield* sql`UPDATE trigate_guard SET version = version + 1, text = ${text}, expires_at = ${expiry(key, now)}
              WHERE network = ${network} AND name = ${key} AND version = ${version} RETURNING version`
        return rows.length > 0
      }))
  })
})

/**
 * Provides the store in the database of the context. Creates the table on first use.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { PgClient } from "@effect/sql-pg"
 * import { GuardStoreSql } from "@trigate/trading"
 * import { Layer, Redacted } from "effect"
 *
 * export const shared = Layer.provide(
 *   GuardStoreSql.layer(),
 *   PgClient.layer({ url: Redacted.make("postgres://localhost/trigate") })
 * )
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<GuardStore.GuardStore, never, SqlClient.SqlClient> =>
  Layer.effect(GuardStore.GuardStore, make(options))
