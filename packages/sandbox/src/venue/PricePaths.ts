/** Price paths that do not follow from the seed: recorded bars or points of one's own, at any speed. */
import type { Candle } from "@trigate/domain/candles/Candle"
import type { CandleMarket } from "./CandleMarket.ts"
import type { PricePath } from "./Venue.ts"

/** A price at an instant, in milliseconds. */
export interface PricePoint {
  readonly time: number
  readonly price: number
}

/** The points of bars: open, the extremes in the order in which a bar of its direction passes them, and close. */
export const pointsOf = (
  bars: ReadonlyArray<Pick<Candle, "t" | "T" | "o" | "h" | "l" | "c">>
): ReadonlyArray<PricePoint> =>
  bars.flatMap(({ T, c, h, l, o, t }) => {
    const third = (T - t) / 3
    const [first, second] = Number(c) >= Number(o) ? [l, h] : [h, l]
    return [[t, o], [t + third, first], [t + 2 * third, second], [T, c]] as const
  }).map(([time, price]) => ({ time: Math.round(time), price: Number(price) }))

/** The price between two points lies on the line between them; before the first and after the last it stands still. */
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

/** A path that plays points for some coins, from an instant of the venue on, and another path for all others. */
export const played = (
  others: PricePath,
  coins: ReadonlyMap<string, ReadonlyArray<PricePoint>>,
  { from, speed }: { readonly from: number; readonly speed: number }
): PricePath => ({
  priceAt: (market: CandleMarket, now: number) => {
    const points = coins.get(market.coin)
    const [first] = points ?? []
    return points === undefined || first === undefined || now < from
      ? others.priceAt(market, now)
      : priceIn(points, first.time + (now - from) * speed) ?? others.priceAt(market, now)
  },
  isMonotone: false,
  playedSince: (coin) => coins.has(coin) ? from : others.playedSince(coin)
})
