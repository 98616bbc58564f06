/** Signatures: as the venue's JSON spells them, back to the address that signed, and checked when made elsewhere. */
import type { Signature as VenueSignature } from "@trigate/domain/Signature"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { addressOf, fromHex, type Hex, isWord, trimmedHex } from "./internal/bytes.ts"
import { type Engine, noble, order, scalarBytes, Secp256k1 } from "./Secp256k1.ts"

/** `r` and `s`: 0x hex of 1 to 64 digits, leading zeros kept or dropped. `v`: 27 or 28; 0 and 1 are understood. */
export interface Signature {
  readonly r: string
  readonly s: string
  readonly v: number | bigint
}

/**
 * The signature without leading zeros, in hash order.
 *
 * The venue prints inner multi-sig signatures this way before it hashes them; an untrimmed one makes the outer
 * signature recover to a stranger.
 */
export const trimmed = <V extends Signature["v"]>({ r, s, v }: Omit<Signature, "v"> & { readonly v: V }) => ({
  r: trimmedHex(r),
  s: trimmedHex(s),
  v
})

/**
 * A signature from which no address follows.
 *
 * `invalidV`: not 0, 1, 27 or 28. `invalidR`, `invalidS`: not 0x hex of 1 to 64 digits, or not from 1 to the group
 * order minus 1. `invalidDigest`: not 32 bytes. `notRecoverable`: no point of the curve belongs to it. `innerIndex` says
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
  if (recovery === undefined) return fail("invalidV")
  const r = scalarBytes(signature.r)
  if (r === undefined) return fail("invalidR")
  const s = scalarBytes(signature.s)
  if (s === undefined) return fail("invalidS")
  if (!isWord(digest)) return fail("invalidDigest")
  const bytes = new Uint8Array(64)
  bytes.set(r)
  bytes.set(s, 32)
  const publicKey = engine.recover(fromHex(digest), { bytes, recovery })
  return Option.isSome(publicKey) ? Result.succeed(addressOf(publicKey.value)) : fail("notRecoverable")
}

/**
 * The lower-case address that signed a 32-byte digest, by the engine of `Secp256k1`; fails with
 * {@link UnrecoverableSignature}.
 *
 * `r` and `s` may be padded or trimmed. A signature over other bytes recovers too, to an address that nobody holds, so
 * compare the address with the one that you expect.
 */
export const recover = (digest: string, signature: Signature): Effect.Effect<Hex, UnrecoverableSignature> =>
  Effect.flatMap(Secp256k1, (engine) => Effect.fromResult(recoverResult(digest, signature, engine)))

/** A signature made elsewhere: 65 bytes in 0x hex as wallets give them, or its numbers; key stores know no `v`. */
export type GivenSignature = string | {
  readonly r: string
  readonly s: string
  readonly v?: number | bigint | undefined
}

const wire = /^0x[0-9a-fA-F]{130}$/

const scalar = /^0x[0-9a-fA-F]{1,64}$/

const parts = (given: GivenSignature) =>
  typeof given !== "string" ? given : wire.test(given)
    ? { r: given.slice(0, 66), s: `0x${given.slice(66, 130)}`, v: Number(`0x${given.slice(130)}`) }
    : undefined

const padded = (value: bigint): Hex => `0x${value.toString(16).padStart(64, "0")}`

/** The lower of the two values of `s`: key stores give either, and some verifiers take only the lower one. */
const lowest = (s: bigint): bigint => s > order / 2n ? order - s : s

/**
 * The signature in the venue's form when it is by `address` (lower case); fails with the address that it recovers to.
 *
 * The right `v` follows from the address, so a missing or wrong one does no harm.
 */
export const verified = (
  engine: Engine,
  address: Hex,
  digest: Hex,
  given: GivenSignature
): Result.Result<VenueSignature, Hex | undefined> => {
  const read = parts(given)
  if (read === undefined || !scalar.test(read.r) || !scalar.test(read.s)) return Result.fail(undefined)
  const signerOf = (signature: Signature) => Result.getOrUndefined(recoverResult(digest, signature, engine))
  const r = padded(BigInt(read.r))
  const s = padded(lowest(BigInt(read.s)))
  const v = ([27, 28] as const).find((v) => signerOf({ r, s, v }) === address)
  return v === undefined ? Result.fail(signerOf({ ...read, v: read.v ?? 27 })) : Result.succeed({ r, s, v })
}
