/**
 * Answers reads without asking the upstream again: from a cached response, else from a call that is already under way.
 *
 * A cached response is looked up in this process, then in the store that replicas share. One that grows old is refreshed in
 * the background before it expires (RFC 5861, stale-while-revalidate); one that has expired still answers, with its age,
 * when the upstream fails (stale-if-error).
 */
import { metrics } from "@trigate/domain/Metrics"
import type { CachePolicy, Cost } from "@trigate/domain/Operation"
import { worstWeightOf } from "@trigate/domain/Operation"
import type { CacheCodec } from "@trigate/domain/protocol/Protocol"
import { isAnswer } from "@trigate/domain/Start"
import type { Start } from "@trigate/domain/Start"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { constVoid } from "effect/Function"
import * as Layer from "effect/Layer"
import type * as Metric from "effect/Metric"
import type * as Redis from "effect/persistence/Redis"
import * as Batching from "./Batching.ts"
import type { CachedResponse } from "./CacheStore.ts"
import { ageOf, CacheStore, isFresh } from "./CacheStore.ts"
import * as ResponseCacheRedis from "./ResponseCacheRedis.ts"
import type { Replicas } from "./ResponseCacheRedis.ts"
import * as SingleFlight from "./SingleFlight.ts"
import * as Spans from "./Spans.ts"
import type { UpstreamLabel } from "./Upstream.ts"

/**
 * How old an answer the caller of the current request takes.
 *
 * - `declared`: as old as the operation's cache policy allows.
 * - `block`: one block old, also where the operation caches nothing unless asked.
 * - `none`: read upstream after the request came; the answer is cached for others.
 */
export type Freshness = "declared" | "block" | "none"

/** The freshness that the current request asks for. */
export const Freshness = Context.Reference<Freshness>("@trigate/upstream/ResponseCache/Freshness", {
  defaultValue: () => "declared"
})

/** Seconds that a cached response may be old for the caller of the current request; undefined: as the policy says. */
export const MaxAge = Context.Reference<number | undefined>("@trigate/upstream/ResponseCache/MaxAge", {
  defaultValue: () => undefined
})

/** Whether the caller of a fiber takes answers as old as their cache policy says. */
export const isDeclared = (fiber: Fiber.Fiber<unknown, unknown>): boolean =>
  fiber.getRef(Freshness) === "declared" && fiber.getRef(MaxAge) === undefined

/** What is read, and how its answer may be cached. */
export interface Read<A> {
  readonly operation: string
  readonly upstream: UpstreamLabel
  /** The canonical request: reads with equal keys get the same answer. */
  readonly key: string
  /** How long the answer to a read at `now` may be cached; reads are only coalesced when it is undefined. */
  readonly cachePolicy?: (now: number, freshness: Freshness) => CachePolicy | undefined
  /** Whether an answer may be cached; every success may when not given. */
  readonly isCacheable?: (answer: A) => boolean
  /**
   * Finds out by further reads, in the background, how long an answer may be cached; undefined where that is no question.
   *
   * Until then the answer is not cached, and afterwards it is cached in this process only.
   */
  readonly confirm?: (answer: A) => Effect.Effect<CachePolicy | undefined> | undefined
  /** What asking would cost, where that is counted. */
  readonly costOf?: (now: number) => Cost
}

/** One read, and how it is asked upstream. */
export interface Query<A, E> extends Read<A> {
  readonly ask: Effect.Effect<A, E>
}

/** How one kind of answers is cached. */
export interface Kind<A> {
  /**
   * Which chain at which addresses: readers of one space share answers, also with other replicas.
   *
   * It is a part of stored keys and holds no endpoint key.
   */
  readonly space: string
  readonly codec: CacheCodec<A>
}

/** Reads one kind of answers. */
export interface Reader<A, E> {
  readonly read: (query: Query<A, E>) => Effect.Effect<A, E>
  /** Starts a read of a caller who takes what the policy says; `ask` starts the call upstream. */
  readonly start: (read: Read<A>, ask: Start<A, E>) => Start<A, E>
}

/** Caches and coalesces reads. */
export class ResponseCache extends Context.Service<ResponseCache, {
  /** A reader of one kind of answers. Build it once: only calls of one reader are coalesced. */
  readonly reader: <A, E>(kind: Kind<A>) => Reader<A, E>
}>()("@trigate/upstream/ResponseCache") {}

/** Options of the cache. */
export interface Options extends SingleFlight.Options {
  /** Bytes of keys and responses in this process; 64 MiB when not given. A response of more than an eighth is not cached. */
  readonly maxBytes?: number
}

/** How a read was answered without an attempt of its own, or how a refresh in the background ended. */
type Outcome = "coalesced" | "hit" | "replica_hit" | "stale" | "refreshed" | "refresh_failed"

type Counters = { readonly [O in Outcome]: Metric.Counter<number> }

const countersFor = (upstream: UpstreamLabel, operation: string): Counters => {
  const counter = (outcome: Outcome) => metrics.cache.series({ upstream, operation, outcome })
  return {
    coalesced: counter("coalesced"),
    hit: counter("hit"),
    replica_hit: counter("replica_hit"),
    stale: counter("stale"),
    refreshed: counter("refreshed"),
    refresh_failed: counter("refresh_failed")
  }
}

const saved = (outcome: Outcome) => metrics.upstreamWeightSaved.series({ upstream: "trading-api", outcome })

/** The weight that each outcome saves for which nothing was sent. */
const savings: ReadonlyMap<Outcome, Metric.Counter<number>> = new Map([
  ["coalesced", saved("coalesced")],
  ["hit", saved("hit")],
  ["replica_hit", saved("replica_hit")]
])

/** A response that is being refreshed is not refreshed again for so long, whether that succeeds or not. */
const REFRESH_PAUSE = 5000

/** A response that is fresh for a shorter time is not worth sharing with other replicas. */
const SHORTEST_SHARED = 1000

/** How far the clock of another replica may be ahead. */
const MOST_AHEAD = 1000

const currentTime = (fiber: Fiber.Fiber<unknown, unknown>): number =>
  fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()

const make = Effect.fnUntraced(function*(options: Options, replicas?: Replicas) {
  const store = new CacheStore(options.maxBytes ?? 64 * 1024 * 1024, yield* Effect.context())
  const scope = yield* Effect.scope
  const counters = new Map<string, Counters>()

  const tally = (
    { costOf, operation, upstream }: Pick<Read<never>, "costOf" | "operation" | "upstream">,
    outcome: Outcome,
    context: Context.Context<never>
  ) => {
    const key = `${upstream} ${operation}`
    const known = counters.get(key) ?? countersFor(upstream, operation)
    counters.set(key, known)
    known[outcome].updateUnsafe(1, context)
    if (costOf !== undefined && upstream === "trading-api") {
      const now = Context.get(context, Clock.Clock).currentTimeMillisUnsafe()
      savings.get(outcome)?.updateUnsafe(worstWeightOf({ cost: costOf(now) }), context)
    }
  }

  const count = (
    read: Pick<Read<never>, "costOf" | "operation" | "upstream">,
    outcome: Outcome,
    fiber: Fiber.Fiber<unknown, unknown>
  ) => {
    tally(read, outcome, fiber.context)
    if (fiber.cache.tracer !== undefined) Spans.noteCache(fiber, outcome)
  }

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
      codec.restore(cached.content, Math.floor(ageOf(cached, now) / 1000))

    /** Stores an answer that was read at `readAt` under its policy; answers what is left to do: share it, or find its policy. */
    const keep = (
      read: Read<A>,
      key: string,
      policy: CachePolicy | undefined,
      answer: A,
      readAt: number
    ): Effect.Effect<void> | undefined => {
      const check = policy === undefined && !checks.has(key) ? read.confirm?.(answer) : undefined
      if (policy === undefined && check === undefined) return undefined
      const content = codec.store(answer)
      if (content === undefined || read.isCacheable?.(answer) === false) return undefined
      if (policy !== undefined) {
        const cached = { content, readAt, policy }
        store.put(key, cached)
        const shared = sharedBy(policy)
        return shared && inBackground(shared.put(key, cached))
      }
      if (check === undefined) return undefined
      const ask = Effect.map(check, (found) => {
        if (found !== undefined) store.put(key, { content, readAt, policy: found })
      })
      return inBackground(checks.run({ key, ask, takesFailure: true }))
    }

    const stored = (read: Read<A>, key: string, policy: CachePolicy | undefined, answer: A): Effect.Effect<A> =>
      Effect.withFiber((fiber) => {
        const left = keep(read, key, policy, answer, currentTime(fiber))
        return left === undefined ? Effect.succeed(answer) : Effect.as(left, answer)
      })

    /** Asks, unless another replica has an answer that is younger than `maxAge`. */
    const load = (
      query: Query<A, E>,
      key: string,
      policy: CachePolicy | undefined,
      maxAge: number
    ): Effect.Effect<A, E> => {
      const ask = Effect.flatMap(query.ask, (answer) => stored(query, key, policy, answer))
      const shared = sharedBy(policy)
      if (shared === undefined || maxAge <= 0) return ask
      return Effect.flatMap(shared.get(key), (cached) =>
        cached === undefined ? ask : Effect.withFiber((fiber) => {
          const now = currentTime(fiber)
          // a response from the future would stay fresh until then, and its age is not known
          if (cached.readAt - now > MOST_AHEAD) return ask
          if (cached.readAt > (store.get(key, now)?.readAt ?? 0)) store.put(key, cached)
          if (!isFresh(cached, now) || ageOf(cached, now) >= maxAge) return ask
          count(query, "replica_hit", fiber)
          return Effect.succeed(restored(cached, now))
        }))
    }

    const refresh = (query: Query<A, E>, key: string, policy: CachePolicy): Effect.Effect<void> => {
      const asked = Effect.withFiber((fiber) => {
        const ask = load(query, key, policy, policy.refreshAfter ?? 0)
        return Effect.onExitPrimitive(flights.run({ key, ask, takesFailure: true }), (exit) => {
          const isRefreshed = exit._tag === "Success" && !isFault(exit.value)
          count(query, isRefreshed ? "refreshed" : "refresh_failed", fiber)
          return undefined
        })
      })
      return inBackground(
        Effect.withFiber((fiber) => fiber.cache.tracer === undefined ? asked : Spans.refresh(query, asked))
      )
    }

    const orStale = (query: Read<A>, key: string, answered: Effect.Effect<A, E>): Effect.Effect<A, E> => {
      const instead = (otherwise: Effect.Effect<A, E>) =>
        Effect.withFiber((fiber) => {
          const now = currentTime(fiber)
          const cached = store.get(key, now)
          if (cached === undefined) return otherwise
          count(query, "stale", fiber)
          return Effect.succeed(restored(cached, now))
        })
      return Effect.matchEffect(answered, {
        onFailure: (error) => instead(Effect.fail(error)),
        onSuccess: (answer) => isFault(answer) ? instead(Effect.succeed(answer)) : Effect.succeed(answer)
      })
    }

    /** Whether a fresh response is old enough to be refreshed, and nobody has started to. */
    const isRefreshDue = (cached: CachedResponse, now: number): boolean => {
      const { refreshAfter } = cached.policy
      return refreshAfter !== undefined && ageOf(cached, now) >= refreshAfter && now >= (refreshedAt.get(cached) ?? 0)
    }

    const keyOf = ({ key, operation }: Read<A>): string => `${space} ${operation} ${key}`

    const answer = (query: Query<A, E>, fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<A, E> => {
      const onCoalesced = () => count(query, "coalesced", fiber)
      const key = keyOf(query)
      const freshness = fiber.getRef(Freshness)
      const now = currentTime(fiber)
      const policy = query.cachePolicy?.(now, freshness)
      // such a caller must not get an answer of a call that looked at the shared store first
      if (freshness === "none") return flights.run({ key: `${key} !`, ask: load(query, key, policy, 0), onCoalesced })
      if (policy === undefined && query.confirm === undefined) {
        return flights.run({ key: `${key} -`, ask: query.ask, onCoalesced })
      }
      const maxAge = (fiber.getRef(MaxAge) ?? Number.POSITIVE_INFINITY) * 1000
      const cached = store.get(key, now)
      if (cached !== undefined && isFresh(cached, now) && ageOf(cached, now) <= maxAge) {
        count(query, "hit", fiber)
        const found = restored(cached, now)
        if (policy === undefined || !isRefreshDue(cached, now)) return Effect.succeed(found)
        refreshedAt.set(cached, now + REFRESH_PAUSE)
        return Effect.as(refresh(query, key, policy), found)
      }
      const ask = load(query, key, policy, Math.min(policy?.fresh ?? 0, maxAge))
      // a response of another replica may be too old for the next caller
      const flight = Number.isFinite(maxAge) ? `${key} ${maxAge}` : key
      // no stale response is there, nor will there be
      if (cached === undefined && policy === undefined) return flights.run({ key: flight, ask, onCoalesced })
      return orStale(
        query,
        key,
        flights.run({ key: flight, ask, takesFailure: cached !== undefined, onCoalesced })
      )
    }

    const start: Reader<A, E>["start"] = (read, ask) => (scene, done) => {
      const { clock, context } = scene
      const key = keyOf(read)
      const now = clock.currentTimeMillisUnsafe()
      const policy = read.cachePolicy?.(now, "declared")
      const isCached = policy !== undefined || read.confirm !== undefined
      const cached = isCached ? store.get(key, now) : undefined
      if (cached !== undefined) {
        if (!isFresh(cached, now) || policy !== undefined && isRefreshDue(cached, now)) return undefined
        tally(read, "hit", context)
        done(() => Exit.succeed(restored(cached, now)))
        return constVoid
      }
      if (sharedBy(policy) !== undefined) return undefined
      const end = flights.tryLead(isCached ? key : `${key} -`)
      if (end === undefined) return undefined
      const afterwards = (asked: Effect.Effect<A, E>): Effect.Effect<A, E> => {
        // instead of a fault, an answer may be there that was stored meanwhile
        const isPlain = isAnswer(asked) && (policy === undefined || !isFault(asked.value))
        const left = isPlain && isCached
          ? keep(read, key, policy, asked.value, clock.currentTimeMillisUnsafe())
          : undefined
        if (isPlain && left === undefined) {
          end(asked)
          return asked
        }
        const kept = isPlain
          ? Effect.andThen(left ?? Effect.void, asked)
          : isCached
          ? Effect.flatMap(asked, (answer) => stored(read, key, policy, answer))
          : asked
        const ended = Effect.onExitPrimitive(kept, (exit) => {
          end(exit)
          return undefined
        })
        return policy === undefined ? ended : orStale(read, key, ended)
      }
      const stop = ask(scene, (rest) => done(() => afterwards(rest())))
      if (stop === undefined) end(Exit.interrupt())
      return stop && (() => {
        stop()
        end(Exit.interrupt())
      })
    }

    return {
      start,
      read: (query) =>
        Effect.withFiber((fiber) =>
          fiber.cache.tracer === undefined
            ? answer(query, fiber)
            : Spans.call(query, isFault, Effect.suspend(() => answer(query, fiber)))
        )
    }
  }

  return ResponseCache.of({ reader })
})

/** Caches in this process. */
export const layer = (options: Options = {}): Layer.Layer<ResponseCache> => Layer.effect(ResponseCache, make(options))

/** Caches in this process, and shares responses with the other replicas of a gateway through Redis. */
export const layerRedis = (
  options: Options & ResponseCacheRedis.Options = {}
): Layer.Layer<ResponseCache, never, Redis.Redis> =>
  Layer.effect(ResponseCache, Effect.flatMap(ResponseCacheRedis.make(options), (replicas) => make(options, replicas)))
