/**
 * Declarations of metrics: name, kind, labels and meaning.
 *
 * Each package declares its own metrics. The server's table collects all declarations for docs/metrics.md, the
 * dashboard and the alert rules. Every label has a bounded set of values; none contains text from a caller.
 */
import * as Context from "effect/Context"
import * as Metric from "effect/Metric"

/** The possible values of each label. */
export const labels = {
  address: "index of the upstream's address in the setting that lists it, from `0`",
  cause:
    "for retries: the fault of the previous attempt; for ejections: the fault of the ejected address; for stream reconnects: " +
    "`closed`, `silent` or `stale`",
  chain: "`trading` or `layer2`",
  channel: "name of a supported subscription, such as `trades`",
  group: "name of the caller's key, `address` for callers without a key, `others` for keys after the first 100",
  interval: "interval of a bar, such as `1m`",
  limit: "`connections`, `subscriptions` or `users`",
  limited: "`yes` if a limit refused the request, otherwise `no`",
  node: "version of Node",
  operation: "name of an operation, type of a [known query](#known-queries), or `batch`, `probe`, `unsupported`",
  outcome: "`ok`, the tag of a typed error, or the result of an attempt or of a cached read",
  quota: "`requests`, `concurrent`, `weight` or `units`",
  reason: "`client`, `drain`, `binary`, `key`, `origin`, `rate`, `bytesIn`, `bytesOut`, `size` or `slow`",
  route: "endpoint of the API contract, such as `exchange.submit`, or `other`",
  rule: "name of a rule of a policy, or `account`, `halt`, `maxAge`, `signature`, `store`",
  share: "`common`: units that every call can use; `actions`: these units and those reserved for signed actions",
  state: "`sent` or `unknown`; for settled actions: `accepted` or `neverArrived`",
  status: "HTTP status",
  upstream: "`trading-api`, `trading-node`, `token-chain` or `layer2`",
  use: "purpose for which the process uses the shared store, such as `cache`",
  version: "version of Trigate",
  within: "time until expiry: at most `1 hour`, `1 day` or `7 days`; each value includes the shorter times",
  won: "`first`: the address of the original attempt responded first; `second`: the address of the hedged attempt did"
} as const

/** A label of a metric. */
export type Label = keyof typeof labels

/** The declaration of a metric: its name, kind, labels and meaning. */
export interface Declared<L extends Label = Label, M = unknown> {
  readonly name: string
  readonly kind: "counter" | "gauge" | "histogram"
  readonly labels: ReadonlyArray<L>
  readonly meaning: string
  /** Whether the metric exists on Linux only. */
  readonly onLinux?: true
  /**
   * Returns the time series with the given label values. A series is made on first use and cached, because creating it
   * costs ten times as much as updating it.
   */
  readonly series: (attributes: { readonly [Name in L]: string }) => M
  /**
   * Returns a function that finds the updates of the time series in the registry of a context, for metrics that every
   * request updates: `series` looks up its registry and its entry there at each update.
   */
  readonly updates: (context: Context.Context<never>) => (attributes: { readonly [Name in L]: string }) => Update
}

/** Updates one time series: adds to a counter, sets a gauge, records a duration. */
export type Update = (value: number) => void

/**
 * Caches a function of a primitive value. Every request updates several series, and one lookup by a label replaces the
 * walk through the tree of all labels.
 */
export const remembered = <Key extends string | number, Value>(make: (key: Key) => Value) => {
  const made = new Map<Key, Value>()
  return (key: Key): Value => {
    const found = made.get(key)
    if (found !== undefined) return found
    const value = make(key)
    made.set(key, value)
    return value
  }
}

/** A node of a tree that finds series by their label values, one label per level. */
interface Branch<Series> {
  readonly next: Map<string, Branch<Series>>
  series?: Series
}

const findBranch = <Series>({ next }: Branch<Series>, value: string): Branch<Series> => {
  const known = next.get(value)
  if (known !== undefined) return known
  const branch: Branch<Series> = { next: new Map() }
  next.set(value, branch)
  return branch
}

/** Caches what `make` makes of label values; Effect would build a key from the attributes at each update (decision 23). */
const cached = <L extends Label, M>(
  labels: ReadonlyArray<L>,
  make: Declared<L, M>["series"]
): Declared<L, M>["series"] => {
  const root: Branch<M> = { next: new Map() }
  return (values) => {
    let branch = root
    for (const label of labels) branch = findBranch(branch, values[label])
    return branch.series ??= make(values)
  }
}

/** Returns the function that updates a metric's entry in the registry of a context. */
const updateIn = (metric: Metric.Metric<number, unknown>, context: Context.Context<never>): Update => {
  // the key of the entry is private; a registry without other entries shows it
  const only = new Map<string, Metric.Metric.Metadata<unknown, unknown>>()
  metric.valueUnsafe(Context.add(context, Metric.MetricRegistry, only))
  metric.valueUnsafe(context)
  const [key = ""] = only.keys()
  const hooks = Context.get(context, Metric.MetricRegistry).get(key)?.hooks
  return hooks === undefined
    ? (value) => metric.updateUnsafe(value, context)
    : (value) => hooks.update(value, context)
}

/** Declares a metric whose series `make` makes. */
const declare = <const L extends Label, M extends Metric.Metric<number, unknown>>(
  kind: Declared["kind"],
  name: string,
  meaning: string,
  labels: ReadonlyArray<L>,
  make: Declared<L, M>["series"]
): Declared<L, M> => {
  const series = cached(labels, make)
  return {
    name,
    kind,
    labels,
    meaning,
    series,
    updates: (context) => cached(labels, (attributes) => updateIn(series(attributes), context))
  }
}

/** Declares a counter. */
export const counter = <const L extends Label = never>(
  name: string,
  meaning: string,
  labels: ReadonlyArray<L> = []
): Declared<L, Metric.Counter<number>> =>
  declare(
    "counter",
    name,
    meaning,
    labels,
    (attributes) => Metric.counter(name, { description: meaning, incremental: true, attributes })
  )

/** Declares a gauge. */
export const gauge = <const L extends Label = never>(
  name: string,
  meaning: string,
  labels: ReadonlyArray<L> = []
): Declared<L, Metric.Gauge<number>> =>
  declare("gauge", name, meaning, labels, (attributes) => Metric.gauge(name, { description: meaning, attributes }))

/** Declares a histogram of durations in seconds. */
export const seconds = <const L extends Label>(
  name: string,
  meaning: string,
  labels: ReadonlyArray<L>,
  boundaries: ReadonlyArray<number>
): Declared<L, Metric.Histogram<number>> =>
  declare(
    "histogram",
    name,
    meaning,
    labels,
    (attributes) => Metric.histogram(name, { description: meaning, boundaries, attributes })
  )

/**
 * Counts the requests that are refused because of a quota. The metric is declared in this package because several
 * packages enforce quotas.
 */
export const quotaExceeded = counter(
  "trigate_quota_exceeded_total",
  "Requests and calls refused because of their caller's quota",
  [
    "quota"
  ]
)
