/**
 * The venue's responses to signed actions: HTTP 200 does not mean success, and the venue can reject a part of a batch.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Address, hex, Millis, Natural64, openStruct } from "../encoding/Encoding.ts"

/** The venue accepted the action and used its nonce; `response` is the venue's data, such as `{"type":"default"}`. */
export const ActionAccepted = Schema.Struct({
  status: Schema.Literal("ok"),
  response: openStruct({ type: Schema.String })
}).annotate({ identifier: "ActionAccepted" })
export type ActionAccepted = typeof ActionAccepted.Type

/**
 * The known classes of the venue's rejection texts. The venue can add texts at any time.
 *
 * The classes from `TickSize` to `UnknownOrder` are rejections of orders. Their causes:
 *
 * - `TickSize`, `LotSize`: a price or size that is not a multiple of the asset's step;
 * - `MinimumNotional`: an order below the minimum value;
 * - `InsufficientMargin`, `InsufficientBalance`: not enough margin or balance;
 * - `PostOnlyWouldCross`: a post-only order that would have been filled immediately;
 * - `NoImmediateMatch`: no matching order;
 * - `ReduceOnly`: a reduce-only order that would not reduce a position;
 * - `PriceBand`: a limit price too far from the oracle price;
 * - `TriggerPrice`: a trigger price on the wrong side of the market;
 * - `OpenInterestCap`, `PositionLimit`: a cap on open interest or on the position;
 * - `UnknownOrder`: an order that is no longer open or was never placed.
 */
export const RejectionReason = Schema.Literals([
  "UnknownSigner",
  "WrongSignature",
  "NonceDuplicate",
  "NonceTooLow",
  "NonceTooHigh",
  "NonceMismatch",
  "WrongNetwork",
  "Expired",
  "MultiSig",
  "VaultUnknown",
  "NotValidator",
  "Refused",
  "AddressRateLimited",
  "ShapeRefused",
  "TickSize",
  "LotSize",
  "MinimumNotional",
  "InsufficientMargin",
  "InsufficientBalance",
  "PostOnlyWouldCross",
  "NoImmediateMatch",
  "ReduceOnly",
  "PriceBand",
  "TriggerPrice",
  "OpenInterestCap",
  "PositionLimit",
  "UnknownOrder",
  "Unclassified"
]).annotate({ identifier: "RejectionReason" })
export type RejectionReason = typeof RejectionReason.Type

/** The venue's order ID, in actions, responses and streams; a `bigint` above 2^53 - 1, so that no digit is lost. */
export const OrderId = Natural64.annotate({ identifier: "OrderId", description: "Order id" })
export type OrderId = typeof OrderId.Type

/** The client order ID. */
export const Cloid = hex(/^0x[0-9a-fA-F]{32}$/u, "Cloid", "16 bytes in 0x hex")
export type Cloid = typeof Cloid.Type

const order = { oid: OrderId, cloid: Schema.optionalKey(Cloid) }

// without the matchers of `ActionEntry`, which a page that only submits does not load
const entry = Schema.Union([
  Schema.TaggedStruct("Resting", order),
  Schema.TaggedStruct("Filled", { ...order, totalSz: Schema.String, avgPx: Schema.String }),
  Schema.TaggedStruct("Waiting", { kind: Schema.Literals(["waitingForFill", "waitingForTrigger"]) }),
  Schema.TaggedStruct("Done", { twapId: Schema.optionalKey(Natural64) }),
  Schema.TaggedStruct("Rejected", { reason: RejectionReason, message: Schema.String }),
  Schema.TaggedStruct("Unrecognised", { raw: Schema.Unknown })
]).annotate({ identifier: "ActionEntry" })

/** Decodes the result of one leg. */
export const decodeEntry = Schema.decodeUnknownOption(entry)

/**
 * The result of one leg. Each order, cancel or modify of a batch is a leg; an action without a batch has one leg.
 *
 * - `Resting`: the order is on the book.
 * - `Filled`: the order was filled immediately. `totalSz` is the filled size and `avgPx` the average price, both as
 *   decimal text.
 * - `Waiting`: a take-profit or stop-loss order that waits for its parent order to be filled, or for its trigger price.
 * - `Done`: the venue executed the leg. A TWAP order now runs under `twapId`.
 * - `Rejected`: the venue refused the leg; `message` is its text.
 * - `Unrecognised`: the venue's status has an unknown form. `raw` is that status, or the whole response data if the
 *   statuses cannot be assigned to legs. The leg might have taken effect.
 *
 * @since 0.1.0
 * @category models
 * @example
 * ```ts
 * import { ActionOutcome } from "@trigate/domain"
 *
 * const describe = ActionOutcome.ActionEntry.match({
 *   Resting: ({ oid }) => `order ${oid} rests`,
 *   Filled: ({ avgPx, totalSz }) => `filled ${totalSz} at ${avgPx}`,
 *   Waiting: ({ kind }) => kind,
 *   Done: () => "done",
 *   Rejected: ({ message, reason }) => `rejected (${reason}): ${message}`,
 *   Unrecognised: () => "see the account"
 * })
 *
 * console.log(describe(ActionOutcome.ActionEntry.make({ _tag: "Resting", oid: 77738308 })))
 * ```
 * ```text
 * order 77738308 rests
 * ```
 */
export const ActionEntry = Schema.toTaggedUnion("_tag")(entry)
export type ActionEntry = typeof ActionEntry.Type

/** Returns whether the venue refused a leg. */
export const isRejected = (entry: ActionEntry): entry is Extract<ActionEntry, { readonly _tag: "Rejected" }> =>
  entry._tag === "Rejected"

/**
 * An action that the venue accepted, with the result of each leg (order, cancel or modify), in the sequence in which the
 * action lists the legs.
 */
export const ActionResult = Schema.Struct({
  ...ActionAccepted.fields,
  entries: Schema.Array(entry)
}).annotate({ identifier: "ActionResult" })
export type ActionResult = typeof ActionResult.Type

/**
 * The venue refused the action, or some of its legs (orders, cancels or modifies). `message` is the venue's text.
 * `signer` is the address that the text reports as an unknown user or API wallet; absent for any other text.
 *
 * Only embedded services and the typed client raise this error: the HTTP route relays the venue's response unchanged.
 * If the venue refused only some legs, the call succeeds, and only `requireAll` fails with this error. The error then
 * contains the results of all legs and the whole response.
 */
export class ActionRejected extends Schema.TaggedError<ActionRejected>()("ActionRejected", {
  reason: RejectionReason,
  message: Schema.String,
  signer: Schema.optionalKey(Address),
  recovered: Schema.optionalKey(Address),
  response: Schema.optionalKey(Schema.Unknown),
  entries: Schema.optionalKey(
    Schema.Array(entry).annotate({
      description: "The result of each leg, in the sequence in which the action lists the legs"
    })
  )
}) {
  get group() {
    return "fix-request" as const
  }
}

/**
 * Combines the refused legs (orders, cancels or modifies) of an accepted action into one error. Returns `None` if no
 * leg was refused.
 *
 * The error has the reason of the first refused leg. Its `message` contains the venue's texts for all refused legs.
 */
export const legRejection = ({ entries, response }: ActionResult): Option.Option<ActionRejected> => {
  const rejected = entries.filter(isRejected)
  const message = [...new Set(rejected.map(({ message }) => message))].join("; ")
  return Option.map(
    Arr.head(rejected),
    ({ reason }) => new ActionRejected({ reason, message, response, entries })
  )
}

/**
 * Fails with the `ActionRejected` of {@link legRejection} if the venue refused any leg; otherwise returns the result.
 *
 * The accepted legs (orders, cancels or modifies) took effect. The error's `entries` lists the result of each leg.
 *
 * @since 0.1.0
 * @category errors
 * @example
 * ```ts
 * import { ActionOutcome } from "@trigate/domain"
 * import type { Action } from "@trigate/domain"
 * import { Exchange } from "@trigate/trading"
 * import { Effect } from "effect"
 *
 * export const submitAll = (signed: Action.AnySignedAction) =>
 *   Exchange.Exchange.use(({ submit }) => Effect.flatMap(submit(signed), ActionOutcome.requireAll))
 * ```
 */
export const requireAll = (result: ActionResult): Effect.Effect<ActionResult, ActionRejected> =>
  Option.match(legRejection(result), { onNone: () => Effect.succeed(result), onSome: Effect.fail })

/**
 * The prefixes of the venue's rejection texts, with the reason for each. The first match wins. Sources: the venue's
 * documentation, client libraries, and texts collected on the testnet.
 */
const prefixes: ReadonlyArray<readonly [prefix: string, reason: RejectionReason]> = [
  ["User or API Wallet ", "UnknownSigner"],
  ["Must deposit before performing actions", "UnknownSigner"],
  ["Invalid nonce: duplicate nonce", "NonceDuplicate"],
  ["Invalid nonce: nonce too low", "NonceTooLow"],
  ["Invalid nonce: nonce too high", "NonceTooHigh"],
  ["Nonce mismatch", "NonceMismatch"],
  ["Mainnet and testnet require different signature", "WrongNetwork"],
  ["Action already expired", "Expired"],
  ["Multi-sig", "MultiSig"],
  ["Invalid multi-sig", "MultiSig"],
  ["Too many multi-sig signers", "MultiSig"],
  ["Cannot register self as multi-sig", "MultiSig"],
  ["Vault not registered", "VaultUnknown"],
  ["Signer invalid or inactive for current epoch", "NotValidator"],
  ["Unknown validator", "Refused"],
  ["Price must be divisible by tick size", "TickSize"],
  ["Order has invalid price", "TickSize"],
  ["Order has invalid size", "LotSize"],
  ["Order has zero size", "LotSize"],
  ["Order must have minimum value", "MinimumNotional"],
  ["TWAP order value too small", "MinimumNotional"],
  ["Insufficient margin", "InsufficientMargin"],
  ["Insufficient spot balance", "InsufficientBalance"],
  ["Insufficient balance", "InsufficientBalance"],
  ["Order has insufficient spot balance", "InsufficientBalance"],
  ["Insufficient ", "Refused"],
  ["Post only order would have immediately matched", "PostOnlyWouldCross"],
  ["Order could not immediately match", "NoImmediateMatch"],
  ["No liquidity available for market order", "NoImmediateMatch"],
  ["Reduce only order would increase position", "ReduceOnly"],
  ["Order price too far from oracle", "PriceBand"],
  ["Price too far from oracle", "PriceBand"],
  ["Order price cannot be more than ", "PriceBand"],
  ["Invalid TP/SL price", "TriggerPrice"],
  ["Order would increase open interest", "OpenInterestCap"],
  ["Order price too aggressive while at open interest cap", "OpenInterestCap"],
  ["Order rejected due to price more aggressive than oracle while at open interest cap", "OpenInterestCap"],
  ["Order would cause position to exceed margin tier limit", "PositionLimit"],
  ["Order was never placed, already canceled, or filled", "UnknownOrder"],
  ["TWAP was never placed, already canceled, or filled", "UnknownOrder"],
  ["Cannot modify canceled or filled order", "UnknownOrder"],
  ["Agents do not have permission", "Refused"],
  ["Too many cumulative requests sent", "AddressRateLimited"],
  ["Failed to deserialize", "ShapeRefused"]
]

/** The prefixes with which the venue wraps a rejection text, according to client libraries and users' reports. */
const wrappers = ["L1 error: ", "Error placing new order during modify: "]

const addressIn = /0x[0-9a-fA-F]{40}/u
const isAddress = Schema.is(Address)

/**
 * Classifies a rejection text of the venue. An unknown text is `Unclassified`, with the whole text.
 *
 * `recovered` is the signer that the gateway recovered. If the venue's text names any other address as unknown, the
 * venue hashed different bytes than the gateway: the reason is `WrongSignature`. If the text names the recovered
 * address, the signature is correct, but the signer has no account or is not an approved API wallet: the reason is
 * `UnknownSigner`. Without `recovered`, a text about an unknown address always has the reason `UnknownSigner`.
 */
export const classifyRejection = (text: string, recovered?: Address): ActionRejected => {
  const bare = wrappers.reduce((rest, wrapper) => rest.startsWith(wrapper) ? rest.slice(wrapper.length) : rest, text)
  const reason = prefixes.find(([prefix]) => bare.startsWith(prefix))?.[1] ?? "Unclassified"
  // an address in a text with any other reason is not a signer: it is a vault or a validator
  const signer = reason === "UnknownSigner" ? addressIn.exec(bare)?.[0] : undefined
  if (!isAddress(signer)) return new ActionRejected({ reason, message: text })
  if (recovered === undefined) return new ActionRejected({ reason, message: text, signer })
  return new ActionRejected({
    reason: signer.toLowerCase() === recovered.toLowerCase() ? reason : "WrongSignature",
    message: text,
    signer,
    recovered
  })
}

/** The ID of an action: the digest of its signed content. */
export const ActionId = Schema.String.check(Schema.isPattern(/^0x[0-9a-f]{1,128}$/u, { expected: "an ID in 0x hex" }))
  .annotate({ identifier: "ActionId", description: "The digest of the signed content, in 0x hex" })
export type ActionId = typeof ActionId.Type

/**
 * The states of an action.
 *
 * - `sent`: the gateway has started to send the action, and a response can still arrive.
 * - `accepted`: the venue accepted the action. `entries` contains the known results of its legs (one leg for each
 *   order, cancel or modify).
 * - `rejected`: the venue refused the action.
 * - `neverArrived`: the venue's state does not contain the action, and the action can no longer take effect. Either it
 *   was lost, or the venue refused it as a whole; the venue does not record refused actions.
 * - `unknown`: the response was lost, and the venue's state does not show the outcome yet. The action can take effect
 *   until `mayLandUntil`.
 * - `forgotten`: the operator removed the action from the list of actions with unknown outcome.
 */
export const ActionState = Schema.Literals(["sent", "accepted", "rejected", "neverArrived", "unknown", "forgotten"])
export type ActionState = typeof ActionState.Type

/**
 * The event that determined the outcome of an action.
 *
 * - `response`: the venue responded to the action.
 * - `orderStatus`: in response to a later query, the venue returned the action's orders.
 * - `expiry`: after the action's `expiresAfter`, the venue did not know the action's orders.
 */
export const SettledBy = Schema.Literals(["response", "orderStatus", "expiry"])
export type SettledBy = typeof SettledBy.Type

/** The outcome of an action, and how it was determined. */
export const Settled = Schema.Struct({
  by: SettledBy,
  entries: Schema.optionalKey(
    Schema.Array(ActionEntry).annotate({
      description:
        "The result of each leg, in the sequence in which the action lists the legs. A leg with an unknown result is `Unrecognised`"
    })
  )
}).annotate({ identifier: "SettledAction" })
export type Settled = typeof Settled.Type

/** An action in the action log. The record omits the sent bytes, because they contain the signature. */
export const ActionRecord = Schema.Struct({
  id: ActionId,
  state: ActionState,
  signer: Schema.optionalKey(Address),
  nonce: Millis,
  mayLandUntil: Schema.optionalKey(Millis).annotateKey({
    description:
      "Present while the outcome is unknown: the time, on the venue's clock, after which the action can no longer take effect"
  }),
  settled: Schema.optionalKey(Settled)
}).annotate({ identifier: "ActionRecord" })
export type ActionRecord = typeof ActionRecord.Type

/** Identifies an action: by its ID, by its signer and nonce, or by the client order ID of one of its orders. */
export const ActionReference = Schema.Union([
  Schema.Struct({ id: ActionId }),
  Schema.Struct({ signer: Address, nonce: Millis }),
  Schema.Struct({ cloid: Cloid, signer: Schema.optionalKey(Address) })
])
export type ActionReference = typeof ActionReference.Type

/** Returns whether the outcome of an action is still unknown. */
export const isOpen = ({ state }: Pick<ActionRecord, "state">): boolean => state === "sent" || state === "unknown"
