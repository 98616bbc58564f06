/** Bytes, hexadecimal text and addresses. */
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils"
import { keccak256 } from "./Keccak256.ts"

export type Hex = `0x${string}`

const wordPattern = /^0x[0-9a-fA-F]{64}$/

const addressPattern = /^0x[0-9a-fA-F]{40}$/

export const utf8 = (text: string): Uint8Array => utf8ToBytes(text)

export const toHex = (bytes: Uint8Array): Hex => `0x${bytesToHex(bytes)}`

/** 0 to 15 of a hexadecimal digit in ASCII: the low bits of a digit are its value, those of a letter 9 less. */
const nibble = (code: number): number => (code & 0x0f) + (code >> 6) * 9

/** Writes the bytes that 0x hex spells. Caller has checked that it is an even number of hexadecimal digits. */
export const writeHex = (hex: string, into: Uint8Array, at: number): void => {
  let to = at
  for (let from = 2; from < hex.length; from += 2) {
    into[to] = (nibble(hex.charCodeAt(from)) << 4) | nibble(hex.charCodeAt(from + 1))
    to++
  }
}

/** Caller has checked that the text is an even number of hexadecimal digits. */
export const fromHex = (hex: string): Uint8Array => {
  const bytes = new Uint8Array((hex.length - 2) / 2)
  writeHex(hex, bytes, 0)
  return bytes
}

export const lowerCase = (hex: string): Hex => `0x${hex.slice(2).toLowerCase()}`

export const isAddress = (value: unknown): value is Hex => typeof value === "string" && addressPattern.test(value)

export const isWord = (value: unknown): value is Hex => typeof value === "string" && wordPattern.test(value)

/** The address of an uncompressed public key of 65 bytes. */
export const addressOf = (publicKey: Uint8Array): Hex => toHex(keccak256(publicKey.subarray(1)).subarray(12))
