/** Who signed a body, and whether that signer may have it relayed here. */
import { InvalidSignature, SignerNotAllowed } from "@trigate/domain/ActionError"
import { isActionType } from "@trigate/domain/ExchangeOperations"
import type { Address, Hash } from "@trigate/domain/Hex"
import * as JsonText from "@trigate/domain/JsonText"
import type { SignedEnvelope } from "@trigate/domain/SignedAction"
import type { Unhashable } from "@trigate/signing/ActionHash"
import * as CanonicalAction from "@trigate/signing/CanonicalAction"
import * as MultiSig from "@trigate/signing/MultiSig"
import * as MultiSigAction from "@trigate/signing/MultiSigAction"
import * as Recovery from "@trigate/signing/Recovery"
import * as Signable from "@trigate/signing/Signable"
import * as SignerRecovery from "@trigate/signing/SignerRecovery"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"

/** Why a signer is turned away. */
export type SignerFailure = InvalidSignature | SignerNotAllowed

type Fault = Unhashable | Recovery.UnrecoverableSignature

const untold = ({ message }: Fault): InvalidSignature =>
  new InvalidSignature({ reason: message, detail: `The signer cannot be told: ${message}` })

const invalid = (reason: string, recovered: Address, expected?: Address): InvalidSignature =>
  new InvalidSignature({
    reason,
    recovered,
    ...(expected === undefined ? {} : { expected }),
    detail: `The signature is ${recovered}'s: ${reason}`
  })

const isDocumentedForm = (fault: Fault): boolean =>
  fault._tag === "UnsignableAction" && fault.reason === "documentedForm"

const isUnknownType = (fault: Fault): boolean => fault._tag === "UnsignableAction" && fault.reason === "unknownType"

/** The leader of a wrapper whose inner action has a type that is not known here, so that its signers cannot be told. */
const recoverLeader = (profile: VenueProfile, signed: SignedEnvelope) =>
  Effect.gen(function*() {
    const canonical = yield* Effect.fromResult(CanonicalAction.canonicalize(profile, signed.action))
    if (canonical.kind !== "multiSig") return { inner: [], ...(yield* SignerRecovery.recover(profile, signed)) }
    const outer = yield* Effect.fromResult(MultiSig.outerSignable(profile, canonical.action, signed))
    const digest = Signable.digest(outer)
    return { inner: [], digest, signer: yield* Recovery.recover(digest, signed.signature) }
  })

interface Recovered {
  readonly signer: Address
  readonly digest: Hash
  readonly inner: ReadonlyArray<{ readonly signer: Address }>
}

const recover = (profile: VenueProfile, signed: SignedEnvelope): Effect.Effect<Recovered, Fault> =>
  SignerRecovery.recover(profile, signed).pipe(
    Effect.map((recovered) => ({ inner: [], ...recovered })),
    Effect.catchIf(
      (fault) => signed.action.type === "multiSig" && isUnknownType(fault),
      () => recoverLeader(profile, signed)
    )
  )

/** A wrapper is signed by the leader that it names, and by each co-signer once. */
const checkWrapper = (
  { action }: SignedEnvelope,
  { inner, signer }: Recovered
): Effect.Effect<void, InvalidSignature> => {
  const wrapper = action.type === "multiSig" ? Result.getSuccess(MultiSigAction.read(action)) : Option.none()
  if (Option.isNone(wrapper)) return Effect.void
  const { outerSigner } = wrapper.value.payload
  if (signer !== outerSigner) {
    return Effect.fail(invalid("the outer signature of a multiSig has to be its outerSigner's", signer, outerSigner))
  }
  const seen = new Set<Address>()
  for (const [index, cosigner] of inner.entries()) {
    if (seen.has(cosigner.signer)) {
      return Effect.fail(invalid(`a co-signer counts once, and signature ${index} is its second`, cosigner.signer))
    }
    seen.add(cosigner.signer)
  }
  return Effect.void
}

/** A signer that may pass, and the identity of what was signed. */
export interface Passed {
  /** In lower case; absent where no signer can be recovered. */
  readonly signer: Address | undefined
  /** See `SignerRecovery.fingerprint`. */
  readonly fingerprint: Hash
}

/** The members that a signature could cover, as text without anything beside them. */
const canonicalText = ({ action, expiresAfter = null, nonce, vaultAddress = null }: SignedEnvelope): string =>
  JsonText.stringify({ action, nonce, vaultAddress: vaultAddress?.toLowerCase() ?? null, expiresAfter })

/**
 * The check of a profile and, where there is one, of an allow-list: gives the signer, in lower case.
 *
 * There is none for forms that only the documents show and for further types whose signed fields are not known here; a
 * gateway with an allow-list, or a caller that names the signer it expects, refuses those with `InvalidSignature`, as any
 * body from which no signer can be recovered. Of a multi-sig action the signer is the one who sends it.
 */
export const make = (profile: VenueProfile, allowed: ReadonlyArray<string> | undefined) => {
  const signers = allowed === undefined ? undefined : new Set(allowed.map((address) => address.toLowerCase()))
  return Effect.fnUntraced(function*(
    signed: SignedEnvelope,
    expected: Address | undefined
  ): Effect.fn.Return<Passed, SignerFailure> {
    const found = yield* Effect.result(recover(profile, signed))
    if (Result.isFailure(found)) {
      const isTolerable = isDocumentedForm(found.failure) ||
        (isUnknownType(found.failure) && !isActionType(signed.action.type))
      if (isTolerable && signers === undefined && expected === undefined) {
        return {
          signer: undefined,
          fingerprint: SignerRecovery.fingerprint(canonicalText(signed), signed.signature)
        }
      }
      return yield* untold(found.failure)
    }
    const { digest, signer } = found.success
    yield* checkWrapper(signed, found.success)
    if (expected !== undefined && expected.toLowerCase() !== signer) {
      return yield* invalid("another signer was expected", signer, expected)
    }
    if (signers !== undefined && !signers.has(signer)) {
      return yield* new SignerNotAllowed({ signer, detail: `${signer} is not on the list of signers of this gateway` })
    }
    return { signer, fingerprint: SignerRecovery.fingerprint(digest, signed.signature) }
  })
}
