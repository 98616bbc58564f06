/** `trigate candles`: files out of a gateway, into a database and out again, what is held and what is missing. */
import { assert, describe, it } from "@effect/vitest"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import { openTime } from "@trigate/domain/candles/Candle"
import { gateway } from "@trigate/testing/Gateway"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { folder, run } from "./run.ts"

const quiet = Effect.provide(Logger.layer([]))

const january = "--from 2026-01-01 --to 2026-01-31"

const candles = (environment: { readonly [name: string]: string }, terminal = false) => (args: string) =>
  run(["candles", ...args.split(" ")], { environment, terminal })

const archiveIn = (file: string) =>
  CandleArchiveSql.layer().pipe(Layer.provide(SqliteClient.layer({ file, mode: "create" })))

/** A gateway that records into a database, from a venue that has nothing. */
const recording = Effect.fnUntraced(function*(file: string) {
  const venue = yield* recordingUpstream(() => ({ status: 500, body: "null" }))
  return yield* gateway({
    TRIGATE_TRADING_API_URL: venue.url,
    TRIGATE_ARCHIVE: "BTC:1d",
    TRIGATE_DATABASE_URL: file
  })
})

describe("trigate candles", () => {
  for (const format of ["ndjson", "csv", "parquet"] as const) {
    it.live(`writes a file, takes it into a database, and writes the same again: ${format}`, () =>
      Effect.gen(function*() {
        const path = yield* folder
        const sandbox = candles({ TRIGATE_GATEWAY_URL: (yield* gateway({})).url })
        const file = Path.join(path, `january.${format}`)
        const written = yield* sandbox(`export BTC 1d ${january} --save ${file}`)
        const bytes = Fs.readFileSync(file)
        assert.deepStrictEqual(written, {
          code: 0,
          stdout: "",
          stderr: `trigate: ${bytes.length} bytes of BTC 1d written to ${file}\n`
        })
        const database = Path.join(path, "trigate.sqlite")
        const own = candles({ TRIGATE_DATABASE_URL: database })
        const taken = yield* own(`import BTC 1d ${file}`)
        assert.deepStrictEqual(taken, {
          code: 0,
          stdout: `FILE${" ".repeat(file.length - 2)}BARS  NEW  HELD  DIFFERING  REFUSED\n` +
            `${file}    31   31     0          0        0\n`,
          stderr: ""
        })
        const again = yield* own(`import BTC 1d ${file} --json`)
        assert.deepStrictEqual(JSON.parse(again.stdout), [
          { file, rows: 31, added: 0, held: 31, refused: 0, differing: 0 }
        ])
        const { url } = yield* recording(database)
        const copy = Path.join(path, `copy.${format}`)
        assert.strictEqual((yield* candles({ TRIGATE_GATEWAY_URL: url })(`export BTC 1d --save ${copy}`)).code, 0)
        assert.deepStrictEqual(Fs.readFileSync(copy), bytes)
      }).pipe(quiet))
  }

  it.live("prints on standard output, shows its progress on a terminal, and overwrites nothing", () =>
    Effect.gen(function*() {
      const path = yield* folder
      const environment = { TRIGATE_GATEWAY_URL: (yield* gateway({})).url }
      const printed = yield* candles(environment, true)(`export PURR/USDC 1w ${january} --format csv`)
      assert.strictEqual(printed.code, 0)
      const lines = printed.stdout.split("\n")
      assert.strictEqual(lines[0], "open_time,close_time,open,high,low,close,volume,trades")
      assert.lengthOf(lines, 7)
      assert.include(printed.stderr, "bytes")
      const file = Path.join(path, "there.csv")
      Fs.writeFileSync(file, "mine")
      const refused = yield* candles(environment)(`export BTC 1d ${january} --save ${file}`)
      assert.deepStrictEqual(refused, {
        code: 2,
        stdout: "",
        stderr: `trigate: ${file} exists or cannot be written\n`
      })
      assert.strictEqual(Fs.readFileSync(file, "utf8"), "mine")
    }))

  it.live("tells each bar that is not taken, and takes the others", () =>
    Effect.gen(function*() {
      const path = yield* folder
      const file = Path.join(path, "bars.csv")
      const row = (day: number, close: string) =>
        `${day * 86_400_000},${day * 86_400_000 + 86_399_999},1.0,3.0,0.5,${close},7.25,4`
      const heading = "open_time,close_time,open,high,low,close,volume,trades"
      Fs.writeFileSync(file, [heading, row(20_000, "2.0"), row(20_001, "two"), row(20_003, "2.0"), ""].join("\n"))
      const own = candles({ TRIGATE_DATABASE_URL: Path.join(path, "trigate.sqlite") })
      const taken = yield* own(`import BTC 1d ${file} --json`)
      assert.deepStrictEqual([taken.code, JSON.parse(taken.stdout)], [2, [
        { file, rows: 3, added: 2, held: 0, refused: 1, differing: 0 }
      ]])
      assert.strictEqual(
        taken.stderr,
        `trigate: ${file}:3: c: Expected a string matching the RegExp ^-?[0-9]+(?:\\.[0-9]+)?$\n` +
          "trigate: 1 bar was refused; the archive contains all other bars of the files, and its existing bars " +
          "did not change\n"
      )
      Fs.writeFileSync(file, [heading, row(20_000, "2.5"), row(20_003, "2.0"), ""].join("\n"))
      const other = yield* own(`import BTC 1d ${file} --no-gaps`)
      assert.strictEqual(other.code, 2)
      assert.include(
        other.stderr,
        `trigate: ${file}:2: it differs from the stored bar of 2024-10-04T00:00Z: close 2.5 instead of 2.0\n`
      )
    }))

  it.live("lists what is held, and the gaps of it", () =>
    Effect.gen(function*() {
      const path = yield* folder
      const database = Path.join(path, "trigate.sqlite")
      const series = { coin: "@107", interval: "1d" } as const
      const known = [{ from: 20_000, to: 20_001 }, { from: 20_005, to: 20_009 }]
      yield* CandleArchive.use(({ fill }) => fill(series, known, [])).pipe(Effect.provide(archiveIn(database)))
      const own = candles({ TRIGATE_GATEWAY_URL: (yield* recording(database)).url })
      const status = yield* own("status")
      assert.deepStrictEqual([status.code, status.stderr], [0, ""])
      assert.match(
        status.stdout,
        /^COIN {2}INTERVAL {2}BARS {2}FROM {15}TO {17}GAPS {2}BYTES\n@107 {2}1d {11}0 {2}2024-10-04T00:00Z {2}2024-10-14T00:00Z {5}1 {5}[0-9]+\n$/u
      )
      assert.deepStrictEqual(yield* own("gaps"), {
        code: 0,
        stdout: "COIN  INTERVAL  FROM               TO                 BARS\n" +
          "@107  1d        2024-10-06T00:00Z  2024-10-09T00:00Z     3\n",
        stderr: ""
      })
      assert.strictEqual((yield* own("gaps BTC")).stdout, "There are no gaps\n")
      assert.deepStrictEqual(JSON.parse((yield* own("gaps @107 1d --json")).stdout), [
        { ...series, from: openTime("1d", 20_002), to: openTime("1d", 20_005) - 1, bars: 3 }
      ])
    }).pipe(quiet))

  it.live("says in one line what is missing: a database, an archive, a coin, a file", () =>
    Effect.gen(function*() {
      const path = yield* folder
      const nowhere = yield* candles({})("import BTC 1d bars.csv")
      assert.deepStrictEqual(nowhere, {
        code: 2,
        stdout: "",
        stderr: "trigate: no database for candles is configured: set TRIGATE_DATABASE_URL\n"
      })
      const venue = yield* recordingUpstream(() => ({ status: 500, body: "null" }))
      const without = yield* gateway({ TRIGATE_TRADING_API_URL: venue.url })
      assert.deepStrictEqual(yield* candles({ TRIGATE_GATEWAY_URL: without.url })("status"), {
        code: 3,
        stdout: "",
        stderr:
          "trigate: This gateway does not record candle history: set TRIGATE_ARCHIVE, for example TRIGATE_ARCHIVE=BTC:1m\n"
      })
      const sandbox = candles({ TRIGATE_GATEWAY_URL: (yield* gateway({})).url })
      const file = Path.join(path, "none.csv")
      assert.deepStrictEqual(yield* sandbox(`export btc 1d --save ${file}`), {
        code: 4,
        stdout: "",
        stderr: "trigate: The candle archive contains no bars of btc 1d; names are case-sensitive\n"
      })
      const own = candles({ TRIGATE_DATABASE_URL: Path.join(path, "trigate.sqlite") })
      const unread = yield* own("import BTC 1d nowhere.csv")
      assert.deepStrictEqual([unread.code, unread.stderr], [2, "trigate: nowhere.csv cannot be read\n"])
    }).pipe(quiet))
})
