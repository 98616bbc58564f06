/**
 * Markets and accounts, as queries and streams list them: books, prices and trades; margin, balances, orders, limits
 * and fees.
 */
import type { Candle, CandleWindowRequest } from "@trigate/domain/candles/Candle"
import { lowerCase, stringify } from "@trigate/domain/encoding/Encoding"
import * as Account from "@trigate/domain/info/Account"
import type { Trade } from "@trigate/domain/info/Market"
import * as DateTime from "effect/DateTime"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Decimals from "./Assets.ts"
import { abs, max, min, printPrice, printPx, printSz, printUsd, spotUsdDecimals, usdDecimals } from "./Assets.ts"
import type { Asset, AssetDecimals, CandleMarket, Perpetual } from "./Assets.ts"
import * as CandleBars from "./CandleBars.ts"
import * as Fees from "./Fees.ts"
import * as Margin from "./Margin.ts"
import * as Matching from "./Matching.ts"
import * as Outcomes from "./Outcomes.ts"
import type { BookSide, Clearing, Position, Quote, TradingAccount, VenueOrder } from "./TradingState.ts"
import { countFills, ensureMarket, fillAt, isUnified } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"

/** The number of book levels in a query's response. */
const depth = 20

interface Level {
  readonly px: bigint
  readonly sz: bigint
  readonly n: number
}

/** Adds a size to the level of a price. */
const join = (levels: Map<bigint, Level>, px: bigint, sz: bigint, n: number): void => {
  const known = levels.get(px)
  levels.set(px, { px, sz: (known?.sz ?? 0n) + sz, n: (known?.n ?? 0) + n })
}

/** Returns the levels of a book side. `dual` has the orders for an outcome's other side, which are opposite offers. */
const bookLevels = (
  side: BookSide<VenueOrder>,
  quotes: ReadonlyArray<Quote>,
  dual: BookSide<VenueOrder> | undefined
): ReadonlyArray<Level> => {
  const levels = new Map<bigint, Level>()
  for (const { n, px, sz } of quotes) if (sz > 0n) join(levels, px, sz, n)
  for (const each of dual === undefined ? [side] : [side, dual]) {
    let found = 0
    for (let index = each.prices.length - 1; index >= 0 && found < depth; index--, found++) {
      for (const { px, sz } of each.levels.get(each.prices[index] ?? 0n)?.values() ?? []) {
        join(levels, each === dual ? Outcomes.one - px : px, sz, 1)
      }
    }
  }
  return [...levels.values()].toSorted((a, b) => a.px === b.px ? 0 : (a.px > b.px) === side.isBid ? -1 : 1)
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
  const all = new Map<bigint, Level>()
  for (const { n, px, sz } of levels) {
    const step = aggregationStep(px, by)
    join(all, isBid ? px / step * step : (px + step - 1n) / step * step, sz, n)
  }
  return [...all.values()]
}

/** Returns the response to the query `l2Book`: the orders of accounts and the synthetic orders, aggregated by price. */
export const book = (venue: Venue, asset: Asset, by?: Aggregation): Margin.BookSides => {
  const { asks, bids, quotes } = Margin.refreshed(venue, asset)
  const print = (levels: ReadonlyArray<Level>, isBid: boolean) =>
    (by === undefined ? levels : joined(levels, isBid, by)).slice(0, depth).map(({ n, px, sz }) => ({
      px: printPx(asset, px),
      sz: printSz(asset, sz),
      n
    }))
  const other = Outcomes.dualSide(asset)
  const dual = other === undefined ? undefined : Margin.refreshed(venue, other)
  return [
    print(bookLevels(bids, quotes.bids, dual?.asks), true),
    print(bookLevels(asks, quotes.asks, dual?.bids), false)
  ]
}

/**
 * Returns the mean of the best bid and the best ask; the mark price if a side of the book is empty. The best prices are
 * taken from the synthetic orders and the orders of accounts.
 */
export const mid = (venue: Venue, asset: Asset): string => {
  const market = ensureMarket(venue.state, asset.coin)
  const isSide = Outcomes.dualSide(asset) !== undefined
  if (!isSide && Margin.isRenewed(market) && market.bids.prices.length === 0 && market.asks.prices.length === 0) {
    return venue.followed.get(asset.coin)?.midPx ?? printPx(asset, Margin.markPrice(venue, asset))
  }
  const { ask, bid } = Matching.bestPrices(venue, asset)
  return bid === undefined || ask === undefined
    ? printPx(asset, Margin.markPrice(venue, asset))
    : Decimals.printDecimal((bid + ask) * 5n, asset.pxDecimals + 1)
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
    totalInterest(venue, asset) * Margin.markPrice(venue, asset) >= BigInt(openInterestCap) * 10n ** BigInt(usdDecimals)
}

/** Returns the open interest of a perpetual, in lots: of accounts, and of the generated participants. */
export const totalInterest = (venue: Venue, asset: Asset): bigint =>
  openInterest(venue, asset) + BigInt(CandleBars.generatedInterest(venue.seed, asset.market, venue.state.now))

const minute = 60_000

/** Returns the lots that accounts traded in a coin in the last 24 hours. */
export const tradedLots = ({ state }: Venue, coin: string, now: number): number => {
  const last = Math.floor(now / minute)
  let total = 0n
  for (const [at, { lots }] of state.markets.get(coin)?.minutes ?? []) {
    if (at > last - CandleBars.day && at <= last) total += lots
  }
  return Number(total)
}

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
    const from = Math.max(bar.t, since)
    const to = Math.min(bar.T, now)
    if (to < from) return bar
    const prices = Array.from(
      { length: looks + 1 },
      (_, look) => venue.path.priceAt(market, from + (to - from) * look / looks)
    )
    const print = (price: number | undefined) => printPrice(market, price ?? 0)
    const [o, c] = [print(prices[0]), print(prices[looks])]
    return { ...bar, o, c, h: print(Math.max(...prices)), l: print(Math.min(...prices)) }
  })
}

/** Returns the response to the query `candleSnapshot`: the bars of the price path, including the trades of accounts. */
export const bars = (venue: Venue, market: CandleMarket, window: CandleWindowRequest, now: number) => {
  const made = Decimals.isDerived(market)
    ? Outcomes.bars(venue, market, window, now)
    : playedBars(venue, market, CandleBars.bars(venue.seed, market, window, now), now)
  const traded = venue.state.markets.get(market.coin)?.minutes
  const asset = venue.listing.byCoin.get(market.coin)
  if (traded === undefined || traded.size === 0 || asset === undefined || made.length === 0) return made
  const parse = (text: string, decimals: number) => Decimals.parseDecimal(text, decimals) ?? 0n
  const withTrades = (bar: Candle): Candle => {
    const own = [...traded].flatMap(([at, trades]) => at * minute >= bar.t && at * minute <= bar.T ? [trades] : [])
    if (own.length === 0) return bar
    return {
      ...bar,
      h: printPx(asset, own.reduce((high, trades) => max(high, trades.high), parse(bar.h, asset.pxDecimals))),
      l: printPx(asset, own.reduce((low, trades) => min(low, trades.low), parse(bar.l, asset.pxDecimals))),
      v: printSz(asset, own.reduce((lots, trades) => lots + trades.lots, parse(bar.v, asset.szDecimals))),
      n: own.reduce((count, trades) => count + trades.count, bar.n)
    }
  }
  return made.map(withTrades)
}

const orderType = ({ tif, trailing, trigger }: VenueOrder): string => {
  if (trailing !== undefined) return "Trailing Stop Market"
  if (trigger === undefined) return tif === "FrontendMarket" ? "Market" : "Limit"
  return `${trigger.tpsl === "tp" ? "Take Profit" : "Stop"} ${trigger.isMarket ? "Market" : "Limit"}`
}

const triggerCondition = (asset: AssetDecimals, { isBuy, trigger }: VenueOrder): string =>
  trigger === undefined
    ? "N/A"
    : `Price ${isBuy === (trigger.tpsl === "sl") ? "above" : "below"} ${
      printPx(asset, trigger.px).replace(/\.0$/u, "")
    }`

const printTerms = (asset: AssetDecimals, order: Readonly<VenueOrder>) => ({
  coin: order.coin,
  side: order.isBuy ? "B" as const : "A" as const,
  limitPx: printPx(asset, order.px),
  sz: printSz(asset, order.sz),
  oid: order.oid,
  timestamp: order.timestamp
})

/** Encodes an order as in `orderUpdates` and `openOrders`. */
export const printOpen = (asset: AssetDecimals, order: Readonly<VenueOrder>): Account.OrderUpdate["order"] => ({
  ...printTerms(asset, order),
  origSz: printSz(asset, order.origSz),
  ...(order.reduceOnly ? { reduceOnly: true } : {}),
  ...(order.cloid === null ? {} : { cloid: order.cloid })
})

/** Encodes an order with all members, as in `frontendOpenOrders`. */
export const printOrder = (asset: AssetDecimals, order: VenueOrder): Account.Order => ({
  ...printTerms(asset, order),
  triggerCondition: triggerCondition(asset, order),
  isTrigger: order.trigger !== undefined,
  triggerPx: order.trigger === undefined ? "0.0" : printPx(asset, order.trigger.px),
  children: order.children.map((child) => printOrder(asset, child)),
  isPositionTpsl: order.isPositionTpsl,
  reduceOnly: order.reduceOnly,
  orderType: orderType(order),
  origSz: printSz(asset, order.origSz),
  tif: order.tif,
  cloid: order.cloid
})

/** Encodes an order with its status. */
export const printRecord = (asset: AssetDecimals, order: VenueOrder): Account.OrderRecord => ({
  order: printOrder(asset, order),
  status: order.status,
  statusTimestamp: order.statusTimestamp
})

const inDex = (asset: Asset, dex: string): boolean => asset.kind === "spot" ? dex === "" : asset.dex === dex

/** Returns the open orders of an account in a dex, newest first. Spot pairs belong to the venue's own dex. */
export const openIn = (
  { listing }: Venue,
  account: TradingAccount,
  dex: string
): ReadonlyArray<readonly [Asset, VenueOrder]> =>
  [...account.open.values()].toReversed().flatMap((order): ReadonlyArray<readonly [Asset, VenueOrder]> => {
    const asset = listing.byCoin.get(order.coin)
    return asset === undefined || !inDex(asset, dex) ? [] : [[asset, order]]
  })

/** Encodes an order with each status that it has had, such as `open` and `canceled`, oldest first. */
const printHistory = ({ listing }: Venue, order: VenueOrder): ReadonlyArray<Account.OrderRecord> => {
  const asset = Decimals.findDecimals(listing, order.coin)
  if (asset === undefined || order.place === "parent") return []
  const { log, status, sz, statusTimestamp } = order
  const earlier = log.at(-1)?.status === status ? log.slice(0, -1) : log
  return [...earlier, { sz, status, statusTimestamp }].map((logged) => printRecord(asset, { ...order, ...logged }))
}

const decodeHistory = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Account.OrderRecord)))

/** Maximum number of ended orders that an account stores. The last `recentOrders` of them are values, not text. */
const endedOrders = 2_000
const recentOrders = 100

/**
 * Stores an order. If the account has many ended orders, stores the oldest one as text, and drops the oldest one that is
 * already stored as text.
 */
export const remember = (venue: Venue, account: TradingAccount, order: VenueOrder): void => {
  const { byCloid, ended, open, orders } = account
  orders.set(order.oid, order)
  if (order.cloid !== null) byCloid.set(order.cloid, order.oid)
  if (orders.size <= recentOrders + open.size) return
  for (const [oid, oldest] of orders) {
    if (Matching.isActive(oldest.status)) continue
    orders.delete(oid)
    ended.set(oid, { cloid: oldest.cloid, rows: stringify(printHistory(venue, oldest)) })
    break
  }
  if (ended.size <= endedOrders - recentOrders) return
  for (const [oid, { cloid }] of ended) {
    ended.delete(oid)
    if (cloid !== null && byCloid.get(cloid) === oid) byCloid.delete(cloid)
    return
  }
}

const findOid = ({ byCloid }: TradingAccount, name: number | bigint | string): number | undefined =>
  typeof name === "string" ? byCloid.get(lowerCase(name)) : Number(name)

/**
 * Returns an account's order by its order ID or client order ID; `undefined` if it is not among the open orders and the
 * newest ended ones.
 */
export const findOrder = (account: TradingAccount, name: number | bigint | string): VenueOrder | undefined =>
  account.orders.get(findOid(account, name) ?? -1)

/** Returns an account's order, by its order ID or client order ID, with its status. */
export const findRecord = (
  { listing }: Venue,
  account: TradingAccount,
  name: number | bigint | string
): Account.OrderRecord | undefined => {
  const oid = findOid(account, name) ?? -1
  const order = account.orders.get(oid)
  if (order === undefined) return decodeHistory(account.ended.get(oid)?.rows ?? "[]").at(-1)
  const asset = Decimals.findDecimals(listing, order.coin)
  return asset === undefined ? undefined : printRecord(asset, order)
}

/** Returns the latest statuses of an account's orders, newest first. */
export const history = (venue: Venue, account: TradingAccount, most: number): ReadonlyArray<Account.OrderRecord> =>
  [
    ...[...account.ended.values()].flatMap(({ rows }) => decodeHistory(rows)),
    ...[...account.orders.values()].flatMap((order) => printHistory(venue, order))
  ].toSorted((one, other) => one.statusTimestamp - other.statusTimestamp).slice(-most).toReversed()

/** Decimals with which the prices and sizes of fills are added up. */
const fillDecimals = 8

const parseAmount = (text: string): bigint => Decimals.parseDecimal(text, fillDecimals) ?? 0n

const addAmounts = (one: string, other: string): string =>
  Decimals.printDecimal(parseAmount(one) + parseAmount(other), fillDecimals)

/** Combines two fills of an order: the sum of their amounts, at their average price. */
const joinFills = (first: Account.Fill, next: Account.Fill): Account.Fill => {
  const [sz, nextSz] = [parseAmount(first.sz), parseAmount(next.sz)]
  const { builderFee } = next
  const firstFee = first["builderFee"]
  return {
    ...first,
    px: Decimals.printDecimal(
      (parseAmount(first.px) * sz + parseAmount(next.px) * nextSz) / (sz + nextSz),
      fillDecimals
    ),
    sz: addAmounts(first.sz, next.sz),
    closedPnl: addAmounts(first.closedPnl, next.closedPnl),
    fee: addAmounts(first.fee, next.fee),
    ...(Predicate.isString(builderFee)
      ? { builderFee: addAmounts(Predicate.isString(firstFee) ? firstFee : "0", builderFee) }
      : {})
  }
}

/** Returns whether two successive fills are one row of an aggregated list. */
const isOneRow = (one: Account.Fill, other: Account.Fill): boolean =>
  one.oid === other.oid && one.time === other.time && one.crossed && other.crossed

/**
 * Combines the fills that an order took from several resting orders at one time (`aggregateByTime`). The fills are in
 * the order of occurrence.
 */
export const aggregateFills = (fills: ReadonlyArray<Account.Fill>): ReadonlyArray<Account.Fill> => {
  const combined: Array<Account.Fill> = []
  for (const fill of fills) {
    const last = combined.at(-1)
    if (last !== undefined && isOneRow(last, fill)) {
      combined[combined.length - 1] = joinFills(last, fill)
    } else combined.push(fill)
  }
  return combined
}

/** The period of the fills that {@link listFills} returns, in milliseconds, and their order. Default: all fills. */
interface FillSelection {
  readonly startTime?: number
  readonly endTime?: number
  readonly isAggregated: boolean
  readonly isReversed: boolean
}

/** Returns the index of the first fill that is not before a time. */
const fillIndex = (account: TradingAccount, time: number): number => {
  let low = 0
  let high = countFills(account)
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((fillAt(account, middle)?.time ?? 0) < time) low = middle + 1
    else high = middle
  }
  return low
}

/** Returns at most `most` fills of an account: the first ones, or, if the order is reversed, the last ones. */
export const listFills = (
  account: TradingAccount,
  { endTime = Infinity, isAggregated, isReversed, startTime = 0 }: FillSelection,
  most: number
): ReadonlyArray<Account.Fill> => {
  const from = fillIndex(account, startTime)
  const end = fillIndex(account, endTime + 1)
  const found: Array<Account.Fill> = []
  // a row is complete when a fill of the next row follows
  for (let rows = 0, index = isReversed ? end - 1 : from; index >= from && index < end; index += isReversed ? -1 : 1) {
    const fill = fillAt(account, index)
    if (fill === undefined) break
    const last = found.at(-1)
    if (!isAggregated || last === undefined || !isOneRow(last, fill)) rows += 1
    if (rows > most) break
    found.push(fill)
  }
  const inOrder = isReversed ? found.toReversed() : found
  const listed = isAggregated ? aggregateFills(inOrder) : inOrder
  return isReversed ? listed.toReversed() : listed
}

const day = 86_400_000
const noMoney: Clearing = { cash: 0n, positions: new Map() }

/** Number of decimals in a formatted ratio. */
const ratioDecimals = 10

const printPosition = (
  venue: Venue,
  account: TradingAccount,
  clearing: Clearing,
  asset: Perpetual,
  position: Position
): Account.Position => {
  const mark = Margin.markPrice(venue, asset)
  const pnl = Margin.unrealizedPnl(position, mark)
  const liquidation = Margin.liquidationPx(venue, account, clearing, asset, position)
  const { allTime, sinceChange, sinceOpen } = position.funding
  return {
    coin: asset.coin,
    szi: printSz(asset, position.size),
    leverage: {
      type: position.isCross ? "cross" : "isolated",
      value: position.leverage,
      ...(position.isCross ? {} : { rawUsd: printUsd(position.raw) })
    },
    entryPx: printPx(asset, position.entry / abs(position.size)),
    positionValue: printUsd(abs(Margin.signedValue(position, mark))),
    unrealizedPnl: printUsd(pnl),
    returnOnEquity: Decimals.printDecimal(
      position.entry === 0n ? 0n : pnl * BigInt(position.leverage) * 10n ** BigInt(ratioDecimals) / position.entry,
      ratioDecimals
    ),
    liquidationPx: liquidation === undefined ? null : printPx(asset, liquidation),
    marginUsed: printUsd(Margin.marginUsedBy(position, mark)),
    maxLeverage: asset.maxLeverage,
    cumFunding: { allTime: printUsd(allTime), sinceOpen: printUsd(sinceOpen), sinceChange: printUsd(sinceChange) }
  }
}

/** Returns the response to the query `clearinghouseState`. */
export const clearinghouseState = (venue: Venue, account: TradingAccount, dex: string): Account.ClearinghouseState => {
  const clearing = account.clearings.get(dex) ?? noMoney
  const sums = Margin.marginSums(venue, clearing)
  return {
    marginSummary: {
      accountValue: printUsd(sums.value),
      totalNtlPos: printUsd(sums.notional),
      totalRawUsd: printUsd(sums.raw),
      totalMarginUsed: printUsd(sums.marginUsed)
    },
    crossMarginSummary: {
      accountValue: printUsd(sums.crossValue),
      totalNtlPos: printUsd(sums.crossNotional),
      totalRawUsd: printUsd(clearing.cash),
      totalMarginUsed: printUsd(sums.crossMarginUsed)
    },
    crossMaintenanceMarginUsed: printUsd(sums.crossMaintenance),
    // the spot balance is withdrawn, if it is the collateral
    withdrawable: isUnified(account) ? "0.0" : printUsd(Margin.withdrawable(venue, account, dex)),
    assetPositions: [...clearing.positions].flatMap(([coin, position]) => {
      const asset = Margin.perpetualByCoin(venue, coin)
      return asset === undefined
        ? []
        : [{ type: "oneWay", position: printPosition(venue, account, clearing, asset, position) }]
    }),
    time: venue.state.now
  }
}

/** Returns the members of `spotClearinghouseState` that only accounts with portfolio margin have. */
const printPortfolio = (venue: Venue, account: TradingAccount) => {
  const portfolio = Margin.portfolio(venue, account)
  return portfolio === undefined ? {} : {
    portfolioMarginEnabled: true,
    portfolioMarginRatio: Decimals.printDecimal(
      portfolio.value === 0n ? 0n : portfolio.required * 10n ** BigInt(ratioDecimals) / portfolio.value,
      ratioDecimals
    )
  }
}

/** Returns the response to the query `spotClearinghouseState`. */
export const spotState = (venue: Venue, account: TradingAccount): Account.SpotClearinghouseState => ({
  ...printPortfolio(venue, account),
  balances: [...account.spot].toSorted(([a], [b]) => a - b).flatMap(([index, { entry, hold: reserved, total }]) => {
    const token = venue.listing.tokens.get(index)
    // the margin of perpetuals is reserved too, if the balance is their collateral
    const dex = isUnified(account) ? Decimals.findCollateralDex(index) : undefined
    const hold = dex !== undefined
      ? min(total, reserved + Margin.backing(venue, account, dex).needed * Decimals.weiPerUsd)
      : reserved
    return token === undefined || total === 0n ? [] : [{
      coin: token.name,
      // the token of an outcome's side has no index
      ...(index < Outcomes.firstSide ? { token: index } : {}),
      total: Decimals.printDecimal(total, token.weiDecimals),
      hold: Decimals.printDecimal(hold, token.weiDecimals),
      entryNtl: Decimals.printDecimal(entry, spotUsdDecimals)
    }]
  }).concat(
    account.settledOutcomes.map((outcome) => ({ coin: `o${outcome}`, total: "0.0", hold: "0.0", entryNtl: "0.0" }))
  )
})

/**
 * Returns the response to the query `activeAssetData`: how much of an asset an account can trade. Returns `undefined`
 * for an unknown asset.
 */
export const activeAssetData = (venue: Venue, account: TradingAccount, coin: string) => {
  const asset = venue.listing.byCoin.get(coin)
  if (asset === undefined) return undefined
  const mark = Margin.markPrice(venue, asset)
  const common = { user: account.address, coin }
  if (asset.kind === "spot") {
    const quote = Matching.available(venue, account, asset.quote.index)
    const base = Matching.available(venue, account, asset.base.index)
    return {
      ...common,
      leverage: { type: "cross", value: 1 },
      maxTradeSzs: [printSz(asset, quote / max(1n, mark)), printSz(asset, base / asset.weiPerLot)],
      availableToTrade: [
        Decimals.printDecimal(quote, asset.quote.weiDecimals),
        Decimals.printDecimal(base, asset.base.weiDecimals)
      ],
      markPx: printPx(asset, mark)
    }
  }
  const { isCross, value } = Margin.leverageSetting(account, asset)
  const free = Margin.freeMargin(venue, account, asset.dex)
  const position = account.clearings.get(asset.dex)?.positions.get(coin)
  const size = position?.size ?? 0n
  const lots = mark === 0n ? 0n : free * BigInt(value) / mark
  // an order that closes the position needs no margin, and releases the position's margin. Orders on that side can
  // therefore have an additional size of twice the position
  const extra = [max(0n, -2n * size), max(0n, 2n * size)]
  return {
    ...common,
    leverage: isCross ? { type: "cross", value } : { type: "isolated", value, rawUsd: printUsd(position?.raw ?? 0n) },
    maxTradeSzs: extra.map((closing) => printSz(asset, lots + closing)),
    availableToTrade: extra.map((closing) => printUsd(free + closing * mark / BigInt(value))),
    markPx: printPx(asset, mark)
  }
}

/** Formats dollars with two decimals, without a trailing zero. */
const printVolume = (usd: bigint): string => Decimals.printDecimal(usd / 10_000n, 2)

/** Returns the response to the query `userFees`. */
export const userFees = (account: TradingAccount, now: number) => {
  const tier = Fees.feeTier(account, now)
  const today = Fees.startOfDay(now)
  const days = Array.from({ length: 15 }, (_, index) => today - index * day)
  return {
    dailyUserVlm: days.flatMap((start) => {
      const volume = account.volumes.get(start)
      return volume === undefined ? [] : [{
        date: DateTime.formatIsoDateUtc(DateTime.makeUnsafe(start)),
        userCross: printVolume(volume.cross),
        userAdd: printVolume(volume.add),
        exchange: printVolume(volume.cross + volume.add)
      }]
    }),
    feeSchedule: Fees.schedule,
    userCrossRate: tier.cross,
    userAddRate: tier.add,
    userSpotCrossRate: tier.spotCross,
    userSpotAddRate: tier.spotAdd,
    activeReferralDiscount: Fees.hasReferralDiscount(account) ? "0.04" : "0.0",
    trial: null,
    feeTrialEscrow: "0.0",
    nextTrialAvailableTimestamp: null,
    stakingLink: account.stakingLink === undefined
      ? null
      : {
        type: account.stakingLink.isFinal ? "tradingUser" : "requested",
        stakingUser: account.stakingLink.user
      },
    activeStakingDiscount: { bpsOfMaxSupply: "0.0", discount: "0.0" }
  }
}

/** Formats an account's volume in dollars, as queries do. */
export const formatVolume = ({ volume }: TradingAccount): string => printVolume(volume)

const periods = [["day", 1], ["week", 7], ["month", 30], ["allTime", undefined]] as const

/** Formats the volume of the last days, the current UTC day included. */
const formatRecentVolume = ({ volumes }: TradingAccount, now: number, days: number): string => {
  const since = Fees.startOfDay(now) - (days - 1) * day
  return printVolume([...volumes].reduce((sum, [start, { add, cross }]) => start < since ? sum : sum + add + cross, 0n))
}

/**
 * Returns the response to the query `portfolio`: the account's value at each full hour, and its current value. The
 * profit is the profit from trading perpetuals: deposits, withdrawals and transfers do not change it.
 */
export const portfolio = (venue: Venue, account: TradingAccount) => {
  const { now } = venue.state
  const current = Margin.accountValue(venue, account)
  const list = (name: string, days: number | undefined, member: "perps" | "all") => {
    const values = account.values.filter(({ time }) => days === undefined || time >= now - days * day)
    const history = current.all === 0n && values.length === 0 ? [] : [...values, current]
    const first = history[0]?.profit ?? 0n
    return [name, {
      accountValueHistory: history.map((value) => [value.time, printUsd(value[member])]),
      pnlHistory: history.map(({ profit, time }) => [time, printUsd(profit - first)]),
      vlm: days === undefined ? formatVolume(account) : formatRecentVolume(account, now, days)
    }]
  }
  return [
    ...periods.map(([name, days]) => list(name, days, "all")),
    ...periods.map(([name, days]) => list(`perp${name.charAt(0).toUpperCase()}${name.slice(1)}`, days, "perps"))
  ]
}

/** Returns the response to the query `referral`. */
export const referral = (venue: Venue, account: TradingAccount) => {
  const referred = [...venue.state.accounts.values()].filter(({ referrer }) => referrer?.address === account.address)
  return {
    referredBy: account.referrer === undefined
      ? null
      : { referrer: account.referrer.address, code: account.referrer.code },
    cumVlm: formatVolume(account),
    unclaimedRewards: printUsd(account.rewards),
    claimedRewards: printUsd(account.claimed),
    builderRewards: printUsd(account.builderRewards),
    referrerState: account.code === undefined
      ? { stage: "needToCreateCode" }
      : {
        stage: "ready",
        data: {
          code: account.code,
          nReferrals: referred.length,
          referralStates: referred.map((each) => ({
            cumVlm: formatVolume(each),
            cumRewardedFeesSinceReferred: "0.0",
            cumFeesRewardedToReferrer: "0.0",
            timeJoined: venue.state.now,
            user: each.address
          }))
        }
      },
    rewardHistory: [],
    tokenToState: []
  }
}

/** Returns an account's traded volume in whole dollars, for the query `userRateLimit`. */
export const wholeDollars = (account: TradingAccount): number => Number(account.volume / 10n ** BigInt(usdDecimals))
