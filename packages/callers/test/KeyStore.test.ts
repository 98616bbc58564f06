import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import { KeyStore, layerMemory } from "@trigate/callers/KeyStore"
import * as KeyStoreFile from "@trigate/callers/KeyStoreFile"
import * as KeyStoreSql from "@trigate/callers/KeyStoreSql"
import * as Access from "@trigate/simulation/unstable/stores/Access"
import * as CallerKeys from "@trigate/simulation/unstable/stores/CallerKeys"
import { isInstalled, postgresDatabase } from "@trigate/testing/PostgresServer"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { checks, noteUses } from "./keyStoreSuite.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "keys-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

const keyFile = Effect.map(folder, (path) => Path.join(path, "keys.json"))
const inFile = (path: string) => Layer.provide(KeyStoreFile.layer(path), NodeFileSystem.layer)

const sqlite = Effect.map(
  folder,
  (path) => SqliteClient.layer({ file: Path.join(path, "keys.sqlite"), mode: "create" })
)

const faultOf = (store: Layer.Layer<KeyStore>) =>
  Effect.flatMap(KeyStore, ({ list }) => Effect.flip(list)).pipe(
    Effect.map(({ message, reason }) => [reason, message]),
    Effect.provide(store)
  )

describe("keys in memory", () => {
  for (const [what, check] of checks) it.effect(what, () => Effect.provide(check, layerMemory))
  it.effect("note when they were used", () => Effect.provide(noteUses, layerMemory))
})

describe("keys in a file", () => {
  for (const [what, check] of checks.slice(1)) {
    it.effect(what, () => Effect.flatMap(keyFile, (path) => Effect.provide(check, inFile(path))))
  }

  it.effect("are JSON for people, which only the owner may read", () =>
    Effect.gen(function*() {
      const path = yield* keyFile
      const { record } = yield* Effect.flatMap(KeyStore, (store) =>
        store.create({ name: "alice", scope: { classes: ["read"] }, lifetime: "1 day" })).pipe(
          Effect.provide(inFile(path))
        )
      assert.strictEqual(
        Fs.readFileSync(path, "utf8"),
        `{
  "version": 1,
  "keys": [
    {
      "name": "alice",
      "prefix": "${record.prefix}",
      "hash": "${record.hash}",
      "scope": {
        "classes": [
          "read"
        ]
      },
      "createdAt": "1970-01-01T00:00:00.000Z",
      "expiresAt": "1970-01-02T00:00:00.000Z"
    }
  ]
}
`
      )
      assert.strictEqual(Fs.statSync(path).mode & 0o777, 0o600)
      assert.deepStrictEqual(Fs.readdirSync(Path.dirname(path)), ["keys.json"])
    }))

  it.effect("are refused in one line that quotes nothing", () =>
    Effect.gen(function*() {
      const path = yield* keyFile
      const store = inFile(path)
      assert.deepStrictEqual(yield* faultOf(store), [
        "malformed",
        `${path} does not exist; create it with trigate keys create`
      ])
      const no = ["malformed", `${path} is not a key file; create one with trigate keys create`]
      for (
        const text of [
          "",
          "secret",
          "[]",
          `{"version":1}`,
          `{"version":1,"keys":[{"name":"a"}]}`,
          `{"version":1,"keys":[],"more":1}`
        ]
      ) {
        Fs.writeFileSync(path, text, { mode: 0o600 })
        assert.deepStrictEqual(yield* faultOf(store), no)
      }
      Fs.writeFileSync(path, `{"version":2,"keys":"of another form"}`)
      assert.deepStrictEqual(yield* faultOf(store), [
        "newer",
        `${path} is of version 2, and this program reads version 1: use a later version of Trigate`
      ])
      Fs.writeFileSync(path, `{"version":1,"keys":[]}`)
      Fs.chmodSync(path, 0o620)
      assert.deepStrictEqual(yield* faultOf(store), [
        "malformed",
        `${path} can be written by other users, who could add keys: chmod go-w ${path}`
      ])
      Fs.chmodSync(path, 0o644)
      assert.deepStrictEqual(yield* Effect.provide(Effect.flatMap(KeyStore, ({ list }) => list), store), [])
    }))

  it.effect("are not changed while another change is being made, or after one that failed", () =>
    Effect.gen(function*() {
      const path = yield* keyFile
      const store = yield* Effect.provide(KeyStore, inFile(path))
      yield* store.create({ name: "alice" })
      const before = Fs.readFileSync(path, "utf8")
      Fs.writeFileSync(`${path}.new`, "")
      const { message } = yield* Effect.flip(store.create({ name: "bob" }))
      assert.strictEqual(
        message,
        `${path}.new exists: another change is in progress, or was interrupted; remove it if no change is running`
      )
      assert.isTrue(Fs.existsSync(`${path}.new`))
      Fs.rmSync(`${path}.new`)
      yield* Effect.flip(store.create({ name: "alice" }))
      assert.strictEqual(Fs.readFileSync(path, "utf8"), before)
      assert.deepStrictEqual(Fs.readdirSync(Path.dirname(path)), ["keys.json"])
    }))
})

/** What is noted of a use stays, whatever is noted later. */
const noteUsesForGood = Effect.gen(function*() {
  const { record, store, version } = yield* noteUses
  yield* store.noteUses(new Map([[record.prefix, 1]]))
  assert.deepStrictEqual((yield* store.list).map(({ lastUsedAt }) => lastUsedAt), [5])
  assert.isUndefined(yield* store.since(version))
  // a change of the key keeps it
  yield* store.revoke({ name: "alice" })
  assert.deepStrictEqual((yield* store.list).map(({ lastUsedAt }) => lastUsedAt), [5])
})

/** What holds for every database. */
const inDatabase = (client: Effect.Effect<Layer.Layer<SqlClient>, never, Scope.Scope>) => {
  const stored = <A, E>(check: Effect.Effect<A, E, KeyStore | SqlClient>) =>
    Effect.flatMap(client, (sql) => Effect.provide(check, Layer.provideMerge(KeyStoreSql.layer, sql)))

  for (const [what, check] of checks) it.effect(what, () => stored(check))

  it.effect("note when they were used, never an earlier time, and without a new version", () => stored(noteUsesForGood))

  it.effect("hold no key, but its hash", () =>
    stored(Effect.gen(function*() {
      const { key, record } = yield* KeyStore.use((store) => store.create({ name: "alice" }))
      const rows = JSON.stringify(yield* SqlClient.use((sql) => sql`SELECT prefix, record FROM trigate_keys`))
      assert.include(rows, record.hash)
      assert.notInclude(rows, Redacted.value(key).slice(14))
    })))

  it.effect("are refused in one line where a later program has changed their tables", () =>
    Effect.gen(function*() {
      const sql = yield* client
      const store = Layer.provide(KeyStoreSql.layer, sql)
      yield* Effect.provide(KeyStore.use((keys) => keys.create({ name: "alice" })), store)
      const later = SqlClient.use((sql) =>
        sql`INSERT INTO trigate_keys_migrations (migration_id, name) VALUES (7, 'later')`
      )
      yield* Effect.provide(later, sql)
      assert.deepStrictEqual(yield* faultOf(store), [
        "newer",
        "the keys in the database are of version 7, and this program supports version 1: use a later version of Trigate"
      ])
    }))
}

describe("keys in SQLite", () => {
  inDatabase(sqlite)

  it.effect("are those of all programs that share the file", () =>
    Effect.gen(function*() {
      const file = Path.join(yield* folder, "keys.sqlite")
      const program = Effect.provide(
        KeyStore,
        Layer.fresh(Layer.provide(KeyStoreSql.layer, SqliteClient.layer({ file, mode: "create" })))
      )
      const [one, other] = yield* Effect.all([program, program])
      yield* one.create({ name: "alice" })
      const { version } = (yield* other.since(undefined)) ?? {}
      yield* one.revoke({ name: "alice" })
      assert.deepStrictEqual((yield* other.since(version))?.records.map(({ revokedAt }) => revokedAt), [0])
    }))

  it.effect("are away where the file cannot be opened", () =>
    Effect.gen(function*() {
      const client = SqliteClient.layer({ file: Path.join(yield* folder, "none", "keys.sqlite"), mode: "create" })
      assert.deepStrictEqual(yield* faultOf(Layer.provide(KeyStoreSql.layer, client)), [
        "away",
        "the database does not respond (ConnectionError)"
      ])
    }))
})

describe.skipIf(!isInstalled)("keys in Postgres", () => {
  inDatabase(Effect.map(postgresDatabase, ({ url }) => Layer.orDie(PgClient.layer({ url: Redacted.make(url) }))))
})

describe("keys in a simulated Postgres", () => {
  const replica = (store: CallerKeys.Store, access = Access.direct) =>
    Layer.provide(CallerKeys.layer(store, access), SecureRandom.layerWebCrypto)

  for (const [what, check] of checks) it.effect(what, () => Effect.provide(check, replica(CallerKeys.make())))

  it.effect(
    "note when they were used, never an earlier time, and without a new version",
    () => Effect.provide(noteUsesForGood, replica(CallerKeys.make()))
  )

  it.effect("are those of all programs that share it, and away while it is", () =>
    Effect.gen(function*() {
      const store = CallerKeys.make()
      const { access, kill } = Access.makeSwitched()
      yield* KeyStore.use((keys) => keys.create({ name: "alice" })).pipe(Effect.provide(replica(store)))
      const other = replica(store, access)
      const names = yield* Effect.provide(Effect.flatMap(KeyStore, ({ list }) => list), other)
      assert.deepStrictEqual(names.map(({ name }) => name), ["alice"])
      yield* kill
      assert.deepStrictEqual(yield* faultOf(other), ["away", "the database does not respond (ConnectionError)"])
    }))
})
