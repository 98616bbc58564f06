/**
 * Every public module of `@trigate/client` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/client/…`: Node then loads only those.
 */

/**
 * The operator's calls: the action log, callers' keys, rate limits, latest requests, metrics and settings. They require
 * a connection to the admin listener.
 */
export * as Admin from "./Admin.ts"

/** The candle history that a gateway stores. */
export * as Candles from "./Candles.ts"

/** The connection to a gateway: its URL and keys, over any Effect `HttpClient`. */
export * as Connection from "./Connection.ts"

/** HyperEVM. Written by `npm run docs:generate` from the operations; change the operations, not this file. */
export * as Evm from "./Evm.ts"

/** The streams of the EVM chains of a gateway, over its WebSockets: blocks, logs and receipts. */
export * as EvmStreams from "./EvmStreams.ts"

/** Signed actions. */
export * as Exchange from "./Exchange.ts"

/**
 * All calls of a gateway as one service, bound to its connection: for programs that forward calls or replace some of
 * them.
 */
export * as GatewayClient from "./GatewayClient.ts"

/** Readiness and metrics of the gateway. */
export * as Health from "./Health.ts"

/** Queries of the venue. */
export * as Info from "./Info.ts"

/** The layer 2. Written by `npm run docs:generate` from the operations; change the operations, not this file. */
export * as Layer2 from "./Layer2.ts"

/** The clock, prices, faults and accounts of a sandbox. The calls need a connection to its admin listener. */
export * as Sandbox from "./Sandbox.ts"

/** The streams of a gateway over its WebSocket: trades, books, bars, orders and fills. */
export * as Streams from "./Streams.ts"

/** Dead man's switches: signed actions that the gateway sends if the heartbeats of this program stop. */
export * as Switches from "./Switches.ts"

/** Calls of the token chain. Addresses are validated before anything is sent. */
export * as Tokens from "./Tokens.ts"
