/** A venue that keeps few bars, goes away, is full, corrects bars and delists coins. */
import * as CandleAggregate from "@trigate/archive/unstable/CandleRecorder"
import type { Source } from "@trigate/archive/unstable/CandleRecorder"
import type { Candle, CandleInterval, CandleWindowRequest } from "@trigate/domain/candles/Candle"
import { barAt, closeTime, intervalLengths, openTime } from "@trigate/domain/candles/Candle"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

const minute = intervalLengths["1m"]

/** What a test decides. */
export interface FakeVenue {
  readonly source: Source
  /** Every window that was asked for, also in vain. */
  readonly asked: Array<CandleWindowRequest>
  /** Why the venue answers nothing at the moment. */
  down: string | undefined
  /** Coins that are traded. */
  readonly coins: Set<string>
  /** Bars of the smallest interval that the venue changed, by open time. */
  readonly corrections: Map<number, Partial<Candle>>
  /** The closed bars that exist at some time, whether the venue still keeps them or not. */
  readonly existing: (coin: string, interval: CandleInterval, from: number, to: number) => ReadonlyArray<Candle>
}

/** A venue whose smallest bars are those of `step`. No bar that `isHalted` says had no trade exists. */
export const make = (
  { isHalted = () => false, listed, retained, step = "1m" }: {
    readonly retained: number
    readonly listed: number
    readonly step?: "1m" | "15m"
    readonly isHalted?: (time: number) => boolean
  }
): FakeVenue => {
  const asked: Array<CandleWindowRequest> = []
  const coins = new Set(["BTC"])
  const corrections = new Map<number, Partial<Candle>>()

  // a price that no two bars share
  const part = (coin: string, at: number): ReadonlyArray<Candle> => {
    const t = openTime(step, at)
    if (t < listed || isHalted(t)) return []
    const price = 60_000 + (at * 7919) % 997
    return [{
      t,
      T: closeTime(step, at),
      s: coin,
      i: step,
      o: `${price}.5`,
      c: `${price + 3}.0`,
      h: `${price + 4}.25`,
      l: `${price - 1}.0`,
      v: `${at % 13}.${at % 9 + 1}`,
      n: at % 101,
      ...corrections.get(t)
    }]
  }

  // closed bars; a correction makes them anew
  const memo = new Map<string, ReadonlyArray<Candle>>()
  let corrected = 0

  const barOf = (coin: string, interval: CandleInterval, bar: number): ReadonlyArray<Candle> => {
    if (interval === step) return part(coin, bar)
    if (corrected !== corrections.size) memo.clear()
    corrected = corrections.size
    const key = `${coin} ${interval} ${bar}`
    const known = memo.get(key)
    if (known !== undefined) return known
    const { from, to } = CandleAggregate.smallerRange(step, interval, { from: bar, to: bar })
    const parts: Array<Candle> = []
    for (let at = Math.max(from, barAt(step, listed)); at <= to; at++) parts.push(...part(coin, at))
    const built = CandleAggregate.buildBars(interval, parts)
    memo.set(key, built)
    return built
  }

  const existing = (coin: string, interval: CandleInterval, from: number, to: number): ReadonlyArray<Candle> => {
    const bars: Array<Candle> = []
    for (let bar = Math.max(from, barAt(interval, listed)); bar <= to; bar++) bars.push(...barOf(coin, interval, bar))
    return bars
  }

  /** The newest bars at a time, the forming one included, as many as the venue keeps. */
  const kept = (coin: string, interval: CandleInterval, now: number): ReadonlyArray<Candle> => {
    const bars: Array<Candle> = []
    for (let bar = barAt(interval, now); bar >= barAt(interval, listed) && bars.length < retained; bar--) {
      bars.push(...barOf(coin, interval, bar))
    }
    return bars.toReversed()
  }

  const venue: FakeVenue = {
    asked,
    coins,
    corrections,
    down: undefined,
    existing,
    source: {
      coins: Effect.sync(() => [...coins]),
      bars: (request) =>
        Effect.gen(function*() {
          asked.push(request)
          // an answer takes its time
          yield* Effect.sleep(1)
          const now = yield* Clock.currentTimeMillis
          if (venue.down !== undefined) return yield* Effect.fail(venue.down)
          if (!coins.has(request.coin)) return undefined
          return kept(request.coin, request.interval, now).filter(({ T, t }) =>
            T >= request.startTime && t <= (request.endTime ?? now)
          )
        })
    }
  }
  return venue
}

/** Milliseconds of so many minutes. */
export const minutes = (count: number): number => count * minute
