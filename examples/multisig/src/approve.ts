/** A co-signer: shows what a proposal does, signs it with the key in `PRIVATE_KEY` and prints the approval. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as MultiSigProposal from "@trigate/signing/multisig/MultiSigProposal"
import * as Signer from "@trigate/signing/Signer"
import { Config, Console, Effect, FileSystem, Layer } from "effect"

const program = Effect.gen(function*() {
  const files = yield* FileSystem.FileSystem
  // everything but the terms is derived again: neither the digest nor the summary is the proposer's word
  const proposal = yield* Effect.flatMap(
    files.readFileString(process.argv[2] ?? "proposal.json"),
    MultiSigProposal.fromJson
  )
  // a person reads this before the key is asked; it goes to stderr, so that stdout is the approval alone
  yield* Effect.forEach(proposal.summary, (sentence) => Console.error(sentence))
  const approval = yield* MultiSigProposal.approve(proposal, yield* Signer.Signer)
  yield* Console.log(MultiSigProposal.approvalToJson(approval))
})

const signer = Layer.unwrap(Effect.map(Config.Redacted("PRIVATE_KEY"), Signer.layerPrivateKey))

NodeRuntime.runMain(Effect.provide(program, [signer, NodeFileSystem.layer]))
