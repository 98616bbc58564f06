/** The leader: collects the approvals, signs the wrapper with the key in `PRIVATE_KEY` and sends it to `GATEWAY_URL`. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Connection from "@trigate/client/Connection"
import * as Exchange from "@trigate/client/Exchange"
import * as MultiSigProposal from "@trigate/signing/multisig/MultiSigProposal"
import * as Signer from "@trigate/signing/Signer"
import { Config, Console, Effect, FileSystem, Layer } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"

const program = Effect.gen(function*() {
  const files = yield* FileSystem.FileSystem
  const [proposalFile = "proposal.json", ...approvalFiles] = process.argv.slice(2)
  const proposal = yield* Effect.flatMap(files.readFileString(proposalFile), MultiSigProposal.fromJson)
  const approvals = yield* Effect.forEach(
    approvalFiles,
    (file) => Effect.flatMap(files.readFileString(file), MultiSigProposal.approvalFromJson)
  )
  const signed = yield* MultiSigProposal.assemble(proposal, approvals, yield* Signer.Signer)
  const { response, status } = yield* Exchange.submit(signed)
  yield* Console.log(JSON.stringify({ status, response }))
})

const signer = Layer.unwrap(Effect.map(Config.Redacted("PRIVATE_KEY"), Signer.layerPrivateKey))

const gateway = Connection.layerConfig({
  baseUrl: Config.withDefault(Config.String("GATEWAY_URL"), "http://127.0.0.1:8080")
}).pipe(Layer.provide(FetchHttpClient.layer))

NodeRuntime.runMain(Effect.provide(program, [signer, gateway, NodeFileSystem.layer]))
