/**
 * Gives one answer of an upstream to every read that may have it: one that is kept, else one that is under way.
 *
 * A kept answer is found in this process, or behind it in what replicas share; one that grows old is renewed before it is
 * missed, and one that is too old still serves, with its age, where the upstream fails.
 */
import type { CachePolicy } from "@trigate/domain/Operation"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Redis from "effect/persistence/Redis"
import type { CachedResponse, Codec, Shareable } from "./CachedResponse.ts"
import { ageOf, isFresh } from "./CachedResponse.ts"
import * as CacheMetrics from "./CacheMetrics.ts"
import * as CacheReplicas from "./CacheReplicas.ts"
import * as CacheReplicasRedis from "./CacheReplicasRedis.ts"
import * as CacheStore from "./CacheStore.ts"
import { Freshness, MaxAge } from "./Freshness.ts"
import * as RpcCalls from "./RpcCalls.ts"
import * as SingleFlight from "./SingleFlight.ts"
import type { UpstreamLabel } from "./Upstream.ts"

/** One read. */
export interface Query<A, E> {
  readonly operation: string
  readonly upstream: UpstreamLabel
  /** The canonical request: what is equal here gets the same answer. */
  readonly key: string
  /** How long an answer may be given again that is asked for at `now`; only calls in flight are shared when undefined. */
  readonly cachePolicy?: (now: number, freshness: Freshness) => CachePolicy | undefined
  /** Whether a successful answer is one to keep; every one is when not given. */
  readonly accepts?: (answer: A) => boolean
  /**
   * Finds out by further reads how long an answer may be kept, after it was given; undefined where that is no question.
   *
   * Until it says so the answer is not kept, and it is kept in this process only.
   */
  readonly confirm?: (answer: A) => Effect.Effect<CachePolicy | undefined> | undefined
  readonly ask: Effect.Effect<A, E>
}

/** How reads of one kind of answer are shared. */
export interface Sharing<A> {
  /**
   * Which chain at which addresses: readers with the same name share answers, also with other replicas.
   *
   * It holds no endpoint key, it is part of keys that are stored.
   */
  readonly space: string
  readonly codec: Codec<A>
}

/** Reads one kind of answers. */
export type Reader<A, E> = (query: Query<A, E>) => Effect.Effect<A, E>

/** Shares reads. */
export class ResponseCache extends Context.Service<ResponseCache, {
  /** A reader of one kind of answers; build it once, calls in flight are shared between the calls of one reader. */
  readonly reader: <A extends Shareable, E>(sharing: Sharing<A>) => Reader<A, E>
}>()("@trigate/upstream/ResponseCache") {}

/** An answer that is renewed is left alone for so long, whether that succeeds or not. */
const RENEWAL_PAUSE = 5000

/** What lasts shorter than this is not worth a way to another process. */
const SHORTEST_SHARED = 1000

/** How far the clock of another replica may be ahead. */
const MOST_AHEAD = 1000

const renewalDue = ({ cachePolicy: { refreshAfter }, ...kept }: CachedResponse, now: number): boolean =>
  refreshAfter !== undefined && now - kept.readAt >= refreshAfter

const currentTime = (fiber: Fiber.Fiber<unknown, unknown>): number =>
  fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()

const make = Effect.fnUntraced(function*(options: SingleFlight.Options) {
  const cache = yield* CacheStore.CacheStore
  const replicas = yield* CacheReplicas.CacheReplicas
  const scope = yield* Effect.scope
  const countersOf = CacheMetrics.counters()

  const inBackground = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.asVoid(Effect.forkIn(Effect.ignore(RpcCalls.unbatched(effect)), scope))

  const reader = <A extends Shareable, E>({ codec, space }: Sharing<A>): Reader<A, E> => {
    const flights = SingleFlight.make<A, E>(options, codec.isFault)
    const checks = SingleFlight.make<void, never>(options)
    const renewedAt = new WeakMap<CachedResponse, number>()

    const given = (kept: CachedResponse, now: number): A => codec.of(kept.content, Math.floor(ageOf(kept, now) / 1000))

    const store = (key: string, kept: CachedResponse): Effect.Effect<void> => {
      cache.put(key, kept)
      return replicas.isShared && kept.cachePolicy.fresh >= SHORTEST_SHARED
        ? inBackground(replicas.put(key, kept))
        : Effect.void
    }

    const keep = (query: Query<A, E>, key: string, rule: CachePolicy | undefined, answer: A): Effect.Effect<A> => {
      const given = Effect.succeed(answer)
      const check = rule === undefined && !checks.has(key) ? query.confirm?.(answer) : undefined
      if (rule === undefined && check === undefined) return given
      const content = codec.keep(answer)
      if (content === undefined || query.accepts?.(answer) === false) return given
      return Effect.withFiber((fiber) => {
        const readAt = currentTime(fiber)
        if (rule !== undefined) return Effect.as(store(key, { content, readAt, cachePolicy: rule }), answer)
        if (check === undefined) return given
        const ask = Effect.map(check, (keeping) => {
          if (keeping !== undefined) cache.put(key, { content, readAt, cachePolicy: keeping })
        })
        return Effect.as(inBackground(checks.run({ key, ask, takesFailure: true })), answer)
      })
    }

    /** Asks, unless another replica has an answer that is younger than `maxAge`. */
    const load = (
      query: Query<A, E>,
      key: string,
      rule: CachePolicy | undefined,
      maxAge: number
    ): Effect.Effect<A, E> => {
      const ask = Effect.flatMap(query.ask, (answer) => keep(query, key, rule, answer))
      if (!replicas.isShared || rule === undefined || rule.fresh < SHORTEST_SHARED || maxAge <= 0) return ask
      return Effect.flatMap(replicas.get(key), (kept) =>
        kept === undefined ? ask : Effect.withFiber((fiber) => {
          const now = currentTime(fiber)
          // nobody can tell the age of what was read in the future, and it would stay fresh until then
          if (kept.readAt - now > MOST_AHEAD) return ask
          if (kept.readAt > (cache.get(key, now)?.readAt ?? 0)) cache.put(key, kept)
          if (!isFresh(kept, now) || ageOf(kept, now) >= maxAge) return ask
          countersOf(query.upstream, query.operation)("redis", fiber.context)
          return Effect.succeed(given(kept, now))
        }))
    }

    const renew = (query: Query<A, E>, key: string, rule: CachePolicy): Effect.Effect<void> =>
      inBackground(Effect.withFiber((fiber) => {
        const count = countersOf(query.upstream, query.operation)
        const ask = load(query, key, rule, rule.refreshAfter ?? 0)
        return Effect.onExitPrimitive(flights.run({ key, ask, takesFailure: true }), (exit) => {
          const isRenewed = exit._tag === "Success" && !codec.isFault(exit.value)
          count(isRenewed ? "refreshed_ahead" : "refresh_failed", fiber.context)
          return undefined
        })
      }))

    const orStale = (query: Query<A, E>, key: string, answered: Effect.Effect<A, E>): Effect.Effect<A, E> => {
      const instead = (otherwise: Effect.Effect<A, E>) =>
        Effect.withFiber((fiber) => {
          const now = currentTime(fiber)
          const kept = cache.get(key, now)
          if (kept === undefined) return otherwise
          countersOf(query.upstream, query.operation)("stale", fiber.context)
          return Effect.succeed(given(kept, now))
        })
      return Effect.matchEffect(answered, {
        onFailure: (error) => instead(Effect.fail(error)),
        onSuccess: (answer) => codec.isFault(answer) ? instead(Effect.succeed(answer)) : Effect.succeed(answer)
      })
    }

    return (query) =>
      Effect.withFiber((fiber) => {
        const count = (how: CacheMetrics.How) => countersOf(query.upstream, query.operation)(how, fiber.context)
        const onShared = () => count("in_flight")
        const key = `${space} ${query.operation} ${query.key}`
        const freshness = fiber.getRef(Freshness)
        const now = currentTime(fiber)
        const rule = query.cachePolicy?.(now, freshness)
        // whoever wants no kept answer must not get one from a call that began with a look at what others keep
        if (freshness === "none") return flights.run({ key: `${key} !`, ask: load(query, key, rule, 0), onShared })
        if (rule === undefined && query.confirm === undefined) {
          return flights.run({ key: `${key} -`, ask: query.ask, onShared })
        }
        const maxAge = (fiber.getRef(MaxAge) ?? Number.POSITIVE_INFINITY) * 1000
        const kept = cache.get(key, now)
        if (kept !== undefined && isFresh(kept, now) && ageOf(kept, now) <= maxAge) {
          count("cache")
          const answer = given(kept, now)
          if (rule === undefined || !renewalDue(kept, now) || now < (renewedAt.get(kept) ?? 0)) {
            return Effect.succeed(answer)
          }
          renewedAt.set(kept, now + RENEWAL_PAUSE)
          return Effect.as(renew(query, key, rule), answer)
        }
        const ask = load(query, key, rule, Math.min(rule?.fresh ?? 0, maxAge))
        // what another replica has kept may be too old for the next one who asks
        const flight = Number.isFinite(maxAge) ? `${key} ${maxAge}` : key
        // nothing is kept that could serve instead, nor will there be
        if (kept === undefined && rule === undefined) return flights.run({ key: flight, ask, onShared })
        return orStale(query, key, flights.run({ key: flight, ask, takesFailure: kept !== undefined, onShared }))
      })
  }

  return ResponseCache.of({ reader })
})

/** Options of sharing. */
export interface Options extends SingleFlight.Options, CacheStore.Options {}

/** Shares within this process. */
export const layer = (options: Options = {}): Layer.Layer<ResponseCache> =>
  Layer.effect(ResponseCache, make(options)).pipe(
    Layer.provide([CacheStore.layer(options), CacheReplicas.layerNone])
  )

/** Shares with other replicas of the gateway too. */
export const layerRedis = (
  options: Options & CacheReplicasRedis.Options = {}
): Layer.Layer<ResponseCache, never, Redis.Redis> =>
  Layer.effect(ResponseCache, make(options)).pipe(
    Layer.provide([CacheStore.layer(options), CacheReplicasRedis.layer(options)])
  )
