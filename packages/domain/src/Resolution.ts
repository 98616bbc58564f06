/** What the answer to identical bytes, sent a second time, says about the first time. */
import * as Effect from "effect/Effect"
import type { ActionAccepted, ActionRejected, RejectionReason } from "./ActionOutcome.ts"
import type { ExchangeFailure, Identity } from "./ExchangeOperations.ts"
import { readOutcome } from "./ExchangeOperations.ts"
import type { UpstreamResponse } from "./UpstreamResponse.ts"

/**
 * What became of an action whose outcome was unknown.
 *
 * `Landed`: the venue has seen the nonce, so the first sending landed; if anyone signed other bytes under that nonce, one
 * of the two did. `Accepted`: the first had not landed, and this sending was taken. `Rejected`: this sending was not taken;
 * `first` is `"notTaken"` where the refusal would have met the first one as well, and `"unknown"` where it can have come up
 * since, like an action that has expired.
 */
export type Resolution =
  | { readonly _tag: "Landed"; readonly rejection: ActionRejected }
  | { readonly _tag: "Accepted"; readonly answer: ActionAccepted }
  | { readonly _tag: "Rejected"; readonly rejection: ActionRejected; readonly first: "notTaken" | "unknown" }

/**
 * The refusals that follow from the bytes alone, and `NonceTooHigh`, which an earlier clock would have given as well.
 *
 * Any other depends on the venue's state, and it is not documented that the venue looks at the nonce before that state.
 */
const lasting: ReadonlySet<RejectionReason> = new Set([
  "ShapeRefused",
  "WrongNetwork",
  "NonceMismatch",
  "NonceTooHigh"
])

/** What a refusal of the second sending says about the first one. */
export const ofRejection = (rejection: ActionRejected): Resolution => {
  if (rejection.reason === "NonceDuplicate") return { _tag: "Landed", rejection }
  // a refusal inside an `ok` answer: the venue took the nonce now, so it was free
  const first = lasting.has(rejection.reason) || rejection.response !== undefined ? "notTaken" : "unknown"
  return { _tag: "Rejected", rejection, first }
}

/** What the outcome of a second sending says about the first one. */
export const ofOutcome = (
  outcome: Effect.Effect<ActionAccepted, ActionRejected | ExchangeFailure>
): Effect.Effect<Resolution, ExchangeFailure> =>
  outcome.pipe(
    Effect.map((accepted): Resolution => ({ _tag: "Accepted", answer: accepted })),
    Effect.catchTag("ActionRejected", (rejection) => Effect.succeed(ofRejection(rejection)))
  )

/**
 * Reads the answer to a second sending of the identical bytes.
 *
 * Fails with `OutcomeUnknown` where the answer leaves it open, and with what the gateway or the venue says before the action
 * is looked at (`UpstreamRateLimited`, `NonceOutOfWindow`, …): the first sending is then as unknown as before.
 */
export const readResolution = (
  answer: UpstreamResponse,
  identity: Identity = {}
): Effect.Effect<Resolution, ExchangeFailure> => ofOutcome(readOutcome(answer, identity))

/** Whether every sending of the bytes is accounted for. */
export const isDecided = (resolution: Resolution): boolean =>
  resolution._tag !== "Rejected" || resolution.first === "notTaken"
