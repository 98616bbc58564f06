/**
 * `eth_newFilter` and similar methods, implemented by the gateway. A filter stores the last block that its client has
 * read, so any node can serve the next poll. After a reorg, removed logs are returned again with `removed: true`.
 */
import { CurrentCaller } from "@trigate/domain/Caller"
import type { Caller } from "@trigate/domain/Caller"
import { encodeQuantity } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import { QuotaExceeded } from "@trigate/domain/errors/CallerError"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import type { Serving } from "@trigate/domain/evm/EvmMethods"
import type { filterMethods } from "@trigate/domain/evm/EvmMethodTable"
import type { CheckedRead } from "@trigate/domain/evm/EvmProtocol"
import * as EvmReads from "@trigate/domain/evm/EvmReads"
import { invalidFilter, RangeFilter, selectionIn } from "@trigate/domain/evm/LogMatch"
import * as JsonRpc from "@trigate/domain/operations/JsonRpc"
import type { RpcAnswer } from "@trigate/domain/operations/JsonRpc"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { newId } from "./FeedTopics.ts"
import * as FilterStore from "./FilterStore.ts"
import { mayHave } from "./LogBloom.ts"
import { servedBlocks } from "./LogSearch.ts"
import type { LogSearch } from "./LogSearch.ts"
import type { AskNode, Header, NodeReads } from "./NodeReads.ts"

/** The dependencies and limits of filters. */
export interface Options {
  readonly serving: Serving
  readonly reads: NodeReads
  readonly search: LogSearch["search"]
  readonly store: FilterStore.FilterStore["Service"]
  /** Maximum number of filters of one caller. Default: 100. */
  readonly most?: number
}

/** The handlers of the filter methods, by method. */
export type Filters = { readonly [Name in keyof typeof filterMethods]: AskNode }

/** Maximum number of blocks in a reorg that filters detect. */
const depth = 64

/** Maximum number of characters of logs that a filter stores. They are returned again after a reorg. */
const mostCharacters = 1024 * 1024

/** Maximum number of block hashes in one poll of a filter. The next poll returns the following ones. */
const mostBlocks = 256

/** Maximum number of pending-transaction hashes that a filter stores. */
const mostPending = 4096

/** A block whose logs or hash a client has received. */
const Known = Schema.Struct({ number: Schema.Natural, hash: Schema.String, logs: Schema.Array(Schema.String) })

const Filter = Schema.Struct({
  kind: Schema.Literals(["logs", "blocks", "pending"]),
  /** The params of `eth_newFilter`, as JSON. */
  params: Schema.String,
  /** The newest block whose replacement is not detected: the head at the creation, or a later block that was dropped. */
  since: Schema.Natural,
  /** The number of the last block that was read, and the hash of this block. */
  number: Schema.Natural,
  hash: Schema.String,
  /**
   * The newest blocks, oldest first. A log filter stores only those blocks whose logs the client has received; a block
   * filter stores every block.
   */
  known: Schema.Array(Known),
  pending: Schema.Array(Schema.String)
})
type Filter = typeof Filter.Type

const Stored = Schema.fromJsonString(Filter)
const decode = Schema.decodeUnknownOption(Stored)
const encode = Schema.encodeEffect(Stored)

const decodeId = Schema.decodeUnknownOption(
  Schema.Tuple([Schema.String.check(Schema.isPattern(/^0x[0-9a-fA-F]{1,64}$/u))])
)
const Params = Schema.fromJsonString(Schema.Tuple([RangeFilter]))
const decodeFilter = Schema.decodeUnknownOption(Params)
const encodeFilter = Schema.encodeEffect(Params)

/** The failure that ends a call of a filter method early; `answer` is the response to the call. */
class Ended extends Data.TaggedError("Ended")<{ readonly answer: RpcAnswer }> {}

// geth's message. Client libraries recognize it, and create the filter again
const notFound = new Ended({ answer: JsonRpc.error(-32000, "filter not found") })
const noHead = new Ended({ answer: JsonRpc.error(-32000, "header not found") })

/** Marks a log as removed. */
export const removedLog = (text: string): string => {
  const value = Json.of(text).valueOrUndefined
  return Predicate.isObject(value) ? Json.stringify({ ...value, removed: true }) : text
}

/** Groups logs in JSON by their block, oldest first. */
export const byBlock = (texts: ReadonlyArray<string>): ReadonlyArray<typeof Known.Type> => {
  const blocks = new Map<string, { readonly number: number; readonly hash: string; readonly logs: Array<string> }>()
  for (const text of texts) {
    const value = Json.of(text).valueOrUndefined
    const hash = JsonRpc.member(value, "blockHash")
    const number = JsonRpc.member(value, "blockNumber")
    if (!Predicate.isString(hash) || !Predicate.isString(number)) continue
    const block = blocks.get(hash) ?? { number: Number(number), hash: hash.toLowerCase(), logs: [] }
    block.logs.push(text)
    blocks.set(hash, block)
  }
  return [...blocks.values()].toSorted((a, b) => a.number - b.number)
}

/** Returns the newest blocks whose logs have at most `mostCharacters` characters in total, and the newest other block. */
const retain = (since: number, blocks: ReadonlyArray<typeof Known.Type>) => {
  let left = mostCharacters
  const dropped = blocks.findLastIndex(({ logs }) => (left -= logs.reduce((sum, { length }) => sum + length, 0)) < 0)
  return { since: Math.max(since, blocks[dropped]?.number ?? 0), known: blocks.slice(dropped + 1) }
}

/** Makes the handlers of the filter methods of one chain. */
export const make = ({ most = 100, reads, search, serving, store }: Options): Filters => {
  const getLogs = EvmReads.getLogs(serving)
  // a second poll of a filter waits for the first one, and returns the changes after the first poll
  const polled = new Map<string, { readonly lock: Semaphore.Semaphore; polls: number }>()
  const inTurn = <A, E>(id: string, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      const turn = polled.get(id) ?? { lock: Semaphore.makeUnsafe(1), polls: 0 }
      polled.set(id, turn)
      turn.polls++
      return Effect.ensuring(
        turn.lock.withPermit(effect),
        Effect.sync(() => --turn.polls === 0 && polled.delete(id))
      )
    })

  // the owner's key contains the chain, because a filter belongs to one chain
  const ownerKey = ({ id }: Caller) => `${serving.chain}:${id}`

  const latest = Effect.filterOrFail(reads.header("latest"), Predicate.isNotUndefined, () => noHead)

  /** Returns the stored headers from the newest block (`head`) down to a block number. Ends at the first gap. */
  const knownSince = (from: number, head: Header): ReadonlyArray<Header> => {
    const found: Array<Header> = []
    for (let block: Header | undefined = head; block !== undefined && block.number >= from;) {
      found.push(block)
      block = reads.known(block.parentHash)
    }
    return found
  }

  /** Returns whether the blocks from a number up to the newest block (`head`) may contain logs that match a filter. */
  const mayMatch = (filter: typeof RangeFilter.Type, from: number, head: Header): boolean => {
    const known = knownSince(from, head)
    const selection = selectionIn(filter)
    return known.at(-1)?.number !== BigInt(from) || known.some(({ logsBloom }) => mayHave(logsBloom, selection))
  }

  const install = (kind: Filter["kind"]) =>
    Effect.fnUntraced(function*(call: CheckedRead) {
      const given = kind === "logs" ? decodeFilter(call.params.text) : Option.some([{}] as const)
      if (Option.isNone(given)) return JsonRpc.error(-32602, invalidFilter)
      const caller = yield* CurrentCaller
      const head = yield* latest
      const pending = kind === "pending" ? yield* reads.pending : []
      const id = newId()
      const text = yield* Effect.orDie(encode({
        kind,
        params: yield* Effect.orDie(encodeFilter(given.value)),
        since: Number(head.number),
        number: Number(head.number),
        hash: head.hash,
        known: kind === "blocks" ? [{ number: Number(head.number), hash: head.hash, logs: [] }] : [],
        pending: pending.slice(-mostPending)
      }))
      const isAdded = yield* store.add({ caller: ownerKey(caller), id }, text, most)
      return isAdded ? JsonRpc.result(Json.write(id)) : yield* new QuotaExceeded({
        retryAfter: Duration.toSeconds(FilterStore.idle),
        detail: `This caller already has ${most} filters: uninstall some, or wait until they expire`
      })
    }, Effect.catchTag("Ended", ({ answer }) => Effect.succeed(answer)))

  /** Finds the block at which the node's chain branches off from the client's blocks. */
  const fork = Effect.fnUntraced(function*(filter: Filter, head: Header) {
    const known = [...filter.known]
    const gone: Array<typeof Known.Type> = []
    let from = filter.number + 1
    if (knownSince(from, head).at(-1)?.parentHash === filter.hash) return { known, gone, from }
    const current = head.number === BigInt(filter.number) ? head : yield* reads.header(BigInt(filter.number))
    if (current !== undefined && current.hash !== filter.hash) {
      from = Math.max(filter.since + 1, filter.number - depth + 1)
      for (let last = known.at(-1); last !== undefined && last.number > filter.number - depth; last = known.at(-1)) {
        const number = last.number
        const there = yield* reads.header(BigInt(number))
        if (there?.hash === last.hash) {
          from = Math.max(from, number + 1)
          break
        }
        gone.push(last)
        known.pop()
      }
    }
    return { known, gone, from }
  })

  const newLogs = Effect.fnUntraced(function*(call: CheckedRead, filter: Filter, head: Header) {
    const { from, gone, known } = yield* fork(filter, head)
    const [given] = yield* Effect.mapError(Effect.fromOption(decodeFilter(filter.params)), () => notFound)
    const find = (to: bigint) =>
      from > to || (to === head.number && !mayMatch(given, from, head))
        ? Effect.succeed(JsonRpc.result(Json.of("[]")))
        : search({
          ...call,
          operation: getLogs,
          params: Json.write([{ ...given, fromBlock: encodeQuantity(BigInt(from)), toBlock: encodeQuantity(to) }])
        })
    let to: Header | undefined = head
    let answer = yield* find(head.number)
    const served = servedBlocks(answer)
    if (served !== undefined) {
      // later polls return the logs of the remaining blocks
      to = yield* reads.header(BigInt(from + served - 1))
      if (to === undefined) return yield* noHead
      answer = yield* find(to.number)
    }
    if (answer._tag === "Error") return yield* new Ended({ answer })
    const found = Json.elements(answer.result.text) ?? []
    const number = Number(to.number)
    const blocks = [...known, ...byBlock(found)].filter((each) => each.number > number - depth)
    const next = { number, hash: to.hash, ...retain(filter.since, blocks) }
    return { next, changes: [...gone.toReversed().flatMap(({ logs }) => logs.toReversed().map(removedLog)), ...found] }
  })

  const newBlocks = Effect.fnUntraced(function*(filter: Filter, head: Header) {
    const { from, known } = yield* fork(filter, head)
    const stored = knownSince(from, head).toReversed()
    const unread = Math.min(mostBlocks, Number(stored[0]?.number ?? from) - from)
    const numbers = Array.from({ length: unread }, (_, index) => BigInt(from + index))
    const read = yield* Effect.forEach(numbers, reads.header, { concurrency: 8 })
    const blocks = [...known]
    for (const header of [...read, ...stored].slice(0, mostBlocks)) {
      // a node that is behind lacks the block, or has it from another branch: later polls return the remaining blocks
      if (header === undefined || header.parentHash !== (blocks.at(-1)?.hash ?? header.parentHash)) break
      blocks.push({ number: Number(header.number), hash: header.hash, logs: [] })
    }
    const changes = blocks.slice(known.length).map(({ hash }) => JSON.stringify(hash))
    const last = blocks.at(-1)
    return {
      next: last === undefined ? {} : { number: last.number, hash: last.hash, known: blocks.slice(-depth) },
      changes
    }
  })

  const newPending = Effect.fnUntraced(function*(filter: Filter) {
    const known = new Set(filter.pending)
    const fresh = (yield* reads.pending).filter((hash) => !known.has(hash))
    return {
      next: { pending: [...filter.pending, ...fresh].slice(-mostPending) },
      changes: fresh.map((hash) => JSON.stringify(hash))
    }
  })

  /** Returns the ID that is the first parameter of a call, in lower case; an ID of no filter if the params are invalid. */
  const readId = ({ params }: CheckedRead): string =>
    Option.match(decodeId(params.valueOrUndefined), { onNone: () => "", onSome: ([id]) => id.toLowerCase() })

  /** Returns the stored filter whose ID is the first parameter of a call. */
  const found = Effect.fnUntraced(function*(call: CheckedRead) {
    const key = { caller: ownerKey(yield* CurrentCaller), id: readId(call) }
    const text = yield* store.get(key)
    const filter = yield* Effect.mapError(Effect.fromOption(decode(text)), () => notFound)
    return { key, filter }
  })

  const readChanges = Effect.fnUntraced(function*(call: CheckedRead) {
    const { filter, key } = yield* found(call)
    const head = filter.kind === "pending" ? undefined : yield* latest
    // a node that is behind the previously used node has no new blocks
    const isBehind = head !== undefined && (head.hash === filter.hash || head.number < BigInt(filter.number))
    const { changes, next } = isBehind
      ? { changes: [], next: {} }
      : head === undefined
      ? yield* newPending(filter)
      : filter.kind === "logs"
      ? yield* newLogs(call, filter, head)
      : yield* newBlocks(filter, head)
    yield* store.set(key, yield* Effect.orDie(encode({ ...filter, ...next })))
    return JsonRpc.result(Json.of(`[${changes.join(",")}]`))
  })

  const ended = (self: Effect.Effect<RpcAnswer, CommonFailure | Ended>): Effect.Effect<RpcAnswer, CommonFailure> =>
    Effect.catchTag(self, "Ended", ({ answer }) => Effect.succeed(answer))

  return {
    eth_newFilter: install("logs"),
    eth_newBlockFilter: install("blocks"),
    eth_newPendingTransactionFilter: install("pending"),
    eth_getFilterChanges: (call) => ended(inTurn(readId(call), readChanges(call))),
    eth_getFilterLogs: (call) =>
      ended(
        Effect.flatMap(found(call), ({ filter }): Effect.Effect<RpcAnswer, CommonFailure | Ended> =>
          filter.kind === "logs"
            ? search({ ...call, operation: getLogs, params: Json.of(filter.params) })
            : Effect.fail(notFound))
      ),
    eth_uninstallFilter: (call) =>
      Effect.flatMap(found(call), ({ key }) => store.remove(key)).pipe(
        Effect.orElseSucceed(() => false),
        Effect.map((isRemoved) => JsonRpc.result(Json.write(isRemoved)))
      )
  }
}
