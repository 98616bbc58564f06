import { assert, describe, it } from "@effect/vitest"
import { Candle, CandleInterval, closeTime, openTime } from "@trigate/domain/candles/Candle"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as CandleText from "@trigate/domain/unstable/candles/CandleText"
import * as Schema from "effect/Schema"
import candles from "./fixtures/candleSnapshot-ETH-1h.json" with { type: "json" }

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Candle)))

const bar = (minute: number): Candle => ({
  t: minute * 60_000,
  T: minute * 60_000 + 59_999,
  s: "BTC",
  i: "1m",
  o: "100000.5",
  c: "99999",
  h: "100001.25",
  l: "0.00001",
  v: "12.5",
  n: minute % 7
})
/** The pieces of a text that is cut at some places. */
const cutAt = (text: string, ...places: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const bytes = Utf8.encode(text)
  const ends = [...places.map((place) => Math.min(place, bytes.length)), bytes.length]
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end))
}

/** The same whatever pieces a text comes in; the sizes are those at which other ways through the code begin. */
const barsIn = (text: string): number | undefined => {
  const whole = CandleText.countRows([Utf8.encode(text)])
  for (const size of [1000, 1023, 1024, 1025, 2047, 2048, 2049, 5000]) {
    const places = Array.from({ length: Math.floor(text.length / size) }, (_, index) => (index + 1) * size)
    assert.strictEqual(CandleText.countRows(cutAt(text, ...places)), whole, `in pieces of ${size} bytes`)
  }
  return whole
}

const list = (length: number) => Array.from({ length }, (_, index) => bar(index))

describe("countRows", () => {
  for (const length of [0, 1, 2, 59, 60, 61, 119, 120, 121, 5000]) {
    it(`counts ${length}`, () => {
      assert.strictEqual(barsIn(JSON.stringify(list(length))), length)
    })
  }

  it("takes members in whatever order the venue writes them", () => {
    const turned = list(3).map((each) => Object.fromEntries(Object.entries(each).toReversed()))
    assert.strictEqual(barsIn(JSON.stringify(turned)), 3)
  })

  it("takes a text that is cut anywhere", () => {
    const text = JSON.stringify(list(40))
    for (let at = 0; at <= text.length; at++) {
      assert.strictEqual(CandleText.countRows(cutAt(text, at)), 40, `cut at ${at}`)
      assert.strictEqual(CandleText.countRows(cutAt(text, at, at + 1)), 40, `cut at ${at} and behind`)
    }
  })

  it("takes bytes that lie behind others in their buffer, and reads nothing beyond them", () => {
    const text = JSON.stringify(list(3))
    const around = Utf8.encode(`[{${text}},9]`)
    assert.strictEqual(CandleText.countRows([around.subarray(2, 2 + text.length)]), 3)
    assert.isUndefined(CandleText.countRows([around.subarray(2, 1 + text.length)]))
  })

  it("knows a recorded answer", () => {
    const text = JSON.stringify(candles.response)
    assert.strictEqual(barsIn(text), decode(text).length)
  })

  const whole = JSON.stringify(list(121))
  for (
    const [what, text] of Object.entries({
      "a cut one": whole.slice(0, -1),
      "one that is cut between two bars": whole.slice(0, whole.lastIndexOf(",{")),
      "one with something behind": `${whole}]`,
      "one with something between": `${whole.slice(0, -1)},${whole.slice(1)}]`,
      "a list in a list": `[${whole}]`,
      "two lists": `${whole}${whole}`,
      "an error": `{"error":"no"}`,
      "null": "null",
      "nothing": "",
      "a member more": JSON.stringify([bar(0), { ...bar(1), x: 1 }]),
      "a member less": JSON.stringify(list(2).map(({ n: _, ...each }) => each)),
      "a number for a price": JSON.stringify([bar(0), { ...bar(1), o: 1 }]),
      "a price that is none": JSON.stringify([bar(0), { ...bar(1), o: "1e5" }]),
      "a time above 2^53": whole.replace(`"t":0`, `"t":9007199254740993`),
      "a negative time": whole.replace(`"t":0`, `"t":-1`),
      "another interval": whole.replace(`"1m"`, `"2m"`),
      "one member twice": whole.replace(`"n":0`, `"n":0,"n":0`),
      "spaces": JSON.stringify(list(2), null, 1),
      "a number that does not end": `[{"t":${"1".repeat(5000)}`,
      "a coin that does not end": `[{"t":1,"T":2,"s":"${"A".repeat(5000)}`,
      "what is not UTF-8": `${whole.slice(0, -2)}\ufffd}]`,
      "an escape": whole.replace("BTC", "\\u0042TC")
    })
  ) {
    it(`does not know ${what}`, () => {
      assert.isUndefined(barsIn(text))
    })
  }

  it.prop("what it knows decodes to the bars that were written, and it never knows what does not", [
    Schema.Array(Candle)
  ], ([bars]) => {
    const text = JSON.stringify(bars)
    const known = barsIn(text)
    if (known !== undefined) assert.strictEqual(known, bars.length)
  })

  it("never knows a text with one character changed, unless it still decodes", () => {
    const text = JSON.stringify(list(2))
    for (let at = 0; at < text.length; at++) {
      for (const character of ["0", "\"", ",", "}", "]", "[", "x", " ", ":", "-", "."]) {
        const changed = text.slice(0, at) + character + text.slice(at + 1)
        const known = barsIn(changed)
        if (known !== undefined) assert.strictEqual(decode(changed).length, known, changed)
      }
    }
  })
})

describe("indexSeries", () => {
  const series = { coin: "BTC", interval: "1m" } as const
  const barsOf = (coin: string, interval: string) =>
    Array.from({ length: 50 }, (_, index) => ({
      ...bar(index),
      t: 60_000 * (index + 3),
      T: 60_000 * (index + 4) - 1,
      s: coin,
      i: interval
    }))
  const bars = barsOf("BTC", "1m")
  const text = JSON.stringify(bars)

  it("finds each bar, with the comma behind it, in whatever pieces the text comes", () => {
    for (let at = 0; at <= text.length; at += 7) {
      const places = CandleText.indexSeries(cutAt(text, at), series)
      assert(places !== undefined)
      assert.deepStrictEqual(places.times, bars.map(({ t }) => t))
      const found = bars.map((_, index) => text.slice(places.starts[index], (places.starts[index + 1] ?? 0) - 1))
      assert.deepStrictEqual(found, bars.map((each) => JSON.stringify(each)))
    }
    assert.deepStrictEqual(CandleText.indexSeries([Utf8.encode("[]")], series)?.times, [])
  })

  const [first, second, ...others] = bars
  for (
    const [what, list] of Object.entries({
      "of another coin": barsOf("ETH", "1m"),
      "of another interval": barsOf("BTC", "1h"),
      "of which one is of another coin": [first, { ...second, s: "ETH" }, ...others],
      "that are out of order": [second, first, ...others],
      "of which one comes twice": [first, first, second],
      "of which one opens between two": [first, { ...second, t: 240_001 }],
      "of which one closes too late": [first, { ...second, T: 300_000 }]
    })
  ) {
    it(`refuses bars ${what}`, () => {
      assert.isUndefined(CandleText.indexSeries([Utf8.encode(JSON.stringify(list))], series))
    })
  }

  it("refuses a text that is not whole, or that has more behind it", () => {
    for (let end = 0; end < text.length; end++) {
      assert.isUndefined(CandleText.indexSeries([Utf8.encode(text.slice(0, end))], series), `cut at ${end}`)
    }
    assert.isUndefined(CandleText.indexSeries([Utf8.encode(`${text} `)], series))
  })
})

describe("indexBars", () => {
  it("reads the chunks of a response once", () => {
    const pieces = cutAt(JSON.stringify(list(40)), 1000)
    const index = CandleText.indexBars(pieces)
    assert.strictEqual(index?.times.length, 40)
    assert.strictEqual(CandleText.indexBars(pieces), index)
    assert.strictEqual(CandleText.indexSeries(pieces, { coin: "BTC", interval: "1m" }), index)
    // a response that is restored from a cache has a new list of the same chunk
    const bytes = Utf8.encode(JSON.stringify(list(40)))
    assert.strictEqual(CandleText.indexBars([bytes]), CandleText.indexBars([bytes]))
  })

  it("reads times of every length", () => {
    const times = Array.from({ length: 15 }, (_, digits) => 60_000 * Math.floor(10 ** (digits + 1) / 97_000))
    const bars = times.map((t) => ({ ...bar(0), t, T: t + 59_999 }))
    assert.deepStrictEqual(CandleText.indexBars([Utf8.encode(JSON.stringify(bars))])?.times, times)
  })

  it.prop("knows which bars are those of their interval, whatever gaps there are", {
    interval: CandleInterval,
    bars: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 600 }))),
    late: Schema.Literals([0, 1])
  }, ({ bars, interval, late }) => {
    const numbers = [...new Set(bars)].toSorted((a, b) => a - b)
    const rows = numbers.map((number, index): Candle => {
      const t = openTime(interval, number) + (index === 1 ? late : 0)
      return Object.assign(bar(0), { i: interval, t, T: closeTime(interval, number) })
    })
    const index = CandleText.indexBars([Utf8.encode(JSON.stringify(rows))])
    assert(index !== null)
    assert.deepStrictEqual(index.times, rows.map(({ t }) => t))
    assert.strictEqual(index.isOrdered, late === 0 || rows.length < 2)
    assert.deepStrictEqual(index.series, rows.length === 0 ? undefined : { coin: "BTC", interval })
  })
})
