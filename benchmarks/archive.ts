/** Candle history in SQLite: bytes of a bar on disk, bars written a second, and the time that 5000 of them take to read. */
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import type { BarRange, Candle } from "@trigate/domain/candles/Candle"
import { openTime } from "@trigate/domain/candles/Candle"
import { defaultSeed } from "@trigate/sandbox/unstable/Seed"
import * as CandleMarket from "@trigate/sandbox/unstable/venue/Assets"
import * as CandleBars from "@trigate/sandbox/unstable/venue/CandleBars"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { plan } from "./harness/plan.ts"
import { median } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const newest = 29_800_000
const days = { full: 30, quick: 7, smoke: 4 }[plan.name]
const coins = new Set(["BTC", "ETH", "kPEPE", "PURR/USDC"])
const page = 5000

const bars = (market: CandleMarket.CandleMarket, { from, to }: BarRange): ReadonlyArray<Candle> =>
  CandleBars.bars(
    defaultSeed,
    market,
    { coin: market.coin, interval: "1m", startTime: openTime("1m", from), endTime: openTime("1m", to) },
    openTime("1m", to + 1)
  )

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "archive-"))
const file = path.join(folder, "archive.sqlite")
const archive = CandleArchiveSql.layer().pipe(Layer.provide(SqliteClient.layer({ file, mode: "create" })))

/** Seconds of processor time, which do not depend on how much of a core the machine had to give. */
const processorSeconds = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1e6
}

const measured = Effect.gen(function*() {
  const { read, write } = yield* CandleArchive
  const first = newest - days * 1440
  const rates: Array<number> = []
  const steps: Array<number> = []
  let count = 0
  for (const market of CandleMarket.markets.filter(({ coin }) => coins.has(coin))) {
    const series = { coin: market.coin, interval: "1m" } as const
    for (let from = first; from < newest; from += page) {
      const range = { from, to: Math.min(newest, from + page) - 1 }
      const written = bars(market, range)
      const began = processorSeconds()
      yield* write(series, range, written)
      rates.push(written.length / (processorSeconds() - began))
      count += written.length
    }
    // what a follower writes: a bar at a time, into a chunk that is half full
    for (let bar = newest; bar < newest + 20; bar++) {
      const range = { from: bar, to: bar }
      const one = bars(market, range)
      const began = processorSeconds()
      yield* write(series, range, one)
      steps.push((processorSeconds() - began) * 1000)
      count += 1
    }
  }
  const reads: Array<number> = []
  for (let round = 0; round < plan.rounds * 10; round++) {
    const from = first + round % (days * 1440 - page)
    const began = processorSeconds()
    const { bars } = yield* read({ coin: "BTC", interval: "1m" }, { from, to: from + page - 1 }, page)
    reads.push((processorSeconds() - began) * 1000)
    if (bars.length !== page) throw new Error(`${bars.length} bars were read instead of ${page}`)
  }
  return { count, rates, reads, steps }
})

await run("archive", async () => {
  const { count, rates, reads, steps } = await Effect.runPromise(Effect.provide(measured, archive))
  const size = fs.statSync(file).size / count
  const year = size * 200 * 525_600 / 1024 ** 3
  fs.rmSync(folder, { recursive: true })
  return {
    rows: [
      {
        title: "archive: a bar of a minute on disk",
        beside: `the SQLite file of ${count} bars, divided by them`,
        unit: "bytes",
        value: size,
        values: [size],
        aim: "<= 24",
        met: size <= 24
      },
      {
        title: "archive: growth in a year",
        beside: "200 coins with a bar for every minute",
        unit: "GiB",
        value: year,
        values: [year]
      },
      {
        title: `archive: ${page} bars written at once`,
        beside: "bars for each second of processor time",
        unit: "bars/s",
        value: median(rates),
        values: rates,
        aim: ">= 20000",
        met: median(rates) >= 20_000
      },
      {
        title: "archive: one bar more",
        beside: "processor time",
        unit: "ms",
        value: median(steps),
        values: steps
      },
      {
        title: `archive: ${page} bars read`,
        beside: "processor time",
        unit: "ms",
        value: median(reads),
        values: reads,
        aim: "<= 5",
        met: median(reads) <= 5
      }
    ]
  }
})
