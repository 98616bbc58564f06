/** Recorded prices of a sandbox: from files of each format, and from the candle archive. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleParquet from "@trigate/archive/unstable/CandleParquet"
import type { Candle } from "@trigate/domain/candles/Candle"
import { barAt } from "@trigate/domain/candles/Candle"
import * as CandleText from "@trigate/domain/unstable/candles/CandleText"
import * as Settings from "@trigate/server/settings/SettingsSources"
import * as ArchiveStore from "@trigate/server/unstable/stores/ArchiveStore"
import * as SandboxPrices from "@trigate/server/unstable/stores/SandboxPrices"
import * as ActionLogStore from "@trigate/server/unstable/stores/Stores"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const first = 1_700_000_040_000
const minute = 60_000

const barOf = (index: number): Candle => {
  const t = first + index * minute
  const price = String(30_000 + index)
  return { t, T: t + minute - 1, s: "BTC", i: "1m", o: price, h: price, l: price, c: price, v: "1.5", n: 3 }
}
const bars = [barOf(0), barOf(1), barOf(2)]
const series = { coin: "BTC", interval: "1m" } as const

const folder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "trigate-prices-"))),
  (made) => Effect.sync(() => fs.rmSync(made, { recursive: true }))
)

const settingsOf = (environment: { readonly [name: string]: string }) =>
  Effect.provideService(
    Settings.load,
    ConfigProvider.ConfigProvider,
    ConfigProvider.fromUnknown(environment)
  )

/** The prices of some sources, or why there are none. */
const read = (sources: string, environment: { readonly [name: string]: string } = {}) =>
  settingsOf({ ...environment, TRIGATE_SANDBOX_PRICES: sources }).pipe(
    Effect.flatMap(SandboxPrices.read),
    Effect.map((all) => [...all].map(([coin, points]) => [coin, points.length, points[0], points.at(-1)])),
    Effect.catchTag("SettingsError", ({ message }) => Effect.succeed(message)),
    Effect.provide(NodeServices.layer)
  )

const played = [["BTC", 12, { time: first, price: 30_000 }, { time: first + 3 * minute - 1, price: 30_002 }]]

describe("recorded prices", () => {
  it.live("are the bars of a file of any format", () =>
    Effect.gen(function*() {
      const place = yield* folder
      const fileOf = (name: string, content: string | Uint8Array) => {
        fs.writeFileSync(path.join(place, name), content)
        return `BTC:1m=${path.join(place, name)}`
      }
      const csv = fileOf("bars.csv", [CandleText.csvHeadings, ...bars.map(CandleText.csv)].join("\n"))
      assert.deepStrictEqual(yield* read(csv), played)
      const ndjson = fileOf("bars.ndjson", bars.map(CandleText.ndjson).join("\n"))
      assert.deepStrictEqual(yield* read(ndjson), played)
      const parts = yield* Stream.runCollect(CandleParquet.write(Stream.make(bars), []))
      const parquet = fileOf("bars.parquet", Buffer.concat(parts))
      assert.deepStrictEqual(yield* read(parquet), played)

      const name = (source: string) => source.slice("BTC:1m=".length)
      const text = fileOf("text.parquet", "no parquet")
      assert.strictEqual(
        yield* read(text),
        `TRIGATE_SANDBOX_PRICES: ${name(text)}: it is not a readable parquet file`
      )
      const back = fileOf(
        "back.csv",
        [CandleText.csvHeadings, CandleText.csv(barOf(1)), CandleText.csv(barOf(0))].join("\n")
      )
      assert.strictEqual(
        yield* read(back),
        `TRIGATE_SANDBOX_PRICES: the bars of ${name(back)} are not in order: see the bar that opens at ${first}`
      )
      const empty = fileOf("empty.csv", CandleText.csvHeadings)
      assert.strictEqual(yield* read(empty), `TRIGATE_SANDBOX_PRICES: ${name(empty)} has no bars`)
      const short = fileOf("short.csv", `${CandleText.csvHeadings}\n1,2,3`)
      assert.strictEqual(
        yield* read(short),
        `TRIGATE_SANDBOX_PRICES: row 2 of ${name(short)}: 3 columns instead of 8`
      )
    }))

  it.live("are the newest bars of the candle archive where no file is named", () =>
    Effect.gen(function*() {
      const environment = { TRIGATE_DATABASE_URL: path.join(yield* folder, "archive.db") }
      assert.strictEqual(
        yield* read("BTC:1m"),
        "TRIGATE_SANDBOX_PRICES: BTC:1m has no file, and TRIGATE_DATABASE_URL does not name a database with a candle archive"
      )
      const settings = yield* settingsOf(environment)
      const place = Option.getOrThrow(ActionLogStore.findDatabase(settings))
      const range = { from: barAt("1m", first), to: barAt("1m", first) + 2 }
      yield* CandleArchive.use((archive) => archive.write(series, range, bars)).pipe(
        Effect.provide(ArchiveStore.layerDatabase(settings, place))
      )
      assert.deepStrictEqual(yield* read("BTC:1m", environment), played)
      assert.strictEqual(
        yield* read("ETH:1m", environment),
        "TRIGATE_SANDBOX_PRICES: the candle archive of ETH:1m has no bars"
      )
    }))
})
