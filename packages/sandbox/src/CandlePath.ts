/**
 * The price and the trades of an asset over time, as functions of time.
 *
 * Any stretch of time is summarised from the largest aligned blocks that fit in it, each in constant time, so that bars of
 * all intervals, and bars that are still forming, agree with each other without one being made from the other.
 * Times are in minutes since the epoch; a fraction is a part of a minute.
 */
import type { Seed, Series } from "./Seed.ts"
import * as Random from "./Seed.ts"

/** The walk of one asset under one seed. */
export interface CandlePath {
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

/** Lengths of the blocks, each a divisor of the next; the price moves at their ends and, by the octaves, in between. */
const blocks = [1, 15, 240, 1440] as const

const day = 1440

/** By how much the logarithm of the price moves on each scale, in daily moves. */
const priceScales = [[1, 0.03], [15, 0.11], [240, 0.34], [day, 1], [8 * day, 2.6], [64 * day, 6]] as const

/** By how many minutes trading runs ahead or behind on each scale; the slopes add up to less than one, so it never stops. */
const activityScales = [[1, 0.2], [15, 2.2], [day, 170]] as const

/** How far a price leaves the walk inside a minute, in daily moves. */
const wick = 0.02

const octaves = (seed: Seed, name: string, scales: ReadonlyArray<readonly [step: number, amplitude: number]>) =>
  scales.map(([step, amplitude]): Octave => ({ family: Random.series(seed, `${name}/${step}`), step, amplitude }))

/** The walk of an asset. */
export const make = (seed: Seed, asset: string, volatility: number): CandlePath => ({
  volatility,
  price: octaves(seed, `candles/${asset}/price`, priceScales),
  activity: octaves(seed, `candles/${asset}/activity`, activityScales),
  highs: Random.series(seed, `candles/${asset}/highs`),
  lows: Random.series(seed, `candles/${asset}/lows`),
  sizes: Random.series(seed, `candles/${asset}/sizes`)
})

const sum = (all: ReadonlyArray<Octave>, at: number, finest: number): number =>
  all.reduce(
    (total, { amplitude, family, step }) => step < finest ? total : total + amplitude * Random.noise(family, step, at),
    0
  )

/** Logarithm of the price relative to the asset's middle price. */
export const level = (path: CandlePath, at: number): number => path.volatility * sum(path.price, at, 1)

/** Highest and lowest `level` of a stretch of time. */
export interface Extremes {
  readonly high: number
  readonly low: number
}

/** How far the octaves finer than a block can lead away from the straight line between its ends. */
const reach = blocks.map((block) =>
  priceScales.reduce((total, [step, amplitude]) => step < block ? total + amplitude : total, wick)
)

const blockAt = (rank: number): number => blocks[rank] ?? day

/** Which of the blocks inside a block holds its extreme. */
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

/** Extremes from `from`, a whole minute, up to `to`; the minute that `to` cuts counts as far as it has gone. */
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

/** Trades up to an instant, at `rate` trades a minute. */
export const trades = (path: CandlePath, rate: number, at: number): number =>
  Math.floor(rate * (at + sum(path.activity, at, 1)))

/** Lots traded in the first `count` trades, `typical` lots in a typical one. */
export const lots = (path: CandlePath, typical: number, count: number): number =>
  Math.floor(typical * (count + 0.45 * (Random.fraction(path.sizes, count) * 2 - 1)))
