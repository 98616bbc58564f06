/**
 * Every module of `@trigate/tokens` that needs no optional peer, as a namespace.
 *
 * Written by `npm run docs:generate`. Code that starts often imports the modules themselves, such as
 * `@trigate/tokens/…`: Node then loads only those.
 */

/** Decodes an upstream's response to `GET /api/v2/getTokenData`, in every known shape. */
export * as Dialect from "./Dialect.ts"

/** The token chain: its tokens, its address forms, and its relayed JSON-RPC. */
export * as TokenChain from "./TokenChain.ts"

/** A token chain in memory: responds from a state that tests fill, in the newer servers' dialect. */
export * as TokenChainMemory from "./TokenChainMemory.ts"

/** `TokenChain` over the network: REST and JSON-RPC under `/api/v2` of the base address of a node. */
export * as TokenChainUpstream from "./TokenChainUpstream.ts"

/** The token chain in one call: its service over undici, with the defaults of a program of one process. */
export * as Tokens from "./Tokens.ts"

/** A token's name, symbol and decimals: what the contract itself holds, else the document that it points to (TEP-64). */
export * as Metadata from "./metadata/Metadata.ts"

/** Reads the JSON document that a token's contract points to; servers of the chain never do. */
export * as MetadataFetch from "./metadata/MetadataFetch.ts"

/** Fetches metadata documents over undici, guarded against URIs that strangers wrote. */
export * as MetadataFetchUndici from "./metadata/MetadataFetchUndici.ts"

/** Fetches documents from hosts that strangers chose: the rules, apart from how names are resolved and bytes are sent. */
export * as MetadataGuard from "./metadata/MetadataGuard.ts"

/** Decides by the text of a URI alone whether it may be fetched, and from where. */
export * as MetadataTarget from "./metadata/MetadataTarget.ts"

/** Why a metadata document cannot be had. */
export * as MetadataUnavailable from "./metadata/MetadataUnavailable.ts"

/** One bounded GET to addresses that were checked before: the name is not resolved a second time. */
export * as UndiciExchange from "./metadata/UndiciExchange.ts"

/** Which addresses are on the public internet (IANA special-purpose registries, RFC 6890 and its updates). */
export * as UndiciPublicAddress from "./metadata/UndiciPublicAddress.ts"

/** The transactions of an account in their order, without a gap. */
export * as AccountHistory from "./transactions/AccountHistory.ts"

/** Reads a transaction from its cell, as `getTransactions` returns it in `data`. */
export * as TransactionCell from "./transactions/TransactionCell.ts"

/** Streams of the token chain: an account's transactions, and the jettons that an owner receives. */
export * as Transactions from "./transactions/Transactions.ts"
