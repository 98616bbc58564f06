/** The record of one signed action that the gateway sent: the action's state, and how its outcome was determined. */
import * as Schema from "effect/Schema"
import { Address, Millis } from "../encoding/Encoding.ts"
import { ActionEntry, Cloid } from "./ActionOutcome.ts"

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
