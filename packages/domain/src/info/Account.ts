/** Accounts of the trading chain: positions and balances, roles, limits, fees and API wallets. */
import * as Schema from "effect/Schema"
import { DecimalString } from "../candles/Candle.ts"
import { Address } from "../encoding/Hex.ts"
import { nullish, openStruct } from "../encoding/OpenStruct.ts"
import { Millis } from "../Time.ts"

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
