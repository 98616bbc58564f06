/**
 * One side of an order book: prices from the worst to the best, and the orders at each price in order of arrival, except
 * for those with a priority fee.
 *
 * A side is plain data, which a snapshot can clone. Adding an order takes logarithmic time in the number of prices;
 * finding the best order takes constant time.
 */

/** The members of an order that a book uses. */
export interface Resting {
  readonly oid: number
  /** Price in ticks. */
  readonly px: bigint
  /** The time of arrival, in milliseconds. */
  readonly timestamp: number
  /** The rate of the order's priority fee, if it pays one. */
  readonly priority?: number
}

/** One side of a book. */
export interface BookSide<Order extends Resting> {
  readonly isBid: boolean
  /** The prices, ascending for bids and descending for asks: the best price is the last one. */
  readonly prices: Array<bigint>
  readonly levels: Map<bigint, Map<number, Order>>
}

/** Makes an empty side. */
export const make = <Order extends Resting>(isBid: boolean): BookSide<Order> => ({
  isBid,
  prices: [],
  levels: new Map()
})

/**
 * Returns the index of a price among the prices of a side. If the side does not have the price, returns the index at
 * which to insert it.
 */
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

/** The period, in milliseconds, in which an order can be overtaken by an order with a higher priority fee. */
const contested = 400

/** Moves the newest orders of a level, as far as they are contested and pay less than the last order, behind it. */
const overtake = <Order extends Resting>(level: Map<number, Order>, { priority = 0, timestamp }: Order): void => {
  const earlier = [...level.values()].slice(0, -1)
  const from = 1 +
    earlier.findLastIndex((each) => timestamp - each.timestamp >= contested || (each.priority ?? 0) >= priority)
  for (const order of earlier.slice(from)) {
    level.delete(order.oid)
    level.set(order.oid, order)
  }
}

/**
 * Adds an order behind the orders that are already in the book at its price. An order with a priority fee is added
 * before the orders of the last 400 ms that pay less.
 */
export const add = <Order extends Resting>(side: BookSide<Order>, order: Order): void => {
  const level = side.levels.get(order.px)
  if (level !== undefined) {
    level.set(order.oid, order)
    if (order.priority !== undefined) overtake(level, order)
    return
  }
  side.levels.set(order.px, new Map([[order.oid, order]]))
  side.prices.splice(levelIndex(side, order.px), 0, order.px)
}

/** Removes an order. Returns whether it was in the book. */
export const remove = <Order extends Resting>(
  side: BookSide<Order>,
  { oid, px }: Pick<Resting, "oid" | "px">
): boolean => {
  const level = side.levels.get(px)
  if (level === undefined || !level.delete(oid)) return false
  if (level.size === 0) {
    side.levels.delete(px)
    side.prices.splice(levelIndex(side, px), 1)
  }
  return true
}

/** Returns the order that is matched first: the oldest order at the best price. */
export const best = <Order extends Resting>({ levels, prices }: BookSide<Order>): Order | undefined => {
  const px = prices[prices.length - 1]
  return px === undefined ? undefined : levels.get(px)?.values().next().value
}

/** Iterates over all orders in matching order. */
export function* iterateOrders<Order extends Resting>({ levels, prices }: BookSide<Order>): Generator<Order> {
  for (let index = prices.length - 1; index >= 0; index--) {
    const level = levels.get(prices[index] ?? 0n)
    if (level !== undefined) yield* level.values()
  }
}
