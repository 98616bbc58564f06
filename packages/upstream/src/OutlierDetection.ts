/**
 * Which addresses of an upstream may be asked now, and what each exchange says about its address.
 *
 * Layers: `OutlierDetectionMemory`, `OutlierDetectionRedis` for replicas that learn from each other, `layerAlways` here, and
 * `ChainGuard` around any of them.
 */
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Target } from "./Upstream.ts"

/**
 * What one exchange says about the address it went to.
 *
 * `faulty`: no answer in time, no connection, a server fault, an answer that is not the upstream's own. `neutral`:
 * nothing either way, as a full budget or a caller that left.
 */
export type Sign = "healthy" | "faulty" | "neutral"

/** The addresses of one call that may be asked, best first. */
export interface Usable<T extends Target> {
  /** None when the call has to fail at once. */
  readonly targets: ReadonlyArray<T>
  /** Where there are none: milliseconds until the first of them comes back; `undefined` when nobody knows. */
  readonly retryAfter: number | undefined
}

/** The circuit of the address admits no exchange now, and none was made; `retryAfter` in milliseconds. */
export class AddressClosed extends Schema.TaggedError<AddressClosed>()("AddressClosed", {
  upstream: Schema.String,
  address: Schema.Int,
  retryAfter: Schema.Finite
}) {}

/** The health of every address that calls go to. */
export class OutlierDetection extends Context.Service<OutlierDetection, {
  /**
   * The targets that may be asked, without those that are benched, whose circuit is open, or that are on a wrong chain.
   *
   * Of two or more targets at most half, rounded down, are passed over: the rest of those that are out follow the healthy
   * ones, the one that comes back soonest first, and are asked outside of their circuits. A single target is never
   * benched, but its open circuit leaves none.
   */
  readonly usable: <T extends Target>(targets: NonEmptyReadonlyArray<T>) => Effect.Effect<Usable<T>>
  /** Runs an exchange through the circuit of its address; an exchange that only ended by interruption says nothing. */
  readonly guard: <A, E>(
    target: Target,
    exchange: Effect.Effect<A, E>,
    signOf: (exit: Exit.Exit<A, E>) => Sign
  ) => Effect.Effect<A, E | AddressClosed>
  /** Passes an address over for some milliseconds, as its `Retry-After` asks for, and for an hour at most. */
  readonly bench: (target: Target, millis: number) => Effect.Effect<void>
}>()("@trigate/upstream/OutlierDetection") {}

/** Every address is always usable. */
export const layerAlways: Layer.Layer<OutlierDetection> = Layer.succeed(
  OutlierDetection,
  OutlierDetection.of({
    usable: (targets) => Effect.succeed({ targets, retryAfter: undefined }),
    guard: (_target, exchange) => exchange,
    bench: () => Effect.void
  })
)
