/**
 * Every public module of `@trigate/evm` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/evm/…`: Node then loads only those.
 */

/**
 * `eth_newFilter` and similar methods, implemented by the gateway, and the distinct subscriptions to a chain with their
 * callers.
 */
export * as Filters from "./Filters.ts"

/** The service of an EVM layer 2: relayed JSON-RPC calls, receipts, and waiting for a receipt. */
export * as Layer2 from "./Layer2.ts"

/**
 * Provides `Layer2` over undici, in one layer with all dependencies. The defaults suit a program that runs as a single
 * process.
 */
export * as Layer2Chain from "./Layer2Chain.ts"

/** `Layer2` over the network: JSON-RPC by POST to a node's base URL. Receipts that can no longer change are cached. */
export * as Layer2Upstream from "./Layer2Upstream.ts"
