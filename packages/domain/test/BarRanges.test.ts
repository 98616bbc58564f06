import { assert, describe, it } from "@effect/vitest"
import type { BarRanges } from "@trigate/domain/candles/Candle"
import {
  addRange,
  countBars,
  gapsBetween,
  missingRanges,
  printRanges,
  rangesPattern,
  rangesWithin,
  readRanges,
  unionRanges
} from "@trigate/domain/candles/Candle"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const Place = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 }))
const Ranges = Schema.Array(
  Schema.Struct({ from: Place, length: Schema.Int.check(Schema.isBetween({ minimum: -1, maximum: 9 })) })
)

const numbers = (ranges: BarRanges): ReadonlyArray<number> =>
  ranges.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, index) => from + index))

describe("ranges of bars", () => {
  it.effect.prop(
    "are the set of their bars, in one form",
    { ranges: Ranges, from: Place, to: Place },
    ({ from, ranges, to }) =>
      Effect.sync(() => {
        const given = ranges.map(({ from, length }) => ({ from, to: from + length }))
        const expected = [...new Set(numbers(given))].toSorted((a, b) => a - b)
        const set = given.reduce<BarRanges>(addRange, [])
        assert.deepStrictEqual(numbers(set), expected)
        assert.deepStrictEqual(unionRanges(given.map((range) => addRange([], range))), set)
        assert.strictEqual(countBars(set), expected.length)
        assert.isTrue(set.every((range, index) => index === 0 || range.from > (set[index - 1]?.to ?? 0) + 1))
        const window = Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index)
        assert.deepStrictEqual(
          numbers(rangesWithin(set, { from, to })),
          window.filter((bar) => expected.includes(bar))
        )
        assert.deepStrictEqual(
          numbers(missingRanges(set, { from, to })),
          window.filter((bar) => !expected.includes(bar))
        )
        assert.deepStrictEqual(readRanges(printRanges(set, 0), 0), set)
        assert.match(printRanges(set, 0), rangesPattern)
      })
  )

  it("have gaps between them, and none before or behind", () => {
    assert.deepStrictEqual(gapsBetween([{ from: 3, to: 5 }, { from: 9, to: 9 }]), [{ from: 6, to: 8 }])
    assert.deepStrictEqual(gapsBetween([{ from: 3, to: 5 }]), [])
    assert.deepStrictEqual(gapsBetween([]), [])
  })

  it("stay the same object where nothing is added", () => {
    const set = [{ from: 3, to: 5 }]
    assert.strictEqual(addRange(set, { from: 4, to: 5 }), set)
  })
})
