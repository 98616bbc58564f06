/**
 * Candles and daily statistics of the venue's coins.
 *
 * The bars of all intervals follow one price path, so they are consistent with each other, and with prices and books.
 */
import type { Candle, CandleInterval, CandleWindowRequest } from "@trigate/domain/candles/Candle"
import { barAt, closeTime, openTime, retainedBars } from "@trigate/domain/candles/Candle"
import type { CandlePath } from "../internal/venue/PriceWalk.ts"
import { day, extremes, level, lotsIn, minute, priceWalk, tradesBy } from "../internal/venue/PriceWalk.ts"
import type { Seed } from "../Seed.ts"
import type { CandleMarket } from "./CandleMarket.ts"
import { printPrice, printSize } from "./CandleMarket.ts"

const bar = (
  market: CandleMarket,
  path: CandlePath,
  interval: CandleInterval,
  index: number,
  now: number
): Candle => {
  const t = openTime(interval, index)
  const T = closeTime(interval, index)
  const from = Math.max(t, market.listedAt) / minute
  const to = Math.min(T + 1, now) / minute
  const { high, low } = extremes(path, from, to)
  const price = (level: number) => printPrice(market, market.price * Math.exp(level))
  const before = tradesBy(path, market.tradeRate, from)
  const after = tradesBy(path, market.tradeRate, to)
  const traded = lotsIn(path, market.tradeLots, after) - lotsIn(path, market.tradeLots, before)
  return {
    t,
    T,
    s: market.coin,
    i: interval,
    o: price(level(path, from)),
    c: price(level(path, to)),
    h: price(high),
    l: price(low),
    v: printSize(market, traded),
    n: after - before
  }
}

/**
 * Returns the bars of a market in a window, oldest first, at the time `now`.
 *
 * A bar is in the window if it closes at or after `startTime` (`T >= startTime`) and opens at or before `endTime` (`t
 * <= endTime`). Default `endTime`: now. There are no bars that begin at or after `now`, or that end before the listing.
 * Only the newest 5000 bars exist.
 */
export const bars = (
  seed: Seed,
  market: CandleMarket,
  request: CandleWindowRequest,
  now: number
): ReadonlyArray<Candle> => {
  const { endTime, interval, startTime } = request
  if (now <= market.listedAt) {
    return []
  }
  const newest = barAt(interval, now - 1)
  const first = Math.max(
    newest - retainedBars + 1,
    barAt(interval, market.listedAt),
    barAt(interval, startTime)
  )
  const last = Math.min(newest, barAt(interval, endTime ?? now))
  const path = priceWalk(seed, market)
  return Array.from(
    { length: Math.max(0, last - first + 1) },
    (_, offset) => bar(market, path, interval, first + offset, now)
  )
}

/**
 * Returns statistics of a market for the last 24 hours, or since its listing if the market is newer: the price at the
 * start and at the end, and the traded volume in lots of 10^-sizeDecimals.
 */
export const dayStatistics = (seed: Seed, market: CandleMarket, now: number) => {
  const path = priceWalk(seed, market)
  const to = now / minute
  const from = Math.max(market.listedAt / minute, to - day)
  const priceAt = (at: number) => market.price * Math.exp(level(path, at))
  const lotsBy = (at: number) => lotsIn(path, market.tradeLots, tradesBy(path, market.tradeRate, at))
  return { price: priceAt(to), before: priceAt(from), lots: lotsBy(to) - lotsBy(from) }
}
