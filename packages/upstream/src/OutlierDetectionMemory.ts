/** `OutlierDetection` of one process. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as Circuits from "./internal/Circuits.ts"
import type * as TripPolicy from "./internal/TripPolicy.ts"
import { OutlierDetection } from "./OutlierDetection.ts"
import { nameOf } from "./Upstream.ts"
import type { Target } from "./Upstream.ts"

/** When a circuit opens, and for how long. */
export type Options = TripPolicy.Options

const make = Effect.fnUntraced(function*(options: Options) {
  const store = yield* CircuitBreaker.CircuitBreakerStore
  let addresses = 0
  // a program may have two upstreams of one label
  const keyOf = (target: Target) =>
    Effect.sync(() => {
      addresses += 1
      return `${nameOf(target)}/${addresses}`
    })
  return (yield* Circuits.make(store, keyOf, options)).health
})

/** Benches in memory, circuits in the store of the context. */
export const layerNoDeps = (
  options: Options = {}
): Layer.Layer<OutlierDetection, never, CircuitBreaker.CircuitBreakerStore> =>
  Layer.effect(OutlierDetection, make(options))

/** Circuits and benches in memory. */
export const layer = (options: Options = {}): Layer.Layer<OutlierDetection> =>
  Layer.provide(layerNoDeps(options), CircuitBreaker.layerStoreMemory())
