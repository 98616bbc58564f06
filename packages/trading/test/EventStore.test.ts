/** The stores of the event log: one owner at a time, no write of a replica that was replaced, and numbers without a hole. */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import * as PostgresServer from "@trigate/testing/PostgresServer"
import * as RedisServer from "@trigate/testing/RedisServer"
import * as EventStore from "@trigate/trading/accounts/AccountEvents"
import * as EventStoreRedis from "@trigate/trading/accounts/EventStoreRedis"
import * as EventStoreSql from "@trigate/trading/accounts/EventStoreSql"
import * as VenueProtocol from "@trigate/trading/unstable/streams/VenueProtocol"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redis from "effect/persistence/Redis"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import * as TestClock from "effect/testing/TestClock"

const user = `0x${"aa".repeat(20)}`

const entry = (...ids: ReadonlyArray<string>): EventStore.NewEntry => ({
  kind: "event",
  user,
  name: "userFills",
  rows: ids.map((id, index) => VenueProtocol.parseRow("userFills", `{"oid":"${id}","tid":0,"time":${index}}`))
})

/** The orders of an entry's fills. */
const ordersIn = ({ rows }: EventStore.NewEntry): string => rows.map(({ id }) => id.replace(" 0", "")).join("")

const begin: EventStore.NewEntry = { kind: "begin", user, name: "", rows: [] }

interface Server {
  readonly url: string
  readonly kill: Effect.Effect<void>
}

interface Backing {
  readonly name: string
  readonly isInstalled: boolean
  readonly server: Effect.Effect<Server, never, Scope.Scope>
  readonly layer: (url: string, bounds: EventStore.Bounds) => Layer.Layer<EventStore.EventStore>
  /** Writes an entry of two rows after the two of an empty log, as the first version did: with the IDs of the rows. */
  readonly writeOld: (url: string, rows: string) => Effect.Effect<unknown>
}

const redisLayer: Backing["layer"] = (url, bounds) =>
  EventStoreRedis.layer({ bounds }).pipe(
    Layer.provide(Layer.orDie(Layer.fresh(NodeRedis.layer({ url, disableOfflineQueue: true })))),
    // the driver logs each connection that a killed server refuses
    Layer.provide(Logger.layer([]))
  )

const backings: ReadonlyArray<Backing> = [
  {
    name: "Redis",
    isInstalled: RedisServer.isInstalled,
    server: RedisServer.redisServer,
    layer: redisLayer,
    writeOld: (url, rows) =>
      Effect.gen(function*() {
        const { send } = yield* Redis.Redis
        const entry = { kind: "event", user, name: "userFills", span: "2", rows, at: "0" }
        yield* send("XADD", "trigate:{events}:log", "4-0", ...Object.entries(entry).flat())
        yield* send("HSET", "trigate:{events}:head", "seq", "4")
      }).pipe(Effect.provide(NodeRedis.layer({ url })), Effect.orDie)
  },
  {
    name: "Postgres",
    isInstalled: PostgresServer.isInstalled,
    server: PostgresServer.postgresServer,
    layer: (url, bounds) =>
      EventStoreSql.layer({ bounds }).pipe(
        Layer.provide(Layer.orDie(Layer.fresh(PgClient.layer({ url: Redacted.make(url) }))))
      ),
    writeOld: (url, rows) =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        yield* sql`INSERT INTO trigate_event_entries VALUES
          ('mainnet', 4, 'event', ${user}, 'userFills', 2, ${rows}, 0)`
        yield* sql`UPDATE trigate_event_logs SET seq = 4`
      }).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(url) })), Effect.orDie)
  }
]

const openStore = (layer: Backing["layer"], url: string, bounds = EventStore.defaultBounds) =>
  Effect.map(Layer.build(layer(url, bounds)), Context.get(EventStore.EventStore))

describe.each(backings.filter(({ isInstalled }) => isInstalled))(
  "the event log in $name",
  ({ layer, server, writeOld }) => {
    const storeAt = (url: string, bounds?: EventStore.Bounds) => openStore(layer, url, bounds)

    it.effect("has one owner, and takes nothing of one that was replaced", () =>
      Effect.gen(function*() {
        const { url } = yield* server
        const [first, second] = [yield* storeAt(url), yield* storeAt(url)]
        const token = (yield* first.lease("first")) ?? assert.fail("no lease")
        assert.strictEqual(yield* second.lease("second"), undefined)
        assert.strictEqual(yield* first.lease("first"), token)
        const { seq } = yield* first.append(token, 0, [entry("a", "b"), begin])
        assert.strictEqual(seq, 3)
        // an attempt whose reply was lost appends nothing the second time, and one behind the log is not the owner's
        assert.strictEqual((yield* first.append(token, 0, [entry("a", "b"), begin])).seq, 3)
        assert.strictEqual((yield* Effect.flip(first.append(token, 1, [entry("z")])))._tag, "LeaseLost")
        yield* first.release(token)
        const next = (yield* second.lease("second")) ?? assert.fail("no lease")
        assert.isAbove(next, token)
        assert.strictEqual((yield* Effect.flip(first.append(token, 3, [entry("late")])))._tag, "LeaseLost")
        yield* first.release(token)
        assert.strictEqual((yield* second.append(next, 3, [entry("c")])).seq, 4)
        const tail = yield* first.readAfter(0)
        assert.deepStrictEqual(
          tail.entries.map((stored) => [stored.seq, stored.kind, ordersIn(stored)]),
          [[2, "event", "ab"], [3, "begin", ""], [4, "event", "c"]]
        )
        assert.deepStrictEqual([tail.seq, tail.start, tail.begun.get(user)?.seq], [4, 0, 3])
        assert.deepStrictEqual((yield* first.readAfter(3)).entries.map(({ seq }) => seq), [4])
      }))

    it.effect("is bounded in entries and age, and tells what was dropped", () =>
      Effect.gen(function*() {
        const { url } = yield* server
        const store = yield* storeAt(url, { rows: 3, age: 60_000 })
        const token = (yield* store.lease("first")) ?? assert.fail("no lease")
        yield* store.append(token, 0, [entry("a", "b"), entry("c"), entry("d"), entry("e")])
        const full = yield* store.readAfter(0)
        assert.deepStrictEqual([full.start, full.entries.map(({ seq }) => seq)], [2, [3, 4, 5]])
        yield* TestClock.adjust("2 minutes")
        yield* store.append(token, 5, [entry("f")])
        const aged = yield* store.readAfter(0)
        assert.deepStrictEqual([aged.start, aged.seq, aged.entries.map(({ seq }) => seq)], [5, 6, [6]])
      }))

    it.effect("drops the rows that its writer drops, which are those of the account with the most rows", () =>
      Effect.gen(function*() {
        const { url } = yield* server
        const bounds = { rows: 10, age: 60_000 }
        const store = yield* storeAt(url, bounds)
        const token = (yield* store.lease("first")) ?? assert.fail("no lease")
        const log = new EventStore.EventLog(bounds)
        log.replace(yield* store.readAfter(0))
        const busy = `0x${"bb".repeat(20)}`
        const write = Effect.fnUntraced(function*(...entries: ReadonlyArray<EventStore.NewEntry>) {
          const { at } = yield* store.append(token, log.head.seq, entries, log.takeDropped(100))
          for (const each of entries) log.append({ ...each, seq: log.head.seq + EventStore.span(each), at })
        })
        yield* write(begin, entry("a"), { ...begin, user: busy })
        for (let index = 0; index < 30; index++) yield* write({ ...entry(`${index}`), user: busy })
        // what the last write has dropped from the copy, this one drops from the store
        yield* write(entry("b"))
        const tail = yield* store.readAfter(0)
        assert.deepStrictEqual([tail.seq, tail.start, tail.begun.get(user)?.seq, tail.begun.get(busy)?.seq], [
          34,
          0,
          1,
          24
        ])
        const copy = new EventStore.EventLog(bounds)
        copy.replace(tail)
        const ordersOf = (account: string) => copy.after(0, account, "userFills").map(ordersIn).join()
        assert.deepStrictEqual([ordersOf(user), ordersOf(busy)], ["a,b", "22,23,24,25,26,27,28,29"])
        const { epoch } = tail
        assert.isTrue(copy.covers({ epoch, seq: 2 }, [user]))
        assert.isFalse(copy.covers({ epoch, seq: 23 }, [busy]))
        assert.isTrue(copy.covers({ epoch, seq: 25 }, [busy]))
      }))

    it.effect("derives the IDs of rows from their text, also those that an earlier version stored with other IDs", () =>
      Effect.gen(function*() {
        const { url } = yield* server
        const store = yield* storeAt(url)
        const token = (yield* store.lease("first")) ?? assert.fail("no lease")
        yield* store.append(token, 0, [entry("a", "b")])
        const texts = [`{"oid":"c","tid":0,"time":7}`, `{"oid":"d","tid":0,"time":8}`]
        yield* writeOld(url, JSON.stringify(texts.map((text) => ({ id: "0", text, time: 0 }))))
        const { entries } = yield* store.readAfter(0)
        assert.deepStrictEqual(entries.map(({ rows }) => rows), [
          entry("a", "b").rows,
          [{ id: "c 0", text: texts[0], time: 7 }, { id: "d 0", text: texts[1], time: 8 }]
        ])
      }))

    it.effect("tells the owner which accounts replicas want, for a minute", () =>
      Effect.gen(function*() {
        const { url } = yield* server
        const store = yield* storeAt(url)
        yield* store.want(user)
        assert.deepStrictEqual(yield* store.wanted, [user])
        yield* TestClock.adjust("61 seconds")
        assert.deepStrictEqual(yield* store.wanted, [])
      }))

    it.effect("fails with EventStoreUnavailable while the store is gone", () =>
      Effect.gen(function*() {
        const running = yield* server
        const store = yield* storeAt(running.url)
        yield* store.lease("first")
        yield* running.kill
        const failed = yield* advancingClock(Effect.flip(store.readAfter(0)))
        assert.strictEqual(failed._tag, "EventStoreUnavailable")
      }))
  }
)

describe.runIf(RedisServer.isInstalled)("the event log in a Redis that was restored", () => {
  it.effect(
    "begins a new epoch once it was restored from a snapshot without its newest entries",
    () =>
      Effect.gen(function*() {
        const { kill, restore, save, url } = yield* RedisServer.redisServer
        const store = yield* openStore(redisLayer, url)
        const token = (yield* store.lease("first")) ?? assert.fail("no lease")
        const { epoch } = yield* store.append(token, 0, [entry("a", "b")])
        yield* save
        yield* store.append(token, 2, [entry("c")])
        assert.strictEqual((yield* store.readAfter(0)).epoch, epoch)
        yield* kill
        yield* restore
        const again = (yield* advancingClock(Effect.eventually(store.lease("first")))) ?? assert.fail("no lease")
        const tail = yield* store.readAfter(0)
        assert.deepStrictEqual(tail.entries.map(ordersIn), ["ab"])
        assert.notStrictEqual(tail.epoch, epoch)
        // the owner's next write is behind its copy, or names the new epoch: it reads the log again
        assert.strictEqual((yield* Effect.flip(store.append(again, 3, [entry("d")])))._tag, "LeaseLost")
        const appended = yield* store.append(again, 2, [entry("d")])
        assert.deepStrictEqual([appended.epoch, appended.seq], [tail.epoch, 3])
      })
  )
})
