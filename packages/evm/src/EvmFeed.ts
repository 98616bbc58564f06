/**
 * The subscriptions of all callers to one EVM chain, and the methods that the gateway derives from a node's reads. One
 * task follows the chain's head for all callers.
 */
import { background, CurrentCaller } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import { type CommonFailure, InvalidRequest, UnsupportedMethod } from "@trigate/domain/errors/GatewayError"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import * as EvmReads from "@trigate/domain/unstable/evm/EvmMethods"
import type { Interest, Subscribe } from "@trigate/domain/unstable/evm/EvmStreams"
import type { Settings } from "@trigate/upstream/unstable/Upstream"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as PartitionedSemaphore from "effect/PartitionedSemaphore"
import * as Predicate from "effect/Predicate"
import type * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as FeedTopics from "./Filters.ts"
import * as HeadChain from "./Heads.ts"
import * as LogDelivery from "./LogDelivery.ts"
import * as LogSearch from "./LogSearch.ts"

/** The dependencies of the function that sends past results to new subscriptions. */
export interface CatchUpOptions {
  readonly reads: HeadChain.NodeReads
  readonly topics: FeedTopics.FeedTopics
  readonly chain: HeadChain.HeadChain
  readonly logs: LogDelivery.LogDelivery
  /** Returns the number of reorgs so far. */
  readonly reorganisations: () => number
}

/** Maximum number of blocks between a subscription's first block and the latest one. */
const mostBlocks = 1024n

/** Maximum number of subscriptions that catch up concurrently. The callers who wait take turns. */
const concurrency = 2

/**
 * Maximum number of retries after a node refuses a query for logs. The node that serves the logs may be behind the node
 * that announced the head.
 */
const mostCatchUpRefusals = 20

/** The missed results of a subscription, or the error object that ends it; `undefined` if the read must be repeated. */
type CaughtUp = { readonly results: ReadonlyArray<string> } | { readonly refusal: string } | undefined

/** Returns whether a subscription must receive past results before new notifications. */
const isNeeded = (interest: Interest): boolean =>
  ("fromBlock" in interest && interest.fromBlock !== undefined) ||
  (interest.kind === "logs" && interest.hasPositions === true)

const isPassing = ({ group }: CommonFailure): boolean => group === "retry-later"

/**
 * Makes the catch-up function of one chain. The function returns the effect that a new subscription has to run, or
 * `undefined` if the subscription has missed nothing.
 */
export const makeCatchUp = ({ chain, logs, reads, reorganisations, topics }: CatchUpOptions) => {
  const turns = PartitionedSemaphore.makeUnsafe<string>({ permits: concurrency })

  /**
   * Reads the block headers from block `from` on. Returns `undefined` if the headers must be read again, because a
   * header is missing or does not follow the one before it.
   */
  const blocksSince = Effect.fnUntraced(
    function*(topic: FeedTopics.FeedTopic, from: bigint): Effect.fn.Return<CaughtUp, CommonFailure> {
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
    topic: FeedTopics.FeedTopic<FeedTopics.InterestIn<"logs">>,
    from: bigint,
    isLast: boolean
  ): Effect.fn.Return<CaughtUp, CommonFailure> {
    while (logs.isSending()) yield* Effect.yieldNow
    const before = reorganisations()
    topic.waiting = []
    const position = logs.position()
    const found = yield* logs.readSince(topic, from)
    // a reorg may have removed some of the logs
    if (before !== reorganisations()) return undefined
    if ("_tag" in found) {
      return isLast || LogSearch.servedBlocks(found) !== undefined ? { refusal: found.error.text } : undefined
    }
    logs.remember(found)
    const end = topic.interest.hasPositions === true ? [LogDelivery.formatPosition(position ?? from - 1n)] : []
    return { results: [...found, ...end] }
  })

  const catchUp = Effect.fnUntraced(function*(topic: FeedTopics.FeedTopic, earlier: object | undefined) {
    const { interest } = topic
    const { id } = yield* CurrentCaller
    // waits for the chain's first known block: without it, the number of missed blocks is unknown. Also waits for the
    // end of a read of new logs that began before the subscription
    const isEarly = () => chain.head() === undefined || (earlier !== undefined && logs.reading() === earlier)
    while (isEarly()) yield* Effect.sleep("50 millis")
    const newest = chain.head()?.number ?? 0n
    if (interest.kind === "newHeads" && interest.fromBlock === "latest") topic.since = newest - 1n
    if (interest.kind === "logs" && interest.fromBlock === undefined) {
      if (topic.since < 0n) topic.since = newest
      topics.release(topic, [LogDelivery.formatPosition(topic.since)])
      return topics.flush()
    }
    for (let attempts = 1;; attempts++) {
      const from = topic.since + 1n
      const found = yield* turns.withPermit(id)(
        isLogs(topic) ? logsSince(topic, from, attempts >= mostCatchUpRefusals) : blocksSince(topic, from)
      ).pipe(Effect.catchIf(isPassing, () => Effect.undefined))
      if (found !== undefined) {
        if ("refusal" in found) topics.fail(topic, found.refusal)
        else topics.release(topic, found.results)
        return topics.flush()
      }
      yield* Effect.sleep("250 millis")
    }
  })

  return (topic: FeedTopics.FeedTopic): Effect.Effect<void> | undefined => {
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

const isLogs = (topic: FeedTopics.FeedTopic): topic is FeedTopics.FeedTopic<FeedTopics.InterestIn<"logs">> =>
  topic.interest.kind === "logs"

/** The state of the feed, for metrics and the console. */
export interface FeedStatus {
  readonly chain: EvmReads.Serving["chain"]
  /** Number of the newest block; `undefined` before the first block is received. */
  readonly head: number | undefined
  /** Milliseconds since the newest block was received. */
  readonly age: number | undefined
  readonly source: "socket" | "polling" | "idle"
  readonly subscriptions: number
  /** Approximate bytes of the headers, logs and filters that are stored. */
  readonly retained: number
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
  readonly serving: EvmReads.Serving
  readonly send: HeadChain.SendRead
  /** Reads blocks. By default, these reads are sent through `send`. */
  readonly reads?: HeadChain.NodeReads
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

/** Number of deliveries of pending-transaction hashes after which other fibers run. */
const sliceDeliveries = 256

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
  function*({ addresses = () => [], send, pollAtLeast = () => second, serving, ...options }: Options) {
    const clock = yield* Clock.Clock
    const scope = yield* Scope.Scope
    const feedContext = Context.add(yield* Effect.context(), CurrentCaller, background(`feed of ${serving.chain}`))
    const fork = Effect.runForkWith(feedContext)
    const now = () => Json.monotonicTime(clock)
    const reads = options.reads ?? HeadChain.make(serving, serving.chain, send)
    const syncingRead =
      EvmReads.relayedReads({ eth_syncing: EvmReads.standardMethods["eth_syncing"] ?? { summary: "" } }, serving)[0]
    const topics = FeedTopics.makeTopics(serving.chain)
    let running: Fiber.Fiber<unknown> | undefined
    let reorganisations = 0
    let pending = new Set<string>()
    let pendingAt = Json.longAgo
    let refusals = 0
    let syncing: string | undefined
    let syncingAt = Json.longAgo

    const logs = yield* LogDelivery.make({ serving, send, reads, topics, chain: () => chain })
    const chain: HeadChain.HeadChain = HeadChain.makeChain(reads, {
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
    const catchUp = makeCatchUp({ reads, topics, chain, logs, reorganisations: () => reorganisations })

    /** Sends a new hash. Returns the number of deliveries. */
    const onPending = (hash: string): number => {
      if (pending.has(hash)) return 0
      pending.add(hash)
      if (pending.size > mostPending) pending = new Set([...pending].slice(-mostPending / 2))
      const wanted = topics.ofKind("newPendingTransactions")
      for (const topic of wanted) topics.emit(topic, JSON.stringify(hash))
      return wanted.reduce((sum, { sinks }) => sum + sinks.size, 0)
    }

    /** Sends new hashes, in slices between which other fibers run. */
    const sendPending = Effect.fnUntraced(function*(hashes: ReadonlyArray<string>) {
      let deliveries = 0
      for (const hash of hashes) {
        deliveries += onPending(hash)
        if (deliveries < sliceDeliveries) continue
        deliveries = 0
        yield* Effect.andThen(topics.flushAll, Effect.yieldNow)
      }
      yield* topics.flushAll
    })

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
      if (!isPendingPolled() || Json.millisBetween(pendingAt, now()) < pollAtLeast()) return Effect.void
      pendingAt = now()
      return Effect.matchEffect(reads.pending, {
        onFailure: (error) => Effect.sync(() => pendingFailed(error)),
        onSuccess: (hashes) => {
          refusals = 0
          return sendPending(hashes)
        }
      })
    })

    const checkSyncing = Effect.suspend(() => {
      if (
        syncingRead === undefined || topics.ofKind("syncing").length === 0 ||
        Json.millisBetween(syncingAt, now()) < syncingEvery
      ) {
        return Effect.void
      }
      syncingAt = now()
      return Effect.map(
        send({ operation: syncingRead, params: Json.of("[]"), request: [], surface: "gateway" }),
        (response) => {
          if (response._tag === "Error" || response.result.text === syncing) return
          syncing = response.result.text
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

    const source: HeadChain.HeadSource = yield* HeadChain.makeSource({
      addresses,
      // a poll of the pending block is a second request
      pollAtLeast: () => pollAtLeast() * (isPendingPolled() ? 2 : 1),
      chainId: reads.chainId,
      poll,
      take: (header) => {
        reads.remember(header)
        return Effect.andThen(chain.take(header, true), checkPending)
      },
      pending: (hash) => {
        onPending(hash)
        topics.flush()
      },
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
      // retains the parameters of the shared subscription instead of equal ones of each caller
      const { kind } = interest
      if (kind === "newPendingTransactions") source.followPending()
      const missed = catchUp(topic)
      const catchingUp = missed === undefined ? undefined : fork(
        Effect.provideService(Effect.andThen(Effect.yieldNow, missed), CurrentCaller, sink.caller)
      )
      if (catchingUp !== undefined) Fiber.runIn(catchingUp, scope)
      if (interest.kind === "syncing") {
        syncing = undefined
        syncingAt = Json.longAgo
      }
      let isOver = false
      return {
        id: topic.id,
        end: () => {
          if (isOver) return
          isOver = true
          topics.leave(topic, sink)
          if (topic.sinks.size === 0) catchingUp?.interruptUnsafe()
          if (kind === "newPendingTransactions") source.followPending()
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
          retained: chain.above(-1n).reduce((sum, { text }) => sum + text.length, logs.retained() + topics.retained()),
          reorganisations,
          polls: source.polls(),
          logFailures: logs.failures()
        }
      }
    }
    return feed
  }
)

/** The limits of log queries, filters and subscriptions. */
export interface Bounds {
  /** Maximum number of blocks that the nodes serve in one `eth_getLogs`. Default: learned from their errors. */
  readonly logBlocks?: number | undefined
  /** Maximum number of upstream requests for one `eth_getLogs`. Default: 40. */
  readonly logRequests?: number | undefined
  /** Maximum number of filters of one caller. Default: 100. */
  readonly filters?: number | undefined
  /** The WebSocket URLs of the chain's nodes, for subscriptions. Default: new blocks are polled. */
  readonly sockets?: ReadonlyArray<Redacted.Redacted> | undefined
}

/** The chain, and the limits of its log queries, filters and subscriptions. */
export interface GatewayReadsOptions extends Bounds {
  readonly serving: EvmReads.Serving
  /** The name of the upstream in errors. */
  readonly label: string
}

/** Converts settings to limits. The second argument contains settings that apply to one chain only. */
export const toBounds = (
  { callerFilters, logsMaxRequests }: Pick<Settings, "callerFilters" | "logsMaxRequests">,
  { logBlocks, sockets }: {
    readonly logBlocks: Option.Option<number>
    readonly sockets: ReadonlyArray<Redacted.Redacted>
  }
): Bounds => ({
  sockets,
  logBlocks: Option.getOrUndefined(logBlocks),
  logRequests: logsMaxRequests,
  filters: callerFilters
})

/**
 * Makes a backend that implements logs, filters and subscriptions over another backend. Subscriptions end with the
 * scope. Filters are stored in the `FilterStore` of the context, or in memory if there is none.
 */
export const makeGatewayReads = Effect.fnUntraced(
  function*(
    backend: JsonRpc.EvmBackend,
    { filters, label, logBlocks, logRequests, serving, sockets = [] }: GatewayReadsOptions
  ) {
    const stored = yield* Effect.serviceOption(FeedTopics.FilterStore)
    const store = Option.isSome(stored) ? stored.value : yield* FeedTopics.makeMemory
    const reads = HeadChain.make(serving, label, backend.read)
    const { search } = LogSearch.make({
      serving,
      reads,
      send: backend.read,
      blocks: logBlocks,
      ...(logRequests === undefined ? {} : { bounds: { requests: logRequests } })
    })
    const own = new Map(Object.entries({
      [EvmReads.getLogs(serving).name]: search,
      ...FeedTopics.make({ serving, reads, search, store, ...(filters === undefined ? {} : { most: filters }) })
    }))
    const getBlock = EvmReads.getBlockByNumber(serving).name
    /** Reads a block for the gateway itself, such as for its block feed, and stores the block's header. */
    const readBlock: JsonRpc.EvmBackend["read"] = (call) =>
      Effect.tap(backend.read(call), (response) => {
        const header = response._tag === "Result" ? HeadChain.readHeader(response.result.valueOrUndefined) : undefined
        return header === undefined || header === "too large" ? Effect.void : Effect.sync(() => reads.remember(header))
      })
    const read: JsonRpc.EvmBackend["read"] = (call) => {
      if (call.operation.name === getBlock && call.surface === "gateway") return readBlock(call)
      return (own.get(call.operation.name) ?? backend.read)(call)
    }
    const { subscribe } = yield* make({ serving, send: read, reads, addresses: () => sockets })
    const gateway: JsonRpc.StreamingBackend = { once: backend.once, read, subscribe }
    return gateway
  }
)
