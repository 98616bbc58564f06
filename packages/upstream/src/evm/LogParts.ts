/** Splits a query of logs into smaller queries, by blocks, by addresses and by topics, and joins their logs. */
import * as Json from "@trigate/domain/encoding/Json"
import type { SearchFilter } from "@trigate/domain/evm/LogMatch"
import * as JsonRpc from "@trigate/domain/operations/JsonRpc"
import * as Arr from "effect/Array"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"

/** A range of blocks, both ends included. */
export interface Span {
  readonly from: bigint
  readonly to: bigint
}

/** The addresses and topics that a query selects. */
export type Selected = Pick<typeof SearchFilter.Type, "address" | "topics">

/** A part of a query. */
export interface Part {
  readonly span: Span
  readonly selected: Selected
}

/** The value of an address or a topic in a filter: one value, alternatives, or everything. */
type Position = Exclude<Selected["address"], undefined>

/** Returns the addresses and topics of a filter. */
export const selectedIn = ({ address, topics }: Selected): Selected => ({
  ...(address === undefined ? {} : { address }),
  ...(topics === undefined ? {} : { topics })
})

/** Returns the number of blocks in a range. */
export const countBlocks = ({ from, to }: Span): bigint => to - from + 1n

/** Splits a range into parts of a number of blocks. Parts begin at `start`, or a multiple of that number after it. */
export const splitSpan = ({ from, to }: Span, blocks: number, start: bigint = from): ReadonlyArray<Span> => {
  const size = BigInt(blocks)
  return Array.from({ length: Number((to - start) / size) + 1 }, (_, index) => {
    const first = start + BigInt(index) * size
    const last = first + size - 1n
    return { from: first < from ? from : first, to: last < to ? last : to }
  })
}

/**
 * Returns the next of the sizes by which a search finds the largest size that a node serves, after the node has refused
 * the size `whole`: the number that the error named, a half, one, a quarter, and then sizes between the largest one
 * `served` and the smallest one `refused`. Returns `undefined` if these differ by a factor of at most two.
 */
export const nextSize = (
  whole: number,
  { refused, served }: { readonly refused: number; readonly served: number },
  named = 0
): number | undefined => {
  const first = [named, Math.ceil(whole / 2), 1, Math.ceil(whole / 4)].find((size) => size > served && size < refused)
  if (first !== undefined || refused <= 2 * served) return first
  return Math.max(served + 1, Math.floor(Math.sqrt(served * refused)))
}

/** Returns the distinct alternatives of a position; addresses and topics have no letter case. */
const distinct = (position: Position) => {
  const values = new Map<string, `0x${string}`>()
  for (const each of position === null || Predicate.isString(position) ? [] : position) {
    const key = each.toLowerCase()
    if (!values.has(key)) values.set(key, each)
  }
  return [...values.values()]
}

const positionsIn = ({ address = null, topics }: Selected): ReadonlyArray<Position> => [address, ...topics ?? []]

/** Returns a filter with other positions: its address, and then its topics. */
const withPositions = (
  { address, topics }: Selected,
  [first = null, ...others]: ReadonlyArray<Position>
): Selected => ({
  ...(address === undefined ? {} : { address: first }),
  ...(topics === undefined ? {} : { topics: topics === null ? null : others })
})

/** Returns the largest number of alternatives for the address or for one topic; at least 1. */
export const countAlternatives = (selected: Selected): number =>
  Math.max(1, ...positionsIn(selected).map((position) => distinct(position).length))

/** Returns the number of parts into which {@link splitSelected} splits a filter. */
export const countSelections = (selected: Selected, most: number): number =>
  positionsIn(selected).reduce((product, each) => product * Math.max(1, Math.ceil(distinct(each).length / most)), 1)

const chunks = (position: Position, most: number): ReadonlyArray<Position> => {
  const values = distinct(position)
  return values.length > most ? Arr.chunksOf(values, most) : [position]
}

/**
 * Splits a filter into filters with at most `most` alternatives for the address and for each topic. Each log that
 * matches the filter matches exactly one of them.
 */
export const splitSelected = (selected: Selected, most: number): ReadonlyArray<Selected> => {
  let parts: ReadonlyArray<ReadonlyArray<Position>> = [[]]
  for (const position of positionsIn(selected)) {
    const values = chunks(position, most)
    parts = parts.flatMap((part) => values.map((value) => Arr.append(part, value)))
  }
  return parts.map((positions) => withPositions(selected, positions))
}

/** Returns the first of the filters into which {@link splitSelected} splits a filter. */
export const firstSelected = (selected: Selected, most: number): Selected =>
  withPositions(selected, positionsIn(selected).flatMap((position) => chunks(position, most).slice(0, 1)))

/** The hash of no event, so that no log has it as a topic. */
const noEvent = `0x${"f0".repeat(32)}` as const

/** Returns a filter with as many alternatives that matches no log. */
export const unmatched = ({ address, topics }: Selected): Selected => {
  const others = (topics ?? []).slice(0, 3)
  return { ...(address === undefined ? {} : { address }), topics: [...others, noEvent] }
}

/** Joins the logs of parts that follow each other; each text is a JSON array. */
export const join = (texts: ReadonlyArray<string>): string =>
  `[${texts.map((text) => text.trim().slice(1, -1).trim()).filter((text) => text !== "").join(",")}]`

/**
 * Joins the logs of parts that overlap in blocks, by block and position in the block, each log once. Fails with the
 * number of a block of which the parts contain different versions, because a reorg replaced it between the queries.
 */
export const unite = (texts: ReadonlyArray<string>): Result.Result<string, number> => {
  const logs = texts.flatMap((text) => Json.elements(text) ?? []).map((text) => {
    const value = Json.of(text).valueOrUndefined
    const hash = JsonRpc.member(value, "blockHash")
    return {
      text,
      hash: Predicate.isString(hash) ? hash.toLowerCase() : hash,
      number: Number(JsonRpc.member(value, "blockNumber")),
      index: Number(JsonRpc.member(value, "logIndex"))
    }
  }).toSorted((one, other) => one.number - other.number || one.index - other.index)
  const united: Array<string> = []
  for (const [place, { hash, index, number, text }] of logs.entries()) {
    const previous = logs[place - 1]
    if (previous?.number === number && previous.hash !== hash) return Result.fail(number)
    if (previous?.number !== number || previous.index !== index) united.push(text)
  }
  return Result.succeed(`[${united.join(",")}]`)
}
