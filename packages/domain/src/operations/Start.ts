/**
 * Calls that start at once: from the cache to the transport by plain calls of functions, without an effect between them.
 *
 * Most reads find no equal one under way, room in the rate limit, and one sound address. Each policy says with a step of its
 * own whether that is so, and the effect for all other cases is written through the same step, so that no rule stands twice.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { constTrue, constUndefined } from "effect/Function"
import type { Caller } from "../Caller.ts"
import { CurrentCaller } from "../Caller.ts"

/** Whether calls start at once where they can; where not, all are made as effects. */
export const IsOn = Context.Reference<boolean>("@trigate/domain/operations/Start/IsOn", { defaultValue: constTrue })

/** What the steps of a call know of the fiber that makes it. */
export interface Scene {
  readonly caller: Caller
  readonly clock: Clock.Clock
  /** Metrics are written to the registry of this context. */
  readonly context: Context.Context<never>
  /** Whether the call refreshes a cached response, which is paced; false when not given. */
  readonly isRefresh?: boolean
}

/** What the steps know of a fiber. */
export const sceneOf = (fiber: Fiber.Fiber<unknown, unknown>): Scene => ({
  caller: fiber.getRef(CurrentCaller),
  clock: fiber.getRef(Clock.Clock),
  context: fiber.context
})

/** What is left of a call once its answer is there, to be run once: an exit, or the effect that goes on from there. */
export type Rest<A, E> = () => Effect.Effect<A, E>

/** Takes the rest of a call; called once, at once or later. */
export type Done<A, E> = (rest: Rest<A, E>) => void

/**
 * Ends a call whose rest has not run, and does nothing after that.
 *
 * Whoever starts a call stops it at the end of all cases, or callers that wait for it would wait for ever.
 */
export type Stop = () => void

/** Starts a call; answers undefined, and has taken and sent nothing, where the call has to be made as an effect. */
export type Start<A, E> = (scene: Scene, done: Done<A, E>) => Stop | undefined

/** Starts no call. */
export const never: Start<never, never> = constUndefined

/** Whether nothing is left of a call but its answer. */
export const isAnswer = <A, E>(rest: Effect.Effect<A, E>): rest is Exit.Success<A, E> =>
  Exit.isExit(rest) && Exit.isSuccess(rest)

/** Makes a call by its start, or by an effect where that is not possible. */
export const orElse = <A, E, E2 = E, R = never>(
  scene: Scene,
  start: Start<A, E>,
  properly: () => Effect.Effect<A, E2, R>
): Effect.Effect<A, E | E2, R> => {
  let stop: Stop | undefined
  const called = Effect.callback<A, E | E2, R>((resume) => {
    stop = start(scene, (rest) => resume(Effect.suspend(rest)))
    if (stop === undefined) resume(properly())
  })
  return Effect.onExitPrimitive(called, () => {
    stop?.()
    return undefined
  })
}
