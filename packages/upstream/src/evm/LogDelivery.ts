/**
 * Delivers the logs of a chain's newest blocks to the chain's subscriptions.
 *
 * Logs are queried by block hash, in one query for all filters, and only for blocks whose bloom filter may match one of
 * the filters. After a reorg, the logs of replaced blocks are sent again with `removed: true`, before the logs of the
 * new blocks.
 */
import { encodeQuantity } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import type { Serving } from "@trigate/domain/evm/EvmMethods"
import * as EvmReads from "@trigate/domain/evm/EvmReads"
import { selects } from "@trigate/domain/evm/LogMatch"
import * as JsonRpc from "@trigate/domain/operations/JsonRpc"
import type { RpcAnswer } from "@trigate/domain/operations/JsonRpc"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import type { FeedTopic, FeedTopics, InterestIn } from "./FeedTopics.ts"
import { byBlock, removedLog } from "./Filters.ts"
import * as HeadChain from "./HeadChain.ts"
import { mayHave } from "./LogBloom.ts"
import type { AskNode, Header } from "./NodeReads.ts"

/** The dependencies of the log delivery. */
export interface Options {
  readonly serving: Serving
  readonly ask: AskNode
  readonly topics: FeedTopics
  /** Returns the chain of the blocks whose logs are delivered. */
  readonly chain: () => HeadChain.HeadChain
}

/** Delivers the logs of a chain's newest blocks to subscriptions. */
export interface LogDelivery {
  /** Returns the number of the latest block whose logs were delivered. */
  readonly position: () => bigint | undefined
  /** Sets the blocks after which the delivery starts. The logs of these blocks are not delivered. */
  readonly begin: (headers: ReadonlyArray<Header>) => void
  /** Reports that the chain has changed. */
  readonly wake: () => void
  /** Delivers logs whenever the chain has changed. Never ends. */
  readonly run: Effect.Effect<never>
  /**
   * Returns the logs that match a subscription, from a block up to {@link position}. If a node refuses the query,
   * returns the node's response.
   */
  readonly readSince: (
    topic: FeedTopic<InterestIn<"logs">>,
    from: bigint
  ) => Effect.Effect<ReadonlyArray<string> | Extract<RpcAnswer, { readonly _tag: "Error" }>, CommonFailure>
  /**
   * Records logs that {@link readSince} returned to a subscription, so that they are also sent as removed after a reorg.
   */
  readonly remember: (logs: ReadonlyArray<string>) => void
}

interface DeliveredBlock {
  readonly number: bigint
  readonly hash: string
  logs: ReadonlyArray<string>
}

/**
 * Maximum number of blocks whose logs are queried by block hash. For more blocks, one query covers the whole range of
 * blocks.
 */
const mostByHash = 8

/** Maximum number of blocks whose logs are delivered together. */
const mostSpan = 200

/** Encodes a block number as the position from which a caller can later resume its logs subscription. */
export const formatPosition = (block: bigint): string => `{"position":"${encodeQuantity(block)}"}`

const parts = (
  text: string
): { readonly address: string; readonly topics: ReadonlyArray<string>; readonly index: unknown } => {
  const value = Json.of(text).valueOrUndefined
  const address = JsonRpc.member(value, "address")
  const topics = JsonRpc.member(value, "topics")
  return {
    address: Predicate.isString(address) ? address : "",
    topics: Array.isArray(topics) ? topics.filter(Predicate.isString) : [],
    index: JsonRpc.member(value, "logIndex")
  }
}

/** Makes the `LogDelivery` object of one chain. Nothing is delivered until its `run` is started. */
export const make = Effect.fnUntraced(function*({ ask, chain, serving, topics }: Options) {
  const getLogs = EvmReads.getLogs(serving)
  const changes = yield* Queue.sliding<void>(1)
  let delivered: Array<DeliveredBlock> = []

  const wake = (): void => void Queue.offerUnsafe(changes, undefined)

  /** Sends the logs of a block to the matching subscriptions. */
  const send = (number: bigint, logs: ReadonlyArray<string>): void => {
    const known = logs.map((text) => ({ text, log: parts(text) }))
    for (const topic of topics.ofKind("logs")) {
      if (number <= topic.since) continue
      for (const { log, text } of known) if (selects(topic.selection, log)) topics.emit(topic, text)
    }
  }

  const sendPositions = (): void => {
    const last = delivered.at(-1)
    if (last === undefined) return
    for (const topic of topics.ofKind("logs")) {
      if (topic.interest.hasPositions === true && last.number > topic.since) {
        topics.emit(topic, formatPosition(last.number))
      }
    }
  }

  /** Returns a filter that matches every log that any subscription selects. */
  const union = (): object => {
    const all = topics.ofKind("logs").map(({ selection }) => selection)
    const addresses = all.every((each) => each.addresses.size > 0) ? all.flatMap((each) => [...each.addresses]) : []
    const first = all.every(({ topics: [position] }) => position !== undefined && position.size > 0)
      ? all.flatMap(({ topics: [position] }) => Array.from(position ?? []))
      : []
    return {
      ...(addresses.length === 0 ? {} : { address: [...new Set(addresses)] }),
      ...(first.length === 0 ? {} : { topics: [[...new Set(first)]] })
    }
  }

  const query = (filter: object) => {
    const params = Json.write([filter])
    return ask({ operation: getLogs, params, request: params.valueOrUndefined, surface: "gateway" })
  }

  const queryTexts = (filter: object) =>
    Effect.map(query(filter), (answer) => answer._tag === "Error" ? undefined : Json.elements(answer.result.text))

  /** Returns the logs of some blocks by hash; `undefined` if the node does not have one of the blocks. */
  const byHash = Effect.fnUntraced(function*(blocks: ReadonlyArray<Header>, filter: object) {
    const found = yield* Effect.forEach(blocks, ({ hash }) => queryTexts({ ...filter, blockHash: hash }), {
      concurrency: mostByHash
    })
    return found.every(Predicate.isNotUndefined) ? found.flat() : undefined
  })

  /** Returns the logs of some blocks; `undefined` if the node does not have one of the blocks. */
  const logsIn = Effect.fnUntraced(function*(blocks: ReadonlyArray<Header>) {
    const filter = union()
    const first = blocks[0]
    const last = blocks.at(-1)
    if (first === undefined || last === undefined || blocks.length <= mostByHash) return yield* byHash(blocks, filter)
    const texts = yield* queryTexts({
      ...filter,
      fromBlock: encodeQuantity(first.number),
      toBlock: encodeQuantity(last.number)
    })
    if (texts === undefined) return undefined
    // a node that is behind, or on another branch, silently omits blocks
    const there = new Set(byBlock(texts).map(({ hash }) => hash))
    const others = yield* byHash(blocks.filter(({ hash }) => !there.has(hash)), filter)
    return others === undefined ? undefined : [...texts, ...others]
  })

  /** Sends, marked as removed, the logs of blocks that are no longer in the chain. */
  const takeBack = (): void => {
    for (let last = delivered.at(-1); last !== undefined; last = delivered.at(-1)) {
      if (chain().at(last.number)?.hash === last.hash) break
      delivered.pop()
      send(last.number, last.logs.toReversed().map(removedLog))
    }
  }

  /** Delivers the logs of new blocks. Returns whether the delivery failed in part and must be retried. */
  const reconcile = Effect.fnUntraced(function*() {
    for (;;) {
      takeBack()
      const head = chain().head()
      if (head === undefined) return false
      const start = delivered.at(-1)
      // the reorg was deeper than the remembered blocks
      if (start === undefined) {
        delivered = [{ number: head.number, hash: head.hash, logs: [] }]
        return false
      }
      const span = chain().above(start.number).slice(0, mostSpan)
      if (span.length === 0) return false
      const wanted = topics.ofKind("logs")
      const matching = span.filter(({ logsBloom, number }) =>
        wanted.some(({ selection, since }) => number > since && mayHave(logsBloom, selection))
      )
      const found = matching.length === 0 ? [] : yield* logsIn(matching)
      if (found === undefined) return true
      const blocks = new Map(byBlock(found).map((block) => [block.hash, block]))
      const hashes = new Set(span.map(({ hash }) => hash))
      if (![...blocks.keys()].every((hash) => hashes.has(hash))) return true
      for (const { hash, number } of span) {
        // the chain may have changed during the query
        if (chain().at(number)?.hash !== hash) break
        const logs = blocks.get(hash)?.logs ?? []
        delivered.push({ number, hash, logs })
        send(number, logs)
      }
      if (delivered.length > HeadChain.remembered) delivered = delivered.slice(-HeadChain.remembered)
      sendPositions()
      topics.flush()
    }
  })

  const run = Effect.forever(Effect.andThen(
    Queue.take(changes),
    Effect.flatMap(
      Effect.orElseSucceed(reconcile(), () => true),
      (isAgain) => {
        topics.flush()
        return isAgain ? Effect.andThen(Effect.sleep("250 millis"), Effect.sync(wake)) : Effect.void
      }
    )
  ))

  const delivery: LogDelivery = {
    position: () => delivered.at(-1)?.number,
    begin: (headers) => {
      delivered = headers.map(({ hash, number }) => ({ number, hash, logs: [] }))
    },
    wake,
    run,
    readSince: ({ interest }, from) => {
      const to = delivered.at(-1)?.number
      return to === undefined || to < from ? Effect.succeed([]) : Effect.map(
        query({ ...interest.filter, fromBlock: encodeQuantity(from), toBlock: encodeQuantity(to) }),
        (answer) => answer._tag === "Error" ? answer : Json.elements(answer.result.text) ?? []
      )
    },
    remember: (logs) => {
      for (const { hash, logs: read } of byBlock(logs)) {
        const there = delivered.find((block) => block.hash === hash)
        if (there === undefined) continue
        const known = new Set(there.logs.map((text) => parts(text).index))
        there.logs = [...there.logs, ...read.filter((text) => !known.has(parts(text).index))]
      }
    }
  }
  return delivery
})
