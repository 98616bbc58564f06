/** Parses the responses of `GET /metrics`, and computes differences between two of them. */

/** A series of a metric at one time. */
export interface Series {
  readonly labels: { readonly [name: string]: string }
  readonly value: number
}

/** The series of one `GET /metrics` response by metric name, and the time of the response. */
export interface Snapshot {
  readonly time: number
  readonly series: ReadonlyMap<string, ReadonlyArray<Series>>
}

const line = /^(?<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?<labels>.*)\})? (?<value>\S+)/u
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/gu

const unescaped = (text: string): string => text.replace(/\\(.)/gu, (_, next: string) => next === "n" ? "\n" : next)

/** Parses Prometheus text. Ignores lines that are not series. */
export const read = (text: string, time: number): Snapshot => {
  const series = new Map<string, Array<Series>>()
  for (const each of text.split("\n")) {
    const { labels = "", name, value } = line.exec(each)?.groups ?? {}
    if (name === undefined) continue
    const found = series.get(name) ?? []
    found.push({
      labels: Object.fromEntries(
        [...labels.matchAll(label)].map(([, key = "", quoted = ""]) => [key, unescaped(quoted)])
      ),
      value: Number(value)
    })
    series.set(name, found)
  }
  return { time, series }
}

/** Makes a snapshot from series of any metrics. */
export const group = (rows: ReadonlyArray<Series & { readonly name: string }>, time: number): Snapshot => ({
  time,
  series: Map.groupBy(rows, ({ name }) => name)
})

type Labels = { readonly [name: string]: string }

const matches = ({ labels }: Series, wanted: Labels): boolean =>
  Object.entries(wanted).every(([name, value]) => labels[name] === value)

/** Returns the metric's series with the given labels. */
export const of = ({ series }: Snapshot, name: string, wanted: Labels = {}): ReadonlyArray<Series> =>
  (series.get(name) ?? []).filter((each) => matches(each, wanted))

/** Returns the sum of the metric's series with the given labels. */
export const sum = (snapshot: Snapshot, name: string, wanted: Labels = {}): number =>
  of(snapshot, name, wanted).reduce((total, { value }) => total + value, 0)

/**
 * Returns the increase of a counter between two snapshots. If the gateway restarted between them, returns the
 * counter's value in the second snapshot.
 */
export const growth = (from: Snapshot, to: Snapshot, name: string, wanted: Labels = {}): number => {
  const grown = sum(to, name, wanted) - sum(from, name, wanted)
  return grown < 0 ? sum(to, name, wanted) : grown
}

/**
 * Returns a quantile of a histogram's observations between two snapshots, in the histogram's unit; `undefined` if there
 * are no observations.
 *
 * The result is the upper bound of the bucket that contains the quantile.
 */
export const quantile = (
  from: Snapshot,
  to: Snapshot,
  name: string,
  share: number,
  wanted: Labels = {}
): number | undefined => {
  const bounds = [...new Set(of(to, `${name}_bucket`, wanted).map(({ labels }) => labels["le"] ?? ""))]
    .map((le) => ({ le, bound: le === "+Inf" ? Infinity : Number(le) }))
    .toSorted((one, other) => one.bound - other.bound)
  const counts = bounds.map(({ bound, le }) => ({
    bound,
    count: growth(from, to, `${name}_bucket`, { ...wanted, le })
  }))
  const all = counts.at(-1)?.count ?? 0
  return all === 0 ? undefined : counts.find(({ count }) => count >= all * share)?.bound
}
