/**
 * The rules of a policy: pure functions of an action, the markets, the account's state and its reservations. The first
 * rule that refuses an action states its measurement.
 *
 * The exposure of an account is counted as if every order fills: notional = size x the higher of limit price and mid
 * price. Orders with the venue's reduce-only flag cannot increase a position, so they are not part of it. But they can
 * close a position, as a liquidation can: orders of the other side are therefore counted in full, as if there were no
 * position for them to close. A spot sale is bounded by the balance, so it is not part of the exposure.
 */
import { actionCatalog, innerAction, isActionType, type SentAction } from "@trigate/domain/actions/Action"
import * as Policy from "@trigate/domain/actions/Policy"
import { type Address, lowerCase } from "@trigate/domain/encoding/Encoding"
import { actionSchemas, type OrderRequest } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type { Admitted } from "../admission/Admission.ts"
import type { GuardedMarket, Markets } from "./Markets.ts"

/** A refusal: the rule, the measured value, the limit, and the time after which the action may pass. */
export interface Violation {
  readonly rule: Policy.RuleName | "account" | "halt" | "maxAge" | "signature" | "store"
  readonly detail: string
  readonly measured?: number
  readonly limit?: number
  readonly unit?: string
  readonly leg?: number
  readonly retryAfter?: number
}

/** An order that rests, that is on its way, or whose outcome is unknown. */
export interface OpenOrder extends Pick<Leg, "isBuy" | "isReduceOnly" | "price" | "size"> {
  readonly market: GuardedMarket
}

/** Returns the notional of an order: its size at the higher of its price and the mid price. */
export const notional = ({ price, size }: Pick<OpenOrder, "price" | "size">, mid: number): number =>
  size * Math.max(price ?? 0, mid)

/** The sums of an account's open orders in one market, by side, and its position. */
interface Side {
  readonly market: GuardedMarket
  position: number
  buys: number
  sells: number
}

/** The positions of an account, and the positions that its open orders can lead to. */
export class Exposure {
  readonly #sides = new Map<string, Side>()

  #side(market: GuardedMarket): Side {
    const known = this.#sides.get(market.coin)
    if (known !== undefined) return known
    const side = { market, position: 0, buys: 0, sells: 0 }
    this.#sides.set(market.coin, side)
    return side
  }

  /** Sets the signed size of a position, or the balance of a spot market's base token. */
  setPosition(market: GuardedMarket, size: number): void {
    this.#side(market).position = size
  }

  /** Adds an open order, or removes one if `sign` is -1. */
  add(order: OpenOrder, mid: number, sign: 1 | -1 = 1): void {
    if (order.isReduceOnly) return
    const side = this.#side(order.market)
    if (order.isBuy) side.buys += sign * notional(order, mid)
    else if (order.market.base === undefined) side.sells += sign * notional(order, mid)
  }

  /** Returns the notional of the open orders of all markets with a quote token. */
  openNotional(quote: string): number {
    let sum = 0
    for (const { buys, market, sells } of this.#sides.values()) if (market.quote === quote) sum += buys + sells
    return sum
  }

  /** Returns the notional of the position in a market if all orders of the worse side fill. */
  worstPosition(market: GuardedMarket, mid: number): number {
    const side = this.#sides.get(market.coin)
    if (side === undefined) return 0
    const held = side.position * mid
    return Math.max(Math.max(held, 0) + side.buys, Math.max(-held, 0) + side.sells)
  }

  /** Returns the sum of {@link worstPosition} over the markets with a quote token that `includes` selects. */
  totalNotional(
    quote: string,
    priceOf: (market: GuardedMarket) => number,
    includes: (coin: string) => boolean = () => true
  ): number {
    let sum = 0
    for (const { market } of this.#sides.values()) {
      if (market.quote === quote && includes(market.coin)) sum += this.worstPosition(market, priceOf(market))
    }
    return sum
  }
}

/** An action, and the state in which the rules are applied to it. */
export interface Situation {
  readonly action: GuardedAction
  readonly account: string
  readonly markets: Markets
  /** Returns the price by which a position or an order is measured. */
  readonly priceOf: (market: GuardedMarket) => number
  /** The account's positions and open orders; `undefined` if no policy of the account limits them. */
  readonly exposure: Exposure | undefined
  /** Returns the account's loss since a time of day; `undefined` if it is not known. */
  readonly lossSince: (loss: Policy.Loss) => number | undefined
  /** The age of the account's state in milliseconds. */
  readonly stateAge: number
  /** Wall time in milliseconds. */
  readonly wallTime: number
  /** Milliseconds of a clock that only moves forward. */
  readonly now: number
  /** The number of the account's new orders in the last 60 seconds. */
  readonly orders: number
  /** Returns the seconds until this number of new orders is within a limit; `undefined` if they never are. */
  readonly waitFor: (more: number, limit: number) => number | undefined
}

/**
 * Returns whether an action can only reduce positions: it places orders, and each of them has the venue's reduce-only
 * flag.
 */
export const isReducing = ({ legs }: GuardedAction): boolean =>
  legs.length > 0 && legs.every(({ isReduceOnly }) => isReduceOnly)

const round = (value: number): number => Number(value.toPrecision(12))

const exceeds = (measured: number, limit: number): boolean => measured > limit * (1 + 1e-12)

const over = (
  rule: Policy.RuleName,
  what: string,
  measured: number,
  limit: number,
  unit: string,
  leg?: number
): Violation => ({
  rule,
  measured: round(measured),
  limit,
  unit,
  ...(leg === undefined ? {} : { leg }),
  detail: `${what} ${round(measured)} ${unit}; the policy allows ${limit}`
})

const minutesOfDay = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3))

const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const

const dayNames: { readonly [short: string]: number } = { Sun: 0, Mon: 1, Tue: 2, Wed: 3, Thu: 4, Fri: 5, Sat: 6 }

interface LocalTime {
  readonly epochMinute: number
  readonly day: number
  readonly minute: number
}

// formatting a time takes as long as all other rules together, and the result is the same for a minute
const localTimes = new Map<string, LocalTime>()

/** Returns the day of the week and the minute of the day in a time zone. */
const localTime = (zone: string, at: number): LocalTime => {
  const epochMinute = Math.floor(at / 60_000)
  const known = localTimes.get(zone)
  if (known?.epochMinute === epochMinute) return known
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    weekday: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23"
  }).formatToParts(at)
  const part = (type: string): string => parts.find((each) => each.type === type)?.value ?? ""
  const local = {
    epochMinute,
    day: dayNames[part("weekday")] ?? 0,
    minute: Number(part("hour")) * 60 + Number(part("minute"))
  }
  localTimes.set(zone, local)
  return local
}

/** Returns the minutes until the hours begin; 0 within them. */
export const minutesUntil = (hours: Policy.Hours, at: number): number => {
  const { day, minute } = localTime(hours.zone, at)
  const from = minutesOfDay(hours.from)
  const to = minutesOfDay(hours.to)
  const length = to > from ? to - from : to + 1440 - from
  const begins = (offset: number): boolean => {
    const name = days[(day + offset + 7) % 7]
    return hours.days === undefined || (name !== undefined && hours.days.includes(name))
  }
  const isWithin = (offset: number): boolean => {
    const since = minute - from - offset * 1440
    return begins(offset) && since >= 0 && since < length
  }
  if (isWithin(0) || isWithin(-1)) return 0
  for (let offset = 0; offset <= 7; offset++) {
    const wait = from + offset * 1440 - minute
    if (wait > 0 && begins(offset)) return wait
  }
  return 1440
}

/** Refuses what can be judged from the action alone. */
const ofAction = (policy: Policy.Policy, { account, action, wallTime }: Situation): Violation | undefined => {
  const { builderFee, destinations, expiresAfter, legs, leverage, type } = action
  if (!Policy.permits(policy, type)) {
    return { rule: "actions", detail: `The policy does not name the action type ${JSON.stringify(type.slice(0, 64))}` }
  }
  const wait = policy.hours === undefined || isReducing(action) ? 0 : minutesUntil(policy.hours, wallTime)
  if (policy.hours !== undefined && wait > 0) {
    const { from, to, zone } = policy.hours
    return {
      rule: "hours",
      retryAfter: wait * 60,
      detail: `Outside the hours ${from} to ${to} (${zone}), which begin in ${wait} minutes`
    }
  }
  const allowed = policy.destinations?.map((each) => each.toLowerCase())
  const elsewhere = destinations.find((each) => each !== account && allowed?.includes(each) === false)
  if (elsewhere !== undefined) {
    return { rule: "destinations", detail: `The policy does not name the destination ${elsewhere.slice(0, 64)}` }
  }
  if (leverage !== undefined && policy.leverage !== undefined && leverage.value > policy.leverage) {
    return over("leverage", "The leverage would be", leverage.value, policy.leverage, "x")
  }
  if (leverage?.isCross !== undefined && policy.marginMode !== undefined) {
    if (leverage.isCross !== (policy.marginMode === "cross")) {
      return { rule: "marginMode", detail: `The policy allows only ${policy.marginMode} margin` }
    }
  }
  if (policy.expiresWithin !== undefined && action.canExpire) {
    const limit = Duration.toMillis(policy.expiresWithin) / 1000
    if (expiresAfter === undefined) {
      return { rule: "expiresWithin", limit, unit: "s", detail: `The action needs expiresAfter within ${limit} s` }
    }
    const measured = (expiresAfter - wallTime) / 1000
    if (measured > limit) return over("expiresWithin", "The action expires in", measured, limit, "s")
  }
  if (policy.builderFee !== undefined && builderFee !== undefined && exceeds(builderFee, policy.builderFee)) {
    return over("builderFee", "The builder fee is", builderFee, policy.builderFee, "bp")
  }
  for (const [leg, { hasCloid, isOfPosition, isReduceOnly }] of legs.entries()) {
    if (isOfPosition && !isReduceOnly) {
      return { rule: "reduceOnly", leg, detail: "An order for the whole position has to be reduce-only" }
    }
    if (policy.cloidRequired === true && !hasCloid) {
      return { rule: "cloidRequired", leg, detail: "The order has no client order ID" }
    }
    if (policy.reduceOnly === true && !isReduceOnly) {
      return { rule: "reduceOnly", leg, detail: "The order is not reduce-only" }
    }
  }
  return undefined
}

const basisPoints = (price: number, reference: number): number => (price / reference - 1) * 10_000

/** Refuses a price that is too far from a reference. Without a reference, no price can be judged. */
const farFrom = (
  rule: "marketSlippage" | "oracleBand" | "priceBand",
  leg: number,
  { isBuy, price }: Leg,
  limit: number,
  reference: number | undefined
): Violation | undefined => {
  const name = rule === "oracleBand" ? "oracle price" : "mid price"
  if (reference === undefined) {
    return { rule, leg, limit, unit: "bp", retryAfter: 1, detail: `There is no ${name} to compare the order with` }
  }
  const away = basisPoints(price ?? 0, reference)
  const measured = rule === "marketSlippage" ? (isBuy ? away : -away) : Math.abs(away)
  if (!exceeds(measured, limit)) return undefined
  const what = rule === "marketSlippage"
    ? `The order can trade beyond the ${name} by`
    : `The price is off the ${name} by`
  return over(rule, what, Math.round(measured * 100) / 100, limit, "bp", leg)
}

/** Returns whether the rules of a policy need prices, for the given action. */
export const needsPrices = (policy: Policy.Policy, { legs }: GuardedAction): boolean =>
  legs.length > 0 && (
    policy.orderNotional !== undefined || policy.actionNotional !== undefined || policy.priceBand !== undefined ||
    policy.oracleBand !== undefined || policy.marketSlippage !== undefined || needsState(policy)
  )

/** Returns whether the rules of a policy need the account's positions and open orders. */
export const needsState = (policy: Policy.Policy): boolean =>
  policy.openNotional !== undefined || policy.positionNotional !== undefined || policy.totalNotional !== undefined ||
  policy.loss !== undefined

/** Returns the orders that an action places in the known markets. */
export const ordersIn = ({ legs }: GuardedAction, markets: Pick<Markets, "find">): ReadonlyArray<OpenOrder> =>
  legs.flatMap((leg) => {
    const market = markets.find(leg.asset)
    return market === undefined ? [] : [{ ...leg, market }]
  })

/** Refuses what depends on the market of an order. */
const ofOrders = (policy: Policy.Policy, { action, markets, now }: Situation): Violation | undefined => {
  const limitAge = Policy.maxAge(policy)
  const usesPrices = needsPrices(policy, action)
  let total = 0
  for (const [leg, order] of action.legs.entries()) {
    const market = markets.find(order.asset)
    if (market === undefined) {
      if (policy.coins === undefined && !usesPrices) continue
      return { rule: "coins", leg, retryAfter: 1, detail: `The asset ${order.asset} is not in the venue's lists` }
    }
    if (!Policy.includesCoin(policy, market.coin)) {
      return { rule: "coins", leg, detail: `The policy does not name ${market.coin}` }
    }
    if (!usesPrices) continue
    const age = markets.age(market.dex, now)
    if (age > limitAge) {
      if (order.isReduceOnly) continue
      return tooOld("prices", age, limitAge)
    }
    const mid = markets.mid(market)
    if (mid === undefined && order.price === null) {
      return {
        rule: "orderNotional",
        leg,
        retryAfter: 1,
        detail: `${market.coin} has no price by which to measure the order`
      }
    }
    const worth = notional(order, mid ?? 0)
    total += worth
    if (policy.orderNotional !== undefined && exceeds(worth, policy.orderNotional)) {
      return over("orderNotional", "The notional of the order is", worth, policy.orderNotional, market.quote, leg)
    }
    if (policy.actionNotional !== undefined && exceeds(total, policy.actionNotional)) {
      return over("actionNotional", "The notional of the action is", total, policy.actionNotional, market.quote)
    }
    const far = order.kind === "limit"
      ? (policy.priceBand === undefined ? undefined : farFrom("priceBand", leg, order, policy.priceBand, mid)) ??
        (policy.oracleBand === undefined || market.base !== undefined
          ? undefined
          : farFrom("oracleBand", leg, order, policy.oracleBand, markets.oracle(market)))
      : order.kind === "immediate" && policy.marketSlippage !== undefined
      ? farFrom("marketSlippage", leg, order, policy.marketSlippage, mid)
      : undefined
    if (far !== undefined) return far
  }
  return undefined
}

const tooOld = (what: string, age: number, limit: number): Violation => ({
  rule: "maxAge",
  limit: limit / 1000,
  unit: "s",
  retryAfter: 1,
  ...(Number.isFinite(age) ? { measured: Math.round(age) / 1000 } : {}),
  detail: Number.isFinite(age)
    ? `The ${what} are ${Math.round(age / 100) / 10} s old; the policy allows ${limit / 1000} s`
    : `The ${what} could not be read`
})

/** Refuses what depends on the account: its rate, its open orders and its positions. */
const ofAccount = (policy: Policy.Policy, situation: Situation): Violation | undefined => {
  const { action, exposure, markets, orders, priceOf, stateAge, waitFor } = situation
  const { legs } = action
  if (legs.length === 0) return undefined
  const measured = orders + legs.length
  if (policy.ordersPerMinute !== undefined && measured > policy.ordersPerMinute) {
    const retryAfter = waitFor(legs.length, policy.ordersPerMinute)
    return {
      ...over("ordersPerMinute", "With this action, new orders are", measured, policy.ordersPerMinute, "per minute"),
      ...(retryAfter === undefined ? {} : { retryAfter })
    }
  }
  if (!needsState(policy) || legs.every(({ isReduceOnly }) => isReduceOnly)) return undefined
  const limitAge = Policy.maxAge(policy)
  if (exposure === undefined || stateAge > limitAge) return tooOld("positions and orders", stateAge, limitAge)
  const lost = policy.loss === undefined ? undefined : ofLoss(policy.loss, situation)
  if (lost !== undefined) return lost
  const added = ordersIn(action, markets)
  for (const order of added) exposure.add(order, priceOf(order.market))
  const found = ofExposure(policy, exposure, added, priceOf)
  for (const order of added) exposure.add(order, priceOf(order.market), -1)
  return found
}

const ofLoss = (loss: Policy.Loss, { lossSince }: Situation): Violation | undefined => {
  const lost = lossSince(loss)
  const { limit, since, zone } = loss
  if (lost === undefined) {
    return {
      rule: "loss",
      limit,
      unit: "USDC",
      retryAfter: 1,
      detail: `The loss since ${since} (${zone}) cannot be measured`
    }
  }
  // an account without a loss has a negative one
  return lost < limit ? undefined : over("loss", `The loss since ${since} (${zone}) is`, lost, limit, "USDC")
}

const ofExposure = (
  policy: Policy.Policy,
  exposure: Exposure,
  added: ReadonlyArray<OpenOrder>,
  priceOf: (market: GuardedMarket) => number
): Violation | undefined => {
  for (const [leg, { isReduceOnly, market }] of added.entries()) {
    if (isReduceOnly) continue
    const limit = Policy.positionLimit(policy, market.coin)
    const worst = exposure.worstPosition(market, priceOf(market))
    if (limit !== undefined && exceeds(worst, limit)) {
      return over(
        "positionNotional",
        `If all orders fill, the position in ${market.coin} is`,
        worst,
        limit,
        market.quote,
        leg
      )
    }
  }
  for (const quote of new Set(added.map(({ market }) => market.quote))) {
    const open = exposure.openNotional(quote)
    if (policy.openNotional !== undefined && exceeds(open, policy.openNotional)) {
      return over("openNotional", "The notional of all open orders would be", open, policy.openNotional, quote)
    }
    const total = exposure.totalNotional(quote, priceOf, (coin) => Policy.includesCoin(policy, coin))
    if (policy.totalNotional !== undefined && exceeds(total, policy.totalNotional)) {
      return over("totalNotional", "If all orders fill, all positions together are", total, policy.totalNotional, quote)
    }
  }
  return undefined
}

/** The rules whose measurement depends on an account's state, which a new read may change. */
export const stateRules: ReadonlySet<string> = new Set([
  "loss",
  "maxAge",
  "openNotional",
  "positionNotional",
  "totalNotional"
])

/** Returns the first violation of a policy; `undefined` if the action is within all of its limits. */
export const violation = (policy: Policy.Policy, situation: Situation): Violation | undefined =>
  ofAction(policy, situation) ?? ofOrders(policy, situation) ?? ofAccount(policy, situation)

/** An order that an action places. */
export interface Leg {
  readonly asset: number
  readonly isBuy: boolean
  /** The size in the base token. */
  readonly size: number
  /** The limit price; for a trigger order, the worse of limit and trigger; `null` if the order has no price. */
  readonly price: number | null
  /** Whether the order has the venue's reduce-only flag; false for spot, where the venue has no such orders. */
  readonly isReduceOnly: boolean
  /**
   * How the price is meant: `limit`, an order that can rest; `immediate`, an order whose price bounds its slippage;
   * `trigger`, an order that waits for another price.
   */
  readonly kind: "limit" | "immediate" | "trigger"
  readonly hasCloid: boolean
  /** Whether the order is the take-profit or stop-loss of the whole position, whatever its size is. */
  readonly isOfPosition: boolean
}

/** An action as the guard reads it. */
export interface GuardedAction {
  /** The action type; of a multi-sig action, the type of its inner action. */
  readonly type: string
  /** The vault or sub-account on whose behalf the action is signed. */
  readonly vault?: Address
  /** The account whose co-signers signed the action. */
  readonly multiSigUser?: Address
  /** Whether only the account itself can sign the action, not its API wallets. */
  readonly isSignedByAccount: boolean
  readonly legs: ReadonlyArray<Leg>
  /** The accounts to which the action sends funds. */
  readonly destinations: ReadonlyArray<string>
  readonly leverage?: { readonly asset: number; readonly isCross?: boolean; readonly value: number }
  /** The builder fee in basis points. */
  readonly builderFee?: number
  /** The end of the action's validity in milliseconds; absent if its signature does not cover one. */
  readonly expiresAfter?: number
  /** Whether the signature of this type covers `expiresAfter`. */
  readonly canExpire: boolean
}

const firstSpot = 10_000
const firstBuilderDex = 100_000
const firstOutcome = 100_000_000

const isPerpetual = (asset: number): boolean => asset < firstSpot || (asset >= firstBuilderDex && asset < firstOutcome)

const readOrder = ({ a, b, c, p, r, s, t }: OrderRequest, isOfPosition: boolean): Leg => {
  const limit = Number(p)
  const isTrigger = "trigger" in t
  const isImmediate = isTrigger ? false : t.limit.tif === "Ioc" || t.limit.tif === "FrontendMarket"
  return {
    asset: a,
    isBuy: b,
    size: Number(s),
    price: isTrigger ? Math.max(limit, Number(t.trigger.triggerPx)) : limit,
    isReduceOnly: r && isPerpetual(a),
    kind: isTrigger ? "trigger" : isImmediate ? "immediate" : "limit",
    hasCloid: c !== undefined && c !== null,
    isOfPosition
  }
}

/** Reads an order of which only the size is known in advance: a TWAP order or a trailing stop. It cannot have a cloid. */
const unpriced = (asset: number, isBuy: boolean, size: string, isReduceOnly: boolean): Leg => ({
  asset,
  isBuy,
  size: Number(size),
  price: null,
  isReduceOnly: isReduceOnly && isPerpetual(asset),
  kind: "trigger",
  hasCloid: true,
  isOfPosition: false
})

const decoders = {
  order: Schema.decodeUnknownOption(actionSchemas.order),
  modify: Schema.decodeUnknownOption(actionSchemas.modify),
  batchModify: Schema.decodeUnknownOption(actionSchemas.batchModify),
  twapOrder: Schema.decodeUnknownOption(actionSchemas.twapOrder),
  trailingStop: Schema.decodeUnknownOption(actionSchemas.trailingStop),
  updateLeverage: Schema.decodeUnknownOption(actionSchemas.updateLeverage),
  topUpIsolatedOnlyMargin: Schema.decodeUnknownOption(actionSchemas.topUpIsolatedOnlyMargin)
} as const

type Details = Pick<GuardedAction, "builderFee" | "legs" | "leverage">

/** Reads the members of an action that rules limit, by action type. */
const readers: { readonly [type: string]: (action: SentAction) => Option.Option<Details> } = {
  order: (action) =>
    Option.map(decoders.order(action), ({ builder, grouping, orders }) => ({
      legs: orders.map((order) => readOrder(order, grouping === "positionTpsl")),
      // the venue counts fees in tenths of a basis point
      ...(builder === undefined || builder === null ? {} : { builderFee: builder.f / 10 })
    })),
  modify: (action) => Option.map(decoders.modify(action), ({ order }) => ({ legs: [readOrder(order, false)] })),
  batchModify: (action) =>
    Option.map(decoders.batchModify(action), ({ modifies }) => ({
      legs: modifies.map(({ order }) => readOrder(order, false))
    })),
  twapOrder: (action) =>
    Option.map(decoders.twapOrder(action), ({ twap: { a, b, r, s } }) => ({
      legs: [unpriced(a, b, s, r)]
    })),
  trailingStop: (action) =>
    Option.map(decoders.trailingStop(action), ({ asset, isBuy, reduceOnly, sz }) => ({
      legs: [unpriced(asset, isBuy, sz, reduceOnly)]
    })),
  updateLeverage: (action) =>
    Option.map(decoders.updateLeverage(action), ({ asset, isCross, leverage }) => ({
      legs: [],
      leverage: { asset, isCross, value: leverage }
    })),
  topUpIsolatedOnlyMargin: (action) =>
    Option.map(decoders.topUpIsolatedOnlyMargin(action), ({ asset, leverage }) => ({
      legs: [],
      leverage: { asset, value: Number(leverage) }
    }))
}

/** The members that name the account to which an action sends funds. */
const destinationMembers = ["destination", "destinationRecipient", "subAccountUser", "vaultAddress"] as const

const destinationsIn = (action: SentAction): ReadonlyArray<string> =>
  destinationMembers.flatMap((member) => {
    const value = action[member]
    return Predicate.isString(value) ? [value.toLowerCase()] : []
  })

/**
 * Reads an admitted action. Returns `undefined` if the members of its type cannot be read, so that a rule about them
 * could not be checked.
 */
export const read = (
  { action: decoded, signed, trace: { vault } }: Pick<Admitted, "action" | "signed" | "trace">
): GuardedAction | undefined => {
  const action = innerAction(signed.action) ?? signed.action
  const details: Option.Option<Details> = Object.hasOwn(readers, action.type)
    ? readers[action.type]?.(action) ?? Option.none()
    : Option.some({ legs: [] })
  if (Option.isNone(details)) return undefined
  const scheme = isActionType(action.type) ? actionCatalog[action.type].scheme : undefined
  const { expiresAfter } = signed
  const canExpire = scheme === "l1"
  return {
    type: action.type,
    // the signature of a user-signed action does not cover a vault
    ...(vault === undefined || !canExpire ? {} : { vault }),
    ...(decoded?.type === "multiSig" ? { multiSigUser: lowerCase(decoded.payload.multiSigUser) } : {}),
    isSignedByAccount: scheme === "userSigned",
    destinations: destinationsIn(action),
    ...(canExpire && Predicate.isNumber(expiresAfter) ? { expiresAfter } : {}),
    canExpire,
    ...details.value
  }
}
