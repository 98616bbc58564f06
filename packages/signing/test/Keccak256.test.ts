import { assert, describe, it } from "@effect/vitest"
import type * as Sha3 from "@noble/hashes/sha3"
import { keccak_256 } from "@noble/hashes/sha3"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as ActionHash from "@trigate/signing/unstable/actions/ActionHash"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { bytesToHex } from "viem/utils"
import { vi } from "vitest"

const byNoble = vi.hoisted(() => {
  // another file of this process may have loaded the one in WebAssembly
  vi.resetModules()
  return { count: 0 }
})

vi.mock("@noble/hashes/sha3", async (importOriginal) => {
  const original = await importOriginal<typeof Sha3>()
  const counted = (bytes: Uint8Array) => {
    byNoble.count++
    return original.keccak_256(bytes)
  }
  return { ...original, keccak_256: counted }
})

const context = { nonce: 1 }
const texts = [...Array.from({ length: 420 }, (_, length) => "x".repeat(length)), "y".repeat(100_000)]
const expected = texts.map((text) => bytesToHex(keccak_256(Result.getOrThrow(ActionHash.preimage(text, context)))))

/** The hashes of all texts, and how many of them noble computed. */
const hashed = (): readonly [ReadonlyArray<string>, number] => {
  const before = byNoble.count
  return [texts.map((text) => Result.getOrThrow(ActionHash.hash(text, context))), byNoble.count - before]
}

describe("keccak-256", () => {
  it.effect("is noble's until a layer has loaded the one in WebAssembly, which gives the same hashes", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(hashed(), [expected, texts.length])
      yield* Effect.provide(Effect.void, Secp256k1.layer)
      assert.deepStrictEqual(hashed(), [expected, 0])
    }))
})
