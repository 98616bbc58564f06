/** keccak-256: the original padding, as Ethereum has it, not that of SHA-3. */
import { keccakRound } from "./keccakRound.ts"

const rounds = 24

/** Bytes that a block takes: the state without twice the digest. */
const rate = 136

const digestBytes = 32

/** The words of each round's constant, out of the shift register that Keccak defines them by. */
const roundConstants = (() => {
  const words = new Int32Array(rounds * 2)
  let register = 1
  for (let round = 0; round < rounds; round++) {
    let constant = 0n
    for (let power = 0; power < 7; power++) {
      if ((register & 1) === 1) {
        constant ^= 1n << ((1n << BigInt(power)) - 1n)
      }
      register = (register << 1) ^ ((register >> 7) * 0x171)
    }
    words[round * 2] = Number(BigInt.asIntN(32, constant))
    words[round * 2 + 1] = Number(BigInt.asIntN(32, constant >> 32n))
  }
  return words
})()

/** Hashing is synchronous and starts from zeros, so one state serves every call. */
const state = new Int32Array(50)

const scratch = new Int32Array(50)

const permute = (): void => {
  for (let round = 0; round < rounds; round += 2) {
    keccakRound(state, scratch, roundConstants[round * 2] ?? 0, roundConstants[round * 2 + 1] ?? 0)
    keccakRound(scratch, state, roundConstants[round * 2 + 2] ?? 0, roundConstants[round * 2 + 3] ?? 0)
  }
}

const last = new Uint8Array(rate)

const lastView = new DataView(last.buffer)

const absorb = (block: DataView, at: number): void => {
  for (let index = 0; index < rate / 4; index++) {
    state[index] = (state[index] ?? 0) ^ block.getInt32(at + index * 4, true)
  }
  permute()
}

const squeeze = (): Uint8Array => {
  for (let index = 0; index < digestBytes / 4; index++) {
    lastView.setInt32(index * 4, state[index] ?? 0, true)
  }
  return last.slice(0, digestBytes)
}

/** The 32-byte hash of bytes of any length. */
export const keccak256 = (bytes: Uint8Array): Uint8Array => {
  state.fill(0)
  const rest = bytes.length % rate
  if (rest < bytes.length) {
    const blocks = new DataView(bytes.buffer, bytes.byteOffset, bytes.length - rest)
    for (let at = 0; at < blocks.byteLength; at += rate) {
      absorb(blocks, at)
    }
  }
  last.fill(0)
  last.set(rest < bytes.length ? bytes.subarray(bytes.length - rest) : bytes)
  last[rest] = 0x01
  last[rate - 1] = (last[rate - 1] ?? 0) | 0x80
  absorb(lastView, 0)
  return squeeze()
}
