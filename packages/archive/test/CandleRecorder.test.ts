import { assert, describe, it } from "@effect/vitest"
import * as CandleArchiveMemory from "@trigate/archive/CandleArchive"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleRecorder from "@trigate/archive/unstable/CandleRecorder"
import type { BarRange, Candle, CandleInterval } from "@trigate/domain/candles/Candle"
import { barAt, CandleInterval as Interval, gapsBetween, openTime } from "@trigate/domain/candles/Candle"
import { ArchiveUnavailable } from "@trigate/domain/errors/GatewayError"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as FakeVenue from "./fakeVenue.ts"

const begin = Date.UTC(2026, 8, 1, 10, 2, 30)
const hour = 3_600_000
const day = 24 * hour

/** Runs a recorder beside an effect; it ends with it, as with a process that is killed. */
const recording = <A, E, R>(
  venue: FakeVenue.FakeVenue,
  wishes: ReadonlyArray<CandleRecorder.Wish>,
  retained: number,
  during: Effect.Effect<A, E, R>
) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Effect.delay(CandleRecorder.record(venue.source, { wishes, retained }), 1))
    const result = yield* during
    yield* Fiber.interrupt(fiber)
    return result
  })

/** Lets time pass, a step at a time, so that what is asked for sees the time at which it is asked. */
const pass = (length: number, step: number) =>
  Effect.gen(function*() {
    for (let passed = 0; passed < length; passed += step) yield* TestClock.adjust(step)
  })

const everything: BarRange = { from: 0, to: 100_000_000 }

const held = (coin: string, interval: CandleInterval) =>
  CandleArchive.use((archive) => archive.read({ coin, interval }, everything))

const logged: Array<string> = []
const collected = Logger.layer([Logger.make(({ message }) => {
  logged.push(String(message))
})])

const run = <A, E>(body: Effect.Effect<A, E, CandleArchive>) =>
  Effect.gen(function*() {
    logged.length = 0
    yield* TestClock.setTime(begin)
    return yield* body
  }).pipe(Effect.provide([CandleArchiveMemory.layer({ maxBytes: 1e9 }), collected]))

const btc = [{ coin: "BTC", interval: "1m" }] as const

describe("the recorder", () => {
  it.effect("takes what the venue still has of every interval, then asks once for each bar that closes", () => {
    const venue = FakeVenue.make({ retained: 50, listed: begin - 20 * day })
    return run(recording(
      venue,
      btc,
      50,
      Effect.gen(function*() {
        yield* pass(FakeVenue.minutes(1), 10_000)
        assert.sameMembers(venue.asked.map(({ interval }) => interval), [...Interval.literals, "1m"])
        const first = venue.asked.length
        for (const interval of Interval.literals) {
          const { bars, known } = yield* held("BTC", interval)
          const last = barAt(interval, begin + 60_000) - 1
          assert.deepStrictEqual([known.length, known.at(-1)?.to], [1, last], interval)
          const from = barAt(interval, bars[0]?.t ?? 0)
          assert.deepStrictEqual(bars, venue.existing("BTC", interval, from, last), interval)
        }
        yield* pass(FakeVenue.minutes(30), 10_000)
        // larger bars that closed meanwhile were built, not asked for
        assert.deepStrictEqual(
          venue.asked.slice(first).map(({ interval }) => interval),
          Array.from({ length: 30 }, () => "1m")
        )
        const { bars } = yield* held("BTC", "5m")
        const last = barAt("5m", begin + 31 * 60_000) - 1
        assert.deepStrictEqual(bars.slice(-6), venue.existing("BTC", "5m", last - 5, last))
      })
    ))
  })

  it.effect("writes bars as a stream sends them, and requests an hour of them once, which corrects what the stream had wrong", () => {
    const venue = FakeVenue.make({ retained: 500, listed: begin - 20 * day })
    const ended = new Error("the stream ended")
    return Effect.flatMap(Queue.unbounded<Candle, Error>(), (frames) => {
      let opened = 0
      const source = {
        ...venue.source,
        listen: () => {
          opened++
          return Stream.fromQueue(frames)
        }
      }
      const minutesOf = (requests: typeof venue.asked) => requests.filter(({ interval }) => interval === "1m").length
      const first = barAt("1m", begin)
      /** A minute passes, in which the forming bar is sent twice; the second time as it will be. */
      const minute = (at: number, change: Partial<Candle> = {}) =>
        Effect.gen(function*() {
          const [bar] = venue.existing("BTC", "1m", at, at)
          assert(bar !== undefined)
          Queue.offerUnsafe(frames, { ...bar, c: bar.o, n: 0 })
          yield* pass(30_000, 10_000)
          Queue.offerUnsafe(frames, { ...bar, ...change })
          yield* pass(30_000, 10_000)
        })
      return run(recording(
        { ...venue, source },
        btc,
        500,
        Effect.gen(function*() {
          yield* minute(first)
          const atFirst = minutesOf(venue.asked)
          // the stream has a bar wrong, and lacks another
          for (let at = 1; at < 55; at++) {
            if (at === 20) yield* pass(60_000, 10_000)
            else yield* minute(first + at, at === 10 ? { c: "1.0" } : {})
          }
          assert.strictEqual(minutesOf(venue.asked), atFirst)
          const before = yield* held("BTC", "1m")
          assert.deepStrictEqual(before.known.slice(-1), [{ from: first + 21, to: first + 53 }])
          assert.deepStrictEqual(gapsBetween(before.known), [{ from: first + 19, to: first + 20 }])
          assert.deepStrictEqual(before.bars.find(({ t }) => barAt("1m", t) === first + 10)?.c, "1.0")
          for (let at = 55; at < 62; at++) yield* minute(first + at)
          assert.strictEqual(minutesOf(venue.asked), atFirst + 1)
          const after = yield* held("BTC", "1m")
          const last = after.known.at(-1)?.to ?? 0
          assert.isAtLeast(last, first + 59)
          assert.deepStrictEqual(gapsBetween(after.known), [])
          const from = barAt("1m", after.bars[0]?.t ?? 0)
          assert.deepStrictEqual(after.bars, venue.existing("BTC", "1m", from, last))
          assert.include(logged.join("\n"), "The venue corrected 1 of the bars of BTC 1m")
          // without the stream each bar is requested again, and the stream is opened again
          Queue.failCauseUnsafe(frames, Cause.fail(ended))
          yield* pass(FakeVenue.minutes(5), 10_000)
          assert.isAtLeast(minutesOf(venue.asked), atFirst + 5)
          assert.isAtLeast(opened, 4)
        })
      ))
    })
  })

  it.effect("keeps a month of a venue that keeps two days, over restarts and outages, and tells the one hole", () => {
    // a halt of the coin is no hole
    const halt = { from: begin + 9 * day, to: begin + 11 * day }
    const venue = FakeVenue.make({
      retained: 50,
      listed: begin - 3 * day,
      step: "15m",
      isHalted: (time) => time >= halt.from && time < halt.to
    })
    const wishes = [{ coin: "BTC", interval: "1h" }] as const
    const week = { from: begin + 16 * day, to: begin + 23 * day }
    return run(Effect.gen(function*() {
      const beside = (during: Effect.Effect<void>) => recording(venue, wishes, 50, during)
      yield* beside(pass(4 * day, hour))
      // it is down for two days, as long as nothing is lost
      yield* TestClock.adjust(48 * hour)
      yield* beside(Effect.gen(function*() {
        yield* pass(begin + 15 * day - (yield* Clock.currentTimeMillis), hour)
        venue.down = "HTTP 429"
        yield* pass(3 * hour, hour)
        venue.down = undefined
        yield* pass(week.from - (yield* Clock.currentTimeMillis), hour)
        venue.down = "the venue is away"
        yield* pass(week.to - week.from, hour)
        venue.down = undefined
        yield* pass(begin + 30 * day - (yield* Clock.currentTimeMillis), hour)
      }))
      const now = yield* Clock.currentTimeMillis
      const { bars, known } = yield* held("BTC", "1h")
      const [gap, ...others] = gapsBetween(known)
      assert(gap !== undefined)
      assert.deepStrictEqual(others, [])
      // what is missing is what the venue had dropped when it came back
      assert.isAtMost(Math.abs(gap.from - barAt("1h", week.from)), 1)
      assert.isAtMost(Math.abs(gap.to - (barAt("1h", week.to) - 50)), 2)
      const offered = known.flatMap(({ from, to }) => venue.existing("BTC", "1h", from, to))
      assert.deepStrictEqual(bars, offered)
      assert.strictEqual(known.at(-1)?.to, barAt("1h", now) - 1)
      assert.deepStrictEqual(logged.filter((line) => /gap.*1h/u.test(line)), [
        "The candle archive has a gap that the venue cannot fill: BTC 1h from 2026-09-17T10:00Z to 2026-09-22T09:00Z"
      ])
      // larger bars: what the smaller ones could not build came from the venue, which still had it
      const weeks = yield* held("BTC", "1d")
      assert.deepStrictEqual(gapsBetween(weeks.known), [])
      assert.deepStrictEqual(weeks.bars, venue.existing("BTC", "1d", barAt("1d", begin) - 3, barAt("1d", now) - 1))
    }))
  })

  it.effect("keeps what the venue corrects as a new version, and takes its word on larger bars", () => {
    const venue = FakeVenue.make({ retained: 5000, listed: begin - 10 * hour, step: "15m" })
    const quarters = { coin: "BTC", interval: "15m" } as const
    return run(recording(
      venue,
      [quarters],
      5000,
      Effect.gen(function*() {
        const archive = yield* CandleArchive
        yield* pass(2 * hour, FakeVenue.minutes(15))
        const at = barAt("15m", yield* Clock.currentTimeMillis) - 3
        const own = { from: at, to: at }
        const [before] = venue.existing("BTC", "15m", at, at)
        assert(before !== undefined)
        venue.corrections.set(openTime("15m", at), { h: "99999.0" })
        yield* pass(FakeVenue.minutes(15), FakeVenue.minutes(15))
        const [corrected] = (yield* archive.read(quarters, own)).bars
        assert.deepStrictEqual(corrected, { ...before, h: "99999.0" })
        assert.deepStrictEqual((yield* archive.earlierVersions(quarters, own)).map(({ bar }) => bar), [before])
        assert.deepStrictEqual(logged, ["The venue corrected 1 of the bars of BTC 15m"])
        // the larger bar was built by then without the correction
        logged.length = 0
        yield* pass(day, FakeVenue.minutes(15))
        const { bars } = yield* held("BTC", "30m")
        const found = bars.find(({ t }) => t === openTime("30m", barAt("30m", before.t)))
        assert.strictEqual(found?.h, "99999.0")
      })
    ))
  })

  it.effect("leaves a coin alone that was delisted, and takes up one that is listed", () => {
    const venue = FakeVenue.make({ retained: 50, listed: begin - hour })
    venue.coins.add("ETH")
    const wishes = [{ coin: "*", interval: "1m" }, { coin: "ETH", interval: "1h" }] as const
    return run(recording(
      venue,
      wishes,
      50,
      Effect.gen(function*() {
        yield* pass(FakeVenue.minutes(2), 10_000)
        const status = yield* (yield* CandleArchive).list()
        assert.deepStrictEqual(
          status.filter(({ coin }) => coin === "ETH").map(({ interval }) => interval),
          ["1h", "2h", "4h", "8h", "12h", "1d", "3d", "1w", "1M"]
        )
        venue.coins.delete("BTC")
        venue.coins.add("NEW")
        venue.asked.length = 0
        yield* pass(FakeVenue.minutes(58), 10_000)
        // once an hour somebody looks whether it is back
        assert.strictEqual(venue.asked.filter(({ coin }) => coin === "BTC").length, 1)
        assert.deepStrictEqual(logged, ["Recording of BTC 1m pauses for an hour: the venue does not know the coin"])
        yield* pass(FakeVenue.minutes(5), 10_000)
        assert.include(venue.asked.map(({ coin }) => coin), "NEW")
      })
    ))
  })

  it.effect("goes on when the archive comes back, and ends where it may not write", () =>
    Effect.gen(function*() {
      const venue = FakeVenue.make({ retained: 50, listed: begin - hour })
      const memory = CandleArchiveMemory.makeMemory()
      const faults: Array<ArchiveUnavailable | undefined> = []
      const known: CandleArchive["Service"]["known"] = (...args) => {
        const fault = faults.shift()
        return fault === undefined ? memory.known(...args) : Effect.fail(fault)
      }
      const archive = CandleArchive.of({ ...memory, known })
      const away = new ArchiveUnavailable({ reason: "away", detail: "The candle archive is unreachable (test)" })
      const newer = new ArchiveUnavailable({ reason: "newer", detail: "newer" })
      logged.length = 0
      yield* TestClock.setTime(begin)
      faults.push(away, away, undefined)
      const record = CandleRecorder.record(venue.source, { wishes: btc, retained: 50 }).pipe(
        Effect.provideService(CandleArchive, archive),
        Effect.provide(collected)
      )
      const fiber = yield* Effect.forkChild(Effect.delay(record, 1))
      yield* pass(40_000, 5000)
      assert.deepStrictEqual(logged, [
        "The candle archive is unreachable (test)",
        "The candle archive is reachable again"
      ])
      assert.isAbove((yield* memory.list()).length, 10)
      yield* Fiber.interrupt(fiber)
      faults.push(newer)
      assert.strictEqual(yield* Effect.flip(record), newer)
    }))
})
