/**
 * Serves one group of reads without an upstream request: from a cached response, or from an equal call in flight.
 *
 * A response is looked up in this process, then in the store that replicas share. An aging response is refreshed in the
 * background before it expires (RFC 5861, stale-while-revalidate). A stale response is still served, with its age, if
 * the upstream fails (stale-if-error). A stale response is also served while reads use the rate limit faster than it
 * refills; refreshes then take turns ({@link Pacer}).
 */
import type { Caller } from "@trigate/domain/Caller"
import { CurrentCaller } from "@trigate/domain/Caller"
import * as Continuation from "@trigate/domain/operations/Continuation"
import type { CachePolicy } from "@trigate/domain/operations/Operation"
import { worstWeight } from "@trigate/domain/operations/Operation"
import type { CacheCodec } from "@trigate/domain/operations/Protocol"
import { monotonicMillis } from "@trigate/domain/Time"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import * as Spans from "../attempts/Spans.ts"
import * as Batching from "../Batching.ts"
import { worstCost } from "../limits/FairQueue.ts"
import type { Refresh } from "../limits/Pacer.ts"
import { IsRefresh } from "../limits/RateLimiter.ts"
import { metrics } from "../UpstreamMetrics.ts"
import type { AccountVersions, Version } from "./AccountVersions.ts"
import type { CacheableRead, Query, Receipt } from "./CacheableRead.ts"
import type { CachedResponse, CacheStore } from "./CacheStore.ts"
import { isFresh, mayServe, responseAge } from "./CacheStore.ts"
import { Freshness, MaxAge } from "./Freshness.ts"
import type { Replicas } from "./ResponseCacheRedis.ts"
import * as SingleFlight from "./SingleFlight.ts"

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

/** The context of a read: the clock, the caller, the requested freshness, the metrics registry. */
type Reading = Context.Context<never>

const currentTime = (context: Reading): number => Context.get(context, Clock.Clock).currentTimeMillisUnsafe()

const isRateLimited = (error: unknown): boolean =>
  Predicate.isTagged(error, "UpstreamRateLimited") || Predicate.isTagged(error, "QuotaExceeded")

const asRefresh = <A, E>(ask: Effect.Effect<A, E>): Effect.Effect<A, E> => Continuation.provide(ask, IsRefresh, true)

const count = (
  { costOf, operation, upstream }: Pick<CacheableRead<never>, "costOf" | "operation" | "upstream">,
  outcome: CacheOutcome,
  context: Reading
) => {
  metrics.cache.series({ upstream, operation, outcome }).updateUnsafe(1, context)
  if (costOf !== undefined && upstream === "trading-api" && savings.has(outcome)) {
    const weight = worstWeight({ cost: costOf(currentTime(context)) })
    metrics.upstreamWeightSaved.series({ upstream, outcome }).updateUnsafe(weight, context)
  }
  if (Continuation.isTraced(context)) Spans.noteCache(context, outcome)
}

/** The stores and limits that the readers of a cache share. */
export interface Shared {
  readonly versions: AccountVersions["Service"]
  readonly store: CacheStore
  readonly replicas: Replicas | undefined
  readonly flights: SingleFlight.Options
  /** The scope of refreshes in the background. */
  readonly scope: Scope.Scope
}

/** Makes the function that makes a reader for one group of reads. */
export const make = ({ flights: options, replicas, scope, store, versions }: Shared) => {
  const inBackground = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.asVoid(Effect.forkIn(Effect.ignore(Batching.unbatched(effect)), scope))

  const sharedBy = (policy: CachePolicy | undefined): Replicas | undefined =>
    policy !== undefined && policy.fresh >= SHORTEST_SHARED ? replicas : undefined

  const reader = <A, E>({ codec, space }: Kind<A>): Reader<A, E> => {
    const flights = SingleFlight.make<A, E>(options, codec.faultOf)
    const isFault = (answer: A) => codec.faultOf(answer) === "upstream"
    const checks = SingleFlight.make<void, never>(options)
    const refreshedAt = new WeakMap<CachedResponse, number>()

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

    const stored = (
      read: CacheableRead<A>,
      key: string,
      policy: CachePolicy | undefined,
      answer: A,
      shared?: Replicas
    ): Effect.Effect<A> =>
      Continuation.withContext((context: Reading) => {
        const left = keep(read, key, policy, answer, currentTime(context), shared)
        return left === undefined ? Exit.succeed(answer) : Effect.as(left, answer)
      })

    /**
     * Reads upstream, or uses a response that a different replica shares. A shared response is used if it is fresh and
     * younger than `maxAge`. If `takesTurn` is set because refreshes are paced, a stale shared response is also used if
     * it is newer than this process's response.
     */
    const load = (
      query: Query<A, E>,
      key: string,
      policy: CachePolicy | undefined,
      maxAge: number,
      takesTurn = false
    ): Effect.Effect<A, E> => {
      const shared = takesTurn ? replicas : sharedBy(policy)
      const ask = Continuation.flatMap(query.ask, (answer) => stored(query, key, policy, answer, shared))
      if (shared === undefined || maxAge <= 0 && !takesTurn) return ask
      return Effect.flatMap(
        shared.get(key),
        (cached) =>
          cached === undefined ? ask : Continuation.withContext((context: Reading) => {
            const now = currentTime(context)
            // ignored: the clock of the replica that read the response is too far ahead, so the response's age is
            // unknown
            if (cached.readAt - now > MAX_AHEAD) return ask
            const isNewer = cached.readAt > (store.get(key, now)?.readAt ?? 0)
            if (isNewer) store.put(key, cached)
            const isYoung = isFresh(cached, now) && responseAge(cached, now) < maxAge
            if (!isYoung && !(takesTurn && isNewer)) return ask
            count(query, "replica_hit", context)
            return Exit.succeed(restored(cached, now))
          })
      )
    }

    const refresh = (
      query: Query<A, E>,
      key: string,
      policy: CachePolicy,
      maxAge: number,
      takesTurn = false
    ): Effect.Effect<void> => {
      const asked = Continuation.withContext((context: Reading) => {
        const ask = load(query, key, policy, maxAge, takesTurn)
        return Continuation.onExit(flights.run({ key, ask, takesFailure: true }), (exit) => {
          const isRefreshed = exit._tag === "Success" && !isFault(exit.value)
          count(query, isRefreshed ? "refreshed" : "refresh_failed", context)
        })
      })
      return inBackground(
        Continuation.withContext((context: Reading) =>
          Continuation.isTraced(context) ? Spans.refresh(query, asked) : asked
        )
      )
    }

    /**
     * Returns the response to a read. If the read fails, returns a stale response if its policy permits that. If the
     * rate limit caused the failure, the stale response can be older, up to `maxAge` milliseconds.
     */
    const orStale = (
      query: CacheableRead<A>,
      key: string,
      answered: Effect.Effect<A, E>,
      maxAge = Number.POSITIVE_INFINITY
    ): Effect.Effect<A, E> => {
      const instead = (otherwise: Effect.Effect<A, E>, isLimited: boolean) =>
        Continuation.withContext((context: Reading) => {
          const now = currentTime(context)
          const cached = store.get(key, now)
          const isError = cached !== undefined && mayServe(cached, now, "error")
          if (cached === undefined || !isError && !(isLimited && isUsable(cached, now, maxAge))) return otherwise
          count(query, isError ? "stale" : "limited", context)
          return Exit.succeed(restored(cached, now))
        })
      return Continuation.match(answered, {
        onFailure: (error) => instead(Effect.fail(error), isRateLimited(error)),
        onSuccess: (answer) =>
          isFault(answer)
            ? instead(Exit.succeed(answer), codec.isRateLimited?.(answer) === true)
            : Exit.succeed(answer)
      })
    }

    /** Returns whether a stale response can be served while the rate limit is exhausted. */
    const isUsable = (cached: CachedResponse, now: number, maxAge: number): boolean =>
      mayServe(cached, now, "limited") && responseAge(cached, now) <= maxAge

    /** Makes the refresh of a stale response, which the {@link Pacer} starts. */
    const makeRefresh = (
      query: Query<A, E>,
      key: string,
      policy: CachePolicy,
      now: number,
      caller: Caller
    ): Refresh => {
      const { costOf, upstream } = query
      return {
        key,
        caller: caller.id,
        cost: costOf === undefined ? 1 : worstCost(upstream, { cost: costOf(now) }),
        start: Effect.suspend(() => refresh({ ...query, ask: asRefresh(query.ask) }, key, policy, policy.fresh, true))
          .pipe(
            Effect.provideService(CurrentCaller, caller)
          )
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

    const cacheKey = ({ key, operation }: CacheableRead<A>): string => `${space} ${operation} ${key}`

    const versioned = (key: string, version: string): string => version === "" ? key : `${key} @${version}`

    /**
     * Returns the key of a cached response. Omits the version of the accounts if a change of the accounts does not
     * affect the response.
     */
    const storeKey = (key: string, version: string, policy: CachePolicy | undefined): string =>
      policy?.isFinal === true ? key : versioned(key, version)

    const answer = (query: Query<A, E>, context: Reading): Effect.Effect<A, E> => {
      const key = cacheKey(query)
      if (query.accounts === undefined) return answerAt(key, "", query, context)
      const atVersion = (version: Version) => version === undefined ? query.ask : answerAt(key, version, query, context)
      return Continuation.flatMap(versions.version(query.accounts, currentTime(context)), atVersion)
    }

    const answerAt = (
      readKey: string,
      version: string,
      query: Query<A, E>,
      context: Reading
    ): Effect.Effect<A, E> => {
      const onCoalesced = () => count(query, "coalesced", context)
      const freshness = Context.get(context, Freshness)
      const now = currentTime(context)
      const policy = query.cachePolicy?.(now, freshness)
      const key = storeKey(readKey, version, policy)
      // a read in flight may return the state from before the last change, so its key always contains the version
      const flightKey = versioned(readKey, version)
      // this caller must not share a call that first looked up the shared store
      if (freshness === "none") {
        return flights.run({ key: `${flightKey} !`, ask: load(query, key, policy, 0), onCoalesced })
      }
      if (policy === undefined && query.confirm === undefined) {
        return flights.run({ key: `${flightKey} -`, ask: query.ask, onCoalesced })
      }
      const maxAge = (Context.get(context, MaxAge) ?? Number.POSITIVE_INFINITY) * 1000
      const cached = store.get(key, now)
      if (cached !== undefined && isFresh(cached, now) && responseAge(cached, now) <= maxAge) {
        count(query, "hit", context)
        const found = restored(cached, now)
        if (policy === undefined || !isRefreshDue(cached, now)) return Exit.succeed(found)
        refreshedAt.set(cached, now + REFRESH_PAUSE)
        return Effect.as(refresh(query, key, policy, policy.refreshAfter ?? 0), found)
      }
      const flight = Number.isFinite(maxAge) ? `${flightKey} ${maxAge}` : flightKey
      const { pacer } = query
      let takesTurn = false
      const isPaced = pacer !== undefined && policy !== undefined && cached !== undefined &&
        isUsable(cached, now, maxAge)
      if (!isPaced) pacer?.forget(key)
      else if (!flights.has(flight)) {
        const time = monotonicMillis(Context.get(context, Clock.Clock))
        const turn = makeRefresh(query, key, policy, now, Context.get(context, CurrentCaller))
        pacer.wait(turn, responseAge(cached, now), time)
        const next = pacer.next(time)
        if (next !== turn) {
          count(query, "limited", context)
          const found = restored(cached, now)
          return next === undefined ? Exit.succeed(found) : Effect.as(next.start, found)
        }
        // while other refreshes wait, a stale response of another replica is used if it is newer than the response of
        // this process
        takesTurn = !pacer.isIdle(time) && !Number.isFinite(maxAge)
      }
      const asking = isPaced ? { ...query, ask: asRefresh(query.ask) } : query
      const ask = load(asking, key, policy, Math.min(policy?.fresh ?? 0, maxAge), takesTurn)
      // no response is cached, so there is no stale response to return after a failure
      if (cached === undefined && policy === undefined) return flights.run({ key: flight, ask, onCoalesced })
      const takesFailure = cached !== undefined && mayServe(cached, now, "error")
      return orStale(query, key, flights.run({ key: flight, ask, takesFailure, onCoalesced }), maxAge)
    }

    return {
      put: (read, answer, { readAt, version }) =>
        Continuation.withContext((context: Reading) => {
          const now = currentTime(context)
          const policy = read.cachePolicy?.(now, "declared")
          const key = storeKey(cacheKey(read), version, policy)
          // a read may already have returned a newer response
          if ((store.get(key, now)?.readAt ?? 0) > readAt) return Effect.void
          return keep(read, key, policy, answer, readAt) ?? Effect.void
        }),
      read: (query) =>
        Continuation.withContext((context: Reading) =>
          Continuation.isTraced(context)
            ? Spans.call(query, isFault, Continuation.withContext((inSpan: Reading) => answer(query, inSpan)))
            : answer(query, context)
        )
    }
  }

  return reader
}
