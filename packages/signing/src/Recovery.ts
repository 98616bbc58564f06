/** From a digest and a signature back to the address that signed. */
import { secp256k1 } from "@noble/curves/secp256k1"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { fromHex, type Hex, isWord, keccak256, toHex } from "./internal/bytes.ts"
import type { Signature } from "./Signature.ts"

/**
 * A signature from which no address follows.
 *
 * `invalidV`: not 0, 1, 27 or 28. `invalidR`, `invalidS`: not 0x hex of 1 to 64 digits, or not from 1 to the group
 * order minus 1. `invalidDigest`: not 32 bytes. `notRecoverable`: no point of the curve answers. `innerIndex` says
 * which inner signature of a multi-sig wrapper it was; absent for the signature of the request itself.
 */
export class UnrecoverableSignature extends Schema.TaggedError<UnrecoverableSignature>()("UnrecoverableSignature", {
  reason: Schema.Literals(["invalidV", "invalidR", "invalidS", "invalidDigest", "notRecoverable"]),
  innerIndex: Schema.optionalKey(Schema.Int)
}) {
  override get message() {
    const which = this.innerIndex === undefined ? "Signature" : `Inner signature ${this.innerIndex}`
    return `${which} cannot be recovered: ${this.reason}`
  }
}

const order = secp256k1.CURVE.n

const parities: ReadonlyMap<number, 0 | 1> = new Map([[0, 0], [1, 1], [27, 0], [28, 1]])

const fail = (reason: UnrecoverableSignature["reason"]) => Result.fail(new UnrecoverableSignature({ reason }))

const readScalar = (text: string): bigint | undefined => {
  const scalar = /^0x[0-9a-fA-F]{1,64}$/.test(text) ? BigInt(text) : 0n
  return scalar > 0n && scalar < order ? scalar : undefined
}

/** {@link recover} without an effect. */
export const recoverResult = (
  digest: string,
  signature: Signature
): Result.Result<Hex, UnrecoverableSignature> => {
  const parity = parities.get(Number(signature.v))
  if (parity === undefined) {
    return fail("invalidV")
  }
  const r = readScalar(signature.r)
  if (r === undefined) {
    return fail("invalidR")
  }
  const s = readScalar(signature.s)
  if (s === undefined) {
    return fail("invalidS")
  }
  if (!isWord(digest)) {
    return fail("invalidDigest")
  }
  return Result.try({
    try: () => {
      const point = new secp256k1.Signature(r, s).addRecoveryBit(parity).recoverPublicKey(fromHex(digest))
      return toHex(keccak256(point.toRawBytes(false).subarray(1)).subarray(12))
    },
    catch: () => new UnrecoverableSignature({ reason: "notRecoverable" })
  })
}

/**
 * The lower-case address that signed a 32-byte digest; fails with {@link UnrecoverableSignature}.
 *
 * `r` and `s` may be padded or trimmed. A signature over other bytes recovers too, to an address that nobody holds:
 * only comparing the address tells.
 */
export const recover = (digest: string, signature: Signature): Effect.Effect<Hex, UnrecoverableSignature> =>
  Effect.suspend(() => Effect.fromResult(recoverResult(digest, signature)))
