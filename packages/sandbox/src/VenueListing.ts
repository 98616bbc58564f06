/** What the venue lists and at which prices: the reads of `POST /info` by which trading libraries load their markets. */
import type { SpotMeta } from "@trigate/domain/SpotMeta"
import type { CandleMarket } from "./CandleMarket.ts"
import { printPrice, printSize } from "./CandleMarket.ts"
import type { Seed } from "./Seed.ts"
import * as Random from "./Seed.ts"
import * as VenuePrices from "./VenuePrices.ts"

/** What is listed, and the instant at which it is asked. */
export interface Listing {
  readonly seed: Seed
  readonly spotMeta: SpotMeta
  /** Coins with prices, by name. */
  readonly markets: ReadonlyMap<string, CandleMarket>
  readonly now: number
}

const maxLeverage = 20

/** The builder's dex of a perpetual, "" for the venue's own; spot pairs have none. */
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
  const { before, lots, price } = VenuePrices.dayOf(seed, market, now)
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

/** `meta`: the perpetuals of a dex; nothing where there is no such dex. */
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
  const [[bid], [ask]] = VenuePrices.bookOf(listing.seed, market, listing.now)
  return {
    ...known,
    funding: "0.0000125",
    openInterest: "0.0",
    premium: "0.0",
    oraclePx: known.markPx,
    impactPxs: bid === undefined || ask === undefined ? null : [bid.px, ask.px]
  }
}

/** `metaAndAssetCtxs`: the perpetuals of a dex with their prices; nobody holds a position here. */
export const metaAndContexts = (listing: Listing, dex: string) => {
  const listed = meta(listing, dex)
  return listed === undefined
    ? undefined
    : [listed, perpetuals(listing, dex).map((market) => perpetualContext(listing, market))]
}

const untraded = { prevDayPx: "0.0", dayNtlVlm: "0.0", markPx: "0.0", midPx: null, dayBaseVlm: "0.0" }

/**
 * `spotMetaAndAssetCtxs`: all spot pairs, and the prices of those that trade here.
 *
 * Indexes of pairs have holes. Libraries read the second list by index and not by position, so that it has an entry for
 * the holes too; each entry names its coin.
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

/** `perpDexs`: the venue's own as `null`, then those of builders. */
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

/** `allMids`: the middle prices of a dex; the venue's own has the spot pairs too. */
export const allMids = (listing: Listing, dex: string) =>
  Object.fromEntries(
    tradedIn(listing).filter(({ coin }) => (dexOf(coin) ?? "") === dex).map((market) => [
      market.coin,
      printPrice(market, VenuePrices.dayOf(listing.seed, market, listing.now).price)
    ])
  )

/** `l2Book`: 20 levels of each side; `null` for a coin that does not trade here. */
export const l2Book = ({ markets, now, seed }: Listing, coin: string) => {
  const market = markets.get(coin)
  return market === undefined || market.listedAt >= now
    ? null
    : { coin, time: now, levels: VenuePrices.bookOf(seed, market, now) }
}
