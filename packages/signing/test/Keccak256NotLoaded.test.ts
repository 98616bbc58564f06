import { assert, describe, it } from "@effect/vitest"
import { keccak_256 } from "@noble/hashes/sha3"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as ActionHash from "@trigate/signing/unstable/actions/ActionHash"
import * as Effect from "effect/Effect"
import { bytesToHex } from "viem/utils"
import { vi } from "vitest"

// another file of this process may have loaded it
vi.hoisted(() => vi.resetModules())

vi.mock("hash-wasm", () => ({
  createKeccak: () => Promise.reject(new Error("Refused to compile WebAssembly"))
}))

describe("where WebAssembly is forbidden", () => {
  it.effect("noble goes on hashing", () =>
    Effect.gen(function*() {
      yield* Effect.provide(Effect.void, Secp256k1.layer)
      const preimage = yield* Effect.fromResult(ActionHash.preimage("text", { nonce: 1 }))
      const hash = yield* Effect.fromResult(ActionHash.hash("text", { nonce: 1 }))
      assert.strictEqual(hash, bytesToHex(keccak_256(preimage)))
    }))
})
