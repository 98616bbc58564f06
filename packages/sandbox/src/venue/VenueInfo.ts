/** The venue's `POST /info`: decodes a query, and serves it from the venue's markets and accounts. */
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import type * as UpstreamResponse from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as StrictDecoder from "../internal/StrictDecoder.ts"
import * as AccountReads from "./AccountReads.ts"
import { type CandleMarket, findMarket } from "./Assets.ts"
import { deployerLimits } from "./OutcomeActions.ts"
import * as Outcomes from "./Outcomes.ts"
import * as Reserves from "./Reserves.ts"
import { deployStates } from "./SpotDeployers.ts"
import { findAccount } from "./TradingState.ts"
import { vaultDetails, vaultSummaries } from "./Transfers.ts"
import { validatorSummaries } from "./Validators.ts"
import { withDeployed } from "./Venue.ts"
import * as VenueAccounts from "./VenueAccounts.ts"
import * as VenueMarkets from "./VenueMarkets.ts"
import * as VenueState from "./VenueState.ts"

/** The handlers of the queries that have a response schema, by query type. */
const typed = {
  ...VenueAccounts.tradingAnswers,
  spotMeta: VenueState.on(infoOperations.spotMeta, ({ spotMeta }) => spotMeta),
  candleSnapshot: VenueState.on(infoOperations.candleSnapshot, ({ markets, now, trading }, window) => {
    const market = findMarket(markets, window.coin) ?? Outcomes.findMarket(trading, window.coin)
    return market === undefined ? undefined : AccountReads.bars(trading, market, window, now)
  }),
  meta: VenueState.on(infoOperations.meta, (view, { dex }) => VenueMarkets.meta(view, dex ?? "")),
  allPerpMetas: VenueState.on(infoOperations.allPerpMetas, VenueMarkets.allMetas),
  outcomeMeta: VenueState.on(infoOperations.outcomeMeta, ({ trading }) => Outcomes.meta(trading)),
  metaAndAssetCtxs: VenueState.on(
    infoOperations.metaAndAssetCtxs,
    (view, { dex }) => VenueMarkets.metaAndContexts(view, dex ?? "")
  ),
  perpDexs: VenueState.on(infoOperations.perpDexs, VenueMarkets.perpDexs),
  allMids: VenueState.on(infoOperations.allMids, (view, { dex }) => VenueMarkets.allMids(view, dex ?? "")),
  l2Book: VenueState.on(
    infoOperations.l2Book,
    (view, { coin, mantissa, nSigFigs }) =>
      VenueMarkets.l2Book(
        view,
        coin,
        nSigFigs === undefined || nSigFigs === null ? undefined : { nSigFigs, mantissa: mantissa ?? 1 }
      ),
    ({ mantissa = null, nSigFigs = null }) =>
      (nSigFigs === null || nSigFigs >= 2 && nSigFigs <= 5) &&
      (mantissa === null || nSigFigs === 5 && (mantissa === 2 || mantissa === 5))
  ),
  recentTrades: VenueState.on(infoOperations.recentTrades, (view, { coin }) => VenueMarkets.recentTrades(view, coin)),
  fundingHistory: VenueState.on(
    infoOperations.fundingHistory,
    (view, { coin, endTime, startTime }) =>
      VenueMarkets.fundingHistory(view, coin, Number(startTime), Number(endTime ?? view.now))
  )
} satisfies { readonly [Name in keyof typeof infoOperations]: VenueState.QueryHandler }

const typedAnswers: ReadonlyMap<string, VenueState.QueryHandler> = new Map(Object.entries(typed))

const nothing = (): ReadonlyArray<never> => []

/** Functions that make the responses to the queries without parameters and without a response schema. */
const answers = {
  spotMetaAndAssetCtxs: VenueMarkets.spotMetaAndContexts,
  exchangeStatus: ({ now }: VenueState.InfoView) => ({ time: now, specialStatuses: null }),
  perpDeployAuctionStatus: Reserves.deployAuction,
  predictedFundings: VenueMarkets.predictedFundings,
  validatorSummaries: ({ venue }: VenueState.InfoView) => validatorSummaries(venue),
  vaultSummaries: ({ trading }: VenueState.InfoView) => vaultSummaries(trading),
  allBorrowLendReserveStates: ({ trading }: VenueState.InfoView) => Reserves.lendingReserves(trading.state),
  gossipPriorityAuctionStatus: Reserves.gossipAuctions,
  outcomeTemplates: () => Outcomes.templates,
  maxMarketOrderNtls: () => VenueMarkets.marketOrderLimits,
  spotPairDeployAuctionStatus: ({ trading }: VenueState.InfoView) => Reserves.spotDeployAuction(trading),
  usdcRouting: () => ({ depositRoute: "bridge", withdrawalRoute: "bridge" }),
  // these lists are empty, because the sandbox plays nothing that would be in them
  gossipRootIps: nothing,
  liquidatable: nothing,
  perpCategories: nothing,
  perpConciseAnnotations: nothing,
  validatorL1Votes: nothing
} satisfies { readonly [type: string]: (view: VenueState.InfoView) => unknown }

const answeredTypes = Object.keys(answers).filter((type): type is keyof typeof answers => Object.hasOwn(answers, type))

/**
 * The known queries that the sandbox does not support, by topic. The responses to these queries and the documentation
 * name the topic.
 */
export const unplayedQueries: { readonly [topic: string]: ReadonlyArray<string> } = {
  "quote tokens, which the venue no longer serves": ["alignedQuoteTokenInfo"],
  "testnet alone": ["userStarState"]
}

const topics = new Map(
  Object.entries(unplayedQueries).flatMap(([topic, types]) => types.map((type) => [type, topic] as const))
)

/** The queries about markets that have no response schema. */
export const PassthroughRead = Schema.Union([
  Schema.Struct({ type: Schema.Literals(answeredTypes) }),
  Schema.Struct({ type: Schema.Literal("perpAnnotation"), coin: Schema.String }),
  Schema.Struct({ type: Schema.Literal("borrowLendReserveState"), token: Schema.Natural }),
  Schema.Struct({ type: Schema.Literal("outcomeDeployerLimits"), venue: Schema.String }),
  Schema.Struct({ type: Schema.Literal("settledOutcome"), outcome: Schema.Natural }),
  Schema.Struct({ type: Schema.Literal("spotDeployState"), user: Encoding.Address }),
  Schema.Struct({ type: Schema.Literal("tokenDetails"), tokenId: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("marginTable"),
    id: Schema.Natural,
    dex: Schema.optionalKey(Schema.NullOr(Schema.String))
  }),
  Schema.Struct({ type: Schema.Literals(["perpDexLimits", "perpDexStatus"]), dex: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("perpsAtOpenInterestCap"),
    dex: Schema.optionalKey(Schema.NullOr(Schema.String))
  }),
  Schema.Struct({
    type: Schema.Literal("batchClearinghouseStates"),
    users: Schema.Array(Encoding.Address),
    dex: Schema.optionalKey(Schema.NullOr(Schema.String))
  }),
  Schema.Struct({
    type: Schema.Literal("vaultDetails"),
    vaultAddress: Encoding.Address,
    user: Schema.optionalKey(Schema.NullOr(Encoding.Address))
  }),
  Schema.Struct({ type: Schema.Literal("webData2"), user: Encoding.Address }),
  Schema.Struct({ type: Schema.Literal("activeAssetData"), user: Encoding.Address, coin: Schema.String })
])

const decodePassthrough = StrictDecoder.make(PassthroughRead)
const decodeAccount = StrictDecoder.make(VenueAccounts.AccountRead)
const hasType = Schema.is(Schema.Struct({ type: Schema.String }))

const collectTypes = (
  members: ReadonlyArray<
    { readonly fields: { readonly type: { readonly literals: ReadonlyArray<string> } | { readonly literal: string } } }
  >
) => new Set(members.flatMap(({ fields: { type } }) => "literals" in type ? type.literals : [type.literal]))

const passthroughTypes = collectTypes(PassthroughRead.members)
const accountTypes = collectTypes(VenueAccounts.AccountRead.members)

const passthroughAnswer = (listing: VenueState.InfoView, read: typeof PassthroughRead.Type): unknown => {
  switch (read.type) {
    case "perpDexLimits":
      return VenueMarkets.perpDexLimits(listing, read.dex)
    case "perpDexStatus":
      return VenueMarkets.perpDexStatus(listing, read.dex)
    case "perpsAtOpenInterestCap":
      return VenueMarkets.cappedCoins(listing, read.dex ?? "")
    case "perpAnnotation":
      return findMarket(listing.markets, read.coin) === undefined ? undefined : null
    case "borrowLendReserveState":
      return Reserves.lendingReserve(listing.trading.state, read.token)
    case "outcomeDeployerLimits":
      return deployerLimits(listing.trading, read.venue)
    case "settledOutcome":
      return Outcomes.settledOutcome(listing.trading, read.outcome)
    case "spotDeployState":
      return {
        states: deployStates(listing.trading, read.user),
        gasAuction: Reserves.spotDeployAuction(listing.trading)
      }
    case "tokenDetails":
      return VenueMarkets.tokenDetails(listing, read.tokenId)
    case "batchClearinghouseStates":
      return read.users.map((user) =>
        AccountReads.clearinghouseState(
          listing.trading,
          findAccount(listing.trading.state, user),
          read.dex ?? ""
        )
      )
    case "vaultDetails":
      return vaultDetails(
        listing.trading,
        Encoding.lowerCase(read.vaultAddress),
        read.user === undefined || read.user === null ? undefined : Encoding.lowerCase(read.user)
      )
    case "webData2":
      return VenueAccounts.webData2(listing, read.user)
    case "marginTable":
      return VenueMarkets.meta(listing, read.dex ?? "")?.marginTables?.find(([id]) => id === read.id)?.[1]
    case "activeAssetData":
      return AccountReads.activeAssetData(listing.trading, findAccount(listing.trading.state, read.user), read.coin)
    default:
      return answers[read.type](listing)
  }
}

/** The section of the documentation that lists {@link unplayedQueries}. */
const section = "docs/sandbox.md#what-it-does-not-support"

/** Returns the response to a query without a response schema. The error names a query that the sandbox does not support. */
const untyped = (view: VenueState.InfoView, type: string, body: unknown): UpstreamResponse.UpstreamResponse => {
  const refuse = (unread: StrictDecoder.Unread) => VenueState.wrongShape(StrictDecoder.formatUnread(unread, type))
  if (passthroughTypes.has(type)) {
    return Result.match(decodePassthrough(body), {
      onFailure: refuse,
      onSuccess: (read) => VenueState.known(passthroughAnswer(view, read))
    })
  }
  if (accountTypes.has(type)) {
    return Result.match(decodeAccount(body), {
      onFailure: refuse,
      onSuccess: (read) => VenueState.known(VenueAccounts.answer(view.venue, view.trading, read, view.now))
    })
  }
  const topic = topics.get(type)
  const about = topic === undefined ? "" : ` (${topic})`
  return VenueState.wrongShape(`: the sandbox does not support ${JSON.stringify(type)}${about}, see ${section}`)
}

/** The query types that the sandbox supports. */
export const playedQueries: ReadonlySet<string> = new Set([
  ...typedAnswers.keys(),
  ...passthroughTypes,
  ...accountTypes
])

/**
 * Serves a query.
 *
 * For an unknown coin or dex, the response is HTTP 500 `null`; only `l2Book` returns HTTP 200 `null` for an unknown
 * coin. For an unknown query type or shape, or an unknown member, the response is HTTP 422. For a body that is not JSON,
 * the response is HTTP 400.
 */
export const answer = (given: VenueState.InfoView, body: Uint8Array): UpstreamResponse.UpstreamResponse => {
  const view = withDeployed(given, given.trading.state)
  const parsed = Option.flatMap(Encoding.decode(body), (text) => Result.getSuccess(Encoding.parse(text)))
  if (Option.isNone(parsed)) return VenueState.notJson
  if (!hasType(parsed.value)) return VenueState.wrongShape()
  const { type, ...members } = parsed.value
  return typedAnswers.get(type)?.(view, members) ?? untyped(view, type, parsed.value)
}

/** Makes the controls of `POST /info`. */
export const controls = (state: Ref.Ref<VenueState.InfoState>, now: Effect.Effect<number>) => ({
  /** Spot metadata and coins. */
  state,
  /** Lists a coin with candles. Replaces the coin if it is already listed. */
  listCoin: (market: CandleMarket) =>
    Ref.update(state, (known) => ({ ...known, markets: VenueState.withEntry(known.markets, market.coin, market) })),
  /**
   * Delists a coin: its orders end, and positions in it are closed at the mark price. After that, queries about the
   * coin get the same response as for an unknown coin. `meta` still contains the coin, marked as delisted.
   */
  delistCoin: (coin: string) =>
    Effect.flatMap(now, (delistedAt) =>
      Ref.update(state, (known) => {
        const market = known.markets.get(coin)
        return market === undefined
          ? known
          : { ...known, markets: VenueState.withEntry(known.markets, coin, { ...market, delistedAt }) }
      }))
})

/** Reads and sets the data that `POST /info` returns. */
export type InfoControls = ReturnType<typeof controls>
