/** Sends an admitted action under a claim on its nonce, and settles the claim by what became of it. */
import type { NonceAlreadyUsed } from "@trigate/domain/ActionError"
import { readOutcome } from "@trigate/domain/ExchangeOperations"
import * as Relayed from "@trigate/domain/Relayed"
import { fingerprint } from "@trigate/signing/NonceFingerprint"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Admitted } from "./Admission.ts"
import type { Settlement, UsedNonces } from "./UsedNonces.ts"

/**
 * What an answer says about the nonce.
 *
 * A full budget (HTTP 429) took nothing, nor did a gateway upstream that refused with a problem document, unless the
 * nonce was used there.
 */
const settlementOf = (answer: Relayed.Relayed): Effect.Effect<Settlement> =>
  Effect.match(readOutcome(answer), {
    onSuccess: () => "known",
    onFailure: (error) => {
      switch (error._tag) {
        case "ActionRejected":
          return "known"
        case "OutcomeUnknown":
        case "NonceAlreadyUsed":
          return "unknown"
        case "UpstreamRateLimited":
          return "released"
        default:
          return Relayed.isProblem(answer) ? "released" : "unknown"
      }
    }
  })

/**
 * Sends once for each signer and nonce; an action whose signer cannot be told is sent without a claim.
 *
 * A failure that says that nothing was sent gives the nonce back; `OutcomeUnknown` leaves it to the identical bytes.
 */
export const make = <E extends { readonly _tag: string }>(
  usedNonces: UsedNonces["Service"],
  send: (admitted: Admitted) => Effect.Effect<Relayed.Relayed, E>
) =>
(admitted: Admitted): Effect.Effect<Relayed.Relayed, E | NonceAlreadyUsed> => {
  const { nonce, signer } = admitted
  if (signer === undefined) return send(admitted)
  const claimed = Effect.gen(function*() {
    const claim = yield* usedNonces.claim({ signer, nonce, bytesHash: fingerprint(admitted.body) })
    const answer = yield* Effect.tapError(
      send(admitted),
      (error) => claim.settle(error._tag === "OutcomeUnknown" ? "unknown" : "released")
    )
    yield* claim.settle(yield* settlementOf(answer))
    return answer
  }).pipe(Effect.scoped)
  // a caller that leaves does not end the sending, so it must not end the claim either
  return Effect.flatMap(Effect.forkDetach(claimed, { startImmediately: true }), Fiber.join)
}
