/** Places, modifies and cancels orders, individually and in batches. */
import type { ActionOf, OrderRequest, TimeInForce } from "@trigate/domain/actions/ActionSchemas"
import { type Address, lowerCase } from "@trigate/domain/encoding/Hex"
import type { Asset } from "./Assets.ts"
import { printPx, printSz } from "./Assets.ts"
import { min } from "./Decimals.ts"
import { endReducers, release, take } from "./Matching.ts"
import * as OrderLife from "./OrderLife.ts"
import * as OrderRules from "./OrderRules.ts"
import type { TradingAccount, VenueOrder } from "./TradingAccount.ts"
import { none } from "./TradingAccount.ts"
import { ensureAccount, findAccount } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import * as Words from "./Words.ts"

interface Refused {
  readonly error: string
}

/** The status of one order or cancellation, in the venue's form. */
export type LegStatus =
  | { readonly resting: { readonly oid: number; readonly cloid?: string } }
  | {
    readonly filled: { readonly totalSz: string; readonly avgPx: string; readonly oid: number; readonly cloid?: string }
  }
  | Refused
  | "waitingForFill"
  | "waitingForTrigger"
  | "success"

const named = ({ cloid, oid }: VenueOrder) => ({ oid, ...(cloid === null ? {} : { cloid }) })

/** Returns whether an order is immediate-or-cancel. */
const isImmediate = (tif: TimeInForce | null): boolean => tif === "Ioc" || tif === "FrontendMarket"

interface Draft {
  readonly asset: Asset
  readonly request: OrderRequest
  readonly terms: OrderRules.OrderTerms
  readonly isPositionTpsl: boolean
  readonly builder?: VenueOrder["builder"]
}

/** Reads an order. Refuses it if its asset is unknown or its terms are invalid. */
const readDraft = (
  venue: Venue,
  request: OrderRequest,
  { builder, isPositionTpsl }: Pick<Draft, "builder" | "isPositionTpsl">
): Draft | Refused => {
  const asset = venue.listing.byId.get(request.a)
  if (asset === undefined) return { error: Words.unknownAsset(request.a) }
  const terms = OrderRules.readTerms(asset, request, isPositionTpsl)
  return "text" in terms
    ? { error: terms.text }
    : { asset, request, terms, isPositionTpsl, ...(builder === undefined ? {} : { builder }) }
}

/** Returns an order as a child order. Refuses it if it has no trigger. */
const asChild = (draft: Draft): Draft | Refused =>
  draft.terms.trigger === undefined ? { error: Words.triggerPrice(draft.asset) } : draft

const makeOrder = (
  venue: Venue,
  user: Address,
  { asset, builder, isPositionTpsl, request, terms: { px, sz, trigger } }: Draft
): VenueOrder => ({
  oid: venue.state.nextOid++,
  user,
  coin: asset.coin,
  isBuy: request.b,
  px,
  origSz: sz,
  sz,
  reduceOnly: request.r,
  tif: "limit" in request.t ? request.t.limit.tif : request.t.trigger.isMarket ? null : "Gtc",
  cloid: request.c === undefined || request.c === null ? null : lowerCase(request.c),
  timestamp: venue.state.now,
  ...(trigger === undefined ? {} : { trigger }),
  isPositionTpsl,
  ...(builder === undefined ? {} : { builder }),
  children: none,
  siblings: none,
  place: "gone",
  status: "open",
  statusTimestamp: venue.state.now
})

/**
 * Matches a valid order. If the order is immediate-or-cancel, cancels the unfilled part; otherwise adds that part to
 * the book.
 */
export const execute = (venue: Venue, asset: Asset, order: VenueOrder): LegStatus => {
  const account = ensureAccount(venue.state, order.user)
  if (order.reduceOnly) order.sz = min(order.sz, OrderLife.reducible(account, asset, order))
  const met = take(venue, asset, order, { hash: venue.hash })
  const ended = order.sz === 0n
  if (ended) OrderLife.report(venue, order, "filled")
  else if (isImmediate(order.tif)) {
    OrderLife.report(venue, order, met.sz === 0n ? "iocCancelRejected" : "canceled")
  } else {
    OrderLife.rest(venue, asset, order)
    if (met.sz > 0n || order.status !== "open") OrderLife.report(venue, order, "open")
  }
  if (met.sz > 0n) {
    if (ended || isImmediate(order.tif)) release(venue, order)
    endReducers(venue, asset, order.user)
    return {
      filled: { totalSz: printSz(asset, met.sz), avgPx: printPx(asset, met.paid / met.sz), ...named(order) }
    }
  }
  return isImmediate(order.tif)
    ? { error: order.tif === "FrontendMarket" ? Words.noLiquidity(asset) : Words.noMatch(asset) }
    : { resting: named(order) }
}

/**
 * Places an order with its child orders. The order also takes over the child orders and siblings of the order that it
 * replaces. If the order is refused, its child orders end.
 */
const place = (
  venue: Venue,
  account: TradingAccount,
  draft: Draft,
  children: ReadonlyArray<Draft>,
  replaced?: VenueOrder
): LegStatus => {
  const order = makeOrder(venue, account.address, draft)
  OrderLife.remember(account, order)
  if (replaced !== undefined) OrderLife.replace(venue, account, replaced, order)
  const status = submit(venue, account, draft, order, children)
  if (typeof status === "object" && "error" in status) OrderLife.endChildren(venue, order, "canceled")
  return status
}

/** Queues or executes an order if the market and the account allow it. */
const submit = (
  venue: Venue,
  account: TradingAccount,
  { asset, isPositionTpsl }: Draft,
  order: VenueOrder,
  children: ReadonlyArray<Draft>
): LegStatus => {
  const refusal = OrderRules.findRefusal(venue, account, asset, order)
  if (refusal !== undefined) {
    if (refusal.status === undefined) account.orders.delete(order.oid)
    else OrderLife.report(venue, order, refusal.status)
    return { error: refusal.text }
  }
  OrderLife.report(venue, order, "open")
  if (order.trigger !== undefined) {
    OrderLife.awaitTrigger(venue, order)
    return isPositionTpsl ? "waitingForTrigger" : { resting: named(order) }
  }
  for (const child of children) placeChild(venue, account, order, child)
  return execute(venue, asset, order)
}

/** Places a child order, which waits until its parent order is filled. */
const placeChild = (
  venue: Venue,
  account: TradingAccount,
  parent: VenueOrder,
  draft: Draft,
  replaced?: VenueOrder
): void => {
  const order = makeOrder(venue, account.address, draft)
  OrderLife.adopt(parent, order)
  OrderLife.remember(account, order)
  if (replaced !== undefined) OrderLife.replace(venue, account, replaced, order)
}

/**
 * Returns the order's builder and the builder's fee. Returns `refused` if the account has not approved the fee, and
 * `undefined` for an order without a builder.
 */
const findBuilder = (
  account: TradingAccount,
  builder: ActionOf<"order">["builder"]
): VenueOrder["builder"] | "refused" => {
  if (builder === undefined || builder === null) return undefined
  const address = lowerCase(builder.b)
  const fee = BigInt(builder.f)
  return fee > 0n && (account.builders.get(address) ?? -1n) < fee ? "refused" : { address, tenthsOfBp: fee }
}

/** Places the orders of an action. Returns the status of each order, or one rejection of the whole action. */
export const placeAll = (
  venue: Venue,
  user: Address,
  { builder, grouping, orders }: Pick<ActionOf<"order">, "builder" | "grouping" | "orders">
): ReadonlyArray<LegStatus> => {
  const account = ensureAccount(venue.state, user)
  const shared = findBuilder(account, builder)
  if (shared === "refused") return [{ error: Words.builderNotApproved }]
  const isPositionTpsl = grouping === "positionTpsl"
  const drafts = orders.map((request) => readDraft(venue, request, { builder: shared, isPositionTpsl }))
  const [first, ...others] = drafts
  if (first === undefined) return []
  if (grouping !== "normalTpsl") {
    return drafts.map((draft) => "error" in draft ? draft : place(venue, account, draft, []))
  }
  if ("error" in first) return [first]
  if ("trigger" in first.request.t) return [{ error: Words.mainIsTrigger }]
  const legs = others.map((draft) => "error" in draft ? draft : asChild(draft))
  const parent = place(venue, account, first, legs.flatMap((leg) => "error" in leg ? [] : [leg]))
  if (typeof parent === "object" && "error" in parent) return [parent]
  const waiting = typeof parent === "object" && "filled" in parent ? "waitingForTrigger" : "waitingForFill"
  return [parent, ...legs.map((leg) => "error" in leg ? leg : waiting)]
}

/** Finds an open order by the venue's order ID or by the client order ID. */
const findOpen = (account: TradingAccount, name: number | bigint | string): VenueOrder | undefined => {
  const order = OrderLife.findOrder(account, name)
  return order === undefined || order.place === "gone" ? undefined : order
}

const cancelOne = (venue: Venue, account: TradingAccount, asset: number, name: number | bigint | string): LegStatus => {
  const order = findOpen(account, name)
  if (order === undefined || venue.listing.byId.get(asset)?.coin !== order.coin) {
    return { error: Words.unknownOrder({ id: asset }) }
  }
  OrderLife.end(venue, order, "canceled")
  return "success"
}

/** Cancels orders by the venue's order IDs. */
export const cancelAll = (
  venue: Venue,
  user: Address,
  cancels: ActionOf<"cancel">["cancels"]
): ReadonlyArray<LegStatus> => {
  const account = findAccount(venue.state, user)
  return cancels.map(({ a, o }) => cancelOne(venue, account, a, o))
}

/** Cancels orders by client order IDs. */
export const cancelAllByCloid = (
  venue: Venue,
  user: Address,
  cancels: ActionOf<"cancelByCloid">["cancels"]
): ReadonlyArray<LegStatus> => {
  const account = findAccount(venue.state, user)
  return cancels.map(({ asset, cloid }) => cancelOne(venue, account, asset, cloid))
}

/**
 * Replaces orders by new orders with new IDs. If the parameters of a new order fail a check that depends neither on the
 * market nor on the account, the old order remains open.
 */
export const modifyAll = (
  venue: Venue,
  user: Address,
  modifies: ActionOf<"batchModify">["modifies"]
): ReadonlyArray<LegStatus> => {
  const account = ensureAccount(venue.state, user)
  return modifies.map(({ oid, order: request }) => {
    const order = findOpen(account, oid)
    if (order === undefined) return { error: Words.notModifiable }
    const draft = readDraft(venue, request, order)
    if ("error" in draft) return draft
    if (draft.asset.coin !== order.coin) return { error: Words.notModifiable }
    if (order.children.length > 0 && draft.terms.trigger !== undefined) return { error: Words.mainIsTrigger }
    const parent = OrderLife.findParent(account, order)
    if (parent === undefined) return place(venue, account, draft, [], order)
    const child = asChild(draft)
    if ("error" in child) return child
    placeChild(venue, account, parent, child, order)
    return "waitingForFill"
  })
}
