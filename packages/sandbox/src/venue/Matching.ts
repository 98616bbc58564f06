/**
 * Matching by price-time priority.
 *
 * At a price, orders of accounts have priority over synthetic orders, which are renewed each second and are therefore
 * newer. Two orders of one account are never matched: instead, the resting order is canceled.
 */
import type { Trade } from "@trigate/domain/info/Market"
import type { Asset } from "./Assets.ts"
import { printPx, printSz } from "./Assets.ts"
import { max, min } from "./Decimals.ts"
import * as Margin from "./Margin.ts"
import * as OrderLife from "./OrderLife.ts"
import * as PriceTimeBook from "./PriceTimeBook.ts"
import { firstQuote, isRenewed, markPrice, refreshed } from "./Quotes.ts"
import type { TradeTerms } from "./Settlement.ts"
import * as Settlement from "./Settlement.ts"
import type { VenueOrder } from "./TradingAccount.ts"
import { ensureClearing, none } from "./TradingAccount.ts"
import type { MarketState, Quote } from "./TradingState.ts"
import * as TradingState from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import { emit, nextTid, zeroHash } from "./Venue.ts"

/** The immediate fill of an order: the filled lots, and their value in ticks times lots. */
export interface Filled {
  readonly sz: bigint
  readonly paid: bigint
}

/** Maximum number of trades, and of minutes with trades, that are stored for a market. */
const rememberedTrades = 500
const rememberedMinutes = 5_000
const minute = 60_000

const countMinute = ({ minutes }: MarketState, now: number, px: bigint, sz: bigint): void => {
  const at = Math.floor(now / minute)
  const known = minutes.get(at)
  if (known === undefined) {
    minutes.set(at, { lots: sz, count: 1, high: px, low: px })
    if (minutes.size > rememberedMinutes) {
      const [oldest] = minutes.keys()
      if (oldest !== undefined) minutes.delete(oldest)
    }
    return
  }
  known.lots += sz
  known.count += 1
  known.high = max(known.high, px)
  known.low = min(known.low, px)
}

const record = (
  venue: Venue,
  asset: Asset,
  market: MarketState,
  { hash, px, sz, tid }: TradeTerms,
  takerBuys: boolean,
  users: Trade["users"]
): void => {
  const trade: Trade = {
    coin: asset.coin,
    side: takerBuys ? "B" : "A",
    px: printPx(asset, px),
    sz: printSz(asset, sz),
    time: venue.state.now,
    hash,
    tid,
    ...(users === undefined ? {} : { users })
  }
  TradingState.append(market.trades, trade, rememberedTrades)
  countMinute(market, venue.state.now, px, sz)
  emit(venue, { kind: "trade", coin: asset.coin, trade })
  emit(venue, { kind: "book", coin: asset.coin })
}

/**
 * Reports the status of a resting order after a fill. If the order is filled completely, activates its child orders
 * (such as a stop-loss) and ends its sibling orders (orders of which only one can be filled).
 */
const settled = (venue: Venue, order: VenueOrder): void => {
  OrderLife.report(venue, order, order.sz === 0n ? "filled" : "open")
  if (order.sz === 0n) release(venue, order)
}

/**
 * Queues the child orders of a filled order until their triggers are reached; from then on they are siblings. Ends the
 * sibling orders of the filled order, because only one of several siblings can be filled.
 */
export const release = (venue: Venue, order: VenueOrder): void => {
  const account = TradingState.ensureAccount(venue.state, order.user)
  const { children } = order
  for (const child of children) {
    child.siblings = children.flatMap(({ oid }) => oid === child.oid ? [] : [oid])
    OrderLife.awaitTrigger(venue, child)
    OrderLife.report(venue, child, "open")
  }
  order.children = none
  for (const oid of order.siblings) {
    const sibling = account.orders.get(oid)
    if (sibling !== undefined && sibling.place !== "gone") OrderLife.endByVenue(venue, sibling, "siblingFilledCanceled")
  }
}

/**
 * Ends reduce-only orders that can no longer reduce the account's position, because the position is closed or reversed.
 */
export const endReducers = (venue: Venue, asset: Asset, user: VenueOrder["user"]): void => {
  if (asset.kind === "spot") return
  const account = TradingState.ensureAccount(venue.state, user)
  const size = account.clearings.get(asset.dex)?.positions.get(asset.coin)?.size ?? 0n
  for (const order of account.open.values()) {
    if (order.coin !== asset.coin || !order.reduceOnly) continue
    if (size === 0n || size > 0n === order.isBuy) OrderLife.endByVenue(venue, order, "reduceOnlyCanceled")
  }
}

const fillableLots = (venue: Venue, asset: Asset, maker: VenueOrder): bigint =>
  maker.reduceOnly
    ? min(maker.sz, OrderLife.reducible(TradingState.ensureAccount(venue.state, maker.user), asset, maker))
    : maker.sz

/** Returns whether the account of a resting order has too little margin for the fill of the order. */
const lacksMargin = (venue: Venue, asset: Asset, maker: VenueOrder): boolean => {
  if (asset.kind === "spot" || maker.reduceOnly) return false
  const account = TradingState.ensureAccount(venue.state, maker.user)
  const clearing = ensureClearing(account, asset.dex)
  const size = clearing.positions.get(asset.coin)?.size ?? 0n
  if (size !== 0n && size > 0n !== maker.isBuy) return false
  return Margin.marginSums(venue, clearing).crossValue < Margin.needed(venue, account, clearing, asset.dex)
}

/**
 * Returns the next resting order of a book side that can be filled. Ends the orders before it that cannot be filled.
 */
const nextMaker = (
  venue: Venue,
  asset: Asset,
  side: PriceTimeBook.BookSide<VenueOrder>,
  taker: VenueOrder | undefined,
  reaches: (px: bigint) => boolean
): VenueOrder | undefined => {
  for (;;) {
    const maker = PriceTimeBook.best(side)
    if (maker === undefined || !reaches(maker.px)) return undefined
    if (maker.user === taker?.user) OrderLife.endByVenue(venue, maker, "selfTradeCanceled")
    else if (lacksMargin(venue, asset, maker)) OrderLife.endByVenue(venue, maker, "marginCanceled")
    else if (fillableLots(venue, asset, maker) === 0n) OrderLife.endByVenue(venue, maker, "reduceOnlyCanceled")
    else return maker
  }
}

interface Meeting {
  readonly hash: Settlement.TradeTerms["hash"]
  readonly liquidation?: TradeTerms["liquidation"]
}

const tradeTerms = (venue: Venue, { hash, liquidation }: Meeting, px: bigint, sz: bigint): TradeTerms => ({
  px,
  sz,
  tid: nextTid(venue),
  hash,
  ...(liquidation === undefined ? {} : { liquidation })
})

const withMaker = (
  venue: Venue,
  asset: Asset,
  market: MarketState,
  taker: VenueOrder,
  maker: VenueOrder,
  meeting: Meeting
): Filled => {
  const sz = min(taker.sz, fillableLots(venue, asset, maker))
  const terms = tradeTerms(venue, meeting, maker.px, sz)
  OrderLife.reduce(venue, asset, taker, sz)
  OrderLife.reduce(venue, asset, maker, sz)
  Settlement.settle(venue, asset, taker, terms, true)
  Settlement.settle(venue, asset, maker, terms, false)
  settled(venue, maker)
  endReducers(venue, asset, maker.user)
  record(
    venue,
    asset,
    market,
    terms,
    taker.isBuy,
    taker.isBuy ? [taker.user, maker.user] : [maker.user, taker.user]
  )
  return { sz, paid: sz * maker.px }
}

const withQuote = (
  venue: Venue,
  asset: Asset,
  market: MarketState,
  taker: VenueOrder,
  quote: Quote,
  meeting: Meeting
): Filled => {
  const sz = min(taker.sz, quote.sz)
  const terms = tradeTerms(venue, meeting, quote.px, sz)
  quote.sz -= sz
  OrderLife.reduce(venue, asset, taker, sz)
  Settlement.settle(venue, asset, taker, terms, true)
  Settlement.settleHouse(venue, asset, !taker.isBuy, quote.px, sz)
  const { house } = venue
  record(venue, asset, market, terms, taker.isBuy, taker.isBuy ? [taker.user, house] : [house, taker.user])
  return { sz, paid: sz * quote.px }
}

/**
 * Fills an incoming order against crossing orders.
 *
 * Does not end reduce-only orders that can no longer reduce a position; the caller must do that.
 */
export const take = (venue: Venue, asset: Asset, taker: VenueOrder, meeting: Meeting): Filled => {
  const market = refreshed(venue, asset)
  const side = taker.isBuy ? market.asks : market.bids
  const quotes = taker.isBuy ? market.quotes.asks : market.quotes.bids
  const reaches = (px: bigint) => taker.isBuy ? px <= taker.px : px >= taker.px
  let sz = 0n
  let paid = 0n
  while (taker.sz > 0n) {
    const quote = firstQuote(quotes)
    // orders behind the best quote are not met yet, so none of them ends
    const isBefore = (px: bigint) => quote === undefined || (taker.isBuy ? px <= quote.px : px >= quote.px)
    const maker = nextMaker(venue, asset, side, taker, (px) => reaches(px) && isBefore(px))
    if (maker === undefined && (quote === undefined || !reaches(quote.px))) break
    const met = maker !== undefined
      ? withMaker(venue, asset, market, taker, maker, meeting)
      : quote === undefined
      ? { sz: 0n, paid: 0n }
      : withQuote(venue, asset, market, taker, quote, meeting)
    sz += met.sz
    paid += met.paid
  }
  return { sz, paid }
}

/** Returns the best bid and the best ask, in ticks, among the orders of accounts and the synthetic orders. */
export const bestPrices = (venue: Venue, asset: Asset): { readonly bid?: bigint; readonly ask?: bigint } => {
  const { asks, bids, quotes } = refreshed(venue, asset)
  const bid = [PriceTimeBook.best(bids)?.px, firstQuote(quotes.bids)?.px].filter((px) => px !== undefined)
  const ask = [PriceTimeBook.best(asks)?.px, firstQuote(quotes.asks)?.px].filter((px) => px !== undefined)
  return {
    ...(bid.length === 0 ? {} : { bid: bid.reduce(max) }),
    ...(ask.length === 0 ? {} : { ask: ask.reduce(min) })
  }
}

const sweepSide = (venue: Venue, asset: Asset, isBid: boolean): void => {
  const market = TradingState.ensureMarket(venue.state, asset.coin)
  const side = isBid ? market.bids : market.asks
  const first = PriceTimeBook.best(side)
  if (first === undefined) return
  const mark = markPrice(venue, asset)
  // returns early in the usual case, because making the synthetic orders is slow
  if (isRenewed(market) && (isBid ? first.px < mark : first.px > mark)) return
  refreshed(venue, asset)
  const quotes = isBid ? market.quotes.asks : market.quotes.bids
  for (;;) {
    const quote = firstQuote(quotes)
    if (quote === undefined) return
    const maker = nextMaker(venue, asset, side, undefined, (px) => isBid ? px >= quote.px : px <= quote.px)
    if (maker === undefined) return
    const sz = min(quote.sz, fillableLots(venue, asset, maker))
    const terms = tradeTerms(venue, { hash: zeroHash }, maker.px, sz)
    quote.sz -= sz
    OrderLife.reduce(venue, asset, maker, sz)
    Settlement.settle(venue, asset, maker, terms, false)
    Settlement.settleHouse(venue, asset, !isBid, maker.px, sz)
    settled(venue, maker)
    endReducers(venue, asset, maker.user)
    const { house } = venue
    record(venue, asset, market, terms, !isBid, isBid ? [maker.user, house] : [house, maker.user])
  }
}

/** Fills the resting orders that the price path has reached, each at its own price. */
export const sweep = (venue: Venue, asset: Asset): void => {
  sweepSide(venue, asset, true)
  sweepSide(venue, asset, false)
}
