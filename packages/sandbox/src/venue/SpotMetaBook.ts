/**
 * The spot tokens and pairs of the venue: a few real ones and many generated ones. The sequence of indexes has gaps.
 */
import type { SpotMeta, SpotPair, SpotToken } from "@trigate/domain/info/SpotMeta"
import type { Seed } from "../Seed.ts"
import * as Random from "../Seed.ts"

const quote = 0

const token = (
  index: number,
  name: string,
  tokenId: string,
  rest: Partial<SpotToken> = {}
): SpotToken => ({
  name,
  szDecimals: 2,
  weiDecimals: 8,
  index,
  tokenId,
  isCanonical: false,
  evmContract: null,
  fullName: null,
  deployerTradingFeeShare: "0.0",
  ...rest
})

/** Tokens that do not depend on the seed. */
const knownTokens: ReadonlyArray<SpotToken> = [
  token(0, "USDC", "0x6d1e7cde53ba9467b783cb7c530ce054", { szDecimals: 8, isCanonical: true }),
  token(1, "PURR", "0xc1fb593aeffbeb02f85e0308e9956a90", {
    szDecimals: 0,
    weiDecimals: 5,
    isCanonical: true,
    evmContract: { address: "0x9b498c3c8a0b8cd8ba1d9851d40d186f1872b44e", evm_extra_wei_decimals: 13 }
  }),
  token(150, "HYPE", "0x0d01dc56dcaaca66ad901c959b4011ec", {
    fullName: "Hyperliquid",
    evmContract: { address: "0x2222222222222222222222222222222222222222", evm_extra_wei_decimals: 10 }
  })
]

/** Pairs that do not depend on the seed. */
const knownPairs: ReadonlyArray<SpotPair> = [
  { tokens: [1, quote], name: "PURR/USDC", index: 0, isCanonical: true },
  { tokens: [150, quote], name: "@107", index: 107, isCanonical: false }
]

const syllables = "ba chi do fun ger hy jeff ka lqd mo nu pip ra su tor za".split(" ")

const makeName = (seed: Seed, index: number): string => {
  const family = Random.series(seed, `spot/${index}/name`)
  const parts = Array.from(
    { length: 2 + Random.below(family, 0, 2) },
    (_, part) => syllables[Random.below(family, part + 1, syllables.length)] ?? ""
  )
  // one name in sixteen ends with a space, because some real names do
  return `${parts.join("").toUpperCase()}${Random.below(family, 9, 16) === 0 ? " " : ""}`
}

const makeEvmContract = (seed: Seed, index: number) => {
  const family = Random.series(seed, `spot/${index}/evm`)
  return Random.below(family, 0, 3) > 0 ? null : {
    address: Random.hex(seed, `spot/${index}/address`, 40),
    evm_extra_wei_decimals: Random.below(family, 1, 21) - 2
  }
}

const madeToken = (seed: Seed, index: number): SpotToken => {
  const family = Random.series(seed, `spot/${index}`)
  return token(index, makeName(seed, index), Random.hex(seed, `spot/${index}/id`, 32), {
    szDecimals: Random.below(family, 1, 4),
    weiDecimals: 5 + Random.below(family, 2, 4),
    evmContract: makeEvmContract(seed, index),
    fullName: Random.below(family, 3, 4) === 0 ? `The ${makeName(seed, index).trim()} Token` : null,
    deployerTradingFeeShare: Random.below(family, 4, 5) === 0 ? "1.0" : "0.0"
  })
}

const lastToken = 460

/** The first token index after which indexes are missing, so that a token's position can differ from its index. */
const firstTokenHole = 300

const isHole = (seed: Seed, kind: string, index: number): boolean =>
  Random.below(Random.series(seed, `spot/holes/${kind}`), index, 6) === 0

const madeTokens = (seed: Seed): ReadonlyArray<SpotToken> =>
  Array.from({ length: lastToken - 1 }, (_, offset) => offset + 2)
    .filter((index) => index !== 150 && (index < firstTokenHole || !isHole(seed, "token", index)))
    .map((index) => madeToken(seed, index))

/**
 * Makes pairs. Uses only tokens whose position in the list equals their index. Some libraries look up tokens by
 * position: ccxt, and the venue's Python SDK before 0.23.0. The constructor of the SDK fails if a pair names a token
 * that is not listed.
 */
const madePairs = (seed: Seed, tokens: ReadonlyArray<SpotToken>): ReadonlyArray<SpotPair> =>
  tokens.filter(({ index }) => index < firstTokenHole)
    .map((base, offset): SpotPair => ({
      // one pair in thirty has a quote token other than USDC
      tokens: [base.index, Random.below(Random.series(seed, "spot/quotes"), offset, 30) === 0 ? 150 : quote],
      name: `@${offset + 1}`,
      index: offset + 1,
      isCanonical: false
    }))
    .filter(({ index }) => index !== 107 && !isHole(seed, "pair", index))

const byIndex = (a: { readonly index: number }, b: { readonly index: number }): number => a.index - b.index

/**
 * Makes all spot tokens and pairs for a seed.
 *
 * The indexes of tokens and of pairs have gaps, so the position of a token or pair in its list can differ from its
 * index. For every token that is part of a pair, the position equals the index.
 */
export const make = (seed: Seed): SpotMeta => {
  const tokens = madeTokens(seed)
  return {
    universe: [...knownPairs, ...madePairs(seed, tokens)].toSorted(byIndex),
    tokens: [...knownTokens, ...tokens].toSorted(byIndex)
  }
}
