/** The allow-list of signers: whose actions are relayed. */
import { InvalidSignature, SignerNotAllowed } from "@trigate/domain/ActionError"
import type { Address } from "@trigate/domain/Hex"
import type { SignedEnvelope } from "@trigate/domain/SignedAction"
import * as SignerRecovery from "@trigate/signing/SignerRecovery"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"

/** Why a signer is turned away. */
export type SignerFailure = InvalidSignature | SignerNotAllowed

const untold = (error: { readonly message: string }): InvalidSignature =>
  new InvalidSignature({ reason: error.message, detail: `The signer cannot be told: ${error.message}` })

/**
 * The check of an allow-list: the recovered signer, or the refusal.
 *
 * Of a multi-sig action the one who sends it is looked at. An action whose signer cannot be recovered, as in the forms that
 * only the documents show, is refused with `InvalidSignature`: nobody on the list can be shown to have signed it.
 */
export const make = (profile: VenueProfile, allowed: ReadonlyArray<string>) => {
  const signers: ReadonlySet<string> = new Set(allowed.map((address) => address.toLowerCase()))
  return Effect.fnUntraced(function*(
    signed: SignedEnvelope
  ): Effect.fn.Return<Address, SignerFailure> {
    const { signer } = yield* Effect.mapError(SignerRecovery.recover(profile, signed), untold)
    return signers.has(signer)
      ? signer
      : yield* new SignerNotAllowed({ signer, detail: `${signer} is not on the list of signers of this gateway` })
  })
}
