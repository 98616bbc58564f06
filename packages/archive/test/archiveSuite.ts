/** What every layer of `CandleArchive` has to do, and what its tests share. */
import { assert, it } from "@effect/vitest"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import type { BarRange } from "@trigate/domain/candles/Candle"
import { openTime } from "@trigate/domain/candles/Candle"
import type { ArchiveUnavailable } from "@trigate/domain/errors/GatewayError"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Scope } from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { barsOf } from "./market.ts"

/** A time of writing, behind all bars. */
export const now = 1_795_000_000_000

/** A bar number in the middle of a chunk. */
export const origin = 29_800_500

export const btc = { coin: "BTC", interval: "1m" } as const

export const write = (range: BarRange, hole?: number) =>
  CandleArchive.use((archive) => archive.write(btc, range, barsOf("BTC", "1m", range, hole)))

export const read = (range: BarRange, most?: number) => CandleArchive.use((archive) => archive.read(btc, range, most))

export const suite = (make: () => Effect.Effect<Layer.Layer<CandleArchive>, never, Scope>) => {
  const test = (name: string, body: Effect.Effect<void, ArchiveUnavailable, CandleArchive>) =>
    it.effect(name, () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(now)
        yield* Effect.provide(body, yield* make())
      }))

  test(
    "gives back what was written, over the borders of chunks, with what is known",
    Effect.gen(function*() {
      const range = { from: origin, to: origin + 2600 }
      const bars = barsOf("BTC", "1m", range, 5)
      assert.deepStrictEqual(yield* write(range, 5), { added: bars.length, corrected: 0 })
      assert.deepStrictEqual(yield* read({ from: origin - 10, to: origin + 3000 }), { bars, known: [range] })
      const inside = { from: origin + 3, to: origin + 1007 }
      assert.deepStrictEqual(yield* read(inside), {
        bars: bars.filter(({ t }) => t >= openTime("1m", inside.from) && t <= openTime("1m", inside.to)),
        known: [inside]
      })
    })
  )

  test(
    "knows nothing before the first write, and nothing of other series",
    Effect.gen(function*() {
      const range = { from: origin, to: origin + 9 }
      assert.deepStrictEqual(yield* read(range), { bars: [], known: [] })
      yield* write(range)
      const archive = yield* CandleArchive
      assert.deepStrictEqual(yield* archive.read({ coin: "BTC", interval: "5m" }, range), { bars: [], known: [] })
      assert.deepStrictEqual(yield* archive.read({ coin: "ETH", interval: "1m" }, range), { bars: [], known: [] })
    })
  )

  test(
    "changes nothing when the same comes again",
    Effect.gen(function*() {
      const range = { from: origin, to: origin + 999 }
      yield* write(range)
      const before = yield* (yield* CandleArchive).list()
      assert.deepStrictEqual(yield* write({ from: origin + 100, to: origin + 200 }), { added: 0, corrected: 0 })
      assert.deepStrictEqual(yield* (yield* CandleArchive).list(), before)
    })
  )

  test(
    "keeps a range without trades as known, and tells what was never written as a gap",
    Effect.gen(function*() {
      const archive = yield* CandleArchive
      yield* write({ from: origin, to: origin + 9 })
      yield* archive.write(btc, { from: origin + 10, to: origin + 19 }, [])
      yield* write({ from: origin + 1030, to: origin + 1039 })
      const known = [{ from: origin, to: origin + 19 }, { from: origin + 1030, to: origin + 1039 }]
      const found = yield* read({ from: origin, to: origin + 2000 })
      assert.deepStrictEqual(found.known, known)
      assert.lengthOf(found.bars, 20)
      assert.deepStrictEqual((yield* archive.list()).map(({ bytes: _, ...status }) => status), [{
        ...btc,
        bars: 20,
        known
      }])
    })
  )

  test(
    "takes the corrected bar, and keeps the earlier versions",
    Effect.gen(function*() {
      const archive = yield* CandleArchive
      const range = { from: origin, to: origin + 9 }
      yield* write(range)
      const bars = barsOf("BTC", "1m", range)
      const [, second] = bars
      assert(second !== undefined)
      const own = { from: origin + 1, to: origin + 1 }
      const corrected = { ...second, c: `${second.c}0`, n: second.n + 1 }
      assert.deepStrictEqual(yield* archive.write(btc, own, [corrected]), { added: 0, corrected: 1 })
      yield* TestClock.adjust(5000)
      assert.deepStrictEqual(yield* archive.write(btc, own, [second]), { added: 0, corrected: 1 })
      assert.deepStrictEqual((yield* read(range)).bars, bars)
      assert.deepStrictEqual(yield* archive.earlierVersions(btc, range), [
        { bar: second, replacedAt: now },
        { bar: corrected, replacedAt: now + 5000 }
      ])
      assert.deepStrictEqual(yield* archive.earlierVersions(btc, { from: origin + 2, to: origin + 9 }), [])
    })
  )

  test(
    "reads only the newest bars of a long range, and still says what is known of all of it",
    Effect.gen(function*() {
      const range = { from: origin, to: origin + 11_999 }
      yield* write(range)
      const found = yield* read(range, 5000)
      assert.deepStrictEqual(found.known, [range])
      assert.isBelow(found.bars.length, 7000)
      assert.deepStrictEqual(found.bars.slice(-5000), barsOf("BTC", "1m", { from: range.to - 4999, to: range.to }))
    })
  )

  test(
    "takes each of several writes at the same time",
    Effect.gen(function*() {
      const parts = Array.from(
        { length: 20 },
        (_, part) => ({ from: origin + 100 * part, to: origin + 100 * part + 99 })
      )
      yield* Effect.forEach(parts, (part) => write(part), { concurrency: "unbounded" })
      const range = { from: origin, to: origin + 1999 }
      assert.deepStrictEqual(yield* read(range), { bars: barsOf("BTC", "1m", range), known: [range] })
    })
  )

  test(
    "has room for every interval and coin, and lists them in order",
    Effect.gen(function*() {
      const archive = yield* CandleArchive
      const kinds = [["ETH", "1M"], ["ETH", "1m"], ["BTC", "1w"], ["PURR/USDC", "3d"]] as const
      for (const [coin, interval] of kinds) {
        const range = { from: 690, to: 1009 }
        const from = interval === "1M" ? { from: 650, to: 680 } : { from: 2800, to: 2950 }
        yield* archive.write({ coin, interval }, range, [])
        const bars = barsOf(coin, interval, from)
        yield* archive.write({ coin, interval }, from, bars)
        assert.deepStrictEqual((yield* archive.read({ coin, interval }, from)).bars, bars)
      }
      assert.deepStrictEqual(
        (yield* archive.list()).map(({ coin, interval }) => `${coin} ${interval}`),
        ["BTC 1w", "ETH 1m", "ETH 1M", "PURR/USDC 3d"]
      )
    })
  )

  test(
    "lists a hundred coins at a time",
    Effect.gen(function*() {
      const archive = yield* CandleArchive
      const coins = Array.from({ length: 250 }, (_, index) => `C${String(index).padStart(3, "0")}`)
      for (const coin of coins.toReversed()) yield* archive.write({ coin, interval: "1h" }, { from: 0, to: 0 }, [])
      yield* archive.write({ coin: "C099", interval: "1m" }, { from: 0, to: 0 }, [])
      const pages = yield* Effect.forEach([undefined, "C099", "C199", "C249"], (after) => archive.list(after))
      assert.deepStrictEqual(pages.map((page) => page.map(({ coin, interval }) => `${coin} ${interval}`)), [
        [...coins.slice(0, 99).map((coin) => `${coin} 1h`), "C099 1m", "C099 1h"],
        coins.slice(100, 200).map((coin) => `${coin} 1h`),
        coins.slice(200).map((coin) => `${coin} 1h`),
        []
      ])
    })
  )
}
