import { assert, describe, it } from "@effect/vitest"
import * as CandleArchiveMemory from "@trigate/archive/CandleArchive"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import type { Candle, CandleInterval, CandleWindowRequest } from "@trigate/domain/candles/Candle"
import {
  barAt,
  CandleWindowRequest as RequestSchema,
  openTime,
  printSources,
  readSources
} from "@trigate/domain/candles/Candle"
import * as Json from "@trigate/domain/encoding/Encoding"
import { ArchiveUnavailable } from "@trigate/domain/errors/GatewayError"
import { candleSnapshot } from "@trigate/domain/info/InfoOperations"
import type { UpstreamResponse } from "@trigate/domain/operations/Operation"
import * as CandleText from "@trigate/domain/unstable/candles/CandleText"
import { sampleRuns } from "@trigate/testing/Sample"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import { Info } from "@trigate/trading/Info"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import { Freshness } from "@trigate/upstream/cache/ResponseCache"
import { metrics } from "@trigate/upstream/unstable/Upstream"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as FakeVenue from "../../archive/test/fakeVenue.ts"

const begin = Date.UTC(2026, 8, 1, 10, 2, 30)
const minute = 60_000
const hour = 60 * minute

const decodeBody = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ req: RequestSchema })))

/** A transport in front of a venue that faults after some answers, and the requests that it sent. */
const over = (venue: FakeVenue.FakeVenue, answers = Number.POSITIVE_INFINITY, latency = 0) =>
  ScriptedTransport.make(({ body }) =>
    venue.asked.length >= answers ?
      ScriptedTransport.response(503, "null") :
      Effect.map(Effect.orDie(venue.source.bars(decodeBody(body).req)), (bars) =>
        bars === undefined
          ? ScriptedTransport.response(500, "null")
          : ScriptedTransport.response(200, CandleText.write(bars))).pipe(Effect.delay(latency))
  )

const info = (
  transport: ReturnType<typeof over>,
  archive?: CandleArchive["Service"],
  options?: TradingUpstream.InfoOptions
) =>
  TradingUpstream.layerInfo({ api: ["https://api.test"] }, options).pipe(
    Layer.provide(transport.layer),
    Layer.provide(archive === undefined ? Layer.empty : Layer.succeed(CandleArchive, archive))
  )

/** Relays a query as a caller of the gateway sends it. */
const relay = (req: CandleWindowRequest) =>
  Info.use(({ relay }) =>
    relay({
      operation: candleSnapshot,
      request: req,
      body: Json.write({ type: "candleSnapshot", req }),
      surface: "gateway"
    })
  )

const bars = ({ json }: UpstreamResponse): unknown => json.valueOrUndefined

/** Lets a request that takes time come back. */
const passing = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    yield* TestClock.adjust(10)
    return yield* Fiber.join(fiber)
  })

const window = (startTime: number, interval: CandleInterval = "1m", coin = "BTC"): CandleWindowRequest => ({
  coin,
  interval,
  startTime
})

const asked = (transport: ReturnType<typeof over>) => transport.sent.map(({ body }) => decodeBody(body).req)

describe("candle queries", () => {
  it.effect("ask the venue for the forming bar alone, once the closed ones are held", () => {
    const venue = FakeVenue.make({ retained: 5000, listed: begin - 9 * hour })
    const transport = over(venue)
    return Effect.gen(function*() {
      yield* TestClock.setTime(begin)
      const first = window(begin - 2 * hour)
      const relayed = yield* passing(relay(first))
      assert.strictEqual(relayed.candles, undefined)
      assert.deepStrictEqual(asked(transport), [first])
      yield* TestClock.adjust(20 * minute)
      const newest = barAt("1m", begin + 20 * minute)
      const answer = yield* passing(relay(window(begin - hour)))
      // what it would have been without
      assert.deepStrictEqual(bars(answer), venue.existing("BTC", "1m", barAt("1m", begin - hour), newest))
      assert.strictEqual(
        answer.text,
        CandleText.write(venue.existing("BTC", "1m", barAt("1m", begin - hour), newest))
      )
      assert.deepStrictEqual(asked(transport).slice(1), [window(openTime("1m", barAt("1m", begin)))])
      assert.strictEqual(answer.candles, "held=60, asked=21, complete")
      // a window inside of what is held costs nothing
      const inside = { ...window(begin - hour), endTime: begin - 10 * minute }
      const held = yield* passing(relay(inside))
      assert.deepStrictEqual(
        bars(held),
        venue.existing("BTC", "1m", barAt("1m", begin - hour), barAt("1m", begin) - 10)
      )
      assert.strictEqual(held.candles, "held=51, asked=0, complete")
      assert.lengthOf(transport.sent, 2)
    }).pipe(Effect.provide(info(transport)))
  })

  it.effect("of a hundred callers with windows of their own cost one short request", () => {
    const venue = FakeVenue.make({ retained: 5000, listed: begin - 90 * hour })
    const transport = over(venue)
    return Effect.gen(function*() {
      yield* TestClock.setTime(begin)
      yield* passing(relay(window(begin - 30 * hour)))
      const windows = Array.from({ length: 100 }, (_, index) => window(begin - (index + 5) * 7 * minute))
      const answers = yield* passing(Effect.forEach(windows, relay, { concurrency: "unbounded" }))
      assert.lengthOf(transport.sent, 2)
      for (const [index, answer] of answers.entries()) {
        const from = barAt("1m", windows[index]?.startTime ?? 0)
        assert.deepStrictEqual(bars(answer), venue.existing("BTC", "1m", from, barAt("1m", begin)))
      }
      // the bar that is forming is asked for again once it is a second old
      yield* TestClock.setTime(begin + 1009)
      yield* passing(relay(window(begin - hour)))
      assert.lengthOf(transport.sent, 2)
      yield* passing(relay(window(begin - hour)))
      assert.lengthOf(transport.sent, 3)
    }).pipe(Effect.provide(info(transport)))
  })

  for (const [what, coins, requests] of [["of one coin", 1, 10], ["of seven coins", 7, 28]] as const) {
    it.effect(`of a hundred staggered bots that poll seven windows ${what} cost ${requests} requests`, () => {
      const venue = FakeVenue.make({ retained: 5000, listed: begin - 90 * hour })
      for (let place = 0; place < coins; place++) venue.coins.add(`COIN${place}`)
      const transport = over(venue, undefined, 50)
      const polling = (bot: number) => {
        const place = bot % 7
        const polled = window(begin - (place + 4) * 5 * minute, "1m", `COIN${place % coins}`)
        const poll = Effect.andThen(relay(polled), Effect.sleep(400))
        return Effect.delay(Effect.repeat(poll, { times: 5 }), bot * 4)
      }
      return Effect.gen(function*() {
        yield* TestClock.setTime(begin)
        const bots = Array.from({ length: 100 }, (_, bot) => polling(bot))
        const fiber = yield* Effect.forkChild(Effect.all(bots, { concurrency: "unbounded", discard: true }))
        while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(5)
        yield* Fiber.join(fiber)
        assert.lengthOf(transport.sent, requests)
      }).pipe(Effect.provide(info(transport)))
    })
  }

  it.effect("share the bar that is forming for as long as the setting says, and never beyond its close", () => {
    const venue = FakeVenue.make({ retained: 5000, listed: begin - 9 * hour })
    const transport = over(venue)
    const fresh = { infoFreshness: [{ type: "candleSnapshot", fresh: Duration.seconds(20) }] }
    const at = (seconds: number) => TestClock.setTime(openTime("1m", barAt("1m", begin)) + seconds * 1000)
    const ask = Effect.gen(function*() {
      const { age, text } = yield* passing(relay(window(begin - hour)))
      return [age, Json.of(text).valueOrUndefined] as const
    })
    const upTo = (bar: number) => venue.existing("BTC", "1m", barAt("1m", begin - hour), barAt("1m", begin) + bar)
    return Effect.gen(function*() {
      yield* at(30)
      yield* ask
      assert.deepStrictEqual(yield* ask, [undefined, upTo(0)])
      yield* at(50)
      assert.deepStrictEqual(yield* ask, [19, upTo(0)])
      assert.lengthOf(transport.sent, 2)
      yield* at(52)
      assert.deepStrictEqual(yield* ask, [undefined, upTo(0)])
      // the bar has closed, but may not be final yet
      yield* at(64)
      assert.deepStrictEqual(yield* ask, [11, upTo(0)])
      assert.lengthOf(transport.sent, 3)
      // from now on it has to be, so that what was read before does not count
      yield* at(65)
      assert.deepStrictEqual(yield* ask, [undefined, upTo(1)])
      assert.deepStrictEqual(
        asked(transport).slice(1),
        Array.from({ length: 3 }, () => window(openTime("1m", barAt("1m", begin))))
      )
      assert.deepStrictEqual(yield* ask, [undefined, upTo(1)])
      assert.deepStrictEqual(asked(transport).slice(4), [window(openTime("1m", barAt("1m", begin) + 1))])
      assert.deepStrictEqual(yield* ask, [0, upTo(1)])
      assert.lengthOf(transport.sent, 5)
    }).pipe(Effect.provide(info(transport, undefined, fresh)))
  })

  it.effect("count what they saved, in requests and in weight", () => {
    const venue = FakeVenue.make({ retained: 5000, listed: begin - 90 * hour })
    const transport = over(venue)
    const queries = metrics.cache.series({ upstream: "trading-api", operation: "candleSnapshot", outcome: "held" })
    const weight = (outcome: string) => metrics.upstreamWeightSaved.series({ upstream: "trading-api", outcome })
    const counts = Effect.forEach([queries, weight("held"), weight("coalesced")], Metric.value)
    return Effect.gen(function*() {
      yield* TestClock.setTime(begin)
      yield* passing(relay(window(begin - 30 * hour)))
      const before = yield* counts
      // 1801 bars, of which the venue gives one: 20 + 31 instead of 20 + 1, twice, and once it is asked for both
      const twice = Effect.all([relay(window(begin - 30 * hour)), relay(window(begin - 30 * hour + minute))], {
        concurrency: "unbounded"
      })
      yield* passing(twice)
      // 600 bars without a request
      yield* passing(relay({ ...window(begin - 20 * hour), endTime: begin - 10 * hour - minute }))
      const after = yield* counts
      assert.deepStrictEqual(after.map(({ count }, index) => count - (before[index]?.count ?? 0)), [
        1,
        30 + 29 + 30,
        21
      ])
      assert.lengthOf(transport.sent, 2)
    }).pipe(Effect.provide(info(transport)))
  })

  it.effect("go to the venue whole for a caller who wants nothing that was cached", () => {
    const venue = FakeVenue.make({ retained: 5000, listed: begin - 9 * hour })
    const transport = over(venue)
    return Effect.gen(function*() {
      yield* TestClock.setTime(begin)
      const whole = window(begin - hour)
      yield* passing(relay(whole))
      const answer = yield* passing(Effect.provideService(relay(whole), Freshness, "none"))
      assert.deepStrictEqual(asked(transport), [whole, whole])
      assert.strictEqual(answer.candles, undefined)
    }).pipe(Effect.provide(info(transport)))
  })

  it.effect("say where bars may be missing, ask for holes that the venue can fill, and for no others", () => {
    const venue = FakeVenue.make({ retained: 5000, listed: begin - 2000 * hour })
    const transport = over(venue)
    const archive = CandleArchiveMemory.makeMemory()
    const now = barAt("1m", begin)
    const old = { from: now - 20_000, to: now - 15_001 }
    const young = { from: now - 3000, to: now - 1001 }
    return Effect.gen(function*() {
      yield* TestClock.setTime(begin)
      const series = { coin: "BTC", interval: "1m" } as const
      for (const range of [old, young]) {
        yield* archive.write(series, range, venue.existing("BTC", "1m", range.from, range.to))
      }
      const answer = yield* passing(relay(window(openTime("1m", old.to - 99))))
      // the venue has its newest 5000 still, the forming bar included
      const kept = now - 4999
      assert.deepStrictEqual(asked(transport), [
        { ...window(openTime("1m", old.to + 1)), endTime: openTime("1m", young.from) - 1 },
        window(openTime("1m", young.to + 1))
      ])
      assert.deepStrictEqual(bars(answer), venue.existing("BTC", "1m", kept, now))
      assert.strictEqual(
        answer.candles,
        `held=2000, asked=3000, cut, gaps="${openTime("1m", old.to + 1)}-${openTime("1m", kept) - 1}"`
      )
      // both holes are held from now on, and what is gone is not asked for again
      const { known } = yield* archive.read(series, { from: 0, to: now })
      assert.deepStrictEqual(known, [old, { from: kept, to: now - 1 }])
      yield* passing(relay(window(openTime("1m", old.to - 99))))
      assert.deepStrictEqual(asked(transport).slice(2), [window(openTime("1m", now))])
    }).pipe(Effect.provide(info(transport, archive)))
  })

  it.effect("reach as far back as the venue, which keeps old bars of a coin with few trades", () => {
    const venue = FakeVenue.make({
      retained: 5000,
      listed: begin - 1000 * hour,
      isHalted: (time) => time / minute % 4 !== 0
    })
    const transport = over(venue)
    const now = barAt("1m", begin)
    return Effect.gen(function*() {
      yield* TestClock.setTime(begin)
      yield* passing(relay(window(begin - hour)))
      const answer = yield* passing(relay(window(0)))
      const own = venue.existing("BTC", "1m", 0, now).slice(-5000)
      assert.deepStrictEqual(bars(answer), own)
      assert.isBelow(barAt("1m", own[0]?.t ?? 0), now - 19_990)
    }).pipe(Effect.provide(info(transport)))
  })

  it.effect("ask for a hole of which the venue keeps nothing but the last bar", () => {
    const venue = FakeVenue.make({ retained: 5000, listed: begin - 1000 * hour })
    const transport = over(venue)
    const archive = CandleArchiveMemory.makeMemory()
    const now = barAt("1m", begin)
    const range = { from: now - 4998, to: now - 1 }
    return Effect.gen(function*() {
      yield* TestClock.setTime(begin)
      yield* archive.write({ coin: "BTC", interval: "1m" }, range, venue.existing("BTC", "1m", range.from, range.to))
      const answer = yield* passing(relay(window(openTime("1m", now - 5500))))
      assert.deepStrictEqual(bars(answer), venue.existing("BTC", "1m", now - 4999, now))
      assert.lengthOf(transport.sent, 2)
    }).pipe(Effect.provide(info(transport, archive)))
  })

  it.effect.prop(
    "are the venue's own, whatever of the window is held",
    {
      held: Schema.Array(Schema.Tuple([
        Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 7000 })),
        Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3000 }))
      ])).check(Schema.isMaxLength(5)),
      from: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 8000 * minute })),
      length: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 8000 * minute }))
    },
    ({ from, held, length }) => {
      const venue = FakeVenue.make({ retained: 5000, listed: begin - 2000 * hour })
      const transport = over(venue)
      const archive = CandleArchiveMemory.makeMemory()
      const series = { coin: "BTC", interval: "1m" } as const
      const now = barAt("1m", begin)
      return Effect.gen(function*() {
        yield* TestClock.setTime(begin)
        const there = new Set<number>()
        for (const [back, size] of held) {
          const range = { from: now - back, to: Math.min(now - 1, now - back + size) }
          yield* archive.write(series, range, venue.existing("BTC", "1m", range.from, range.to))
          for (let bar = range.from; bar <= range.to; bar++) there.add(bar)
        }
        const request = { ...window(begin - from), endTime: begin - from + length }
        const expected = venue.existing("BTC", "1m", barAt("1m", request.startTime), barAt("1m", request.endTime))
          .filter(({ t }) => t <= begin && (barAt("1m", t) > now - 5000 || there.has(barAt("1m", t)))).slice(-5000)
        // the second answer is of what the first one left
        for (const _ of [1, 2]) {
          assert.strictEqual((yield* passing(relay(request))).text, CandleText.write(expected))
        }
      }).pipe(Effect.provide(info(transport, archive)))
    },
    { arbitrary: { runs: sampleRuns(15) } }
  )

  it.effect("hold no more than was answered where the venue fails between two holes", () => {
    const venue = FakeVenue.make({ retained: 5000, listed: begin - 2000 * hour })
    const transport = over(venue, 1)
    const archive = CandleArchiveMemory.makeMemory()
    const series = { coin: "BTC", interval: "1m" } as const
    const now = barAt("1m", begin)
    const held = { from: now - 3000, to: now - 2001 }
    return Effect.gen(function*() {
      yield* TestClock.setTime(begin)
      yield* archive.write(series, held, venue.existing("BTC", "1m", held.from, held.to))
      yield* passing(Effect.exit(relay(window(openTime("1m", held.from - 100)))))
      assert.lengthOf(transport.sent, 2)
      const { bars, known } = yield* archive.read(series, { from: 0, to: now })
      assert.deepStrictEqual(known, [{ from: held.from - 100, to: held.to }])
      assert.deepStrictEqual(bars, venue.existing("BTC", "1m", held.from - 100, held.to))
    }).pipe(Effect.provide(info(transport, archive)))
  })

  it.effect("walk through 20 000 bars of an archive, each once, and tell what nobody has", () => {
    const venue = FakeVenue.make({ retained: 5000, listed: begin - 2000 * hour })
    const transport = over(venue)
    const archive = CandleArchiveMemory.makeMemory()
    const now = barAt("1m", begin)
    const range = { from: now - 20_000, to: now - 100 }
    return Effect.gen(function*() {
      yield* TestClock.setTime(begin)
      yield* archive.write({ coin: "BTC", interval: "1m" }, range, venue.existing("BTC", "1m", range.from, range.to))
      const service = yield* Info
      const stretches = yield* passing(Stream.runCollect(service.candles(window(openTime("1m", range.from - 500)))))
      const candles: ReadonlyArray<Candle> = stretches.flatMap(({ candles }) => candles)
      assert.deepStrictEqual(candles, venue.existing("BTC", "1m", range.from, now))
      assert.deepStrictEqual(stretches.map(({ candles, coverage }) => [candles.length, coverage]), [
        [0, "agedOut"],
        [5000, "complete"],
        [5000, "complete"],
        [5000, "complete"],
        [5000, "complete"],
        [1, "complete"]
      ])
      assert.deepStrictEqual(stretches[0]?.sources?.gaps, [
        { from: openTime("1m", range.from - 500), to: openTime("1m", range.from) - 1 }
      ])
      assert.isAtMost(transport.sent.length, 3)
    }).pipe(Effect.provide(info(transport, archive)))
  })

  it.effect("hold nothing behind the last bar that came, since the venue writes a bar without trades late", () => {
    const halt = { from: openTime("1m", barAt("1m", begin) - 3), isOver: false }
    const venue = FakeVenue.make({
      retained: 5000,
      listed: begin - 9 * hour,
      isHalted: (time) => !halt.isOver && time >= halt.from
    })
    const transport = over(venue)
    return Effect.gen(function*() {
      yield* TestClock.setTime(begin)
      yield* passing(relay(window(begin - hour)))
      halt.isOver = true
      const answer = yield* passing(relay(window(begin - hour)))
      assert.deepStrictEqual(bars(answer), venue.existing("BTC", "1m", barAt("1m", begin - hour), barAt("1m", begin)))
      assert.deepStrictEqual(asked(transport).slice(1), [window(halt.from)])
      assert.strictEqual(answer.candles, "held=57, asked=4, complete")
    }).pipe(Effect.provide(info(transport)))
  })

  it.effect("are relayed as they are where bars have a member that could not be held", () => {
    const venue = FakeVenue.make({ retained: 5000, listed: begin - 9 * hour })
    const transport = ScriptedTransport.make(({ body }) =>
      Effect.map(
        Effect.orDie(venue.source.bars(decodeBody(body).req)),
        (bars = []) => ScriptedTransport.response(200, JSON.stringify(bars.map((bar) => ({ ...bar, q: "1.5" }))))
      )
    )
    return Effect.gen(function*() {
      yield* TestClock.setTime(begin)
      for (const _ of [1, 2]) {
        const answer = yield* passing(relay(window(begin - hour)))
        assert.include(answer.text, `"q":"1.5"`)
        assert.strictEqual(answer.candles, undefined)
      }
      assert.deepStrictEqual(asked(transport), [window(begin - hour), window(begin - hour)])
    }).pipe(Effect.provide(info(transport)))
  })

  it.effect("tell which bars the venue corrected, also of what this process has read before", () => {
    const venue = FakeVenue.make({ retained: 5000, listed: begin - 2000 * hour })
    const transport = over(venue)
    const archive = CandleArchiveMemory.makeMemory()
    const series = { coin: "BTC", interval: "1m" } as const
    const now = barAt("1m", begin)
    const range = { from: now - 8000, to: now - 6001 }
    const [first, second] = [openTime("1m", range.from + 10), openTime("1m", range.from + 20)]
    return Effect.gen(function*() {
      yield* TestClock.setTime(begin)
      yield* archive.write(series, range, venue.existing("BTC", "1m", range.from, range.to))
      for (const [time, v] of [[second, "7.0"], [first, "8.0"], [second, "9.0"]] as const) {
        venue.corrections.set(time, { v })
        const bar = barAt("1m", time)
        yield* archive.write(series, { from: bar, to: bar }, venue.existing("BTC", "1m", bar, bar))
      }
      const { candleSnapshot } = yield* Info
      const whole = { ...series, startTime: openTime("1m", range.from), endTime: openTime("1m", range.to) }
      for (const _ of ["from the archive", "from memory"]) {
        const { candles, sources } = yield* candleSnapshot(whole)
        assert.deepStrictEqual(candles, venue.existing("BTC", "1m", range.from, range.to))
        assert.deepStrictEqual(sources, { stored: 2000, asked: 0, isCut: false, gaps: [], corrected: [first, second] })
      }
      const { sources } = yield* candleSnapshot({ ...whole, startTime: first + minute })
      assert.deepStrictEqual(sources?.corrected, [second])
      assert.deepStrictEqual(transport.sent, [])
    }).pipe(Effect.provide(info(transport, archive)))
  })

  it.effect("are answered while the archive is away, and where the venue knows no such coin", () => {
    const venue = FakeVenue.make({ retained: 5000, listed: begin - 9 * hour })
    const transport = over(venue)
    const away = new ArchiveUnavailable({ reason: "away", detail: "The candle archive is unreachable (test)" })
    const tried: Array<string> = []
    const failing = (step: string) =>
      Effect.suspend(() => {
        tried.push(step)
        return Effect.fail(away)
      })
    const archive = CandleArchive.of({
      ...CandleArchiveMemory.makeMemory(),
      read: () => failing("read"),
      write: () => failing("write")
    })
    return Effect.gen(function*() {
      yield* TestClock.setTime(begin)
      for (const _ of [1, 2]) {
        const answer = yield* passing(relay(window(begin - hour)))
        assert.deepStrictEqual(bars(answer), venue.existing("BTC", "1m", barAt("1m", begin - hour), barAt("1m", begin)))
      }
      // nobody waits for an archive that failed a moment ago
      assert.deepStrictEqual(tried, ["read"])
      yield* TestClock.adjust(10_000)
      const unknown = yield* passing(Effect.flip(relay(window(begin - hour, "1m", "NOSUCH"))))
      assert.deepStrictEqual(tried, ["read", "read"])
      assert.strictEqual(unknown._tag, "UnknownAsset")
    }).pipe(Effect.provide(info(transport, archive)))
  })

  it.effect("use an archive again ten seconds after it failed, also when the system clock was set back", () => {
    const transport = over(FakeVenue.make({ retained: 5000, listed: begin - 9 * hour }))
    let reads = 0
    const archive = CandleArchive.of({
      ...CandleArchiveMemory.makeMemory(),
      read: () =>
        Effect.suspend(() => {
          reads++
          return Effect.fail(
            new ArchiveUnavailable({ reason: "away", detail: "The candle archive is unreachable (test)" })
          )
        })
    })
    return Effect.gen(function*() {
      yield* TestClock.setTime(begin)
      yield* passing(relay(window(begin - 3 * hour)))
      yield* TestClock.setTime(begin - hour)
      yield* TestClock.adjust("10 seconds")
      yield* passing(Effect.exit(relay(window(begin - 3 * hour, "1m", "NOSUCH"))))
      assert.strictEqual(reads, 2)
    }).pipe(Effect.provide(info(transport, archive)))
  })

  it("tell what an answer was made of in a header that reads back", () => {
    const gaps = [{ from: 60_000, to: 119_999 }, { from: 240_000, to: 299_999 }]
    for (
      const sources of [
        { stored: 0, asked: 12, isCut: false, gaps: [], corrected: [] },
        { stored: 4999, asked: 1, isCut: true, gaps: [], corrected: [] },
        { stored: 7, asked: 0, isCut: false, gaps, corrected: [] },
        { stored: 7, asked: 0, isCut: true, gaps, corrected: [] },
        { stored: 7, asked: 0, isCut: false, gaps: [], corrected: [60_000, 180_000] },
        { stored: 7, asked: 0, isCut: true, gaps, corrected: [180_000] }
      ]
    ) {
      assert.deepStrictEqual(readSources(printSources(sources)), sources)
    }
    for (const other of [undefined, "", "complete", "held=1, asked=x", "held=1, asked=2, complete, cut"]) {
      assert.strictEqual(readSources(other), undefined)
    }
  })
})
