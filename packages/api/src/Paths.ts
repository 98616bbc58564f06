/**
 * The paths of the gateway's own routes. The node routes have the same paths after an endpoint key.
 *
 * This module is separate from the contract, so that a program that calls one route loads only the paths.
 */

/** Path of the route that sends signed actions. */
export const exchange = "/exchange"

/** Path of the route that issues the next nonces of a signer. */
export const nonces = "/nonces"

/** Paths of the routes that arm and show a dead man's switch, note a heartbeat, and disarm it. */
export const armSwitch = "/switches/:name"
export const beatSwitch = "/switches/:name/heartbeat"
export const disarmSwitch = "/switches/:name/disarm"

/** Path of the route that checks and explains a signed action without sending it. */
export const inspect = "/exchange/inspect"

/** Path of the route that returns the outcome of a signed action by its ID. */
export const actionOutcome = "/actions/:id"

/** Path of the route that finds the outcome of a signed action by its signer and nonce, or by the cloid of an order. */
export const actionOutcomes = "/actions"

/** Path of the route for queries of the venue. */
export const info = "/info"

/** Path of the route that lists the stored series of candle history. */
export const candles = "/candles"

/** Path of the route that returns the bars of one coin and interval as a file. */
export const candleFile = "/candles/:coin/:interval"

/** Path of the JSON-RPC route of HyperEVM. */
export const evm = "/evm"

/** Path of the JSON-RPC route of the layer 2. */
export const layer2 = "/l2"

/** Path of the route that returns the data of a fungible token on the token chain. */
export const tokenData = "/api/v2/getTokenData"

/** Path of the JSON-RPC route of the token chain. */
export const tokenRpc = "/api/v2/jsonRPC"

/** Path of the event stream with the transactions of an account of the token chain. */
export const transactions = "/api/v2/streams/transactions"

/** Path of the event stream with the jetton transfers that an owner receives. */
export const jettonTransfers = "/api/v2/streams/jettonTransfers"

/** Path of the route that lists the signed actions whose outcome is unknown. */
export const actions = "/admin/actions"

/** Path of the route that removes an action from the list of actions whose outcome is unknown. */
export const forgetAction = "/admin/actions/:id/forget"

/** Path of the route that sends an action again, if its outcome is unknown. */
export const resolveAction = "/admin/actions/:id/resolve"

/** Path of the routes that list the keys of callers, and create a key for a caller that has no valid key. */
export const keys = "/admin/keys"

/** Path of the route that creates a new key for a caller that has a valid key. */
export const rotateKey = "/admin/keys/:name/rotate"

/** Path of the route that revokes keys of a caller. */
export const revokeKeys = "/admin/keys/:name/revoke"

/** Path of the route that returns the guard's policies, the use of their limits, and the halts. */
export const guard = "/admin/guard"

/** Path of the route that stops the actions of an account, in a coin, or all. */
export const haltGuard = "/admin/guard/halt"

/** Path of the route that ends a halt. */
export const resumeGuard = "/admin/guard/resume"

/** Path of the route that returns the current use of the rate limits by caller. */
export const rateLimits = "/admin/rate-limits"

/** Path of the route that returns the latest requests of callers. */
export const requests = "/admin/requests"

/** Path of the route that returns samples of the gateway's metrics. */
export const history = "/admin/history"

/** Path of the route that returns all metrics of the last minute. */
export const minute = "/admin/minute"

/** Path of the route that returns the settings of the gateway. */
export const settings = "/admin/settings"

/** Path of the route that returns the state of the sandbox's venue. */
export const sandbox = "/admin/sandbox"

/** Path of the route that advances the sandbox's clock. */
export const sandboxClock = "/admin/sandbox/clock"

/** Path of the route that sets prices in the sandbox. */
export const sandboxPrices = "/admin/sandbox/prices"

/** Path of the route that sets the levels of a book in the sandbox. */
export const sandboxBooks = "/admin/sandbox/books"

/** Path of the route that sets the faults that the sandbox injects. */
export const sandboxFaults = "/admin/sandbox/faults"

/** Path of the route that closes the WebSockets to the sandbox's venue. */
export const sandboxSockets = "/admin/sandbox/sockets"

/** Path of the route that lets bots poll the sandbox's venue. */
export const sandboxBots = "/admin/sandbox/bots"

/** Path of the route that sets the balances and positions of an account in the sandbox. */
export const sandboxAccounts = "/admin/sandbox/accounts"

/** Path of the route that takes a snapshot of the sandbox. */
export const sandboxSnapshots = "/admin/sandbox/snapshots"

/** Path of the route that restores a snapshot or the initial state of the sandbox. */
export const resetSandbox = "/admin/sandbox/reset"

/** Path of the venue's WebSocket. */
export const socket = "/ws"

/** The query parameter with the position of the last received event, for the WebSocket and for the event stream. */
export const resume = "resume"

/** Path of the venue's streams as Server-Sent Events. */
export const streams = "/streams"

/** The query parameter with a subscription; the parameter can be repeated. */
export const subscribe = "subscribe"

/** Path of the route that reports whether the gateway accepts traffic. */
export const ready = "/health/ready"

/** Path of the route that returns the metrics in the Prometheus text format. */
export const metrics = "/metrics"
