/**
 * Every module of `@trigate/trading` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/trading/…`: Node then loads only those.
 */

/**
 * Corrects a signed body: reverts the mistakes that were found in it, and checks that `/exchange` would relay the
 * corrected body.
 */
export * as CorrectedBody from "./CorrectedBody.ts"

/** Signed actions of the trading chain: checked, recorded in the action log, and sent at most once. */
export * as Exchange from "./Exchange.ts"

/** `Exchange` in memory: records actions instead of sending them and returns configured responses. */
export * as ExchangeMemory from "./ExchangeMemory.ts"

/** `Exchange` over HTTP. Provides this service, and `Venue`: the network for which actions are signed. */
export * as ExchangeUpstream from "./ExchangeUpstream.ts"

/** Queries of the trading chain: markets, accounts, and bars. */
export * as Info from "./Info.ts"

/** `Info` in memory: a test sets the bars and the responses to other queries. */
export * as InfoMemory from "./InfoMemory.ts"

/** `Info` over HTTP. Provides only this service, for a program that signs nothing. */
export * as InfoUpstream from "./InfoUpstream.ts"

/**
 * Describes a signed body as the venue decodes it: the signer, the mistakes, their corrections, and the message to
 * sign.
 */
export * as Inspector from "./Inspector.ts"

/** Checks that the nodes configured as archives can return an account's transaction count at an early block. */
export * as NodeArchive from "./NodeArchive.ts"

/** Checks the prices and sizes of orders against the tick and lot sizes in the venue's metadata. */
export * as OrderSteps from "./OrderSteps.ts"

/**
 * Explains why a signature was not made by the expected signer. Applies likely mistakes to the action, singly and in
 * pairs, until the expected signer is recovered from the signature.
 */
export * as SignatureDiagnosis from "./SignatureDiagnosis.ts"

/**
 * Searches for the message that the expected signer signed, among possible interpretations ("readings") of a body.
 * Makes at most a given number of signer recoveries.
 */
export * as SignerSearch from "./SignerSearch.ts"

/** All services of the trading chain in one layer: one network, over undici, with the defaults of a single-process program. */
export * as Trading from "./Trading.ts"

/** The trading chain's EVM: relayed calls, typed reads, streams, and transaction costs. */
export * as TradingEvm from "./TradingEvm.ts"

/**
 * `TradingEvm` in memory. A test sets the storage, the prices, the big-block flags, the blocks, the logs, and the
 * responses to other methods.
 */
export * as TradingEvmMemory from "./TradingEvmMemory.ts"

/** `TradingEvm` over HTTP. Provides only this service, over one node. */
export * as TradingEvmUpstream from "./TradingEvmUpstream.ts"

/** The settings of the trading chain: the network, admission, and the maximum age of cached responses. */
export * as TradingSettings from "./TradingSettings.ts"

/**
 * The upstreams of the trading chain: the official API and nodes. Routes each call to the upstream addresses that serve
 * the call's operation, and provides the chain's services.
 */
export * as TradingUpstream from "./TradingUpstream.ts"

/**
 * Checks the accounts of `TRIGATE_WATCH_ACCOUNTS`. Every hour, it queries which agents expire soon. Every ten minutes,
 * it queries how many more actions the venue will accept from each account.
 */
export * as AccountChecks from "./accounts/AccountChecks.ts"

/**
 * Compares the states that the venue pushed for watched accounts (the mirror) with the venue's responses to queries,
 * every five minutes for each account.
 */
export * as AccountComparison from "./accounts/AccountComparison.ts"

/**
 * The log of account events: fills, order updates, funding, ledger updates (including liquidations) and TWAP slices.
 * The events have consecutive numbers.
 */
export * as AccountEvents from "./accounts/AccountEvents.ts"

/** The metrics of watched accounts (accounts whose events the gateway logs). */
export * as AccountMetrics from "./accounts/AccountMetrics.ts"

/** Serves queries about watched accounts from the states that the venue pushes, without using rate-limit weight. */
export * as AccountMirror from "./accounts/AccountMirror.ts"

/** This process's in-memory copy of the event log of accounts, with synchronous reads. */
export * as EventLog from "./accounts/EventLog.ts"

/** Storage of the event log of accounts: in this process, or in a store that replicas share. */
export * as EventStore from "./accounts/EventStore.ts"

/**
 * `EventStore` in a Redis that replicas share. Stores the entries of the event log as a Redis stream, the start of each
 * account's log, and a lease: the exclusive right of one replica to write the log, with a fencing token.
 */
export * as EventStoreRedis from "./accounts/EventStoreRedis.ts"

/**
 * `EventStore` in a Postgres that replicas share. Stores the entries of the event log, the start of each account's log,
 * and a lease: the exclusive right of one replica to write the log, with a fencing token.
 */
export * as EventStoreSql from "./accounts/EventStoreSql.ts"

/** The queries about an account whose responses are contained in the frames of a subscription. */
export * as MirroredQueries from "./accounts/MirroredQueries.ts"

/**
 * Reports the orders and fills of watched accounts (accounts whose events the gateway logs). The action log uses these
 * reports to settle actions of unknown outcome.
 */
export * as OrderEvents from "./accounts/OrderEvents.ts"

/**
 * The action log: records every signed action before its first byte is sent. Retains an action until its nonce is too
 * old to use; drops the oldest settled actions earlier if there are too many.
 */
export * as ActionLog from "./actionLog/ActionLog.ts"

/** `ActionLog` in the memory of this process: lost when the process ends, and not shared with replicas. */
export * as ActionLogMemory from "./actionLog/ActionLogMemory.ts"

/**
 * `ActionLog` of replicas that share only a Redis. Replicas share their claims of nonces; bodies stay in the process
 * that sends them. The data for looking up an action's effect at the venue is shared too, so that any replica can
 * settle an action.
 */
export * as ActionLogRedis from "./actionLog/ActionLogRedis.ts"

/** `ActionLog` in a SQL database, SQLite or Postgres: an action is on disk before its first byte is sent. */
export * as ActionLogSql from "./actionLog/ActionLogSql.ts"

/**
 * Determines the outcomes of actions in state `unknown` from the orders, the fills and the time that the venue reports.
 * Sends no action.
 */
export * as ActionSettlement from "./actionLog/ActionSettlement.ts"

/**
 * An action in the action log: its identity, its trace, its states, its share of the log's capacity, and the errors that
 * refuse to send it. Pure rules, which are the same for every store.
 */
export * as LoggedAction from "./actionLog/LoggedAction.ts"

/**
 * Determines which accounts an action changes, so that older cached states of those accounts are no longer served. The
 * changed accounts are the action's signer, its vault, and the accounts that the action names. If an API wallet signed
 * the action, the wallet's master is also changed.
 */
export * as AccountChanges from "./admission/AccountChanges.ts"

/**
 * Decodes a signed body. Converts the body's action to the form that the venue accepts, and warns about members that
 * the venue would refuse.
 */
export * as ActionDecoder from "./admission/ActionDecoder.ts"

/** Checks a signed body before anything is sent upstream, and returns the bytes to send. */
export * as Admission from "./admission/Admission.ts"

/**
 * Finds the mistakes in a signed body that do not depend on the signer. Returns the body's action as the venue would
 * serialize it.
 */
export * as BodyNormalization from "./admission/BodyNormalization.ts"

/** Recovers the signer of a body, and checks whether this gateway allows the signer. */
export * as SignerAuthorization from "./admission/SignerAuthorization.ts"

/**
 * Extracts signed bodies from the wrappers of other programs. A wrapper is an object in which one member contains the
 * body, either as an object or as JSON text.
 */
export * as WrappedBody from "./admission/WrappedBody.ts"

/**
 * Serves candle queries with unlimited history: closed bars come from the cache, and only the forming bar and missing
 * bars are requested from the venue.
 */
export * as BarCache from "./candles/BarCache.ts"

/**
 * Records candle history from the venue's streams and from queries of `Info`. The queries use only the part of the
 * venue's rate limit that callers leave unused.
 */
export * as CandleRecording from "./candles/CandleRecording.ts"

/** The coins and dexes that the venue lists. */
export * as CoinCatalog from "./streams/CoinCatalog.ts"

/**
 * The subscriptions of one connection (a seat) whose caller can resume them after the connection is lost. Events of
 * watched accounts are read from the event log and carry their log position. All other frames come from the hub, in
 * which callers share subscriptions.
 */
export * as ResumableSeat from "./streams/ResumableSeat.ts"

/** Fills gaps in streams after lost connections: queries `POST /info`, and converts the returned rows to frames. */
export * as StreamRefills from "./streams/StreamRefills.ts"

/** The venue's streams: trades, books, bars, orders and fills as they happen. */
export * as Streams from "./streams/Streams.ts"

/** `Streams` in memory: a test defines the frames that the venue sends. */
export * as StreamsMemory from "./streams/StreamsMemory.ts"

/** The text protocol of the venue's WebSocket: parses frames, and encodes subscriptions, rows and errors. */
export * as VenueProtocol from "./streams/VenueProtocol.ts"

/**
 * An in-process venue behind `SocketTransport`. It acknowledges subscriptions as the venue does, and sends the frames
 * of a given function.
 */
export * as VenueSocket from "./streams/VenueSocket.ts"
