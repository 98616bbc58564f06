/** `trigate multisig`: collects the signatures of several keys for one account. */
import * as MultiSigApproval from "@trigate/signing/MultiSigApproval"
import * as MultiSigProposal from "@trigate/signing/MultiSigProposal"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as Input from "./Input.ts"
import * as KeyOption from "./KeyOption.ts"
import * as MultiSigProposeCommand from "./MultiSigProposeCommand.ts"
import * as Save from "./Save.ts"
import * as SignedSending from "./SignedSending.ts"
import { UsageFault } from "./UsageFault.ts"

const isMalformed = Schema.is(MultiSigProposal.MultiSigMalformed)

const proposal = Argument.String("proposal").pipe(
  Argument.withDescription("File with the proposal; - reads standard input")
)

/** Reads a document; what is none is told with the name of its file, since there are several. */
const readAt = <A, E extends { readonly _tag: string; readonly message: string }>(
  path: string,
  read: (text: string) => Effect.Effect<A, E | MultiSigProposal.MultiSigMalformed>
) =>
  Effect.flatMap(
    Input.text(path),
    (text) =>
      Effect.catchIf(read(text), isMalformed, ({ message }) =>
        new UsageFault({ message: `${Input.nameOf(path)}: ${message}` }))
  )

const proposalAt = (path: string) => readAt(path, MultiSigProposal.fromJson)

const approve = Command.make(
  "approve",
  { proposal, ...KeyOption.flags, save: Save.flag },
  Effect.fnUntraced(function*({ keyEnv, keyFile, proposal, save }) {
    const read = yield* proposalAt(proposal)
    // a person reads this before the key is asked
    yield* Effect.forEach(read.summary, (sentence) => Console.error(sentence), { discard: true })
    const signer = yield* KeyOption.signer({ keyEnv, keyFile })
    const approval = yield* MultiSigApproval.approve(read, signer)
    yield* Console.error(`trigate: approved by ${approval.signer}`)
    yield* Save.save(save, MultiSigApproval.toJson(approval))
  })
).pipe(
  Command.withDescription("Show what a proposal does, sign it with a co-signer's key, print the approval"),
  Command.withShortDescription("Sign a proposal with a co-signer's key"),
  Command.withExamples([{
    command: "trigate multisig approve proposal.json --key-file key.txt --save approval-1.json"
  }])
)

const submit = Command.make(
  "submit",
  {
    proposal,
    approvals: Argument.String("approval").pipe(
      Argument.variadic({ min: 1 }),
      Argument.withDescription("Files with the approvals, in any order")
    ),
    ...KeyOption.flags,
    dryRun: SignedSending.dryRun
  },
  Effect.fnUntraced(function*({ approvals, dryRun, keyEnv, keyFile, proposal }) {
    const read = yield* proposalAt(proposal)
    const collected = yield* Effect.forEach(
      approvals,
      (path) => readAt(path, MultiSigApproval.fromJson)
    )
    yield* SignedSending.run(
      { dryRun, network: read.network, keyEnv, keyFile },
      (leader) =>
        Effect.map(
          MultiSigApproval.assemble(read, collected, leader),
          (body) => ({ body, signer: leader.address, says: read.summary })
        )
    )
  })
).pipe(
  Command.withDescription("Assemble a proposal and its approvals, sign with the leader's key, send it"),
  Command.withExamples([
    { command: "trigate multisig submit proposal.json approval-1.json approval-2.json --key-file leader.txt" }
  ]),
  GatewayAccess.options
)

/** The command. */
export const command = Command.make("multisig").pipe(
  Command.withDescription("Act for a multi-sig account: propose, approve on each co-signer's machine, submit"),
  Command.withSubcommands([MultiSigProposeCommand.command, approve, submit]),
  Command.provide(Secp256k1.layer)
)
