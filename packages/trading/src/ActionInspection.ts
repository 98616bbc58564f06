/** Reads a signed body the way the gateway does and says what it sees; nothing is sent. */
import type { Action } from "@trigate/domain/Action"
import type { Address } from "@trigate/domain/Hex"
import type { Inspection } from "@trigate/domain/Inspection"
import type { SignedEnvelope } from "@trigate/domain/SignedAction"
import * as ActionHash from "@trigate/signing/ActionHash"
import * as CanonicalAction from "@trigate/signing/CanonicalAction"
import * as MsgPack from "@trigate/signing/MsgPack"
import * as MultiSig from "@trigate/signing/MultiSig"
import * as Signable from "@trigate/signing/Signable"
import type { RecoveredSigner, SignedRequest } from "@trigate/signing/SignerRecovery"
import * as SignerRecovery from "@trigate/signing/SignerRecovery"
import * as SigningScheme from "@trigate/signing/SigningScheme"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ActionAdvice from "./ActionAdvice.ts"
import * as SignatureDiagnosis from "./SignatureDiagnosis.ts"

/** The ends of the nonce window, both excluded, and the instant that it was taken at; milliseconds. */
export interface NonceWindow {
  readonly now: number
  readonly earliest: number
  readonly latest: number
}

/** A body with the right shape; `action` is absent for a type beyond the four. */
export interface ReadBody {
  readonly signed: SignedEnvelope
  /** The action as it was parsed, with its order of keys. */
  readonly sentAction: unknown
  readonly action: Action | undefined
}

const formOf = ({ action, signed }: ReadBody): Inspection["form"] => {
  if (action === undefined) return "opaque"
  return ActionAdvice.documentedForms(signed).length === 0 ? "wire" : "documented"
}

/** A parsed value as every JSON reader takes it: integers above 2^53 as decimal text. */
const legible = (value: unknown): unknown => {
  if (Predicate.isBigInt(value)) return value.toString()
  if (Array.isArray(value)) return value.map(legible)
  return Predicate.isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([key, member]) => [key, legible(member)]))
    : value
}

const hashes = (canonical: CanonicalAction.CanonicalAction, signed: SignedRequest) =>
  Result.gen(function*() {
    if (canonical.kind === "multiSig") {
      const { action } = canonical
      const scheme = yield* SigningScheme.of(action.payload.action)
      return {
        msgpack: yield* MsgPack.encodeHex(MultiSig.hashedWrapper(action)),
        multiSigHash: yield* MultiSig.actionHash(action, signed),
        ...(scheme.scheme === "l1" ? { connectionId: yield* ActionHash.hash(MultiSig.innerValue(action), signed) } : {})
      }
    }
    const scheme = yield* SigningScheme.of(canonical.action)
    return scheme.scheme === "l1"
      ? {
        msgpack: yield* MsgPack.encodeHex(canonical.action),
        connectionId: yield* ActionHash.hash(canonical.action, signed)
      }
      : {}
  })

const signing = (profile: VenueProfile, signed: SignedRequest) =>
  Effect.gen(function*() {
    const found = yield* Effect.fromResult(SignerRecovery.signable(profile, signed))
    return { recovered: yield* SignerRecovery.recover(profile, signed), typedData: Signable.walletData(found.outer) }
  })

const signers = (recovered: RecoveredSigner) => ({
  scheme: recovered.scheme,
  outer: { signer: recovered.signer, digest: recovered.digest },
  ...(recovered.scheme === "multiSig" ? { inner: recovered.inner } : {})
})

/** What the gateway sees in a body under a profile and a nonce window; `expected` is who should have signed it. */
export const make = Effect.fnUntraced(function*(
  profile: VenueProfile,
  { earliest, latest, now }: NonceWindow,
  body: ReadBody,
  expected?: Address
): Effect.fn.Return<Inspection> {
  const { sentAction, signed } = body
  const canonical = Result.getOrUndefined(CanonicalAction.canonicalize(profile, signed.action))
  const seen = yield* Effect.result(signing(profile, signed))
  const recovered = Result.isSuccess(seen) ? seen.success.recovered : undefined
  const diagnosis = yield* SignatureDiagnosis.diagnose(profile, { ...signed, action: sentAction }, recovered, expected)
  return {
    actionType: signed.action.type,
    form: formOf(body),
    network: profile.name,
    ...(canonical === undefined ? {} : {
      canonicalAction: legible(canonical.action),
      ...Result.getOrElse(hashes(canonical, signed), () => ({}))
    }),
    ...(Result.isSuccess(seen)
      ? { ...signers(seen.success.recovered), typedData: seen.success.typedData }
      : { unsigned: seen.failure.message }),
    nonce: {
      value: signed.nonce,
      now,
      earliest: Math.max(0, earliest),
      latest,
      inWindow: signed.nonce > earliest && signed.nonce < latest
    },
    ...(diagnosis === undefined ? {} : { diagnosis }),
    warnings: [
      ...ActionAdvice.warnings(profile, signed, now),
      ...ActionAdvice.signingWarnings(sentAction, canonical?.action)
    ]
  }
})
