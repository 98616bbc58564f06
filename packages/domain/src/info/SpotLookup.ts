/**
 * Finds spot pairs and tokens by the names and indexes that callers use.
 *
 * Indexes are not array positions, names are not unique, and a pair may refer to an unlisted token, so every lookup
 * returns an `Option` or an array.
 */
import * as Option from "effect/Option"
import type { SpotMeta, SpotPair, SpotToken } from "./SpotMeta.ts"

/** The two tokens of a pair; `None` for a token that is not listed. */
export interface PairTokens {
  readonly base: Option.Option<SpotToken>
  readonly quote: Option.Option<SpotToken>
}

/** Lookups over one `spotMeta` response. */
export interface SpotLookup {
  readonly pair: (index: number) => Option.Option<SpotPair>
  readonly pairsByName: (name: string) => ReadonlyArray<SpotPair>
  /** Returns the pairs that have the token as base or quote, in the order of the response. */
  readonly pairsWith: (tokenIndex: number) => ReadonlyArray<SpotPair>
  readonly token: (index: number) => Option.Option<SpotToken>
  readonly tokensByName: (name: string) => ReadonlyArray<SpotToken>
  /** Returns a token by `tokenId`, its only unique key, in any letter case. */
  readonly tokenById: (tokenId: string) => Option.Option<SpotToken>
  readonly tokensOf: (pair: SpotPair) => PairTokens
}

/**
 * Indexes a `spotMeta` response, so that each lookup takes constant time. If several tokens or pairs have the same
 * index or ID, the lookup returns the first.
 */
export const make = (meta: SpotMeta): SpotLookup => {
  const pairs = Map.groupBy(meta.universe, (pair) => pair.index)
  const pairNames = Map.groupBy(meta.universe, (pair) => pair.name)
  const pairTokens = Map.groupBy(
    meta.universe.flatMap((pair) => Array.from(new Set(pair.tokens), (token) => ({ token, pair }))),
    ({ token }) => token
  )
  const tokens = Map.groupBy(meta.tokens, (token) => token.index)
  const tokenNames = Map.groupBy(meta.tokens, (token) => token.name)
  const tokenIds = Map.groupBy(meta.tokens, (token) => token.tokenId.toLowerCase())
  const token = (index: number) => Option.fromUndefinedOr(tokens.get(index)?.[0])
  return {
    pair: (index) => Option.fromUndefinedOr(pairs.get(index)?.[0]),
    pairsByName: (name) => pairNames.get(name) ?? [],
    pairsWith: (tokenIndex) => pairTokens.get(tokenIndex)?.map(({ pair }) => pair) ?? [],
    token,
    tokensByName: (name) => tokenNames.get(name) ?? [],
    tokenById: (tokenId) => Option.fromUndefinedOr(tokenIds.get(tokenId.toLowerCase())?.[0]),
    tokensOf: ({ tokens: [base, quote] }) => ({ base: token(base), quote: token(quote) })
  }
}
