/** The metrics of requests, by route, status, operation and caller group. */
import type { Caller } from "@trigate/domain/Caller"
import type { Declared, Label } from "@trigate/domain/DeclaredMetric"
import type * as Context from "effect/Context"
import { metrics } from "../process/Metrics.ts"
import type { RequestRecord } from "./RequestRecord.ts"

/** A node of a tree that finds metric series by their label values, one label per level. */
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

// looks up a series by its label values; Effect would build a key from the attributes at each update (decision 23)
const makeSeries = <L extends Label, M>({ labels, series }: Declared<L, M>) => {
  const root: Branch<M> = { next: new Map() }
  return (values: { readonly [Name in L]: string }): M => {
    let branch = root
    for (const label of labels) branch = findBranch(branch, values[label])
    return branch.series ??= series(values)
  }
}

const requests = makeSeries(metrics.requests)
const seconds = makeSeries(metrics.requestSeconds)
const operations = makeSeries(metrics.operations)
const callerRequests = makeSeries(metrics.callerRequests)

/** Maximum number of key names that metrics distinguish. */
const maxGroups = 100

const groups = new Set<string>()

/** Returns the label of a caller's group: the operator's name for a key, never an address. */
const callerGroup = ({ id, key }: Caller): string => {
  if (key === undefined) return "address"
  if (!groups.has(id) && groups.size >= maxGroups) return "others"
  groups.add(id)
  return id.slice(id.indexOf(":") + 1)
}

/** Counts a completed request in the metrics registry of the context. */
export const count = (
  context: Context.Context<never>,
  record: RequestRecord,
  status: number,
  milliseconds: number
): void => {
  const outcome = record.error ?? (status < 400 ? "ok" : "refused")
  requests({ route: record.route, status: String(status), outcome }).updateUnsafe(1, context)
  seconds({ route: record.route }).updateUnsafe(milliseconds / 1000, context)
  if (record.caller !== undefined) {
    callerRequests({ group: callerGroup(record.caller), limited: status === 429 ? "yes" : "no" }).updateUnsafe(
      1,
      context
    )
  }
  for (const noted of record.operations) operations(noted).updateUnsafe(1, context)
}
