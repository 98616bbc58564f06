/** Canonical MessagePack: encodes a parsed JSON value to the same bytes as the venue does. */
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type Hex, toHex } from "../internal/bytes.ts"

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
  const bytes = ascii.test(value) ? undefined : Utf8.encode(value)
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
