import { assert, describe, it } from "@effect/vitest"
import * as CanonicalAction from "@trigate/signing/unstable/actions/CanonicalAction"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Result from "effect/Result"
import { vector } from "./vectors.ts"

const canonical = (action: unknown) =>
  Result.getOrThrow(CanonicalAction.canonicalize(VenueProfile.mainnet, action)).action

/** Text, because `deepStrictEqual` does not see the order of keys. */
const text = (action: unknown) => JSON.stringify(canonical(action))

const refusal = (action: unknown) => {
  const { path, reason } = Result.getOrThrow(Result.flip(CanonicalAction.canonicalize(VenueProfile.mainnet, action)))
  return { reason, path }
}

const delegate = {
  nonce: 1,
  isUndelegate: false,
  wei: 5,
  validator: "0x5AC99df645f3414876c816caa18b2d234024b487",
  hyperliquidChain: "Mainnet",
  signatureChainId: "0x66eee",
  type: "tokenDelegate"
}

const delegateText = "{\"type\":\"tokenDelegate\",\"signatureChainId\":\"0x66eee\",\"hyperliquidChain\":\"Mainnet\"," +
  "\"validator\":\"0x5ac99df645f3414876c816caa18b2d234024b487\",\"wei\":5,\"isUndelegate\":false,\"nonce\":1}"

const wrap = (inner: unknown) => ({
  payload: {
    action: inner,
    outerSigner: "0xF39FD6E51AAD88F6F4CE6AB8827279CFFFB92266",
    multiSigUser: "0xABCDEF7890123456789012345678901234567890"
  },
  signatures: [{ v: 27, s: "0x00A1", r: "0x0" }, { v: 28, s: "0xb", r: "0x0c0" }],
  signatureChainId: "0x66eee",
  type: "multiSig"
})

const wrapText = (inner: string) =>
  "{\"type\":\"multiSig\",\"signatureChainId\":\"0x66eee\",\"signatures\":[{\"r\":\"0x0\",\"s\":\"0xa1\",\"v\":27}," +
  "{\"r\":\"0xc0\",\"s\":\"0xb\",\"v\":28}],\"payload\":{" +
  "\"multiSigUser\":\"0xabcdef7890123456789012345678901234567890\"," +
  `"outerSigner":"0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266","action":${inner}}}`

describe("CanonicalAction.canonicalize", () => {
  it("orders the known actions, type first, and lower-cases their addresses", () => {
    assert.strictEqual(text(delegate), delegateText)
    assert.strictEqual(
      text({ usingBigBlocks: true, type: "evmUserModify" }),
      "{\"type\":\"evmUserModify\",\"usingBigBlocks\":true}"
    )
    assert.strictEqual(
      text({ unjailSelf: null, type: "CSignerAction" }),
      "{\"type\":\"CSignerAction\",\"unjailSelf\":null}"
    )
    assert.strictEqual(
      text({ jailSelf: null, type: "CSignerAction" }),
      "{\"type\":\"CSignerAction\",\"jailSelf\":null}"
    )
  })

  it("spells the documents' chain field as the venue does, and refuses both at once", () => {
    const { hyperliquidChain, ...rest } = delegate
    assert.strictEqual(text({ venueChain: hyperliquidChain, ...rest }), delegateText)
    assert.deepStrictEqual(refusal({ venueChain: "Mainnet", ...delegate }), { reason: "shape", path: ["venueChain"] })
    assert.strictEqual(
      text({ type: "usdSend", venueChain: "Mainnet", amount: "1" }),
      "{\"type\":\"usdSend\",\"hyperliquidChain\":\"Mainnet\",\"amount\":\"1\"}"
    )
  })

  it("drops from known actions what the venue does not know", () => {
    assert.strictEqual(text({ ...delegate, memo: "x" }), delegateText)
    assert.strictEqual(
      text({ type: "evmUserModify", modifications: [], usingBigBlocks: false }),
      "{\"type\":\"evmUserModify\",\"usingBigBlocks\":false}"
    )
  })

  it("leaves other actions as they are", () => {
    const order = { orders: [{ b: true, a: 4 }], type: "order", address: "0xAB", __proto__: null }
    assert.strictEqual(text(order), JSON.stringify(order))
    const own: unknown = JSON.parse("{\"venueChain\":\"Mainnet\",\"__proto__\":{\"type\":\"multiSig\"}}")
    assert.strictEqual(text(own), "{\"hyperliquidChain\":\"Mainnet\",\"__proto__\":{\"type\":\"multiSig\"}}")
  })

  it("orders a wrapper and its inner action, and trims the inner signatures", () => {
    assert.strictEqual(text(wrap(delegate)), wrapText(delegateText))
    assert.strictEqual(text(wrap({ z: 1, type: "order" })), wrapText("{\"z\":1,\"type\":\"order\"}"))
    const recorded = vector("msus-159").action
    assert.deepStrictEqual<unknown>(canonical(recorded), recorded)
  })

  it("names the documented forms that the venue does not take", () => {
    const { wei: _, ...rest } = delegate
    const cases: ReadonlyArray<readonly [unknown, string]> = [
      [{ ...rest, amount: "1.5" }, "amount"],
      [{ type: "tokenDelegate", amount: "1.5" }, "amount"],
      [{ type: "CSignerAction", payload: {} }, "payload"],
      [{ type: "evmUserModify", modifications: [] }, "modifications"]
    ]
    for (const [action, key] of cases) {
      assert.deepStrictEqual(refusal(action), { reason: "documentedForm", path: [key] })
      assert.deepStrictEqual(refusal(wrap(action)), { reason: "documentedForm", path: ["payload", "action", key] })
    }
  })

  it("refuses known actions with a member missing or one too many", () => {
    const { validator: _, ...rest } = delegate
    assert.deepStrictEqual(refusal(rest), { reason: "shape", path: [] })
    assert.deepStrictEqual(refusal({ type: "evmUserModify" }), { reason: "shape", path: [] })
    assert.deepStrictEqual(refusal({ type: "CSignerAction", jailSelf: null, unjailSelf: null, payload: {} }), {
      reason: "shape",
      path: []
    })
  })

  it("refuses wrappers that do not read", () => {
    const whole = wrap(delegate)
    const { payload, signatures } = whole
    const [signature] = signatures
    assert.deepStrictEqual(refusal({ ...whole, signatures: [] }), { reason: "shape", path: ["signatures"] })
    assert.deepStrictEqual(refusal({ ...whole, signatures: Array(11).fill(signature) }), {
      reason: "shape",
      path: ["signatures"]
    })
    assert.deepStrictEqual(refusal({ ...whole, signatures: [{ ...signature, r: `0x${"1".repeat(65)}` }] }), {
      reason: "shape",
      path: ["signatures", 0, "r"]
    })
    assert.deepStrictEqual(refusal({ ...whole, payload: { ...payload, outerSigner: "0x12" } }), {
      reason: "shape",
      path: ["payload", "outerSigner"]
    })
    assert.deepStrictEqual(refusal(wrap(["order"])), { reason: "shape", path: ["payload", "action"] })
    assert.deepStrictEqual(refusal(wrap(whole)), { reason: "shape", path: ["payload", "action", "type"] })
    assert.deepStrictEqual(refusal({ type: "multiSig", payload: { toString: 1 }, signatures: { toString: null } }), {
      reason: "shape",
      path: ["signatureChainId"]
    })
  })

  it("refuses what is no object", () => {
    for (const action of [null, undefined, "noop", 1, [], [{ type: "noop" }]]) {
      assert.deepStrictEqual(refusal(action), { reason: "shape", path: ["action"] })
    }
  })
})
