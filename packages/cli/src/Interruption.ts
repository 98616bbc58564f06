/** What the exit code of an interrupted program is: for a server, being interrupted is how it ends. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as MutableRef from "effect/MutableRef"

/** Whether an interruption is the expected end of what runs. */
export const ExpectedEnd = Context.Reference("@trigate/cli/Interruption/ExpectedEnd", {
  defaultValue: () => MutableRef.make(false)
})

/** From here on an interruption is the expected end. */
export const isTheEnd: Effect.Effect<void> = Effect.map(ExpectedEnd, (expected) => {
  MutableRef.set(expected, true)
})
