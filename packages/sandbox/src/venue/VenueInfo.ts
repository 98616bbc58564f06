/** The venue's `POST /info`: spot metadata, candles, markets, prices and books. */
import { Address, lowerCase } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import type { Meta, MetaAndAssetContexts, PerpDex } from "@trigate/domain/info/Market"
import type * as UpstreamResponse from "@trigate/domain/operations/UpstreamResponse"
import type * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Random from "../Seed.ts"
import { bars, bookOf, type CandleMarket, dayOf, dexOf, printPrice, printSize } from "./CandleMarket.ts"
import * as VenueAccounts from "./VenueAccounts.ts"
import {
  type Answer,
  type InfoState,
  type InfoView,
  known,
  type Listing,
  notJson,
  on,
  wrongShape
} from "./VenueAnswer.ts"
import { withEntry, withoutEntry } from "./VenueState.ts"
import * as VenueTrading from "./VenueTrading.ts"

const maxLeverage = 20

const minute = 60_000
const hour = 60 * minute

/** The venue's base rate of an hour. */
const fundingRate = "0.0000125"

const tradedIn = ({ markets, now }: Listing): ReadonlyArray<CandleMarket> =>
  [...markets.values()].filter(({ listedAt }) => listedAt < now)

const perpetuals = (listing: Listing, dex: string): ReadonlyArray<CandleMarket> =>
  tradedIn(listing).filter(({ coin }) => dexOf(coin) === dex)

const dexes = (listing: Listing): ReadonlyArray<string> =>
  [...new Set(tradedIn(listing).map(({ coin }) => dexOf(coin)))].filter((dex) => dex !== undefined && dex !== "")
    .map(String)

const context = ({ now, seed }: Listing, market: CandleMarket) => {
  const { before, lots, price } = dayOf(seed, market, now)
  const printed = printPrice(market, price)
  const size = printSize(market, lots)
  return {
    prevDayPx: printPrice(market, before),
    dayNtlVlm: (Number(size) * Number(printed)).toFixed(2),
    markPx: printed,
    midPx: printed,
    dayBaseVlm: size
  }
}

/** `meta`: the perpetuals of a dex; undefined if there is no such dex. */
export const meta = (listing: Listing, dex: string): Meta | undefined => {
  const listed = perpetuals(listing, dex)
  return listed.length === 0 ? undefined : {
    universe: listed.map(({ coin, sizeDecimals }) => ({
      szDecimals: sizeDecimals,
      name: coin,
      maxLeverage,
      marginTableId: maxLeverage
    })),
    marginTables: [[maxLeverage, { description: "", marginTiers: [{ lowerBound: "0.0", maxLeverage }] }]],
    collateralToken: 0
  }
}

const perpetualContext = (listing: Listing, market: CandleMarket) => {
  const known = context(listing, market)
  const [[bid], [ask]] = bookOf(listing.seed, market, listing.now)
  return {
    ...known,
    funding: fundingRate,
    openInterest: "0.0",
    premium: "0.0",
    oraclePx: known.markPx,
    impactPxs: bid === undefined || ask === undefined ? null : [bid.px, ask.px]
  }
}

/** `metaAndAssetCtxs`: the perpetuals of a dex with their prices. There are no open positions. */
export const metaAndContexts = (listing: Listing, dex: string): MetaAndAssetContexts | undefined => {
  const listed = meta(listing, dex)
  return listed === undefined
    ? undefined
    : [listed, perpetuals(listing, dex).map((market) => perpetualContext(listing, market))]
}

/** Hourly funding of a perpetual in a window: at most 500 rows, oldest first. */
const fundingHistory = (listing: Listing, coin: string, startTime: number, endTime: number) => {
  const market = listing.markets.get(coin)
  if (market === undefined || dexOf(coin) === undefined) return undefined
  const first = Math.ceil(Math.max(startTime, market.listedAt + 1) / hour)
  const last = Math.floor(Math.min(endTime, listing.now) / hour)
  return Array.from({ length: Math.max(0, Math.min(500, last - first + 1)) }, (_, offset) => ({
    coin,
    fundingRate,
    premium: "0.0",
    time: (first + offset) * hour
  }))
}

/** The next funding of each perpetual of the venue's own dex. */
const predictedFundings = (listing: Listing) =>
  perpetuals(listing, "").map(({ coin }) => [coin, [["HlPerp", {
    fundingRate,
    nextFundingTime: (Math.floor(listing.now / hour) + 1) * hour,
    fundingIntervalHours: 1
  }]]])

/** `activeAssetData`: what a user without money in perpetuals can trade of one. */
const activeAssetData = (listing: Listing, user: Address, coin: string) => {
  const market = listing.markets.get(coin)
  return market === undefined || dexOf(coin) === undefined ? undefined : {
    user: lowerCase(user),
    coin,
    leverage: { type: "cross", value: maxLeverage },
    maxTradeSzs: ["0.0", "0.0"],
    availableToTrade: ["0.0", "0.0"],
    markPx: context(listing, market).markPx
  }
}

const untraded = { prevDayPx: "0.0", dayNtlVlm: "0.0", markPx: "0.0", midPx: null, dayBaseVlm: "0.0" }

/**
 * `spotMetaAndAssetCtxs`: all spot pairs, and the prices of those that trade here.
 *
 * Pair indexes have gaps. Libraries read the second list by index, so it has an entry for each gap. Every entry names
 * its coin.
 */
export const spotMetaAndContexts = (listing: Listing) => {
  const { markets, spotMeta } = listing
  const names = new Map(spotMeta.universe.map(({ index, name }) => [index, name]))
  const last = spotMeta.universe.reduce((highest, { index }) => Math.max(highest, index), -1)
  return [
    spotMeta,
    Array.from({ length: last + 1 }, (_, index) => {
      const coin = names.get(index) ?? `@${index}`
      const market = markets.get(coin)
      return {
        ...(market === undefined || market.listedAt >= listing.now ? untraded : context(listing, market)),
        circulatingSupply: "0.0",
        coin,
        totalSupply: "0.0"
      }
    })
  ]
}

/** `perpDexs`: `null` for the venue's own dex, then the dexes of builders. */
export const perpDexs = (listing: Listing): ReadonlyArray<PerpDex | null> => [
  null,
  ...dexes(listing).map((name) => ({
    name,
    fullName: name.toUpperCase(),
    deployer: Random.hex(listing.seed, `dex/${name}`, 40),
    oracleUpdater: null,
    feeRecipient: null,
    assetToStreamingOiCap: perpetuals(listing, name).map(({ coin }) => [coin, "100000000.0"] as const)
  }))
]

/** `allMids`: the middle prices of a dex. The venue's own dex includes the spot pairs. */
export const allMids = (listing: Listing, dex: string) =>
  Object.fromEntries(
    tradedIn(listing).filter(({ coin }) => (dexOf(coin) ?? "") === dex).map((market) => [
      market.coin,
      printPrice(market, dayOf(listing.seed, market, listing.now).price)
    ])
  )

/** `l2Book`: 20 levels of each side; `null` for a coin that does not trade here. */
export const l2Book = ({ markets, now, seed }: Listing, coin: string) => {
  const market = markets.get(coin)
  return market === undefined || market.listedAt >= now
    ? null
    : { coin, time: now, levels: bookOf(seed, market, now) }
}

/** The newest trades of a coin: one at the end of each of the last ten minutes. */
const recentTrades = ({ markets, now, seed }: Listing, coin: string) => {
  const market = markets.get(coin)
  if (market === undefined) return undefined
  const last = bars(seed, market, { coin, interval: "1m", startTime: now - 10 * minute }, now)
  return last.toReversed().map(({ T, c, t }) => {
    const name = `trade/${coin}/${t}`
    const series = Random.series(seed, name)
    return {
      coin,
      side: Random.below(series, 0, 2) === 0 ? "A" as const : "B" as const,
      px: c,
      sz: printSize(market, 1 + Random.below(series, 1, 2 * market.tradeLots)),
      time: Math.min(T, now),
      hash: Random.hex(seed, name, 64),
      tid: t / minute,
      users: [Random.hex(seed, `${name}/buyer`, 40), Random.hex(seed, `${name}/seller`, 40)]
    }
  })
}

/** The answer to each typed query. */
const typed = {
  ...VenueTrading.answers,
  spotMeta: on(infoOperations.spotMeta, ({ spotMeta }) => spotMeta),
  candleSnapshot: on(infoOperations.candleSnapshot, ({ markets, now, seed }, window) => {
    const market = markets.get(window.coin)
    return market === undefined ? undefined : bars(seed, market, window, now)
  }),
  meta: on(infoOperations.meta, (view, { dex }) => meta(view, dex ?? "")),
  metaAndAssetCtxs: on(infoOperations.metaAndAssetCtxs, (view, { dex }) => metaAndContexts(view, dex ?? "")),
  perpDexs: on(infoOperations.perpDexs, perpDexs),
  allMids: on(infoOperations.allMids, (view, { dex }) => allMids(view, dex ?? "")),
  l2Book: on(
    infoOperations.l2Book,
    (view, { coin }) => l2Book(view, coin),
    // prices have five significant digits, and books are not aggregated to fewer
    ({ mantissa = null, nSigFigs }) => (nSigFigs ?? 5) === 5 && mantissa === null
  ),
  recentTrades: on(infoOperations.recentTrades, (view, { coin }) => recentTrades(view, coin)),
  fundingHistory: on(
    infoOperations.fundingHistory,
    (view, { coin, endTime, startTime }) => fundingHistory(view, coin, Number(startTime), Number(endTime ?? view.now))
  )
} satisfies { readonly [Name in keyof typeof infoOperations]: Answer }

const typedAnswers: ReadonlyMap<string, Answer> = new Map(Object.entries(typed))

/** The queries without a type that the markets can answer. */
const PassthroughRead = Schema.Union([
  Schema.Struct({
    type: Schema.Literals(["spotMetaAndAssetCtxs", "exchangeStatus", "predictedFundings", "validatorSummaries"])
  }),
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
      return spotMetaAndContexts(listing)
    case "exchangeStatus":
      return { time: listing.now, specialStatuses: null }
    case "predictedFundings":
      return predictedFundings(listing)
    case "perpsAtOpenInterestCap":
      return []
    case "validatorSummaries":
      return VenueAccounts.validators(listing.venue)
    case "activeAssetData":
      return activeAssetData(listing, read.user, read.coin)
  }
}

/** The answer to a query without a type. The refusal of one that the sandbox lacks names it. */
const untyped = (view: InfoView, type: string, body: unknown): UpstreamResponse.UpstreamResponse => {
  const passthrough = decodePassthrough(body)
  if (Option.isSome(passthrough)) return known(passthroughAnswer(view, passthrough.value))
  return Option.match(decodeAccount(body), {
    onNone: () =>
      wrongShape(passthroughTypes.has(type) ? "" : `: the sandbox has no answer to ${JSON.stringify(type)}`),
    onSome: (account) => known(VenueAccounts.answer(view.venue, account, view.now))
  })
}

/**
 * Answers a query.
 *
 * An unknown coin or dex is HTTP 500 `null`; the book of an unknown coin is `null`. Another type or shape is HTTP 422. A body
 * that is not JSON is HTTP 400.
 */
export const answer = (view: InfoView, body: Uint8Array): UpstreamResponse.UpstreamResponse => {
  const parsed = Option.flatMap(Utf8.decode(body), (text) => Result.getSuccess(Json.parse(text)))
  if (Option.isNone(parsed)) return notJson
  const named = hasType(parsed.value)
  if (Option.isNone(named)) return wrongShape()
  const { type } = named.value
  return typedAnswers.get(type)?.(view, parsed.value) ?? untyped(view, type, parsed.value)
}

/** Sets the state of `POST /info`. */
export interface InfoControls {
  /** Spot metadata and coins. */
  readonly state: Ref.Ref<InfoState>
  /** Lists a coin with candles, or replaces it. */
  readonly listCoin: (market: CandleMarket) => Effect.Effect<void>
  /** Removes a coin. The venue then answers that it does not know it. */
  readonly delistCoin: (coin: string) => Effect.Effect<void>
}

/** The controls of `POST /info`. */
export const controls = (state: Ref.Ref<InfoState>): InfoControls => ({
  state,
  listCoin: (market) =>
    Ref.update(state, (known) => ({ ...known, markets: withEntry(known.markets, market.coin, market) })),
  delistCoin: (coin) => Ref.update(state, (known) => ({ ...known, markets: withoutEntry(known.markets, coin) }))
})
