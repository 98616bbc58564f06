/** Encodes orders for queries and streams. */
import type { Order, OrderRecord } from "@trigate/domain/info/Order"
import type { OrderUpdate } from "@trigate/domain/info/Order"
import type { Asset } from "./Assets.ts"
import { printPx, printSz } from "./Assets.ts"
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
