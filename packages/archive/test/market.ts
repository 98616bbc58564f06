/** Bars of the sandbox's markets, which are printed as the venue prints them, and some without trades left out. */
import type { BarRange, Candle, CandleInterval } from "@trigate/domain/candles/Candle"
import { openTime } from "@trigate/domain/candles/Candle"
import { defaultSeed } from "@trigate/sandbox/unstable/Seed"
import * as CandleMarket from "@trigate/sandbox/unstable/venue/Assets"
import * as CandleBars from "@trigate/sandbox/unstable/venue/CandleBars"

const marketOf = (coin: string): CandleMarket.CandleMarket => {
  const market = CandleMarket.markets.find((market) => market.coin === coin)
  if (market === undefined) throw new Error(`The sandbox has no ${coin}`)
  return market
}

/** Closed bars of a range that the venue still keeps at some time; every `hole`-th of them is left out. */
export const barsOf = (
  coin: string,
  interval: CandleInterval,
  { from, to }: BarRange,
  hole = Number.POSITIVE_INFINITY
): ReadonlyArray<Candle> => {
  const bars: Array<Candle> = []
  for (let start = from; start <= to; start += 5000) {
    const end = Math.min(to, start + 4999)
    bars.push(...CandleBars.bars(
      defaultSeed,
      marketOf(coin),
      { coin, interval, startTime: openTime(interval, start), endTime: openTime(interval, end) },
      openTime(interval, end + 1)
    ))
  }
  return bars.filter((_, index) => index % hole !== hole - 1)
}
