/**
 * Sends past blocks or logs to a new subscription, starting at a block that the caller chose. Sends new notifications
 * only afterwards.
 */
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import { InvalidRequest } from "@trigate/domain/errors/RequestError"
import type { Interest } from "@trigate/domain/evm/EvmSubscriptions"
import * as JsonRpc from "@trigate/domain/operations/JsonRpc"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Semaphore from "effect/Semaphore"
import type { FeedTopic, FeedTopics, InterestIn } from "./FeedTopics.ts"
import type { HeadChain } from "./HeadChain.ts"
import { formatPosition } from "./LogDelivery.ts"
import type { LogDelivery } from "./LogDelivery.ts"
import { servedBlocks } from "./LogSearch.ts"
import type { NodeReads } from "./NodeReads.ts"

/** The dependencies of the function that sends past results to new subscriptions. */
export interface Options {
  readonly reads: NodeReads
  readonly topics: FeedTopics
  readonly chain: HeadChain
  readonly logs: LogDelivery
  /** Returns the number of reorgs so far. */
  readonly reorganisations: () => number
}

/** Maximum number of blocks between a subscription's first block and the latest one. */
const mostBlocks = 1024n

/** Maximum number of subscriptions that catch up concurrently. */
const concurrency = 2

/**
 * Maximum number of retries after a node refuses a query for logs. The node that serves the logs may be behind the node
 * that announced the head.
 */
const mostRefusals = 20

/** The missed results of a subscription, or the error object that ends it; `undefined` if the read must be repeated. */
type CaughtUp = { readonly results: ReadonlyArray<string> } | { readonly refusal: string } | undefined

/** Returns whether a subscription must receive past results before new notifications. */
const isNeeded = (interest: Interest): boolean =>
  ("fromBlock" in interest && interest.fromBlock !== undefined) ||
  (interest.kind === "logs" && interest.hasPositions === true)

const isTransient = ({ group }: CommonFailure): boolean => group === "retry-later"

/**
 * Makes the catch-up function of one chain. The function returns the effect that a new subscription has to run, or
 * `undefined` if the subscription has missed nothing.
 */
export const make = ({ chain, logs, reads, reorganisations, topics }: Options) => {
  const lock = Semaphore.makeUnsafe(concurrency)

  /**
   * Reads the block headers from block `from` on. Returns `undefined` if the headers must be read again, because a
   * header is missing or does not follow the one before it.
   */
  const blocksSince = Effect.fnUntraced(
    function*(topic: FeedTopic, from: bigint): Effect.fn.Return<CaughtUp, CommonFailure> {
      const head = chain.head()
      if (head === undefined || from > head.number) return { results: [] }
      if (head.number - from >= mostBlocks) {
        const message = `Expected one of the ${mostBlocks} newest blocks; the newest one is ${head.number}`
        const error = new InvalidRequest({ errors: [{ path: ["params", 1, "fromBlock"], message }], detail: message })
        return { refusal: JsonRpc.errorObject(error) }
      }
      const known = chain.above(from - 1n)[0]?.number ?? from
      const missing = Array.from({ length: Number(known - from) }, (_, index) => from + BigInt(index))
      const older = yield* Effect.forEach(missing, reads.header, { concurrency: 8 })
      if (!older.every(Predicate.isNotUndefined)) return undefined
      const headers = [...older, ...chain.above(from - 1n)]
      if (!headers.every(({ parentHash }, index) => index === 0 || headers[index - 1]?.hash === parentHash)) {
        return undefined
      }
      // drops the queued notifications, because their blocks are among the headers that were just read
      topic.waiting = []
      return { results: headers.map(({ text }) => text) }
    }
  )

  /**
   * Reads the logs from block `from` on. Returns `undefined` if the blocks changed during the read, so that the logs
   * must be read again.
   */
  const logsSince = Effect.fnUntraced(function*(
    topic: FeedTopic<InterestIn<"logs">>,
    from: bigint,
    isLast: boolean
  ): Effect.fn.Return<CaughtUp, CommonFailure> {
    const before = reorganisations()
    topic.waiting = []
    const position = logs.position()
    const found = yield* logs.readSince(topic, from)
    // a reorg may have removed some of the logs
    if (before !== reorganisations()) return undefined
    if ("_tag" in found) {
      return isLast || servedBlocks(found) !== undefined ? { refusal: found.error.text } : undefined
    }
    logs.remember(found)
    const end = topic.interest.hasPositions === true ? [formatPosition(position ?? from - 1n)] : []
    return { results: [...found, ...end] }
  })

  const catchUp = Effect.fnUntraced(function*(topic: FeedTopic, earlier: object | undefined) {
    const { interest } = topic
    // waits for the chain's first known block: without it, the number of missed blocks is unknown. Also waits for the
    // end of a read of new logs that began before the subscription
    const isEarly = () => chain.head() === undefined || (earlier !== undefined && logs.reading() === earlier)
    while (isEarly()) {
      if (topic.sinks.size === 0) return
      yield* Effect.sleep("50 millis")
    }
    const newest = chain.head()?.number ?? 0n
    if (interest.kind === "newHeads" && interest.fromBlock === "latest") topic.since = newest - 1n
    if (interest.kind === "logs" && interest.fromBlock === undefined) {
      if (topic.since < 0n) topic.since = newest
      topics.release(topic, [formatPosition(topic.since)])
      return topics.flush()
    }
    for (let attempts = 1; topic.sinks.size > 0; attempts++) {
      const from = topic.since + 1n
      const found = yield* lock.withPermit(
        isLogs(topic) ? logsSince(topic, from, attempts >= mostRefusals) : blocksSince(topic, from)
      ).pipe(Effect.catchIf(isTransient, () => Effect.undefined))
      if (found !== undefined) {
        if ("refusal" in found) topics.fail(topic, found.refusal)
        else topics.release(topic, found.results)
        return topics.flush()
      }
      yield* Effect.sleep("250 millis")
    }
  })

  return (topic: FeedTopic): Effect.Effect<void> | undefined => {
    const { interest } = topic
    if (!isNeeded(interest)) return undefined
    topic.waiting = []
    return catchUp(topic, isLogs(topic) ? logs.reading() : undefined).pipe(
      Effect.catch((error) =>
        Effect.sync(() => {
          topics.fail(topic, JsonRpc.errorObject(error))
          topics.flush()
        })
      )
    )
  }
}

const isLogs = (topic: FeedTopic): topic is FeedTopic<InterestIn<"logs">> => topic.interest.kind === "logs"
