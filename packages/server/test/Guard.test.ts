/** The guard in a gateway: no way in leads around it, an operator halts and resumes, and its file is read again. */
import { assert, describe, it } from "@effect/vitest"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { keys, type TestKey } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { gateway, get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import type { TransactionSerializable } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { openSocket } from "../../../test/streams/socket.ts"
import { keyFile } from "./keyFile.ts"

/** A file of policies that lasts as long as the scope. */
const policyFile = (text: string, name = "policies.yaml") =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "guard-"))),
      (folder) => Effect.sync(() => Fs.rmSync(folder, { recursive: true }))
    ),
    (folder) => {
      const file = Path.join(folder, name)
      Fs.writeFileSync(file, text)
      return file
    }
  )

const desk = `
policies:
  - name: desk
    accounts: ["${keys.trader.address.toUpperCase().replace("0X", "0x")}"]
    coins: [BTC]
    orderNotional: 1000
`

const order = (a: number, s: string, members = {}) => ({
  type: "order",
  orders: [{ a, b: true, p: "30000", s, r: false, t: { limit: { tif: "Gtc" } }, ...members }],
  grouping: "na"
})

const signed = Effect.fnUntraced(function*(action: SandboxSigner.Unsigned["action"], key: TestKey = keys.trader) {
  const nonce = yield* Clock.currentTimeMillis
  return JSON.stringify(yield* Effect.orDie(SandboxSigner.signAction(key, { nonce, action })))
})

const refusalIn = (json: unknown) =>
  ["_tag", "rule", "policy", "limit", "unit", "leg"].map((name) => JsonParts.at(json, name))
const tooMuch = ["PolicyViolation", "orderNotional", "desk", 1000, "USDC", 0]

describe("a guarded gateway", () => {
  it.live("refuses by HTTP, behind a key in the path, by WebSocket, and a body that is sent again", () =>
    Effect.gen(function*() {
      const { adminUrl, url } = yield* gateway({ TRIGATE_GUARD: yield* policyFile(desk) })
      const body = yield* signed(order(0, "0.1"))
      // a node, whose routes are those behind a key, takes no actions
      assert.strictEqual((yield* post(`${url}/any-key/exchange`, body)).status, 501)
      for (let attempt = 0; attempt < 3; attempt++) {
        const answer = yield* post(`${url}/exchange`, body)
        assert.strictEqual(answer.status, 422)
        assert.deepStrictEqual(refusalIn(answer.json), tooMuch)
        assert.strictEqual(JsonParts.at(answer.json, "account"), keys.trader.address)
        assert.strictEqual(JsonParts.at(answer.json, "type"), "urn:trigate:problem:policy-violation")
        // the members from which the official Python SDK makes its ClientError
        const [code, msg] = ["code", "msg"].map((name) => JsonParts.at(answer.json, name))
        assert.strictEqual(code, 422)
        assert.match(String(msg), /^The notional of the order is [0-9.]+ USDC; the policy allows 1000$/u)
      }
      const socket = yield* openSocket(`${url}/ws`)
      socket.send({ method: "post", id: 1, request: { type: "action", payload: Encoding.of(body).valueOrUndefined } })
      const frame = yield* Effect.promise(() => socket.next("post"))
      assert.match(
        frame.text,
        /"status":"err","response":"PolicyViolation: The notional of the order is [0-9.]+ USDC; the policy allows 1000"/u
      )
      const { json } = yield* get(`${adminUrl}/admin/guard`)
      assert.deepStrictEqual(
        [0, 1, 2, 3].map((index) => JsonParts.at(json, "refusals", index, "violation", "rule")),
        ["orderNotional", "orderNotional", "orderNotional", "orderNotional"]
      )
      assert.strictEqual(JsonParts.at(json, "policies", "policies", 0, "name"), "desk")
      // an API wallet of the account, and what the policies let pass
      assert.deepStrictEqual(
        refusalIn((yield* post(`${url}/exchange`, yield* signed(order(0, "0.1"), keys.agent))).json),
        tooMuch
      )
      assert.strictEqual((yield* post(`${url}/exchange`, yield* signed(order(0, "0.001"), keys.agent))).status, 200)
      // another account
      assert.strictEqual(
        (yield* post(`${url}/exchange`, yield* signed(order(1, "0.5", { p: "100" }), keys.validator))).status,
        200
      )
    }))

  it.live("tells the inspector what it would refuse, and measured values only to those who may act for the account", () =>
    Effect.gen(function*() {
      const { adminUrl, url } = yield* gateway({ TRIGATE_GUARD: yield* policyFile(desk) })
      const inspect = (body: string) =>
        Effect.map(post(`${url}/exchange/inspect`, body), ({ json }) => JsonParts.at(json, "policyViolation"))
      assert.deepStrictEqual(refusalIn(yield* inspect(yield* signed(order(0, "0.1")))), tooMuch)
      assert.isUndefined(yield* inspect(yield* signed(order(0, "0.001"))))
      // nothing was sent, reserved or recorded
      const { json } = yield* get(`${adminUrl}/admin/guard`)
      assert.deepStrictEqual(JsonParts.at(json, "refusals"), [])
      const { file, keys: [key = ""] } = yield* keyFile({ name: "other", scope: { signers: [keys.validator.address] } })
      const closed = yield* gateway({ TRIGATE_GUARD: yield* policyFile(desk), TRIGATE_CALLERS: file })
      const found = yield* post(`${closed.url}/exchange/inspect`, yield* signed(order(0, "0.1")), {
        authorization: `Bearer ${key}`
      })
      assert.deepStrictEqual(refusalIn(JsonParts.at(found.json, "policyViolation")), [
        "PolicyViolation",
        "orderNotional",
        "desk",
        undefined,
        undefined,
        undefined
      ])
    }))

  it.live("refuses the transactions by which a guarded account sends actions to the venue", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({ TRIGATE_GUARD: yield* policyFile(desk) })
      const [trader, other] = [keys.trader, keys.validator].map(({ privateKey }) => privateKeyToAccount(privateKey))
      const fields = { chainId: 999, nonce: 0, gas: 100_000n, data: "0x0100000d", to: `0x${"33".repeat(20)}` } as const
      const sendRaw = Effect.fnUntraced(function*(account: typeof trader, transaction: TransactionSerializable) {
        assert(account !== undefined)
        const raw = yield* Effect.promise(() => account.signTransaction(transaction))
        const call = { jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] }
        const { json } = yield* post(`${url}/evm`, JSON.stringify(call))
        return ["_tag", "rule", "policy", "account"].map((name) => JsonParts.at(json, "error", "data", name))
      })
      const refused = ["PolicyViolation", "actions", "desk", keys.trader.address]
      assert.deepStrictEqual(yield* sendRaw(trader, { ...fields, gasPrice: 1_000_000_000n }), refused)
      assert.deepStrictEqual(
        yield* sendRaw(trader, { ...fields, type: "eip1559", maxFeePerGas: 1_000_000_000n }),
        refused
      )
      // another account, another contract, and bytes that mention the contract
      const passed = [undefined, undefined, undefined, undefined]
      assert.deepStrictEqual(yield* sendRaw(other, { ...fields, gasPrice: 1_000_000_000n }), passed)
      assert.deepStrictEqual(
        yield* sendRaw(trader, { ...fields, to: keys.agent.address, gasPrice: 1_000_000_000n }),
        passed
      )
      assert.deepStrictEqual(
        yield* sendRaw(trader, {
          ...fields,
          nonce: 1,
          to: keys.agent.address,
          data: fields.to,
          gasPrice: 1_000_000_000n
        }),
        passed
      )
    }))

  it.live("halts a coin, an account and everything, but never a cancel or an order that only reduces", () =>
    Effect.gen(function*() {
      const { adminUrl, url } = yield* gateway({})
      const status = (action: SandboxSigner.Unsigned["action"]) =>
        Effect.flatMap(signed(action), (body) => Effect.map(post(`${url}/exchange`, body), (answer) => answer.status))
      const statuses = Effect.all([
        status(order(0, "0.001")),
        status(order(1, "0.01", { p: "2000" })),
        status(order(0, "0.001", { r: true })),
        status({ type: "cancel", cancels: [{ a: 0, o: 1 }] })
      ])
      assert.deepStrictEqual(yield* statuses, [200, 200, 200, 200])
      for (
        const [target, expected] of [
          [{ coin: "BTC" }, [422, 200, 200, 200]],
          [{ account: keys.trader.address }, [422, 422, 200, 200]],
          [{ all: true }, [422, 422, 200, 200]]
        ] as const
      ) {
        const halted = yield* post(`${adminUrl}/admin/guard/halt`, JSON.stringify(target))
        assert.deepStrictEqual(JsonParts.at(halted.json, "halts"), [target])
        assert.deepStrictEqual<ReadonlyArray<number>>(yield* statuses, expected)
        const resume = () =>
          Effect.map(post(`${adminUrl}/admin/guard/resume`, JSON.stringify(target)), ({ json }) => json)
        assert.deepStrictEqual(yield* resume(), { resumed: true })
        assert.deepStrictEqual(yield* resume(), { resumed: false })
      }
      assert.deepStrictEqual(yield* statuses, [200, 200, 200, 200])
      const wrong = yield* post(`${adminUrl}/admin/guard/halt`, "{\"every\":true}")
      assert.strictEqual(wrong.status, 400)
    }))

  it.live("reads its file again with the settings, and keeps the old policies if the new ones are not valid", () =>
    Effect.gen(function*() {
      const file = yield* policyFile(desk)
      const { reload, url } = yield* gateway({ TRIGATE_GUARD: file })
      const status = Effect.flatMap(
        signed(order(0, "0.1")),
        (body) => Effect.map(post(`${url}/exchange`, body), ({ status }) => status)
      )
      assert.strictEqual(yield* status, 422)
      Fs.writeFileSync(file, desk.replace("1000", "100000"))
      assert.deepStrictEqual(yield* reload({ TRIGATE_GUARD: file }), { applied: ["TRIGATE_GUARD"], needsRestart: [] })
      assert.strictEqual(yield* status, 200)
      Fs.writeFileSync(file, desk.replace("orderNotional", "orderNotionel"))
      const refused = yield* Effect.flip(reload({ TRIGATE_GUARD: file }))
      assert.strictEqual(refused.message, `${file} is not valid: policies.0.orderNotionel: Unknown member`)
      assert.strictEqual(yield* status, 200)
      const changed = yield* reload({})
      assert.deepStrictEqual(changed.applied, ["TRIGATE_GUARD"])
    }))

  it.live("takes JSON and TOML, and does not start with a file that it cannot read", () =>
    Effect.gen(function*() {
      const document = { policies: [{ name: "desk", accounts: "*", reduceOnly: true }], otherAccounts: "refuse" }
      const toml = "otherAccounts = \"refuse\"\n[[policies]]\nname = \"desk\"\naccounts = \"*\"\nreduceOnly = true\n"
      for (const file of [yield* policyFile(JSON.stringify(document), "a.json"), yield* policyFile(toml, "a.toml")]) {
        const { adminUrl } = yield* gateway({ TRIGATE_GUARD: file })
        assert.deepStrictEqual(JsonParts.at((yield* get(`${adminUrl}/admin/guard`)).json, "policies"), document)
      }
      const absent = yield* Effect.flip(gateway({ TRIGATE_GUARD: "/nowhere/policies.yaml" }))
      assert.strictEqual(absent.message, "/nowhere/policies.yaml cannot be read")
    }))
})
