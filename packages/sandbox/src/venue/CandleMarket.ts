/** The coins of the venue, with their properties and number formats. */
import type { SpotMeta, SpotPair, SpotToken } from "@trigate/domain/info/SpotMeta"
import * as DateTime from "effect/DateTime"
import type { Seed } from "../Seed.ts"
import * as Random from "../Seed.ts"

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
}

/** Returns whether growth mode is on at the given time. */
export const isGrowing = ({ growingSince }: CandleMarket, now: number): boolean =>
  growingSince !== undefined && growingSince <= now

/** Returns the market of a coin; `undefined` for an unknown or delisted coin. */
export const findMarket = (markets: ReadonlyMap<string, CandleMarket>, coin: string): CandleMarket | undefined => {
  const market = markets.get(coin)
  return market?.delistedAt === undefined ? market : undefined
}

/** Returns the dex of a perpetual: `""` for the venue's own dex. Returns `undefined` for spot pairs. */
export const coinDex = (coin: string): string | undefined =>
  coin.includes("/") || coin.startsWith("@") ? undefined : coin.includes(":") ? coin.split(":")[0] : ""

/**
 * The listed coins. Each row contains the coin, asset, price, volatility, trades per minute, lots per trade, decimals
 * of sizes and prices, and day of listing.
 */
const listed: ReadonlyArray<
  readonly [string, string, number, number, number, number, number, number, string]
> = [
  ["BTC", "BTC", 68_000, 0.022, 42, 1_900, 5, 1, "2023-02-26"],
  ["ETH", "ETH", 2_690, 0.03, 36, 9_400, 4, 2, "2023-02-26"],
  ["SOL", "SOL", 148, 0.038, 24, 1_450, 2, 4, "2023-06-01"],
  ["HYPE", "HYPE", 31, 0.05, 21, 3_100, 2, 4, "2024-12-05"],
  ["kPEPE", "kPEPE", 0.0112, 0.055, 12, 640_000, 0, 6, "2023-05-12"],
  ["PURR/USDC", "PURR", 0.172, 0.05, 4, 5_200, 0, 8, "2024-04-16"],
  ["@107", "HYPE", 31, 0.05, 14, 2_200, 2, 6, "2024-11-29"],
  ["xyz:XYZ100", "XYZ100", 24_900, 0.012, 9, 700, 4, 2, "2025-10-13"]
]

const midnight = (day: string): number => DateTime.toEpochMillis(DateTime.makeUnsafe(`${day}T00:00:00Z`))

/** The margin mode, the growth mode and the open-interest cap of perpetuals on builder-deployed dexes. */
const builderTerms = {
  marginMode: "noCross",
  growingSince: midnight("2025-11-23"),
  openInterestCap: 100_000_000
} as const

const makeMarket = (
  [coin, asset, price, volatility, tradeRate, tradeLots, sizeDecimals, priceDecimals, day]: (typeof listed)[number]
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
  ...(coin.includes(":") ? builderTerms : {})
})

/** The initial coins of a sandbox. */
export const markets: ReadonlyArray<CandleMarket> = listed.map(makeMarket)

/** The length of a day, in milliseconds. */
const day = 86_400_000

/**
 * Makes the market of a spot pair that is not in `listed`. The market has a small volume, and the names and decimals of
 * the pair's tokens.
 */
const pairMarket = (seed: Seed, { name, tokens: [base] }: SpotPair, tokens: ReadonlyMap<number, SpotToken>) => {
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
export const makeMarkets = (seed: Seed, { tokens, universe }: SpotMeta): ReadonlyArray<CandleMarket> => {
  const byIndex = new Map(tokens.map((token) => [token.index, token]))
  const named = new Set(markets.map(({ coin }) => coin))
  return [...markets, ...universe.filter(({ name }) => !named.has(name)).map((pair) => pairMarket(seed, pair, byIndex))]
}

/**
 * Formats a price as the venue does: at most five significant digits (a whole number can have more), and at least one
 * decimal place.
 */
export const printPrice = (market: CandleMarket, price: number): string => {
  const digits = price >= 10_000 ? Math.round(price) : Number(price.toPrecision(5))
  return withDecimal(digits.toFixed(market.priceDecimals))
}

/** Formats a size in lots as the venue does. */
export const printSize = (market: CandleMarket, lots: number): string =>
  withDecimal((lots / 10 ** market.sizeDecimals).toFixed(market.sizeDecimals))

const withDecimal = (text: string): string => text.includes(".") ? text.replace(/(?<=\.[0-9]+?)0+$/u, "") : `${text}.0`
