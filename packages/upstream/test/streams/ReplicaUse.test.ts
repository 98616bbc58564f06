/** The use of stream limits that replicas report to each other, over each store. */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as Access from "@trigate/simulation/unstable/stores/Access"
import * as StreamUse from "@trigate/simulation/unstable/stores/StreamUse"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import * as PostgresServer from "@trigate/testing/PostgresServer"
import * as RedisServer from "@trigate/testing/RedisServer"
import * as ReplicaUse from "@trigate/upstream/streams/ReplicaUse"
import * as ReplicaUseSql from "@trigate/upstream/streams/ReplicaUseSql"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redis from "effect/persistence/Redis"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import * as TestClock from "effect/testing/TestClock"

/** A store of the reports, as a test starts it. */
interface Server {
  readonly kill: Effect.Effect<void>
  /** Starts the store without its data, after `kill`. */
  readonly restart: Effect.Effect<void>
  readonly layer: Layer.Layer<ReplicaUse.ReplicaUse>
  /** Writes a report that expired when the store's clock was at 1 millisecond. */
  readonly writeExpired: (report: string) => Effect.Effect<unknown>
}

const realRedis = Effect.map(RedisServer.redisServer, ({ url, ...server }): Server => ({
  ...server,
  layer: ReplicaUse.layerRedis({ key: "use" }).pipe(
    Layer.provide(Layer.orDie(NodeRedis.layer({ url, disableOfflineQueue: true })))
  ),
  writeExpired: (report) =>
    Redis.Redis.use((redis) => redis.send("HSET", "use", "gone", `1 ${report}`)).pipe(
      Effect.provide(NodeRedis.layer({ url })),
      Effect.orDie
    )
}))

const realPostgres = Effect.map(PostgresServer.postgresServer, ({ url, ...server }): Server => ({
  ...server,
  layer: Layer.provide(ReplicaUseSql.layer(), Layer.orDie(PgClient.layer({ url: Redacted.make(url) }))),
  writeExpired: (report) =>
    SqlClient.SqlClient.use((sql) => sql`INSERT INTO trigate_stream_use VALUES ('mainnet', 'gone', ${report}, 1)`).pipe(
      Effect.provide(PgClient.layer({ url: Redacted.make(url) })),
      Effect.orDie
    )
}))

const simulated = (name: "Postgres" | "Redis") =>
  Effect.sync((): Server => {
    const store = StreamUse.make()
    const { access, kill, restart } = Access.makeSwitched()
    return {
      kill,
      restart: Effect.andThen(Effect.sync(store.clear), restart),
      layer: StreamUse.layer(store, access, name),
      writeExpired: (report) => Effect.sync(() => store.current().set("gone", { report, expiresAt: 1 }))
    }
  })

const servers = [
  { name: "Redis", isInstalled: RedisServer.isInstalled, start: realRedis },
  { name: "Postgres", isInstalled: PostgresServer.isInstalled, start: realPostgres },
  { name: "a simulated Redis", isInstalled: true, start: simulated("Redis") },
  { name: "a simulated Postgres", isInstalled: true, start: simulated("Postgres") }
]

const replica = ({ layer }: Server) => Effect.map(Layer.build(Layer.fresh(layer)), Context.get(ReplicaUse.ReplicaUse))

const use = (connections: number, ...users: ReadonlyArray<string>): ReplicaUse.Use => ({
  connections,
  subscriptions: 10 * connections,
  users
})

const found = (connections: number, replicas: number, ...users: ReadonlyArray<string>): ReplicaUse.OtherUse => ({
  ...use(connections, ...users),
  replicas,
  isCurrent: true
})

describe.each(servers.filter(({ isInstalled }) => isInstalled))("the use of stream limits in $name", ({ start }) => {
  it.effect("is what the others reported last, without what has expired", () =>
    Effect.gen(function*() {
      const server = yield* start
      const [one, two, three] = [yield* replica(server), yield* replica(server), yield* replica(server)]
      // an expired report is of a time before the clock's
      yield* TestClock.setTime(1)
      assert.deepStrictEqual(yield* one.exchange(use(1, "a")), ReplicaUse.alone)
      yield* server.writeExpired(JSON.stringify(use(7)))
      assert.deepStrictEqual(yield* two.exchange(use(2, "b")), found(1, 1, "a"))
      assert.deepStrictEqual(yield* one.exchange(use(3, "a", "b")), found(2, 1, "b"))
      const { users, ...sums } = yield* three.exchange(use(0))
      assert.deepStrictEqual(sums, { connections: 5, subscriptions: 50, replicas: 2, isCurrent: true })
      assert.sameMembers([...users], ["a", "b"])
    }).pipe(Effect.provide(Logger.layer([]))))

  it.effect("is the last one while the store is gone, and until the others have reported again", () =>
    Effect.gen(function*() {
      const server = yield* start
      const [one, two] = [yield* replica(server), yield* replica(server)]
      yield* one.exchange(use(1))
      assert.deepStrictEqual(yield* two.exchange(use(2)), found(1, 1))
      yield* server.kill
      const known = { ...found(1, 1), isCurrent: false }
      assert.deepStrictEqual(yield* advancingClock(two.exchange(use(2))), known)
      yield* server.restart
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* two.exchange(use(2)), known)
    }).pipe(Effect.provide(Logger.layer([]))))
})
