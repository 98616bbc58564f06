import { assert, describe, it } from "@effect/vitest"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as Inspector from "@trigate/trading/Inspector"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"

/** A vector of the signing tests, made with @nktkas/hyperliquid 0.33.3 and a public test key. */
const nonce = 1_705_234_567_890
const signature = {
  r: "0x1d9faee8e7933cb344213de34ad3cd04bc441a8bbb04ed875a62bea053b604d0",
  s: "0x4670c3db7dc3da98d2578c1054177705f309af08e8ae4d57180f241bbb307714",
  v: 28
}
const inspect = (now: number, action: unknown) =>
  Effect.andThen(
    TestClock.setTime(now),
    Inspector.make(mainnet).inspect(Utf8.encode(JSON.stringify({ action, nonce, signature })))
  )

const day = 86_400_000

describe("Inspector", () => {
  it.effect("says who signed what, and that the nonce is taken", () =>
    Effect.gen(function*() {
      const seen = yield* inspect(nonce, { type: "evmUserModify", usingBigBlocks: true })
      assert.strictEqual(seen.form, "wire")
      assert.strictEqual(seen.scheme, "l1")
      assert.strictEqual(seen.outer?.signer, "0x14791697260e4c9a71f18484c9f997b308e59325")
      assert.deepStrictEqual(seen.nonce, {
        value: nonce,
        now: nonce,
        earliest: nonce - 2 * day,
        latest: nonce + day,
        inWindow: true
      })
      assert.deepInclude(seen.typedData, {
        primaryType: "Agent",
        message: {
          source: "a",
          connectionId: "0x1ffb5eee4f47a7ffa50459e4955dd39d67fe316057f5b88e1e91f24bbb7df0c6"
        }
      })
      assert.deepStrictEqual(seen.warnings, [])
      assert.deepStrictEqual(seen.canonicalAction, { type: "evmUserModify", usingBigBlocks: true })
      assert.strictEqual(seen.msgpack, "0x82a474797065ad65766d557365724d6f64696679ae7573696e67426967426c6f636b73c3")
      assert.strictEqual(
        seen.connectionId,
        "0x1ffb5eee4f47a7ffa50459e4955dd39d67fe316057f5b88e1e91f24bbb7df0c6"
      )
      assert.isUndefined(seen.multiSigHash)
      assert.strictEqual(seen.diagnosis.verdict, "unchecked")
      assert.deepStrictEqual(seen.diagnosis.mistakes, [])
    }))

  it.effect("shows what a multi-sig hashes, its integers whole, and whether its leader signed it", () =>
    Effect.gen(function*() {
      const action = {
        type: "multiSig",
        signatureChainId: "0x066EEE",
        signatures: [{ r: "0x0a1", s: "0x1", v: 27 }],
        payload: {
          outerSigner: "0x14791697260E4c9A71f18484C9f997B308e59325",
          multiSigUser: "0x1719884eb866cb12b2287399b15f7db5e7d775ea",
          action: {
            type: "tokenDelegate",
            signatureChainId: "0x66eee",
            venueChain: "Testnet",
            validator: "0x5ac99df645f3414876c816caa18b2d234024b487",
            wei: 9,
            isUndelegate: false,
            nonce
          }
        }
      }
      const text = JSON.stringify({ action, nonce, signature }).replace(`"wei":9`, `"wei":18446744073709551615`)
      const seen = yield* Inspector.make(mainnet).inspect(Utf8.encode(text))
      assert.deepStrictEqual(seen.canonicalAction, {
        type: "multiSig",
        signatureChainId: "0x066EEE",
        signatures: [{ r: "0xa1", s: "0x1", v: 27 }],
        payload: {
          multiSigUser: "0x1719884eb866cb12b2287399b15f7db5e7d775ea",
          outerSigner: "0x14791697260e4c9a71f18484c9f997b308e59325",
          action: {
            type: "tokenDelegate",
            signatureChainId: "0x66eee",
            hyperliquidChain: "Testnet",
            validator: "0x5ac99df645f3414876c816caa18b2d234024b487",
            wei: "18446744073709551615",
            isUndelegate: false,
            nonce
          }
        }
      })
      assert.include(String(seen.msgpack), "cfffffffffffffffff")
      assert.match(seen.multiSigHash ?? "", /^0x[0-9a-f]{64}$/u)
      assert.isUndefined(seen.connectionId)
      assert.strictEqual(seen.diagnosis.verdict, "unexplained")
      assert.deepStrictEqual(seen.warnings, [
        "tokenDelegate is for another network: this gateway sends to Mainnet",
        "The chain ID at signatureChainId is signed as text, and this text is not canonical: sign and send 0x66eee",
        "The inner signature at signatures.0.r has leading zeros: remove them before you sign the wrapper and send it",
        "The address at payload.outerSigner is in mixed case: sign and send it in lower case",
        "The fields of payload must be in the order in which they are hashed: multiSigUser, outerSigner, action"
      ])
    }))

  it.effect("warns of keys in another order than is hashed", () =>
    Effect.gen(function*() {
      const seen = yield* inspect(nonce, { usingBigBlocks: true, type: "evmUserModify" })
      assert.strictEqual(seen.outer?.signer, "0x14791697260e4c9a71f18484c9f997b308e59325")
      assert.deepStrictEqual(seen.warnings, [
        "The fields of the action must be in the order in which they are hashed: type, usingBigBlocks"
      ])
    }))

  it.effect("reads a stale nonce and a documented form without refusing them", () =>
    Effect.gen(function*() {
      const seen = yield* inspect(nonce + 2 * day, { type: "evmUserModify", modifications: [] })
      assert.strictEqual(seen.form, "documented")
      assert.isFalse(seen.nonce.inWindow)
      assert.isUndefined(seen.outer)
      assert.isString(seen.unsigned)
      assert.deepStrictEqual(seen.warnings, ["evmUserModify takes `usingBigBlocks`, not `modifications`"])
    }))

  it.effect("takes an action type that is not relayed", () =>
    Effect.gen(function*() {
      const seen = yield* inspect(nonce, { type: "order", orders: [], grouping: "na" })
      assert.strictEqual(seen.form, "opaque")
      assert.strictEqual(seen.scheme, "l1")
      assert.isDefined(seen.outer)
    }))

  it.effect("refuses what is no signed body", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Inspector.make(mainnet).inspect(Utf8.encode("{\"nonce\":1}")))
      assert.strictEqual(error._tag, "InvalidRequest")
    }))
})
