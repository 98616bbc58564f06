import { assert, describe, it } from "@effect/vitest"
import * as Candles from "@trigate/domain/candles/Candle"
import { Candle, CandleInterval } from "@trigate/domain/candles/Candle"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import kpepe from "./fixtures/candleSnapshot-kPEPE-1h.json" with { type: "json" }

const hour = 3_600_000
const day = 24 * hour

const barOf = (interval: CandleInterval, bar: number): Candle => ({
  t: Candles.openTime(interval, bar),
  T: Candles.closeTime(interval, bar),
  s: "BTC",
  i: interval,
  o: "1",
  c: "1",
  h: "1",
  l: "1",
  v: "0",
  n: 0
})
const rows = (interval: CandleInterval, from: number, count: number) =>
  Array.from({ length: count }, (_, offset) => barOf(interval, from + offset))

const now = 500_000 * hour + 1234
const newest = 500_000
const oldest = newest - 4999
const window = (from: number, to?: number) => ({
  coin: "BTC",
  interval: "1h" as const,
  startTime: from * hour,
  ...(to === undefined ? {} : { endTime: to * hour + 5 })
})
const coverage = (request: ReturnType<typeof window>, candles: ReadonlyArray<Candle>) =>
  Candles.fromSnapshot(request, candles, now).coverage

describe("where bars begin", () => {
  it("a week opens on Thursday 00:00 UTC, as the epoch did", () => {
    const sunday = Date.UTC(2026, 7, 23, 15, 30)
    const open = Candles.openTimeAt("1w", sunday)
    assert.strictEqual(open, Date.UTC(2026, 7, 20))
    assert.strictEqual(new Date(open).getUTCDay(), 4)
    assert.strictEqual(
      Candles.closeTime("1w", Candles.barAt("1w", sunday)),
      Date.UTC(2026, 7, 27) - 1
    )
  })

  it("months are those of the UTC calendar", () => {
    const february = Candles.barAt("1M", Date.UTC(2024, 1, 29, 23, 59, 59, 999))
    assert.strictEqual(Candles.openTime("1M", february), Date.UTC(2024, 1, 1))
    assert.strictEqual(Candles.closeTime("1M", february), Date.UTC(2024, 2, 1) - 1)
    assert.strictEqual(Candles.openTime("1M", february - 2), Date.UTC(2023, 11, 1))
    assert.strictEqual(Candles.openTime("1M", 0), 0)
    assert.strictEqual(Candles.openTime("1M", -1), Date.UTC(1969, 11, 1))
    for (let month = -12 * 270; month < 12 * 1030; month++) {
      const open = Date.UTC(1970, month, 1)
      assert.strictEqual(Candles.openTime("1M", month), open)
      assert.strictEqual(Candles.barAt("1M", open), month)
      assert.strictEqual(Candles.barAt("1M", open - 1), month - 1)
    }
  })

  it("three days and half days are counted from the epoch", () => {
    assert.strictEqual(Candles.openTimeAt("3d", 7 * day + 1), 6 * day)
    assert.strictEqual(Candles.openTimeAt("12h", day - 1), 12 * hour)
  })

  it("recorded bars stand where they are expected", () => {
    for (const { T, t } of kpepe.response) {
      const bar = Candles.barAt("1h", t)
      assert.deepStrictEqual([Candles.openTime("1h", bar), Candles.closeTime("1h", bar)], [t, T])
    }
  })

  it("the horizon is the 5000th bar counted from the forming one", () => {
    assert.strictEqual(Candles.oldestRetainedBar("1h", now), oldest)
    assert.strictEqual(Candles.oldestRetainedBar("1m", 10_000 * 60_000), 10_000 - 4999)
  })

  it.effect.prop(
    "a bar holds exactly the instants from its open to its close",
    {
      interval: CandleInterval,
      instant: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4_102_444_800_000 }))
    },
    ({ instant, interval }) =>
      Effect.sync(() => {
        const bar = Candles.barAt(interval, instant)
        const open = Candles.openTime(interval, bar)
        const close = Candles.closeTime(interval, bar)
        assert.isTrue(open <= instant && instant <= close)
        assert.strictEqual(Candles.barAt(interval, open), bar)
        assert.strictEqual(Candles.barAt(interval, close), bar)
        assert.strictEqual(Candles.barAt(interval, close + 1), bar + 1)
      })
  )
})

describe("what an answer leaves out", () => {
  it("a window within the retained bars is complete, whatever came", () => {
    assert.strictEqual(coverage(window(oldest), []), "complete")
    assert.strictEqual(coverage(window(oldest), rows("1h", oldest, 4000)), "complete")
    assert.strictEqual(coverage(window(newest - 10, newest - 5), rows("1h", newest - 7, 2)), "complete")
  })

  it("a window cut to the newest 5000 rows is truncated", () => {
    assert.strictEqual(coverage(window(oldest - 1), rows("1h", oldest, 5000)), "truncated")
    assert.strictEqual(coverage(window(oldest - 100), rows("1h", oldest - 3, 5003)), "truncated")
  })

  it("a full answer that lacks the head is truncated even where the clock says that it fits", () => {
    assert.strictEqual(coverage(window(oldest), rows("1h", oldest + 1, 5000)), "truncated")
  })

  it("a window that ends before now can be truncated with few rows", () => {
    assert.strictEqual(coverage(window(oldest - 100, oldest + 9), rows("1h", oldest, 10)), "truncated")
  })

  it("the head of a window that reaches now is complete when fewer than 5000 rows came", () => {
    assert.strictEqual(coverage(window(0), rows("1h", newest - 99, 100)), "complete")
    assert.strictEqual(coverage(window(0), [barOf("1h", oldest - 50), ...rows("1h", newest - 9, 10)]), "complete")
  })

  it("a first row after the horizon is the coin's first trade", () => {
    assert.strictEqual(coverage(window(0, oldest + 20), rows("1h", oldest + 1, 20)), "complete")
  })

  it("rows that begin with the window's own first bar are all of it, however old", () => {
    assert.strictEqual(coverage(window(10, 20), rows("1h", 10, 11)), "complete")
  })

  it("nothing from before the horizon has aged out; nothing from a window that crosses it means no trades", () => {
    assert.strictEqual(coverage(window(0, oldest - 1), []), "agedOut")
    assert.strictEqual(coverage(window(0, oldest), []), "complete")
  })

  it("an empty or future window is complete", () => {
    assert.strictEqual(coverage(window(newest + 5), []), "complete")
    assert.strictEqual(coverage(window(10, 5), []), "complete")
  })

  it("the recorded window was complete when it was recorded and cannot be told from a cut one years later", () => {
    const { req } = kpepe.request
    const request = { ...req, interval: "1h" as const }
    const candles = Schema.decodeUnknownSync(Schema.Array(Candle))(kpepe.response)
    assert.strictEqual(Candles.fromSnapshot(request, candles, req.endTime).coverage, "complete")
    assert.strictEqual(Candles.fromSnapshot(request, candles, req.endTime).forming?.t, 1_684_782_000_000)
    const later = Date.UTC(2026, 0, 1)
    assert.strictEqual(Candles.fromSnapshot(request, candles, later).coverage, "complete")
    assert.isUndefined(Candles.fromSnapshot(request, candles, later).forming)
    assert.strictEqual(Candles.fromSnapshot(request, candles.slice(1), later).coverage, "truncated")
  })

  it("the last bar is forming until its close has passed", () => {
    const candles = rows("1h", 10, 2)
    const request = window(10, 11)
    const closing = Candles.closeTime("1h", 11)
    assert.strictEqual(Candles.fromSnapshot(request, candles, closing).forming, candles[1])
    assert.isUndefined(Candles.fromSnapshot(request, candles, closing + 1).forming)
    assert.isUndefined(Candles.fromSnapshot(request, [], closing).forming)
  })
})

const Bars = Schema.Struct({
  listed: Schema.Int.check(Schema.isBetween({ minimum: -7000, maximum: 100 })),
  from: Schema.Int.check(Schema.isBetween({ minimum: -7000, maximum: 100 })),
  length: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 7000 })),
  open: Schema.Boolean
})

/** A venue that keeps the newest 5000 of the bars that had a trade, counted back from `newest`. */
const venue = (listed: number, hadTrade: (bar: number) => boolean) => {
  const existing: Array<number> = []
  for (let bar = newest + listed; bar <= newest; bar++) if (hadTrade(bar)) existing.push(bar)
  return { existing, retained: new Set(existing.slice(-5000)) }
}

describe("against a venue that keeps the newest 5000 bars", () => {
  for (const sparseness of [1, 3]) {
    it.effect.prop(
      `never calls a cut window complete (one trade in ${sparseness} bars)`,
      [Bars],
      ([sample]) =>
        Effect.sync(() => {
          const { existing, retained } = venue(sample.listed, (bar) => bar % sparseness === 0)
          const request = sample.open
            ? window(newest + sample.from)
            : window(newest + sample.from, newest + sample.from + sample.length)
          const last = "endTime" in request ? newest + sample.from + sample.length : newest
          const asked = existing.filter((bar) => bar >= newest + sample.from && bar <= last)
          const came = asked.filter((bar) => retained.has(bar))
          const told = coverage(request, came.map((bar) => barOf("1h", bar)))
          if (came.length < asked.length) assert.strictEqual(told, came.length === 0 ? "agedOut" : "truncated")
          // with a trade in every bar only what precedes the listing, or begins exactly at the horizon, looks like a cut
          else if (sparseness === 1 && came.length > 0 && came[0] !== oldest) assert.strictEqual(told, "complete")
        })
    )
  }
})
