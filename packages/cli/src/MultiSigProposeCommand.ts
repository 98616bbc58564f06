/** `trigate multisig propose`: what the co-signers are asked to sign. No key is needed. */
import * as JsonText from "@trigate/domain/JsonText"
import * as MultiSigProposal from "@trigate/signing/MultiSigProposal"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { stateArgument } from "./BigBlocksCommand.ts"
import * as Input from "./Input.ts"
import * as Params from "./Params.ts"
import * as Save from "./Save.ts"
import * as SignedSending from "./SignedSending.ts"
import { stakeArguments } from "./StakeCommands.ts"
import { UsageFault } from "./UsageFault.ts"

const terms = {
  account: Params.addressFlag("account").pipe(Flag.withDescription("The multi-sig account that acts (required)")),
  leader: Params.addressFlag("leader").pipe(Flag.withDescription("Who sends it, and whose nonce counts (required)")),
  threshold: Params.countFlag("threshold", 10).pipe(
    Flag.optional,
    Flag.withDescription("How many co-signers the account asks for, 1 to 10; unset: not checked here")
  ),
  cosigner: Params.addressFlag("cosigner").pipe(
    Flag.between(0, 10),
    Flag.withDescription("An authorized user of the account; once for each of them; unset: not checked here")
  ),
  nonce: Params.millisFlag("nonce").pipe(
    Flag.optional,
    Flag.withDescription("Milliseconds that the leader has not used (default: now); it gives co-signers two days")
  ),
  network: Params.network,
  save: Save.flag
}

const example = (args: string) =>
  Command.withExamples([{
    command: `trigate multisig propose ${args} --save proposal.json \\\n` +
      "    --account 0x90f79bf6eb2c4f870365e785982e1f101e93b906 --leader 0x15d34aaf54267db7d7c367839aaf71a00a2c6a65"
  }])

type Terms = Command.Command.Config.Infer<typeof terms>

type Action = MultiSigProposal.ProposalRequest["action"]

const propose = Effect.fnUntraced(function*<E, R>(given: Terms, make: (nonce: number) => Effect.Effect<Action, E, R>) {
  const now = yield* Clock.currentTimeMillis
  const nonce = Option.getOrElse(given.nonce, () => now)
  const proposal = yield* MultiSigProposal.propose({
    network: given.network,
    multiSigUser: given.account,
    outerSigner: given.leader,
    nonce,
    action: yield* make(nonce),
    ...Option.match(given.threshold, { onNone: () => ({}), onSome: (threshold) => ({ threshold }) }),
    ...(given.cosigner.length === 0 ? {} : { authorizedUsers: given.cosigner })
  })
  yield* Effect.forEach(proposal.summary, (sentence) => Console.error(sentence), { discard: true })
  yield* Save.save(given.save, yield* MultiSigProposal.toJson(proposal))
})

const stake = (name: "delegate" | "undelegate", description: string) =>
  Command.make(name, { ...stakeArguments, ...terms }, (given) =>
    propose(given, (nonce) => {
      const { chainField, chainName } = SignedSending.profileOf(given.network)
      return Effect.succeed({
        type: "tokenDelegate",
        signatureChainId: "0x66eee",
        [chainField]: chainName,
        validator: given.validator,
        wei: given.wei,
        isUndelegate: name === "undelegate",
        nonce
      })
    })).pipe(Command.withDescription(description), example(`${name} 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 1.5`))

const bigBlocks = Command.make(
  "big-blocks",
  { state: stateArgument, ...terms },
  (given) => propose(given, () => Effect.succeed({ type: "evmUserModify", usingBigBlocks: given.state === "on" }))
).pipe(
  Command.withDescription("Propose to send the account's EVM transactions to big or to small blocks"),
  example("big-blocks on")
)

const readAction = Schema.decodeUnknownOption(
  Schema.StructWithRest(Schema.Struct({ type: Schema.String }), [Schema.Record(Schema.String, Schema.Unknown)])
)

const actionAt = Effect.fnUntraced(function*(path: string) {
  const text = yield* Input.text(path)
  return yield* Effect.fromOption(
    Option.flatMap(Result.getSuccess(JsonText.parseStrict(text)), (parsed) => readAction(parsed)),
    () =>
      new UsageFault({
        message: `${Input.nameOf(path)} holds no action: a JSON object with a type`
      })
  )
})

const action = Command.make(
  "action",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription("JSON object with a type, members in the venue's order; - reads standard input")
    ),
    ...terms
  },
  (given) => propose(given, () => actionAt(given.file))
).pipe(
  Command.withDescription("Propose any action of the venue; a nonce or time in it has to be that of --nonce"),
  example("action action.json")
)

/** The command. */
export const command = Command.make("propose").pipe(
  Command.withDescription("Write a proposal for the co-signers; needs no key"),
  Command.withSubcommands([
    stake("delegate", "Propose to delegate stake to a validator"),
    stake("undelegate", "Propose to take stake back from a validator"),
    bigBlocks,
    action
  ]),
  example("delegate 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 1.5")
)
