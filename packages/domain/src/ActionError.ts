/** Refusals of a signed action before it is sent: nonce, signature, signer. */
import * as HttpApiError from "effect/http-api/HttpApiError"
import * as Schema from "effect/Schema"
import { Address } from "./Hex.ts"
import { declare, tagged } from "./Problem.ts"
import { Millis } from "./Time.ts"

/** The nonce is outside the window (now - 2 days, now + 1 day); all members are milliseconds since the epoch. */
export class NonceOutOfWindow extends HttpApiError.Problem<NonceOutOfWindow>()(
  "NonceOutOfWindow",
  declare("NonceOutOfWindow", 422, "Nonce out of window"),
  { ...tagged("NonceOutOfWindow"), nonce: Millis, now: Millis, earliest: Millis, latest: Millis }
) {}

/** The nonce inside the action differs from the body's, which the venue answers with "Nonce mismatch.". */
export class NonceMismatch extends HttpApiError.Problem<NonceMismatch>()(
  "NonceMismatch",
  declare("NonceMismatch", 422, "Nonce mismatch"),
  { ...tagged("NonceMismatch"), nonce: Millis, actionNonce: Millis }
) {}

/**
 * An action of this signer under this nonce is being sent, or was sent; `detail` says which. After `OutcomeUnknown` the
 * identical bytes may come again.
 */
export class NonceAlreadyUsed extends HttpApiError.Problem<NonceAlreadyUsed>()(
  "NonceAlreadyUsed",
  declare("NonceAlreadyUsed", 409, "Nonce already used"),
  { ...tagged("NonceAlreadyUsed"), signer: Address, nonce: Millis }
) {}

/** The signature does not recover, or recovers to somebody else than the body itself names. */
export class InvalidSignature extends HttpApiError.Problem<InvalidSignature>()(
  "InvalidSignature",
  declare("InvalidSignature", 422, "Invalid signature"),
  {
    ...tagged("InvalidSignature"),
    reason: Schema.String,
    recovered: Schema.optionalKey(Address),
    expected: Schema.optionalKey(Address)
  }
) {}

/** The signer is outside the configured allow-list. */
export class SignerNotAllowed extends HttpApiError.Problem<SignerNotAllowed>()(
  "SignerNotAllowed",
  declare("SignerNotAllowed", 403, "Signer not allowed"),
  { ...tagged("SignerNotAllowed"), signer: Address }
) {}
