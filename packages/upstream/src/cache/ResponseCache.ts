/**
 * Caches and coalesces reads: serves a read from a cached response, from an equal call in flight, or from upstream.
 * Replicas can share responses through Redis.
 *
 * The version of the accounts that are read is part of the key of a response: see {@link AccountVersions}.
 *
 * The first caller (the leader) makes the call in its own fiber, and later callers (followers) wait for its result. A
 * call without followers therefore costs only one map entry. If the leader fails or disconnects, the followers choose a
 * new leader. If the new leader fails too, all followers fail with its error, so that callers do not retry a failed
 * upstream one after another.
 *
 * The call counts only against the leader's share of the rate limit. A leader that has used up its share fails alone.
 *
 * A refusal caused by the form of the leader's request is not shared: calls with equal keys are equivalent, but may be
 * formatted differently. After such a refusal, every follower sends its own call.
 *
 * A response is looked up in this process, then in the store that replicas share. An aging response is refreshed in the
 * background before it expires (RFC 5861, stale-while-revalidate). A stale response is still served, with its age, if
 * the upstream fails (stale-if-error). A stale response is also served while reads use the rate limit faster than it
 * refills; refreshes then take turns ({@link Pacer}).
 */
import { CurrentCaller } from "@trigate/domain/Caller"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as Operation from "@trigate/domain/operations/Operation"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constUndefined } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { isTraced } from "../attempts/Attempts.ts"
import * as Spans from "../attempts/Spans.ts"
import { IsRefresh, worstCost } from "../limits/RateLimiter.ts"
import type { Pacer, Refresh } from "../limits/RateWindow.ts"
import * as SharedState from "../SharedState.ts"
import * as Upstream from "../Upstream.ts"
import * as AccountVersions_ from "./AccountVersions.ts"
import { AccountVersions } from "./AccountVersions.ts"

/** The content of a response, with the time at which it was read. */
export interface CachedResponse {
  readonly content: Operation.CachedContent
  readonly readAt: Utf8.MonotonicTime
  readonly policy: Operation.CachePolicy
}

/** Returns the age of a cached response in milliseconds; 0 if the clock of the replica that read it is ahead. */
export const responseAge = ({ readAt }: CachedResponse, now: Utf8.MonotonicTime): number =>
  Math.max(0, Utf8.millisBetween(readAt, now))

/** Returns whether a response can be served without an upstream request. */
export const isFresh = (cached: CachedResponse, now: Utf8.MonotonicTime): boolean =>
  responseAge(cached, now) < cached.policy.fresh

/** Why a stale response is served: the upstream fails, or its rate limit is exhausted. */
export type StaleReason = "error" | "limited"

const staleFor = ({ staleIfError, staleIfLimited = 0 }: Operation.CachePolicy, reason: StaleReason): number =>
  reason === "error" ? staleIfError : Math.max(staleIfError, staleIfLimited)

/** Returns whether a response is fresh, or young enough to be served stale for the given reason. */
export const mayServe = (cached: CachedResponse, now: Utf8.MonotonicTime, reason: StaleReason): boolean =>
  responseAge(cached, now) < cached.policy.fresh + staleFor(cached.policy, reason)

/**
 * Returns the milliseconds until a response expires, including the time during which the response can be served stale;
 * 0 or less if the response has expired.
 */
export const useLeft = (cached: CachedResponse, now: Utf8.MonotonicTime): number =>
  cached.policy.fresh + staleFor(cached.policy, "limited") - responseAge(cached, now)

/** Bytes of memory that a cached response uses in addition to its key and its content. */
const OVERHEAD = 256

/** Returns the size of an entry in bytes; text counts as two bytes per character. */
export const responseBytes = (key: string, { content: { body, head } }: CachedResponse): number =>
  OVERHEAD + 2 * (key.length + head.length) + (typeof body === "string" ? 2 * body.length : body.byteLength)

const gauge = Upstream.metrics.cacheBytes.series({})

interface Entry {
  readonly cached: CachedResponse
  readonly size: number
}

/** Cached responses by key, with synchronous functions, so that a hit costs no more than a lookup. */
export class CacheStore {
  readonly #entries = new Map<string, Entry>()
  readonly #maxBytes: number
  readonly #context: Context.Context<never>
  /** The entry that was used last, which does not have to be moved to the end. */
  #latest: Entry | undefined
  #bytes = 0

  /**
   * Makes an empty store of at most `maxBytes`. Responses larger than an eighth of `maxBytes` are not cached. `context`
   * contains the metric registry.
   */
  constructor(maxBytes: number, context: Context.Context<never>) {
    this.#maxBytes = maxBytes
    this.#context = context
    gauge.updateUnsafe(0, context)
  }

  /** The number of cached bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** Returns the response for a key, unless it has expired at `now`. */
  get(key: string, now: Utf8.MonotonicTime): CachedResponse | undefined {
    const found = this.#entries.get(key)
    if (found === undefined) return undefined
    if (useLeft(found.cached, now) > 0) {
      if (found !== this.#latest) this.#touch(key, found)
      return found.cached
    }
    this.#drop(key)
    gauge.updateUnsafe(this.#bytes, this.#context)
    return undefined
  }

  put(key: string, cached: CachedResponse): void {
    this.#drop(key)
    const size = responseBytes(key, cached)
    if (size <= this.#maxBytes / 8) {
      this.#touch(key, { cached, size })
      this.#bytes += size
      for (const oldest of this.#entries.keys()) {
        if (this.#bytes <= this.#maxBytes) break
        this.#drop(oldest)
      }
    }
    gauge.updateUnsafe(this.#bytes, this.#context)
  }

  /** Makes an entry the last one that is dropped. */
  #touch(key: string, entry: Entry): void {
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    this.#latest = entry
  }

  #drop(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === this.#latest) this.#latest = undefined
    this.#bytes -= entry?.size ?? 0
    this.#entries.delete(key)
  }
}

/**
 * The age of a response that the current caller accepts.
 *
 * - `declared`: the age that the operation's cache policy allows.
 * - `block`: one block, even if the operation caches nothing by default.
 * - `none`: no cached response is accepted. The response is read upstream, and cached for other callers.
 */
export type Freshness = "declared" | "block" | "none"

/** The response age that the current request accepts. */
export const Freshness = Context.Reference<Freshness>("@trigate/upstream/cache/ResponseCache/Freshness", {
  defaultValue: () => "declared"
})

/**
 * Maximum age of a cached response for the current caller, in seconds; `undefined` means the maximum age in the
 * operation's cache policy.
 */
export const MaxAge = Context.Reference<number | undefined>("@trigate/upstream/cache/ResponseCache/MaxAge", {
  defaultValue: () => undefined
})

/** Options of coalescing. */
export interface SingleFlightOptions {
  /**
   * If a shared call fails, a caller that has waited for it at most this long makes the call itself. A caller that has
   * waited longer fails with the same error. Default: 5 seconds. Together with the deadline of a call, this limits a
   * caller's total wait.
   */
  readonly maxWait?: Duration.Input
}

/** A call that is coalesced with the calls that have the same key. */
export interface FlightCall<A, E> {
  readonly key: string
  readonly send: Effect.Effect<A, E>
  /**
   * Whether to fail as soon as the shared call fails, instead of making the call again, because the caller has an
   * alternative such as a stale response.
   */
  readonly takesFailure?: boolean
  /** Called when the caller receives a response to a call that a different caller made. */
  readonly onCoalesced?: () => void
}

/** A group of calls in flight that are coalesced with each other. */
export interface SingleFlight<A, E> {
  readonly run: (call: FlightCall<A, E>) => Effect.Effect<A, E>
  /** Returns whether a call with this key is in flight. */
  readonly has: (key: string) => boolean
}

interface Flight<A, E> {
  /** The result of the call in flight. Created when a second caller starts to wait for it. */
  ended: Deferred.Deferred<Exit.Exit<A, E>> | undefined
}

/**
 * Returns whether a failure concerns only the leader (the caller that made the shared call): the leader disconnected,
 * or had used up its share of the rate limit.
 */
const isOfLeader = (cause: Cause.Cause<unknown>): boolean =>
  Cause.hasInterrupts(cause) ||
  cause.reasons.some((reason) => reason._tag === "Fail" && Predicate.isTagged(reason.error, "QuotaExceeded"))

/** Makes a group of calls that are coalesced with each other. A response with an error counts as a failure. */
export const makeSingleFlight = <A, E>(
  options: SingleFlightOptions = {},
  faultOf: (answer: A) => Operation.FaultOwner | undefined = constUndefined
): SingleFlight<A, E> => {
  const maxWait = Duration.toMillis(options.maxWait ?? "5 seconds")
  const flights = new Map<string, Flight<A, E>>()

  const shared = (exit: Exit.Exit<A, E>, { onCoalesced }: FlightCall<A, E>): Exit.Exit<A, E> => {
    if (Exit.isSuccess(exit)) onCoalesced?.()
    return exit
  }

  const follow = (flight: Flight<A, E>, call: FlightCall<A, E>, asksAgain: boolean): Effect.Effect<A, E> =>
    Effect.clockWith((clock) => {
      const since = Utf8.monotonicTime(clock)
      flight.ended ??= Deferred.makeUnsafe<Exit.Exit<A, E>>()
      return Effect.flatMap(Deferred.await(flight.ended), (exit) => {
        if (Exit.isFailure(exit) && isOfLeader(exit.cause)) return run(call, asksAgain)
        const fault = Exit.isSuccess(exit) ? faultOf(exit.value) : "upstream"
        if (fault === "caller") return call.send
        if (!asksAgain || fault === undefined) return shared(exit, call)
        const waited = Utf8.millisBetween(since, Utf8.monotonicTime(clock))
        return waited > maxWait ? shared(exit, call) : run(call, false)
      })
    })

  const run = (call: FlightCall<A, E>, asksAgain: boolean): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      let mine: Flight<A, E> | undefined
      // the cleanup also surrounds the choice of the leader, so that no interruption can prevent it
      return Effect.onExitPrimitive(
        Effect.suspend(() => {
          const flight = flights.get(call.key)
          if (flight !== undefined) return follow(flight, call, asksAgain)
          mine = { ended: undefined }
          flights.set(call.key, mine)
          return call.send
        }),
        (exit) => {
          if (mine === undefined) return undefined
          flights.delete(call.key)
          if (mine.ended !== undefined) Deferred.doneUnsafe(mine.ended, Effect.succeed(exit))
          return undefined
        }
      )
    })

  return { run: (call) => run(call, call.takesFailure !== true), has: (key) => flights.has(key) }
}

/**
 * Shared responses by key. While the store is unreachable, every lookup misses, and no call waits longer than the
 * store's deadline.
 */
export interface Replicas {
  readonly get: (key: string) => Effect.Effect<CachedResponse | undefined>
  readonly put: (key: string, cached: CachedResponse) => Effect.Effect<void>
}

/**
 * Maximum milliseconds for which Redis stores a response that can no longer change. Without this limit, such responses
 * would accumulate.
 */
const finalFor = 3_600_000

/** The Redis key prefix of the responses, and the timeout of operations. */
export interface RedisOptions {
  /** Prefix of the keys. Default: `trigate:cache:`. */
  readonly prefix?: string
  /** Timeout of one operation in Redis. Default: 250 milliseconds. */
  readonly deadline?: Duration.Input
}

const Millis = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

const Stored = Schema.fromJsonString(Schema.Struct({
  readAt: Millis,
  policy: Schema.Struct({
    fresh: Millis,
    refreshAfter: Schema.optionalKey(Millis),
    staleIfError: Millis,
    staleIfLimited: Schema.optionalKey(Millis)
  }),
  head: Schema.String,
  form: Schema.Literals(["text", "bytes"]),
  body: Schema.String
}))
const decode = Schema.decodeUnknownOption(Stored)
const encode = Schema.encodeEffect(Stored)

const fromStored = (
  { body, form, head, policy, readAt }: typeof Stored.Type,
  clock: Clock.Clock
): CachedResponse => ({
  readAt: Utf8.addMillis(Utf8.monotonicTime(clock), readAt - clock.currentTimeMillisUnsafe()),
  policy,
  content: { head, body: form === "text" ? body : Utf8.encode(body) }
})

// a body that is not valid UTF-8 is not stored, because it could not be restored from text
const toStored = (cached: CachedResponse, clock: Clock.Clock): Option.Option<typeof Stored.Type> => {
  const { content: { body, head }, policy } = cached
  const readAt = Math.round(clock.currentTimeMillisUnsafe() - responseAge(cached, Utf8.monotonicTime(clock)))
  return typeof body === "string"
    ? Option.some({ readAt, policy, head, form: "text", body })
    : Option.map(Utf8.decode(body), (text) => ({ readAt, policy, head, form: "bytes" as const, body: text }))
}

/** Stores texts that expire, for all replicas. */
export interface TextStore {
  /** Returns the text of a key; `null` if there is none. */
  readonly get: (key: string) => Effect.Effect<unknown, SharedState.StoreFault>
  readonly set: (key: string, text: string, milliseconds: number) => Effect.Effect<unknown, SharedState.StoreFault>
}

/** Makes the shared responses of all replicas with the same store. */
export const makeReplicas = Effect.fnUntraced(
  function*({ deadline }: Pick<RedisOptions, "deadline">, store: TextStore) {
    const shared = yield* SharedState.make({ use: "cache", ...(deadline === undefined ? {} : { deadline }) })

    const get = (key: string): Effect.Effect<CachedResponse | undefined> =>
      Effect.zipWith(
        shared.orElse(store.get(key), Effect.succeed(null)),
        Clock.Clock,
        // an entry that a different version of the gateway stored may not decode, and then counts as missing
        (stored, clock) => Option.getOrUndefined(Option.map(decode(stored), (found) => fromStored(found, clock)))
      )

    const put = Effect.fnUntraced(function*(key: string, cached: CachedResponse) {
      const clock = yield* Clock.Clock
      const useful = Math.floor(useLeft(cached, Utf8.monotonicTime(clock)))
      const left = cached.policy.isFinal === true ? Math.min(useful, finalFor) : useful
      const stored = toStored(cached, clock)
      if (left < 1 || Option.isNone(stored)) return
      const text = yield* Effect.orDie(encode(stored.value))
      yield* shared.orElse(store.set(key, text, left), Effect.void)
    })

    const replicas: Replicas = { get, put }
    return replicas
  }
)

/** Makes the shared responses of all replicas with the same Redis and prefix. */
export const makeRedis = ({ prefix = "trigate:cache:", ...options }: RedisOptions) =>
  Effect.flatMap(Redis.Redis, (redis) =>
    makeReplicas(options, {
      get: (key) => redis.send("GET", `${prefix}${key}`),
      set: (key, text, milliseconds) => redis.send("SET", `${prefix}${key}`, text, "PX", String(milliseconds))
    }))

/** A read, and the rules for caching the read's response. */
export interface CacheableRead<A> {
  readonly operation: string
  readonly upstream: Upstream.UpstreamLabel
  /** The canonical request: reads with equal keys have the same response. */
  readonly key: string
  /**
   * Returns how long the response to a read at the time `now` can be cached. If it returns `undefined`, the response is
   * not cached, and reads are only coalesced.
   */
  readonly cachePolicy?: (now: number, freshness: Freshness) => Operation.CachePolicy | undefined
  /** Returns whether a response can be cached. Default: every success. */
  readonly isCacheable?: (answer: A) => boolean
  /**
   * Returns the effect that determines, by further reads in the background, how long a response can be cached. Returns
   * `undefined` if nothing has to be determined.
   *
   * The response is cached only after the duration is determined, and only in this process.
   */
  readonly confirm?: ((answer: A) => Effect.Effect<Operation.CachePolicy | undefined> | undefined) | undefined
  /** Returns the rate-limit cost of reading the response upstream; `undefined` if the cost is not counted. */
  readonly costOf?: ((now: number) => Operation.Cost | undefined) | undefined
  /**
   * The accounts whose state is read. After one of these accounts has changed, responses from before the change are not
   * served.
   */
  readonly accounts?: ReadonlyArray<string> | undefined
  /**
   * Limits the refreshes of stale responses to the capacity of the rate limit. Default: refreshes start immediately.
   */
  readonly pacer?: Pacer | undefined
}

/** A read, and the function that sends it upstream. */
export interface Query<A, E> extends CacheableRead<A> {
  readonly send: Effect.Effect<A, E>
}

/**
 * The time at which a response was received, and the version of the response's accounts at that time.
 */
export interface Receipt {
  readonly readAt: Utf8.MonotonicTime
  readonly version: string
}

/** How responses to one group of reads are cached. */
export interface Kind<A> {
  /**
   * The namespace of cached responses: a chain with its upstream addresses. Readers with equal namespaces share
   * responses, even across replicas.
   *
   * The namespace is part of stored keys, and does not contain an endpoint key (a secret in an upstream's URL).
   */
  readonly space: string
  readonly codec: Operation.CacheCodec<A>
}

/** Serves one group of reads, from the cache or from upstream. */
export interface Reader<A, E> {
  readonly read: (query: Query<A, E>) => Effect.Effect<A, E>
  /** Caches a response that this reader did not request, such as one that the upstream pushed. */
  readonly put: (read: CacheableRead<A>, answer: A, receipt: Receipt) => Effect.Effect<void>
}

/** How a read was served without an upstream request of its own, or the result of a background refresh. */
type CacheOutcome = "coalesced" | "hit" | "replica_hit" | "stale" | "limited" | "refreshed" | "refresh_failed"

/** The outcomes that made an upstream request unnecessary. */
const savings: ReadonlySet<CacheOutcome> = new Set(["coalesced", "hit", "replica_hit", "limited"])

/** Minimum milliseconds between two refreshes of a response, even if the first refresh fails. */
const REFRESH_PAUSE = 5000

/** A response is shared with other replicas only if it stays fresh for at least this many milliseconds. */
const SHORTEST_SHARED = 1000

/** Maximum milliseconds by which another replica's clock can be ahead before its responses are ignored. */
const MAX_AHEAD = 1000

/**
 * Caches and coalesces reads.
 *
 * Provided by `ResponseCache.layer` or `ResponseCache.layerRedis`.
 *
 * @since 0.1.0
 * @category services
 */
export class ResponseCache extends Context.Service<ResponseCache, {
  /**
   * Makes a reader for one group of reads. Make it only once, because only reads through the same reader are coalesced.
   */
  readonly reader: <A, E>(kind: Kind<A>) => Reader<A, E>
  /** The versions of accounts. The cache keys of account state contain these versions. */
  readonly accounts: AccountVersions["Service"]
}>()("@trigate/upstream/cache/ResponseCache") {}

/** Options of the cache. */
export interface Options extends SingleFlightOptions {
  /**
   * Maximum number of bytes of keys and responses in this process. Default: 64 MiB. A response larger than an eighth of
   * this limit is not cached.
   */
  readonly maxBytes?: number
}

/** The context of a read: the clock, the caller, the requested freshness, the metrics registry. */
type Reading = Context.Context<never>

const currentTime = (context: Reading): Utf8.MonotonicTime => Utf8.monotonicTime(Context.get(context, Clock.Clock))

/** Returns the time by the system clock, on which the costs and the cache policies of candle queries depend. */
const wallTime = (context: Reading): number => Context.get(context, Clock.Clock).currentTimeMillisUnsafe()

const isRateLimited = (error: unknown): boolean =>
  Predicate.isTagged(error, "UpstreamRateLimited") || Predicate.isTagged(error, "QuotaExceeded")

const asRefresh = <A, E>(send: Effect.Effect<A, E>): Effect.Effect<A, E> => Effect.provideService(send, IsRefresh, true)

/** Makes the function that counts the outcomes of reads, with the metric registry of the cache's context. */
const makeCount = (registry: Context.Context<never>) => {
  const outcomes = Upstream.metrics.cache.updates(registry)
  const saved = Upstream.metrics.upstreamWeightSaved.updates(registry)
  return <A>(query: CacheableRead<A>, outcome: CacheOutcome, context: Reading): void => {
    const { operation, upstream } = query
    outcomes({ upstream, operation, outcome })(1)
    if (upstream === "trading-api" && savings.has(outcome)) {
      const cost = query.costOf?.(wallTime(context))
      if (cost !== undefined) saved({ upstream, outcome })(Operation.worstWeight({ cost }))
    }
    if (isTraced(context)) Spans.noteCache(context, outcome)
  }
}

/** Returns whether a stale response can be served while the rate limit is exhausted. */
const isUsable = (cached: CachedResponse, now: Utf8.MonotonicTime, maxAge: number): boolean =>
  mayServe(cached, now, "limited") && responseAge(cached, now) <= maxAge

const versioned = (key: string, version: string): string => version === "" ? key : `${key} @${version}`

/**
 * Returns the key of a cached response. Omits the version of the accounts if a change of the accounts does not
 * affect the response.
 */
const storeKey = (key: string, version: string, policy: Operation.CachePolicy | undefined): string =>
  policy?.isFinal === true ? key : versioned(key, version)

/** The stores and limits that the readers of a cache share. */
interface Shared {
  readonly versions: AccountVersions["Service"]
  readonly store: CacheStore
  readonly replicas: Replicas | undefined
  readonly flights: SingleFlightOptions
  readonly count: ReturnType<typeof makeCount>
  /** The scope of refreshes in the background. */
  readonly scope: Scope.Scope
}

/** How a read loads its response: from the replicas if its policy shares it, otherwise upstream. */
interface Loading<A, E> {
  readonly query: Query<A, E>
  /** The effect that reads upstream. */
  readonly send: Effect.Effect<A, E>
  readonly key: string
  readonly policy: Operation.CachePolicy | undefined
  /** A shared response is used if it is fresh and younger than this many milliseconds. */
  readonly maxAge: number
  /**
   * Set if refreshes are paced: a stale shared response is then also used if it is newer than this process's response.
   */
  readonly takesTurn: boolean
}

/** Makes a reader for one group of reads. */
const makeReader = <A, E>(
  { count, flights: options, replicas, scope, store, versions }: Shared,
  { codec, space }: Kind<A>
): Reader<A, E> => {
  const flights = makeSingleFlight<A, E>(options, codec.faultOf)
  const checks = makeSingleFlight<void, never>(options)
  const isFault = (answer: A) => codec.faultOf(answer) === "upstream"
  const refreshedAt = new WeakMap<CachedResponse, Utf8.MonotonicTime>()

  const inBackground = <B, E2>(effect: Effect.Effect<B, E2>) =>
    Effect.asVoid(Effect.forkIn(Effect.ignore(Upstream.unbatched(effect)), scope))

  const sharedBy = (policy: Operation.CachePolicy | undefined): Replicas | undefined =>
    policy !== undefined && policy.fresh >= SHORTEST_SHARED ? replicas : undefined

  const restored = (cached: CachedResponse, now: Utf8.MonotonicTime): A =>
    codec.restore(cached.content, Math.floor(responseAge(cached, now) / 1000))

  /**
   * Caches a response that was read at `readAt`. Returns the remaining work, if any, as an effect: sharing the
   * response with other replicas, or determining the response's cache policy.
   */
  const keep = (
    read: CacheableRead<A>,
    key: string,
    policy: Operation.CachePolicy | undefined,
    answer: A,
    readAt: Utf8.MonotonicTime,
    shared = sharedBy(policy)
  ): Effect.Effect<void> | undefined => {
    const check = policy === undefined && !checks.has(key) ? read.confirm?.(answer) : undefined
    if (policy === undefined && check === undefined) return undefined
    const content = codec.store(answer)
    if (content === undefined || read.isCacheable?.(answer) === false) return undefined
    if (policy !== undefined) {
      const cached = { content, readAt, policy }
      store.put(key, cached)
      // reads that found the old response stale no longer need a refresh
      read.pacer?.forget(key)
      return shared && inBackground(shared.put(key, cached))
    }
    if (check === undefined) return undefined
    const send = Effect.map(check, (found) => {
      if (found !== undefined) store.put(key, { content, readAt, policy: found })
    })
    return inBackground(checks.run({ key, send, takesFailure: true }))
  }

  /** Reads upstream, or uses a response that a different replica shares. */
  const load = Effect.fnUntraced(function*({ send, key, maxAge, policy, query, takesTurn }: Loading<A, E>) {
    const context: Reading = yield* Effect.context()
    const shared = takesTurn ? replicas : sharedBy(policy)
    const cached = shared !== undefined && (maxAge > 0 || takesTurn) ? yield* shared.get(key) : undefined
    if (cached !== undefined) {
      const now = currentTime(context)
      // if the clock of the replica that read the response is too far ahead, the response's age is unknown
      if (Utf8.millisBetween(now, cached.readAt) <= MAX_AHEAD) {
        const isNewer = cached.readAt > (store.get(key, now)?.readAt ?? Utf8.longAgo)
        if (isNewer) store.put(key, cached)
        const isYoung = isFresh(cached, now) && responseAge(cached, now) < maxAge
        if (isYoung || takesTurn && isNewer) {
          count(query, "replica_hit", context)
          return restored(cached, now)
        }
      }
    }
    const answer = yield* send
    const left = keep(query, key, policy, answer, currentTime(context), shared)
    if (left !== undefined) yield* left
    return answer
  })

  const refresh = (loading: Loading<A, E>): Effect.Effect<void> => {
    const { key, query } = loading
    const asked = Effect.contextWith((context: Reading) =>
      Effect.onExitPrimitive(flights.run({ key, send: load(loading), takesFailure: true }), (exit) => {
        const isRefreshed = exit._tag === "Success" && !isFault(exit.value)
        count(query, isRefreshed ? "refreshed" : "refresh_failed", context)
        return undefined
      })
    )
    return inBackground(
      Effect.contextWith((context: Reading) => isTraced(context) ? Spans.refresh(query, asked) : asked)
    )
  }

  /** Makes the refresh of a stale response, which the {@link Pacer} starts. */
  const makeRefresh = (
    query: Query<A, E>,
    key: string,
    policy: Operation.CachePolicy,
    context: Reading
  ): Refresh => {
    const caller = Context.get(context, CurrentCaller)
    const cost = query.costOf?.(wallTime(context))
    return {
      key,
      caller: caller.id,
      cost: cost === undefined ? 1 : worstCost(query.upstream, { cost }),
      start: Effect.suspend(() =>
        refresh({ query, send: asRefresh(query.send), key, policy, maxAge: policy.fresh, takesTurn: true })
      ).pipe(Effect.provideService(CurrentCaller, caller))
    }
  }

  /**
   * Returns `true` if a fresh response is old enough to be refreshed and no refresh of it started within
   * `REFRESH_PAUSE`.
   */
  const isRefreshDue = (cached: CachedResponse, now: Utf8.MonotonicTime): boolean => {
    const { refreshAfter } = cached.policy
    return refreshAfter !== undefined && responseAge(cached, now) >= refreshAfter &&
      now >= (refreshedAt.get(cached) ?? Utf8.longAgo)
  }

  /**
   * Returns the stale response to serve instead of a failure, if its policy permits that. If the rate limit caused the
   * failure, the response can be older, up to `maxAge` milliseconds.
   */
  const instead = (
    query: Query<A, E>,
    key: string,
    maxAge: number,
    isLimited: boolean,
    context: Reading
  ): A | undefined => {
    const now = currentTime(context)
    const cached = store.get(key, now)
    if (cached === undefined) return undefined
    const isError = mayServe(cached, now, "error")
    if (!isError && !(isLimited && isUsable(cached, now, maxAge))) return undefined
    count(query, isError ? "stale" : "limited", context)
    return restored(cached, now)
  }

  /** Reads upstream, together with equal reads; serves a stale response if that fails and the policy permits it. */
  const loadOrStale = Effect.fnUntraced(function*(
    loading: Loading<A, E>,
    flight: string,
    cached: CachedResponse | undefined,
    maxAge: number,
    context: Reading
  ) {
    const { key, query } = loading
    const takesFailure = cached !== undefined && mayServe(cached, currentTime(context), "error")
    const onCoalesced = () => count(query, "coalesced", context)
    const exit = yield* Effect.result(flights.run({ key: flight, send: load(loading), takesFailure, onCoalesced }))
    if (Result.isFailure(exit)) {
      return instead(query, key, maxAge, isRateLimited(exit.failure), context) ?? (yield* Effect.fail(exit.failure))
    }
    const answer = exit.success
    return isFault(answer)
      ? instead(query, key, maxAge, codec.isRateLimited?.(answer) === true, context) ?? answer
      : answer
  })

  /** Serves a read whose accounts have the given version. */
  const answerAt = (
    query: Query<A, E>,
    readKey: string,
    version: string,
    context: Reading
  ): Effect.Effect<A, E> => {
    const freshness = Context.get(context, Freshness)
    const now = currentTime(context)
    const policy = query.cachePolicy?.(wallTime(context), freshness)
    const key = storeKey(readKey, version, policy)
    // a read in flight may return the state from before the last change, so its key always contains the version
    const flightKey = versioned(readKey, version)
    const onCoalesced = () => count(query, "coalesced", context)
    // this caller must not share a call that first looked up the shared store
    if (freshness === "none") {
      const send = load({ query, send: query.send, key, policy, maxAge: 0, takesTurn: false })
      return flights.run({ key: `${flightKey} !`, send, onCoalesced })
    }
    if (policy === undefined && query.confirm === undefined) {
      return flights.run({ key: `${flightKey} -`, send: query.send, onCoalesced })
    }
    const maxAge = (Context.get(context, MaxAge) ?? Number.POSITIVE_INFINITY) * 1000
    const cached = store.get(key, now)
    if (cached !== undefined && isFresh(cached, now) && responseAge(cached, now) <= maxAge) {
      count(query, "hit", context)
      const found = restored(cached, now)
      if (policy === undefined || !isRefreshDue(cached, now)) return Effect.succeed(found)
      refreshedAt.set(cached, Utf8.addMillis(now, REFRESH_PAUSE))
      const loading = { query, send: query.send, key, policy, maxAge: policy.refreshAfter ?? 0, takesTurn: false }
      return Effect.as(refresh(loading), found)
    }
    const flight = Number.isFinite(maxAge) ? `${flightKey} ${maxAge}` : flightKey
    const { pacer } = query
    let takesTurn = false
    const isPaced = pacer !== undefined && policy !== undefined && cached !== undefined && isUsable(cached, now, maxAge)
    if (!isPaced) pacer?.forget(key)
    else if (!flights.has(flight)) {
      const turn = makeRefresh(query, key, policy, context)
      pacer.wait(turn, responseAge(cached, now), now)
      const next = pacer.next(now)
      if (next !== turn) {
        count(query, "limited", context)
        const found = restored(cached, now)
        return next === undefined ? Effect.succeed(found) : Effect.as(next.start, found)
      }
      // while other refreshes wait, a stale response of another replica is used if it is newer than the response of
      // this process
      takesTurn = !pacer.isIdle(now) && !Number.isFinite(maxAge)
    }
    const send = isPaced ? asRefresh(query.send) : query.send
    const loading = { query, send, key, policy, maxAge: Math.min(policy?.fresh ?? 0, maxAge), takesTurn }
    // no response is cached, so there is no stale response to return after a failure
    return cached === undefined && policy === undefined
      ? flights.run({ key: flight, send: load(loading), onCoalesced })
      : loadOrStale(loading, flight, cached, maxAge, context)
  }

  const answer = (query: Query<A, E>, context: Reading): Effect.Effect<A, E> => {
    const key = `${space} ${query.operation} ${query.key}`
    if (query.accounts === undefined) return answerAt(query, key, "", context)
    return Effect.flatMap(
      versions.version(query.accounts, currentTime(context)),
      (version) => version === undefined ? query.send : answerAt(query, key, version, context)
    )
  }

  return {
    put: (read, answer, { readAt, version }) =>
      Effect.contextWith((context: Reading) => {
        const now = currentTime(context)
        const policy = read.cachePolicy?.(wallTime(context), "declared")
        const key = storeKey(`${space} ${read.operation} ${read.key}`, version, policy)
        // a read may already have returned a newer response
        if ((store.get(key, now)?.readAt ?? Utf8.longAgo) > readAt) return Effect.void
        return keep(read, key, policy, answer, readAt) ?? Effect.void
      }),
    read: (query) =>
      Effect.contextWith((context: Reading) =>
        isTraced(context)
          ? Spans.callSpan(query, isFault, Effect.contextWith((inSpan: Reading) => answer(query, inSpan)))
          : answer(query, context)
      )
  }
}

/** Default maximum bytes of cached responses. */
export const mostCached = 64 * 1024 * 1024

const make = Effect.fnUntraced(function*(options: Options, replicas?: Replicas) {
  const versions = yield* AccountVersions
  const context = yield* Effect.context()
  const store = new CacheStore(options.maxBytes ?? mostCached, context)
  const shared: Shared = {
    versions,
    store,
    replicas,
    flights: options,
    count: makeCount(context),
    scope: yield* Effect.scope
  }
  return ResponseCache.of({ reader: (kind) => makeReader(shared, kind), accounts: versions })
})

/**
 * Provides a cache in this process, with the account versions of the context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoDeps = (options: Options = {}): Layer.Layer<ResponseCache, never, AccountVersions> =>
  Layer.effect(ResponseCache, make(options))

/**
 * Provides a cache in this process.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { ResponseCache } from "@trigate/upstream"
 *
 * export const cache = ResponseCache.layer({ maxBytes: 16 * 1024 * 1024 })
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<ResponseCache> =>
  Layer.provide(layerNoDeps(options), AccountVersions_.layerMemory())

/**
 * Provides a cache in this process that shares responses with the other replicas through a store.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerShared = (
  options: Options & Pick<RedisOptions, "deadline">,
  store: TextStore
): Layer.Layer<ResponseCache, never, AccountVersions> =>
  Layer.effect(
    ResponseCache,
    Effect.flatMap(makeReplicas(options, store), (replicas) => make(options, replicas))
  )

/**
 * Provides a cache in this process that shares responses and account versions with the other replicas through Redis.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerRedis = (
  options: Options & RedisOptions = {}
): Layer.Layer<ResponseCache, never, Redis.Redis> =>
  Layer.effect(
    ResponseCache,
    Effect.flatMap(makeRedis(options), (replicas) => make(options, replicas))
  ).pipe(
    Layer.provide(AccountVersions_.layerRedis(options.deadline === undefined ? {} : { deadline: options.deadline }))
  )
