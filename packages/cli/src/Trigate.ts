/** The command line `trigate`, over whatever files, environment and streams it is given. */
import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Schema from "effect/Schema"
import * as Terminal from "effect/Terminal"
import * as ActionCommands from "./ActionCommands.ts"
import * as ActionLogCommand from "./ActionLogCommand.ts"
import * as ExitCode from "./ExitCode.ts"
import * as GatewayCommands from "./GatewayCommands.ts"
import * as MultiSigCommand from "./MultiSigCommand.ts"
import * as ReadCommands from "./ReadCommands.ts"
import * as Report from "./Report.ts"

const command = Command.make("trigate").pipe(
  Command.withDescription(`Ask a Trigate gateway, sign actions and send them through it, or run one.

  Commands that ask or send take --gateway URL (else TRIGATE_GATEWAY_URL, else http://127.0.0.1:8080) and --json.
  Commands that sign read the private key from TRIGATE_PRIVATE_KEY, --key-env NAME or --key-file PATH.

  Data goes to standard output, everything else to standard error. Exit codes:
${ExitCode.text.replace(/^/gmu, "  ")}`),
  Command.withSubcommands([
    { group: "READ", commands: [ReadCommands.info, ReadCommands.evm, ReadCommands.token, ReadCommands.receipt] },
    {
      group: "SIGN AND SEND",
      commands: [ActionCommands.delegate, ActionCommands.undelegate, ActionCommands.bigBlocks, MultiSigCommand.command]
    },
    { group: "GATEWAY", commands: [GatewayCommands.serve, GatewayCommands.inspect, ActionLogCommand.command] }
  ]),
  Command.withExamples([
    { command: "trigate info candles BTC 1h --from 7d --out csv > btc.csv" },
    { command: "source <(trigate --completions bash)", description: "Complete commands and flags in this shell" }
  ])
)

// no wizard and no log levels: the commands neither ask back nor log
const config = CliConfig.make({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })

// without a terminal, lines may have any length
const width = Terminal.Terminal.use(({ columns }) => Effect.map(columns, (count) => count > 0 ? count : Infinity))

const decodeManifest = Schema.decodeEffect(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))

/** The version of this package. */
const readVersion = FileSystem.FileSystem.use((files) => files.readFileString(`${import.meta.dirname}/../package.json`))
  .pipe(Effect.flatMap(decodeManifest), Effect.map(({ version }) => version), Effect.orDie)

/** Runs a command line. A failure has already been printed on standard error. */
export const run = Effect.fnUntraced(
  function*(args: ReadonlyArray<string>) {
    return yield* Command.runWith(command, { version: yield* readVersion })(args)
  },
  Effect.tapCause(Report.failure),
  Effect.provideService(CliConfig.CliConfig, config),
  Effect.provideServiceEffect(CliOutput.Presenter, Effect.map(width, Report.presenter))
)
