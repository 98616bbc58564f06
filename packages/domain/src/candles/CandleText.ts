/**
 * Bars as text: responses to candle queries in the venue's JSON, and files in NDJSON and CSV.
 *
 * A response in the venue's exact format is recognized from its bytes, without joining its chunks. A full response has
 * 700 KB: recognizing it is faster than joining and decoding it, and ten times as fast as parsing it. A body that is
 * not recognized can still be a list of bars, and has to be parsed.
 *
 * All formats keep the venue's formatting of numbers. The bars of a file have one coin and interval, and are in
 * ascending order of time.
 */
import { memoize } from "effect/Function"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Encoding from "../encoding/Encoding.ts"
import { decodeFaults } from "../operations/Operation.ts"
import type { CandleWindowRequest, Series } from "./Candle.ts"
import { barAt, Candle, CandleInterval, closeTime, intervalLengths, openTime } from "./Candle.ts"

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
  i: /^"\w+"$/u,
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
  /** The steps of the open time and of the close time. */
  readonly opens: Step
  readonly closes: Step
  /** The coin and interval of every bar. */
  readonly series: Series
}

const makeStep = (name: keyof Candle, opening: string, isDecimal: boolean): Step => {
  const bytes = Encoding.encode(opening)
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
  const text = Encoding.decodeLossy(opening)
  const members = Encoding.members(text, 1)
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
  const opens = steps.find(({ name }) => name === "t")
  const closes = steps.find(({ name }) => name === "T")
  const interval = CandleInterval.literals.find((each) => fixed.i === `"${each}"`)
  if (opens === undefined || closes === undefined || interval === undefined) return undefined
  const series = { coin: fixed.s.slice(1, -1), interval }
  return { steps, closing: Encoding.encode(`${before.slice(0, -1)}}`), opens, closes, series }
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

/** The bars of a response, as found in one reading of its bytes. */
export interface BarIndex {
  /** The coin and interval of every bar; `undefined` if there are no bars. */
  readonly series: Series | undefined
  /**
   * The start offset of each bar, and the offset after the byte that follows the last bar. One byte (`,` or `]`)
   * follows each bar.
   */
  readonly starts: ReadonlyArray<number>
  /** The open time of each bar. */
  readonly times: ReadonlyArray<number>
  /** Whether the bars are in ascending order of time, and each has the exact open and close time of its bar number. */
  readonly isOrdered: boolean
}

/** Returns the value of a text of digits. */
const integerIn = (view: DataView, from: number, end: number): number => {
  let value = 0
  let at = from
  // the four digits of a word become two numbers of two digits, and these one of four digits
  for (; at + 4 <= end; at += 4) {
    const digits = view.getInt32(at, true) & 0x0f0f0f0f
    const pairs = Math.imul(digits, 10) + (digits >>> 8)
    value = 10_000 * value + 100 * (pairs & 0xff) + ((pairs >>> 16) & 0xff)
  }
  for (; at < end; at++) value = 10 * value + view.getUint8(at) - ZERO
  return value
}

/** Recognizes bars, indexes them, and finds the end of the list. */
class Scan {
  isAtEnd = false
  readonly #starts: Array<number> = []
  readonly #times: Array<number> = []
  #isOrdered = true
  readonly #shape: Shape
  /** The length of the interval in milliseconds; `NaN` for a month. */
  readonly #length: number
  /** The time after the close time of the previous bar. */
  #next = -1

  constructor(shape: Shape) {
    const { interval } = shape.series
    this.#shape = shape
    this.#length = interval === "1M" ? Number.NaN : intervalLengths[interval]
  }

  /** The index of the bars that were read. */
  get index(): BarIndex {
    return { series: this.#shape.series, starts: this.#starts, times: this.#times, isOrdered: this.#isOrdered }
  }

  #add(start: number, opens: number, closes: number): void {
    this.#starts.push(start)
    this.#times.push(opens)
    // usually a bar begins where the previous one ended
    if (opens !== this.#next || closes !== opens + this.#length - 1) {
      const { interval } = this.#shape.series
      const bar = barAt(interval, opens)
      this.#isOrdered &&= opens >= this.#next && openTime(interval, bar) === opens &&
        closeTime(interval, bar) === closes
    }
    this.#next = closes + 1
  }

  /**
   * Recognizes the bars that start before `until`. Returns the offset after the last one, or -1 if a bar is not
   * recognized. `offset` is the offset of `bytes` in the response.
   */
  read(bytes: Uint8Array, from: number, until: number, offset: number): number {
    const { closes, closing, opens, steps } = this.#shape
    const view = toDataView(bytes)
    let at = from
    while (at < until && !this.isAtEnd) {
      const start = at
      let opensAt = 0
      let closesAt = 0
      for (const step of steps) {
        const value = at + step.length
        at = afterStep(step, view, at)
        if (at < 0) return -1
        if (step === opens) opensAt = integerIn(view, value, at)
        else if (step === closes) closesAt = integerIn(view, value, at)
      }
      for (const byte of closing) {
        if (view.getUint8(at) !== byte) return -1
        at += 1
      }
      this.#add(offset + start, opensAt, closesAt)
      const next = view.getUint8(at)
      at += 1
      if (next === CLOSE_BRACKET) {
        this.isAtEnd = true
        this.#starts.push(offset + at)
      } else if (next !== COMMA) return -1
    }
    return at
  }
}

const scan = (pieces: ReadonlyArray<Uint8Array>): BarIndex | null => {
  const size = pieces.reduce((sum, { length }) => sum + length, 0)
  const opening = Encoding.opening(pieces, ROOM)
  if (opening[0] !== OPEN_BRACKET) return null
  if (size === 2 && opening[1] === CLOSE_BRACKET) return { series: undefined, starts: [1], times: [], isOrdered: true }
  const shape = shapeIn(opening)
  if (shape === undefined) return null
  const bars = new Scan(shape)
  // `rest` is the unread end of the earlier chunks, and `offset` is its offset in the response; `from` is the offset of
  // the next bar after the start of `rest`
  let rest = opening.subarray(0, 0)
  let from = 1
  let offset = 0
  for (const piece of [...pieces.filter(({ length }) => length > 0), padding]) {
    let bytes = piece
    if (rest.length > 0) {
      const isShort = piece.length < 2 * ROOM
      const bridge = Encoding.joined([rest, isShort ? piece : piece.subarray(0, ROOM)])
      if (isShort) bytes = bridge
      else {
        const at = bars.read(bridge, from, rest.length, offset)
        if (at < 0) return null
        offset += rest.length
        from = at - rest.length
      }
    }
    const at = bars.read(bytes, from, bytes.length - ROOM, offset)
    if (at < 0) return null
    if (bars.isAtEnd) return offset + at === size ? bars.index : null
    rest = bytes.subarray(at)
    offset += at
    from = 0
  }
  return null
}

const indexOnce = memoize((body: Uint8Array | ReadonlyArray<Uint8Array>) =>
  scan(body instanceof Uint8Array ? [body] : body)
)

/**
 * Indexes the bars in the chunks of a response; `null` if the format of the response is not recognized.
 *
 * The chunks are read once: the index is remembered as long as the array of chunks is, or the only chunk. A response
 * from a cache has the same chunk each time.
 */
export const indexBars = (pieces: ReadonlyArray<Uint8Array>): BarIndex | null =>
  indexOnce(pieces.length === 1 ? pieces[0] ?? pieces : pieces)

/** Counts the bars in the chunks of a response; `undefined` if the format of the response is not recognized. */
export const countRows = (pieces: ReadonlyArray<Uint8Array>): number | undefined => indexBars(pieces)?.times.length

/**
 * Indexes the bars of a series. Returns `undefined` if the format is not recognized, if a bar does not belong to the
 * series, or if the bars are not in ascending order of time.
 */
export const indexSeries = (
  pieces: ReadonlyArray<Uint8Array>,
  { coin, interval }: Series
): BarIndex | undefined => {
  const index = indexBars(pieces)
  if (index?.isOrdered !== true) return undefined
  const { series = { coin, interval } } = index
  return series.coin === coin && series.interval === interval ? index : undefined
}

/** The maximum value of a JavaScript date, in milliseconds. */
const lastInstant = 8_640_000_000_000_000

const isMillis = Schema.is(Encoding.Millis)

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

/** Returns the end of a window; `undefined` if it is absent, before the start, or no date. */
const validEnd = ({ endTime, startTime }: CandleWindowRequest): number | undefined =>
  Predicate.isNotNullish(endTime) && endTime >= startTime && endTime <= lastInstant ? endTime : undefined

/**
 * Returns whether a response contains only bars of the requested coin and interval, in ascending order of time and
 * inside the window. Returns `undefined` if its bars have to be parsed, see {@link isCacheable}.
 */
export const isInWindow = (
  request: CandleWindowRequest,
  pieces: ReadonlyArray<Uint8Array>
): boolean | undefined => {
  const end = validEnd(request)
  if (end === undefined) return false
  const times = indexSeries(pieces, request)?.times
  if (times === undefined) return undefined
  const { interval, startTime } = request
  const [oldest = startTime] = times
  return barAt(interval, oldest) >= barAt(interval, startTime) && (times.at(-1) ?? end) <= end
}

/** Returns whether the parsed bars of a response are as {@link isInWindow} requires. */
export const isCacheable = (request: CandleWindowRequest, response: Encoding.Json): boolean => {
  const { interval, startTime } = request
  const end = validEnd(request)
  if (end === undefined) return false
  let before = barAt(interval, startTime) - 1
  return timesIn(response.valueOrUndefined, request)?.every((time) => {
    if (!isMillis(time) || time > end) return false
    const bar = barAt(interval, time)
    const follows = bar > before
    before = bar
    return follows
  }) ?? false
}

/** Encodes bars as the venue does. */
export const write = (bars: ReadonlyArray<Candle>): string => {
  const coin = Encoding.stringify(bars[0]?.s ?? "")
  return `[${
    bars.map(({ T, c, h, i, l, n, o, t, v }) =>
      `{"t":${t},"T":${T},"s":${coin},"i":"${i}","o":"${o}","c":"${c}","h":"${h}","l":"${l}","v":"${v}","n":${n}}`
    ).join(",")
  }]`
}

/** The formats of a file of bars. */
export const CandleFormat = Schema.Literals(["ndjson", "csv", "parquet"]).annotate({ identifier: "CandleFormat" })
export type CandleFormat = typeof CandleFormat.Type

/** The formats of files of bars that are written as lines of text. */
export type TextFormat = Exclude<CandleFormat, "parquet">

/** The content type of each file format. */
export const contentTypes: { readonly [Format in CandleFormat]: string } = {
  ndjson: "application/x-ndjson",
  csv: "text/csv; charset=utf-8",
  parquet: "application/vnd.apache.parquet"
}

/** The columns of CSV and Parquet: times in milliseconds, volume in the base asset. */
export const columns = ["open_time", "close_time", "open", "high", "low", "close", "volume", "trades"] as const

/** The header line of CSV. */
export const csvHeadings: string = columns.join(",")

/** Formats a bar as a CSV line. */
export const csv = ({ T, c, h, l, n, o, t, v }: Candle): string => [t, T, o, h, l, c, v, n].join(",")

/** Formats a bar as an NDJSON line. */
export const ndjson = (bar: Candle): string => Encoding.stringify(bar)

const decode = Schema.decodeUnknownResult(Candle, { errors: "all" })

/** Decodes a bar. Fails with a description of the mistake. */
export const checked = (value: unknown): Result.Result<Candle, string> =>
  Result.mapError(
    decode(value),
    (error) =>
      decodeFaults(error).map(({ message, path }) => path.length === 0 ? message : `${path.join(".")}: ${message}`)
        .join(
          "; "
        )
  )

const whole = /^[0-9]{1,16}$/u

const parseCount = (cell: string | undefined): number | string | undefined =>
  cell !== undefined && whole.test(cell) ? Number(cell) : cell

/** Parses a CSV line. The line contains neither coin nor interval, so the caller passes both. */
export const readCsv = (coin: string, interval: CandleInterval, line: string): Result.Result<Candle, string> => {
  const cells = line.split(",").map((cell) => cell.trim())
  if (cells.length !== columns.length) return Result.fail(`${cells.length} columns instead of ${columns.length}`)
  const [t, T, o, h, l, c, v, n] = cells
  return checked({ t: parseCount(t), T: parseCount(T), s: coin, i: interval, o, c, h, l, v, n: parseCount(n) })
}

/** Parses an NDJSON line. */
export const readNdjson = (line: string): Result.Result<Candle, string> =>
  Result.match(Encoding.parse(line), { onFailure: () => Result.fail("not JSON"), onSuccess: checked })
