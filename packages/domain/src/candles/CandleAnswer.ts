/**
 * Recognizes and encodes responses to candle queries: counts and locates the bars, and checks that they are
 * the requested ones before they are cached.
 *
 * A response in the venue's exact format is recognized from its bytes, without joining its chunks. A full response has
 * 700 KB: recognizing it is faster than joining and decoding it, and ten times as fast as parsing it. A body that is
 * not recognized can still be a list of bars, and has to be parsed.
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Json from "../encoding/Json.ts"
import * as Utf8 from "../encoding/Utf8.ts"
import { Millis } from "../Time.ts"
import { type Candle, CandleInterval, type CandleWindowRequest } from "./Candle.ts"
import type { Series } from "./CandleWindow.ts"
import { barAt, closeTime, openTime } from "./CandleWindow.ts"

const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

const toDataView = ({ buffer, byteLength, byteOffset }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength)

/**
 * Marks the bytes of a 32-bit word that are not ASCII digits: returns a word in which the high bit of each such byte is
 * set.
 */
const nonDigitBits = (word: number): number => {
  const bytes = word ^ 0x30303030
  return (((bytes & 0x7f7f7f7f) + 0x76767676) | bytes) & 0x80808080
}

const MAX_INTEGER_DIGITS = 15
const MAX_DECIMAL_DIGITS = 40

/**
 * Returns the offset after the digits that start at `from`. If there are more digits than in any valid number, returns
 * an offset more than `MAX_DECIMAL_DIGITS` after `from`.
 */
const afterDigits = (view: DataView, from: number): number => {
  let at = from
  while (at - from <= MAX_DECIMAL_DIGITS) {
    const others = nonDigitBits(view.getInt32(at, true))
    if (others !== 0) {
      // a branch is faster than a computed offset: most numbers of a list have the same length, so the CPU predicts the
      // branch
      if ((others & 0x80) !== 0) return at
      if ((others & 0x8000) !== 0) return at + 1
      return (others & 0x800000) === 0 ? at + 3 : at + 2
    }
    at += 4
  }
  return at
}

// the functions below return the end offset of the value that starts at `from`, or -1 if the value is invalid

const afterInteger = (view: DataView, from: number): number => {
  const end = afterDigits(view, from)
  const digits = end - from
  return digits === 0 || digits > MAX_INTEGER_DIGITS || (digits > 1 && view.getUint8(from) === ZERO) ? -1 : end
}

const afterSomeDigits = (view: DataView, from: number): number => {
  const end = afterDigits(view, from)
  return end === from || end - from > MAX_DECIMAL_DIGITS ? -1 : end
}

const afterDecimal = (view: DataView, from: number): number => {
  const end = afterSomeDigits(view, view.getUint8(from) === MINUS ? from + 1 : from)
  return end < 0 || view.getUint8(end) !== POINT ? end : afterSomeDigits(view, end + 1)
}

/**
 * The format of a value in a bar: an integer, a quoted decimal, or text that is the same in every bar of a list. Each
 * format allows exactly one spelling of a value, so decoding and encoding a recognized bar returns the same bytes.
 */
type Spelling = "integer" | "decimal" | RegExp

const spellings: { readonly [Member in keyof Candle]: Spelling } = {
  t: "integer",
  T: "integer",
  s: /^"[\w@/:.-]{1,64}"$/u,
  i: new RegExp(`^"(?:${CandleInterval.literals.join("|")})"$`, "u"),
  o: "decimal",
  c: "decimal",
  h: "decimal",
  l: "decimal",
  v: "decimal",
  n: "integer"
}

const isMember = (name: string): name is keyof Candle => Object.hasOwn(spellings, name)

/**
 * A number in a bar, and the constant bytes that precede it. There are at least five constant bytes, which are compared
 * as words of four bytes. If the number of bytes is not a multiple of four, the last word overlaps the previous one.
 */
interface Step {
  readonly name: keyof Candle
  readonly isDecimal: boolean
  readonly length: number
  readonly words: Int32Array
}

interface Shape {
  readonly steps: ReadonlyArray<Step>
  /** The constant bytes after the last number of a bar. */
  readonly closing: Uint8Array
  /** The coin of every bar, as JSON. */
  readonly coin: string
  /** The interval of every bar, as JSON. */
  readonly interval: string
}

const makeStep = (name: keyof Candle, opening: string, isDecimal: boolean): Step => {
  const bytes = Utf8.encode(opening)
  const view = toDataView(bytes)
  const { length } = bytes
  const words = Int32Array.from(
    { length: Math.ceil(length / 4) },
    (_, index) => view.getInt32(Math.min(index * 4, length - 4), true)
  )
  return { name, isDecimal, length, words }
}

/** Returns the layout of the bars in a list, as found in its first bar. */
const shapeIn = (opening: Uint8Array): Shape | undefined => {
  const text = Utf8.decodeLossy(opening)
  const members = Json.members(text, 1)
  if (members.size !== Object.keys(spellings).length) return undefined
  const steps: Array<Step> = []
  const fixed = { s: "", i: "" }
  let before = "{"
  for (const [name, { end, start }] of members) {
    if (!isMember(name)) return undefined
    const spelling = spellings[name]
    const label = `${before}"${name}":`
    if (spelling === "integer" || spelling === "decimal") {
      const isDecimal = spelling === "decimal"
      steps.push(makeStep(name, isDecimal ? `${label}"` : label, isDecimal))
      before = isDecimal ? "\"," : ","
    } else {
      const value = text.slice(start, end)
      if (!spelling.test(value)) return undefined
      if (name === "s" || name === "i") fixed[name] = value
      before = `${label}${value},`
    }
  }
  return { steps, closing: Utf8.encode(`${before.slice(0, -1)}}`), coin: fixed.s, interval: fixed.i }
}

const afterStep = ({ isDecimal, length, words }: Step, view: DataView, from: number): number => {
  const at = from + length
  const last = words.length - 1
  for (let index = 0; index < last; index++) {
    if (view.getInt32(from + 4 * index, true) !== words[index]) return -1
  }
  if (view.getInt32(at - 4, true) !== words[last]) return -1
  return isDecimal ? afterDecimal(view, at) : afterInteger(view, at)
}

/**
 * An upper bound, in bytes, on the length of a bar and its separator. A bar is read only if at least this number of
 * bytes follows its start.
 */
const ROOM = 1024

const padding = new Uint8Array(ROOM)

/** Recognizes bars, counts them, and finds the end of the list. */
class Bars {
  readonly #shape: Shape
  count = 0
  isAtEnd = false

  constructor(shape: Shape) {
    this.#shape = shape
  }

  /**
   * Recognizes the bars that start before `until`. Returns the offset after the last one, or -1 if a bar is not
   * recognized.
   */
  read(bytes: Uint8Array, from: number, until: number): number {
    const { closing, steps } = this.#shape
    const view = toDataView(bytes)
    let at = from
    while (at < until && !this.isAtEnd) {
      for (const step of steps) {
        at = afterStep(step, view, at)
        if (at < 0) return -1
      }
      for (const byte of closing) {
        if (view.getUint8(at) !== byte) return -1
        at += 1
      }
      this.count += 1
      const next = view.getUint8(at)
      if (next === CLOSE_BRACKET) this.isAtEnd = true
      else if (next !== COMMA) return -1
      at += 1
    }
    return at
  }
}

/** Counts the bars in the chunks of a response; `undefined` if the format of the response is not recognized. */
export const barsIn = (pieces: ReadonlyArray<Uint8Array>): number | undefined => {
  const size = pieces.reduce((sum, { length }) => sum + length, 0)
  const opening = Utf8.opening(pieces, ROOM)
  if (opening[0] !== OPEN_BRACKET) return undefined
  if (size === 2 && opening[1] === CLOSE_BRACKET) return 0
  const shape = shapeIn(opening)
  if (shape === undefined) return undefined
  const bars = new Bars(shape)
  // `rest` is the unread end of the earlier chunks, and `offset` is its offset in the response; `from` is the offset of
  // the next bar after the start of `rest`
  let rest = opening.subarray(0, 0)
  let from = 1
  let offset = 0
  for (const piece of [...pieces.filter(({ length }) => length > 0), padding]) {
    let bytes = piece
    if (rest.length > 0) {
      const isShort = piece.length < 2 * ROOM
      const bridge = Utf8.joined([rest, isShort ? piece : piece.subarray(0, ROOM)])
      if (isShort) bytes = bridge
      else {
        const at = bars.read(bridge, from, rest.length)
        if (at < 0) return undefined
        offset += rest.length
        from = at - rest.length
      }
    }
    const at = bars.read(bytes, from, bytes.length - ROOM)
    if (at < 0) return undefined
    if (bars.isAtEnd) return offset + at === size ? bars.count : undefined
    rest = bytes.subarray(at)
    offset += at
    from = 0
  }
  return undefined
}

/** The offsets of bars in a text. */
export interface BarPlaces {
  readonly bytes: Uint8Array
  /**
   * The start offset of each bar, and the offset after the byte that follows the last bar. One byte (`,` or `]`)
   * follows each bar.
   */
  readonly starts: ReadonlyArray<number>
  /** The open time of each bar. */
  readonly times: ReadonlyArray<number>
}

const integerAt = (view: DataView, from: number): number => {
  let value = 0
  for (let at = from;; at++) {
    const digit = view.getUint8(at) - ZERO
    if (digit < 0 || digit > 9) return value
    value = 10 * value + digit
  }
}

/**
 * Locates the bars of a text. Returns `undefined` if the format is not recognized, if a bar does not belong to the
 * series, or if the bars are not in ascending order of time.
 */
export const placesIn = (
  pieces: ReadonlyArray<Uint8Array>,
  { coin, interval }: Series
): BarPlaces | undefined => {
  const bytes = Utf8.joined([...pieces, padding])
  const size = bytes.length - ROOM
  if (size === 2 && bytes[0] === OPEN_BRACKET && bytes[1] === CLOSE_BRACKET) return { bytes, starts: [1], times: [] }
  const shape = bytes[0] === OPEN_BRACKET ? shapeIn(bytes.subarray(0, Math.min(size, ROOM))) : undefined
  if (shape?.coin !== JSON.stringify(coin) || shape.interval !== `"${interval}"`) return undefined
  const { closing, steps } = shape
  const view = toDataView(bytes)
  const starts: Array<number> = []
  const times: Array<number> = []
  let at = 1
  let opensBefore = -1
  for (;;) {
    // no bar is longer than the padding, so a bar of the text never ends beyond the buffer
    if (at >= size) return undefined
    starts.push(at)
    let opens = 0
    let closes = 0
    for (const step of steps) {
      const value = at + step.length
      at = afterStep(step, view, at)
      if (at < 0) return undefined
      if (step.name === "t") opens = integerAt(view, value)
      else if (step.name === "T") closes = integerAt(view, value)
    }
    for (const byte of closing) if (view.getUint8(at++) !== byte) return undefined
    const bar = barAt(interval, opens)
    if (opens <= opensBefore || openTime(interval, bar) !== opens || closeTime(interval, bar) !== closes) {
      return undefined
    }
    times.push(opens)
    opensBefore = opens
    const next = view.getUint8(at++)
    if (next === COMMA) continue
    if (next !== CLOSE_BRACKET || at !== size) return undefined
    starts.push(at)
    return { bytes, starts, times }
  }
}

/** The maximum value of a JavaScript date, in milliseconds. */
const lastInstant = 8_640_000_000_000_000

const isMillis = Schema.is(Millis)

/**
 * Returns the open times of the parsed bars of a response; `undefined` if any element is not a bar of the requested
 * coin and interval.
 */
const timesIn = (rows: unknown, { coin, interval }: CandleWindowRequest): ReadonlyArray<number> | undefined => {
  if (!Array.isArray(rows)) return undefined
  const times = rows.map((row: unknown): unknown =>
    Predicate.isObject(row) && "t" in row && "s" in row && "i" in row && row.s === coin && row.i === interval
      ? row.t
      : undefined
  )
  return times.every(Predicate.isNumber) ? times : undefined
}

/**
 * Returns whether a response contains only bars of the requested coin and interval, in ascending order of time and
 * inside the window.
 */
export const isCacheable = (request: CandleWindowRequest, answer: Json.Json): boolean => {
  const { coin, endTime, interval, startTime } = request
  if (!Predicate.isNotNullish(endTime) || endTime < startTime || endTime > lastInstant) return false
  const times = placesIn([Utf8.encode(answer.text)], { coin, interval })?.times ??
    timesIn(answer.valueOrUndefined, request)
  let before = barAt(interval, startTime) - 1
  return times?.every((time) => {
    if (!isMillis(time) || time > endTime) return false
    const bar = barAt(interval, time)
    const follows = bar > before
    before = bar
    return follows
  }) ?? false
}

/** Encodes bars as the venue does. */
export const write = (bars: ReadonlyArray<Candle>): string => {
  const coin = Json.stringify(bars[0]?.s ?? "")
  return `[${
    bars.map(({ T, c, h, i, l, n, o, t, v }) =>
      `{"t":${t},"T":${T},"s":${coin},"i":"${i}","o":"${o}","c":"${c}","h":"${h}","l":"${l}","v":"${v}","n":${n}}`
    ).join(",")
  }]`
}
