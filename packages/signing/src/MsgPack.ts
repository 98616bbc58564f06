/** Canonical MessagePack, byte for byte what the venue's own encoder prints for a parsed JSON value. */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type Hex, toHex } from "./internal/bytes.ts"
import { ByteWriter, stringBytes } from "./internal/ByteWriter.ts"

/** Containers may nest this deep; a scalar inside the deepest one is still encoded. */
export const maxDepth = 64

const Reason = Schema.Literals(["integerRange", "notFinite", "malformedString", "tooDeep", "unsupportedType"])

/**
 * A value that MessagePack cannot carry as the venue would print it.
 *
 * `path` leads to it: `integerRange` an integer outside -2^63 to 2^64 - 1; `notFinite` NaN or an infinity;
 * `malformedString` a lone surrogate; `tooDeep` more than {@link maxDepth} containers; `unsupportedType` what JSON
 * has no word for.
 */
export class MsgPackUnencodable extends Schema.TaggedError<MsgPackUnencodable>()("MsgPackUnencodable", {
  reason: Reason,
  path: Schema.Array(Schema.Union([Schema.String, Schema.Int]))
}) {
  override get message() {
    return `Not encodable as MessagePack at "${this.path.join(".")}": ${this.reason}`
  }
}

interface Fault {
  readonly reason: typeof Reason.Type
  /** Innermost key first: filled while the writers unwind, so that success pays nothing for it. */
  readonly path: Array<string | number>
}

const fault = (reason: typeof Reason.Type): Fault => ({ reason, path: [] })

const within = (inner: Fault, key: string | number): Fault => {
  inner.path.push(key)
  return inner
}

const writeBigInt = (out: ByteWriter, value: bigint): Fault | undefined => {
  if (value > 0xffff_ffff_ffff_ffffn || value < -0x8000_0000_0000_0000n) {
    return fault("integerRange")
  }
  if (value <= 0xffff_ffffn && value >= -0x8000_0000n) {
    return writeSmallInteger(out, Number(value))
  }
  out.uint8(value < 0n ? 0xd3 : 0xcf)
  out.uint64(BigInt.asUintN(64, value))
  return undefined
}

/** From -2^31 to 2^32 - 1. */
const writeSmallInteger = (out: ByteWriter, value: number): undefined => {
  if (value >= -0x20 && value <= 0x7f) {
    out.uint8(value)
  } else if (value >= -0x80 && value <= 0xff) {
    out.uint8(value < 0 ? 0xd0 : 0xcc)
    out.uint8(value)
  } else if (value >= -0x8000 && value <= 0xffff) {
    out.uint8(value < 0 ? 0xd1 : 0xcd)
    out.uint16(value)
  } else {
    out.uint8(value < 0 ? 0xd2 : 0xce)
    out.uint32(value)
  }
}

const writeNumber = (out: ByteWriter, value: number): Fault | undefined => {
  if (!Number.isFinite(value)) {
    return fault("notFinite")
  }
  if (!Number.isInteger(value)) {
    out.uint8(0xcb)
    out.float64(value)
    return undefined
  }
  return value <= 0xffff_ffff && value >= -0x8000_0000
    ? writeSmallInteger(out, value)
    : writeBigInt(out, BigInt(value))
}

const writeString = (out: ByteWriter, value: string): Fault | undefined => {
  if (!value.isWellFormed()) {
    return fault("malformedString")
  }
  const bytes = stringBytes(value)
  if (bytes.length <= 0x1f) {
    out.uint8(0xa0 | bytes.length)
  } else if (bytes.length <= 0xff) {
    out.uint8(0xd9)
    out.uint8(bytes.length)
  } else if (bytes.length <= 0xffff) {
    out.uint8(0xda)
    out.uint16(bytes.length)
  } else {
    out.uint8(0xdb)
    out.uint32(bytes.length)
  }
  out.bytes(bytes)
  return undefined
}

/** `fixed` is the one-byte form for up to 15 members, `wide` the form with two length bytes; the next has four. */
const writeSize = (out: ByteWriter, size: number, fixed: number, wide: number): void => {
  if (size <= 0x0f) {
    out.uint8(fixed | size)
  } else if (size <= 0xffff) {
    out.uint8(wide)
    out.uint16(size)
  } else {
    out.uint8(wide + 1)
    out.uint32(size)
  }
}

const writeArray = (out: ByteWriter, items: ReadonlyArray<unknown>, depth: number): Fault | undefined => {
  writeSize(out, items.length, 0x90, 0xdc)
  for (const [index, item] of items.entries()) {
    const inner = write(out, item, depth)
    if (inner !== undefined) {
      return within(inner, index)
    }
  }
  return undefined
}

const writeMap = (out: ByteWriter, map: object, depth: number): Fault | undefined => {
  const members = Object.entries(map).filter(([, value]) => value !== undefined)
  writeSize(out, members.length, 0x80, 0xde)
  for (const [key, value] of members) {
    const inner = writeString(out, key) ?? write(out, value, depth)
    if (inner !== undefined) {
      return within(inner, key)
    }
  }
  return undefined
}

/** `depth` counts the containers around the value; it bounds the recursion. */
const write = (out: ByteWriter, value: unknown, depth: number): Fault | undefined => {
  if (Predicate.isString(value)) {
    return writeString(out, value)
  }
  if (Predicate.isNumber(value)) {
    return writeNumber(out, value)
  }
  if (Predicate.isBigInt(value)) {
    return writeBigInt(out, value)
  }
  if (Predicate.isBoolean(value)) {
    out.uint8(value ? 0xc3 : 0xc2)
    return undefined
  }
  if (value === null) {
    out.uint8(0xc0)
    return undefined
  }
  if (!Predicate.isObjectOrArray(value)) {
    return fault("unsupportedType")
  }
  if (depth >= maxDepth) {
    return fault("tooDeep")
  }
  return Array.isArray(value) ? writeArray(out, value, depth + 1) : writeMap(out, value, depth + 1)
}

/**
 * Encodes a parsed JSON value. Fails with {@link MsgPackUnencodable}.
 *
 * Integers, as number or bigint, take the smallest form and above 2^32 - 1 are `uint64`, never `float64`: a float there
 * is the classic wrong hash of JavaScript encoders. Other numbers are `float64`. Members of a map keep their order
 * (JavaScript lists integer-like keys first); members that are `undefined` are dropped, `null` stays.
 */
export const encode = (value: unknown): Result.Result<Uint8Array, MsgPackUnencodable> => {
  const out = new ByteWriter()
  const found = write(out, value, 0)
  return found === undefined
    ? Result.succeed(out.finish())
    : Result.fail(new MsgPackUnencodable({ reason: found.reason, path: found.path.toReversed() }))
}

/** {@link encode}, in 0x hex. */
export const encodeHex = (value: unknown): Result.Result<Hex, MsgPackUnencodable> => Result.map(encode(value), toHex)
