/**
 * The coins of the venue: their number formats, and their prices, candles and books as functions of time.
 *
 * The candle of any period is computed from the largest aligned blocks of time in the period (a block has 1 minute to 1
 * day). Each block takes constant time. All intervals use the same blocks, so their bars are consistent with each
 * other, and with prices and books.
 */
import type { Candle, CandleInterval, CandleWindowRequest } from "@trigate/domain/candles/Candle"
import { barAt, closeTime, openTime, retainedBars } from "@trigate/domain/candles/CandleWindow"
import type { BookLevel } from "@trigate/domain/info/Market"
import type { SpotMeta, SpotPair, SpotToken } from "@trigate/domain/info/SpotMeta"
import * as DateTime from "effect/DateTime"
import type { Seed, Series } from "../Seed.ts"
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

/** The length of a minute, in milliseconds. */
const minute = 60_000

/** The length of a day, in minutes. */
const day = 1440

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
    listedAt: midnight("2024-04-16") +
      Random.below(family, 3, 500) * day * minute
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

/** The price path of one asset under one seed. Times are in minutes since 1970, with fractions. */
interface CandlePath {
  readonly volatility: number
  readonly price: ReadonlyArray<Octave>
  readonly activity: ReadonlyArray<Octave>
  readonly highs: Series
  readonly lows: Series
  readonly sizes: Series
}

interface Octave {
  readonly family: Series
  readonly step: number
  readonly amplitude: number
}

/** Lengths of the time blocks, in minutes. Each length divides the next one. */
const blocks = [1, 15, 240, 1440] as const

/**
 * The time scales of price movements. Each entry contains the scale in minutes, and the amplitude of the price's
 * logarithm in units of the daily volatility.
 */
const priceScales = [[1, 0.03], [15, 0.11], [240, 0.34], [day, 1], [8 * day, 2.6], [64 * day, 6]] as const

/**
 * The time scales of trading activity. Each entry contains the scale in minutes, and the maximum deviation of the trade
 * count from a constant rate, in minutes of average trading.
 *
 * Within a minute, the sum of the deviations changes by less than one minute of average trading, so the total number of
 * trades never decreases.
 */
const activityScales = [[1, 0.2], [15, 2.2], [day, 170]] as const

/** Maximum deviation of the price from the path within a minute, in units of the daily volatility. */
const wick = 0.02

const octaves = (seed: Seed, name: string, scales: ReadonlyArray<readonly [step: number, amplitude: number]>) =>
  scales.map(([step, amplitude]): Octave => ({ family: Random.series(seed, `${name}/${step}`), step, amplitude }))

const makeWalk = (seed: Seed, { asset, volatility }: CandleMarket): CandlePath => ({
  volatility,
  price: octaves(seed, `candles/${asset}/price`, priceScales),
  activity: octaves(seed, `candles/${asset}/activity`, activityScales),
  highs: Random.series(seed, `candles/${asset}/highs`),
  lows: Random.series(seed, `candles/${asset}/lows`),
  sizes: Random.series(seed, `candles/${asset}/sizes`)
})

/** The price path of each market, cached for the seed that was used last. */
const walks = new WeakMap<CandleMarket, { readonly seed: Seed; readonly path: CandlePath }>()

const priceWalk = (seed: Seed, market: CandleMarket): CandlePath => {
  const known = walks.get(market)
  if (known?.seed === seed) return known.path
  const path = makeWalk(seed, market)
  walks.set(market, { seed, path })
  return path
}

const sum = (all: ReadonlyArray<Octave>, at: number, finest: number): number =>
  all.reduce(
    (total, { amplitude, family, step }) => step < finest ? total : total + amplitude * Random.noise(family, step, at),
    0
  )

/** Returns the logarithm of the price relative to the asset's mean price. */
const level = (path: CandlePath, at: number): number => path.volatility * sum(path.price, at, 1)

/** Highest and lowest `level` (logarithm of the relative price) in a period. */
interface Extremes {
  readonly high: number
  readonly low: number
}

/**
 * For each block length: the largest contribution to the price's logarithm by movements that are faster than a block.
 * In units of the daily volatility.
 */
const reach = blocks.map((block) =>
  priceScales.reduce((total, [step, amplitude]) => step < block ? total + amplitude : total, wick)
)

const blockAt = (rank: number): number => blocks[rank] ?? day

/** Returns which of the smaller blocks in a block contains the block's extreme, as an index from 0. */
const holder = (family: Series, rank: number, parent: number): number =>
  Random.below(family, parent * blocks.length + rank, blockAt(rank) / blockAt(rank - 1))

const extreme = (path: CandlePath, rank: number, index: number, side: 1 | -1): number => {
  const children = blockAt(rank + 1) / blockAt(rank)
  const parent = Math.floor(index / children)
  const family = side === 1 ? path.highs : path.lows
  if (rank + 1 < blocks.length && holder(family, rank + 1, parent) === index - parent * children) {
    return extreme(path, rank + 1, parent, side)
  }
  const block = blockAt(rank)
  const ends = [sum(path.price, index * block, block), sum(path.price, (index + 1) * block, block)]
  return path.volatility * side * (Math.max(...ends.map((end) => end * side)) + (reach[rank] ?? 0))
}

const merge = (a: Extremes, b: Extremes): Extremes => ({ high: Math.max(a.high, b.high), low: Math.min(a.low, b.low) })

const point = (path: CandlePath, at: number): Extremes => {
  const value = level(path, at)
  return { high: value, low: value }
}

/** Returns the extremes between `from`, a whole minute, and `to`, which can be inside a minute. */
const extremes = (path: CandlePath, from: number, to: number): Extremes => {
  let found = merge(point(path, from), point(path, to))
  let at = from
  while (at + 1 <= to) {
    const rank = blocks.findLastIndex((block) => at % block === 0 && at + block <= to)
    const index = at / blockAt(rank)
    found = merge(found, { high: extreme(path, rank, index, 1), low: extreme(path, rank, index, -1) })
    at += blockAt(rank)
  }
  return found
}

/** Returns the number of trades up to a time, at `rate` trades per minute. */
const tradesBy = (path: CandlePath, rate: number, at: number): number =>
  Math.floor(rate * (at + sum(path.activity, at, 1)))

/** Returns the total lots of the first `count` trades. `typical` is the number of lots in a typical trade. */
const lotsIn = (path: CandlePath, typical: number, count: number): number =>
  Math.floor(typical * (count + 0.45 * (Random.fraction(path.sizes, count) * 2 - 1)))

const bar = (
  market: CandleMarket,
  path: CandlePath,
  interval: CandleInterval,
  index: number,
  now: number
): Candle => {
  const t = openTime(interval, index)
  const T = closeTime(interval, index)
  const from = Math.max(t, market.listedAt) / minute
  const to = Math.min(T + 1, now) / minute
  const { high, low } = extremes(path, from, to)
  const price = (level: number) => printPrice(market, market.price * Math.exp(level))
  const before = tradesBy(path, market.tradeRate, from)
  const after = tradesBy(path, market.tradeRate, to)
  const traded = lotsIn(path, market.tradeLots, after) - lotsIn(path, market.tradeLots, before)
  return {
    t,
    T,
    s: market.coin,
    i: interval,
    o: price(level(path, from)),
    c: price(level(path, to)),
    h: price(high),
    l: price(low),
    v: printSize(market, traded),
    n: after - before
  }
}

/**
 * Returns the bars of a market in a window, oldest first, at the time `now`.
 *
 * A bar is in the window if it closes at or after `startTime` (`T >= startTime`) and opens at or before `endTime` (`t
 * <= endTime`). Default `endTime`: now. There are no bars that begin at or after `now`, or that end before the listing.
 * Only the newest 5000 bars exist.
 */
export const bars = (
  seed: Seed,
  market: CandleMarket,
  request: CandleWindowRequest,
  now: number
): ReadonlyArray<Candle> => {
  const { endTime, interval, startTime } = request
  if (now <= market.listedAt) {
    return []
  }
  const newest = barAt(interval, now - 1)
  const first = Math.max(
    newest - retainedBars + 1,
    barAt(interval, market.listedAt),
    barAt(interval, startTime)
  )
  const last = Math.min(newest, barAt(interval, endTime ?? now))
  const path = priceWalk(seed, market)
  return Array.from(
    { length: Math.max(0, last - first + 1) },
    (_, offset) => bar(market, path, interval, first + offset, now)
  )
}

/**
 * Returns statistics of a market for the last 24 hours, or since its listing if the market is newer: the price at the
 * start and at the end, and the traded volume in lots of 10^-sizeDecimals.
 */
export const dayStatistics = (seed: Seed, market: CandleMarket, now: number) => {
  const path = priceWalk(seed, market)
  const to = now / minute
  const from = Math.max(market.listedAt / minute, to - day)
  const priceAt = (at: number) => market.price * Math.exp(level(path, at))
  const lotsBy = (at: number) => lotsIn(path, market.tradeLots, tradesBy(path, market.tradeRate, at))
  return { price: priceAt(to), before: priceAt(from), lots: lotsBy(to) - lotsBy(from) }
}

/** Returns the price at the given time. Between two whole minutes, the price only rises or only falls. */
export const priceAt = (seed: Seed, market: CandleMarket, now: number): number =>
  market.price * Math.exp(level(priceWalk(seed, market), now / minute))

/**
 * Returns the smallest price step: one unit of the fifth significant digit, but at most 1 and not finer than the
 * market's decimals.
 */
const stepAt = ({ priceDecimals }: CandleMarket, price: number): number =>
  Math.max(10 ** -priceDecimals, 10 ** Math.min(0, Math.floor(Math.log10(price)) - 4))

const depth = 20

const ranks = Array.from({ length: depth }, (_, index) => index + 1)

/**
 * Makes both sides of a book. The best level of each side is first, one price step away from the price. Sizes change
 * once a minute.
 */
export const makeBook = (
  seed: Seed,
  market: CandleMarket,
  now: number
): readonly [bids: ReadonlyArray<BookLevel>, asks: ReadonlyArray<BookLevel>] => {
  return bookAround(seed, market, now, priceAt(seed, market, now))
}

/** Makes a book like {@link makeBook}, but around a given price. */
export const bookAround = (
  seed: Seed,
  market: CandleMarket,
  now: number,
  price: number
): readonly [bids: ReadonlyArray<BookLevel>, asks: ReadonlyArray<BookLevel>] => {
  // the step at the highest level, whose price can have one more digit before the decimal point than `price`
  const step = stepAt(market, price + depth * stepAt(market, price))
  const family = Random.series(seed, `book/${market.coin}/${Math.floor(now / minute)}`)
  const side = (direction: 1 | -1) =>
    ranks.flatMap((rank): ReadonlyArray<BookLevel> => {
      const at = price + direction * rank * step
      return at < step ? [] : [{
        px: printPrice(market, at),
        sz: printSize(market, 1 + Random.below(family, direction * rank + depth, 4 * market.tradeLots)),
        n: 1 + Random.below(family, direction * rank + 3 * depth, 9)
      }]
    })
  return [side(-1), side(1)]
}
