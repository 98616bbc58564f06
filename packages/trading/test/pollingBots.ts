/** Bots that poll the newest bars of some coins, each on a cycle of its own, and what they cost the venue's rate limit. */
import type { Candle, CandleInterval, CandleWindowRequest, Series } from "@trigate/domain/candles/Candle"
import { barAt, CandleWindowRequest as Request, closeTime, openTime } from "@trigate/domain/candles/Candle"
import * as Json from "@trigate/domain/encoding/Encoding"
import { candleSnapshot } from "@trigate/domain/info/InfoOperations"
import { responseWeight } from "@trigate/domain/operations/Operation"
import * as CandleText from "@trigate/domain/unstable/candles/CandleText"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import { Info } from "@trigate/trading/Info"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"

/** Who polls what, and how old the bar that is forming may be. */
export interface Options {
  readonly bots: number
  readonly coins: number
  readonly intervals: ReadonlyArray<CandleInterval>
  /** Seconds between two polls of a bot. */
  readonly cycle: number
  readonly minutes: number
  /** Bars that a bot asks for, the forming one included. */
  readonly bars: number
  readonly fresh?: Duration.Input
}

/** What the bots asked, and what came of it upstream. */
export interface Outcome {
  readonly queries: number
  /** Weight of the queries, had each gone to the venue. */
  readonly weightWithout: number
  readonly requests: number
  readonly weight: number
  /** What each query took, in the units of the stopwatch. */
  readonly times: ReadonlyArray<number>
  /** Answers that were not the venue's own at that time, or at most as long ago as they may be old. */
  readonly wrong: number
}

const begin = Date.UTC(2026, 8, 1, 10)

const barOf = ({ coin, interval }: Series, bar: number): Candle => ({
  t: openTime(interval, bar),
  T: closeTime(interval, bar),
  s: coin,
  i: interval,
  o: `${60_000 + bar % 997}.5`,
  c: `${60_003 + bar % 997}.0`,
  h: `${60_004 + bar % 997}.25`,
  l: `${59_999 + bar % 997}.0`,
  v: `${bar % 13}.${bar % 9 + 1}`,
  n: bar % 101
})

const barsOf = (series: Series, from: number, to: number): ReadonlyArray<Candle> =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => barOf(series, from + index))

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ req: Request })))

const callOf = (request: CandleWindowRequest) => ({
  operation: candleSnapshot,
  request,
  body: Json.write({ type: "candleSnapshot", req: request }),
  surface: "gateway" as const
})

/** Lets them poll; the clock is the test's. `stopwatch` tells a time, of which only differences count. */
export const run = Effect.fnUntraced(function*(options: Options, stopwatch: () => number) {
  const { bars, bots, coins, cycle, intervals, minutes } = options
  const fresh = Duration.toMillis(Duration.fromInputUnsafe(options.fresh ?? 0))
  let now = begin
  let weight = 0
  const transport = ScriptedTransport.make(({ body }) => {
    const { req } = decode(body)
    const last = barAt(req.interval, Math.min(now, req.endTime ?? now))
    const found = barsOf(req, barAt(req.interval, req.startTime), last)
    weight += responseWeight(candleSnapshot, found.length)
    return ScriptedTransport.response(200, CandleText.write(found))
  })

  const texts = new Map<string, string>()
  const textOf = (series: Series, from: number, to: number): string => {
    const key = `${series.interval} ${series.coin} ${from} ${to}`
    const known = texts.get(key)
    if (known !== undefined) return known
    const text = CandleText.write(barsOf(series, from, to))
    texts.set(key, text)
    return text
  }

  const series = Array.from(
    { length: coins },
    (_, coin) => intervals.map((interval): Series => ({ coin: `COIN${coin}`, interval }))
  ).flat()
  const times: Array<number> = []
  let queries = 0
  let wrong = 0
  const polling = Effect.gen(function*() {
    const { relay } = yield* Info
    for (let second = 0; second < minutes * 60; second++) {
      now = begin + second * 1000
      yield* TestClock.setTime(now)
      for (const [place, { coin, interval }] of series.entries()) {
        for (let bot = 0; bot < bots; bot++) {
          if ((bot * 7 + place * 3) % cycle !== second % cycle) continue
          const newest = barAt(interval, now)
          const first = newest - bars + 1
          // no two bots begin at the same millisecond
          const startTime = openTime(interval, first) + bot
          const began = stopwatch()
          const { text } = yield* relay(callOf({ coin, interval, startTime, endTime: now + bot }))
          times.push(stopwatch() - began)
          queries += 1
          const isOwn = text === textOf({ coin, interval }, first, newest) ||
            text === textOf({ coin, interval }, first, barAt(interval, now - fresh))
          if (!isOwn) wrong += 1
        }
      }
    }
  })
  const infoFreshness = fresh > 0 ? [{ type: candleSnapshot.name, fresh: Duration.millis(fresh) }] : []
  yield* polling.pipe(Effect.provide(
    TradingUpstream.layerInfo({ api: ["https://api.test"] }, { infoFreshness }).pipe(Layer.provide(transport.layer))
  ))
  return {
    queries,
    weightWithout: queries * responseWeight(candleSnapshot, bars),
    requests: transport.sent.length,
    weight,
    times,
    wrong
  } satisfies Outcome
})
