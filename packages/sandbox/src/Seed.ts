/**
 * Deterministic pseudo-random values. A seed and a text key determine a value, independently of the order of calls.
 *
 * Values are not drawn in sequence, so data can be computed from an address, a coin or a time, and does not need to be
 * stored.
 */
import { lowerCase } from "@trigate/domain/encoding/Encoding"

/** The text that determines all generated data of a sandbox. */
export type Seed = string

/** The default seed. */
export const defaultSeed: Seed = "trigate"

/** The 32-bit ID of a series of pseudo-random values under a seed. Each value in a series has an index. */
export type Series = number

/** The finalizer of MurmurHash3, in which each input bit affects each output bit. */
const mix = (value: number): number => {
  const a = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  const b = Math.imul(a ^ (a >>> 13), 0xc2b2ae35)
  return (b ^ (b >>> 16)) >>> 0
}

/** Returns the series of pseudo-random values that a text key identifies under a seed. */
export const series = (seed: Seed, key: string): Series => {
  let state = 0x811c9dc5
  const text = `${seed}\u0000${key}`
  for (let i = 0; i < text.length; i++) {
    state = Math.imul(state ^ text.charCodeAt(i), 0x01000193)
  }
  return mix(state)
}

/** Returns the value of a series at an index, as an integer from 0 to 2^32 - 1. */
export const uint32 = (family: Series, index: number): number =>
  mix(mix(family ^ Math.imul(index | 0, 0x9e3779b1)) + Math.floor(index / 0x1_0000_0000))

/** Returns the value of a series at an index, as a fraction: at least 0 and less than 1. */
export const fraction = (family: Series, index: number): number => uint32(family, index) / 0x1_0000_0000

/** Returns the value of a series at an index, as an integer from 0 to `bound` - 1. */
export const below = (family: Series, index: number, bound: number): number =>
  Math.floor(fraction(family, index) * bound)

/** Returns a pseudo-random string for a key: `0x` and `digits` hex digits. */
export const hex = (seed: Seed, key: string, digits: number): `0x${string}` => {
  const family = series(seed, key)
  // makes the text at once, because a string built by concatenation retains its parts in memory
  const codes = [0x30, 0x78]
  for (let at = 0; at < digits; at++) {
    const digit = (uint32(family, at >>> 3) >>> (28 - (at & 7) * 4)) & 0x0f
    codes.push(digit + (digit < 10 ? 0x30 : 0x57))
  }
  return lowerCase(String.fromCharCode(...codes))
}

/**
 * Returns smooth noise from -1 to 1: the linear interpolation of a series at multiples of `step`.
 *
 * Because the noise is linear between these points, its extremes over whole steps are at multiples of `step`. The high
 * and low of a long candle can therefore be computed without the shorter candles in it.
 */
export const noise = (family: Series, step: number, at: number): number => {
  const index = Math.floor(at / step)
  const part = at / step - index
  const from = fraction(family, index) * 2 - 1
  return part === 0 ? from : from + (fraction(family, index + 1) * 2 - 1 - from) * part
}
