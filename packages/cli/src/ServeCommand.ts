/** `trigate serve`: the gateway itself, as `npm start` runs it. */
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Interruption from "./Interruption.ts"

// loaded when it is asked for: no other command pays for the server
const load = Effect.promise(() => import("@trigate/server/Serve"))

/** The command. */
export const command = Command.make(
  "serve",
  {},
  () => Effect.andThen(Interruption.isTheEnd, Effect.flatMap(load, ({ serve }) => serve))
).pipe(
  Command.withDescription(
    "Serve the gateway until a signal ends it. Settings are environment variables; without upstream addresses the " +
      "sandbox answers. npm start -- --help and docs/configuration.md list them"
  ),
  Command.withShortDescription("Serve the gateway"),
  Command.withExamples([{ command: "TRIGATE_PORT=9000 trigate serve" }])
)
