/** Accounts of the venue: positions and balances, orders and fills, roles, limits, fees and API wallets. */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { OrderId } from "../actions/ActionOutcome.ts"
import { DecimalString } from "../candles/Candle.ts"
import { Address, Hash, Millis, nullish, openStruct } from "../encoding/Encoding.ts"
import { Side } from "./Market.ts"

const order = {
  coin: Schema.String,
  side: Side,
  limitPx: DecimalString,
  sz: DecimalString.annotateKey({ description: "Size that is not filled yet" }),
  oid: OrderId,
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
  oid: OrderId,
  crossed: Schema.Boolean.annotate({ description: "Whether the order took liquidity" }),
  fee: DecimalString,
  tid: nullish(Schema.Natural),
  feeToken: nullish(Schema.String),
  cloid: nullish(Schema.String),
  twapId: nullish(Schema.Natural)
}).annotate({ identifier: "Fill" })
export type Fill = typeof Fill.Type

/** Totals of an account's positions, in USD. */
export const MarginSummary = openStruct({
  accountValue: DecimalString,
  totalNtlPos: DecimalString,
  totalRawUsd: DecimalString,
  totalMarginUsed: DecimalString
}).annotate({ identifier: "MarginSummary" })

/** A position in one perpetual. `szi` is its size, negative for a short position. */
export const Position = openStruct({
  coin: Schema.String,
  szi: DecimalString,
  leverage: openStruct({ type: Schema.String, value: Schema.Natural }),
  entryPx: nullish(DecimalString),
  positionValue: DecimalString,
  unrealizedPnl: DecimalString,
  // text, because the ratio is not a number if the margin is zero
  returnOnEquity: Schema.String,
  liquidationPx: nullish(DecimalString),
  marginUsed: DecimalString,
  maxLeverage: nullish(Schema.Natural)
}).annotate({ identifier: "Position" })
export type Position = typeof Position.Type

/** Margin and positions of a user in the perpetuals of a dex. */
export const ClearinghouseState = openStruct({
  marginSummary: MarginSummary,
  crossMarginSummary: MarginSummary,
  crossMaintenanceMarginUsed: nullish(DecimalString),
  withdrawable: DecimalString,
  assetPositions: Schema.Array(openStruct({ type: Schema.String, position: Position })),
  time: nullish(Millis)
}).annotate({ identifier: "ClearinghouseState" })
export type ClearinghouseState = typeof ClearinghouseState.Type

/**
 * A balance of a spot token; `hold` is the part reserved for open orders. The balance of an outcome's side has no
 * `token`: its `coin` is `+` and the number in the side's coin, or `o` and the outcome's number after settlement.
 */
export const SpotBalance = openStruct({
  coin: Schema.String,
  token: nullish(Schema.Natural),
  total: DecimalString,
  hold: DecimalString,
  entryNtl: nullish(DecimalString)
}).annotate({ identifier: "SpotBalance" })

/** Spot balances of a user. */
export const SpotClearinghouseState = openStruct({ balances: Schema.Array(SpotBalance) }).annotate({
  identifier: "SpotClearinghouseState"
})
export type SpotClearinghouseState = typeof SpotClearinghouseState.Type

/** The role of an address: `user`, `agent` (of `data.user`), `vault`, `subAccount` (of `data.master`) or `missing`. */
export const UserRole = openStruct({
  role: Schema.String,
  data: nullish(openStruct({ user: nullish(Address), master: nullish(Address) }))
}).annotate({ identifier: "UserRole" })
export type UserRole = typeof UserRole.Type

/** The number of actions that a user has sent, and the maximum for this user. */
export const UserRateLimit = openStruct({
  cumVlm: DecimalString.annotateKey({ description: "Traded volume, in USD" }),
  nRequestsUsed: Schema.Natural,
  nRequestsCap: Schema.Natural,
  nRequestsSurplus: nullish(Schema.Natural)
}).annotate({ identifier: "UserRateLimit" })
export type UserRateLimit = typeof UserRateLimit.Type

const rates = { cross: DecimalString, add: DecimalString }
const spotRates = { spotCross: nullish(DecimalString), spotAdd: nullish(DecimalString) }

/** Fee rates for takers (`cross`) and makers (`add`), by traded volume. */
export const FeeSchedule = openStruct({
  ...rates,
  ...spotRates,
  tiers: openStruct({
    vip: Schema.Array(openStruct({ ntlCutoff: DecimalString, ...rates, ...spotRates })),
    mm: Schema.Array(openStruct({ makerFractionCutoff: DecimalString, add: DecimalString }))
  }),
  referralDiscount: DecimalString,
  stakingDiscountTiers: nullish(
    Schema.Array(openStruct({ bpsOfMaxSupply: DecimalString, discount: DecimalString }))
  )
}).annotate({ identifier: "FeeSchedule" })

/** Fee rates of a user, and the volumes that determine them. */
export const UserFees = openStruct({
  dailyUserVlm: Schema.Array(
    openStruct({ date: Schema.String, userCross: DecimalString, userAdd: DecimalString, exchange: DecimalString })
  ),
  feeSchedule: FeeSchedule,
  userCrossRate: DecimalString,
  userAddRate: DecimalString,
  userSpotCrossRate: nullish(DecimalString),
  userSpotAddRate: nullish(DecimalString),
  activeReferralDiscount: DecimalString
}).annotate({ identifier: "UserFees" })
export type UserFees = typeof UserFees.Type

/** A named API wallet. */
export const ExtraAgent = openStruct({ name: Schema.String, address: Address, validUntil: Millis }).annotate({
  identifier: "ExtraAgent"
})
export type ExtraAgent = typeof ExtraAgent.Type
