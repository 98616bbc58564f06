import { assert, describe, it } from "@effect/vitest"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as ActionHash from "@trigate/signing/unstable/actions/ActionHash"
import * as CanonicalAction from "@trigate/signing/unstable/actions/CanonicalAction"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { bytesToHex } from "viem/utils"
import { type ExpectedTypedData, multis, readBody, singles, type Vector, vectors } from "./vectors.ts"

const profileOf = (vector: Vector) => vector.isMainnet ? VenueProfile.mainnet : VenueProfile.testnet

const hex = (result: Result.Result<Uint8Array, unknown>) => bytesToHex(Result.getOrThrow(result))

/** One recorded validator is in checksum case; this library displays what it hashes, in lower case. */
const displayed = (message: ExpectedTypedData["message"]) =>
  "validator" in message ? { ...message, validator: String(message["validator"]).toLowerCase() } : message

const assertSignable = (signable: ActionHash.Signable, digest: string, typedData: ExpectedTypedData) => {
  assert.strictEqual(ActionHash.digest(signable), digest)
  const actual: unknown = ActionHash.typedData(signable)
  assert.deepStrictEqual(actual, { ...typedData, message: displayed(typedData.message) })
}

describe("recorded vectors", () => {
  it("are all here", () => {
    assert.strictEqual(vectors.length, 81)
    assert.strictEqual(singles.length, 51)
    assert.strictEqual(multis.length, 30)
  })

  for (const vector of singles) {
    it(`${vector.id}: bytes, hash, digest and typed data`, () => {
      const profile = profileOf(vector)
      const canonical = Result.getOrThrow(CanonicalAction.canonicalize(profile, vector.action))
      assert(canonical.kind === "single")
      const { action } = canonical
      if (vector.scheme === "l1") {
        assert.strictEqual(hex(ActionHash.encode(action)), vector.actionMsgpack)
        assert.strictEqual(hex(ActionHash.preimage(action, vector)), vector.hashPreimage)
        const connectionId = Result.getOrThrow(ActionHash.hash(action, vector))
        assert.strictEqual(connectionId, vector.connectionId)
        assertSignable(ActionHash.agentSignable(profile, connectionId), vector.digest, vector.typedData)
      } else {
        const signable = Result.getOrThrow(
          CanonicalAction.signable(profile, CanonicalAction.types.tokenDelegate, action)
        )
        assert.strictEqual(signable.struct.primaryType, vector.primaryType)
        assertSignable(signable, vector.digest, vector.typedData)
      }
    })

    it.effect(`${vector.id}: signer`, () =>
      Effect.gen(function*() {
        const expected = { scheme: vector.scheme, signer: vector.signer, digest: vector.digest }
        const profile = profileOf(vector)
        assert.deepStrictEqual(yield* CanonicalAction.recover(profile, readBody(vector.requestBody)), expected)
        assert.deepStrictEqual(yield* CanonicalAction.recover(profile, vector), expected)
        assert.strictEqual(yield* Secp256k1.recover(vector.digest, vector.signatureTrimmed), vector.signer)
      }))
  }

  for (const vector of multis) {
    it(`${vector.id}: bytes, hashes, digests and typed data`, () => {
      const profile = profileOf(vector)
      const canonical = Result.getOrThrow(CanonicalAction.canonicalize(profile, vector.action))
      assert(canonical.kind === "multiSig")
      const { action } = canonical
      assert.strictEqual(action.payload.multiSigUser, vector.multiSigUserInput.toLowerCase())
      assert.strictEqual(action.payload.outerSigner, vector.outerSigner)
      assert.strictEqual(action.signatureChainId, vector.signatureChainId)

      const inner = Result.getOrThrow(CanonicalAction.cosignerSignable(profile, action, vector))
      assertSignable(inner, vector.inner.digest, vector.inner.typedData)
      if (vector.scheme === "multiSig/innerL1") {
        const value = CanonicalAction.innerValue(action)
        assert.deepStrictEqual<unknown>(value, vector.inner.signedValue)
        assert.strictEqual(hex(ActionHash.encode(value)), vector.inner.signedValueMsgpack)
        assert.strictEqual(hex(ActionHash.preimage(value, vector)), vector.inner.hashPreimage)
        assert.strictEqual(Result.getOrThrow(ActionHash.hash(value, vector)), vector.inner.connectionId)
      } else {
        assert.strictEqual(inner.struct.primaryType, vector.inner.primaryType)
      }

      const wrapper = CanonicalAction.hashedWrapper(action)
      assert.strictEqual(hex(ActionHash.encode(wrapper)), vector.outer.wrapperWithoutTypeMsgpack)
      assert.strictEqual(hex(ActionHash.preimage(wrapper, vector)), vector.outer.hashPreimage)
      assert.strictEqual(Result.getOrThrow(CanonicalAction.actionHash(action, vector)), vector.outer.multiSigActionHash)
      const outer = Result.getOrThrow(CanonicalAction.outerSignable(profile, action, vector))
      assertSignable(outer, vector.outer.digest, vector.outer.typedData)
    })

    it.effect(`${vector.id}: outer and inner signers`, () =>
      Effect.gen(function*() {
        const expected = {
          scheme: "multiSig",
          signer: vector.outer.signer,
          digest: vector.outer.digest,
          inner: vector.signers.map((signer) => ({ signer, digest: vector.inner.digest }))
        }
        const profile = profileOf(vector)
        assert.deepStrictEqual<unknown>(
          yield* CanonicalAction.recover(profile, readBody(vector.requestBody)),
          expected
        )
        assert.deepStrictEqual<unknown>(
          yield* CanonicalAction.recover(profile, { ...vector, signature: vector.outer.signature }),
          expected
        )
        assert.strictEqual(vector.inner.signatures.length, vector.signers.length)
      }))
  }
})
