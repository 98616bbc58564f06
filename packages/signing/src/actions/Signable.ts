/**
 * A message to sign: an EIP-712 message of flat fields, as a 32-byte digest and as the object that a wallet displays.
 */
import { Address } from "@trigate/domain/encoding/Hex"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as Schema from "effect/Schema"
import { fromHex, type Hex, keccak256, toHex, uint64Bytes, writeHex } from "../internal/bytes.ts"

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

const hashText = (text: string): Uint8Array => keccak256(Utf8.encode(text))

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
    verifyingContract: Address
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
