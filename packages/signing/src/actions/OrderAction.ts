/**
 * Makes orders, trailing stops, cancels and modifications in the venue's form, from parameters whose names contain the units.
 *
 * The venue's form names most members with single letters. The parameters for prices and sizes are decimal strings,
 * which are converted to the venue's canonical form. If a price with a redundant zero were signed, the signature would
 * recover to an unrelated address.
 */
import type { Cloid, OrderId } from "@trigate/domain/actions/ActionOutcome"
import { type Address, lowerCase } from "@trigate/domain/encoding/Encoding"
import * as Result from "effect/Result"
import * as Decimal from "../Decimal.ts"
import { isAddress, UnsignableAction } from "./ActionHash.ts"

export type { Cloid, OrderId } from "@trigate/domain/actions/ActionOutcome"

/**
 * The tick and lot size of an asset; `szDecimals` is in the venue's metadata.
 *
 * A price has at most 5 significant digits and at most 6 - `szDecimals` (perpetuals) or 8 - `szDecimals` (spot) decimal
 * places; integer prices are always valid. A size has at most `szDecimals` places. Prices and sizes are truncated,
 * never rounded up.
 */
export interface Steps {
  readonly szDecimals: number
  readonly market: "perp" | "spot"
}

/** The price that activates a trigger order, and the type of the activated order: market or limit. */
export interface Trigger {
  readonly kind: "takeProfit" | "stopLoss"
  readonly priceInQuote: string
  /**
   * Whether the order becomes a market order when it is triggered. If so, the order's `priceInQuote` limits the price.
   */
  readonly isMarket: boolean
}

interface OrderTerms {
  /**
   * The asset's ID: a perpetual's index, 10000 + a spot pair's index, or 100000 + 10000 x dex + index on a
   * builder-deployed dex.
   */
  readonly asset: number
  readonly side: "buy" | "sell"
  /** The price as a decimal string, such as `1100.5`. A double would be formatted incorrectly for some prices. */
  readonly priceInQuote: string
  /**
   * The size as a decimal string; `0` for an order with the grouping `positionTpsl`, which has the size of the
   * position.
   */
  readonly sizeInBase: string
  /** Whether the order can only reduce a position. Default: false. */
  readonly reduceOnly?: boolean | undefined
  readonly cloid?: Cloid | undefined
  /**
   * The asset's tick and lot size, to which the prices and the size of the order are truncated. Default: no truncation;
   * the venue refuses values with too many digits.
   */
  readonly cutTo?: Steps | undefined
}

/** A limit order (default `timeInForce`: `Gtc`) or a trigger order. */
export type Order =
  & OrderTerms
  & (
    | { readonly timeInForce?: "Gtc" | "Ioc" | "Alo" | "FrontendMarket" | undefined; readonly trigger?: undefined }
    | { readonly trigger: Trigger; readonly timeInForce?: undefined }
  )

/** A fee on orders that the account pays to a builder. */
export interface BuilderFee {
  readonly address: Address
  /**
   * The fee in tenths of a basis point: 10 is 0.01 %. Maximum: 100 for perpetuals, 1000 for spot. The account must have
   * approved the fee.
   */
  readonly feeInTenthsOfBp: number
}

/** The orders of one `order` action. */
export interface Placement {
  readonly orders: ReadonlyArray<Order>
  /**
   * The grouping of take-profit and stop-loss orders, or the rate of a priority fee in 10^-8 of the filled value, up to
   * 80000 (8 bps). The fee is paid from undelegated stake, and requires that every order is `Ioc`. Default: `na`.
   */
  readonly grouping?: "na" | "normalTpsl" | "positionTpsl" | { readonly priorityRate: number } | undefined
  readonly builderFee?: BuilderFee | undefined
}

/** An order to cancel, by the venue's order ID. */
export interface Cancel {
  readonly asset: number
  readonly orderId: OrderId
}

/** An order to cancel, by client order ID. */
export interface CancelByCloid {
  readonly asset: number
  readonly cloid: Cloid
}

/** Options of the actions `cancel` and `cancelByCloid`. */
export interface CancelOptions {
  /** Whether the cancels get priority in the venue's mempool; sent as `f: true`. */
  readonly fast?: boolean | undefined
}

/** The modification of an open order: its ID and its new parameters. */
export interface Modify {
  /** The venue's order ID or the client order ID. */
  readonly order: OrderId | Cloid
  readonly to: Order
}

/** Options of the actions `modify` and `batchModify`. */
export interface ModifyOptions {
  /**
   * Whether the new order is placed even if the old order is no longer open; sent as `a: true`. Otherwise, the new order
   * must be `Alo`, or a `Gtc` order that does not execute immediately.
   */
  readonly alwaysPlace?: boolean | undefined
}

/** A stop order whose trigger price follows the mark price at a distance. It becomes a market order when triggered. */
export interface TrailingStop {
  readonly asset: number
  readonly side: "buy" | "sell"
  /** The size as a decimal string. */
  readonly sizeInBase: string
  /** Whether the order can only reduce a position. Default: false. */
  readonly reduceOnly?: boolean | undefined
  /** The distance of the trigger price: a percentage with up to four decimal places, or a distance in quote units. */
  readonly distance: { readonly percent: string } | { readonly inQuote: string }
  /** The price from which the trigger price follows the mark price. Default: immediately. */
  readonly activationPriceInQuote?: string | undefined
  /** The asset's tick and lot size, to which the size and the prices are truncated. Default: no truncation. */
  readonly cutTo?: Steps | undefined
}

type ParseResult<A> = Result.Result<A, UnsignableAction>

const refuse = (path: ReadonlyArray<string | number>, expected: string): ParseResult<never> =>
  Result.fail(new UnsignableAction({ reason: "shape", path, detail: `"${path.join(".")}" must be ${expected}` }))

const longest = 64

const decimal = (
  name: string,
  text: string,
  cut: (canonical: string) => string,
  least: "zero" | "aboveZero"
): ParseResult<string> => {
  const read = /^[0-9]+(?:\.[0-9]+)?$/.test(text) && text.length <= longest ? Decimal.canonical(text) : undefined
  if (read === undefined) return refuse([name], `a plain decimal of at most ${longest} characters`)
  const fitted = cut(read)
  return fitted === "0" && (least === "aboveZero" || read !== "0")
    ? refuse([name], "more than zero, also after truncation to the asset's tick and lot size")
    : Result.succeed(fitted)
}

const maxPlaces = { perp: 6, spot: 8 } as const

const maxPriceDigits = 5

const uncut = (canonical: string): string => canonical

const priceCut = (steps: Steps | undefined): typeof uncut =>
  steps === undefined
    ? uncut
    : (price) =>
      Decimal.atMostDigits(Decimal.atMostPlaces(price, maxPlaces[steps.market] - steps.szDecimals), maxPriceDigits)

const sizeCut = (steps: Steps | undefined): typeof uncut =>
  steps === undefined ? uncut : (size) => Decimal.atMostPlaces(size, steps.szDecimals)

/**
 * Truncates a price to an asset's tick size and a size to its lot size. Returns valid values unchanged.
 *
 * @since 0.1.0
 */
export const fit = (
  { price, size }: { readonly price: string; readonly size: string },
  steps: Steps
): { readonly price: string; readonly size: string } => {
  const cut = (text: string, by: (canonical: string) => string) => {
    const canonical = Decimal.canonical(text)
    // keeps the original format of a valid number
    return canonical === undefined || by(canonical) === canonical ? text : by(canonical)
  }
  return { price: cut(price, priceCut(steps)), size: cut(size, sizeCut(steps)) }
}

/**
 * Returns the limit price of a market order: the mid price plus (buy) or minus (sell) a percentage, truncated to the
 * tick size.
 *
 * Truncation is towards zero, so the limit price of a buy order can be up to one tick below the exact value.
 */
export const worstPrice = (mid: string, side: Order["side"], slippagePercent: number, steps: Steps): string => {
  const factor = side === "buy" ? 1 + slippagePercent / 100 : 1 - slippagePercent / 100
  const moved = Decimal.canonical((Number(mid) * factor).toPrecision(12))
  return moved === undefined ? mid : priceCut(steps)(moved)
}

const index = (name: string, value: number, most = Number.MAX_SAFE_INTEGER): ParseResult<number> =>
  Number.isSafeInteger(value) && value >= 0 && value <= most
    ? Result.succeed(value)
    : refuse([name], `an integer from 0 to ${most}`)

const maxOrderId = 2n ** 64n - 1n

const orderId = (name: string, value: OrderId): ParseResult<OrderId> =>
  typeof value === "number"
    ? index(name, value)
    : value >= 0n && value <= maxOrderId
    ? Result.succeed(value)
    : refuse([name], "an integer from 0 to 2^64 - 1")

const parseCloid = (name: string, text: string): ParseResult<string> =>
  /^0x[0-9a-fA-F]{32}$/.test(text) ? Result.succeed(text.toLowerCase()) : refuse([name], "16 bytes in 0x hex")

const tpsl = { takeProfit: "tp", stopLoss: "sl" } as const

const encodeType = ({ cutTo, timeInForce = "Gtc", trigger }: Order) =>
  trigger === undefined
    ? Result.succeed({ limit: { tif: timeInForce } })
    : Result.map(
      decimal("trigger.priceInQuote", trigger.priceInQuote, priceCut(cutTo), "aboveZero"),
      (triggerPx) => ({ trigger: { isMarket: trigger.isMarket, triggerPx, tpsl: tpsl[trigger.kind] } })
    )

const encodeOrder = (order: Order) =>
  Result.gen(function*() {
    return {
      a: yield* index("asset", order.asset),
      b: order.side === "buy",
      p: yield* decimal("priceInQuote", order.priceInQuote, priceCut(order.cutTo), "aboveZero"),
      s: yield* decimal("sizeInBase", order.sizeInBase, sizeCut(order.cutTo), "zero"),
      r: order.reduceOnly ?? false,
      t: yield* encodeType(order),
      ...(order.cloid === undefined ? {} : { c: yield* parseCloid("cloid", order.cloid) })
    }
  })

const each = <A, B>(
  name: string,
  items: ReadonlyArray<A>,
  read: (item: A) => ParseResult<B>
): ParseResult<ReadonlyArray<B>> =>
  items.length === 0
    ? refuse([name], "at least one")
    : Result.all(items.map((item, at) => Result.mapError(read(item), (error) => error.within(name, at))))

const maxFee = 1000

const maxPriorityRate = 100_000_000

const encodeGrouping = (grouping: NonNullable<Placement["grouping"]>) =>
  typeof grouping === "string"
    ? Result.succeed(grouping)
    : Result.map(index("grouping.priorityRate", grouping.priorityRate, maxPriorityRate), (p) => ({ p }))

const encodeBuilder = ({ address, feeInTenthsOfBp }: BuilderFee) =>
  Result.gen(function*() {
    if (!isAddress(address)) return yield* refuse(["address"], "a 20-byte address")
    return { b: lowerCase(address), f: yield* index("feeInTenthsOfBp", feeInTenthsOfBp, maxFee) }
  }).pipe(Result.mapError((error) => error.within("builderFee")))

/** Makes the action `order`. Fails with `UnsignableAction`, which names the parameter. */
export const place = ({ builderFee, grouping = "na", orders }: Placement) =>
  Result.gen(function*() {
    return {
      type: "order",
      orders: yield* each("orders", orders, encodeOrder),
      grouping: yield* encodeGrouping(grouping),
      ...(builderFee === undefined ? {} : { builder: yield* encodeBuilder(builderFee) })
    } as const
  })

// the venue hashes the flag `f` after the list of cancels, and only if the flag is set
const fastFlag = ({ fast = false }: CancelOptions) => fast ? { f: true } as const : {}

/** Makes the action `cancel`. Fails with `UnsignableAction`, which names the parameter. */
export const cancel = (cancels: ReadonlyArray<Cancel>, options: CancelOptions = {}) =>
  Result.map(
    each("cancels", cancels, (cancel) =>
      Result.all({ a: index("asset", cancel.asset), o: orderId("orderId", cancel.orderId) })),
    (cancels) => ({ type: "cancel", cancels, ...fastFlag(options) } as const)
  )

/** Makes the action `cancelByCloid`. Fails with `UnsignableAction`, which names the parameter. */
export const cancelByCloid = (cancels: ReadonlyArray<CancelByCloid>, options: CancelOptions = {}) =>
  Result.map(
    each("cancels", cancels, ({ asset, cloid }) =>
      Result.all({ asset: index("asset", asset), cloid: parseCloid("cloid", cloid) })),
    (cancels) => ({ type: "cancelByCloid", cancels, ...fastFlag(options) } as const)
  )

const encodeModify = ({ order, to }: Modify) =>
  Result.all({
    oid: typeof order === "string" ? parseCloid("order", order) : orderId("order", order),
    order: Result.mapError(encodeOrder(to), (error) => error.within("to"))
  })

// the venue hashes the flag `a` only if it is set
const placeFlag = ({ alwaysPlace = false }: ModifyOptions) => alwaysPlace ? { a: true } as const : {}

/** Makes the action `modify`, for one order. Fails with `UnsignableAction`, which names the parameter. */
export const modify = (terms: Modify, options: ModifyOptions = {}) =>
  Result.map(encodeModify(terms), (read) => ({ type: "modify", ...read, ...placeFlag(options) } as const))

/** Makes the action `batchModify`. Fails with `UnsignableAction`, which names the parameter. */
export const batchModify = (modifies: ReadonlyArray<Modify>, options: ModifyOptions = {}) =>
  Result.map(
    each("modifies", modifies, encodeModify),
    (modifies) => ({ type: "batchModify", modifies, ...placeFlag(options) } as const)
  )

/** Decimal places of a percentage, as the venue's web page sends it. */
const percentPlaces = 4

const encodePercent = (percent: string): ParseResult<string> =>
  Result.flatMap(decimal("distance.percent", percent, uncut, "aboveZero"), (read) => {
    const [whole = "0", places = ""] = read.split(".")
    return places.length > percentPlaces
      ? refuse(["distance", "percent"], `a percentage of at most ${percentPlaces} decimal places`)
      : Result.succeed(`${whole}.${places.padEnd(percentPlaces, "0")}%`)
  })

/** Makes the action `trailingStop`. Fails with `UnsignableAction`, which names the parameter. */
export const trailingStop = ({ activationPriceInQuote, cutTo, distance, ...terms }: TrailingStop) =>
  Result.gen(function*() {
    const cut = priceCut(cutTo)
    const type = "trailingStop" as const
    return {
      type,
      asset: yield* index("asset", terms.asset),
      isBuy: terms.side === "buy",
      sz: yield* decimal("sizeInBase", terms.sizeInBase, sizeCut(cutTo), "aboveZero"),
      reduceOnly: terms.reduceOnly ?? false,
      retracement: "percent" in distance
        ? { pct: yield* encodePercent(distance.percent) }
        : { px: yield* decimal("distance.inQuote", distance.inQuote, cut, "aboveZero") },
      // the venue hashes the null
      activationPx: activationPriceInQuote === undefined
        ? null
        : yield* decimal("activationPriceInQuote", activationPriceInQuote, cut, "aboveZero")
    }
  })
