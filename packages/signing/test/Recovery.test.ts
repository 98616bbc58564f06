import { assert, describe, it } from "@effect/vitest"
import type { Signature } from "@trigate/signing/Secp256k1"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import { sampleRuns } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { recoverAddress } from "viem/utils"
import { singles, vector } from "./vectors.ts"

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

const toHex = (value: bigint): `0x${string}` => `0x${value.toString(16)}`

const { digest, signature, signer } = (() => {
  const found = vector("us-153")
  assert(found.scheme === "userSigned")
  return found
})()

const reason = (input: Signature, over: string = digest) =>
  Effect.map(Effect.flip(Secp256k1.recover(over, input)), (error) => {
    assert.strictEqual(error._tag, "UnrecoverableSignature")
    return error.reason
  })

const Index = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: singles.length - 1 }))

const Digits = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 64 }))

const Scalar = Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: 1n, maximum: order - 1n }))

/** The scalar with as many leading zeros as `digits` leaves room for. */
const spell = (hex: string, digits: number) => `0x${BigInt(hex).toString(16).padStart(digits, "0")}`

describe("Secp256k1.recover", () => {
  it.effect("takes v as 0, 1, 27 or 28, as number or bigint", () =>
    Effect.gen(function*() {
      for (const v of [signature.v, signature.v - 27, BigInt(signature.v)]) {
        assert.strictEqual(yield* Secp256k1.recover(digest, { ...signature, v }), signer)
      }
      for (const v of [2, 26, 29, 37, -1, 27.5, Number.NaN, 2n ** 70n]) {
        assert.strictEqual(yield* reason({ ...signature, v }), "invalidV")
      }
    }))

  it.effect("refuses r and s that are no scalars of the group", () =>
    Effect.gen(function*() {
      const bad = ["", "0x", "0x0", `0x${"0".repeat(64)}`, `0x0${signature.r.slice(2)}`, "0xg1", "12", toHex(order)]
      for (const text of [...bad, toHex(2n ** 256n - 1n)]) {
        assert.strictEqual(yield* reason({ ...signature, r: text }), "invalidR")
        assert.strictEqual(yield* reason({ ...signature, s: text }), "invalidS")
      }
    }))

  it.effect("refuses an r that is no point's, and a digest that is not 32 bytes", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* reason({ ...signature, r: "0x5" }), "notRecoverable")
      assert.strictEqual(yield* reason(signature, "0x1234"), "invalidDigest")
      assert.strictEqual(yield* reason(signature, `${digest}00`), "invalidDigest")
    }))

  it.effect("recovers the mirrored signature (n - s, other parity) to the same signer", () =>
    Effect.gen(function*() {
      const mirrored = { r: signature.r, s: toHex(order - BigInt(signature.s)), v: 55 - signature.v }
      assert.strictEqual(yield* Secp256k1.recover(digest, mirrored), signer)
    }))

  it.effect.prop(
    "does not care for leading zeros or letter case",
    { index: Index, r: Digits, s: Digits, upper: Schema.Boolean },
    ({ index, r, s, upper }) =>
      Effect.gen(function*() {
        const single = singles[index]
        assert(single !== undefined)
        const spelled = { ...single.signature, r: spell(single.signature.r, r), s: spell(single.signature.s, s) }
        const cased = upper ? { ...spelled, r: `0x${spelled.r.slice(2).toUpperCase()}` } : spelled
        assert.strictEqual(yield* Secp256k1.recover(single.digest, cased), single.signer)
      }),
    { arbitrary: { runs: sampleRuns(60) } }
  )

  it.effect.prop(
    "agrees with viem on any scalars",
    { r: Scalar, s: Scalar, odd: Schema.Boolean },
    ({ odd, r, s }) =>
      Effect.gen(function*() {
        const input = { r: toHex(r), s: toHex(s), v: odd ? 28n : 27n }
        const ours = Secp256k1.recover(digest, input)
        const theirs = Effect.map(
          Effect.tryPromise(() => recoverAddress({ hash: digest, signature: { ...input, yParity: odd ? 1 : 0 } })),
          (address) => address.toLowerCase()
        )
        const orNone = Effect.orElseSucceed(() => "none")
        assert.strictEqual(yield* orNone(ours), yield* orNone(theirs))
      }),
    { arbitrary: { runs: sampleRuns(40) } }
  )
})
