/** Cached responses of this process, bounded by bytes; the least recently used one is evicted first. */
import type { CachePolicy } from "@trigate/domain/operations/Operation"
import type { CachedContent } from "@trigate/domain/operations/Protocol"
import type * as Context from "effect/Context"
import { metrics } from "../UpstreamMetrics.ts"

/** The content of an answer with the time at which it was read, in milliseconds. */
export interface CachedResponse {
  readonly content: CachedContent
  readonly readAt: number
  readonly policy: CachePolicy
}

/** Milliseconds since it was read; 0 where the clock of the replica that read it is ahead. */
export const responseAge = ({ readAt }: CachedResponse, now: number): number => Math.max(0, now - readAt)

/** Whether it may be served without asking the upstream. */
export const isFresh = (cached: CachedResponse, now: number): boolean => responseAge(cached, now) < cached.policy.fresh

/** Why a response is served that is not fresh: the upstream fails, or its rate limit is used up. */
export type StaleReason = "error" | "limited"

const staleFor = ({ staleIfError, staleIfLimited = 0 }: CachePolicy, reason: StaleReason): number =>
  reason === "error" ? staleIfError : Math.max(staleIfError, staleIfLimited)

/** Whether it may be served for a reason, fresh or stale. */
export const mayServe = (cached: CachedResponse, now: number, reason: StaleReason): boolean =>
  responseAge(cached, now) < cached.policy.fresh + staleFor(cached.policy, reason)

/** Milliseconds for which it is of use, fresh or stale; not above 0 when it is of none. */
export const useLeft = (cached: CachedResponse, now: number): number =>
  cached.policy.fresh + staleFor(cached.policy, "limited") - responseAge(cached, now)

/** What an entry takes besides its texts: two maps' worth of pointers, the objects around it. */
const OVERHEAD = 256

/** Bytes that an entry is counted with; a text counts as two bytes a character. */
export const responseBytes = (key: string, { content: { body, head } }: CachedResponse): number =>
  OVERHEAD + 2 * (key.length + head.length) + (typeof body === "string" ? 2 * body.length : body.byteLength)

const gauge = metrics.cacheBytes.series({})

interface Entry {
  readonly cached: CachedResponse
  readonly size: number
}

/** Cached responses by key; plain functions, because a hit has to cost as little as a lookup. */
export class CacheStore {
  readonly #entries = new Map<string, Entry>()
  readonly #maxBytes: number
  readonly #context: Context.Context<never>
  #bytes = 0

  /** A response of more than an eighth of `maxBytes` is not stored; `context` holds the metric registry. */
  constructor(maxBytes: number, context: Context.Context<never>) {
    this.#maxBytes = maxBytes
    this.#context = context
    gauge.updateUnsafe(0, context)
  }

  /** The bytes stored now. */
  get bytes(): number {
    return this.#bytes
  }

  /** The response under a key, while it is of any use at `now`. */
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
