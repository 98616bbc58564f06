/** `trigate info`: queries of the trading chain. */
import * as Command from "effect/cli/Command"
import * as CandlesCommand from "./CandlesCommand.ts"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as SpotMetaCommand from "./SpotMetaCommand.ts"

/** The command. */
export const command = Command.make("info").pipe(
  Command.withDescription("Query the trading chain: pairs, tokens, bars"),
  Command.withSubcommands([SpotMetaCommand.command, CandlesCommand.command]),
  GatewayAccess.options
)
