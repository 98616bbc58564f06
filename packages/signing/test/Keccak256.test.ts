import { assert, describe, it } from "@effect/vitest"
import { keccak_256 } from "@noble/hashes/sha3"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { bytesToHex } from "viem/utils"
import { keccak256 } from "../src/internal/Keccak256.ts"

/** Bytes that follow from a seed, so that a failure can be repeated. */
const bytesOf = (seed: number, length: number) =>
  Uint8Array.from({ length }, (_, index) => Math.imul(seed + index, 0x9e3779b1) >>> 24)

describe("keccak256", () => {
  it("has the known hash of nothing", () => {
    assert.strictEqual(
      bytesToHex(keccak256(new Uint8Array(0))),
      "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    )
  })

  it("agrees with noble at every length around the ends of the first blocks, wherever the bytes lie", () => {
    for (let length = 0; length <= 420; length++) {
      const padded = bytesOf(length, length + 7)
      const bytes = padded.subarray(length % 7, length % 7 + length)
      assert.strictEqual(bytesToHex(keccak256(bytes)), bytesToHex(keccak_256(bytes)), String(length))
    }
  })

  const Natural = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5000 }))

  it.effect.prop(
    "agrees with noble on any bytes, and never hands out its buffer",
    { seed: Natural, length: Natural },
    ({ length, seed }) =>
      Effect.sync(() => {
        const bytes = bytesOf(seed, length)
        const hash = keccak256(bytes)
        keccak256(bytes.subarray(1))
        assert.strictEqual(bytesToHex(hash), bytesToHex(keccak_256(bytes)))
      }),
    { arbitrary: { runs: 300 } }
  )
})
