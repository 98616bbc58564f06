/** Bytes, hexadecimal text and addresses. */
import { bytesToHex, hexToBytes, utf8ToBytes } from "@noble/hashes/utils"
import { keccak256 } from "./Keccak256.ts"

export type Hex = `0x${string}`

const wordPattern = /^0x[0-9a-fA-F]{64}$/

const addressPattern = /^0x[0-9a-fA-F]{40}$/

export const utf8 = (text: string): Uint8Array => utf8ToBytes(text)

export const toHex = (bytes: Uint8Array): Hex => `0x${bytesToHex(bytes)}`

/** Caller has checked that the text is an even number of hexadecimal digits. */
export const fromHex = (hex: string): Uint8Array => hexToBytes(hex.slice(2))

export const lowerCase = (hex: string): Hex => `0x${hex.slice(2).toLowerCase()}`

export const isAddress = (value: unknown): value is Hex => typeof value === "string" && addressPattern.test(value)

export const isWord = (value: unknown): value is Hex => typeof value === "string" && wordPattern.test(value)

/** The address of an uncompressed public key of 65 bytes. */
export const addressOf = (publicKey: Uint8Array): Hex => toHex(keccak256(publicKey.subarray(1)).subarray(12))
