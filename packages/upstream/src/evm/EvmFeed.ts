/**
 * The subscriptions of all callers to one EVM chain. One task follows the chain's newest block (its head) for all of
 * them, and runs while there are subscriptions.
 */
import * as Json from "@trigate/domain/encoding/Json"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import { UnsupportedMethod } from "@trigate/domain/errors/RequestError"
import type { Serving } from "@trigate/domain/evm/EvmMethods"
import { relayedReads } from "@trigate/domain/evm/EvmMethods"
import { standardMethods } from "@trigate/domain/evm/EvmMethodTable"
import type { Interest, Subscribe } from "@trigate/domain/evm/EvmSubscriptions"
import * as JsonRpc from "@trigate/domain/operations/JsonRpc"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as CatchUp from "./CatchUp.ts"
import * as FeedTopics from "./FeedTopics.ts"
import * as HeadChain from "./HeadChain.ts"
import * as HeadSource from "./HeadSource.ts"
import * as LogDelivery from "./LogDelivery.ts"
import * as NodeReads from "./NodeReads.ts"
import type { AskNode } from "./NodeReads.ts"

/** The state of the feed, for metrics and the console. */
export interface FeedStatus {
  readonly chain: Serving["chain"]
  /** Number of the newest block; `undefined` before the first block is received. */
  readonly head: number | undefined
  /** Milliseconds since the newest block was received. */
  readonly age: number | undefined
  readonly source: "socket" | "polling" | "idle"
  readonly subscriptions: number
  readonly reorganisations: number
  readonly polls: number
  /** Number of failed attempts to read the logs of new blocks. */
  readonly logFailures: number
}

/** The subscriptions of one chain. */
export interface EvmFeed {
  /** Subscribes. If a sink (a caller's connection) already has an equal subscription, the new one gets its own ID. */
  readonly subscribe: Subscribe
  readonly status: () => FeedStatus
}

/** The chain to follow, and how it is followed. */
export interface Options {
  readonly serving: Serving
  readonly ask: AskNode
  /** Reads blocks. By default, these reads are sent through `ask`. */
  readonly reads?: NodeReads.NodeReads
  /** Returns the WebSocket URLs of the chain's nodes, in order of preference; empty if the nodes support only HTTP. */
  readonly addresses?: () => ReadonlyArray<Redacted.Redacted>
  /** Returns the minimum milliseconds between two polls. Default: 1000. */
  readonly pollAtLeast?: () => number
}

const second = 1000

/** How long the feed follows the chain after its last subscription has ended. */
const grace = "10 seconds"

/** Maximum number of the latest pending-transaction hashes that are stored to detect duplicates. */
const mostPending = 4096

const syncingEvery = 10 * second

/** Number of consecutive refusals of the pending block after which the subscriptions to it end. */
const mostRefusals = 3

/** Returns the number of the block after which the notifications of a new subscription begin. */
const firstSince = (interest: Interest, head: bigint | undefined): bigint => {
  if ("fromBlock" in interest && typeof interest.fromBlock === "bigint") return interest.fromBlock - 1n
  return interest.kind === "logs" ? head ?? -1n : -1n
}

/** Makes the feed of one chain. The feed ends when its scope closes. */
export const make = Effect.fnUntraced(
  function*({ addresses = () => [], ask, pollAtLeast = () => second, serving, ...options }: Options) {
    const clock = yield* Clock.Clock
    const scope = yield* Scope.Scope
    const fork = Effect.runForkWith(yield* Effect.context())
    const now = () => clock.currentTimeMillisUnsafe()
    const reads = options.reads ?? NodeReads.make(serving, serving.chain, ask)
    const syncingRead = relayedReads({ eth_syncing: standardMethods["eth_syncing"] ?? { summary: "" } }, serving)[0]
    const topics = FeedTopics.make(serving.chain)
    let running: Fiber.Fiber<unknown> | undefined
    let reorganisations = 0
    let pending = new Set<string>()
    let pendingAt = 0
    let refusals = 0
    let syncing: string | undefined
    let syncingAt = 0

    const logs = yield* LogDelivery.make({ serving, ask, reads, topics, chain: () => chain })
    const chain: HeadChain.HeadChain = HeadChain.make(reads, {
      added: (header) => {
        source.found(header)
        for (const topic of topics.ofKind("newHeads")) {
          if (header.number > topic.since) topics.emit(topic, header.text)
        }
        topics.flush()
        logs.wake()
      },
      rewound: (to) => {
        reorganisations++
        logs.rewind(to)
        topics.flush()
      },
      needed: logs.position,
      began: (headers) => {
        source.began(headers)
        logs.begin(headers)
      },
      lost: (first) => {
        topics.lose("newHeads", first)
        logs.lose(first)
        topics.flush()
      }
    })
    const catchUp = CatchUp.make({ reads, topics, chain, logs, reorganisations: () => reorganisations })

    const onPending = (hashes: ReadonlyArray<string>): void => {
      for (const hash of hashes) {
        if (pending.has(hash)) continue
        pending.add(hash)
        for (const topic of topics.ofKind("newPendingTransactions")) topics.emit(topic, JSON.stringify(hash))
      }
      if (pending.size > mostPending) pending = new Set([...pending].slice(-mostPending / 2))
      topics.flush()
    }

    const wantsPending = () => topics.ofKind("newPendingTransactions").length > 0
    const isPendingPolled = () => wantsPending() && !source.isPendingAnnounced()

    /** Ends the subscriptions to pending transactions if the node has repeatedly refused the pending block. */
    const pendingFailed = ({ group, message }: CommonFailure): void => {
      if (group === "retry-later" || ++refusals < mostRefusals) return
      refusals = 0
      const detail = `The node has no pending transactions: ${message}`
      const error = JsonRpc.errorObject(new UnsupportedMethod({ method: "newPendingTransactions", detail }))
      for (const topic of topics.ofKind("newPendingTransactions")) topics.fail(topic, error)
      topics.flush()
    }

    const checkPending = Effect.suspend(() => {
      if (!isPendingPolled() || now() - pendingAt < pollAtLeast()) return Effect.void
      pendingAt = now()
      return Effect.match(reads.pending, {
        onFailure: pendingFailed,
        onSuccess: (hashes) => {
          refusals = 0
          onPending(hashes)
        }
      })
    })

    const checkSyncing = Effect.suspend(() => {
      if (syncingRead === undefined || topics.ofKind("syncing").length === 0 || now() - syncingAt < syncingEvery) {
        return Effect.void
      }
      syncingAt = now()
      return Effect.map(
        ask({ operation: syncingRead, params: Json.of("[]"), request: [], surface: "gateway" }),
        (answer) => {
          if (answer._tag === "Error" || answer.result.text === syncing) return
          syncing = answer.result.text
          const result = syncing === "false" ? syncing : `{"syncing":true,"status":${syncing}}`
          for (const topic of topics.ofKind("syncing")) topics.emit(topic, result)
          topics.flush()
        }
      )
    })

    const poll = Effect.suspend(() => {
      const head = Effect.flatMap(
        reads.header("latest"),
        (header) => header === undefined ? Effect.void : chain.take(header, false)
      )
      return Effect.andThen(Effect.andThen(head, checkPending), checkSyncing)
    })

    const source: HeadSource.HeadSource = yield* HeadSource.make({
      addresses,
      // a poll of the pending block is a second request
      pollAtLeast: () => pollAtLeast() * (isPendingPolled() ? 2 : 1),
      chainId: reads.chainId,
      poll,
      take: (header) => {
        reads.remember(header)
        return Effect.andThen(chain.take(header, true), checkPending)
      },
      pending: (hash) => onPending([hash]),
      wantsPending
    })

    const start = (): void => {
      if (running !== undefined) return
      running = fork(
        Effect.raceFirst(source.run, logs.run).pipe(
          Effect.catchCause((cause) => Effect.logError("The block feed of a chain failed", cause)),
          Effect.ensuring(Effect.sync(() => {
            running = undefined
            if (topics.size() > 0) {
              Fiber.runIn(fork(Effect.andThen(Effect.sleep("1 second"), Effect.sync(start))), scope)
            }
          }))
        )
      )
      Fiber.runIn(running, scope)
    }

    const stopIdle = Effect.andThen(
      Effect.sleep(grace),
      Effect.suspend(() => {
        if (topics.size() > 0 || running === undefined) return Effect.void
        const stopped = running
        running = undefined
        chain.clear()
        logs.begin([])
        source.clear()
        syncing = undefined
        return Fiber.interrupt(stopped)
      })
    )

    const subscribe: Subscribe = (interest, sink) => {
      const topic = topics.join(interest, sink, firstSince(interest, chain.head()?.number))
      start()
      if (interest.kind === "newPendingTransactions") source.followPending()
      const missed = catchUp(topic)
      if (missed !== undefined) Fiber.runIn(fork(Effect.andThen(Effect.yieldNow, missed)), scope)
      if (interest.kind === "syncing") {
        syncing = undefined
        syncingAt = 0
      }
      let isOver = false
      return {
        id: topic.id,
        end: () => {
          if (isOver) return
          isOver = true
          topics.leave(topic, sink)
          if (interest.kind === "newPendingTransactions") source.followPending()
          if (topics.size() === 0) Fiber.runIn(fork(stopIdle), scope)
        }
      }
    }

    const feed: EvmFeed = {
      subscribe,
      status: () => {
        const head = chain.head()
        return {
          chain: serving.chain,
          head: head === undefined ? undefined : Number(head.number),
          age: source.age(),
          source: running === undefined ? "idle" : source.isAnnounced() ? "socket" : "polling",
          subscriptions: topics.size(),
          reorganisations,
          polls: source.polls(),
          logFailures: logs.failures()
        }
      }
    }
    return feed
  }
)
