/**
 * `eth_getLogs` for any range. The range is split into parts that the nodes serve. The parts are read in parallel, and
 * their logs are joined in order.
 *
 * The maximum range of a node is a setting, or is learned from the node's errors. A query that would need too many
 * requests is refused before anything is sent. Parts of a range are cached with the hash of a later settled block,
 * which identifies all blocks before it. If a query selects one block by its hash, and the bloom filter in the block's
 * known header excludes the logs, nothing is read.
 */
import { encodeQuantity, Hash } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import { rpcCodes } from "@trigate/domain/errors/GatewayError"
import { LogRangeTooWide } from "@trigate/domain/errors/RequestError"
import type { Serving } from "@trigate/domain/evm/EvmMethods"
import type { CheckedRead } from "@trigate/domain/evm/EvmProtocol"
import * as EvmReads from "@trigate/domain/evm/EvmReads"
import { RangeFilter, selectionIn } from "@trigate/domain/evm/LogMatch"
import { readLogRefusal } from "@trigate/domain/evm/LogRefusal"
import type { LogRefusal } from "@trigate/domain/evm/LogRefusal"
import * as JsonRpc from "@trigate/domain/operations/JsonRpc"
import type { RpcAnswer } from "@trigate/domain/operations/JsonRpc"
import { cachedForGood } from "@trigate/domain/operations/Operation"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { Learned } from "../internal/Learned.ts"
import { mayHave } from "./LogBloom.ts"
import type { AskNode, BlockName, Header, NodeReads } from "./NodeReads.ts"

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
  readonly serving: Serving
  readonly ask: AskNode
  readonly reads: NodeReads
  readonly bounds?: Partial<Bounds>
  /** Maximum number of blocks that the nodes serve in one request. Default: learned from their errors. */
  readonly blocks?: number | undefined
}

/** Searches logs. */
export interface LogSearch {
  /** Serves a call of `eth_getLogs`. If the range is too wide, returns the error object of `LogRangeTooWide`. */
  readonly search: AskNode
}

/** A range of blocks, both ends included. */
interface Span {
  readonly from: bigint
  readonly to: bigint
}

/** A settled block. Its hash identifies all blocks up to it. */
type Anchor = Pick<Header, "hash" | "number">

/** The failure that ends a search early; `answer` is the response to the query. */
class Ended extends Data.TaggedError("Ended")<{ readonly answer: RpcAnswer }> {}

const decodeParams = Schema.decodeUnknownOption(Schema.Tuple([RangeFilter]))
const decodeOfBlock = Schema.decodeUnknownOption(Schema.Tuple([Schema.Struct({
  ...RangeFilter.fields,
  fromBlock: Schema.optionalKey(Schema.Null),
  toBlock: Schema.optionalKey(Schema.Null),
  blockHash: Hash
})]))

const noLogs = JsonRpc.result(Json.of("[]"))

const concurrency = 8

/**
 * The logs of this number of newest blocks are not cached, because a reorg may replace the blocks while a query runs.
 */
const unsettled = 64n

/** Maximum number of stored anchors. */
const mostAnchors = 1024

const countBlocks = ({ from, to }: Span): bigint => to - from + 1n

/** Splits a range into parts of a number of blocks. Parts begin at `start`, or a multiple of that number after it. */
const splitSpan = ({ from, to }: Span, blocks: number, start: bigint = from): ReadonlyArray<Span> => {
  const size = BigInt(blocks)
  return Array.from({ length: Number((to - start) / size) + 1 }, (_, index) => {
    const first = start + BigInt(index) * size
    const last = first + size - 1n
    return { from: first < from ? from : first, to: last < to ? last : to }
  })
}

const tooWide = (requested: bigint, served: number, why: string): RpcAnswer => {
  const error = new LogRangeTooWide({
    requested: Number(requested),
    served,
    detail: `Logs of ${requested} blocks would require ${why}: query at most ${served} blocks at a time`
  })
  const code = rpcCodes.LogRangeTooWide
  return { _tag: "Error", code, message: error.message, error: Json.of(JsonRpc.errorObject(error, code)) }
}

/**
 * Returns the maximum number of blocks of one search, if the response is an error that states it (`LogRangeTooWide`).
 */
export const servedBlocks = (answer: RpcAnswer): number | undefined => {
  if (answer._tag === "Result") return undefined
  const data = JsonRpc.member(answer.error.valueOrUndefined, "data")
  const served = JsonRpc.member(data, "served")
  return JsonRpc.member(data, "_tag") === "LogRangeTooWide" && Predicate.isNumber(served) ? served : undefined
}

/** Makes the log search of one chain. */
export const make = ({ ask, reads, serving, ...options }: Options): LogSearch => {
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
  const learned = new Learned<number>()
  const servedAt = (now: number) => options.blocks ?? learned.at(now)

  /** The blocks whose hashes are in the keys of cached parts, by ascending number. The last one identifies the others. */
  let anchors: ReadonlyArray<Anchor> = []

  /**
   * Returns anchors of the current chain, the last of them at block `number` or above. Returns an empty list if the
   * node does not have that block.
   */
  const findAnchors = Effect.fnUntraced(
    function*(number: bigint): Effect.fn.Return<ReadonlyArray<Anchor>, CommonFailure> {
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

  const joined = Effect.fnUntraced(function*(
    call: CheckedRead,
    filter: Pick<typeof RangeFilter.Type, "address" | "topics">,
    whole: Span,
    refusedWhole: LogRefusal | undefined
  ) {
    const now = yield* Clock.currentTimeMillis
    const requested = countBlocks(whole)
    let size = servedAt(now) ?? Number(requested)
    /** Returns the number of blocks in each part of a refused range. */
    const shrink = (refusal: LogRefusal, asked: bigint): number => {
      const half = Number((asked + 1n) / 2n)
      if (refusal.reason === "results") return half
      size = Math.min(size, refusal.blocks ?? half)
      return Math.min(size, half)
    }
    /** Stores the size of the parts, if a node served parts of that size after it had refused larger ones. */
    const learn = (): void => {
      if (options.blocks !== undefined || found === 0n || size >= (servedAt(now) ?? Number(requested))) return
      learned.learn(size, now)
    }
    const first = refusedWhole === undefined ? size : shrink(refusedWhole, requested)
    const most = () => Math.min(size, first) * bounds.requests
    const needless = `more than ${bounds.requests} upstream requests`
    if (requested > most()) return tooWide(requested, most(), needless)
    // overlapping ranges have parts in common, because parts begin at multiples. This adds at most one request
    const spans = splitSpan(whole, first, whole.from - whole.from % BigInt(first))
    const mostSent = Math.max(bounds.requests, spans.length)
    const isSettled = ({ to }: Span): boolean => to + unsettled <= whole.to
    const settled = spans.findLast(isSettled)
    const hasEnd = settled !== undefined && (yield* reads.header(whole.to)) !== undefined
    const settledBy = hasEnd ? yield* findAnchors(settled.to) : []
    const { address, topics } = filter
    const selected = { ...(address === undefined ? {} : { address }), ...(topics === undefined ? {} : { topics }) }
    let sent = 0
    let logs = 0
    let characters = 0
    let found = 0n

    const askSpan = (span: Span) => {
      const wire = { ...selected, fromBlock: encodeQuantity(span.from), toBlock: encodeQuantity(span.to) }
      const params = Json.write([wire])
      const anchor = isSettled(span) ? settledBy.find(({ number }) => number >= span.to) : undefined
      return anchor === undefined
        ? ask({ ...call, operation, params })
        : ask({ ...call, operation: cachedOperation, params, request: { ...wire, anchor: anchor.hash } })
    }

    const read = (span: Span): Effect.Effect<ReadonlyArray<string>, CommonFailure | Ended> =>
      Effect.suspend((): Effect.Effect<RpcAnswer, CommonFailure | Ended> => {
        if (++sent <= mostSent) return askSpan(span)
        learn()
        return Effect.fail(new Ended({ answer: tooWide(requested, most(), needless) }))
      }).pipe(
        Effect.flatMap((answer): Effect.Effect<ReadonlyArray<string>, CommonFailure | Ended> => {
          if (answer._tag === "Result") {
            const value = answer.result.valueOrUndefined
            if (answer.age !== undefined) sent--
            logs += Array.isArray(value) ? value.length : 0
            characters += answer.result.text.length
            if (logs > bounds.logs || characters > bounds.characters) {
              const why = logs > bounds.logs
                ? `more than ${bounds.logs} logs`
                : `more than ${bounds.characters} characters`
              return Effect.fail(new Ended({ answer: tooWide(requested, Math.max(1, Number(found)), why) }))
            }
            found += countBlocks(span)
            return Effect.succeed([answer.result.text])
          }
          const refusal = readLogRefusal(answer, Number(countBlocks(span)))
          if (refusal === undefined) return Effect.fail(new Ended({ answer }))
          const parts = splitSpan(span, shrink(refusal, countBlocks(span)))
          return Effect.map(Effect.forEach(parts, read), (texts) => texts.flat())
        })
      )

    const texts = yield* Effect.forEach(spans, read, { concurrency })
    learn()
    const inside = texts.flat().map((text) => text.trim().slice(1, -1).trim()).filter((text) => text !== "")
    return JsonRpc.result(Json.of(`[${inside.join(",")}]`))
  }, Effect.catchTag("Ended", ({ answer }) => Effect.succeed(answer)))

  /** Returns the logs of a block by its hash, without a query if its known header excludes them. Passes other calls on. */
  const searchBlock = (call: CheckedRead) => {
    const query = decodeOfBlock(call.params.valueOrUndefined)
    if (Option.isNone(query)) return ask(call)
    const [filter] = query.value
    const header = reads.known(filter.blockHash.toLowerCase())
    return header === undefined || mayHave(header.logsBloom, selectionIn(filter))
      ? ask({ ...call, operation: cachedOfBlock, request: filter })
      : Effect.succeed(noLogs)
  }

  /**
   * Returns the number of the block that a tag names; `undefined` if the node has no such block. Returns a block number
   * unchanged, without querying the node.
   */
  const resolveBlock = (block: BlockName): Effect.Effect<bigint | undefined, CommonFailure> => {
    if (typeof block === "bigint") return Effect.succeed(block)
    return block === "earliest" ? Effect.succeed(0n) : Effect.map(reads.header(block), (header) => header?.number)
  }

  const search = Effect.fnUntraced(function*(call: CheckedRead) {
    const params = decodeParams(call.params.valueOrUndefined)
    if (Option.isNone(params)) return yield* searchBlock(call)
    const served = servedAt(yield* Clock.currentTimeMillis)
    const [{ blockHash: _, fromBlock, toBlock, ...filter }] = params.value
    const first = fromBlock ?? "latest"
    const last = toBlock ?? "latest"
    const isNumbered = typeof first === "bigint" && typeof last === "bigint"
    const asked = isNumbered ? last - first + 1n : undefined
    const isServed = served === undefined || first === last || (asked !== undefined && asked <= BigInt(served))
    let refusal: LogRefusal | undefined
    if (isServed) {
      const answer = yield* ask(call)
      refusal = readLogRefusal(answer, asked === undefined ? Number.MAX_SAFE_INTEGER : Number(asked))
      if (refusal === undefined || first === last) return answer
    }
    const from = yield* resolveBlock(first)
    const to = yield* resolveBlock(last)
    if (from === undefined || to === undefined || to <= from) return yield* ask(call)
    return yield* joined(call, filter, { from, to }, refusal)
  })

  return { search }
}
