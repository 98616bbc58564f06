/**
 * `KeyStore` in a SQL database, SQLite or Postgres, which replicas and the command line share.
 *
 * Each change increments the version of the store, in its own transaction and before it reads records. This serializes
 * changes, and a gateway can detect a change with one small query. A record has the same form as in a key file. Storing
 * when a key was last used does not increment the version.
 */
import * as SqlStore from "@trigate/stores/unstable/SqlStore"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as SqlClient from "effect/sql/SqlClient"
import * as KeyStore from "./KeyStore.ts"
import { KeyRecord, KeyStoreFault } from "./KeyStore.ts"

const createTables = [
  `CREATE TABLE trigate_keys (
    prefix TEXT NOT NULL PRIMARY KEY,
    record TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT
  )`,
  "CREATE TABLE trigate_keys_version (version BIGINT NOT NULL)",
  "INSERT INTO trigate_keys_version (version) VALUES (0)"
]

const RecordText = Schema.fromJsonString(KeyRecord)
const encodeRecord = Schema.encodeEffect(RecordText)
const decodeVersion = Schema.decodeUnknownEffect(Schema.Tuple([Schema.Struct({ version: SqlStore.BigintColumn })]))
const decodeRows = Schema.decodeUnknownEffect(
  Schema.Array(Schema.Struct({ record: RecordText, lastUsedAt: Schema.NullOr(SqlStore.BigintColumn) }))
)

/**
 * Converts a database fault to the key store's error. The error does not contain the database's message, because that
 * message can contain the server's host name.
 */
const toKeyStoreFault = ({ detail, reason, tag }: SqlStore.StepFault): KeyStoreFault =>
  new KeyStoreFault({
    reason,
    message: reason === "newer"
      ? detail
      : reason === "malformed"
      ? `the key tables of the database are malformed (${tag})`
      : tag === "TimeoutError"
      ? "the database did not respond within 10 seconds"
      : `the database does not respond (${tag})`
  })

/** The timeout of one step, and the conversion of its faults. */
export const stepOptions = { deadline: "10 seconds", toError: toKeyStoreFault } as const

const make = Effect.gen(function*() {
  const { sql, step } = yield* SqlStore.make({
    table: "trigate_keys_migrations",
    migrations: () => ({ "0001_create_keys": createTables }),
    refuseNewer: (version, known) =>
      `the keys in the database are of version ${version}, and this program supports version ${known}: use a later version of Trigate`,
    ...stepOptions
  })

  const records = Effect.map(
    Effect.flatMap(
      sql`SELECT record, last_used_at AS "lastUsedAt" FROM trigate_keys ORDER BY created_at, prefix`,
      decodeRows
    ),
    (rows) => rows.map(({ lastUsedAt, record }): KeyRecord => lastUsedAt === null ? record : { ...record, lastUsedAt })
  )
  const readVersion = Effect.map(
    Effect.flatMap(sql`SELECT version FROM trigate_keys_version`, decodeVersion),
    ([{ version }]) => String(version)
  )
  const write = ({ added, replaced }: KeyStore.Change) =>
    Effect.gen(function*() {
      for (const { lastUsedAt: _, ...record } of added) {
        const row = { prefix: record.prefix, record: yield* encodeRecord(record), created_at: record.createdAt }
        yield* sql`INSERT INTO trigate_keys ${sql.insert(row)}`
      }
      for (const { lastUsedAt: _, ...record } of replaced) {
        yield* sql`UPDATE trigate_keys SET record = ${yield* encodeRecord(record)} WHERE prefix = ${record.prefix}`
      }
    })

  return yield* KeyStore.make({
    // reads the version before the records, so that a concurrent change is detected by the next query
    since: (known) =>
      step(
        Effect.flatMap(readVersion, (version) =>
          version === known ? Effect.undefined : Effect.map(records, (records) => ({ version, records })))
      ),
    modify: (change) =>
      step(sql.withTransaction(Effect.gen(function*() {
        yield* sql`UPDATE trigate_keys_version SET version = version + 1`
        const result = yield* Effect.fromResult(change(yield* records))
        yield* write(result)
        return result
      }))),
    noteUses: (uses) =>
      step(Effect.forEach(uses, ([prefix, at]) =>
        sql`UPDATE trigate_keys SET last_used_at = ${at}
          WHERE prefix = ${prefix} AND (last_used_at IS NULL OR last_used_at < ${at})`, { discard: true }))
  })
})

/**
 * Provides the keys in a database. Creates the tables on first use.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { SqliteClient } from "@trigate/archive"
 * import { KeyStore, KeyStoreSql } from "@trigate/callers"
 * import { Console, Effect, Layer } from "effect"
 *
 * const store = Layer.provide(KeyStoreSql.layer, SqliteClient.layer({ file: "keys.sqlite", mode: "create" }))
 *
 * const program = KeyStore.KeyStore.use(({ create }) => create({ name: "desk" })).pipe(
 *   Effect.flatMap(({ record }) => Console.log(record.name))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, store))
 * ```
 * ```text
 * desk
 * ```
 */
export const layer: Layer.Layer<KeyStore.KeyStore, never, SqlClient.SqlClient> = Layer.effect(
  KeyStore.KeyStore,
  make
).pipe(Layer.provide(SecureRandom.layerWebCrypto))
