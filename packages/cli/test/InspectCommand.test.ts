import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { gateway } from "@trigate/testing/Gateway"
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
        "action   order (l1) for mainnet, nonce 1705234567890, outside of the venue's nonce window"
      )
      assert.match(signer ?? "", /^signer {3}0x[0-9a-f]{40}, over 0x[0-9a-f]{64}$/u)
      assert.strictEqual(
        change,
        `change   action: type, grouping, orders -> type, orders, grouping; action.orders.0.p: "2000.0" -> "2000"`
      )
      assert.match(sign ?? "", /^sign {5}Agent in Exchange, chain id 1337: source "a", connectionId "0x[0-9a-f]{64}"$/u)
    }))

  it.live("breaks the lines of a narrow terminal between words, except of a digest", () =>
    Effect.gen(function*() {
      const { action, nonce, signature } = yield* signed
      const stdin = JSON.stringify({ action, nonce: nonce + 1000, signature })
      const args = ["inspect", "--expected-signer", keys.trader.address, "-"]
      const wide = yield* run(args, { stdin })
      const narrow = yield* run(args, { stdin, columns: 60 })
      const lines = narrow.stdout.trimEnd().split("\n")
      assert.deepStrictEqual(lines.filter((line) => line.length > 60 && !/^ {9}"?0x[0-9a-f]{64}/u.test(line)), [])
      assert.deepStrictEqual(
        lines.filter((line) => !line.startsWith(" ")).map((line) => line.split(" ")[0]),
        ["verdict", "action", "signer", "change", "sign"]
      )
      const joined = narrow.stdout.replaceAll(/\n {9}/gu, " ")
      assert.strictEqual(joined, wide.stdout)
    }))

  it.live("prints the corrected body alone, and why on standard error", () =>
    Effect.gen(function*() {
      const { action, nonce, signature } = yield* signed
      const v = signature.v - 27
      const args = ["inspect", "--fix", "--expected-signer", keys.trader.address]
      const spoilt = JSON.stringify({ data: { action, nonce, signature: { ...signature, v } } })
      const { code, stderr, stdout } = yield* run([...args, "-"], { stdin: spoilt })
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(JSON.parse(stdout), { action, nonce, signature })
      assert.strictEqual(
        stderr,
        `Standard input: the signature matches the corrected body. The signature is by ${keys.trader.address}, ` +
          `but the body is nested in "data": send the object with action, nonce and signature itself, ` +
          `and signature.v is ${v}: send ${signature.v}\n`
      )
      const sound = yield* run([...args, "-"], { stdin: stdout })
      assert.deepStrictEqual([sound.code, sound.stdout], [0, stdout])
    }))

  it.live("reads a file with a body on each line, and names the line of each verdict", () =>
    Effect.gen(function*() {
      const sound = yield* signed
      const swapped = { ...sound, signature: { ...sound.signature, r: sound.signature.s, s: sound.signature.r } }
      const file = yield* fileWith(`${JSON.stringify(sound)}\n\n${JSON.stringify(swapped)}\n`)
      const args = ["inspect", "--expected-signer", keys.trader.address, file]
      const { code, stdout } = yield* run(args)
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(stdout.trimEnd().split("\n"), [
        `${file}, line 1: The signature is by ${keys.trader.address}`,
        `${file}, line 3: The signature is by ${keys.trader.address}, but r and s are swapped: swap them back`
      ])
      const fixed = yield* run([...args, "--fix"])
      assert.strictEqual(fixed.code, 0)
      const [first = "", second = "", ...rest] = fixed.stdout.trimEnd().split("\n")
      assert.deepStrictEqual([JSON.parse(first), JSON.parse(second), rest], [sound, sound, []])
    }))

  it.live("asks the gateway that is named, which knows its own signers and relays nothing", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({ TRIGATE_SIGNERS: keys.trader.address })
      const stdin = JSON.stringify(yield* signed)
      const args = ["--expected-signer", keys.agent.address, "-"]
      const alone = yield* run(["inspect", ...args], { stdin })
      const asked = yield* run(["inspect", "--gateway", url, ...args], { stdin })
      assert.deepStrictEqual([alone.code, asked.code], [0, 0])
      assert.notInclude(alone.stdout, "one of the signers of this gateway")
      assert.include(asked.stdout, `but it is by ${keys.trader.address} (one of the signers of this gateway)`)
      // the nonce is still free
      const again = yield* run(["inspect", "--gateway", url, "--expected-signer", keys.trader.address, "-"], { stdin })
      assert.match(again.stdout, new RegExp(`^verdict {2}The signature is by ${keys.trader.address}\\n`, "u"))
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
