/** `trigate delegate`, `undelegate` and `big-blocks`: one action, signed with one key. */
import type { AnySignedAction } from "@trigate/domain/actions/SignedAction"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Hype from "@trigate/signing/Hype"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import { profileFor, Venue } from "@trigate/signing/VenueProfile"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Input from "../Input.ts"
import * as SignedSending from "../SignedSending.ts"

/** An action to sign: the body for a nonce, and a description of its effect ("delegates 1.5 HYPE"). */
export interface Unsigned {
  readonly body: (nonce: number) => Effect.Effect<AnySignedAction, ActionBuilder.BuildFailure, Signer.Signer | Venue>
  readonly does: string
}

/** Signs the action that `prepare` returns, with a new nonce, and sends it once. */
export const signAndSend = <E, R>(
  options: SignedSending.Options,
  prepare: (signer: Signer.Signer["Service"]) => Effect.Effect<Unsigned, E, R>
) =>
  SignedSending.run(
    options,
    Effect.fnUntraced(function*(signer) {
      const { body, does } = yield* prepare(signer)
      const nonce = yield* NonceSource.NonceSource.use((nonces) => nonces.next(signer.address))
      return {
        body: yield* body(nonce).pipe(
          Effect.provideService(Signer.Signer, signer),
          Effect.provideService(Venue, profileFor(options.network))
        ),
        signer: signer.address,
        says: [`On ${options.network}, ${signer.address} ${does}, nonce ${nonce}.`]
      }
    })
  )

/** Provides nonces and signatures. Each call returns a new layer with a separate `NonceSource`. */
export const layer = () => Layer.merge(Secp256k1.layer, NonceSource.layerMemory())

/** The arguments of a command that moves stake. */
export const stakeArguments = {
  validator: Input.address("validator").pipe(Argument.withDescription("Validator: 20 bytes in hex")),
  wei: Argument.String("amount").pipe(
    Argument.filterMap(
      (text) => Option.filter(Result.getSuccess(Hype.weiFromHype(text)), (wei) => wei > 0n),
      () => "an amount of HYPE above 0 with up to 8 decimals, such as 1.5"
    ),
    Argument.withDescription("HYPE with up to 8 decimals: 1.5 is 150000000 wei")
  )
}

const stakeCommand = (
  name: "delegate" | "undelegate",
  description: string,
  does: (amount: string, validator: string) => string
) => {
  const build = name === "delegate" ? ActionBuilder.delegate : ActionBuilder.undelegate
  const example = `trigate ${name} 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 1.5`
  return Command.make(
    name,
    { ...stakeArguments, network: Input.network, ...SignedSending.flags },
    ({ validator, wei, ...options }) =>
      signAndSend(options, () =>
        Effect.succeed({
          body: (nonce) => build({ validator, wei, nonce }),
          does: does(`${Hype.hypeFromWei(wei)} HYPE (${wei} wei)`, validator)
        }))
  ).pipe(
    Command.withDescription(description),
    Command.withExamples([
      { command: `${example} --key-file key.txt` },
      {
        command: `${example} --dry-run > body.json`,
        description: "Sign with the key in TRIGATE_PRIVATE_KEY and send nothing"
      }
    ]),
    Command.provide(layer),
    GatewayAccess.options
  )
}

/** `trigate delegate`. */
export const delegate = stakeCommand(
  "delegate",
  "Delegate stake to a validator",
  (amount, validator) => `delegates ${amount} to the validator ${validator}`
)

/** `trigate undelegate`. */
export const undelegate = stakeCommand(
  "undelegate",
  "Undelegate stake from a validator, one day after the delegation at the earliest",
  (amount, validator) => `undelegates ${amount} from the validator ${validator}`
)

/** `on` or `off`. */
export const stateArgument = Argument.Literals("state", ["on", "off"]).pipe(
  Argument.withDescription("on: big blocks (one per minute, 30M gas); off: small blocks (one per second, 3M gas)")
)

/** `trigate big-blocks`. */
export const bigBlocks = Command.make(
  "big-blocks",
  { state: stateArgument, network: Input.network, ...SignedSending.flags },
  ({ state, ...options }) => {
    const build = state === "on" ? ActionBuilder.useBigBlocks : ActionBuilder.useSmallBlocks
    return signAndSend(options, () =>
      Effect.succeed({
        body: (nonce) => build({ nonce }),
        does: `chooses ${state === "on" ? "big" : "small"} blocks for its EVM transactions`
      }))
  }
).pipe(
  Command.withDescription(
    "Send an account's EVM transactions to big or small blocks, until the setting is changed again"
  ),
  Command.withExamples([{ command: "trigate big-blocks on --key-file key.txt" }]),
  Command.provide(layer),
  GatewayAccess.options
)
