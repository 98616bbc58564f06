/** The stores of guards: a document is replaced only by who has read it, and halts outlive a process. */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import * as Access from "@trigate/simulation/unstable/stores/Access"
import * as GuardDocuments from "@trigate/simulation/unstable/stores/GuardDocuments"
import * as PostgresServer from "@trigate/testing/PostgresServer"
import * as RedisServer from "@trigate/testing/RedisServer"
import { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import * as Guard from "@trigate/trading/guard/Guard"
import * as GuardStore from "@trigate/trading/guard/GuardStore"
import * as GuardStoreSql from "@trigate/trading/guard/GuardStoreSql"
import { Info } from "@trigate/trading/Info"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { sandbox } from "./guarded.ts"

/** A store, and how its server is killed; `layer` connects a process to it. */
interface Server {
  readonly layer: Layer.Layer<GuardStore.GuardStore>
  readonly kill: Effect.Effect<void>
  /** Starts the server again, because the driver's connections close only then. */
  readonly restart: Effect.Effect<void>
}

const redis = Effect.map(RedisServer.redisServer, ({ kill, restart, url }): Server => ({
  kill,
  restart,
  layer: GuardStore.layerRedis().pipe(
    Layer.provide(Layer.orDie(NodeRedis.layer({ url, disableOfflineQueue: true }))),
    Layer.provide(Logger.layer([]))
  )
}))

const postgres = Effect.map(PostgresServer.postgresServer, ({ kill, restart, url }): Server => ({
  kill,
  restart,
  layer: Layer.provide(GuardStoreSql.layer(), Layer.orDie(PgClient.layer({ url: Redacted.make(url) })))
}))

const sqlite = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "guard-"))),
    (folder) => Effect.sync(() => Fs.rmSync(folder, { recursive: true }))
  ),
  (folder): Server => ({
    kill: Effect.void,
    restart: Effect.void,
    layer: Layer.provide(GuardStoreSql.layer(), SqliteClient.layer({ file: Path.join(folder, "a.db"), mode: "create" }))
  })
)

const simulated = Effect.sync((): Server => {
  const store = GuardDocuments.make()
  const { access, kill, restart } = Access.makeSwitched()
  return { kill, restart, layer: GuardDocuments.layer(store, access) }
})

const connect = ({ layer }: Server) => Effect.map(Layer.build(Layer.fresh(layer)), Context.get(GuardStore.GuardStore))

/** A guard in a process of its own. */
const guardOver = (server: Server) =>
  Effect.gen(function*() {
    const store = yield* connect(server)
    return yield* Guard.make({ policies: { policies: [] }, info: yield* Info, log: yield* ActionLog, store })
  })

for (
  const [name, make, isInstalled] of [
    ["Redis", redis, RedisServer.isInstalled],
    ["Postgres", postgres, PostgresServer.isInstalled],
    ["SQLite", sqlite, true],
    ["the simulated store", simulated, true]
  ] as const
) {
  describe.runIf(isInstalled)(`the store of guards in ${name}`, () => {
    it.effect("replaces a document only for who has read it", () =>
      Effect.gen(function*() {
        const server = yield* make
        const [one, other] = [yield* connect(server), yield* connect(server)]
        assert.isUndefined(yield* one.get("a"))
        assert.isTrue(yield* one.put("a", 0, "first"))
        assert.isFalse(yield* other.put("a", 0, "also first"))
        assert.deepStrictEqual(yield* other.get("a"), { version: 1, text: "first" })
        assert.isTrue(yield* other.put("a", 1, "second"))
        assert.isFalse(yield* one.put("a", 1, "also second"))
        assert.deepStrictEqual(yield* one.get("a"), { version: 2, text: "second" })
        assert.isUndefined(yield* one.get("b"))
        // of ten that race, one is first
        const raced = yield* Effect.forEach(
          Array.from({ length: 10 }, (_, index) => index),
          (index) => (index % 2 === 0 ? one : other).put("b", 0, String(index)),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(raced.filter((isFirst) => isFirst), [true])
      }))

    it.live("keeps halts over a restart, and tells them to replicas", () =>
      Effect.gen(function*() {
        const server = yield* make
        const [one, other] = [yield* guardOver(server), yield* guardOver(server)]
        yield* one.halt({ coin: "BTC" })
        yield* other.halt({ all: true })
        const later = yield* guardOver(server)
        assert.deepStrictEqual((yield* later.status).halts, [{ coin: "BTC" }, { all: true }])
        assert.isTrue(yield* later.resume({ all: true }))
        assert.isFalse(yield* later.resume({ all: true }))
        assert.deepStrictEqual((yield* (yield* guardOver(server)).status).halts, [{ coin: "BTC" }])
        if (name === "SQLite") return
        yield* server.kill
        // this replica halts nevertheless
        const failed = yield* Effect.result(later.halt({ coin: "ETH" }))
        const { halts } = yield* later.status
        yield* server.restart
        assert.isTrue(Result.isFailure(failed))
        assert.deepStrictEqual(halts, [{ coin: "BTC" }, { coin: "ETH" }])
      }).pipe(Effect.provide(sandbox)))
  })
}
