/** Which addresses of an upstream may be asked now. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Target } from "./Upstream.ts"

/** What one exchange says about the address that it went to. */
export type Sign = "healthy" | "faulty" | "neutral"

/** The address is not asked: its circuit is open. */
export class AddressClosed extends Schema.TaggedError<AddressClosed>()("AddressClosed", {
  /** Milliseconds until it may be asked again. */
  retryAfter: Schema.Finite
}) {}

/** Addresses in the order to ask them, or when the first one comes back. */
export interface Usable {
  readonly targets: ReadonlyArray<Target>
  /** Milliseconds. */
  readonly retryAfter: number | undefined
}

/** Knows how addresses fare. */
export class AddressHealth extends Context.Service<AddressHealth, {
  readonly usable: (targets: readonly [Target, ...ReadonlyArray<Target>]) => Effect.Effect<Usable>
  readonly guard: <A, E>(
    target: Target,
    exchange: Effect.Effect<A, E>,
    signOf: (exit: Exit.Exit<A, E>) => Sign
  ) => Effect.Effect<A, E | AddressClosed>
  readonly bench: (target: Target, millis: number) => Effect.Effect<void>
}>()("@trigate/upstream/AddressHealth") {}

/** Every address may always be asked. */
export const layerAlways: Layer.Layer<AddressHealth> = Layer.succeed(
  AddressHealth,
  AddressHealth.of({
    usable: (targets) => Effect.succeed({ targets, retryAfter: undefined }),
    guard: (_target, exchange) => exchange,
    bench: () => Effect.void
  })
)
