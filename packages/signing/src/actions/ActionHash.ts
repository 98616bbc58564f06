/**
 * The message that a signer signs: canonical MessagePack, the hash of an action, and EIP-712 messages with their
 * digests.
 */
import { keccak_256 } from "@noble/hashes/sha3"
import { bytesToHex } from "@noble/hashes/utils"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { decodeFaults } from "@trigate/domain/operations/Operation"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as hashWasm from "hash-wasm"
import type { VenueProfile } from "../VenueProfile.ts"

export type Hex = `0x${string}`

const wordPattern = /^0x[0-9a-fA-F]{64}$/

const addressPattern = /^0x[0-9a-fA-F]{40}$/

/** Returns the character code of a hexadecimal digit in lower case. */
const digitCode = (value: number): number => value + (value < 10 ? 0x30 : 0x57)

/** Reused buffer for the character codes of `0x` and the hex digits of up to 64 bytes. */
const codes = [0x30, 0x78, ...new Uint8Array(128)]

/**
 * Encodes bytes in 0x hex. Up to 64 bytes become one flat string: the JavaScript engine retains the parts of a concatenated
 * string, and the library noble concatenates one string per byte.
 */
export const toHex = (bytes: Uint8Array): Hex => {
  if (bytes.length > 64) return `0x${bytesToHex(bytes)}`
  let at = 2
  for (const byte of bytes) {
    codes[at] = digitCode(byte >> 4)
    codes[at + 1] = digitCode(byte & 0x0f)
    at += 2
  }
  return Encoding.lowerCase(String.fromCharCode(...codes.slice(0, at)))
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
let hashBytes: (bytes: Uint8Array) => Uint8Array = keccak_256

/**
 * Returns the keccak-256 hash, with Ethereum's padding instead of the padding of SHA-3. Uses noble until {@link
 * loadKeccak} has run.
 */
export const keccak256 = (bytes: Uint8Array): Uint8Array => hashBytes(bytes)

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
    hashBytes = (bytes) => hasher.init().update(bytes).digest("binary")
  }
})

/** Returns the address of an uncompressed public key of 65 bytes. */
export const publicKeyAddress = (publicKey: Uint8Array): Hex => toHex(keccak256(publicKey.subarray(1)).subarray(12))

/** Maximum nesting depth of the maps and arrays of an action. */
export const maxDepth = 64

const Reason = Schema.Literals(["integerRange", "notFinite", "malformedString", "tooDeep", "unsupportedType"])

/**
 * A value without a canonical encoding; `path` is its location.
 *
 * `integerRange`: an integer outside -2^63 to 2^64 - 1. `notFinite`: NaN or an infinity. `malformedString`: a lone surrogate.
 * `tooDeep`: more than {@link maxDepth} nested containers. `unsupportedType`: a value that JSON does not have.
 */
export class MsgPackUnencodable extends Schema.TaggedError<MsgPackUnencodable>()("MsgPackUnencodable", {
  reason: Reason,
  path: Schema.Array(Schema.Union([Schema.String, Schema.Int]))
}) {
  get group() {
    return "fix-request" as const
  }
  override get message() {
    return `Not encodable as MessagePack at "${this.path.join(".")}": ${this.reason}`
  }
}

/** Maximum size in bytes of a reused buffer; a larger buffer is released. */
const MAX_KEPT = 65_536

/** A growing buffer with big-endian integer writes, reused for the next value. */
class ByteWriter {
  #bytes = new Uint8Array(1024)
  #view = new DataView(this.#bytes.buffer)
  #length = 0

  /** Reserves `size` bytes and returns their offset. */
  #claim(size: number): number {
    const start = this.#length
    this.#length = start + size
    if (this.#length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#length, this.#bytes.length * 2))
      grown.set(this.#bytes)
      this.#bytes = grown
      this.#view = new DataView(grown.buffer)
    }
    return start
  }

  /** Writes an integer of 1, 2 or 4 bytes, in two's complement. */
  integer(value: number, width: 1 | 2 | 4): void {
    const at = this.#claim(width)
    if (width === 1) this.#view.setUint8(at, value)
    else if (width === 2) this.#view.setUint16(at, value)
    else this.#view.setUint32(at, value)
  }

  /** Writes the byte that identifies a type. */
  tag(value: number): void {
    this.integer(value, 1)
  }

  uint64(value: bigint): void {
    const at = this.#claim(8)
    this.#view.setBigUint64(at, value)
  }

  float64(value: number): void {
    const at = this.#claim(8)
    this.#view.setFloat64(at, value)
  }

  bytes(value: Uint8Array): void {
    const at = this.#claim(value.length)
    this.#bytes.set(value, at)
  }

  /** Writes an ASCII string. Nearly every string of an action is ASCII. */
  ascii(text: string): void {
    const at = this.#claim(text.length)
    for (let index = 0; index < text.length; index++) this.#bytes[at + index] = text.charCodeAt(index)
  }

  /** Discards all bytes written so far. */
  clear(): void {
    this.#length = 0
    if (this.#bytes.length <= MAX_KEPT) return
    this.#bytes = new Uint8Array(1024)
    this.#view = new DataView(this.#bytes.buffer)
  }

  /** Returns a copy of the bytes written, so that the internal buffer is never shared. */
  copy(): Uint8Array {
    return this.#bytes.slice(0, this.#length)
  }
}

const ascii = /^[\0-\x7f]*$/

interface EncodingFault {
  readonly reason: typeof Reason.Type
  /**
   * The path of the value, innermost key first. It is collected while the recursion unwinds, so that it costs nothing
   * on success.
   */
  readonly path: Array<string | number>
}

const fault = (reason: typeof Reason.Type): EncodingFault => ({ reason, path: [] })

const within = (inner: EncodingFault, key: string | number): EncodingFault => {
  inner.path.push(key)
  return inner
}

/** Writes a type byte, then its integer or length. */
const writeTagged = (out: ByteWriter, tag: number, value: number, width: 1 | 2 | 4): void => {
  out.tag(tag)
  out.integer(value, width)
}

/** Writes an integer from -2^31 to 2^32 - 1. */
const writeSmallInteger = (out: ByteWriter, value: number): undefined => {
  if (value >= -0x20 && value <= 0x7f) out.integer(value, 1)
  else if (value >= -0x80 && value <= 0xff) writeTagged(out, value < 0 ? 0xd0 : 0xcc, value, 1)
  else if (value >= -0x8000 && value <= 0xffff) writeTagged(out, value < 0 ? 0xd1 : 0xcd, value, 2)
  else writeTagged(out, value < 0 ? 0xd2 : 0xce, value, 4)
}

const writeBigInt = (out: ByteWriter, value: bigint): EncodingFault | undefined => {
  if (value > 0xffff_ffff_ffff_ffffn || value < -0x8000_0000_0000_0000n) return fault("integerRange")
  if (value <= 0xffff_ffffn && value >= -0x8000_0000n) return writeSmallInteger(out, Number(value))
  out.tag(value < 0n ? 0xd3 : 0xcf)
  out.uint64(BigInt.asUintN(64, value))
  return undefined
}

const writeNumber = (out: ByteWriter, value: number): EncodingFault | undefined => {
  if (!Number.isFinite(value)) return fault("notFinite")
  if (!Number.isInteger(value)) {
    out.tag(0xcb)
    out.float64(value)
    return undefined
  }
  return value <= 0xffff_ffff && value >= -0x8000_0000
    ? writeSmallInteger(out, value)
    : writeBigInt(out, BigInt(value))
}

const writeString = (out: ByteWriter, value: string): EncodingFault | undefined => {
  const bytes = ascii.test(value) ? undefined : Encoding.encode(value)
  if (bytes !== undefined && !value.isWellFormed()) return fault("malformedString")
  const { length } = bytes ?? value
  if (length <= 0x1f) out.tag(0xa0 | length)
  else if (length <= 0xff) writeTagged(out, 0xd9, length, 1)
  else if (length <= 0xffff) writeTagged(out, 0xda, length, 2)
  else writeTagged(out, 0xdb, length, 4)
  if (bytes === undefined) out.ascii(value)
  else out.bytes(bytes)
  return undefined
}

/**
 * Writes the type and the number of items of a list or map. `fixed` is the type byte to which a number up to 15 is
 * added. `wide` is the type byte before a two-byte number, and `wide + 1` the type byte before a four-byte number.
 */
const writeSize = (out: ByteWriter, size: number, fixed: number, wide: number): void => {
  if (size <= 0x0f) out.tag(fixed | size)
  else if (size <= 0xffff) writeTagged(out, wide, size, 2)
  else writeTagged(out, wide + 1, size, 4)
}

const writeArray = (out: ByteWriter, items: ReadonlyArray<unknown>, depth: number): EncodingFault | undefined => {
  writeSize(out, items.length, 0x90, 0xdc)
  for (const [index, item] of items.entries()) {
    const inner = write(out, item, depth)
    if (inner !== undefined) return within(inner, index)
  }
  return undefined
}

const writeMap = (out: ByteWriter, map: object, depth: number): EncodingFault | undefined => {
  const members = Object.entries(map).filter(([, value]) => value !== undefined)
  writeSize(out, members.length, 0x80, 0xde)
  for (const [key, value] of members) {
    const inner = writeString(out, key) ?? write(out, value, depth)
    if (inner !== undefined) return within(inner, key)
  }
  return undefined
}

/** Writes a value; `depth` is the number of containers around it, which limits the recursion. */
const write = (out: ByteWriter, value: unknown, depth: number): EncodingFault | undefined => {
  if (Predicate.isString(value)) return writeString(out, value)
  if (Predicate.isNumber(value)) return writeNumber(out, value)
  if (Predicate.isBigInt(value)) return writeBigInt(out, value)
  if (Predicate.isBoolean(value)) {
    out.tag(value ? 0xc3 : 0xc2)
    return undefined
  }
  if (value === null) {
    out.tag(0xc0)
    return undefined
  }
  if (!Predicate.isObjectOrArray(value)) return fault("unsupportedType")
  if (depth >= maxDepth) return fault("tooDeep")
  return Array.isArray(value) ? writeArray(out, value, depth + 1) : writeMap(out, value, depth + 1)
}

const writer = new ByteWriter()

/**
 * Encodes a parsed JSON value. Fails with {@link MsgPackUnencodable}.
 *
 * Integers (numbers or bigints) have the smallest encoding. Above 2^32 - 1 that is `uint64`, and never `float64`, which
 * is the usual mistake of JavaScript encoders. Other numbers are `float64`. Members of a map are encoded in the
 * object's order, in which JavaScript lists integer-like keys first. `undefined` members are omitted, `null` is
 * encoded.
 */
export const encode = (value: unknown): Result.Result<Uint8Array, MsgPackUnencodable> => {
  // encoding a parsed JSON value runs no getters, so nothing else writes to the buffer before the copy
  writer.clear()
  const found = write(writer, value, 0)
  return found === undefined
    ? Result.succeed(writer.copy())
    : Result.fail(new MsgPackUnencodable({ reason: found.reason, path: found.path.toReversed() }))
}

/** Like {@link encode}, in 0x hex. */
export const encodeHex = (value: unknown): Result.Result<Hex, MsgPackUnencodable> => Result.map(encode(value), toHex)

/**
 * A field of a message, with its value. Addresses and `bytes32` are hex strings of full length, `bytes` a hex string
 * with an even number of digits.
 */
export type Member =
  | { readonly name: string; readonly type: "string"; readonly value: string }
  | { readonly name: string; readonly type: "address" | "bytes" | "bytes32"; readonly value: Hex }
  | { readonly name: string; readonly type: "uint32" | "uint64"; readonly value: number | bigint }
  | { readonly name: string; readonly type: "bool"; readonly value: boolean }

/** Name and type of a field. */
export type Field = Pick<Member, "name" | "type">

/**
 * The name and type of a field in any EIP-712 message. Unlike in {@link Field}, the type can be one that no action
 * uses.
 */
export interface NamedType {
  readonly name: string
  readonly type: string
}

/**
 * A message type with its hash. The hash is computed once, because hashing the types of every message would cost more
 * than signing it.
 */
export interface StructType {
  readonly primaryType: string
  readonly fields: ReadonlyArray<NamedType>
  readonly typeHash: Uint8Array
}

/** A signing domain (version "1", no verifying contract), and its domain separator, which is computed once. */
export interface Domain {
  readonly name: string
  readonly chainId: number | bigint
  readonly separator: Uint8Array
}

/** A message in its domain; `members` are in the order of the message type's fields. */
export interface Signable {
  readonly domain: Domain
  readonly struct: StructType
  readonly members: ReadonlyArray<Member>
}

/** The object for `eth_signTypedData_v4`; integers that a number cannot represent are bigints. */
export interface TypedData {
  readonly domain: {
    readonly name: string
    readonly version: "1"
    readonly chainId: number | bigint
    readonly verifyingContract: Hex
  }
  readonly types: Readonly<Record<string, ReadonlyArray<NamedType>>>
  readonly primaryType: string
  readonly message: Readonly<Record<string, Member["value"]>>
}

const version = "1"

export const verifyingContract = "0x0000000000000000000000000000000000000000"

/** The fields of an EIP-712 domain. */
export const domainFields = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
  { name: "verifyingContract", type: "address" }
] as const

const hashText = (text: string): Uint8Array => keccak256(Encoding.encode(text))

const encodeType = (primaryType: string, fields: ReadonlyArray<NamedType>) =>
  `${primaryType}(${fields.map((field) => `${field.type} ${field.name}`).join(",")})`

const textHashes = new Map<string, Uint8Array>()

/**
 * Maximum number of cached text hashes; limited, because callers choose the text. The cache saves the hashing of
 * network names, which are in every message.
 */
const cachedTexts = 64

const longestCachedText = 16

const textHash = (text: string): Uint8Array => {
  const known = textHashes.get(text)
  if (known !== undefined) return known
  const hash = hashText(text)
  if (text.length <= longestCachedText && textHashes.size < cachedTexts) textHashes.set(text, hash)
  return hash
}

const writeWord = (bytes: Uint8Array, at: number, member: Member): void => {
  switch (member.type) {
    case "string":
      return bytes.set(textHash(member.value), at)
    case "bool":
      bytes[at + 31] = member.value ? 1 : 0
      return undefined
    case "uint32":
    case "uint64":
      return bytes.set(uint64Bytes(BigInt(member.value)), at + 24)
    case "address":
      return writeHex(member.value, bytes, at + 12)
    case "bytes":
      return bytes.set(keccak256(fromHex(member.value)), at)
    case "bytes32":
      return writeHex(member.value, bytes, at)
  }
}

const structHash = (typeHash: Uint8Array, members: ReadonlyArray<Member>): Uint8Array => {
  const bytes = new Uint8Array((members.length + 1) * 32)
  bytes.set(typeHash)
  let at = 32
  for (const member of members) {
    writeWord(bytes, at, member)
    at += 32
  }
  return keccak256(bytes)
}

/** Makes a message type, and computes its hash. */
export const structType = (primaryType: string, fields: ReadonlyArray<NamedType>): StructType => ({
  primaryType,
  fields,
  typeHash: hashText(encodeType(primaryType, fields))
})

const domainTypeHash = hashText(encodeType("EIP712Domain", domainFields))

/** Makes a domain, and computes its separator. `chainId` has at most 64 bits. */
export const domain = (name: string, chainId: number | bigint): Domain => ({
  name,
  chainId,
  separator: structHash(domainTypeHash, [
    { name: "name", type: "string", value: name },
    { name: "version", type: "string", value: version },
    { name: "chainId", type: "uint64", value: chainId },
    { name: "verifyingContract", type: "address", value: verifyingContract }
  ])
})

/**
 * Makes a domain with the fields and values that another program uses: `fields` and `members` are hashed. `name` and
 * `chainId` are only displayed.
 */
export const domainWith = (
  fields: ReadonlyArray<NamedType>,
  members: ReadonlyArray<Member>,
  { chainId, name }: Pick<Domain, "name" | "chainId">
): Domain => ({
  name,
  chainId,
  separator: structHash(hashText(encodeType("EIP712Domain", fields)), members)
})

/** Returns the 66 bytes whose hash is signed: `0x1901`, domain separator and struct hash. */
export const messageBytes = ({ domain, members, struct }: Signable): Uint8Array => {
  const bytes = new Uint8Array(66)
  bytes[0] = 0x19
  bytes[1] = 0x01
  bytes.set(domain.separator, 2)
  bytes.set(structHash(struct.typeHash, members), 34)
  return bytes
}

/** Returns the 32 bytes to sign: keccak-256 of `0x1901`, domain separator and struct hash. */
export const digestBytes = (signable: Signable): Uint8Array => keccak256(messageBytes(signable))

/** Like {@link digestBytes}, in 0x hex. */
export const digest = (signable: Signable): Hex => toHex(digestBytes(signable))

/** Returns the typed data of a message, for a wallet to display and sign. Its digest is {@link digest}. */
export const typedData = ({ domain, members, struct }: Signable): TypedData => ({
  domain: { name: domain.name, version, chainId: domain.chainId, verifyingContract },
  types: { EIP712Domain: domainFields, [struct.primaryType]: struct.fields },
  primaryType: struct.primaryType,
  message: Object.fromEntries(members.map((member) => [member.name, member.value]))
})

/** {@link TypedData} as JSON: an integer that a double cannot represent is a decimal string. */
export const WalletData = Schema.Struct({
  domain: Schema.Struct({
    name: Schema.String,
    version: Schema.Literal(version),
    chainId: Schema.Union([Schema.Int, Schema.String]),
    verifyingContract: Encoding.Address
  }),
  types: Schema.Record(Schema.String, Schema.Array(Schema.Struct({ name: Schema.String, type: Schema.String }))),
  primaryType: Schema.String,
  message: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Int, Schema.Boolean]))
})
export type WalletData = typeof WalletData.Type

const asJson = <A>(value: A | bigint): A | string => typeof value === "bigint" ? value.toString() : value

/** Returns {@link typedData} for a wallet in another process, which receives it as JSON. */
export const walletData = (signable: Signable): WalletData => {
  const { domain, message, ...rest } = typedData(signable)
  return {
    ...rest,
    domain: { ...domain, chainId: asJson<number>(domain.chainId) },
    message: Object.fromEntries(
      Object.entries(message).map(([name, value]) => [name, asJson<string | number | boolean>(value)])
    )
  }
}

/**
 * The signed bytes of an action cannot be derived, so no signer can be recovered; `path` is the invalid member.
 *
 * `documentedForm`: a form that appears only in the venue's documentation. `shape`: a member is missing, of the wrong
 * type or out of range. `otherNetwork`: the action is not for the profile's network. `unknownType`: the action is
 * user-signed, and the fields of its type are unknown.
 */
export class UnsignableAction extends Schema.TaggedError<UnsignableAction>()("UnsignableAction", {
  reason: Schema.Literals(["documentedForm", "shape", "otherNetwork", "unknownType"]),
  path: Schema.Array(Schema.Union([Schema.String, Schema.Int])),
  detail: Schema.String
}) {
  get group() {
    return "fix-request" as const
  }
  override get message() {
    return this.detail
  }

  /** Prepends the path of the container to the error's path. */
  within(...prefix: ReadonlyArray<string | number>): UnsignableAction {
    return new UnsignableAction({ reason: this.reason, path: [...prefix, ...this.path], detail: this.detail })
  }
}

/** Makes a `shape` error for one member. */
export const wrongShape = (path: string, expected: string): UnsignableAction =>
  new UnsignableAction({ reason: "shape", path: [path], detail: `"${path}" must be ${expected}` })

/** Makes a `shape` error with the first decoding error of a value. */
export const undecodable = (error: Schema.SchemaError): UnsignableAction => {
  const [first] = decodeFaults(error)
  return new UnsignableAction({ reason: "shape", path: first?.path ?? [], detail: first?.message ?? error.message })
}

/** The reasons why an action cannot be hashed. */
export type Unhashable = MsgPackUnencodable | UnsignableAction

/** The values that are hashed with the action. `null` and absent are equivalent. */
export interface HashContext {
  /** The nonce in milliseconds since 1970, an unsigned 64-bit integer. */
  readonly nonce: number | bigint
  /** The vault or sub-account on whose behalf the action is signed, 20 bytes. */
  readonly vaultAddress?: string | null | undefined
  /** The expiry in milliseconds since 1970, an unsigned 64-bit integer. */
  readonly expiresAfter?: number | bigint | null | undefined
}

/**
 * Encodes an integer in eight bytes, big-endian. Fails with {@link UnsignableAction}, which contains the member's name.
 */
export const uint64 = (name: string, value: number | bigint): Result.Result<Uint8Array, UnsignableAction> => {
  const integer = toUint64(value)
  return integer === undefined
    ? Result.fail(wrongShape(name, "an unsigned 64-bit integer"))
    : Result.succeed(uint64Bytes(integer))
}

const absent = Uint8Array.of(0)
const nothing = new Uint8Array(0)

const vaultBytes = (vaultAddress: HashContext["vaultAddress"]): Result.Result<Uint8Array, UnsignableAction> => {
  if (vaultAddress === null || vaultAddress === undefined) return Result.succeed(absent)
  return isAddress(vaultAddress)
    ? Result.succeed(concat(Uint8Array.of(1), fromHex(vaultAddress)))
    : Result.fail(wrongShape("vaultAddress", "a 20-byte address"))
}

const expiryBytes = (expiresAfter: HashContext["expiresAfter"]): Result.Result<Uint8Array, UnsignableAction> =>
  expiresAfter === null || expiresAfter === undefined
    ? Result.succeed(nothing)
    : Result.map(uint64("expiresAfter", expiresAfter), (expiry) => concat(absent, expiry))

/**
 * Returns the bytes to hash: the value in MessagePack, the nonce, and then the vault and the expiry, each after a
 * marker byte.
 *
 * The value must already be in the venue's key order. Fails with `MsgPackUnencodable` or {@link UnsignableAction}.
 */
export const preimage = (
  value: unknown,
  { expiresAfter, nonce, vaultAddress }: HashContext
): Result.Result<Uint8Array, Unhashable> =>
  Result.flatMap(
    encode(value),
    (encoded) =>
      Result.flatMap(uint64("nonce", nonce), (nonce) =>
        Result.flatMap(vaultBytes(vaultAddress), (vault) =>
          Result.map(expiryBytes(expiresAfter), (expiry) =>
            concat(encoded, nonce, vault, expiry))))
  )

/** Returns the keccak-256 of the {@link preimage}. Fails with `MsgPackUnencodable` or {@link UnsignableAction}. */
export const hash = (value: unknown, context: HashContext): Result.Result<Hex, Unhashable> =>
  Result.map(preimage(value, context), (bytes) => toHex(keccak256(bytes)))

const agent = structType("Agent", [
  { name: "source", type: "string" },
  { name: "connectionId", type: "bytes32" }
])

/**
 * The signing domain of L1 actions on all networks. Its chain ID is 1337. A wallet that is connected to another chain
 * refuses to sign in this domain.
 */
const agentDomain = domain("Exchange", 1337)

/** Returns the phantom agent message that is signed for an L1 action; `connectionId` is the action's {@link hash}. */
export const agentSignable = (profile: VenueProfile, connectionId: Hex): Signable => ({
  domain: agentDomain,
  struct: agent,
  members: [
    { name: "source", type: "string", value: profile.source },
    { name: "connectionId", type: "bytes32", value: connectionId }
  ]
})

/** Returns the message to sign for an L1 action. Fails like {@link hash}. */
export const signable = (
  profile: VenueProfile,
  value: unknown,
  context: HashContext
): Result.Result<Signable, Unhashable> =>
  Result.map(hash(value, context), (connectionId) => agentSignable(profile, connectionId))
