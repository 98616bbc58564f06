/**
 * Delivers the logs of a chain's newest blocks to subscriptions.
 *
 * Logs are queried in one query for all filters, and only for blocks whose bloom filter may match one of the filters:
 * of one block by its hash, of several new blocks by their range. Blocks of the range without logs are then queried by
 * their hashes, because a node that does not have a block omits it. While nodes refuse queries by block hash, all logs
 * of a block are queried by its number. After a reorg, the logs of replaced blocks are sent again with `removed: true`,
 * before the logs of the new blocks.
 */
import * as Json from "@trigate/domain/encoding/Encoding"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import { type Alternatives, selects } from "@trigate/domain/evm/EvmResources"
import * as EvmReads from "@trigate/domain/unstable/evm/EvmMethods"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as EvmUpstream from "./EvmUpstream.ts"
import * as FeedTopics from "./Filters.ts"
import * as HeadChain from "./Heads.ts"
import * as LogSearch from "./LogSearch.ts"

/** The dependencies of the log delivery. */
export interface Options {
  readonly serving: EvmReads.Serving
  readonly send: HeadChain.SendRead
  readonly reads: Pick<HeadChain.NodeReads, "header">
  readonly topics: FeedTopics.FeedTopics
  /** Returns the chain of the blocks whose logs are delivered. */
  readonly chain: () => HeadChain.HeadChain
}

interface DeliveredBlock {
  readonly number: bigint
  readonly hash: string
  /** The logs that were sent; `undefined` if they are too long to be stored. */
  logs: ReadonlyArray<string> | undefined
}

/** Maximum characters of the logs that are stored to send them again, as removed, after a reorg. */
export const mostCharacters = 32 * 1024 * 1024

const charactersIn = (logs: ReadonlyArray<string> = []): number => logs.reduce((sum, { length }) => sum + length, 0)

/**
 * Maximum number of blocks whose logs are queried by block hash after a query of their range has failed, or while few
 * blocks have logs. Otherwise one query covers the whole range of blocks.
 */
const mostByHash = 8

/** Maximum number of blocks whose logs are delivered together. */
const mostSpan = 200

/** Maximum number of blocks whose logs are still to be delivered. The chain stores these blocks, and some more. */
const mostBehind = HeadChain.most - 1024

/**
 * Maximum numbers of addresses and of first topics in a query. If subscriptions select more, all addresses or topics
 * are queried, because nodes refuse long filters.
 */
const mostAlternatives = { addresses: 100, topics: 4 }

/**
 * Number of comparisons after which other fibers run, and the number that takes as long as a delivery. The slices are
 * short because Node accepts one connection in a turn of the event loop.
 */
const sliceWork = 1_024
const deliveryWork = 4

/** Maximum number of matching logs and subscriptions in memory. Beyond, they are sent before further logs are compared. */
const mostMatches = 65_536

const firstBackoff = 250
const maxBackoff = 10_000

/** Number of consecutive failures after which they are logged as warnings. */
const patience = 5

/** A node's response does not contain the logs of the requested blocks. */
class LogsUnread extends Data.TaggedError("LogsUnread")<{ readonly message: string }> {}

const otherBlocks = () => new LogsUnread({ message: "The node has other blocks" })

const isTransient = (error: CommonFailure | LogsUnread): boolean =>
  error._tag !== "LogsUnread" && error.group === "retry-later"

/** Encodes a block number as the position from which a caller can later resume its logs subscription. */
export const formatPosition = (block: bigint): string => `{"position":"${Json.encodeQuantity(block)}"}`

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

/** The logs that match each subscription, in their order. */
type Matching = Map<FeedTopics.LogTopic, Array<string>>

const inOrder = (found: Matching) => [...found].toSorted(([a], [b]) => a.order - b.order)

/** A block whose logs are being sent. */
interface Sending {
  readonly number: bigint
  readonly sent: Matching
  isReplaced: boolean
}

/** Makes the `LogDelivery` of one chain. Nothing is delivered until its `run` is started. */
export const make = Effect.fnUntraced(function*({ send: sendRead, chain, reads, serving, topics }: Options) {
  const clock = yield* Clock.Clock
  const getLogs = EvmReads.getLogs(serving)
  const changes = yield* Queue.sliding<void>(1)
  let delivered: Array<DeliveredBlock> = []
  let reading: object | undefined
  let sending: Sending | undefined
  let failures = 0
  // consecutive failures, and the number of blocks to deliver together after them
  let streak = 0
  let atOnce = mostSpan
  /**
   * Whether at most one of the blocks that were last queried together had logs. A query of a range then saves nothing,
   * because each block without logs is also queried by its hash.
   */
  let isSparse = false
  /** Whether nodes refuse queries by block hash. */
  const refusesHashes = new EvmUpstream.Learned<true>()

  /** Reports that the chain has changed. */
  const wake = (): void => void Queue.offerUnsafe(changes, undefined)

  /** Adds the subscriptions that select a log. Returns the number of comparisons. */
  const match = (found: Matching, number: bigint, text: string): number => {
    const log = parts(text)
    return topics.logCandidates(log, ({ others, topic }) => {
      if (number <= topic.since || !selects(others, log)) return
      const logs = found.get(topic)
      if (logs === undefined) found.set(topic, [text])
      else logs.push(text)
    })
  }

  /** Drops the logs of the oldest blocks beyond the maximum number of characters. */
  const dropLogs = (): void => {
    let characters = delivered.reduce((sum, { logs }) => sum + charactersIn(logs), 0)
    for (const block of delivered) {
      if (characters <= mostCharacters) return
      if (block.logs === undefined || block.logs.length === 0) continue
      characters -= charactersIn(block.logs)
      block.logs = undefined
    }
  }

  /** Sends logs, marked as removed, to the subscriptions that received them. */
  const sendRemoved = (found: Matching): void => {
    for (const [topic, logs] of inOrder(found)) {
      for (const text of logs.toReversed()) topics.emit(topic, FeedTopics.removedLog(text))
    }
  }

  /** Ends the sending of a block's logs. */
  const replaceSending = (): void => {
    if (sending !== undefined) sending.isReplaced = true
    sending = undefined
  }

  /**
   * Sends the logs of a block to the matching subscriptions, in slices between which other fibers run. Returns the logs
   * that were sent, or `undefined` if the block was replaced before all were.
   */
  const send = Effect.fnUntraced(function*(number: bigint, logs: ReadonlyArray<string>) {
    const block: Sending = { number, sent: new Map(), isReplaced: false }
    const wasSent = new Set<string>()
    let found: Matching = new Map()
    let matches = 0
    let work = 0
    const pause = Effect.suspend(() => {
      work = 0
      return Effect.andThen(topics.flushAll, Effect.yieldNow)
    })
    sending = block
    for (const [index, text] of logs.entries()) {
      const compared = match(found, number, text)
      matches += compared
      work += 1 + compared
      if (work >= sliceWork) yield* pause
      if (block.isReplaced) return undefined
      if (matches < mostMatches && index < logs.length - 1) continue
      for (const [topic, selected] of inOrder(found)) {
        const sent = block.sent.get(topic) ?? []
        block.sent.set(topic, sent)
        for (const each of selected) {
          topics.emit(topic, each)
          sent.push(each)
          wasSent.add(each)
          work += 1 + deliveryWork * topic.sinks.size
          if (work >= sliceWork) yield* pause
          if (block.isReplaced) return undefined
        }
      }
      found = new Map()
      matches = 0
    }
    sending = undefined
    return logs.filter((text) => wasSent.has(text))
  })

  const sendPositions = (): void => {
    const last = delivered.at(-1)
    if (last === undefined) return
    for (const topic of topics.ofKind("logs")) {
      if (topic.interest.hasPositions === true && last.number > topic.since) {
        topics.emit(topic, formatPosition(last.number))
      }
    }
  }

  /** Returns the values that all subscriptions together select; empty, which selects all, if one selects all or many. */
  const selected = (sets: Iterable<Alternatives | undefined>, most: number): ReadonlyArray<string> => {
    const values = new Set<string>()
    for (const each of sets) {
      if (each === undefined || each.size === 0 || each.size > most) return []
      for (const value of each) values.add(value)
      if (values.size > most) return []
    }
    return [...values]
  }

  /** Returns a filter that matches every log that any subscription selects. */
  const union = (): object => {
    const all = topics.ofKind("logs").map(({ selection }) => selection)
    const address = selected(all.map(({ addresses }) => addresses), mostAlternatives.addresses)
    const first = selected(all.map(({ topics: [position] }) => position), mostAlternatives.topics)
    return {
      ...(address.length === 0 ? {} : { address }),
      ...(first.length === 0 ? {} : { topics: [first] })
    }
  }

  const query = (filter: object) => {
    const params = Json.write([filter])
    return sendRead({ operation: getLogs, params, request: params.valueOrUndefined, surface: "gateway" })
  }

  const queryTexts = Effect.fnUntraced(function*(filter: object) {
    const response = yield* query(filter)
    if (response._tag === "Error") return yield* new LogsUnread({ message: response.message })
    const texts = Json.elements(response.result.text)
    return texts ?? (yield* new LogsUnread({ message: "The node's logs are not an array" }))
  })

  /**
   * Returns all logs of a block, queried by the block's number. Fails if the node does not have the block; some nodes then
   * return an empty list.
   */
  const queryByNumber = Effect.fnUntraced(function*({ hash, logsBloom, number }: HeadChain.Header) {
    const name = Json.encodeQuantity(number)
    const queried = queryTexts({ fromBlock: name, toBlock: name })
    // the block is queried because its bloom filter may match, so the filter is not empty and the block has logs
    if (logsBloom !== undefined) {
      const texts = yield* queried
      return texts.length > 0 ? texts : yield* otherBlocks()
    }
    // the calls are in one batch, so that one node serves both
    const [header, texts] = yield* EvmUpstream.batched(Effect.all([reads.header(number), queried], { concurrency: 2 }))
    return header?.hash === hash ? texts : yield* otherBlocks()
  })

  /** Returns the logs of a block. Queries them by number only while nodes refuse queries by hash. */
  const queryBlock = (block: HeadChain.Header, filter: object) =>
    Effect.suspend(() => {
      const now = Json.monotonicTime(clock)
      if (refusesHashes.at(now) === true) return queryByNumber(block)
      const queried = queryTexts({ ...filter, blockHash: block.hash })
      // the first attempt may have been refused because of its filter
      if (streak === 0) return queried
      return Effect.catchTag(queried, "LogsUnread", () =>
        Effect.tap(queryByNumber(block), () =>
          Effect.sync(() => refusesHashes.learn(true, now))))
    })

  /** Returns the logs of some blocks, queried block by block. */
  const queryBlocks = (blocks: ReadonlyArray<HeadChain.Header>, filter: object) =>
    Effect.map(
      Effect.forEach(blocks, (block) => queryBlock(block, filter), { concurrency: mostByHash }),
      (found) => found.flat()
    )

  /** Returns the logs of some blocks. Fails if the node does not have one of the blocks. */
  const logsIn = Effect.fnUntraced(function*(blocks: ReadonlyArray<HeadChain.Header>) {
    // a node may refuse a filter, so a retry has none
    const filter = streak === 0 ? union() : {}
    const first = blocks[0]
    const last = blocks.at(-1)
    const isByHash = blocks.length <= (isSparse || streak > 0 ? mostByHash : 1)
    if (first === undefined || last === undefined || isByHash) return yield* queryBlocks(blocks, filter)
    const texts = yield* queryTexts({
      ...filter,
      fromBlock: Json.encodeQuantity(first.number),
      toBlock: Json.encodeQuantity(last.number)
    })
    // a node that is behind, or on another branch, silently omits blocks
    const there = new Set(FeedTopics.byBlock(texts).map(({ hash }) => hash))
    return [...texts, ...(yield* queryBlocks(blocks.filter(({ hash }) => !there.has(hash)), filter))]
  })

  /** Sets the blocks after which the delivery starts. The logs of these blocks are not delivered. */
  const begin = (headers: ReadonlyArray<HeadChain.Header>): void => {
    replaceSending()
    delivered = headers.map(({ hash, number }) => ({ number, hash, logs: [] }))
  }

  /** Ends the subscriptions, because blocks from `first` on were missed or replaced. */
  const lose = (first: bigint): void => {
    const next = (delivered.at(-1)?.number ?? first) + 1n
    topics.lose("logs", next < first ? next : first)
    begin([])
  }

  /**
   * Sends, marked as removed, the logs of blocks after block `to`, which are no longer in the chain. Subscriptions that
   * began at one of these blocks then receive the logs of its replacement. Ends the subscriptions if the logs are not
   * stored.
   */
  const rewind = (to: bigint): void => {
    if (sending !== undefined && sending.number > to) {
      sendRemoved(sending.sent)
      replaceSending()
    }
    const isStored = delivered.every(({ logs, number }) => number <= to || logs !== undefined)
    if (!isStored) topics.lose("logs", to + 1n)
    for (let last = delivered.at(-1); last !== undefined && last.number > to; last = delivered.at(-1)) {
      delivered.pop()
      const found: Matching = new Map()
      for (const text of last.logs ?? []) match(found, last.number, text)
      sendRemoved(found)
    }
    for (const topic of topics.ofKind("logs")) {
      if (topic.interest.fromBlock === undefined && topic.since > to) topic.since = to
    }
    wake()
  }

  /** Delivers the logs of new blocks. */
  const reconcile = Effect.fnUntraced(function*() {
    for (;;) {
      if (chain().head() === undefined) return
      const start = delivered.at(-1)
      const ahead = chain().above(start?.number ?? -1n)
      const isMissed = start !== undefined && (ahead[0]?.number ?? 0n) > start.number + 1n
      if (start === undefined || isMissed || ahead.length > mostBehind) {
        lose(ahead[0]?.number ?? 0n)
        return begin(ahead.slice(-HeadChain.remembered))
      }
      const span = ahead.slice(0, atOnce)
      if (span.length === 0) return
      const wanted = topics.ofKind("logs")
      const matching = span.filter(({ logsBloom, number }) =>
        LogSearch.mayHaveAny(
          logsBloom,
          wanted.values().filter(({ since }) => number > since).map(({ selection }) => selection)
        )
      )
      reading = matching
      const found = matching.length === 0 ? [] : yield* logsIn(matching)
      const blocks = new Map(FeedTopics.byBlock(found).map((block) => [block.hash, block]))
      if (matching.length > 1) isSparse = blocks.size < 2
      const hashes = new Set(span.map(({ hash }) => hash))
      if (![...blocks.keys()].every((hash) => hashes.has(hash))) {
        return yield* otherBlocks()
      }
      for (const { hash, number, parentHash } of span) {
        // the chain may have changed during the query
        if (chain().at(number)?.hash !== hash || delivered.at(-1)?.hash !== parentHash) break
        const sent = yield* send(number, blocks.get(hash)?.logs ?? [])
        if (sent === undefined) break
        delivered.push({ number, hash, logs: sent })
      }
      if (delivered.length > HeadChain.remembered) delivered = delivered.slice(-HeadChain.remembered)
      dropLogs()
      streak = 0
      atOnce = Math.min(mostSpan, 2 * atOnce)
      sendPositions()
      yield* topics.flushAll
    }
  })

  const retryLater = (error: CommonFailure | LogsUnread) =>
    Effect.suspend(() => {
      failures++
      streak++
      // a node may refuse the logs of this number of blocks
      if (!isTransient(error)) atOnce = Math.max(1, atOnce >> 1)
      const log = streak < patience ? Effect.logDebug : Effect.logWarning
      return log("The logs of new blocks could not be read", { error: error.message }).pipe(
        Effect.andThen(Effect.sleep(Math.min(maxBackoff, firstBackoff * 2 ** (streak - 1)))),
        Effect.andThen(Effect.sync(wake))
      )
    })

  /** Delivers logs whenever the chain has changed. Never ends. */
  const run = Effect.forever(Effect.andThen(
    Queue.take(changes),
    Effect.ensuring(
      reconcile(),
      Effect.sync(() => {
        reading = undefined
        sending = undefined
        topics.flush()
      })
    ).pipe(Effect.catch(retryLater))
  ))

  return {
    /** Returns the number of the latest block whose logs were delivered. */
    position: (): bigint | undefined => delivered.at(-1)?.number,
    begin,
    rewind,
    lose,
    wake,
    run,
    /**
     * Returns an object that identifies the read of new logs in progress; `undefined` if there is none. The read omits
     * logs that only subscriptions added after its start select.
     */
    reading: (): object | undefined => reading,
    /** Returns whether the logs of a block are being sent: some subscriptions have received them, and others have not. */
    isSending: (): boolean => sending !== undefined,
    /** Returns the number of characters of the stored logs. */
    retained: (): number => delivered.reduce((sum, { logs }) => sum + charactersIn(logs), 0),
    /** Returns the number of failed attempts to read the logs of new blocks. */
    failures: (): number => failures,
    /**
     * Returns the logs that match a subscription, from a block up to `position`. If a node refuses the query, returns
     * the node's response.
     */
    readSince: (
      topic: FeedTopics.LogTopic,
      from: bigint
    ): Effect.Effect<
      ReadonlyArray<string> | Extract<JsonRpc.RpcResponse, { readonly _tag: "Error" }>,
      CommonFailure
    > => {
      const to = delivered.at(-1)?.number
      return to === undefined || to < from ? Effect.succeed([]) : Effect.map(
        query({
          ...FeedTopics.toNodeFilter(topic),
          fromBlock: Json.encodeQuantity(from),
          toBlock: Json.encodeQuantity(to)
        }),
        (response) => response._tag === "Error" ? response : Json.elements(response.result.text) ?? []
      )
    },
    /** Records logs that `readSince` returned to a subscription, so that they are also sent as removed after a reorg. */
    remember: (logs: ReadonlyArray<string>): void => {
      for (const { hash, logs: read } of FeedTopics.byBlock(logs)) {
        const there = delivered.find((block) => block.hash === hash)
        if (there?.logs === undefined) continue
        const known = new Set(there.logs.map((text) => parts(text).index))
        there.logs = [...there.logs, ...read.filter((text) => !known.has(parts(text).index))]
      }
      dropLogs()
    }
  }
})

/** Delivers the logs of a chain's newest blocks to subscriptions. */
export type LogDelivery = Effect.Success<ReturnType<typeof make>>
