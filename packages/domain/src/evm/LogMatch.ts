/** Matches logs against filters as nodes do. */
import type { LogFilter } from "./Block.ts"

/** The fields of a log that a filter compares. */
export interface LogSubject {
  readonly address: string
  readonly topics: ReadonlyArray<string>
}

/** The addresses and topics that a filter accepts, in lower case. An empty set matches everything. */
export interface LogSelection {
  readonly addresses: ReadonlySet<string>
  readonly topics: ReadonlyArray<ReadonlySet<string>>
}

const alternatives = (value: string | ReadonlyArray<string> | null | undefined): ReadonlySet<string> =>
  new Set((typeof value === "string" ? [value] : value ?? []).map((each) => each.toLowerCase()))

/** Returns the addresses and topics that a filter selects, without its block range. */
export const selectionIn = ({ address, topics = [] }: Pick<LogFilter, "address" | "topics">): LogSelection => ({
  addresses: alternatives(address),
  topics: topics.map(alternatives)
})

/** Returns whether a selection matches a log. */
export const selects = ({ addresses, topics }: LogSelection, log: LogSubject): boolean =>
  (addresses.size === 0 || addresses.has(log.address.toLowerCase())) &&
  log.topics.length >= topics.length &&
  topics.every((position, index) => position.size === 0 || position.has(log.topics[index]?.toLowerCase() ?? ""))
