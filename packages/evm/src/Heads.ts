/**
 * The newest blocks (heads) of a chain, without gaps: their source, a subscription or polling, and the detection of
 * reorganizations.
 *
 * A head lower than the newest stored block is from a slower node, and is ignored. A head on a different branch that is
 * not higher than the newest block is accepted only if the node pushed it, or when it is received a second time. If a
 * head is not linked to the stored blocks, the chain starts again, and reports which blocks were lost.
 */
import * as Json from "@trigate/domain/encoding/Encoding"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import { malformed } from "@trigate/domain/operations/Operation"
import * as EvmReads from "@trigate/domain/unstable/evm/EvmMethods"
import * as Link from "@trigate/upstream/streams/SocketTransport"
import { makeMinuteBudget } from "@trigate/upstream/unstable/streams/StreamShares"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"

/** Sends a call to a node under the gateway's read policies. */
export type SendRead = (call: JsonRpc.CheckedRead) => Effect.Effect<JsonRpc.RpcResponse, CommonFailure>

/** A block number or tag. */
export type BlockName = bigint | "latest" | "safe" | "finalized" | "earliest" | "pending"

const Head = Schema.Struct({
  number: Json.Quantity,
  hash: Json.Hash,
  parentHash: Json.Hash,
  logsBloom: Schema.optionalKey(Schema.NullOr(Schema.String)),
  gasUsed: Schema.optionalKey(Schema.Unknown),
  timestamp: Schema.optionalKey(Schema.Unknown)
})

/** The members of a block header that are needed to follow a chain. */
export interface Header {
  readonly number: bigint
  readonly hash: string
  readonly parentHash: string
  /** The bloom filter of the block's logs; `undefined` if the node does not send one. */
  readonly logsBloom: string | undefined
  /** The time of the block, in seconds; several blocks can have the same. `undefined` if the node does not send it. */
  readonly timestamp: number | undefined
  /** The header as the node encoded it, without the members that subscriptions to heads omit. */
  readonly text: string
}

/** Maximum characters of a block header, without the block's transactions, uncles and withdrawals. */
export const maxHeader = 16 * 1024

const isZero = /^0x0*$/u

const inHeads = new Set(["transactions", "uncles", "withdrawals"])

const decodeQuantity = Schema.decodeUnknownOption(Json.Quantity)
const decodeHead = Schema.decodeUnknownOption(Head)

/**
 * Decodes a header from the JSON of a block or of a head; `undefined` if it is neither. Returns `"too large"` for a header
 * of more than {@link maxHeader} characters, because hundreds of headers are stored.
 */
export const readHeader = (value: unknown): Header | "too large" | undefined => {
  const head = decodeHead(value)
  if (head._tag === "None" || !Predicate.isObject(value)) return undefined
  const { gasUsed, hash, logsBloom, number, parentHash, timestamp } = head.value
  const text = Json.stringify(Object.fromEntries(Object.entries(value).filter(([name]) => !inHeads.has(name))))
  if (text.length > maxHeader) return "too large"
  // some nodes send an empty bloom filter for every block
  const isUnknown = logsBloom === undefined || logsBloom === null || (isZero.test(logsBloom) && gasUsed !== "0x0")
  return {
    number,
    hash: hash.toLowerCase(),
    parentHash: parentHash.toLowerCase(),
    logsBloom: isUnknown ? undefined : logsBloom,
    timestamp: Option.getOrUndefined(Option.map(decodeQuantity(timestamp), Number)),
    text
  }
}

/** The reads of one chain. */
export interface NodeReads {
  /** Returns the header of a block; `undefined` while the node does not have it. */
  readonly header: (block: BlockName) => Effect.Effect<Header | undefined, CommonFailure>
  /** Returns the ID of the chain. */
  readonly chainId: Effect.Effect<bigint, CommonFailure>
  /** Returns the transaction hashes of the pending block; empty if the node has no such block. */
  readonly pending: Effect.Effect<ReadonlyArray<string>, CommonFailure>
  /** Returns the header with a given hash (in lower case), if it was among the latest headers read or announced. */
  readonly known: (hash: string) => Header | undefined
  /** Stores a header that a node announced. */
  readonly remember: (header: Header) => void
}

/** Maximum number of stored headers. */
const mostKnown = 256

/** Makes the reads of a chain; `label` names its upstream. */
export const make = (serving: EvmReads.Serving, label: string, send: SendRead): NodeReads => {
  const sendOwn = (call: Omit<JsonRpc.CheckedRead, "surface">) => send({ ...call, surface: "gateway" })
  const block = JsonRpc.makeRead({ ...EvmReads.getBlockByNumber(serving), response: Schema.Unknown })(label, sendOwn)
  const headers = new Map<string, Header>()
  const remember = (header: Header): void => {
    headers.set(header.hash, header)
    if (headers.size > mostKnown) { for (const hash of headers.keys().take(1)) headers.delete(hash) }
  }
  return {
    header: (name) =>
      Effect.flatMap(block({ block: name }), (value) => {
        const header = readHeader(value)
        if (header === "too large") {
          return Effect.fail(malformed(label, `Expected a block header of at most ${maxHeader} characters`))
        }
        if (header !== undefined) remember(header)
        return Effect.succeed(header)
      }),
    known: (hash) => headers.get(hash),
    remember,
    chainId: JsonRpc.makeRead(EvmReads.chainId(serving))(label, sendOwn)(),
    pending: Effect.map(block({ block: "pending" }), (value) => {
      const transactions: unknown = Predicate.hasProperty(value, "transactions") ? value.transactions : []
      return Array.isArray(transactions) ? transactions.filter(Predicate.isString) : []
    })
  }
}

/** The number of stored blocks, which is also the maximum depth of a reorg. */
export const remembered = 256

/** The number of earlier blocks that are read together with the first head (newest block). */
const before = 8

/** The number of blocks that are read concurrently after a jump of the head. */
const stride = 20

/** Maximum jump of a head, in blocks. After a longer jump the chain starts again. */
const longestJump = 4096n

/** Maximum number of stored blocks, while the listener still needs older ones. */
export const most = 8192

/** Maximum characters of stored block headers of a chain, beyond the newest ones. */
export const mostCharacters = 32 * 1024 * 1024

/** The number of consecutive heads below the stored blocks after which the chain starts again. */
const mostStale = 30

/** The handlers of changes to the stored chain. */
export interface Listener {
  readonly added: (header: Header) => void
  /** Reports that the blocks after block `to` were replaced; the blocks up to `to` remain. */
  readonly rewound: (to: bigint) => void
  /** Returns the lowest block number that the listener still needs, in addition to the newest blocks. */
  readonly needed: () => bigint | undefined
  /** Reports that the stored chain starts with the given blocks. */
  readonly began: (headers: ReadonlyArray<Header>) => void
  /**
   * Reports that the chain will start again, because a head is not linked to the stored blocks. Blocks from `first` on
   * were missed or replaced.
   */
  readonly lost: (first: bigint) => void
}

const charactersIn = (headers: ReadonlyArray<Header>): number => headers.reduce((sum, { text }) => sum + text.length, 0)

/** Makes an empty chain, to which `take` adds the newest blocks (heads) that a node reports. */
export const makeChain = ({ header: read }: Pick<NodeReads, "header">, listener: Listener) => {
  let chain: Array<Header> = []
  let suspicions = 0

  const head = () => chain.at(-1)
  const at = (number: bigint): Header | undefined => {
    const first = chain[0]
    return first === undefined || number < first.number ? undefined : chain[Number(number - first.number)]
  }

  const append = (header: Header): void => {
    chain.push(header)
    const isNeeded = chain.length <= most && (listener.needed() ?? header.number) < (chain[0]?.number ?? 0n) + 8n
    if (chain.length > remembered && !isNeeded) chain.shift()
    // the listener notices that blocks which it still needs are missing
    while (chain.length > remembered && charactersIn(chain) > mostCharacters) chain.shift()
    listener.added(header)
  }

  /**
   * Appends blocks up to a head, as long as each block is linked to its predecessor. Returns whether all of the blocks
   * are linked.
   */
  const fill = Effect.fnUntraced(function*(to: Header) {
    for (;;) {
      const last = head()
      if (last === undefined || last.number >= to.number) return last?.hash === to.hash
      const count = Number(to.number - last.number)
      const missing = Array.from({ length: Math.min(stride, count - 1) }, (_, index) => last.number + BigInt(index + 1))
      // handles the result of each read separately, because a rate limit may permit only the first reads
      const found = yield* Effect.forEach(missing, (number) => Effect.result(read(number)), { concurrency: stride })
      const next = count - 1 <= stride ? [...found, Result.succeed(to)] : found
      for (const each of next) {
        const header = yield* Effect.fromResult(each)
        const previous = head()
        if (header === undefined || previous === undefined || header.parentHash !== previous.hash) return false
        append(header)
      }
    }
  })

  /**
   * Removes the stored blocks that are not on the branch of a head. Changes nothing if no stored block is on that
   * branch, or if the node does not have the branch's blocks.
   */
  const rewind = Effect.fnUntraced(function*(to: Header) {
    const newest = head()
    if (newest === undefined) return "unlinked"
    let number = newest.number < to.number ? newest.number : to.number
    let there = number === to.number ? to : yield* read(number)
    for (;;) {
      if (at(number) === undefined) return "unlinked"
      // the head is from a slower node
      if (there === undefined) return "unknown"
      if (there.hash === at(number)?.hash) break
      number--
      if (there.parentHash === at(number)?.hash) break
      there = yield* read(number)
    }
    if (number < newest.number) {
      const first = chain[0]?.number ?? 0n
      chain = chain.slice(0, Number(number - first) + 1)
      listener.rewound(number)
    }
    return "linked"
  })

  const begin = Effect.fnUntraced(function*(to: Header) {
    // blocks before the first head are read too, because a reorg may replace them
    const earlier = Array.from(
      { length: Math.min(before, Number(to.number)) },
      (_, index) => to.number - BigInt(index + 1)
    )
    const found = yield* Effect.forEach(earlier, (number) => Effect.orElseSucceed(read(number), () => undefined), {
      concurrency: before
    })
    chain = [to]
    for (const each of found) {
      if (each === undefined || each.hash !== chain[0]?.parentHash) break
      chain.unshift(each)
    }
    listener.began(chain)
  })

  const beginAgain = (to: Header, first: bigint) => {
    chain = []
    listener.lost(first)
    return begin(to)
  }

  const take = Effect.fnUntraced(function*(header: Header, isAnnounced: boolean) {
    const last = head()
    const oldest = chain[0]
    if (last === undefined || oldest === undefined) return yield* begin(header)
    if (at(header.number)?.hash === header.hash) {
      suspicions = 0
      return
    }
    const isStale = header.number < oldest.number
    if (header.number <= last.number && (isStale || !isAnnounced) && ++suspicions < (isStale ? mostStale : 2)) return
    suspicions = 0
    if (header.number > last.number + longestJump) return yield* beginAgain(header, last.number + 1n)
    if (header.number > last.number && (yield* fill(header))) return
    // if two nodes disagree, the branch can change between the following reads; they then stop early, and the next head
    // resumes them
    const link = yield* rewind(header)
    if (link === "linked") yield* fill(header)
    else if (link === "unlinked") yield* beginAgain(header, oldest.number)
  })

  return {
    head,
    at,
    /** Returns the stored blocks whose number is greater than `number`, oldest first. */
    above: (number: bigint): ReadonlyArray<Header> => chain.filter((each) => each.number > number),
    /** Adds a head. If reads fail, the blocks read so far remain, and the next head continues from there. */
    take,
    /** Removes all blocks. */
    clear: (): void => {
      chain = []
    }
  }
}

/** The newest blocks of a chain. */
export type HeadChain = ReturnType<typeof makeChain>

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

const second = 1000

/** Maximum milliseconds between two polls. */
const pollAtMost = 15 * second

/** Milliseconds without a head after which the chain is also polled, in addition to the node's subscription. */
const doubtAfter = 10 * second

/** Blocks that are found within this number of milliseconds are regarded as found together. */
const together = 50

/** Maximum number of announced heads that wait. A poll finds the blocks of those that are dropped. */
const mostArrivals = 256

const headsRequest = 1
const pendingRequest = 2
const endRequest = 3
const chainRequest = 4

const decodeNumber = Schema.decodeUnknownOption(Json.Quantity)

/** Makes the source of one chain's heads. */
export const makeSource = Effect.fnUntraced(function*(options: Options) {
  const { addresses, chainId, pending, poll, pollAtLeast, take, wantsPending } = options
  const clock = yield* Clock.Clock
  const fork = Effect.runForkWith(yield* Effect.context())
  const transport = yield* Effect.serviceOption(Link.SocketTransport)
  const budgets = {
    connections: yield* makeMinuteBudget(() => 30),
    messages: yield* makeMinuteBudget(() => 600)
  }
  const now = () => Json.monotonicTime(clock)
  // announced heads; `undefined` requests an immediate poll
  const arrivals = yield* Queue.sliding<Header | undefined>(mostArrivals)
  let headAt: Json.MonotonicTime | undefined
  let headNumber = 0n
  let announcedAt: Json.MonotonicTime | undefined
  /** The average milliseconds between two blocks, and its value when the blocks before the newest ones were found. */
  let blockTime = second
  let previous: { readonly at: Json.MonotonicTime; readonly number: bigint; readonly blockTime: number } | undefined
  let polls = 0

  const isAnnounced = () =>
    announcedAt !== undefined && Json.millisBetween(announcedAt, now()) < Math.max(doubtAfter, 3 * blockTime)

  /**
   * Returns the milliseconds until the next poll. Polls are one block time apart, but more frequent while a block is
   * late.
   */
  const pause = (): number => {
    const least = Math.max(100, pollAtLeast())
    if (isAnnounced()) return Math.max(least, doubtAfter)
    const due = blockTime - Json.millisBetween(headAt ?? Json.longAgo, now())
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
  let isPendingRequested = false

  const request = (id: number, method: string, params: string) => link?.send(JsonRpc.requestText(id, method, params))

  const followPending = (): void => {
    if (wantsPending() && !isPendingRequested) {
      isPendingRequested = true
      request(pendingRequest, "eth_subscribe", `["newPendingTransactions"]`)
    } else if (!wantsPending() && pendings !== undefined) {
      request(endRequest, "eth_unsubscribe", JSON.stringify([pendings]))
      isPendingRequested = false
      pendings = undefined
    }
  }

  const onUp = (): void => {
    heads = undefined
    pendings = undefined
    isPendingRequested = true
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
    isPendingRequested = false
    followPending()
  }

  const onText = (chain: Option.Option<bigint>) => (text: string): void => {
    const value = Json.of(text).valueOrUndefined
    const id = JsonRpc.member(value, "id")
    if (Predicate.isNumber(id)) {
      const result = JsonRpc.member(value, "result")
      const subscription = Predicate.isString(result) ? result : undefined
      if (id === chainRequest) onChain(chain, decodeNumber(result))
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
    const header = subscription === heads ? readHeader(result) : undefined
    if (header === "too large") return link?.drop("header too large")
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

  return {
    /** Reads the newest blocks (heads) of the chain. Never ends. */
    run: Effect.raceFirst(Effect.andThen(Effect.ignore(counted), Effect.forever(step)), Effect.scoped(listening)),
    /**
     * Reports the blocks with which the chain starts, oldest first. Their timestamps are a first measure of the block
     * time.
     */
    began: (headers: ReadonlyArray<Header>): void => {
      const [first, last] = [headers[0], headers.at(-1)]
      previous = undefined
      if (first?.timestamp === undefined || last?.timestamp === undefined || first === last) return
      const average = (last.timestamp - first.timestamp) * second / Number(last.number - first.number)
      blockTime = Math.min(second, Math.max(0, average))
    },
    /** Reports a new block. Blocks that are reported together were produced since the ones reported before. */
    found: ({ number }: Header): void => {
      const at = now()
      if (headAt !== undefined && Json.millisBetween(headAt, at) > together) {
        previous = { at: headAt, number: headNumber, blockTime }
      }
      headAt = at
      headNumber = number
      if (previous === undefined || number <= previous.number) return
      const blocks = Number(number - previous.number)
      const old = 0.8 ** blocks
      blockTime = previous.blockTime * old +
        Math.min(pollAtMost, Json.millisBetween(previous.at, at) / blocks) * (1 - old)
    },
    /** Returns whether the node's own subscription to heads is active and not silent. */
    isAnnounced,
    /** Returns whether the node also announces pending transactions. */
    isPendingAnnounced: (): boolean => pendings !== undefined && isAnnounced(),
    /** Subscribes to pending transactions if they have become wanted, and unsubscribes if they no longer are. */
    followPending,
    /** Returns the milliseconds since the latest block was found; `undefined` before the first block. */
    age: (): number | undefined => headAt === undefined ? undefined : Json.millisBetween(headAt, now()),
    polls: (): number => polls,
    clear: (): void => {
      headAt = undefined
      announcedAt = undefined
    }
  }
})

/** Receives the newest blocks (heads) of one chain, from a subscription or by polling. */
export type HeadSource = Effect.Success<ReturnType<typeof makeSource>>
