/** What the tests of a file share. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll } from "vitest"

/**
 * Returns an effect that runs once for each list of arguments, and returns the same value afterwards. Its scope closes
 * after the tests of the file.
 */
export const oncePerFile = <Arguments extends ReadonlyArray<unknown>, A, E>(
  start: (...args: Arguments) => Effect.Effect<A, E, Scope.Scope>
) => {
  const scope = Scope.makeUnsafe()
  const started = new Map<string, A>()
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return (...args: Arguments): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      const key = JSON.stringify(args)
      const found = started.get(key)
      return found === undefined
        ? Effect.tap(Scope.provide(start(...args), scope), (value) => Effect.sync(() => started.set(key, value)))
        : Effect.succeed(found)
    })
}
