/** `POST /exchange`: signed actions, checked and relayed at most once. */
import { ActionAccepted } from "@trigate/domain/ActionOutcome"
import { exchangeFailures } from "@trigate/domain/ExchangeOperations"
import { commonFailures } from "@trigate/domain/GatewayError"
import { Inspection } from "@trigate/domain/Inspection"
import { InvalidRequest, PayloadTooLarge } from "@trigate/domain/RequestError"
import { SignedAction } from "@trigate/domain/SignedAction"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { Problems } from "./Problems.ts"

/** The venue's refusal, relayed as it is: HTTP 200, a text in `response`. */
export const ActionRefused = Schema.Struct({ status: Schema.Literal("err"), response: Schema.String })
  .annotate({ identifier: "ActionRefused" })

/** Errors that a signed action can end in on its way, all before or instead of the venue's own answer. */
export const exchangeErrors = [...exchangeFailures, ...commonFailures] as const

export class ExchangeApi extends HttpApiGroup.make("exchange").add(
  HttpApiEndpoint.post("submit", "/exchange", {
    disableCodecs: true,
    payload: SignedAction,
    success: [ActionAccepted, ActionRefused],
    error: exchangeErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "Relay a signed action",
    description:
      "The bytes are checked, then sent verbatim to the official API, at most once. The venue's own answer comes back " +
      "as it is: HTTP 200 is not success, read `status`. After OutcomeUnknown resend the identical bytes, never a " +
      "fresh nonce. The header `x-trigate-signer` of the answer tells whose signature it is; with the header " +
      "`x-trigate-expected-signer` a request says whose it has to be."
  })),
  HttpApiEndpoint.post("inspect", "/exchange/inspect", {
    disableCodecs: true,
    payload: SignedAction,
    success: Inspection,
    error: [InvalidRequest, PayloadTooLarge]
  }).annotateMerge(OpenApi.annotations({
    summary: "Say what the gateway sees in a signed body",
    description:
      "Relays nothing: the form of the action, its scheme, the bytes and hashes, the typed data that was to be signed, " +
      "who signed it, whether the nonce is in the window, and warnings. Name who should have signed it in the header or " +
      "query parameter `x-trigate-expected-signer`, and the likely mistake is looked for that makes another one appear; " +
      "the leader whom a multi-sig names is always expected."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Exchange",
  description: "Signed actions of the trading chain: multiSig, tokenDelegate, CSignerAction, evmUserModify"
})) {}
