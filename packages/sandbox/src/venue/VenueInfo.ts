/** The venue's `POST /info`: decodes a query, and serves it from the venue's markets and accounts. */
import { Address } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import type * as UpstreamResponse from "@trigate/domain/operations/UpstreamResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AccountReads from "./AccountReads.ts"
import { type CandleMarket, findMarket } from "./CandleMarket.ts"
import * as MarketReads from "./MarketReads.ts"
import { findAccount } from "./TradingState.ts"
import * as VenueAccounts from "./VenueAccounts.ts"
import { type InfoState, type InfoView, known, notJson, on, type QueryHandler, wrongShape } from "./VenueAnswer.ts"
import * as VenueMarkets from "./VenueMarkets.ts"
import { withEntry } from "./VenueState.ts"
import * as VenueTrading from "./VenueTrading.ts"

/** The handlers of the queries that have a response schema, by query type. */
const typed = {
  ...VenueTrading.answers,
  spotMeta: on(infoOperations.spotMeta, ({ spotMeta }) => spotMeta),
  candleSnapshot: on(infoOperations.candleSnapshot, ({ markets, now, trading }, window) => {
    const market = findMarket(markets, window.coin)
    return market === undefined ? undefined : MarketReads.bars(trading, market, window, now)
  }),
  meta: on(infoOperations.meta, (view, { dex }) => VenueMarkets.meta(view, dex ?? "")),
  allPerpMetas: on(infoOperations.allPerpMetas, VenueMarkets.allMetas),
  outcomeMeta: on(infoOperations.outcomeMeta, ({ outcomeMeta }) => outcomeMeta),
  metaAndAssetCtxs: on(
    infoOperations.metaAndAssetCtxs,
    (view, { dex }) => VenueMarkets.metaAndContexts(view, dex ?? "")
  ),
  perpDexs: on(infoOperations.perpDexs, VenueMarkets.perpDexs),
  allMids: on(infoOperations.allMids, (view, { dex }) => VenueMarkets.allMids(view, dex ?? "")),
  l2Book: on(
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
  recentTrades: on(infoOperations.recentTrades, (view, { coin }) => VenueMarkets.recentTrades(view, coin)),
  fundingHistory: on(
    infoOperations.fundingHistory,
    (view, { coin, endTime, startTime }) =>
      VenueMarkets.fundingHistory(view, coin, Number(startTime), Number(endTime ?? view.now))
  )
} satisfies { readonly [Name in keyof typeof infoOperations]: QueryHandler }

const typedAnswers: ReadonlyMap<string, QueryHandler> = new Map(Object.entries(typed))

/** The queries about markets that have no response schema. */
const PassthroughRead = Schema.Union([
  Schema.Struct({
    type: Schema.Literals([
      "spotMetaAndAssetCtxs",
      "exchangeStatus",
      "perpDeployAuctionStatus",
      "predictedFundings",
      "validatorSummaries"
    ])
  }),
  Schema.Struct({ type: Schema.Literals(["perpDexLimits", "perpDexStatus"]), dex: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("perpsAtOpenInterestCap"),
    dex: Schema.optionalKey(Schema.NullOr(Schema.String))
  }),
  Schema.Struct({ type: Schema.Literal("activeAssetData"), user: Address, coin: Schema.String })
])

const decodePassthrough = Schema.decodeUnknownOption(PassthroughRead)
const decodeAccount = Schema.decodeUnknownOption(VenueAccounts.AccountRead)
const hasType = Schema.decodeUnknownOption(Schema.Struct({ type: Schema.String }))

const passthroughTypes = new Set<string>(
  [...PassthroughRead.members, ...VenueAccounts.AccountRead.members].flatMap(({ fields }) =>
    "literals" in fields.type ? fields.type.literals : [fields.type.literal]
  )
)

const passthroughAnswer = (listing: InfoView, read: typeof PassthroughRead.Type): unknown => {
  switch (read.type) {
    case "spotMetaAndAssetCtxs":
      return VenueMarkets.spotMetaAndContexts(listing)
    case "exchangeStatus":
      return { time: listing.now, specialStatuses: null }
    case "predictedFundings":
      return VenueMarkets.predictedFundings(listing)
    case "perpDeployAuctionStatus":
      return VenueMarkets.deployAuction(listing)
    case "perpDexLimits":
      return VenueMarkets.perpDexLimits(listing, read.dex)
    case "perpDexStatus":
      return VenueMarkets.perpDexStatus(listing, read.dex)
    case "perpsAtOpenInterestCap":
      return VenueMarkets.cappedCoins(listing, read.dex ?? "")
    case "validatorSummaries":
      return VenueAccounts.validators(listing.venue)
    case "activeAssetData":
      return AccountReads.activeAssetData(listing.trading, findAccount(listing.trading.state, read.user), read.coin)
  }
}

/**
 * Returns the response to a query that has no response schema. If the sandbox does not support the query, the error
 * contains the query's type.
 */
const untyped = (view: InfoView, type: string, body: unknown): UpstreamResponse.UpstreamResponse => {
  const passthrough = decodePassthrough(body)
  if (Option.isSome(passthrough)) return known(passthroughAnswer(view, passthrough.value))
  return Option.match(decodeAccount(body), {
    onNone: () =>
      wrongShape(passthroughTypes.has(type) ? "" : `: the sandbox does not support ${JSON.stringify(type)}`),
    onSome: (account) => known(VenueAccounts.answer(view.venue, view.trading, account, view.now))
  })
}

/**
 * Serves a query.
 *
 * For an unknown coin or dex, the response is HTTP 500 `null`; only `l2Book` returns HTTP 200 `null` for an unknown
 * coin. For an unknown query type or shape, the response is HTTP 422. For a body that is not JSON, the response is HTTP
 * 400.
 */
export const answer = (view: InfoView, body: Uint8Array): UpstreamResponse.UpstreamResponse => {
  const parsed = Option.flatMap(Utf8.decode(body), (text) => Result.getSuccess(Json.parse(text)))
  if (Option.isNone(parsed)) return notJson
  const named = hasType(parsed.value)
  if (Option.isNone(named)) return wrongShape()
  const { type } = named.value
  return typedAnswers.get(type)?.(view, parsed.value) ?? untyped(view, type, parsed.value)
}

/** Reads and sets the data that `POST /info` returns. */
export interface InfoControls {
  /** Spot metadata and coins. */
  readonly state: Ref.Ref<InfoState>
  /** Lists a coin with candles. Replaces the coin if it is already listed. */
  readonly listCoin: (market: CandleMarket) => Effect.Effect<void>
  /**
   * Delists a coin: its orders end, and positions in it are closed at the mark price. After that, queries about the
   * coin get the same response as for an unknown coin. `meta` still contains the coin, marked as delisted.
   */
  readonly delistCoin: (coin: string) => Effect.Effect<void>
}

/** Makes the controls of `POST /info`. */
export const controls = (state: Ref.Ref<InfoState>, now: Effect.Effect<number>): InfoControls => ({
  state,
  listCoin: (market) =>
    Ref.update(state, (known) => ({ ...known, markets: withEntry(known.markets, market.coin, market) })),
  delistCoin: (coin) =>
    Effect.flatMap(now, (delistedAt) =>
      Ref.update(state, (known) => {
        const market = known.markets.get(coin)
        return market === undefined
          ? known
          : { ...known, markets: withEntry(known.markets, coin, { ...market, delistedAt }) }
      }))
})
