/** Errors of signed actions that are refused before they are sent because of their nonce, signature or signer. */
import * as Schema from "effect/Schema"
import { Address } from "../encoding/Hex.ts"
import { Problem } from "../errors/Problem.ts"
import { Millis } from "../Time.ts"

/**
 * The venue would refuse the nonce: it accepts nonces from 2 days before its current time to 1 day after.
 */
export class NonceOutOfWindow extends Problem<NonceOutOfWindow>()(
  "NonceOutOfWindow",
  { group: "fix-request", status: 422, title: "Nonce out of window" },
  { nonce: Millis, now: Millis, earliest: Millis, latest: Millis }
) {}

/** The nonce inside the action differs from the nonce of the body. The venue refuses such a body: "Nonce mismatch.". */
export class NonceMismatch extends Problem<NonceMismatch>()(
  "NonceMismatch",
  { group: "fix-request", status: 422, title: "Nonce mismatch" },
  { nonce: Millis, actionNonce: Millis }
) {}

/**
 * This gateway has sent, or is sending, an action of this signer with this nonce; `detail` describes that action.
 *
 * After `OutcomeUnknown`, it is safe to send the identical bytes again.
 */
export class NonceAlreadyUsed extends Problem<NonceAlreadyUsed>()(
  "NonceAlreadyUsed",
  { group: "outcome-unknown", status: 409, title: "Nonce already used" },
  {
    signer: Address,
    nonce: Millis,
    settled: Schema.optionalKey(Schema.Literals(["accepted", "rejected"])).annotateKey({
      description: "The outcome of the earlier action, if that action has the same signed content and a known outcome"
    })
  }
) {}

/**
 * No signer can be recovered from the signature, the recovered signer is not the expected one, or the action was signed
 * for a different network.
 */
export class InvalidSignature extends Problem<InvalidSignature>()(
  "InvalidSignature",
  { group: "fix-request", status: 422, title: "Invalid signature" },
  {
    reason: Schema.String,
    recovered: Schema.optionalKey(Address),
    expected: Schema.optionalKey(Address)
  }
) {}

/** The signer is not on the allow-list of this gateway. */
export class SignerNotAllowed extends Problem<SignerNotAllowed>()(
  "SignerNotAllowed",
  { group: "fix-setup", status: 403, title: "Signer not allowed" },
  { signer: Address }
) {}

/**
 * The action log of this gateway does not contain the action: this gateway never sent it, or the log entry has expired.
 */
export class ActionNotFound extends Problem<ActionNotFound>()(
  "ActionNotFound",
  { group: "fix-request", status: 404, title: "Action not found" },
  {}
) {}
