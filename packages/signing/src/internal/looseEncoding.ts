/** MessagePack and JSON as other programs encode them, in bytes that differ from the venue's. */
import * as Json from "@trigate/domain/encoding/Json"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as Predicate from "effect/Predicate"
import { concat, fromHex } from "./bytes.ts"

/** An integer that is encoded as a double. */
export class AsDouble {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

/**
 * The MessagePack type of integers. `smallest`: the smallest type. `uint16` to `int64`: at least this type. `signed`:
 * the smallest signed type. `double`: a double.
 */
export type IntegerStyle = "smallest" | "uint16" | "uint32" | "uint64" | "int32" | "int64" | "signed" | "double"

/**
 * The MessagePack type of text. `shortest`: a string with the shortest header. `str8`, `str16`, `str32`: a string with
 * at least this header. `noStr8`: a string with the shortest header except `str8`. `bin`: binary data, except for keys.
 * `addressBytes`: binary data for addresses and client order IDs.
 */
export type TextStyle = "shortest" | "str8" | "str16" | "str32" | "noStr8" | "bin" | "addressBytes"

/** The encoding of the number of items in a list or map. */
export type SizeStyle = "shortest" | "wide16" | "wide32"

/** A variant of MessagePack. */
export interface Encoding {
  readonly integer: IntegerStyle
  readonly text: TextStyle
  readonly size: SizeStyle
}

/** The variant of MessagePack that the venue uses. */
export const standard: Encoding = { integer: "smallest", text: "shortest", size: "shortest" }

/** Combines two variants of MessagePack. If both change a property, the second variant applies. */
export const combined = (first: Encoding, second: Encoding): Encoding => ({
  integer: second.integer === standard.integer ? first.integer : second.integer,
  text: second.text === standard.text ? first.text : second.text,
  size: second.size === standard.size ? first.size : second.size
})

type Width = 1 | 2 | 4 | 8

const tagged = (tag: number, value: bigint, width: Width): Uint8Array => {
  const bytes = new Uint8Array(width + 1)
  bytes[0] = tag
  for (let at = width, rest = BigInt.asUintN(width * 8, value); at > 0; at--, rest >>= 8n) {
    bytes[at] = Number(rest & 0xffn)
  }
  return bytes
}

const widths = [[1, 0], [2, 1], [4, 2], [8, 3]] as const

const fits = (value: bigint, width: Width, signed: boolean): boolean =>
  signed
    ? value >= -(1n << BigInt(width * 8 - 1)) && value < 1n << BigInt(width * 8 - 1)
    : value >= 0n && value < 1n << BigInt(width * 8)

const sized = (value: bigint, least: Width, signed: boolean): Uint8Array => {
  for (const [width, step] of widths) {
    if (width >= least && fits(value, width, signed)) return tagged((signed ? 0xd0 : 0xcc) + step, value, width)
  }
  return tagged(signed ? 0xcf : 0xd3, value, 8)
}

const double = (value: number): Uint8Array => {
  const bytes = new Uint8Array(9)
  bytes[0] = 0xcb
  new DataView(bytes.buffer).setFloat64(1, value)
  return bytes
}

const integer = (value: bigint, style: IntegerStyle): Uint8Array => {
  switch (style) {
    case "double":
      return double(Number(value))
    case "uint16":
      return sized(value, 2, value < 0n)
    case "uint32":
      return sized(value, 4, value < 0n)
    case "uint64":
      return sized(value, 8, value < 0n)
    case "int32":
      return sized(value, 4, true)
    case "int64":
      return sized(value, 8, true)
    default: {
      if (value >= -32n && value < 128n) return Uint8Array.of(Number(BigInt.asUintN(8, value)))
      return sized(value, 1, style === "signed" || value < 0n)
    }
  }
}

const header = (fixed: number, limit: number, wide: readonly [tag: number, width: 1 | 2 | 4][], length: number) => {
  if (length < limit) return Uint8Array.of(fixed | length)
  const found = wide.find(([, width]) => length < 2 ** (8 * width)) ?? wide.at(-1)
  return found === undefined ? new Uint8Array(0) : tagged(found[0], BigInt(length), found[1])
}

const textHeaders = {
  shortest: [32, [[0xd9, 1], [0xda, 2], [0xdb, 4]]],
  addressBytes: [32, [[0xd9, 1], [0xda, 2], [0xdb, 4]]],
  str8: [0, [[0xd9, 1], [0xda, 2], [0xdb, 4]]],
  str16: [0, [[0xda, 2], [0xdb, 4]]],
  str32: [0, [[0xdb, 4]]],
  noStr8: [32, [[0xda, 2], [0xdb, 4]]],
  bin: [0, [[0xc4, 1], [0xc5, 2], [0xc6, 4]]]
} as const satisfies { readonly [Style in TextStyle]: readonly [number, ReadonlyArray<readonly [number, 1 | 2 | 4]>] }

const textBytes = (value: string, style: TextStyle, isKey: boolean): Uint8Array => {
  if (style === "addressBytes" && !isKey && /^0x(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{40})$/.test(value)) {
    const bytes = fromHex(value)
    return concat(Uint8Array.of(0xc4, bytes.length), bytes)
  }
  const [limit, wide] = textHeaders[style === "bin" && isKey ? "shortest" : style]
  const bytes = Utf8.encode(value)
  return concat(header(0xa0, limit, wide.map(([tag, width]) => [tag, width]), bytes.length), bytes)
}

const sizes = {
  shortest: [16, [2, 4]],
  wide16: [0, [2, 4]],
  wide32: [0, [4]]
} as const

const size = (count: number, style: SizeStyle, fixed: number, tag: number): Uint8Array => {
  const [limit, wide] = sizes[style]
  return header(fixed, limit, wide.map((width) => [width === 2 ? tag : tag + 1, width]), count)
}

const write = (encoding: Encoding, value: unknown, parts: Array<Uint8Array>): void => {
  if (value instanceof AsDouble) parts.push(double(value.value))
  else if (Predicate.isString(value)) parts.push(textBytes(value, encoding.text, false))
  else if (Predicate.isNumber(value)) {
    parts.push(Number.isInteger(value) ? integer(BigInt(value), encoding.integer) : double(value))
  } else if (Predicate.isBigInt(value)) parts.push(integer(value, encoding.integer))
  else if (Predicate.isBoolean(value)) parts.push(Uint8Array.of(value ? 0xc3 : 0xc2))
  else if (Array.isArray(value)) {
    parts.push(size(value.length, encoding.size, 0x90, 0xdc))
    for (const item of value) write(encoding, item, parts)
  } else if (Predicate.isObject(value)) {
    const members = Object.entries(value)
    parts.push(size(members.length, encoding.size, 0x80, 0xde))
    for (const [key, item] of members) {
      parts.push(textBytes(key, encoding.text, true))
      write(encoding, item, parts)
    }
  } else parts.push(Uint8Array.of(0xc0))
}

/** Encodes a value in a variant of MessagePack. The caller must limit the nesting depth of the value first. */
export const encode = (encoding: Encoding, value: unknown): Uint8Array => {
  const parts: Array<Uint8Array> = []
  write(encoding, value, parts)
  return concat(...parts)
}

/** JSON styles: without spaces, or with Python's spaces. */
export const jsonStyles = ["compact", "spaced"] as const
export type JsonStyle = (typeof jsonStyles)[number]

const spaced = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`
  return Predicate.isObject(value)
    ? `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${spaced(item)}`).join(", ")}}`
    : Json.stringify(value)
}

/** Encodes a value as JSON, with or without spaces. */
export const encodeJson = (style: JsonStyle, value: unknown): Uint8Array =>
  Utf8.encode(style === "spaced" ? spaced(value) : Json.stringify(value))
