import { assert, describe, it } from "@effect/vitest"
import type * as Sha3 from "@noble/hashes/sha3"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { mainnet } from "@trigate/signing/VenueProfile"
import { leader, signMultiSig } from "@trigate/testing/MultiSigText"
import * as Admission from "@trigate/trading/admission/Admission"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { vi } from "vitest"

const hashes = vi.hoisted(() => {
  // another file of this process may have loaded keccak-256 in WebAssembly, which is not counted
  vi.resetModules()
  return { count: 0 }
})

vi.mock("@noble/hashes/sha3", async (importOriginal) => {
  const original = await importOriginal<typeof Sha3>()
  const counted = (bytes: Uint8Array) => {
    hashes.count++
    return original.keccak_256(bytes)
  }
  return { ...original, keccak_256: counted }
})

const nonce = 1_705_234_567_890
const address = "0x0123456789abcdef0123456789abcdef01234567"
const bodyOf = (action: object) => JSON.stringify({ action, nonce, signature: { r: "0x1", s: "0x2", v: 27 } })
const bigBlocks = { type: "evmUserModify", usingBigBlocks: true }
const delegation = {
  type: "tokenDelegate",
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet",
  validator: address,
  wei: 100,
  isUndelegate: false,
  nonce
}
const wrapper = {
  type: "multiSig",
  signatureChainId: "0x66eee",
  signatures: [{ r: "0x1", s: "0x2", v: 27 }],
  payload: { multiSigUser: address, outerSigner: leader.address, action: bigBlocks }
}

/** How often a body is parsed, and how many hashes its check takes. */
const workOf = Effect.fnUntraced(function*(text: string) {
  const admission = Admission.make(mainnet)
  yield* TestClock.setTime(nonce)
  const body = Utf8.encode(text)
  // domains and the hashes of short texts are made at the first call
  yield* admission.admit(body)
  const parse = vi.spyOn(JSON, "parse")
  const before = hashes.count
  yield* admission.admit(body)
  const parses = parse.mock.calls.length
  parse.mockRestore()
  return { parses, hashes: hashes.count - before }
})

describe("a signed body is parsed once and each of its hashes is computed once", () => {
  it.effect("an L1 action: action, agent, digest, address, fingerprint", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* workOf(bodyOf(bigBlocks)), { parses: 1, hashes: 5 })
    }))

  it.effect("a user-signed action: message, digest, address, fingerprint", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* workOf(bodyOf(delegation)), { parses: 1, hashes: 4 })
    }))

  it.effect("a multi-sig action: the same for wrapper and inner action, an address for each of two co-signers", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* workOf(signMultiSig(bodyOf(wrapper))), { parses: 1, hashes: 4 + 3 + 2 + 1 })
    }))
})
