import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const cli = new URL("../src/cli.ts", import.meta.url).pathname

const trigate = (...args: ReadonlyArray<string>) =>
  Effect.callback<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>((resume) => {
    const child = spawn(process.execPath, [cli, ...args], { stdio: ["ignore", "pipe", "pipe"] })
    let stdout = ""
    let stderr = ""
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString("utf8")
    })
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString("utf8")
    })
    child.on("close", (code) => resume(Effect.succeed({ code, stdout, stderr })))
  })

const fileWith = (content: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "trigate-"))),
      (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true }))
    ),
    (folder) => {
      const file = path.join(folder, "body.json")
      fs.writeFileSync(file, content)
      return file
    }
  )

describe("trigate inspect", () => {
  it.live("says who signed a body", () =>
    Effect.gen(function*() {
      const nonce = yield* Clock.currentTimeMillis
      const signed = yield* SandboxSigner.signAction(keys.trader, {
        nonce,
        action: { type: "evmUserModify", usingBigBlocks: true }
      })
      const { code, stderr, stdout } = yield* trigate("inspect", yield* fileWith(JSON.stringify(signed)))
      assert.strictEqual(stderr, "")
      assert.strictEqual(code, 0)
      const seen: unknown = JSON.parse(stdout)
      assert.deepInclude(seen, { actionType: "evmUserModify", form: "wire", network: "mainnet", scheme: "l1" })
      assert.include(stdout, `"signer": "${keys.trader.address}"`)
      assert.include(stdout, "\"inWindow\": true")
    }).pipe(Effect.scoped))

  it.live("reads the signature for the network that is named", () =>
    Effect.gen(function*() {
      const signed = yield* SandboxSigner.signAction(keys.trader, {
        nonce: yield* Clock.currentTimeMillis,
        action: { type: "evmUserModify", usingBigBlocks: true }
      })
      const file = yield* fileWith(JSON.stringify(signed))
      const { stdout } = yield* trigate("inspect", "--network", "testnet", file)
      assert.notInclude(stdout, keys.trader.address)
    }).pipe(Effect.scoped))

  it.live("ends in one line and a failure when there is nothing to inspect", () =>
    Effect.gen(function*() {
      const missing = yield* trigate("inspect", "/nowhere/body.json")
      assert.deepStrictEqual(missing, {
        code: 1,
        stdout: "",
        stderr: "trigate: /nowhere/body.json cannot be read\n"
      })
      const empty = yield* trigate("inspect", yield* fileWith("{}"))
      assert.deepStrictEqual(empty, { code: 1, stdout: "", stderr: "trigate: action: Missing key\n" })
    }).pipe(Effect.scoped))
})
