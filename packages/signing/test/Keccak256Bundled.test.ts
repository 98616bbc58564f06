import { assert, describe, it } from "@effect/vitest"
import { keccak_256 } from "@noble/hashes/sha3"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as ActionHash from "@trigate/signing/unstable/actions/ActionHash"
import * as Effect from "effect/Effect"
import type * as hashWasm from "hash-wasm"
import { bytesToHex } from "viem/utils"
import { vi } from "vitest"

// another file of this process may have loaded it
vi.hoisted(() => vi.resetModules())

const digests = vi.hoisted(() => ({ count: 0 }))

// what esbuild makes of the package's CommonJS file
vi.mock("hash-wasm", async (original) => {
  const { createKeccak } = await original<typeof hashWasm>()
  return {
    createKeccak: undefined,
    default: {
      createKeccak: async (bits: 256) => {
        const hasher = await createKeccak(bits)
        return {
          ...hasher,
          init: () => {
            digests.count++
            return hasher.init()
          }
        }
      }
    }
  }
})

describe("where a bundler provides hash-wasm as a default export", () => {
  it.effect("it hashes, not noble", () =>
    Effect.gen(function*() {
      yield* Effect.provide(Effect.void, Secp256k1.layer)
      const preimage = yield* Effect.fromResult(ActionHash.preimage("text", { nonce: 1 }))
      const before = digests.count
      const hash = yield* Effect.fromResult(ActionHash.hash("text", { nonce: 1 }))
      assert.strictEqual(digests.count, before + 1)
      assert.strictEqual(hash, bytesToHex(keccak_256(preimage)))
    }))
})
