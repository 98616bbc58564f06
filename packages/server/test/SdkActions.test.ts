/**
 * What the venue's client libraries in other languages send, and what they read of a refusal.
 *
 * The Rust library prints the members of an action in alphabetical order and signs them in the order of its structs. Several
 * leave out the name of an agent. Python, Go, Rust and Java sign for testnet under a base URL that they do not know.
 */
import { assert, describe, it } from "@effect/vitest"
import * as peer from "@nktkas/hyperliquid/api/exchange"
import { signL1Action, signMultiSigUserSigned, signUserSignedAction } from "@nktkas/hyperliquid/signing"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { privateKeyToAccount } from "viem/accounts"
import { bigBlocks, bodyOf, delegate } from "./bodies.ts"
import { liveGateway } from "./liveGateway.ts"

const { cosigner, leader, multiSigUser, stranger, trader } = keys
const wallet = privateKeyToAccount(trader.privateKey)
const ok = `{"status":"ok","response":{"type":"default"}}`
const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const

const hint =
  "signed for testnet; this gateway sends to mainnet. SDKs for Python, Go, Rust and Java sign for testnet unless " +
  "the base URL is their own mainnet constant: see docs/guides/from-python-go-rust.md"

/** A gateway with an allow-list, before a venue that takes everything. */
const venue = liveGateway({ api: () => ({ body: ok }) }, {
  TRIGATE_RELAY_ACTIONS: "*",
  TRIGATE_SIGNERS: `${trader.address},${leader.address}`
})

/** JSON with the members of every object in alphabetical order. */
const alphabetical = (value: unknown): unknown =>
  Array.isArray(value) ? value.map(alphabetical) : Predicate.isReadonlyObject(value)
    ? Object.fromEntries(Object.keys(value).toSorted().map((key) => [key, alphabetical(value[key])]))
    : value

type Signed = (nonce: number) => Promise<object>

const l1 =
  (action: Record<string, unknown>, print: (value: unknown) => unknown = (value) => value): Signed => (nonce) =>
    signL1Action({ wallet, action, nonce }).then((signature) => ({ action: print(action), nonce, signature }))

const orders = [
  { a: 1, b: true, p: "2000.0", s: "3.5", r: false, t: { limit: { tif: "Ioc" } } },
  {
    a: 1,
    b: true,
    p: "2000.0",
    s: "3.5",
    r: false,
    t: { trigger: { isMarket: true, triggerPx: "1900", tpsl: "sl" } },
    c: "0x1e60610f0b3d420597c88c1fed2ad5ee"
  }
]

const agent = { type: "approveAgent", ...chain, agentAddress: stranger.address }

/** Signed over the empty name, and sent as given. */
const approval = (sent: object): Signed => (nonce) =>
  signUserSignedAction({ wallet, action: { ...agent, agentName: "", nonce }, types: peer.ApproveAgentTypes })
    .then((signature) => ({ action: { ...agent, ...sent, nonce }, nonce, signature }))

const transfer: Signed = (nonce) => {
  const action = {
    type: "sendToEvmWithData",
    ...chain,
    token: "USDC",
    amount: "1",
    sourceDex: "spot",
    destinationRecipient: stranger.address,
    addressEncoding: "hex",
    destinationChainId: 998,
    gasLimit: 200_000,
    data: "0xdeadbeef",
    nonce
  }
  return signUserSignedAction({ wallet, action, types: peer.SendToEvmWithDataTypes })
    .then((signature) => ({ action, nonce, signature }))
}

const bodies: ReadonlyArray<readonly [what: string, signed: Signed]> = [
  ["orders with sorted members", l1({ type: "order", orders, grouping: "na" }, alphabetical)],
  [
    "a builder's order with sorted members",
    l1({
      type: "order",
      orders,
      grouping: "normalTpsl",
      builder: { b: stranger.address, f: 10 }
    }, alphabetical)
  ],
  ["a cancellation with sorted members", l1({ type: "cancel", cancels: [{ a: 1, o: 82_382 }] }, alphabetical)],
  [
    "an order whose optional members are null",
    l1(
      { type: "order", orders: orders.slice(0, 1), grouping: "na" },
      () => ({ type: "order", orders: [{ ...orders[0], c: null }], grouping: "na", builder: null })
    )
  ],
  ["an agent without a name", approval({})],
  ["an agent whose name is null", approval({ agentName: null })],
  ["an agent whose name is empty", approval({ agentName: "" })],
  ["a transfer to the EVM with data", transfer]
]

describe("an action as an SDK sends it", () => {
  it.live("passes an allow-list, byte for byte, under its signer", () =>
    Effect.gen(function*() {
      const live = yield* venue
      const now = yield* Clock.currentTimeMillis
      for (const [index, [what, signed]] of bodies.entries()) {
        live.api.seen.length = 0
        const body = JSON.stringify(yield* Effect.promise(() => signed(now + index)), null, 1)
        const answer = yield* post(`${live.url}/exchange`, body)
        assert.strictEqual(answer.text, ok, what)
        assert.strictEqual(answer.headers.get("x-trigate-signer"), trader.address, what)
        assert.deepStrictEqual(live.api.seen.map((seen) => seen.body), [body], what)
      }
    }))

  it.live("is a stranger's in another order where its type is not known", () =>
    Effect.gen(function*() {
      const live = yield* venue
      const now = yield* Clock.currentTimeMillis
      const body = yield* Effect.promise(() => l1({ type: "fromTheFuture", b: 1, a: 2 }, alphabetical)(now))
      const answer = yield* post(`${live.url}/exchange`, JSON.stringify(body))
      assert.deepNestedInclude(answer.json, { _tag: "SignerNotAllowed" })
      assert.deepStrictEqual(live.seen(), [])
    }))

  it.live("names the co-signers of a wrapped abstraction, which is sent in short", () =>
    Effect.gen(function*() {
      const live = yield* venue
      const now = yield* Clock.currentTimeMillis
      const signers = [privateKeyToAccount(leader.privateKey), privateKeyToAccount(cosigner.privateKey)] as const
      for (const [index, [short, full]] of [["u", "unifiedAccount"], ["i", "disabled"]].entries()) {
        const nonce = now + index
        const action = { type: "userSetAbstraction", ...chain, user: multiSigUser.address, abstraction: full, nonce }
        const signed = yield* Effect.promise(() =>
          signMultiSigUserSigned({
            signers,
            multiSigUser: multiSigUser.address,
            action,
            payloadAction: { ...action, abstraction: short },
            types: peer.UserSetAbstractionTypes
          })
        )
        const body = JSON.stringify({ ...signed, nonce })
        const seen = yield* post(`${live.url}/exchange/inspect`, body)
        assert.deepStrictEqual(
          [JsonParts.at(seen.json, "outer"), ...[0, 1].map((at) => JsonParts.at(seen.json, "inner", at))].map((each) =>
            JsonParts.at(each, "signer")
          ),
          [leader.address, leader.address, cosigner.address]
        )
        live.api.seen.length = 0
        const answer = yield* post(`${live.url}/exchange`, body)
        assert.strictEqual(answer.headers.get("x-trigate-signer"), leader.address)
        assert.deepStrictEqual(live.api.seen.map((each) => each.body), [body])
      }
    }))
})

describe("an action that is signed for testnet", () => {
  const action = { type: "evmUserModify", usingBigBlocks: true }
  const signed = (nonce: number) =>
    signL1Action({ wallet, action, nonce, isTestnet: true }).then((signature) => ({ action, nonce, signature }))

  it.live("is refused with the reason, on an allow-list and where its signer is expected", () =>
    Effect.gen(function*() {
      const live = yield* venue
      const now = yield* Clock.currentTimeMillis
      const body = JSON.stringify(yield* Effect.promise(() => signed(now)))
      for (const headers of [{}, { "x-trigate-expected-signer": trader.address }]) {
        const answer = yield* post(`${live.url}/exchange`, body, headers)
        assert.strictEqual(answer.status, 422)
        assert.deepNestedInclude(answer.json, { _tag: "InvalidSignature", reason: hint, expected: trader.address })
        assert.notStrictEqual(JsonParts.at(answer.json, "recovered"), trader.address)
      }
      assert.deepStrictEqual(live.seen(), [])
    }))

  it.live("is refused with the reason where it names testnet itself", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({}, { TRIGATE_RELAY_ACTIONS: "*" })
      const nonce = yield* Clock.currentTimeMillis
      const sent = {
        type: "usdSend",
        ...chain,
        hyperliquidChain: "Testnet",
        destination: stranger.address,
        amount: "1"
      }
      const signature = yield* Effect.promise(() =>
        signUserSignedAction({
          wallet,
          action: { ...sent, hyperliquidChain: "Testnet" as const, time: nonce },
          types: peer.UsdSendTypes
        })
      )
      const answer = yield* post(
        `${live.url}/exchange`,
        JSON.stringify({ action: { ...sent, time: nonce }, nonce, signature })
      )
      assert.strictEqual(answer.status, 422)
      assert.deepNestedInclude(answer.json, { _tag: "InvalidSignature", reason: hint, recovered: trader.address })
      assert.deepStrictEqual(live.seen(), [])
    }))

  it.live("is recognized by inspect, with and without an expected signer", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway()
      const now = yield* Clock.currentTimeMillis
      const body = JSON.stringify(yield* Effect.promise(() => signed(now)))
      const seen = yield* post(`${live.url}/exchange/inspect`, body)
      assert.deepNestedInclude(seen.json, {
        "otherNetwork.network": "testnet",
        "otherNetwork.signer": trader.address
      })
      const told = yield* post(`${live.url}/exchange/inspect`, body, { "x-trigate-expected-signer": trader.address })
      assert.deepNestedInclude(told.json, {
        "diagnosis.verdict": "explained",
        "diagnosis.detail": `The signature is by ${trader.address}, but it is ${hint}`
      })
      const right = JSON.stringify(yield* Effect.promise(() => l1(action)(now)))
      const fits = yield* post(`${live.url}/exchange/inspect`, right, { "x-trigate-expected-signer": trader.address })
      assert.strictEqual(JsonParts.at(fits.json, "diagnosis", "verdict"), "fits")
      assert.isUndefined(JsonParts.at(fits.json, "otherNetwork"))
      assert.deepStrictEqual(live.seen(), [])
    }))
})

describe("a refusal", () => {
  it.live("carries the number and the text that SDKs read, on the venue's routes only", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway()
      const now = yield* Clock.currentTimeMillis
      const key = "caller-endpoint-key-0001"
      const asked = [
        ["/exchange", bodyOf(1, bigBlocks), 422],
        ["/exchange", bodyOf(now, delegate(now - 1)), 422],
        ["/exchange", bodyOf(now, `{"type":"fromTheFuture"}`), 422],
        ["/exchange", "{", 400],
        [`/${key}/exchange`, bodyOf(now, bigBlocks), 501],
        ["/info", `{"type":5}`, 400],
        ["/info", `{"type":"candleSnapshot","req":{}}`, 400],
        [`/${key}/info`, `{"type":"candleSnapshot","req":{"coin":"ETH","interval":"1h","startTime":1}}`, 501]
      ] as const
      for (const [path, body, status] of asked) {
        const { json, status: answered } = yield* post(`${live.url}${path}`, body)
        assert.strictEqual(answered, status, path)
        const detail = JsonParts.at(json, "detail")
        assert.isString(detail)
        assert.deepNestedInclude(json, { code: status, msg: detail, error: detail, status })
      }
      const inspected = yield* post(`${live.url}/exchange/inspect`, "{")
      assert.isUndefined(JsonParts.at(inspected.json, "code"))
      assert.deepStrictEqual(live.seen(), [])
    }))
})
