/**
 * The source of a chain's newest block (head): a subscription to the node if the node has a WebSocket; otherwise
 * polling within the node's rate limit. While the subscription is silent, the source also polls.
 */
import { Quantity } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import * as JsonRpc from "@trigate/domain/operations/JsonRpc"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Link from "../streams/Link.ts"
import { SocketTransport } from "../streams/SocketTransport.ts"
import * as StreamLimits from "../streams/StreamLimits.ts"
import * as NodeReads from "./NodeReads.ts"
import type { Header } from "./NodeReads.ts"

/** The access to the nodes, and the handlers of heads. */
export interface Options {
  /** Returns the WebSocket URLs of the nodes, in order of preference; empty if the nodes support only HTTP. */
  readonly addresses: () => ReadonlyArray<Redacted.Redacted>
  /** Returns the minimum milliseconds between two polls. */
  readonly pollAtLeast: () => number
  /** Reads the ID of the chain from the HTTP nodes. */
  readonly chainId: Effect.Effect<bigint, CommonFailure>
  /** Polls the latest block, and other data that has no subscription. */
  readonly poll: Effect.Effect<void, CommonFailure>
  /** Handles a head that the node announced. */
  readonly take: (header: Header) => Effect.Effect<void, CommonFailure>
  /** Handles the hash of a pending transaction that the node announced. */
  readonly pending: (hash: string) => void
  /** Returns whether a caller needs pending transactions. */
  readonly wantsPending: () => boolean
}

/** Receives the newest blocks (heads) of one chain, from a subscription or by polling. */
export interface HeadSource {
  /** Reads the newest blocks (heads) of the chain. Never ends. */
  readonly run: Effect.Effect<never>
  /** Reports the blocks with which the chain starts, oldest first. Their timestamps are a first measure of the block time. */
  readonly began: (headers: ReadonlyArray<Header>) => void
  /** Reports a new block. Blocks that are reported together were produced since the ones reported before. */
  readonly found: (header: Header) => void
  /** Returns whether the node's own subscription to heads is active and not silent. */
  readonly isAnnounced: () => boolean
  /** Returns whether the node also announces pending transactions. */
  readonly isPendingAnnounced: () => boolean
  /** Subscribes to pending transactions if they have become wanted, and unsubscribes if they no longer are. */
  readonly followPending: () => void
  /** Returns the milliseconds since the latest block was found; `undefined` before the first block. */
  readonly age: () => number | undefined
  readonly polls: () => number
  readonly clear: () => void
}

const second = 1000

/** Maximum milliseconds between two polls. */
const pollAtMost = 15 * second

/** Milliseconds without a head after which the chain is also polled, in addition to the node's subscription. */
const doubtAfter = 10 * second

/** Blocks that are found within this number of milliseconds are regarded as found together. */
const together = 50

const headsRequest = 1
const pendingRequest = 2
const endRequest = 3
const chainRequest = 4

const decodeQuantity = Schema.decodeUnknownOption(Quantity)

/** Makes the source of one chain's heads. */
export const make = Effect.fnUntraced(function*(options: Options) {
  const { addresses, chainId, pending, poll, pollAtLeast, take, wantsPending } = options
  const clock = yield* Clock.Clock
  const fork = Effect.runForkWith(yield* Effect.context())
  const transport = yield* Effect.serviceOption(SocketTransport)
  const budgets = {
    connections: yield* StreamLimits.makeMinuteBudget(30),
    messages: yield* StreamLimits.makeMinuteBudget(600)
  }
  const now = () => clock.currentTimeMillisUnsafe()
  // announced heads; `undefined` requests an immediate poll
  const arrivals = yield* Queue.unbounded<Header | undefined>()
  let headAt: number | undefined
  let headNumber = 0n
  let announcedAt: number | undefined
  /** The average milliseconds between two blocks, and its value when the blocks before the newest ones were found. */
  let blockTime = second
  let previous: { readonly at: number; readonly number: bigint; readonly blockTime: number } | undefined
  let polls = 0

  const isAnnounced = () => announcedAt !== undefined && now() - announcedAt < Math.max(doubtAfter, 3 * blockTime)

  /**
   * Returns the milliseconds until the next poll. Polls are one block time apart, but more frequent while a block is
   * late.
   */
  const pause = (): number => {
    const least = Math.max(100, pollAtLeast())
    if (isAnnounced()) return Math.max(least, doubtAfter)
    const due = (headAt ?? 0) + blockTime - now()
    return Math.min(pollAtMost, Math.max(least, due > 0 ? due : blockTime / 4))
  }

  const counted = Effect.suspend(() => {
    polls++
    return poll
  })

  const step = Effect.suspend(() => Effect.timeoutOption(Queue.take(arrivals), pause())).pipe(
    Effect.flatMap((arrived) =>
      Option.match(arrived, {
        onNone: () => counted,
        onSome: (header) => header === undefined ? counted : take(header)
      })
    ),
    // the next poll repeats failed reads
    Effect.catch((error: CommonFailure) =>
      Effect.logDebug("The newest block of a chain could not be read", { error: error._tag })
    )
  )

  // the connection to the node, and the ids of the subscriptions on it
  let link: Link.Link | undefined
  let heads: string | undefined
  let pendings: string | undefined
  let isPendingAsked = false

  const request = (id: number, method: string, params: string) => link?.send(JsonRpc.requestText(id, method, params))

  const followPending = (): void => {
    if (wantsPending() && !isPendingAsked) {
      isPendingAsked = true
      request(pendingRequest, "eth_subscribe", `["newPendingTransactions"]`)
    } else if (!wantsPending() && pendings !== undefined) {
      request(endRequest, "eth_unsubscribe", JSON.stringify([pendings]))
      isPendingAsked = false
      pendings = undefined
    }
  }

  const onUp = (): void => {
    heads = undefined
    pendings = undefined
    isPendingAsked = true
    request(chainRequest, "eth_chainId", "[]")
  }

  /** Subscribes if the node is on the chain of the HTTP nodes; otherwise closes the connection. */
  const onChain = (expected: Option.Option<bigint>, received: Option.Option<bigint>): void => {
    if (Option.isSome(expected) && Option.isSome(received) && expected.value !== received.value) {
      fork(Effect.logWarning("The WebSocket of a node is on another chain than its HTTP nodes", {
        expected: expected.value,
        received: received.value
      }))
      return link?.drop("wrong chain")
    }
    request(headsRequest, "eth_subscribe", `["newHeads"]`)
    isPendingAsked = false
    followPending()
  }

  const onText = (chain: Option.Option<bigint>) => (text: string): void => {
    const value = Json.of(text).valueOrUndefined
    const id = JsonRpc.member(value, "id")
    if (Predicate.isNumber(id)) {
      const result = JsonRpc.member(value, "result")
      const subscription = Predicate.isString(result) ? result : undefined
      if (id === chainRequest) onChain(chain, decodeQuantity(result))
      else if (id === headsRequest) {
        heads = subscription
        // the node does not announce blocks from before the subscription, so they are polled
        Queue.offerUnsafe(arrivals, undefined)
      } else if (id === pendingRequest) {
        pendings = subscription
        followPending()
      }
      return
    }
    const params = JsonRpc.member(value, "params")
    const subscription = JsonRpc.member(params, "subscription")
    const result = JsonRpc.member(params, "result")
    if (!Predicate.isString(subscription)) return
    if (subscription === pendings && Predicate.isString(result)) return pending(result)
    const header = subscription === heads ? NodeReads.readHeader(result) : undefined
    if (header === undefined) return
    announcedAt = now()
    Queue.offerUnsafe(arrivals, header)
  }

  const listening = Effect.gen(function*() {
    if (Option.isNone(transport)) return yield* Effect.never
    const chain = yield* Effect.option(Effect.retry(chainId, {
      schedule: Schedule.spaced("5 seconds"),
      while: ({ group }) => group === "retry-later"
    }))
    const read = onText(chain)
    const made = yield* Link.make({
      transport: transport.value,
      addresses,
      ping: JsonRpc.requestText(0, "net_version", "[]"),
      ...budgets,
      onUp,
      onTexts: (texts) => texts.forEach(read),
      onDown: () => {
        announcedAt = undefined
        Queue.offerUnsafe(arrivals, undefined)
      }
    })
    link = made
    return yield* made.run
  })

  const source: HeadSource = {
    run: Effect.raceFirst(Effect.andThen(Effect.ignore(counted), Effect.forever(step)), Effect.scoped(listening)),
    began: (headers) => {
      const [first, last] = [headers[0], headers.at(-1)]
      previous = undefined
      if (first?.timestamp === undefined || last?.timestamp === undefined || first === last) return
      const average = (last.timestamp - first.timestamp) * second / Number(last.number - first.number)
      blockTime = Math.min(second, Math.max(0, average))
    },
    found: ({ number }) => {
      const at = now()
      if (headAt !== undefined && at - headAt > together) previous = { at: headAt, number: headNumber, blockTime }
      headAt = at
      headNumber = number
      if (previous === undefined || number <= previous.number) return
      const blocks = Number(number - previous.number)
      const old = 0.8 ** blocks
      blockTime = previous.blockTime * old + Math.min(pollAtMost, (at - previous.at) / blocks) * (1 - old)
    },
    isAnnounced,
    isPendingAnnounced: () => pendings !== undefined && isAnnounced(),
    followPending,
    age: () => headAt === undefined ? undefined : now() - headAt,
    polls: () => polls,
    clear: () => {
      headAt = undefined
      announcedAt = undefined
    }
  }
  return source
})
