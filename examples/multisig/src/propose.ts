/** The proposer, who holds no key: prints a proposal for the co-signers. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as MultiSigProposal from "@trigate/signing/multisig/MultiSigProposal"
import { Clock, Console, Effect } from "effect"

const { cosigner, fifthCosigner, fourthCosigner, leader, thirdCosigner, treasury, validator } = keys

const program = Effect.gen(function*() {
  const nonce = yield* Clock.currentTimeMillis
  const proposal = yield* MultiSigProposal.propose({
    network: "mainnet",
    multiSigUser: treasury.address,
    outerSigner: leader.address,
    nonce,
    action: {
      type: "tokenDelegate",
      signatureChainId: "0x66eee",
      hyperliquidChain: "Mainnet",
      validator: validator.address,
      wei: 150_000_000n,
      isUndelegate: false,
      nonce
    },
    threshold: 3,
    authorizedUsers: [leader, cosigner, thirdCosigner, fourthCosigner, fifthCosigner].map(({ address }) => address)
  })
  yield* Console.log(yield* MultiSigProposal.toJson(proposal))
})

NodeRuntime.runMain(program)
