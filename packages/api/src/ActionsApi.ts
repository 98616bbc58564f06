/** `GET /actions/{id}`: the outcome of a signed action. */
import { ActionNotFound } from "@trigate/domain/actions/ActionError"
import { Cloid } from "@trigate/domain/actions/ActionOutcome"
import { ActionId, ActionRecord } from "@trigate/domain/actions/ActionRecord"
import { Address } from "@trigate/domain/encoding/Hex"
import { callerFailures } from "@trigate/domain/errors/GatewayError"
import { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import { Millis } from "@trigate/domain/Time"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Examples from "./Examples.ts"
import * as Paths from "./Paths.ts"
import { Problems } from "./Problems.ts"

const digits = (most: number, what: string) =>
  Schema.String.check(Schema.isPattern(new RegExp(`^[0-9]{1,${most}}$`, "u"), { expected: what }))

const toNumber = SchemaTransformation.transform({ decode: Number, encode: String })

/** The `wait` parameter: the maximum number of seconds for which the request waits for an outcome. */
const Wait = digits(2, "seconds, 0 to 30").annotate({
  description:
    "Maximum number of seconds to wait for the outcome, at most 30. If there is no outcome by then, the response contains the current state",
  examples: ["0"]
}).pipe(Schema.decodeTo(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 30 })), toNumber))

/** Query parameters of the routes that return one action by its ID. */
export const ById = { wait: Schema.optionalKey(Wait) }

/** Query parameters of the routes that find an action by its signer and nonce, or by a client order ID. */
export const ByIdentity = {
  ...ById,
  // the OpenAPI document shows the encoded form of a parameter, so the description is attached to that form
  signer: Schema.optionalKey(
    Schema.String.annotate({ description: "The address that signed, in 0x hex", examples: [Examples.actionSigner] })
      .pipe(Schema.decodeTo(Address))
  ),
  nonce: Schema.optionalKey(
    digits(16, "milliseconds").annotate({
      description: "The nonce; requires `signer`",
      examples: [Examples.actionNonce]
    })
      .pipe(Schema.decodeTo(Millis, toNumber))
  ),
  cloid: Schema.optionalKey(
    Schema.String.annotate({ description: "The client order id of one of the action's orders, in 0x hex" })
      .pipe(Schema.decodeTo(Cloid))
  )
}

/** Path parameters of the routes that return one action by its ID. */
export const ActionPath = { id: ActionId.annotate({ examples: [Examples.actionId] }) }

/** The errors of a request for the outcome of an action. */
export const actionErrors = [ActionNotFound, UpstreamUnavailable, ...callerFailures] as const

export class ActionsApi extends HttpApiGroup.make("actions").add(
  HttpApiEndpoint.get("outcome", Paths.actionOutcome, {
    disableCodecs: true,
    params: ActionPath,
    query: ById,
    success: ActionRecord,
    error: actionErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "Outcome of a signed action",
    description:
      "This request sends no action to the venue. If relaying the action failed with OutcomeUnknown, the gateway " +
      "determines the outcome later: it queries the action's orders by their cloids, and uses the action's " +
      "`expiresAfter`. The response contains the outcome and ids, never the signed body."
  })),
  HttpApiEndpoint.get("find", Paths.actionOutcomes, {
    disableCodecs: true,
    query: ByIdentity,
    success: ActionRecord,
    error: actionErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "Outcome of a signed action, by signer and nonce, or by cloid",
    description:
      "Send `signer` and `nonce`, or `cloid` and `signer`. Without `signer`, the action can be another account's. If " +
      "several actions have the cloid, the error is InvalidRequest."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Actions",
  description: "Outcomes of signed actions that this gateway relayed"
})) {}
