import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as GatewayServer from "@trigate/server/GatewayServer"
import * as Settings from "@trigate/server/settings/SettingsSources"
import { ConfigProvider, Context, Effect, FileSystem, Layer } from "effect"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import { execFile } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import * as Process from "../src/Process.ts"

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

/** A gateway with its sandbox, on a free port. */
const gateway = Effect.gen(function*() {
  const settings = yield* Settings.load.pipe(Effect.provideService(
    ConfigProvider.ConfigProvider,
    ConfigProvider.fromUnknown({ TRIGATE_PORT: "0", TRIGATE_ACCESS_LOG: "off" })
  ))
  return formatAddress(Context.get(yield* Layer.build(GatewayServer.layer(settings)), HttpServer).address)
})

describe("a three-of-five multi-sig across processes", () => {
  it.live("ends in the venue's ok", () =>
    Effect.gen(function*() {
      const url = yield* gateway
      const { stdout } = yield* Effect.promise(() =>
        promisify(execFile)(process.execPath, [main], { env: { ...process.env, GATEWAY_URL: url } })
      )
      assert.deepStrictEqual(stdout.trim().split("\n"), [
        `approved by ${keys.fifthCosigner.address}`,
        `approved by ${keys.cosigner.address}`,
        `approved by ${keys.thirdCosigner.address}`,
        "the venue: {\"status\":\"ok\",\"response\":{\"type\":\"default\"}}"
      ])
    }))

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
      assert.include(few, "1 of 3 needed co-signers have approved")
      yield* files.writeFileString(proposalFile, proposal.replaceAll("150000000", "950000000"))
      const altered = yield* Effect.flip(
        Process.run("approve", [proposalFile], { PRIVATE_KEY: keys.cosigner.privateKey })
      )
      assert.include(altered, "The proposal claims the digest")
      assert.notInclude(altered + few, keys.cosigner.privateKey.slice(2))
    }).pipe(Effect.provide(NodeFileSystem.layer)))
})
