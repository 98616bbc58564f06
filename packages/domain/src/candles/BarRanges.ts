/**
 * Sets of bar numbers (`CandleWindow.barAt`) as sorted ranges. A set represents the stored or the missing bars of a
 * series.
 */
/** A range of bar numbers, both ends included. */
export interface BarRange {
  readonly from: number
  readonly to: number
}

/** Sorted ranges that neither overlap nor touch, so that equal sets have equal ranges. */
export type BarRanges = ReadonlyArray<BarRange>

/** Adds a range to a set; returns the same set if it already contains the range. */
export const add = (ranges: BarRanges, range: BarRange): BarRanges => {
  if (range.to < range.from || ranges.some(({ from, to }) => from <= range.from && range.to <= to)) return ranges
  const before = ranges.filter(({ to }) => to < range.from - 1)
  const after = ranges.filter(({ from }) => from > range.to + 1)
  const joined = ranges.slice(before.length, ranges.length - after.length)
  return [
    ...before,
    {
      from: Math.min(range.from, joined[0]?.from ?? range.from),
      to: Math.max(range.to, joined.at(-1)?.to ?? range.to)
    },
    ...after
  ]
}

/** Returns whether a set contains a bar. */
export const has = (ranges: BarRanges, bar: number): boolean => {
  // binary search for the first range that ends at or after the bar
  let low = 0
  let high = ranges.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ranges[middle]?.to ?? 0) < bar) low = middle + 1
    else high = middle
  }
  const found = ranges[low]
  return found !== undefined && found.from <= bar
}

/** Returns the union of sets. */
export const union = (sets: Iterable<BarRanges>): BarRanges => {
  const ordered = Array.from(sets).flat().toSorted((a, b) => a.from - b.from)
  const joined: Array<BarRange> = []
  for (const { from, to } of ordered) {
    const last = joined.at(-1)
    if (last === undefined || from > last.to + 1) joined.push({ from, to })
    else joined[joined.length - 1] = { from: last.from, to: Math.max(last.to, to) }
  }
  return joined
}

/** Returns the intersection of a set with a range. */
export const within = (ranges: BarRanges, range: BarRange): BarRanges =>
  ranges.flatMap(({ from, to }) => {
    const part = { from: Math.max(from, range.from), to: Math.min(to, range.to) }
    return part.from <= part.to ? [part] : []
  })

/** Returns the parts of a range that are not in a set. */
export const missing = (ranges: BarRanges, range: BarRange): BarRanges => {
  const gaps: Array<BarRange> = []
  let next = range.from
  for (const { from, to } of within(ranges, range)) {
    if (from > next) gaps.push({ from: next, to: from - 1 })
    next = to + 1
  }
  return next <= range.to ? [...gaps, { from: next, to: range.to }] : gaps
}

/** Returns the gaps between the ranges of a set. */
export const gaps = (ranges: BarRanges): BarRanges => {
  const [first] = ranges
  const last = ranges.at(-1)
  return first === undefined || last === undefined ? [] : missing(ranges, { from: first.from, to: last.to })
}

/** Returns the number of bars in a set. */
export const size = (ranges: BarRanges): number => ranges.reduce((sum, { from, to }) => sum + to - from + 1, 0)

/** Formats a set as `0-99,120-999`, with each bar number relative to `origin`. */
export const print = (ranges: BarRanges, origin: number): string =>
  ranges.map(({ from, to }) => `${from - origin}-${to - origin}`).join(",")

/** Matches text in the format of {@link print}. */
export const pattern = /^(?:[0-9]+-[0-9]+(?:,[0-9]+-[0-9]+)*)?$/u

/** Parses the format of {@link print}; adds `origin` to each number. */
export const read = (text: string, origin: number): BarRanges =>
  Array.from(text.matchAll(/(?<from>[0-9]+)-(?<to>[0-9]+)/gu), ({ groups }) => ({
    from: Number(groups?.["from"]) + origin,
    to: Number(groups?.["to"]) + origin
  }))
