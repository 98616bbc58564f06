import { assert, describe, it } from "@effect/vitest"
import * as Relayed from "@trigate/domain/Relayed"
import { testnet } from "@trigate/signing/VenueProfile"
import * as Admission from "@trigate/trading/Admission"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"

/** A vector of the signing tests, made with @nktkas/hyperliquid 0.33.3 and a public test key. */
const nonce = 1_705_234_567_890
const signer = "0x14791697260e4c9a71f18484c9f997b308e59325"
const body = (action: unknown) =>
  Relayed.bytes(JSON.stringify({
    action,
    signature: {
      r: "0x1d9faee8e7933cb344213de34ad3cd04bc441a8bbb04ed875a62bea053b604d0",
      s: "0x4670c3db7dc3da98d2578c1054177705f309af08e8ae4d57180f241bbb307714",
      v: 28
    },
    nonce
  }))
const action = { type: "evmUserModify", usingBigBlocks: true }

const admit = (options: Admission.Options, bytes: Uint8Array) =>
  Effect.andThen(TestClock.setTime(nonce), Admission.make(options).admit(bytes))

describe("SignerGate", () => {
  it.effect("admits a signer of the list, in any letter case, and says who it is", () =>
    Effect.gen(function*() {
      const admitted = yield* admit({ signers: [signer.toUpperCase().replace("0X", "0x")] }, body(action))
      assert.strictEqual(admitted.signer, signer)
    }))

  it.effect("turns anybody else away and names the recovered signer", () =>
    Effect.gen(function*() {
      const stranger = "0x0000000000000000000000000000000000000001"
      const error = yield* Effect.flip(admit({ signers: [stranger] }, body(action)))
      assert.strictEqual(error._tag, "SignerNotAllowed")
      if (error._tag === "SignerNotAllowed") assert.strictEqual(error.signer, signer)
    }))

  it.effect("a signature of another network is somebody else's", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(admit({ signers: [signer], profile: testnet }, body(action)))
      assert.strictEqual(error._tag, "SignerNotAllowed")
    }))

  it.effect("refuses a form whose signer cannot be told", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(
        admit({ signers: [signer] }, body({ type: "evmUserModify", modifications: [] }))
      )
      assert.strictEqual(error._tag, "InvalidSignature")
    }))

  it.effect("looks at nobody's signature without a list", () =>
    Effect.gen(function*() {
      const admitted = yield* admit({}, body({ type: "evmUserModify", modifications: [] }))
      assert.isUndefined(admitted.signer)
    }))
})
