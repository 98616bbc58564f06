/**
 * A compact, lossless encoding of closed bars: every number is decoded exactly as the venue formatted it.
 *
 * A Rice code with parameter k divides a value by 2^k. It writes the quotient in unary (ones, followed by a zero), and
 * the remainder in k bits. For differences of prices, volumes and trade counts, this takes about half a bit per value
 * more than the entropy.
 *
 * A chunk contains the bars of {@link barsPerChunk} consecutive bar numbers. Prices and volumes are converted to
 * integer multiples of a step. Each value is predicted from the preceding bars, and only its difference from the
 * prediction is stored. The format of a number is stored only if it differs from the venue's convention: no trailing
 * zeros, but at least one decimal place. If a chunk contains a number that this encoding cannot represent, such as
 * `007`, all bars of the chunk are written as JSON.
 */
import { barAt, Candle, closeTime, openTime, type Series } from "@trigate/domain/candles/Candle"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as Schema from "effect/Schema"

/** The number of values that share a Rice parameter. */
const BLOCK = 64

/** The number of bits in which a Rice parameter is written. */
const PARAMETER = 6

/**
 * Quotients below this number are written in unary. A larger quotient is written as this number of ones, followed by
 * the complete value without Rice coding.
 */
const ESCAPE = 20

/** The width in bits of a value that is written without Rice coding: enough for `Number.MAX_SAFE_INTEGER`. */
const WHOLE = 53

/** The maximum number of bits written at once. Together with up to 7 pending bits, they fit into 31 bits. */
const STEP = 24

const powers = Float64Array.from({ length: WHOLE + 1 }, (_, exponent) => 2 ** exponent)

const power = (exponent: number): number => powers[exponent] ?? 0

/** Writes integers with a fixed number of bits, and columns of integers. */
export class BitWriter {
  #bytes = new Uint8Array(4096)
  #length = 0
  #held = 0
  #count = 0

  /** Writes the lowest `width` bits of a number from 0 to 2^53 - 1. */
  bits(value: number, width: number): void {
    let left = width
    while (left > STEP) {
      left -= STEP
      this.#put(Math.floor(value / power(left)) % power(STEP), STEP)
    }
    this.#put(value % power(left), left)
  }

  /** Writes a column of numbers from 0 to 2^53 - 1. The number of values is not written, so the reader must know it. */
  column(values: ReadonlyArray<number>): void {
    for (let start = 0; start < values.length; start += BLOCK) {
      const end = Math.min(values.length, start + BLOCK)
      let sum = 0
      for (let at = start; at < end; at++) sum += values[at] ?? 0
      const k = Math.max(0, Math.min(WHOLE - 1, Math.round(Math.log2(sum / (end - start) * Math.LN2 + 0.5))))
      this.#put(k, PARAMETER)
      for (let at = start; at < end; at++) this.#rice(values[at] ?? 0, k)
    }
  }

  /** Returns the written bits, padded to a whole byte. */
  finish(): Uint8Array {
    if (this.#count > 0) this.#put(0, 8 - this.#count)
    return this.#bytes.slice(0, this.#length)
  }

  #rice(value: number, k: number): void {
    const quotient = Math.floor(value / power(k))
    if (quotient >= ESCAPE) {
      this.#put(power(ESCAPE) - 1, ESCAPE)
      this.bits(value, WHOLE)
    } else {
      this.#put(power(quotient + 1) - 2, quotient + 1)
      this.bits(value, k)
    }
  }

  #put(value: number, width: number): void {
    this.#held = this.#held << width | value
    this.#count += width
    if (this.#length + 4 > this.#bytes.length) {
      const larger = new Uint8Array(this.#bytes.length * 2)
      larger.set(this.#bytes)
      this.#bytes = larger
    }
    while (this.#count >= 8) {
      this.#count -= 8
      this.#bytes[this.#length++] = this.#held >>> this.#count & 255
    }
    this.#held &= (1 << this.#count) - 1
  }
}

/** Reads the output of {@link BitWriter} in the same order. Returns zeros after the end. */
export class BitReader {
  readonly #bytes: Uint8Array
  #at: number
  #held = 0
  #count = 0

  constructor(bytes: Uint8Array, start = 0) {
    this.#bytes = bytes
    this.#at = start
  }

  bits(width: number): number {
    let value = 0
    let left = width
    while (left > STEP) {
      left -= STEP
      value += this.#take(STEP) * power(left)
    }
    return value + this.#take(left)
  }

  column(length: number): Array<number> {
    const values: Array<number> = []
    while (values.length < length) {
      const k = this.#take(PARAMETER)
      const end = Math.min(length, values.length + BLOCK)
      while (values.length < end) values.push(this.#rice(k))
    }
    return values
  }

  #rice(k: number): number {
    this.#fill()
    // counts the leading ones of the buffered bits, after which there is at least one zero
    const ones = Math.clz32(~(this.#held << 32 - this.#count))
    if (ones >= ESCAPE) {
      this.#count -= ESCAPE
      return this.bits(WHOLE)
    }
    this.#count -= ones + 1
    if (k === 0) return ones
    return ones * power(k) + (k <= STEP ? this.#take(k) : this.bits(k))
  }

  #take(width: number): number {
    if (this.#count < width) this.#fill()
    this.#count -= width
    return this.#held >>> this.#count & (1 << width) - 1
  }

  /** Reads bytes into the buffer until it contains at least {@link STEP} bits. */
  #fill(): void {
    this.#held &= (1 << this.#count) - 1
    while (this.#count < STEP) {
      this.#held = this.#held << 8 | (this.#bytes[this.#at++] ?? 0)
      this.#count += 8
    }
  }
}

/** The number of consecutive bar numbers in a chunk. */
export const barsPerChunk = 1000

const prices = ["o", "h", "l", "c"] as const

/**
 * The decimal numbers of one column as multiples of a step, with the format of each number. The step is a multiple of a
 * unit, which is `10^-scale`.
 */
interface Decimals {
  /** The number of decimal places of a unit. */
  readonly scale: number
  /** The greatest common divisor of all values, in units. */
  readonly step: number
  /** The decimal numbers, as multiples of `step`. */
  readonly values: ReadonlyArray<number>
  /**
   * For each number, the number of decimal places of its text in addition to those of the venue's convention. Can be
   * negative.
   */
  readonly extra: ReadonlyArray<number>
}

/**
 * Maximum absolute value of a number in a column, in units of 10^-scale. Differences between larger values would not be
 * exact doubles.
 */
const MOST = 2 ** 50

const countDecimals = (text: string): number => {
  const point = text.indexOf(".")
  return point < 0 ? 0 : text.length - point - 1
}

const isPlain = (text: string): boolean => /^(?:-(?!0(?:\.0*)?$))?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/u.test(text)

/** The character `0`. */
const ZERO = 48

/** Returns the number of decimal places that the venue's convention uses for the value `units` × 10^-`scale`. */
const habitual = (units: number, scale: number): number => {
  let digits = scale
  let rest = units
  while (digits > 1 && rest % 10 === 0) {
    rest /= 10
    digits -= 1
  }
  return digits
}

const divisor = (a: number, b: number): number => {
  let [large, small] = [a, b]
  while (small !== 0) [large, small] = [small, large % small]
  return large
}

/**
 * Parses decimal numbers; `undefined` if one of them is too large, or has a format that this encoding cannot represent.
 */
const scaled = (texts: ReadonlyArray<string>): Decimals | undefined => {
  let scale = 0
  for (const text of texts) {
    if (!isPlain(text)) return undefined
    scale = Math.max(scale, countDecimals(text))
  }
  const units: Array<number> = []
  const extra: Array<number> = []
  let step = 0
  for (const text of texts) {
    const decimals = countDecimals(text)
    const digits = decimals === 0 ? text : text.replace(".", "")
    const value = Number(digits + "0".repeat(scale - decimals))
    if (Math.abs(value) > MOST) return undefined
    units.push(value)
    // a greatest common divisor of 1 cannot become smaller
    if (step !== 1) step = divisor(step, Math.abs(value))
    extra.push(decimals - habitual(value, scale))
  }
  const whole = step === 0 ? 1 : step
  return { scale, step: whole, values: whole === 1 ? units : units.map((value) => value / whole), extra }
}

/**
 * Formats the number `units` × 10^-`scale`. `extra` is the number of decimal places in addition to those of the venue's
 * convention; it can be negative.
 */
const spell = (units: number, scale: number, extra: number): string => {
  const sign = units < 0 ? "-" : ""
  const written = String(Math.abs(units))
  if (scale === 0) return sign + written
  const digits = written.length > scale ? written : written.padStart(scale + 1, "0")
  const point = digits.length - scale
  let end = digits.length
  while (end > point + 1 && digits.charCodeAt(end - 1) === ZERO) end -= 1
  end += extra
  return end === point ? sign + digits.slice(0, point) : `${sign}${digits.slice(0, point)}.${digits.slice(point, end)}`
}

const zigzag = (value: number): number => value < 0 ? -2 * value - 1 : 2 * value

const unzigzag = (value: number): number => value % 2 === 0 ? value / 2 : -(value + 1) / 2

const isBelowZero = (value: number): boolean => value < 0

const isNotZero = (value: number): boolean => value !== 0

/**
 * Writes a column of numbers that are rarely negative. A leading bit states whether any number in the column is
 * negative.
 */
const writeSigned = (writer: BitWriter, values: ReadonlyArray<number>): void => {
  const isSigned = values.some(isBelowZero)
  writer.bits(isSigned ? 1 : 0, 1)
  writer.column(isSigned ? values.map(zigzag) : values)
}

const readSigned = (reader: BitReader, length: number): ReadonlyArray<number> =>
  reader.bits(1) === 1 ? reader.column(length).map(unzigzag) : reader.column(length)

const writeDecimals = (writer: BitWriter, { extra, scale, step }: Decimals): void => {
  writer.bits(scale, 8)
  writer.bits(step, 53)
  const isHabitual = !extra.some(isNotZero)
  writer.bits(isHabitual ? 0 : 1, 1)
  if (!isHabitual) writeSigned(writer, extra)
}

const readDecimals = (reader: BitReader, length: number): Omit<Decimals, "values"> => ({
  scale: reader.bits(8),
  step: reader.bits(53),
  extra: reader.bits(1) === 0 ? [] : readSigned(reader, length)
})

// the first byte of a chunk is the number of its format. A new format needs a new number, and later versions of the
// program must still read formats 0 and 1
const JSON_TEXT = 0
const COLUMNS = 1

const encodeBars = Schema.encodeSync(Schema.fromJsonString(Schema.Array(Candle)))
const decodeBars = Schema.decodeSync(Schema.fromJsonString(Schema.Array(Candle)))

const asJson = (bars: ReadonlyArray<Candle>): Uint8Array => {
  const text = Utf8.encode(encodeBars(bars))
  const bytes = new Uint8Array(text.length + 1)
  bytes[0] = JSON_TEXT
  bytes.set(text, 1)
  return bytes
}

/** Returns whether this version of the program can read the format of a chunk. */
export const isReadable = ([format]: Uint8Array): boolean => format === JSON_TEXT || format === COLUMNS

/** Encodes bars of one series, in order, without duplicates. `first` is the first bar number of the chunk. */
export const encode = ({ interval }: Series, first: number, bars: ReadonlyArray<Candle>): Uint8Array => {
  // the four prices of a bar are adjacent in one column, because they share a step
  const price = scaled(bars.flatMap((bar) => prices.map((name) => bar[name])))
  const volume = scaled(bars.map(({ v }) => v))
  if (price === undefined || volume === undefined || price.scale > 255 || volume.scale > 255) return asJson(bars)
  const offsets: Array<number> = []
  const opens: Array<number> = []
  const highs: Array<number> = []
  const lows: Array<number> = []
  const closes: Array<number> = []
  let expected = first
  let before = 0
  for (const [index, { t }] of bars.entries()) {
    const bar = barAt(interval, t)
    const at = (column: number): number => price.values[4 * index + column] ?? 0
    const open = at(0)
    const close = at(3)
    offsets.push(bar - expected)
    opens.push(open - before)
    closes.push(close - open)
    highs.push(at(1) - Math.max(open, close))
    lows.push(Math.min(open, close) - at(2))
    expected = bar + 1
    before = close
  }
  const writer = new BitWriter()
  writer.bits(COLUMNS, 8)
  writer.bits(bars.length, 16)
  writeDecimals(writer, price)
  writeDecimals(writer, volume)
  writer.column(offsets)
  for (const column of [opens, closes, highs, lows, volume.values]) writeSigned(writer, column)
  writer.column(bars.map(({ n }) => n))
  return writer.finish()
}

/** Decodes the bars of a chunk. `first` is the first bar number of the chunk. */
export const decode = ({ coin, interval }: Series, first: number, bytes: Uint8Array): ReadonlyArray<Candle> => {
  if (bytes[0] === JSON_TEXT) return decodeBars(Utf8.decodeLossy(bytes.subarray(1)))
  const reader = new BitReader(bytes, 1)
  const length = reader.bits(16)
  const price = readDecimals(reader, 4 * length)
  const volume = readDecimals(reader, length)
  const offsets = reader.column(length)
  const opens = readSigned(reader, length)
  const closes = readSigned(reader, length)
  const highs = readSigned(reader, length)
  const lows = readSigned(reader, length)
  const volumes = readSigned(reader, length)
  const trades = reader.column(length)
  const bars: Array<Candle> = []
  let bar = first
  let before = 0
  let lastUnits = Number.NaN
  let lastText = ""
  for (let index = 0; index < length; index++) {
    bar += offsets[index] ?? 0
    const open = before + (opens[index] ?? 0)
    const close = open + (closes[index] ?? 0)
    const text = (value: number, column: number): string =>
      spell(value * price.step, price.scale, price.extra[4 * index + column] ?? 0)
    const high = Math.max(open, close) + (highs[index] ?? 0)
    const low = Math.min(open, close) - (lows[index] ?? 0)
    // reuses the text of the previous close, because a bar often opens at that price
    const o = open === lastUnits && price.extra.length === 0 ? lastText : text(open, 0)
    const c = text(close, 3)
    bars.push({
      t: openTime(interval, bar),
      T: closeTime(interval, bar),
      s: coin,
      i: interval,
      o,
      c,
      h: text(high, 1),
      l: text(low, 2),
      v: spell((volumes[index] ?? 0) * volume.step, volume.scale, volume.extra[index] ?? 0),
      n: trades[index] ?? 0
    })
    lastUnits = close
    lastText = c
    before = close
    bar += 1
  }
  return bars
}
