/** The venue's responses to queries about markets: their metadata, prices, books, trades and funding. */
import type { AssetContext, Meta, MetaAndAssetContexts, PerpDex, SpotToken } from "@trigate/domain/info/Market"
import * as DateTime from "effect/DateTime"
import * as Random from "../Seed.ts"
import * as MarketReads from "./AccountReads.ts"
import * as Assets from "./Assets.ts"
import { dayStatistics, premiumAt, tape, type TapeTrade, tradeCount } from "./CandleBars.ts"
import { marginTables } from "./ListedPerpetuals.ts"
import { fundingAt, makeBook, markPrice, printRate } from "./Margin.ts"
import { bestPrices } from "./Matching.ts"
import * as Outcomes from "./Outcomes.ts"
import { deploymentDetails } from "./SpotDeployers.ts"
import type { Venue } from "./Venue.ts"
import type { InfoView, Listing } from "./VenueState.ts"

const hour = 3_600_000

/** Returns the coins that have been listed, including delisted ones. */
const listedIn = ({ markets, now }: Listing): ReadonlyArray<Assets.CandleMarket> =>
  [...markets.values()].filter(({ listedAt }) => listedAt < now)

const isTraded = ({ delistedAt }: Assets.CandleMarket): boolean => delistedAt === undefined

/** Returns the perpetuals of a dex, also delisted ones, in the order of their asset IDs. */
export const universe = (listing: Listing, dex: string): ReadonlyArray<Assets.CandleMarket> =>
  listedIn(listing).filter(({ coin }) => Assets.coinDex(coin) === dex)

const perpetuals = (listing: Listing, dex: string): ReadonlyArray<Assets.CandleMarket> =>
  universe(listing, dex).filter(isTraded)

const dexes = (listing: Listing): ReadonlyArray<string> =>
  [...new Set(listedIn(listing).map(({ coin }) => Assets.coinDex(coin)))].filter((dex) =>
    dex !== undefined && dex !== ""
  )
    .map(String)

const context = ({ now, seed, trading }: InfoView, market: Assets.CandleMarket) => {
  const { before, lots: generated, price } = Assets.isDerived(market)
    ? Outcomes.statistics(trading, market, now)
    : dayStatistics(seed, market, now)
  const lots = generated + MarketReads.tradedLots(trading, market.coin, now)
  const asset = trading.listing.byCoin.get(market.coin)
  const printed = asset === undefined
    ? Assets.printPrice(market, price)
    : Assets.printPx(asset, markPrice(trading, asset))
  const size = Assets.printSize(market, lots)
  const followed = trading.followed.get(market.coin)
  return {
    prevDayPx: followed?.prevDayPx ?? Assets.printPrice(market, before),
    dayNtlVlm: followed?.dayNtlVlm ?? (Number(size) * Number(printed)).toFixed(2),
    markPx: printed,
    midPx: asset === undefined ? printed : MarketReads.mid(trading, asset),
    dayBaseVlm: followed?.dayBaseVlm ?? size
  }
}

/** Formats a time as the venue does: in UTC without the suffix `Z`, and without milliseconds if they are zero. */
const printTime = (time: number): string =>
  DateTime.formatIso(DateTime.makeUnsafe(time)).replace(/Z$/u, "").replace(/\.000$/u, "")

const listedPerpetual = (market: Assets.CandleMarket, now: number) => ({
  szDecimals: market.sizeDecimals,
  name: market.coin,
  maxLeverage: Assets.findMaxLeverage(market),
  marginTableId: Assets.findMarginTable(market).id,
  ...(market.marginMode === undefined ? {} : { onlyIsolated: true }),
  ...(isTraded(market) ? {} : { isDelisted: true }),
  ...(market.marginMode === undefined ? {} : { marginMode: market.marginMode }),
  ...(market.growingSince !== undefined && Assets.isGrowing(market, now)
    ? { growthMode: "enabled", lastGrowthModeChangeTime: printTime(market.growingSince) }
    : {})
})

/** Returns the response to the query `meta`: the perpetuals of a dex; `undefined` for an unknown dex. */
export const meta = (listing: Listing, dex: string): Meta | undefined => {
  const listed = universe(listing, dex)
  return listed.length === 0 ? undefined : {
    universe: listed.map((market) => listedPerpetual(market, listing.now)),
    marginTables: [...new Map(listed.map(Assets.findMarginTable).map(({ id, tiers }) => [id, tiers]))]
      .toSorted(([a], [b]) => a - b).map(([id, tiers]) => [
        id,
        {
          description: marginTables.get(id)?.description ?? "",
          marginTiers: tiers.map(({ lowerBound, maxLeverage }) => ({ lowerBound: `${lowerBound}.0`, maxLeverage }))
        }
      ]),
    collateralToken: Assets.findCollateral(dex)
  }
}

/** Returns the response to the query `allPerpMetas`: the perpetuals of all dexes. */
export const allMetas = (listing: Listing): ReadonlyArray<Meta> =>
  ["", ...dexes(listing)].flatMap((dex) => meta(listing, dex) ?? [])

/** Formats a premium. */
const printPremium = (premium: number): string => printRate(BigInt(Math.round(premium * 1e10)))

const untraded = { prevDayPx: "0.0", dayNtlVlm: "0.0", markPx: "0.0", midPx: null, dayBaseVlm: "0.0" }

/** Returns the market data of a perpetual, such as its prices. The data of a delisted perpetual are constant. */
export const perpetualContext = (view: InfoView, market: Assets.CandleMarket): AssetContext => {
  if (market.delistedAt !== undefined) {
    const last = Assets.printPrice(market, view.trading.path.priceAt(market, market.delistedAt))
    return {
      ...untraded,
      prevDayPx: last,
      markPx: last,
      oraclePx: last,
      funding: "0.0",
      openInterest: "0.0",
      premium: null,
      impactPxs: null
    }
  }
  const known = context(view, market)
  const { trading } = view
  const { dayBaseVlm: _base, dayNtlVlm: _value, markPx: _mark, midPx: _mid, prevDayPx: _day, ...followed } =
    trading.followed.get(market.coin) ?? untraded
  const asset = trading.listing.byCoin.get(market.coin)
  const { ask, bid } = asset === undefined ? {} : bestPrices(trading, asset)
  const premium = premiumAt(view.seed, market, view.now)
  const hasMid = asset === undefined || bid !== undefined && ask !== undefined
  return {
    ...known,
    midPx: hasMid ? known.midPx : null,
    funding: printRate(fundingAt(view.seed, market, view.now)),
    openInterest: asset === undefined ? "0.0" : Assets.printSz(asset, MarketReads.totalInterest(trading, asset)),
    premium: hasMid ? printPremium(premium) : null,
    oraclePx: Assets.printPrice(
      market,
      market.oracle === undefined ? Number(known.markPx) / (1 + premium) : Number(market.oracle.px)
    ),
    impactPxs: asset === undefined || bid === undefined || ask === undefined
      ? null
      : [Assets.printPx(asset, bid), Assets.printPx(asset, ask)],
    ...followed
  }
}

/** Returns the response to the query `metaAndAssetCtxs`: the perpetuals of a dex with their prices. */
export const metaAndContexts = (listing: InfoView, dex: string): MetaAndAssetContexts | undefined => {
  const listed = meta(listing, dex)
  return listed === undefined
    ? undefined
    : [listed, universe(listing, dex).map((market) => perpetualContext(listing, market))]
}

/** Returns the hourly funding rates of a perpetual in a window: at most 500 rows, oldest first. */
export const fundingHistory = (listing: Listing, coin: string, startTime: number, endTime: number) => {
  const market = Assets.findMarket(listing.markets, coin)
  if (market === undefined || Assets.coinDex(coin) === undefined) return undefined
  const first = Math.ceil(Math.max(startTime, market.listedAt + 1) / hour)
  const last = Math.floor(Math.min(endTime, listing.now) / hour)
  return Array.from({ length: Math.max(0, Math.min(500, last - first + 1)) }, (_, offset) => {
    const time = (first + offset) * hour
    return {
      coin,
      fundingRate: printRate(fundingAt(listing.seed, market, time)),
      premium: printPremium(premiumAt(listing.seed, market, time)),
      time
    }
  })
}

/** Returns the next funding rate of each perpetual of the venue's own dex. */
export const predictedFundings = (listing: Listing) =>
  perpetuals(listing, "").map((market) => [market.coin, [["HlPerp", {
    fundingRate: printRate(fundingAt(listing.seed, market, listing.now)),
    nextFundingTime: (Math.floor(listing.now / hour) + 1) * hour,
    fundingIntervalHours: 1
  }]]])

/** Returns the sides of the listed outcomes. */
const outcomeSides = ({ now, trading }: InfoView): ReadonlyArray<Assets.SpotPair> =>
  [...trading.outcomes.active.values()].flatMap(({ createdAt, sides }) => createdAt <= now ? sides : [])

/** Returns how much of a token the venue's accounts have brought in. */
const printSupply = ({ trading }: InfoView, token: Pick<SpotToken, "index" | "weiDecimals"> | undefined): string =>
  token === undefined
    ? "0.0"
    : Assets.printDecimal(Assets.max(0n, trading.state.deposited.get(token.index) ?? 0n), token.weiDecimals)

/**
 * Returns the response to the query `tokenDetails`: the token with its supply, and the prices of its USDC pair. Returns
 * `undefined` for an unknown token.
 */
export const tokenDetails = (view: InfoView, tokenId: string) => {
  const token = view.spotMeta.tokens.find((each) => each.tokenId === tokenId.toLowerCase())
  if (token === undefined) return undefined
  const pair = Assets.findUsdPair(view.trading.listing, token.index)
  const market = pair === undefined ? undefined : Assets.findMarket(view.markets, pair.coin)
  const none = token.index === Assets.usdc ? "1.0" : "0.0"
  const { markPx, midPx, prevDayPx } = market === undefined || market.listedAt >= view.now
    ? { markPx: none, midPx: none, prevDayPx: none }
    : context(view, market)
  const supply = printSupply(view, token)
  // the other tokens of the sandbox were not deployed in an auction
  const { deployedAt, ...deployed } = deploymentDetails(view.trading, token.index) ?? {
    maxSupply: supply,
    genesis: null,
    deployer: null,
    deployGas: null,
    deployedAt: null,
    seededUsdc: "0.0"
  }
  return {
    ...deployed,
    name: token.name,
    totalSupply: supply,
    circulatingSupply: supply,
    szDecimals: token.szDecimals,
    weiDecimals: token.weiDecimals,
    midPx,
    markPx,
    prevDayPx,
    deployTime: deployedAt === null ? null : DateTime.formatIso(DateTime.makeUnsafe(deployedAt)).replace(/Z$/u, ""),
    nonCirculatingUserBalances: [],
    futureEmissions: "0.0"
  }
}

/**
 * Returns the response to the query `spotMetaAndAssetCtxs`: all spot pairs, and prices for the pairs that trade in the
 * sandbox. The sides of outcomes follow them.
 *
 * The sequence of pair indexes has gaps. Libraries use a pair's index as its position in the second list (the prices),
 * so this list also has an entry for each missing index. Every entry contains its coin.
 */
export const spotMetaAndContexts = (listing: InfoView) => {
  const { markets, spotMeta } = listing
  const names = new Map(spotMeta.universe.map(({ index, name }) => [index, name]))
  const tokens = new Map(spotMeta.tokens.map((token) => [token.index, token]))
  const supplies = new Map(
    spotMeta.universe.map(({ index, tokens: [base] }) => [index, printSupply(listing, tokens.get(base))])
  )
  const last = spotMeta.universe.reduce((highest, { index }) => Math.max(highest, index), -1)
  const sides = outcomeSides(listing).flatMap(({ base, coin, market }) => {
    const supply = printSupply(listing, base)
    return [{ ...context(listing, market), circulatingSupply: supply, coin, totalSupply: supply }]
  })
  return [
    spotMeta,
    Array.from({ length: last + 1 }, (_, index) => {
      const coin = names.get(index) ?? `@${index}`
      const supply = supplies.get(index) ?? "0.0"
      const market = Assets.findMarket(markets, coin)
      return {
        ...(market === undefined || market.listedAt >= listing.now ? untraded : context(listing, market)),
        circulatingSupply: supply,
        coin,
        totalSupply: supply
      }
    }).concat(sides)
  ]
}

const openInterestCaps = (listing: Listing, dex: string): ReadonlyArray<readonly [coin: string, cap: string]> =>
  perpetuals(listing, dex).flatMap(({ coin, openInterestCap }) =>
    openInterestCap === undefined ? [] : [[coin, `${openInterestCap}.0`]]
  )

/**
 * Returns the response to the query `perpDexs`: first `null` for the venue's own dex, then the builder-deployed dexes.
 */
export const perpDexs = (view: InfoView): ReadonlyArray<PerpDex | null> => [
  null,
  ...dexes(view).map((name) => {
    const deployed = view.trading.state.perpDexes.get(name)
    return {
      name,
      fullName: deployed?.fullName ?? name.toUpperCase(),
      deployer: deployed?.deployer ?? Random.hex(view.seed, `dex/${name}`, 40),
      oracleUpdater: deployed?.oracleUpdater ?? null,
      feeRecipient: deployed?.feeRecipient ?? null,
      assetToStreamingOiCap: openInterestCaps(view, name),
      subDeployers: [...deployed?.subDeployers ?? []],
      deployerFeeScale: "1.0",
      lastDeployerFeeScaleChangeTime: "1970-01-01T00:00:00",
      assetToFundingMultiplier: [...deployed?.fundingMultipliers ?? []],
      assetToFundingInterestRate: [...deployed?.fundingInterestRates ?? []]
    }
  })
]

/** The limits of a builder-deployed dex, and of one transfer between dexes, in dollars. */
const dexLimits = { totalOiCap: "400000000.0", oiSzCapPerPerp: "1000000000.0", maxTransferNtl: "150000000.0" } as const

/**
 * Returns the response to the query `perpDexLimits`: `null` for the venue's own dex, `undefined` for an unknown dex.
 */
export const perpDexLimits = (listing: Listing, dex: string) =>
  dex === "" ? null : dexes(listing).includes(dex)
    ? { ...dexLimits, coinToOiCap: openInterestCaps(listing, dex) }
    : undefined

/** Returns the response to the query `perpDexStatus`; `undefined` for an unknown dex. */
export const perpDexStatus = (view: InfoView, dex: string) =>
  dex === "" || dexes(view).includes(dex)
    ? { totalNetDeposit: Assets.printUsd(view.trading.state.netDeposits.get(dex) ?? 0n) }
    : undefined

/** Returns those coins of a dex whose open interest has reached its cap. No position in such a coin can grow. */
export const cappedCoins = (view: InfoView, dex: string): ReadonlyArray<string> =>
  perpetuals(view, dex).flatMap(({ coin }) => {
    const asset = view.trading.listing.byCoin.get(coin)
    return asset?.kind === "perpetual" && MarketReads.isCapped(view.trading, asset) ? [coin] : []
  })

/** The largest value of a market order in dollars, for each maximum leverage from which it applies. */
export const marketOrderLimits = [[1, "500000.0"], [10, "2000000.0"], [20, "5000000.0"], [25, "30000000.0"]] as const

/**
 * Returns the response to the query `allMids`: the mid prices of a dex. The venue's own dex includes the spot pairs and
 * the sides of outcomes.
 */
export const allMids = (view: InfoView, dex: string): { readonly [coin: string]: string } => {
  const own = listedIn(view).filter((market) => isTraded(market) && (Assets.coinDex(market.coin) ?? "") === dex)
  const sides = dex === "" ? outcomeSides(view) : []
  return Object.fromEntries([...own, ...sides.map(({ market }) => market)].map((market): [string, string] => {
    const asset = view.trading.listing.byCoin.get(market.coin)
    return [
      market.coin,
      asset === undefined
        ? Assets.printPrice(market, dayStatistics(view.seed, market, view.now).price)
        : MarketReads.mid(view.trading, asset)
    ]
  }))
}

/**
 * Returns the response to the query `l2Book`: 20 levels of each side; `null` for a coin that does not trade in the
 * sandbox.
 */
export const l2Book = ({ markets, now, seed, trading }: InfoView, coin: string, by?: MarketReads.Aggregation) => {
  const asset = trading.listing.byCoin.get(coin)
  const market = Assets.findMarket(markets, coin) ?? asset?.market
  if (market === undefined || market.outcome === undefined && market.listedAt >= now) return null
  const { ask, bid } = asset === undefined || by === undefined ? {} : bestPrices(trading, asset)
  return {
    coin,
    time: now,
    levels: asset === undefined ? makeBook(seed, market, now) : MarketReads.book(trading, asset, by),
    // the venue states the spread of an aggregated book
    ...(asset === undefined || ask === undefined || bid === undefined
      ? {}
      : { spread: Assets.printPx(asset, ask - bid) })
  }
}

/** Maximum number of trades in a query's response. */
const listedTrades = 30

/** A trade of the tape, in the venue's form. The trades of one second are those of one order. */
const printTrade = (
  { seed, trading }: InfoView,
  market: Assets.CandleMarket,
  { lots, number, second }: TapeTrade
) => {
  const name = `trade/${market.coin}/${second}`
  const series = Random.series(seed, name)
  const time = second * 1_000 - 1 - Random.below(series, 1, 1_000)
  const side = Random.below(series, 0, 2) === 0 ? "A" as const : "B" as const
  const taker = Random.hex(seed, `${name}/taker`, 40)
  const maker = Random.hex(seed, `${name}/${number}`, 40)
  return {
    coin: market.coin,
    side,
    px: Assets.printPrice(market, trading.path.priceAt(market, time)),
    sz: Assets.printSize(market, lots),
    time,
    hash: Random.hex(seed, name, 64),
    tid: number,
    users: side === "B" ? [taker, maker] : [maker, taker]
  }
}

/**
 * Returns the latest trades of a coin: those of accounts, and the generated ones, whose number and size are those of the
 * candles.
 */
export const recentTrades = (view: InfoView, coin: string) => {
  const market = Assets.findMarket(view.markets, coin) ?? Outcomes.findMarket(view.trading, coin)
  if (market === undefined) return undefined
  const until = Math.min(view.now, market.outcome?.endsAt ?? view.now)
  const isFollowed = view.trading.followed.has(coin)
  const made = isFollowed ? [] : tape(view.seed, market, until, listedTrades).filter(({ lots }) => lots > 0)
    .map((trade) => printTrade(view, market, trade))
  const traded = MarketReads.tradeRows(view.trading, coin).slice(0, listedTrades)
  return traded.length === 0 ? made : [...traded, ...made].toSorted((a, b) => b.time - a.time).slice(0, listedTrades)
}

/**
 * Returns a text that changes when the book of a coin can have changed: with the second, and with an order or a trade.
 */
export const bookVersion = ({ bookChanges, state: { now } }: Venue, coin: string): string =>
  `${Math.floor(now / 1_000)} ${bookChanges.get(coin) ?? 0}`

/** Returns a text that changes when the latest trades of a coin have changed. */
export const tradesVersion = ({ info, seed, state }: Venue, coin: string): string => {
  const market = Assets.findMarket(info.markets, coin)
  const made = market === undefined ? 0 : tradeCount(seed, market, state.now)
  return `${made} ${state.markets.get(coin)?.trades.at(-1)?.tid ?? 0}`
}
