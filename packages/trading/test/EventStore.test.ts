/** The stores of the event log: one owner at a time, no write of a replica that was replaced, and numbers without a hole. */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as Access from "@trigate/simulation/unstable/stores/Access"
import * as EventLogs from "@trigate/simulation/unstable/stores/EventLogs"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import * as PostgresServer from "@trigate/testing/PostgresServer"
import * as RedisServer from "@trigate/testing/RedisServer"
import { sampleRuns, seed } from "@trigate/testing/Sample"
import * as EventStore from "@trigate/trading/accounts/AccountEvents"
import * as EventStoreRedis from "@trigate/trading/accounts/EventStoreRedis"
import * as EventStoreSql from "@trigate/trading/accounts/EventStoreSql"
import * as VenueProtocol from "@trigate/trading/unstable/streams/VenueProtocol"
import type { Row } from "@trigate/upstream/unstable/streams/Topic"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
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

/** A store of the log, as a test starts it. */
interface Server {
  readonly kill: Effect.Effect<void>
  readonly layer: (bounds: EventStore.Bounds) => Layer.Layer<EventStore.EventStore>
  /** Writes an entry of two rows after the two of an empty log, as the first version did: with the IDs of the rows. */
  readonly writeOld: (rows: ReadonlyArray<Row>) => Effect.Effect<unknown>
}

/** A store that can be restored. */
interface Restorable extends Server {
  readonly save: Effect.Effect<void>
  readonly restore: Effect.Effect<void>
}

const realRedis = Effect.map(RedisServer.redisServer, ({ url, ...server }): Restorable => ({
  ...server,
  layer: (bounds) =>
    EventStoreRedis.layer({ bounds }).pipe(
      Layer.provide(Layer.orDie(Layer.fresh(NodeRedis.layer({ url, disableOfflineQueue: true })))),
      // the driver logs each connection that a killed server refuses
      Layer.provide(Logger.layer([]))
    ),
  writeOld: (rows) =>
    Effect.gen(function*() {
      const { send } = yield* Redis.Redis
      const entry = { kind: "event", user, name: "userFills", span: "2", rows: JSON.stringify(rows), at: "0" }
      yield* send("XADD", "trigate:{events}:log", "4-0", ...Object.entries(entry).flat())
      yield* send("HSET", "trigate:{events}:head", "seq", "4")
    }).pipe(Effect.provide(NodeRedis.layer({ url })), Effect.orDie)
}))

const realPostgres = Effect.map(PostgresServer.postgresServer, ({ url, ...server }): Server => ({
  ...server,
  layer: (bounds) =>
    EventStoreSql.layer({ bounds }).pipe(
      Layer.provide(Layer.orDie(Layer.fresh(PgClient.layer({ url: Redacted.make(url) }))))
    ),
  writeOld: (rows) =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      yield* sql`INSERT INTO trigate_event_entries VALUES
        ('mainnet', 4, 'event', ${user}, 'userFills', 2, ${JSON.stringify(rows)}, 0)`
      yield* sql`UPDATE trigate_event_logs SET seq = 4`
    }).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(url) })), Effect.orDie)
}))

const simulated = (
  make: () => EventLogs.Store,
  layer: (
    store: EventLogs.Store,
    access: Access.Access,
    bounds: EventStore.Bounds
  ) => Layer.Layer<EventStore.EventStore>
) =>
  Effect.map(Clock.Clock, (clock): Restorable => {
    const store = make()
    const { access: own, kill, restart } = Access.makeSwitched()
    // the store has a clock of its own
    const access: Access.Access = (operation) => Effect.provideService(own(operation), Clock.Clock, clock)
    let saved = store.snapshot()
    return {
      kill,
      save: Effect.sync(() => {
        saved = store.snapshot()
      }),
      restore: Effect.andThen(Effect.sync(() => store.restore(saved)), restart),
      layer: (bounds) => layer(store, access, bounds),
      writeOld: (rows) =>
        Effect.sync(() => {
          const state = store.current()
          state.entries = [...state.entries, { kind: "event", user, name: "userFills", rows, seq: 4, at: 0 }]
          state.seq = 4
        })
    }
  })

const simulatedRedis = simulated(EventLogs.makeRedis, EventLogs.layerRedis)

const servers = [
  { name: "Redis", isInstalled: RedisServer.isInstalled, start: realRedis },
  { name: "Postgres", isInstalled: PostgresServer.isInstalled, start: realPostgres },
  { name: "a simulated Redis", isInstalled: true, start: simulatedRedis },
  {
    name: "a simulated Postgres",
    isInstalled: true,
    start: simulated(EventLogs.makePostgres, EventLogs.layerPostgres)
  }
]

const openStore = ({ layer }: Server, bounds = EventStore.defaultBounds) =>
  Effect.map(Layer.build(layer(bounds)), Context.get(EventStore.EventStore))

describe.each(servers.filter(({ isInstalled }) => isInstalled))(
  "the event log in $name",
  ({ start }) => {
    it.effect("has one owner, and takes nothing of one that was replaced", () =>
      Effect.gen(function*() {
        const server = yield* start
        const [first, second] = [yield* openStore(server), yield* openStore(server)]
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
        const server = yield* start
        const store = yield* openStore(server, { rows: 3, age: 60_000 })
        const token = (yield* store.lease("first")) ?? assert.fail("no lease")
        yield* store.append(token, 0, [entry("a", "b"), entry("c"), entry("d"), entry("e")])
        const full = yield* store.readAfter(0)
        assert.deepStrictEqual([full.start, full.entries.map(({ seq }) => seq)], [2, [3, 4, 5]])
        yield* TestClock.adjust("2 minutes")
        // a simulated store shares the test clock, so the lease has ended there; a real one does not, and the replica that
        // renews the lease would see its time
        const renewed = (yield* (yield* openStore(server)).lease("first")) ?? assert.fail("no lease")
        yield* store.append(renewed, 5, [entry("f")])
        const aged = yield* store.readAfter(0)
        assert.deepStrictEqual([aged.start, aged.seq, aged.entries.map(({ seq }) => seq)], [5, 6, [6]])
      }))

    it.effect("has the times of the store's clock, also from a writer whose clock is two hours ahead", () =>
      Effect.gen(function*() {
        const server = yield* start
        const clock = yield* Clock.Clock
        const write = Effect.fnUntraced(function*(owner: string, after: number) {
          const store = yield* openStore(server)
          const token = (yield* store.lease(owner)) ?? assert.fail("no lease")
          const { at } = yield* store.append(token, after, [begin])
          assert.strictEqual((yield* store.readAfter(0)).begun.get(user)?.at, at)
          yield* store.release(token)
          return at
        })
        const now = () => clock.currentTimeMillisUnsafe() + 7_200_000
        const ahead: Clock.Clock = {
          currentTimeMillisUnsafe: now,
          currentTimeMillis: Effect.sync(now),
          currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
          currentTimeNanos: clock.currentTimeNanos,
          monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
          monotonicTimeNanos: clock.monotonicTimeNanos,
          sleep: (duration) => clock.sleep(duration)
        }
        const first = yield* Effect.provideService(write("first", 0), Clock.Clock, ahead)
        const second = yield* write("second", 1)
        // in a real store, some time passes
        assert.isTrue(first <= second && second < first + 3_600_000)
      }))

    it.effect("drops the rows that its writer drops, which are those of the account with the most rows", () =>
      Effect.gen(function*() {
        const bounds = { rows: 10, age: 60_000 }
        const store = yield* openStore(yield* start, bounds)
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
        const server = yield* start
        const store = yield* openStore(server)
        const token = (yield* store.lease("first")) ?? assert.fail("no lease")
        yield* store.append(token, 0, [entry("a", "b")])
        const texts = [`{"oid":"c","tid":0,"time":7}`, `{"oid":"d","tid":0,"time":8}`]
        yield* server.writeOld(texts.map((text) => ({ id: "0", text, time: 0 })))
        const { entries } = yield* store.readAfter(0)
        assert.deepStrictEqual(entries.map(({ rows }) => rows), [
          entry("a", "b").rows,
          [{ id: "c 0", text: texts[0], time: 7 }, { id: "d 0", text: texts[1], time: 8 }]
        ])
      }))

    it.effect("tells the owner which accounts replicas want, for a minute", () =>
      Effect.gen(function*() {
        const server = yield* start
        const store = yield* openStore(server)
        yield* store.want(user)
        assert.deepStrictEqual(yield* store.wanted, [user])
        yield* TestClock.adjust("61 seconds")
        assert.deepStrictEqual(yield* store.wanted, [])
      }))

    it.effect("fails with EventStoreUnavailable while the store is gone", () =>
      Effect.gen(function*() {
        const server = yield* start
        const store = yield* openStore(server)
        yield* store.lease("first")
        yield* server.kill
        const failed = yield* advancingClock(Effect.flip(store.readAfter(0)))
        assert.strictEqual(failed._tag, "EventStoreUnavailable")
      }))
  }
)

/** The operations of a store of the log. */
interface Log<E> {
  readonly lease: (owner: string, epoch: string) => Effect.Effect<EventStore.LeaseAttempt, E>
  readonly release: (token: number) => Effect.Effect<unknown, E>
  readonly append: (appending: EventStore.Appending) => Effect.Effect<EventStore.Position | undefined, E>
  readonly readAfter: (seq: number) => Effect.Effect<EventStore.Tail | undefined, E>
  readonly want: (user: string, until: number) => Effect.Effect<unknown, E>
  readonly wanted: (now: number) => Effect.Effect<ReadonlyArray<string>, E>
}

/** Runs random operations in two stores. Their tokens and epochs differ; all else has to be equal. */
const logEqually = Effect.fnUntraced(function*<E>(real: Log<E>, model: Log<E>) {
  const both = <A>(run: (store: Log<E>, index: 0 | 1) => Effect.Effect<A, E>) =>
    Effect.all([run(real, 0), run(model, 1)])
  const results = new Set<string>()
  const check = (name: string, [expected, found]: readonly [unknown, unknown]) => {
    results.add(`${name} ${found !== undefined}`)
    assert.deepStrictEqual(found, expected, name)
  }
  let tokens: readonly [number, number] = [0, 0]
  let at = 1_000_000
  let seq = 0
  for (let step = 0; step < 120; step++) {
    at += yield* Random.choice([0, 0, 0, 1, 100, 30_000])
    const owner = yield* Random.choice(["first", "first", "second"])
    const account = yield* Random.choice([user, "another", "third"])
    const kind = yield* Random.choice([
      "lease",
      "release",
      "append",
      "append",
      "append",
      "append",
      "read",
      "want",
      "wanted"
    ])
    if (kind === "lease") {
      const [{ token }, { token: other }] = yield* both((store) => store.lease(owner, "epoch"))
      check(kind, [
        token === undefined ? undefined : token === tokens[0],
        other === undefined ? undefined : other === tokens[1]
      ])
      if (token !== undefined && other !== undefined) tokens = [token, other]
    } else if (kind === "release") {
      const late = yield* Random.choice([0, 0, 1])
      yield* both((store, index) => store.release(tokens[index] - late))
    } else if (kind === "append") {
      const late = yield* Random.choice([0, 0, 0, 0, 0, 1])
      const after = seq - (yield* Random.choice([0, 0, 0, 0, 1]))
      const length = yield* Random.nextIntBetween(1, 3)
      const added = yield* Effect.replicateEffect(
        Effect.map(
          Random.choice(["event", "event", "begin", "end", "refill"] as const),
          (each): EventStore.NewEntry => ({
            kind: each,
            user: account,
            name: "userFills",
            rows: each === "begin" || each === "end" ? [] : entry("a", "b").rows.slice(0, length)
          })
        ),
        length
      )
      const bounds = { rows: 8, age: 100_000 }
      const first = Math.max(1, seq - (yield* Random.nextIntBetween(0, 12)))
      const dropped = yield* Random.choice([
        undefined,
        undefined,
        { seqs: [], begun: new Map() },
        { seqs: [first, first + 1], begun: new Map([[account, { seq: first + 1, at }]]) }
      ])
      const found = yield* both((store, index) =>
        Effect.map(
          store.append({ token: tokens[index] - late, after, at, bounds, entries: added, dropped }),
          (appended) => appended?.seq
        )
      )
      check(kind, found)
      seq = found[0] ?? seq
    } else if (kind === "read") {
      const after = Math.max(0, seq - (yield* Random.nextIntBetween(0, 8)))
      check(
        kind,
        yield* both((store) =>
          Effect.map(
            store.readAfter(after),
            (tail) => tail && { ...tail, epoch: "", begun: Object.fromEntries(tail.begun) }
          )
        )
      )
    } else if (kind === "want") {
      const until = at + (yield* Random.choice([0, 60_000]))
      yield* both((store) => store.want(account, until))
    } else check(kind, yield* both((store) => store.wanted(at)))
  }
  return results
})

const restorable = [
  { name: "Redis", isInstalled: RedisServer.isInstalled, start: realRedis },
  { name: "simulated Redis", isInstalled: true, start: simulatedRedis }
]

describe.each(restorable.filter(({ isInstalled }) => isInstalled))(
  "the event log in a $name that was restored",
  ({ start }) => {
    it.effect(
      "begins a new epoch once it was restored from a snapshot without its newest entries",
      () =>
        Effect.gen(function*() {
          const server = yield* start
          const { kill, restore, save } = server
          const store = yield* openStore(server)
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
  }
)

describe("random operations have equal results", () => {
  // no lease ends, as in the real stores, in which hardly any time passes
  const still: Access.Access = (operation) => Effect.sync(() => operation(0))
  const runs = Array.from({ length: sampleRuns(20) }, (_, run) => run)
  const assertReached = (results: ReadonlyArray<ReadonlySet<string>>) => {
    const reached = results.reduce((all, each) => all.union(each), new Set<string>())
    for (const name of ["lease", "append"]) assert.isTrue(reached.has(`${name} true`) && reached.has(`${name} false`))
  }

  it.effect.runIf(RedisServer.isInstalled)("in Redis and in a simulated Redis", () =>
    Effect.gen(function*() {
      const { url } = yield* RedisServer.redisServer
      const redis = Context.get(yield* Layer.build(NodeRedis.layer({ url })), Redis.Redis)
      assertReached(
        yield* Effect.forEach(runs, (run) =>
          logEqually(
            EventStoreRedis.makeCommands(redis, `run-${run}:`),
            EventLogs.makeCommands(EventLogs.makeRedis(), still)
          ))
      )
    }).pipe(Random.withSeed(seed)))

  it.effect.runIf(PostgresServer.isInstalled)("in Postgres and in a simulated Postgres", () =>
    Effect.gen(function*() {
      const { url } = yield* PostgresServer.postgresDatabase
      const sql = yield* Layer.build(PgClient.layer({ url: Redacted.make(url) }))
      assertReached(
        yield* Effect.forEach(runs, (run) =>
          Effect.gen(function*() {
            const { statements, step } = yield* Effect.provide(EventStoreSql.openDatabase(`run-${run}`), sql)
            // creates the tables
            yield* step(Effect.void)
            return yield* logEqually(statements, EventLogs.makeStatements(EventLogs.makePostgres(), still))
          }))
      )
    }).pipe(Random.withSeed(seed)))
})
