/** Bytes, hex strings, unsigned 64-bit integers, keccak-256 and addresses. */
import { keccak_256 } from "@noble/hashes/sha3"
import { bytesToHex } from "@noble/hashes/utils"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as hashWasm from "hash-wasm"

export type Hex = `0x${string}`

const wordPattern = /^0x[0-9a-fA-F]{64}$/

const addressPattern = /^0x[0-9a-fA-F]{40}$/

/** Returns the character code of a hexadecimal digit in lower case. */
const digitCode = (value: number): number => value + (value < 10 ? 0x30 : 0x57)

/** Reused buffer for the character codes of the hex digits of up to 64 bytes. */
const codes = [...new Uint8Array(128)]

/**
 * Encodes bytes in 0x hex. Up to 64 bytes become one flat string. The library noble instead concatenates one string per
 * byte, and the JavaScript engine retains all these strings in memory.
 */
export const toHex = (bytes: Uint8Array): Hex => {
  if (bytes.length > 64) return `0x${bytesToHex(bytes)}`
  let at = 0
  for (const byte of bytes) {
    codes[at] = digitCode(byte >> 4)
    codes[at + 1] = digitCode(byte & 0x0f)
    at += 2
  }
  return `0x${String.fromCharCode(...codes.slice(0, at))}`
}

/**
 * Returns the value of an ASCII hexadecimal digit. For 0 to 9 the value is the code's low four bits; for a letter it is
 * 9 more than these bits.
 */
const nibble = (code: number): number => (code & 0x0f) + (code >> 6) * 9

/**
 * Writes the bytes of a hex string into a buffer, from the index `at`. The string must be 0x and an even number of
 * digits.
 */
export const writeHex = (hex: string, into: Uint8Array, at: number): void => {
  let to = at
  for (let from = 2; from < hex.length; from += 2) {
    into[to] = (nibble(hex.charCodeAt(from)) << 4) | nibble(hex.charCodeAt(from + 1))
    to++
  }
}

/** Decodes a hex string; see {@link writeHex} for its format. */
export const fromHex = (hex: string): Uint8Array => {
  const bytes = new Uint8Array((hex.length - 2) / 2)
  writeHex(hex, bytes, 0)
  return bytes
}

/** Formats a hex number in lower case without leading zeros, as the venue does before hashing. */
export const trimmedHex = (hex: string): Hex => `0x${hex.slice(2).toLowerCase().replace(/^0+(?=.)/, "")}`

export const isAddress = (value: unknown): value is Hex => typeof value === "string" && addressPattern.test(value)

/** Returns whether a value is 32 bytes in 0x hex. */
export const isWord = (value: unknown): value is Hex => typeof value === "string" && wordPattern.test(value)

/** Returns whether a value is 0x hex with an even number of digits, possibly none. */
export const isBytes = (value: unknown): value is Hex =>
  typeof value === "string" && /^0x(?:[0-9a-fA-F]{2})*$/.test(value)

/** Concatenates bytes. */
export const concat = (...parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  let length = 0
  for (const part of parts) length += part.length
  const joined = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}

const uint64Limit = 1n << 64n

/** Converts a number or bigint to a bigint; `undefined` if it is not an integer from 0 to 2^64 - 1. */
export const toUint64 = (value: unknown): bigint | undefined => {
  const integer = typeof value === "number" && Number.isInteger(value) ? BigInt(value) : value
  return typeof integer === "bigint" && integer >= 0n && integer < uint64Limit ? integer : undefined
}

/** Like {@link toUint64}, for integers below 2^32. */
export const toUint32 = (value: unknown): bigint | undefined => {
  const integer = toUint64(value)
  return integer !== undefined && integer < 1n << 32n ? integer : undefined
}

/** Encodes an integer in eight bytes, big-endian. */
export const uint64Bytes = (value: bigint): Uint8Array => {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, value)
  return bytes
}

/** The keccak-256 function in use. {@link loadKeccak} replaces it with a faster one that returns the same digests. */
let hash: (bytes: Uint8Array) => Uint8Array = keccak_256

/**
 * Returns the keccak-256 hash, with Ethereum's padding instead of the padding of SHA-3. Uses noble until {@link
 * loadKeccak} has run.
 */
export const keccak256 = (bytes: Uint8Array): Uint8Array => hash(bytes)

type HashWasm = Pick<typeof hashWasm, "createKeccak">

const isHashWasm = (module: unknown): module is HashWasm =>
  Predicate.hasProperty(module, "createKeccak") && Predicate.isFunction(module.createKeccak)

/**
 * Imports `hash-wasm`. A bundler that reads the library's CommonJS file provides the functions only as members of
 * `default`.
 */
const importHashWasm = Effect.tryPromise((): Promise<object> => import("hash-wasm")).pipe(
  Effect.map((module) => [module, Predicate.hasProperty(module, "default") ? module.default : undefined]),
  Effect.flatMap((found) => Effect.fromOption(Arr.findFirst(found, isHashWasm)))
)

const createHasher = Effect.flatMap(
  importHashWasm,
  ({ createKeccak }) => Effect.tryPromise(() => createKeccak(256))
)

/**
 * Replaces the implementation of {@link keccak256} with one that is about ten times as fast. If WebAssembly is
 * unavailable, `keccak256` continues to use noble.
 */
export const loadKeccak: Effect.Effect<void> = Effect.match(createHasher, {
  onFailure: () => undefined,
  onSuccess: (hasher) => {
    // hashing is synchronous, so all calls can share one hasher
    hash = (bytes) => hasher.init().update(bytes).digest("binary")
  }
})

/** Returns the address of an uncompressed public key of 65 bytes. */
export const publicKeyAddress = (publicKey: Uint8Array): Hex => toHex(keccak256(publicKey.subarray(1)).subarray(12))
