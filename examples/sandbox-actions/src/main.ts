/** Prints a signed body: `node examples/sandbox-actions/src/main.ts tokenDelegate`. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { actionTypes, body, isActionType } from "./bodies.ts"

const program = Effect.gen(function*() {
  const type = process.argv[2]
  if (!isActionType(type)) return yield* Effect.fail(`Name an action: ${actionTypes.join(", ")}`)
  yield* Console.log(yield* body(type, yield* Clock.currentTimeMillis))
})

program.pipe(
  Effect.tapError((error) => Console.error(String(error))),
  NodeRuntime.runMain({ disableErrorReporting: true })
)
