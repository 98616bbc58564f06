/**
 * Answers to candle queries: how many bars one holds, whether it never changes and can be cached, how one is written, and what it
 * was made of.
 *
 * An answer is recognised from its bytes, in the venue's spelling and in the pieces in which it came. A full one has 700 KB:
 * joining and decoding it takes longer than recognising it, and parsing it ten times as long. What is not recognised may
 * still be a list of bars: it has to be parsed.
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { type Candle, CandleInterval, type CandleWindowRequest } from "./Candle.ts"
import type { Sources } from "./CandleWindow.ts"
import { barAt, closeOf, oldestRetainedBar } from "./CandleWindow.ts"
import * as Json from "./Json.ts"
import type { CachePolicy } from "./Operation.ts"
import { Millis } from "./Time.ts"
import * as Utf8 from "./Utf8.ts"

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const CLOSE_BRACE = 0x7d

/** Bytes, and the words of four that start at any of them. */
interface Piece {
  readonly bytes: Uint8Array
  readonly words: DataView
}

const pieceOf = (bytes: Uint8Array): Piece => ({
  bytes,
  words: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
})

const wordAt = ({ words }: Piece, at: number): number => words.getInt32(at, true)

/** Whether all four bytes of a word are digits: from 0x30 to 0x3f, and below 0x40 also with 6 more. */
const areDigits = (word: number): boolean =>
  (word & 0xf0f0f0f0 | 0) === 0x30303030 && ((word + 0x06060606) & 0xf0f0f0f0 | 0) === 0x30303030

const MOST_INTEGER_DIGITS = 15
const MOST_DECIMAL_DIGITS = 40
const MOST_COIN_LETTERS = 64

/** Where the digits end that start at `from`. */
const afterDigits = (piece: Piece, from: number): number => {
  let at = from
  // no more than are allowed: the piece ends somewhere
  while (at - from <= MOST_DECIMAL_DIGITS && areDigits(wordAt(piece, at))) at += 4
  for (let code = piece.bytes[at] ?? 0; code >= ZERO && code <= NINE; code = piece.bytes[at] ?? 0) at += 1
  return at
}

// each of these answers where a value ends that starts at `from`, or -1

const afterInteger = (piece: Piece, from: number): number => {
  const end = afterDigits(piece, from)
  const digits = end - from
  return digits === 0 || digits > MOST_INTEGER_DIGITS || (digits > 1 && piece.bytes[from] === ZERO) ? -1 : end
}

const afterSomeDigits = (piece: Piece, from: number): number => {
  const end = afterDigits(piece, from)
  return end === from || end - from > MOST_DECIMAL_DIGITS ? -1 : end
}

const afterDecimal = (piece: Piece, from: number): number => {
  const end = afterSomeDigits(piece, piece.bytes[from] === MINUS ? from + 1 : from)
  return end < 0 || piece.bytes[end] !== POINT ? end : afterSomeDigits(piece, end + 1)
}

const coinLetters = new Uint8Array(256)
for (const code of Utf8.encode("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@/:._-")) {
  coinLetters[code] = 1
}

const afterCoin = ({ bytes }: Piece, from: number): number => {
  let end = from
  while (coinLetters[bytes[end] ?? 0] === 1) end += 1
  return end === from || end - from > MOST_COIN_LETTERS ? -1 : end
}

const codeOf = (bytes: Uint8Array, from: number, end: number): number => {
  let code = 0
  for (let at = from; at < end; at++) code = (code << 8) | (bytes[at] ?? 0)
  return code
}

const intervalCodes = new Set(CandleInterval.literals.map((name) => codeOf(Utf8.encode(name), 0, name.length)))

const afterInterval = ({ bytes }: Piece, from: number): number => {
  const end = bytes[from + 2] === QUOTE ? from + 2 : from + 3
  return intervalCodes.has(codeOf(bytes, from, end)) ? end : -1
}

/** How a value is written; all but integers stand in quotes. Every value that fits decodes, and means what it says. */
type Spelling = "integer" | "coin" | "interval" | "decimal"

const spellings: { readonly [Member in keyof Candle]: Spelling } = {
  t: "integer",
  T: "integer",
  s: "coin",
  i: "interval",
  o: "decimal",
  c: "decimal",
  h: "decimal",
  l: "decimal",
  v: "decimal",
  n: "integer"
}

const isMember = (name: string): name is keyof Candle => Object.hasOwn(spellings, name)

const quoteOf = (name: keyof Candle | undefined): string =>
  name === undefined || spellings[name] === "integer" ? "" : "\""

const afterValue = (spelling: Spelling, piece: Piece, from: number): number => {
  switch (spelling) {
    case "integer":
      return afterInteger(piece, from)
    case "decimal":
      return afterDecimal(piece, from)
    case "coin":
      return afterCoin(piece, from)
    case "interval":
      return afterInterval(piece, from)
  }
}

/** One member: how its value is written, and the five bytes or more before it, of which the first and last four count. */
interface Step {
  readonly spelling: Spelling
  readonly length: number
  readonly first: number
  readonly last: number
}

interface Shape {
  readonly steps: ReadonlyArray<Step>
  readonly endsWithQuote: boolean
}

const shapeOf = (order: ReadonlyArray<keyof Candle>): Shape => ({
  steps: order.map((name, index) => {
    const before = order[index - 1]
    const opening = before === undefined ? "{" : `${quoteOf(before)},`
    const bytes = Utf8.encode(`${opening}"${name}":${quoteOf(name)}`)
    const piece = pieceOf(bytes)
    const { length } = bytes
    return { spelling: spellings[name], length, first: wordAt(piece, 0), last: wordAt(piece, length - 4) }
  }),
  endsWithQuote: quoteOf(order.at(-1)) !== ""
})

// members may stand in any order; a venue has one
const MOST_SHAPES = 8
const shapes = new Map<string, Shape>()

const shapeIn = (opening: Uint8Array): Shape | undefined => {
  const order = [...Json.members(Utf8.decodeLossy(opening), 1).keys()]
  const key = order.join()
  const known = shapes.get(key)
  if (known !== undefined) return known
  const names = order.filter(isMember)
  if (names.length !== order.length || names.length !== Object.keys(spellings).length) return undefined
  if (shapes.size === MOST_SHAPES) return undefined
  const shape = shapeOf(names)
  shapes.set(key, shape)
  return shape
}

const afterBar = ({ endsWithQuote, steps }: Shape, piece: Piece, from: number): number => {
  let at = from
  for (const { first, last, length, spelling } of steps) {
    if (wordAt(piece, at) !== first || wordAt(piece, at + length - 4) !== last) return -1
    at = afterValue(spelling, piece, at + length)
    if (at < 0) return -1
  }
  const { bytes } = piece
  if (!endsWithQuote) return bytes[at] === CLOSE_BRACE ? at + 1 : -1
  return bytes[at] === QUOTE && bytes[at + 1] === CLOSE_BRACE ? at + 2 : -1
}

/** No bar takes so many bytes, with what follows it: a bar is read where at least as many bytes are left. */
const ROOM = 1024

const padding = new Uint8Array(ROOM)

/** Reads bars, counts them, and finds the end of the list. */
class Bars {
  readonly #shape: Shape
  count = 0
  isAtEnd = false

  constructor(shape: Shape) {
    this.#shape = shape
  }

  /** Reads those that start before `until`. Where it has got to, or -1. */
  read(bytes: Uint8Array, from: number, until: number): number {
    const piece = pieceOf(bytes)
    let at = from
    while (at < until && !this.isAtEnd) {
      const end = afterBar(this.#shape, piece, at)
      if (end < 0) return -1
      this.count += 1
      if (bytes[end] === CLOSE_BRACKET) this.isAtEnd = true
      else if (bytes[end] !== COMMA) return -1
      at = end + 1
    }
    return at
  }
}

/** How many bars the pieces of a text list; nothing of one that is not recognised. */
export const barsIn = (pieces: ReadonlyArray<Uint8Array>): number | undefined => {
  const size = pieces.reduce((sum, { length }) => sum + length, 0)
  const opening = Utf8.opening(pieces, ROOM)
  if (opening[0] !== OPEN_BRACKET) return undefined
  if (size === 2 && opening[1] === CLOSE_BRACKET) return 0
  const shape = shapeIn(opening)
  if (shape === undefined) return undefined
  const bars = new Bars(shape)
  // what is left of earlier pieces, where the next bar starts in it, and where it stands in the text
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

const occurrencesOf = (part: string, text: string): number => {
  let count = 0
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) count += 1
  return count
}

/** Open times of the bars that a text lists; undefined unless it is recognised and all are of the coin and the interval. */
export const openTimesIn = (
  text: string,
  coin: string,
  interval: CandleInterval
): ReadonlyArray<number> | undefined => {
  const bars = barsIn([Utf8.encode(text)])
  // in a recognised text a name with its colon is nothing but a member
  return bars !== undefined && occurrencesOf(`"s":${JSON.stringify(coin)}`, text) === bars &&
      occurrencesOf(`"i":"${interval}"`, text) === bars
    ? Array.from(text.matchAll(/"t":(?<time>[0-9]+)/gu), ({ groups }) => Number(groups?.["time"]))
    : undefined
}

/** Room for a venue whose clock is behind ours, or that writes a bar late. */
const graceMillis = 5000

/** How long the venue must keep the whole window: longer than any deadline, and than clocks differ. */
const marginMillis = 60_000

const day = 24 * 60 * 60_000

/** No calendar has a later instant. */
const lastInstant = 8_640_000_000_000_000

/** A day for a window whose last bar is closed and whose first bar the venue will keep for a while; else not cached. */
export const cachePolicy = (
  { endTime, interval, startTime }: CandleWindowRequest,
  now: number
): CachePolicy | undefined => {
  if (!Predicate.isNotNullish(endTime) || endTime < startTime || endTime > now) return undefined
  const isClosed = closeOf(interval, barAt(interval, endTime)) + graceMillis < now
  const isRetained = barAt(interval, startTime) >= oldestRetainedBar(interval, now + marginMillis)
  return isClosed && isRetained ? { fresh: day, staleIfError: day } : undefined
}

const isMillis = Schema.is(Millis)

/** Open times of parsed bars; undefined unless all are bars of the coin and the interval. */
const timesIn = (rows: unknown, { coin, interval }: CandleWindowRequest): ReadonlyArray<number> | undefined => {
  if (!Array.isArray(rows)) return undefined
  const times = rows.map((row: unknown): unknown =>
    Predicate.isObject(row) && "t" in row && "s" in row && "i" in row && row.s === coin && row.i === interval
      ? row.t
      : undefined
  )
  return times.every(Predicate.isNumber) ? times : undefined
}

/** Whether an answer holds bars of the coin and interval that were asked for, in order and inside of the window. */
export const isCacheable = (request: CandleWindowRequest, answer: Json.Json): boolean => {
  const { coin, endTime, interval, startTime } = request
  if (!Predicate.isNotNullish(endTime) || endTime < startTime || endTime > lastInstant) return false
  const times = openTimesIn(answer.text, coin, interval) ?? timesIn(answer.valueOrUndefined, request)
  let before = barAt(interval, startTime) - 1
  return times?.every((time) => {
    if (!isMillis(time) || time > endTime) return false
    const bar = barAt(interval, time)
    const follows = bar > before
    before = bar
    return follows
  }) ?? false
}

/** Bars as the venue writes them. */
export const write = (bars: ReadonlyArray<Candle>): string => {
  const coin = Json.stringify(bars[0]?.s ?? "")
  return `[${
    bars.map(({ T, c, h, i, l, n, o, t, v }) =>
      `{"t":${t},"T":${T},"s":${coin},"i":"${i}","o":"${o}","c":"${c}","h":"${h}","l":"${l}","v":"${v}","n":${n}}`
    ).join(",")
  }]`
}

/** The header in which a gateway tells what it made an answer of; a structured field (RFC 9651). */
export const sourcesHeader = "x-trigate-candles"

/** A header does not grow with the holes of a history, nor with its corrections. */
const MOST_TOLD = 16

const toldIn = (name: string, texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.length === 0 ? [] : [`${name}="${texts.slice(0, MOST_TOLD).join(" ")}"`]

/** The text of the header. */
export const printSources = ({ asked, corrected, gaps, held, isCut }: Sources): string =>
  [
    `held=${held}`,
    `asked=${asked}`,
    ...(isCut ? ["cut"] : gaps.length === 0 ? ["complete"] : []),
    ...toldIn("gaps", gaps.map(({ from, to }) => `${from}-${to}`)),
    ...toldIn("corrected", corrected.map(String))
  ].join(", ")

const printed =
  /^held=(?<held>[0-9]{1,9}), asked=(?<asked>[0-9]{1,9})(?<cut>, cut)?(?:, complete)?(?:, gaps="(?<gaps>[0-9 -]*)")?(?:, corrected="(?<corrected>[0-9 ]*)")?$/u

/** What a header tells; undefined where there is none that says so. */
export const readSources = (header: string | undefined): Sources | undefined => {
  const match = header === undefined ? undefined : printed.exec(header)?.groups
  return match === undefined ? undefined : {
    held: Number(match["held"]),
    asked: Number(match["asked"]),
    isCut: match["cut"] !== undefined,
    gaps: Array.from((match["gaps"] ?? "").matchAll(/(?<from>[0-9]+)-(?<to>[0-9]+)/gu), ({ groups }) => ({
      from: Number(groups?.["from"]),
      to: Number(groups?.["to"])
    })),
    corrected: Array.from((match["corrected"] ?? "").matchAll(/[0-9]+/gu), ([time]) => Number(time))
  }
}
