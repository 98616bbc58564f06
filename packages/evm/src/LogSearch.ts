/**
 * `eth_getLogs` for any range and filter. The query is split into parts that the nodes serve; the parts are read at the
 * same time and joined.
 *
 * Any error of a query larger than one block, one address and one topic may mean that the query is too large. Up to
 * eight smaller queries (probes) then find a size that is served: a half, one block, a quarter, and sizes between the
 * largest one served and the smallest one refused. If one block is refused too, up to eight further probes find the
 * number of addresses and topics. An error for a single block is passed on. A size that an error states is used without
 * probes.
 *
 * The limits of a node are a setting, or are learned: those that an error names, and those for which the node also
 * refuses a query without matching logs. A query that would need too many requests is refused. Parts of a range are
 * cached with the hash of a later settled block, which identifies all blocks before it. If a query selects one block by
 * its hash, and the bloom filter in the block's known header excludes the logs, nothing is read.
 */
import { keccak_256 } from "@noble/hashes/sha3"
import { hexToBytes } from "@noble/hashes/utils"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as GatewayError from "@trigate/domain/errors/GatewayError"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import { type Alternatives, type LogSelection, SearchFilter, selectionIn } from "@trigate/domain/evm/EvmResources"
import { cachedForGood, malformed } from "@trigate/domain/operations/Operation"
import * as EvmErrors from "@trigate/domain/unstable/evm/EvmErrors"
import * as EvmReads from "@trigate/domain/unstable/evm/EvmMethods"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Learned } from "./EvmUpstream.ts"
import type { BlockName, Header, NodeReads, SendRead } from "./Heads.ts"

/** The three bits of an address or a topic: the index of a hex digit in the bloom filter, and the bit in that digit. */
type Bits = ReadonlyArray<{ readonly digit: number; readonly bit: number }>

const DIGITS = 512

const mostKnown = 10_000
const known = new Map<string, Bits>()

const bloomBits = (value: string): Bits => {
  const found = known.get(value)
  if (found !== undefined) return found
  const hash = keccak_256(hexToBytes(value.slice(2)))
  const bits = [0, 2, 4].map((at) => {
    const index = ((hash[at] ?? 0) << 8 | (hash[at + 1] ?? 0)) & 2047
    return { digit: DIGITS - 1 - (index >> 2), bit: 1 << (index & 3) }
  })
  if (known.size >= mostKnown) known.clear()
  known.set(value, bits)
  return bits
}

const isHex = /^0x(?:[0-9a-f]{2})*$/u

const has = (bloom: string, value: string): boolean =>
  !isHex.test(value) ||
  bloomBits(value).every(({ bit, digit }) => (Number.parseInt(bloom[digit + 2] ?? "f", 16) & bit) !== 0)

const hasSome = (bloom: string, values: Alternatives): boolean => {
  if (values.size === 0) return true
  for (const value of values) if (has(bloom, value)) return true
  return false
}

const isEmpty = /^0x0*$/u

/** Returns whether a block may contain logs of a selection. A missing or malformed bloom filter excludes nothing. */
export const mayHave = (bloom: string | undefined, { addresses, topics }: LogSelection): boolean =>
  bloom === undefined || bloom.length !== DIGITS + 2 ||
  (!isEmpty.test(bloom) && hasSome(bloom, addresses) && topics.every((position) => hasSome(bloom, position)))

/** Maximum number of alternatives that are compared with the bloom filter of one block. */
const mostCompared = 4_096

/** Returns whether a block may contain logs of one of some selections. Returns `true` if they have many alternatives. */
export const mayHaveAny = (bloom: string | undefined, selections: Iterable<LogSelection>): boolean => {
  let left = mostCompared
  for (const selection of selections) {
    left -= selection.topics.reduce((count, { size }) => count + size, 1 + selection.addresses.size)
    if (left < 0 || mayHave(bloom, selection)) return true
  }
  return false
}

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

/** The limits of one query. */
export interface Bounds {
  /** Maximum number of upstream log requests for one query. */
  readonly requests: number
  /** Maximum number of logs in one response. */
  readonly logs: number
  /** Maximum number of characters in one response. */
  readonly characters: number
}

/** The default limits. The maximum response size equals that of other reads. */
export const defaults: Bounds = { requests: 40, logs: 100_000, characters: 16 * 1024 * 1024 }

/** The dependencies and options of a log search. */
export interface Options {
  readonly serving: EvmReads.Serving
  readonly send: SendRead
  readonly reads: NodeReads
  readonly bounds?: Partial<Bounds>
  /** Maximum number of blocks that the nodes serve in one request. Default: learned from their errors. */
  readonly blocks?: number | undefined
}

/** Searches logs. */
export interface LogSearch {
  /** Serves a call of `eth_getLogs`. If the range is too wide, returns the error object of `LogRangeTooWide`. */
  readonly search: SendRead
}

/** A settled block. Its hash identifies all blocks up to it. */
type Anchor = Pick<Header, "hash" | "number">

/** A query that may have to be split. A block that is selected by its hash is a range of one block. */
interface Query extends Part {
  readonly call: JsonRpc.CheckedRead
  readonly blockHash?: string
}

/** The error with which a node refused a query, and its reason. */
interface Refused {
  readonly response: JsonRpc.RpcResponse
  readonly refusal: EvmErrors.LogRefusal
}

/** The failure that ends a search early; `response` is the response to the query. */
class Ended extends Data.TaggedError("Ended")<{ readonly response: JsonRpc.RpcResponse }> {}

type SearchFailure = GatewayError.CommonFailure | Ended

const decodeParams = Schema.decodeUnknownOption(Schema.Tuple([SearchFilter]))
const decodeOfBlock = Schema.decodeUnknownOption(Schema.Tuple([Schema.Struct({
  ...SearchFilter.fields,
  fromBlock: Schema.optionalKey(Schema.Null),
  toBlock: Schema.optionalKey(Schema.Null),
  blockHash: Json.Hash
})]))

const isRefused = (response: Json.Json | Refused): response is Refused => "refusal" in response

const noLogs = Json.of("[]")

const concurrency = 8

/** Maximum number of smaller queries that find a number of blocks that a node serves; as many for alternatives. */
const mostProbes = 8

/**
 * The logs of this number of newest blocks are not cached, because a reorg may replace the blocks while a query runs.
 */
const unsettled = 64n

/** Maximum number of stored anchors. */
const mostAnchors = 1024

const tooWide = (requested: number, served: number, why: string, selections = 1): JsonRpc.RpcResponse => {
  const fewer = "fewer addresses or topics"
  const advice = served === 0 ? fewer : `at most ${served} blocks${selections > 1 ? `, or ${fewer},` : ""}`
  const error = new GatewayError.LogRangeTooWide({
    requested: Math.min(requested, Number.MAX_SAFE_INTEGER),
    served,
    detail: `Logs of ${requested} blocks would require ${why}: query ${advice} at a time`
  })
  const code = GatewayError.rpcCodes.LogRangeTooWide
  return { _tag: "Error", code, message: error.message, error: Json.of(JsonRpc.errorObject(error, code)) }
}

/**
 * Returns the maximum number of blocks of one search, if the response is an error that states it (`LogRangeTooWide`).
 */
export const servedBlocks = (response: JsonRpc.RpcResponse): number | undefined => {
  if (response._tag === "Result") return undefined
  const data = JsonRpc.member(response.error.valueOrUndefined, "data")
  const served = JsonRpc.member(data, "served")
  const isTooWide = JsonRpc.member(data, "_tag") === "LogRangeTooWide"
  return isTooWide && Predicate.isNumber(served) && served > 0 ? served : undefined
}

/** Makes the log search of one chain. */
export const make = ({ send, reads, serving, ...options }: Options): LogSearch => {
  const bounds: Bounds = { ...defaults, ...options.bounds }
  const operation = EvmReads.getLogs(serving)
  const { verbatim: _, ...decoded } = operation
  // the key contains a block hash, so the response never changes
  const cachedOperation = {
    ...decoded,
    cachePolicy: () => cachedForGood,
    isCacheable: (_: unknown, { valueOrUndefined: logs }: Json.Json) => Array.isArray(logs)
  }
  const cachedOfBlock = {
    ...cachedOperation,
    // some nodes return an empty list for a block that they do not have yet
    isCacheable: (_: unknown, { valueOrUndefined: logs }: Json.Json) => Array.isArray(logs) && logs.length > 0
  }
  const learned = { blocks: new Learned<number>(), alternatives: new Learned<number>() }
  const limitsAt = (now: Json.MonotonicTime) => ({
    blocks: options.blocks ?? learned.blocks.at(now) ?? Infinity,
    alternatives: learned.alternatives.at(now) ?? Infinity
  })

  /** The blocks whose hashes are in the keys of cached parts, by ascending number. The last one identifies the others. */
  let anchors: ReadonlyArray<Anchor> = []

  /**
   * Returns anchors of the current chain, the last of them at block `number` or above. Returns an empty list if the
   * node does not have that block.
   */
  const findAnchors = Effect.fnUntraced(
    function*(number: bigint): Effect.fn.Return<ReadonlyArray<Anchor>, GatewayError.CommonFailure> {
      const known = anchors
      const last = known.at(-1)
      const isCovered = last !== undefined && last.number >= number
      const newest = yield* reads.header(isCovered ? last.number : number)
      if (newest === undefined) return []
      if (newest.hash === last?.hash) return known
      // the older header is read after the newer one: a reorg between the two reads is then detected
      const isSame = last !== undefined && !isCovered && (yield* reads.header(last.number))?.hash === last.hash
      anchors = [...isSame ? known.slice(1 - mostAnchors) : [], { number: newest.number, hash: newest.hash }]
      return anchors
    }
  )

  /** Reads a query in parts. `refused` is the error with which a node refused the whole query, if it was sent. */
  const split = Effect.fnUntraced(function*({ blockHash, call, selected, span: whole }: Query, refused?: Refused) {
    const now = Json.monotonicTime(yield* Clock.Clock)
    const requested = Number(countBlocks(whole))
    const alternatives = countAlternatives(selected)
    const limits = limitsAt(now)
    /** The size of the parts. */
    const size = {
      blocks: Math.min(requested, limits.blocks),
      alternatives: Math.min(alternatives, limits.alternatives)
    }
    /** The limits that the nodes have shown. They are learned if the query is served, or would be with larger bounds. */
    const shown: { blocks?: number; alternatives?: number } = {}
    /** The first block that no part has read, and the logs of the blocks before it. */
    let next = whole.from
    const texts: Array<string> = []
    let settledBy: ReadonlyArray<Anchor> = []
    let isUnion = false
    let sent = 0
    let logs = 0
    let characters = 0
    let found = 0

    const learn = (): void => {
      if (shown.blocks !== undefined && options.blocks === undefined) learned.blocks.learn(shown.blocks, now)
      if (shown.alternatives !== undefined) learned.alternatives.learn(shown.alternatives, now)
    }
    const isSettled = ({ to }: Span): boolean => to + unsettled <= whole.to

    const sendPart = ({ selected, span }: Part) => {
      if (blockHash !== undefined) {
        const wire = { ...selected, blockHash }
        return send({ ...call, operation: cachedOfBlock, params: Json.write([wire]), request: wire })
      }
      const wire = { ...selected, fromBlock: Json.encodeQuantity(span.from), toBlock: Json.encodeQuantity(span.to) }
      const params = Json.write([wire])
      const anchor = isSettled(span) ? settledBy.find(({ number }) => number >= span.to) : undefined
      return anchor === undefined
        ? send({ ...call, operation, params })
        : send({ ...call, operation: cachedOperation, params, request: { ...wire, anchor: anchor.hash } })
    }

    /** Queries a part. Returns its logs, or the error with which a node refused the part. */
    const query = Effect.fnUntraced(function*(part: Part): Effect.fn.Return<Json.Json | Refused, SearchFailure> {
      sent++
      const response = yield* sendPart(part)
      if (response._tag === "Error") {
        const refusal = EvmErrors.readLogRefusal(response, {
          blocks: Number(countBlocks(part.span)),
          alternatives: countAlternatives(part.selected)
        })
        return refusal === undefined ? yield* new Ended({ response }) : { response, refusal }
      }
      if (response.age !== undefined) sent--
      const value = response.result.valueOrUndefined
      // some nodes return `null` for no logs
      if (value === null) return noLogs
      return Array.isArray(value) ? response.result : yield* malformed(serving.chain, "Expected an array of logs")
    })

    /** Returns the logs of a part as text. Fails if the response to the search would exceed its bounds. */
    const keep = ({ span }: Part, { text, valueOrUndefined }: Json.Json): Effect.Effect<string, Ended> => {
      logs += Array.isArray(valueOrUndefined) ? valueOrUndefined.length : 0
      characters += text.length
      const why = logs > bounds.logs
        ? `more than ${bounds.logs} logs`
        : characters > bounds.characters
        ? `more than ${bounds.characters} characters`
        : undefined
      if (why !== undefined) {
        return Effect.fail(new Ended({ response: tooWide(requested, Math.max(1, Math.floor(found)), why) }))
      }
      found += Number(countBlocks(span)) / countSelections(selected, size.alternatives)
      return Effect.succeed(text)
    }

    /** Queries the first part of a size. Returns the error with which a node refused it, if any. */
    const probe = Effect.fnUntraced(function*({ alternatives: most, blocks }: EvmErrors.LogQuerySize) {
      const last = next + BigInt(blocks) - 1n
      const span = { from: next, to: last < whole.to ? last : whole.to }
      const part = { span, selected: firstSelected(selected, most) }
      const response = yield* query(part)
      if (isRefused(response)) return response
      if (most >= alternatives) {
        texts.push(yield* keep(part, response))
        next = span.to + 1n
      }
      return undefined
    })

    /**
     * Finds the size of the parts by probes, after a node has refused the whole query, or its first part. Fails with the
     * node's response if the node refuses a single block.
     */
    const measure = Effect.fnUntraced(function*(first: Refused): Effect.fn.Return<void, SearchFailure> {
      let last = first
      const budget = { probes: mostProbes }
      const fits = (tried: EvmErrors.LogQuerySize) =>
        Effect.map(probe(tried), (refused) => {
          budget.probes--
          last = refused ?? last
          return refused === undefined
        })

      /**
       * Returns whether a node refuses a query of this size even if it matches no log. Its limit then is the size, and
       * not the number of logs or the time, which differ between filters.
       */
      const isLimited = ({ alternatives: most, blocks }: EvmErrors.LogQuerySize) => {
        budget.probes--
        const span = { from: whole.from, to: whole.from + BigInt(blocks) - 1n }
        const part = { span, selected: unmatched(firstSelected(selected, most)) }
        return Effect.orElseSucceed(Effect.map(query(part), isRefused), () => false)
      }

      /**
       * Finds the number of blocks or alternatives that a node serves, and stores it in `size`. Returns `false` if the
       * node refuses even one. `hint` is tried first, `least` is known to be served, and `rest` is the size of the
       * probes in the other dimension.
       */
      const find = Effect.fnUntraced(function*(
        dimension: keyof EvmErrors.LogQuerySize,
        hint: number | undefined,
        rest: EvmErrors.LogQuerySize,
        least: number
      ): Effect.fn.Return<boolean, SearchFailure> {
        const sized = (value: number): EvmErrors.LogQuerySize => ({ ...rest, [dimension]: value })
        const whole = size[dimension]
        const tested = { served: least, refused: whole }
        // one probe is reserved for `isLimited`
        for (let tried = nextSize(whole, tested, hint); tried !== undefined && budget.probes > 1;) {
          if (yield* fits(sized(tried))) {
            tested.served = tried
            if (tried === hint && (yield* isLimited(sized(Math.min(whole, 2 * tried))))) {
              size[dimension] = shown[dimension] = tried
              return true
            }
          } else if (tried === 1) return false
          else tested.refused = tried
          tried = nextSize(whole, tested, hint)
        }
        if (tested.served === 0) return false
        size[dimension] = tested.served
        if (yield* isLimited(sized(tested.refused))) shown[dimension] = tested.served
        return true
      })

      /**
       * Makes the parts as large as an error states, if the query then needs no more requests than the bound. Returns
       * whether it did.
       */
      const useStated = ({ limit, reason }: EvmErrors.LogRefusal): boolean => {
        const parts = Math.ceil(size.blocks / (limit ?? 1)) * countSelections(selected, size.alternatives)
        if (limit === undefined || reason === "unknown" || parts > bounds.requests) return false
        size.blocks = limit
        if (reason === "blocks") shown.blocks = limit
        return true
      }
      const { limit, reason } = first.refusal
      if (reason !== "alternatives" && size.blocks > 1) {
        if (useStated(first.refusal)) return
        if (yield* find("blocks", limit, size, 0)) return
      }
      budget.probes += mostProbes
      const isStated = reason === "alternatives" && limit !== undefined
      if (isStated) size.alternatives = shown.alternatives = limit
      else if (size.alternatives < 2 || !(yield* find("alternatives", undefined, { ...size, blocks: 1 }, 0))) {
        return yield* new Ended({ response: last.response })
      }
      if (size.blocks === 1 || (yield* fits(size)) || useStated(last.refusal)) return
      const isFound = yield* find("blocks", last.refusal.limit, size, isStated ? 0 : 1)
      if (!isFound) return yield* new Ended({ response: last.response })
    })

    let isNew = refused !== undefined
    if (refused !== undefined) yield* measure(refused)
    else if (limits.blocks === Infinity && requested > 1) {
      // the number of alternatives is known, and the number of blocks is not
      const first = yield* probe(size)
      isNew = first !== undefined
      if (first !== undefined) yield* measure(first)
    }
    const selections = countSelections(selected, size.alternatives)
    const served = () => Math.floor(bounds.requests / selections) * size.blocks
    if (requested > served() && !isNew && options.blocks === undefined && selections <= bounds.requests) {
      // another node may have taught the size
      const blocks = Math.ceil(requested / Math.floor(bounds.requests / selections))
      if ((yield* probe({ ...size, blocks })) === undefined) size.blocks = shown.blocks = blocks
    }
    const needless = `more than ${bounds.requests} upstream requests`
    if (requested > served()) {
      learn()
      return tooWide(requested, served(), needless, selections)
    }

    // overlapping ranges have parts in common, because parts begin at multiples. This adds at most one request
    const start = selections > 1 ? next : next - next % BigInt(size.blocks)
    const spans = next > whole.to ? [] : splitSpan({ from: next, to: whole.to }, size.blocks, start)
    const settled = blockHash === undefined ? spans.findLast(isSettled) : undefined
    const hasEnd = settled !== undefined && (yield* reads.header(whole.to)) !== undefined
    settledBy = hasEnd ? yield* findAnchors(settled.to) : []
    const parts = splitSelected(selected, size.alternatives).flatMap((selected) =>
      spans.map((span): Part => ({ span, selected }))
    )
    isUnion = selections > 1
    const mostSent = sent + Math.max(bounds.requests, parts.length)

    /** Splits a part that a node has refused. */
    const smaller = ({ selected, span }: Part, { limit, reason }: EvmErrors.LogRefusal): ReadonlyArray<Part> => {
      const blocks = Number(countBlocks(span))
      const alternatives = countAlternatives(selected)
      const isOfBlocks = blocks > 1 && (reason !== "alternatives" || alternatives < 2)
      const half = Math.ceil((isOfBlocks ? blocks : alternatives) / 2)
      const most = reason === "unknown" ? half : Math.min(half, limit ?? half)
      if (reason === "blocks" && isOfBlocks) shown.blocks = Math.min(shown.blocks ?? size.blocks, limit ?? half)
      if (isOfBlocks) return splitSpan(span, most).map((span) => ({ span, selected }))
      isUnion = true
      return splitSelected(selected, most).map((selected) => ({ span, selected }))
    }

    const read = (part: Part): Effect.Effect<ReadonlyArray<string>, SearchFailure> =>
      Effect.suspend(() => {
        if (sent < mostSent) return query(part)
        if (isNew) learn()
        else learned.blocks.forget()
        const most = Math.max(1, Math.min(served(), Math.floor(requested / 2)))
        return new Ended({ response: tooWide(requested, most, needless) })
      }).pipe(Effect.flatMap((response) =>
        isRefused(response)
          ? Effect.map(Effect.forEach(smaller(part, response.refusal), read), (texts) => texts.flat())
          : Effect.map(keep(part, response), (text) => [text])
      ))

    texts.push(...(yield* Effect.forEach(parts, read, { concurrency })).flat())
    learn()
    if (!isUnion) return JsonRpc.result(Json.of(join(texts)))
    const united = unite(texts)
    if (Result.isSuccess(united)) return JsonRpc.result(Json.of(united.success))
    const detail = `A reorg replaced block ${united.failure} while its logs were read: repeat the query`
    return yield* new GatewayError.UpstreamUnavailable({ upstream: serving.chain, attempts: 1, detail })
  }, Effect.catchTag("Ended", ({ response }) => Effect.succeed(response)))

  /**
   * Returns the number of the block that a tag names; `undefined` if the node has no such block. Returns a block number
   * unchanged, without querying the node.
   */
  const resolveBlock = (block: BlockName): Effect.Effect<bigint | undefined, GatewayError.CommonFailure> => {
    if (typeof block === "bigint") return Effect.succeed(block)
    return block === "earliest" ? Effect.succeed(0n) : Effect.map(reads.header(block), (header) => header?.number)
  }

  /** Returns the logs of a block by its hash, without a query if its known header excludes them. */
  const searchBlock = Effect.fnUntraced(function*(
    call: JsonRpc.CheckedRead,
    { blockHash, ...filter }: { readonly blockHash: string } & Selected
  ) {
    const header = reads.known(blockHash.toLowerCase())
    if (header !== undefined && !mayHave(header.logsBloom, selectionIn(filter))) return JsonRpc.result(noLogs)
    const selected = selectedIn(filter)
    const query: Query = { call, selected, blockHash, span: { from: 0n, to: 0n } }
    const alternatives = countAlternatives(selected)
    if (alternatives > limitsAt(Json.monotonicTime(yield* Clock.Clock)).alternatives) return yield* split(query)
    const response = yield* send({ ...call, operation: cachedOfBlock, request: { blockHash, ...filter } })
    const refusal = EvmErrors.readLogRefusal(response, { blocks: 1, alternatives })
    return refusal === undefined ? response : yield* split(query, { response, refusal })
  })

  const search = Effect.fnUntraced(function*(call: JsonRpc.CheckedRead) {
    const ofBlock = decodeOfBlock(call.params.valueOrUndefined)
    if (Option.isSome(ofBlock)) return yield* searchBlock(call, ofBlock.value[0])
    const params = decodeParams(call.params.valueOrUndefined)
    if (Option.isNone(params)) return yield* send(call)
    const [{ fromBlock, toBlock, ...filter }] = params.value
    const selected = selectedIn(filter)
    const alternatives = countAlternatives(selected)
    const limits = limitsAt(Json.monotonicTime(yield* Clock.Clock))
    const first = fromBlock ?? "latest"
    const last = toBlock ?? "latest"
    const isNumbered = typeof first === "bigint" && typeof last === "bigint"
    const requestedBlocks = first === last ? 1 : isNumbered ? Number(last - first + 1n) : Infinity
    const isServed = requestedBlocks <= limits.blocks && alternatives <= limits.alternatives
    const response = isServed ? yield* send(call) : undefined
    const readRefusal = (blocks: number) =>
      response === undefined ? undefined : EvmErrors.readLogRefusal(response, { blocks, alternatives })
    if (response !== undefined && readRefusal(requestedBlocks) === undefined) return response
    const from = yield* resolveBlock(first)
    const to = first === last ? from : yield* resolveBlock(last)
    if (from === undefined || to === undefined || to < from) return response ?? (yield* send(call))
    const query: Query = { call, selected, span: { from, to } }
    if (response === undefined) return yield* split(query)
    // a range of tags may be shorter than the number that the error names
    const refusal = readRefusal(Number(countBlocks(query.span)))
    return refusal === undefined ? response : yield* split(query, { response, refusal })
  })

  return { search }
}
