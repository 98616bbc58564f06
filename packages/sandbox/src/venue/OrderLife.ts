/** The life cycle of an order: its place (book, triggers or parent order), its reserved funds, and its end. */
import { lowerCase } from "@trigate/domain/encoding/Hex"
import type { Asset } from "./Assets.ts"
import { min } from "./Decimals.ts"
import * as PriceTimeBook from "./PriceTimeBook.ts"
import type { TradingAccount, VenueOrder } from "./TradingAccount.ts"
import { ensureBalance, none } from "./TradingAccount.ts"
import type { MarketState } from "./TradingState.ts"
import { ensureAccount, ensureMarket } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import { emit } from "./Venue.ts"

/** Maximum number of orders stored for an account in addition to its open orders. */
export const rememberedOrders = 2_000

/** Stores an order. If the account has too many orders, removes the oldest completed order. */
export const remember = (account: TradingAccount, order: VenueOrder): void => {
  account.orders.set(order.oid, order)
  if (order.cloid !== null) account.byCloid.set(order.cloid, order.oid)
  if (account.orders.size <= rememberedOrders + account.open.size) return
  for (const [oid, { cloid, place }] of account.orders) {
    if (place !== "gone") continue
    account.orders.delete(oid)
    if (cloid !== null && account.byCloid.get(cloid) === oid) account.byCloid.delete(cloid)
    return
  }
}

/** Returns an account's order by its order ID or client order ID; `undefined` if the venue does not store the order. */
export const findOrder = (account: TradingAccount, name: number | bigint | string): VenueOrder | undefined => {
  const oid = typeof name === "string" ? account.byCloid.get(lowerCase(name)) : Number(name)
  return oid === undefined ? undefined : account.orders.get(oid)
}

/** Sets the status of an order, and emits an event with a copy of the order. */
export const report = (venue: Venue, order: VenueOrder, status: string): void => {
  order.status = status
  order.statusTimestamp = venue.state.now
  if (venue.events !== undefined) emit(venue, { kind: "order", user: order.user, order: { ...order } })
}

const bookSide = (market: MarketState, { isBuy }: VenueOrder) => isBuy ? market.bids : market.asks

/** Returns the token that an open spot order reserves, and the reserved amount for a number of lots. */
const reserved = (asset: Asset, order: VenueOrder, lots: bigint) =>
  asset.kind !== "spot"
    ? undefined
    : order.isBuy
    ? { token: asset.quote.index, wei: order.px * lots }
    : { token: asset.base.index, wei: lots * asset.weiPerLot }

const expose = (account: TradingAccount, order: VenueOrder, lots: bigint): void => {
  if (order.reduceOnly) return
  const known = account.exposure.get(order.coin)
  const of = known ?? { bids: 0n, asks: 0n }
  if (known === undefined) account.exposure.set(order.coin, of)
  if (order.isBuy) of.bids += lots
  else of.asks += lots
  if (of.bids === 0n && of.asks === 0n) account.exposure.delete(order.coin)
}

/** Reserves the funds for a number of lots of an order in the book. A negative number releases funds. */
const reserve = (account: TradingAccount, asset: Asset, order: VenueOrder, lots: bigint): void => {
  if (asset.kind === "perpetual") return expose(account, order, lots)
  const of = reserved(asset, order, lots)
  if (of !== undefined) ensureBalance(account, of.token).hold += of.wei
}

/** Puts an order into the book. */
export const rest = (venue: Venue, asset: Asset, order: VenueOrder): void => {
  const account = ensureAccount(venue.state, order.user)
  order.place = "book"
  account.open.set(order.oid, order)
  reserve(account, asset, order, order.sz)
  PriceTimeBook.add(bookSide(ensureMarket(venue.state, order.coin), order), order)
  emit(venue, { kind: "book", coin: order.coin })
}

/** Queues an order until the mark price reaches its trigger. */
export const awaitTrigger = (venue: Venue, order: VenueOrder): void => {
  const account = ensureAccount(venue.state, order.user)
  order.place = "trigger"
  account.open.set(order.oid, order)
  ensureMarket(venue.state, order.coin).triggers.set(order.oid, order)
}

/** Removes an order from the book or from the triggers, and releases its reserved funds. */
export const withdraw = (venue: Venue, asset: Asset | undefined, order: VenueOrder): void => {
  const account = ensureAccount(venue.state, order.user)
  const market = ensureMarket(venue.state, order.coin)
  if (order.place === "book") {
    if (asset !== undefined) reserve(account, asset, order, -order.sz)
    PriceTimeBook.remove(bookSide(market, order), order)
    emit(venue, { kind: "book", coin: order.coin })
  }
  if (order.place === "trigger") market.triggers.delete(order.oid)
  account.open.delete(order.oid)
  order.place = "gone"
}

/** Reduces the size of an order in the book after a fill. */
export const reduce = (venue: Venue, asset: Asset, order: VenueOrder, lots: bigint): void => {
  if (order.place === "book") reserve(ensureAccount(venue.state, order.user), asset, order, -lots)
  order.sz -= lots
  if (order.sz > 0n) return
  if (order.place === "book") PriceTimeBook.remove(bookSide(ensureMarket(venue.state, order.coin), order), order)
  if (order.place === "trigger") ensureMarket(venue.state, order.coin).triggers.delete(order.oid)
  ensureAccount(venue.state, order.user).open.delete(order.oid)
  order.place = "gone"
}

/** Adds a child order, which waits until its parent order is filled. */
export const adopt = (parent: VenueOrder, child: VenueOrder): void => {
  child.place = "parent"
  child.parent = parent.oid
  parent.children = [...parent.children, child]
}

/** Returns the order whose fill a child order waits for; `undefined` for an order that waits for no fill. */
export const findParent = (account: TradingAccount, { parent, place }: VenueOrder): VenueOrder | undefined =>
  place === "parent" && parent !== undefined ? account.orders.get(parent) : undefined

/** Ends the child orders of an order. */
export const endChildren = (venue: Venue, order: VenueOrder, status: string): void => {
  const { children } = order
  order.children = none
  for (const child of children) end(venue, child, status)
}

/** Ends an order and its child orders. If the order is a child order, removes it from its parent order. */
export const end = (venue: Venue, order: VenueOrder, status: string): void => {
  if (order.place === "gone") return
  if (order.place === "parent") {
    const parent = findParent(ensureAccount(venue.state, order.user), order)
    if (parent !== undefined) parent.children = parent.children.filter((each) => each !== order)
  }
  withdraw(venue, venue.listing.byCoin.get(order.coin), order)
  report(venue, order, status)
  endChildren(venue, order, status)
}

/** Ends an order that a new order replaces, and gives its child orders and siblings to the new order. */
export const replace = (venue: Venue, account: TradingAccount, replaced: VenueOrder, order: VenueOrder): void => {
  order.children = replaced.children
  for (const child of order.children) child.parent = order.oid
  replaced.children = none
  order.siblings = replaced.siblings
  for (const oid of order.siblings) {
    const sibling = account.orders.get(oid)
    if (sibling !== undefined) {
      sibling.siblings = sibling.siblings.map((each) => each === replaced.oid ? order.oid : each)
    }
  }
  end(venue, replaced, "canceled")
}

/** Ends an order that its user did not cancel, and emits a `nonUserCancel` event. */
export const endByVenue = (venue: Venue, order: VenueOrder, status: string): void => {
  end(venue, order, status)
  emit(venue, { kind: "nonUserCancel", user: order.user, coin: order.coin, oid: order.oid })
}

/** Returns the available balance of an account in a spot token, in the token's wei. */
export const available = (account: TradingAccount, token: number): bigint => {
  const balance = account.spot.get(token)
  return balance === undefined ? 0n : balance.total - balance.hold
}

/** Returns the maximum number of lots by which an order can reduce a position. */
export const reducible = (account: TradingAccount, asset: Asset, order: VenueOrder): bigint => {
  if (asset.kind === "spot") return order.sz
  const size = account.clearings.get(asset.dex)?.positions.get(asset.coin)?.size ?? 0n
  const against = order.isBuy ? -size : size
  return against <= 0n ? 0n : order.isPositionTpsl ? against : min(order.sz, against)
}

/** Returns whether the available balance covers a spot order. */
export const isCovered = (account: TradingAccount, asset: Asset, order: VenueOrder): boolean => {
  const of = reserved(asset, order, order.sz)
  return of === undefined || available(account, of.token) >= of.wei
}
