/** `GET /candles` of a gateway, over a socket: what there is, and the bars of a series as a file of any length. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import * as CandleExport from "@trigate/archive/CandleFiles"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import type { Candle } from "@trigate/domain/candles/Candle"
import { Candle as CandleSchema, closeTime, openTime } from "@trigate/domain/candles/Candle"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as Gateway from "@trigate/server/Gateway"
import { makeClient } from "@trigate/testing/Client"
import { gateway, get } from "@trigate/testing/Gateway"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { parquetMetadata, parquetReadObjects } from "hyparquet"
import * as Fs from "node:fs"
import * as Http from "node:http"
import * as Os from "node:os"
import * as Path from "node:path"
import { liveGateway } from "./liveGateway.ts"

const quiet = Effect.provide(Logger.layer([]))

const day = 86_400_000
const january = Date.UTC(2026, 0, 1)

const bytesOf = (url: string) =>
  Effect.promise(async () => {
    const answer = await fetch(url)
    return { status: answer.status, type: answer.headers.get("content-type"), body: await answer.arrayBuffer() }
  })

const textOf = (url: string) =>
  Effect.map(bytesOf(url), ({ body, ...answer }) => ({ ...answer, text: new TextDecoder().decode(body) }))

const barOf = Schema.decodeSync(Schema.fromJsonString(CandleSchema))

const linesOf = (text: string): ReadonlyArray<string> => text.split("\n").slice(0, -1)

describe("the bars of a series as a file", () => {
  it.live("are the same in every format, and those that the venue answers", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const { info } = yield* makeClient(url)
      const endTime = january + 30 * day
      const { candles } = yield* info.candleSnapshot({ coin: "BTC", interval: "1d", startTime: january, endTime })
      assert.lengthOf(candles, 31)
      const file = `${url}/candles/BTC/1d?from=${january}&to=${endTime}`
      const ndjson = yield* textOf(file)
      assert.deepStrictEqual([ndjson.status, ndjson.type], [200, "application/x-ndjson"])
      assert.deepStrictEqual(linesOf(ndjson.text), candles.map((bar) => JSON.stringify(bar)))
      const csv = yield* textOf(`${file}&format=csv`)
      assert.deepStrictEqual([csv.status, csv.type], [200, "text/csv; charset=utf-8"])
      assert.deepStrictEqual(linesOf(csv.text), [
        "open_time,close_time,open,high,low,close,volume,trades",
        ...candles.map(({ T, c, h, l, n, o, t, v }) => `${t},${T},${o},${h},${l},${c},${v},${n}`)
      ])
      const parquet = yield* bytesOf(`${file}&format=parquet`)
      assert.deepStrictEqual([parquet.status, parquet.type], [200, "application/vnd.apache.parquet"])
      const rows = yield* Effect.promise(() => parquetReadObjects({ file: parquet.body }))
      assert.deepStrictEqual(
        rows,
        candles.map(({ T, c, h, l, n, o, t, v }) => ({
          open_time: new Date(t),
          close_time: new Date(T),
          open: o,
          high: h,
          low: l,
          close: c,
          volume: v,
          trades: BigInt(n)
        }))
      )
      assert.deepStrictEqual(parquetMetadata(parquet.body).key_value_metadata, [
        { key: "trigate:known", value: `${january}-${endTime + day - 1}` }
      ])
    }))

  it.live("go on behind the last bar that came, and end behind the last that is held", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const whole = linesOf((yield* textOf(`${url}/candles/kPEPE/12h?to=${january}`)).text)
      const first = barOf(whole[99] ?? "")
      const rest = yield* textOf(`${url}/candles/kPEPE/12h?from=${first.t + 1}&to=${january}`)
      assert.deepStrictEqual(linesOf(rest.text), whole.slice(100))
      const none = yield* textOf(`${url}/candles/kPEPE/12h?from=${Date.UTC(2100, 0, 1)}&format=csv`)
      assert.deepStrictEqual(linesOf(none.text), ["open_time,close_time,open,high,low,close,volume,trades"])
    }))

  it.live("are found by coins of any name, percent-encoded", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const { candles } = yield* makeClient(url)
      for (const coin of ["@107", "kPEPE", "xyz:XYZ100", "PURR/USDC"]) {
        const { status, text } = yield* textOf(
          `${url}/candles/${encodeURIComponent(coin)}/1d?from=${january}&to=${january}`
        )
        const bar = barOf(text)
        assert.deepStrictEqual([status, bar.s, bar.t], [200, coin, january])
        const bars = Stream.runCollect(candles.bars({ coin, interval: "1d", from: january, to: january }))
        assert.deepStrictEqual(yield* bars, [bar])
      }
    }))

  it.live("are refused with what is wrong: bounds, format, interval, and a coin of which there is nothing", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const refused = Effect.fnUntraced(function*(path: string) {
        const { json, status } = yield* get(`${url}${path}`)
        return [status, JSON.stringify(json)] as const
      })
      const [status, wrong] = yield* refused("/candles/BTC/7m?from=yesterday&to=-1&format=xlsx")
      assert.strictEqual(status, 400)
      assert.include(wrong, `"_tag":"InvalidRequest"`)
      assert.include(yield* Effect.map(refused("/candles/BTC/1d?format=xlsx"), ([, text]) => text), `"format"`)
      assert.include(yield* Effect.map(refused("/candles/BTC/1d?from=yesterday"), ([, text]) => text), `"from"`)
      const [missing, unknown] = yield* refused("/candles/btc/1m")
      assert.strictEqual(missing, 404)
      assert.include(unknown, `"detail":"The candle archive contains no bars of btc 1m"`)
      assert.include(unknown, `"coin":"btc"`)
    }))
})

const month = (bar: number, coin = "BTC"): Candle => ({
  t: openTime("1M", bar),
  T: closeTime("1M", bar),
  s: coin,
  i: "1M",
  o: "1.0",
  c: "2.0",
  h: "3.0",
  l: "0.50",
  v: `${bar}.0`,
  n: bar
})

/** A gateway over an archive whose second read takes for ever, and what tells that this one was given up. */
const endless = Effect.gen(function*() {
  const left = yield* Deferred.make<void>()
  const page = Array.from({ length: 1000 }, (_, at): Candle => ({ ...month(500), i: "1m", t: openTime("1m", at) }))
  const archive: CandleExport.Source = {
    list: () => Effect.succeed([]),
    known: () => Effect.succeed([{ from: 0, to: 1_000_000_000 }]),
    read: (_, range) =>
      range.from === 0
        ? Effect.succeed({ bars: page, known: [range] })
        : Effect.onInterrupt(Effect.never, () => Deferred.succeed(left, undefined))
  }
  const routes = Gateway.layer().pipe(
    Layer.provide(Layer.succeed(CandleExport.ExportedArchive, archive)),
    Layer.provide(Sandbox.layer()),
    Layer.provide(Gateway.layerDefaults({ sandbox: true }))
  )
  const server = NodeHttpServer.layer(() => Http.createServer(), { port: 0, host: "127.0.0.1" })
  const context = yield* Layer.build(
    HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }).pipe(Layer.provideMerge(server))
  )
  return { left, url: formatAddress(Context.get(context, HttpServer).address) }
})

describe("a caller that leaves in the middle of a file", () => {
  it.live("stops the reading of the archive", () =>
    Effect.gen(function*() {
      const { left, url } = yield* endless
      yield* Effect.callback<void>((resume) => {
        Http.get(`${url}/candles/BTC/1m`, (response) => {
          response.once("data", () => {
            response.destroy()
            resume(Effect.void)
          })
        })
      })
      yield* Deferred.await(left)
    }))

  it.live("does so as a typed client, too: it takes what it wants", () =>
    Effect.gen(function*() {
      const { left, url } = yield* endless
      const { candles } = yield* makeClient(url)
      const taken = yield* Stream.runCollect(Stream.take(candles.bars({ coin: "BTC", interval: "1m" }), 3))
      assert.deepStrictEqual(taken.map(({ t }) => t), [0, 60_000, 120_000])
      yield* Deferred.await(left)
    }))
})

describe("the history of a gateway that records", () => {
  it.live("is listed with its gaps, and given from the database", () =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "files-"))),
        (made) => Effect.sync(() => Fs.rmSync(made, { recursive: true, force: true }))
      )
      const file = Path.join(folder, "trigate.sqlite")
      const series = { coin: "xyz:TSLA", interval: "1M" } as const
      const bars = [560, 561, 563, 580].map((bar) => month(bar, series.coin))
      const parts = [{ from: 560, to: 565 }, { from: 580, to: 580 }]
      yield* CandleArchive.use(({ fill }) => fill(series, parts, bars)).pipe(
        Effect.provide(CandleArchiveSql.layer().pipe(Layer.provide(SqliteClient.layer({ file, mode: "create" }))))
      )
      const { url } = yield* liveGateway({ api: () => ({ status: 500, body: "null" }) }, {
        TRIGATE_ARCHIVE: "BTC:1M",
        TRIGATE_DATABASE_URL: file
      })
      const { candles } = yield* makeClient(url)
      const known = [[560, 565], [580, 580]].map(([from = 0, to = 0]) => ({
        from: openTime("1M", from),
        to: closeTime("1M", to)
      }))
      const [listed, ...others] = yield* candles.list()
      assert.deepStrictEqual(others, [])
      assert.deepStrictEqual({ ...listed, bytes: 0 }, { ...series, bars: 4, bytes: 0, known })
      assert.deepStrictEqual(yield* Stream.runCollect(candles.bars(series)), bars)
      assert.deepStrictEqual(
        yield* Stream.runCollect(
          candles.bars({ ...series, from: openTime("1M", 560) + 1, to: openTime("1M", 580) - 1 })
        ),
        bars.slice(1, 3)
      )
    }).pipe(quiet))
})
