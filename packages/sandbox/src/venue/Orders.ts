/** Places, modifies and cancels orders, individually and in batches. */
import type { ActionOf, OrderRequest, TimeInForce } from "@trigate/domain/actions/ActionSchemas"
import { type Address, lowerCase } from "@trigate/domain/encoding/Hex"
import type { Asset } from "./Assets.ts"
import { findUsdPair, hype, printPx, printSz } from "./Assets.ts"
import * as Decimals from "./Decimals.ts"
import { divideUp, min } from "./Decimals.ts"
import { endReducers, release, take } from "./Matching.ts"
import * as OrderLife from "./OrderLife.ts"
import * as OrderRules from "./OrderRules.ts"
import { markPrice } from "./Quotes.ts"
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
  readonly priority?: number
}

/** Reads an order. Refuses it if its asset is unknown or its terms are invalid. */
const readDraft = (
  venue: Venue,
  request: OrderRequest,
  { builder, isPositionTpsl, priority }: Pick<Draft, "builder" | "isPositionTpsl" | "priority">
): Draft | Refused => {
  const asset = venue.listing.byId.get(request.a)
  if (asset === undefined) return { error: Words.unknownAsset(request.a) }
  const terms = OrderRules.readTerms(asset, request, isPositionTpsl)
  return "text" in terms
    ? { error: terms.text }
    : {
      asset,
      request,
      terms,
      isPositionTpsl,
      ...(builder === undefined ? {} : { builder }),
      ...(priority === undefined ? {} : { priority })
    }
}

/** Returns a take-profit or stop-loss order. Refuses it if it has no trigger. */
const asTpsl = (draft: Draft): Draft | Refused =>
  draft.terms.trigger === undefined ? { error: Words.triggerPrice(draft.asset) } : draft

const makeOrder = (
  venue: Venue,
  user: Address,
  { asset, builder, isPositionTpsl, priority, request, terms: { px, sz, trigger } }: Draft
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
  ...(priority === undefined ? {} : { priority }),
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

/** The undelegated stake of an account, in wei of HYPE. It pays priority fees. */
export interface Stake {
  readonly available: () => bigint
  readonly burn: (wei: bigint) => void
}

/** Maximum rate of a priority fee: all of an order's value. */
const wholePriority = 100_000_000

const findPriorityRefusal = (orders: ReadonlyArray<OrderRequest>, rate: number): string | undefined => {
  if (rate > wholePriority) return Words.priorityRate
  const isEach = (tif: TimeInForce) => orders.every(({ t }) => "limit" in t && t.limit.tif === tif)
  return isEach("Ioc") || isEach("Alo") && orders.every(({ r }) => !r) ? undefined : Words.priorityOrders
}

/**
 * Returns the priority fee of an order's value (in ticks times lots), in wei of HYPE at the mark price of its USDC pair.
 * Returns `undefined` if that pair is not listed.
 */
const priorityFee = (venue: Venue, { asset, priority = 0 }: Draft, value: bigint): bigint | undefined => {
  const pair = findUsdPair(venue.listing, hype)
  return pair === undefined ? undefined : divideUp(
    value * BigInt(priority) * 10n ** BigInt(pair.pxDecimals),
    markPrice(venue, pair) * 10n ** BigInt(asset.pxDecimals + asset.szDecimals)
  )
}

/** Returns the value of an order's fills, in ticks times lots. */
const filledValue = ({ fills }: TradingAccount, { pxDecimals, szDecimals }: Asset, oid: number): bigint => {
  let value = 0n
  for (let index = fills.length - 1; fills[index]?.oid === oid; index--) {
    const { px = "", sz = "" } = fills[index] ?? {}
    value += (Decimals.parse(px, pxDecimals) ?? 0n) * (Decimals.parse(sz, szDecimals) ?? 0n)
  }
  return value
}

/**
 * Places an order that pays a priority fee: of the filled value if it is immediate-or-cancel, otherwise of the resting
 * value. Refuses the order if the stake does not cover the fee of its whole value.
 */
const placeFirst = (venue: Venue, account: TradingAccount, draft: Draft, stake: Stake): LegStatus => {
  const { asset, terms: { px, sz } } = draft
  const most = priorityFee(venue, draft, px * sz)
  if (most === undefined || most > stake.available()) return { error: Words.priorityBalance }
  const status = place(venue, account, draft, [])
  if (typeof status !== "object" || "error" in status) return status
  stake.burn(
    "filled" in status ? priorityFee(venue, draft, filledValue(account, asset, status.filled.oid)) ?? 0n : most
  )
  return status
}

/** Returns the venue's refusal of a whole action, which depends only on the action. */
const findBatchRefusal = ({ grouping, orders }: Pick<ActionOf<"order">, "grouping" | "orders">): string | undefined => {
  const [first, ...others] = orders
  if (first === undefined) return Words.emptyBatch
  if (typeof grouping === "object") return findPriorityRefusal(orders, grouping.p)
  if (grouping === "na") return undefined
  if (grouping === "normalTpsl" && "trigger" in first.t) return Words.mainIsTrigger
  if (grouping === "normalTpsl" && others.length === 0) return Words.noTriggerOrders
  return orders.some(({ r, t }) => "trigger" in t && !r) ? Words.tpslReduceOnly : undefined
}

/** Places the orders of an action. Returns the status of each order, or one rejection of the whole action. */
export const placeAll = (
  venue: Venue,
  user: Address,
  { builder, grouping, orders }: Pick<ActionOf<"order">, "builder" | "grouping" | "orders">,
  stake: Stake
): ReadonlyArray<LegStatus> => {
  const refusal = findBatchRefusal({ grouping, orders })
  if (refusal !== undefined) return [{ error: refusal }]
  const account = ensureAccount(venue.state, user)
  const shared = findBuilder(account, builder)
  if (shared === "refused") return [{ error: Words.builderNotApproved }]
  const isPositionTpsl = grouping === "positionTpsl"
  const terms = { builder: shared, isPositionTpsl, ...(typeof grouping === "object" ? { priority: grouping.p } : {}) }
  const drafts = orders.map((request) => readDraft(venue, request, terms))
  const [first, ...others] = drafts
  if (grouping !== "normalTpsl") {
    return drafts.map((read) => {
      const draft = "error" in read || !isPositionTpsl ? read : asTpsl(read)
      if ("error" in draft) return draft
      return draft.priority === undefined
        ? place(venue, account, draft, [])
        : placeFirst(venue, account, draft, stake)
    })
  }
  if (first === undefined || "error" in first) return first === undefined ? [] : [first]
  const legs = others.map((draft) => "error" in draft ? draft : asTpsl(draft))
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

type CancelName = number | bigint | string

/** Cancels orders of an account. A fast cancel is refused for an order that waits for a trigger. */
const cancelEach = (
  venue: Venue,
  account: TradingAccount,
  cancels: ReadonlyArray<readonly [asset: number, name: CancelName]>,
  isFast: boolean
): ReadonlyArray<LegStatus> =>
  cancels.length === 0 ? [{ error: Words.emptyBatch }] : cancels.map(([id, name]) => {
    const order = findOpen(account, name)
    if (order === undefined || venue.listing.byId.get(id)?.coin !== order.coin) {
      return { error: Words.unknownOrder({ id }) }
    }
    if (isFast && order.place !== "book") return { error: Words.fastCancel({ id }) }
    OrderLife.end(venue, order, "canceled")
    return "success"
  })

/** Cancels orders by the venue's order IDs. */
export const cancelAll = (
  venue: Venue,
  user: Address,
  { cancels, f }: Pick<ActionOf<"cancel">, "cancels" | "f">
): ReadonlyArray<LegStatus> =>
  cancelEach(venue, findAccount(venue.state, user), cancels.map(({ a, o }) => [a, o]), f === true)

/** Cancels orders by client order IDs. */
export const cancelAllByCloid = (
  venue: Venue,
  user: Address,
  { cancels, f }: Pick<ActionOf<"cancelByCloid">, "cancels" | "f">
): ReadonlyArray<LegStatus> =>
  cancelEach(venue, findAccount(venue.state, user), cancels.map(({ asset, cloid }) => [asset, cloid]), f === true)

/**
 * Returns the order that a modification without `a: true` places: a `Gtc` order becomes `Alo`, so that it never executes
 * immediately. Refuses any order that is neither.
 */
const asResting = (request: OrderRequest): OrderRequest | Refused => {
  const tif = "limit" in request.t ? request.t.limit.tif : undefined
  return tif === "Gtc" || tif === "Alo"
    ? { ...request, t: { limit: { tif: "Alo" } } }
    : { error: Words.onlyResting }
}

/**
 * Replaces orders by new orders with new IDs. If the parameters of a new order fail a check that depends neither on the
 * market nor on the account, the old order remains open. With `a: true`, the new order can execute or have a trigger,
 * and is placed even if there is no order to replace.
 */
export const modifyAll = (
  venue: Venue,
  user: Address,
  modifies: ActionOf<"batchModify">["modifies"],
  alwaysPlace: boolean
): ReadonlyArray<LegStatus> => {
  const account = ensureAccount(venue.state, user)
  if (modifies.length === 0) return [{ error: Words.emptyBatch }]
  return modifies.map(({ oid, order: sent }) => {
    const request = alwaysPlace ? sent : asResting(sent)
    if ("error" in request) return request
    const known = findOpen(account, oid)
    if (known === undefined && !alwaysPlace) return { error: Words.notModifiable }
    const draft = readDraft(venue, request, known ?? { isPositionTpsl: false })
    if ("error" in draft) return draft
    const order = draft.asset.coin === known?.coin ? known : undefined
    if (order === undefined) {
      return alwaysPlace ? place(venue, account, draft, []) : { error: Words.notModifiable }
    }
    if (order.children.length > 0 && draft.terms.trigger !== undefined) return { error: Words.mainIsTrigger }
    const parent = OrderLife.findParent(account, order)
    if (parent === undefined) {
      const status = place(venue, account, draft, [], order)
      return typeof status === "object" && "error" in status ? { error: Words.duringModify(status.error) } : status
    }
    const child = asTpsl(draft)
    if ("error" in child) return child
    placeChild(venue, account, parent, child, order)
    return "waitingForFill"
  })
}
