import { assert, describe, it } from "@effect/vitest"
import * as CandleArchiveMemory from "@trigate/archive/CandleArchive"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { btc, origin, read, suite, write } from "./archiveSuite.ts"
import { barsOf } from "./market.ts"

describe("the archive in memory", () => {
  suite(() => Effect.succeed(CandleArchiveMemory.layer()))

  it.effect("forgets what was used least recently, and says so", () =>
    Effect.gen(function*() {
      const chunk = (at: number) => ({ from: 29_800_000 + 1000 * at, to: 29_800_999 + 1000 * at })
      for (const at of [0, 1, 2]) yield* write(chunk(at))
      yield* read(chunk(0))
      yield* write(chunk(3))
      const { known } = yield* read({ from: chunk(0).from, to: chunk(3).to })
      assert.deepStrictEqual(known, [chunk(0), { from: chunk(2).from, to: chunk(3).to }])
    }).pipe(Effect.provide(CandleArchiveMemory.layer({ maxBytes: 22_000 }))))

  it.effect("refuses bars of another range or series as a mistake of the program", () =>
    Effect.gen(function*() {
      const archive = yield* CandleArchive
      const range = { from: origin, to: origin + 1 }
      const bars = barsOf("BTC", "1m", range)
      for (
        const wrong of [
          archive.write(btc, { from: origin, to: origin }, bars),
          archive.write({ coin: "ETH", interval: "1m" }, range, bars)
        ]
      ) {
        assert.isTrue(Cause.hasDies(yield* Effect.flip(Effect.sandbox(wrong))))
      }
      assert.deepStrictEqual(yield* archive.list(), [])
    }).pipe(Effect.provide(CandleArchiveMemory.layer())))
})
