/** The bundled gateway as a program: reads the command line, serves, ends with the signal. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Cause from "effect/Cause"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Runtime from "effect/Runtime"
import * as Help from "./Help.ts"
import * as Serve from "./Serve.ts"

const program = Effect.gen(function*() {
  const args = process.argv.slice(2)
  const unknown = args.find((arg) => arg !== "--help" && arg !== "-h")
  if (unknown !== undefined) {
    return yield* new Serve.StartError({ message: `${unknown} is not an option; see npm start -- --help` })
  }
  return yield* args.length > 0 ? Console.log(Help.text) : Serve.serve
})

program.pipe(
  Effect.tapError((error) => Console.error(`trigate: ${error.message}`)),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    // a signal is how a server ends, not a failure
    teardown: (exit, onExit) =>
      Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)
  })
)
