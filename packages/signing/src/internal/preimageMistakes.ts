/**
 * Mistakes in the nonce, vault and expiry of the preimage, in the encoding of the preimage, and in the signed digest.
 */
import { sha256 } from "@noble/hashes/sha2"
import { sha3_256 } from "@noble/hashes/sha3"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as Predicate from "effect/Predicate"
import * as Signable from "../actions/ActionHash.ts"
import { concat, fromHex, keccak256, toHex } from "../actions/ActionHash.ts"
import type { SignedRequest } from "../actions/CanonicalAction.ts"
import * as SignedView from "../inspection/SignedView.ts"
import { isGiven, isUserSigned, keysAsSent, sortedKeys, subjectTypedData, withContext } from "./memberMistakes.ts"
import type { Subject, Vary } from "./memberMistakes.ts"

const noBytes = new Uint8Array(0)

/** The null of MessagePack. */
const nil = Uint8Array.of(0xc0)

type Arrange = NonNullable<SignedView.View["arrange"]>

const marked = (marker: number, bytes: Uint8Array): Uint8Array =>
  bytes.length === 0 ? noBytes : concat(Uint8Array.of(marker), bytes)

const vaultMarked = (vault: Uint8Array): Uint8Array => vault.length === 0 ? Uint8Array.of(0) : marked(1, vault)

/**
 * Concatenates the preimage as a published code sample does: the vault precedes the nonce, 20 zero bytes replace an
 * absent vault, and there are no marker bytes.
 */
export const documentedPreimage: Arrange = ({ action, nonce, vault }) =>
  concat(action, vault.length === 0 ? new Uint8Array(20) : vault, nonce)

/** A wrong preimage, and the member that must be present for it to differ from the correct preimage. */
type Arrangement = readonly [found: string, arrange: Arrange, needs?: "vaultAddress" | "expiresAfter"]

const littleEndian = (bytes: Uint8Array): Uint8Array => bytes.toReversed()

/** Writes the preimage in the venue's order, with some parts changed. */
const written =
  (change: (parts: SignedView.Preimage, context: Signable.HashContext) => Partial<SignedView.Preimage>): Arrange =>
  (parts, context) => SignedView.venuePreimage({ ...parts, ...change(parts, context) })

const float64 = (value: number): Uint8Array => {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setFloat64(0, value)
  return bytes
}

/** Wrong preimages in which the nonce, the vault or the expiry has another byte order, width or type. */
export const byteOrders: ReadonlyArray<Arrangement> = [
  ["a nonce in little-endian order", written(({ nonce }) => ({ nonce: littleEndian(nonce) }))],
  [
    "a nonce and an expiry in little-endian order",
    written(({ expires, nonce }) => ({ nonce: littleEndian(nonce), expires: littleEndian(expires) })),
    "expiresAfter"
  ],
  ["an expiry in little-endian order", written(({ expires }) => ({ expires: littleEndian(expires) })), "expiresAfter"],
  ["a nonce of 32 bytes", written(({ nonce }) => ({ nonce: concat(new Uint8Array(24), nonce) }))],
  ["a nonce of 4 bytes", written(({ nonce }) => ({ nonce: nonce.subarray(4) }))],
  ["a nonce of 6 bytes", written(({ nonce }) => ({ nonce: nonce.subarray(2) }))],
  ["a nonce as decimal text", written((_, { nonce }) => ({ nonce: Utf8.encode(String(nonce)) }))],
  ["a nonce in MessagePack", written(({ nonce }) => ({ nonce: concat(Uint8Array.of(0xcf), nonce) }))],
  ["a nonce as a double", written((_, { nonce }) => ({ nonce: float64(Number(nonce)) }))],
  ["a vault as text", written((_, { vaultAddress }) => ({ vault: Utf8.encode(vaultAddress ?? "") })), "vaultAddress"],
  ["a vault of 32 bytes", written(({ vault }) => ({ vault: concat(new Uint8Array(12), vault) })), "vaultAddress"]
]

/** The parts of a preimage with their marker bytes, by name. */
const parts = {
  action: ({ action }: SignedView.Preimage) => action,
  nonce: ({ nonce }: SignedView.Preimage) => nonce,
  vault: ({ vault }: SignedView.Preimage) => vaultMarked(vault),
  vaultAlone: ({ vault }: SignedView.Preimage) => vault,
  expiry: ({ expires }: SignedView.Preimage) => marked(0, expires)
}

const inOrder = (...names: ReadonlyArray<keyof typeof parts>): Arrange => (preimage) =>
  concat(...names.map((name) => parts[name](preimage)))

/** Writes the action and the nonce, then other bytes for the vault. */
const vaultAs = (change: (vault: Uint8Array) => Uint8Array): Arrange => ({ action, expires, nonce, vault }) =>
  concat(action, nonce, change(vault), marked(0, expires))

/** Writes the action, the nonce and the vault, then other bytes for the expiry. */
const expiryAs = (change: (expires: Uint8Array) => Uint8Array): Arrange => ({ action, expires, nonce, vault }) =>
  concat(action, nonce, vaultMarked(vault), change(expires))

export const withoutVaultMarker = vaultAs((vault) => vault)

export const withoutExpiryMarker = expiryAs((expires) => expires)

const orElse = (bytes: Uint8Array, other: Uint8Array): Uint8Array => bytes.length === 0 ? other : bytes

/** Wrong preimages whose parts or marker bytes are in another order, added or omitted. */
export const preimageOrders: ReadonlyArray<Arrangement> = [
  ["vault, then nonce", inOrder("action", "vault", "nonce", "expiry")],
  ["vault without a marker, then nonce", inOrder("action", "vaultAlone", "nonce", "expiry")],
  ["nonce, then the action", inOrder("nonce", "action", "vault", "expiry")],
  ["nonce, vault, then the action", inOrder("nonce", "vault", "action", "expiry")],
  ["vault, nonce, then the action", inOrder("vault", "nonce", "action", "expiry")],
  ["vault, the action, then nonce", inOrder("vault", "action", "nonce", "expiry")],
  ["expiry, then vault", inOrder("action", "nonce", "expiry", "vault"), "expiresAfter"],
  ["expiry, then nonce", inOrder("action", "expiry", "nonce", "vault"), "expiresAfter"],
  ["no nonce", inOrder("action", "vault", "expiry")],
  ["the action alone", inOrder("action")],
  ["20 zero bytes in place of the absent vault", vaultAs((vault) => orElse(vault, new Uint8Array(20)))],
  [
    "marker 1 and 20 zero bytes in place of the absent vault",
    vaultAs((vault) => marked(1, orElse(vault, new Uint8Array(20))))
  ],
  [
    "20 zero bytes after the marker of the absent vault",
    vaultAs((vault) => vault.length === 0 ? new Uint8Array(21) : vaultMarked(vault))
  ],
  ["marker 0 before the vault", vaultAs((vault) => marked(0, vault)), "vaultAddress"],
  ["marker 1 before the expiry", expiryAs((expires) => marked(1, expires)), "expiresAfter"],
  ["a marker 0 in place of the absent expiry", expiryAs((expires) => concat(Uint8Array.of(0), expires))],
  ["a nil (0xc0) in place of the absent vault", vaultAs((vault) => orElse(marked(1, vault), nil))],
  ["a nil (0xc0) in place of the absent expiry", expiryAs((expires) => orElse(marked(0, expires), nil))],
  [
    "a marker 0 and 8 zero bytes in place of the absent expiry",
    expiryAs((expires) => marked(0, orElse(expires, new Uint8Array(8))))
  ]
]

/** Generates a signing hypothesis for each given way to concatenate the preimage. */
export const arranged = (ways: ReadonlyArray<Arrangement>): Vary => ({ view }) =>
  ways.filter(([, , needs]) => needs === undefined || isGiven(view.context[needs]))
    .map(([found, arrange]) => ({ view: { ...view, arrange }, finding: { path: [], found } }))

const textEncodings: ReadonlyArray<readonly [found: string, change: Partial<SignedView.Encoding>]> = [
  ["str16 (0xda) for text above 31 bytes", { text: "noStr8" }],
  ["str8 (0xd9) for short text", { text: "str8" }],
  ["str16 (0xda)", { text: "str16" }],
  ["str32 (0xdb)", { text: "str32" }],
  ["bin (0xc4)", { text: "bin" }],
  ["addresses as bytes (0xc4)", { text: "addressBytes" }]
]

const sizeEncodings: ReadonlyArray<readonly [found: string, change: Partial<SignedView.Encoding>]> = [
  ["map16 (0xde) and array16 (0xdc)", { size: "wide16" }],
  ["map32 (0xdf) and array32 (0xdd)", { size: "wide32" }]
]

const inEncoding = (ways: typeof textEncodings): Vary => ({ view }) =>
  ways.map(([found, change]) => ({
    view: { ...view, encoding: { ...(view.encoding ?? SignedView.standard), ...change } },
    finding: { path: [], found }
  }))

export const textWidths = inEncoding(textEncodings)
export const sizeWidths = inEncoding(sizeEncodings)

/** The styles in which programs print JSON, and the end of their description. */
const jsonStyles: ReadonlyArray<readonly [style: SignedView.JsonStyle, found: string]> = [
  ["compact", ""],
  ["spaced", " with spaces"]
]

/**
 * Generates signing hypotheses in which JSON is hashed instead of MessagePack, with the members in the venue's order or
 * in the order in which they were sent.
 */
export const jsonEncodings: Vary = ({ view }) =>
  [view, SignedView.withRewrite(view, keysAsSent)].flatMap((each) =>
    ([["", each.arrange], [" alone", parts.action]] as const).flatMap(([suffix, arrange]) =>
      jsonStyles.map(([json, style]) => ({
        view: { ...each, json, arrange },
        finding: { path: [], found: `JSON${style}${suffix}` }
      }))
    )
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

/** Hashes of an action that programs sign as a plain message, most likely first. */
const plainHashes: ReadonlyArray<readonly [found: string, bytes: (signable: Signable.Signable) => Uint8Array]> = [
  ["the digest of the typed data", Signable.digestBytes],
  ["the hash of the action", (signable) => hashIn(signable)],
  ["the digest of the typed data, as hex text,", (signable) => asText(Signable.digestBytes(signable))],
  ["the hash of the action, as hex text,", (signable) => asText(hashIn(signable))],
  ["the hash of the action, as hex text without 0x,", (signable) => asText(hashIn(signable)).subarray(2)],
  [
    "the digest of the typed data, as hex text without 0x,",
    (signable) => asText(Signable.digestBytes(signable)).subarray(2)
  ],
  ["the typed data before their hash", Signable.messageBytes]
]

/** Generates signing hypotheses in which the signer signed a hash of the action as a plain message. */
export const plainMessages: Vary = ({ view }) =>
  plainHashes.map(([found, bytes]) => ({
    view: { ...view, digest: (signable: Signable.Signable) => personal(bytes(signable)) },
    finding: { path: [], found }
  }))

interface JsonText {
  /** A description of the text. */
  readonly found: string
  readonly text: string
  /** Whether programs also sign the hash of this text. */
  readonly isHashed: boolean
}

const withoutType = (action: unknown): unknown => {
  if (!Predicate.isReadonlyObject(action) || !Object.hasOwn(action, "type")) return undefined
  const { type: _, ...members } = action
  return members
}

/** Returns a body without its signature, with all its members, and in other usual forms. */
const bodies = (action: unknown, { expiresAfter, nonce, vaultAddress }: SignedRequest) => {
  const vault = vaultAddress === undefined ? {} : { vaultAddress }
  const expiry = expiresAfter === undefined ? {} : { expiresAfter }
  return {
    whole: { action, nonce, ...vault, ...expiry },
    bare: { action, nonce },
    reordered: [{ action, nonce, ...expiry, ...vault }, { nonce, action, ...vault, ...expiry }]
  }
}

/** Returns the fields of user-signed typed data as an object. */
const signedFields = (subject: Subject): unknown => {
  const typed = isUserSigned(subject.view) ? subjectTypedData(subject) : undefined
  return typed === undefined ? undefined : Object.fromEntries(typed.members.map(({ name, value }) => [name, value]))
}

/** Generates the JSON texts that programs sign in place of typed data, most likely first. */
function* jsonTexts(subject: Subject): Generator<JsonText> {
  const { request, view } = subject
  const { sent, value } = SignedView.hashedValue(view, subject.part, request.action)
  const { bare, reordered, whole } = bodies(sent, request)
  const usual = [
    ["the action's JSON", sent, true],
    ["the body's JSON", whole, true],
    ["the JSON of action and nonce", bare, false],
    ["the JSON of the action without its type", withoutType(sent), false],
    ["the JSON of the signed fields", signedFields(subject), false]
  ] as const
  const orders = [
    ["", (each: unknown) => each],
    [" with sorted members", (each: unknown) => sortedKeys(each, each)]
  ] as const
  for (const [what, part, isHashed] of usual) {
    if (part === undefined) continue
    for (const [order, arrange] of orders) {
      for (const [style, spaces] of jsonStyles) {
        yield { found: `${what}${order}${spaces}`, text: SignedView.printJson(style, arrange(part)), isHashed }
      }
    }
  }
  for (const [style, spaces] of jsonStyles) {
    yield {
      found: `the action's JSON in the venue's order${spaces}`,
      text: SignedView.printJson(style, value),
      isHashed: true
    }
    for (const other of reordered) {
      yield { found: `the body's JSON${spaces}`, text: SignedView.printJson(style, other), isHashed: false }
    }
  }
  for (const [what, part] of usual.slice(0, 2)) {
    for (const style of ["indented by 2", "indented by 4"] as const) {
      for (const [order, arrange] of orders) {
        yield { found: `${what}${order}, ${style},`, text: SignedView.printJson(style, arrange(part)), isHashed: false }
      }
    }
  }
}

/** Replaces every character outside of ASCII by its escape, as Python does. */
const inAscii = (text: string): string =>
  text.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** Generates the texts of an action with the given digest of each; repeats the texts with escapes if they differ. */
const jsonMistakes = (
  digests: ReadonlyArray<readonly [found: string, digest: (text: Uint8Array) => Uint8Array, isOfHash: boolean]>
): Vary =>
  function*(subject) {
    for (const [suffix, digest, isOfHash] of digests) {
      for (const { found, isHashed, text } of jsonTexts(subject)) {
        if (isOfHash && !isHashed) continue
        for (const each of new Set([text, inAscii(text)])) {
          const bytes = Utf8.encode(each)
          yield {
            view: { ...subject.view, digest: () => digest(bytes) },
            finding: { path: [], found: `${suffix}${found}` }
          }
        }
      }
    }
  }

/** Generates signing hypotheses in which the action's JSON, or its hash, was signed as a plain message. */
export const jsonMessages: Vary = jsonMistakes([
  ["", personal, false],
  ["the hash of ", (text) => personal(keccak256(text)), true],
  ["the hash, as hex text, of ", (text) => personal(asText(keccak256(text))), true],
  ["the hash, as hex text without 0x, of ", (text) => personal(asText(keccak256(text)).subarray(2)), true]
])

/** Generates signing hypotheses in which the hash of the action's JSON was signed without typed data. */
export const jsonHashes: Vary = jsonMistakes([["the hash of ", keccak256, true]])

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

/** Steps in milliseconds by which a nonce differs from another reading of the clock, and the number of such steps. */
const clockSteps: ReadonlyArray<readonly [step: bigint, count: number]> = [
  [1n, 32],
  [1000n, 30],
  [100n, 50],
  [500n, 20],
  [10n, 20],
  [60_000n, 5],
  [3_600_000n, 14]
]

const readingsAround = (time: bigint, [step, count]: readonly [bigint, number]): ReadonlyArray<bigint> =>
  Array.from({ length: count }, (_, at) => step * BigInt(at + 1)).flatMap((off) => [time - off, time + off])

/**
 * Returns the nonces of another reading of the clock: before or after the nonce by a few milliseconds, by tenths of a
 * second up to 5 s, by seconds up to 30 s, by minutes, or by the hours of a time zone, also in whole seconds.
 */
export const otherReadings = (nonce: bigint): ReadonlyArray<bigint> => {
  const whole = nonce / 1000n * 1000n
  return [...clockSteps.flatMap((steps) => readingsAround(nonce, steps)), whole, ...readingsAround(whole, [1000n, 10])]
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
  // an L1 action can have a nonce of its own, of another reading of the clock
  const isTwice = key !== undefined && !isUserSigned(view)
  return mistakes(right).filter((nonce) => nonce >= 0n).flatMap((nonce) => {
    const finding = view.wrapper !== undefined
      ? { path: [], found: String(nonce), expected: String(right) }
      : own === undefined
      ? { path: ["nonce"], found: String(right), expected: String(nonce) }
      : { path: ["action", own.key], found: own.value, expected: String(nonce) }
    const both = { view: SignedView.withNonce(view, nonce), finding }
    return isTwice ? [both, { view: withContext(view, { nonce }), finding }] : [both]
  })
}

/** Common lifetimes of actions in seconds, to guess the expiry that was signed. */
const lifetimes = [5, 10, 15, 20, 30, 60, 120, 300, 600, 3600]

/**
 * Generates signing hypotheses with another expiry than the body's: in another unit, at a common lifetime after the
 * nonce, or of another reading of the clock.
 */
export const otherExpiries: Vary = ({ request: { nonce }, view }) => {
  const { expiresAfter } = view.context
  const sent = isGiven(expiresAfter) ? BigInt(expiresAfter) : undefined
  const near = sent === undefined
    ? []
    : [sent / 1000n, sent * 1000n, ...clockSteps.slice(0, 2).flatMap((steps) => readingsAround(sent, steps))]
  const guesses = lifetimes.map((seconds) => BigInt(nonce) + BigInt(seconds) * 1000n)
  return [...near, ...guesses].filter((time) => time > 0n && time !== sent).map((time) => ({
    view: withContext(view, { expiresAfter: time }),
    finding: {
      path: ["expiresAfter"],
      found: String(time),
      ...(sent === undefined ? {} : { expected: String(sent) })
    }
  }))
}
