/** The routes of whoever runs the gateway: the action log. They stand on the admin listener. */
import { NotPermitted, Overloaded, QuotaExceeded, Unauthorized } from "@trigate/domain/CallerError"
import { Address } from "@trigate/domain/Hex"
import { Millis } from "@trigate/domain/Time"
import { UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as Examples from "./Examples.ts"
import * as Paths from "./Paths.ts"
import { Problems } from "./Problems.ts"

const ActionId = Schema.String.check(Schema.isPattern(/^0x[0-9a-f]{1,128}$/u, { expected: "an ID in 0x hex" }))
  .annotate({
    identifier: "ActionId",
    description: "The fingerprint of the signed content, in 0x hex",
    examples: [Examples.actionId]
  })

/** A signed action without an answer, without its bytes: they hold the signature. */
export const UnansweredAction = Schema.Struct({
  id: ActionId,
  state: Schema.Literals(["sent", "unknown"]).annotateKey({
    description: "`sent` while an answer may still come, `unknown` when none will"
  }),
  openedAt: Millis.annotateKey({ description: "When it was first sent, in milliseconds" }),
  actionType: Schema.String,
  signer: Schema.optionalKey(Address),
  nonce: Millis
}).annotate({ identifier: "UnansweredAction" })
export type UnansweredAction = typeof UnansweredAction.Type

/** Whether an action was forgotten. */
export const Forgotten = Schema.Struct({
  forgotten: Schema.Boolean.annotateKey({ description: "False if no action without an answer has the ID" })
}).annotate({ identifier: "Forgotten" })

/** What became of an action, after its bytes were sent again. */
export const ActionResolution = Schema.Union([
  Schema.Struct({ _tag: Schema.tag("Landed"), message: Schema.String }),
  Schema.Struct({ _tag: Schema.tag("Accepted") }),
  Schema.Struct({ _tag: Schema.tag("Rejected"), message: Schema.String }),
  Schema.Struct({ _tag: Schema.tag("StillUnknown"), message: Schema.String, advice: Schema.String }),
  Schema.Struct({ _tag: Schema.tag("Absent") })
]).annotate({ identifier: "ActionResolution" })
export type ActionResolution = typeof ActionResolution.Type

const id = { id: ActionId }
const errors = [UpstreamUnavailable, NotPermitted, Unauthorized, QuotaExceeded, Overloaded] as const

export class AdminApi extends HttpApiGroup.make("admin").add(
  HttpApiEndpoint.get("actions", Paths.actions, {
    success: Schema.Array(UnansweredAction),
    error: errors
  }).annotateMerge(OpenApi.annotations({
    summary: "The signed actions without an answer",
    description: "Oldest first, without their bytes: those hold the signatures."
  })),
  HttpApiEndpoint.post("forget", Paths.forgetAction, {
    params: id,
    success: Forgotten,
    error: errors
  }).annotateMerge(OpenApi.annotations({
    summary: "Remove an action whose outcome you know",
    description: "Nothing is sent, and the nonce stays used."
  })),
  HttpApiEndpoint.post("resolve", Paths.resolveAction, {
    params: id,
    success: ActionResolution,
    error: errors
  }).annotateMerge(OpenApi.annotations({
    summary: "Send an action again, byte for byte, and say what the answer means",
    description:
      "`Landed`: the first sending was taken. `Accepted`: this one was. `Rejected`: neither was. `StillUnknown`: as " +
      "before. `Absent`: no action without an answer has the ID."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Admin",
  description:
    "The action log, for whoever runs the gateway: on the admin listener, or on a loopback address beside the rest"
})) {}
