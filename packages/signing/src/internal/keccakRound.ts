/**
 * One round of Keccak-f[1600], written out.
 *
 * A lane of 64 bits is two words of 32, the low one first: 64-bit integers of JavaScript are objects. Written out it is
 * four times as fast as loops over tables of offsets, and hashing is half of what recovering a signer costs.
 */

/** The index is a constant below 50 everywhere, so the fallback only tells the compiler what it cannot see. */
const word = (words: Int32Array, index: number): number => words[index] ?? 0

/** One word of a lane rotated to the left by less than 32; `low` is the word that the bits come in from. */
const rotate = (high: number, low: number, bits: number): number => (high << bits) | (low >>> (32 - bits))

/** Theta, rho, pi, chi and iota: from one state of 50 words to another, with the two words of the round constant. */
export const keccakRound = (from: Int32Array, to: Int32Array, roundLow: number, roundHigh: number): void => {
  const c0l = word(from, 0) ^ word(from, 10) ^ word(from, 20) ^ word(from, 30) ^ word(from, 40)
  const c0h = word(from, 1) ^ word(from, 11) ^ word(from, 21) ^ word(from, 31) ^ word(from, 41)
  const c1l = word(from, 2) ^ word(from, 12) ^ word(from, 22) ^ word(from, 32) ^ word(from, 42)
  const c1h = word(from, 3) ^ word(from, 13) ^ word(from, 23) ^ word(from, 33) ^ word(from, 43)
  const c2l = word(from, 4) ^ word(from, 14) ^ word(from, 24) ^ word(from, 34) ^ word(from, 44)
  const c2h = word(from, 5) ^ word(from, 15) ^ word(from, 25) ^ word(from, 35) ^ word(from, 45)
  const c3l = word(from, 6) ^ word(from, 16) ^ word(from, 26) ^ word(from, 36) ^ word(from, 46)
  const c3h = word(from, 7) ^ word(from, 17) ^ word(from, 27) ^ word(from, 37) ^ word(from, 47)
  const c4l = word(from, 8) ^ word(from, 18) ^ word(from, 28) ^ word(from, 38) ^ word(from, 48)
  const c4h = word(from, 9) ^ word(from, 19) ^ word(from, 29) ^ word(from, 39) ^ word(from, 49)
  const d0l = c4l ^ rotate(c1l, c1h, 1)
  const d0h = c4h ^ rotate(c1h, c1l, 1)
  const d1l = c0l ^ rotate(c2l, c2h, 1)
  const d1h = c0h ^ rotate(c2h, c2l, 1)
  const d2l = c1l ^ rotate(c3l, c3h, 1)
  const d2h = c1h ^ rotate(c3h, c3l, 1)
  const d3l = c2l ^ rotate(c4l, c4h, 1)
  const d3h = c2h ^ rotate(c4h, c4l, 1)
  const d4l = c3l ^ rotate(c0l, c0h, 1)
  const d4h = c3h ^ rotate(c0h, c0l, 1)
  {
    const b0l = word(from, 0) ^ d0l
    const b0h = word(from, 1) ^ d0h
    const b1l = rotate(word(from, 13) ^ d1h, word(from, 12) ^ d1l, 12)
    const b1h = rotate(word(from, 12) ^ d1l, word(from, 13) ^ d1h, 12)
    const b2l = rotate(word(from, 25) ^ d2h, word(from, 24) ^ d2l, 11)
    const b2h = rotate(word(from, 24) ^ d2l, word(from, 25) ^ d2h, 11)
    const b3l = rotate(word(from, 36) ^ d3l, word(from, 37) ^ d3h, 21)
    const b3h = rotate(word(from, 37) ^ d3h, word(from, 36) ^ d3l, 21)
    const b4l = rotate(word(from, 48) ^ d4l, word(from, 49) ^ d4h, 14)
    const b4h = rotate(word(from, 49) ^ d4h, word(from, 48) ^ d4l, 14)
    to[0] = b0l ^ (~b1l & b2l) ^ roundLow
    to[1] = b0h ^ (~b1h & b2h) ^ roundHigh
    to[2] = b1l ^ (~b2l & b3l)
    to[3] = b1h ^ (~b2h & b3h)
    to[4] = b2l ^ (~b3l & b4l)
    to[5] = b2h ^ (~b3h & b4h)
    to[6] = b3l ^ (~b4l & b0l)
    to[7] = b3h ^ (~b4h & b0h)
    to[8] = b4l ^ (~b0l & b1l)
    to[9] = b4h ^ (~b0h & b1h)
  }
  {
    const b0l = rotate(word(from, 6) ^ d3l, word(from, 7) ^ d3h, 28)
    const b0h = rotate(word(from, 7) ^ d3h, word(from, 6) ^ d3l, 28)
    const b1l = rotate(word(from, 18) ^ d4l, word(from, 19) ^ d4h, 20)
    const b1h = rotate(word(from, 19) ^ d4h, word(from, 18) ^ d4l, 20)
    const b2l = rotate(word(from, 20) ^ d0l, word(from, 21) ^ d0h, 3)
    const b2h = rotate(word(from, 21) ^ d0h, word(from, 20) ^ d0l, 3)
    const b3l = rotate(word(from, 33) ^ d1h, word(from, 32) ^ d1l, 13)
    const b3h = rotate(word(from, 32) ^ d1l, word(from, 33) ^ d1h, 13)
    const b4l = rotate(word(from, 45) ^ d2h, word(from, 44) ^ d2l, 29)
    const b4h = rotate(word(from, 44) ^ d2l, word(from, 45) ^ d2h, 29)
    to[10] = b0l ^ (~b1l & b2l)
    to[11] = b0h ^ (~b1h & b2h)
    to[12] = b1l ^ (~b2l & b3l)
    to[13] = b1h ^ (~b2h & b3h)
    to[14] = b2l ^ (~b3l & b4l)
    to[15] = b2h ^ (~b3h & b4h)
    to[16] = b3l ^ (~b4l & b0l)
    to[17] = b3h ^ (~b4h & b0h)
    to[18] = b4l ^ (~b0l & b1l)
    to[19] = b4h ^ (~b0h & b1h)
  }
  {
    const b0l = rotate(word(from, 2) ^ d1l, word(from, 3) ^ d1h, 1)
    const b0h = rotate(word(from, 3) ^ d1h, word(from, 2) ^ d1l, 1)
    const b1l = rotate(word(from, 14) ^ d2l, word(from, 15) ^ d2h, 6)
    const b1h = rotate(word(from, 15) ^ d2h, word(from, 14) ^ d2l, 6)
    const b2l = rotate(word(from, 26) ^ d3l, word(from, 27) ^ d3h, 25)
    const b2h = rotate(word(from, 27) ^ d3h, word(from, 26) ^ d3l, 25)
    const b3l = rotate(word(from, 38) ^ d4l, word(from, 39) ^ d4h, 8)
    const b3h = rotate(word(from, 39) ^ d4h, word(from, 38) ^ d4l, 8)
    const b4l = rotate(word(from, 40) ^ d0l, word(from, 41) ^ d0h, 18)
    const b4h = rotate(word(from, 41) ^ d0h, word(from, 40) ^ d0l, 18)
    to[20] = b0l ^ (~b1l & b2l)
    to[21] = b0h ^ (~b1h & b2h)
    to[22] = b1l ^ (~b2l & b3l)
    to[23] = b1h ^ (~b2h & b3h)
    to[24] = b2l ^ (~b3l & b4l)
    to[25] = b2h ^ (~b3h & b4h)
    to[26] = b3l ^ (~b4l & b0l)
    to[27] = b3h ^ (~b4h & b0h)
    to[28] = b4l ^ (~b0l & b1l)
    to[29] = b4h ^ (~b0h & b1h)
  }
  {
    const b0l = rotate(word(from, 8) ^ d4l, word(from, 9) ^ d4h, 27)
    const b0h = rotate(word(from, 9) ^ d4h, word(from, 8) ^ d4l, 27)
    const b1l = rotate(word(from, 11) ^ d0h, word(from, 10) ^ d0l, 4)
    const b1h = rotate(word(from, 10) ^ d0l, word(from, 11) ^ d0h, 4)
    const b2l = rotate(word(from, 22) ^ d1l, word(from, 23) ^ d1h, 10)
    const b2h = rotate(word(from, 23) ^ d1h, word(from, 22) ^ d1l, 10)
    const b3l = rotate(word(from, 34) ^ d2l, word(from, 35) ^ d2h, 15)
    const b3h = rotate(word(from, 35) ^ d2h, word(from, 34) ^ d2l, 15)
    const b4l = rotate(word(from, 47) ^ d3h, word(from, 46) ^ d3l, 24)
    const b4h = rotate(word(from, 46) ^ d3l, word(from, 47) ^ d3h, 24)
    to[30] = b0l ^ (~b1l & b2l)
    to[31] = b0h ^ (~b1h & b2h)
    to[32] = b1l ^ (~b2l & b3l)
    to[33] = b1h ^ (~b2h & b3h)
    to[34] = b2l ^ (~b3l & b4l)
    to[35] = b2h ^ (~b3h & b4h)
    to[36] = b3l ^ (~b4l & b0l)
    to[37] = b3h ^ (~b4h & b0h)
    to[38] = b4l ^ (~b0l & b1l)
    to[39] = b4h ^ (~b0h & b1h)
  }
  {
    const b0l = rotate(word(from, 5) ^ d2h, word(from, 4) ^ d2l, 30)
    const b0h = rotate(word(from, 4) ^ d2l, word(from, 5) ^ d2h, 30)
    const b1l = rotate(word(from, 17) ^ d3h, word(from, 16) ^ d3l, 23)
    const b1h = rotate(word(from, 16) ^ d3l, word(from, 17) ^ d3h, 23)
    const b2l = rotate(word(from, 29) ^ d4h, word(from, 28) ^ d4l, 7)
    const b2h = rotate(word(from, 28) ^ d4l, word(from, 29) ^ d4h, 7)
    const b3l = rotate(word(from, 31) ^ d0h, word(from, 30) ^ d0l, 9)
    const b3h = rotate(word(from, 30) ^ d0l, word(from, 31) ^ d0h, 9)
    const b4l = rotate(word(from, 42) ^ d1l, word(from, 43) ^ d1h, 2)
    const b4h = rotate(word(from, 43) ^ d1h, word(from, 42) ^ d1l, 2)
    to[40] = b0l ^ (~b1l & b2l)
    to[41] = b0h ^ (~b1h & b2h)
    to[42] = b1l ^ (~b2l & b3l)
    to[43] = b1h ^ (~b2h & b3h)
    to[44] = b2l ^ (~b3l & b4l)
    to[45] = b2h ^ (~b3h & b4h)
    to[46] = b3l ^ (~b4l & b0l)
    to[47] = b3h ^ (~b4h & b0h)
    to[48] = b4l ^ (~b0l & b1l)
    to[49] = b4h ^ (~b0h & b1h)
  }
}
