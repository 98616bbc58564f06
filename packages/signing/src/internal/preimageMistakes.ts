/**
 * Mistakes in the nonce, vault and expiry of the preimage, in the encoding of the preimage, and in the signed digest.
 */
import { sha256 } from "@noble/hashes/sha2"
import { sha3_256 } from "@noble/hashes/sha3"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as Signable from "../actions/Signable.ts"
import * as SignedDigest from "../inspection/SignedDigest.ts"
import * as SignedView from "../inspection/SignedView.ts"
import type { View } from "../inspection/SignedView.ts"
import { concat, fromHex, keccak256, toHex } from "./bytes.ts"
import * as Loose from "./looseEncoding.ts"
import { keysAsSent } from "./memberMistakes.ts"
import type { Vary } from "./mistake.ts"
import { isGiven, isUserSigned } from "./mistake.ts"

const noBytes = new Uint8Array(0)

type Arrange = NonNullable<View["arrange"]>

const marked = (marker: number, bytes: Uint8Array): Uint8Array =>
  bytes.length === 0 ? noBytes : concat(Uint8Array.of(marker), bytes)

const vaultMarked = (vault: Uint8Array): Uint8Array => vault.length === 0 ? Uint8Array.of(0) : marked(1, vault)

/**
 * Concatenates the preimage as a published code sample does: the vault precedes the nonce, 20 zero bytes replace an
 * absent vault, and there are no marker bytes.
 */
export const documentedPreimage: Arrange = ({ action, nonce, vault }) =>
  concat(action, vault.length === 0 ? new Uint8Array(20) : vault, nonce)

export const withoutVaultMarker: Arrange = ({ action, expires, nonce, vault }) =>
  concat(action, nonce, vault, marked(0, expires))

export const withoutExpiryMarker: Arrange = ({ action, expires, nonce, vault }) =>
  concat(action, nonce, vaultMarked(vault), expires)

interface Arrangement {
  readonly found: string
  readonly arrange: Arrange
  /** The member that must be present for this variant to differ from the correct preimage. */
  readonly needs?: "vault" | "expires"
}

const littleEndian = (bytes: Uint8Array): Uint8Array => bytes.toReversed()

const written = (parts: SignedView.Preimage, change: Partial<SignedView.Preimage>): Uint8Array =>
  SignedDigest.venuePreimage({ ...parts, ...change })

/** Wrong preimages in which the nonce, the vault or the expiry has another byte order, width or type. */
export const byteOrders: ReadonlyArray<Arrangement> = [
  { found: "a nonce in little-endian order", arrange: (parts) => written(parts, { nonce: littleEndian(parts.nonce) }) },
  {
    found: "a nonce and an expiry in little-endian order",
    needs: "expires",
    arrange: (parts) => written(parts, { nonce: littleEndian(parts.nonce), expires: littleEndian(parts.expires) })
  },
  {
    found: "an expiry in little-endian order",
    needs: "expires",
    arrange: (parts) => written(parts, { expires: littleEndian(parts.expires) })
  },
  {
    found: "a nonce of 32 bytes",
    arrange: (parts) => written(parts, { nonce: concat(new Uint8Array(24), parts.nonce) })
  },
  { found: "a nonce of 4 bytes", arrange: (parts) => written(parts, { nonce: parts.nonce.subarray(4) }) },
  { found: "a nonce of 6 bytes", arrange: (parts) => written(parts, { nonce: parts.nonce.subarray(2) }) },
  {
    found: "a nonce as decimal text",
    arrange: (parts, { nonce }) => written(parts, { nonce: Utf8.encode(String(nonce)) })
  },
  {
    found: "a nonce in MessagePack",
    arrange: (parts) => written(parts, { nonce: concat(Uint8Array.of(0xcf), parts.nonce) })
  },
  {
    found: "a nonce as a double",
    arrange: (parts, { nonce }) => {
      const bytes = new Uint8Array(8)
      new DataView(bytes.buffer).setFloat64(0, Number(nonce))
      return written(parts, { nonce: bytes })
    }
  },
  {
    found: "a vault as text",
    needs: "vault",
    arrange: (parts, { vaultAddress }) => written(parts, { vault: Utf8.encode(vaultAddress ?? "") })
  },
  {
    found: "a vault of 32 bytes",
    needs: "vault",
    arrange: (parts) => written(parts, { vault: concat(new Uint8Array(12), parts.vault) })
  }
]

/** Wrong preimages whose parts or marker bytes are in another order, added or omitted. */
export const preimageOrders: ReadonlyArray<Arrangement> = [
  {
    found: "vault, then nonce",
    arrange: ({ action, expires, nonce, vault }) => concat(action, vaultMarked(vault), nonce, marked(0, expires))
  },
  {
    found: "vault without a marker, then nonce",
    arrange: ({ action, expires, nonce, vault }) => concat(action, vault, nonce, marked(0, expires))
  },
  {
    found: "nonce, then the action",
    arrange: ({ action, expires, nonce, vault }) => concat(nonce, action, vaultMarked(vault), marked(0, expires))
  },
  {
    found: "nonce, vault, then the action",
    arrange: ({ action, expires, nonce, vault }) => concat(nonce, vaultMarked(vault), action, marked(0, expires))
  },
  {
    found: "vault, nonce, then the action",
    arrange: ({ action, expires, nonce, vault }) => concat(vaultMarked(vault), nonce, action, marked(0, expires))
  },
  {
    found: "vault, the action, then nonce",
    arrange: ({ action, expires, nonce, vault }) => concat(vaultMarked(vault), action, nonce, marked(0, expires))
  },
  {
    found: "expiry, then vault",
    needs: "expires",
    arrange: ({ action, expires, nonce, vault }) => concat(action, nonce, marked(0, expires), vaultMarked(vault))
  },
  {
    found: "expiry, then nonce",
    needs: "expires",
    arrange: ({ action, expires, nonce, vault }) => concat(action, marked(0, expires), nonce, vaultMarked(vault))
  },
  {
    found: "no nonce",
    arrange: ({ action, expires, vault }) => concat(action, vaultMarked(vault), marked(0, expires))
  },
  { found: "the action alone", arrange: ({ action }) => action },
  {
    found: "20 zero bytes in place of the absent vault",
    arrange: ({ action, expires, nonce, vault }) =>
      concat(action, nonce, vault.length === 0 ? new Uint8Array(20) : vault, marked(0, expires))
  },
  {
    found: "marker 1 and 20 zero bytes in place of the absent vault",
    arrange: ({ action, expires, nonce, vault }) =>
      concat(action, nonce, Uint8Array.of(1), vault.length === 0 ? new Uint8Array(20) : vault, marked(0, expires))
  },
  {
    found: "20 zero bytes after the marker of the absent vault",
    arrange: ({ action, expires, nonce, vault }) =>
      concat(action, nonce, vault.length === 0 ? new Uint8Array(21) : vaultMarked(vault), marked(0, expires))
  },
  {
    found: "marker 0 before the vault",
    needs: "vault",
    arrange: ({ action, expires, nonce, vault }) => concat(action, nonce, marked(0, vault), marked(0, expires))
  },
  {
    found: "marker 1 before the expiry",
    needs: "expires",
    arrange: ({ action, expires, nonce, vault }) => concat(action, nonce, vaultMarked(vault), marked(1, expires))
  },
  {
    found: "a marker 0 in place of the absent expiry",
    arrange: ({ action, expires, nonce, vault }) => concat(action, nonce, vaultMarked(vault), Uint8Array.of(0), expires)
  },
  {
    found: "a marker 0 and 8 zero bytes in place of the absent expiry",
    arrange: ({ action, expires, nonce, vault }) =>
      concat(action, nonce, vaultMarked(vault), Uint8Array.of(0), expires.length === 0 ? new Uint8Array(8) : expires)
  }
]

/** Generates a signing hypothesis for each given way to concatenate the preimage. */
export const arranged = (ways: ReadonlyArray<Arrangement>): Vary => ({ view }) =>
  ways.filter(({ needs }) =>
    needs === undefined || isGiven(needs === "vault" ? view.context.vaultAddress : view.context.expiresAfter)
  ).map(({ arrange, found }) => ({ view: { ...view, arrange }, finding: { path: [], found } }))

const encodings: ReadonlyArray<readonly [found: string, change: Partial<Loose.Encoding>]> = [
  ["int64 (0xd3)", { integer: "int64" }],
  ["uint64 (0xcf)", { integer: "uint64" }],
  ["signed integers (0xd0 to 0xd3)", { integer: "signed" }],
  ["int32 (0xd2)", { integer: "int32" }],
  ["uint32 (0xce)", { integer: "uint32" }],
  ["uint16 (0xcd)", { integer: "uint16" }]
]

const textEncodings: ReadonlyArray<readonly [found: string, change: Partial<Loose.Encoding>]> = [
  ["str16 (0xda) for text above 31 bytes", { text: "noStr8" }],
  ["str8 (0xd9) for short text", { text: "str8" }],
  ["str16 (0xda)", { text: "str16" }],
  ["str32 (0xdb)", { text: "str32" }],
  ["bin (0xc4)", { text: "bin" }],
  ["addresses as bytes (0xc4)", { text: "addressBytes" }]
]

const sizeEncodings: ReadonlyArray<readonly [found: string, change: Partial<Loose.Encoding>]> = [
  ["map16 (0xde) and array16 (0xdc)", { size: "wide16" }],
  ["map32 (0xdf) and array32 (0xdd)", { size: "wide32" }]
]

const inEncoding = (ways: typeof encodings): Vary => ({ view }) =>
  ways.map(([found, change]) => ({
    view: { ...view, encoding: { ...(view.encoding ?? Loose.standard), ...change } },
    finding: { path: [], found }
  }))

export const integerWidths = inEncoding(encodings)
export const textWidths = inEncoding(textEncodings)
export const sizeWidths = inEncoding(sizeEncodings)

const jsonNames: { readonly [Style in Loose.JsonStyle]: string } = {
  compact: "JSON",
  spaced: "JSON with spaces"
}

/**
 * Generates signing hypotheses in which JSON is hashed instead of MessagePack, with the members in the venue's order or
 * in the order in which they were sent.
 */
export const jsonEncodings: Vary = ({ view }) =>
  [view, SignedView.withRewrite(view, keysAsSent)].flatMap((each) =>
    [
      Loose.jsonStyles.map((json) => ({ view: { ...each, json }, finding: { path: [], found: jsonNames[json] } })),
      Loose.jsonStyles.map((json) => ({
        view: { ...each, json, arrange: ({ action }: SignedView.Preimage) => action },
        finding: { path: [], found: `${jsonNames[json]} alone` }
      }))
    ].flat()
  )

const hashes: ReadonlyArray<readonly [found: string, hash: (bytes: Uint8Array) => Uint8Array]> = [
  ["SHA3-256", sha3_256],
  ["SHA-256", sha256],
  ["keccak-256 twice", (bytes) => keccak256(keccak256(bytes))],
  ["SHA-256 twice", (bytes) => sha256(sha256(bytes))]
]

/**
 * Generates signing hypotheses in which the action or the typed data is hashed with another hash function than the
 * venue's.
 */
export const otherHashes: Vary = ({ view }) => [
  ...hashes.map(([found, hashBytes]) => ({ view: { ...view, hashBytes }, finding: { path: [], found } })),
  ...hashes.map(([found, hash]) => ({
    view: {
      ...view,
      digest: (signable: Signable.Signable) =>
        hash === hashes[2]?.[1] ? keccak256(Signable.digestBytes(signable)) : hash(Signable.messageBytes(signable))
    },
    finding: { path: [], found: `${found} of the typed data` }
  }))
]

const prefix = "\u0019Ethereum Signed Message:\n"

export const personal = (bytes: Uint8Array): Uint8Array =>
  keccak256(concat(Utf8.encode(`${prefix}${bytes.length}`), bytes))

const asText = (bytes: Uint8Array): Uint8Array => Utf8.encode(toHex(bytes))

/**
 * Generates signing hypotheses in which the signer signed a plain message instead of typed data: the digest (as bytes
 * or hex text), the hash inside the typed data (as bytes or hex text), or the bytes before hashing.
 */
export const plainMessages: Vary = ({ view }) =>
  [
    Signable.digestBytes,
    hashIn,
    (signable: Signable.Signable) => asText(Signable.digestBytes(signable)),
    (signable: Signable.Signable) => asText(hashIn(signable)),
    (signable: Signable.Signable) => asText(hashIn(signable)).subarray(2),
    Signable.messageBytes
  ].map((bytes) => ({
    view: { ...view, digest: (signable: Signable.Signable) => personal(bytes(signable)) },
    finding: { path: [] }
  }))

/**
 * Returns the 32-byte hash in the typed data: the connection ID or the hash of the multi-sig wrapper. Returns the
 * digest if there is no such hash.
 */
export const hashIn = (signable: Signable.Signable): Uint8Array => {
  const found = signable.members.find(({ type }) => type === "bytes32")
  return found?.type === "bytes32" ? fromHex(found.value) : Signable.digestBytes(signable)
}

/**
 * Returns likely wrong variants of a nonce: truncated to whole seconds, with one digit off by one, or with two adjacent
 * digits swapped.
 */
export const nonceMistakes = (nonce: bigint): ReadonlyArray<bigint> => {
  const digits = nonce.toString()
  const oneOff = Array.from(digits, (_, place) => 10n ** BigInt(place)).flatMap((step) => [nonce + step, nonce - step])
  const swapped = Array.from(
    digits.slice(1),
    (second, place) =>
      BigInt(`${digits.slice(0, place)}${second}${digits.slice(place, place + 1)}${digits.slice(place + 2)}`)
  )
  return [nonce / 1000n * 1000n, ...oneOff, ...swapped]
}

/**
 * Generates signing hypotheses in which the signed nonce is in another unit than the body's nonce, which is in
 * milliseconds.
 */
export const times = (mistakes: (nonce: bigint) => ReadonlyArray<bigint>): Vary => ({ request, view }) => {
  const right = BigInt(request.nonce)
  const key = SignedView.nonceKey(view)
  const path = key === undefined || !isUserSigned(view) ? ["nonce"] : [...SignedView.actionPath(view), key]
  return mistakes(right).filter((nonce) => nonce >= 0n).map((nonce) => ({
    view: SignedView.withNonce(view, nonce),
    finding: { path, found: String(nonce), expected: String(right) }
  }))
}

/**
 * Generates signing hypotheses in which the signed nonce differs from the body's nonce. To correct a single action,
 * send it with the signed nonce.
 *
 * All signatures of a multi-sig wrapper share its nonce, so a co-signer that signed another nonce has to sign again.
 * For a wrapper, the path of the finding is empty.
 */
export const nonces = (mistakes: (nonce: bigint) => ReadonlyArray<bigint>): Vary => ({ request, view }) => {
  const right = BigInt(request.nonce)
  const key = SignedView.nonceKey(view)
  const own = key === undefined || !isUserSigned(view) ? undefined : { key, value: String(view.action[key]) }
  return mistakes(right).filter((nonce) => nonce >= 0n).map((nonce) => ({
    view: SignedView.withNonce(view, nonce),
    finding: view.wrapper !== undefined
      ? { path: [], found: String(nonce), expected: String(right) }
      : own === undefined
      ? { path: ["nonce"], found: String(right), expected: String(nonce) }
      : { path: ["action", own.key], found: own.value, expected: String(nonce) }
  }))
}

/** Common lifetimes of actions in seconds, to guess an expiry that was signed but not sent. */
export const lifetimes = [5, 10, 15, 20, 30, 60, 120, 300, 600, 3600]
