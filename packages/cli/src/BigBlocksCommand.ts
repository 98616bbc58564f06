/** `trigate big-blocks`: which blocks an account's EVM transactions go to. */
import * as ActionBuilder from "@trigate/signing/ActionBuilder"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as ActionSigning from "./ActionSigning.ts"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as KeyOption from "./KeyOption.ts"
import * as Params from "./Params.ts"
import * as SignedSending from "./SignedSending.ts"

/** `on` or `off`. */
export const stateArgument = Argument.Literals("state", ["on", "off"]).pipe(
  Argument.withDescription("on: big blocks, one a minute of 30M gas; off: small blocks, one a second of 3M gas")
)

/** The command. */
export const command = Command.make(
  "big-blocks",
  { state: stateArgument, network: Params.network, ...KeyOption.flags, dryRun: SignedSending.dryRun },
  ({ dryRun, keyEnv, keyFile, network, state }) =>
    SignedSending.run(
      { dryRun, network, keyEnv, keyFile },
      ActionSigning.sign({
        network,
        body: (nonce) =>
          (state === "on" ? ActionBuilder.useBigBlocks : ActionBuilder.useSmallBlocks)(
            SignedSending.profileOf(network),
            {
              nonce
            }
          ),
        says: `chooses ${state === "on" ? "big" : "small"} blocks for its EVM transactions`
      })
    )
).pipe(
  Command.withDescription("Send an account's EVM transactions to big or to small blocks; stays until changed"),
  Command.withExamples([{ command: "trigate big-blocks on --key-file key.txt" }]),
  Command.provide(ActionSigning.layer),
  GatewayAccess.options
)
