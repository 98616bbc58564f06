/** The command line as a Node program. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as MutableRef from "effect/MutableRef"
import * as Stdio from "effect/Stdio"
import * as ExitCode from "./Report.ts"
import * as Trigate from "./Trigate.ts"

// `trigate … | head` closes standard output early, which is not an error to report
process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  if (code === "EPIPE") process.exit(ExitCode.codes.closed.code)
  process.stderr.write(`trigate: Standard output cannot be written: ${message}\n`)
  process.exit(ExitCode.codes.unexpected.code)
})
// a failed write to standard error must not end the process while a signed action is in flight
process.stderr.on("error", () => undefined)

const endsByInterruption = MutableRef.make(false)

Stdio.Stdio.use(({ args }) => args).pipe(
  Effect.flatMap(Trigate.run),
  Effect.provideService(ExitCode.EndsByInterruption, endsByInterruption),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    teardown: (exit, onExit) => {
      const code = ExitCode.of(exit)
      const isExpected = code === ExitCode.codes.interrupted.code && MutableRef.get(endsByInterruption)
      onExit(isExpected ? ExitCode.codes.ok.code : code)
    }
  })
)
