/** Why a signed action was refused before it was sent: its nonce, its signature or its signer. */
import * as HttpApiError from "effect/http-api/HttpApiError"
import * as Schema from "effect/Schema"
import { Address } from "./Hex.ts"
import { declare, tagged } from "./Problem.ts"
import { Millis } from "./Time.ts"

/** The venue would refuse the nonce: it takes nonces from 2 days before now to 1 day after, in milliseconds. */
export class NonceOutOfWindow extends HttpApiError.Problem<NonceOutOfWindow>()(
  "NonceOutOfWindow",
  declare("NonceOutOfWindow", 422, "Nonce out of window"),
  { ...tagged("NonceOutOfWindow"), nonce: Millis, now: Millis, earliest: Millis, latest: Millis }
) {
  get group() {
    return "fix-request" as const
  }
}

/** The nonce inside the action differs from the nonce of the body. The venue refuses it with "Nonce mismatch.". */
export class NonceMismatch extends HttpApiError.Problem<NonceMismatch>()(
  "NonceMismatch",
  declare("NonceMismatch", 422, "Nonce mismatch"),
  { ...tagged("NonceMismatch"), nonce: Millis, actionNonce: Millis }
) {
  get group() {
    return "fix-request" as const
  }
}

/**
 * This gateway has sent, or is sending, an action of this signer under this nonce; `detail` says which.
 *
 * After `OutcomeUnknown` you may send the identical bytes again.
 */
export class NonceAlreadyUsed extends HttpApiError.Problem<NonceAlreadyUsed>()(
  "NonceAlreadyUsed",
  declare("NonceAlreadyUsed", 409, "Nonce already used"),
  { ...tagged("NonceAlreadyUsed"), signer: Address, nonce: Millis }
) {
  get group() {
    return "outcome-unknown" as const
  }
}

/** No signer can be recovered from the signature, or the signer is not the address that the body names. */
export class InvalidSignature extends HttpApiError.Problem<InvalidSignature>()(
  "InvalidSignature",
  declare("InvalidSignature", 422, "Invalid signature"),
  {
    ...tagged("InvalidSignature"),
    reason: Schema.String,
    recovered: Schema.optionalKey(Address),
    expected: Schema.optionalKey(Address)
  }
) {
  get group() {
    return "fix-request" as const
  }
}

/** The signer is not on the allow-list of this gateway. */
export class SignerNotAllowed extends HttpApiError.Problem<SignerNotAllowed>()(
  "SignerNotAllowed",
  declare("SignerNotAllowed", 403, "Signer not allowed"),
  { ...tagged("SignerNotAllowed"), signer: Address }
) {
  get group() {
    return "fix-setup" as const
  }
}
