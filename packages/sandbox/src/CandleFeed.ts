/** The bars that the venue has at an instant: since the listing, the newest 5000 of an interval, the last one forming. */
import type { Candle, CandleInterval, CandleWindowRequest } from "@trigate/domain/Candle"
import { barAt, closeOf, openOf, retainedBars } from "@trigate/domain/CandleWindow"
import type { CandleMarket } from "./CandleMarket.ts"
import { printPrice, printSize } from "./CandleMarket.ts"
import * as CandlePath from "./CandlePath.ts"
import type { Seed } from "./Seed.ts"

const minute = 60_000

const bar = (
  market: CandleMarket,
  path: CandlePath.CandlePath,
  interval: CandleInterval,
  index: number,
  now: number
): Candle => {
  const t = openOf(interval, index)
  const T = closeOf(interval, index)
  const from = Math.max(t, market.listedAt) / minute
  const to = Math.min(T + 1, now) / minute
  const { high, low } = CandlePath.extremes(path, from, to)
  const price = (level: number) => printPrice(market, market.price * Math.exp(level))
  const before = CandlePath.trades(path, market.tradeRate, from)
  const after = CandlePath.trades(path, market.tradeRate, to)
  const traded = CandlePath.lots(path, market.tradeLots, after) - CandlePath.lots(path, market.tradeLots, before)
  return {
    t,
    T,
    s: market.coin,
    i: interval,
    o: price(CandlePath.level(path, from)),
    c: price(CandlePath.level(path, to)),
    h: price(high),
    l: price(low),
    v: printSize(market, traded),
    n: after - before
  }
}

/**
 * The bars of a market in a window, oldest first, at the instant `now`.
 *
 * A bar is in the window when `T >= startTime` and `t <= endTime`; no `endTime` means now. Bars that begin at or after `now`,
 * that end before the listing, or that are not among the newest 5000 do not exist.
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
  const path = CandlePath.make(seed, market.asset, market.volatility)
  return Array.from(
    { length: Math.max(0, last - first + 1) },
    (_, offset) => bar(market, path, interval, first + offset, now)
  )
}
