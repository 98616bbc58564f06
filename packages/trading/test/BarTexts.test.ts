import { assert, describe, it } from "@effect/vitest"
import type { Candle } from "@trigate/domain/candles/Candle"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { BarTexts, noBars } from "@trigate/trading/unstable/candles/BarCache"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const barAt = (at: number, n = 0): Candle => ({
  t: 60_000 * at,
  T: 60_000 * (at + 1) - 1,
  s: "BTC",
  i: "1m",
  o: "1.0",
  c: "1.50",
  h: "2.0",
  l: "0.5",
  v: "3.25",
  n
})

const textOf = (list: BarTexts) => Utf8.decodeLossy(Utf8.joined(list.write()))

const Places = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 })))

/** A list that is made of several texts. */
const listOf = (at: ReadonlyArray<number>, n: number) => {
  const places = [...new Set(at)].toSorted((a, b) => a - b)
  const bars = places.map((place) => barAt(place, n))
  const middle = bars.length >> 1
  const parts = [bars.slice(0, middle), bars.slice(middle)]
  return { bars, list: new BarTexts(parts.flatMap((part) => BarTexts.fromBars(part).runs)) }
}

describe("lists of bars as texts", () => {
  it.effect.prop(
    "are joined, cut, measured and decoded as lists of bars are",
    { one: Places, other: Places, from: Schema.Literals([0, 7, 20]), most: Schema.Literals([0, 1, 5, 100]) },
    ({ from, most, one, other }) =>
      Effect.gen(function*() {
        const [first, second] = [listOf(one, 1), listOf(other, 2)]
        const byTime = new Map([...first.bars, ...second.bars].map((bar) => [bar.t, bar]))
        const bars = [...byTime.values()].toSorted((a, b) => a.t - b.t)
        const list = first.list.merge(second.list)
        assert.strictEqual(textOf(list), JSON.stringify(bars))
        assert.deepStrictEqual(yield* list.decoded, bars)
        assert.deepStrictEqual(list.times, bars.map(({ t }) => t))
        assert.strictEqual(list.size, bars.length)
        assert.strictEqual(list.oldest, bars[0]?.t)
        assert.strictEqual(list.newest, bars.at(-1)?.t)
        const [start, end] = [60_000 * from, 60_000 * (from + 9)]
        assert.strictEqual(
          textOf(list.between(start, end)),
          JSON.stringify(bars.filter(({ t }) => t >= start && t <= end))
        )
        assert.strictEqual(textOf(list.takeNewest(most)), JSON.stringify(most === 0 ? [] : bars.slice(-most)))
      })
  )

  it("grow bar by bar without growing in pieces", () => {
    let list = noBars
    for (let at = 0; at < 1000; at++) list = list.merge(BarTexts.fromBars([barAt(at)]))
    assert.strictEqual(textOf(list), JSON.stringify(Array.from({ length: 1000 }, (_, at) => barAt(at))))
    assert.isAtMost(list.runs.length, 16)
  })
})
