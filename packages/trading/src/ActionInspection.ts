/** Describes a signed body as the gateway reads it; nothing is sent. */
import type { Address } from "@trigate/domain/Hex"
import type { Inspection } from "@trigate/domain/Inspection"
import type { SignedEnvelope } from "@trigate/domain/SignedAction"
import * as ActionHash from "@trigate/signing/ActionHash"
import type * as CanonicalAction from "@trigate/signing/CanonicalAction"
import * as MsgPack from "@trigate/signing/MsgPack"
import * as MultiSig from "@trigate/signing/MultiSig"
import type { Engine } from "@trigate/signing/Secp256k1"
import * as Signable from "@trigate/signing/Signable"
import type { RecoveredSigner } from "@trigate/signing/SignerRecovery"
import * as SignerRecovery from "@trigate/signing/SignerRecovery"
import * as SigningCaution from "@trigate/signing/SigningCaution"
import * as UserSigned from "@trigate/signing/UserSigned"
import { otherThan } from "@trigate/signing/VenueProfile"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { ReadBody } from "./ActionShape.ts"
import * as ActionShape from "./ActionShape.ts"
import * as SignatureDiagnosis from "./SignatureDiagnosis.ts"

/** The ends of the nonce window, both excluded, and the instant that it was taken at; milliseconds. */
export interface NonceWindow {
  readonly now: number
  readonly earliest: number
  readonly latest: number
}

const formOf = (body: ReadBody): Inspection["form"] => {
  if (body.action === undefined) return "opaque"
  return ActionShape.documentedForms(body).length === 0 ? "wire" : "documented"
}

/** A parsed value as every JSON reader takes it: integers above 2^53 as decimal text. */
const legible = (value: unknown): unknown => {
  if (Predicate.isBigInt(value)) return value.toString()
  if (Array.isArray(value)) return value.map(legible)
  return Predicate.isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([key, member]) => [key, legible(member)]))
    : value
}

/** The bytes and hashes behind the digests; empty when the action cannot be hashed. */
const hashes = (canonical: CanonicalAction.CanonicalAction, signed: SignedEnvelope) =>
  Result.getOrElse(
    Result.gen(function*() {
      const { action, kind } = canonical
      const scheme = yield* UserSigned.schemeOf(kind === "multiSig" ? action.payload.action : action)
      const isL1 = scheme.scheme === "l1"
      if (kind === "multiSig") {
        return {
          msgpack: yield* MsgPack.encodeHex(MultiSig.hashedWrapper(action)),
          multiSigHash: yield* MultiSig.actionHash(action, signed),
          ...(isL1 ? { connectionId: yield* ActionHash.hash(MultiSig.innerValue(action), signed) } : {})
        }
      }
      return isL1
        ? { msgpack: yield* MsgPack.encodeHex(action), connectionId: yield* ActionHash.hash(action, signed) }
        : {}
    }),
    () => ({})
  )

// more lines would not explain a body of a thousand addresses better
const MAX_SIGNING_WARNINGS = 16

/** What makes correct signatures look wrong at the venue: an action as it was sent, against its canonical form. */
const signingWarnings = (sent: unknown, canonical: unknown): ReadonlyArray<string> =>
  [...SigningCaution.ofValues(sent), ...SigningCaution.ofOrder(sent, canonical)]
    .slice(0, MAX_SIGNING_WARNINGS)
    .map(({ message }) => message)

/** Who signed if the signature is for the other network, which nothing in an L1 action tells. */
const elsewhere = (profile: VenueProfile, engine: Engine, body: ReadBody): Inspection["otherNetwork"] => {
  const other = otherThan(profile)
  const { signed } = body
  const recovered = ActionShape.canonicalOf(other, body).pipe(
    Result.flatMap((action) => SignerRecovery.signableOf(other, action, signed)),
    Result.flatMap((found) => SignerRecovery.recoverResult(found, signed.signature, engine))
  )
  return Result.isFailure(recovered) ? undefined : {
    network: other.name,
    signer: recovered.success.signer,
    digest: recovered.success.digest
  }
}

const signers = (recovered: RecoveredSigner) => ({
  scheme: recovered.scheme,
  outer: { signer: recovered.signer, digest: recovered.digest },
  ...(recovered.scheme === "multiSig" ? { inner: recovered.inner } : {})
})

/**
 * The description of a body under a profile and a nonce window; `expected` is the signer it should have.
 *
 * Each step may take some milliseconds of a large body, and lets others run before the next.
 */
export const make = Effect.fnUntraced(function*(
  profile: VenueProfile,
  engine: Engine,
  { earliest, latest, now }: NonceWindow,
  body: ReadBody,
  expected?: Address
): Effect.fn.Return<Inspection> {
  const { sentAction, signed } = body
  const canonical = ActionShape.canonicalOf(profile, body)
  const signable = Result.flatMap(canonical, (action) => SignerRecovery.signableOf(profile, action, signed))
  const recovered = Result.flatMap(
    signable,
    (found) => SignerRecovery.recoverResult(found, signed.signature, engine)
  )
  const action = Result.getOrUndefined(canonical)
  const signer = Result.getOrUndefined(recovered)
  yield* Effect.yieldNow
  const diagnosis = yield* SignatureDiagnosis.diagnose(profile, engine, body, action, signer, expected)
  const otherNetwork = diagnosis?.verdict === "fits" ? undefined : elsewhere(profile, engine, body)
  yield* Effect.yieldNow
  const described = action === undefined
    ? {}
    : { canonicalAction: legible(action.action), ...hashes(action, signed) }
  yield* Effect.yieldNow
  return {
    actionType: signed.action.type,
    form: formOf(body),
    network: profile.name,
    ...described,
    ...(Result.isSuccess(recovered) && Result.isSuccess(signable)
      ? { ...signers(recovered.success), typedData: Signable.walletData(signable.success.outer) }
      : {}),
    ...(Result.isFailure(recovered) ? { unsigned: recovered.failure.message } : {}),
    ...(otherNetwork === undefined ? {} : { otherNetwork }),
    nonce: {
      value: signed.nonce,
      now,
      earliest: Math.max(0, earliest),
      latest,
      inWindow: signed.nonce > earliest && signed.nonce < latest
    },
    ...(diagnosis === undefined ? {} : { diagnosis }),
    warnings: [
      ...ActionShape.warnings(profile, body, now),
      ...signingWarnings(sentAction, action?.action)
    ]
  }
})
