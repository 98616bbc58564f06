/** 0x-prefixed hexadecimal values, as EVM nodes format them. */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"

const isHex = (value: string): value is `0x${string}` => value.startsWith("0x")

/** Returns a schema of 0x hex text; error messages quote `description`. */
export const hex = (pattern: RegExp, identifier: string, description: string) =>
  Schema.String.check(Schema.isPattern(pattern, { expected: description }).abort()).pipe(Schema.refine(isHex)).annotate(
    {
      identifier,
      description
    }
  )

/** A 20-byte account or contract address. Decoding preserves the letter case. */
export const Address = hex(/^0x[0-9a-fA-F]{40}$/u, "Address", "a 20-byte address in 0x hex")
export type Address = typeof Address.Type

/** A 32-byte value: a hash of a transaction or of a block, or a storage word. */
export const Hash = hex(/^0x[0-9a-fA-F]{64}$/u, "Hash", "32 bytes in 0x hex")
export type Hash = typeof Hash.Type

/** Bytes of any length. */
export const Data = hex(/^0x(?:[0-9a-fA-F]{2})*$/u, "Data", "bytes in 0x hex, an even number of digits")
export type Data = typeof Data.Type

/** A storage position of up to 32 bytes, with or without leading zeros. */
export const StorageSlot = hex(
  /^0x[0-9a-fA-F]{1,64}$/u,
  "StorageSlot",
  "a storage position of 1 to 64 digits in 0x hex"
)
export type StorageSlot = typeof StorageSlot.Type

const isLowerCase = (hex: string): hex is `0x${string}` => /^0x[0-9a-f]*$/u.test(hex)

/** Converts 0x hex text to lower case. A lower-case text is returned itself, because its hash is already computed. */
export const lowerCase = (hex: string): `0x${string}` => isLowerCase(hex) ? hex : `0x${hex.slice(2).toLowerCase()}`

/** Encodes a non-negative integer as 0x hex without leading zeros. */
export const encodeQuantity = (value: bigint | number): `0x${string}` => `0x${value.toString(16)}`

const UINT256_MAX = 2n ** 256n - 1n

/** An unsigned 256-bit integer: 0x hex, decoded as a `bigint`. Decoding accepts leading zeros; encoding omits them. */
export const Quantity = hex(/^0x[0-9a-fA-F]{1,64}$/u, "Quantity", "a non-negative integer in 0x hex").pipe(
  Schema.decodeTo(
    Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: 0n, maximum: UINT256_MAX })),
    SchemaTransformation.transform({
      decode: (text) => BigInt(text),
      encode: encodeQuantity
    })
  )
)
export type Quantity = typeof Quantity.Type
