import { assert, describe, it } from "@effect/vitest"
import type { Candle, CandleWindowRequest } from "@trigate/domain/candles/Candle"
import * as Candles from "@trigate/domain/candles/Candle"
import { CandleInterval } from "@trigate/domain/candles/Candle"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"

const now = Date.UTC(2026, 7, 20, 12, 34, 56, 789)

interface Venue {
  /** Bar of the first trade, counted back from the newest. */
  readonly listed: number
  readonly hadTrade: (bar: number) => boolean
  /** Milliseconds by which the venue's bars begin later than ours. */
  readonly shift?: number
}

/** The real venue's rules: the newest 5000 bars are kept, a bar is in a window when `T >= startTime` and `t <= endTime`. */
const venueOf = (interval: CandleInterval, { hadTrade, listed, shift = 0 }: Venue) => {
  const asked: Array<CandleWindowRequest> = []
  const existing = (at: number): ReadonlyArray<Candle> => {
    const newest = Candles.barAt(interval, at - shift)
    const bars: Array<Candle> = []
    for (let bar = Math.max(0, newest + listed); bar <= newest; bar++) {
      if (!hadTrade(bar)) continue
      bars.push({
        t: Candles.openTime(interval, bar) + shift,
        T: Candles.closeTime(interval, bar) + shift,
        s: "BTC",
        i: interval,
        o: "1",
        c: "1",
        h: "1",
        l: "1",
        v: "0",
        n: 0
      })
    }
    return bars
  }
  const within = (bars: ReadonlyArray<Candle>, { endTime, startTime }: CandleWindowRequest, at: number) =>
    bars.filter(({ T, t }) => T >= startTime && t <= (endTime ?? at))
  const fetch = (request: CandleWindowRequest) =>
    Effect.map(Clock.currentTimeMillis, (at) => {
      asked.push(request)
      return Candles.fromSnapshot(request, within(existing(at).slice(-5000), request, at), at)
    })
  return { asked, existing, fetch, within }
}

const all = (request: CandleWindowRequest, venue: ReturnType<typeof venueOf>, options?: Candles.WalkOptions) =>
  Effect.andThen(TestClock.setTime(now), Stream.runCollect(Candles.walk(request, venue.fetch, options)))

const hour = 3_600_000
const always = () => true

describe("walk", () => {
  it.effect("meets at the boundaries of bars", () => {
    const venue = venueOf("1h", { listed: -9000, hadTrade: always })
    return Effect.gen(function*() {
      const startTime = now - 10 * hour
      const stretches = yield* all({ coin: "BTC", interval: "1h", startTime }, venue, { barsPerStretch: 4 })
      const open = Candles.openTimeAt("1h", now)
      assert.deepStrictEqual(
        stretches.map(({ endTime, startTime }) => [startTime, endTime]),
        [
          [startTime, open - 6 * hour - 1],
          [open - 6 * hour, open - 2 * hour - 1],
          [open - 2 * hour, now]
        ]
      )
      assert.deepStrictEqual(stretches.map(({ candles }) => candles.length), [4, 4, 3])
      assert.deepStrictEqual(stretches.map(({ forming }) => forming?.t), [undefined, undefined, open])
      assert.deepStrictEqual(stretches.map(({ coverage }) => coverage), ["complete", "complete", "complete"])
    })
  })

  it.effect("a window of years of minutes costs one request, and says that its head is gone", () => {
    const venue = venueOf("1m", { listed: -9000, hadTrade: always })
    return Effect.gen(function*() {
      const [stretch, ...more] = yield* all({ coin: "BTC", interval: "1m", startTime: 0 }, venue)
      assert.deepStrictEqual(more, [])
      assert.strictEqual(venue.asked.length, 1)
      assert.strictEqual(stretch?.coverage, "truncated")
      assert.strictEqual(stretch?.candles.length, 5000)
      assert.strictEqual(stretch?.candles[0]?.t, Candles.openTime("1m", Candles.oldestRetainedBar("1m", now)))
    })
  })

  it.effect("a window that lies behind what is kept has aged out", () => {
    const venue = venueOf("1m", { listed: -9000, hadTrade: always })
    return Effect.gen(function*() {
      const request = {
        coin: "BTC",
        interval: "1m",
        startTime: now - 8000 * 60_000,
        endTime: now - 6000 * 60_000
      } as const
      assert.deepStrictEqual(yield* all(request, venue), [{
        startTime: request.startTime,
        endTime: request.endTime,
        candles: [],
        coverage: "agedOut",
        forming: undefined
      }])
    })
  })

  it.effect("a listing inside the window is no gap", () => {
    const venue = venueOf("1d", { listed: -400, hadTrade: always })
    return Effect.gen(function*() {
      const stretches = yield* all({ coin: "BTC", interval: "1d", startTime: 0 }, venue)
      assert.deepStrictEqual(stretches.map(({ candles, coverage }) => [candles.length, coverage]), [[401, "complete"]])
    })
  })

  it.effect("walks calendar months and weeks that open on Thursday", () => {
    const months = venueOf("1M", { listed: -30, hadTrade: always })
    const weeks = venueOf("1w", { listed: -30, hadTrade: always })
    return Effect.gen(function*() {
      const startTime = Date.UTC(2026, 0, 31)
      const byMonth = yield* all({ coin: "BTC", interval: "1M", startTime }, months, { barsPerStretch: 3 })
      assert.deepStrictEqual(
        byMonth.map(({ candles }) => candles.map(({ t }) => new Date(t).toISOString().slice(0, 10))),
        [
          ["2026-01-01", "2026-02-01", "2026-03-01"],
          ["2026-04-01", "2026-05-01", "2026-06-01"],
          ["2026-07-01", "2026-08-01"]
        ]
      )
      const byWeek = yield* all({ coin: "BTC", interval: "1w", startTime: Date.UTC(2026, 6, 29) }, weeks, {
        barsPerStretch: 2
      })
      assert.deepStrictEqual(
        byWeek.map(({ candles }) => candles.map(({ t }) => new Date(t).toISOString().slice(0, 10))),
        [
          ["2026-07-23", "2026-07-30"],
          ["2026-08-06", "2026-08-13"],
          ["2026-08-20"]
        ]
      )
    })
  })

  it.effect("a bar that straddles a join is given out once", () => {
    const venue = venueOf("1w", { listed: -30, hadTrade: always, shift: 4 * 24 * hour })
    return Effect.gen(function*() {
      const request = { coin: "BTC", interval: "1w", startTime: now - 70 * 24 * hour } as const
      const stretches = yield* all(request, venue, { barsPerStretch: 2 })
      const opens = stretches.flatMap(({ candles }) => candles.map(({ t }) => t))
      assert.deepStrictEqual(opens, venue.within(venue.existing(now), request, now).map(({ t }) => t))
      assert.isAbove(stretches.length, 4)
      assert.strictEqual(new Date(opens[0] ?? 0).getUTCDay(), 1)
    })
  })

  it.effect("an empty window asks nothing; one within a single bar asks once", () => {
    const venue = venueOf("1h", { listed: -100, hadTrade: always })
    return Effect.gen(function*() {
      assert.deepStrictEqual(yield* all({ coin: "BTC", interval: "1h", startTime: now + hour }, venue), [])
      assert.deepStrictEqual(yield* all({ coin: "BTC", interval: "1h", startTime: hour, endTime: 5 }, venue), [])
      assert.deepStrictEqual(venue.asked, [])
      const [one] = yield* all({ coin: "BTC", interval: "1h", startTime: now, endTime: now + 99 * hour }, venue)
      assert.strictEqual(one?.candles.length, 1)
      assert.strictEqual(one?.forming, one?.candles[0])
      assert.strictEqual(venue.asked.length, 1)
    })
  })

  it.effect("bars that age out during a slow walk are told as missing", () => {
    const venue = venueOf("1m", { listed: -9000, hadTrade: always })
    return Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const stretches = yield* Stream.runCollect(
        Candles.walk({ coin: "BTC", interval: "1m", startTime: now - 4999 * 60_000 }, venue.fetch, {
          barsPerStretch: 2500
        }).pipe(Stream.tap(() => TestClock.adjust("3000 minutes")))
      )
      assert.deepStrictEqual(stretches.map(({ candles, coverage }) => [candles.length, coverage]), [
        [2500, "complete"],
        [2000, "truncated"]
      ])
    })
  })

  it.effect("is lazy: taking one stretch asks once", () => {
    const venue = venueOf("1h", { listed: -9000, hadTrade: always })
    return Effect.gen(function*() {
      yield* TestClock.setTime(now)
      yield* Candles.walk({ coin: "BTC", interval: "1h", startTime: now - 99 * hour }, venue.fetch, {
        barsPerStretch: 10
      })
        .pipe(Stream.take(1), Stream.runDrain)
      assert.strictEqual(venue.asked.length, 1)
    })
  })

  it.effect("bounds the size of a stretch to what one answer holds", () => {
    const venue = venueOf("1m", { listed: -9000, hadTrade: always })
    return Effect.gen(function*() {
      const request = { coin: "BTC", interval: "1m", startTime: now - 20 * 60_000 } as const
      for (const [barsPerStretch, stretches] of [[0, 21], [-5, 21], [1.9, 21], [1e9, 1]] as const) {
        assert.strictEqual((yield* all(request, venue, { barsPerStretch })).length, stretches)
      }
    })
  })
})

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const Walk = Schema.Struct({
  interval: CandleInterval,
  listed: between(-7000, 0),
  from: between(-7000, 10),
  length: between(0, 7000),
  unaligned: between(0, 59_999),
  open: Schema.Boolean,
  sparseness: between(1, 4),
  barsPerStretch: between(500, 5000)
})

describe("any window", () => {
  it.effect.prop(
    "no doubles, no gaps among the retained bars, in order, and no cut window is called complete",
    [Walk],
    ([{ barsPerStretch, from, interval, length, listed, open, sparseness, unaligned }]) => {
      const venue = venueOf(interval, { listed, hadTrade: (bar) => bar % sparseness === 0 })
      const newest = Candles.barAt(interval, now)
      const startTime = Math.max(0, Candles.openTime(interval, Math.max(0, newest + from)) + unaligned)
      const endTime = Candles.openTime(interval, Math.max(0, newest + from) + length) + unaligned
      const request: CandleWindowRequest = { coin: "BTC", interval, startTime, ...(open ? {} : { endTime }) }
      return Effect.gen(function*() {
        const stretches = yield* all(request, venue, { barsPerStretch })
        const given = stretches.flatMap(({ candles }) => candles.map(({ t }) => t))
        const existing = venue.existing(now)
        const kept = venue.within(existing.slice(-5000), request, now).map(({ t }) => t)
        assert.deepStrictEqual(given, kept)
        for (const { candles, coverage, endTime, startTime } of stretches) {
          assert.isAtMost(candles.length, 5000)
          const lost = venue.within(existing.slice(0, -5000), { ...request, startTime, endTime }, now)
          if (lost.length > 0) assert.strictEqual(coverage, candles.length === 0 ? "agedOut" : "truncated")
        }
        const [, ...later] = stretches
        for (const { candles, coverage } of later) {
          assert.isAtMost(candles.length, barsPerStretch)
          assert.strictEqual(coverage, "complete")
        }
        const bars = Candles.barAt(interval, Math.min(now, open ? now : endTime)) -
          Candles.barAt(interval, startTime)
        assert.isAtMost(venue.asked.length, Math.max(1, Math.ceil((Math.min(bars, 4999) + 1) / barsPerStretch)))
      })
    }
  )
})
