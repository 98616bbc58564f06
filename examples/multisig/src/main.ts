/** Plays all parts against a sandbox gateway, each as a process of its own that knows its own key only. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { keys, type TestKey } from "@trigate/sandbox/SandboxExamples"
import { Config, Console, Effect, FileSystem } from "effect"
import { join } from "node:path"
import * as Process from "./Process.ts"

const program = Effect.gen(function*() {
  const files = yield* FileSystem.FileSystem
  const gateway = yield* Config.withDefault(Config.String("GATEWAY_URL"), "http://127.0.0.1:8080")
  const folder = yield* files.makeTempDirectoryScoped()

  const proposalFile = join(folder, "proposal.json")
  yield* files.writeFileString(proposalFile, yield* Process.run("propose", []))

  const approve = Effect.fnUntraced(function*({ address, privateKey }: TestKey) {
    const file = join(folder, `approval-${address}.json`)
    yield* files.writeFileString(file, yield* Process.run("approve", [proposalFile], { PRIVATE_KEY: privateKey }))
    yield* Console.log(`approved by ${address}`)
    return file
  })
  const approvers = [keys.fifthCosigner, keys.cosigner, keys.thirdCosigner]
  const approvalFiles = yield* Effect.forEach(approvers, approve)

  const answer = yield* Process.run("send", [proposalFile, ...approvalFiles], {
    PRIVATE_KEY: keys.leader.privateKey,
    GATEWAY_URL: gateway
  })
  yield* Console.log(`the venue: ${answer.trim()}`)
})

NodeRuntime.runMain(Effect.provide(Effect.scoped(program), NodeFileSystem.layer))
