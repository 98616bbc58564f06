/** All commands of `trigate`. */
import * as Command from "effect/cli/Command"
import * as ActionCommands from "./ActionCommands.ts"
import * as ActionLogCommand from "./ActionLogCommand.ts"
import * as CandleHistoryCommand from "./CandleHistoryCommand.ts"
import * as CheckCommand from "./CheckCommand.ts"
import * as GuardCommand from "./GuardCommand.ts"
import * as InspectCommand from "./InspectCommand.ts"
import * as KeysCommand from "./KeysCommand.ts"
import * as McpCommand from "./McpCommand.ts"
import * as ReadCommands from "./ReadCommands.ts"
import * as ServeCommand from "./ServeCommand.ts"
import * as StatusCommand from "./StatusCommand.ts"
import * as WatchCommand from "./WatchCommand.ts"

/** `trigate`. */
export const command = Command.make("trigate").pipe(
  Command.withDescription(`Query a Trigate gateway, sign actions and send them through it, or run a gateway.

  Commands that query or send accept --gateway URL (default: TRIGATE_GATEWAY_URL, or http://127.0.0.1:8080) and --json.
  Commands that sign read the private key from TRIGATE_PRIVATE_KEY, --key-env NAME or --key-file PATH.

  Data is written to standard output, everything else to standard error.`),
  Command.withSubcommands([
    {
      group: "TRADE",
      commands: [WatchCommand.command, ReadCommands.positions, ActionCommands.order, ActionCommands.cancel]
    },
    { group: "READ", commands: [ReadCommands.info, ReadCommands.evm, ReadCommands.token, ReadCommands.receipt] },
    {
      group: "SIGN AND SEND",
      commands: [ActionCommands.delegate, ActionCommands.undelegate, ActionCommands.bigBlocks, ActionCommands.command]
    },
    {
      group: "GATEWAY",
      commands: [
        ServeCommand.command,
        ServeCommand.sandboxCommand,
        StatusCommand.command,
        CheckCommand.command,
        InspectCommand.command,
        GuardCommand.command,
        McpCommand.command,
        ActionLogCommand.command,
        ActionLogCommand.audit,
        KeysCommand.command,
        CandleHistoryCommand.command
      ]
    }
  ]),
  Command.withExamples([
    { command: "trigate", description: "The state of the local gateway, and what to do next" },
    { command: "trigate info candles BTC 1h --from 7d --out csv > btc.csv" },
    { command: "source <(trigate --completions bash)", description: "Complete commands and flags in this shell" }
  ])
)
