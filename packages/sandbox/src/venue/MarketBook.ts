/** The synthetic orders in the books of the venue's coins. */
import type { BookLevel } from "@trigate/domain/info/Market"
import { minute, priceAt } from "../internal/venue/PriceWalk.ts"
import type { Seed } from "../Seed.ts"
import * as Random from "../Seed.ts"
import type { CandleMarket } from "./CandleMarket.ts"
import { printPrice, printSize } from "./CandleMarket.ts"

/**
 * Returns the smallest price step: one unit of the fifth significant digit, but at most 1 and not finer than the
 * market's decimals.
 */
const stepAt = ({ priceDecimals }: CandleMarket, price: number): number =>
  Math.max(10 ** -priceDecimals, 10 ** Math.min(0, Math.floor(Math.log10(price)) - 4))

const depth = 20

const ranks = Array.from({ length: depth }, (_, index) => index + 1)

/**
 * Makes both sides of a book. The best level of each side is first, one price step away from the price. Sizes change
 * once a minute.
 */
export const makeBook = (
  seed: Seed,
  market: CandleMarket,
  now: number
): readonly [bids: ReadonlyArray<BookLevel>, asks: ReadonlyArray<BookLevel>] => {
  return bookAround(seed, market, now, priceAt(seed, market, now))
}

/** Makes a book like {@link makeBook}, but around a given price. */
export const bookAround = (
  seed: Seed,
  market: CandleMarket,
  now: number,
  price: number
): readonly [bids: ReadonlyArray<BookLevel>, asks: ReadonlyArray<BookLevel>] => {
  // the step at the highest level, whose price can have one more digit before the decimal point than `price`
  const step = stepAt(market, price + depth * stepAt(market, price))
  const family = Random.series(seed, `book/${market.coin}/${Math.floor(now / minute)}`)
  const side = (direction: 1 | -1) =>
    ranks.flatMap((rank): ReadonlyArray<BookLevel> => {
      const at = price + direction * rank * step
      return at < step ? [] : [{
        px: printPrice(market, at),
        sz: printSize(market, 1 + Random.below(family, direction * rank + depth, 4 * market.tradeLots)),
        n: 1 + Random.below(family, direction * rank + 3 * depth, 9)
      }]
    })
  return [side(-1), side(1)]
}
