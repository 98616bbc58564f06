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
      const { code, stderr, stdout } = yield* run(["inspect", "--json", yield* fileWith(JSON.stringify(yield* signed))])
      assert.deepStrictEqual([code, stderr], [0, ""])
      const seen: unknown = JSON.parse(stdout)
      assert.deepInclude(seen, { actionType: "evmUserModify", form: "wire", network: "mainnet", scheme: "l1" })
      assert.include(stdout, `"signer": "${keys.trader.address}"`)
      assert.include(stdout, "\"inWindow\": true")
    }))

  it.live("reads the signature for the network that is named, from standard input", () =>
    Effect.gen(function*() {
      const { stdout } = yield* run(["inspect", "--json", "--network", "testnet", "-"], {
        stdin: JSON.stringify(yield* signed)
      })
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
      const { code, stdout } = yield* run(args, { stdin })
      assert.strictEqual(code, 0)
      assert.match(stdout, /^verdict {2}The signature is by 0x\w+, but it is signed for mainnet/u)
      const seen: unknown = JSON.parse((yield* run(["inspect", "--json", ...args.slice(1)], { stdin })).stdout)
      assert.deepNestedInclude(seen, {
        "diagnosis.mistakes": [{ mistake: "otherNetwork", path: [], found: "mainnet", expected: "testnet" }]
      })
    }))

  it.live("says in five lines what to change and what to sign", () =>
    Effect.gen(function*() {
      const order = { a: 1, b: true, p: "2000.0", s: "1", r: false, t: { limit: { tif: "Gtc" } } }
      const action = { type: "order", grouping: "na", orders: [order] }
      const body = { action, nonce: 1_705_234_567_890, signature: { r: "0x1", s: "0x1", v: 0 } }
      const { code, stderr, stdout } = yield* run(["inspect", "-"], { stdin: JSON.stringify(body) })
      assert.deepStrictEqual([code, stderr], [0, ""])
      const [verdict, what, signer, change, sign, ...rest] = stdout.split("\n")
      assert.deepStrictEqual(rest, [""])
      assert.match(
        verdict ?? "",
        /^verdict {2}The signature is by 0x[0-9a-f]{40}, but action\.orders\.0\.p has a trailing zero: /u
      )
      assert.match(verdict ?? "", /, and signature\.v is 0: send 27$/u)
      assert.strictEqual(
        what,
        "action   order (l1) for mainnet, nonce 1705234567890, outside of the window"
      )
      assert.match(signer ?? "", /^signer {3}0x[0-9a-f]{40}, over 0x[0-9a-f]{64}$/u)
      assert.strictEqual(
        change,
        `change   action: type, grouping, orders -> type, orders, grouping; action.orders.0.p: "2000.0" -> "2000"`
      )
      assert.match(sign ?? "", /^sign {5}Agent in Exchange, chain id 1337: source "a", connectionId "0x[0-9a-f]{64}"$/u)
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
