import { assert, describe, it } from "@effect/vitest"
import { keccak_256 } from "@noble/hashes/sha3"
import * as ActionHash from "@trigate/signing/unstable/actions/ActionHash"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { bytesToHex } from "viem/utils"

const agrees = (value: unknown, nonce: number) => {
  const preimage = Result.getOrThrow(ActionHash.preimage(value, { nonce }))
  assert.strictEqual(
    Result.getOrThrow(ActionHash.hash(value, { nonce })),
    bytesToHex(keccak_256(preimage)),
    `${preimage.length} bytes`
  )
  return preimage.length
}

describe("ActionHash.hash", () => {
  it("agrees with another keccak-256 over the preimage, at every length around the ends of the first blocks", () => {
    const lengths = new Set(Array.from({ length: 430 }, (_, length) => agrees("x".repeat(length), length * 977)))
    for (const length of [134, 135, 136, 137, 271, 272, 273, 407, 408, 409]) {
      assert.isTrue(lengths.has(length), String(length))
    }
  })

  const Natural = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))

  it.effect.prop(
    "agrees with it over any action",
    { values: Schema.Array(Schema.Union([Schema.String, Natural, Schema.Boolean])), nonce: Natural },
    ({ nonce, values }) => Effect.sync(() => agrees(values.filter((value) => wellFormed(value)), nonce)),
    { arbitrary: { runs: 300 } }
  )
})

const wellFormed = (value: unknown) => typeof value !== "string" || value.isWellFormed()
