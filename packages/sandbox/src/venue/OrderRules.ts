/**
 * Checks an order before it is matched: tick and lot size, minimum value, price band, triggers, and open-interest caps.
 */
import type { OrderRequest } from "@trigate/domain/actions/ActionSchemas"
import type { Asset } from "./Assets.ts"
import { printPx, readPx } from "./Assets.ts"
import * as Decimals from "./Decimals.ts"
import * as Margin from "./Margin.ts"
import { isCapped } from "./MarketReads.ts"
import { bestPrices } from "./Matching.ts"
import * as OrderLife from "./OrderLife.ts"
import { markPrice } from "./Quotes.ts"
import type { TradingAccount, VenueOrder } from "./TradingAccount.ts"
import type { Venue } from "./Venue.ts"
import * as Words from "./Words.ts"

/** The refusal of an order: the order's status, and the text of the response. */
export interface OrderRefusal {
  /** The order's status; absent if the venue refuses the order before it assigns an ID. */
  readonly status?: string
  readonly text: string
}

/** An order's parameters in ticks and lots. */
export interface OrderTerms {
  readonly px: bigint
  readonly sz: bigint
  readonly trigger?: VenueOrder["trigger"]
}

/** Returns the minimum value of an order, ten dollars, in ticks times lots. */
const minimumValue = ({ pxDecimals, szDecimals }: Asset): bigint => 10n * 10n ** BigInt(pxDecimals + szDecimals)

/** Returns whether a mark price has reached a trigger. */
export const isReached = (isBuy: boolean, { px, tpsl }: NonNullable<VenueOrder["trigger"]>, mark: bigint): boolean =>
  isBuy === (tpsl === "sl") ? mark >= px : mark <= px

/** Decodes an order's parameters, and performs the checks that depend neither on the market nor on the account. */
export const readTerms = (
  asset: Asset,
  { p, s, t }: OrderRequest,
  isPositionTpsl: boolean
): OrderTerms | OrderRefusal => {
  const px = readPx(asset, p)
  if (px === "invalid") return { text: Words.invalidPrice }
  if (px === "tick") return { text: Words.tick(asset), status: "tickRejected" }
  const sz = Decimals.parse(s, asset.szDecimals)
  if (sz === undefined) return { text: Words.invalidSize }
  if (sz === 0n && !isPositionTpsl) return { text: Words.zeroSize }
  if (!("trigger" in t)) return { px, sz }
  const trigger = readPx(asset, t.trigger.triggerPx)
  if (trigger === "invalid") return { text: Words.triggerPrice(asset), status: "badTriggerPxRejected" }
  if (trigger === "tick") return { text: Words.tick(asset), status: "tickRejected" }
  return { px, sz, trigger: { px: trigger, isMarket: t.trigger.isMarket, tpsl: t.trigger.tpsl } }
}

/**
 * Returns the maximum number of open orders for an account: 1000, plus one for each 5 million dollars of traded volume,
 * at most 5000.
 */
const openOrderCap = ({ volume }: TradingAccount): number =>
  Math.min(5_000, 1_000 + Number(volume / 5_000_000_000_000n))

/** Maximum distance of a limit price from the mark price, in percent. */
const band = 80n

const isOutOfBand = (px: bigint, mark: bigint): boolean =>
  px * 100n > mark * (100n + band) || px * 100n < mark * (100n - band)

/** Returns the reason to refuse an order before it is matched; `undefined` if the order is acceptable. */
export const findRefusal = (
  venue: Venue,
  account: TradingAccount,
  asset: Asset,
  order: VenueOrder
): OrderRefusal | undefined => {
  const mark = markPrice(venue, asset)
  if (order.trigger !== undefined && isReached(order.isBuy, order.trigger, mark)) {
    return { text: Words.triggerPrice(asset), status: "badTriggerPxRejected" }
  }
  const reducible = order.reduceOnly ? OrderLife.reducible(account, asset, order) : undefined
  // the minimum value does not apply to reduce-only orders, or to take-profit and stop-loss orders of a whole position
  if (order.px * order.sz < minimumValue(asset) && !order.isPositionTpsl && reducible === undefined) {
    return {
      text: asset.kind === "spot" ? Words.minimumSpotNotional(asset, asset.quote.name) : Words.minimumNotional(asset),
      status: "minTradeNtlRejected"
    }
  }
  if (isOutOfBand(order.px, mark)) return { text: Words.priceBand, status: "oracleRejected" }
  if (account.open.size >= openOrderCap(account)) {
    return { text: Words.tooManyOpenOrders(asset), status: "tooManyOpenOrdersRejected" }
  }
  if (order.trigger === undefined && reducible === 0n) {
    return { text: Words.reduceOnly(asset), status: "reduceOnlyRejected" }
  }
  if (asset.kind === "perpetual" && !order.reduceOnly && isCapped(venue, asset)) {
    const size = account.clearings.get(asset.dex)?.positions.get(asset.coin)?.size ?? 0n
    const isClosing = size !== 0n && size > 0n !== order.isBuy && order.sz <= Decimals.abs(size)
    if (!isClosing) {
      return { text: Words.openInterestCapped(asset), status: "positionIncreaseAtOpenInterestCapRejected" }
    }
  }
  const { ask, bid } = bestPrices(venue, asset)
  const crosses = order.isBuy ? ask !== undefined && ask <= order.px : bid !== undefined && bid >= order.px
  if (order.tif === "Alo" && crosses) {
    const print = (px: bigint | undefined) => px === undefined ? "" : printPx(asset, px)
    return { text: Words.postOnly(asset, print(bid), print(ask)), status: "badAloPxRejected" }
  }
  if (venue.rejectsOrder()) return lacksFunds(asset)
  return order.trigger === undefined ? fundsRefusal(venue, account, asset, order) : undefined
}

const lacksFunds = (asset: Asset): OrderRefusal =>
  asset.kind === "spot"
    ? { text: Words.insufficientSpot(asset), status: "insufficientSpotBalanceRejected" }
    : { text: Words.insufficientMargin(asset), status: "perpMarginRejected" }

/** Returns the refusal of an order because the account has too little margin or balance for it. */
export const fundsRefusal = (
  venue: Venue,
  account: TradingAccount,
  asset: Asset,
  order: VenueOrder
): OrderRefusal | undefined => {
  const isCovered = asset.kind === "spot"
    ? OrderLife.isCovered(account, asset, order)
    : order.reduceOnly || Margin.allows(venue, account, asset, order.isBuy, order.sz)
  return isCovered ? undefined : lacksFunds(asset)
}
