/** Signatures that were made elsewhere: read in any of the usual forms, and taken only from the key they should be of. */
import type { Signature } from "@trigate/domain/Signature"
import * as Result from "effect/Result"
import * as Recovery from "../Recovery.ts"
import type { Engine } from "../Secp256k1.ts"
import type { Signature as Recoverable } from "../Signature.ts"
import type { Hex } from "./bytes.ts"
import { order } from "./scalar.ts"

/** 65 bytes in 0x hex as wallets give them, or the numbers alone as key stores do, which know no `v`. */
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

/** The lower of the two values of `s`: key stores give either, and some verifiers take that one only. */
const lowest = (s: bigint): bigint => s > order / 2n ? order - s : s

/**
 * The signature in the venue's form, or else the address that it recovers to.
 *
 * Which `v` belongs to a signature follows from the address, so a missing or foreign one does no harm.
 */
export const verifiedSignature = (
  engine: Engine,
  address: Hex,
  digest: Hex,
  given: GivenSignature
): Result.Result<Signature, Hex | undefined> => {
  const read = parts(given)
  if (read === undefined || !scalar.test(read.r) || !scalar.test(read.s)) {
    return Result.fail(undefined)
  }
  const signerOf = (signature: Recoverable) => Result.getOrUndefined(Recovery.recoverResult(digest, signature, engine))
  const r = padded(BigInt(read.r))
  const s = padded(lowest(BigInt(read.s)))
  const v = ([27, 28] as const).find((v) => signerOf({ r, s, v }) === address)
  return v === undefined ? Result.fail(signerOf({ ...read, v: read.v ?? 27 })) : Result.succeed({ r, s, v })
}
