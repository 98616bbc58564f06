/**
 * The format of a caller's key: `tg_`, ten hex digits that can appear in logs, `_`, and 256 random bits in hex.
 *
 * The characters of a key need no escaping in a path, a header or a query. Only the SHA-256 of a key is stored. A slow
 * hash is not needed, because 256 random bits cannot be guessed.
 */
import { sha256 } from "@noble/hashes/sha2"
import { bytesToHex } from "@noble/hashes/utils"
import * as Context from "effect/Context"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"

/** The parts of a key, in hex. */
export interface Parts {
  /** Identifies the key in logs and lists; 10 digits. */
  readonly prefix: string
  /** The secret part of the key; 64 digits. */
  readonly secret: string
}

/** Formats a key. */
export const format = ({ prefix, secret }: Parts): string => `tg_${prefix}_${secret}`

/** The length of a key in characters. */
export const length = format({ prefix: "0".repeat(10), secret: "0".repeat(64) }).length

const pattern = /^tg_(?<prefix>[0-9a-f]{10})_(?<secret>[0-9a-f]{64})$/u

/** Parses a key; `undefined` if the text is not a key. */
export const parse = (text: string): Parts | undefined => {
  const { prefix, secret } = pattern.exec(text)?.groups ?? {}
  return prefix === undefined || secret === undefined ? undefined : { prefix, secret }
}

/** Returns the SHA-256 of a key's text in hex. */
export const hashKey = (key: string): string => bytesToHex(sha256(key))

/**
 * Returns the SHA-256 of a text in hex, without caching. Default: {@link hashKey}. A program can replace it, for
 * example with Node's faster implementation.
 */
export const Hasher = Context.Reference<(text: string) => string>("@trigate/callers/Key/Hasher", {
  defaultValue: () => hashKey
})

/** A new key, with the prefix and the hash to store for it. */
export interface Generated {
  readonly key: Redacted.Redacted
  readonly prefix: string
  readonly hash: string
}

/** Generates a key from random bytes. */
export const generate: Effect.Effect<Generated, never, SecureRandom.SecureRandom> = Effect.map(
  SecureRandom.SecureRandom.use(({ randomBytes }) => randomBytes(37)),
  (bytes) => {
    const prefix = bytesToHex(bytes.subarray(0, 5))
    const key = format({ prefix, secret: bytesToHex(bytes.subarray(5)) })
    return { key: Redacted.make(key), prefix, hash: hashKey(key) }
  }
)
