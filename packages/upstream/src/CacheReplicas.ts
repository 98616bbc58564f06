/** CachedResponse answers that the replicas of a gateway share, behind each one's own. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { CachedResponse } from "./CachedResponse.ts"

/** CachedResponse answers by key; while the store is away there are none, and no call fails or waits for it beyond its deadline. */
export class CacheReplicas extends Context.Service<CacheReplicas, {
  readonly get: (key: string) => Effect.Effect<CachedResponse | undefined>
  /** Keeps an answer for as long as it is of any use. */
  readonly put: (key: string, kept: CachedResponse) => Effect.Effect<void>
  /** Whether there is a store at all: without one nothing is asked. */
  readonly isShared: boolean
}>()("@trigate/upstream/CacheReplicas") {}

/** No other replicas. */
export const layerNone: Layer.Layer<CacheReplicas> = Layer.succeed(
  CacheReplicas,
  CacheReplicas.of({ get: () => Effect.undefined, put: () => Effect.void, isShared: false })
)
