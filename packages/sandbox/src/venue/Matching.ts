/**
 * Matching by price-time priority: the life cycle of an order, its trades, their fees, and their settlement.
 *
 * For every amount that one party pays, there is a recipient: an account, the house (the counterparty of synthetic
 * orders), or the venue's fee income.
 *
 * At a price, orders of accounts have priority over synthetic orders, which are renewed each second and are therefore
 * newer. Two orders of one account are never matched: instead, the resting order is canceled.
 */
import type { Address } from "@trigate/domain/encoding/Encoding"
import type { Fill } from "@trigate/domain/info/Account"
import type { SpotToken, Trade } from "@trigate/domain/info/Market"
import * as Assets from "./Assets.ts"
import {
  builderFeeAmount,
  chargeOutcomeFee,
  collectTokenFee,
  computeFee,
  countVolume,
  hyperliquidity,
  payDeployer,
  referralReward,
  spotKind
} from "./Fees.ts"
import * as Margin from "./Margin.ts"
import { dualSide, one as wholeToken } from "./Outcomes.ts"
import * as PriceTimeBook from "./TradingState.ts"
import { addTo, ensureAccount, ensureBalance, ensureClearing, ensureMarket, moveCash, none } from "./TradingState.ts"
import type { MarketState, Position, Quote, TradingAccount, VenueOrder } from "./TradingState.ts"
import { emit, nextTid, type Venue, zeroHash } from "./Venue.ts"
import * as Words from "./VenueRefusal.ts"

/** Returns whether an order does not rest: the part that is not filled at once is canceled. */
export const isImmediate = (tif: VenueOrder["tif"]): boolean => tif === "Ioc" || tif === "FrontendMarket"

/** Returns whether an order with this status has not ended. */
export const isActive = (status: string): boolean => status === "open" || status === "triggered"

/** Sets the status of an order, and emits an event with a copy of the order. */
export const report = (venue: Venue, order: VenueOrder, status: string): void => {
  const statusTimestamp = venue.state.now
  const isLogged = order.log.at(-1)?.status !== status &&
    (status !== "open" || order.trigger !== undefined || !isImmediate(order.tif))
  order.status = status
  order.statusTimestamp = statusTimestamp
  // no other status follows one that ends the order
  if (isLogged && isActive(status)) order.log = order.log.concat({ status, statusTimestamp, sz: order.sz })
  if (venue.events !== undefined) emit(venue, { kind: "order", user: order.user, order: { ...order }, isLogged })
}

const bookSide = (market: MarketState, { isBuy }: VenueOrder) => isBuy ? market.bids : market.asks

/** Returns the token that an open spot order reserves, and the reserved amount for a number of lots. */
const reserved = (asset: Assets.Asset, order: VenueOrder, lots: bigint) =>
  asset.kind !== "spot"
    ? undefined
    : order.isBuy
    ? { token: asset.quote.index, wei: order.px * lots }
    : { token: asset.base.index, wei: lots * asset.weiPerLot }

const expose = (account: TradingAccount, order: VenueOrder, lots: bigint): void => {
  if (order.reduceOnly) return
  const of = PriceTimeBook.ensure(account.exposure, order.coin, () => ({ bids: 0n, asks: 0n }))
  if (order.isBuy) of.bids += lots
  else of.asks += lots
  if (of.bids === 0n && of.asks === 0n) account.exposure.delete(order.coin)
}

/** Reserves the funds for a number of lots of an order in the book. A negative number releases funds. */
const reserve = (account: TradingAccount, asset: Assets.Asset, order: VenueOrder, lots: bigint): void => {
  if (asset.kind === "perpetual") return expose(account, order, lots)
  const of = reserved(asset, order, lots)
  if (of !== undefined) ensureBalance(account, of.token).hold += of.wei
}

/** Puts an order into the book. */
export const rest = (venue: Venue, asset: Assets.Asset, order: VenueOrder): void => {
  const account = ensureAccount(venue.state, order.user)
  order.place = "book"
  account.open.set(order.oid, order)
  reserve(account, asset, order, order.sz)
  PriceTimeBook.add(bookSide(ensureMarket(venue.state, order.coin), order), order)
  emit(venue, { kind: "book", coin: order.coin })
}

/** Queues an order until the mark price reaches its trigger. */
export const awaitTrigger = (venue: Venue, order: VenueOrder): void => {
  const account = ensureAccount(venue.state, order.user)
  order.place = "trigger"
  account.open.set(order.oid, order)
  ensureMarket(venue.state, order.coin).triggers.set(order.oid, order)
}

/** Removes an order from the book or from the triggers, and releases its reserved funds. */
export const withdraw = (venue: Venue, asset: Assets.Asset | undefined, order: VenueOrder): void => {
  const account = ensureAccount(venue.state, order.user)
  const market = ensureMarket(venue.state, order.coin)
  if (order.place === "book") {
    if (asset !== undefined) reserve(account, asset, order, -order.sz)
    PriceTimeBook.remove(bookSide(market, order), order)
    emit(venue, { kind: "book", coin: order.coin })
  }
  if (order.place === "trigger") market.triggers.delete(order.oid)
  account.open.delete(order.oid)
  order.place = "gone"
}

/** Reduces the size of an order in the book after a fill. */
export const reduce = (venue: Venue, asset: Assets.Asset, order: VenueOrder, lots: bigint): void => {
  if (order.place === "book") reserve(ensureAccount(venue.state, order.user), asset, order, -lots)
  order.sz -= lots
  if (order.sz > 0n) return
  if (order.place === "book") PriceTimeBook.remove(bookSide(ensureMarket(venue.state, order.coin), order), order)
  if (order.place === "trigger") ensureMarket(venue.state, order.coin).triggers.delete(order.oid)
  ensureAccount(venue.state, order.user).open.delete(order.oid)
  order.place = "gone"
}

/** Adds a child order, which waits until its parent order is filled. */
export const adopt = (parent: VenueOrder, child: VenueOrder): void => {
  child.place = "parent"
  child.parent = parent.oid
  parent.children = [...parent.children, child]
}

/** Returns the order whose fill a child order waits for; `undefined` for an order that waits for no fill. */
export const findParent = (account: TradingAccount, { parent, place }: VenueOrder): VenueOrder | undefined =>
  place === "parent" && parent !== undefined ? account.orders.get(parent) : undefined

/** Ends the child orders of an order. */
export const endChildren = (venue: Venue, order: VenueOrder, status: string): void => {
  const { children } = order
  order.children = none
  for (const child of children) end(venue, child, status)
}

/** Ends an order and its child orders. If the order is a child order, removes it from its parent order. */
export const end = (venue: Venue, order: VenueOrder, status: string): void => {
  if (order.place === "gone") return
  if (order.place === "parent") {
    const parent = findParent(ensureAccount(venue.state, order.user), order)
    if (parent !== undefined) parent.children = parent.children.filter((each) => each !== order)
  }
  withdraw(venue, venue.listing.byCoin.get(order.coin), order)
  report(venue, order, status)
  endChildren(venue, order, status)
}

/** Ends an order that a new order replaces, and gives its child orders and siblings to the new order. */
export const replace = (venue: Venue, account: TradingAccount, replaced: VenueOrder, order: VenueOrder): void => {
  order.children = replaced.children
  for (const child of order.children) child.parent = order.oid
  replaced.children = none
  order.siblings = replaced.siblings
  for (const oid of order.siblings) {
    const sibling = account.orders.get(oid)
    if (sibling !== undefined) {
      sibling.siblings = sibling.siblings.map((each) => each === replaced.oid ? order.oid : each)
    }
  }
  end(venue, replaced, "canceled")
}

/** Ends an order that its user did not cancel, and emits a `nonUserCancel` event. */
export const endByVenue = (venue: Venue, order: VenueOrder, status: string): void => {
  end(venue, order, status)
  emit(venue, { kind: "nonUserCancel", user: order.user, coin: order.coin, oid: order.oid })
}

/**
 * Returns the available balance of an account in a spot token, in the token's wei. The margin of perpetuals is not
 * available, if the balance is their collateral.
 */
export const available = (venue: Venue, account: TradingAccount, token: number): bigint => {
  const balance = account.spot.get(token)
  if (balance === undefined) return 0n
  const free = balance.total - balance.hold
  // HYPE backs portfolio margin, as long as that needs it
  const backs = token === venue.listing.hype && (Margin.portfolio(venue, account)?.required ?? 0n) > Margin.borrowOffset
  if (backs) return 0n
  const dex = PriceTimeBook.isUnified(account) ? Assets.findCollateralDex(token) : undefined
  return dex === undefined ? free : Assets.min(free, Margin.withdrawable(venue, account, dex) * Assets.weiPerUsd)
}

/** Returns the maximum number of lots by which an order can reduce a position. */
export const reducible = (account: TradingAccount, asset: Assets.Asset, order: VenueOrder): bigint => {
  if (asset.kind === "spot") return order.sz
  const size = account.clearings.get(asset.dex)?.positions.get(asset.coin)?.size ?? 0n
  const against = order.isBuy ? -size : size
  return against <= 0n ? 0n : order.isPositionTpsl ? against : Assets.min(order.sz, against)
}

/**
 * Returns the amount of a spot token that the orders of an account can use, in the token's wei. With portfolio margin,
 * orders borrow dollars, and the sale of HYPE frees margin.
 */
const spendable = (venue: Venue, account: TradingAccount, token: number): bigint => {
  if (account.abstraction !== "portfolioMargin") return available(venue, account, token)
  if (token === Assets.usdc) return Margin.freeMargin(venue, account, ownDex) * Assets.weiPerUsd
  const balance = account.spot.get(token)
  return balance === undefined ? 0n : balance.total - balance.hold
}

/** Returns whether the available balance covers a spot order. */
export const isCovered = (venue: Venue, account: TradingAccount, asset: Assets.Asset, order: VenueOrder): boolean => {
  const of = reserved(asset, order, order.sz)
  return of === undefined || spendable(venue, account, of.token) >= of.wei
}

/** The venue's own dex of perpetuals. */
export const ownDex = ""

/** Parses a positive amount. */
export const readAmount = (text: string, decimals: number): bigint | undefined => {
  const amount = Assets.parseDecimal(text, decimals)
  return amount === undefined || amount <= 0n ? undefined : amount
}

/** Returns the token that an action names. The text is `PURR:0x…`, or only the token's name or ID. */
export const parseToken = ({ listing }: Venue, text: string): SpotToken | undefined => {
  const [name, id] = text.split(":")
  return [...listing.tokens.values()].find((token) =>
    id === undefined ? token.name === name || token.tokenId === name : token.tokenId === id
  )
}

/**
 * Moves dollars from the perpetuals of `from` to the perpetuals of `to`. Returns whether the withdrawable amount was
 * sufficient.
 */
export const moveUsd = (
  venue: Venue,
  from: TradingAccount,
  to: TradingAccount,
  usd: bigint,
  dexes: { readonly from: string; readonly to: string } = { from: ownDex, to: ownDex }
): boolean => {
  if (Margin.withdrawable(venue, from, dexes.from) < usd) return false
  moveCash(venue.state, from, dexes.from, -usd)
  moveCash(venue.state, to, dexes.to, usd)
  return true
}

/**
 * Withdraws an amount of a spot token, in wei, from an account. Returns the part of the acquisition cost that belongs
 * to the amount, or `undefined` if the available balance is too low or the account is frozen.
 */
export const takeSpot = (venue: Venue, from: TradingAccount, token: number, wei: bigint): bigint | undefined => {
  if (available(venue, from, token) < wei || PriceTimeBook.isFrozen(venue.state, token, from.address)) return undefined
  const balance = ensureBalance(from, token)
  const entry = balance.total === 0n ? 0n : balance.entry * wei / balance.total
  balance.total -= wei
  balance.entry -= entry
  return entry
}

/**
 * Moves an amount of a spot token, in wei. Returns whether the sender's balance was sufficient, and neither account is
 * frozen.
 */
export const moveSpot = (
  venue: Venue,
  from: TradingAccount,
  to: TradingAccount,
  token: number,
  wei: bigint
): boolean => {
  const entry = PriceTimeBook.isFrozen(venue.state, token, to.address) ? undefined : takeSpot(venue, from, token, wei)
  if (entry === undefined) return false
  const target = ensureBalance(to, token)
  target.total += wei
  target.entry += entry
  return true
}

/** Returns why {@link moveSpot} has not moved a token between accounts. */
export const spotRefusal = ({ state }: Venue, token: number, ...accounts: ReadonlyArray<TradingAccount>): string =>
  accounts.some(({ address }) => PriceTimeBook.isFrozen(state, token, address))
    ? Words.frozen
    : Words.insufficientTransfer

/** A trade: price in ticks, size in lots. */
export interface TradeTerms {
  readonly px: bigint
  readonly sz: bigint
  readonly tid: number
  readonly hash: Fill["hash"]
  readonly liquidation?: { readonly liquidatedUser: Address; readonly markPx: string; readonly method: string }
  /** The value that counts toward both volumes, if it differs from the trade's value. */
  readonly counted?: bigint
}

const tradeDirection = (before: bigint, after: bigint): string => {
  if (before === 0n || (before > 0n) === (after > 0n) && Assets.abs(after) > Assets.abs(before)) {
    return after > 0n ? "Open Long" : "Open Short"
  }
  if (after === 0n || (before > 0n) === (after > 0n)) return before > 0n ? "Close Long" : "Close Short"
  return before > 0n ? "Long > Short" : "Short > Long"
}

const newPosition = (isCross: boolean, leverage: number): Position => ({
  size: 0n,
  entry: 0n,
  isCross,
  leverage,
  raw: 0n,
  funding: { allTime: 0n, sinceOpen: 0n, sinceChange: 0n }
})

/** Applies a trade to a position without charging a fee. Returns the realized profit. */
export const movePosition = (
  venue: Venue,
  account: TradingAccount,
  asset: Assets.Perpetual,
  isBuy: boolean,
  px: bigint,
  sz: bigint
): bigint => {
  const clearing = ensureClearing(account, asset.dex)
  const leverage = Margin.leverageSetting(account, asset)
  const position = clearing.positions.get(asset.coin) ?? newPosition(leverage.isCross, leverage.value)
  const before = position.size
  const closing = before !== 0n && before > 0n !== isBuy ? Assets.min(Assets.abs(before), sz) : 0n
  const opening = sz - closing
  let closedPnl = 0n
  if (closing > 0n) {
    const entry = position.entry * closing / Assets.abs(before)
    const paid = px * closing
    closedPnl = before > 0n ? paid - entry : entry - paid
    position.entry -= entry
    const flow = isBuy ? -paid : paid
    if (position.isCross) clearing.cash += flow
    else {
      const worth = position.raw + before * px
      const released = closing === Assets.abs(before) ? worth : worth * closing / Assets.abs(before)
      position.raw += flow - released
      clearing.cash += released
    }
  }
  if (opening > 0n) {
    const paid = px * opening
    position.entry += paid
    const flow = isBuy ? -paid : paid
    if (position.isCross) clearing.cash += flow
    else {
      const margin = Assets.divideUp(paid, BigInt(position.leverage))
      clearing.cash -= margin
      position.raw += flow + margin
    }
  }
  position.size += isBuy ? sz : -sz
  position.funding.sinceChange = 0n
  const { holders } = PriceTimeBook.ensureMarket(venue.state, asset.coin)
  if (position.size === 0n) {
    clearing.positions.delete(asset.coin)
    holders.delete(account.address)
  } else {
    clearing.positions.set(asset.coin, position)
    holders.add(account.address)
  }
  return closedPnl
}

/**
 * Distributes the fees of a trade: adds `share` (the builder fee) to the builder's rewards, a part of `fee` to the
 * referrer's rewards, and the remainder of `fee` to the venue's income. Amounts are in millionths of a dollar. Fees in
 * another token have no rewards: the builder gets its fee at once.
 */
const collect = (
  venue: Venue,
  account: TradingAccount,
  dex: string,
  fee: bigint,
  builder: VenueOrder["builder"],
  share: bigint
) => {
  const { house } = venue.state
  const token = Assets.findCollateral(dex)
  if (token !== Assets.usdc) {
    addTo(house.feesSpot, token, fee * Assets.weiPerUsd)
    if (builder !== undefined) {
      ensureBalance(ensureAccount(venue.state, builder.address), token).total += share * Assets.weiPerUsd
    }
    return
  }
  if (builder !== undefined) PriceTimeBook.ensureAccount(venue.state, builder.address).builderRewards += share
  const referred = referralReward(account, fee)
  if (account.referrer !== undefined) {
    PriceTimeBook.ensureAccount(venue.state, account.referrer.address).rewards += referred
  }
  house.feesUsd += fee - referred
}

const settlePerpetual = (
  venue: Venue,
  account: TradingAccount,
  asset: Assets.Perpetual,
  { builder, isBuy }: Pick<VenueOrder, "builder" | "isBuy">,
  { px, sz }: TradeTerms,
  crossed: boolean
) => {
  const clearing = ensureClearing(account, asset.dex)
  const before = clearing.positions.get(asset.coin)?.size ?? 0n
  const closedPnl = movePosition(venue, account, asset, isBuy, px, sz)
  const notional = px * sz
  const kind = { isSpot: false, isGrowing: Assets.isGrowing(asset.market, venue.state.now) }
  const base = computeFee(account, venue.state.now, notional, crossed, kind)
  const deployerShare = payDeployer(venue, asset, base)
  // above a scale of 1, the venue's part of the fee grows too
  const fee = Assets.max(base, deployerShare)
  const share = builder === undefined ? 0n : builderFeeAmount(notional, builder.tenthsOfBp)
  clearing.cash -= fee + deployerShare + share
  collect(venue, account, asset.dex, fee, builder, share)
  countVolume(account, venue.state.now, notional, crossed, kind)
  PriceTimeBook.sweep(venue.state, account, asset.dex)
  return {
    startPosition: Assets.printSz(asset, before),
    dir: tradeDirection(before, before + (isBuy ? sz : -sz)),
    closedPnl: Assets.printUsd(closedPnl),
    fee: Assets.printUsd(fee + deployerShare + share),
    feeToken: venue.listing.tokens.get(Assets.findCollateral(asset.dex))?.name ?? "USDC",
    ...(share === 0n ? {} : { builderFee: Assets.printUsd(share) })
  }
}

/**
 * Creates pairs of the tokens of an outcome's sides from quote tokens. A negative number of wei redeems pairs.
 *
 * The quote tokens are no longer counted among the deposits, and the tokens of the sides are, so that each token's
 * deposits equal the balances.
 */
export const mint = ({ state: { deposited } }: Venue, { quote, side }: Assets.SpotPair, wei: bigint): void => {
  addTo(deposited, quote.index, -wei)
  for (const { base } of side?.outcome.sides ?? []) addTo(deposited, base.index, wei)
}

const settleSpot = (
  venue: Venue,
  account: TradingAccount,
  asset: Assets.SpotPair,
  { builder, isBuy }: Pick<VenueOrder, "builder" | "isBuy">,
  { px, sz, counted = px * sz }: TradeTerms,
  crossed: boolean
) => {
  const base = ensureBalance(account, asset.base.index)
  const quote = ensureBalance(account, asset.quote.index)
  const paid = px * sz
  const got = sz * asset.weiPerLot
  const before = base.total
  const { house, now } = venue.state
  const amount = isBuy ? got : paid
  const fee = account.address === hyperliquidity
    ? 0n
    : asset.side === undefined
    ? computeFee(account, now, amount, crossed, spotKind)
    : isBuy
    ? 0n
    : chargeOutcomeFee(venue, account, asset, amount, crossed)
  // the builder of a spot buy receives nothing, because the fee of a buy is paid in the base token
  const share = builder === undefined || isBuy
    ? 0n
    : builderFeeAmount(paid, builder.tenthsOfBp) / Assets.weiPerUsd * Assets.weiPerUsd
  let closedPnl = 0n
  if (isBuy) {
    base.total += got - fee
    base.entry += paid
    quote.total -= paid
    collectTokenFee(venue, asset.base.index, fee)
  } else {
    const entry = before === 0n ? 0n : base.entry * got / before
    closedPnl = paid - entry
    base.entry -= entry
    base.total -= got
    quote.total += paid - fee - share
    if (asset.side === undefined) PriceTimeBook.addTo(house.feesSpot, asset.quote.index, fee)
    if (builder !== undefined) {
      PriceTimeBook.ensureAccount(venue.state, builder.address).builderRewards += share / Assets.weiPerUsd
    }
  }
  if (asset.quote.index === Assets.usdc && counted > 0n) {
    countVolume(account, now, counted / Assets.weiPerUsd, crossed, spotKind)
  }
  const token = isBuy && asset.side === undefined ? asset.base : asset.quote
  return {
    startPosition: Assets.printDecimal(before, asset.base.weiDecimals),
    dir: isBuy ? "Buy" : "Sell",
    closedPnl: Assets.printDecimal(closedPnl, asset.quote.weiDecimals),
    fee: Assets.printDecimal(fee + share, token.weiDecimals),
    feeToken: token.name,
    ...(share === 0n ? {} : { builderFee: Assets.printDecimal(share, asset.quote.weiDecimals) })
  }
}

/** Settles one side of a trade for an account, and adds the fill to the account's list. */
export const settle = (
  venue: Venue,
  asset: Assets.Asset,
  order: VenueOrder,
  terms: TradeTerms,
  crossed: boolean
): Fill => {
  const account = PriceTimeBook.ensureAccount(venue.state, order.user)
  const settled = asset.kind === "perpetual"
    ? settlePerpetual(venue, account, asset, order, terms, crossed)
    : settleSpot(venue, account, asset, order, terms, crossed)
  const { builderFee, ...known } = settled
  const fill: Fill = {
    coin: asset.coin,
    px: Assets.printPx(asset, terms.px),
    sz: Assets.printSz(asset, terms.sz),
    side: order.isBuy ? "B" : "A",
    time: venue.state.now,
    startPosition: known.startPosition,
    dir: known.dir,
    closedPnl: known.closedPnl,
    hash: terms.hash,
    oid: order.oid,
    crossed,
    fee: known.fee,
    ...(builderFee === undefined ? {} : { builderFee }),
    tid: terms.tid,
    ...(order.cloid === null ? {} : { cloid: order.cloid }),
    ...(terms.liquidation === undefined ? {} : { liquidation: terms.liquidation }),
    feeToken: known.feeToken,
    twapId: null
  }
  if (order.twapId === undefined) {
    PriceTimeBook.appendFill(account, fill, venue.limits.fills)
    emit(venue, { kind: "fill", user: order.user, fill })
  } else {
    const twapFill = { fill, twapId: order.twapId }
    PriceTimeBook.append(account.twapFills, twapFill, venue.limits.fills)
    emit(venue, { kind: "twapFill", user: order.user, fill: twapFill })
  }
  emit(venue, { kind: "account", user: order.user })
  return fill
}

/** Settles the side of a trade that belongs to the synthetic orders. This side pays no fees. */
export const settleHouse = (venue: Venue, asset: Assets.Asset, isBuy: boolean, px: bigint, sz: bigint): void => {
  const { house } = venue.state
  const paid = px * sz
  if (asset.kind === "perpetual") {
    PriceTimeBook.payHouse(venue.state, asset.dex, isBuy ? -paid : paid)
    PriceTimeBook.addTo(house.positions, asset.coin, isBuy ? sz : -sz)
    return
  }
  const got = sz * asset.weiPerLot
  PriceTimeBook.addTo(house.spot, asset.base.index, isBuy ? got : -got)
  PriceTimeBook.addTo(house.spot, asset.quote.index, isBuy ? -paid : paid)
}

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
  const known = PriceTimeBook.ensure(
    minutes,
    Math.floor(now / minute),
    () => ({ lots: 0n, count: 0, high: px, low: px })
  )
  known.lots += sz
  known.count += 1
  known.high = Assets.max(known.high, px)
  known.low = Assets.min(known.low, px)
  if (minutes.size <= rememberedMinutes) return
  const [oldest] = minutes.keys()
  if (oldest !== undefined) minutes.delete(oldest)
}

const record = (
  venue: Venue,
  asset: Assets.Asset,
  market: MarketState,
  { hash, px, sz, tid }: TradeTerms,
  takerBuys: boolean,
  taker: Address,
  maker: Address
): void => {
  const trade: Trade = {
    coin: asset.coin,
    side: takerBuys ? "B" : "A",
    px: Assets.printPx(asset, px),
    sz: Assets.printSz(asset, sz),
    time: venue.state.now,
    hash,
    tid,
    users: takerBuys ? [taker, maker] : [maker, taker]
  }
  Margin.markTrade(venue, asset, px)
  PriceTimeBook.append(market.trades, trade, rememberedTrades)
  countMinute(market, venue.state.now, px, sz)
  emit(venue, { kind: "trade", coin: asset.coin, trade })
  emit(venue, { kind: "book", coin: asset.coin })
}

/**
 * Reports the status of a resting order after a fill. If the order is filled completely, activates its child orders
 * (such as a stop-loss) and ends its sibling orders (orders of which only one can be filled).
 */
const settled = (venue: Venue, order: VenueOrder): void => {
  report(venue, order, order.sz === 0n ? "filled" : "open")
  if (order.sz === 0n) release(venue, order)
}

/**
 * Queues the child orders of a filled order until their triggers are reached; from then on they are siblings. Ends the
 * sibling orders of the filled order, because only one of several siblings can be filled.
 */
export const release = (venue: Venue, order: VenueOrder): void => {
  const account = PriceTimeBook.ensureAccount(venue.state, order.user)
  const { children } = order
  for (const child of children) {
    child.siblings = children.flatMap(({ oid }) => oid === child.oid ? [] : [oid])
    awaitTrigger(venue, child)
    report(venue, child, "open")
  }
  order.children = none
  for (const oid of order.siblings) {
    const sibling = account.orders.get(oid)
    if (sibling !== undefined && sibling.place !== "gone") endByVenue(venue, sibling, "siblingFilledCanceled")
  }
}

/**
 * Ends reduce-only orders that can no longer reduce the account's position, because the position is closed or reversed.
 */
export const endReducers = (venue: Venue, asset: Assets.Asset, user: VenueOrder["user"]): void => {
  if (asset.kind === "spot") return
  const account = PriceTimeBook.ensureAccount(venue.state, user)
  const size = account.clearings.get(asset.dex)?.positions.get(asset.coin)?.size ?? 0n
  for (const order of account.open.values()) {
    if (order.coin !== asset.coin || !order.reduceOnly) continue
    if (size === 0n || size > 0n === order.isBuy) endByVenue(venue, order, "reduceOnlyCanceled")
  }
}

/** A resting order that an incoming order meets: its own asset, and its price for the incoming order. */
interface Maker {
  readonly order: VenueOrder
  readonly asset: Assets.Asset
  readonly px: bigint
}

/** Returns the resting order that is matched first on a side of an asset's own book. */
export const bestIn = (asset: Assets.Asset, side: MarketState["asks"]): Maker | undefined => {
  const order = PriceTimeBook.best(side)
  return order === undefined ? undefined : { order, asset, px: order.px }
}

/**
 * Returns the resting order that is matched first against an order that buys or sells. An order to buy one side of an
 * outcome at a price is also an order to sell the other side at the rest of the price. At one price, orders to sell
 * come first.
 */
const bestMaker = (venue: Venue, asset: Assets.Asset, takerBuys: boolean): Maker | undefined => {
  const market = PriceTimeBook.ensureMarket(venue.state, asset.coin)
  const primary = bestIn(asset, takerBuys ? market.asks : market.bids)
  const other = dualSide(asset)
  if (other === undefined) return primary
  const dualMarket = PriceTimeBook.ensureMarket(venue.state, other.coin)
  const met = bestIn(other, takerBuys ? dualMarket.bids : dualMarket.asks)
  if (met === undefined) return primary
  const dual = { ...met, px: wholeToken - met.px }
  if (primary === undefined) return dual
  return takerBuys ? (primary.px <= dual.px ? primary : dual) : primary.px > dual.px ? primary : dual
}

const fillableLots = (venue: Venue, asset: Assets.Asset, maker: VenueOrder): bigint =>
  maker.reduceOnly
    ? Assets.min(maker.sz, reducible(PriceTimeBook.ensureAccount(venue.state, maker.user), asset, maker))
    : maker.sz

/** Returns whether the account of a resting order has too little margin for the fill of the order. */
const lacksMargin = (venue: Venue, asset: Assets.Asset, maker: VenueOrder): boolean => {
  if (asset.kind === "spot" || maker.reduceOnly) return false
  const account = PriceTimeBook.ensureAccount(venue.state, maker.user)
  const clearing = ensureClearing(account, asset.dex)
  const size = clearing.positions.get(asset.coin)?.size ?? 0n
  if (size !== 0n && size > 0n !== maker.isBuy) return false
  const { needed, value } = Margin.backing(venue, account, asset.dex)
  return value < needed
}

/**
 * Returns the next resting order that can be filled. Ends the orders before it that cannot be filled.
 */
export const nextMaker = (
  venue: Venue,
  findBest: () => Maker | undefined,
  taker: VenueOrder | undefined,
  reaches: (px: bigint) => boolean
): Maker | undefined => {
  for (;;) {
    const maker = findBest()
    if (maker === undefined || !reaches(maker.px)) return undefined
    const { asset, order } = maker
    if (order.user === taker?.user) endByVenue(venue, order, "selfTradeCanceled")
    else if (lacksMargin(venue, asset, order)) endByVenue(venue, order, "marginCanceled")
    else if (fillableLots(venue, asset, order) === 0n) endByVenue(venue, order, "reduceOnlyCanceled")
    else return maker
  }
}

interface Meeting {
  readonly hash: TradeTerms["hash"]
  readonly liquidation?: TradeTerms["liquidation"]
}

const tradeTerms = (venue: Venue, { hash, liquidation }: Meeting, px: bigint, sz: bigint): TradeTerms => ({
  px,
  sz,
  tid: nextTid(venue),
  hash,
  ...(liquidation === undefined ? {} : { liquidation })
})

/** Settles the fill of a resting order, and ends the orders that the fill makes impossible. */
const settleMaker = (venue: Venue, asset: Assets.Asset, maker: VenueOrder, terms: TradeTerms): void => {
  settle(venue, asset, maker, terms, false)
  settled(venue, maker)
  endReducers(venue, asset, maker.user)
}

const withMaker = (
  venue: Venue,
  asset: Assets.Asset,
  market: MarketState,
  taker: VenueOrder,
  { asset: own, order: maker, px }: Maker,
  meeting: Meeting
): Filled => {
  const sz = Assets.min(taker.sz, fillableLots(venue, own, maker))
  const made = tradeTerms(venue, meeting, px, sz)
  const isDual = own !== asset
  // two buyers pay for new tokens, which is not counted; the tokens of two sellers are redeemed
  const terms = isDual ? { ...made, counted: taker.isBuy ? 0n : wholeToken * sz } : made
  reduce(venue, asset, taker, sz)
  reduce(venue, own, maker, sz)
  if (isDual && own.kind === "spot") mint(venue, own, (taker.isBuy ? sz : -sz) * own.weiPerLot)
  settle(venue, asset, taker, terms, true)
  settleMaker(venue, own, maker, isDual ? { ...terms, px: maker.px } : terms)
  record(venue, asset, market, terms, taker.isBuy, taker.user, maker.user)
  return { sz, paid: sz * px }
}

const withQuote = (
  venue: Venue,
  asset: Assets.Asset,
  market: MarketState,
  taker: VenueOrder,
  quote: Quote,
  meeting: Meeting
): Filled => {
  const sz = Assets.min(taker.sz, quote.sz)
  const terms = tradeTerms(venue, meeting, quote.px, sz)
  quote.sz -= sz
  reduce(venue, asset, taker, sz)
  settle(venue, asset, taker, terms, true)
  settleHouse(venue, asset, !taker.isBuy, quote.px, sz)
  record(venue, asset, market, terms, taker.isBuy, taker.user, venue.house)
  return { sz, paid: sz * quote.px }
}

/**
 * Fills an incoming order against crossing orders.
 *
 * Does not end reduce-only orders that can no longer reduce a position; the caller must do that.
 */
export const take = (venue: Venue, asset: Assets.Asset, taker: VenueOrder, meeting: Meeting): Filled => {
  const market = Margin.refreshed(venue, asset)
  const findBest = () => bestMaker(venue, asset, taker.isBuy)
  const quotes = taker.isBuy ? market.quotes.asks : market.quotes.bids
  const reaches = (px: bigint) => taker.isBuy ? px <= taker.px : px >= taker.px
  let sz = 0n
  let paid = 0n
  while (taker.sz > 0n) {
    const quote = Margin.firstQuote(quotes)
    // orders behind the best quote are not met yet, so none of them ends
    const isBefore = (px: bigint) => quote === undefined || (taker.isBuy ? px <= quote.px : px >= quote.px)
    const maker = nextMaker(venue, findBest, taker, (px) => reaches(px) && isBefore(px))
    if (maker === undefined && (quote === undefined || !reaches(quote.px))) break
    const met = maker !== undefined
      ? withMaker(venue, asset, market, taker, maker, meeting)
      : quote === undefined
      ? { sz: 0n, paid: 0n }
      : withQuote(venue, asset, market, taker, quote, meeting)
    sz += met.sz
    paid += met.paid
  }
  if (sz > 0n) Margin.refill(venue, asset, market)
  return { sz, paid }
}

/** Returns the best bid and the best ask, in ticks, among the orders of accounts and the synthetic orders. */
export const bestPrices = (venue: Venue, asset: Assets.Asset): { readonly bid?: bigint; readonly ask?: bigint } => {
  const quotes = Margin.bestQuotes(venue, asset)
  const bid = [bestMaker(venue, asset, false)?.px, quotes.bid].filter((px) => px !== undefined)
  const ask = [bestMaker(venue, asset, true)?.px, quotes.ask].filter((px) => px !== undefined)
  return {
    ...(bid.length === 0 ? {} : { bid: bid.reduce(Assets.max) }),
    ...(ask.length === 0 ? {} : { ask: ask.reduce(Assets.min) })
  }
}

/** Fills a resting order against the house, at the order's price and at most with `lots`. Returns the filled lots. */
export const withHouse = (
  venue: Venue,
  asset: Assets.Asset,
  market: MarketState,
  maker: VenueOrder,
  lots: bigint
): bigint => {
  const { isBuy } = maker
  const sz = Assets.min(lots, fillableLots(venue, asset, maker))
  const terms = tradeTerms(venue, { hash: zeroHash }, maker.px, sz)
  reduce(venue, asset, maker, sz)
  settleHouse(venue, asset, !isBuy, maker.px, sz)
  settleMaker(venue, asset, maker, terms)
  record(venue, asset, market, terms, !isBuy, venue.house, maker.user)
  return sz
}

const sweepSide = (venue: Venue, asset: Assets.Asset, isBid: boolean): void => {
  const market = PriceTimeBook.ensureMarket(venue.state, asset.coin)
  const side = isBid ? market.bids : market.asks
  const first = PriceTimeBook.best(side)
  if (first === undefined) return
  const mark = Margin.markPrice(venue, asset)
  // returns early in the usual case, because making the synthetic orders is slow
  if (Margin.isRenewed(market) && (isBid ? first.px < mark : first.px > mark)) return
  Margin.refreshed(venue, asset)
  const quotes = isBid ? market.quotes.asks : market.quotes.bids
  const findBest = () => bestIn(asset, side)
  for (;;) {
    const quote = Margin.firstQuote(quotes)
    const maker = quote === undefined
      ? undefined
      : nextMaker(venue, findBest, undefined, (px) => isBid ? px >= quote.px : px <= quote.px)?.order
    if (quote === undefined || maker === undefined) return Margin.refill(venue, asset, market)
    quote.sz -= withHouse(venue, asset, market, maker, quote.sz)
  }
}

/** Fills the resting orders that the price path has reached, each at its own price. */
export const sweep = (venue: Venue, asset: Assets.Asset): void => {
  sweepSide(venue, asset, true)
  sweepSide(venue, asset, false)
}
