/** The command line `trigate`. Its files, environment and streams are injected. */
import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Effect from "effect/Effect"
import * as ServeCommand from "./commands/ServeCommand.ts"
import * as Output from "./Output.ts"
import * as Report from "./Report.ts"

// only `serve` and `sandbox`: the other commands load the client and the signer, which would double the time to start a
// gateway
const serveAlone = Command.make("trigate").pipe(
  Command.withSubcommands([ServeCommand.command, ServeCommand.sandboxCommand])
)

const loadHome = Effect.promise(() => import("./commands/StatusCommand.ts"))

const loadCommands = Effect.promise(() => import("./commands/Commands.ts"))

// no wizard and no log levels: the commands are neither interactive nor do they log
const config = CliConfig.make({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })

/**
 * Runs a command line. Without a command, prints the state of the local gateway. A failure is printed to standard error
 * before this effect fails.
 */
export const run = Effect.fnUntraced(
  function*(args: ReadonlyArray<string>) {
    const runWith = { version: yield* Output.readVersion }
    if (args[0] === "serve" || args[0] === "sandbox") return yield* Command.runWith(serveAlone, runWith)(args)
    const command = args.length === 0 ? (yield* loadHome).home : (yield* loadCommands).command
    return yield* Command.runWith(command, runWith)(args)
  },
  Effect.tapCause(Report.failure),
  Effect.provideService(CliConfig.CliConfig, config),
  Effect.provideServiceEffect(CliOutput.Presenter, Effect.map(Output.terminalWidth, Report.presenter))
)
