/** Determines the unknown outcome of an action from the result of sending the identical bytes again. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Address, Millis } from "../encoding/Encoding.ts"
import type { NonceAlreadyUsed } from "../errors/GatewayError.ts"
import type { ErrorGroup } from "../errors/Problem.ts"
import { resendAdvice, ServedExchangeFailure } from "./Action.ts"
import { ActionRejected, type ActionResult, type RejectionReason } from "./ActionOutcome.ts"

/**
 * The outcome of an action after its bytes were sent more than once.
 *
 * - `Landed`: the venue has seen the nonce, so the first attempt took effect. If the signer also signed other bytes
 *   with that nonce, one of the two actions took effect.
 * - `Accepted`: the first attempt never arrived, and the venue accepted the resend; `answer` is the resend's result, as
 *   `submit` returns it.
 * - `Rejected`: the venue refused the resend for a reason that also applied to the first attempt.
 */
export type Resolution =
  | { readonly _tag: "Landed"; readonly rejection: ActionRejected }
  | { readonly _tag: "Accepted"; readonly answer: ActionResult }
  | { readonly _tag: "Rejected"; readonly rejection: ActionRejected }

/**
 * The outcome of the action is still unknown. `reason` is the error of the latest attempt.
 *
 * For every `reason`, the first attempt may have taken effect, even if the latest attempt sent nothing. Do not sign the
 * action again before you know its outcome. Embedded services and the typed client raise this error; the HTTP route
 * responds with the error in `reason`.
 */
export class StillUnknown extends Schema.TaggedError<StillUnknown>()("StillUnknown", {
  upstream: Schema.String,
  nonce: Schema.optionalKey(Millis),
  signer: Schema.optionalKey(Address),
  advice: Schema.String,
  detail: Schema.String,
  reason: Schema.Union([ActionRejected, ...ServedExchangeFailure.members]).annotate({
    description: "The error of the latest attempt"
  })
}) {
  override get message() {
    return `Still unknown: ${this.detail}`
  }
  get group() {
    return "outcome-unknown" as const
  }
}

type Reason = StillUnknown["reason"]

const checkAccount = "Query the account at the venue to find out whether the action took effect"

/** The advice for a failed resend of the identical bytes, by error group. */
const resendAdviceByGroup: { readonly [Group in ErrorGroup]: string } = {
  "retry-later": resendAdvice,
  "fix-setup": resendAdvice,
  "fix-request": checkAccount,
  "outcome-unknown": checkAccount
}

/** The known properties of an action whose outcome is unknown. */
export interface Unresolved {
  /** The label of the upstream. */
  readonly upstream: string
  readonly nonce?: Millis
  readonly signer?: Address
}

/** Makes the error for an action whose outcome is still unknown after its bytes were sent again. */
export const stillUnknown = ({ upstream, ...identity }: Unresolved) => (reason: Reason): StillUnknown => {
  // uses the signer of a gateway error only: the address in a rejection is from the venue's text
  const named = reason._tag !== "ActionRejected" && "signer" in reason ? reason.signer : undefined
  return new StillUnknown({
    upstream: "upstream" in reason ? reason.upstream : upstream,
    ...identity,
    ...("nonce" in reason && reason.nonce !== undefined ? { nonce: reason.nonce } : {}),
    ...(named === undefined ? {} : { signer: named }),
    advice: "advice" in reason ? reason.advice : resendAdviceByGroup[reason.group],
    detail: reason.message,
    reason
  })
}

/**
 * The rejection reasons that also apply to the first attempt: the reasons that depend only on the bytes of the action,
 * and `NonceTooHigh`.
 *
 * Any other rejection depends on the venue's state, which may have changed since the first attempt. The venue can check
 * that state before it checks the nonce, so the first attempt may have been accepted.
 */
const lasting: ReadonlySet<RejectionReason> = new Set([
  "ShapeRefused",
  "WrongNetwork",
  "NonceMismatch",
  "NonceTooHigh"
])

/**
 * Returns the outcome that a rejected resend implies; `None` if the reason for the rejection might not apply to the
 * first attempt.
 */
export const ofRejection = (rejection: ActionRejected): Option.Option<Resolution> => {
  if (rejection.reason === "NonceDuplicate") return Option.some({ _tag: "Landed", rejection })
  return lasting.has(rejection.reason) ? Option.some({ _tag: "Rejected", rejection }) : Option.none()
}

/**
 * Returns the outcome that `NonceAlreadyUsed` from an upstream gateway implies: `Landed` if that gateway knows that the
 * venue accepted the same signed content, otherwise `None`.
 *
 * If that gateway knows that the venue rejected the content, the outcome is still unknown, because a different gateway
 * can also have sent the action.
 */
const ofNonceUsed = (error: NonceAlreadyUsed): Option.Option<Resolution> =>
  error.settled === "accepted"
    ? Option.some({
      _tag: "Landed",
      rejection: new ActionRejected({ reason: "NonceDuplicate", message: error.message })
    })
    : Option.none()

/**
 * Returns the outcome that the result of a resend implies. Fails with `StillUnknown` if the result implies no outcome.
 */
export const ofOutcome = <R>(
  outcome: Effect.Effect<ActionResult, Reason, R>,
  unresolved: Unresolved
): Effect.Effect<Resolution, StillUnknown, R> =>
  outcome.pipe(
    Effect.map((answer): Resolution => ({ _tag: "Accepted", answer })),
    Effect.catchTags({
      ActionRejected: (rejection) => Effect.fromOption(ofRejection(rejection), () => rejection),
      NonceAlreadyUsed: (error) => Effect.fromOption(ofNonceUsed(error), () => error)
    }),
    Effect.mapError(stillUnknown(unresolved))
  )
