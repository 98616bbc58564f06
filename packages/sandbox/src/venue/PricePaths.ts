/** Price paths that override the seeded ones: recorded bars or custom points, at any speed. */
import type { Candle } from "@trigate/domain/candles/Candle"
import type { CandleMarket } from "./CandleMarket.ts"
import type { PricePath } from "./Venue.ts"

/** A price at a time, in milliseconds. */
export interface PricePoint {
  readonly time: number
  readonly price: number
}

/** Returns the price points of bars: open, high and low in the order that fits the bar's direction, and close. */
export const pricePoints = (
  bars: ReadonlyArray<Pick<Candle, "t" | "T" | "o" | "h" | "l" | "c">>
): ReadonlyArray<PricePoint> =>
  bars.flatMap(({ T, c, h, l, o, t }) => {
    const third = (T - t) / 3
    const [first, second] = Number(c) >= Number(o) ? [l, h] : [h, l]
    return [[t, o], [t + third, first], [t + 2 * third, second], [T, c]] as const
  }).map(([time, price]) => ({ time: Math.round(time), price: Number(price) }))

/** Returns the interpolated price; constant before the first point and after the last. */
const priceIn = (points: ReadonlyArray<PricePoint>, time: number): number | undefined => {
  let low = 0
  let high = points.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((points[middle]?.time ?? 0) <= time) low = middle + 1
    else high = middle
  }
  const before = points[low - 1]
  const after = points[low]
  if (before === undefined || after === undefined) return (before ?? after)?.price
  return before.price + (after.price - before.price) * (time - before.time) / (after.time - before.time)
}

/** Points that are played from a time on, at a speed, until other points start. */
export interface Played {
  readonly from: number
  readonly speed: number
  readonly points: ReadonlyArray<PricePoint>
}

/** The played points of each coin, oldest first. */
export type PlayedCoins = ReadonlyMap<string, ReadonlyArray<Played>>

/** Maximum number of stored paths for a coin; bars before the oldest one have the prices of the underlying path. */
const mostPlayed = 100

/** Plays points for a coin from `played.from` on. */
export const play = (coins: PlayedCoins, coin: string, played: Played): PlayedCoins =>
  new Map(coins).set(coin, [...coins.get(coin) ?? [], played].slice(-mostPlayed))

/** Makes a path that plays points for some coins, and uses another path for all others. */
export const played = (others: PricePath, coins: PlayedCoins): PricePath =>
  coins.size === 0 ? others : {
    priceAt: (market: CandleMarket, now: number) => {
      const current = coins.get(market.coin)?.findLast(({ from, points }) => from <= now && points.length > 0)
      if (current === undefined) return others.priceAt(market, now)
      const { from, points, speed } = current
      return priceIn(points, (points[0]?.time ?? 0) + (now - from) * speed) ?? others.priceAt(market, now)
    },
    isMonotone: false,
    playedSince: (coin) => coins.get(coin)?.[0]?.from ?? others.playedSince(coin)
  }

/** Makes a path on which time passes faster from a time on. */
export const faster = (path: PricePath, from: number, speed: number): PricePath =>
  speed === 1 ? path : {
    priceAt: (market, now) => path.priceAt(market, now <= from ? now : from + (now - from) * speed),
    isMonotone: false,
    playedSince: () => from
  }
