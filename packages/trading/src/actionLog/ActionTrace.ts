/**
 * The trace of a signed action: its expiry, and its orders with their client order IDs. The gateway uses the trace to
 * look up the action's effect at the venue.
 */
import { actionCatalog, isActionType, isSentAction } from "@trigate/domain/actions/ActionCatalog"
import type { SentAction } from "@trigate/domain/actions/ActionCatalog"
import { Cloid } from "@trigate/domain/actions/ActionOutcome"
import { Address, lowerCase } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import { Millis } from "@trigate/domain/Time"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/** One order of an action, as it was signed. */
export const Leg = Schema.Struct({
  cloid: Schema.optionalKey(Cloid),
  isBuy: Schema.Boolean,
  price: Schema.String,
  size: Schema.String
})
export type Leg = typeof Leg.Type

/** The expiry and the orders of an action, by which its effect can be looked up at the venue. */
export const ActionTrace = Schema.Struct({
  /** The vault or sub-account on whose behalf the action is signed, in lower case. */
  vault: Schema.optionalKey(Address),
  /**
   * Time in milliseconds, by the venue's clock, after which the venue refuses the action; absent if the action has no
   * expiry.
   */
  expiresAfter: Schema.optionalKey(Millis),
  /** The orders that the action places; empty for an action of another type. */
  legs: Schema.Array(Leg)
})
export type ActionTrace = typeof ActionTrace.Type

const Envelope = Schema.Struct({
  vaultAddress: Schema.optionalKey(Schema.NullOr(Schema.String)),
  expiresAfter: Schema.optionalKey(Schema.NullOr(Millis))
})
const decodeEnvelope = Schema.decodeUnknownOption(Envelope)

const Order = Schema.Struct({
  b: Schema.Boolean,
  p: Schema.String,
  s: Schema.String,
  c: Schema.optionalKey(Schema.NullOr(Cloid))
})
const decodeOrders = Schema.decodeUnknownOption(Schema.Array(Order))

const isAddress = Schema.is(Address)

const legFrom = ({ b, c, p, s }: typeof Order.Type): Leg => ({
  ...(c === undefined || c === null ? {} : { cloid: lowerCase(c) }),
  isBuy: b,
  price: p,
  size: s
})

const listLegs = ({ orders, type }: SentAction): ReadonlyArray<Leg> =>
  type === "order" ? Option.getOrElse(decodeOrders(orders), () => []).map(legFrom) : []

/** Returns whether signatures of this type of action cover `expiresAfter`. */
const signsExpiry = ({ type }: SentAction): boolean => isActionType(type) && actionCatalog[type].scheme === "l1"

/** Returns the trace of a signed action. */
export const make = (signed: { readonly action: SentAction }): ActionTrace => {
  const { expiresAfter, vaultAddress }: typeof Envelope.Type = Option.getOrElse(decodeEnvelope(signed), () => ({}))
  const vault = vaultAddress?.replace(/^(?!0x)/u, "0x").toLowerCase()
  return {
    ...(isAddress(vault) ? { vault } : {}),
    ...(expiresAfter === undefined || expiresAfter === null || !signsExpiry(signed.action) ? {} : { expiresAfter }),
    legs: listLegs(signed.action)
  }
}

const isBody = (value: unknown): value is { readonly action: SentAction } =>
  Predicate.hasProperty(value, "action") && isSentAction(value.action)

/** Returns the trace of a body; an empty trace if the bytes are not a body. */
export const read = (body: Uint8Array): ActionTrace => {
  const value = Json.of(Utf8.decodeLossy(body)).valueOrUndefined
  return isBody(value) ? make(value) : { legs: [] }
}

/** Returns the client order IDs of the orders, without duplicates. */
export const cloids = ({ legs }: ActionTrace): ReadonlyArray<Cloid> => [
  ...new Set(legs.flatMap(({ cloid }) => cloid === undefined ? [] : [cloid]))
]
