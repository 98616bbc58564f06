/** The parts of a signed action that policies limit: the account on which it acts, its orders, and where it sends funds. */
import { actionCatalog, innerAction, isActionType, type SentAction } from "@trigate/domain/actions/Action"
import { type Address, lowerCase } from "@trigate/domain/encoding/Encoding"
import { actionSchemas, type OrderRequest } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type { Admitted } from "../admission/Admission.ts"

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
