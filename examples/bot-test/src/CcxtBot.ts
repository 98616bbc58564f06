/** A bot over ccxt that buys a dip and protects the position with a stop. It knows nothing of Trigate but the URL. */
import type { Exchange } from "ccxt"
import { ExchangeNotAvailable, NetworkError, RateLimitExceeded } from "ccxt"

export interface Plan {
  readonly symbol: string
  /** Buys at or below this price. */
  readonly below: number
  readonly amount: number
  /** How far below the price the stop is, as a share of it. */
  readonly stop: number
}

export type Step = "waits" | "bought" | "slowed down"

/** Looks once, and acts. */
export const step = async (exchange: Exchange, { amount, below, stop, symbol }: Plan): Promise<Step> => {
  try {
    const { last = Infinity } = await exchange.fetchTicker(symbol)
    const [position] = await exchange.fetchPositions([symbol])
    if (position !== undefined || last > below) return "waits"
    await exchange.createOrder(symbol, "market", "buy", amount, last)
    const stopLossPrice = Math.round(last * (1 - stop))
    await exchange.createOrder(symbol, "market", "sell", amount, last, { stopLossPrice, reduceOnly: true })
    return "bought"
  } catch (error) {
    if (error instanceof RateLimitExceeded) return "slowed down"
    throw error
  }
}

/**
 * Places an order under an id of the bot's own, and finds out what became of it where the reply is lost.
 *
 * An order must never be sent again on a hunch: it may rest already.
 */
export const placeSafely = async (
  exchange: Exchange,
  { amount, price, symbol }: { readonly symbol: string; readonly amount: number; readonly price: number },
  clientOrderId: string
): Promise<"placed" | "was placed" | "not placed"> => {
  try {
    await exchange.createOrder(symbol, "limit", "buy", amount, price, { clientOrderId })
    return "placed"
  } catch (error) {
    if (!(error instanceof NetworkError || error instanceof ExchangeNotAvailable)) throw error
    const open = await exchange.fetchOpenOrders(symbol)
    return open.some((order) => order.clientOrderId === clientOrderId) ? "was placed" : "not placed"
  }
}
