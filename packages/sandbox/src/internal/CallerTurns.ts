/** Turns of callers whose executions share a machine. */
import { CurrentCaller } from "@trigate/domain/Caller"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"

/**
 * Makes the function that runs an effect when it is its caller's turn. A caller runs one effect at a time, and `running`
 * callers run theirs at the same time.
 */
export const make = Effect.fnUntraced(function*(running: number) {
  const all = yield* Semaphore.make(running)
  const callers = new Map<string, { readonly turn: Semaphore.Semaphore; users: number }>()
  return Effect.fnUntraced(function*<A, E>(effect: Effect.Effect<A, E>) {
    const { id } = yield* CurrentCaller
    return yield* Effect.acquireUseRelease(
      Effect.sync(() => {
        const caller = callers.get(id) ?? { turn: Semaphore.makeUnsafe(1), users: 0 }
        caller.users += 1
        callers.set(id, caller)
        return caller
      }),
      ({ turn }) => turn.withPermit(all.withPermit(effect)),
      (caller) =>
        Effect.sync(() => {
          caller.users -= 1
          if (caller.users === 0) callers.delete(id)
        })
    )
  })
})
