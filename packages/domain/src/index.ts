/**
 * Every public module of `@trigate/domain` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/domain/…`: Node then loads only those.
 */

/** The caller of a request, its scope and its quota; and the chains of the gateway by their roles, which a scope names. */
export * as Caller from "./Caller.ts"

/**
 * Signed actions and `POST /exchange`: the catalog of every action type that the venue's client libraries publish, the
 * schemas of the actions whose members the gateway decodes, the body, the operations, and the decoding of the venue's
 * responses.
 */
export * as Action from "./actions/Action.ts"

/** The venue's responses to signed actions: HTTP 200 does not mean success, and the venue can reject a part of a batch. */
export * as ActionOutcome from "./actions/ActionOutcome.ts"

/** The document of policies: what the guard lets pass for which accounts. */
export * as Policy from "./actions/Policy.ts"

/** Determines the unknown outcome of an action from the result of sending the identical bytes again. */
export * as Resolution from "./actions/Resolution.ts"

/**
 * Candles (OHLCV bars) of the venue: where bars begin, how far back the venue retains them, which bars a response
 * omits, and where a gateway's bars are from.
 */
export * as Candle from "./candles/Candle.ts"

/**
 * The encodings that every schema and every protocol uses: JSON documents that retain their text, UTF-8, hexadecimal
 * values, integers of any size, times, and objects with unknown members.
 */
export * as Encoding from "./encoding/Encoding.ts"

/**
 * The closed set of errors that services raise, the server sends, and the client decodes: errors of the request, of the
 * caller, of signed actions, of resources and of upstreams.
 */
export * as GatewayError from "./errors/GatewayError.ts"

/** The base of typed errors: an RFC 9457 problem with a stable type URI, a tag and a group with advice for the caller. */
export * as Problem from "./errors/Problem.ts"

/**
 * The JSON-RPC protocol: envelopes as text, the methods of `POST /evm`, and the calls of EVM nodes, which this module
 * validates, encodes, classifies and decodes.
 */
export * as EvmProtocol from "./evm/EvmProtocol.ts"

/**
 * The resources of an EVM chain: blocks and references to them, receipts, logs and the filters that match them, and
 * amounts of gas and tokens.
 */
export * as EvmResources from "./evm/EvmResources.ts"

/** The JSON-RPC methods of `POST /l2`: any EVM layer 2. */
export * as Layer2Operations from "./evm/Layer2Operations.ts"

/** Accounts of the venue: positions and balances, orders and fills, roles, limits, fees and API wallets. */
export * as Account from "./info/Account.ts"

/**
 * The queries of `POST /info`: their types with rate-limit weight, topic and maximum age, the operations with their
 * schemas, and the protocol that encodes, classifies and decodes them.
 */
export * as InfoOperations from "./info/InfoOperations.ts"

/**
 * The markets of the venue: perpetuals, spot tokens and pairs, outcomes of prediction markets, and the asset
 * numbers used in orders.
 */
export * as Market from "./info/Market.ts"

/**
 * Operations, their protocols and their responses: each upstream call is declared once, next to its schemas; a protocol
 * writes the call and classifies the upstream's response.
 */
export * as Operation from "./operations/Operation.ts"

/** The subscriptions of markets: prices, books, trades and bars. */
export * as MarketSubscriptions from "./streams/MarketSubscriptions.ts"

/** The resources of the token chain: addresses, tokens with their four kinds of contracts, and transactions of accounts. */
export * as TokenData from "./tokens/TokenData.ts"

/** The calls of the token chain: `GET /api/v2/getTokenData`, and the methods of `POST /api/v2/jsonRPC`. */
export * as TokenOperations from "./tokens/TokenOperations.ts"
