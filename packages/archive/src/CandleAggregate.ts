/**
 * Builds the bars of a larger interval out of smaller ones, exactly: prices are compared and volumes added as decimals, never
 * as doubles.
 */
import type { BarRange, BarRanges } from "@trigate/domain/candles/BarRanges"
import type { Candle, CandleInterval } from "@trigate/domain/candles/Candle"
import { barAt, closeTime, intervalLengths, openTime } from "@trigate/domain/candles/CandleWindow"

const day = intervalLengths["1d"]

/** Whether every bar of an interval begins and ends with a bar of a smaller one. */
export const builds = (smaller: CandleInterval, larger: CandleInterval): boolean => {
  if (smaller === "1M") return false
  const length = intervalLengths[smaller]
  // months begin at any midnight
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

/** The sum, spelled as the venue spells volumes: no zeros at the end, but one decimal at least. */
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

/** Builds the bars of an interval from smaller ones, which have to be in order. Returns none without a smaller one. */
export const build = (interval: CandleInterval, bars: ReadonlyArray<Candle>): ReadonlyArray<Candle> =>
  [...Map.groupBy(bars, ({ t }) => barAt(interval, t))].flatMap(([bar, parts]) => {
    const [first] = parts
    return first === undefined ? [] : [joined(interval, bar, first, parts)]
  })

/** The smaller bars that make the bars of a range. */
export const smallerRange = (smaller: CandleInterval, larger: CandleInterval, { from, to }: BarRange): BarRange => ({
  from: barAt(smaller, openTime(larger, from)),
  to: barAt(smaller, closeTime(larger, to))
})

/** The larger bars of which all smaller ones are known. */
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
