/** Caches and coalesces reads in this process, or together with other replicas through Redis. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redis from "effect/persistence/Redis"
import { AccountVersions, layerMemory } from "./AccountVersions.ts"
import * as AccountVersionsRedis from "./AccountVersionsRedis.ts"
import type { Kind, Reader } from "./CacheReader.ts"
import * as CacheReader from "./CacheReader.ts"
import { CacheStore } from "./CacheStore.ts"
import * as ResponseCacheRedis from "./ResponseCacheRedis.ts"
import type { Replicas } from "./ResponseCacheRedis.ts"
import type * as SingleFlight from "./SingleFlight.ts"

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

const make = Effect.fnUntraced(function*(options: Options, replicas?: Replicas) {
  const versions = yield* AccountVersions
  const store = new CacheStore(options.maxBytes ?? 64 * 1024 * 1024, yield* Effect.context())
  const reader = CacheReader.make({ versions, store, replicas, flights: options, scope: yield* Effect.scope })
  return ResponseCache.of({ reader, accounts: versions })
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
