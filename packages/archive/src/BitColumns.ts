/**
 * Columns of integers in few bits: Rice codes with an adaptive parameter.
 *
 * A Rice code with parameter k divides a value by 2^k. It writes the quotient in unary (ones, followed by a zero), and
 * the remainder in k bits. For differences of prices, volumes and trade counts, this takes about half a bit per value
 * more than the entropy.
 */

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
