import { assert, describe, it } from "@effect/vitest"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { testnet } from "@trigate/signing/VenueProfile"
import type { Signing } from "@trigate/testing/MultiSigText"
import { leader, signLeader, signMultiSig } from "@trigate/testing/MultiSigText"
import { flipReason } from "@trigate/testing/Reason"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import * as admission from "./admission.ts"

/** A vector of the signing tests, made with @nktkas/hyperliquid 0.33.3 and a public test key. */
const nonce = 1_705_234_567_890
const signer = "0x14791697260e4c9a71f18484c9f997b308e59325"
const stranger = "0x0000000000000000000000000000000000000001"
const signature = {
  r: "0x1d9faee8e7933cb344213de34ad3cd04bc441a8bbb04ed875a62bea053b604d0",
  s: "0x4670c3db7dc3da98d2578c1054177705f309af08e8ae4d57180f241bbb307714",
  v: 28
}
const bodyText = (action: unknown, change: object = {}, more: object = {}) =>
  JSON.stringify({ action, signature: { ...signature, ...change }, nonce, ...more })
const body = (action: unknown, change: object = {}) => Utf8.encode(bodyText(action, change))
const action = { type: "evmUserModify", usingBigBlocks: true }
const delegation = {
  type: "tokenDelegate",
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet",
  validator: stranger,
  wei: 1,
  isUndelegate: false,
  nonce
}

const wrapped = (inner: object, signatures: ReadonlyArray<object> = [{ r: "0x1", s: "0x2", v: 27 }]) =>
  body({
    type: "multiSig",
    signatureChainId: "0x66eee",
    signatures,
    payload: { multiSigUser: stranger, outerSigner: leader.address, action: inner }
  })

const signedWrapper = (inner: object, signing: Signing = {}) =>
  Utf8.encode(signMultiSig(new TextDecoder().decode(wrapped(inner)), signing))

const admit = (options: admission.Options, bytes: Uint8Array, expected?: `0x${string}`) =>
  Effect.andThen(TestClock.setTime(nonce), admission.make(options).admit(bytes, expected))

const refusal = (options: admission.Options, bytes: Uint8Array, expected?: `0x${string}`) =>
  Effect.map(
    flipReason(admit(options, bytes, expected)),
    (error) => error._tag === "InvalidSignature" ? error : assert.fail(error._tag)
  )

describe("SignerAuthorization", () => {
  it.effect("admits a signer of the list, in any letter case, and says who it is", () =>
    Effect.gen(function*() {
      const admitted = yield* admit({ signers: [signer.toUpperCase().replace("0X", "0x")] }, body(action))
      assert.strictEqual(admitted.signer, signer)
    }))

  it.effect("refuses anybody else and names the recovered signer", () =>
    Effect.gen(function*() {
      const error = yield* flipReason(admit({ signers: [stranger] }, body(action)))
      assert.strictEqual(error._tag, "SignerNotAllowed")
      if (error._tag === "SignerNotAllowed") assert.strictEqual(error.signer, signer)
    }))

  it.effect("a signature for another network is somebody else's, and the refusal says whose it would be there", () =>
    Effect.gen(function*() {
      for (const options of [{ signers: [signer], profile: testnet }, { profile: testnet }]) {
        const error = yield* refusal(options, body(action), "signers" in options ? undefined : signer)
        assert.strictEqual(error.reason, "signed for mainnet; this gateway sends to testnet")
        assert.strictEqual(error.expected, signer)
        assert.notStrictEqual(error.recovered, signer)
        assert.strictEqual(error.detail, `The signature is by ${error.recovered}: ${error.reason}`)
      }
      const nobody = yield* flipReason(admit({ signers: [stranger], profile: testnet }, body(action)))
      assert.strictEqual(nobody._tag, "SignerNotAllowed")
      const other = yield* refusal({ profile: testnet }, body(action), stranger)
      assert.strictEqual(other.reason, "another signer was expected")
    }))

  it.effect("a leader who signed for another network is told so", () =>
    Effect.gen(function*() {
      const bytes = signedWrapper({ type: "noop" }, { profile: testnet })
      const error = yield* refusal({}, bytes)
      assert.match(error.reason, /^signed for testnet; this gateway sends to mainnet\. SDKs for Python, Go, Rust/u)
      assert.strictEqual(error.expected, leader.address)
    }))

  it.effect("refuses a form whose signer cannot be recovered", () =>
    Effect.gen(function*() {
      const error = yield* flipReason(
        admit({ signers: [signer] }, body({ type: "evmUserModify", modifications: [] }))
      )
      assert.strictEqual(error._tag, "InvalidSignature")
    }))

  it.effect("names the signer without a list, too; the documented forms pass without a signer", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* admit({}, body(action))).signer, signer)
      assert.isUndefined((yield* admit({}, body({ type: "evmUserModify", modifications: [] }))).signer)
      assert.isUndefined((yield* admit({}, wrapped({ type: "tokenDelegate", amount: "1" }))).signer)
    }))

  it.effect("a signature that no key can have made is refused, with the reason", () =>
    Effect.gen(function*() {
      for (
        const [change, reason] of [
          [{ r: "0x0" }, "Signature cannot be recovered: invalidR"],
          [{ s: `0x${"f".repeat(64)}` }, "Signature cannot be recovered: invalidS"],
          [{ r: "0x5" }, "Signature cannot be recovered: notRecoverable"]
        ] as const
      ) {
        const error = yield* refusal({}, body(action, change))
        assert.deepStrictEqual([error.reason, error.recovered], [reason, undefined])
      }
    }))

  it.effect("an action for another network is refused: its signature is not for this one", () =>
    Effect.gen(function*() {
      const error = yield* refusal({ profile: testnet }, body(delegation))
      assert.strictEqual(error.reason, "signed for mainnet; this gateway sends to testnet")
      assert.include(error.detail, "The action is for \"Mainnet\", not for \"Testnet\"")
    }))

  it.effect("the signer that a caller expects has to be the one", () =>
    Effect.gen(function*() {
      const upper = `0x${signer.slice(2).toUpperCase()}` as const
      assert.strictEqual((yield* admit({}, body(action), upper)).signer, signer)
      const error = yield* refusal({}, body(action), stranger)
      assert.deepStrictEqual(
        [error.reason, error.recovered, error.expected],
        ["another signer was expected", signer, stranger]
      )
      const documented = yield* refusal({}, body({ type: "evmUserModify", modifications: [] }), signer)
      assert.include(documented.reason, "usingBigBlocks")
    }))

  it.effect("a pass-through type whose signed fields are not known passes without a signer, but not a list", () =>
    Effect.gen(function*() {
      const unknown = body({ type: "fromTheFuture", signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" })
      const options = { relayActions: ["fromTheFuture"] }
      assert.isUndefined((yield* admit(options, unknown)).signer)
      const error = yield* refusal({ ...options, signers: [signer] }, unknown)
      assert.strictEqual(error.reason, "User-signed action of a type with unknown fields")
    }))
})

describe("the fingerprint", () => {
  const of = (text: string) => Effect.map(admit({}, Utf8.encode(text)), ({ fingerprint }) => fingerprint)
  const variants = (action: object) => [
    bodyText(action),
    bodyText(action, {}, { nonce: nonce + 1 }),
    bodyText(action, {}, { expiresAfter: nonce + 1 }),
    bodyText(action, {}, { vaultAddress: stranger }),
    bodyText(action, { v: 27 })
  ]

  it.effect("does not change with bytes beside what was signed", () =>
    Effect.gen(function*() {
      const expected = yield* of(bodyText(action))
      assert.match(expected, /^0x[0-9a-f]{64}$/)
      const same = [
        JSON.stringify({ nonce, signature, action }, null, 2),
        bodyText(action, {}, { isFrontend: true, vaultAddress: null, expiresAfter: null }),
        bodyText({ usingBigBlocks: true, type: "evmUserModify", extra: 1 }),
        bodyText(action, { v: 1, r: `0x${signature.r.slice(2).toUpperCase()}` })
      ]
      for (const text of same) assert.strictEqual(yield* of(text), expected)
    }))

  it.effect("differs for another action, nonce, expiry, vault or signature", () =>
    Effect.gen(function*() {
      const found = yield* Effect.forEach([...variants(action), bodyText({ ...action, usingBigBlocks: false })], of)
      assert.strictEqual(new Set(found).size, 6)
    }))

  it.effect("identifies the text of a form whose signed bytes are not known", () =>
    Effect.gen(function*() {
      const form = { type: "evmUserModify", modifications: [] }
      const expected = yield* of(bodyText(form))
      assert.match(expected, /^0x[0-9a-f]{64}$/)
      assert.strictEqual(yield* of(JSON.stringify({ nonce, signature, action: form }, null, 2)), expected)
      assert.strictEqual(yield* of(bodyText(form, {}, { isFrontend: true, expiresAfter: null })), expected)
      const found = yield* Effect.forEach([...variants(form), bodyText({ ...form, modifications: [1] })], of)
      assert.strictEqual(new Set(found).size, 6)
    }))

  it.effect("of a multi-sig action covers the co-signers' signatures", () =>
    Effect.gen(function*() {
      const found = yield* Effect.forEach([keys.cosigner, keys.thirdCosigner], (cosigner) =>
        of(new TextDecoder().decode(signedWrapper(action, { cosigners: [cosigner] }))))
      assert.strictEqual(new Set(found).size, 2)
    }))
})

describe("a multi-sig wrapper", () => {
  it.effect("has its leader for a signer", () =>
    Effect.gen(function*() {
      const admitted = yield* admit({ signers: [leader.address] }, signedWrapper(delegation))
      assert.strictEqual(admitted.signer, leader.address)
    }))

  it.effect("is refused where another than its outerSigner signed it", () =>
    Effect.gen(function*() {
      const error = yield* refusal({}, signedWrapper(delegation, { outer: keys.cosigner }))
      assert.deepStrictEqual(
        [error.reason, error.recovered, error.expected],
        [
          "the outer signature of a multiSig must be by its outerSigner",
          keys.cosigner.address,
          leader.address
        ]
      )
    }))

  it.effect("is refused where a co-signer counts twice", () =>
    Effect.gen(function*() {
      const cosigners = [keys.cosigner, keys.thirdCosigner, keys.cosigner]
      const error = yield* refusal({}, signedWrapper(action, { cosigners }))
      assert.deepStrictEqual(
        [error.reason, error.recovered],
        ["each co-signer may sign only once, but signature 2 is the second of this co-signer", keys.cosigner.address]
      )
    }))

  it.effect("is refused where an inner signature recovers to nobody", () =>
    Effect.gen(function*() {
      const error = yield* refusal({}, wrapped(action, [{ r: "0x1", s: "0x2", v: 27 }, { r: "0x5", s: "0x2", v: 27 }]))
      assert.strictEqual(error.reason, "Inner signature 1 cannot be recovered: notRecoverable")
    }))

  it.effect("is relayed by its leader's signature alone where the inner type is not known", () =>
    Effect.gen(function*() {
      const inner = { type: "fromTheFuture", signatureChainId: "0x66eee" }
      const options = { relayActions: "all" } as const
      const byStranger = yield* refusal(options, wrapped(inner))
      assert.strictEqual(byStranger.expected, leader.address)
      const text = new TextDecoder().decode(wrapped(inner))
      assert.strictEqual((yield* admit(options, Utf8.encode(signLeader(text)))).signer, leader.address)
    }))
})
