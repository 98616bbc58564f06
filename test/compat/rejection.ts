/** What a library's promise is rejected with; one that is not rejected is a defect. */
import * as Effect from "effect/Effect"

export const rejection = (call: () => Promise<unknown>): Effect.Effect<unknown> =>
  Effect.promise(() =>
    call().then(
      (answer) => Promise.reject(new Error(`It was answered: ${JSON.stringify(answer)}`)),
      (error: unknown) => error
    )
  )
