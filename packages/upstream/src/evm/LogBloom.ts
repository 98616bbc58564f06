/** Tests whether a block's bloom filter can match a selection of logs (yellow paper, 4.3.1). */
import { keccak_256 } from "@noble/hashes/sha3"
import { hexToBytes } from "@noble/hashes/utils"
import type { LogSelection } from "@trigate/domain/evm/LogMatch"

/** The three bits of an address or a topic: the index of a hex digit in the bloom filter, and the bit in that digit. */
type Bits = ReadonlyArray<{ readonly digit: number; readonly bit: number }>

const DIGITS = 512

const mostKnown = 10_000
const known = new Map<string, Bits>()

const bloomBits = (value: string): Bits => {
  const found = known.get(value)
  if (found !== undefined) return found
  const hash = keccak_256(hexToBytes(value.slice(2)))
  const bits = [0, 2, 4].map((at) => {
    const index = ((hash[at] ?? 0) << 8 | (hash[at + 1] ?? 0)) & 2047
    return { digit: DIGITS - 1 - (index >> 2), bit: 1 << (index & 3) }
  })
  if (known.size >= mostKnown) known.clear()
  known.set(value, bits)
  return bits
}

const isHex = /^0x(?:[0-9a-f]{2})*$/u

const has = (bloom: string, value: string): boolean =>
  !isHex.test(value) ||
  bloomBits(value).every(({ bit, digit }) => (Number.parseInt(bloom[digit + 2] ?? "f", 16) & bit) !== 0)

const hasSome = (bloom: string, values: ReadonlySet<string>): boolean => {
  if (values.size === 0) return true
  for (const value of values) if (has(bloom, value)) return true
  return false
}

const isEmpty = /^0x0*$/u

/** Returns whether a block may contain logs of a selection. A missing or malformed bloom filter excludes nothing. */
export const mayHave = (bloom: string | undefined, { addresses, topics }: LogSelection): boolean =>
  bloom === undefined || bloom.length !== DIGITS + 2 ||
  (!isEmpty.test(bloom) && hasSome(bloom, addresses) && topics.every((position) => hasSome(bloom, position)))
