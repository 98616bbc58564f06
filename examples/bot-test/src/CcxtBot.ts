/** A bot over ccxt that buys a dip and protects the position with a stop. It knows nothing of Trigate but the URL. */
import type { hyperliquid } from "ccxt"
import { ExchangeError, OperationFailed, OrderNotFound, RateLimitExceeded } from "ccxt"

export interface Plan {
  readonly symbol: string
  /** Buys at or below this price. */
  readonly below: number
  readonly amount: number
  /** Distance of the stop below the price, as a fraction of the price. */
  readonly stop: number
}

/** An order; without `type` and `side`, a limit order to buy. */
export interface Order {
  readonly symbol: string
  readonly type?: "limit" | "market"
  readonly side?: "buy" | "sell"
  readonly amount: number
  readonly price: number
  readonly params?: { readonly [name: string]: unknown }
}

/** `unknown`: the order may have been placed, or may still be placed. Ask again under the same ID. */
export type Placed = "placed" | "was placed" | "refused" | "unknown"

export type Step = "waits" | "bought" | "slowed down" | "refused" | "unknown"

/**
 * The signed orders of unknown outcome, by client order ID. A bot that may be restarted stores them on its disk before
 * it sends them.
 */
const unknown = new Map<string, { readonly order: Order; readonly signed: object }>()

const sign = (exchange: hyperliquid, order: Order, clientOrderId: string) => {
  const { params, side = "buy", type = "limit", ...terms } = order
  return exchange.createOrdersRequest([{ ...terms, type, side, params: { ...params, clientOrderId } }])
}

/**
 * Places an order once under an ID of the bot's own, and finds out what became of it if the reply is lost. Throws the
 * venue's refusal.
 *
 * An order of unknown outcome must not be signed again, because both orders could be placed. While the result is
 * `unknown`, call the function again with the same ID: it sends the same bytes, which the venue accepts once, and then
 * looks the order up among all orders. Among the open orders alone, a filled order would be missed.
 */
export const placeSafely = async (exchange: hyperliquid, order: Order, clientOrderId: string): Promise<Placed> => {
  const isFirst = !unknown.has(clientOrderId)
  const { signed } = unknown.get(clientOrderId) ?? { signed: sign(exchange, order, clientOrderId) }
  unknown.set(clientOrderId, { order, signed })
  const settled = (outcome: Placed): Placed => {
    unknown.delete(clientOrderId)
    return outcome
  }
  try {
    // with retries of ccxt, the error would be that of the last attempt alone
    await exchange.privatePostExchange({ ...signed, maxRetriesOnFailure: 0 })
    return settled("placed")
  } catch (error) {
    // a later refusal shows nothing about the first attempt: its nonce may be used because it was accepted
    if (isFirst && (error instanceof ExchangeError || error instanceof RateLimitExceeded)) {
      settled("refused")
      throw error
    }
  }
  try {
    const { status } = await exchange.fetchOrder(clientOrderId, order.symbol)
    return settled(status === "rejected" ? "refused" : "was placed")
  } catch (error) {
    // the venue does not show the order yet, or did not respond
    if (error instanceof OrderNotFound || error instanceof OperationFailed) return "unknown"
    throw error
  }
}

const newId = (): string => `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex")}`

/** Looks once, and acts. */
export const step = async (exchange: hyperliquid, { amount, below, stop, symbol }: Plan): Promise<Step> => {
  try {
    for (const [id, { order }] of unknown) {
      if (await placeSafely(exchange, order, id) === "unknown") return "unknown"
    }
    const { last = Infinity } = await exchange.fetchTicker(symbol)
    const [position] = await exchange.fetchPositions([symbol])
    if (position === undefined) {
      if (last > below) return "waits"
      const bought = await placeSafely(exchange, { symbol, type: "market", amount, price: last }, newId())
      if (bought === "refused" || bought === "unknown") return bought
    } else {
      const orders = await exchange.fetchOpenOrders(symbol)
      if (orders.some(({ reduceOnly }) => reduceOnly)) return "waits"
    }
    const stopLossPrice = Math.round(last * (1 - stop))
    const params = { stopLossPrice, reduceOnly: true }
    const placed = await placeSafely(
      exchange,
      { symbol, type: "market", side: "sell", amount, price: last, params },
      newId()
    )
    return placed === "refused" || placed === "unknown" ? placed : "bought"
  } catch (error) {
    if (error instanceof RateLimitExceeded) return "slowed down"
    throw error
  }
}
