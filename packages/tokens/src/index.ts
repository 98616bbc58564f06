/**
 * Every module of `@trigate/tokens` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/tokens/…`: Node then loads only those.
 */

/** Decodes an upstream's response to `GET /api/v2/getTokenData`, in every known shape. */
export * as Dialect from "./Dialect.ts"

/** The service of the token chain: its tokens, its address forms, and relayed JSON-RPC calls. */
export * as TokenChain from "./TokenChain.ts"

/** A token chain in memory. It responds from a state that a test sets, in the format of C++ servers. */
export * as TokenChainMemory from "./TokenChainMemory.ts"

/** `TokenChain` over the network: REST and JSON-RPC under `/api/v2` of a node's base URL. */
export * as TokenChainUpstream from "./TokenChainUpstream.ts"

/** The token chain in one layer, over undici, with the defaults of a single-process program. */
export * as Tokens from "./Tokens.ts"

/**
 * Determines a token's name, symbol and decimals: from the contract itself, otherwise from its metadata document
 * (TEP-64).
 */
export * as Metadata from "./metadata/Metadata.ts"

/** Fetches the JSON document to which a token's contract refers. The chain's servers never fetch it. */
export * as MetadataFetch from "./metadata/MetadataFetch.ts"

/** Fetches metadata documents over undici, with protection against hostile URIs (SSRF). */
export * as MetadataFetchUndici from "./metadata/MetadataFetchUndici.ts"

/** The rules for fetching documents from untrusted hosts, independent of name resolution and transport. */
export * as MetadataGuard from "./metadata/MetadataGuard.ts"

/** Determines, from the text of a metadata URI, whether the gateway is allowed to fetch it, and from which URL. */
export * as MetadataTarget from "./metadata/MetadataTarget.ts"

/** The error of a metadata document that cannot be fetched. */
export * as MetadataUnavailable from "./metadata/MetadataUnavailable.ts"

/**
 * Sends one GET request to addresses that were already checked. The host name is not resolved again, and the size of
 * the response is limited.
 */
export * as UndiciExchange from "./metadata/UndiciExchange.ts"

/** Determines whether an IP address is public (IANA special-purpose registries, RFC 6890 and its updates). */
export * as UndiciPublicAddress from "./metadata/UndiciPublicAddress.ts"

/** The transactions of an account, in order and without gaps. */
export * as AccountHistory from "./transactions/AccountHistory.ts"

/** Decodes a transaction from its cell, which `getTransactions` returns in `data`. */
export * as TransactionCell from "./transactions/TransactionCell.ts"

/** Streams of the token chain: an account's transactions, and the jetton transfers that an owner receives. */
export * as Transactions from "./transactions/Transactions.ts"
