/**
 * Every module of `@trigate/domain` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/domain/…`: Node then loads only those.
 */

/** The caller of a request, its scope, and its quota. */
export * as Caller from "./Caller.ts"

/** The chains of the gateway by their roles, and the kinds of upstreams that serve them. */
export * as Chain from "./Chain.ts"

/** Suggestions for misspelled names in error messages ("did you mean"). */
export * as ClosestWord from "./ClosestWord.ts"

/** Declarations of metrics: name, kind, labels and meaning. */
export * as DeclaredMetric from "./DeclaredMetric.ts"

/** The response of `POST /exchange/inspect`, which describes a signed body without relaying it. */
export * as Inspection from "./Inspection.ts"

/** The account that programs and web pages use to trade in a sandbox. Its key is public: never send it real funds. */
export * as SandboxAccounts from "./SandboxAccounts.ts"

/**
 * The faults that a sandbox's venue can inject. The sandbox's settings, its control routes, and the gateway's API
 * contract use this declaration.
 */
export * as SandboxFaults from "./SandboxFaults.ts"

/** Declarations of settings: the environment variable, the accepted values, the default and the documentation. */
export * as Setting from "./Setting.ts"

/** Steps in a SQL database, for the stores of several packages. */
export * as SqlStep from "./SqlStep.ts"

/** Timestamps in milliseconds, the venue's unit. */
export * as Time from "./Time.ts"

/**
 * Schemas of the actions whose members the gateway decodes. Most of these actions have two forms: the form that the
 * venue accepts, and the form in the venue's documentation. For every other action of the catalog, the gateway decodes
 * only the members beside the action, such as the nonce and the signature.
 */
export * as Action from "./actions/Action.ts"

/**
 * The catalog of known actions: every action type that the venue's client libraries publish, its signing scheme, and
 * the member that lists the entries of a batch, if any.
 */
export * as ActionCatalog from "./actions/ActionCatalog.ts"

/** Errors of signed actions that are refused before they are sent because of their nonce, signature or signer. */
export * as ActionError from "./actions/ActionError.ts"

/** The venue's responses to signed actions: HTTP 200 does not mean success, and the venue can reject a part of a batch. */
export * as ActionOutcome from "./actions/ActionOutcome.ts"

/** The record of one signed action that the gateway sent: the action's state, and how its outcome was determined. */
export * as ActionRecord from "./actions/ActionRecord.ts"

/** The schemas of all actions of the catalog, in the form that the venue accepts. */
export * as ActionSchemas from "./actions/ActionSchemas.ts"

/** The signed actions of `POST /exchange`. Each action is sent at most once. */
export * as ExchangeOperations from "./actions/ExchangeOperations.ts"

/** Decodes responses to signed actions: determines whether the venue itself responded, and the reported outcome. */
export * as ExchangeProtocol from "./actions/ExchangeProtocol.ts"

/** Derives the result of one order of a batch from the state of that order at the venue. */
export * as OrderOutcome from "./actions/OrderOutcome.ts"

/** Advice for refused orders, by rejection reason. */
export * as RejectionAdvice from "./actions/RejectionAdvice.ts"

/** Determines the unknown outcome of an action from the result of sending the identical bytes again. */
export * as Resolution from "./actions/Resolution.ts"

/** Schemas of signatures, as the venue encodes them. */
export * as Signature from "./actions/Signature.ts"

/** The body of `POST /exchange`: an action, its nonce and its signature. */
export * as SignedAction from "./actions/SignedAction.ts"

/**
 * Candles (OHLCV bars) of the trading chain: where bars begin, how far back the venue retains them, which bars a response
 * omits, and where a gateway's bars are from.
 */
export * as Candle from "./candles/Candle.ts"

/** Bars as text: responses to candle queries in the venue's JSON, and files in NDJSON and CSV. */
export * as CandleText from "./candles/CandleText.ts"

/** 0x-prefixed hexadecimal values, as EVM nodes format them. */
export * as Hex from "./encoding/Hex.ts"

/** JSON integers of any size. */
export * as Integer from "./encoding/Integer.ts"

/** JSON documents that retain their text: the text is sent as received, and is parsed only once. */
export * as Json from "./encoding/Json.ts"

/** Schemas of objects that can have unknown members, and leave out known ones. */
export * as OpenStruct from "./encoding/OpenStruct.ts"

/** Escapes text from callers and servers for terminals and logs. */
export * as TerminalEscape from "./encoding/TerminalEscape.ts"

/** Encodes and decodes UTF-8, and joins chunks of bytes. */
export * as Utf8 from "./encoding/Utf8.ts"

/** Errors of candle history: the gateway does not record candles, or its candle archive is unavailable. */
export * as ArchiveError from "./errors/ArchiveError.ts"

/**
 * Errors that any request can fail with: the caller's key, scope or quota does not permit the request, or the gateway
 * is overloaded.
 */
export * as CallerError from "./errors/CallerError.ts"

/** The four error groups, each with advice for the caller. */
export * as ErrorGroup from "./errors/ErrorGroup.ts"

/** Rewrites schema errors for readers who do not know the schemas: replaces schema names with descriptions. */
export * as ErrorMessages from "./errors/ErrorMessages.ts"

/** The closed set of errors that services raise, the server sends, and the client decodes. */
export * as GatewayError from "./errors/GatewayError.ts"

/** The base of typed errors: an RFC 9457 problem with a stable type URI, a tag and a group. */
export * as Problem from "./errors/Problem.ts"

/**
 * Errors of requests that the gateway refuses because of their content or their caller, or because of its own
 * configuration. Nothing was sent to an upstream.
 */
export * as RequestError from "./errors/RequestError.ts"

/** Errors for a resource that does not exist at the upstream. */
export * as ResourceError from "./errors/ResourceError.ts"

/** Errors of calls without a decoded response: the call was not sent, or no response was received and decoded. */
export * as TransportFailure from "./errors/TransportFailure.ts"

/** Errors of upstreams: no response, a late response, or a malformed one. `upstream` is a label, never a URL. */
export * as UpstreamError from "./errors/UpstreamError.ts"

/** Blocks of an EVM chain, and references to them. */
export * as Block from "./evm/Block.ts"

/**
 * An EVM node in memory, for tests: methods return the responses that a test set, subscribers receive the items that a
 * test sends, and transactions are refused.
 */
export * as EvmMemory from "./evm/EvmMemory.ts"

/** The table of the EVM read methods that the gateway relays unchanged. */
export * as EvmMethodTable from "./evm/EvmMethodTable.ts"

/**
 * The standard methods of an EVM node, as operations of the chain that the node serves: reads, which are relayed
 * unchanged, and raw transactions.
 */
export * as EvmMethods from "./evm/EvmMethods.ts"

/** The JSON-RPC methods of `POST /evm`: the trading chain's EVM. */
export * as EvmOperations from "./evm/EvmOperations.ts"

/** The JSON-RPC protocol of EVM nodes: validates and encodes calls, and classifies and decodes responses. */
export * as EvmProtocol from "./evm/EvmProtocol.ts"

/** The typed reads that all EVM chains serve, as functions of the route. */
export * as EvmReads from "./evm/EvmReads.ts"

/**
 * The typed streams of an EVM chain. This module decodes the notifications of the chain's subscriptions, and makes
 * typed streams from a shared source of blocks and logs.
 */
export * as EvmStreams from "./evm/EvmStreams.ts"

/**
 * Declarations of the typed subscriptions of an EVM chain; the methods of the services, the client and the memory layers are
 * derived from them.
 */
export * as EvmSubscriptions from "./evm/EvmSubscriptions.ts"

/** Typed calls of EVM nodes: encodes requests as params, and decodes results, typed errors and the nodes' own errors. */
export * as EvmTypedCalls from "./evm/EvmTypedCalls.ts"

/**
 * Converts token amounts between an exact `bigint` of smallest units and a decimal string. Converts gas prices and fees
 * between wei, gwei (10^9 wei) and ether (10^18 wei).
 */
export * as Gas from "./evm/Gas.ts"

/** The JSON-RPC methods of `POST /l2`: any EVM layer 2. */
export * as Layer2Operations from "./evm/Layer2Operations.ts"

/** Matches logs against filters as nodes do. */
export * as LogMatch from "./evm/LogMatch.ts"

/** Classifies the errors with which nodes refuse an `eth_getLogs` request. */
export * as LogRefusal from "./evm/LogRefusal.ts"

/** Transaction receipts of EVM layer 2s. Documented fields are decoded; fields that a chain family adds are preserved. */
export * as Receipt from "./evm/Receipt.ts"

/** Accounts of the trading chain: positions and balances, roles, limits, fees and API wallets. */
export * as Account from "./info/Account.ts"

/** Finds the asset number used in orders, from the venue's metadata. */
export * as AssetLookup from "./info/AssetLookup.ts"

/**
 * Compares a venue with the queries that this version declares: which query types it refuses, and which members of its
 * responses are missing or unknown. A read-only check can run these queries against a venue before a release.
 */
export * as InfoDrift from "./info/InfoDrift.ts"

/**
 * Returns the topic of each query type (market data, a user's state, or an action's outcome) and the default maximum
 * age of its cached responses. Also validates the setting for maximum ages.
 */
export * as InfoFreshness from "./info/InfoFreshness.ts"

/** The queries of `POST /info`. */
export * as InfoOperations from "./info/InfoOperations.ts"

/** The protocol of `POST /info`: validates and encodes queries, and classifies and decodes responses. */
export * as InfoProtocol from "./info/InfoProtocol.ts"

/**
 * The types of `POST /info` queries: for each, the rate-limit weight, the topic, and the maximum age of a cached
 * response.
 */
export * as InfoQueryTable from "./info/InfoQueryTable.ts"

/**
 * Perpetuals of the trading chain: listings, prices, books, trades and funding; and the outcomes of prediction markets.
 * Spot pairs are in `SpotMeta`.
 */
export * as Market from "./info/Market.ts"

/** Orders and fills of a user of the trading chain. */
export * as Order from "./info/Order.ts"

/** Finds spot pairs and tokens by the names and indexes that callers use. */
export * as SpotLookup from "./info/SpotLookup.ts"

/** Spot tokens and pairs of the trading chain, as `spotMeta` returns them. */
export * as SpotMeta from "./info/SpotMeta.ts"

/** JSON-RPC 2.0 as text: decodes and encodes envelopes without re-encoding their content. */
export * as JsonRpc from "./operations/JsonRpc.ts"

/** The responses of an in-memory service. A test sets them for each operation. */
export * as MemoryAnswers from "./operations/MemoryAnswers.ts"

/** Declarations of operations: each upstream call is declared once, next to its schemas. */
export * as Operation from "./operations/Operation.ts"

/**
 * The interface between a wire protocol and the request pipeline: the classification of attempts to call an upstream,
 * the decoders of responses, and the backend of a chain.
 */
export * as Protocol from "./operations/Protocol.ts"

/** An upstream's response as received. Routes relay the response; typed methods decode it. */
export * as UpstreamResponse from "./operations/UpstreamResponse.ts"

/** The subscriptions of an account: its state, orders, fills and transfers. */
export * as AccountSubscriptions from "./streams/AccountSubscriptions.ts"

/** The subscriptions of markets: prices, books, trades and bars. */
export * as MarketSubscriptions from "./streams/MarketSubscriptions.ts"

/**
 * The position from which a stream resumes after a lost connection. An event's ID is its position, formatted as
 * `<epoch>:<seq>`.
 */
export * as ResumePosition from "./streams/ResumePosition.ts"

/** The errors of typed streams. */
export * as StreamError from "./streams/StreamError.ts"

/** Decodes the frames of a subscription to the items of a typed stream. */
export * as StreamItems from "./streams/StreamItems.ts"

/** Declarations of subscriptions: each stream of the venue's WebSocket is declared once, next to its schemas. */
export * as Subscription from "./streams/Subscription.ts"

/** Schemas for the members of subscription requests, with the venue's defaults. */
export * as SubscriptionRequests from "./streams/SubscriptionRequests.ts"

/** The subscriptions of the venue's WebSocket, and of `GET /ws`. */
export * as Subscriptions from "./streams/Subscriptions.ts"

/** A transaction of an account of the token chain, its position in the account's history, and a received jetton transfer. */
export * as AccountTransaction from "./tokens/AccountTransaction.ts"

/** The response of `GET /api/v2/getTokenData`, and the four kinds of token contracts that TON servers return. */
export * as TokenData from "./tokens/TokenData.ts"

/** The calls of the token chain: `GET /api/v2/getTokenData`, and the methods of `POST /api/v2/jsonRPC`. */
export * as TokenOperations from "./tokens/TokenOperations.ts"

/** The token chain's REST and JSON-RPC protocols: validates and encodes calls, and classifies responses. */
export * as TokenProtocol from "./tokens/TokenProtocol.ts"

/** The token chain's envelope: `{ok, result}` or `{ok: false, error, code}`, which is not JSON-RPC 2.0. */
export * as TokenRpc from "./tokens/TokenRpc.ts"

/** Token-chain addresses: parses, validates and formats the friendly and the raw form. */
export * as TonAddress from "./tokens/TonAddress.ts"
