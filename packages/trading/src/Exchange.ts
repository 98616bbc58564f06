/** Signed actions of the trading chain: checked, sent at most once, and their outcome told apart from their fate. */
import type { NonceAlreadyUsed } from "@trigate/domain/ActionError"
import type { ActionAccepted, ActionRejected } from "@trigate/domain/ActionOutcome"
import { faultsOf, invalidRequest } from "@trigate/domain/Decode"
import type { ExchangeFailure } from "@trigate/domain/ExchangeOperations"
import { operationOf, passthroughAction, readOutcome } from "@trigate/domain/ExchangeOperations"
import type { Address } from "@trigate/domain/Hex"
import type { Inspection } from "@trigate/domain/Inspection"
import * as JsonText from "@trigate/domain/JsonText"
import type { Surface } from "@trigate/domain/Operation"
import { sourcesOn, unavailableOnNode } from "@trigate/domain/Operation"
import type { ChainNotConfigured, InvalidRequest, UnavailableOnNode } from "@trigate/domain/RequestError"
import type { Resolution } from "@trigate/domain/Resolution"
import { readResolution } from "@trigate/domain/Resolution"
import { SignedAction } from "@trigate/domain/SignedAction"
import type { OnceFailure } from "@trigate/domain/TransportFailure"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Utf8 from "@trigate/domain/Utf8"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Admission, AdmissionFailure, Admitted } from "./Admission.ts"
import * as ClaimedSending from "./ClaimedSending.ts"
import type { Journal } from "./Journal.ts"
import type { UsedNonces } from "./UsedNonces.ts"

/** A body to relay, and which of our surfaces it came to. */
export interface ExchangeCall {
  readonly body: Uint8Array
  readonly surface: Surface
  /** Who the caller expects to have signed: the key's own address, so an API wallet's rather than its master's. */
  readonly expectedSigner?: Address
}

/** The venue's answer as it came, what was asked of it, and what the sender should know. */
export interface ExchangeRelay {
  /** Name of the operation: the action type, or `exchange` for one beyond the four. */
  readonly operation: string
  readonly answer: UpstreamResponse.UpstreamResponse
  /** Who signed, in lower case; absent for the forms that only the documents show. */
  readonly signer?: Address
  readonly warnings: ReadonlyArray<string>
}

/** What relaying can end in before there is an answer. */
export type ExchangeRelayFailure =
  | AdmissionFailure
  | NonceAlreadyUsed
  | OnceFailure
  | ChainNotConfigured
  | UnavailableOnNode

/** Sends an admitted body at most once. */
export type Transport = (
  admitted: Admitted
) => Effect.Effect<UpstreamResponse.UpstreamResponse, OnceFailure | ChainNotConfigured | UnavailableOnNode>

/** Takes signed actions. */
export class Exchange extends Context.Service<Exchange, {
  /**
   * Checks a body and sends its bytes; the answer is the venue's own, which refuses with HTTP 200 as well.
   *
   * `OutcomeUnknown` means that the action may have been taken: only the identical bytes may be sent again, and anything
   * else under that nonce is refused with `NonceAlreadyUsed`, as is a nonce whose outcome is known. On the node surface it
   * fails with `UnavailableOnNode` before the body is looked at.
   */
  readonly relay: (call: ExchangeCall) => Effect.Effect<ExchangeRelay, ExchangeRelayFailure>
  /** Says what the gateway sees in a body, and why it is not the expected signer's; sends nothing. */
  readonly inspect: (body: Uint8Array, expectedSigner?: Address) => Effect.Effect<Inspection, InvalidRequest>
  /** Sends an action and reads the venue's word on it; integers keep all their digits. */
  readonly submit: (signed: SignedAction) => Effect.Effect<ActionAccepted, ActionRejected | ExchangeFailure>
  /**
   * Finds out what became of an action after `OutcomeUnknown`, by sending the identical bytes again; nothing else calls it.
   *
   * It takes the body that was relayed, an entry's body from the journal, or the signed action that was submitted. Until the
   * venue has an answer it fails, with `OutcomeUnknown` again or with what kept the bytes from being sent.
   */
  readonly resolve: (action: Uint8Array | SignedAction) => Effect.Effect<Resolution, ExchangeFailure>
}>()("@trigate/trading/Exchange") {}

const encode = Schema.encodeEffect(SignedAction, { errors: "all" })

/** The text of a signed action as the wire takes it; `InvalidRequest` for values outside the types' ranges. */
const encoded = (signed: SignedAction) =>
  Effect.mapBoth(encode(signed), {
    onFailure: (error) => invalidRequest(faultsOf(error)),
    onSuccess: (wire) => Utf8.encode(JsonText.stringify(wire))
  })

/** The service over some admission, some store of used nonces, some journal and some way to send. */
export const make = (
  admission: Admission["Service"],
  usedNonces: UsedNonces["Service"],
  journal: Journal["Service"],
  send: Transport
): Exchange["Service"] => {
  const sendOnce = ClaimedSending.make(usedNonces, journal, send)
  const relay = Effect.fnUntraced(function*({ body, expectedSigner, surface }: ExchangeCall) {
    if (sourcesOn(passthroughAction, surface).length === 0) return yield* unavailableOnNode(passthroughAction)
    const admitted = yield* admission.admit(body, expectedSigner)
    return {
      operation: operationOf(admitted.actionType).name,
      answer: yield* sendOnce(admitted),
      ...(admitted.signer === undefined ? {} : { signer: admitted.signer }),
      warnings: admitted.warnings
    }
  })
  const submit = Effect.fn("Exchange.submit")(function*(signed: SignedAction) {
    const body = yield* encoded(signed)
    const { answer, signer } = yield* relay({ body, surface: "gateway" })
    return yield* readOutcome(answer, { nonce: signed.nonce, ...(signer === undefined ? {} : { signer }) })
  })
  const resolve = Effect.fn("Exchange.resolve")(function*(action: Uint8Array | SignedAction) {
    const body = action instanceof Uint8Array ? action : yield* encoded(action)
    const { answer, signer } = yield* relay({ body, surface: "gateway" })
    return yield* readResolution(answer, signer === undefined ? {} : { signer })
  })
  return Exchange.of({ inspect: admission.inspect, relay, resolve, submit })
}
