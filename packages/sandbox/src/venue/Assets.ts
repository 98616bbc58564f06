/**
 * The tradable coins and assets: their IDs in orders, their properties, tick and lot sizes, and the units of their
 * amounts.
 */
import type { Address } from "@trigate/domain/encoding/Encoding"
import type { SpotMeta, SpotPair as ListedPair, SpotToken } from "@trigate/domain/info/Market"
import * as DateTime from "effect/DateTime"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Random from "../Seed.ts"
import { type ListedPerpetual, marginTables, type MarginTier, perpetuals } from "./ListedPerpetuals.ts"
import type { ListedOutcome } from "./Outcomes.ts"
import type { InfoState } from "./VenueState.ts"

const shape = /^(-?)([0-9]+)(?:\.([0-9]+))?$/u

/**
 * Parses a decimal string into units of `10^-decimals`.
 *
 * Returns `undefined` for text that is not a decimal number, and for a number with more than `decimals` decimals.
 */
export const parseDecimal = (text: string, decimals: number): bigint | undefined => {
  const match = shape.exec(text)
  if (match === null) return undefined
  const [, sign = "", whole = "0", fraction = ""] = match
  const digits = fraction.replace(/0+$/u, "")
  if (digits.length > decimals) return undefined
  const value = BigInt(whole + digits.padEnd(decimals, "0"))
  return sign === "-" ? -value : value
}

/** Formats units of `10^-decimals` as the venue does: no trailing zeros, at least one decimal. */
export const printDecimal = (value: bigint, decimals: number): string => {
  if (decimals === 0) return `${value}.0`
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, "0")
  const cut = digits.length - decimals
  let end = digits.length
  while (end > cut + 1 && digits.charCodeAt(end - 1) === 48) end--
  return `${value < 0n ? "-" : ""}${digits.slice(0, cut)}.${digits.slice(cut, end)}`
}

/**
 * Returns the number of significant digits of decimal text. Returns 0 for a whole number, because prices that are whole
 * numbers can have any number of digits.
 */
export const significantDigits = (text: string): number => {
  const [whole = "", fraction = ""] = text.split(".")
  const decimals = fraction.replace(/0+$/u, "")
  return decimals === "" ? 0 : (whole + decimals).replace(/^0+/u, "").length
}

/** Returns the absolute value of a number. */
export const abs = (value: bigint): bigint => value < 0n ? -value : value

/** Returns the lesser of two numbers. */
export const min = (a: bigint, b: bigint): bigint => a < b ? a : b

/** Returns the greater of two numbers. */
export const max = (a: bigint, b: bigint): bigint => a > b ? a : b

/** Divides two positive numbers and rounds up. */
export const divideUp = (value: bigint, by: bigint): bigint => (value + by - 1n) / by

/** Converts units of `10^-decimals` to the nearest double. Use the result for ratios only. */
export const toNumber = (value: bigint, decimals: number): number => Number(value) / 10 ** decimals

/** The terms from which the price of an outcome's side follows. */
export interface OutcomePrice {
  /** The coins of both sides. */
  readonly coins: readonly [string, string]
  readonly side: 0 | 1
  /** The perpetual whose price decides. */
  readonly underlying: CandleMarket
  /** Side 0 is paid if the price is at least the first bound and below the second. */
  readonly range: readonly [from: number, below: number]
  /** For the fallback of a deployed question: returns the ranges of the other outcomes that can occur. */
  readonly findOthers?: () => ReadonlyArray<readonly [from: number, below: number]>
  /** The time at which the price decides, in milliseconds. */
  readonly endsAt: number
}

/** A coin with candles. */
export interface CandleMarket {
  /**
   * Name in `candleSnapshot`: a perpetual, a spot pair (by name or `@index`), or a perpetual of a builder-deployed dex
   * (`dex:COIN`).
   */
  readonly coin: string
  /** The asset that determines the price. Markets of the same asset have the same price path. */
  readonly asset: string
  /** Mean price. */
  readonly price: number
  /** Typical size of the price change in a day, relative to the price: 0.03 is 3 %. */
  readonly volatility: number
  /** Mean number of trades per minute. */
  readonly tradeRate: number
  /** Size of a typical trade, in lots of 10^-sizeDecimals. */
  readonly tradeLots: number
  /**
   * Mean value of the generated orders at one price of the book, in units of the quote token. Default: the value of two
   * typical trades.
   */
  readonly levelValue?: number
  /** Decimals of a size. */
  readonly sizeDecimals: number
  /** Maximum decimals of a price. Independently of this limit, a price has at most five significant digits. */
  readonly priceDecimals: number
  /** Time of the first trade, in milliseconds: a UTC midnight. There are no bars before it. */
  readonly listedAt: number
  /**
   * Time of the delisting, in milliseconds. The coin stays in the venue's list of perpetuals, so that the asset numbers
   * of other coins do not change.
   */
  readonly delistedAt?: number
  /**
   * A restriction of the margin mode to isolated margin; absent if cross margin is allowed. The margin of a
   * `strictIsolated` position cannot be removed while the position is open.
   */
  readonly marginMode?: "noCross" | "strictIsolated"
  /** The maximum leverage of a perpetual. Default: 20. */
  readonly maxLeverage?: number
  /** Lower maximum leverages of the parts of a position above a value, in ascending order; absent if there is none. */
  readonly marginTable?: { readonly id: number; readonly tiers: ReadonlyArray<MarginTier> }
  /** Mean open interest of participants that are not accounts, in dollars. Default: 1.2 times the volume of a day. */
  readonly interestValue?: number
  /** The largest premium of the price over the oracle's, as a part of the price. Default: 0.00035. */
  readonly premium?: number
  /**
   * Start of the asset's growth mode, in milliseconds. Growth mode reduces the fees to a tenth. Absent for assets
   * without a growth mode.
   */
  readonly growingSince?: number
  /**
   * The open-interest cap, in whole dollars: no position can grow while the total value of all positions is above the
   * cap. Absent if there is no cap.
   */
  readonly openInterestCap?: number
  /** For a market that an account has deployed: the oracle price of a perpetual, and the mark prices with their times. */
  readonly oracle?: { px: string; readonly points: Array<{ readonly time: number; readonly price: number }> }
  /** For such a perpetual: the multiple of the fee that the recipient (default: the deployer) earns. */
  readonly deployerFee?: { readonly scale: string; readonly recipient: Address | null }
  /** For the side of an outcome: the terms from which its price follows. */
  readonly outcome?: OutcomePrice
  /** Whether accounts alone trade: there are no generated orders and trades, and the last trade determines the mark price. */
  readonly isUnquoted?: true
}

/** Returns whether the prices of a market follow from other terms than a random walk under the seed. */
export const isDerived = ({ oracle, outcome }: CandleMarket): boolean => outcome !== undefined || oracle !== undefined

/** Returns whether growth mode is on at the given time. */
export const isGrowing = ({ growingSince }: CandleMarket, now: number): boolean =>
  growingSince !== undefined && growingSince <= now

/** Returns the mean size of the generated orders at one price, in lots. */
export const meanLevelLots = ({ levelValue, price, sizeDecimals, tradeLots }: CandleMarket): number =>
  levelValue === undefined ? 2 * tradeLots : levelValue / price * 10 ** sizeDecimals

/** Returns the maximum leverage of a perpetual. */
export const findMaxLeverage = ({ maxLeverage = usualLeverage }: CandleMarket): number => maxLeverage

/** Returns the margin table of a perpetual: its number, and its tiers in ascending order. */
export const findMarginTable = (market: CandleMarket): Required<CandleMarket>["marginTable"] => {
  const maxLeverage = findMaxLeverage(market)
  // a table below 50 is named after its only tier
  return market.marginTable ?? { id: maxLeverage, tiers: [{ lowerBound: 0, maxLeverage }] }
}

/** Returns the market of a coin; `undefined` for an unknown or delisted coin. */
export const findMarket = (markets: ReadonlyMap<string, CandleMarket>, coin: string): CandleMarket | undefined => {
  const market = markets.get(coin)
  return market?.delistedAt === undefined ? market : undefined
}

/** Returns the dex of a perpetual: `""` for the venue's own dex. Returns `undefined` for spot pairs and outcomes. */
export const coinDex = (coin: string): string | undefined =>
  coin.includes("/") || /^[@#]/u.test(coin) ? undefined : coin.includes(":") ? coin.split(":")[0] : ""

/** The maximum leverage of a perpetual whose row in `listed` does not name one, and the most that an account has at first. */
export const usualLeverage = 20

/**
 * The listed coins. Each row contains the coin, asset, price, volatility, trades per minute, lots per trade, decimals
 * of sizes and prices, day of listing, and what differs from the usual terms. The values of a level follow recorded books
 * of the venue of September and October 2026: the best two or three levels of BTC, ETH, SOL, HYPE, kPEPE and xyz:SP500.
 * The volumes of a day are those of contexts recorded between August 2025 and October 2026, such as 20 000 BTC.
 */
const listed: ReadonlyArray<
  readonly [
    string,
    string,
    number,
    number,
    number,
    number,
    number,
    number,
    string,
    (Pick<CandleMarket, "levelValue" | "marginMode" | "maxLeverage"> & { readonly table?: number })?
  ]
> = [
  ["BTC", "BTC", 68_000, 0.022, 250, 5_500, 5, 1, "2023-02-26", { levelValue: 700_000, table: 56 }],
  ["ETH", "ETH", 2_690, 0.03, 180, 10_900, 4, 2, "2023-02-26", { levelValue: 300_000, table: 55 }],
  ["SOL", "SOL", 148, 0.038, 90, 1_550, 2, 4, "2023-06-01", { levelValue: 75_000, table: 54 }],
  ["HYPE", "HYPE", 31, 0.05, 110, 8_150, 2, 4, "2024-12-05", { levelValue: 50_000, table: 52 }],
  ["kPEPE", "kPEPE", 0.0112, 0.055, 30, 51_600, 0, 6, "2023-05-12", { levelValue: 27_000, table: 52 }],
  ["PURR/USDC", "PURR", 0.172, 0.05, 4, 5_200, 0, 8, "2024-04-16"],
  ["@107", "HYPE", 31, 0.05, 40, 4_000, 2, 6, "2024-11-29", { levelValue: 50_000 }],
  ["xyz:XYZ100", "XYZ100", 24_900, 0.012, 60, 2_490, 4, 2, "2025-10-13", { levelValue: 31_000 }],
  ["XRP", "XRP", 2.2, 0.04, 40, 1_180, 0, 6, "2023-06-20", { levelValue: 40_000, table: 53 }],
  ["BNB", "BNB", 880, 0.03, 14, 1_690, 3, 3, "2023-06-01", { levelValue: 20_000, table: 51 }],
  ["DOGE", "DOGE", 0.19, 0.045, 16, 9_100, 0, 6, "2023-06-01", { levelValue: 20_000, table: 52 }],
  ["SUI", "SUI", 2.1, 0.05, 14, 8_280, 1, 5, "2023-05-03", { levelValue: 20_000, table: 52 }],
  ["AVAX", "AVAX", 20, 0.045, 10, 6_900, 2, 4, "2023-05-01", { levelValue: 20_000, table: 52 }],
  ["LINK", "LINK", 14, 0.042, 16, 1_550, 1, 5, "2023-06-01", { levelValue: 20_000, table: 52 }],
  ["AAVE", "AAVE", 180, 0.045, 12, 1_285, 2, 4, "2023-09-01", { levelValue: 20_000, table: 52 }],
  ["ARB", "ARB", 0.25, 0.05, 8, 45_100, 1, 5, "2023-05-01", { levelValue: 20_000, table: 51 }],
  ["ANIME", "ANIME", 0.028, 0.08, 4, 3_100, 0, 6, "2025-01-23", { maxLeverage: 3, marginMode: "strictIsolated" }],
  ["xyz:GOLD", "GOLD", 4_200, 0.01, 5, 1_500, 4, 2, "2025-11-10"],
  ["flx:TSLA", "TSLA", 430, 0.03, 4, 3_000, 3, 3, "2025-11-20"],
  ["xyz:TSLA", "TSLA", 430, 0.03, 6, 3_000, 3, 3, "2025-11-25"],
  ["xyz:NVDA", "NVDA", 185, 0.028, 8, 5_000, 3, 3, "2025-11-25"],
  ["flx:OIL", "OIL", 64, 0.025, 3, 4_000, 2, 4, "2025-12-01", { marginMode: "strictIsolated" }],
  ["km:US500", "US500", 6_800, 0.009, 6, 900, 3, 3, "2026-01-12"],
  ["km:GOOGL", "GOOGL", 310, 0.022, 3, 2_000, 3, 3, "2026-01-12"],
  ["@230", "USDH", 1, 0.0002, 6, 40_000, 2, 6, "2025-09-24", { levelValue: 100_000 }]
]

/** Returns the time, in milliseconds, at which a day such as `2025-01-01` begins. */
export const midnight = (day: string): number => DateTime.toEpochMillis(DateTime.makeUnsafe(`${day}T00:00:00Z`))

/** The margin mode, the growth mode and the open-interest cap of perpetuals on builder-deployed dexes. */
const builderTerms = {
  marginMode: "noCross",
  growingSince: midnight("2025-11-23"),
  openInterestCap: 100_000_000
} as const

/** Returns the margin table with a number, and its maximum leverage; nothing if the venue has no such table with several tiers. */
const tieredMargin = (id = 0): Pick<CandleMarket, "marginTable" | "maxLeverage"> => {
  const table = marginTables.get(id)
  const [first] = table?.tiers ?? []
  return first === undefined ? {} : { marginTable: { id, tiers: table?.tiers ?? [] }, maxLeverage: first.maxLeverage }
}

const makeMarket = (
  [coin, asset, price, volatility, tradeRate, tradeLots, sizeDecimals, priceDecimals, day, { table, ...terms } = {}]:
    (typeof listed)[number]
): CandleMarket => ({
  coin,
  asset,
  price,
  volatility,
  tradeRate,
  tradeLots,
  sizeDecimals,
  priceDecimals,
  listedAt: midnight(day),
  ...(coin.includes(":") ? builderTerms : {}),
  ...tieredMargin(table),
  ...terms
})

/** The length of a day, in milliseconds. */
const day = 86_400_000

/** Makes the market of a perpetual of which only the facts of the venue's list are known. */
const listedMarket = (
  { coin, dayValue, interestValue, isStrictIsolated, marginTable, price, sizeDecimals }: ListedPerpetual
): CandleMarket => {
  // more trades, and larger ones, in a coin with a larger volume
  const tradeRate = Math.max(0.5, (dayValue / 1e6) ** 0.6)
  return {
    coin,
    asset: coin,
    price,
    volatility: 0.05,
    tradeRate,
    tradeLots: Math.max(1, Math.round(dayValue / 1440 / tradeRate / price * 10 ** sizeDecimals)),
    levelValue: Math.min(20_000, Math.max(500, dayValue / 500)),
    sizeDecimals,
    priceDecimals: 6 - sizeDecimals,
    listedAt: midnight("2025-01-06"),
    maxLeverage: marginTable,
    interestValue,
    premium: 0.0015,
    ...tieredMargin(marginTable),
    ...(isStrictIsolated ? { marginMode: "strictIsolated" } : {}),
    ...(dayValue === 0 ? { delistedAt: midnight("2025-06-01") } : {})
  }
}

/** Returns the initial coins: the perpetuals in the venue's order, and then the others. */
const initialMarkets = (): ReadonlyArray<CandleMarket> => {
  const described = listed.map(makeMarket)
  const named = new Set(perpetuals)
  return [
    ...perpetuals.flatMap((each) =>
      Predicate.isString(each) ? described.filter(({ coin }) => coin === each) : [listedMarket(each)]
    ),
    ...described.filter(({ coin }) => !named.has(coin))
  ]
}

/** The initial coins of a sandbox. */
export const markets: ReadonlyArray<CandleMarket> = initialMarkets()

/**
 * Makes the market of a spot pair that is not in `listed`. The market has a small volume, and the names and decimals of
 * the pair's tokens.
 */
const pairMarket = (
  seed: Random.Seed,
  { name, tokens: [base] }: ListedPair,
  tokens: ReadonlyMap<number, SpotToken>
) => {
  const family = Random.series(seed, `market/${name}`)
  const token = tokens.get(base)
  const sizeDecimals = token?.szDecimals ?? 2
  // coins with more size decimals get a higher price, so that all five significant digits of the price are printed
  const price = 10 ** (sizeDecimals - 2 + 2 * Random.fraction(family, 0))
  return {
    coin: name,
    asset: token?.tokenId ?? name,
    price,
    volatility: 0.03 + 0.07 * Random.fraction(family, 1),
    tradeRate: 0.2 + 3 * Random.fraction(family, 2),
    // a typical trade is worth about 200 units of the quote token
    tradeLots: Math.max(1, Math.round((200 / price) * 10 ** sizeDecimals)),
    sizeDecimals,
    priceDecimals: 8 - sizeDecimals,
    listedAt: midnight("2024-04-16") + Random.below(family, 3, 500) * day
  }
}

/** Makes a market for each perpetual and for each pair of the spot metadata. */
export const makeMarkets = (seed: Random.Seed, { tokens, universe }: SpotMeta): ReadonlyArray<CandleMarket> => {
  const byIndex = new Map(tokens.map((token) => [token.index, token]))
  const named = new Set(markets.map(({ coin }) => coin))
  return [...markets, ...universe.filter(({ name }) => !named.has(name)).map((pair) => pairMarket(seed, pair, byIndex))]
}

/**
 * Formats a price as the venue does: at most five significant digits (a whole number can have more), and at least one
 * decimal place.
 */
export const printPrice = ({ priceDecimals }: Pick<CandleMarket, "priceDecimals">, price: number): string => {
  // a price whose decimals end before its fifth digit is rounded once
  const isShort = price < 10 ** (4 - priceDecimals)
  const digits = price >= 10_000 ? Math.round(price) : isShort ? price : Number(price.toPrecision(5))
  return withDecimal(digits.toFixed(priceDecimals))
}

/** Formats a size in lots as the venue does. */
export const printSize = (market: CandleMarket, lots: number): string =>
  withDecimal((lots / 10 ** market.sizeDecimals).toFixed(market.sizeDecimals))

const withDecimal = (text: string): string => text.includes(".") ? text.replace(/(?<=\.[0-9]+?)0+$/u, "") : `${text}.0`

interface AssetSteps {
  readonly id: number
  readonly coin: string
  readonly market: CandleMarket
  /** Decimals of a size; a lot is `10^-szDecimals`. */
  readonly szDecimals: number
  /** Decimals of a price; a tick is `10^-pxDecimals`. */
  readonly pxDecimals: number
}

/** A perpetual. A price in ticks, multiplied by a size in lots, is an amount in millionths of a dollar. */
export interface Perpetual extends AssetSteps {
  readonly kind: "perpetual"
  readonly dex: string
  readonly maxLeverage: number
  /** The tiers after the first: the value from which each applies, and what its rate counts too much below that value. */
  readonly tiers: ReadonlyArray<{ readonly from: bigint; readonly maxLeverage: number; readonly deduction: bigint }>
}

/** A spot pair. A price in ticks, multiplied by a size in lots, is an amount in units of 10^-8 of the quote token. */
export interface SpotPair extends AssetSteps {
  readonly kind: "spot"
  readonly base: SpotToken
  readonly quote: SpotToken
  /** Number of wei of the base token in one lot. */
  readonly weiPerLot: bigint
  /** Present if the pair is the side of an outcome. */
  readonly side?: { readonly outcome: ListedOutcome; readonly side: 0 | 1 }
}

/** A tradable asset. */
export type Asset = Perpetual | SpotPair

/** All assets at a point in time. */
export interface Listing {
  readonly byId: ReadonlyMap<number, Asset>
  readonly byCoin: ReadonlyMap<string, Asset>
  readonly tokens: ReadonlyMap<number, SpotToken>
  /** The index of HYPE among the spot tokens. */
  readonly hype: number
  /** Builder-deployed dexes, in the order of `perpDexs`. */
  readonly dexes: ReadonlyArray<string>
  /** The time at which the next coin is listed, in milliseconds. Until that time, this list of assets is complete. */
  readonly until: number
}

/** Decimals of dollar amounts in perpetuals. */
export const usdDecimals = 6

/** Decimals of USDC amounts in spot. */
export const spotUsdDecimals = 8

/** Number of wei of spot USDC in one millionth of a dollar. */
export const weiPerUsd = 100n

/** Decimals of the part of fees that the deployer of a token earns. */
export const shareDecimals = 5

/** The index of USDC among spot tokens. */
export const usdc = 0

/** The index of HYPE among the spot tokens of mainnet. */
export const hype = 150

/** The index of USDH among spot tokens. */
export const usdh = 360

/** The builder-deployed dexes whose collateral is another token than USDC, by the index of the token. */
const collateralDexes: ReadonlyMap<number, string> = new Map([[usdh, "km"]])

/** Returns the dex whose collateral a token is, the venue's own dex for USDC; `undefined` for any other token. */
export const findCollateralDex = (token: number): string | undefined => token === usdc ? "" : collateralDexes.get(token)

/** Returns the index of the token in which the perpetuals of a dex are margined and settled. */
export const findCollateral = (dex: string): number => {
  for (const [token, name] of collateralDexes) if (name === dex) return token
  return usdc
}

const firstSpot = 10_000
const firstBuilderDex = 100_000
const idsPerDex = 10_000

const spotPairs = ({ markets, spotMeta }: InfoState, now: number): ReadonlyArray<SpotPair> => {
  const tokens = new Map(spotMeta.tokens.map((token) => [token.index, token]))
  return spotMeta.universe.flatMap(({ index, name, tokens: [baseIndex, quoteIndex] }): ReadonlyArray<SpotPair> => {
    const market = findMarket(markets, name)
    const base = tokens.get(baseIndex)
    const quote = tokens.get(quoteIndex)
    if (market === undefined || market.listedAt >= now || base === undefined || quote === undefined) return []
    const { priceDecimals, sizeDecimals } = market
    // with other decimals, a price in ticks times a size in lots would not be a whole number of wei
    if (quote.weiDecimals !== priceDecimals + sizeDecimals || base.weiDecimals < sizeDecimals) return []
    return [{
      kind: "spot",
      id: firstSpot + index,
      coin: name,
      market,
      szDecimals: sizeDecimals,
      pxDecimals: priceDecimals,
      base,
      quote,
      weiPerLot: 10n ** BigInt(base.weiDecimals - sizeDecimals)
    }]
  })
}

const makeTiers = (market: CandleMarket): Perpetual["tiers"] => {
  const [first, ...others] = findMarginTable(market).tiers
  let below = { maxLeverage: first?.maxLeverage ?? usualLeverage, deduction: 0n }
  return others.map(({ lowerBound, maxLeverage }) => {
    const from = BigInt(lowerBound) * 10n ** BigInt(usdDecimals)
    const more = from / BigInt(2 * maxLeverage) - from / BigInt(2 * below.maxLeverage)
    below = { maxLeverage, deduction: below.deduction + more }
    return { from, maxLeverage, deduction: below.deduction }
  })
}

/** Returns the assets of the venue at the given time. */
export const listingAt = (info: InfoState, now: number): Listing => {
  const traded = [...info.markets.values()].filter(({ listedAt }) => listedAt < now)
  const dexes = [...new Set(traded.flatMap(({ coin }) => coinDex(coin) ?? []))].filter((dex) => dex !== "")
  const perpetuals = ["", ...dexes].flatMap((dex, at) =>
    traded.filter(({ coin }) => coinDex(coin) === dex).map((market, index): Perpetual => ({
      kind: "perpetual",
      id: (at === 0 ? 0 : firstBuilderDex + at * idsPerDex) + index,
      coin: market.coin,
      market,
      szDecimals: market.sizeDecimals,
      pxDecimals: market.priceDecimals,
      dex,
      maxLeverage: findMaxLeverage(market),
      tiers: makeTiers(market)
    }))
  )
  const assets: ReadonlyArray<Asset> = [
    ...perpetuals.filter(({ market, pxDecimals, szDecimals }) =>
      market.delistedAt === undefined && pxDecimals + szDecimals === usdDecimals
    ),
    ...spotPairs(info, now)
  ]
  return {
    byId: new Map(assets.map((asset) => [asset.id, asset])),
    byCoin: new Map(assets.map((asset) => [asset.coin, asset])),
    tokens: new Map(info.spotMeta.tokens.map((token) => [token.index, token])),
    hype: info.spotMeta.tokens.find(({ name }) => name === "HYPE")?.index ?? hype,
    dexes,
    until: [...info.markets.values()].reduce(
      (next, { listedAt }) => listedAt >= now ? Math.min(next, listedAt) : next,
      Number.POSITIVE_INFINITY
    )
  }
}

/** Returns the spot pair of a token with USDC; `undefined` if it is not listed. */
export const findUsdPair = ({ byId }: Listing, token: number): SpotPair | undefined => {
  for (const asset of byId.values()) {
    if (asset.kind === "spot" && asset.base.index === token && asset.quote.index === usdc) return asset
  }
  return undefined
}

/** The decimals of an asset's prices and sizes. */
export type AssetDecimals = Pick<AssetSteps, "pxDecimals" | "szDecimals">

const outcomeDecimals: AssetDecimals = { pxDecimals: 8, szDecimals: 0 }

/** Returns the decimals of a coin, also of the side of a settled outcome; `undefined` for an unknown coin. */
export const findDecimals = ({ byCoin }: Listing, coin: string): AssetDecimals | undefined =>
  byCoin.get(coin) ?? (coin.startsWith("#") ? outcomeDecimals : undefined)

/** Formats a price in ticks. */
export const printPx = ({ pxDecimals }: Pick<AssetSteps, "pxDecimals">, px: bigint): string =>
  printDecimal(px, pxDecimals)

/** Formats a size in lots. */
export const printSz = ({ szDecimals }: Pick<AssetSteps, "szDecimals">, sz: bigint): string =>
  printDecimal(sz, szDecimals)

/** Formats an amount in millionths of a dollar. */
export const printUsd = (usd: bigint): string => printDecimal(usd, usdDecimals)

/** Maximum number of significant digits of a price that is not an integer. */
const mostDigits = 5

/**
 * Parses a price.
 *
 * Returns `invalid` for text that is not a price. Returns `tick` for a price that is not a multiple of the tick: it has
 * more decimals than the asset allows, or it has more than five significant digits and is not an integer.
 */
export const readPx = ({ pxDecimals }: Asset, text: string): bigint | "invalid" | "tick" => {
  const fine = parseDecimal(text, 8)
  if (fine === undefined || fine <= 0n) return "invalid"
  const px = parseDecimal(text, pxDecimals)
  return px === undefined || significantDigits(text) > mostDigits ? "tick" : px
}

/** Parses a price that a test sets, which has the form of an order's price. Fails with the text of the mistake. */
export const readGivenPx = (asset: Asset, text: string): Result.Result<bigint, string> => {
  const px = readPx(asset, text)
  if (px === "invalid") return Result.fail("Expected a price above 0")
  return px === "tick"
    ? Result.fail(`Expected at most ${mostDigits} significant digits and ${asset.pxDecimals} decimals, as in an order`)
    : Result.succeed(px)
}
