/**
 * The value of an account, the margin of its positions and orders, and the withdrawable balance. Amounts are in
 * millionths of a dollar.
 */
import type { Perpetual } from "./Assets.ts"
import { usdc, weiPerUsd } from "./Assets.ts"
import { abs, divideUp, max } from "./Decimals.ts"
import { markPrice } from "./Quotes.ts"
import type { AccountValue, Clearing, Position, TradingAccount } from "./TradingAccount.ts"
import { ensureClearing } from "./TradingAccount.ts"
import type { Venue } from "./Venue.ts"

/**
 * Returns the perpetual of a coin; `undefined` for a delisted coin (an account can still have a position in it) and for
 * spot coins.
 */
export const perpetualByCoin = (venue: Venue, coin: string): Perpetual | undefined => {
  const asset = venue.listing.byCoin.get(coin)
  return asset?.kind === "perpetual" ? asset : undefined
}

/** Returns the price at which positions are valued, in ticks. */
export type Mark = (asset: Perpetual) => bigint

/** A leverage, and whether the margin mode is cross. */
export interface LeverageSetting {
  readonly isCross: boolean
  readonly value: number
}

/**
 * Returns the leverage of an account in a perpetual. Default: the maximum leverage, with cross margin if the perpetual
 * allows it.
 */
export const leverageSetting = (account: TradingAccount, asset: Perpetual): LeverageSetting =>
  account.leverage.get(asset.coin) ?? { isCross: asset.market.marginMode === undefined, value: asset.maxLeverage }

/** Returns the value of a position at a mark price; negative for a short position. */
export const signedValue = (position: Position, mark: bigint): bigint => position.size * mark

/** Returns the maintenance margin of a position: half of the initial margin at the maximum leverage. */
export const maintenanceMargin = (asset: Perpetual, position: Position, mark: bigint): bigint =>
  abs(position.size * mark) / BigInt(2 * asset.maxLeverage)

/** Returns the margin that a position uses. For an isolated position, this is the margin assigned to the position. */
export const marginUsedBy = (position: Position, mark: bigint): bigint =>
  position.isCross
    ? abs(position.size * mark) / BigInt(position.leverage)
    : max(0n, position.raw + signedValue(position, mark))

/** Returns the unrealized profit of a position at a mark price. */
export const unrealizedPnl = (position: Position, mark: bigint): bigint =>
  signedValue(position, mark) - (position.size < 0n ? -position.entry : position.entry)

/** The value of an account in a dex, and the margin of the account's positions in that dex. */
export interface MarginSums {
  /** Value of the cross account: cash and cross positions at their mark prices. */
  readonly crossValue: bigint
  /** Value of the account including isolated positions. */
  readonly value: bigint
  readonly crossNotional: bigint
  readonly notional: bigint
  readonly crossMarginUsed: bigint
  readonly marginUsed: bigint
  readonly crossMaintenance: bigint
  /** Cash minus the cost of all positions, including isolated ones (`totalRawUsd`). */
  readonly raw: bigint
}

/** Returns the value of an account in a dex, and the margin of the account's positions in that dex. */
export const marginSums = (
  venue: Venue,
  clearing: Clearing,
  mark: Mark = (asset) => markPrice(venue, asset)
): MarginSums => {
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
    notional += abs(value)
    marginUsed += used
    if (position.isCross) {
      crossValue += value
      crossNotional += abs(value)
      crossMarginUsed += used
      crossMaintenance += maintenanceMargin(asset, position, px)
    } else {
      isolatedValue += position.raw + value
      isolatedRaw += position.raw
    }
  }
  return {
    crossValue,
    value: crossValue + isolatedValue,
    crossNotional,
    notional,
    crossMarginUsed,
    marginUsed,
    crossMaintenance,
    raw: clearing.cash + isolatedRaw
  }
}

/** Returns the current value of an account. */
export const accountValue = (venue: Venue, account: TradingAccount): AccountValue => {
  const perps = [...account.clearings.values()].reduce((sum, each) => sum + marginSums(venue, each).value, 0n)
  return {
    time: venue.state.now,
    perps,
    all: perps + (account.spot.get(usdc)?.total ?? 0n) / weiPerUsd,
    profit: perps - account.deposited
  }
}

/** Returns the maximum size, in lots, that a position would have if all open orders of one side were filled. */
const worstLots = (
  account: TradingAccount,
  coin: string,
  size: bigint,
  more: { bids: bigint; asks: bigint }
): bigint => {
  const open = account.exposure.get(coin)
  const long = size + (open?.bids ?? 0n) + more.bids
  const short = (open?.asks ?? 0n) + more.asks - size
  return max(max(long, short), abs(size))
}

const nothingMore = { bids: 0n, asks: 0n }

/** Returns the margin that the cross account needs for the positions and open orders in a perpetual. */
const neededIn = (
  venue: Venue,
  account: TradingAccount,
  clearing: Clearing,
  asset: Perpetual,
  more = nothingMore
): bigint => {
  const position = clearing.positions.get(asset.coin)
  const size = position?.size ?? 0n
  const { isCross, value } = position === undefined
    ? leverageSetting(account, asset)
    : { isCross: position.isCross, value: position.leverage }
  const lots = worstLots(account, asset.coin, size, more)
  // an isolated position already has its own margin
  const counted = isCross ? lots : lots - abs(size)
  return counted === 0n ? 0n : divideUp(counted * markPrice(venue, asset), BigInt(value))
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
    if (asset?.dex === dex) {
      total += neededIn(venue, account, clearing, asset, each === coin ? more : nothingMore)
    }
  }
  return total
}

/** Returns the margin that an account can use for more orders because neither positions nor open orders need it. */
export const freeMargin = (venue: Venue, account: TradingAccount, dex: string): bigint => {
  const clearing = account.clearings.get(dex)
  return clearing === undefined
    ? 0n
    : max(0n, marginSums(venue, clearing).crossValue - needed(venue, account, clearing, dex))
}

/**
 * Returns the amount that an account can withdraw. The rest must cover the margin that positions and open orders need,
 * and a tenth of the value of the cross positions.
 */
export const withdrawable = (venue: Venue, account: TradingAccount, dex: string): bigint => {
  const clearing = account.clearings.get(dex)
  if (clearing === undefined) return 0n
  const { crossNotional, crossValue } = marginSums(venue, clearing)
  return max(0n, crossValue - max(needed(venue, account, clearing, dex), crossNotional / 10n))
}

/** Returns whether an account has enough margin for an order. */
export const allows = (
  venue: Venue,
  account: TradingAccount,
  asset: Perpetual,
  isBuy: boolean,
  lots: bigint
): boolean => {
  const clearing = ensureClearing(account, asset.dex)
  const more = isBuy ? { bids: lots, asks: 0n } : { bids: 0n, asks: lots }
  const size = clearing.positions.get(asset.coin)?.size ?? 0n
  // an order that cannot increase the maximum position is always allowed
  if (worstLots(account, asset.coin, size, more) === worstLots(account, asset.coin, size, nothingMore)) return true
  return marginSums(venue, clearing).crossValue >= needed(venue, account, clearing, asset.dex, asset.coin, more)
}

/**
 * Returns the mark price, in ticks, at which a position would be liquidated if no other price changed; `undefined` if
 * there is no such price.
 */
export const liquidationPx = (
  venue: Venue,
  clearing: Clearing,
  asset: Perpetual,
  position: Position
): bigint | undefined => {
  const mark = markPrice(venue, asset)
  const { crossMaintenance, crossValue } = marginSums(venue, clearing)
  const own = maintenanceMargin(asset, position, mark)
  const spare = position.isCross
    ? crossValue - crossMaintenance
    : position.raw + signedValue(position, mark) - own
  const double = BigInt(2 * asset.maxLeverage)
  // for each tick by which the price falls, the value of a long position falls by the position's size in lots, and the
  // position's maintenance margin falls too
  const perTick = position.size > 0n
    ? position.size - position.size / double
    : position.size + position.size / double
  if (perTick === 0n) return undefined
  const px = mark - spare / perTick
  return px > 0n ? px : undefined
}
