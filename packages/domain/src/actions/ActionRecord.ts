/** What a gateway knows of one signed action that it sent: its state, and how that became known. */
import * as Schema from "effect/Schema"
import { Address } from "../encoding/Hex.ts"
import { Millis } from "../Time.ts"
import { ActionEntry, Cloid } from "./ActionOutcome.ts"

/** The digest of the signed content. Bytes with the same signed content have the same id. */
export const ActionId = Schema.String.check(Schema.isPattern(/^0x[0-9a-f]{1,128}$/u, { expected: "an ID in 0x hex" }))
  .annotate({ identifier: "ActionId", description: "The digest of the signed content, in 0x hex" })
export type ActionId = typeof ActionId.Type

/**
 * The states of an action.
 *
 * - `sent`: its bytes may have left, and a response may still come.
 * - `accepted`: the venue accepted it. `entries` has the known results of its legs.
 * - `rejected`: the venue refused it.
 * - `neverArrived`: it is not in the venue's state, and can no longer get there. Either it was lost, or the venue refused it as a
 *   whole; the venue keeps no record of such a refusal.
 * - `unknown`: the response was lost, and the venue's state does not show the outcome yet. It may take effect until
 *   `mayLandUntil`.
 * - `forgotten`: the operator removed it from the list of actions of unknown outcome.
 */
export const ActionState = Schema.Literals(["sent", "accepted", "rejected", "neverArrived", "unknown", "forgotten"])
export type ActionState = typeof ActionState.Type

/**
 * What made the outcome known: the venue's response to the action, the venue's state of its orders (`orderStatus`), or the end
 * of its `expiresAfter` together with that state (`expiry`).
 */
export const SettledBy = Schema.Literals(["response", "orderStatus", "expiry"])
export type SettledBy = typeof SettledBy.Type

/** The outcome of an action, and how it was determined. */
export const Settled = Schema.Struct({
  by: SettledBy,
  entries: Schema.optionalKey(
    Schema.Array(ActionEntry).annotate({
      description:
        "The result of each leg, in the order of the action. A leg of which nothing is known is `Unrecognised`"
    })
  )
}).annotate({ identifier: "SettledAction" })
export type Settled = typeof Settled.Type

/** An action as the action log has it, without its bytes: they hold the signature. */
export const ActionRecord = Schema.Struct({
  id: ActionId,
  state: ActionState,
  signer: Schema.optionalKey(Address),
  nonce: Millis,
  mayLandUntil: Schema.optionalKey(Millis).annotateKey({
    description: "While the outcome is unknown: after that time of the venue the action can no longer take effect"
  }),
  settled: Schema.optionalKey(Settled)
}).annotate({ identifier: "ActionRecord" })
export type ActionRecord = typeof ActionRecord.Type

/** Names an action: its id, or its signer and nonce, or the id that its client gave one of its orders. */
export const ActionReference = Schema.Union([
  Schema.Struct({ id: ActionId }),
  Schema.Struct({ signer: Address, nonce: Millis }),
  Schema.Struct({ cloid: Cloid, signer: Schema.optionalKey(Address) })
])
export type ActionReference = typeof ActionReference.Type

/** Returns whether the outcome of an action is not known yet. */
export const isOpen = ({ state }: Pick<ActionRecord, "state">): boolean => state === "sent" || state === "unknown"
