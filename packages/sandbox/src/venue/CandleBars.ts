/**
 * The price path of the venue's coins as a function of time, and the bars and daily statistics that follow it.
 *
 * The extremes of any period are computed from the largest aligned blocks of time in the period (a block has 1 minute
 * to 1 day). Each block takes constant time.
 *
 * The bars of all intervals follow one price path, so they are consistent with each other, and with prices and books.
 */
import * as Candle from "@trigate/domain/candles/Candle"
import * as Random from "../Seed.ts"
import { type CandleMarket, printPrice, printSize } from "./Assets.ts"

/** The length of a minute, in milliseconds. */
export const minute = 60_000

/** The length of a day, in minutes. */
export const day = 1440

/** The price path of one asset under one seed. Times are in minutes since 1970, with fractions. */
export interface CandlePath {
  readonly volatility: number
  readonly price: ReadonlyArray<Octave>
  readonly activity: ReadonlyArray<Octave>
  readonly highs: Random.Series
  readonly lows: Random.Series
  readonly sizes: Random.Series
}

interface Octave {
  readonly family: Random.Series
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

const octaves = (seed: Random.Seed, name: string, scales: ReadonlyArray<readonly [step: number, amplitude: number]>) =>
  scales.map(([step, amplitude]): Octave => ({ family: Random.series(seed, `${name}/${step}`), step, amplitude }))

const makeWalk = (seed: Random.Seed, { asset, volatility }: CandleMarket): CandlePath => ({
  volatility,
  price: octaves(seed, `candles/${asset}/price`, priceScales),
  activity: octaves(seed, `candles/${asset}/activity`, activityScales),
  highs: Random.series(seed, `candles/${asset}/highs`),
  lows: Random.series(seed, `candles/${asset}/lows`),
  sizes: Random.series(seed, `candles/${asset}/sizes`)
})

/** The price path of each market, cached for the seed that was used last. */
const walks = new WeakMap<CandleMarket, { readonly seed: Random.Seed; readonly path: CandlePath }>()

/** Returns the price path of a market. */
export const priceWalk = (seed: Random.Seed, market: CandleMarket): CandlePath => {
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
export const level = (path: CandlePath, at: number): number => path.volatility * sum(path.price, at, 1)

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
const holder = (family: Random.Series, rank: number, parent: number): number =>
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
export const extremes = (path: CandlePath, from: number, to: number): Extremes => {
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
export const tradesBy = (path: CandlePath, rate: number, at: number): number =>
  Math.floor(rate * (at + sum(path.activity, at, 1)))

/**
 * Returns the total lots of the first `count` trades. `typical` is the number of lots in a typical trade; each trade has at
 * least one.
 */
export const lotsIn = (path: CandlePath, typical: number, count: number): number =>
  Math.floor(
    typical * count + Math.min(0.45 * typical, (typical - 1) / 2) * (Random.fraction(path.sizes, count) * 2 - 1)
  )

/** A trade of the tape: its number since the beginning, the end of the second in which it happens, and its size. */
export interface TapeTrade {
  readonly number: number
  readonly second: number
  readonly lots: number
}

/** Returns the number of trades of a market since the beginning, up to the last whole second. */
export const tradeCount = (seed: Random.Seed, market: CandleMarket, now: number): number =>
  tradesBy(priceWalk(seed, market), market.tradeRate, Math.floor(now / 1_000) / 60)

/**
 * Returns the latest trades of a market, at most `most`, newest first. They are the trades that the bars count: the
 * number and the total size of the trades in the time of a bar are those of the bar.
 */
export const tape = (seed: Random.Seed, market: CandleMarket, now: number, most: number): ReadonlyArray<TapeTrade> => {
  const path = priceWalk(seed, market)
  const countBy = (second: number) => tradesBy(path, market.tradeRate, second / 60)
  const sizeOfFirst = (count: number) => lotsIn(path, market.tradeLots, count)
  const trades: Array<TapeTrade> = []
  let second = Math.floor(now / 1_000)
  const last = countBy(second)
  const first = Math.max(last - most, countBy(market.listedAt / 1_000))
  for (let number = last; number > first; number--) {
    // the second of a trade is the first one with its number: at most the second of the trade after it
    let [low, step] = [second - 1, 1]
    while (countBy(low) >= number) {
      second = low
      step *= 2
      low -= step
    }
    while (second - low > 1) {
      const middle = Math.floor((low + second) / 2)
      if (countBy(middle) >= number) second = middle
      else low = middle
    }
    trades.push({ number, second, lots: sizeOfFirst(number) - sizeOfFirst(number - 1) })
  }
  return trades
}

/** Returns the price at the given time. Between two whole minutes, the price only rises or only falls. */
export const priceAt = (seed: Random.Seed, market: CandleMarket, now: number): number =>
  market.price * Math.exp(level(priceWalk(seed, market), now / minute))

const bar = (
  market: CandleMarket,
  path: CandlePath,
  interval: Candle.CandleInterval,
  index: number,
  now: number
): Candle.Candle => {
  const t = Candle.openTime(interval, index)
  const T = Candle.closeTime(interval, index)
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
  seed: Random.Seed,
  market: CandleMarket,
  request: Candle.CandleWindowRequest,
  now: number
): ReadonlyArray<Candle.Candle> => {
  const { endTime, interval, startTime } = request
  if (now <= market.listedAt) {
    return []
  }
  const newest = Candle.barAt(interval, now - 1)
  const first = Math.max(
    newest - Candle.retainedBars + 1,
    Candle.barAt(interval, market.listedAt),
    Candle.barAt(interval, startTime)
  )
  const last = Math.min(newest, Candle.barAt(interval, endTime ?? now))
  const path = priceWalk(seed, market)
  return Array.from(
    { length: Math.max(0, last - first + 1) },
    (_, offset) => bar(market, path, interval, first + offset, now)
  )
}

/** The mean open interest of a perpetual, as a multiple of its mean volume in a day. */
const interest = 1.2

/**
 * Returns the open interest of a perpetual among participants that are not accounts of the sandbox, in lots. It changes
 * each hour, by a tenth over days, and stays below half of the cap.
 */
export const generatedInterest = (seed: Random.Seed, market: CandleMarket, now: number): number => {
  const { interestValue, openInterestCap = Number.POSITIVE_INFINITY, price, sizeDecimals, tradeLots, tradeRate } =
    market
  const family = Random.series(seed, `interest/${market.coin}`)
  const mean = interestValue === undefined
    ? tradeRate * tradeLots * day * interest
    : interestValue / price * 10 ** sizeDecimals
  const most = openInterestCap / 2 / price * 10 ** sizeDecimals
  return Math.floor(Math.min(most, mean * (1 + 0.1 * Random.noise(family, 72, Math.floor(now / 60 / minute)))))
}

/** The largest premium of a market that does not name one. With it, the funding rate is the base rate. */
const usualPremium = 0.00035

/** Returns the mean premium of a perpetual's price over the oracle's price in the hour of a time, as a part of the price. */
export const premiumAt = (seed: Random.Seed, { coin, premium = usualPremium }: CandleMarket, now: number): number =>
  premium * Random.noise(Random.series(seed, `premium/${coin}`), 6, Math.floor(now / 60 / minute))

/**
 * Returns statistics of a market for the last 24 hours, or since its listing if the market is newer: the price at the
 * start and at the end, and the traded volume in lots of 10^-sizeDecimals.
 */
export const dayStatistics = (seed: Random.Seed, market: CandleMarket, now: number) => {
  const path = priceWalk(seed, market)
  const to = now / minute
  const from = Math.max(market.listedAt / minute, to - day)
  const priceAt = (at: number) => market.price * Math.exp(level(path, at))
  const lotsBy = (at: number) => lotsIn(path, market.tradeLots, tradesBy(path, market.tradeRate, at))
  return { price: priceAt(to), before: priceAt(from), lots: lotsBy(to) - lotsBy(from) }
}
