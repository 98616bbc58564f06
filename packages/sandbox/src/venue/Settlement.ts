/**
 * Settles a trade for one account: money, position or balances, fees, profit, and the entry in the account's list of
 * fills.
 *
 * For every amount that one party pays, there is a recipient: an account, the house (the counterparty of synthetic
 * orders), or the venue's fee income.
 */
import type { Address } from "@trigate/domain/encoding/Hex"
import type { Fill } from "@trigate/domain/info/Order"
import type { Asset, Perpetual, SpotPair } from "./Assets.ts"
import { printPx, printSz, printUsd, usdc, weiPerUsd } from "./Assets.ts"
import { isGrowing } from "./CandleMarket.ts"
import * as Decimals from "./Decimals.ts"
import { abs, divideUp, min } from "./Decimals.ts"
import * as Fees from "./Fees.ts"
import { leverageSetting } from "./Margin.ts"
import type { Position, TradingAccount, VenueOrder } from "./TradingAccount.ts"
import { ensureBalance, ensureClearing } from "./TradingAccount.ts"
import * as TradingState from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import { emit } from "./Venue.ts"

/** A trade: price in ticks, size in lots. */
export interface TradeTerms {
  readonly px: bigint
  readonly sz: bigint
  readonly tid: number
  readonly hash: Fill["hash"]
  readonly liquidation?: { readonly liquidatedUser: Address; readonly markPx: string; readonly method: string }
}

/** The result of settling one side of a trade. */
interface Settled {
  readonly startPosition: string
  readonly dir: string
  readonly closedPnl: string
  readonly fee: string
  readonly feeToken: string
  readonly builderFee?: string
}

const tradeDirection = (before: bigint, after: bigint): string => {
  if (before === 0n || (before > 0n) === (after > 0n) && abs(after) > abs(before)) {
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
  asset: Perpetual,
  isBuy: boolean,
  px: bigint,
  sz: bigint
): bigint => {
  const clearing = ensureClearing(account, asset.dex)
  const leverage = leverageSetting(account, asset)
  const position = clearing.positions.get(asset.coin) ?? newPosition(leverage.isCross, leverage.value)
  const before = position.size
  const closing = before !== 0n && before > 0n !== isBuy ? min(abs(before), sz) : 0n
  const opening = sz - closing
  let closedPnl = 0n
  if (closing > 0n) {
    const entry = position.entry * closing / abs(before)
    const paid = px * closing
    closedPnl = before > 0n ? paid - entry : entry - paid
    position.entry -= entry
    const flow = isBuy ? -paid : paid
    if (position.isCross) clearing.cash += flow
    else {
      const worth = position.raw + before * px
      const released = closing === abs(before) ? worth : worth * closing / abs(before)
      position.raw += flow - released
      clearing.cash += released
    }
    position.size += isBuy ? closing : -closing
  }
  if (opening > 0n) {
    const paid = px * opening
    position.entry += paid
    position.size += isBuy ? opening : -opening
    const flow = isBuy ? -paid : paid
    if (position.isCross) clearing.cash += flow
    else {
      const margin = divideUp(paid, BigInt(position.leverage))
      clearing.cash -= margin
      position.raw += flow + margin
    }
  }
  position.funding.sinceChange = 0n
  const { holders } = TradingState.ensureMarket(venue.state, asset.coin)
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
 * referrer's rewards, and the remainder of `fee` to the venue's income. Amounts are in millionths of a dollar.
 */
const collect = (venue: Venue, account: TradingAccount, fee: bigint, builder: VenueOrder["builder"], share: bigint) => {
  const { house } = venue.state
  if (builder !== undefined) TradingState.ensureAccount(venue.state, builder.address).builderRewards += share
  const referred = Fees.referralReward(account, fee)
  if (account.referrer !== undefined) {
    TradingState.ensureAccount(venue.state, account.referrer.address).rewards += referred
  }
  house.feesUsd += fee - referred
}

const settlePerpetual = (
  venue: Venue,
  account: TradingAccount,
  asset: Perpetual,
  { builder, isBuy }: Pick<VenueOrder, "builder" | "isBuy">,
  { px, sz }: TradeTerms,
  crossed: boolean
): Settled => {
  const clearing = ensureClearing(account, asset.dex)
  const before = clearing.positions.get(asset.coin)?.size ?? 0n
  const closedPnl = movePosition(venue, account, asset, isBuy, px, sz)
  const notional = px * sz
  const kind = { isSpot: false, isGrowing: isGrowing(asset.market, venue.state.now) }
  const fee = Fees.computeFee(account, venue.state.now, notional, crossed, kind)
  const share = builder === undefined ? 0n : Fees.builderFeeAmount(notional, builder.tenthsOfBp)
  clearing.cash -= fee + share
  collect(venue, account, fee, builder, share)
  Fees.countVolume(account, venue.state.now, notional, crossed, kind)
  return {
    startPosition: printSz(asset, before),
    dir: tradeDirection(before, before + (isBuy ? sz : -sz)),
    closedPnl: printUsd(closedPnl),
    fee: printUsd(fee + share),
    feeToken: "USDC",
    ...(share === 0n ? {} : { builderFee: printUsd(share) })
  }
}

const spotKind: Fees.FeeKind = { isSpot: true }

const settleSpot = (
  venue: Venue,
  account: TradingAccount,
  asset: SpotPair,
  { builder, isBuy }: Pick<VenueOrder, "builder" | "isBuy">,
  { px, sz }: TradeTerms,
  crossed: boolean
): Settled => {
  const base = ensureBalance(account, asset.base.index)
  const quote = ensureBalance(account, asset.quote.index)
  const paid = px * sz
  const got = sz * asset.weiPerLot
  const before = base.total
  const { house, now } = venue.state
  const amount = isBuy ? got : paid
  const fee = Fees.computeFee(account, now, amount, crossed, spotKind)
  // the builder of a spot buy receives nothing, because the fee of a buy is paid in the base token
  const share = builder === undefined || isBuy
    ? 0n
    : Fees.builderFeeAmount(paid, builder.tenthsOfBp) / weiPerUsd * weiPerUsd
  let closedPnl = 0n
  if (isBuy) {
    base.total += got - fee
    base.entry += paid
    quote.total -= paid
    TradingState.addTo(house.feesSpot, asset.base.index, fee)
  } else {
    const entry = before === 0n ? 0n : base.entry * got / before
    closedPnl = paid - entry
    base.entry -= entry
    base.total -= got
    quote.total += paid - fee - share
    TradingState.addTo(house.feesSpot, asset.quote.index, fee)
    if (builder !== undefined) {
      TradingState.ensureAccount(venue.state, builder.address).builderRewards += share / weiPerUsd
    }
  }
  if (asset.quote.index === usdc) Fees.countVolume(account, now, paid / weiPerUsd, crossed, spotKind)
  const token = isBuy ? asset.base : asset.quote
  return {
    startPosition: Decimals.print(before, asset.base.weiDecimals),
    dir: isBuy ? "Buy" : "Sell",
    closedPnl: Decimals.print(closedPnl, asset.quote.weiDecimals),
    fee: Decimals.print(fee + share, token.weiDecimals),
    feeToken: token.name,
    ...(share === 0n ? {} : { builderFee: Decimals.print(share, asset.quote.weiDecimals) })
  }
}

/** Settles one side of a trade for an account, and adds the fill to the account's list. */
export const settle = (
  venue: Venue,
  asset: Asset,
  order: VenueOrder,
  terms: TradeTerms,
  crossed: boolean
): Fill => {
  const account = TradingState.ensureAccount(venue.state, order.user)
  const settled = asset.kind === "perpetual"
    ? settlePerpetual(venue, account, asset, order, terms, crossed)
    : settleSpot(venue, account, asset, order, terms, crossed)
  const { builderFee, ...known } = settled
  const fill: Fill = {
    coin: asset.coin,
    px: printPx(asset, terms.px),
    sz: printSz(asset, terms.sz),
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
    TradingState.append(account.fills, fill, venue.limits.fills)
    emit(venue, { kind: "fill", user: order.user, fill })
  } else {
    const twapFill = { fill, twapId: order.twapId }
    TradingState.append(account.twapFills, twapFill, venue.limits.fills)
    emit(venue, { kind: "twapFill", user: order.user, fill: twapFill })
  }
  emit(venue, { kind: "account", user: order.user })
  return fill
}

/** Settles the side of a trade that belongs to the synthetic orders. This side pays no fees. */
export const settleHouse = (venue: Venue, asset: Asset, isBuy: boolean, px: bigint, sz: bigint): void => {
  const { house } = venue.state
  const paid = px * sz
  if (asset.kind === "perpetual") {
    house.cash += isBuy ? -paid : paid
    TradingState.addTo(house.positions, asset.coin, isBuy ? sz : -sz)
    return
  }
  const got = sz * asset.weiPerLot
  TradingState.addTo(house.spot, asset.base.index, isBuy ? got : -got)
  TradingState.addTo(house.spot, asset.quote.index, isBuy ? -paid : paid)
}
