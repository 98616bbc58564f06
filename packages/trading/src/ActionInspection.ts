/** Reads a signed body the way the gateway does and says what it sees; nothing is sent. */
import type { Action } from "@trigate/domain/Action"
import type { Inspection } from "@trigate/domain/Inspection"
import type { SignedEnvelope } from "@trigate/domain/SignedAction"
import * as Signable from "@trigate/signing/Signable"
import * as SignerRecovery from "@trigate/signing/SignerRecovery"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as ActionAdvice from "./ActionAdvice.ts"

/** The ends of the nonce window, both excluded, and the instant that it was taken at; milliseconds. */
export interface NonceWindow {
  readonly now: number
  readonly earliest: number
  readonly latest: number
}

/** A body with the right shape; `action` is absent for a type beyond the four. */
export interface ReadBody {
  readonly signed: SignedEnvelope
  readonly action: Action | undefined
}

const formOf = ({ action, signed }: ReadBody): Inspection["form"] => {
  if (action === undefined) return "opaque"
  return ActionAdvice.documentedForms(signed).length === 0 ? "wire" : "documented"
}

// a wallet reads typed data as JSON, where an integer above 2^53 has to be text
const shown = (data: Signable.TypedData) => ({
  ...data,
  message: Object.fromEntries(
    Object.entries(data.message).map(([name, value]) => [name, Predicate.isBigInt(value) ? value.toString() : value])
  )
})

const signing = (profile: VenueProfile, signed: SignedEnvelope) =>
  Effect.gen(function*() {
    const found = yield* Effect.fromResult(SignerRecovery.signable(profile, signed))
    const recovered = yield* SignerRecovery.recover(profile, signed)
    return {
      scheme: recovered.scheme,
      outer: { signer: recovered.signer, digest: recovered.digest },
      ...(recovered.scheme === "multiSig" ? { inner: recovered.inner } : {}),
      typedData: shown(Signable.typedData(found.outer))
    }
  }).pipe(
    Effect.catch((error) => Effect.succeed({ unsigned: error.message }))
  )

/** What the gateway sees in a body under a profile and a nonce window. */
export const make = Effect.fnUntraced(function*(
  profile: VenueProfile,
  { earliest, latest, now }: NonceWindow,
  body: ReadBody
): Effect.fn.Return<Inspection> {
  const { signed } = body
  return {
    actionType: signed.action.type,
    form: formOf(body),
    network: profile.name,
    ...(yield* signing(profile, signed)),
    nonce: {
      value: signed.nonce,
      now,
      earliest: Math.max(0, earliest),
      latest,
      inWindow: signed.nonce > earliest && signed.nonce < latest
    },
    warnings: ActionAdvice.warnings(profile, signed, now)
  }
})
