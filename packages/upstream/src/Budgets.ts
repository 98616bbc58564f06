/** What an upstream lets a caller ask of it in a while: taken before a call, given back where it was not used. */
import type { Cost, MethodClass } from "@trigate/domain/Operation"
import type { UpstreamRateLimited } from "@trigate/domain/UpstreamError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { UpstreamLabel } from "./Upstream.ts"

/** What was taken. */
export interface Spent {
  /** Gives back what the call did not use after all, never more than was taken. */
  readonly giveBack: (unused: number) => Effect.Effect<void>
}

/** What is asked for. */
export interface Ask {
  readonly upstream: UpstreamLabel
  /** A `once` call may draw on the share that is reserved for it. */
  readonly class: MethodClass
  readonly cost: Cost
  /** Milliseconds that the call can wait for its turn. */
  readonly patience: number
}

/** The budgets of the upstreams. */
export class Budgets extends Context.Service<Budgets, {
  readonly take: (ask: Ask) => Effect.Effect<Spent, UpstreamRateLimited>
}>()("@trigate/upstream/Budgets") {}

const nothing: Effect.Effect<Spent> = Effect.succeed({ giveBack: () => Effect.void })

/** No budget at all. */
export const layerUnlimited: Layer.Layer<Budgets> = Layer.succeed(Budgets, Budgets.of({ take: () => nothing }))
