/** `POST /exchange`: checks signed actions, and relays each at most once. */
import { ActionAccepted } from "@trigate/domain/actions/ActionOutcome"
import { exchangeFailures } from "@trigate/domain/actions/ExchangeOperations"
import { SignedAction } from "@trigate/domain/actions/SignedAction"
import { callerFailures, servedFailures } from "@trigate/domain/errors/GatewayError"
import { InvalidRequest } from "@trigate/domain/errors/RequestError"
import { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import { Inspection } from "@trigate/domain/Inspection"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as Examples from "./Examples.ts"
import * as Paths from "./Paths.ts"
import { Problems } from "./Problems.ts"

/** A signed action, with an example for the reference. */
export const SignedBody = SignedAction.annotate({ examples: [Examples.signedAction] })

/** The venue's rejection, relayed unchanged: HTTP 200 with the reason as text in `response`. */
export const ActionRefused = Schema.Struct({ status: Schema.Literal("err"), response: Schema.String })
  .annotate({ identifier: "ActionRefused" })

/** The errors that the gateway returns instead of the venue's response. */
export const exchangeErrors = [...exchangeFailures, ...servedFailures] as const

export class ExchangeApi extends HttpApiGroup.make("exchange").add(
  HttpApiEndpoint.post("submit", Paths.exchange, {
    disableCodecs: true,
    payload: SignedBody,
    success: [ActionAccepted, ActionRefused],
    error: exchangeErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "Relay a signed action",
    description:
      "The body is checked, then sent unchanged to the official API, at most once. The venue's response is returned " +
      "unchanged: HTTP 200 does not mean success, check `status`. After OutcomeUnknown resend exactly the same bytes; never " +
      "sign again with a new nonce. The response contains the signer in the header `x-trigate-signer`. If you send the expected " +
      "signer in the header `x-trigate-expected-signer`, the action is refused if another key signed it. A refusal also " +
      "has the members that the venue's SDKs read: `code` (the HTTP status) and `msg` (the detail). If the same request " +
      "would be refused again, it also has `error` (the detail)."
  })),
  HttpApiEndpoint.post("inspect", Paths.inspect, {
    disableCodecs: true,
    payload: SignedBody,
    success: Inspection,
    error: [InvalidRequest, UpstreamUnavailable, ...callerFailures]
  }).annotateMerge(OpenApi.annotations({
    summary: "Explain a signed body without sending it",
    description:
      "Nothing is sent to the venue. The response contains the form of the action, its signing scheme, the bytes and hashes, the typed " +
      "data to sign, the signer, whether the nonce is in the window, and warnings. Send the expected signer in the " +
      "header or query parameter `x-trigate-expected-signer`: if another key signed, the response describes the likely " +
      "mistake. For a multi-sig the expected signer is the leader that the body names."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Exchange",
  description:
    "Signed actions of the trading chain: orders, transfers, staking, vaults and all other types of the catalog"
})) {}
