/** Medians and how far the rounds lie apart. */

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((left, right) => left - right)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

const resamples = 5000

/** Between which the median lies with 95 % certainty: by bootstrap, with the same draws each time. */
export const interval = (values: ReadonlyArray<number>): readonly [low: number, high: number] => {
  let state = 1
  const draw = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return values[Math.floor(state / 2 ** 32 * values.length)] ?? Number.NaN
  }
  const medians = Float64Array.from({ length: resamples }, () => median(values.map(draw))).toSorted()
  return [percentile(medians, 0.025), percentile(medians, 0.975)]
}

/** The value below which a share of the sorted values lies. */
export const percentile = (sorted: ArrayLike<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

/** From the lowest to the highest, as a share of the median. */
export const spread = (values: ReadonlyArray<number>): number =>
  (Math.max(...values) - Math.min(...values)) / median(values)

/** A rate or a count, with a space between the thousands. */
export const grouped = (value: number): string => Math.round(value).toLocaleString("en").replaceAll(",", " ")
