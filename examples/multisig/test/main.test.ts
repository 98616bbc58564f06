import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { Effect, FileSystem } from "effect"
import { join } from "node:path"
import * as Process from "../src/Process.ts"

describe("a three-of-five multi-sig across processes", () => {
  it.live("ends at the co-signer when the proposal was altered on its way, and at the leader below the threshold", () =>
    Effect.gen(function*() {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      const proposalFile = join(folder, "proposal.json")
      const proposal = yield* Process.run("propose", [])
      yield* files.writeFileString(proposalFile, proposal)
      const approval = yield* Process.run("approve", [proposalFile], { PRIVATE_KEY: keys.cosigner.privateKey })
      const approvalFile = join(folder, "approval.json")
      yield* files.writeFileString(approvalFile, approval)
      const few = yield* Effect.flip(
        Process.run("send", [proposalFile, approvalFile, approvalFile], { PRIVATE_KEY: keys.leader.privateKey })
      )
      assert.include(few, "1 of 3 required co-signers have approved")
      yield* files.writeFileString(proposalFile, proposal.replaceAll("150000000", "950000000"))
      const altered = yield* Effect.flip(
        Process.run("approve", [proposalFile], { PRIVATE_KEY: keys.cosigner.privateKey })
      )
      assert.include(altered, "The proposal claims the digest")
      assert.notInclude(altered + few, keys.cosigner.privateKey.slice(2))
    }).pipe(Effect.provide(NodeFileSystem.layer)))
})
