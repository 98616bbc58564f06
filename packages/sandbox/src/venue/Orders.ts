/** Places, modifies and cancels orders, individually, in batches, by triggers and as TWAP slices. */
import { type Address, lowerCase } from "@trigate/domain/encoding/Encoding"
import type { ActionOf, OrderRequest, TimeInForce } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as Random from "../Seed.ts"
import { type ActionContext, undelegated } from "./AccountActions.ts"
import { findOrder, isCapped, remember } from "./AccountReads.ts"
import * as Decimals from "./Assets.ts"
import { type Asset, divideUp, findUsdPair, max, min, printPx, printSz, readPx } from "./Assets.ts"
import * as Margin from "./Margin.ts"
import * as Matching from "./Matching.ts"
import { one as wholePrice } from "./Outcomes.ts"
import { countFills, ensureAccount, ensureMarket, fillAt, findAccount, isFrozen, makeOrder } from "./TradingState.ts"
import type { TradingAccount, Trailing, Twap, VenueOrder } from "./TradingState.ts"
import { emit, type Venue, zeroHash } from "./Venue.ts"
import * as Words from "./VenueRefusal.ts"

/** The refusal of an order: the order's status, and the text of the response. */
export interface OrderRefusal {
  /** The order's status; absent if the venue refuses the order before it assigns an ID. */
  readonly status?: string
  readonly text: string
}

/** Returns whether an asset is the side of an outcome, whose price is below 1. */
const isSide = (asset: Asset): boolean => asset.kind === "spot" && asset.side !== undefined

/** An order's parameters in ticks and lots. */
export interface OrderTerms {
  readonly px: bigint
  readonly sz: bigint
  readonly trigger?: VenueOrder["trigger"]
}

/** Returns whether the minimum value of an order is not reached. For an outcome, it is the value at the mark price. */
const isTooSmall = (asset: Asset, mark: bigint, { px, sz }: VenueOrder): boolean =>
  (isSide(asset) ? mark : px) * sz < minimumValue(asset)

/** Returns the minimum value of an order, ten dollars, in ticks times lots. */
const minimumValue = ({ pxDecimals, szDecimals }: Asset): bigint => 10n * 10n ** BigInt(pxDecimals + szDecimals)

/** Returns whether a mark price has reached a trigger. */
export const isReached = (isBuy: boolean, { px, tpsl }: NonNullable<VenueOrder["trigger"]>, mark: bigint): boolean =>
  isBuy === (tpsl === "sl") ? mark >= px : mark <= px

/**
 * Decodes an order's parameters, and performs the checks that depend neither on the market nor on the account. The limit
 * price of a stop at the market cannot be better than the trigger price.
 */
export const readTerms = (
  asset: Asset,
  { b, p, s, t }: OrderRequest,
  isPositionTpsl: boolean
): OrderTerms | OrderRefusal => {
  const px = readPx(asset, p)
  if (px === "invalid" || px !== "tick" && isSide(asset) && px >= wholePrice) return { text: Words.invalidPrice }
  if (px === "tick") return { text: Words.tick(asset), status: "tickRejected" }
  const sz = Decimals.parseDecimal(s, asset.szDecimals)
  if (sz === undefined) return { text: Words.invalidSize }
  if (sz === 0n && !isPositionTpsl) return { text: Words.zeroSize }
  if (!("trigger" in t)) return { px, sz }
  const trigger = readPx(asset, t.trigger.triggerPx)
  if (trigger === "invalid") return { text: Words.triggerPrice(asset), status: "badTriggerPxRejected" }
  if (trigger === "tick") return { text: Words.tick(asset), status: "tickRejected" }
  const { isMarket, tpsl } = t.trigger
  return isMarket && tpsl === "sl" && (b ? px < trigger : px > trigger)
    ? { text: Words.triggerPrice(asset), status: "badTriggerPxRejected" }
    : { px, sz, trigger: { px: trigger, isMarket, tpsl } }
}

/**
 * Returns the maximum number of open orders for an account: 1000, plus one for each 5 million dollars of traded volume,
 * at most 5000.
 */
const openOrderCap = ({ volume }: TradingAccount): number =>
  Math.min(5_000, 1_000 + Number(volume / 5_000_000_000_000n))

/** Maximum distance of a limit price from the mark price, in percent. */
const band = 80n

const isOutOfBand = (px: bigint, mark: bigint): boolean =>
  px * 100n > mark * (100n + band) || px * 100n < mark * (100n - band)

/** Returns the reason to refuse an order before it is matched; `undefined` if the order is acceptable. */
export const findRefusal = (
  venue: Venue,
  account: TradingAccount,
  asset: Asset,
  order: VenueOrder
): OrderRefusal | undefined => {
  const mark = Margin.markPrice(venue, asset)
  // any other order whose trigger is already reached is triggered at once
  const isStopMarket = order.trigger?.isMarket === true && order.trigger.tpsl === "sl"
  const isWaiting = order.trailing !== undefined && order.trailing.best === undefined
  if (order.trigger !== undefined && isStopMarket && !isWaiting && isReached(order.isBuy, order.trigger, mark)) {
    return { text: Words.triggerPrice(asset), status: "badTriggerPxRejected" }
  }
  const reducible = order.reduceOnly ? Matching.reducible(account, asset, order) : undefined
  // the minimum value does not apply to reduce-only orders, or to take-profit and stop-loss orders of a whole position
  if (isTooSmall(asset, mark, order) && !order.isPositionTpsl && reducible === undefined) {
    return {
      text: asset.kind === "spot" ? Words.minimumSpotNotional(asset, asset.quote.name) : Words.minimumNotional(asset),
      status: "minTradeNtlRejected"
    }
  }
  if (!isSide(asset) && isOutOfBand(order.px, mark)) return { text: Words.priceBand, status: "oracleRejected" }
  if (account.open.size >= openOrderCap(account)) {
    return { text: Words.tooManyOpenOrders(asset), status: "tooManyOpenOrdersRejected" }
  }
  if (order.trigger === undefined && reducible === 0n) {
    return { text: Words.reduceOnly(asset), status: "reduceOnlyRejected" }
  }
  if (asset.kind === "perpetual" && !order.reduceOnly && isCapped(venue, asset)) {
    const size = account.clearings.get(asset.dex)?.positions.get(asset.coin)?.size ?? 0n
    const isClosing = size !== 0n && size > 0n !== order.isBuy && order.sz <= Decimals.abs(size)
    if (!isClosing) {
      return { text: Words.openInterestCapped(asset), status: "positionIncreaseAtOpenInterestCapRejected" }
    }
  }
  const { ask, bid } = Matching.bestPrices(venue, asset)
  const crosses = order.isBuy ? ask !== undefined && ask <= order.px : bid !== undefined && bid >= order.px
  if (order.tif === "Alo" && crosses) {
    const print = (px: bigint | undefined) => px === undefined ? "" : printPx(asset, px)
    return { text: Words.postOnly(asset, print(bid), print(ask)), status: "badAloPxRejected" }
  }
  if (venue.rejectsOrder()) return lacksFunds(asset)
  return order.trigger === undefined ? fundsRefusal(venue, account, asset, order) : undefined
}

const lacksFunds = (asset: Asset): OrderRefusal =>
  asset.kind === "spot"
    ? { text: Words.insufficientSpot(asset), status: "insufficientSpotBalanceRejected" }
    : { text: Words.insufficientMargin(asset), status: "perpMarginRejected" }

/** Returns the refusal of an order because the account has too little margin or balance for it, or is frozen. */
export const fundsRefusal = (
  venue: Venue,
  account: TradingAccount,
  asset: Asset,
  order: VenueOrder
): OrderRefusal | undefined => {
  const isDenied = asset.kind === "spot" &&
    [asset.base, asset.quote].some(({ index }) => isFrozen(venue.state, index, account.address))
  if (isDenied) return { text: Words.frozen, status: "insufficientSpotBalanceRejected" }
  const isCovered = asset.kind === "spot"
    ? Matching.isCovered(venue, account, asset, order)
    : order.reduceOnly || Margin.allows(venue, account, asset, order.isBuy, order.sz)
  return isCovered ? undefined : lacksFunds(asset)
}

interface Refused {
  readonly error: string
}

/** The status of an order that was matched, in the venue's form. */
export type ExecutedStatus =
  | { readonly resting: { readonly oid: number; readonly cloid?: string } }
  | {
    readonly filled: { readonly totalSz: string; readonly avgPx: string; readonly oid: number; readonly cloid?: string }
  }
  | Refused

/** The status of one order or cancellation, in the venue's form. */
export type LegStatus =
  | ExecutedStatus
  | "waitingForFill"
  | "waitingForTrigger"
  | "success"

const named = ({ cloid, oid }: VenueOrder) => ({ oid, ...(cloid === null ? {} : { cloid }) })

interface Draft {
  readonly asset: Asset
  readonly request: OrderRequest
  readonly terms: OrderTerms
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
  const terms = readTerms(asset, request, isPositionTpsl)
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

const fromDraft = (
  venue: Venue,
  user: Address,
  { asset, builder, isPositionTpsl, priority, request, terms: { px, sz, trigger } }: Draft
): VenueOrder =>
  makeOrder(venue.state, {
    user,
    coin: asset.coin,
    isBuy: request.b,
    px,
    sz,
    reduceOnly: request.r,
    tif: "limit" in request.t ? request.t.limit.tif : request.t.trigger.isMarket ? null : "Gtc",
    cloid: request.c === undefined || request.c === null ? null : lowerCase(request.c),
    ...(trigger === undefined ? {} : { trigger }),
    isPositionTpsl,
    ...(builder === undefined ? {} : { builder }),
    ...(priority === undefined ? {} : { priority })
  })

/**
 * Matches a valid order. If the order is immediate-or-cancel, cancels the unfilled part; otherwise adds that part to
 * the book.
 */
export const execute = (venue: Venue, asset: Asset, order: VenueOrder): ExecutedStatus => {
  const account = ensureAccount(venue.state, order.user)
  if (order.reduceOnly) order.sz = min(order.sz, Matching.reducible(account, asset, order))
  const met = Matching.take(venue, asset, order, { hash: venue.hash })
  const ended = order.sz === 0n
  if (ended) Matching.report(venue, order, "filled")
  else if (Matching.isImmediate(order.tif)) {
    Matching.report(venue, order, met.sz === 0n ? "iocCancelRejected" : "canceled")
  } else {
    Matching.rest(venue, asset, order)
    if (met.sz > 0n || order.status !== "open") Matching.report(venue, order, "open")
  }
  if (met.sz > 0n) {
    if (ended || Matching.isImmediate(order.tif)) Matching.release(venue, order)
    Matching.endReducers(venue, asset, order.user)
    return {
      filled: { totalSz: printSz(asset, met.sz), avgPx: printPx(asset, met.paid / met.sz), ...named(order) }
    }
  }
  return Matching.isImmediate(order.tif)
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
  const order = fromDraft(venue, account.address, draft)
  remember(venue, account, order)
  if (replaced !== undefined) Matching.replace(venue, account, replaced, order)
  const status = submit(venue, account, draft, order, children)
  if (typeof status === "object" && "error" in status) Matching.endChildren(venue, order, "canceled")
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
  const refusal = findRefusal(venue, account, asset, order)
  if (refusal !== undefined) {
    if (refusal.status === undefined) account.orders.delete(order.oid)
    else Matching.report(venue, order, refusal.status)
    return { error: refusal.text }
  }
  Matching.report(venue, order, "open")
  if (order.trigger !== undefined) {
    Matching.awaitTrigger(venue, order)
    const mark = Margin.markPrice(venue, asset)
    const fired = isReached(order.isBuy, order.trigger, mark) ? fire(venue, asset, order, mark) : undefined
    if (fired !== undefined && "filled" in fired) return fired
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
  const order = fromDraft(venue, account.address, draft)
  Matching.adopt(parent, order)
  remember(venue, account, order)
  if (replaced !== undefined) Matching.replace(venue, account, replaced, order)
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
  const pair = findUsdPair(venue.listing, venue.listing.hype)
  return pair === undefined ? undefined : divideUp(
    value * BigInt(priority) * 10n ** BigInt(pair.pxDecimals),
    Margin.markPrice(venue, pair) * 10n ** BigInt(asset.pxDecimals + asset.szDecimals)
  )
}

/** Returns the value of an order's fills, in ticks times lots. */
const filledValue = (account: TradingAccount, { pxDecimals, szDecimals }: Asset, oid: number): bigint => {
  let value = 0n
  for (let index = countFills(account) - 1;; index--) {
    const fill = fillAt(account, index)
    if (fill?.oid !== oid) return value
    const { px, sz } = fill
    value += (Decimals.parseDecimal(px, pxDecimals) ?? 0n) * (Decimals.parseDecimal(sz, szDecimals) ?? 0n)
  }
}

/**
 * Places an order that pays a priority fee: of the filled value if it is immediate-or-cancel, otherwise of the resting
 * value. Refuses the order if the stake does not cover the fee of its whole value.
 */
const placeFirst = (
  venue: Venue,
  account: TradingAccount,
  draft: Draft,
  stake: ReturnType<typeof undelegated>
): LegStatus => {
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
const findBatchRefusal = ({ grouping, orders }: ActionOf<"order">): string | undefined => {
  const [first, ...others] = orders
  if (first === undefined) return Words.emptyBatch
  if (typeof grouping === "object") return findPriorityRefusal(orders, grouping.p)
  if (grouping === "na") return undefined
  if (grouping === "normalTpsl" && "trigger" in first.t) return Words.mainIsTrigger
  if (grouping === "normalTpsl" && others.length === 0) return Words.noTriggerOrders
  return orders.some(({ r, t }) => "trigger" in t && !r) ? Words.tpslReduceOnly : undefined
}

/** Places the orders of an action. Returns the status of each order, or one rejection of the whole action. */
export const placeAll = (context: ActionContext, action: ActionOf<"order">): ReadonlyArray<LegStatus> => {
  const { user, venue } = context
  const { builder, grouping, orders } = action
  const refusal = findBatchRefusal(action)
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
        : placeFirst(venue, account, draft, undelegated(context))
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
  const order = findOrder(account, name)
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
    Matching.end(venue, order, "canceled")
    return "success"
  })

/** Cancels orders by the venue's order IDs. */
export const cancelAll = (
  { user, venue }: ActionContext,
  { cancels, f }: ActionOf<"cancel">
): ReadonlyArray<LegStatus> =>
  cancelEach(venue, findAccount(venue.state, user), cancels.map(({ a, o }) => [a, o]), f === true)

/** Cancels orders by client order IDs. */
export const cancelAllByCloid = ({ user, venue }: ActionContext, { cancels, f }: ActionOf<"cancelByCloid">) =>
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
  { user, venue }: ActionContext,
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
    const parent = Matching.findParent(account, order)
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

/** Returns the trigger price of a trailing stop whose best mark price is `best`. */
const trailingPx = (isBuy: boolean, { retracement }: Pick<Trailing, "retracement">, best: bigint): bigint => {
  const distance = "px" in retracement ? retracement.px : best * retracement.millionths / 1_000_000n
  return isBuy ? best + distance : best - distance
}

/** Moves the trigger of a trailing stop after the mark price. Returns whether the order is active. */
const trail = (order: VenueOrder, trailing: Trailing, mark: bigint): boolean => {
  const { activationPx, best } = trailing
  const { isBuy, trigger } = order
  if (best === undefined && activationPx !== undefined && (isBuy ? mark > activationPx : mark < activationPx)) {
    return false
  }
  trailing.best = best === undefined ? mark : isBuy ? min(best, mark) : max(best, mark)
  if (trigger !== undefined) order.trigger = { ...trigger, px: trailingPx(isBuy, trailing, trailing.best) }
  return true
}

/** Decimals of a percentage in `trailingStop`. */
const percentDecimals = 4

/**
 * Places a trailing stop: a stop at the market whose trigger follows the mark price at a distance, in the direction that
 * is good for the position.
 */
export const placeTrailing = ({ user, venue }: ActionContext, action: ActionOf<"trailingStop">): LegStatus => {
  const { activationPx: activation, asset: id, isBuy, reduceOnly, retracement } = action
  const asset = venue.listing.byId.get(id)
  if (asset === undefined) return { error: Words.unknownAsset(id) }
  const sz = Decimals.parseDecimal(action.sz, asset.szDecimals)
  if (sz === undefined) return { error: Words.invalidSize }
  if (sz === 0n) return { error: Words.zeroSize }
  const distance = "px" in retracement
    ? readPx(asset, retracement.px)
    : Decimals.parseDecimal(retracement.pct.slice(0, -1), percentDecimals) ?? "invalid"
  const activationPx = activation === null ? undefined : readPx(asset, activation)
  if (distance === "tick" || activationPx === "tick") return { error: Words.tick(asset) }
  if (distance === "invalid" || distance <= 0n || activationPx === "invalid") {
    return { error: Words.triggerPrice(asset) }
  }
  const account = ensureAccount(venue.state, user)
  const mark = Margin.markPrice(venue, asset)
  const trailing: Trailing = {
    retracement: "px" in retracement ? { px: distance } : { millionths: distance },
    ...(activationPx === undefined ? {} : { activationPx }),
    best: undefined
  }
  const px = trailingPx(isBuy, trailing, activationPx ?? mark)
  if (px <= 0n) return { error: Words.triggerPrice(asset) }
  const order = makeOrder(venue.state, {
    user: account.address,
    coin: asset.coin,
    isBuy,
    px: mark,
    sz,
    reduceOnly,
    tif: null,
    trigger: { px, isMarket: true, tpsl: "sl" },
    trailing
  })
  trail(order, trailing, mark)
  remember(venue, account, order)
  const refusal = findRefusal(venue, account, asset, order)
  if (refusal !== undefined) {
    Matching.report(venue, order, refusal.status ?? "rejected")
    return { error: refusal.text }
  }
  Matching.report(venue, order, "open")
  Matching.awaitTrigger(venue, order)
  return { resting: named(order) }
}

/** Maximum slippage of a triggered market order from the mark price, in percent. */
const slippage = 10n

const fire = (venue: Venue, asset: Asset, order: VenueOrder, mark: bigint): ExecutedStatus | undefined => {
  const account = ensureAccount(venue.state, order.user)
  Matching.withdraw(venue, asset, order)
  Matching.report(venue, order, "triggered")
  const reducible = Matching.reducible(account, asset, order)
  if (order.isPositionTpsl) order.sz = reducible
  if ((order.reduceOnly || order.isPositionTpsl) && reducible === 0n) {
    Matching.report(venue, order, "reduceOnlyCanceled")
    return undefined
  }
  if (order.trigger?.isMarket === true) {
    order.px = order.isBuy
      ? max(order.px, mark * (100n + slippage) / 100n)
      : min(order.px, mark * (100n - slippage) / 100n)
    order.tif = "Ioc"
  }
  const refusal = fundsRefusal(venue, account, asset, order)
  if (refusal?.status !== undefined) {
    Matching.report(venue, order, refusal.status)
    return undefined
  }
  return execute(venue, asset, order)
}

/**
 * Triggers a market's orders if the mark price has reached their trigger price, in the order in which the orders were
 * placed.
 */
export const fireReached = (venue: Venue, asset: Asset): void => {
  const { triggers } = ensureMarket(venue.state, asset.coin)
  if (triggers.size === 0) return
  const mark = Margin.markPrice(venue, asset)
  for (const order of triggers.values()) {
    // an order that was triggered earlier in this loop can have ended this order
    if (order.place !== "trigger") continue
    if (order.trailing !== undefined && !trail(order, order.trailing, mark)) continue
    if (order.trigger === undefined) continue
    if (isReached(order.isBuy, order.trigger, mark)) fire(venue, asset, order, mark)
  }
}

const sliceEvery = 30_000
const slicesPerMinute = 2
const shortest = 5
const longest = 1_440
/**
 * Maximum size of a slice, as a multiple of an ordinary slice. The size includes the unfilled parts of earlier slices.
 */
const catchUp = 3n
const sliceSlippage = 3n
const rememberedTwaps = 200

/** The response to a TWAP order or its cancellation, in the venue's form. */
export type TwapStatus =
  | { readonly running: { readonly twapId: number } }
  | { readonly error: string }
  | "success"

/** Returns the asset of a TWAP order. */
const twapAsset = (venue: Venue, twap: Twap): Asset | undefined => venue.listing.byCoin.get(twap.coin)

const hasReached = (mark: bigint, px: bigint, isAbove: boolean): boolean => isAbove ? mark >= px : mark <= px

/** Returns whether a mark price ends a TWAP order. */
const isStopped = ({ isBuy, stopPx }: Pick<Twap, "isBuy" | "stopPx">, mark: bigint): boolean =>
  stopPx !== undefined && hasReached(mark, stopPx, isBuy)

/** Reads the trigger and the stop price of a TWAP order. */
const readDetails = (
  asset: Asset,
  details: ActionOf<"twapOrder">["details"]
): Pick<Twap, "stopPx" | "trigger"> | { readonly error: string } => {
  const read = (text: string | undefined) => text === undefined ? undefined : readPx(asset, text)
  const [px, stopPx] = [read(details?.t?.p), read(details?.s ?? undefined)]
  if (px === "tick" || stopPx === "tick") return { error: Words.tick(asset) }
  if (px === "invalid" || stopPx === "invalid") return { error: Words.triggerPrice(asset) }
  return {
    ...(px === undefined ? {} : { trigger: { px, isAbove: details?.t?.a === true } }),
    ...(stopPx === undefined ? {} : { stopPx })
  }
}

/** Starts a TWAP order: executes its first slice. */
const start = (venue: Venue, account: TradingAccount, twap: Twap): void => {
  twap.status = { status: "activated" }
  twap.startedAt = venue.state.now
  if (twap.stopPx === undefined) ensureMarket(venue.state, twap.coin).twaps.delete(twap.id)
  emitStatus(venue, twap)
  executeSlice(venue, account, twap)
}

/** Places a TWAP order. Starts it immediately, unless it waits for its trigger. */
export const placeTwap = ({ user, venue }: ActionContext, { details, twap }: ActionOf<"twapOrder">): TwapStatus => {
  const account = ensureAccount(venue.state, user)
  const asset = venue.listing.byId.get(twap.a)
  if (asset === undefined) return { error: Words.unknownAsset(twap.a) }
  const sz = Decimals.parseDecimal(twap.s, asset.szDecimals)
  if (sz === undefined) return { error: Words.invalidSize }
  if (sz === 0n) return { error: Words.zeroSize }
  if (twap.m < shortest || twap.m > longest) return { error: Words.twapDuration(twap.m) }
  const smallest = 10n * BigInt(twap.m) * 10n ** BigInt(asset.pxDecimals + asset.szDecimals)
  if (sz * Margin.markPrice(venue, asset) < smallest) return { error: Words.twapTooSmall(twap.m) }
  const terms = readDetails(asset, details)
  if ("error" in terms) return terms
  const mark = Margin.markPrice(venue, asset)
  if (isStopped({ isBuy: twap.b, ...terms }, mark)) return { error: Words.triggerPrice(asset) }
  const size = asset.kind === "spot"
    ? undefined
    : account.clearings.get(asset.dex)?.positions.get(asset.coin)?.size ?? 0n
  if (twap.r && size !== undefined && (twap.b ? size >= 0n : size <= 0n)) return { error: Words.reduceOnlyTwap }
  const id = venue.state.nextTwap++
  const made: Twap = {
    ...terms,
    id,
    user: account.address,
    coin: asset.coin,
    isBuy: twap.b,
    sz,
    reduceOnly: twap.r,
    minutes: twap.m,
    randomize: twap.t,
    startedAt: venue.state.now,
    executedSz: 0n,
    executedNtl: 0n,
    slices: 0,
    status: { status: "waitingForTrigger" },
    endedAt: undefined
  }
  account.twaps.set(id, made)
  if (account.twaps.size > rememberedTwaps) {
    const oldest = [...account.twaps.values()].find(({ endedAt }) => endedAt !== undefined)
    if (oldest !== undefined) account.twaps.delete(oldest.id)
  }
  const { stopPx, trigger } = made
  if (stopPx !== undefined || trigger !== undefined) ensureMarket(venue.state, asset.coin).twaps.set(id, made)
  if (trigger === undefined || hasReached(mark, trigger.px, trigger.isAbove)) start(venue, account, made)
  else emitStatus(venue, made)
  return { running: { twapId: id } }
}

/** Starts and ends the TWAP orders of a market whose trigger or stop the mark price has reached. */
export const fireSlices = (venue: Venue, asset: Asset): void => {
  const { twaps } = ensureMarket(venue.state, asset.coin)
  if (twaps.size === 0) return
  const mark = Margin.markPrice(venue, asset)
  for (const twap of twaps.values()) {
    const { status: { status }, trigger, user } = twap
    if (isStopped(twap, mark)) finish(venue, twap, { status: "stopped" })
    else if (status === "waitingForTrigger" && trigger !== undefined && hasReached(mark, trigger.px, trigger.isAbove)) {
      start(venue, ensureAccount(venue.state, user), twap)
    }
  }
}

const emitStatus = (venue: Venue, twap: Twap): void =>
  emit(venue, { kind: "twap", user: twap.user, row: printStatus(venue, twap) })

const finish = (venue: Venue, twap: Twap, status: Twap["status"]): void => {
  twap.status = status
  twap.endedAt = venue.state.now
  ensureMarket(venue.state, twap.coin).twaps.delete(twap.id)
  emitStatus(venue, twap)
}

/** Ends a TWAP order. */
export const cancelTwap = ({ user, venue }: ActionContext, { a, t }: ActionOf<"twapCancel">): TwapStatus => {
  const twap = findAccount(venue.state, user).twaps.get(t)
  if (twap?.endedAt !== undefined || twap === undefined || venue.listing.byId.get(a)?.coin !== twap.coin) {
    return { error: Words.unknownTwap }
  }
  finish(venue, twap, { status: "terminated" })
  return "success"
}

/** Returns the time at which the next slice of a TWAP order is due: infinity while the order waits for its trigger. */
const dueAt = (venue: Venue, { id, randomize, slices, startedAt, status: { status } }: Twap): number => {
  if (status === "waitingForTrigger") return Number.POSITIVE_INFINITY
  const shift = randomize
    ? Random.below(Random.series(venue.seed, `twap/${id}`), slices, sliceEvery / 3) - sliceEvery / 6
    : 0
  return startedAt + slices * sliceEvery + shift
}

/** Returns the time at which the next slice of any TWAP order of an account is due. */
export const nextSliceAt = (venue: Venue, { twaps }: TradingAccount): number => {
  let next = Number.POSITIVE_INFINITY
  for (const twap of twaps.values()) if (twap.endedAt === undefined) next = Math.min(next, dueAt(venue, twap))
  return next
}

const executeSlice = (venue: Venue, account: TradingAccount, twap: Twap): void => {
  const asset = twapAsset(venue, twap)
  const total = BigInt(twap.minutes * slicesPerMinute)
  twap.slices += 1
  const left = twap.sz - twap.executedSz
  if (asset === undefined) return finish(venue, twap, { status: "error", description: "Asset is not listed" })
  const isLast = twap.slices >= Number(total)
  const ordinary = Decimals.max(1n, twap.sz / total)
  const planned = isLast ? twap.sz : twap.sz * BigInt(twap.slices) / total
  const wanted = min(left, min(Decimals.max(0n, planned - twap.executedSz), isLast ? left : ordinary * catchUp))
  if (wanted > 0n) {
    const { coin, id, isBuy, reduceOnly, user } = twap
    const px = Margin.markPrice(venue, asset) * (isBuy ? 100n + sliceSlippage : 100n - sliceSlippage) / 100n
    const order = makeOrder(venue.state, { user, coin, isBuy, px, sz: wanted, reduceOnly, tif: "Ioc", twapId: id })
    if (reduceOnly) order.sz = min(order.sz, Matching.reducible(account, asset, order))
    const refused = fundsRefusal(venue, account, asset, order)
    if (refused !== undefined) return finish(venue, twap, { status: "error", description: refused.text })
    const met = Matching.take(venue, asset, order, { hash: zeroHash })
    if (met.sz > 0n) Matching.endReducers(venue, asset, user)
    twap.executedSz += met.sz
    twap.executedNtl += met.paid
  }
  if (isLast || twap.executedSz === twap.sz) finish(venue, twap, { status: "finished" })
}

/** Executes the due slices of an account's TWAP orders. */
export const executeDue = (venue: Venue, account: TradingAccount): void => {
  for (const twap of account.twaps.values()) {
    if (twap.endedAt === undefined && dueAt(venue, twap) <= venue.state.now) executeSlice(venue, account, twap)
  }
}

/** Encodes a TWAP order for queries and streams. */
export const printTwap = (venue: Venue, twap: Twap) => {
  const asset = Decimals.findDecimals(venue.listing, twap.coin)
  const decimals = asset === undefined ? 0 : asset.pxDecimals + asset.szDecimals
  return {
    coin: twap.coin,
    user: twap.user,
    side: twap.isBuy ? "B" : "A",
    sz: asset === undefined ? "0.0" : printSz(asset, twap.sz),
    executedSz: asset === undefined ? "0.0" : printSz(asset, twap.executedSz),
    executedNtl: Decimals.printDecimal(twap.executedNtl, decimals),
    minutes: twap.minutes,
    reduceOnly: twap.reduceOnly,
    randomize: twap.randomize,
    timestamp: twap.startedAt,
    trigger: asset === undefined || twap.trigger === undefined
      ? null
      : { px: printPx(asset, twap.trigger.px), above: twap.trigger.isAbove },
    stopPx: asset === undefined || twap.stopPx === undefined ? null : printPx(asset, twap.stopPx)
  }
}

/** Encodes the status of a TWAP order, and the time of the last change of its status in seconds. */
const printStatus = (venue: Venue, twap: Twap) => ({
  time: Math.floor((twap.endedAt ?? twap.startedAt) / 1000),
  state: printTwap(venue, twap),
  status: twap.status,
  twapId: twap.id
})

/** Returns the response to the query `twapHistory`: the TWAP orders of an account with their status, newest first. */
export const twapHistory = (venue: Venue, account: TradingAccount) =>
  [...account.twaps.values()].toReversed().map((twap) => printStatus(venue, twap))
