/**
 * The markets of the venue: perpetuals, spot tokens and pairs, outcomes of prediction markets, and the asset
 * numbers used in orders.
 *
 * Indexes are not array positions, names are not unique, and a pair may refer to an unlisted token, so every lookup
 * returns an `Option` or an array.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { DecimalString } from "../candles/Candle.ts"
import { Address, Hash, Millis, nullish, openStruct } from "../encoding/Encoding.ts"
import { UnknownAsset } from "../errors/GatewayError.ts"
import { closestWord } from "../errors/Problem.ts"

/** The ERC-20 contract to which a spot token is linked. The venue names one field in snake_case. */
export const EvmContract = openStruct({
  address: Address,
  evm_extra_wei_decimals: Schema.Int.annotate({
    description: "EVM decimals minus weiDecimals; can be negative"
  })
}).annotate({ identifier: "EvmContract" })

/** A spot token. `index` identifies it in pairs and is not contiguous; `tokenId` is its only unique key. */
export const SpotToken = openStruct({
  name: Schema.String,
  szDecimals: Schema.Int.annotate({ description: "Decimals of an order size" }),
  weiDecimals: Schema.Int.annotate({ description: "Decimals of the token's smallest unit (wei)" }),
  index: Schema.Natural,
  tokenId: Schema.String.check(Schema.isPattern(/^0x[0-9a-fA-F]{32}$/u)),
  isCanonical: Schema.Boolean,
  evmContract: nullish(EvmContract),
  fullName: nullish(Schema.String),
  deployerTradingFeeShare: nullish(Schema.String)
}).annotate({ identifier: "SpotToken" })
export type SpotToken = typeof SpotToken.Type

/** A spot pair: `name` is `<BASE>/<QUOTE>` or `@<index>`; `index` is not contiguous, so it is not an array position. */
export const SpotPair = openStruct({
  name: Schema.String,
  tokens: Schema.Tuple([Schema.Natural, Schema.Natural]).annotate({ description: "Token indexes: base, quote" }),
  index: Schema.Natural,
  isCanonical: Schema.Boolean
}).annotate({ identifier: "SpotPair" })
export type SpotPair = typeof SpotPair.Type

/** All spot pairs and tokens; preserves unknown fields. */
export const SpotMeta = openStruct({ universe: Schema.Array(SpotPair), tokens: Schema.Array(SpotToken) }).annotate({
  identifier: "SpotMeta"
})
export type SpotMeta = typeof SpotMeta.Type

/** The two tokens of a pair; `None` for a token that is not listed. */
export interface PairTokens {
  readonly base: Option.Option<SpotToken>
  readonly quote: Option.Option<SpotToken>
}

/** Lookups over one `spotMeta` response. */
export interface SpotLookup {
  readonly pair: (index: number) => Option.Option<SpotPair>
  readonly pairsByName: (name: string) => ReadonlyArray<SpotPair>
  /** Returns the pairs that have the token as base or quote, in the order of the response. */
  readonly pairsWith: (tokenIndex: number) => ReadonlyArray<SpotPair>
  readonly token: (index: number) => Option.Option<SpotToken>
  readonly tokensByName: (name: string) => ReadonlyArray<SpotToken>
  /** Returns a token by `tokenId`, its only unique key, in any letter case. */
  readonly tokenById: (tokenId: string) => Option.Option<SpotToken>
  readonly tokensOf: (pair: SpotPair) => PairTokens
}

/**
 * Indexes a `spotMeta` response, so that each lookup takes constant time. If several tokens or pairs have the same
 * index or ID, the lookup returns the first.
 */
export const make = (meta: SpotMeta): SpotLookup => {
  const pairs = Map.groupBy(meta.universe, (pair) => pair.index)
  const pairNames = Map.groupBy(meta.universe, (pair) => pair.name)
  const pairTokens = Map.groupBy(
    meta.universe.flatMap((pair) => Array.from(new Set(pair.tokens), (token) => ({ token, pair }))),
    ({ token }) => token
  )
  const tokens = Map.groupBy(meta.tokens, (token) => token.index)
  const tokenNames = Map.groupBy(meta.tokens, (token) => token.name)
  const tokenIds = Map.groupBy(meta.tokens, (token) => token.tokenId.toLowerCase())
  const token = (index: number) => Option.fromUndefinedOr(tokens.get(index)?.[0])
  return {
    pair: (index) => Option.fromUndefinedOr(pairs.get(index)?.[0]),
    pairsByName: (name) => pairNames.get(name) ?? [],
    pairsWith: (tokenIndex) => pairTokens.get(tokenIndex)?.map(({ pair }) => pair) ?? [],
    token,
    tokensByName: (name) => tokenNames.get(name) ?? [],
    tokenById: (tokenId) => Option.fromUndefinedOr(tokenIds.get(tokenId.toLowerCase())?.[0]),
    tokensOf: ({ tokens: [base, quote] }) => ({ base: token(base), quote: token(quote) })
  }
}

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
  venue: nullish(Schema.String),
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

/** An account that deploys outcomes, the name of its venue, and the accounts that can send an operation for it. */
const OutcomeDeployer = openStruct({
  deployer: Address,
  venue: Schema.String,
  subDeployers: nullish(Schema.Array(Schema.Tuple([Schema.String, Schema.Array(Address)])))
})

/** The outcomes that can be traded, the questions to which they belong, and their deployers. */
export const OutcomeMeta = openStruct({
  outcomes: Schema.Array(OutcomeSpec),
  questions: nullish(Schema.Array(QuestionSpec)),
  deployers: nullish(Schema.Array(OutcomeDeployer))
}).annotate({ identifier: "OutcomeMeta" })
export type OutcomeMeta = typeof OutcomeMeta.Type

/** The sides of an outcome. */
const sides = [0, 1] as const

/** Returns the coins of an outcome's sides: `#` and ten times the outcome's number plus the side's number. */
export const outcomeCoins = ({ outcome }: Pick<OutcomeSpec, "outcome">): ReadonlyArray<string> =>
  sides.map((side) => `#${10 * outcome + side}`)

/** An asset that can be traded. */
export interface Asset {
  /**
   * The asset number: a perpetual's index, 10000 + a spot pair's index, 100000 + 10000 x dex + index for a perpetual of
   * a builder-deployed dex, or 100000000 + the number in an outcome's coin.
   */
  readonly id: number
  /** The venue's name of the asset: `BTC`, `PURR/USDC`, `@107`, `dex:COIN`, `#50`. */
  readonly coin: string
  /** Decimal places of an order size. */
  readonly szDecimals: number
  /** The market whose price steps apply. The sides of outcomes have those of spot pairs. */
  readonly market: "perp" | "spot"
}

const firstSpot = 10_000
const firstBuilderDex = 100_000
const idsPerDex = 10_000
const firstOutcome = 100_000_000

/** Returns whether a name identifies the side of an outcome: `#` and a number. */
export const isOutcome = (coin: string): boolean => coin.startsWith("#")

/** Returns whether a name identifies a spot pair: `BASE/QUOTE`, or `@` and an index. */
export const isSpot = (coin: string): boolean => coin.includes("/") || coin.startsWith("@")

/** Returns the builder-deployed dex in a perpetual's name; empty for the venue's own dex. */
export const parseDex = (coin: string): string => coin.slice(0, Math.max(0, coin.indexOf(":")))

/** Returns the error for an unlisted coin, with the most similar listed name. */
export const unknownAsset = (coin: string, listed: Iterable<string>): UnknownAsset => {
  const meant = closestWord(coin, listed)
  const hint = meant === undefined ? "" : `: did you mean ${JSON.stringify(meant)}?`
  return new UnknownAsset({ coin, detail: `Unknown coin ${JSON.stringify(coin)}${hint}` })
}

/** Returns the error for a coin of an unlisted dex, with the most similar dex; `undefined` if the dex is listed. */
export const unknownDex = (coin: string, dexes: ReadonlyArray<PerpDex | null>): UnknownAsset | undefined => {
  const dex = parseDex(coin)
  const listed = dexes.flatMap((each) => each?.name ?? [])
  if (dex === "" || listed.includes(dex)) return undefined
  const meant = closestWord(dex, listed)
  const hint = meant === undefined ? "" : `: did you mean ${JSON.stringify(`${meant}:${coin.slice(dex.length + 1)}`)}?`
  return new UnknownAsset({ coin, detail: `Unknown dex ${JSON.stringify(dex)} in coin ${JSON.stringify(coin)}${hint}` })
}

/** Returns a perpetual by its name, from the perpetuals of a dex and the list of dexes. */
export const perpetual = (
  { universe }: Meta,
  dexes: ReadonlyArray<PerpDex | null>,
  coin: string
): Option.Option<Asset> => {
  const dex = parseDex(coin)
  const dexIndex = dex === "" ? 0 : dexes.findIndex((listed) => listed?.name === dex)
  const index = universe.findIndex(({ name }) => name === coin)
  const found = universe[index]
  if (found === undefined || dexIndex < 0) return Option.none()
  const first = dexIndex === 0 ? 0 : firstBuilderDex + dexIndex * idsPerDex
  return Option.some({ id: first + index, coin, szDecimals: found.szDecimals, market: "perp" })
}

const pairNames = (meta: SpotMeta): ReadonlyArray<readonly [name: string, pair: SpotMeta["universe"][number]]> => {
  const lookup = make(meta)
  return meta.universe.flatMap((pair) => {
    const { base, quote } = lookup.tokensOf(pair)
    const both = Option.all([base, quote])
    return [
      [pair.name, pair] as const,
      ...Option.match(both, {
        onNone: () => [],
        onSome: ([{ name: baseName }, { name: quoteName }]) => [[`${baseName}/${quoteName}`, pair] as const]
      })
    ]
  })
}

/** Returns all names under which {@link spot} finds a pair. */
export const spotNames = (meta: SpotMeta): ReadonlyArray<string> => pairNames(meta).map(([name]) => name)

/** Returns a spot pair by the venue's name, or by the names of its tokens (`HYPE/USDC`) if only one pair has them. */
export const spot = (meta: SpotMeta, coin: string): Option.Option<Asset> => {
  const found = new Set(pairNames(meta).filter(([name]) => name === coin).map(([, pair]) => pair))
  const exact = [...found].find(({ name }) => name === coin)
  const [pair] = exact === undefined ? found : [exact]
  if (pair === undefined || (exact === undefined && found.size > 1)) return Option.none()
  return Option.map(make(meta).tokensOf(pair).base, ({ szDecimals }): Asset => ({
    id: firstSpot + pair.index,
    coin: pair.name,
    szDecimals,
    market: "spot"
  }))
}

/** Returns the side of a listed outcome by its coin. Its orders have whole sizes. */
export const outcome = ({ outcomes }: OutcomeMeta, coin: string): Option.Option<Asset> =>
  outcomes.some((listed) => outcomeCoins(listed).includes(coin))
    ? Option.some({ id: firstOutcome + Number(coin.slice(1)), coin, szDecimals: 0, market: "spot" })
    : Option.none()

/** The queries of {@link findAsset}. */
export interface AssetQueries<E = never, R = never> {
  readonly meta: (request: { readonly dex?: string }) => Effect.Effect<Meta, E, R>
  readonly outcomeMeta: () => Effect.Effect<OutcomeMeta, E, R>
  readonly perpDexs: () => Effect.Effect<ReadonlyArray<PerpDex | null>, E, R>
  readonly spotMeta: () => Effect.Effect<SpotMeta, E, R>
}

/** Finds an asset by its coin name. Fails with `UnknownAsset`, which suggests the most similar coin. */
export const findAsset = Effect.fnUntraced(function*<E, R>(
  { meta, outcomeMeta, perpDexs, spotMeta }: AssetQueries<E, R>,
  coin: string
): Effect.fn.Return<Asset, E | UnknownAsset, R> {
  if (isSpot(coin)) {
    const listed = yield* spotMeta()
    return yield* Effect.fromOption(spot(listed, coin), () => unknownAsset(coin, spotNames(listed)))
  }
  if (isOutcome(coin)) {
    const listed = yield* outcomeMeta()
    return yield* Effect.fromOption(
      outcome(listed, coin),
      () => unknownAsset(coin, listed.outcomes.flatMap(outcomeCoins))
    )
  }
  const dex = parseDex(coin)
  const dexes = dex === "" ? [] : yield* perpDexs()
  const unlisted = unknownDex(coin, dexes)
  if (unlisted !== undefined) return yield* unlisted
  const listed = yield* meta(dex === "" ? {} : { dex })
  return yield* Effect.fromOption(
    perpetual(listed, dexes, coin),
    () => unknownAsset(coin, listed.universe.map(({ name }) => name))
  )
})
