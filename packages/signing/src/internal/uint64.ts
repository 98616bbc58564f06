/** Unsigned 64-bit integers as JSON readers hand them over: as a number or, when large, as a bigint. */

const limit = 1n << 64n

/** The value as a bigint, or `undefined` when it is no integer from 0 to 2^64 - 1. */
export const toUint64 = (value: unknown): bigint | undefined => {
  const integer = typeof value === "number" && Number.isInteger(value) ? BigInt(value) : value
  return typeof integer === "bigint" && integer >= 0n && integer < limit ? integer : undefined
}

/** Eight bytes, big-endian. */
export const uint64Bytes = (value: bigint): Uint8Array => {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, value)
  return bytes
}
