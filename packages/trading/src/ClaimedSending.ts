/**
 * Sends an admitted action under a claim on its nonce and an entry in the journal, and settles both by what became of it.
 */
import type { NonceAlreadyUsed } from "@trigate/domain/ActionError"
import { readOutcome } from "@trigate/domain/ExchangeOperations"
import { isDecided, readResolution } from "@trigate/domain/Resolution"
import type { UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import { fingerprint } from "@trigate/signing/NonceFingerprint"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Admitted } from "./Admission.ts"
import type * as Journal from "./Journal.ts"
import type { Claim, Settlement, UsedNonces } from "./UsedNonces.ts"

/**
 * What an answer says about the nonce.
 *
 * A full budget (HTTP 429) took nothing, nor did a gateway upstream that refused with a problem document, unless the
 * nonce was used there.
 */
const settlementOf = (answer: UpstreamResponse.UpstreamResponse): Effect.Effect<Settlement> =>
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
          return answer.isProblem ? "released" : "unknown"
      }
    }
  })

/** What an answer says about all sendings of the bytes: it may be the answer to the second. */
const entrySettlementOf = (
  answer: UpstreamResponse.UpstreamResponse,
  settlement: Settlement
): Effect.Effect<Journal.Settlement> =>
  settlement === "known"
    ? Effect.match(readResolution(answer), {
      onSuccess: (resolution) => isDecided(resolution) ? "decided" : "notTaken",
      onFailure: () => "unknown"
    })
    : Effect.succeed(settlement === "released" ? "notTaken" : "unknown")

const unclaimed: Claim = { settle: () => Effect.void }

/**
 * Sends once for each signer and nonce; an action whose signer cannot be told is sent without a claim.
 *
 * A failure that says that nothing was sent gives the nonce back; `OutcomeUnknown` leaves it to the identical bytes. Nothing
 * is sent that the journal has not taken down.
 */
export const make = <E extends { readonly _tag: string }>(
  usedNonces: UsedNonces["Service"],
  journal: Journal.Journal["Service"],
  send: (admitted: Admitted) => Effect.Effect<UpstreamResponse.UpstreamResponse, E>
) => {
  const claimOf = ({ body, nonce, signer }: Admitted) =>
    signer === undefined
      ? Effect.succeed(unclaimed)
      : usedNonces.claim({ signer, nonce, bytesHash: fingerprint(body) })

  const sendClaimed = Effect.fnUntraced(function*(admitted: Admitted) {
    const { actionType, body, nonce, signer } = admitted
    const claim = yield* claimOf(admitted)
    const entry = yield* Effect.tapError(
      journal.open({ actionType, body, nonce, ...(signer === undefined ? {} : { signer }) }),
      () => claim.settle("released")
    )
    // a claim forgets with its process what the journal remembers: that an earlier sending is in doubt
    const settle = (settlement: Settlement, inJournal: Journal.Settlement) =>
      Effect.andThen(
        entry.settle(inJournal),
        claim.settle(entry.isDoubtful && inJournal === "notTaken" ? "unknown" : settlement)
      )
    const answer = yield* Effect.tapError(
      send(admitted),
      (error) => error._tag === "OutcomeUnknown" ? settle("unknown", "unknown") : settle("released", "notTaken")
    )
    const settlement = yield* settlementOf(answer)
    yield* settle(settlement, yield* entrySettlementOf(answer, settlement))
    return answer
  }, Effect.scoped)

  return (
    admitted: Admitted
  ): Effect.Effect<UpstreamResponse.UpstreamResponse, E | NonceAlreadyUsed | UpstreamUnavailable> =>
    // a caller that leaves does not end the sending, so it must end neither the claim nor the entry
    Effect.flatMap(Effect.forkDetach(sendClaimed(admitted), { startImmediately: true }), Fiber.join)
}
