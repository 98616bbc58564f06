/** Sets of bar numbers (`CandleWindow.barAt`) as ranges: which bars of a series are known, and which are missing. */
/** The bars from one number to another, both included. */
export interface BarRange {
  readonly from: number
  readonly to: number
}

/** Ranges in order. They neither overlap nor touch, so that one set has one form. */
export type BarRanges = ReadonlyArray<BarRange>

/** A set with a range more; the set itself where it holds the range already. */
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

/** Whether a bar is in a set. */
export const has = (ranges: BarRanges, bar: number): boolean => {
  // the first range that does not end before the bar
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

/** The set of several sets together. */
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

/** What a set holds of a range. */
export const within = (ranges: BarRanges, range: BarRange): BarRanges =>
  ranges.flatMap(({ from, to }) => {
    const part = { from: Math.max(from, range.from), to: Math.min(to, range.to) }
    return part.from <= part.to ? [part] : []
  })

/** What a set lacks of a range. */
export const missing = (ranges: BarRanges, range: BarRange): BarRanges => {
  const gaps: Array<BarRange> = []
  let next = range.from
  for (const { from, to } of within(ranges, range)) {
    if (from > next) gaps.push({ from: next, to: from - 1 })
    next = to + 1
  }
  return next <= range.to ? [...gaps, { from: next, to: range.to }] : gaps
}

/** What lies between the ranges of a set: known on both sides, and not known itself. */
export const gaps = (ranges: BarRanges): BarRanges => {
  const [first] = ranges
  const last = ranges.at(-1)
  return first === undefined || last === undefined ? [] : missing(ranges, { from: first.from, to: last.to })
}

/** How many bars a set holds. */
export const size = (ranges: BarRanges): number => ranges.reduce((sum, { from, to }) => sum + to - from + 1, 0)

/** A set as text: `0-99,120-999`, each number counted from an origin. */
export const print = (ranges: BarRanges, origin: number): string =>
  ranges.map(({ from, to }) => `${from - origin}-${to - origin}`).join(",")

/** What {@link print} writes. */
export const pattern = /^(?:[0-9]+-[0-9]+(?:,[0-9]+-[0-9]+)*)?$/u

/** The set that {@link print} wrote. */
export const read = (text: string, origin: number): BarRanges =>
  Array.from(text.matchAll(/(?<from>[0-9]+)-(?<to>[0-9]+)/gu), ({ groups }) => ({
    from: Number(groups?.["from"]) + origin,
    to: Number(groups?.["to"]) + origin
  }))
