/**
 * Dead man's switches: signed actions that a gateway sends when a program's heartbeats stop. The gateway holds no key: the
 * program signs the actions in advance, and each can only remove orders or reduce positions.
 */
import * as Schema from "effect/Schema"
import { Address, Millis } from "../encoding/Encoding.ts"

/** The name of a switch. A caller's switches have different names. */
export const SwitchName = Schema.String.check(
  Schema.isPattern(/^[\w.-]{1,64}$/u, { expected: "a name of 1 to 64 letters, digits, dots, hyphens and underscores" })
).annotate({
  identifier: "SwitchName",
  description: "The name of the switch, which the caller chooses",
  examples: ["bot"]
})

/** Maximum number of actions of a switch. */
export const mostActions = 20

/** A request that arms a switch. */
export const SwitchRequest = Schema.Struct({
  after: Schema.Int.check(Schema.isBetween({ minimum: 5, maximum: 3600 })).annotateKey({
    description: "Seconds without a heartbeat after which the actions are sent; 5 to 3600"
  }),
  presence: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "Whether an open WebSocket of the caller is a heartbeat too; false if absent"
  }),
  actions: Schema.NonEmptyArray(Schema.Unknown).check(Schema.isMaxLength(mostActions)).annotateKey({
    description:
      "Signed bodies of POST /exchange, in the order in which they are sent: cancels, `scheduleCancel` and reduce-only orders. " +
      "All are signed by one key. At most 20"
  })
}).annotate({ identifier: "SwitchRequest" })
export type SwitchRequest = typeof SwitchRequest.Type

/** An action of a switch, and its outcome after the switch has fired. */
export const SwitchAction = Schema.Struct({
  nonce: Millis,
  actionType: Schema.String,
  outcome: Schema.optionalKey(Schema.Literals(["accepted", "rejected", "unknown", "notSent"])).annotateKey({
    description: "`notSent`: the venue could not be reached for ten minutes. Absent until the action was sent"
  }),
  detail: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "SwitchAction" })
export type SwitchAction = typeof SwitchAction.Type

/** The state of a switch. */
export const SwitchState = Schema.Struct({
  name: SwitchName,
  state: Schema.Literals(["armed", "useless", "firing", "fired", "absent"]).annotateKey({
    description:
      "`armed`: the actions will be sent if the heartbeats stop. `useless`: the venue would refuse them, see `reason`. `firing` and " +
      "`fired`: the heartbeats stopped. `absent`: there is no such switch"
  }),
  reason: Schema.optionalKey(Schema.String).annotateKey({ description: "Why the switch is not armed" }),
  after: Schema.optionalKey(Schema.Int),
  presence: Schema.optionalKey(Schema.Boolean),
  heartbeats: Schema.optionalKey(Schema.Natural).annotateKey({
    description: "The number of heartbeats since the name was first used; arming the switch again counts as one"
  }),
  signer: Schema.optionalKey(Address),
  actions: Schema.Array(SwitchAction)
}).annotate({ identifier: "SwitchState" })
export type SwitchState = typeof SwitchState.Type
