/** The venue's `POST /info`: spot metadata, candles, markets, prices and books. */
import { Address, lowerCase } from "@trigate/domain/Hex"
import { infoOperations } from "@trigate/domain/InfoOperations"
import * as Json from "@trigate/domain/Json"
import type { SpotMeta } from "@trigate/domain/SpotMeta"
import * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Utf8 from "@trigate/domain/Utf8"
import type * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { bars, bookOf, type CandleMarket, dayOf, printPrice, printSize } from "./CandleMarket.ts"
import type { Seed } from "./Seed.ts"
import * as Random from "./Seed.ts"
import * as VenueAccounts from "./VenueAccounts.ts"
import * as VenueRefusal from "./VenueRefusal.ts"
import { type VenueState, withEntry, withoutEntry } from "./VenueState.ts"

/** The data behind `POST /info`. */
export interface InfoState {
  readonly spotMeta: SpotMeta
  /** Coins with candles, by name. */
  readonly markets: ReadonlyMap<string, CandleMarket>
}

/** The data and the time of a query. */
export interface Listing extends InfoState {
  readonly seed: Seed
  readonly now: number
}

/** What a query is answered from: the listing, and what the venue remembers of accounts. */
export interface InfoView extends Listing {
  readonly venue: VenueState
}

const maxLeverage = 20

const hour = 3_600_000

/** The venue's base rate of an hour. */
const fundingRate = "0.0000125"

/** The dex of a perpetual: `""` for the venue's own, undefined for spot pairs. */
const dexOf = (coin: string): string | undefined =>
  coin.includes("/") || coin.startsWith("@") ? undefined : coin.includes(":") ? coin.split(":")[0] : ""

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
export const meta = (listing: Listing, dex: string) => {
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
export const metaAndContexts = (listing: Listing, dex: string) => {
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
export const perpDexs = (listing: Listing) => [
  null,
  ...dexes(listing).map((name) => ({
    name,
    fullName: name.toUpperCase(),
    deployer: Random.hex(listing.seed, `dex/${name}`, 40),
    oracleUpdater: null,
    feeRecipient: null,
    assetToStreamingOiCap: perpetuals(listing, name).map(({ coin }) => [coin, "100000000.0"])
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

const upstream = "trading-api"

const decodeSpotMeta = Schema.decodeUnknownOption(infoOperations.spotMeta.request)
const decodeCandles = Schema.decodeUnknownOption(infoOperations.candleSnapshot.request)

const dex = Schema.optionalKey(Schema.NullOr(Schema.String))

/** The undocumented queries that the markets can answer. */
const PassthroughRead = Schema.Union([
  Schema.Struct({ type: Schema.Literals(["meta", "metaAndAssetCtxs", "allMids"]), dex }),
  Schema.Struct({
    type: Schema.Literals([
      "spotMetaAndAssetCtxs",
      "perpDexs",
      "exchangeStatus",
      "predictedFundings",
      "validatorSummaries"
    ])
  }),
  Schema.Struct({ type: Schema.Literal("perpsAtOpenInterestCap"), dex }),
  Schema.Struct({
    type: Schema.Literal("fundingHistory"),
    coin: Schema.String,
    startTime: Schema.Natural,
    endTime: Schema.optionalKey(Schema.NullOr(Schema.Natural))
  }),
  Schema.Struct({ type: Schema.Literal("activeAssetData"), user: Address, coin: Schema.String }),
  // prices have five significant digits, and books are not aggregated to fewer
  Schema.Struct({
    type: Schema.Literal("l2Book"),
    coin: Schema.String,
    nSigFigs: Schema.optionalKey(Schema.NullOr(Schema.Literal(5))),
    mantissa: Schema.optionalKey(Schema.Null)
  })
])

const decodePassthrough = Schema.decodeUnknownOption(PassthroughRead)
const decodeAccount = Schema.decodeUnknownOption(VenueAccounts.AccountRead)

const json = (value: unknown): UpstreamResponse.UpstreamResponse =>
  UpstreamResponse.json(upstream, 200, JSON.stringify(value))

const nothing = UpstreamResponse.json(upstream, 500, "null")

const hasType = Schema.decodeUnknownOption(Schema.Struct({ type: Schema.String }))

const own = new Set<string>([
  "spotMeta",
  "candleSnapshot",
  ...[...PassthroughRead.members, ...VenueAccounts.AccountRead.members].flatMap(({ fields }) =>
    "literals" in fields.type ? fields.type.literals : [fields.type.literal]
  )
])

/** The venue's words for a query that it cannot read. For a type that the sandbox lacks they name the type. */
const wrongShape = (query: unknown): UpstreamResponse.UpstreamResponse => {
  const type = Option.match(hasType(query), { onNone: () => undefined, onSome: (named) => named.type })
  const why = type === undefined || own.has(type) ? "" : `: the sandbox has no answer to ${JSON.stringify(type)}`
  return UpstreamResponse.plain(upstream, 422, VenueRefusal.wrongShape + why)
}

const known = (value: unknown): UpstreamResponse.UpstreamResponse => value === undefined ? nothing : json(value)

const passthroughAnswer = (
  listing: InfoView,
  read: typeof PassthroughRead.Type
): UpstreamResponse.UpstreamResponse => {
  switch (read.type) {
    case "meta":
      return known(meta(listing, read.dex ?? ""))
    case "metaAndAssetCtxs":
      return known(metaAndContexts(listing, read.dex ?? ""))
    case "allMids":
      return json(allMids(listing, read.dex ?? ""))
    case "spotMetaAndAssetCtxs":
      return json(spotMetaAndContexts(listing))
    case "perpDexs":
      return json(perpDexs(listing))
    case "exchangeStatus":
      return json({ time: listing.now, specialStatuses: null })
    case "predictedFundings":
      return json(predictedFundings(listing))
    case "perpsAtOpenInterestCap":
      return json([])
    case "validatorSummaries":
      return json(VenueAccounts.validators(listing.venue))
    case "fundingHistory":
      return known(fundingHistory(listing, read.coin, read.startTime, read.endTime ?? listing.now))
    case "activeAssetData":
      return known(activeAssetData(listing, read.user, read.coin))
    case "l2Book":
      return json(l2Book(listing, read.coin))
  }
}

/**
 * Answers a query.
 *
 * An unknown coin or dex is HTTP 500 `null`; the book of an unknown coin is `null`. Another type or shape is HTTP 422. A body
 * that is not JSON is HTTP 400.
 */
export const answer = (view: InfoView, body: Uint8Array): UpstreamResponse.UpstreamResponse => {
  const parsed = Option.flatMap(Utf8.decode(body), (text) => Result.getSuccess(Json.parse(text)))
  if (Option.isNone(parsed)) return UpstreamResponse.plain(upstream, 400, VenueRefusal.notJson)
  if (Option.isSome(decodeSpotMeta(parsed.value))) return json(view.spotMeta)
  const passthrough = decodePassthrough(parsed.value)
  if (Option.isSome(passthrough)) return passthroughAnswer(view, passthrough.value)
  const account = decodeAccount(parsed.value)
  if (Option.isSome(account)) return json(VenueAccounts.answer(view.venue, account.value, view.now))
  return Option.match(decodeCandles(parsed.value), {
    onNone: () => wrongShape(parsed.value),
    onSome: (window) => {
      const market = view.markets.get(window.coin)
      return market === undefined ? nothing : json(bars(view.seed, market, window, view.now))
    }
  })
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
