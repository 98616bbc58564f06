/**
 * The paths of the gateway's own routes. The node provider's surface has the same ones behind an endpoint key.
 *
 * They stand apart from the contract, so that a program which calls one route loads its path alone.
 */

/** Signed actions. */
export const exchange = "/exchange"

/** What the gateway sees in a signed action. */
export const inspect = "/exchange/inspect"

/** The outcome of a signed action, by its id. */
export const actionOutcome = "/actions/:id"

/** The same, by its signer and nonce, or by the cloid of one of its orders. */
export const actionOutcomes = "/actions"

/** Queries of the trading chain. */
export const info = "/info"

/** What candle history there is. */
export const candles = "/candles"

/** The bars of one coin and interval, as a file. */
export const candleFile = "/candles/:coin/:interval"

/** JSON-RPC of the trading chain's EVM. */
export const evm = "/evm"

/** JSON-RPC of the layer 2. */
export const layer2 = "/l2"

/** A fungible token of the token chain. */
export const tokenData = "/api/v2/getTokenData"

/** JSON-RPC of the token chain. */
export const tokenRpc = "/api/v2/jsonRPC"

/** Transactions of an account of the token chain, as Server-Sent Events. */
export const transactions = "/api/v2/streams/transactions"

/** Jettons that an owner receives, as Server-Sent Events. */
export const jettonTransfers = "/api/v2/streams/jettonTransfers"

/** The signed actions without an answer. */
export const actions = "/admin/actions"

/** Removes one of them. */
export const forgetAction = "/admin/actions/:id/forget"

/** Sends one of them again. */
export const resolveAction = "/admin/actions/:id/resolve"

/** The keys of callers. */
export const keys = "/admin/keys"

/** Makes another key of a caller. */
export const rotateKey = "/admin/keys/:name/rotate"

/** Ends the keys of a caller. */
export const revokeKeys = "/admin/keys/:name/revoke"

/** What callers hold of the rate limits. */
export const rateLimits = "/admin/rate-limits"

/** The last requests. */
export const requests = "/admin/requests"

/** What the sandbox's venue is like now. */
export const sandbox = "/admin/sandbox"

/** Lets time pass for it. */
export const sandboxClock = "/admin/sandbox/clock"

/** Sets its prices. */
export const sandboxPrices = "/admin/sandbox/prices"

/** Sets its faults. */
export const sandboxFaults = "/admin/sandbox/faults"

/** Gives accounts money and positions. */
export const sandboxAccounts = "/admin/sandbox/accounts"

/** Copies it. */
export const sandboxSnapshots = "/admin/sandbox/snapshots"

/** Puts it back. */
export const resetSandbox = "/admin/sandbox/reset"

/** The WebSocket of the trading chain. */
export const socket = "/ws"

/** The query parameter of the WebSocket, and of the stream of events, that names the position of the last event. */
export const resume = "resume"

/** Streams as Server-Sent Events. */
export const streams = "/streams"

/** The query parameter that names a subscription; it may be repeated. */
export const subscribe = "subscribe"

/** Whether the gateway takes traffic. */
export const ready = "/health/ready"

/** Metrics in Prometheus text. */
export const metrics = "/metrics"
