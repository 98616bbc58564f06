/** A recoverable secp256k1 signature as the venue's JSON spells it. */
import type { Hex } from "./internal/bytes.ts"

/** `r` and `s`: 0x hex of 1 to 64 digits, leading zeros kept or dropped. `v`: 27 or 28; 0 and 1 are understood. */
export interface Signature {
  readonly r: string
  readonly s: string
  readonly v: number | bigint
}

const trimScalar = (hex: string): Hex => `0x${hex.slice(2).toLowerCase().replace(/^0+(?=.)/, "")}`

/**
 * The signature without leading zeros, in hash order.
 *
 * The venue prints inner multi-sig signatures this way before it hashes them; an untrimmed one makes the outer
 * signature recover to a stranger.
 */
export const trimmed = (signature: Signature) => ({
  r: trimScalar(signature.r),
  s: trimScalar(signature.s),
  v: signature.v
})
