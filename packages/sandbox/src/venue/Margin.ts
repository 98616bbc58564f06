/**
 * The synthetic orders of each market, and the value of an account: margin of its positions and orders, the
 * withdrawable balance, and hourly funding.
 */
import type { BookLevel } from "@trigate/domain/info/Market"
import * as Random from "../Seed.ts"
import * as Assets from "./Assets.ts"
import { minute, premiumAt, priceAt } from "./CandleBars.ts"
import * as Outcomes from "./Outcomes.ts"
import {
  addTo,
  append,
  ensureBalance,
  ensureClearing,
  ensureMarket,
  isUnified,
  payHouse,
  sweep,
  withoutPrices
} from "./TradingState.ts"
import type {
  AccountValue,
  Clearing,
  FundingEntry,
  MarketState,
  Position,
  Quote,
  TradingAccount
} from "./TradingState.ts"
import { emit, type Venue } from "./Venue.ts"

/**
 * Returns the smallest price step: one unit of the fifth significant digit, but at most 1 and not finer than the
 * market's decimals.
 */
const stepAt = ({ priceDecimals }: Assets.CandleMarket, price: number): number =>
  Math.max(10 ** -priceDecimals, 10 ** Math.min(0, Math.floor(Math.log10(price)) - 4))

const depth = 20

const ranks = Array.from({ length: depth }, (_, index) => index + 1)

/** The value of the orders at one price, in units of the quote token, for which one more order is counted. */
const orderValue = 15_000

/** Returns the maximum number of orders at one price. */
const mostOrders = ({ levelValue = 0 }: Assets.CandleMarket): number =>
  Math.min(60, Math.max(9, Math.round(levelValue / orderValue)))

/** The levels of both sides of a book, best first. */
export type BookSides = readonly [bids: ReadonlyArray<BookLevel>, asks: ReadonlyArray<BookLevel>]

/**
 * Makes both sides of a book. The best level of each side is first, one price step away from the price. Sizes change
 * once a minute.
 */
export const makeBook = (seed: Random.Seed, market: Assets.CandleMarket, now: number): BookSides =>
  bookAround(seed, market, now, priceAt(seed, market, now))

/** Makes a book like {@link makeBook}, but around a given price. */
export const bookAround = (seed: Random.Seed, market: Assets.CandleMarket, now: number, price: number): BookSides => {
  // the step at the highest level, whose price can have one more digit before the decimal point than `price`
  const step = stepAt(market, price + depth * stepAt(market, price))
  const family = Random.series(seed, `book/${market.coin}/${Math.floor(now / minute)}`)
  const lots = 2 * Assets.meanLevelLots(market)
  const orders = mostOrders(market)
  const side = (direction: 1 | -1) =>
    ranks.flatMap((rank): ReadonlyArray<BookLevel> => {
      const at = price + direction * rank * step
      return at < step ? [] : [{
        px: Assets.printPrice(market, at),
        sz: Assets.printSize(market, 1 + Random.below(family, direction * rank + depth, lots)),
        n: 1 + Random.below(family, direction * rank + 3 * depth, orders)
      }]
    })
  return [side(-1), side(1)]
}

/** Returns the best prices of the generated orders around a price, without making the orders. */
const bestAround = (
  asset: Assets.Asset,
  price: number
): { readonly bid: bigint | undefined; readonly ask: bigint | undefined } => {
  const { market } = asset
  const step = stepAt(market, price + depth * stepAt(market, price))
  const px = (at: number) =>
    at < step ? undefined : Assets.parseDecimal(Assets.printPrice(market, at), asset.pxDecimals)
  return { bid: px(price - step), ask: px(price + step) }
}

const second = 1_000

/**
 * Converts the levels of a book, best first, to synthetic orders. Skips a level that is not on the asset's ticks or lots, or
 * not above zero.
 */
export const toQuotes = (asset: Assets.Asset, levels: ReadonlyArray<BookLevel>): Array<Quote> => {
  const quotes: Array<Quote> = []
  for (const { n, px, sz } of levels) {
    const ticks = Assets.parseDecimal(px, asset.pxDecimals)
    const lots = Assets.parseDecimal(sz, asset.szDecimals)
    if (ticks !== undefined && lots !== undefined && ticks > 0n && lots > 0n) quotes.push({ px: ticks, sz: lots, n })
  }
  return quotes
}

const currentSecond = ({ state: { now } }: Venue): number => Math.floor(now / second)

/** The second of synthetic orders that a test has set, which are never renewed. */
export const never = Number.POSITIVE_INFINITY

/** The second of synthetic orders that are the book of a followed venue. Each new book replaces them. */
export const followed = Number.NEGATIVE_INFINITY

/** Returns whether the synthetic orders of a market are generated each second. Set and followed orders are not. */
export const isRenewed = ({ quotes }: MarketState): boolean => Number.isFinite(quotes.second)

/** Discards the mark price and the generated orders of a market, because the price path has changed. */
export const discardPrices = (market: MarketState): void => {
  const { mark, quotes } = withoutPrices()
  market.mark = mark
  if (market.quotes.second !== never) market.quotes = quotes
}

/**
 * Returns the market with the synthetic orders of the current second. Lots that were already filled in this second are
 * subtracted.
 */
export const refreshed = (venue: Venue, asset: Assets.Asset): MarketState => {
  const market = ensureMarket(venue.state, asset.coin)
  const at = currentSecond(venue)
  if (market.quotes.second === at || !isRenewed(market)) return market
  if (asset.market.isUnquoted === true) {
    market.quotes = { second: at, bids: [], asks: [] }
    return market
  }
  const price = venue.path.priceAt(asset.market, at * second)
  const dual = Outcomes.dualSide(asset)
  if (dual !== undefined) {
    const isFirst = asset.market.outcome?.side === 0
    const made = Outcomes.makeQuotes(
      venue.seed,
      isFirst ? asset.market : dual.market,
      at * second,
      isFirst ? price : 1 - price
    )
    market.quotes = { second: at, ...(isFirst ? made : Outcomes.mirror(made)) }
    shareQuotes(venue, asset)
    return market
  }
  const [bids, asks] = bookAround(venue.seed, asset.market, at * second, price)
  market.quotes = { second: at, bids: toQuotes(asset, bids), asks: toQuotes(asset, asks) }
  return market
}

/** Copies the synthetic orders of an outcome's side to its other side, where they are offers for the other token. */
export const shareQuotes = (venue: Venue, asset: Assets.Asset): void => {
  const dual = Outcomes.dualSide(asset)
  if (dual === undefined) return
  const { quotes } = ensureMarket(venue.state, asset.coin)
  ensureMarket(venue.state, dual.coin).quotes = { second: quotes.second, ...Outcomes.mirror(quotes) }
}

/**
 * Appends levels behind the last synthetic order of each side, until the side has the usual number of levels with a
 * size. An order that takes many levels therefore leaves a book with both sides.
 */
export const refill = (venue: Venue, asset: Assets.Asset, market: MarketState): void => {
  if (market.quotes.second === never) return shareQuotes(venue, asset)
  const { coin, priceDecimals } = asset.market
  const isSide = Outcomes.dualSide(asset) !== undefined
  for (const [quotes, direction] of [[market.quotes.bids, -1n], [market.quotes.asks, 1n]] as const) {
    const taken = quotes.findIndex(({ sz }) => sz > 0n)
    const [last] = quotes.slice(-1)
    if (taken === 0 || last === undefined) continue
    const family = Random.series(venue.seed, `book/${coin}/${market.quotes.second}/refill`)
    const step = stepAt(asset.market, Assets.toNumber(last.px, asset.pxDecimals))
    const ticks = isSide ? Outcomes.step : BigInt(Math.round(step * 10 ** priceDecimals))
    quotes.splice(0, taken === -1 ? quotes.length : taken)
    const isPrice = (px: bigint) => px > 0n && (!isSide || px < Outcomes.one)
    for (let px = last.px + direction * ticks; quotes.length < depth && isPrice(px); px += direction * ticks) {
      const index = Number(px)
      const sz = BigInt(1 + Random.below(family, index, 2 * Assets.meanLevelLots(asset.market)))
      quotes.push({ px, sz, n: 1 + Random.below(family, -index, mostOrders(asset.market)) })
    }
  }
  shareQuotes(venue, asset)
}

/**
 * Returns the best prices of the synthetic orders. For a market without trades of accounts in this second, it does not make
 * the orders.
 */
export const bestQuotes = (venue: Venue, asset: Assets.Asset): ReturnType<typeof bestAround> => {
  const market = ensureMarket(venue.state, asset.coin)
  const at = currentSecond(venue)
  if (asset.market.isUnquoted === true && isRenewed(market)) return { bid: undefined, ask: undefined }
  if (isRenewed(market) && market.quotes.second !== at && Outcomes.dualSide(asset) === undefined) {
    return bestAround(asset, venue.path.priceAt(asset.market, at * second))
  }
  const { quotes } = refreshed(venue, asset)
  return { bid: firstQuote(quotes.bids)?.px, ask: firstQuote(quotes.asks)?.px }
}

/** Returns the mark price at the time `now`, in ticks. */
export const markAt = (venue: Venue, asset: Assets.Asset, now: number): bigint =>
  Assets.parseDecimal(
    Assets.printPrice(asset.market, venue.path.priceAt(asset.market, now)),
    asset.pxDecimals
  ) ?? 0n

/**
 * Returns the mark price in ticks, which is the price of the price path. All synthetic asks are at or above it, and all
 * synthetic bids at or below it.
 */
export const markPrice = (venue: Venue, asset: Assets.Asset): bigint => {
  const market = ensureMarket(venue.state, asset.coin)
  const at = currentSecond(venue)
  if (market.mark.second !== at) market.mark = { second: at, px: markAt(venue, asset, at * second) }
  return market.mark.px
}

/** The number of mark prices that are stored for a market without generated orders. */
const rememberedMarks = 5_000

/** Records a trade in a market without generated orders, whose price is the mark price from then on. */
export const markTrade = (venue: Venue, asset: Assets.Asset, px: bigint): void => {
  const { isUnquoted, oracle } = asset.market
  if (isUnquoted !== true || oracle === undefined) return
  const time = currentSecond(venue) * second
  const price = Assets.toNumber(px, asset.pxDecimals)
  if (oracle.points.at(-1)?.time === time) oracle.points.pop()
  append(oracle.points, { time, price }, rememberedMarks)
  ensureMarket(venue.state, asset.coin).mark = withoutPrices().mark
}

/** Returns the first synthetic order with a remaining size. */
export const firstQuote = (quotes: ReadonlyArray<Quote>): Quote | undefined => quotes.find(({ sz }) => sz > 0n)

/**
 * Returns the perpetual of a coin; `undefined` for a delisted coin (an account can still have a position in it) and for
 * spot coins.
 */
export const perpetualByCoin = (venue: Venue, coin: string): Assets.Perpetual | undefined => {
  const asset = venue.listing.byCoin.get(coin)
  return asset?.kind === "perpetual" ? asset : undefined
}

/** Returns the price at which positions are valued, in ticks. */
export type Mark = (asset: Assets.Perpetual) => bigint

/**
 * Returns the leverage of an account in a perpetual. Default: 20, or the maximum leverage if that is lower, with cross
 * margin if the perpetual allows it.
 */
export const leverageSetting = (account: TradingAccount, asset: Assets.Perpetual) =>
  account.leverage.get(asset.coin) ?? {
    isCross: asset.market.marginMode === undefined,
    // recorded accounts show 20 for coins whose maximum is higher
    value: Math.min(Assets.usualLeverage, asset.maxLeverage)
  }

/** Returns the value of a position at a mark price; negative for a short position. */
export const signedValue = (position: Position, mark: bigint): bigint => position.size * mark

/** Returns the tier of the margin table that applies to a position of a value; `undefined` for the first tier. */
const findTier = ({ tiers }: Assets.Perpetual, value: bigint) =>
  tiers.length === 0 ? undefined : tiers.findLast(({ from }) => value >= from)

/**
 * Returns the maintenance margin of a position: half of the initial margin at the maximum leverage of each part of the
 * position's value.
 */
export const maintenanceMargin = (asset: Assets.Perpetual, position: Position, mark: bigint): bigint => {
  const value = Assets.abs(position.size * mark)
  const { deduction, maxLeverage } = findTier(asset, value) ?? { maxLeverage: asset.maxLeverage, deduction: 0n }
  return value / BigInt(2 * maxLeverage) - deduction
}

/** Returns the margin that a position uses. For an isolated position, this is the margin assigned to the position. */
export const marginUsedBy = (position: Position, mark: bigint): bigint =>
  position.isCross
    ? Assets.abs(position.size * mark) / BigInt(position.leverage)
    : Assets.max(0n, position.raw + signedValue(position, mark))

/** Returns the unrealized profit of a position at a mark price. */
export const unrealizedPnl = (position: Position, mark: bigint): bigint =>
  signedValue(position, mark) - (position.size < 0n ? -position.entry : position.entry)

/** Returns the value of an account in a dex, and the margin of the account's positions in that dex. */
export const marginSums = (venue: Venue, clearing: Clearing, mark: Mark = (asset) => markPrice(venue, asset)) => {
  let crossValue = clearing.cash
  let isolatedValue = 0n
  let isolatedRaw = 0n
  let crossNotional = 0n
  let notional = 0n
  let crossMarginUsed = 0n
  let marginUsed = 0n
  let crossMaintenance = 0n
  for (const [coin, position] of clearing.positions) {
    const asset = perpetualByCoin(venue, coin)
    if (asset === undefined) continue
    const px = mark(asset)
    const value = signedValue(position, px)
    const used = marginUsedBy(position, px)
    notional += Assets.abs(value)
    marginUsed += used
    if (position.isCross) {
      crossValue += value
      crossNotional += Assets.abs(value)
      crossMarginUsed += used
      crossMaintenance += maintenanceMargin(asset, position, px)
    } else {
      isolatedValue += position.raw + value
      isolatedRaw += position.raw
    }
  }
  return {
    /** Value of the cross account: cash and cross positions at their mark prices. */
    crossValue,
    /** Value of the account including isolated positions. */
    value: crossValue + isolatedValue,
    crossNotional,
    notional,
    crossMarginUsed,
    marginUsed,
    crossMaintenance,
    /** Cash minus the cost of all positions, including isolated ones (`totalRawUsd`). */
    raw: clearing.cash + isolatedRaw
  }
}

/** Returns the current value of an account. */
export const accountValue = (venue: Venue, account: TradingAccount): AccountValue => {
  const perps = [...account.clearings.values()].reduce((sum, each) => sum + marginSums(venue, each).value, 0n)
  return {
    time: venue.state.now,
    perps,
    all: perps + (account.spot.get(Assets.usdc)?.total ?? 0n) / Assets.weiPerUsd,
    profit: perps - account.deposited
  }
}

const nothingMore = { bids: 0n, asks: 0n }

/** Returns the maximum size, in lots, that a position would have if all open orders of one side were filled. */
const worstLots = (account: TradingAccount, coin: string, size: bigint, more: typeof nothingMore): bigint => {
  const open = account.exposure.get(coin)
  const long = size + (open?.bids ?? 0n) + more.bids
  const short = (open?.asks ?? 0n) + more.asks - size
  return Assets.max(Assets.max(long, short), Assets.abs(size))
}

/** Returns the margin that the cross account needs for the positions and open orders in a perpetual. */
const neededIn = (
  venue: Venue,
  account: TradingAccount,
  clearing: Clearing,
  asset: Assets.Perpetual,
  more = nothingMore
): bigint => {
  const position = clearing.positions.get(asset.coin)
  const size = position?.size ?? 0n
  const { isCross, value } = position === undefined
    ? leverageSetting(account, asset)
    : { isCross: position.isCross, value: position.leverage }
  const lots = worstLots(account, asset.coin, size, more)
  // an isolated position already has its own margin
  const counted = isCross ? lots : lots - Assets.abs(size)
  return counted === 0n ? 0n : Assets.divideUp(counted * markPrice(venue, asset), BigInt(value))
}

/**
 * Returns the margin that an account needs for all its positions and open orders in a dex. Includes the additional lots
 * `more` on one side of the perpetual `coin`.
 */
export const needed = (
  venue: Venue,
  account: TradingAccount,
  clearing: Clearing,
  dex: string,
  coin?: string,
  more = nothingMore
): bigint => {
  const coins = new Set([...clearing.positions.keys(), ...account.exposure.keys()])
  if (coin !== undefined) coins.add(coin)
  let total = 0n
  for (const each of coins) {
    const asset = perpetualByCoin(venue, each)
    if (asset?.dex === dex) total += neededIn(venue, account, clearing, asset, each === coin ? more : nothingMore)
  }
  return total
}

/**
 * Returns the part of the spot balance that backs an account's perpetuals in a dex, in millionths of the token: zero
 * unless the balance is their collateral.
 */
export const collateral = (venue: Venue, account: TradingAccount, dex: string): bigint => {
  const token = Assets.findCollateral(dex)
  const balance = isUnified(account) ? account.spot.get(token) : undefined
  return (balance === undefined ? 0n : (balance.total - balance.hold) / Assets.weiPerUsd) +
    (token === Assets.usdc ? loanValue(venue, account, loanToValue) : 0n)
}

/** The parts of the value of HYPE that portfolio margin lends, and at which it liquidates: in thousandths. */
const loanToValue = 650n
const liquidationThreshold = 825n

/** The additional maintenance margin of portfolio margin, in millionths of a dollar. */
export const borrowOffset = 20_000_000n

/** Returns a part of the value of an account's HYPE, in millionths of a dollar: zero without portfolio margin. */
const loanValue = (venue: Venue, account: TradingAccount, thousandths: bigint): bigint => {
  if (account.abstraction !== "portfolioMargin") return 0n
  const balance = account.spot.get(venue.listing.hype)
  const pair = Assets.findUsdPair(venue.listing, venue.listing.hype)
  if (balance === undefined || pair === undefined) return 0n
  const value = (balance.total - balance.hold) * markPrice(venue, pair) / pair.weiPerLot / Assets.weiPerUsd
  return value * thousandths / 1_000n
}

/**
 * Returns what an account with portfolio margin has borrowed, its required maintenance margin, and the value at which
 * it is liquidated, in millionths of a dollar; `undefined` for any other account.
 */
export const portfolio = (venue: Venue, account: TradingAccount) => {
  if (account.abstraction !== "portfolioMargin") return undefined
  let balance = (account.spot.get(Assets.usdc)?.total ?? 0n) / Assets.weiPerUsd
  let maintenance = 0n
  for (const [dex, clearing] of account.clearings) {
    if (Assets.findCollateral(dex) !== Assets.usdc) continue
    const { crossMaintenance, crossValue } = marginSums(venue, clearing)
    balance += crossValue
    maintenance += crossMaintenance
  }
  const borrowed = Assets.max(0n, -balance)
  const required = borrowOffset + maintenance + borrowed
  const value = Assets.max(0n, balance) + loanValue(venue, account, liquidationThreshold)
  return {
    borrowed,
    required,
    value,
    isLiquidated: (borrowed > 0n || maintenance > 0n) && required * 100n > value * 95n
  }
}

/** The yearly interest of borrowed dollars, while little of the supply is borrowed: in thousandths. */
const borrowRate = 50n
const hoursPerYear = 8_760n

/** Charges an account with portfolio margin an hour's interest on its loan. */
export const chargeInterest = (venue: Venue, account: TradingAccount): void => {
  const { borrowed = 0n } = portfolio(venue, account) ?? {}
  const interest = borrowed * Assets.weiPerUsd * borrowRate / 1_000n / hoursPerYear
  if (interest === 0n) return
  ensureBalance(account, Assets.usdc).total -= interest
  addTo(venue.state.house.feesSpot, Assets.usdc, interest)
}

/**
 * Returns the value that backs the cross positions of an account in a dex, the margin that they and the open orders
 * need, and the value of the positions. The dexes of an account whose spot balance is the collateral share them.
 * Includes the additional lots `more` on one side of the perpetual `coin`.
 */
export const backing = (
  venue: Venue,
  account: TradingAccount,
  dex: string,
  coin?: string,
  more = nothingMore
): { readonly value: bigint; readonly needed: bigint; readonly notional: bigint } => {
  const token = Assets.findCollateral(dex)
  const dexes = isUnified(account)
    ? [...account.clearings.keys()].filter((each) => Assets.findCollateral(each) === token)
    : [dex]
  let [value, need, notional] = [collateral(venue, account, dex), 0n, 0n]
  for (const each of dexes) {
    const clearing = account.clearings.get(each)
    if (clearing === undefined) continue
    const sums = marginSums(venue, clearing)
    value += sums.crossValue
    notional += sums.crossNotional
    need += needed(venue, account, clearing, each, coin, more)
  }
  return { value, needed: need, notional }
}

/** Returns the margin that an account can use for more orders because neither positions nor open orders need it. */
export const freeMargin = (venue: Venue, account: TradingAccount, dex: string): bigint => {
  const { needed, value } = backing(venue, account, dex)
  return Assets.max(0n, value - needed)
}

/**
 * Returns the amount that an account can withdraw. The rest must cover the margin that positions and open orders need,
 * and a tenth of the value of the cross positions.
 */
export const withdrawable = (venue: Venue, account: TradingAccount, dex: string): bigint => {
  const { needed, notional, value } = backing(venue, account, dex)
  const free = Assets.max(0n, value - Assets.max(needed, notional / 10n))
  // borrowed dollars stay in the account
  const balance = account.abstraction === "portfolioMargin" ? account.spot.get(Assets.findCollateral(dex)) : undefined
  return balance === undefined
    ? free
    : Assets.min(free, Assets.max(0n, (balance.total - balance.hold) / Assets.weiPerUsd))
}

/** Returns whether an account has enough margin for an order. */
export const allows = (
  venue: Venue,
  account: TradingAccount,
  asset: Assets.Perpetual,
  isBuy: boolean,
  lots: bigint
): boolean => {
  const clearing = ensureClearing(account, asset.dex)
  const more = isBuy ? { bids: lots, asks: 0n } : { bids: 0n, asks: lots }
  const size = clearing.positions.get(asset.coin)?.size ?? 0n
  // an order that cannot increase the maximum position is always allowed
  if (worstLots(account, asset.coin, size, more) === worstLots(account, asset.coin, size, nothingMore)) return true
  const backed = backing(venue, account, asset.dex, asset.coin, more)
  return backed.value >= backed.needed
}

/**
 * Returns the mark price, in ticks, at which a position would be liquidated if no other price changed; `undefined` if
 * there is no such price.
 */
export const liquidationPx = (
  venue: Venue,
  account: TradingAccount,
  clearing: Clearing,
  asset: Assets.Perpetual,
  position: Position
): bigint | undefined => {
  const mark = markPrice(venue, asset)
  const { crossMaintenance, crossValue } = marginSums(venue, clearing)
  const own = maintenanceMargin(asset, position, mark)
  const spare = position.isCross
    ? crossValue + collateral(venue, account, asset.dex) - crossMaintenance
    : position.raw + signedValue(position, mark) - own
  const { maxLeverage } = findTier(asset, Assets.abs(position.size * mark)) ?? asset
  const double = BigInt(2 * maxLeverage)
  // for each tick by which the price falls, the value of a long position falls by the position's size in lots, and the
  // position's maintenance margin falls too
  const perTick = position.size > 0n
    ? position.size - position.size / double
    : position.size + position.size / double
  if (perTick === 0n) return undefined
  const px = mark - spare / perTick
  return px > 0n ? px : undefined
}

const rateDecimals = 10
const one = 10n ** BigInt(rateDecimals)

/** The interest of eight hours, and the most by which it can differ from a premium. */
const interest = 0.0001
const clamp = 0.0005

/**
 * Returns the funding rate of the hour of a time, in units of 10^-10: an eighth of the premium and of the interest, which
 * counts as far as it is within a clamp of the premium. With a small premium it is the base rate, 0.0000125.
 */
export const fundingAt = (seed: Random.Seed, market: Assets.CandleMarket, time: number): bigint => {
  const premium = premiumAt(seed, market, time)
  const rate = (premium + Math.min(clamp, Math.max(-clamp, interest - premium))) / 8
  return BigInt(Math.round(rate * Number(one)))
}

/** Formats a funding rate. */
export const printRate = (rate: bigint): string => Assets.printDecimal(rate, rateDecimals)

/** Returns the funding rate that a perpetual pays now. A followed venue's rate replaces the generated one. */
export const currentFunding = (venue: Venue, asset: Assets.Asset): bigint =>
  Assets.parseDecimal(Number(venue.followed.get(asset.coin)?.funding).toFixed(rateDecimals), rateDecimals) ??
    fundingAt(venue.seed, asset.market, venue.state.now)

/** Maximum number of funding payments, and of past account values, that are stored for an account. */
const remembered = 2_000

/**
 * Rounds by at most one unit to the account's disadvantage, so that only the house (the account behind the synthetic
 * orders) gains from rounding.
 */
const roundDown = (amount: bigint): bigint => {
  const quotient = amount / one
  return amount < 0n && quotient * one !== amount ? quotient - 1n : quotient
}

/**
 * Settles the funding of one hour for an account. The counterparty is the house, the account behind the synthetic
 * orders.
 */
export const pay = (venue: Venue, account: TradingAccount): void => {
  for (const [dex, clearing] of account.clearings) {
    for (const [coin, position] of clearing.positions) {
      const asset = venue.listing.byCoin.get(coin)
      if (asset?.kind !== "perpetual") continue
      const rate = currentFunding(venue, asset)
      const amount = roundDown(-position.size * markPrice(venue, asset) * rate)
      if (position.isCross) clearing.cash += amount
      else position.raw += amount
      payHouse(venue.state, dex, -amount)
      position.funding.allTime -= amount
      position.funding.sinceOpen -= amount
      position.funding.sinceChange -= amount
      const funding: FundingEntry = {
        time: venue.state.now,
        coin,
        usdc: Assets.printUsd(amount),
        szi: Assets.printSz(asset satisfies Assets.Perpetual, position.size),
        fundingRate: printRate(rate)
      }
      append(account.fundings, funding, remembered)
      emit(venue, { kind: "funding", user: account.address, funding })
      emit(venue, { kind: "account", user: account.address })
    }
    sweep(venue.state, account, dex)
  }
  append(account.values, accountValue(venue, account), remembered)
}
