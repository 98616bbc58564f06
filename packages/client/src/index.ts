/**
 * Every module of `@trigate/client` that needs no optional peer, as a namespace.
 *
 * Written by `npm run docs:generate`. Code that starts often imports the modules themselves, such as
 * `@trigate/client/…`: Node then loads only those.
 */

/** The action log, the callers and their requests, for the operator: the connection is to the admin listener. */
export * as Admin from "./Admin.ts"

/** The candle history that a gateway keeps. */
export * as Candles from "./Candles.ts"

/** The gateway that calls go to: where it is, and how it is reached, over any Effect `HttpClient`. */
export * as Connection from "./Connection.ts"

/** The trading chain's EVM. Written by `npm run docs:generate` from the operations; change those, not this file. */
export * as Evm from "./Evm.ts"

/** The blocks, the logs and the receipts of the EVM chains behind a gateway as they happen, over its WebSockets. */
export * as EvmStreams from "./EvmStreams.ts"

/** Signed actions. */
export * as Exchange from "./Exchange.ts"

/** All calls of a gateway as one service, bound to its connection: for programs that pass the calls on or replace some. */
export * as GatewayClient from "./GatewayClient.ts"

/** The gateway itself. */
export * as Health from "./Health.ts"

/** Queries of the trading chain. */
export * as Info from "./Info.ts"

/** The layer 2. Written by `npm run docs:generate` from the operations; change those, not this file. */
export * as Layer2 from "./Layer2.ts"

/** The clock, prices, faults and accounts of a sandbox, for the operator: the connection is to its admin listener. */
export * as Sandbox from "./Sandbox.ts"

/** The streams of a gateway: trades, books, bars, orders and fills as they happen, over its WebSocket. */
export * as Streams from "./Streams.ts"

/** The token chain; addresses are checked before anything is sent. */
export * as Tokens from "./Tokens.ts"
