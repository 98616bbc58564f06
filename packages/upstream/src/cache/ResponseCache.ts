/**
 * Caches and coalesces reads: serves a read from a cached response, from an equal call in flight, or from upstream.
 *
 * A response is looked up in this process, then in the store that replicas share. An aging response is refreshed in the
 * background before it expires (RFC 5861, stale-while-revalidate). A stale response is still served, with its age, if
 * the upstream fails (stale-if-error). A stale response is also served while reads use the rate limit faster than it
 * refills; refreshes then take turns ({@link Pacer}).
 */
import { CurrentCaller } from "@trigate/domain/Caller"
import type { CachePolicy, Cost } from "@trigate/domain/operations/Operation"
import { worstWeight } from "@trigate/domain/operations/Operation"
import type { CacheCodec } from "@trigate/domain/operations/Protocol"
import { monotonicMillis } from "@trigate/domain/Time"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redis from "effect/persistence/Redis"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Spans from "../attempts/Spans.ts"
import * as Batching from "../Batching.ts"
import { worstCost } from "../limits/FairQueue.ts"
import type { Pacer, Refresh } from "../limits/Pacer.ts"
import { IsRefresh } from "../limits/RateLimiter.ts"
import type { UpstreamLabel } from "../Upstream.ts"
import { metrics } from "../UpstreamMetrics.ts"
import { AccountVersions, layerMemory } from "./AccountVersions.ts"
import * as AccountVersionsRedis from "./AccountVersionsRedis.ts"
import type { CachedResponse } from "./CacheStore.ts"
import { CacheStore, isFresh, mayServe, responseAge } from "./CacheStore.ts"
import { Freshness, MaxAge } from "./Freshness.ts"
import * as ResponseCacheRedis from "./ResponseCacheRedis.ts"
import type { Replicas } from "./ResponseCacheRedis.ts"
import * as SingleFlight from "./SingleFlight.ts"

/** A read, and the rules for caching the read's response. */
export interface CacheableRead<A> {
  readonly operation: string
  readonly upstream: UpstreamLabel
  /** The canonical request: reads with equal keys have the same response. */
  readonly key: string
  /**
   * Returns how long the response to a read at the time `now` can be cached. If it returns `undefined`, the response is
   * not cached, and reads are only coalesced.
   */
  readonly cachePolicy?: (now: number, freshness: Freshness) => CachePolicy | undefined
  /** Returns whether a response can be cached. Default: every success. */
  readonly isCacheable?: (answer: A) => boolean
  /**
   * Returns the effect that determines, by further reads in the background, how long a response can be cached. Returns
   * `undefined` if nothing has to be determined.
   *
   * The response is cached only after the duration is determined, and only in this process.
   */
  readonly confirm?: ((answer: A) => Effect.Effect<CachePolicy | undefined> | undefined) | undefined
  /** Returns the rate-limit cost of reading the response upstream; `undefined` if the cost is not counted. */
  readonly costOf?: ((now: number) => Cost | undefined) | undefined
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
  readonly ask: Effect.Effect<A, E>
}

/**
 * The time at which a response was received, in milliseconds, and the version of the response's accounts at that time.
 */
export interface Receipt {
  readonly readAt: number
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
  readonly codec: CacheCodec<A>
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
export interface Options extends SingleFlight.Options {
  /**
   * Maximum number of bytes of keys and responses in this process. Default: 64 MiB. A response larger than an eighth of
   * this limit is not cached.
   */
  readonly maxBytes?: number
}

/** The context of a read: the clock, the caller, the requested freshness, the metrics registry. */
type Reading = Context.Context<never>

const currentTime = (context: Reading): number => Context.get(context, Clock.Clock).currentTimeMillisUnsafe()

const isRateLimited = (error: unknown): boolean =>
  Predicate.isTagged(error, "UpstreamRateLimited") || Predicate.isTagged(error, "QuotaExceeded")

const asRefresh = <A, E>(ask: Effect.Effect<A, E>): Effect.Effect<A, E> => Effect.provideService(ask, IsRefresh, true)

const count = <A>(query: CacheableRead<A>, outcome: CacheOutcome, context: Reading): void => {
  const { operation, upstream } = query
  metrics.cache.series({ upstream, operation, outcome }).updateUnsafe(1, context)
  if (upstream === "trading-api" && savings.has(outcome)) {
    const cost = query.costOf?.(currentTime(context))
    if (cost !== undefined) {
      metrics.upstreamWeightSaved.series({ upstream, outcome }).updateUnsafe(worstWeight({ cost }), context)
    }
  }
  if (Spans.isTraced(context)) Spans.noteCache(context, outcome)
}

/** Returns whether a stale response can be served while the rate limit is exhausted. */
const isUsable = (cached: CachedResponse, now: number, maxAge: number): boolean =>
  mayServe(cached, now, "limited") && responseAge(cached, now) <= maxAge

const versioned = (key: string, version: string): string => version === "" ? key : `${key} @${version}`

/**
 * Returns the key of a cached response. Omits the version of the accounts if a change of the accounts does not
 * affect the response.
 */
const storeKey = (key: string, version: string, policy: CachePolicy | undefined): string =>
  policy?.isFinal === true ? key : versioned(key, version)

/** The stores and limits that the readers of a cache share. */
interface Shared {
  readonly versions: AccountVersions["Service"]
  readonly store: CacheStore
  readonly replicas: Replicas | undefined
  readonly flights: SingleFlight.Options
  /** The scope of refreshes in the background. */
  readonly scope: Scope.Scope
}

/** How a read loads its response: from the replicas if its policy shares it, otherwise upstream. */
interface Loading<A, E> {
  readonly query: Query<A, E>
  /** The effect that reads upstream. */
  readonly ask: Effect.Effect<A, E>
  readonly key: string
  readonly policy: CachePolicy | undefined
  /** A shared response is used if it is fresh and younger than this many milliseconds. */
  readonly maxAge: number
  /**
   * Set if refreshes are paced: a stale shared response is then also used if it is newer than this process's response.
   */
  readonly takesTurn: boolean
}

/** Makes a reader for one group of reads. */
const makeReader = <A, E>(
  { flights: options, replicas, scope, store, versions }: Shared,
  { codec, space }: Kind<A>
): Reader<A, E> => {
  const flights = SingleFlight.make<A, E>(options, codec.faultOf)
  const checks = SingleFlight.make<void, never>(options)
  const isFault = (answer: A) => codec.faultOf(answer) === "upstream"
  const refreshedAt = new WeakMap<CachedResponse, number>()

  const inBackground = <B, E2>(effect: Effect.Effect<B, E2>) =>
    Effect.asVoid(Effect.forkIn(Effect.ignore(Batching.unbatched(effect)), scope))

  const sharedBy = (policy: CachePolicy | undefined): Replicas | undefined =>
    policy !== undefined && policy.fresh >= SHORTEST_SHARED ? replicas : undefined

  const restored = (cached: CachedResponse, now: number): A =>
    codec.restore(cached.content, Math.floor(responseAge(cached, now) / 1000))

  /**
   * Caches a response that was read at `readAt`. Returns the remaining work, if any, as an effect: sharing the
   * response with other replicas, or determining the response's cache policy.
   */
  const keep = (
    read: CacheableRead<A>,
    key: string,
    policy: CachePolicy | undefined,
    answer: A,
    readAt: number,
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
    const ask = Effect.map(check, (found) => {
      if (found !== undefined) store.put(key, { content, readAt, policy: found })
    })
    return inBackground(checks.run({ key, ask, takesFailure: true }))
  }

  /** Reads upstream, or uses a response that a different replica shares. */
  const load = Effect.fnUntraced(function*({ ask, key, maxAge, policy, query, takesTurn }: Loading<A, E>) {
    const context: Reading = yield* Effect.context<never>()
    const shared = takesTurn ? replicas : sharedBy(policy)
    const cached = shared !== undefined && (maxAge > 0 || takesTurn) ? yield* shared.get(key) : undefined
    if (cached !== undefined) {
      const now = currentTime(context)
      // if the clock of the replica that read the response is too far ahead, the response's age is unknown
      if (cached.readAt - now <= MAX_AHEAD) {
        const isNewer = cached.readAt > (store.get(key, now)?.readAt ?? 0)
        if (isNewer) store.put(key, cached)
        const isYoung = isFresh(cached, now) && responseAge(cached, now) < maxAge
        if (isYoung || takesTurn && isNewer) {
          count(query, "replica_hit", context)
          return restored(cached, now)
        }
      }
    }
    const answer = yield* ask
    const left = keep(query, key, policy, answer, currentTime(context), shared)
    if (left !== undefined) yield* left
    return answer
  })

  const refresh = (loading: Loading<A, E>): Effect.Effect<void> => {
    const { key, query } = loading
    const asked = Effect.contextWith((context: Reading) =>
      Effect.onExitPrimitive(flights.run({ key, ask: load(loading), takesFailure: true }), (exit) => {
        const isRefreshed = exit._tag === "Success" && !isFault(exit.value)
        count(query, isRefreshed ? "refreshed" : "refresh_failed", context)
        return undefined
      })
    )
    return inBackground(
      Effect.contextWith((context: Reading) => Spans.isTraced(context) ? Spans.refresh(query, asked) : asked)
    )
  }

  /** Makes the refresh of a stale response, which the {@link Pacer} starts. */
  const makeRefresh = (
    query: Query<A, E>,
    key: string,
    policy: CachePolicy,
    now: number,
    context: Reading
  ): Refresh => {
    const caller = Context.get(context, CurrentCaller)
    const cost = query.costOf?.(now)
    return {
      key,
      caller: caller.id,
      cost: cost === undefined ? 1 : worstCost(query.upstream, { cost }),
      start: Effect.suspend(() =>
        refresh({ query, ask: asRefresh(query.ask), key, policy, maxAge: policy.fresh, takesTurn: true })
      ).pipe(Effect.provideService(CurrentCaller, caller))
    }
  }

  /**
   * Returns `true` if a fresh response is old enough to be refreshed and no refresh of it started within
   * `REFRESH_PAUSE`.
   */
  const isRefreshDue = (cached: CachedResponse, now: number): boolean => {
    const { refreshAfter } = cached.policy
    return refreshAfter !== undefined && responseAge(cached, now) >= refreshAfter &&
      now >= (refreshedAt.get(cached) ?? 0)
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
    const exit = yield* Effect.result(flights.run({ key: flight, ask: load(loading), takesFailure, onCoalesced }))
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
    const policy = query.cachePolicy?.(now, freshness)
    const key = storeKey(readKey, version, policy)
    // a read in flight may return the state from before the last change, so its key always contains the version
    const flightKey = versioned(readKey, version)
    const onCoalesced = () => count(query, "coalesced", context)
    // this caller must not share a call that first looked up the shared store
    if (freshness === "none") {
      const ask = load({ query, ask: query.ask, key, policy, maxAge: 0, takesTurn: false })
      return flights.run({ key: `${flightKey} !`, ask, onCoalesced })
    }
    if (policy === undefined && query.confirm === undefined) {
      return flights.run({ key: `${flightKey} -`, ask: query.ask, onCoalesced })
    }
    const maxAge = (Context.get(context, MaxAge) ?? Number.POSITIVE_INFINITY) * 1000
    const cached = store.get(key, now)
    if (cached !== undefined && isFresh(cached, now) && responseAge(cached, now) <= maxAge) {
      count(query, "hit", context)
      const found = restored(cached, now)
      if (policy === undefined || !isRefreshDue(cached, now)) return Effect.succeed(found)
      refreshedAt.set(cached, now + REFRESH_PAUSE)
      const loading = { query, ask: query.ask, key, policy, maxAge: policy.refreshAfter ?? 0, takesTurn: false }
      return Effect.as(refresh(loading), found)
    }
    const flight = Number.isFinite(maxAge) ? `${flightKey} ${maxAge}` : flightKey
    const { pacer } = query
    let takesTurn = false
    const isPaced = pacer !== undefined && policy !== undefined && cached !== undefined && isUsable(cached, now, maxAge)
    if (!isPaced) pacer?.forget(key)
    else if (!flights.has(flight)) {
      const time = monotonicMillis(Context.get(context, Clock.Clock))
      const turn = makeRefresh(query, key, policy, now, context)
      pacer.wait(turn, responseAge(cached, now), time)
      const next = pacer.next(time)
      if (next !== turn) {
        count(query, "limited", context)
        const found = restored(cached, now)
        return next === undefined ? Effect.succeed(found) : Effect.as(next.start, found)
      }
      // while other refreshes wait, a stale response of another replica is used if it is newer than the response of
      // this process
      takesTurn = !pacer.isIdle(time) && !Number.isFinite(maxAge)
    }
    const ask = isPaced ? asRefresh(query.ask) : query.ask
    const loading = { query, ask, key, policy, maxAge: Math.min(policy?.fresh ?? 0, maxAge), takesTurn }
    // no response is cached, so there is no stale response to return after a failure
    return cached === undefined && policy === undefined
      ? flights.run({ key: flight, ask: load(loading), onCoalesced })
      : loadOrStale(loading, flight, cached, maxAge, context)
  }

  const answer = (query: Query<A, E>, context: Reading): Effect.Effect<A, E> => {
    const key = `${space} ${query.operation} ${query.key}`
    if (query.accounts === undefined) return answerAt(query, key, "", context)
    return Effect.flatMap(
      versions.version(query.accounts, currentTime(context)),
      (version) => version === undefined ? query.ask : answerAt(query, key, version, context)
    )
  }

  return {
    put: (read, answer, { readAt, version }) =>
      Effect.contextWith((context: Reading) => {
        const now = currentTime(context)
        const policy = read.cachePolicy?.(now, "declared")
        const key = storeKey(`${space} ${read.operation} ${read.key}`, version, policy)
        // a read may already have returned a newer response
        if ((store.get(key, now)?.readAt ?? 0) > readAt) return Effect.void
        return keep(read, key, policy, answer, readAt) ?? Effect.void
      }),
    read: (query) =>
      Effect.contextWith((context: Reading) =>
        Spans.isTraced(context)
          ? Spans.call(query, isFault, Effect.contextWith((inSpan: Reading) => answer(query, inSpan)))
          : answer(query, context)
      )
  }
}

const make = Effect.fnUntraced(function*(options: Options, replicas?: Replicas) {
  const versions = yield* AccountVersions
  const store = new CacheStore(options.maxBytes ?? 64 * 1024 * 1024, yield* Effect.context())
  const shared: Shared = { versions, store, replicas, flights: options, scope: yield* Effect.scope }
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
  Layer.provide(layerNoDeps(options), layerMemory())

/**
 * Provides a cache in this process that shares responses and account versions with the other replicas through Redis.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerRedis = (
  options: Options & ResponseCacheRedis.Options = {}
): Layer.Layer<ResponseCache, never, Redis.Redis> =>
  Layer.effect(
    ResponseCache,
    Effect.flatMap(ResponseCacheRedis.make(options), (replicas) => make(options, replicas))
  ).pipe(
    Layer.provide(AccountVersionsRedis.layer(options.deadline === undefined ? {} : { deadline: options.deadline }))
  )
