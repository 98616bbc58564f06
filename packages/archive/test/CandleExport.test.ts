import { assert, describe, it } from "@effect/vitest"
import * as CandleArchiveMemory from "@trigate/archive/CandleArchive"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleExport from "@trigate/archive/CandleFiles"
import type { BarRange } from "@trigate/domain/candles/Candle"
import { openTime } from "@trigate/domain/candles/Candle"
import { ArchiveUnavailable } from "@trigate/domain/errors/GatewayError"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { btc, origin, write } from "./archiveSuite.ts"
import { barsOf } from "./market.ts"

/** The archive of the context, and what is read of it. */
const watched = Effect.map(CandleArchive, (archive) => {
  const reads: Array<BarRange> = []
  const source: CandleExport.Source = {
    ...archive,
    read: (series, range) => {
      reads.push(range)
      return archive.read(series, range)
    }
  }
  return { reads, source }
})

const bars = (source: CandleExport.Source, wanted: CandleExport.Wanted) =>
  Stream.unwrap(
    Effect.map(CandleExport.known(source, wanted), (known = []) => CandleExport.bars(source, wanted, known))
  )

const memory = <A, E>(body: Effect.Effect<A, E, CandleArchive>) => Effect.provide(body, CandleArchiveMemory.layer())

describe("the bars of a series", () => {
  it.effect("come a chunk at a time, and whoever stops reading stops the reading of the archive", () =>
    memory(Effect.gen(function*() {
      const range = { from: origin, to: origin + 29_999 }
      yield* write(range)
      const { reads, source } = yield* watched
      const all = yield* Stream.runCollect(bars(source, btc))
      assert.deepStrictEqual(all.flat(), barsOf("BTC", "1m", range))
      assert.deepStrictEqual(new Set(all.map(({ length }) => length)), new Set([500, 1000]))
      assert.lengthOf(all, 31)
      assert.lengthOf(reads.splice(0), 31)
      const first = yield* Stream.runCollect(Stream.take(bars(source, btc), 1))
      assert.deepStrictEqual([first.flat().length, reads.length], [500, 1])
    })))

  it.effect("are those of known stretches, however far apart these are, and none beyond the bounds", () =>
    memory(Effect.gen(function*() {
      const parts = [[origin, origin + 3], [origin + 5, origin + 8], [origin + 4_000_000, origin + 4_000_001]]
      const ranges = parts.map(([from = 0, to = 0]) => ({ from, to }))
      for (const range of ranges) yield* write(range)
      const { reads, source } = yield* watched
      const all = ranges.flatMap((range) => barsOf("BTC", "1m", range))
      assert.deepStrictEqual((yield* Stream.runCollect(bars(source, btc))).flat(), all)
      assert.lengthOf(reads, 2)
      const bounds = { from: openTime("1m", origin + 2), to: openTime("1m", origin + 6) }
      assert.deepStrictEqual((yield* Stream.runCollect(bars(source, { ...btc, ...bounds }))).flat(), all.slice(2, 6))
      const within = { from: bounds.from + 1, to: bounds.to - 1 }
      assert.deepStrictEqual((yield* Stream.runCollect(bars(source, { ...btc, ...within }))).flat(), all.slice(3, 5))
      assert.isUndefined(yield* CandleExport.known(source, { ...btc, coin: "ETH" }))
    })))

  it.effect("do not grow while they are read", () =>
    memory(Effect.gen(function*() {
      yield* write({ from: origin, to: origin + 6999 })
      const { source } = yield* watched
      const known = yield* CandleExport.known(source, btc)
      yield* write({ from: origin + 7000, to: origin + 7999 })
      const read = yield* Stream.runCollect(CandleExport.bars(source, btc, known ?? []))
      assert.deepStrictEqual(read.flat(), barsOf("BTC", "1m", { from: origin, to: origin + 6999 }))
    })))

  it.effect("end with the failure of an archive that goes away", () =>
    memory(Effect.gen(function*() {
      yield* write({ from: origin, to: origin + 9999 })
      const { reads, source } = yield* watched
      const away = new ArchiveUnavailable({ reason: "away" })
      const failing: CandleExport.Source = {
        ...source,
        read: (series, range) => reads.length === 0 ? source.read(series, range) : Effect.fail(away)
      }
      for (const format of ["ndjson", "csv", "parquet"] as const) {
        reads.length = 0
        const known = yield* CandleExport.known(source, btc)
        const file = CandleExport.file(failing, btc, known ?? [], format)
        assert.strictEqual(yield* Effect.flip(Stream.runDrain(file)), away)
      }
    })))
})
