/** `trigate delegate` and `trigate undelegate`: stake of the trading chain. */
import type { Address } from "@trigate/domain/Hex"
import * as ActionBuilder from "@trigate/signing/ActionBuilder"
import * as Hype from "@trigate/signing/Hype"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as ActionSigning from "./ActionSigning.ts"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as KeyOption from "./KeyOption.ts"
import * as Params from "./Params.ts"
import * as SignedSending from "./SignedSending.ts"

/** The validator and the amount, as every command about stake takes them. */
export const stakeArguments = {
  validator: Params.address("validator").pipe(Argument.withDescription("Validator: 20 bytes in hex")),
  wei: Argument.String("amount").pipe(
    Argument.filterMap(
      (text) => Option.filter(Result.getSuccess(Hype.weiFromHype(text)), (wei) => wei > 0n),
      () => "an amount of HYPE above 0 with up to 8 decimals, such as 1.5"
    ),
    Argument.withDescription("HYPE with up to 8 decimals: 1.5 is 150000000 wei")
  )
}

interface StakeCommand {
  readonly name: "delegate" | "undelegate"
  readonly description: string
  readonly says: (amount: string, validator: Address) => string
}

const make = ({ description, name, says }: StakeCommand) => {
  const build = name === "delegate" ? ActionBuilder.delegate : ActionBuilder.undelegate
  return Command.make(
    name,
    { ...stakeArguments, network: Params.network, ...KeyOption.flags, dryRun: SignedSending.dryRun },
    ({ dryRun, keyEnv, keyFile, network, validator, wei }) =>
      SignedSending.run(
        { dryRun, network, keyEnv, keyFile },
        ActionSigning.sign({
          network,
          body: (nonce) => build(SignedSending.profileOf(network), { validator, wei, nonce }),
          says: says(`${Hype.hypeFromWei(wei)} HYPE (${wei} wei)`, validator)
        })
      )
  ).pipe(
    Command.withDescription(description),
    Command.withExamples([
      { command: `trigate ${name} 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 1.5 --key-file key.txt` },
      {
        command: `trigate ${name} 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 1.5 --dry-run > body.json`,
        description: "Sign with the key in TRIGATE_PRIVATE_KEY and send nothing"
      }
    ]),
    Command.provide(ActionSigning.layer),
    GatewayAccess.options
  )
}

/** `trigate delegate`. */
export const delegate = make({
  name: "delegate",
  description: "Delegate stake to a validator",
  says: (amount, validator) => `delegates ${amount} to the validator ${validator}`
})

/** `trigate undelegate`. */
export const undelegate = make({
  name: "undelegate",
  description: "Take stake back from a validator; it was delegated for a day at least",
  says: (amount, validator) => `takes ${amount} back from the validator ${validator}`
})
