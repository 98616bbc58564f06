/**
 * One side of an order book: prices from the worst to the best, and at each price the orders in the order in which they came.
 *
 * It holds plain data, so that a snapshot can clone it. Adding costs the logarithm of the number of prices; the best order is
 * found at once.
 */

/** What a book needs to know of an order. */
export interface Resting {
  readonly oid: number
  /** Ticks. */
  readonly px: bigint
}

/** One side of a book. */
export interface BookSide<Order extends Resting> {
  readonly isBid: boolean
  /** Ascending for bids, descending for asks: the best price is the last. */
  readonly prices: Array<bigint>
  readonly levels: Map<bigint, Map<number, Order>>
}

/** An empty side. */
export const make = <Order extends Resting>(isBid: boolean): BookSide<Order> => ({
  isBid,
  prices: [],
  levels: new Map()
})

/** Where a price is, or belongs, among the prices of a side. */
const levelIndex = ({ isBid, prices }: BookSide<Resting>, px: bigint): number => {
  let low = 0
  let high = prices.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const at = prices[middle] ?? 0n
    if (isBid ? at < px : at > px) low = middle + 1
    else high = middle
  }
  return low
}

/** Adds an order behind all others at its price. */
export const add = <Order extends Resting>(side: BookSide<Order>, order: Order): void => {
  const level = side.levels.get(order.px)
  if (level !== undefined) {
    level.set(order.oid, order)
    return
  }
  side.levels.set(order.px, new Map([[order.oid, order]]))
  side.prices.splice(levelIndex(side, order.px), 0, order.px)
}

/** Removes an order. Returns whether it was there. */
export const remove = <Order extends Resting>(side: BookSide<Order>, { oid, px }: Resting): boolean => {
  const level = side.levels.get(px)
  if (level === undefined || !level.delete(oid)) return false
  if (level.size === 0) {
    side.levels.delete(px)
    side.prices.splice(levelIndex(side, px), 1)
  }
  return true
}

/** Returns the order that is matched next: of those at the best price, the one that came first. */
export const best = <Order extends Resting>({ levels, prices }: BookSide<Order>): Order | undefined => {
  const px = prices[prices.length - 1]
  return px === undefined ? undefined : levels.get(px)?.values().next().value
}

/** All orders in the order in which they are matched. */
export function* iterateOrders<Order extends Resting>({ levels, prices }: BookSide<Order>): Generator<Order> {
  for (let index = prices.length - 1; index >= 0; index--) {
    const level = levels.get(prices[index] ?? 0n)
    if (level !== undefined) yield* level.values()
  }
}
