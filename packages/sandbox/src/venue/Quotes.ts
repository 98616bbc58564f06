/**
 * The synthetic orders of a market: twenty price levels on each side of the price path, renewed each second, or levels
 * that a test has set.
 */
import type { Asset } from "./Assets.ts"
import { printPrice } from "./CandleMarket.ts"
import * as Decimals from "./Decimals.ts"
import { bookAround } from "./MarketBook.ts"
import type { MarketState, Quote } from "./TradingState.ts"
import { ensureMarket, withoutPrices } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"

const second = 1_000

const toQuotes = (asset: Asset, levels: ReturnType<typeof bookAround>[number]): Array<Quote> => {
  const quotes: Array<Quote> = []
  for (const { n, px, sz } of levels) {
    const ticks = Decimals.parse(px, asset.pxDecimals)
    const lots = Decimals.parse(sz, asset.szDecimals)
    if (ticks !== undefined && lots !== undefined && ticks > 0n) quotes.push({ px: ticks, sz: lots, n })
  }
  return quotes
}

const currentSecond = ({ state: { now } }: Venue): number => Math.floor(now / second)

/** The second of synthetic orders that a test has set, which are never renewed. */
export const never = Number.POSITIVE_INFINITY

/** Returns whether the synthetic orders of a market are renewed each second. Orders that a test has set are not. */
export const isRenewed = ({ quotes }: MarketState): boolean => quotes.second !== never

/** Discards the mark price and the generated orders of a market, because the price path has changed. */
export const discardPrices = (market: MarketState): void => {
  const { mark, quotes } = withoutPrices()
  market.mark = mark
  if (isRenewed(market)) market.quotes = quotes
}

/**
 * Returns the market with the synthetic orders of the current second. Lots that were already filled in this second are
 * subtracted.
 */
export const refreshed = (venue: Venue, asset: Asset): MarketState => {
  const market = ensureMarket(venue.state, asset.coin)
  const at = currentSecond(venue)
  if (market.quotes.second === at || !isRenewed(market)) return market
  const price = venue.path.priceAt(asset.market, at * second)
  const [bids, asks] = bookAround(venue.seed, asset.market, at * second, price)
  market.quotes = { second: at, bids: toQuotes(asset, bids), asks: toQuotes(asset, asks) }
  return market
}

/** Returns the mark price at the time `now`, in ticks. */
export const markAt = (venue: Venue, asset: Asset, now: number): bigint =>
  Decimals.parse(
    printPrice(asset.market, venue.path.priceAt(asset.market, now)),
    asset.pxDecimals
  ) ?? 0n

/**
 * Returns the mark price in ticks, which is the price of the price path. All synthetic asks are at or above it, and all
 * synthetic bids at or below it.
 */
export const markPrice = (venue: Venue, asset: Asset): bigint => {
  const market = ensureMarket(venue.state, asset.coin)
  const at = currentSecond(venue)
  if (market.mark.second !== at) market.mark = { second: at, px: markAt(venue, asset, at * second) }
  return market.mark.px
}

/** Returns the first synthetic order with a remaining size. */
export const firstQuote = (quotes: ReadonlyArray<Quote>): Quote | undefined => quotes.find(({ sz }) => sz > 0n)
