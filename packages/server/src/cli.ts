#!/usr/bin/env node
/** The command line `trigate`. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as InspectCommand from "./InspectCommand.ts"
import * as JournalCommand from "./JournalCommand.ts"

const trigate = Command.make("trigate").pipe(
  Command.withDescription("Tools of the gateway; the gateway itself is started by npm start"),
  Command.withSubcommands([InspectCommand.command, JournalCommand.command])
)

Command.run(trigate, { version: "0.1.0" }).pipe(
  Effect.tapErrorTag(["InspectFault", "JournalFault"], (error) => Console.error(`trigate: ${error.message}`)),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({ disableErrorReporting: true })
)
