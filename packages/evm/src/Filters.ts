/**
 * `eth_newFilter` and similar methods, implemented by the gateway, and the distinct subscriptions to a chain with their
 * callers.
 *
 * A filter expires after five minutes without a poll. Each caller has a maximum number of filters.
 */
import { sha256 } from "@noble/hashes/sha2"
import { bytesToHex, hexToBytes, utf8ToBytes } from "@noble/hashes/utils"
import * as Caller from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import { encodeQuantity } from "@trigate/domain/encoding/Encoding"
import { type CommonFailure, Overloaded, QuotaExceeded, UpstreamUnavailable } from "@trigate/domain/errors/GatewayError"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import type { CheckedRead, RpcResponse } from "@trigate/domain/evm/EvmProtocol"
import * as EvmResources from "@trigate/domain/evm/EvmResources"
import * as EvmReads from "@trigate/domain/unstable/evm/EvmMethods"
import type { EvmFrame, EvmSink, Interest } from "@trigate/domain/unstable/evm/EvmStreams"
import * as SharedState from "@trigate/upstream/unstable/SharedState"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import type { Header, NodeReads, SendRead } from "./Heads.ts"
import { type LogSearch, mayHave, servedBlocks } from "./LogSearch.ts"

/** A subscription that callers share. */
export interface FeedTopic<out Wanted extends Interest = Interest> {
  readonly key: string
  readonly id: string
  /** The type and parameters; without a long filter, which `selection` contains. */
  readonly interest: Wanted
  readonly selection: EvmResources.LogSelection
  /** Increases from one subscription to the next. */
  readonly order: number
  readonly sinks: Set<EvmSink>
  /** The number of the block after which the notifications of the subscription begin. */
  since: bigint
  /** New results, which wait until older results have been sent; `undefined` if new results are sent immediately. */
  waiting: Array<string> | undefined
}

/** The type and parameters of a subscription of one kind, such as `newHeads` or `logs`. */
export type InterestIn<Kind extends Interest["kind"]> = Extract<Interest, { readonly kind: Kind }>

/** Maximum number of new results of a subscription that wait for past ones to be sent. */
const mostWaiting = 10_000

/** Makes a random ID of a subscription or filter. */
export const newId = (): string =>
  `0x${[...SecureRandom.randomBytesUnsafe(16)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`

/**
 * Returns the name under which callers share equal subscriptions. Returns `undefined` for a subscription that is not
 * shared: one that begins at a block chosen by its caller, or that reports positions.
 */
const sharedName = (interest: Interest): string | undefined => {
  if ("fromBlock" in interest && interest.fromBlock !== undefined) return undefined
  if (interest.kind !== "logs") return interest.kind
  if (interest.hasPositions === true) return undefined
  // a filter has up to 49 KB of text
  return `logs ${bytesToHex(sha256(utf8ToBytes(JSON.stringify(interest.filter).toLowerCase())))}`
}

/** A subscription to logs. */
export type LogTopic = FeedTopic<InterestIn<"logs">>

const none: ReadonlySet<string> = new Set()

/** Maximum number of values at one position of a filter that are stored as strings, and in the index. */
const mostStrings = 16

/** Approximate bytes of a value that is stored as a string, in a set and in the index. */
const stringBytes = 150

/** Stores values of equal length as sorted bytes: an address takes 20 bytes instead of more than 100. */
const packed = (values: EvmResources.Alternatives, width: number): EvmResources.Alternatives => {
  const bytes = new Uint8Array(values.size * width)
  for (const [index, value] of [...values].toSorted().entries()) bytes.set(hexToBytes(value.slice(2)), index * width)
  const size = values.size
  const at = (index: number) => bytes.subarray(index * width, (index + 1) * width)
  const has = (value: string): boolean => {
    const wanted = hexToBytes(value.slice(2))
    let low = 0
    let high = size
    while (low < high) {
      const middle = (low + high) >> 1
      const found = at(middle)
      const differs = wanted.findIndex((byte, index) => byte !== found[index])
      if (differs < 0) return true
      if ((wanted[differs] ?? 0) < (found[differs] ?? 0)) high = middle
      else low = middle + 1
    }
    return false
  }
  const isOfWidth = new RegExp(`^0x[0-9a-f]{${2 * width}}$`, "u")
  return {
    size,
    has: (value) => isOfWidth.test(value) && has(value),
    *[Symbol.iterator]() {
      for (let index = 0; index < size; index++) yield `0x${bytesToHex(at(index))}`
    }
  }
}

const widths = { address: 20, topic: 32 } as const

/** Returns the values that a filter accepts, stored compactly. */
const compactSelection = (filter: LogTopic["interest"]["filter"]): EvmResources.LogSelection => {
  const { addresses, topics } = EvmResources.selectionIn(filter)
  const compact = (values: EvmResources.Alternatives, width: number) =>
    values.size > mostStrings ? packed(values, width) : values
  return {
    addresses: compact(addresses, widths.address),
    topics: topics.map((values) => compact(values, widths.topic))
  }
}

/** Returns an interest and its selection. A long filter is stored in the selection only. */
const compactInterest = (interest: Interest): Pick<FeedTopic, "interest" | "selection"> => {
  if (interest.kind !== "logs") return { interest, selection: { addresses: none, topics: [] } }
  const selection = compactSelection(interest.filter)
  const isLong = [selection.addresses, ...selection.topics].some(({ size }) => size > mostStrings)
  return { interest: isLong ? { ...interest, filter: {} } : interest, selection }
}

/** Returns the filter of a subscription, for a node. */
export const toNodeFilter = ({ interest: { filter }, selection: { addresses, topics } }: LogTopic): object =>
  filter.address !== undefined || filter.topics !== undefined ? filter : {
    ...(addresses.size === 0 ? {} : { address: [...addresses] }),
    ...(topics.length === 0 ? {} : { topics: topics.map((values) => values.size === 0 ? null : [...values]) })
  }

/** A subscription in the index, with the conditions that the index does not cover. */
export interface IndexedTopic {
  readonly topic: LogTopic
  readonly others: EvmResources.LogSelection
}

type Bucket = IndexedTopic | Set<IndexedTopic>

/**
 * Makes an index of subscriptions to logs. A subscription is found by the values that it accepts at one position, the
 * address or a topic of a log, for which few other subscriptions are found.
 */
const makeLogIndex = () => {
  // the address and the four topics of a log
  const positions = Array.from({ length: 5 }, () => new Map<string, Bucket>())
  const unindexed = new Set<IndexedTopic>()
  const known = new Map<LogTopic, IndexedTopic & { readonly position: number }>()

  const valuesIn = ({ selection: { addresses, topics } }: LogTopic) => [addresses, ...topics]

  const countAt = (position: number, value: string): number => {
    const bucket = positions[position]?.get(value)
    return bucket === undefined ? 0 : bucket instanceof Set ? bucket.size : 1
  }

  const choosePosition = (values: ReadonlyArray<EvmResources.Alternatives>): number => {
    let chosen = -1
    let least = Number.POSITIVE_INFINITY
    for (const [position, accepted] of values.entries()) {
      if (accepted.size === 0 || accepted.size > mostStrings) continue
      const count = Math.max(...[...accepted].map((value) => countAt(position, value)))
      if (count >= least) continue
      least = count
      chosen = position
    }
    return chosen
  }

  const visit = (bucket: Bucket | undefined, each: (found: IndexedTopic) => void): number => {
    if (bucket instanceof Set) {
      bucket.forEach(each)
      return bucket.size
    }
    if (bucket === undefined) return 0
    each(bucket)
    return 1
  }

  return {
    add: (topic: LogTopic): void => {
      const values = valuesIn(topic)
      const position = choosePosition(values)
      const [addresses = none, ...topics] = values.map((accepted, at) => at === position ? none : accepted)
      const indexed = { topic, position, others: { addresses, topics } }
      known.set(topic, indexed)
      const buckets = positions[position]
      if (buckets === undefined) return void unindexed.add(indexed)
      for (const value of values[position] ?? []) {
        const bucket = buckets.get(value)
        if (bucket === undefined) buckets.set(value, indexed)
        else if (bucket instanceof Set) bucket.add(indexed)
        else buckets.set(value, new Set([bucket, indexed]))
      }
    },
    remove: (topic: LogTopic): void => {
      const indexed = known.get(topic)
      if (indexed === undefined) return
      known.delete(topic)
      unindexed.delete(indexed)
      const buckets = positions[indexed.position]
      if (buckets === undefined) return
      for (const value of valuesIn(topic)[indexed.position] ?? []) {
        const bucket = buckets.get(value)
        if (bucket instanceof Set) bucket.delete(indexed)
        if (bucket === indexed || (bucket instanceof Set && bucket.size === 0)) buckets.delete(value)
      }
    },
    /**
     * Visits the subscriptions that the index finds for a log, and returns their number. Those whose other conditions
     * select the log receive it.
     */
    candidates: (log: EvmResources.LogSubject, each: (found: IndexedTopic) => void): number =>
      [log.address, ...log.topics].reduce(
        (count, value, position) => count + visit(positions[position]?.get(value.toLowerCase()), each),
        visit(unindexed, each)
      )
  }
}

/** Number of connections that are flushed before other fibers run: each takes a system call. */
const sliceFlushes = 64

/** Makes an empty set of subscriptions to the chain of an upstream. */
export const makeTopics = (upstream: string) => {
  const topics = new Map<string, FeedTopic>()
  const logs = makeLogIndex()
  let order = 0
  const touched = new Set<EvmSink>()

  const send = ({ id, sinks }: FeedTopic, member: "error" | "result", text: string): void => {
    const frame: EvmFrame = {
      text: `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${id}","${member}":${text}}}`,
      wire: undefined
    }
    for (const sink of sinks) {
      sink.deliver(frame)
      touched.add(sink)
    }
  }

  /** Ends a subscription with a JSON-RPC error object. */
  const fail = (topic: FeedTopic, error: string): void => {
    send(topic, "error", error)
    topic.sinks.clear()
    remove(topic)
  }

  const remove = (topic: FeedTopic): void => {
    // a topic that ended may have a successor of the same name
    if (topics.get(topic.key) !== topic) return
    topics.delete(topic.key)
    if (isKind(topic, "logs")) logs.remove(topic)
  }

  const isKind = <Kind extends Interest["kind"]>(topic: FeedTopic, kind: Kind): topic is FeedTopic<InterestIn<Kind>> =>
    topic.interest.kind === kind

  const findKey = (name: string, sink: EvmSink): string => {
    let variant = 0
    while (topics.get(`${name}#${variant}`)?.sinks.has(sink) === true) variant++
    return `${name}#${variant}`
  }

  /** Flushes up to `most` connections. Returns whether all are flushed. */
  const flushSome = (most: number): boolean => {
    let left = most
    for (const sink of touched) {
      if (left-- <= 0) return false
      touched.delete(sink)
      sink.flush()
    }
    return true
  }

  /** Flushes all these connections, in slices between which other fibers run. */
  const flushAll: Effect.Effect<void> = Effect.suspend(() =>
    flushSome(sliceFlushes) ? Effect.void : Effect.andThen(Effect.yieldNow, flushAll)
  )

  const ofKind = <Kind extends Interest["kind"]>(kind: Kind): ReadonlyArray<FeedTopic<InterestIn<Kind>>> =>
    [...topics.values()].filter((topic) => isKind(topic, kind))

  return {
    ofKind,
    logCandidates: logs.candidates,
    size: (): number => topics.size,
    /** Returns the approximate number of bytes of all filters. */
    retained: (): number =>
      topics.values().reduce(
        (sum, { selection: { addresses, topics } }) =>
          [addresses, ...topics].reduce(
            (bytes, { size }) => bytes + size * (size > mostStrings ? 32 : stringBytes),
            sum
          ),
        0
      ),
    /**
     * Adds a caller to a shared subscription with an equal interest (type and parameters), or makes a new one. If the
     * caller is already in that subscription, adds the caller to a second subscription with its own ID.
     */
    join: (interest: Interest, sink: EvmSink, since: bigint): FeedTopic => {
      const name = sharedName(interest)
      const shared = name === undefined ? undefined : findKey(name, sink)
      const known = shared === undefined ? undefined : topics.get(shared)
      if (known !== undefined) {
        known.sinks.add(sink)
        return known
      }
      const id = newId()
      const key = shared ?? id
      const topic: FeedTopic = {
        key,
        id,
        ...compactInterest(interest),
        order: order++,
        sinks: new Set([sink]),
        since,
        waiting: undefined
      }
      topics.set(key, topic)
      if (isKind(topic, "logs")) logs.add(topic)
      return topic
    },
    leave: (topic: FeedTopic, sink: EvmSink): void => {
      topic.sinks.delete(sink)
      if (topic.sinks.size === 0) remove(topic)
    },
    /** Sends a result to the callers of a subscription, after all earlier results. */
    emit: (topic: FeedTopic, result: string): void => {
      if (topic.waiting === undefined) send(topic, "result", result)
      else if (topic.waiting.push(result) > mostWaiting) {
        const detail = `More than ${mostWaiting} notifications wait for older ones: subscribe again`
        fail(topic, JsonRpc.errorObject(new Overloaded({ retryAfter: 1, detail })))
      }
    },
    /** Sends older results, and then the new results that waited for them. */
    release: (topic: FeedTopic, older: ReadonlyArray<string>): void => {
      const { waiting = [] } = topic
      topic.waiting = undefined
      for (const result of [...older, ...waiting]) send(topic, "result", result)
    },
    fail,
    /** Ends the subscriptions of one kind, because blocks from `first` on were missed or replaced. */
    lose: (kind: Interest["kind"], first: bigint): void => {
      const detail = `Blocks from ${first} on were missed or replaced: subscribe again with fromBlock 0x${
        first.toString(16)
      }`
      const error = JsonRpc.errorObject(new UpstreamUnavailable({ upstream, attempts: 1, detail }))
      for (const topic of ofKind(kind)) fail(topic, error)
    },
    /** Flushes the connections to which results were sent since their last flush. */
    flush: (): void => {
      flushSome(Number.POSITIVE_INFINITY)
    },
    flushAll
  }
}

/** The subscriptions to one chain. */
export type FeedTopics = ReturnType<typeof makeTopics>

/** The lifetime of a filter after its last poll. */
export const idle = Duration.minutes(5)

/** The owner and the ID of a filter. */
export interface FilterKey {
  readonly caller: string
  readonly id: string
}

/**
 * Stores the filters of all callers, as text.
 *
 * Provided by `Filters.layerMemory` or `Filters.layerRedis`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Filters } from "@trigate/evm"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { add, get } = yield* Filters.FilterStore
 *   yield* add({ caller: "desk", id: "0x1" }, "filter", 10)
 *   yield* Console.log(yield* get({ caller: "desk", id: "0x1" }), yield* get({ caller: "other", id: "0x1" }))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Filters.layerMemory()))
 * ```
 * ```text
 * filter undefined
 * ```
 */
export class FilterStore extends Context.Service<FilterStore, {
  /** Stores a new filter. Returns `false`, and stores nothing, if the caller already has `most` filters. */
  readonly add: (key: FilterKey, text: string, most: number) => Effect.Effect<boolean>
  /** Returns a filter; `undefined` if it does not exist or belongs to another caller. */
  readonly get: (key: FilterKey) => Effect.Effect<string | undefined>
  /** Replaces an existing filter; this counts as a poll. */
  readonly set: (key: FilterKey, text: string) => Effect.Effect<void>
  /** Removes a filter. Returns whether it existed. */
  readonly remove: (key: FilterKey) => Effect.Effect<boolean>
}>()("@trigate/evm/Filters/FilterStore") {}

interface Entry {
  text: string
  until: Json.MonotonicTime
}

/** Maximum characters of the filters that this process stores; a quarter for one caller. */
export const mostStored = 64 * 1024 * 1024

/** Makes a store in this process. */
export const makeMemory: Effect.Effect<FilterStore["Service"]> = Effect.map(Clock.Clock, (clock) => {
  const callers = new Map<string, Map<string, Entry>>()
  const now = () => Json.monotonicTime(clock)
  const until = () => Json.addMillis(now(), Duration.toMillis(idle))
  let stored = 0
  const put = (own: Map<string, Entry>, id: string, entry?: Entry): void => {
    stored += (entry?.text.length ?? 0) - (own.get(id)?.text.length ?? 0)
    if (entry === undefined) own.delete(id)
    else own.set(id, entry)
  }
  /** Returns whether a caller can store further characters. */
  const hasRoom = (own: ReadonlyMap<string, Entry>, more: number): boolean =>
    stored + more <= mostStored && own.values().reduce((sum, { text }) => sum + text.length, more) <= mostStored / 4
  const sweep = (caller: string): Map<string, Entry> => {
    const own = callers.get(caller) ?? new Map<string, Entry>()
    for (const [id, entry] of own) if (entry.until <= now()) put(own, id)
    if (own.size === 0) callers.delete(caller)
    return own
  }
  let sweepAt = Json.longAgo
  /** Removes expired filters of all callers, because some callers do not send another call. */
  const sweepAll = (): void => {
    if (now() < sweepAt) return
    sweepAt = until()
    for (const caller of callers.keys()) sweep(caller)
  }
  return FilterStore.of({
    add: ({ caller, id }, text, most) =>
      Effect.sync(() => {
        sweepAll()
        const own = sweep(caller)
        if (own.size >= most || !hasRoom(own, text.length)) return false
        put(own, id, { text, until: until() })
        callers.set(caller, own)
        return true
      }),
    get: ({ caller, id }) => Effect.sync(() => sweep(caller).get(id)?.text),
    set: ({ caller, id }, text) =>
      Effect.sync(() => {
        const own = sweep(caller)
        const known = own.get(id)
        if (known === undefined) return
        // the client makes a filter again that it does not find
        if (text.length > known.text.length && !hasRoom(own, text.length - known.text.length)) put(own, id)
        else put(own, id, { text, until: until() })
      }),
    remove: ({ caller, id }) =>
      Effect.sync(() => {
        const own = sweep(caller)
        const isThere = own.has(id)
        put(own, id)
        if (callers.get(caller)?.size === 0) callers.delete(caller)
        return isThere
      })
  })
})

/**
 * Provides a store in the memory of this process. Each call returns a new layer with a separate store.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (): Layer.Layer<FilterStore> => Layer.effect(FilterStore, makeMemory)

const keys = (key: string, own: string, ...rest: ReadonlyArray<string | number>) => [key, own, ...rest]

const addScript = Redis.script(keys, {
  numberOfKeys: 2,
  lua: `redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[3])
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[3] + ARGV[2], KEYS[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1`
}).withReturnType<unknown>()

const setScript = Redis.script(keys, {
  numberOfKeys: 2,
  lua: `if not redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'XX') then return 0 end
redis.call('ZADD', KEYS[2], ARGV[3] + ARGV[2], KEYS[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1`
}).withReturnType<unknown>()

const removeScript = Redis.script(keys, {
  numberOfKeys: 2,
  lua: `redis.call('ZREM', KEYS[2], KEYS[1])
return redis.call('DEL', KEYS[1])`
}).withReturnType<unknown>()

/** The location of the filters in Redis. */
export interface RedisOptions {
  /** Prefix of the keys. Default: `trigate:{evm-filters}:`. */
  readonly prefix?: string
}

const makeRedis = Effect.fnUntraced(function*({ prefix = "trigate:{evm-filters}:" }: RedisOptions) {
  const redis = yield* Redis.Redis
  const local = yield* makeMemory
  const shared = yield* SharedState.make({ use: "evm-filters" })
  const millis = Duration.toMillis(idle)
  // the key contains the caller, so that no other caller can use the ID
  const keyNames = ({ caller, id }: FilterKey) => [`${prefix}${caller}:${id}`, `${prefix}${caller}`] as const
  const add = redis.eval(addScript)
  const set = redis.eval(setScript)
  const remove = redis.eval(removeScript)
  return FilterStore.of({
    add: (key, text, most) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        shared.orElse(
          Effect.map(add(...keyNames(key), text, millis, now, most), (added) => added === 1),
          local.add(key, text, most)
        )),
    get: (key) =>
      Effect.map(
        shared.orElse(redis.send<string | null>("GET", keyNames(key)[0]), local.get(key)),
        (text) => text ?? undefined
      ),
    set: (key, text) =>
      Effect.flatMap(
        Clock.currentTimeMillis,
        (now) => shared.orElse(Effect.asVoid(set(...keyNames(key), text, millis, now)), local.set(key, text))
      ),
    remove: (key) => shared.orElse(Effect.map(remove(...keyNames(key)), (removed) => removed === 1), local.remove(key))
  })
})

/**
 * Provides a store that all processes with the same Redis and prefix share. While Redis is unreachable, each process
 * uses its own store.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerRedis = (options: RedisOptions = {}): Layer.Layer<FilterStore, never, Redis.Redis> =>
  Layer.effect(FilterStore, makeRedis(options))

/** The dependencies and limits of filters. */
export interface Options {
  readonly serving: EvmReads.Serving
  readonly reads: NodeReads
  readonly search: LogSearch["search"]
  readonly store: FilterStore["Service"]
  /** Maximum number of filters of one caller. Default: 100. */
  readonly most?: number
}

/** The handlers of the filter methods, by method. */
export type Filters = { readonly [Name in keyof typeof EvmReads.filterMethods]: SendRead }

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
const Params = Schema.fromJsonString(Schema.Tuple([EvmResources.RangeFilter]))
const decodeFilter = Schema.decodeUnknownOption(Params)
const encodeFilter = Schema.encodeEffect(Params)

/** The failure that ends a call of a filter method early; `response` is the response to the call. */
class Ended extends Data.TaggedError("Ended")<{ readonly response: RpcResponse }> {}

// geth's message. Client libraries recognize it, and create the filter again
const notFound = new Ended({ response: JsonRpc.error(-32000, "filter not found") })
const noHead = new Ended({ response: JsonRpc.error(-32000, "header not found") })

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
  const ownerKey = ({ id }: Caller.Caller) => `${serving.chain}:${id}`

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
  const mayMatch = (filter: typeof EvmResources.RangeFilter.Type, from: number, head: Header): boolean => {
    const known = knownSince(from, head)
    const selection = EvmResources.selectionIn(filter)
    return known.at(-1)?.number !== BigInt(from) || known.some(({ logsBloom }) => mayHave(logsBloom, selection))
  }

  const install = (kind: Filter["kind"]) =>
    Effect.fnUntraced(function*(call: CheckedRead) {
      const given = kind === "logs" ? decodeFilter(call.params.text) : Option.some([{}] as const)
      if (Option.isNone(given)) return JsonRpc.error(-32602, EvmResources.invalidFilter)
      const caller = yield* Caller.CurrentCaller
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
        retryAfter: Duration.toSeconds(idle),
        detail: `This caller already has ${most} filters: uninstall some, or wait until they expire`
      })
    }, Effect.catchTag("Ended", ({ response }) => Effect.succeed(response)))

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
    let response = yield* find(head.number)
    const served = servedBlocks(response)
    if (served !== undefined) {
      // later polls return the logs of the remaining blocks
      to = yield* reads.header(BigInt(from + served - 1))
      if (to === undefined) return yield* noHead
      response = yield* find(to.number)
    }
    if (response._tag === "Error") return yield* new Ended({ response })
    const found = Json.elements(response.result.text) ?? []
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
    const key = { caller: ownerKey(yield* Caller.CurrentCaller), id: readId(call) }
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

  const ended = (self: Effect.Effect<RpcResponse, CommonFailure | Ended>): Effect.Effect<RpcResponse, CommonFailure> =>
    Effect.catchTag(self, "Ended", ({ response }) => Effect.succeed(response))

  return {
    eth_newFilter: install("logs"),
    eth_newBlockFilter: install("blocks"),
    eth_newPendingTransactionFilter: install("pending"),
    eth_getFilterChanges: (call) => ended(inTurn(readId(call), readChanges(call))),
    eth_getFilterLogs: (call) =>
      ended(
        Effect.flatMap(found(call), ({ filter }): Effect.Effect<RpcResponse, CommonFailure | Ended> =>
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
