/**
 * Builds the bars of a larger interval from the bars of a smaller interval. The result is exact: prices are compared
 * and volumes are added as decimals, never as doubles.
 */
import type { BarRange, BarRanges, Candle, CandleInterval } from "@trigate/domain/candles/Candle"
import { barAt, closeTime, intervalLengths, openTime } from "@trigate/domain/candles/Candle"

const day = intervalLengths["1d"]

/** Returns whether every bar of the larger interval begins and ends together with bars of the smaller interval. */
export const builds = (smaller: CandleInterval, larger: CandleInterval): boolean => {
  if (smaller === "1M") return false
  const length = intervalLengths[smaller]
  // a month can begin at any midnight (UTC), so a smaller interval must divide a day
  return larger === "1M"
    ? day % length === 0
    : intervalLengths[larger] > length && intervalLengths[larger] % length === 0
}

/** A decimal as a whole number of units of 10^-scale. */
interface Units {
  readonly units: bigint
  readonly scale: number
}

const parseUnits = (text: string): Units => {
  const point = text.indexOf(".")
  return point < 0
    ? { units: BigInt(text), scale: 0 }
    : { units: BigInt(text.slice(0, point) + text.slice(point + 1)), scale: text.length - point - 1 }
}

const at = ({ scale, units }: Units, larger: number): bigint => units * 10n ** BigInt(larger - scale)

const isMore = (a: string, b: string): boolean => {
  const [left, right] = [parseUnits(a), parseUnits(b)]
  const scale = Math.max(left.scale, right.scale)
  return at(left, scale) > at(right, scale)
}

/** Adds decimals. The sum is formatted like the venue's volumes: no trailing zeros, but at least one decimal place. */
const sum = (texts: ReadonlyArray<string>): string => {
  const all = texts.map(parseUnits)
  const scale = Math.max(1, ...all.map(({ scale }) => scale))
  const total = all.reduce((sum, each) => sum + at(each, scale), 0n)
  const digits = String(total < 0n ? -total : total).padStart(scale + 1, "0")
  const decimals = digits.slice(-scale).replace(/(?<=[0-9])0+$/u, "")
  return `${total < 0n ? "-" : ""}${digits.slice(0, -scale)}.${decimals}`
}

const joined = (interval: CandleInterval, bar: number, first: Candle, bars: ReadonlyArray<Candle>): Candle => ({
  t: openTime(interval, bar),
  T: closeTime(interval, bar),
  s: first.s,
  i: interval,
  o: first.o,
  c: bars.at(-1)?.c ?? first.c,
  h: bars.reduce((high, { h }) => isMore(h, high) ? h : high, first.h),
  l: bars.reduce((low, { l }) => isMore(low, l) ? l : low, first.l),
  v: sum(bars.map(({ v }) => v)),
  n: bars.reduce((count, { n }) => count + n, 0)
})

/**
 * Builds the bars of an interval from bars of a smaller interval, which must be in order. If there are no smaller bars
 * in the period of a larger bar, the larger bar is omitted.
 */
export const build = (interval: CandleInterval, bars: ReadonlyArray<Candle>): ReadonlyArray<Candle> =>
  [...Map.groupBy(bars, ({ t }) => barAt(interval, t))].flatMap(([bar, parts]) => {
    const [first] = parts
    return first === undefined ? [] : [joined(interval, bar, first, parts)]
  })

/** Converts a range of larger bars to the range of smaller bars with the same period. */
export const smallerRange = (smaller: CandleInterval, larger: CandleInterval, { from, to }: BarRange): BarRange => ({
  from: barAt(smaller, openTime(larger, from)),
  to: barAt(smaller, closeTime(larger, to))
})

/** Returns the ranges of larger bars that can be built: those whose smaller bars are all in the ranges `known`. */
export const whole = (smaller: CandleInterval, larger: CandleInterval, known: BarRanges): BarRanges =>
  known.flatMap(({ from, to }) => {
    const open = openTime(smaller, from)
    const first = barAt(larger, open)
    const range = {
      from: openTime(larger, first) === open ? first : first + 1,
      to: barAt(larger, closeTime(smaller, to) + 1) - 1
    }
    return range.from <= range.to ? [range] : []
  })
