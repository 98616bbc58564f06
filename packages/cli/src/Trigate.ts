/** The command line `trigate`, over whatever files, environment and streams it is given. */
import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Effect from "effect/Effect"
import * as Terminal from "effect/Terminal"
import * as BigBlocksCommand from "./BigBlocksCommand.ts"
import * as EvmCommand from "./EvmCommand.ts"
import * as ExitCode from "./ExitCode.ts"
import * as InfoCommand from "./InfoCommand.ts"
import * as InspectCommand from "./InspectCommand.ts"
import * as JournalCommand from "./JournalCommand.ts"
import * as MultiSigCommand from "./MultiSigCommand.ts"
import * as ReceiptCommand from "./ReceiptCommand.ts"
import * as Report from "./Report.ts"
import * as ServeCommand from "./ServeCommand.ts"
import * as StakeCommands from "./StakeCommands.ts"
import * as TokenCommand from "./TokenCommand.ts"
import * as Version from "./Version.ts"

const command = Command.make("trigate").pipe(
  Command.withDescription(`Ask a Trigate gateway, sign for it, or run one.

  Commands that ask or send take --gateway URL (else TRIGATE_GATEWAY_URL, else http://127.0.0.1:8080) and --json.
  Commands that sign read the private key from TRIGATE_PRIVATE_KEY, --key-env NAME or --key-file PATH.

  Data goes to standard output, everything else to standard error. Exit codes:
${ExitCode.text.replace(/^/gmu, "  ")}`),
  Command.withSubcommands([
    {
      group: "READ",
      commands: [InfoCommand.command, EvmCommand.command, TokenCommand.command, ReceiptCommand.command]
    },
    {
      group: "SIGN AND SEND",
      commands: [StakeCommands.delegate, StakeCommands.undelegate, BigBlocksCommand.command, MultiSigCommand.command]
    },
    { group: "GATEWAY", commands: [ServeCommand.command, InspectCommand.command, JournalCommand.command] }
  ]),
  Command.withExamples([
    { command: "trigate info candles BTC 1h --from 7d --out csv > btc.csv" },
    { command: "source <(trigate --completions bash)", description: "Complete commands and flags in this shell" }
  ])
)

// neither a wizard nor log levels: nothing here asks back or logs
const config = CliConfig.make({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })

// what is no terminal takes lines of any length
const width = Terminal.Terminal.use(({ columns }) => Effect.map(columns, (count) => count > 0 ? count : Infinity))

/** Runs a command line; a failure has been told on standard error when it comes out. */
export const run = Effect.fnUntraced(
  function*(args: ReadonlyArray<string>) {
    return yield* Command.runWith(command, { version: yield* Version.read })(args)
  },
  Effect.tapCause(Report.failure),
  Effect.provideService(CliConfig.CliConfig, config),
  Effect.provideServiceEffect(CliOutput.Presenter, Effect.map(width, Report.presenter))
)
