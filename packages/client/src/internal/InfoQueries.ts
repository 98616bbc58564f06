/** The queries that are sent without conversion. Written by `npm run docs:generate` from the operations; change the operations, not this file. */
import * as InfoOperations from "@trigate/domain/info/InfoOperations"
import { query } from "./Served.ts"

/**
 * All spot pairs and tokens.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.spotMeta()
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const spotMeta = query(InfoOperations.spotMeta)

/**
 * The perpetuals of a dex.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.meta()
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const meta = query(InfoOperations.meta)

/**
 * The perpetuals of all dexes, in the order of `perpDexs`.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.allPerpMetas()
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const allPerpMetas = query(InfoOperations.allPerpMetas)

/**
 * The outcomes of prediction markets, and their questions.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.outcomeMeta()
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const outcomeMeta = query(InfoOperations.outcomeMeta)

/**
 * The perpetuals of a dex, and their prices in the same order.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.metaAndAssetCtxs()
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const metaAndAssetCtxs = query(InfoOperations.metaAndAssetCtxs)

/**
 * The dexes of perpetuals: `null` for the venue's own, then the builder-deployed ones.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.perpDexs()
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const perpDexs = query(InfoOperations.perpDexs)

/**
 * Mid prices of all coins of a dex; for the venue's own dex, also those of spot pairs.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.allMids()
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const allMids = query(InfoOperations.allMids)

/**
 * The order book of a coin, at most 20 prices per side; `null` for an unknown coin.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.l2Book({ coin: "BTC" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const l2Book = query(InfoOperations.l2Book)

/**
 * The newest trades of a coin.
 *
 * Fails with `CallFailure` or `UnknownAsset`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.recentTrades({ coin: "BTC" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const recentTrades = query(InfoOperations.recentTrades)

/**
 * Hourly funding rates of a perpetual in a time range, oldest first.
 *
 * Fails with `CallFailure` or `UnknownAsset`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.fundingHistory({ coin: "BTC", startTime: 1767225600000, endTime: 1767236400000 })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const fundingHistory = query(InfoOperations.fundingHistory)

/**
 * Margin and positions of a user in the perpetuals of a dex.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.clearinghouseState({ user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const clearinghouseState = query(InfoOperations.clearinghouseState)

/**
 * Spot balances of a user.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.spotClearinghouseState({ user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const spotClearinghouseState = query(InfoOperations.spotClearinghouseState)

/**
 * Open orders of a user in a dex.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.openOrders({ user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const openOrders = query(InfoOperations.openOrders)

/**
 * Open orders of a user in a dex, with trigger conditions and time in force.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.frontendOpenOrders({ user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const frontendOpenOrders = query(InfoOperations.frontendOpenOrders)

/**
 * An order of a user by its order ID or client order ID.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.orderStatus({ user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", oid: 1 })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const orderStatus = query(InfoOperations.orderStatus)

/**
 * The newest orders of a user, at most 2000, with their status.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.historicalOrders({ user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const historicalOrders = query(InfoOperations.historicalOrders)

/**
 * The newest fills of a user, at most 2000.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.userFills({ user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const userFills = query(InfoOperations.userFills)

/**
 * Fills of a user in a time range, at most 2000.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.userFillsByTime({ user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", startTime: 1767225600000 })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const userFillsByTime = query(InfoOperations.userFillsByTime)

/**
 * The role of an address: `user`, `agent`, `vault`, `subAccount` or `missing`.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.userRole({ user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const userRole = query(InfoOperations.userRole)

/**
 * The number of actions that a user has sent, and the maximum number.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.userRateLimit({ user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const userRateLimit = query(InfoOperations.userRateLimit)

/**
 * Fee rates of a user, and the volumes that determine them.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.userFees({ user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const userFees = query(InfoOperations.userFees)

/**
 * How a user's balances are combined: `default`, `disabled`, `unifiedAccount` or `portfolioMargin`.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.userAbstraction({ user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const userAbstraction = query(InfoOperations.userAbstraction)

/**
 * The named API wallets of a user.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Info.extraAgents({ user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const extraAgents = query(InfoOperations.extraAgents)
