/** Matches logs against filters as nodes do. */
import * as Schema from "effect/Schema"
import { BlockNumberOrTag, maxAlternatives, maxTopics, selectedLogs } from "./Block.ts"

const rangeFilter = (most: number) => {
  const { address, topics } = selectedLogs(most)
  return Schema.Struct({
    fromBlock: Schema.optionalKey(Schema.NullOr(BlockNumberOrTag)),
    toBlock: Schema.optionalKey(Schema.NullOr(BlockNumberOrTag)),
    blockHash: Schema.optionalKey(Schema.Null),
    address: Schema.optionalKey(Schema.NullOr(address)),
    topics: Schema.optionalKey(Schema.NullOr(topics))
  })
}

/** The filter of a range's logs, as callers and nodes encode it: absent members can be `null`. */
export const RangeFilter = rangeFilter(maxAlternatives)

/** The filter of a search, which may have more alternatives than nodes serve in one query. */
export const SearchFilter = rangeFilter(10 * maxAlternatives)

/** The message of the error for a filter that does not decode. */
export const invalidFilter =
  `invalid params: expected a filter of at most ${maxAlternatives} addresses and ${maxTopics} topics, each with at most ${maxAlternatives} alternatives`

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
export const selectionIn = (
  { address, topics }: Pick<typeof RangeFilter.Type, "address" | "topics">
): LogSelection => ({
  addresses: alternatives(address),
  topics: (topics ?? []).map(alternatives)
})

/** Returns whether a selection matches a log. */
export const selects = ({ addresses, topics }: LogSelection, log: LogSubject): boolean =>
  (addresses.size === 0 || addresses.has(log.address.toLowerCase())) &&
  log.topics.length >= topics.length &&
  topics.every((position, index) => position.size === 0 || position.has(log.topics[index]?.toLowerCase() ?? ""))
