/** `trigate multisig`: collects the co-signers' signatures for a multi-sig account, and sends the action. */
import * as Json from "@trigate/domain/encoding/Json"
import { openStruct } from "@trigate/domain/encoding/OpenStruct"
import { stakeAction } from "@trigate/signing/actions/ActionBuilder"
import * as MultiSigApproval from "@trigate/signing/multisig/MultiSigApproval"
import * as MultiSigProposal from "@trigate/signing/multisig/MultiSigProposal"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import { profileFor } from "@trigate/signing/VenueProfile"
import * as BodyNormalization from "@trigate/trading/admission/BodyNormalization"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Input from "../Input.ts"
import * as Output from "../Output.ts"
import * as SignedSending from "../SignedSending.ts"
import { stakeArguments, stateArgument } from "./ActionCommands.ts"

const terms = {
  account: Input.addressFlag("account").pipe(Flag.withDescription("The multi-sig account (required)")),
  leader: Input.addressFlag("leader").pipe(
    Flag.withDescription("The leader, who sends the action with the leader's own nonce (required)")
  ),
  threshold: Input.countFlag("threshold", 10).pipe(
    Flag.optional,
    Flag.withDescription("Number of approvals that the account requires, 1 to 10 (default: not checked)")
  ),
  cosigner: Input.addressFlag("cosigner").pipe(
    Flag.between(0, 10),
    Flag.withDescription(
      "Address that is allowed to co-sign; repeat the flag for each co-signer (default: any address)"
    )
  ),
  nonce: Input.millisFlag("nonce").pipe(
    Flag.optional,
    Flag.withDescription(
      "A nonce that the leader has not used (default: now). The venue accepts it for two days"
    )
  ),
  network: Input.network,
  save: Output.saveFlag
}

const example = (args: string) =>
  Command.withExamples([{
    command: `trigate multisig propose ${args} --save proposal.json \\\n` +
      "    --account 0x90f79bf6eb2c4f870365e785982e1f101e93b906 --leader 0x15d34aaf54267db7d7c367839aaf71a00a2c6a65"
  }])

type Terms = Command.Command.Config.Infer<typeof terms>

type Action = MultiSigProposal.ProposalRequest["action"]

const writeProposal = Effect.fnUntraced(function*<E, R>(
  given: Terms,
  make: (nonce: number) => Effect.Effect<Action, E, R>
) {
  const now = yield* Clock.currentTimeMillis
  const nonce = Option.getOrElse(given.nonce, () => now)
  const action = yield* make(nonce)
  const proposal = yield* MultiSigProposal.propose({
    network: given.network,
    multiSigUser: given.account,
    outerSigner: given.leader,
    nonce,
    action,
    ...Option.match(given.threshold, { onNone: () => ({}), onSome: (threshold) => ({ threshold }) }),
    ...(given.cosigner.length === 0 ? {} : { authorizedUsers: given.cosigner })
  })
  yield* Output.printNotes([
    ...proposal.summary,
    ...BodyNormalization.ofAction(profileFor(given.network), action).map((sentence) => `Before you sign: ${sentence}.`)
  ])
  yield* Output.save(given.save, yield* MultiSigProposal.toJson(proposal))
})

const proposeStake = (name: "delegate" | "undelegate", description: string) =>
  Command.make(name, { ...stakeArguments, ...terms }, (given) =>
    writeProposal(given, (nonce) => {
      const { network, validator, wei } = given
      return Effect.succeed(stakeAction(profileFor(network), name === "undelegate", { validator, wei, nonce }))
    })).pipe(Command.withDescription(description), example(`${name} 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 1.5`))

const proposeBigBlocks = Command.make(
  "big-blocks",
  { state: stateArgument, ...terms },
  (given) => writeProposal(given, () => Effect.succeed({ type: "evmUserModify", usingBigBlocks: given.state === "on" }))
).pipe(
  Command.withDescription("Propose to send the account's EVM transactions to big or small blocks"),
  example("big-blocks on")
)

const readAction = Schema.decodeUnknownOption(openStruct({ type: Schema.String }))

const actionAt = Effect.fnUntraced(function*(path: string) {
  const text = yield* Input.text(path)
  return yield* Effect.fromOption(
    Option.flatMap(Result.getSuccess(Json.parseStrict(text)), (parsed) => readAction(parsed)),
    () => Input.fault(`${Input.displayName(path)} does not contain an action: expected a JSON object with a type`)
  )
})

const proposeAction = Command.make(
  "action",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription(
        "File with the action: a JSON object with a type, members in the venue's order; - for standard input"
      )
    ),
    ...terms
  },
  (given) => writeProposal(given, () => actionAt(given.file))
).pipe(
  Command.withDescription("Propose any action of the venue; a nonce or time in the action must equal --nonce"),
  example("action action.json")
)

const propose = Command.make("propose").pipe(
  Command.withDescription("Write a proposal for the co-signers; needs no key"),
  Command.withSubcommands([
    proposeStake("delegate", "Propose to delegate stake to a validator"),
    proposeStake("undelegate", "Propose to undelegate stake from a validator"),
    proposeBigBlocks,
    proposeAction
  ]),
  example("delegate 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 1.5")
)

const proposalArgument = Argument.String("proposal").pipe(
  Argument.withDescription("File with the proposal; - for standard input")
)

/** Reads one of several files; adds the file's name to an error about its content. */
const readAt = <A, E extends { readonly _tag: string; readonly message: string }>(
  path: string,
  read: (text: string) => Effect.Effect<A, E | MultiSigProposal.MultiSigMalformed>
) =>
  Effect.flatMap(Input.text(path), (text) =>
    Effect.catchIf(
      read(text),
      Schema.is(MultiSigProposal.MultiSigMalformed),
      ({ message }) => Input.fault(`${Input.displayName(path)}: ${message}`)
    ))

const approve = Command.make(
  "approve",
  { proposal: proposalArgument, ...SignedSending.keyFlags, save: Output.saveFlag },
  Effect.fnUntraced(function*({ proposal, save, ...key }) {
    const read = yield* readAt(proposal, MultiSigProposal.fromJson)
    // printed before the key is read, so that the user can still cancel
    yield* Output.printNotes(read.summary)
    const approval = yield* MultiSigApproval.approve(read, yield* SignedSending.loadSigner(key))
    yield* Console.error(`trigate: approved by ${approval.signer}`)
    yield* Output.save(save, MultiSigApproval.toJson(approval))
  })
).pipe(
  Command.withDescription("Show the effects of a proposal, sign it with a co-signer's key, and print the approval"),
  Command.withShortDescription("Sign a proposal with a co-signer's key"),
  Command.withExamples([{
    command: "trigate multisig approve proposal.json --key-file key.txt --save approval-1.json"
  }])
)

const submit = Command.make(
  "submit",
  {
    proposal: proposalArgument,
    approvals: Argument.String("approval").pipe(
      Argument.variadic({ min: 1 }),
      Argument.withDescription("Files with the approvals, in any order")
    ),
    ...SignedSending.flags
  },
  Effect.fnUntraced(function*({ approvals, proposal, ...options }) {
    const read = yield* readAt(proposal, MultiSigProposal.fromJson)
    const collected = yield* Effect.forEach(approvals, (path) => readAt(path, MultiSigApproval.fromJson))
    yield* SignedSending.run({ ...options, network: read.network }, (leader) =>
      Effect.map(
        MultiSigApproval.assemble(read, collected, leader),
        (body) => ({ body, signer: leader.address, says: read.summary })
      ))
  })
).pipe(
  Command.withDescription("Assemble a proposal and its approvals, sign with the leader's key, send it"),
  Command.withExamples([
    { command: "trigate multisig submit proposal.json approval-1.json approval-2.json --key-file leader.txt" }
  ]),
  GatewayAccess.options
)

/** `trigate multisig`. */
export const command = Command.make("multisig").pipe(
  Command.withDescription("Act for a multi-sig account: propose, approve on each co-signer's machine, submit"),
  Command.withSubcommands([propose, approve, submit]),
  Command.provide(Secp256k1.layer)
)
