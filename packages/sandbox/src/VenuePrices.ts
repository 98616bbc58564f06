/** What a market is worth at an instant, and what rests in its book: the same walk that its candles show. */
import type { CandleMarket } from "./CandleMarket.ts"
import { printPrice, printSize } from "./CandleMarket.ts"
import * as CandlePath from "./CandlePath.ts"
import type { Seed } from "./Seed.ts"
import * as Random from "./Seed.ts"

const minute = 60_000
const day = 1440

/** Price now and a day ago, and what was traded in between. */
export interface DayOf {
  readonly price: number
  readonly before: number
  /** Base volume, in lots of 10^-sizeDecimals. */
  readonly lots: number
}

/** The last day of a market that is listed; the listing cuts it. */
export const dayOf = (seed: Seed, market: CandleMarket, now: number): DayOf => {
  const path = CandlePath.make(seed, market.asset, market.volatility)
  const to = now / minute
  const from = Math.max(market.listedAt / minute, to - day)
  const priceAt = (at: number) => market.price * Math.exp(CandlePath.level(path, at))
  const lotsBy = (at: number) => CandlePath.lots(path, market.tradeLots, CandlePath.trades(path, market.tradeRate, at))
  return { price: priceAt(to), before: priceAt(from), lots: lotsBy(to) - lotsBy(from) }
}

/** The smallest step of a price: its fifth significant digit, a whole number at most, no finer than the market prints. */
const stepAt = ({ priceDecimals }: CandleMarket, price: number): number =>
  Math.max(10 ** -priceDecimals, 10 ** Math.min(0, Math.floor(Math.log10(price)) - 4))

const depth = 20

const ranks = Array.from({ length: depth }, (_, index) => index + 1)

/** A level of a book: price and size as the venue prints them, and how many orders. */
export interface Level {
  readonly px: string
  readonly sz: string
  readonly n: number
}

/** Both sides of a book, the best level of each first, one step away from the price; sizes change once a minute. */
export const bookOf = (
  seed: Seed,
  market: CandleMarket,
  now: number
): readonly [bids: ReadonlyArray<Level>, asks: ReadonlyArray<Level>] => {
  const { price } = dayOf(seed, market, now)
  // the step of the highest level, which may have a digit more before the point
  const step = stepAt(market, price + depth * stepAt(market, price))
  const family = Random.series(seed, `book/${market.coin}/${Math.floor(now / minute)}`)
  const side = (direction: 1 | -1) =>
    ranks.flatMap((rank): ReadonlyArray<Level> => {
      const at = price + direction * rank * step
      return at < step ? [] : [{
        px: printPrice(market, at),
        sz: printSize(market, 1 + Random.below(family, direction * rank + depth, 4 * market.tradeLots)),
        n: 1 + Random.below(family, direction * rank + 3 * depth, 9)
      }]
    })
  return [side(-1), side(1)]
}
