/** Orders and fills of a user of the trading chain. */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { DecimalString } from "../candles/Candle.ts"
import { Hash } from "../encoding/Hex.ts"
import { nullish, openStruct } from "../encoding/OpenStruct.ts"
import { Millis } from "../Time.ts"
import { Side } from "./Market.ts"

/** The client order ID: 16 bytes in 0x hex. */
export const Cloid = Schema.String.check(Schema.isPattern(/^0x[0-9a-fA-F]{32}$/u, {
  expected: "16 bytes in 0x hex"
})).annotate({ identifier: "Cloid" })

const order = {
  coin: Schema.String,
  side: Side,
  limitPx: DecimalString,
  sz: DecimalString.annotateKey({ description: "Size that is not filled yet" }),
  oid: Schema.Natural.annotate({ description: "Order id" }),
  timestamp: Millis,
  origSz: nullish(DecimalString),
  reduceOnly: nullish(Schema.Boolean),
  cloid: nullish(Schema.String)
}

/** An order on the book. */
export const OpenOrder = openStruct(order).annotate({ identifier: "OpenOrder" })
export type OpenOrder = typeof OpenOrder.Type

const briefMembers = ["coin", "side", "limitPx", "sz", "oid", "timestamp", "origSz", "cloid", "reduceOnly"] as const

/**
 * Returns an order in the form of `openOrders` and `orderUpdates`. This form has fewer members, and omits members that
 * are `null` or `false`.
 */
export const briefOrder = (order: unknown): { readonly [member: string]: unknown } =>
  Object.fromEntries(briefMembers.flatMap((member) => {
    const value = Predicate.hasProperty(order, member) ? order[member] : undefined
    return value === undefined || value === null || value === false ? [] : [[member, value] as const]
  }))

/** An order with additional members for user interfaces. */
export const Order = openStruct({
  ...order,
  origSz: DecimalString,
  reduceOnly: Schema.Boolean,
  orderType: Schema.String.annotate({ description: "`Limit`, `Market`, `Stop Market`, `Take Profit Limit`, …" }),
  tif: nullish(Schema.String),
  isTrigger: Schema.Boolean,
  triggerPx: DecimalString,
  triggerCondition: Schema.String,
  isPositionTpsl: Schema.Boolean,
  children: Schema.Array(Schema.Unknown)
}).annotate({ identifier: "Order" })
export type Order = typeof Order.Type

/** An order and its status: `open`, `filled`, `canceled`, `marginCanceled`, `iocCancelRejected`, … */
export const OrderRecord = openStruct({ order: Order, status: Schema.String, statusTimestamp: Millis }).annotate({
  identifier: "OrderRecord"
})
export type OrderRecord = typeof OrderRecord.Type

/** An order as sent by the subscription `orderUpdates`. */
export const OrderUpdate = openStruct({
  order: openStruct({ ...order, origSz: DecimalString }),
  status: Schema.String,
  statusTimestamp: Millis
}).annotate({ identifier: "OrderUpdate" })
export type OrderUpdate = typeof OrderUpdate.Type

/** The response of `orderStatus`: an order, or the report that the requested ID is unknown. */
export const OrderStatus = Schema.Union([
  openStruct({ status: Schema.Literal("order"), order: OrderRecord }),
  openStruct({ status: Schema.Literal("unknownOid") })
]).annotate({ identifier: "OrderStatus" })
export type OrderStatus = typeof OrderStatus.Type

/** One fill of an order. Partial fills share `oid`; fills of one transaction share `hash`. */
export const Fill = openStruct({
  coin: Schema.String,
  px: DecimalString,
  sz: DecimalString,
  side: Side,
  time: Millis,
  startPosition: DecimalString,
  dir: Schema.String.annotate({ description: "`Open Long`, `Close Short`, `Buy`, …" }),
  closedPnl: DecimalString,
  hash: Hash,
  oid: Schema.Natural,
  crossed: Schema.Boolean.annotate({ description: "Whether the order took liquidity" }),
  fee: DecimalString,
  tid: nullish(Schema.Natural),
  feeToken: nullish(Schema.String),
  cloid: nullish(Schema.String),
  twapId: nullish(Schema.Natural)
}).annotate({ identifier: "Fill" })
export type Fill = typeof Fill.Type
