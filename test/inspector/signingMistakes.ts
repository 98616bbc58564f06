/**
 * What programs get wrong while they sign and send, in layers that can be combined: values, encoding, bytes, domain, signature.
 *
 * Nothing here knows how the inspector recognises a mistake: bytes are packed, hashed and signed by other code.
 */
import { sha256 } from "@noble/hashes/sha2"
import { keccak_256, sha3_256 } from "@noble/hashes/sha3"
import type { SignatureMistake } from "@trigate/domain/unstable/Inspection"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as Predicate from "effect/Predicate"
import { bytesToHex, concat, hashMessage, hexToBytes, numberToHex, stringToHex } from "viem/utils"
import type { Break, Sound } from "./breaks.ts"
import type { Hex, Signature, Tail, Typed } from "./signing.ts"
import { agent, digestOf, expires, nonceBytes, pack, rightTail, signDigest, vault } from "./signing.ts"

type Action = Readonly<Record<string, unknown>>

/** How a program signs and sends an action; the right way until mistakes change it. */
export interface Recipe {
  readonly sent: Action
  readonly signed: Action
  readonly nonce: number
  readonly signedNonce: number
  readonly vaultAddress?: string
  readonly expiresAfter?: number
  readonly hashesVault: boolean
  readonly hashesExpiry: boolean
  readonly pack: (value: unknown) => Hex
  /** The bytes of the action go through it, too: some programs put them elsewhere. */
  readonly preimage: (packed: Hex, tail: ReadonlyArray<Hex>, context: Parameters<Tail>[0]) => Hex
  readonly tail: Tail
  readonly hash: (bytes: Uint8Array) => Uint8Array
  readonly typed: (typed: Typed) => Typed
  readonly digest: (digest: Hex) => Hex
  readonly written: (signature: Signature) => Signature
}

export type Layer = "value" | "order" | "encoding" | "bytes" | "beside" | "domain" | "digest" | "signature"

/** One signing mistake. */
export interface MistakenSigning {
  readonly name: string
  readonly mistake: SignatureMistake
  readonly layer: Layer
  readonly scheme: "l1" | "userSigned" | "any"
  readonly apply: (recipe: Recipe, sound: Sound) => Recipe | undefined
}

/** The right way. */
export const rightRecipe = ({ action, nonce }: Sound): Recipe => ({
  sent: action,
  signed: action,
  nonce,
  signedNonce: nonce,
  hashesVault: true,
  hashesExpiry: true,
  pack,
  preimage: (packed, tail) => concat([packed, ...tail]),
  tail: rightTail,
  hash: keccak_256,
  typed: (typed) => typed,
  digest: (digest) => digest,
  written: (signature) => signature
})

/** What a program sends that follows the recipe. */
export const bodyOf = async (recipe: Recipe, { typed }: Sound) => {
  const { expiresAfter, signed, vaultAddress } = recipe
  const context = {
    nonce: recipe.signedNonce,
    ...(vaultAddress === undefined || !recipe.hashesVault ? {} : { vaultAddress }),
    ...(expiresAfter === undefined || !recipe.hashesExpiry ? {} : { expiresAfter })
  }
  const message = typed === undefined
    ? agent(bytesToHex(recipe.hash(hexToBytes(recipe.preimage(recipe.pack(signed), recipe.tail(context), context)))))
    : { ...typed, message: Object.fromEntries(Object.keys(typed.message).map((name) => [name, signed[name]])) }
  const digest = recipe.digest(digestOf(recipe.typed(message)))
  return {
    action: recipe.sent,
    nonce: recipe.nonce,
    signature: recipe.written(await signDigest(digest, keys.trader.privateKey)),
    ...(vaultAddress === undefined ? {} : { vaultAddress }),
    ...(expiresAfter === undefined ? {} : { expiresAfter })
  }
}

export const mistaken = (
  name: string,
  mistake: SignatureMistake,
  layer: Layer,
  scheme: MistakenSigning["scheme"],
  apply: MistakenSigning["apply"]
): MistakenSigning => ({ name, mistake, layer, scheme, apply })

export const changed = (value: unknown, change: (value: unknown, key: string) => unknown, key = ""): unknown => {
  if (Array.isArray(value)) return value.map((item: unknown) => changed(item, change, key))
  return Predicate.isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([name, item]) => [name, changed(item, change, name)]))
    : change(value, key)
}

export const asAction = (value: unknown): Action => Predicate.isReadonlyObject(value) ? value : {}

export const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

/** A change of what is signed, and of what is sent or not. */
export const ofValues =
  (change: (value: unknown, key: string) => unknown, sending: boolean): MistakenSigning["apply"] => (recipe) => {
    const signed = asAction(changed(recipe.signed, change))
    if (isSame(signed, recipe.signed)) return undefined
    return { ...recipe, signed, ...(sending ? { sent: asAction(changed(recipe.sent, change)) } : {}) }
  }

const decimals = new Set(["p", "s", "triggerPx", "oraclePx", "startPx", "leverage", "riskFreeRate"])

const zeroed = (value: unknown, key: string): unknown =>
  Predicate.isString(value) && decimals.has(key) && /^[0-9.]+$/u.test(value)
    ? value.includes(".") ? `${value}0` : `${value}.0`
    : value

const reordered = (
  value: unknown,
  order: (members: ReadonlyArray<[string, unknown]>) => ReadonlyArray<[string, unknown]>
): unknown => {
  if (Array.isArray(value)) return value.map((item: unknown) => reordered(item, order))
  return Predicate.isObject(value)
    ? Object.fromEntries(order(Object.entries(value)).map(([key, item]) => [key, reordered(item, order)]))
    : value
}

const ofOrder =
  (order: (members: ReadonlyArray<[string, unknown]>) => ReadonlyArray<[string, unknown]>): MistakenSigning["apply"] =>
  (
    recipe
  ) => {
    const signed = asAction(reordered(recipe.signed, order))
    return isSame(signed, recipe.signed) ? undefined : { ...recipe, signed }
  }

interface Style {
  readonly integer?: (value: bigint) => Hex
  readonly text?: (length: number) => Hex
  readonly size?: (count: number, isMap: boolean) => Hex
}

/** MessagePack with some headers written in another way. */
export const packed = (style: Style) => {
  const write = (value: unknown): Hex => {
    if (Predicate.isNumber(value) && Number.isInteger(value)) return style.integer?.(BigInt(value)) ?? pack(value)
    if (Predicate.isString(value)) {
      const bytes = stringToHex(value)
      return style.text === undefined ? pack(value) : concat([style.text((bytes.length - 2) / 2), bytes])
    }
    if (Array.isArray(value)) {
      const head = style.size?.(value.length, false) ??
        (value.length < 16
          ? numberToHex(0x90 | value.length)
          : concat(["0xdc", numberToHex(value.length, { size: 2 })]))
      return concat([head, ...value.map(write)])
    }
    if (!Predicate.isObject(value)) return pack(value)
    const members = Object.entries(value)
    const head = style.size?.(members.length, true) ??
      (members.length < 16
        ? numberToHex(0x80 | members.length)
        : concat(["0xde", numberToHex(members.length, { size: 2 })]))
    return concat([head, ...members.flatMap(([key, item]) => [write(key), write(item)])])
  }
  return write
}

const wide = (tag: Hex, signed: boolean) => (value: bigint): Hex =>
  concat([tag, numberToHex(BigInt.asUintN(64, value), { size: 8 })].slice(signed || value >= 0n ? 0 : 1))

const signedSmallest = (value: bigint): Hex => {
  if (value >= -32n && value < 128n) return pack(Number(value))
  for (const [tag, bits] of [["0xd0", 8n], ["0xd1", 16n], ["0xd2", 32n]] as const) {
    const limit = 1n << (bits - 1n)
    if (value >= -limit && value < limit) {
      return concat([tag, numberToHex(BigInt.asUintN(Number(bits), value), { size: Number(bits) / 8 })])
    }
  }
  return concat(["0xd3", numberToHex(BigInt.asUintN(64, value), { size: 8 })])
}

export const ofPacking = (style: Style): MistakenSigning["apply"] => (recipe) => {
  const other = packed(style)
  return other(recipe.signed) === recipe.pack(recipe.signed) ? undefined : { ...recipe, pack: other }
}

const json = (print: (value: unknown) => string): MistakenSigning["apply"] => (recipe) => ({
  ...recipe,
  pack: (value) => stringToHex(print(value))
})

const little = (hex: Hex): Hex => bytesToHex(hexToBytes(hex).toReversed())

const marker = (value: string | undefined): Hex => value === undefined ? "0x00" : "0x01"

export const ofTyped = (change: (typed: Typed) => Typed): MistakenSigning["apply"] => (recipe) => ({
  ...recipe,
  typed: (typed) => change(recipe.typed(typed))
})

const withoutFields = (typed: Typed, names: ReadonlyArray<string>): Typed => ({
  ...typed,
  fields: typed.fields.filter(({ name }) => !names.includes(name))
})

const account: Hex = keys.multiSigUser.address

const minute = 60_000

export const spaced = (value: unknown): string =>
  JSON.stringify(value, null, 1).replaceAll(/\n\s*/gu, " ").replaceAll(/([{[]) /gu, "$1").replaceAll(/ ([}\]])/gu, "$1")

const chains = [1, 10, 56, 137, 8453, 42_161, 999, 43_114, 59_144, 31_337, 11_155_111, 534_352]

const hasLarge = ({ signed }: Recipe): boolean => {
  let found = false
  changed(signed, (value) => {
    if (Predicate.isNumber(value) && value >= 128) found = true
    return value
  })
  return found
}

/** The usual form of each kind, of which pairs are made. */
export const typical: ReadonlySet<string> = new Set([
  "trailing zero signed",
  "trailing zero signed and sent",
  "keys sorted",
  "keys reversed",
  "integers as int64",
  "str16 for text above 31 bytes",
  "str8 for all text",
  "map16 and array16",
  "JSON for MessagePack",
  "SHA3-256",
  "nonce in little-endian order",
  "vault before nonce",
  "vaultAddress sent, not signed",
  "expiresAfter sent, not signed",
  "nonce signed in seconds",
  "source of testnet",
  "source in upper case",
  "domain of chain 1",
  "domain of chain 42161",
  "L1 domain of a user-signed action",
  "user-signed domain of an L1 action",
  "network of user-signed data",
  "one field left out",
  "uint256 for uint64",
  "primary type without its prefix",
  "signed as a plain message",
  "v of the other key",
  "v of 0 or 1",
  "r and s exchanged"
])

/** All of them. */
export const signingMistakes: ReadonlyArray<MistakenSigning> = [
  mistaken("trailing zero signed", "trailingZero", "value", "l1", ofValues(zeroed, false)),
  mistaken("trailing zero signed and sent", "trailingZero", "value", "l1", ofValues(zeroed, true)),
  mistaken("keys sorted", "fieldOrder", "order", "l1", ofOrder((all) => all.toSorted(([a], [b]) => a < b ? -1 : 1))),
  mistaken("keys reversed", "fieldOrder", "order", "l1", ofOrder((all) => all.toReversed())),
  mistaken(
    "keys sorted by length",
    "fieldOrder",
    "order",
    "l1",
    ofOrder((all) => all.toSorted(([a], [b]) => a.length - b.length || (a < b ? -1 : 1)))
  ),
  mistaken(
    "inner keys sorted, type first",
    "fieldOrder",
    "order",
    "l1",
    ofOrder((all) => all.some(([key]) => key === "type") ? all : all.toSorted(([a], [b]) => a < b ? -1 : 1))
  ),
  mistaken("first two members rotated to the end", "fieldOrder", "order", "l1", (recipe) => {
    const [type, first, ...rest] = Object.entries(recipe.signed)
    return type === undefined || first === undefined || rest.length === 0 || rest.length > 2
      ? undefined
      : { ...recipe, signed: Object.fromEntries([...rest, type, first]) }
  }),
  mistaken("integers as int64", "integerWidth", "encoding", "l1", ofPacking({ integer: wide("0xd3", true) })),
  mistaken("integers as uint64", "integerWidth", "encoding", "l1", ofPacking({ integer: wide("0xcf", false) })),
  mistaken(
    "integers in signed types",
    "integerWidth",
    "encoding",
    "l1",
    (recipe, sound) => hasLarge(recipe) ? ofPacking({ integer: signedSmallest })(recipe, sound) : undefined
  ),
  mistaken(
    "str16 for text above 31 bytes",
    "textWidth",
    "encoding",
    "l1",
    ofPacking({
      text: (length) =>
        length < 32 ? numberToHex(0xa0 | length, { size: 1 }) : concat(["0xda", numberToHex(length, { size: 2 })])
    })
  ),
  mistaken(
    "str16 for all text",
    "textWidth",
    "encoding",
    "l1",
    ofPacking({ text: (length) => concat(["0xda", numberToHex(length, { size: 2 })]) })
  ),
  mistaken(
    "str8 for all text",
    "textWidth",
    "encoding",
    "l1",
    ofPacking({ text: (length) => concat(["0xd9", numberToHex(length, { size: 1 })]) })
  ),
  mistaken(
    "map16 and array16",
    "sizeWidth",
    "encoding",
    "l1",
    ofPacking({ size: (count, isMap) => concat([isMap ? "0xde" : "0xdc", numberToHex(count, { size: 2 })]) })
  ),
  mistaken("JSON for MessagePack", "otherEncoding", "encoding", "l1", json((value) => JSON.stringify(value))),
  mistaken("JSON with spaces for MessagePack", "otherEncoding", "encoding", "l1", json(spaced)),
  mistaken("SHA3-256", "otherHash", "digest", "l1", (recipe) => ({ ...recipe, hash: sha3_256 })),
  mistaken("SHA-256", "otherHash", "digest", "l1", (recipe) => ({ ...recipe, hash: sha256 })),
  mistaken("nonce in little-endian order", "byteOrder", "bytes", "l1", (recipe) => ({
    ...recipe,
    tail: (context) => [little(nonceBytes(context)), ...recipe.tail(context).slice(1)]
  })),
  mistaken("nonce of 32 bytes", "byteOrder", "bytes", "l1", (recipe) => ({
    ...recipe,
    tail: (context) => [numberToHex(context.nonce, { size: 32 }), ...recipe.tail(context).slice(1)]
  })),
  mistaken("vault before nonce", "preimageOrder", "bytes", "l1", (recipe) => ({
    ...recipe,
    vaultAddress: account,
    tail: (context) => [marker(context.vaultAddress), vault(context), nonceBytes(context), ...expiry(context)]
  })),
  mistaken("nonce before the action", "preimageOrder", "bytes", "l1", (recipe) => ({
    ...recipe,
    preimage: (packed, [nonce = "0x", ...rest]) => concat([nonce, packed, ...rest])
  })),
  mistaken("expiry before the vault", "preimageOrder", "bytes", "l1", (recipe) => ({
    ...recipe,
    expiresAfter: recipe.nonce + minute,
    tail: (context) => [nonceBytes(context), ...expiry(context), marker(context.vaultAddress), vault(context)]
  })),
  mistaken("nonce not hashed", "preimageOrder", "bytes", "l1", (recipe) => ({
    ...recipe,
    tail: (context) => recipe.tail(context).slice(1)
  })),
  mistaken("20 zero bytes for no vault", "preimageOrder", "bytes", "l1", (recipe) => ({
    ...recipe,
    tail: (context) => [nonceBytes(context), "0x01", `0x${"00".repeat(20)}`, ...expiry(context)]
  })),
  mistaken("vaultAddress sent, not signed", "vaultNotSigned", "beside", "l1", (recipe) => ({
    ...recipe,
    vaultAddress: account,
    hashesVault: false
  })),
  mistaken("expiresAfter sent, not signed", "expiresAfterNotSigned", "beside", "l1", (recipe) => ({
    ...recipe,
    expiresAfter: recipe.nonce + minute,
    hashesExpiry: false
  })),
  mistaken("nonce signed in seconds", "timeUnit", "beside", "l1", (recipe) => ({
    ...recipe,
    signedNonce: Math.floor(recipe.nonce / 1000)
  })),
  mistaken(
    "source of testnet",
    "otherNetwork",
    "domain",
    "l1",
    ofTyped((typed) => ({
      ...typed,
      message: { ...typed.message, source: "b" }
    }))
  ),
  mistaken(
    "source in upper case",
    "sourceLetter",
    "domain",
    "l1",
    ofTyped((typed) => ({
      ...typed,
      message: { ...typed.message, source: "A" }
    }))
  ),
  ...chains.map((chainId) =>
    mistaken(`domain of chain ${chainId}`, "otherChainId", "domain", "any", ofTyped((typed) => ({ ...typed, chainId })))
  ),
  mistaken(
    "domain named Hyperliquid",
    "otherDomain",
    "domain",
    "any",
    ofTyped((typed) => ({ ...typed, name: "Hyperliquid" }))
  ),
  mistaken("domain of version 2", "otherDomain", "domain", "any", ofTyped((typed) => ({ ...typed, version: "2" }))),
  mistaken(
    "another verifying contract",
    "otherDomain",
    "domain",
    "any",
    ofTyped((typed) => ({
      ...typed,
      contract: "0x0000000000000000000000000000000000000001"
    }))
  ),
  mistaken(
    "agent in lower case as primary type",
    "primaryType",
    "domain",
    "l1",
    ofTyped((typed) => ({
      ...typed,
      primaryType: "agent"
    }))
  ),
  mistaken(
    "L1 domain of a user-signed action",
    "otherDomain",
    "domain",
    "userSigned",
    ofTyped((typed) => ({
      ...typed,
      name: "Exchange",
      chainId: 1337
    }))
  ),
  mistaken(
    "user-signed domain of an L1 action",
    "otherDomain",
    "domain",
    "l1",
    ofTyped((typed) => ({
      ...typed,
      name: "HyperliquidSignTransaction",
      chainId: 42_161
    }))
  ),
  mistaken("network of user-signed data", "otherNetwork", "value", "userSigned", (recipe) => ({
    ...recipe,
    signed: { ...recipe.signed, hyperliquidChain: "Testnet" }
  })),
  mistaken(
    "one field left out",
    "typeFields",
    "order",
    "userSigned",
    ofTyped((typed) => withoutFields(typed, [typed.fields[1]?.name ?? ""]))
  ),
  mistaken(
    "two fields left out",
    "typeFields",
    "order",
    "userSigned",
    ofTyped((typed) => withoutFields(typed, [typed.fields[0]?.name ?? "", typed.fields.at(-1)?.name ?? ""]))
  ),
  mistaken(
    "uint256 for uint64",
    "fieldType",
    "encoding",
    "userSigned",
    ofTyped((typed) => ({
      ...typed,
      fields: typed.fields.map(({ name, type }) => ({ name, type: type === "uint64" ? "uint256" : type }))
    }))
  ),
  mistaken(
    "primary type without its prefix",
    "primaryType",
    "encoding",
    "userSigned",
    ofTyped((typed) => ({
      ...typed,
      primaryType: typed.primaryType.split(":")[1] ?? ""
    }))
  ),
  mistaken("signed as a plain message", "personalSign", "digest", "any", (recipe) => ({
    ...recipe,
    digest: (digest) => hashMessage({ raw: digest })
  })),
  mistaken("v of the other key", "otherRecoveryBit", "signature", "any", (recipe) => ({
    ...recipe,
    written: ({ r, s, v }) => ({ r, s, v: 55 - v })
  })),
  mistaken("v of 0 or 1", "recoveryBitForm", "signature", "any", (recipe) => ({
    ...recipe,
    written: ({ r, s, v }) => ({ r, s, v: v - 27 })
  })),
  mistaken("r and s exchanged", "swappedHalves", "signature", "any", (recipe) => ({
    ...recipe,
    written: ({ r, s, v }) => ({ r: s, s: r, v })
  }))
]

function expiry(context: Parameters<Tail>[0]): ReadonlyArray<Hex> {
  return context.expiresAfter === undefined ? [] : ["0x00", expires(context)]
}

const isFor = ({ scheme }: MistakenSigning, { typed }: Sound): boolean =>
  scheme === "any" || (scheme === "l1") === (typed === undefined)

/** A mistake as the only one. */
export const alone = (each: MistakenSigning): Break => ({
  name: each.name,
  make: async (sound) => {
    const recipe = isFor(each, sound) ? each.apply(rightRecipe(sound), sound) : undefined
    return recipe === undefined ? undefined : { body: await bodyOf(recipe, sound), mistake: each.mistake }
  }
})

/** Each mistake as the only one. */
export const single: ReadonlyArray<Break> = signingMistakes.map(alone)

interface Two {
  readonly first: MistakenSigning
  readonly second: MistakenSigning
}

/** Mistakes in two layers that apply to the same scheme. */
const twos: ReadonlyArray<Two> = signingMistakes.flatMap((first, at) =>
  signingMistakes.slice(at + 1).filter((second) =>
    first.layer !== second.layer &&
    (first.scheme === "any" || second.scheme === "any" || first.scheme === second.scheme)
  ).map((second) => ({ first, second }))
)

/** Both mistakes at once, named after their layers; `undefined` where one of them leaves nothing of the other. */
const both = ({ first, second }: Two): Break => ({
  name: [first.layer, second.layer].toSorted().join(" and "),
  make: async (sound) => {
    if (!isFor(first, sound) || !isFor(second, sound)) return undefined
    const start = rightRecipe(sound)
    const one = first.apply(start, sound)
    const other = second.apply(start, sound)
    const made = one === undefined ? undefined : second.apply(one, sound)
    if (one === undefined || other === undefined || made === undefined) return undefined
    const body = await bodyOf(made, sound)
    const alone = await Promise.all([bodyOf(one, sound), bodyOf(other, sound)])
    return alone.some((each) => isSame(each, body))
      ? undefined
      : { body, mistake: first.mistake, others: [second.mistake], isPair: true }
  }
})

/** Two mistakes of the usual form. */
export const pairs: ReadonlyArray<Break> = twos
  .filter(({ first, second }) => typical.has(first.name) && typical.has(second.name))
  .map(both)

/** Two mistakes of any form: rare ones count as much as usual ones. */
export const pairsOfAnyForm: ReadonlyArray<Break> = twos.map(both)
