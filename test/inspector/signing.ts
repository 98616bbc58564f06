/** Signs as programs do, with none of our own code: whatever is given, in the order in which it is given. */
import { keccak_256 } from "@noble/hashes/sha3"
import * as Predicate from "effect/Predicate"
import { sign } from "viem/accounts"
import { bytesToHex, concat, hashTypedData, hexToBytes, keccak256, numberToHex, stringToHex } from "viem/utils"

export type Hex = `0x${string}`

/** A number that is packed as a double, whole or not. */
export class Double {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

const head = (small: number, wide: number, size: number): Hex =>
  size < 16
    ? numberToHex(small | size, { size: 1 })
    : concat([numberToHex(wide, { size: 1 }), numberToHex(size, { size: 2 })])

const textHead = (size: number): Hex => {
  if (size < 32) return numberToHex(0xa0 | size, { size: 1 })
  return size < 256
    ? concat(["0xd9", numberToHex(size, { size: 1 })])
    : concat(["0xda", numberToHex(size, { size: 2 })])
}

const double = (value: number): Hex => {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, value)
  return concat(["0xcb", bytesToHex(new Uint8Array(view.buffer))])
}

const integer = (value: bigint): Hex => {
  if (value < 0n) {
    if (value >= -32n) return numberToHex(Number(256n + value), { size: 1 })
    if (value >= -128n) return concat(["0xd0", numberToHex(256n + value, { size: 1 })])
    if (value >= -32_768n) return concat(["0xd1", numberToHex(65_536n + value, { size: 2 })])
    return concat(["0xd2", numberToHex((1n << 32n) + value, { size: 4 })])
  }
  if (value < 128n) return numberToHex(value, { size: 1 })
  if (value < 256n) return concat(["0xcc", numberToHex(value, { size: 1 })])
  if (value < 65_536n) return concat(["0xcd", numberToHex(value, { size: 2 })])
  if (value < 1n << 32n) return concat(["0xce", numberToHex(value, { size: 4 })])
  return concat(["0xcf", numberToHex(value, { size: 8 })])
}

/** MessagePack of a value, as a usual encoder writes it. */
export const pack = (value: unknown): Hex => {
  if (value instanceof Double) return double(value.value)
  if (value === null) return "0xc0"
  if (Predicate.isBoolean(value)) return value ? "0xc3" : "0xc2"
  if (Predicate.isNumber(value)) return Number.isInteger(value) ? integer(BigInt(value)) : double(value)
  if (Predicate.isString(value)) {
    const bytes = hexToBytes(stringToHex(value))
    return concat([textHead(bytes.length), bytesToHex(bytes)])
  }
  if (Array.isArray(value)) return concat([head(0x90, 0xdc, value.length), ...value.map(pack)])
  if (!Predicate.isObject(value)) throw new Error("not a value of JSON")
  const members = Object.entries(value)
  return concat([head(0x80, 0xde, members.length), ...members.flatMap(([key, item]) => [pack(key), pack(item)])])
}

/** What is hashed beside an action. */
export interface Context {
  readonly nonce: number
  readonly vaultAddress?: string | undefined
  readonly expiresAfter?: number | undefined
}

/** How the bytes after an action are put together. */
export type Tail = (context: Context) => ReadonlyArray<Hex>

const hex = (text: string): Hex => `0x${text.slice(2)}`

export const vault = ({ vaultAddress }: Context): Hex => vaultAddress === undefined ? "0x" : hex(vaultAddress)

export const expires = ({ expiresAfter }: Context): Hex =>
  expiresAfter === undefined ? "0x" : numberToHex(expiresAfter, { size: 8 })

export const nonceBytes = ({ nonce }: Context): Hex => numberToHex(nonce, { size: 8 })

export const rightTail: Tail = (context) => [
  nonceBytes(context),
  context.vaultAddress === undefined ? "0x00" : "0x01",
  vault(context),
  context.expiresAfter === undefined ? "0x" : "0x00",
  expires(context)
]

export const connectionId = (action: unknown, context: Context, tail: Tail = rightTail): Hex =>
  bytesToHex(keccak_256(hexToBytes(concat([pack(action), ...tail(context)]))))

/** Typed data, as a program may declare it. */
export interface Typed {
  readonly name: string
  readonly version?: string
  readonly contract?: Hex
  readonly chainId: number
  readonly primaryType: string
  readonly fields: ReadonlyArray<{ readonly name: string; readonly type: string }>
  readonly message: Readonly<Record<string, unknown>>
}

export const agent = (connectionId: Hex, source: "a" | "b" = "a"): Typed => ({
  name: "Exchange",
  chainId: 1337,
  primaryType: "Agent",
  fields: [{ name: "source", type: "string" }, { name: "connectionId", type: "bytes32" }],
  message: { source, connectionId }
})

const verifyingContract = `0x${"0".repeat(40)}` as const

const isAbsentText = (message: Typed["message"]) => ({ name, type }: Typed["fields"][number]): boolean =>
  type === "string" && (message[name] ?? null) === null

/** An absent text is signed as the empty text. */
export const digestOf = (
  { chainId, contract = verifyingContract, fields, message, name, primaryType, version = "1" }: Typed
): Hex =>
  hashTypedData({
    domain: { name, version, chainId, verifyingContract: contract },
    types: { [primaryType]: fields },
    primaryType,
    message: { ...message, ...Object.fromEntries(fields.filter(isAbsentText(message)).map(({ name }) => [name, ""])) }
  })

export interface Signature {
  readonly r: string
  readonly s: string
  readonly v: number
}

export const signDigest = async (digest: Hex, privateKey: Hex): Promise<Signature> => {
  const { r, s, v } = await sign({ hash: digest, privateKey })
  return { r, s, v: Number(v) }
}

export const hashOfBytes = (bytes: Hex): Hex => keccak256(bytes)
