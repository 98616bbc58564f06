import * as PgClient from "@effect/sql-pg/PgClient"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import * as Access from "@trigate/simulation/unstable/stores/Access"
import * as PostgresActionLog from "@trigate/simulation/unstable/stores/PostgresActionLog"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import { isInstalled, postgresServer } from "@trigate/testing/PostgresServer"
import type { PostgresServer } from "@trigate/testing/PostgresServer"
import { sampleRuns, seed } from "@trigate/testing/Sample"
import type { Counted } from "@trigate/trading/actionLog/ActionLog"
import { ActionLog, gauges } from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogSql from "@trigate/trading/actionLog/ActionLogSql"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Random from "effect/Random"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import * as TestClock from "effect/testing/TestClock"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import type { Entries } from "./actionLogStatements.ts"
import { assertReached, recordEqually, sortEntries } from "./actionLogStatements.ts"
import {
  day,
  isFree,
  now,
  open,
  other,
  refusalOf,
  settled,
  signer,
  states,
  suite,
  texts,
  unanswered
} from "./actionLogSuite.ts"

const over = (client: Layer.Layer<SqlClient>, options: ActionLogSql.Options = {}): Layer.Layer<ActionLog> =>
  // each adjustment of the clock would wait for all counts of its time
  ActionLogSql.layer({ countEvery: "365 days", ...options }).pipe(Layer.provide(client))

const file = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "actions-"))),
    (folder) => Effect.sync(() => Fs.rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => Path.join(folder, "actions.sqlite")
)

const sqlite = (path: string) => SqliteClient.layer({ file: path, mode: "create" })

const quiet = Effect.provide(Logger.layer([]))

describe("the action log in SQLite", () => {
  suite((options) => Effect.map(file, (path) => over(sqlite(path), options)))

  it.effect("is there for the next run, which takes what was in flight as unknown", () =>
    Effect.gen(function*() {
      const path = yield* file
      yield* TestClock.setTime(now)
      // a scope that never closes: what a run leaves that was killed
      yield* Effect.provide(open({ text: "killed" }), over(sqlite(path)))
      yield* TestClock.adjust(1)
      yield* Effect.provide(settled("unknown", { text: "broken", nonce: now + 1 }), over(sqlite(path)))
      const next = Effect.zip(texts, states)
      assert.deepStrictEqual(yield* Effect.provide(next, over(sqlite(path))), [["killed", "broken"], [
        "unknown",
        "unknown"
      ]])
      // the nonces of the run that was killed are used, too
      const after = Effect.all([isFree({ text: "other" }), isFree({ text: "killed" })])
      assert.deepStrictEqual(yield* Effect.provide(after, over(sqlite(path))), [false, true])
    }))

  it.effect("remembers for the next run which nonces were answered", () =>
    Effect.gen(function*() {
      const path = yield* file
      yield* TestClock.setTime(now)
      yield* Effect.provide(settled("rejected"), over(sqlite(path)))
      assert.include(yield* Effect.provide(refusalOf(), over(sqlite(path))), "its outcome is known")
    }))

  it.effect("knows for the next run whose actions were accepted", () =>
    Effect.gen(function*() {
      const path = yield* file
      yield* TestClock.setTime(now)
      yield* Effect.provide(settled("accepted"), over(sqlite(path), { capacity: 10 }))
      yield* Effect.gen(function*() {
        yield* settled("unknown", { text: "stranger", signer: other(1) })
        assert.isFalse(yield* isFree({ signer: other(2) }))
        assert.isTrue(yield* isFree({ nonce: now + 1 }))
      }).pipe(Effect.provide(over(sqlite(path), { capacity: 10 })))
      yield* TestClock.adjust("31 days")
      const later = { nonce: now + 31 * 86_400_000 }
      yield* Effect.gen(function*() {
        yield* settled("unknown", { text: "stranger", signer: other(1), ...later })
        assert.isFalse(yield* isFree(later))
      }).pipe(Effect.provide(over(sqlite(path), { capacity: 10 })))
    }))

  it.effect("takes the actions of an older version as those of signers that it knows", () =>
    Effect.gen(function*() {
      const path = yield* file
      yield* TestClock.setTime(now)
      yield* Effect.provide(
        Effect.andThen(settled("accepted"), settled("unknown", { text: "old", signer: other(1) })),
        over(sqlite(path))
      )
      const older = new (yield* Effect.promise(() => import("node:sqlite"))).DatabaseSync(path)
      older.exec(`ALTER TABLE trigate_actions DROP COLUMN part; ALTER TABLE trigate_actions DROP COLUMN caller;
        DROP TABLE trigate_signers; DROP INDEX trigate_actions_fingerprint; DROP TABLE trigate_action_cloids;
        ALTER TABLE trigate_actions DROP COLUMN settled; ALTER TABLE trigate_actions DROP COLUMN look_up_at;
        ALTER TABLE trigate_actions DROP COLUMN vault;
        DELETE FROM trigate_migrations WHERE migration_id >= 3`)
      older.close()
      yield* Effect.gen(function*() {
        assert.deepStrictEqual(yield* texts, ["old"])
        assert.deepStrictEqual(yield* ActionLog.use((log) => log.used), { familiar: 1 / 10, strangers: 0 })
        yield* settled("unknown", { text: "stranger", signer: other(2) })
        assert.isTrue(yield* isFree({ nonce: now + 1 }))
      }).pipe(Effect.provide(over(sqlite(path), { capacity: 10 })))
    }))

  it.effect("serves a replica of the version before, which writes its own statements in the tables of this one", () =>
    Effect.gen(function*() {
      const path = yield* file
      yield* TestClock.setTime(now)
      yield* Effect.provide(settled("unknown", { text: "new" }), over(sqlite(path)))
      const older = new (yield* Effect.promise(() => import("node:sqlite"))).DatabaseSync(path)
      const insert = older.prepare(`INSERT INTO trigate_actions (network, claimant, part, caller, nonce, fingerprint,
          action_type, body, size, state, sendings, token, opened_at, lease_until, expires_at)
        VALUES ('mainnet', ?, 'familiar', 'local', ?, ?, 'order', ?, 3, 'sent', 1, 't', ?, ?, ?)
        ON CONFLICT (network, claimant, nonce) DO UPDATE SET
          state = 'sent', sendings = trigate_actions.sendings + 1, token = excluded.token,
          lease_until = excluded.lease_until, expires_at = excluded.expires_at
        WHERE trigate_actions.fingerprint = excluded.fingerprint AND trigate_actions.state = 'unknown'
        RETURNING sendings`)
      const claim = (nonce: number, fingerprint: string) =>
        insert.all(signer, nonce, fingerprint, new Uint8Array(3), now, now + 60_000, now + day)
      const end = (nonce: number, state: string) =>
        older.prepare(`UPDATE trigate_actions SET state = ?, body = NULL, size = 0
          WHERE network = 'mainnet' AND claimant = ? AND nonce = ? AND token = 't' AND state = 'sent'`)
          .run(state, signer, nonce)
      assert.lengthOf(claim(now + 1, "0x01"), 1)
      assert.lengthOf(claim(now + 2, "0x02"), 1)
      end(now + 1, "accepted")
      // what this version left unknown, it sends again and settles
      assert.lengthOf(claim(now, `0x${Buffer.from("new").toString("hex")}`), 1)
      end(now, "rejected")
      older.close()
      yield* Effect.gen(function*() {
        const found = yield* Effect.forEach(
          [now, now + 1, now + 2],
          (nonce) => ActionLog.use((log) => log.find({ signer, nonce }))
        )
        assert.deepStrictEqual(found.flat().map(({ fingerprint, state }) => [fingerprint, state]), [
          ["0x6e6577", "rejected"],
          ["0x01", "accepted"],
          ["0x02", "sent"]
        ])
      }).pipe(Effect.provide(Layer.provide(ActionLogSql.layerExisting(), sqlite(path))))
    }))

  it.effect("shows a tool what is in flight, until the lease has passed", () =>
    Effect.gen(function*() {
      const path = yield* file
      yield* TestClock.setTime(now)
      const tool = Effect.provide(states, ActionLogSql.layerExisting().pipe(Layer.provide(sqlite(path))))
      yield* Effect.gen(function*() {
        yield* open()
        yield* TestClock.adjust(29_999)
        assert.deepStrictEqual(yield* tool, ["sent"])
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(yield* tool, ["unknown"])
      }).pipe(Effect.provide(over(sqlite(path), { lease: "30 seconds" })))
    }))

  it.effect("keeps the networks apart", () =>
    Effect.gen(function*() {
      const path = yield* file
      yield* TestClock.setTime(now)
      const testnet = over(sqlite(path), { network: "testnet", capacity: 1 })
      yield* Effect.provide(settled("unknown", { text: "main" }), over(sqlite(path)))
      yield* Effect.provide(settled("unknown", { text: "test" }), testnet)
      assert.deepStrictEqual(yield* Effect.provide(texts, testnet), ["test"])
      assert.deepStrictEqual(yield* Effect.provide(texts, over(sqlite(path))), ["main"])
    }))

  it.effect("waits for another writer, but not longer than its deadline", () =>
    Effect.gen(function*() {
      const path = yield* file
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const other = new (yield* Effect.promise(() => import("node:sqlite"))).DatabaseSync(path)
        other.exec("BEGIN IMMEDIATE")
        const refused = yield* advancingClock(Effect.flip(settled("unknown")))
        assert.strictEqual(
          refused.detail,
          "The action was not sent: the action log is unreachable (no response within 200ms)"
        )
        assert.strictEqual(yield* Clock.currentTimeMillis, now + 200)
        other.exec("COMMIT")
        yield* settled("unknown")
        assert.lengthOf(yield* unanswered, 1)
        other.close()
      }).pipe(Effect.provide(over(sqlite(path), { deadline: "200 millis" })))
    }).pipe(quiet))

  it.effect("says why a file cannot be written", () =>
    Effect.gen(function*() {
      const nowhere = over(sqlite("/proc/nowhere/actions.sqlite"))
      const refused = yield* Effect.flip(Effect.provide(settled("unknown"), nowhere))
      assert.strictEqual(
        refused.detail,
        "The action was not sent: the action log is unreachable (unable to open database file)"
      )
    }).pipe(quiet))
})

/** The statements of a log, as operations on entries; with sums of what they count. */
const entriesOver = (database: ActionLogSql.Database): Entries<string> => {
  const { statements, step } = database
  const summed = (counted: ReadonlyArray<Counted>) =>
    Record.map(Arr.groupBy(counted, ({ owner, part }) => `${part} ${owner}`), (each) => [
      each.reduce((sum, { count }) => sum + count, 0),
      each.reduce((sum, { bytes }) => sum + bytes, 0),
      each.reduce((sum, { unknown }) => sum + unknown, 0),
      Math.min(...each.map(({ oldestUnknown }) => oldestUnknown ?? Infinity)),
      Math.min(...each.map(({ firstExpiry }) => firstExpiry))
    ])
  return {
    insert: (opening, guard) => step(statements.insert(opening, guard)),
    update: (key, guard, change) => step(statements.update(key, guard, change)),
    move: (key, guard, lookUpAt) => step(statements.update(key, guard, { lookUpAt })),
    find: (selection, at) => step(statements.find(selection, at)),
    others: [
      (at) => Effect.map(step(statements.count(at)), summed),
      (at) => Effect.map(step(statements.find({ open: "all" }, at)), sortEntries),
      (at) => step(statements.trim(at)),
      (at) => step(statements.trim(at, { familiar: 2, strangers: 1 })),
      (at, signer) => Effect.asVoid(step(statements.know(signer, at))),
      (_, signer) => step(statements.isKnown(signer))
    ]
  }
}

it.effect("the statements of the action log have equal results in SQLite and in a simulated Postgres", () =>
  Effect.gen(function*() {
    const results = yield* Effect.forEach(Array.from({ length: sampleRuns(40) }), () =>
      Effect.gen(function*() {
        const path = yield* file
        const real = yield* Effect.provide(ActionLogSql.openDatabase({}, true), sqlite(path))
        const statements = PostgresActionLog.makeStatements(PostgresActionLog.make(), Access.direct)
        return yield* recordEqually([entriesOver(real), entriesOver({ ...real, statements })])
      }))
    assertReached(results)
  }).pipe(Random.withSeed(seed)))

/** A database of the log, as a test starts it. */
interface Server extends Pick<PostgresServer, "freeze" | "kill" | "restart" | "thaw"> {
  readonly layer: (options: ActionLogSql.Options) => Layer.Layer<ActionLog>
}

const realServer = Effect.map(postgresServer, ({ url, ...server }): Server => ({
  ...server,
  layer: (options) =>
    over(Layer.orDie(PgClient.layer({ url: Redacted.make(url), connectTimeout: "1 second" })), options)
}))

const simulatedServer = Effect.sync((): Server => {
  const { access, ...server } = Access.makeSwitched()
  const networks = new Map<string, PostgresActionLog.Store>()
  return {
    ...server,
    layer: ({ network = "mainnet", ...options }) => {
      const store = networks.get(network) ?? PostgresActionLog.make()
      networks.set(network, store)
      return PostgresActionLog.layer(store, access, { countEvery: "365 days", ...options })
    }
  }
})

const servers = [
  { name: "Postgres", isInstalled, start: realServer },
  { name: "a simulated Postgres", isInstalled: true, start: simulatedServer }
]

/**
 * Asks again and again until it is so. Time passes between the questions only: no deadline ends a question, and what is
 * written later gets its turn.
 */
const until = <E, R>(question: Effect.Effect<boolean, E, R>): Effect.Effect<void, never, R> =>
  Effect.orElseSucceed(question, () => false).pipe(
    Effect.tap((answer) => answer ? Effect.void : TestClock.adjust(100)),
    Effect.repeat({ until: (answer) => answer }),
    Effect.asVoid
  )

describe.each(servers.filter((server) => server.isInstalled))("the action log in $name", ({ start }) => {
  const scope = Scope.makeUnsafe()
  let server: Server
  let networks = 0

  beforeAll(async () => {
    server = await Effect.runPromise(Scope.provide(start, scope))
  }, 60_000)
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  suite((options) =>
    Effect.sync(() => {
      networks += 1
      return server.layer({ ...options, network: `suite-${networks}` })
    })
  )

  it.effect("is shared by replicas: what one has in flight is unknown to the other only after the lease", () =>
    Effect.gen(function*() {
      const options = { network: "shared", lease: "30 seconds" } as const
      yield* TestClock.setTime(now)
      const elsewhere = Effect.provide(states, server.layer(options))
      yield* Effect.gen(function*() {
        const entry = yield* open()
        assert.deepStrictEqual(yield* elsewhere, ["sent"])
        yield* TestClock.adjust("30 seconds")
        assert.deepStrictEqual(yield* elsewhere, ["unknown"])
        yield* entry.settle("accepted")
        assert.deepStrictEqual(yield* elsewhere, [])
      }).pipe(Effect.provide(server.layer(options)))
    }))

  it.effect("is one log for all replicas: of claims at the same time one wins, and each knows what the other sent", () =>
    Effect.gen(function*() {
      const replica = () => server.layer({ network: "replicas", lease: "30 seconds" })
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const elsewhere = yield* Layer.build(replica())
        const claims = yield* Effect.forEach(
          Array.from({ length: 40 }, (_, index) => index % 2 === 0),
          (isHere) => isHere ? Effect.result(open()) : Effect.result(Effect.provide(open(), elsewhere)),
          { concurrency: "unbounded" }
        )
        const [winner, ...others] = claims.flatMap((claim) => Result.isSuccess(claim) ? [claim.success] : [])
        assert(winner !== undefined)
        assert.lengthOf(others, 0)
        yield* winner.settle("unknown")
        assert.isFalse(yield* Effect.provide(isFree({ text: "other" }), elsewhere))
        const again = yield* Effect.provide(open(), elsewhere)
        assert.isTrue(again.isRepeat)
        assert.isFalse(yield* isFree())
        yield* again.settle("accepted")
        assert.include(yield* refusalOf(), "its outcome is known")
      }).pipe(Effect.provide(replica()))
    }))

  it.effect("takes what a replica that crashed had sent as unknown after the lease, and nothing late from it", () =>
    Effect.gen(function*() {
      const replica = () => server.layer({ network: "crashed", lease: "30 seconds" })
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const crashed = yield* Effect.provide(open(), yield* Layer.build(replica()))
        yield* TestClock.adjust(29_999)
        assert.isFalse(yield* isFree())
        yield* TestClock.adjust(1)
        assert.include(yield* refusalOf({ text: "other" }), "only the same signed content")
        const second = yield* open()
        assert.isTrue(second.isRepeat)
        yield* crashed.settle("accepted")
        assert.include(yield* refusalOf(), "is being sent right now")
        yield* second.settle("unknown")
        assert.isTrue(yield* isFree())
      }).pipe(Effect.provide(replica()))
    }))

  it.effect("shows each replica in its gauges what one that crashed has left, and since when", () =>
    Effect.gen(function*() {
      const replica = () => server.layer({ network: "gauges", lease: "30 seconds", countEvery: "15 seconds" })
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        const crashed = yield* Effect.provideService(Layer.build(replica()), Metric.MetricRegistry, new Map())
        yield* Effect.provide(open({ text: "first" }), crashed)
        yield* TestClock.adjust(1000)
        yield* Effect.provide(open({ text: "second", nonce: now + 1 }), crashed)
        // what they should read at a time of the clock; the database takes real time
        const read = Effect.all([Metric.value(gauges.unknown), Metric.value(gauges.oldest)]).pipe(
          Effect.map((found) => found.map(({ value }) => value))
        )
        const reads = (expected: ReadonlyArray<number>) =>
          until(Effect.map(read, (found) => found.join(" ") === expected.join(" ")))
        assert.deepStrictEqual(yield* read, [0, 0])
        yield* TestClock.adjust("45 seconds")
        yield* reads([2, now / 1000])
        const again = yield* open({ text: "first" })
        yield* again.settle("accepted")
        yield* reads([1, now / 1000 + 1])
      }).pipe(Effect.provide(replica()), Effect.provideService(Metric.MetricRegistry, new Map()))
    }))

  it.effect("refuses in time while the server hangs, and takes back what it wrote late", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        yield* settled("unknown", { text: "before" })
        yield* server.freeze
        const refused = yield* advancingClock(Effect.flip(settled("unknown", { text: "refused", nonce: now + 1 })))
        assert.strictEqual(
          refused.detail,
          "The action was not sent: the action log is unreachable (no response within 1s)"
        )
        // sending again what is unknown already must not free its nonce when it is taken back
        const again = yield* advancingClock(Effect.flip(open({ text: "before" })))
        assert.strictEqual(again._tag, "UpstreamUnavailable")
        yield* server.thaw
        yield* until(Effect.map(settled("unknown", { text: "after", nonce: now + 2 }), () => true))
        yield* until(Effect.map(texts, (kept) => !kept.includes("refused")))
        yield* until(Effect.map(states, (kept) => !kept.includes("sent")))
        assert.sameMembers([...yield* texts], ["before", "after"])
        assert.isTrue(yield* isFree({ text: "other", nonce: now + 1 }))
        assert.isFalse(yield* isFree({ text: "other" }))
      }).pipe(Effect.provide(server.layer({ network: "hanging" })))
    }).pipe(quiet))

  it.effect("keeps its entries over a crash of the server, and settles later what it could not settle then", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        yield* settled("unknown", { text: "broken" })
        const answered = yield* open({ text: "answered", nonce: now + 1 })
        yield* server.kill
        const refused = yield* Effect.flip(settled("unknown", { text: "refused", nonce: now + 2 }))
        assert.strictEqual(refused._tag, "UpstreamUnavailable")
        assert.isFalse(yield* ActionLog.use((log) => log.isUp))
        yield* answered.settle("accepted")
        assert.strictEqual((yield* Effect.flip(unanswered))._tag, "UpstreamUnavailable")
        yield* server.restart
        yield* until(Effect.map(texts, (kept) => !kept.includes("answered")))
        assert.deepStrictEqual(yield* texts, ["broken"])
        yield* settled("accepted", { text: "broken" })
        assert.deepStrictEqual(yield* texts, [])
        assert.isTrue(yield* ActionLog.use((log) => log.isUp))
      }).pipe(Effect.provide(server.layer({ network: "crashing" })))
    }).pipe(quiet))

  it.effect("starts without its server", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      yield* server.kill
      yield* Effect.gen(function*() {
        const refused = yield* Effect.flip(settled("unknown"))
        assert.strictEqual(
          refused.detail,
          "The action was not sent: the action log is unreachable (ConnectionError)"
        )
        yield* server.restart
        yield* until(Effect.map(settled("unknown"), () => true))
        assert.deepStrictEqual(yield* states, ["unknown"])
      }).pipe(Effect.provide(server.layer({ network: "late" })))
    }).pipe(quiet))
})
