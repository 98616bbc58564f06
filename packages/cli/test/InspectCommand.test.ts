import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { fileWith, run } from "./run.ts"

const signed = Effect.flatMap(
  Clock.currentTimeMillis,
  (nonce) => SandboxSigner.signAction(keys.trader, { nonce, action: { type: "evmUserModify", usingBigBlocks: true } })
)

describe("trigate inspect", () => {
  it.live("says who signed a body", () =>
    Effect.gen(function*() {
      const { code, stderr, stdout } = yield* run(["inspect", yield* fileWith(JSON.stringify(yield* signed))])
      assert.deepStrictEqual([code, stderr], [0, ""])
      const seen: unknown = JSON.parse(stdout)
      assert.deepInclude(seen, { actionType: "evmUserModify", form: "wire", network: "mainnet", scheme: "l1" })
      assert.include(stdout, `"signer": "${keys.trader.address}"`)
      assert.include(stdout, "\"inWindow\": true")
    }))

  it.live("reads the signature for the network that is named, from standard input", () =>
    Effect.gen(function*() {
      const { stdout } = yield* run(["inspect", "--network", "testnet", "-"], { stdin: JSON.stringify(yield* signed) })
      const seen: unknown = JSON.parse(stdout)
      assert.strictEqual(JsonParts.at(seen, "network"), "testnet")
      assert.notStrictEqual(JsonParts.at(seen, "outer", "signer"), keys.trader.address)
      assert.deepNestedInclude(seen, {
        "otherNetwork.network": "mainnet",
        "otherNetwork.signer": keys.trader.address
      })
    }))

  it.live("names the mistake where another should have signed", () =>
    Effect.gen(function*() {
      const stdin = JSON.stringify(yield* signed)
      const args = ["inspect", "--network", "testnet", "--expected-signer", keys.trader.address, "-"]
      assert.include((yield* run(args, { stdin })).stdout, "\"diagnosis\"")
    }))

  it.live("ends in one line and a failure when there is nothing to inspect", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* run(["inspect", "/nowhere/body.json"]), {
        code: 2,
        stdout: "",
        stderr: "trigate: /nowhere/body.json cannot be read\n"
      })
      assert.deepStrictEqual(yield* run(["inspect", "-"], { stdin: "{}" }), {
        code: 2,
        stdout: "",
        stderr: "trigate: Standard input: action: Missing key\n"
      })
    }))
})
