/** Coins that have candles: how their prices and sizes look, and since when they trade. */
import * as DateTime from "effect/DateTime"

/** A coin with candles. */
export interface CandleMarket {
  /** Name in `candleSnapshot`: a perpetual, a spot pair by name or `@index`, or a builder's `dex:COIN`. */
  readonly coin: string
  /** What is priced: markets of one asset move together. */
  readonly asset: string
  /** Price that the walk moves around. */
  readonly price: number
  /** Typical daily move, relative: 0.03 is 3 %. */
  readonly volatility: number
  /** Trades a minute. */
  readonly tradeRate: number
  /** Size of a typical trade, in lots of 10^-sizeDecimals. */
  readonly tradeLots: number
  /** Decimals of a size. */
  readonly sizeDecimals: number
  /** Most decimals that a price may have; five significant digits bound it too. */
  readonly priceDecimals: number
  /** First instant with trades, in milliseconds, a UTC midnight; no bar exists before it. */
  readonly listedAt: number
}

const utc = (date: string): number => DateTime.toEpochMillis(DateTime.makeUnsafe(`${date}T00:00:00Z`))

/** The coins that a sandbox starts with. */
export const markets: ReadonlyArray<CandleMarket> = [
  {
    coin: "BTC",
    asset: "BTC",
    price: 68_000,
    volatility: 0.022,
    tradeRate: 42,
    tradeLots: 1_900,
    sizeDecimals: 5,
    priceDecimals: 1,
    listedAt: utc("2023-02-26")
  },
  {
    coin: "ETH",
    asset: "ETH",
    price: 2_690,
    volatility: 0.03,
    tradeRate: 36,
    tradeLots: 9_400,
    sizeDecimals: 4,
    priceDecimals: 2,
    listedAt: utc("2023-02-26")
  },
  {
    coin: "SOL",
    asset: "SOL",
    price: 148,
    volatility: 0.038,
    tradeRate: 24,
    tradeLots: 1_450,
    sizeDecimals: 2,
    priceDecimals: 4,
    listedAt: utc("2023-06-01")
  },
  {
    coin: "HYPE",
    asset: "HYPE",
    price: 31,
    volatility: 0.05,
    tradeRate: 21,
    tradeLots: 3_100,
    sizeDecimals: 2,
    priceDecimals: 4,
    listedAt: utc("2024-12-05")
  },
  {
    coin: "kPEPE",
    asset: "kPEPE",
    price: 0.0112,
    volatility: 0.055,
    tradeRate: 12,
    tradeLots: 640_000,
    sizeDecimals: 0,
    priceDecimals: 6,
    listedAt: utc("2023-05-12")
  },
  {
    coin: "PURR/USDC",
    asset: "PURR",
    price: 0.172,
    volatility: 0.05,
    tradeRate: 4,
    tradeLots: 5_200,
    sizeDecimals: 0,
    priceDecimals: 8,
    listedAt: utc("2024-04-16")
  },
  {
    coin: "@107",
    asset: "HYPE",
    price: 31,
    volatility: 0.05,
    tradeRate: 14,
    tradeLots: 2_200,
    sizeDecimals: 2,
    priceDecimals: 6,
    listedAt: utc("2024-11-29")
  },
  {
    coin: "xyz:XYZ100",
    asset: "XYZ100",
    price: 24_900,
    volatility: 0.012,
    tradeRate: 9,
    tradeLots: 700,
    sizeDecimals: 4,
    priceDecimals: 2,
    listedAt: utc("2025-10-13")
  }
]

/** A price as the venue prints it: five significant digits, whole numbers always allowed, at least one decimal place. */
export const printPrice = (market: CandleMarket, price: number): string => {
  const digits = price >= 10_000 ? Math.round(price) : Number(price.toPrecision(5))
  return withDecimal(digits.toFixed(market.priceDecimals))
}

/** A size given in lots, as the venue prints it. */
export const printSize = (market: CandleMarket, lots: number): string =>
  withDecimal((lots / 10 ** market.sizeDecimals).toFixed(market.sizeDecimals))

const withDecimal = (text: string): string => text.includes(".") ? text.replace(/(?<=\.[0-9]+?)0+$/u, "") : `${text}.0`
