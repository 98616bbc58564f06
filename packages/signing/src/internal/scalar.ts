/** Scalars of the secp256k1 group, as hexadecimal text. */
import { fromHex } from "./bytes.ts"

/** The number of points in the group. */
export const order = 0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe_baae_dce6_af48_a03b_bfd2_5e8c_d036_4141n

const orderDigits = order.toString(16)

const zeroDigits = "0".repeat(64)

const pattern = /^0x[0-9a-fA-F]{1,64}$/

/** The 32 bytes of 0x hex with or without leading zeros; nothing when it is not from 1 to the group order minus 1. */
export const scalarBytes = (text: string): Uint8Array | undefined => {
  if (!pattern.test(text)) {
    return undefined
  }
  const digits = text.slice(2).toLowerCase().padStart(64, "0")
  // digits of equal length are ordered as the numbers that they spell
  return digits < orderDigits && digits !== zeroDigits ? fromHex(`0x${digits}`) : undefined
}
