/** The outcome of an action that was unknown, as determined by sending the identical bytes again. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Address } from "../encoding/Hex.ts"
import type { ErrorGroup } from "../errors/ErrorGroup.ts"
import { Millis } from "../Time.ts"
import type { NonceAlreadyUsed } from "./ActionError.ts"
import { ActionRejected, type ActionResult, type RejectionReason } from "./ActionOutcome.ts"
import { resendAdvice, ServedExchangeFailure } from "./ExchangeOperations.ts"

/**
 * The outcome of an action; accounts for every sending of its bytes.
 *
 * - `Landed`: the venue has seen the nonce, so the first sending landed. If anyone signed other bytes under that nonce, one
 *   of the two landed.
 * - `Accepted`: the first sending had not landed, and this one was taken; `answer` is the result that `submit` returns.
 * - `Rejected`: this sending was not taken, and its refusal would have met the first one as well.
 */
export type Resolution =
  | { readonly _tag: "Landed"; readonly rejection: ActionRejected }
  | { readonly _tag: "Accepted"; readonly answer: ActionResult }
  | { readonly _tag: "Rejected"; readonly rejection: ActionRejected }

/**
 * The outcome of the action is still unknown. `reason` is the error of this sending of the identical bytes.
 *
 * Whatever the reason, even if nothing was sent this time, the first sending may have taken effect: do not
 * sign the action again before you know. Embedded services and the typed client raise this error; the HTTP route responds
 * with the reason.
 */
export class StillUnknown extends Schema.TaggedError<StillUnknown>()("StillUnknown", {
  upstream: Schema.String,
  nonce: Schema.optionalKey(Millis),
  signer: Schema.optionalKey(Address),
  advice: Schema.String,
  detail: Schema.String,
  reason: Schema.Union([ActionRejected, ...ServedExchangeFailure.members]).annotate({
    description: "The error that this sending ended in"
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

const readTheAccount = "Read from the account at the venue whether the action took effect"

/** How to find out, after a second sending that ended in an error of the group. */
const findOut: { readonly [Group in ErrorGroup]: string } = {
  "retry-later": resendAdvice,
  "fix-setup": resendAdvice,
  "fix-request": readTheAccount,
  "outcome-unknown": readTheAccount
}

/** The known facts of an action whose outcome is unknown. */
export interface Unresolved {
  /** Who was asked. */
  readonly upstream: string
  readonly nonce?: Millis
  readonly signer?: Address
}

/** The error of a resolution that ended in a reason. */
export const stillUnknown = ({ upstream, ...identity }: Unresolved) => (reason: Reason): StillUnknown => {
  // the address in a rejection is one that the venue names
  const named = reason._tag !== "ActionRejected" && "signer" in reason ? reason.signer : undefined
  return new StillUnknown({
    upstream: "upstream" in reason ? reason.upstream : upstream,
    ...identity,
    ...("nonce" in reason && reason.nonce !== undefined ? { nonce: reason.nonce } : {}),
    ...(named === undefined ? {} : { signer: named }),
    advice: "advice" in reason ? reason.advice : findOut[reason.group],
    detail: reason.message,
    reason
  })
}

/**
 * The refusals that follow from the bytes alone, and `NonceTooHigh`, which an earlier clock would have given as well.
 *
 * Any other depends on the venue's state, and no document says that the venue looks at the nonce before that state.
 */
const lasting: ReadonlySet<RejectionReason> = new Set([
  "ShapeRefused",
  "WrongNetwork",
  "NonceMismatch",
  "NonceTooHigh"
])

/** What a rejection of the second sending says about the first one; none where its reason can have come up since. */
export const ofRejection = (rejection: ActionRejected): Option.Option<Resolution> => {
  if (rejection.reason === "NonceDuplicate") return Option.some({ _tag: "Landed", rejection })
  return lasting.has(rejection.reason) ? Option.some({ _tag: "Rejected", rejection }) : Option.none()
}

/**
 * What a gateway upstream says that has sent the content before and knows that the venue took it.
 *
 * One that knows of a rejection says nothing of sendings on another way.
 */
const ofNonceUsed = (error: NonceAlreadyUsed): Option.Option<Resolution> =>
  error.settled === "accepted"
    ? Option.some({
      _tag: "Landed",
      rejection: new ActionRejected({ reason: "NonceDuplicate", message: error.message })
    })
    : Option.none()

/** What the outcome of a second sending says about the first one. Every failure leaves it unknown. */
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
