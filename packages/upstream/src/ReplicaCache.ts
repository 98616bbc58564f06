/** Kept answers that the replicas of a gateway share, behind each one's own. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Kept } from "./Kept.ts"

/** Kept answers by key; while the store is away there are none, and no call fails or waits for it beyond its deadline. */
export class ReplicaCache extends Context.Service<ReplicaCache, {
  readonly get: (key: string) => Effect.Effect<Kept | undefined>
  /** Keeps an answer for as long as it is of any use. */
  readonly put: (key: string, kept: Kept) => Effect.Effect<void>
  /** Whether there is a store at all: without one nothing is asked. */
  readonly isShared: boolean
}>()("@trigate/upstream/ReplicaCache") {}

/** No other replicas. */
export const layerNone: Layer.Layer<ReplicaCache> = Layer.succeed(
  ReplicaCache,
  ReplicaCache.of({ get: () => Effect.undefined, put: () => Effect.void, isShared: false })
)
