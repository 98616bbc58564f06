/**
 * Price paths that replace the paths generated from the seed. They replay recorded bars, or the price points of a test,
 * at any speed.
 */
import type { Candle } from "@trigate/domain/candles/Candle"
import type { CandleMarket } from "./CandleMarket.ts"
import type { PricePath } from "./Venue.ts"

const minute = 60_000

/** A price and its time, in milliseconds. */
export interface PricePoint {
  readonly time: number
  readonly price: number
}

/**
 * Returns the price points of bars: open, low, high, close for a rising bar, and open, high, low, close for a falling
 * bar.
 */
export const pricePoints = (
  bars: ReadonlyArray<Pick<Candle, "t" | "T" | "o" | "h" | "l" | "c">>
): ReadonlyArray<PricePoint> =>
  bars.flatMap(({ T, c, h, l, o, t }) => {
    const third = (T - t) / 3
    const [first, second] = Number(c) >= Number(o) ? [l, h] : [h, l]
    return [[t, o], [t + third, first], [t + 2 * third, second], [T, c]] as const
  }).map(([time, price]) => ({ time: Math.round(time), price: Number(price) }))

/** Returns the index of the first point after a time. */
const indexAfter = (points: ReadonlyArray<PricePoint>, time: number): number => {
  let low = 0
  let high = points.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((points[middle]?.time ?? 0) <= time) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * Returns the price interpolated between two points. The price is constant before the first point and after the last
 * one.
 */
const priceIn = (points: ReadonlyArray<PricePoint>, time: number): number | undefined => {
  const index = indexAfter(points, time)
  const before = points[index - 1]
  const after = points[index]
  if (before === undefined || after === undefined) return (before ?? after)?.price
  return before.price + (after.price - before.price) * (time - before.time) / (after.time - before.time)
}

/**
 * Price points that are replayed from the time `from` until the next set of points starts. `speed` is relative to real
 * time.
 */
export interface Played {
  readonly from: number
  readonly speed: number
  readonly points: ReadonlyArray<PricePoint>
}

/** The replayed points of each coin. The oldest set of points is first. */
export type PlayedCoins = ReadonlyMap<string, ReadonlyArray<Played>>

/**
 * Maximum number of stored point sets of a coin. Before the time at which the oldest set starts, bars have the prices
 * of the underlying path.
 */
const mostPlayed = 100

/** Adds price points of a coin, which are replayed from `played.from` on. */
export const play = (coins: PlayedCoins, coin: string, played: Played): PlayedCoins =>
  new Map(coins).set(coin, [...coins.get(coin) ?? [], played].slice(-mostPlayed))

/** Converts the time `now` to the corresponding time of the replayed points. */
const timeIn = ({ from, points, speed }: Played, now: number): number => (points[0]?.time ?? 0) + (now - from) * speed

/** Makes a path that replays points for the coins in `coins`, and uses the path `others` for all other coins. */
export const played = (others: PricePath, coins: PlayedCoins): PricePath => {
  const current = ({ coin }: CandleMarket, now: number): Played | undefined =>
    coins.get(coin)?.findLast(({ from, points }) => from <= now && points.length > 0)
  return coins.size === 0 ? others : {
    priceAt: (market, now) => {
      const playing = current(market, now)
      const price = playing === undefined ? undefined : priceIn(playing.points, timeIn(playing, now))
      return price ?? others.priceAt(market, now)
    },
    isMonotone: (market, from, to) => {
      const playing = current(market, from)
      if (playing !== current(market, to)) return false
      if (playing === undefined) return others.isMonotone(market, from, to)
      const next = playing.points[indexAfter(playing.points, timeIn(playing, from))]
      return next === undefined || next.time >= timeIn(playing, to)
    },
    playedSince: (coin) => coins.get(coin)?.[0]?.from ?? others.playedSince(coin)
  }
}

/** Makes a path on which time passes `speed` times as fast after the time `from`. */
export const faster = (path: PricePath, from: number, speed: number): PricePath => {
  const timeAt = (now: number): number => now <= from ? now : from + (now - from) * speed
  return speed === 1 ? path : {
    priceAt: (market, now) => path.priceAt(market, timeAt(now)),
    isMonotone: (market, since, to) => {
      const [first, last] = [timeAt(since), timeAt(to)]
      return last <= (Math.floor(first / minute) + 1) * minute && path.isMonotone(market, first, last)
    },
    playedSince: () => from
  }
}
