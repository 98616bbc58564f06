/** Cached responses of this process, limited in bytes; the least recently used one is evicted first. */
import type { CachePolicy } from "@trigate/domain/operations/Operation"
import type { CachedContent } from "@trigate/domain/operations/Protocol"
import type * as Context from "effect/Context"
import { metrics } from "../UpstreamMetrics.ts"

/** The content of a response, with the time at which it was read, in milliseconds. */
export interface CachedResponse {
  readonly content: CachedContent
  readonly readAt: number
  readonly policy: CachePolicy
}

/** Returns the age of a cached response in milliseconds; 0 if the clock of the replica that read it is ahead. */
export const responseAge = ({ readAt }: CachedResponse, now: number): number => Math.max(0, now - readAt)

/** Returns whether a response can be served without an upstream request. */
export const isFresh = (cached: CachedResponse, now: number): boolean => responseAge(cached, now) < cached.policy.fresh

/** Why a stale response is served: the upstream fails, or its rate limit is exhausted. */
export type StaleReason = "error" | "limited"

const staleFor = ({ staleIfError, staleIfLimited = 0 }: CachePolicy, reason: StaleReason): number =>
  reason === "error" ? staleIfError : Math.max(staleIfError, staleIfLimited)

/** Returns whether a response is fresh, or young enough to be served stale for the given reason. */
export const mayServe = (cached: CachedResponse, now: number, reason: StaleReason): boolean =>
  responseAge(cached, now) < cached.policy.fresh + staleFor(cached.policy, reason)

/**
 * Returns the milliseconds until a response expires, including the time during which the response can be served stale;
 * 0 or less if the response has expired.
 */
export const useLeft = (cached: CachedResponse, now: number): number =>
  cached.policy.fresh + staleFor(cached.policy, "limited") - responseAge(cached, now)

/** Bytes of memory that a cached response uses in addition to its key and its content. */
const OVERHEAD = 256

/** Returns the size of an entry in bytes; text counts as two bytes per character. */
export const responseBytes = (key: string, { content: { body, head } }: CachedResponse): number =>
  OVERHEAD + 2 * (key.length + head.length) + (typeof body === "string" ? 2 * body.length : body.byteLength)

const gauge = metrics.cacheBytes.series({})

interface Entry {
  readonly cached: CachedResponse
  readonly size: number
}

/** Cached responses by key, with synchronous functions, so that a hit costs no more than a lookup. */
export class CacheStore {
  readonly #entries = new Map<string, Entry>()
  readonly #maxBytes: number
  readonly #context: Context.Context<never>
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
  get(key: string, now: number): CachedResponse | undefined {
    const found = this.#entries.get(key)
    if (found === undefined) return undefined
    this.#entries.delete(key)
    if (useLeft(found.cached, now) > 0) {
      this.#entries.set(key, found)
      return found.cached
    }
    this.#bytes -= found.size
    gauge.updateUnsafe(this.#bytes, this.#context)
    return undefined
  }

  put(key: string, cached: CachedResponse): void {
    this.#drop(key)
    const size = responseBytes(key, cached)
    if (size <= this.#maxBytes / 8) {
      this.#entries.set(key, { cached, size })
      this.#bytes += size
      for (const oldest of this.#entries.keys()) {
        if (this.#bytes <= this.#maxBytes) break
        this.#drop(oldest)
      }
    }
    gauge.updateUnsafe(this.#bytes, this.#context)
  }

  #drop(key: string): void {
    this.#bytes -= this.#entries.get(key)?.size ?? 0
    this.#entries.delete(key)
  }
}
