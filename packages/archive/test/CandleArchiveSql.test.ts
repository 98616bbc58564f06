import * as PgClient from "@effect/sql-pg/PgClient"
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import { isInstalled, postgresDatabase } from "@trigate/testing/PostgresServer"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { spawn, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { btc, origin, read, suite, write } from "./archiveSuite.ts"
import { barsOf } from "./market.ts"
import { written } from "./writtenBars.ts"

const over = (client: Layer.Layer<SqlClient>, options: CandleArchiveSql.Options = {}) =>
  CandleArchiveSql.layer(options).pipe(Layer.provide(client))

const sqlite = (file: string) => SqliteClient.layer({ file, mode: "create" })

const file = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "archive-"))),
    (folder) => Effect.sync(() => Fs.rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => Path.join(folder, "archive.sqlite")
)

const range = { from: origin, to: origin + 1999 }

/** Runs a writer in a process of its own, and kills it once it has said that so many writes are done. */
const killedAfter = (path: string, writes: number) =>
  Effect.callback<number>((resume) => {
    const child = spawn(process.execPath, [new URL("./archiveWriter.ts", import.meta.url).pathname, path], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    let done = 0
    child.stdout.on("data", (chunk: Buffer) => {
      done += chunk.toString("utf8").split("\n").length - 1
      if (done >= writes) child.kill("SIGKILL")
    })
    child.on("close", () => resume(Effect.succeed(done)))
  })

describe("the archive in SQLite", () => {
  suite(() => Effect.map(file, (path) => over(sqlite(path))))

  it.effect("is there for the next run, each network by itself", () =>
    Effect.gen(function*() {
      const path = yield* file
      yield* Effect.provide(write(range), over(sqlite(path)))
      const found = yield* Effect.provide(read(range), over(sqlite(path)))
      assert.deepStrictEqual(found, { bars: barsOf("BTC", "1m", range), known: [range] })
      const elsewhere = yield* Effect.provide(read(range), over(sqlite(path), { network: "testnet" }))
      assert.deepStrictEqual(elsewhere, { bars: [], known: [] })
    }))

  it.effect("reads what an earlier version wrote, and writes on", () =>
    Effect.gen(function*() {
      const path = yield* file
      Fs.copyFileSync(new URL("./fixtures/archive-1.sqlite", import.meta.url), path)
      yield* Effect.gen(function*() {
        const archive = yield* CandleArchive
        for (const { bars, range, series } of written) {
          assert.deepStrictEqual(yield* archive.read(series, range), { bars, known: [range] })
          const [first, ...others] = bars
          assert(first !== undefined)
          const corrected = { ...first, n: first.n + 1 }
          assert.deepStrictEqual(yield* archive.write(series, range, [corrected, ...others]), {
            added: 0,
            corrected: 1
          })
          assert.deepStrictEqual((yield* archive.read(series, range)).bars, [corrected, ...others])
          assert.deepStrictEqual((yield* archive.earlierVersions(series, range)).map(({ bar }) => bar), [first])
        }
        assert.strictEqual((yield* archive.list()).length, written.length)
      }).pipe(Effect.provide(over(sqlite(path))))
    }))

  it.effect("neither reads nor writes a chunk in a format of a later version", () =>
    Effect.gen(function*() {
      const path = yield* file
      const client = sqlite(path)
      yield* Effect.gen(function*() {
        yield* write(range)
        const sql = yield* SqlClient
        yield* sql`UPDATE trigate_candles SET body = ${new Uint8Array([2, 1, 0])} WHERE chunk = ${
          Math.ceil(origin / 1000)
        }`
        const error = yield* Effect.flip(read(range))
        assert.deepInclude(error, { _tag: "ArchiveUnavailable", reason: "newer" })
        assert.include(error.detail ?? "", "Chunk 29801 of BTC 1m in the candle archive has format 2")
        assert.strictEqual((yield* Effect.flip(write(range))).reason, "newer")
        const elsewhere = { from: origin, to: origin + 99 }
        assert.deepStrictEqual((yield* read(elsewhere)).known, [elsewhere])
      }).pipe(Effect.provide(Layer.merge(over(client), client)))
    }))

  it.effect("is whole after a kill in the middle of a write: what was written is there, nothing is torn", () =>
    Effect.gen(function*() {
      const path = yield* file
      for (const writes of sample("writes before a kill", [1, 7, 16], 1)) {
        const done = yield* killedAfter(path, writes)
        assert.isAtLeast(done, writes)
        const { known, bars } = yield* Effect.provide(read({ from: origin, to: origin + 999_999 }), over(sqlite(path)))
        const [first, ...others] = known
        assert(first !== undefined)
        // a write has 1500 bars, so that it changes two or three chunks
        assert.deepStrictEqual([first.from, others, (first.to + 1 - origin) % 1500], [origin, [], 0])
        assert.isAtLeast(first.to + 1 - origin, 1500 * done)
        assert.deepStrictEqual(bars, barsOf("BTC", "1m", first))
      }
    }))

  it.effect("is summarized in few rows and short steps, and once for several lists", () =>
    Effect.gen(function*() {
      const path = yield* file
      const { DatabaseSync, StatementSync } = yield* Effect.promise(() => import("node:sqlite"))
      yield* Effect.gen(function*() {
        yield* write({ from: origin, to: origin + 499 })
        const other = new DatabaseSync(path)
        const insert = other.prepare("INSERT INTO trigate_candles VALUES ('mainnet', ?, '1m', ?, ?, 10, 1, x'005b5d')")
        other.exec("BEGIN")
        for (const [at, coin] of ["AAA", "BBB"].entries()) {
          for (let chunk = 0; chunk < 2500; chunk++) if (chunk !== 1700) insert.run(coin, chunk + at, "0-999")
          insert.run(coin, 5000, "0-9,20-29")
          insert.run(coin, 5001, "0-9,20-29")
        }
        other.exec("COMMIT")
        other.close()
        const { mock } = yield* Effect.acquireRelease(
          Effect.sync(() => vi.spyOn(StatementSync.prototype, "all")),
          (spy) => Effect.sync(() => spy.mockRestore())
        )
        const status = CandleArchive.use((archive) => archive.list())
        const [found, again] = yield* Effect.all([status, status], { concurrency: "unbounded" })
        const expected = (coin: string, at: number) => ({
          coin,
          interval: "1m",
          bars: 25_010,
          bytes: 7503,
          known: [
            { from: at * 1000, to: (1700 + at) * 1000 - 1 },
            { from: (1701 + at) * 1000, to: (2500 + at) * 1000 - 1 },
            { from: 5_000_000, to: 5_000_009 },
            { from: 5_000_020, to: 5_000_029 },
            { from: 5_001_000, to: 5_001_009 },
            { from: 5_001_020, to: 5_001_029 }
          ]
        })
        const [first, second, third] = found
        assert.deepStrictEqual([first, second], [expected("AAA", 0), expected("BBB", 1)])
        assert.deepStrictEqual({ ...third, bytes: 0 }, {
          ...btc,
          bars: 500,
          bytes: 0,
          known: [{ from: origin, to: origin + 499 }]
        })
        assert.deepStrictEqual(again, found)
        // three series, then their pages of a thousand chunks; the second list asks for nothing
        const rows = mock.results.map((result) => result.type === "return" ? result.value.length : -1)
        assert.deepStrictEqual(rows, [3, 1, 2, 3, 1, 2, 3, 1])
        yield* write({ from: origin + 500, to: origin + 500 })
        assert.deepInclude((yield* status)[2], { bars: 501, known: [{ from: origin, to: origin + 500 }] })
      }).pipe(Effect.provide(over(sqlite(path))))
    }))

  it.effect("reads for a list the rows of its page alone, however many series there are", () =>
    Effect.gen(function*() {
      const path = yield* file
      const { DatabaseSync, StatementSync } = yield* Effect.promise(() => import("node:sqlite"))
      yield* Effect.gen(function*() {
        yield* write({ from: origin, to: origin + 499 })
        const other = new DatabaseSync(path)
        other.exec(`WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 99999)
          INSERT INTO trigate_candles SELECT 'mainnet', 'C' || n, '1m', 0, '0-9', 10, 1, x'005b5d' FROM numbers`)
        other.close()
        const spy = yield* Effect.acquireRelease(
          Effect.sync(() => vi.spyOn(StatementSync.prototype, "all")),
          (spy) => Effect.sync(() => spy.mockRestore())
        )
        const { list } = yield* CandleArchive
        const first = yield* list()
        assert.deepStrictEqual([first.length, first[0]?.coin, first[1]?.coin], [100, "BTC", "C0"])
        const rows = () => spy.mock.results.map((result) => result.type === "return" ? result.value.length : -1)
        // the series of the page, then a row for each of them
        assert.deepStrictEqual(rows(), [100, ...Array.from({ length: 100 }, () => 1)])
        spy.mockClear()
        assert.strictEqual((yield* list("C99998")).length, 1)
        assert.deepStrictEqual(rows(), [1, 1])
      }).pipe(Effect.provide(over(sqlite(path))))
    }))

  it.effect("stands in the database of an action log, and the log stays as it is", () =>
    Effect.gen(function*() {
      const path = yield* file
      const other = new (yield* Effect.promise(() => import("node:sqlite"))).DatabaseSync(path)
      other.exec("CREATE TABLE trigate_migrations (migration_id integer PRIMARY KEY NOT NULL, name TEXT)")
      other.exec("INSERT INTO trigate_migrations VALUES (2, 'create_actions')")
      yield* Effect.provide(write(range), over(sqlite(path)))
      assert.deepStrictEqual(
        other.prepare("SELECT migration_id AS id FROM trigate_migrations").all().map(({ id }) => id),
        [2]
      )
      other.close()
    }))

  it.effect("neither reads nor writes what a later program has changed", () =>
    Effect.gen(function*() {
      const path = yield* file
      yield* Effect.provide(write(range), over(sqlite(path)))
      const other = new (yield* Effect.promise(() => import("node:sqlite"))).DatabaseSync(path)
      other.exec("INSERT INTO trigate_archive_migrations (migration_id, name) VALUES (7, 'from_the_future')")
      other.close()
      for (const step of [Effect.asVoid(read(range)), Effect.asVoid(write(range))]) {
        const refused = yield* Effect.flip(Effect.provide(step, over(sqlite(path))))
        assert.strictEqual(refused.reason, "newer")
        assert.strictEqual(
          refused.message,
          "The candle archive was written by a later version of Trigate (its tables have version 7, this program knows 1): " +
            "use that version, or another database"
        )
      }
    }))

  it.effect("waits for another writer, but not longer than its deadline", () =>
    Effect.gen(function*() {
      const path = yield* file
      yield* Effect.gen(function*() {
        yield* write(range)
        const other = new (yield* Effect.promise(() => import("node:sqlite"))).DatabaseSync(path)
        other.exec("BEGIN IMMEDIATE")
        const refused = yield* advancingClock(Effect.flip(write({ from: origin + 2000, to: origin + 2009 })))
        assert.deepStrictEqual(
          [refused.reason, refused.detail],
          ["away", "The candle archive is unreachable (no response within 5s)"]
        )
        // a reader does not wait
        assert.lengthOf((yield* read(range)).bars, 2000)
        other.exec("COMMIT")
        assert.strictEqual((yield* write({ from: origin + 2000, to: origin + 2009 })).added, 10)
        other.close()
      }).pipe(Effect.provide(over(sqlite(path))))
    }))

  it.effect("says why a file cannot be used, and what it holds that is no bar", () =>
    Effect.gen(function*() {
      const refused = yield* Effect.flip(Effect.provide(read(range), over(sqlite("/proc/nowhere/archive.sqlite"))))
      assert.strictEqual(refused.detail, "The candle archive is unreachable (unable to open database file)")
      const path = yield* file
      yield* Effect.gen(function*() {
        yield* write(range)
        yield* (yield* SqlClient)`UPDATE trigate_candles SET known = 'all of it'`
        assert.strictEqual((yield* Effect.flip(read(range))).reason, "damaged")
      }).pipe(Effect.provide(CandleArchiveSql.layer().pipe(Layer.provideMerge(sqlite(path)))))
    }))
})

const hasDump = spawnSync("pg_dump", ["--version"]).status === 0
if (!hasDump) console.log("Not run here: a dump of Postgres, since there is no pg_dump")

describe.runIf(isInstalled)("the archive in Postgres", () => {
  const scope = Scope.makeUnsafe()
  let server: { readonly url: string }
  let networks = 0

  beforeAll(async () => {
    server = await Effect.runPromise(Scope.provide(postgresDatabase, scope))
  }, 60_000)
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  const postgres = (network: string) =>
    over(Layer.orDie(PgClient.layer({ url: Redacted.make(server.url), connectTimeout: "1 second" })), { network })

  suite(() =>
    Effect.sync(() => {
      networks += 1
      return postgres(`suite-${networks}`)
    })
  )

  it.effect("is one archive for all replicas: writers of one chunk lose nothing of each other", () =>
    Effect.gen(function*() {
      const elsewhere = yield* Layer.build(postgres("replicas"))
      const parts = Array.from({ length: 30 }, (_, part) => ({ from: origin + 20 * part, to: origin + 20 * part + 19 }))
      yield* Effect.forEach(
        parts,
        (part, index) => index % 2 === 0 ? write(part) : Effect.provide(write(part), elsewhere),
        { concurrency: "unbounded" }
      )
      const all = { from: origin, to: origin + 599 }
      assert.deepStrictEqual(yield* read(all), { bars: barsOf("BTC", "1m", all), known: [all] })
      assert.strictEqual((yield* (yield* CandleArchive).earlierVersions(btc, all)).length, 0)
    }).pipe((body) => Effect.provide(body, postgres("replicas"))))

  it.effect.runIf(hasDump)("comes back whole out of a dump", () =>
    Effect.gen(function*() {
      yield* Effect.provide(write(range, 7), postgres("dumped"))
      const dump = spawnSync("pg_dump", ["--table", "trigate_*", server.url], { maxBuffer: 64 * 1024 * 1024 })
      assert.strictEqual(dump.status, 0, dump.stderr.toString("utf8"))
      const { url } = yield* postgresDatabase
      const restored = spawnSync("psql", ["--quiet", "--set", "ON_ERROR_STOP=1", url], { input: dump.stdout })
      assert.strictEqual(restored.status, 0, restored.stderr.toString("utf8"))
      const client = Layer.orDie(PgClient.layer({ url: Redacted.make(url), connectTimeout: "1 second" }))
      const found = yield* Effect.provide(read(range), over(client, { network: "dumped" }))
      assert.deepStrictEqual(found, { bars: barsOf("BTC", "1m", range, 7), known: [range] })
    }))
})
