/** A read whose response can be cached, and the rules for caching it. */
import type { CachePolicy, Cost } from "@trigate/domain/operations/Operation"
import type * as Effect from "effect/Effect"
import type { Pacer } from "../limits/Pacer.ts"
import type { UpstreamLabel } from "../Upstream.ts"
import type { Freshness } from "./Freshness.ts"

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
  /** Returns the rate-limit cost of reading the response upstream. Absent if the cost is not counted. */
  readonly costOf?: ((now: number) => Cost) | undefined
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
