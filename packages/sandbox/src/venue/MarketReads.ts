/** Books, prices and trades, as queries and streams list them. */
import type { Candle, CandleWindowRequest } from "@trigate/domain/candles/Candle"
import type { BookLevel, Trade } from "@trigate/domain/info/Market"
import type { Asset, Perpetual } from "./Assets.ts"
import { printPx, printSz, usdDecimals } from "./Assets.ts"
import * as CandleBars from "./CandleBars.ts"
import { type CandleMarket, printPrice } from "./CandleMarket.ts"
import * as Decimals from "./Decimals.ts"
import { abs, max, min } from "./Decimals.ts"
import { bestPrices } from "./Matching.ts"
import type * as PriceTimeBook from "./PriceTimeBook.ts"
import { isRenewed, markPrice, refreshed } from "./Quotes.ts"
import type { VenueOrder } from "./TradingAccount.ts"
import type { Quote } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"

/** The number of book levels in a query's response. */
const depth = 20

interface Level {
  readonly px: bigint
  readonly sz: bigint
  readonly n: number
}

const bookLevels = (side: PriceTimeBook.BookSide<VenueOrder>, quotes: ReadonlyArray<Quote>): ReadonlyArray<Level> => {
  const levels = new Map<bigint, { sz: bigint; n: number }>()
  const join = (px: bigint, sz: bigint, n: number) => {
    const known = levels.get(px)
    levels.set(px, { sz: (known?.sz ?? 0n) + sz, n: (known?.n ?? 0) + n })
  }
  for (const { n, px, sz } of quotes) if (sz > 0n) join(px, sz, n)
  let found = 0
  for (let index = side.prices.length - 1; index >= 0 && found < depth; index--, found++) {
    for (const order of side.levels.get(side.prices[index] ?? 0n)?.values() ?? []) join(order.px, order.sz, 1)
  }
  return [...levels].map(([px, { n, sz }]) => ({ px, sz, n }))
    .toSorted((a, b) => a.px === b.px ? 0 : (a.px > b.px) === side.isBid ? -1 : 1)
}

/**
 * The aggregation of a book's prices: `nSigFigs` is the number of significant digits, and `mantissa` is the step of the
 * last digit.
 */
export interface Aggregation {
  readonly nSigFigs: number
  readonly mantissa: number
}

/** Returns the step of aggregated prices around `px`, in ticks. */
const aggregationStep = (px: bigint, { mantissa, nSigFigs }: Aggregation): bigint => {
  const digits = px.toString().length
  return digits <= nSigFigs ? 1n : 10n ** BigInt(digits - nSigFigs) * BigInt(mantissa)
}

const joined = (levels: ReadonlyArray<Level>, isBid: boolean, by: Aggregation): ReadonlyArray<Level> => {
  const all = new Map<bigint, { sz: bigint; n: number }>()
  for (const { n, px, sz } of levels) {
    const step = aggregationStep(px, by)
    const at = isBid ? px / step * step : (px + step - 1n) / step * step
    const known = all.get(at)
    all.set(at, { sz: (known?.sz ?? 0n) + sz, n: (known?.n ?? 0) + n })
  }
  return [...all].map(([px, { n, sz }]) => ({ px, sz, n }))
}

/** Returns the response to the query `l2Book`: the orders of accounts and the synthetic orders, aggregated by price. */
export const book = (
  venue: Venue,
  asset: Asset,
  by?: Aggregation
): readonly [bids: ReadonlyArray<BookLevel>, asks: ReadonlyArray<BookLevel>] => {
  const { asks, bids, quotes } = refreshed(venue, asset)
  const print = (levels: ReadonlyArray<Level>, isBid: boolean) =>
    (by === undefined ? levels : joined(levels, isBid, by)).slice(0, depth).map(({ n, px, sz }) => ({
      px: printPx(asset, px),
      sz: printSz(asset, sz),
      n
    }))
  return [print(bookLevels(bids, quotes.bids), true), print(bookLevels(asks, quotes.asks), false)]
}

/**
 * Returns the mean of the best bid and the best ask; the mark price if a side of the book is empty. The best prices are
 * taken from the synthetic orders and the orders of accounts.
 */
export const mid = (venue: Venue, asset: Asset): string => {
  const market = refreshed(venue, asset)
  if (isRenewed(market) && market.bids.prices.length === 0 && market.asks.prices.length === 0) {
    return printPx(asset, markPrice(venue, asset))
  }
  const { ask, bid } = bestPrices(venue, asset)
  return bid === undefined || ask === undefined
    ? printPx(asset, markPrice(venue, asset))
    : Decimals.print((bid + ask) * 5n, asset.pxDecimals + 1)
}

/** Returns the trades of a coin in which accounts took part, newest first. Synthetic trades are not included. */
export const tradeRows = ({ state }: Venue, coin: string): ReadonlyArray<Trade> =>
  state.markets.get(coin)?.trades.toReversed() ?? []

/**
 * Returns the total lots of all positions on one side of a perpetual. The position of the house (the account behind the
 * synthetic orders) is not included.
 */
export const openInterest = ({ state }: Venue, asset: Asset): bigint => {
  const market = state.markets.get(asset.coin)
  if (market === undefined || asset.kind === "spot") return 0n
  let total = 0n
  for (const holder of market.holders) {
    total += abs(state.accounts.get(holder)?.clearings.get(asset.dex)?.positions.get(asset.coin)?.size ?? 0n)
  }
  return total
}

/**
 * Returns whether the open interest of a perpetual has reached its cap. If so, no position in the perpetual can grow.
 */
export const isCapped = (venue: Venue, asset: Perpetual): boolean => {
  const { openInterestCap } = asset.market
  return openInterestCap !== undefined &&
    openInterest(venue, asset) * markPrice(venue, asset) >= BigInt(openInterestCap) * 10n ** BigInt(usdDecimals)
}

const minute = 60_000

/** The number of equal steps into which a bar is divided to sample the replayed prices. */
const looks = 16

/** Replaces the prices of bars by replayed prices. Bars that end before the replay starts do not change. */
const playedBars = (
  venue: Venue,
  market: CandleMarket,
  bars: ReadonlyArray<Candle>,
  now: number
): ReadonlyArray<Candle> => {
  const since = venue.path.playedSince(market.coin)
  return since === undefined ? bars : bars.map((bar) => {
    const { T, i, n, s, t, v } = bar
    const from = Math.max(t, since)
    const to = Math.min(T, now)
    if (to < from) return bar
    const prices = Array.from(
      { length: looks + 1 },
      (_, look) => venue.path.priceAt(market, from + (to - from) * look / looks)
    )
    const print = (price: number | undefined) => printPrice(market, price ?? 0)
    const [o, c] = [print(prices[0]), print(prices[looks])]
    return { t, T, s, i, o, c, h: print(Math.max(...prices)), l: print(Math.min(...prices)), v, n }
  })
}

/** Returns the response to the query `candleSnapshot`: the bars of the price path, including the trades of accounts. */
export const bars = (venue: Venue, market: CandleMarket, window: CandleWindowRequest, now: number) => {
  const made = playedBars(venue, market, CandleBars.bars(venue.seed, market, window, now), now)
  const traded = venue.state.markets.get(market.coin)?.minutes
  const asset = venue.listing.byCoin.get(market.coin)
  if (traded === undefined || traded.size === 0 || asset === undefined || made.length === 0) return made
  const parse = (text: string, decimals: number) => Decimals.parse(text, decimals) ?? 0n
  return made.map((bar): Candle => {
    const own = [...traded].flatMap(([at, trades]) => at * minute >= bar.t && at * minute <= bar.T ? [trades] : [])
    if (own.length === 0) return bar
    const { T, c, i, o, s, t } = bar
    return {
      t,
      T,
      s,
      i,
      o,
      c,
      h: printPx(asset, own.reduce((high, trades) => max(high, trades.high), parse(bar.h, asset.pxDecimals))),
      l: printPx(asset, own.reduce((low, trades) => min(low, trades.low), parse(bar.l, asset.pxDecimals))),
      v: printSz(asset, own.reduce((lots, trades) => lots + trades.lots, parse(bar.v, asset.szDecimals))),
      n: own.reduce((count, trades) => count + trades.count, bar.n)
    }
  })
}
