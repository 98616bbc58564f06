/**
 * Every public module of `@trigate/tokens` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/tokens/…`: Node then loads only those.
 */

/** The service of the token chain: its tokens with their metadata, its address forms, and relayed JSON-RPC calls. */
export * as TokenChain from "./TokenChain.ts"

/** A token chain in memory. It responds from a state that a test sets, in the format of C++ servers. */
export * as TokenChainMemory from "./TokenChainMemory.ts"

/** `TokenChain` over the network: REST and JSON-RPC under `/api/v2` of a node's base URL. */
export * as TokenChainUpstream from "./TokenChainUpstream.ts"

/** The token chain in one layer, over undici, with the defaults of a single-process program. */
export * as Tokens from "./Tokens.ts"

/** Fetches metadata documents over undici, with protection against hostile URIs (SSRF). */
export * as MetadataFetchUndici from "./metadata/MetadataFetchUndici.ts"

/**
 * Streams of the token chain: an account's transactions in order and without gaps, and the jetton transfers that an
 * owner receives.
 */
export * as Transactions from "./transactions/Transactions.ts"
