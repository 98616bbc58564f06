/** MessagePack and JSON as other programs encode them, in bytes that differ from the venue's. */
import * as Json from "@trigate/domain/encoding/Json"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as Predicate from "effect/Predicate"
import { concat, fromHex } from "./bytes.ts"

type Width = 1 | 2 | 4 | 8

/** The MessagePack type of integers. */
export interface IntegerStyle {
  /** The least number of bytes after the type byte. */
  readonly least: Width
  readonly signed: boolean
  /** Whether integers from -32 to 127 are encoded in the type byte. */
  readonly fixed: boolean
  /** Whether an integer that does not fit into `least` bytes gets the venue's type instead of a wider one. */
  readonly onlyLeast?: boolean
}

/** The venue's type of an integer: the smallest one, unsigned if the integer is not negative. */
const smallest: IntegerStyle = { least: 1, signed: false, fixed: true }

/** An integer that is encoded in a style of its own, or as a double. */
export class Packed {
  readonly value: number | bigint
  readonly style: IntegerStyle | "double"
  constructor(value: number | bigint, style: IntegerStyle | "double") {
    this.value = value
    this.style = style
  }
}

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
export const standard: Encoding = { integer: smallest, text: "shortest", size: "shortest" }

/** Combines two variants of MessagePack. If both change a property, the second variant applies. */
export const combined = (first: Encoding, second: Encoding): Encoding => ({
  integer: second.integer === standard.integer ? first.integer : second.integer,
  text: second.text === standard.text ? first.text : second.text,
  size: second.size === standard.size ? first.size : second.size
})

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

const integer = (value: bigint, { fixed, least, onlyLeast = false, signed }: IntegerStyle): Uint8Array => {
  if (fixed && value >= -32n && value < 128n) return Uint8Array.of(Number(BigInt.asUintN(8, value)))
  return onlyLeast && !fits(value, least, signed)
    ? integer(value, smallest)
    : sized(value, least, signed || value < 0n)
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
  if (value instanceof Packed) {
    parts.push(value.style === "double" ? double(Number(value.value)) : integer(BigInt(value.value), value.style))
  } else if (Predicate.isString(value)) parts.push(textBytes(value, encoding.text, false))
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

/** JSON styles: without spaces, with Python's spaces, and with line breaks. */
export type JsonStyle = "compact" | "spaced" | "indented by 2" | "indented by 4"

const indents: { readonly [Style in JsonStyle]?: string } = { "indented by 2": "  ", "indented by 4": "    " }

/** Prints a value as JSON. */
export const printJson = (style: JsonStyle, value: unknown): string => {
  const indent = indents[style]
  const colon = style === "compact" ? ":" : ": "
  const block = (open: string, items: ReadonlyArray<string>, close: string, margin: string): string => {
    if (items.length === 0) return `${open}${close}`
    if (indent === undefined) return `${open}${items.join(style === "compact" ? "," : ", ")}${close}`
    return `${open}\n${items.map((item) => `${margin}${indent}${item}`).join(",\n")}\n${margin}${close}`
  }
  const print = (part: unknown, margin: string): string => {
    const inner = `${margin}${indent ?? ""}`
    if (Array.isArray(part)) return block("[", part.map((item: unknown) => print(item, inner)), "]", margin)
    if (!Predicate.isObject(part)) return Json.stringify(part)
    const members = Object.entries(part).map(([key, item]) => `${JSON.stringify(key)}${colon}${print(item, inner)}`)
    return block("{", members, "}", margin)
  }
  return print(value, "")
}

/** Encodes a value as JSON. */
export const encodeJson = (style: JsonStyle, value: unknown): Uint8Array => Utf8.encode(printJson(style, value))
