/**
 * Every module of `@trigate/domain` that needs no optional peer, as a namespace.
 *
 * Written by `npm run docs:generate`. Code that starts often imports the modules themselves, such as
 * `@trigate/domain/…`: Node then loads only those.
 */

/** The caller of a request, its scope, and its quota. */
export * as Caller from "./Caller.ts"

/** The chains of the gateway by their roles, and the kinds of upstreams that serve them. */
export * as Chain from "./Chain.ts"

/** The "did you mean" of messages. */
export * as ClosestWord from "./ClosestWord.ts"

/** How a metric is declared: name, kind, labels and meaning. */
export * as DeclaredMetric from "./DeclaredMetric.ts"

/** What the gateway sees in a signed body: the answer of `POST /exchange/inspect`, which relays nothing. */
export * as Inspection from "./Inspection.ts"

/** The account that programs and pages trade with in a sandbox. Everyone has its key: never send value to it. */
export * as SandboxAccounts from "./SandboxAccounts.ts"

/** Faults that a sandbox's venue causes on purpose. Its settings, its controls and the contract of a gateway read this declaration. */
export * as SandboxFaults from "./SandboxFaults.ts"

/** How a setting is declared: the environment variable, the accepted text, the default and the documentation. */
export * as Setting from "./Setting.ts"

/** Instants as the venue counts them. */
export * as Time from "./Time.ts"

/**
 * The actions whose members are decoded: each in the form that the real wire accepts and in the form that the documents list. Of
 * all other actions of the catalog only the envelope is decoded.
 */
export * as Action from "./actions/Action.ts"

/**
 * The catalog of known actions: every action type that the venue's client libraries publish, how it is signed, and the member
 * whose entries the venue bills as a batch.
 */
export * as ActionCatalog from "./actions/ActionCatalog.ts"

/** Why a signed action was refused before it was sent: its nonce, its signature or its signer. */
export * as ActionError from "./actions/ActionError.ts"

/** The venue's responses to signed actions: HTTP 200 is not success, and a batch can be rejected in part. */
export * as ActionOutcome from "./actions/ActionOutcome.ts"

/** What a gateway knows of one signed action that it sent: its state, and how that became known. */
export * as ActionRecord from "./actions/ActionRecord.ts"

/** The shape of every action of the catalog: its members on each level, what each is, and the words that it may be. */
export * as ActionSchemas from "./actions/ActionSchemas.ts"

/** The signed actions of `POST /exchange`. Each is sent at most once. */
export * as ExchangeOperations from "./actions/ExchangeOperations.ts"

/** The venue's responses to signed actions: whether a response is the venue's own, and the outcome it reports. */
export * as ExchangeProtocol from "./actions/ExchangeProtocol.ts"

/** What the venue's state of an order says of the leg that placed it. */
export * as OrderOutcome from "./actions/OrderOutcome.ts"

/** What to do about a refused order, by the reason of the refusal. */
export * as RejectionAdvice from "./actions/RejectionAdvice.ts"

/** The outcome of an action that was unknown, as determined by sending the identical bytes again. */
export * as Resolution from "./actions/Resolution.ts"

/** A signature as the venue takes it. */
export * as Signature from "./actions/Signature.ts"

/** The body of `POST /exchange`: an action, its nonce and its signature. */
export * as SignedAction from "./actions/SignedAction.ts"

/** Sets of bar numbers (`CandleWindow.barAt`) as ranges: which bars of a series are known, and which are missing. */
export * as BarRanges from "./candles/BarRanges.ts"

/** Candles (OHLCV bars) of the trading chain. */
export * as Candle from "./candles/Candle.ts"

/**
 * Responses to candle queries: their number of bars, whether one is final and can be cached, how one is written, and the sources
 * of its bars.
 */
export * as CandleAnswer from "./candles/CandleAnswer.ts"

/** Files of bars, and bars as lines of text: ndjson in the venue's own form, and CSV with a line of headings. */
export * as CandleText from "./candles/CandleText.ts"

/** Walks a window of any length in stretches that one answer of the venue can hold. */
export * as CandleWalk from "./candles/CandleWalk.ts"

/** Windows of bars: where bars begin, how far back the venue retains them, and which bars a response omits. */
export * as CandleWindow from "./candles/CandleWindow.ts"

/** 0x-prefixed hexadecimal values as EVM wires spell them. */
export * as Hex from "./encoding/Hex.ts"

/** JSON integers of any size. */
export * as Integer from "./encoding/Integer.ts"

/** JSON that travels with its text: the text is sent as received, the value is read, and neither is made twice. */
export * as Json from "./encoding/Json.ts"

/** Objects of a wire that may have more members than are known here. */
export * as OpenStruct from "./encoding/OpenStruct.ts"

/** Texts of callers and servers, safe to print on a terminal and to write into a log. */
export * as TerminalEscape from "./encoding/TerminalEscape.ts"

/** Text as UTF-8 bytes and back, and bytes that came in pieces. */
export * as Utf8 from "./encoding/Utf8.ts"

/** Why candle history cannot be given: nothing keeps it, or what keeps it cannot be used. */
export * as ArchiveError from "./errors/ArchiveError.ts"

/** Why the caller was refused, whatever the request: its key, its scope, its quota, or a busy gateway. */
export * as CallerError from "./errors/CallerError.ts"

/** What a caller does about an error: the four groups. */
export * as ErrorGroup from "./errors/ErrorGroup.ts"

/** Faults for readers who do not know our schemas: replaces schema names in messages with descriptions. */
export * as ErrorMessages from "./errors/ErrorMessages.ts"

/** The closed set of errors that a chain's service raises, the server sends and the client decodes. */
export * as GatewayError from "./errors/GatewayError.ts"

/** The common part of typed errors: an RFC 9457 problem with a stable type URI, its tag on the wire, and its group. */
export * as Problem from "./errors/Problem.ts"

/** Why a request was refused here, by its content or because of its caller. Nothing of it was sent to an upstream. */
export * as RequestError from "./errors/RequestError.ts"

/** The upstream reports that the requested resource does not exist. */
export * as ResourceError from "./errors/ResourceError.ts"

/** What sending a call can end in before there is an answer to read. */
export * as TransportFailure from "./errors/TransportFailure.ts"

/** The upstream did not respond, responded too late, or sent a malformed response. `upstream` is a label, never an address. */
export * as UpstreamError from "./errors/UpstreamError.ts"

/** Blocks of an EVM chain, and which of them a call names. */
export * as Block from "./evm/Block.ts"

/** The reads of EVM nodes that are relayed as they are, as data. */
export * as EvmMethodTable from "./evm/EvmMethodTable.ts"

/**
 * The methods of an EVM node that stock clients call, as operations of the chain that serves them: reads that are relayed as they
 * are, and the sending of a raw transaction.
 */
export * as EvmMethods from "./evm/EvmMethods.ts"

/** The JSON-RPC methods of `POST /evm`: the trading chain's EVM. */
export * as EvmOperations from "./evm/EvmOperations.ts"

/** The JSON-RPC of EVM nodes: how calls are checked and written, and how their responses are judged and read. */
export * as EvmProtocol from "./evm/EvmProtocol.ts"

/** The typed reads that nodes of every EVM chain answer, each for the route that serves it. */
export * as EvmReads from "./evm/EvmReads.ts"

/**
 * Amounts in smallest units, exact on `bigint`, and as decimal numbers: of any token, and gas in wei, gwei (10^9 wei) and
 * ether (10^18 wei).
 */
export * as Gas from "./evm/Gas.ts"

/** The JSON-RPC methods of `POST /l2`: any EVM layer 2. */
export * as Layer2Operations from "./evm/Layer2Operations.ts"

/** Which logs a filter selects, as nodes decide it. */
export * as LogMatch from "./evm/LogMatch.ts"

/** How nodes refuse an `eth_getLogs` that is too large, and what their words say of the limit. */
export * as LogRefusal from "./evm/LogRefusal.ts"

/** Transaction receipts of EVM layer 2s: documented fields are decoded, extra fields of every family are preserved. */
export * as Receipt from "./evm/Receipt.ts"

/** Accounts of the trading chain: positions and balances, roles, limits, fees and API wallets. */
export * as Account from "./info/Account.ts"

/** Finds the number by which orders name an asset, from the lists of the venue. */
export * as AssetLookup from "./info/AssetLookup.ts"

/** The types of queries, the topic of each, and the response ages that the setting allows. */
export * as InfoFreshness from "./info/InfoFreshness.ts"

/** The queries of `POST /info`. */
export * as InfoOperations from "./info/InfoOperations.ts"

/** The queries of `POST /info`: how they are checked and written, and how their responses are judged and read. */
export * as InfoProtocol from "./info/InfoProtocol.ts"

/**
 * The types of `POST /info` queries that the venue documents, as data: the weight of each, its topic, and the maximum age of a
 * cached response.
 */
export * as InfoQueryTable from "./info/InfoQueryTable.ts"

/** Perpetuals of the trading chain: listings, prices, books, trades and funding. Spot pairs are in `SpotMeta`. */
export * as Market from "./info/Market.ts"

/** Orders and fills of a user of the trading chain. */
export * as Order from "./info/Order.ts"

/** Finds spot pairs and tokens by the names and indexes that callers use. */
export * as SpotLookup from "./info/SpotLookup.ts"

/** Spot tokens and pairs of the trading chain, as `spotMeta` returns them. */
export * as SpotMeta from "./info/SpotMeta.ts"

/** Effects in continuation-passing style: plain calls of functions run them, without a fiber, until something has to wait. */
export * as Continuation from "./operations/Continuation.ts"

/** JSON-RPC 2.0 as text: envelopes are read and written without re-encoding their content. */
export * as JsonRpc from "./operations/JsonRpc.ts"

/** The responses of a service in memory: for each operation, what a test has set. */
export * as MemoryAnswers from "./operations/MemoryAnswers.ts"

/** An operation is data: each upstream call is declared once, next to its schemas. */
export * as Operation from "./operations/Operation.ts"

/**
 * What a wire protocol provides to the pipeline: the meaning of an attempt for its call, the reader of responses, and the
 * backend of a chain's checked calls.
 */
export * as Protocol from "./operations/Protocol.ts"

/** An upstream's response as received: what a relaying route passes on and what a typed method reads. */
export * as UpstreamResponse from "./operations/UpstreamResponse.ts"

/** The subscriptions of an account: its state, orders, fills and transfers. */
export * as AccountSubscriptions from "./streams/AccountSubscriptions.ts"

/** The subscriptions of markets: prices, books, trades and bars. */
export * as MarketSubscriptions from "./streams/MarketSubscriptions.ts"

/** Where a stream continues after its connection was lost: the id of its events, `<epoch>:<seq>`. */
export * as ResumePosition from "./streams/ResumePosition.ts"

/** How a typed stream can end, or be refused. */
export * as StreamError from "./streams/StreamError.ts"

/** What a typed stream emits of the frames of a subscription. */
export * as StreamItems from "./streams/StreamItems.ts"

/** A subscription is data: each stream of the venue's WebSocket is declared once, next to its schemas. */
export * as Subscription from "./streams/Subscription.ts"

/** The members of subscriptions, with the venue's defaults. */
export * as SubscriptionRequests from "./streams/SubscriptionRequests.ts"

/** The subscriptions of the venue's WebSocket, and of `GET /ws`. */
export * as Subscriptions from "./streams/Subscriptions.ts"

/** A transaction of an account of the token chain, its position in the account's history, and a received jetton transfer. */
export * as AccountTransaction from "./tokens/AccountTransaction.ts"

/** What the token chain knows about a token: the documented flat resource, and the four kinds of contract behind it. */
export * as TokenData from "./tokens/TokenData.ts"

/** The calls of the token chain: `GET /api/v2/getTokenData`, and the methods of `POST /api/v2/jsonRPC`. */
export * as TokenOperations from "./tokens/TokenOperations.ts"

/** The token chain's REST and JSON-RPC: how calls are checked and written, and how responses are judged. */
export * as TokenProtocol from "./tokens/TokenProtocol.ts"

/** The token chain's envelope: `{ok, result}` or `{ok: false, error, code}`, which is not JSON-RPC 2.0. */
export * as TokenRpc from "./tokens/TokenRpc.ts"

/** Token-chain addresses: read from either form, checked, written in any form. */
export * as TonAddress from "./tokens/TonAddress.ts"
