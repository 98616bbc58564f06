/**
 * The encodings that every schema and every protocol uses: JSON documents that retain their text, UTF-8, hexadecimal
 * values, integers of any size, times, and objects with unknown members.
 *
 * A signed body must reach the upstream byte for byte, and integers above 2^53 must keep all digits. So `parse` decodes
 * integers outside the safe range as `bigint`, `parseStrict` validates a caller's text, and `members` and `elements`
 * slice values out of a text without encoding them again.
 */
import type * as Clock from "effect/Clock"
import type * as Newtype from "effect/Newtype"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type { RequestFault } from "../errors/GatewayError.ts"

declare global {
  /** ECMAScript "JSON.parse source text access" (V8 11.4, Node 21), which the ES2024 library does not declare yet. */
  interface JSON {
    parse(
      text: string,
      reviver: (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown
    ): unknown
    rawJSON(text: string): object
  }
}

/** Milliseconds since the Unix epoch, for nonces, candle times and clocks. */
export const Millis = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
  identifier: "Millis",
  description: "Milliseconds since the Unix epoch"
})
export type Millis = typeof Millis.Type

/**
 * A time of the monotonic clock, for durations and deadlines: setting the system clock does not change it. Wall times
 * are numbers, so the compiler refuses to subtract or compare a wall time and a monotonic time.
 */
export interface MonotonicTime extends Newtype.Newtype<"MonotonicTime", number> {}

// `Newtype.makeIso` would add Effect's optics to a browser bundle

/** Makes a monotonic time from its milliseconds since an unknown moment. */
export function makeMonotonicTime(millis: number): MonotonicTime
export function makeMonotonicTime(millis: unknown): unknown {
  return millis
}

/** Returns the milliseconds of a monotonic time since an unknown moment. */
export function monotonicMillis(time: MonotonicTime): number
export function monotonicMillis(time: unknown): unknown {
  return time
}

/** Returns the time of the monotonic clock. */
export const monotonicTime = (clock: Clock.Clock): MonotonicTime =>
  makeMonotonicTime(Number(clock.monotonicTimeNanosUnsafe()) / 1e6)

/** A monotonic time before all others: what began then has lasted forever. */
export const longAgo = makeMonotonicTime(Number.NEGATIVE_INFINITY)

/** Returns the milliseconds from one monotonic time to another. */
export const millisBetween = (start: MonotonicTime, end: MonotonicTime): number =>
  monotonicMillis(end) - monotonicMillis(start)

/** Returns the later one of two monotonic times. */
export const latest = (one: MonotonicTime, other: MonotonicTime): MonotonicTime => one < other ? other : one

/** Returns the monotonic time that is some milliseconds after another. */
export const addMillis = (time: MonotonicTime, millis: number): MonotonicTime =>
  makeMonotonicTime(monotonicMillis(time) + millis)

const encoder = new TextEncoder()
const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const lossy = new TextDecoder("utf-8", { ignoreBOM: true })

/** Encodes text as UTF-8. */
export const encode = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text)

/** Decodes UTF-8; `None` if the bytes are invalid. */
export const decode: (bytes: Uint8Array) => Option.Option<string> = Option.liftThrowable((bytes: Uint8Array) =>
  strictDecoder.decode(bytes)
)

/** Joins chunks. If there is only one chunk, returns that chunk without copying it. */
export const joined = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
  const [first] = pieces
  if (first !== undefined && pieces.length === 1) return first
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

/** Returns bytes with a buffer of their own. Copies a view of a part of a buffer, such as a large receive buffer. */
export const owned = (bytes: Uint8Array): Uint8Array =>
  bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)

/**
 * Returns the first `length` bytes of some chunks, or fewer if the input is shorter. Joins only the chunks that it
 * needs.
 */
export const opening = (pieces: ReadonlyArray<Uint8Array>, length: number): Uint8Array => {
  let size = 0
  const enough = pieces.findIndex((piece) => (size += piece.length) >= length)
  return joined(enough < 0 ? pieces : pieces.slice(0, enough + 1)).subarray(0, length)
}

/** Decodes UTF-8; each invalid byte sequence becomes a replacement character. */
export const decodeLossy = (bytes: Uint8Array): string => lossy.decode(bytes)

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

const UINT64_MAX = 2n ** 64n - 1n

/**
 * An unsigned 64-bit integer written as a JSON integer, decoded as a `bigint` without conversion to a double.
 *
 * The encoded form is the one that `Json.parse` and `Json.stringify` use: a number if it is a safe integer, otherwise a `bigint`.
 */
export const Uint64 = Schema.Union([Schema.Int, Schema.BigInt]).pipe(
  Schema.decodeTo(
    Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: 0n, maximum: UINT64_MAX })),
    SchemaTransformation.transform({
      decode: (value) => BigInt(value),
      encode: (value) => value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value
    })
  )
)

/** An unsigned 64-bit integer in the form of `Json.parse`: a number if it is a safe integer, otherwise a `bigint`. */
export const Natural64 = Schema.Union([
  Schema.Natural,
  Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: BigInt(Number.MAX_SAFE_INTEGER) + 1n, maximum: UINT64_MAX }))
])

const others = [Schema.Record(Schema.String, Schema.Unknown)] as const

/** Makes a struct that preserves unknown members. */
export const openStruct = <const Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.StructWithRest(Schema.Struct(fields), others)

/**
 * Makes the schema of a member that a response may lack or set to `null`. An upstream does either, and changes from one
 * to the other.
 */
export const nullish = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

// control and format characters: they move the cursor, change colours, or reverse the writing direction
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Escapes a character as JSON does, so that JSON text stays valid. */
const escaped = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`
  ).join("")

/** Escapes every character that a terminal would execute instead of showing, including line breaks. */
export const printable = (text: string): string => text.replace(unsafe, escaped)

/** Escapes the same characters as {@link printable}, except line breaks. */
export const printableLines = (text: string): string =>
  text.replace(unsafe, (character) => character === "\n" ? character : escaped(character))

/** Converts text to one printable line. */
export const oneLine = (text: string): string => printable(text.replace(/\s+/gu, " ").trim())

/** A parse error; `path` is its location in the document. */
export type ParseFault = RequestFault

/** The start and end offsets of a raw JSON value in a text, and those of its key. End offsets are exclusive. */
export interface Span {
  readonly keyStart: number
  readonly keyEnd: number
  readonly start: number
  readonly end: number
}

/** The limits of a JSON document that a caller sends. */
export interface Limits {
  /** Maximum nesting of arrays and objects. */
  readonly maxDepth: number
  /** Maximum number of members and elements in all objects and arrays. */
  readonly maxValues: number
}

/**
 * Default limits, far above any documented request: a multi-sig action with an order inside is 8 levels deep, a batch of 100
 * calls has about 1000 values.
 *
 * Without limits, a body of many small values could block the process for seconds: each value costs microseconds, and each error
 * more.
 */
export const defaultLimits: Limits = { maxDepth: 64, maxValues: 10_000 }

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

const isSpace = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

const skipSpace = (text: string, from: number): number => {
  let i = from
  while (i < text.length && isSpace(text.charCodeAt(i))) i++
  return i
}

const skipString = (text: string, from: number): number => {
  const quote = text.indexOf("\"", from + 1)
  if (quote === -1) return text.length
  // not after an escape, so this is the end; most strings have no escapes, and `indexOf` is faster than a loop
  if (text.charCodeAt(quote - 1) !== BACKSLASH) return quote + 1
  let i = from + 1
  while (i < text.length) {
    const code = text.charCodeAt(i)
    if (code === BACKSLASH) i += 2
    else if (code === QUOTE) return i + 1
    else i++
  }
  return text.length
}

const skipValue = (text: string, from: number): number => {
  let i = from
  let depth = 0
  while (i < text.length) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) {
      i = skipString(text, i)
      if (depth === 0) return i
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth++
      i++
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      if (depth === 0) return i
      depth--
      i++
      if (depth === 0) return i
    } else if (depth === 0 && (code === COMMA || isSpace(code))) {
      return i
    } else {
      i++
    }
  }
  return i
}

/** Decodes the raw key of a JSON member; `undefined` if an escape is invalid. */
const keyName = (text: string, start: number, end: number): string | undefined => {
  const raw = text.slice(start, end)
  return raw.includes("\\")
    ? Result.getOrElse(Result.try(() => String(JSON.parse(raw))), () => undefined)
    : raw.slice(1, -1)
}

interface Frame {
  readonly keys: Set<string> | undefined
  key: string | number
}

const at = (frames: ReadonlyArray<Frame>): ReadonlyArray<string | number> => frames.map((frame) => frame.key)

/** The fault of a text that is not JSON. */
export const notJson: ParseFault = { path: [], message: "Not a JSON document" }

const shownDepth = 8

// V8 13.6 (Node 24) reuses the key of an earlier object if a key of one character is an escape: after {"a":1,"\\":2} it
// parses {"a":1,"\n":2} with a backslash as the key. No upstream or client uses such a key.
const isMisread = (name: string, rawLength: number): boolean => name.length === 1 && rawLength > 3

/**
 * Returns the first reason to refuse a text before it is parsed: too deep, too many values, a duplicate key, or a key that is
 * invalid or that the parser could misread. Returns `undefined` if the text is acceptable.
 */
export const refuse = (text: string, limits: Limits = defaultLimits): ParseFault | undefined => {
  const frames: Array<Frame> = []
  let expectsKey = false
  let values = 0
  let i = 0
  while (i < text.length) {
    const code = text.charCodeAt(i)
    const top = frames[frames.length - 1]
    if (code === QUOTE) {
      const end = skipString(text, i)
      if (expectsKey && top?.keys !== undefined) {
        const name = keyName(text, i, end)
        if (name === undefined) return notJson
        top.key = name
        if (top.keys.has(name)) return { path: at(frames), message: `Duplicate key ${JSON.stringify(name)}` }
        if (isMisread(name, end - i)) {
          return { path: at(frames), message: "A one-character key is written as an escape sequence" }
        }
        top.keys.add(name)
        expectsKey = false
      }
      i = end
      continue
    }
    // counts values by the preceding character: a comma, or the bracket that opens a container before its first value
    if ((code === COMMA || code === OPEN_BRACE || code === OPEN_BRACKET) && ++values > limits.maxValues) {
      return { path: at(frames).slice(0, shownDepth), message: `More than ${limits.maxValues} values` }
    }
    if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (frames.length === limits.maxDepth) {
        return { path: at(frames).slice(0, shownDepth), message: `Nested deeper than ${limits.maxDepth} levels` }
      }
      const isObject = code === OPEN_BRACE
      frames.push({ keys: isObject ? new Set() : undefined, key: isObject ? "" : 0 })
      expectsKey = isObject
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      frames.pop()
      expectsKey = false
    } else if (code === COMMA && top !== undefined) {
      if (typeof top.key === "number") top.key++
      expectsKey = top.keys !== undefined
    }
    i++
  }
  return undefined
}

const integer = /^-?(?:0|[1-9][0-9]*)$/u
// each matches at least 16 digits of a number, but not the digits of a hexadecimal string; one expression for both places
// takes four times as long
const longDigits = /[[:,\s]-?[0-9]{16}/u
const longDigitsAtStart = /^-?[0-9]{16}/u

// far above any integer in use: 2^256 has 78 digits, and parsing a million digits takes 100 ms
const MAX_DIGITS = 1024

const tooLong: ParseFault = { path: [], message: `An integer has more than ${MAX_DIGITS} digits` }

const parseKeepingDigits = (text: string): Result.Result<unknown, ParseFault> => {
  let isTooLong = false
  const keepDigits = (_key: string, value: unknown, context: { readonly source?: string }): unknown => {
    const source = context.source
    if (!Predicate.isNumber(value) || Number.isSafeInteger(value) || source === undefined || !integer.test(source)) {
      return value
    }
    if (source.length <= MAX_DIGITS) return BigInt(source)
    isTooLong = true
    return value
  }
  const parsed = Result.try({ try: (): unknown => JSON.parse(text, keepDigits), catch: () => notJson })
  return isTooLong ? Result.fail(tooLong) : parsed
}

/**
 * Parses JSON. An integer outside the safe range becomes a `bigint`; all other values are those of `JSON.parse`.
 *
 * Refuses integers of more than 1024 digits.
 */
export const parse = (text: string): Result.Result<unknown, ParseFault> =>
  // the reviver makes parsing several times slower, and only a long run of digits can need it
  longDigits.test(text) || longDigitsAtStart.test(text)
    ? parseKeepingDigits(text)
    : Result.try({ try: (): unknown => JSON.parse(text), catch: () => notJson })

/** Returns whether a text is JSON. */
export const isJson = (text: string): boolean => Result.isSuccess(Result.try((): unknown => JSON.parse(text)))

/**
 * Runs `refuse`, then `parse`. The gateway parses requests with this function, except JSON-RPC calls in the formats of
 * `JsonRpc.usualCall`.
 */
export const parseStrict = (text: string, limits: Limits = defaultLimits): Result.Result<unknown, ParseFault> => {
  const refusal = refuse(text, limits)
  return refusal === undefined ? parse(text) : Result.fail(refusal)
}

const withDigits = (_key: string, member: unknown): unknown =>
  Predicate.isBigInt(member) ? JSON.rawJSON(member.toString()) : member

/** Returns whether a value may contain a `bigint`. */
const mayHaveBigInt = (value: unknown): boolean =>
  Predicate.isBigInt(value) ||
  Predicate.isObjectOrArray(value) && ("toJSON" in value || Object.values(value).some(mayHaveBigInt))

/** Encodes JSON; a `bigint` becomes a JSON integer with all its digits. */
export const stringify = (value: unknown): string =>
  // the replacer makes encoding several times slower, and only a `bigint` needs it
  mayHaveBigInt(value) ? JSON.stringify(value, withDigits) : JSON.stringify(value)

/** Matches a text without white space, escapes, and several members or elements. */
const isCanonical = /^[^\s\\,]*$/u

/**
 * Returns the canonical form of a valid JSON text: sorted members, no white space, uniform string escapes.
 *
 * Numbers are unchanged, because servers distinguish `1.0` from `1`. The result is for cache keys, not for sending.
 */
export const canonical = (text: string): string => {
  if (isCanonical.test(text)) return text
  let i = 0
  const string = (): string => {
    const start = i
    i = skipString(text, i)
    const raw = text.slice(start, i)
    return raw.includes("\\") ? JSON.stringify(keyName(text, start, i) ?? "") : raw
  }
  const value = (): string => {
    i = skipSpace(text, i)
    const code = text.charCodeAt(i)
    if (code === QUOTE) return string()
    if (code === OPEN_BRACE) return `{${list(member).toSorted().join(",")}}`
    if (code === OPEN_BRACKET) return `[${list(value).join(",")}]`
    const start = i
    i = skipValue(text, i)
    return text.slice(start, i)
  }
  const member = (): string => {
    i = skipSpace(text, i)
    const name = string()
    // skips the colon between the key and the value
    i = skipSpace(text, i) + 1
    return `${name}:${value()}`
  }
  const list = (item: () => string): Array<string> => {
    const items: Array<string> = []
    i = skipSpace(text, i + 1)
    while (i < text.length && text.charCodeAt(i) !== CLOSE_BRACE && text.charCodeAt(i) !== CLOSE_BRACKET) {
      items.push(item())
      i = skipSpace(text, i)
      if (text.charCodeAt(i) === COMMA) i++
    }
    i++
    return items
  }
  return value()
}

const plainName = /^\w+$/u

/**
 * Returns whether `JSON.stringify` writes the canonical form of an object or list: it has only strings, and its members
 * are sorted. The params of most calls are such.
 */
const isWrittenSorted = (value: object): boolean => {
  if (Array.isArray(value)) return value.every(Predicate.isString)
  const names = Object.keys(value)
  return names.every((name, index) =>
    Predicate.isString(Reflect.get(value, name)) && plainName.test(name) &&
    (index === 0 || `${names[index - 1]}` < name)
  )
}

/** Encodes a value in the canonical form that {@link canonical} gives its JSON. */
export const writeCanonical = (value: unknown): string => {
  if (Predicate.isString(value)) return JSON.stringify(value)
  if (!Predicate.isObjectOrArray(value) || "toJSON" in value) return stringify(value)
  if (isWrittenSorted(value)) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map((each) => writeCanonical(each ?? null)).join(",")}]`
  const members: Array<string> = []
  for (const [name, each] of Object.entries(value)) {
    if (each !== undefined) members.push(`${JSON.stringify(name)}:${writeCanonical(each)}`)
  }
  return `{${members.toSorted().join(",")}}`
}

/** Encodes JSON like {@link stringify}, indented by two spaces. */
export const stringifyPretty = (value: unknown): string => JSON.stringify(value, withDigits, 2)

/**
 * Returns the members of the object that starts at `from` in a valid JSON text; empty if the value is not an object or
 * has a duplicate name.
 */
export const members = (text: string, from = 0): ReadonlyMap<string, Span> => {
  const found = new Map<string, Span>()
  let i = skipSpace(text, from)
  if (text.charCodeAt(i) !== OPEN_BRACE) return found
  i = skipSpace(text, i + 1)
  while (text.charCodeAt(i) === QUOTE) {
    const keyEnd = skipString(text, i)
    const colon = skipSpace(text, keyEnd)
    if (text.charCodeAt(colon) !== COLON) return found
    const start = skipSpace(text, colon + 1)
    const end = skipValue(text, start)
    const name = keyName(text, i, keyEnd)
    if (name === undefined) return found
    // the meaning of a duplicate member is ambiguous
    if (found.has(name)) return new Map()
    found.set(name, { keyStart: i, keyEnd, start, end })
    i = skipSpace(text, end)
    if (text.charCodeAt(i) !== COMMA) return found
    i = skipSpace(text, i + 1)
  }
  return found
}

/** Returns the raw texts of the elements of a JSON array; `undefined` if the text is not an array or is truncated. */
export const elements = (text: string): ReadonlyArray<string> | undefined => {
  let i = skipSpace(text, 0)
  if (text.charCodeAt(i) !== OPEN_BRACKET) return undefined
  const found: Array<string> = []
  i = skipSpace(text, i + 1)
  if (text.charCodeAt(i) === CLOSE_BRACKET) return found
  while (i < text.length) {
    const end = skipValue(text, i)
    if (end === i) return undefined
    found.push(text.slice(i, end))
    i = skipSpace(text, end)
    if (text.charCodeAt(i) === CLOSE_BRACKET) return found
    if (text.charCodeAt(i) !== COMMA) return undefined
    i = skipSpace(text, i + 1)
  }
  return undefined
}

/** A JSON document. Parses its value and encodes its bytes on first use. */
export class Json {
  readonly text: string
  #value: Result.Result<unknown, ParseFault> | undefined
  #bytes: Uint8Array | undefined

  /** Makes a document; `value` and `bytes` are what the caller knows of it already. */
  constructor(text: string, value?: Result.Result<unknown, ParseFault>, bytes?: Uint8Array) {
    this.text = text
    this.#value = value
    this.#bytes = bytes
  }

  /** The parsed value, or the parse error; integers outside the safe range are `bigint`. */
  get value(): Result.Result<unknown, ParseFault> {
    return this.#value ??= parse(this.text)
  }

  /** The parsed value; `undefined` if the text is not JSON. */
  get valueOrUndefined(): unknown {
    return Result.getOrElse(this.value, () => undefined)
  }

  /** The text in UTF-8. */
  get bytes(): Uint8Array {
    return this.#bytes ??= encode(this.text)
  }
}

/** Makes a document from unparsed text. */
export const of = (text: string): Json => new Json(text)

/**
 * Makes a document from a caller's text, parsed strictly: no duplicate keys, bounded nesting and a bounded number of
 * values.
 */
export const strict = (text: string, limits?: Limits): Json => new Json(text, parseStrict(text, limits))

/** Makes a document from a text and its parsed value. */
export const parsed = (text: string, value: unknown, bytes?: Uint8Array): Json =>
  new Json(text, Result.succeed(value), bytes)

/** Makes a document from a value, which is encoded immediately. */
export const write = (value: unknown): Json => parsed(stringify(value), value)
