/** From a digest and a signature back to the address that signed. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { addressOf, fromHex, type Hex, isWord } from "./internal/bytes.ts"
import { scalarBytes } from "./internal/scalar.ts"
import { type Engine, noble, Secp256k1 } from "./Secp256k1.ts"
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

const parities: ReadonlyMap<number, 0 | 1> = new Map([[0, 0], [1, 1], [27, 0], [28, 1]])

const fail = (reason: UnrecoverableSignature["reason"]) => Result.fail(new UnrecoverableSignature({ reason }))

/** {@link recover} without an effect, by the engine that is given. */
export const recoverResult = (
  digest: string,
  signature: Signature,
  engine: Engine = noble
): Result.Result<Hex, UnrecoverableSignature> => {
  const recovery = parities.get(Number(signature.v))
  if (recovery === undefined) {
    return fail("invalidV")
  }
  const r = scalarBytes(signature.r)
  if (r === undefined) {
    return fail("invalidR")
  }
  const s = scalarBytes(signature.s)
  if (s === undefined) {
    return fail("invalidS")
  }
  if (!isWord(digest)) {
    return fail("invalidDigest")
  }
  const bytes = new Uint8Array(64)
  bytes.set(r)
  bytes.set(s, 32)
  const publicKey = engine.recover(fromHex(digest), { bytes, recovery })
  return Option.isSome(publicKey) ? Result.succeed(addressOf(publicKey.value)) : fail("notRecoverable")
}

/**
 * The lower-case address that signed a 32-byte digest, by the engine of {@link Secp256k1}; fails with
 * {@link UnrecoverableSignature}.
 *
 * `r` and `s` may be padded or trimmed. A signature over other bytes recovers too, to an address that nobody holds:
 * only comparing the address tells.
 */
export const recover = (digest: string, signature: Signature): Effect.Effect<Hex, UnrecoverableSignature> =>
  Effect.flatMap(Secp256k1, (engine) => Effect.fromResult(recoverResult(digest, signature, engine)))
