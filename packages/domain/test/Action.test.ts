import { assert, describe, it } from "@effect/vitest"
import {
  Action,
  actionForms,
  documentedFormAdvice,
  SignedAction,
  signedActionSchema
} from "@trigate/domain/actions/Action"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

const address = "0x0123456789abcdef0123456789abcdef01234567"
const delegate = {
  type: "tokenDelegate",
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet",
  validator: address,
  wei: 100_000_000,
  isUndelegate: false,
  nonce: 1_705_234_567_890
}
const signature = { r: "0x1", s: `0x${"f".repeat(64)}`, v: 27 }

const decode = Schema.decodeUnknownOption(Action)
const accepts = (action: unknown) => Option.isSome(decode(action))
const adviceOn = (action: unknown) => documentedFormAdvice(Option.getOrThrow(decode(action)))

describe("Action", () => {
  it("each type decodes in its real form and in its documented form", () => {
    assert.isUndefined(adviceOn(delegate))
    assert.isUndefined(adviceOn({ type: "CSignerAction", jailSelf: null }))
    assert.isUndefined(adviceOn({ type: "CSignerAction", unjailSelf: null }))
    assert.isUndefined(adviceOn({ type: "evmUserModify", usingBigBlocks: true }))
    assert.include(adviceOn({ type: "evmUserModify", modifications: [] }) ?? "", "`usingBigBlocks`")
    assert.include(adviceOn({ type: "CSignerAction", payload: "x" }) ?? "", "`unjailSelf: null`")
    assert.include(
      adviceOn({ type: "tokenDelegate", validator: address, amount: "1.5", isUndelegate: true }) ?? "",
      "`wei`"
    )
  })

  it("advises on the three types only, and not where the real member is there as well", () => {
    const others: ReadonlyArray<{ readonly type: string; readonly amount: string }> = [
      { type: "usdSend", amount: "5" },
      { ...delegate, amount: "5" }
    ]
    for (const other of others) assert.isUndefined(documentedFormAdvice(other))
    assert.isUndefined(documentedFormAdvice({ type: "__proto__" }))
  })

  it("takes exactly one of the two names of the chain field", () => {
    const { hyperliquidChain: _chain, ...nameless } = delegate
    assert.isTrue(accepts({ ...nameless, venueChain: "Testnet" }))
    assert.isFalse(accepts(nameless))
    assert.isFalse(accepts({ ...delegate, venueChain: "Mainnet" }))
    assert.isFalse(accepts({ ...nameless, venueChain: "Devnet" }))
  })

  it("wei is an integer from 0 to 2^64-1, not a string and not a fraction", () => {
    assert.isTrue(accepts({ ...delegate, wei: 0 }))
    assert.isTrue(accepts({ ...delegate, wei: 2n ** 64n - 1n }))
    for (const wei of [2n ** 64n, -1, "100", 1.5, null, Number.NaN]) {
      assert.isFalse(accepts({ ...delegate, wei }), String(wei))
    }
  })

  it("a multi-sig has 1 to 10 signatures and any inner action with a type", () => {
    const multiSig = {
      type: "multiSig",
      signatureChainId: "0x66eee",
      signatures: [signature],
      payload: { multiSigUser: address, outerSigner: address, action: { type: "order", orders: [{ a: 1 }] } }
    }
    assert.isTrue(accepts(multiSig))
    assert.isTrue(accepts({ ...multiSig, signatures: Array.from({ length: 10 }, () => signature) }))
    assert.isFalse(accepts({ ...multiSig, signatures: [] }))
    assert.isFalse(accepts({ ...multiSig, signatures: Array.from({ length: 11 }, () => signature) }))
    assert.isFalse(accepts({ ...multiSig, payload: { ...multiSig.payload, action: {} } }))
    assert.deepStrictEqual(
      JSON.parse(Json.stringify(Schema.encodeSync(Action)(Option.getOrThrow(decode(multiSig))))),
      multiSig
    )
  })

  it("a signed action takes null and absent vault and expiry, trimmed signature halves, and v from 0 or 27", () => {
    const read = Schema.decodeUnknownOption(SignedAction)
    const body = { action: delegate, nonce: delegate.nonce, signature }
    assert.isTrue(Option.isSome(read(body)))
    assert.isTrue(Option.isSome(read({ ...body, vaultAddress: null, expiresAfter: null })))
    assert.isTrue(Option.isSome(read({ ...body, vaultAddress: address, expiresAfter: 5 })))
    assert.isTrue(Option.isSome(read({ ...body, signature: { ...signature, v: 1 } })))
    assert.isTrue(Option.isNone(read({ ...body, signature: { ...signature, v: 29 } })))
    assert.isTrue(Option.isNone(read({ ...body, signature: { ...signature, r: "0x" } })))
    assert.isTrue(Option.isNone(read({ ...body, nonce: "1" })))
    assert.isTrue(Option.isNone(read({ ...body, vaultAddress: "0x1" })))
  })

  it("a signed action's vault may come without its 0x, and is read with it", () => {
    const read = Schema.decodeUnknownOption(SignedAction)
    const body = { action: delegate, nonce: delegate.nonce, signature }
    const vault = (text: string) =>
      Option.map(read({ ...body, vaultAddress: text }), ({ vaultAddress }) => vaultAddress)
    assert.deepStrictEqual(vault(address.slice(2)), Option.some(address))
    assert.deepStrictEqual(vault(address), Option.some(address))
    assert.isTrue(Option.isNone(vault(`0x${address}`)))
    assert.isTrue(Option.isNone(vault(address.slice(3))))
  })

  it("an action of one type does not decode as another", () => {
    const read = Schema.decodeUnknownOption(signedActionSchema("evmUserModify"))
    assert.isTrue(Option.isNone(read({ action: delegate, nonce: 1, signature })))
  })

  for (const [type, schema] of Object.entries(actionForms)) {
    it.effect.prop(`${type} survives the wire as text, every digit of it`, [schema as Schema.Codec<Action, unknown>], (
      [action]
    ) =>
      Effect.sync(() => {
        const encode = Schema.encodeSync(Action)
        const text = Json.stringify(encode(action))
        // V8 13.6 misreads a key of one character that is an escape
        if (/"\\(?:u[0-9a-f]{4}|.)":/u.test(text)) return
        const again = Option.getOrThrow(decode(Result.getOrThrow(Json.parse(text))))
        assert.strictEqual(Json.stringify(encode(again)), text)
        if ("wei" in action && "wei" in again) assert.strictEqual(again.wei, action.wei)
      }))
  }
})
