/**
 * Every public module of `@trigate/trading` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/trading/…`: Node then loads only those.
 */

/** Signed actions of the venue: checked, recorded in the action log, and sent at most once. */
export * as Exchange from "./Exchange.ts"

/** `Exchange` in memory: records actions instead of sending them and returns configured responses. */
export * as ExchangeMemory from "./ExchangeMemory.ts"

/** `Exchange` over HTTP. Provides this service, and `Venue`: the network for which actions are signed. */
export * as ExchangeUpstream from "./ExchangeUpstream.ts"

/** Queries of the venue: markets, accounts, and bars. */
export * as Info from "./Info.ts"

/** `Info` over HTTP. Provides only this service, for a program that signs nothing. */
export * as InfoUpstream from "./InfoUpstream.ts"

/** Describes a signed body as the venue decodes it: the signer, the mistakes, their corrections, and the message. */
export * as Inspector from "./Inspector.ts"

/** Orders over the embedded services: a nonce, a signature, one attempt, and the outcome of a lost response. */
export * as Orders from "./Orders.ts"

/** All services of the venue in one layer: one network, over undici, with the defaults of a single-process program. */
export * as Trading from "./Trading.ts"

/** HyperEVM: relayed calls, typed reads, streams, and transaction costs. */
export * as TradingEvm from "./TradingEvm.ts"

/** `TradingEvm` over HTTP. Provides only this service, over one node. */
export * as TradingEvmUpstream from "./TradingEvmUpstream.ts"

/**
 * The upstreams of the venue: its API and nodes. Routes each call to the upstream addresses that serve
 * it.
 */
export * as TradingUpstream from "./TradingUpstream.ts"

/**
 * The log of account events: fills, order updates, funding, ledger updates and TWAP slices. It is stored in this
 * process, or in a store that replicas share.
 */
export * as AccountEvents from "./accounts/AccountEvents.ts"

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
 * Checks a signed body before anything is sent upstream: its form, its nonce, its signer and the accounts that it
 * changes. Returns the bytes to send.
 */
export * as Admission from "./admission/Admission.ts"

/**
 * Records candle history from the venue's streams and from queries of `Info`. The queries use only the part of the
 * venue's rate limit that callers leave unused.
 */
export * as CandleRecording from "./candles/CandleRecording.ts"

/** Dead man's switches: sends the signed actions that a program has left when the program's heartbeats stop. */
export * as DeadMansSwitch from "./guard/DeadMansSwitch.ts"

/**
 * The guard: lets a signed action pass only if the policies of its account allow it, and reserves the possible
 * effect of the action before its first byte is sent.
 */
export * as Guard from "./guard/Guard.ts"

/**
 * The store that guards of several replicas share, and that outlives a process: the halts, the reservations of each
 * account, and the dead man's switches. It stores documents by key, and replaces a document only if no other process has replaced it before.
 */
export * as GuardStore from "./guard/GuardStore.ts"

/** The store of guards in a SQL database, SQLite or Postgres. */
export * as GuardStoreSql from "./guard/GuardStoreSql.ts"

/** The venue's streams: trades, books, bars, orders and fills as they happen. Gaps after lost connections are filled. */
export * as Streams from "./streams/Streams.ts"

/** `Streams` in memory: a test defines the frames that the venue sends, over an in-process venue. */
export * as StreamsMemory from "./streams/StreamsMemory.ts"
