/** Exports of candle history, which may not hold the event loop, nor be more than a gateway can serve beside its calls. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import * as CandleExport from "@trigate/archive/CandleFiles"
import * as CallerKeys from "@trigate/callers/CallerKeys"
import type { Quota } from "@trigate/domain/Caller"
import type { BarRange, Candle } from "@trigate/domain/candles/Candle"
import { closeTime, openTime } from "@trigate/domain/candles/Candle"
import * as CandleText from "@trigate/domain/unstable/candles/CandleText"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as Gateway from "@trigate/server/Gateway"
import { get } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { isInstalled, postgresDatabase } from "@trigate/testing/PostgresServer"
import { isExhaustive } from "@trigate/testing/Sample"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpRouter from "effect/http/HttpRouter"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { SqlClient } from "effect/sql/SqlClient"
import * as Http from "node:http"

const barAt = (bar: number): Candle => ({
  t: openTime("1m", bar),
  T: closeTime("1m", bar),
  s: "BTC",
  i: "1m",
  o: "1.0",
  c: "2.0",
  h: "3.0",
  l: "0.5",
  v: "1.0",
  n: bar
})

const barsOf = ({ from, to }: BarRange) => Array.from({ length: to - from + 1 }, (_, at) => barAt(from + at))

/** A gateway over an archive; its callers are named by their keys. */
const servedOver = Effect.fnUntraced(function*(
  archive: CandleExport.Source,
  quotas: { readonly [key: string]: Quota } = {}
) {
  const keys = Layer.succeed(CallerKeys.CallerKeys, {
    check: (key) =>
      Effect.succeed({ id: `key:${Redacted.value(key)}`, scope: {}, quota: quotas[Redacted.value(key)] ?? {} })
  })
  const routes = Gateway.layer().pipe(
    Layer.provide(Layer.succeed(CandleExport.ExportedArchive, archive)),
    Layer.provide(Sandbox.layer()),
    Layer.provide(keys),
    Layer.provide(Gateway.layerDefaults({ sandbox: true }))
  )
  const server = NodeHttpServer.layer(() => Http.createServer(), { port: 0, host: "127.0.0.1" })
  const context = yield* Layer.build(
    HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }).pipe(Layer.provideMerge(server))
  )
  const url = formatAddress(Context.get(context, HttpServer).address)
  return { url, ask: (key: string) => get(`${url}/candles/BTC/1m`, { "x-api-key": key }) }
})

/** A gateway over an archive of the given number of bars. */
const served = (
  bars: number,
  read: CandleExport.Source["read"],
  quotas: { readonly [key: string]: Quota } = {}
) =>
  servedOver({
    list: () => Effect.succeed([]),
    known: () => Effect.succeed([{ from: 0, to: bars - 1 }]),
    read
  }, quotas)

/** Opens an export, and ends when its first bars have come; gives the way to leave it. */
const opened = (url: string, key: string) =>
  Effect.acquireRelease(
    Effect.callback<() => void>((resume) => {
      Http.get(`${url}/candles/BTC/1m`, { headers: { "x-api-key": key }, agent: false }, (response) => {
        response.on("error", () => {})
        // nothing is taken, so that the export does not end
        response.once("readable", () => resume(Effect.succeed(() => void response.destroy())))
      })
    }),
    (leave) => Effect.sync(leave)
  )

const full: CandleExport.Source["read"] = (_, range) => Effect.succeed({ bars: barsOf(range), known: [range] })

/** The first page comes, the others never. */
const endless: CandleExport.Source["read"] = (series, range) => range.from === 0 ? full(series, range) : Effect.never

// four files of chunks of 1000
const bars = isExhaustive ? 20_000 : 5000

describe("exports", () => {
  it.live("read a chunk in a turn of the event loop, whatever their number", () =>
    Effect.gen(function*() {
      let turn = 0
      let isOver = false
      const next = () => {
        turn++
        if (!isOver) setImmediate(next)
      }
      const reads: Array<{ readonly turn: number; readonly bars: number }> = []
      const { ask } = yield* served(bars, (_, range) =>
        Effect.sync(() => {
          reads.push({ turn, bars: range.to - range.from + 1 })
          return { bars: barsOf(range), known: [range] }
        }))
      next()
      const files = yield* Effect.forEach(["a", "b", "c", "d"], (key) => ask(key), { concurrency: "unbounded" })
      isOver = true
      for (const { status, text } of files) assert.deepStrictEqual([status, text.split("\n").length], [200, bars + 1])
      assert.lengthOf(reads, bars / 250)
      assert.strictEqual(Math.max(...reads.map(({ bars }) => bars)), 1000)
      assert.strictEqual(new Set(reads.map((read) => read.turn)).size, bars / 250)
    }))

  it.live("as parquet hold no more than a chunk in a turn either, and are whole files", () =>
    Effect.gen(function*() {
      let turn = 0
      let isOver = false
      const next = () => {
        turn++
        if (!isOver) setImmediate(next)
      }
      const reads: Array<{ readonly turn: number; readonly bars: number }> = []
      const { url } = yield* served(bars, (_, range) =>
        Effect.sync(() => {
          reads.push({ turn, bars: range.to - range.from + 1 })
          return { bars: barsOf(range), known: [range] }
        }))
      next()
      const files = yield* Effect.forEach(
        ["a", "b", "c", "d"],
        (key) => get(`${url}/candles/BTC/1m?format=parquet`, { "x-api-key": key }),
        { concurrency: "unbounded" }
      )
      isOver = true
      for (const { status, text } of files) {
        assert.deepStrictEqual([status, text.slice(0, 4), text.slice(-4)], [200, "PAR1", "PAR1"])
      }
      assert.lengthOf(reads, bars / 250)
      assert.strictEqual(Math.max(...reads.map(({ bars }) => bars)), 1000)
      assert.strictEqual(new Set(reads.map((read) => read.turn)).size, bars / 250)
    }))

  it.live("are eight at a time, and four of one caller", () =>
    Effect.gen(function*() {
      const { ask, url } = yield* served(100_000_000, full)
      const leave = yield* Effect.forEach(Array.from({ length: 4 }), () => opened(url, "one"))
      const ofCaller = yield* ask("one")
      assert.strictEqual(ofCaller.status, 429)
      assert.strictEqual(JsonParts.at(ofCaller.json, "_tag"), "QuotaExceeded")
      yield* Effect.forEach(Array.from({ length: 4 }), () => opened(url, "two"))
      const ofAll = yield* ask("three")
      assert.strictEqual(ofAll.status, 503)
      assert.strictEqual(JsonParts.at(ofAll.json, "_tag"), "Overloaded")
      for (const each of leave) each()
      // once its room is seen to be free, another caller has it
      yield* Effect.repeat(
        Effect.timeoutOrElse(Effect.as(opened(url, "three"), true), {
          duration: "50 millis",
          orElse: () => Effect.succeed(false)
        }),
        { until: (isOpen) => isOpen }
      )
    }))

  it.live("count as concurrent calls until they end, and as one request for each 10 000 bars", () =>
    Effect.gen(function*() {
      const { ask, url } = yield* served(25_000, endless, {
        one: { concurrentCalls: 1 },
        many: { requestsPerSecond: 0.001, burst: 4 },
        few: { requestsPerSecond: 0.001, burst: 2 }
      })
      const leave = yield* opened(url, "one")
      assert.strictEqual((yield* ask("one")).status, 429)
      leave()
      const leaveToo = yield* opened(url, "many")
      const after = yield* get(`${url}/candles`, { "x-api-key": "many" })
      leaveToo()
      assert.strictEqual(after.headers.get("ratelimit")?.replace(/;t=.*$/u, ""), `"requests";r=0`)
      assert.strictEqual((yield* ask("few")).status, 429)
    }))

  it.live.runIf(isInstalled)(
    "leave the connections of a Postgres to others",
    () =>
      Effect.gen(function*() {
        const postgres = yield* postgresDatabase
        const clientOf = (applicationName: string) =>
          Layer.orDie(PgClient.layer({ url: Redacted.make(postgres.url), applicationName }))
        const archive = Context.get(
          yield* Layer.build(Layer.provide(CandleArchiveSql.layer(), clientOf("archive"))),
          CandleArchive
        )
        const series = { coin: "BTC", interval: "1m" } as const
        const stored = isExhaustive ? 10_000 : 4000
        const all = { from: 0, to: stored - 1 }
        yield* archive.write(series, all, barsOf(all))
        let reads = 0
        let most = 0
        const { ask, url } = yield* servedOver({
          ...archive,
          read: (...args) =>
            Effect.acquireUseRelease(
              Effect.sync(() => most = Math.max(most, ++reads)),
              () => archive.read(...args),
              () => Effect.sync(() => reads--)
            )
        })
        const before = `${barsOf(all).map(CandleText.ndjson).join("\n")}\n`
        const exporting = yield* Effect.forkScoped(
          Effect.forEach(Array.from("aaaabbbb"), ask, { concurrency: "unbounded" })
        )
        const listing = yield* Effect.forkScoped(
          Effect.forEach(Array.from("cccccccc"), (key) => get(`${url}/candles`, { "x-api-key": key }), {
            concurrency: "unbounded"
          })
        )
        // as a recorder writes, until all else is over
        let written = stored
        const recording = yield* Effect.forkScoped(Effect.whileLoop({
          while: () => exporting.pollUnsafe() === undefined || listing.pollUnsafe() === undefined,
          body: () => archive.write(series, { from: written, to: written }, [barAt(written)]),
          step: () => void written++
        }))
        for (const { status, text } of yield* Fiber.join(exporting)) {
          assert.deepStrictEqual([status, text.startsWith(before)], [200, true])
        }
        for (const { json, status } of yield* Fiber.join(listing)) {
          assert.deepStrictEqual([status, JsonParts.at(json, 0, "coin")], [200, "BTC"])
        }
        yield* Fiber.join(recording)
        assert.isAbove(written, stored)
        const observer = Context.get(yield* Layer.build(clientOf("observer")), SqlClient)
        const connections = yield* observer`SELECT pid FROM pg_stat_activity 
          WHERE application_name = 'archive' AND datname = current_database()`
        assert.strictEqual(most, 1)
        // a pool opens a connection when all others are in use: the exports had one, the lists one, and the recorder one
        assert.isAtMost(connections.length, 3)
      })
  )
})
