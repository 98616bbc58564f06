/**
 * The subscriptions of all callers to one EVM chain, from one follower of its heads: the node's own subscription where it has a
 * WebSocket, polling within its budget where it has HTTP only. It runs while there are subscriptions.
 *
 * Logs are queried by the hash of their block, in one query for all filters, and only of blocks whose bloom does not exclude all of them.
 * After a reorganisation the logs of replaced blocks come again with `removed: true`, before those of the new ones.
 */
import * as Json from "@trigate/domain/encoding/Json"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import type { LogFilter } from "@trigate/domain/evm/Block"
import type { Serving } from "@trigate/domain/evm/EvmMethods"
import { relayedReads } from "@trigate/domain/evm/EvmMethods"
import { standardMethods } from "@trigate/domain/evm/EvmMethodTable"
import * as EvmReads from "@trigate/domain/evm/EvmReads"
import { selectionIn, selects } from "@trigate/domain/evm/LogMatch"
import type { LogSelection } from "@trigate/domain/evm/LogMatch"
import * as JsonRpc from "@trigate/domain/operations/JsonRpc"
import * as Clock from "effect/Clock"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import type * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Link from "../streams/Link.ts"
import { SocketTransport } from "../streams/SocketTransport.ts"
import * as StreamLimits from "../streams/StreamLimits.ts"
import { byBlock, removedLog } from "./Filters.ts"
import * as HeadChain from "./HeadChain.ts"
import { mayHave } from "./LogBloom.ts"
import * as NodeReads from "./NodeReads.ts"
import type { AskNode, Header } from "./NodeReads.ts"

/** What a caller subscribes to. */
export type Interest =
  | { readonly kind: "newHeads" | "newPendingTransactions" | "syncing" }
  /** `fromBlock` asks for the logs since that block, before those that follow. */
  | { readonly kind: "logs"; readonly filter: Pick<LogFilter, "address" | "topics">; readonly fromBlock?: bigint }

/** A notification, built once for all of its callers. */
export interface EvmFrame {
  readonly text: string
  /** The bytes in which a transport writes it, cached by the first caller's. */
  wire: Uint8Array | undefined
}

/** Where the notifications of one caller go. */
export interface EvmSink {
  readonly deliver: (frame: EvmFrame) => void
  /** All notifications of one reading have been delivered. */
  readonly flush: () => void
}

/** A subscription of one caller. */
export interface EvmSubscription {
  /** 128 bits; callers with equal subscriptions have the same. */
  readonly id: string
  readonly end: () => void
}

/** What the feed is doing, for metrics and the console. */
export interface FeedStatus {
  readonly chain: Serving["chain"]
  /** Number of the newest block; undefined before the first. */
  readonly head: number | undefined
  /** Milliseconds since it was seen. */
  readonly age: number | undefined
  readonly source: "socket" | "polling" | "idle"
  readonly subscriptions: number
  readonly reorganisations: number
  readonly polls: number
}

/** The subscriptions of one chain. */
export interface EvmFeed {
  /**
   * Subscribes. A sink that has an equal subscription already gets another id for the second.
   *
   * The sink is called in the order of the chain.
   */
  readonly subscribe: (interest: Interest, sink: EvmSink) => EvmSubscription
  readonly status: () => FeedStatus
}

/** Which chain, and how it is followed. */
export interface Options {
  readonly serving: Serving
  readonly ask: AskNode
  /** The WebSocket addresses of its nodes, in order of preference; none where they have HTTP only. */
  readonly addresses?: () => ReadonlyArray<Redacted.Redacted>
  /** Milliseconds between two polls at least; 1000 when not given. */
  readonly pollAtLeast?: () => number
}

interface Topic {
  readonly key: string
  readonly id: string
  readonly interest: Interest
  readonly selection: LogSelection
  readonly sinks: Set<EvmSink>
  /** Its logs are those of the blocks above. */
  since: bigint
  /** Logs that wait until the older ones are there. */
  waiting: Array<string> | undefined
}

interface DeliveredBlock {
  readonly number: bigint
  readonly hash: string
  logs: ReadonlyArray<string>
}

const second = 1000

/** Milliseconds between two polls at most. */
const pollAtMost = 15 * second

/** How long the feed follows the chain after its last subscription has ended. */
const grace = "10 seconds"

/** Milliseconds after which the node's subscription is doubted, and the head is polled too. */
const doubtAfter = 10 * second

/** Blocks that are queried by their hashes; more of them are queried as a range. */
const mostByHash = 8

/** Logs that wait for older ones. */
const mostWaiting = 10_000

/** Hashes of pending transactions by which duplicates are recognised. */
const mostPending = 4096

const syncingEvery = 10 * second

const newId = (): string =>
  `0x${[...SecureRandom.randomBytesUnsafe(16)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`

const quantity = (value: bigint): string => `0x${value.toString(16)}`

const headsRequest = 1
const pendingRequest = 2

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

/** Makes the feed of one chain. It ends with the scope. */
export const make = Effect.fnUntraced(
  function*({ addresses = () => [], ask, pollAtLeast = () => second, serving }: Options) {
    const clock = yield* Clock.Clock
    const scope = yield* Scope.Scope
    const transport = yield* Effect.serviceOption(SocketTransport)
    const fork = Effect.runForkWith(yield* Effect.context())
    const budgets = {
      connections: yield* StreamLimits.makeMinuteBudget(30),
      messages: yield* StreamLimits.makeMinuteBudget(600)
    }
    const now = () => clock.currentTimeMillisUnsafe()
    const reads = NodeReads.make(serving, serving.chain, ask)
    const getLogs = EvmReads.getLogs(serving)
    const syncingRead = relayedReads({ eth_syncing: standardMethods["eth_syncing"] ?? { summary: "" } }, serving)[0]

    const topics = new Map<string, Topic>()
    let touched = new Set<EvmSink>()
    let running: Fiber.Fiber<unknown> | undefined
    let headAt: number | undefined
    let announcedAt: number | undefined
    let blockTime = second
    let reorganisations = 0
    let polls = 0
    let delivered: Array<DeliveredBlock> = []
    let pending = new Set<string>()
    let syncing: string | undefined
    let syncingAt = 0
    const arrivals = yield* Queue.unbounded<Header>()
    const logsWanted = yield* Queue.sliding<void>(1)

    const ofKind = (kind: Interest["kind"]) => [...topics.values()].filter(({ interest }) => interest.kind === kind)

    const flush = (): void => {
      const sinks = touched
      touched = new Set()
      for (const sink of sinks) sink.flush()
    }

    const emit = (topic: Topic, result: string): void => {
      const frame: EvmFrame = {
        text:
          `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${topic.id}","result":${result}}}`,
        wire: undefined
      }
      for (const sink of topic.sinks) {
        sink.deliver(frame)
        touched.add(sink)
      }
    }

    const wake = (): void => void Queue.offerUnsafe(logsWanted, undefined)

    const chain = HeadChain.make(reads, {
      added: (header) => {
        const at = now()
        if (headAt !== undefined) blockTime = blockTime * 0.8 + Math.min(pollAtMost, at - headAt) * 0.2
        headAt = at
        for (const topic of ofKind("newHeads")) emit(topic, header.text)
        flush()
        wake()
      },
      rewound: () => {
        reorganisations++
        wake()
      },
      needed: () => delivered.at(-1)?.number,
      began: (headers) => {
        delivered = headers.map(({ hash, number }) => ({ number, hash, logs: [] }))
      }
    })

    // --- logs

    const emitLog = (topic: Topic, text: string): void => {
      if (topic.waiting === undefined) emit(topic, text)
      else if (topic.waiting.push(text) > mostWaiting) topic.waiting.shift()
    }

    /** Sends the logs of a block to those who want them. */
    const send = (number: bigint, logs: ReadonlyArray<string>): void => {
      const known = logs.map((text) => ({ text, log: parts(text) }))
      for (const topic of ofKind("logs")) {
        if (number <= topic.since) continue
        for (const { log, text } of known) if (selects(topic.selection, log)) emitLog(topic, text)
      }
    }

    /** The filter of the wire that has the logs of all topics. */
    const union = (): object => {
      const all = ofKind("logs").map(({ selection }) => selection)
      const addresses = all.every((each) => each.addresses.size > 0) ? all.flatMap((each) => [...each.addresses]) : []
      const first = all.every(({ topics: [position] }) => position !== undefined && position.size > 0)
        ? all.flatMap(({ topics: [position] }) => Array.from(position ?? []))
        : []
      return {
        ...(addresses.length === 0 ? {} : { address: [...new Set(addresses)] }),
        ...(first.length === 0 ? {} : { topics: [[...new Set(first)]] })
      }
    }

    const query = Effect.fnUntraced(function*(filter: object) {
      const params = Json.write([filter])
      const answer = yield* ask({ operation: getLogs, params, request: params.valueOrUndefined, surface: "gateway" })
      return answer._tag === "Error" ? undefined : Json.elements(answer.result.text)
    })

    /** The logs of some blocks by their hashes; undefined where the node does not have one of them. */
    const byHash = Effect.fnUntraced(function*(blocks: ReadonlyArray<Header>, filter: object) {
      const found = yield* Effect.forEach(blocks, ({ hash }) => query({ ...filter, blockHash: hash }), {
        concurrency: mostByHash
      })
      return found.every(Predicate.isNotUndefined) ? found.flat() : undefined
    })

    /** The logs of some blocks; undefined where the node does not have one of them. */
    const logsIn = Effect.fnUntraced(function*(blocks: ReadonlyArray<Header>) {
      const filter = union()
      const first = blocks[0]
      const last = blocks.at(-1)
      if (first === undefined || last === undefined || blocks.length <= mostByHash) return yield* byHash(blocks, filter)
      const texts = yield* query({ ...filter, fromBlock: quantity(first.number), toBlock: quantity(last.number) })
      if (texts === undefined) return undefined
      // a node that is behind, or on another branch, leaves blocks out without saying so
      const there = new Set(byBlock(texts).map(({ hash }) => hash))
      const others = yield* byHash(blocks.filter(({ hash }) => !there.has(hash)), filter)
      return others === undefined ? undefined : [...texts, ...others]
    })

    /** Takes back the logs of blocks that are not in the chain any more. */
    const takeBack = (): void => {
      for (let last = delivered.at(-1); last !== undefined; last = delivered.at(-1)) {
        if (chain.at(last.number)?.hash === last.hash) break
        delivered.pop()
        send(last.number, last.logs.toReversed().map(removedLog))
      }
    }

    const mostSpan = 200

    /** Delivers the logs of the blocks that came; returns whether it has to be tried again. */
    const reconcile = Effect.fnUntraced(function*() {
      for (;;) {
        takeBack()
        const head = chain.head()
        if (head === undefined) return false
        const start = delivered.at(-1)
        // the reorganisation went back behind the remembered blocks
        if (start === undefined) {
          delivered = [{ number: head.number, hash: head.hash, logs: [] }]
          return false
        }
        const span = chain.above(start.number).slice(0, mostSpan)
        if (span.length === 0) return false
        const wanted = ofKind("logs")
        const matching = span.filter(({ logsBloom, number }) =>
          wanted.some(({ selection, since }) => number > since && mayHave(logsBloom, selection))
        )
        const found = matching.length === 0 ? [] : yield* logsIn(matching)
        if (found === undefined) return true
        const blocks = new Map(byBlock(found).map((block) => [block.hash, block]))
        const hashes = new Set(span.map(({ hash }) => hash))
        if (![...blocks.keys()].every((hash) => hashes.has(hash))) return true
        for (const { hash, number } of span) {
          // the chain may have changed meanwhile
          if (chain.at(number)?.hash !== hash) break
          const logs = blocks.get(hash)?.logs ?? []
          delivered.push({ number, hash, logs })
          send(number, logs)
        }
        if (delivered.length > HeadChain.remembered) delivered = delivered.slice(-HeadChain.remembered)
        flush()
      }
    })

    const following = Effect.forever(Effect.andThen(
      Queue.take(logsWanted),
      Effect.flatMap(
        Effect.orElseSucceed(reconcile(), () => true),
        (isAgain) => {
          flush()
          return isAgain ? Effect.andThen(Effect.sleep("250 millis"), Effect.sync(wake)) : Effect.void
        }
      )
    ))

    /** Finds the logs since a block, before those that follow. */
    const catchUp = Effect.fnUntraced(function*(topic: Topic, from: bigint, filter: object) {
      let found: ReadonlyArray<string> | undefined = []
      let before = -1
      // logs of a branch that was left meanwhile are read again
      while (before !== reorganisations) {
        before = reorganisations
        topic.waiting = []
        const to = delivered.at(-1)?.number
        found = to === undefined || to < from
          ? []
          : yield* query({ ...filter, fromBlock: quantity(from), toBlock: quantity(to) })
      }
      if (found === undefined) {
        yield* Effect.logWarning("Logs before a subscription could not be read", { chain: serving.chain })
      }
      for (const block of byBlock(found ?? [])) {
        // a reorganisation takes these back too
        const there = delivered.find(({ hash }) => hash === block.hash)
        const known = new Set((there?.logs ?? []).map((text) => parts(text).index))
        if (there !== undefined) {
          there.logs = [
            ...there.logs,
            ...block.logs.filter((text) => !known.has(parts(text).index))
          ]
        }
        for (const text of block.logs) emit(topic, text)
      }
      const { waiting = [] } = topic
      topic.waiting = undefined
      for (const text of waiting) emit(topic, text)
      flush()
    })

    // --- heads

    const onPending = (hashes: ReadonlyArray<string>): void => {
      for (const hash of hashes) {
        if (pending.has(hash)) continue
        pending.add(hash)
        for (const topic of ofKind("newPendingTransactions")) emit(topic, JSON.stringify(hash))
      }
      if (pending.size > mostPending) pending = new Set([...pending].slice(-mostPending / 2))
      flush()
    }

    const checkSyncing = Effect.suspend(() => {
      if (
        syncingRead === undefined || ofKind("syncing").length === 0 || now() - syncingAt < syncingEvery
      ) return Effect.void
      syncingAt = now()
      return Effect.map(
        ask({ operation: syncingRead, params: Json.of("[]"), request: [], surface: "gateway" }),
        (answer) => {
          if (answer._tag === "Error" || answer.result.text === syncing) return
          syncing = answer.result.text
          const result = syncing === "false" ? syncing : `{"syncing":true,"status":${syncing}}`
          for (const topic of ofKind("syncing")) emit(topic, result)
          flush()
        }
      )
    })

    const isAnnounced = () => announcedAt !== undefined && now() - announcedAt < Math.max(doubtAfter, 3 * blockTime)

    const poll = Effect.suspend(() => {
      polls++
      const head = Effect.flatMap(
        reads.header("latest"),
        (header) => header === undefined ? Effect.void : chain.take(header, false)
      )
      const waiting = ofKind("newPendingTransactions").length > 0 && !isAnnounced()
      return Effect.andThen(
        Effect.andThen(head, waiting ? Effect.map(reads.pending, onPending) : Effect.void),
        checkSyncing
      )
    })

    /** Milliseconds until the next poll: once in a block, sooner while it is late. */
    const pause = (): number => {
      const least = Math.max(100, pollAtLeast())
      if (isAnnounced()) {
        return Math.max(least, doubtAfter)
      }
      const due = (headAt ?? 0) + blockTime - now()
      return Math.min(pollAtMost, Math.max(least, due > 0 ? due : blockTime / 4))
    }

    const step = Effect.suspend(() => Effect.timeoutOption(Queue.take(arrivals), pause())).pipe(
      Effect.flatMap((arrived) =>
        Option.match(arrived, { onNone: () => poll, onSome: (header) => chain.take(header, true) })
      ),
      // reads that failed are made again by the next poll
      Effect.catch((error: CommonFailure) =>
        Effect.logDebug("The head of a chain could not be read", { chain: serving.chain, error: error._tag })
      )
    )

    // --- the node's own subscription

    const onText = (subscribed: Map<string, number>) => (text: string): void => {
      const value = Json.of(text).valueOrUndefined
      const id = JsonRpc.member(value, "id")
      if (Predicate.isNumber(id)) {
        const subscription = JsonRpc.member(value, "result")
        if (id > 0 && Predicate.isString(subscription)) subscribed.set(subscription, id)
        return
      }
      const params = JsonRpc.member(value, "params")
      const subscription = JsonRpc.member(params, "subscription")
      const result = JsonRpc.member(params, "result")
      const request = Predicate.isString(subscription) ? subscribed.get(subscription) : undefined
      if (request === pendingRequest && Predicate.isString(result)) return onPending([result])
      const header = request === headsRequest ? NodeReads.readHeader(result) : undefined
      if (header === undefined) return
      announcedAt = now()
      Queue.offerUnsafe(arrivals, header)
    }

    const listening = Effect.gen(function*() {
      if (Option.isNone(transport)) return yield* Effect.never
      const subscribed = new Map<string, number>()
      const read = onText(subscribed)
      const link: Link.Link = yield* Link.make({
        transport: transport.value,
        addresses,
        ping: JsonRpc.requestText(0, "net_version", "[]"),
        ...budgets,
        onUp: () => {
          subscribed.clear()
          link.send(JsonRpc.requestText(headsRequest, "eth_subscribe", `["newHeads"]`))
          link.send(JsonRpc.requestText(pendingRequest, "eth_subscribe", `["newPendingTransactions"]`))
        },
        onTexts: (texts) => texts.forEach(read),
        onDown: () => {
          announcedAt = undefined
        }
      })
      return yield* link.run
    })

    const start = (): void => {
      if (running !== undefined) return
      running = fork(
        Effect.scoped(
          Effect.raceAllFirst([Effect.andThen(Effect.ignore(poll), Effect.forever(step)), following, listening]).pipe(
            Effect.catchCause((cause) => Effect.logError("The feed of a chain ended in a fault", cause)),
            Effect.ensuring(Effect.sync(() => {
              running = undefined
              if (topics.size > 0) {
                Fiber.runIn(fork(Effect.andThen(Effect.sleep("1 second"), Effect.sync(start))), scope)
              }
            }))
          )
        )
      )
      Fiber.runIn(running, scope)
    }

    const stopIdle = Effect.andThen(
      Effect.sleep(grace),
      Effect.suspend(() => {
        if (topics.size > 0 || running === undefined) return Effect.void
        const stopped = running
        running = undefined
        chain.clear()
        delivered = []
        headAt = undefined
        announcedAt = undefined
        syncing = undefined
        return Fiber.interrupt(stopped)
      })
    )

    const subscribe: EvmFeed["subscribe"] = (interest, sink) => {
      const name = interest.kind === "logs" ? `logs ${JSON.stringify(interest.filter).toLowerCase()}` : interest.kind
      // logs since a block are one caller's
      const isOwn = interest.kind === "logs" && interest.fromBlock !== undefined
      let variant = 0
      while (topics.get(`${name}#${variant}`)?.sinks.has(sink) === true) variant++
      const key = isOwn ? `${name}@${newId()}` : `${name}#${variant}`
      const head = chain.head()
      const topic: Topic = topics.get(key) ?? {
        key,
        id: newId(),
        interest,
        selection: selectionIn(interest.kind === "logs" ? interest.filter : {}),
        sinks: new Set(),
        since: head?.number ?? -1n,
        waiting: undefined
      }
      topics.set(key, topic)
      topic.sinks.add(sink)
      start()
      if (interest.kind === "logs" && interest.fromBlock !== undefined) {
        const from = interest.fromBlock
        topic.waiting = []
        topic.since = from - 1n
        const { filter } = interest
        const begin = catchUp(topic, from, filter)
        // the first head says up to where logs are missing
        const known = Effect.repeat(Effect.sleep("50 millis"), { until: () => chain.head() !== undefined })
        const caughtUp = chain.head() === undefined ? Effect.andThen(known, begin) : begin
        const caught = Effect.matchEffect(Effect.andThen(Effect.yieldNow, caughtUp), {
          onFailure: () =>
            Effect.sync(() => {
              topic.waiting = undefined
            }),
          onSuccess: () => Effect.void
        })
        Fiber.runIn(fork(caught), scope)
      } else if (interest.kind === "syncing") {
        syncing = undefined
        syncingAt = 0
      }
      let isOver = false
      return {
        id: topic.id,
        end: () => {
          if (isOver) return
          isOver = true
          topic.sinks.delete(sink)
          if (topic.sinks.size === 0) topics.delete(key)
          if (topics.size === 0) Fiber.runIn(fork(stopIdle), scope)
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
          age: headAt === undefined ? undefined : now() - headAt,
          source: running === undefined ? "idle" : isAnnounced() ? "socket" : "polling",
          subscriptions: topics.size,
          reorganisations,
          polls
        }
      }
    }
    return feed
  }
)
