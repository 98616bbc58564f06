/**
 * Perpetuals of the trading chain: listings, prices, books, trades and funding; and the outcomes of prediction markets.
 * Spot pairs are in `SpotMeta`.
 */
import * as Schema from "effect/Schema"
import { DecimalString } from "../candles/Candle.ts"
import { Address, Hash } from "../encoding/Hex.ts"
import { nullish, openStruct } from "../encoding/OpenStruct.ts"
import { Millis } from "../Time.ts"

/** A perpetual. On the venue's own dex, its position in the list of perpetuals is its asset number in orders. */
export const Perpetual = openStruct({
  name: Schema.String,
  szDecimals: Schema.Natural.annotate({ description: "Decimals of an order size" }),
  maxLeverage: Schema.Natural,
  marginTableId: nullish(Schema.Natural),
  onlyIsolated: nullish(Schema.Boolean),
  isDelisted: nullish(Schema.Boolean),
  marginMode: nullish(Schema.String.annotate({ description: "`strictIsolated` or `noCross`" })),
  growthMode: nullish(Schema.String),
  lastGrowthModeChangeTime: nullish(Schema.String)
}).annotate({ identifier: "Perpetual" })
export type Perpetual = typeof Perpetual.Type

/** The maximum leverage by position size. */
export const MarginTable = openStruct({
  description: Schema.String,
  marginTiers: Schema.Array(openStruct({ lowerBound: DecimalString, maxLeverage: Schema.Natural }))
}).annotate({ identifier: "MarginTable" })

/** The perpetuals of a dex. */
export const Meta = openStruct({
  universe: Schema.Array(Perpetual),
  marginTables: nullish(Schema.Array(Schema.Tuple([Schema.Natural, MarginTable]))),
  collateralToken: nullish(
    Schema.Natural.annotate({ description: "Index of the spot token that is the dex's collateral" })
  )
}).annotate({ identifier: "Meta" })
export type Meta = typeof Meta.Type

/** The perpetuals of all dexes, in the order of the query `perpDexs`. */
export const AllPerpetualMetas = Schema.Array(Meta)

/** Prices of a perpetual; a price that is derived from the order book is absent or `null` if the book is empty. */
export const AssetContext = openStruct({
  funding: DecimalString.annotateKey({ description: "Funding rate of the current hour" }),
  openInterest: DecimalString,
  prevDayPx: DecimalString,
  dayNtlVlm: DecimalString.annotateKey({ description: "Volume of 24 hours, in USD" }),
  dayBaseVlm: nullish(DecimalString),
  premium: nullish(DecimalString),
  oraclePx: DecimalString,
  markPx: DecimalString,
  midPx: nullish(DecimalString),
  impactPxs: nullish(Schema.Array(DecimalString))
}).annotate({ identifier: "AssetContext" })
export type AssetContext = typeof AssetContext.Type

/** The perpetuals of a dex, and their prices in the same order. */
export const MetaAndAssetContexts = Schema.Tuple([Meta, Schema.Array(AssetContext)])
export type MetaAndAssetContexts = typeof MetaAndAssetContexts.Type

/** Mid prices by coin: perpetuals by name, spot pairs as `@107` or `PURR/USDC`. */
export const AllMids = Schema.Record(Schema.String, DecimalString).annotate({ identifier: "AllMids" })
export type AllMids = typeof AllMids.Type

/** One price level of a book: the total size of its orders, and the number of orders. */
export const BookLevel = openStruct({ px: DecimalString, sz: DecimalString, n: Schema.Natural }).annotate({
  identifier: "BookLevel"
})
export type BookLevel = typeof BookLevel.Type

/** The order book of a coin: bids, then asks, best price first. */
export const Book = openStruct({
  coin: Schema.String,
  time: Millis,
  levels: Schema.Tuple([Schema.Array(BookLevel), Schema.Array(BookLevel)])
}).annotate({ identifier: "Book" })
export type Book = typeof Book.Type

/** The side of an order, or of the taker of a trade: `B` is a buy (bid), `A` a sell (ask). */
export const Side = Schema.Literals(["A", "B"]).annotate({ identifier: "Side" })
export type Side = typeof Side.Type

/** One trade. */
export const Trade = openStruct({
  coin: Schema.String,
  side: Side,
  px: DecimalString,
  sz: DecimalString,
  time: Millis,
  hash: Hash,
  tid: Schema.Natural.annotate({ description: "Trade id" }),
  users: nullish(Schema.Array(Address).annotate({ description: "Buyer, seller" }))
}).annotate({ identifier: "Trade" })
export type Trade = typeof Trade.Type

/** The funding rate of one hour. */
export const FundingRate = openStruct({
  coin: Schema.String,
  fundingRate: DecimalString,
  premium: DecimalString,
  time: Millis
}).annotate({ identifier: "FundingRate" })
export type FundingRate = typeof FundingRate.Type

/** A builder-deployed dex of perpetuals. */
export const PerpDex = openStruct({
  name: Schema.String,
  fullName: Schema.String,
  deployer: Address,
  oracleUpdater: nullish(Address),
  feeRecipient: nullish(Address),
  assetToStreamingOiCap: nullish(Schema.Array(Schema.Tuple([Schema.String, DecimalString]))),
  subDeployers: nullish(Schema.Array(Schema.Tuple([Schema.String, Schema.Array(Address)]))),
  deployerFeeScale: nullish(DecimalString),
  lastDeployerFeeScaleChangeTime: nullish(Schema.String),
  assetToFundingMultiplier: nullish(Schema.Array(Schema.Tuple([Schema.String, DecimalString]))),
  assetToFundingInterestRate: nullish(Schema.Array(Schema.Tuple([Schema.String, DecimalString])))
}).annotate({ identifier: "PerpDex" })
export type PerpDex = typeof PerpDex.Type

/**
 * An outcome of a prediction market. `sideSpecs` names its sides in the order of their numbers, 0 and 1. In an outcome
 * made from a template, a side's name is a reference such as `template:Over`, which the query `outcomeTemplates`
 * resolves; it does not say which side pays if the answer is yes.
 */
export const OutcomeSpec = openStruct({
  outcome: Schema.Natural,
  name: Schema.String,
  description: Schema.String,
  sideSpecs: Schema.Array(openStruct({ name: Schema.String, token: nullish(Schema.Natural) })),
  quoteToken: nullish(Schema.String),
  deployer: nullish(Address),
  deployerFeeScale: nullish(DecimalString)
}).annotate({ identifier: "OutcomeSpec" })
export type OutcomeSpec = typeof OutcomeSpec.Type

/** A question: its named outcomes, and the outcome that occurs if none of them does. */
export const QuestionSpec = openStruct({
  question: Schema.Natural,
  name: Schema.String,
  description: Schema.String,
  fallbackOutcome: Schema.Natural,
  namedOutcomes: Schema.Array(Schema.Natural),
  settledNamedOutcomes: nullish(Schema.Array(Schema.Natural))
}).annotate({ identifier: "QuestionSpec" })

/** The outcomes that can be traded, and the questions to which they belong. */
export const OutcomeMeta = openStruct({
  outcomes: Schema.Array(OutcomeSpec),
  questions: nullish(Schema.Array(QuestionSpec))
}).annotate({ identifier: "OutcomeMeta" })
export type OutcomeMeta = typeof OutcomeMeta.Type

/** The sides of an outcome. */
const sides = [0, 1] as const

/** Returns the coins of an outcome's sides: `#` and ten times the outcome's number plus the side's number. */
export const outcomeCoins = ({ outcome }: Pick<OutcomeSpec, "outcome">): ReadonlyArray<string> =>
  sides.map((side) => `#${10 * outcome + side}`)
