/** The queries without a form of their own. Written by `npm run docs:generate` from the operations; change those, not this file. */
import * as InfoOperations from "@trigate/domain/info/InfoOperations"
import { query } from "./Query.ts"

/** All spot pairs and tokens. */
export const spotMeta = query(InfoOperations.spotMeta)

/** The perpetuals of a dex. */
export const meta = query(InfoOperations.meta)

/** The perpetuals of a dex, and their prices in the same order. */
export const metaAndAssetCtxs = query(InfoOperations.metaAndAssetCtxs)

/** The dexes of perpetuals: `null` for the venue's own, then those of builders. */
export const perpDexs = query(InfoOperations.perpDexs)

/** Middle prices of all coins of a dex; those of the venue's own include spot pairs. */
export const allMids = query(InfoOperations.allMids)

/** The order book of a coin, at most 20 prices a side; `null` for an unknown coin. */
export const l2Book = query(InfoOperations.l2Book)

/** The newest trades of a coin. */
export const recentTrades = query(InfoOperations.recentTrades)

/** Hourly funding of a perpetual in a window, oldest first. */
export const fundingHistory = query(InfoOperations.fundingHistory)

/** Margin and positions of a user in the perpetuals of a dex. */
export const clearinghouseState = query(InfoOperations.clearinghouseState)

/** Spot balances of a user. */
export const spotClearinghouseState = query(InfoOperations.spotClearinghouseState)

/** Open orders of a user in a dex. */
export const openOrders = query(InfoOperations.openOrders)

/** Open orders of a user in a dex, with triggers and times in force. */
export const frontendOpenOrders = query(InfoOperations.frontendOpenOrders)

/** An order of a user by its id, or by the id that the client gave it. */
export const orderStatus = query(InfoOperations.orderStatus)

/** The newest orders of a user, at most 2000, with what became of them. */
export const historicalOrders = query(InfoOperations.historicalOrders)

/** The newest fills of a user, at most 2000. */
export const userFills = query(InfoOperations.userFills)

/** Fills of a user in a window, at most 2000. */
export const userFillsByTime = query(InfoOperations.userFillsByTime)

/** What an address is: a user, an API wallet, a vault, a sub-account, or nothing. */
export const userRole = query(InfoOperations.userRole)

/** How many actions a user has sent and may send in all. */
export const userRateLimit = query(InfoOperations.userRateLimit)

/** Fee rates of a user, and the volumes by which they are set. */
export const userFees = query(InfoOperations.userFees)

/** The named API wallets of a user. */
export const extraAgents = query(InfoOperations.extraAgents)
