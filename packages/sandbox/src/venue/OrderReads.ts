/** Encodes orders for queries and streams. */
import type { Fill, Order, OrderRecord } from "@trigate/domain/info/Order"
import type { OrderUpdate } from "@trigate/domain/info/Order"
import * as Predicate from "effect/Predicate"
import type { Asset } from "./Assets.ts"
import { printPx, printSz } from "./Assets.ts"
import * as Decimals from "./Decimals.ts"
import { findOrder } from "./OrderLife.ts"
import type { TradingAccount, VenueOrder } from "./TradingAccount.ts"
import type { Venue } from "./Venue.ts"

const orderType = ({ tif, trigger }: VenueOrder): string => {
  if (trigger === undefined) return tif === "FrontendMarket" ? "Market" : "Limit"
  return `${trigger.tpsl === "tp" ? "Take Profit" : "Stop"} ${trigger.isMarket ? "Market" : "Limit"}`
}

const triggerCondition = (asset: Asset, { isBuy, trigger }: VenueOrder): string =>
  trigger === undefined
    ? "N/A"
    : `Price ${isBuy === (trigger.tpsl === "sl") ? "above" : "below"} ${
      printPx(asset, trigger.px).replace(/\.0$/u, "")
    }`

const printTerms = (asset: Asset, order: Readonly<VenueOrder>) => ({
  coin: order.coin,
  side: order.isBuy ? "B" as const : "A" as const,
  limitPx: printPx(asset, order.px),
  sz: printSz(asset, order.sz),
  oid: order.oid,
  timestamp: order.timestamp
})

/** Encodes an order as in `orderUpdates` and `openOrders`. */
export const printOpen = (asset: Asset, order: Readonly<VenueOrder>): OrderUpdate["order"] => ({
  ...printTerms(asset, order),
  origSz: printSz(asset, order.origSz),
  ...(order.reduceOnly ? { reduceOnly: true } : {}),
  ...(order.cloid === null ? {} : { cloid: order.cloid })
})

/** Encodes an order with all members, as in `frontendOpenOrders`. */
export const printOrder = (asset: Asset, order: VenueOrder): Order => ({
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
export const printRecord = (asset: Asset, order: VenueOrder): OrderRecord => ({
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

/** Returns an account's order, by its order ID or client order ID, with its status. */
export const findRecord = (
  { listing }: Venue,
  account: TradingAccount,
  name: number | bigint | string
): OrderRecord | undefined => {
  const order = findOrder(account, name)
  const asset = order === undefined ? undefined : listing.byCoin.get(order.coin)
  return order === undefined || asset === undefined ? undefined : printRecord(asset, order)
}

/** Returns the latest orders of an account, newest first. */
export const history = ({ listing }: Venue, account: TradingAccount, most: number): ReadonlyArray<OrderRecord> =>
  [...account.orders.values()].slice(-most).toReversed().flatMap((order) => {
    const asset = listing.byCoin.get(order.coin)
    return asset === undefined || order.place === "parent" ? [] : [printRecord(asset, order)]
  })

/** Decimals with which the prices and sizes of fills are added up. */
const fillDecimals = 8

const parseAmount = (text: string): bigint => Decimals.parse(text, fillDecimals) ?? 0n

const addAmounts = (one: string, other: string): string =>
  Decimals.print(parseAmount(one) + parseAmount(other), fillDecimals)

/** Combines two fills of an order: the sum of their amounts, at their average price. */
const joinFills = (first: Fill, next: Fill): Fill => {
  const [sz, nextSz] = [parseAmount(first.sz), parseAmount(next.sz)]
  const { builderFee } = next
  const firstFee = first["builderFee"]
  return {
    ...first,
    px: Decimals.print((parseAmount(first.px) * sz + parseAmount(next.px) * nextSz) / (sz + nextSz), fillDecimals),
    sz: addAmounts(first.sz, next.sz),
    closedPnl: addAmounts(first.closedPnl, next.closedPnl),
    fee: addAmounts(first.fee, next.fee),
    ...(Predicate.isString(builderFee)
      ? { builderFee: addAmounts(Predicate.isString(firstFee) ? firstFee : "0", builderFee) }
      : {})
  }
}

/**
 * Combines the fills that an order took from several resting orders at one time (`aggregateByTime`). The fills are in
 * the order of occurrence.
 */
export const aggregateFills = (fills: ReadonlyArray<Fill>): ReadonlyArray<Fill> => {
  const combined: Array<Fill> = []
  for (const fill of fills) {
    const last = combined.at(-1)
    if (last?.oid === fill.oid && last.time === fill.time && last.crossed && fill.crossed) {
      combined[combined.length - 1] = joinFills(last, fill)
    } else combined.push(fill)
  }
  return combined
}
