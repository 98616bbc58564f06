/**
 * Every module of `@trigate/trading` that needs no optional peer, as a namespace.
 *
 * Written by `npm run docs:generate`. Code that starts often imports the modules themselves, such as
 * `@trigate/trading/…`: Node then loads only those.
 */

/** The body as it has to be sent: the mistakes that were found are taken back, and the result is checked as `/exchange` checks. */
export * as CorrectedBody from "./CorrectedBody.ts"

/** Signed actions of the trading chain: checked, recorded in the action log, and sent at most once. */
export * as Exchange from "./Exchange.ts"

/** `Exchange` in memory: records actions instead of sending them and returns configured responses. */
export * as ExchangeMemory from "./ExchangeMemory.ts"

/** `Exchange` over the network: the service alone, with the network that actions are signed for. */
export * as ExchangeUpstream from "./ExchangeUpstream.ts"

/** Queries of the trading chain: markets, accounts, and bars. */
export * as Info from "./Info.ts"

/** `Info` in memory: bars, and responses to other queries, that a test sets. */
export * as InfoMemory from "./InfoMemory.ts"

/** `Info` over the network: the service alone, for a program that reads and signs nothing. */
export * as InfoUpstream from "./InfoUpstream.ts"

/** Describes a signed body as the venue reads it: its signer, its faults, their corrections, and the message to sign. */
export * as Inspector from "./Inspector.ts"

/** The check of nodes configured as archives: an archive knows how many transactions an account had sent long ago. */
export * as NodeArchive from "./NodeArchive.ts"

/** Compares the prices and sizes of orders with the steps of their assets, which the venue's metadata states. */
export * as OrderSteps from "./OrderSteps.ts"

/** Why a signature is not the expected signer's: reproduces likely mistakes one by one, and in pairs, until one explains it. */
export * as SignatureDiagnosis from "./SignatureDiagnosis.ts"

/** Looks among the readings of a body for one whose digest is an expected signer's, within a budget of recoveries. */
export * as SignerSearch from "./SignerSearch.ts"

/** The trading chain in one call: its services for one network, over undici, with the defaults of a program of one process. */
export * as Trading from "./Trading.ts"

/** The trading chain's EVM: storage at the latest block, and what a transaction costs. */
export * as TradingEvm from "./TradingEvm.ts"

/** `TradingEvm` in memory: storage, prices and flags, and responses to other methods, that a test sets. */
export * as TradingEvmMemory from "./TradingEvmMemory.ts"

/** `TradingEvm` over the network: the service alone, over one node. */
export * as TradingEvmUpstream from "./TradingEvmUpstream.ts"

/** The settings of the trading chain: the network, admission, and the maximum age of cached responses. */
export * as TradingSettings from "./TradingSettings.ts"

/** The trading chain upstream: the official API and nodes, which of their addresses a call goes to, and the services over them. */
export * as TradingUpstream from "./TradingUpstream.ts"

/** Compares the streams of watched accounts with queries, each account every five minutes. */
export * as AccountComparison from "./accounts/AccountComparison.ts"

/**
 * The event log of watched accounts: fills, order updates, funding, ledger updates (liquidations among them) and TWAP slices, numbered
 * without a hole.
 */
export * as AccountEvents from "./accounts/AccountEvents.ts"

/** The metrics of watched accounts. */
export * as AccountMetrics from "./accounts/AccountMetrics.ts"

/** Serves queries about watched accounts from the states that the venue sends unasked, at no weight. */
export * as AccountMirror from "./accounts/AccountMirror.ts"

/** The event log of accounts as this process has it: a copy of the store's, read in plain calls of functions. */
export * as EventLog from "./accounts/EventLog.ts"

/** Where the event log of accounts is stored: in this process, or in a store that replicas share. */
export * as EventStore from "./accounts/EventStore.ts"

/** `EventStore` of replicas that share a Redis: a stream of entries, a lease with a fencing token, and when each account began. */
export * as EventStoreRedis from "./accounts/EventStoreRedis.ts"

/** `EventStore` of replicas that share a Postgres: a row for each entry, a lease with a fencing token, and when each account began. */
export * as EventStoreSql from "./accounts/EventStoreSql.ts"

/** The action log: every signed action that was sent, from before its first byte leaves until its nonce is too old to use. */
export * as ActionLog from "./actionLog/ActionLog.ts"

/** Metrics of the action log. */
export * as ActionLogMetrics from "./actionLog/ActionLogMetrics.ts"

/** The quota of each signer and each caller in the action log. */
export * as ActionLogQuota from "./actionLog/ActionLogQuota.ts"

/**
 * `ActionLog` of replicas that share only a Redis: the claims are shared, the bytes stay in the process that sends them. What can
 * be found of an action at the venue is shared as well, so any replica can settle it.
 */
export * as ActionLogRedis from "./actionLog/ActionLogRedis.ts"

/** `ActionLog` in a SQL database, SQLite or Postgres: an action is on the disk before its first byte leaves. */
export * as ActionLogSql from "./actionLog/ActionLogSql.ts"

/**
 * Settles actions of unknown outcome without sending anything: their outcome follows from the venue's state of their orders, and
 * its time.
 */
export * as ActionSettlement from "./actionLog/ActionSettlement.ts"

/** What of a signed action can be found in the venue's state once it took effect: its orders with a cloid, and until when it may. */
export * as ActionTrace from "./actionLog/ActionTrace.ts"

/** The audit log: one entry for each sending of a signed action, written when it is known how the sending ended. */
export * as AuditLog from "./actionLog/AuditLog.ts"

/**
 * Which accounts an action changes, so that no state is served which was read before it: those of its signer, its vault, the
 * accounts that it names, and the account for which its signer acts as an API wallet.
 */
export * as AccountChanges from "./admission/AccountChanges.ts"

/**
 * Reads a signed body: decodes it once, puts its action into the venue's form, respells its chain field, and warns of what
 * the venue would not take.
 */
export * as ActionDecoder from "./admission/ActionDecoder.ts"

/** Checks a signed body before anything is sent upstream, and says which bytes to send. */
export * as Admission from "./admission/Admission.ts"

/** The faults of a signed body that do not depend on its signer, and its action as the venue would serialize it. */
export * as BodyNormalization from "./admission/BodyNormalization.ts"

/** Recovers the signer of a body, and authorizes it for this gateway. */
export * as SignerAuthorization from "./admission/SignerAuthorization.ts"

/** Bodies that a program has put into something else: an object with one member for them, or a text of JSON. */
export * as WrappedBody from "./admission/WrappedBody.ts"

/**
 * Serves candle queries as if the venue retained everything: closed bars from the cache, and from the venue
 * only the forming bar and missing ones.
 */
export * as BarCache from "./candles/BarCache.ts"

/** Lists of bars as the texts in which the venue wrote them, oldest first: nothing of a bar is decoded but when it opens. */
export * as BarTexts from "./candles/BarTexts.ts"

/** Records candle history beside `Info`, with what callers leave of the venue's rate limit. */
export * as CandleRecording from "./candles/CandleRecording.ts"

/** The names that the venue knows: coins and dexes. */
export * as CoinCatalog from "./streams/CoinCatalog.ts"

/** The users whose signed actions the venue accepted through this process: they come first where places for users are few. */
export * as FamiliarUsers from "./streams/FamiliarUsers.ts"

/** The seat of a caller who can resume: events of accounts come from the event log with their positions, everything else from the hub. */
export * as ResumableSeat from "./streams/ResumableSeat.ts"

/** What fills the holes that a lost connection leaves: queries of `POST /info`, as frames of the stream. */
export * as StreamRefills from "./streams/StreamRefills.ts"

/** The venue's streams: trades, books, bars, orders and fills as they happen. */
export * as Streams from "./streams/Streams.ts"

/** `Streams` in memory: a test says what the venue sends. */
export * as StreamsMemory from "./streams/StreamsMemory.ts"

/** The venue's WebSocket as text: what its frames are about, and how subscriptions, rows and refusals are written. */
export * as VenueProtocol from "./streams/VenueProtocol.ts"

/** A venue in this process behind `SocketTransport`: it acknowledges as the venue does, and sends what a function gives it. */
export * as VenueSocket from "./streams/VenueSocket.ts"
