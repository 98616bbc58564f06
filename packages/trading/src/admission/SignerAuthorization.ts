/** Recovers the signer of a body, and checks whether this gateway allows the signer. */
import { InvalidSignature, SignerNotAllowed } from "@trigate/domain/actions/ActionError"
import type { SignedEnvelope } from "@trigate/domain/actions/SignedAction"
import type { Address, Hash } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import type { Unhashable } from "@trigate/signing/actions/ActionHash"
import type { CanonicalAction } from "@trigate/signing/actions/CanonicalAction"
import * as Signable from "@trigate/signing/actions/Signable"
import * as SigningWarning from "@trigate/signing/inspection/SigningWarning"
import * as MultiSig from "@trigate/signing/multisig/MultiSig"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as SignerRecovery from "@trigate/signing/SignerRecovery"
import { otherThan } from "@trigate/signing/VenueProfile"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Result from "effect/Result"
import * as ActionDecoder from "./ActionDecoder.ts"
import type { ReadBody } from "./ActionDecoder.ts"

/** The errors with which a signer is refused. */
export type SignerFailure = InvalidSignature | SignerNotAllowed

type RecoveryFault = Unhashable | Secp256k1.UnrecoverableSignature

const unrecoverable = ({ message }: RecoveryFault): InvalidSignature =>
  new InvalidSignature({ reason: message, detail: `Cannot recover the signer: ${message}` })

const invalid = (reason: string, recovered: Address, expected?: Address): InvalidSignature =>
  new InvalidSignature({
    reason,
    recovered,
    ...(expected === undefined ? {} : { expected }),
    detail: `The signature is by ${recovered}: ${reason}`
  })

const isOtherNetwork = (fault: RecoveryFault): boolean =>
  fault._tag === "UnsignableAction" && fault.reason === "otherNetwork"

const isDocumentedForm = (fault: RecoveryFault): boolean =>
  fault._tag === "UnsignableAction" && fault.reason === "documentedForm"

const isUnknownType = (fault: RecoveryFault): boolean =>
  fault._tag === "UnsignableAction" && fault.reason === "unknownType"

interface Recovered {
  readonly canonical: CanonicalAction
  readonly signer: Address
  readonly digest: Hash
  readonly inner: ReadonlyArray<{ readonly signer: Address }>
}

const recoverForm = (
  profile: VenueProfile,
  engine: Secp256k1.Engine,
  { signed }: ReadBody,
  canonical: CanonicalAction
): Result.Result<Recovered, RecoveryFault> => {
  const found = SignerRecovery.toSignable(profile, canonical, signed)
  if (Result.isFailure(found) && canonical.kind === "multiSig" && isUnknownType(found.failure)) {
    // If the type of the inner action is unknown, the leader can be recovered, but the co-signers cannot.
    return Result.flatMap(MultiSig.outerSignable(profile, canonical.action, signed), (outer) => {
      const digest = Signable.digest(outer)
      return Result.map(
        Secp256k1.recoverResult(digest, signed.signature, engine),
        (signer) => ({ canonical, inner: [], digest, signer })
      )
    })
  }
  return Result.map(
    Result.flatMap(found, (signable) => SignerRecovery.recoverResult(signable, signed.signature, engine)),
    (recovered) => ({ canonical, inner: [], ...recovered })
  )
}

/** Returns whether an address can have signed a body: the leader of a multi-sig action, or the expected signer. */
export const isExpected = (
  { action }: ReadBody,
  expected: Address | undefined
): ((signer: Address) => boolean) | undefined => {
  const whose = (action?.type === "multiSig" ? action.payload.outerSigner : expected)?.toLowerCase()
  return whose === undefined ? undefined : (signer) => signer === whose
}

/**
 * Recovers the signer of a body. If the action has an unknown type or unknown members, and its most likely form is not by
 * a wanted signer, tries its other forms.
 */
export const recover = (
  profile: VenueProfile,
  engine: Secp256k1.Engine,
  body: ReadBody,
  isWanted?: (signer: Address) => boolean
): Result.Result<Recovered, RecoveryFault> =>
  Result.flatMap(ActionDecoder.canonicalAction(profile, body), (canonical) => {
    const first = recoverForm(profile, engine, body, canonical)
    if (isWanted === undefined || Result.isFailure(first) || isWanted(first.success.signer)) return first
    for (const form of ActionDecoder.otherForms(profile, canonical, body)) {
      const other = recoverForm(profile, engine, body, form)
      if (Result.isSuccess(other) && isWanted(other.success.signer)) return other
    }
    return first
  })

/** Refuses a multi-sig action with two signatures of one co-signer. */
const repeatedCosigner = ({ inner }: Recovered): InvalidSignature | undefined => {
  const seen = new Set<Address>()
  for (const [index, cosigner] of inner.entries()) {
    if (seen.has(cosigner.signer)) {
      return invalid(
        `each co-signer may sign only once, but signature ${index} is the second of this co-signer`,
        cosigner.signer
      )
    }
    seen.add(cosigner.signer)
  }
  return undefined
}

/** The signer and the fingerprint of an authorized body. */
export interface Passed {
  /** The recovered signer, in lower case; absent if no signer can be recovered. */
  readonly signer: Address | undefined
  /** Digest of the signed content, in lower case. */
  readonly fingerprint: Hash
}

/** Serializes the members of a body that a signature can cover, and omits all others. */
const canonicalText = ({ action, expiresAfter = null, nonce, vaultAddress = null }: SignedEnvelope): string =>
  Json.stringify({ action, nonce, vaultAddress: vaultAddress?.toLowerCase() ?? null, expiresAfter })

/**
 * Makes the function that recovers and checks the signer of a body, for a network and an optional allow-list of
 * signers. The signer of a multi-sig action is its leader.
 *
 * Recovery is not possible for forms that the venue documents but does not accept, nor for action types that the
 * gateway relays without knowing their signed fields. Such a body passes without a signer. It is refused with
 * `InvalidSignature` if the gateway or the caller has an allow-list, or if the request names an expected signer.
 */
export const make = (
  profile: VenueProfile,
  engine: Secp256k1.Engine,
  allowed: ReadonlyArray<string> | undefined
) => {
  const signers = allowed === undefined ? undefined : new Set(allowed.map((address) => address.toLowerCase()))
  const hint = SigningWarning.ofNetwork(profile)

  /**
   * Returns the signer if the signature is for the other network: testnet instead of mainnet, or mainnet instead of
   * testnet.
   */
  const signerOnOtherNetwork = (body: ReadBody): Address | undefined =>
    Result.getOrUndefined(recover(otherThan(profile), engine, body))?.signer

  const unhashable = (body: ReadBody, fault: RecoveryFault): InvalidSignature => {
    const signer = isOtherNetwork(fault) ? signerOnOtherNetwork(body) : undefined
    return signer === undefined ? unrecoverable(fault) : new InvalidSignature({
      reason: hint,
      recovered: signer,
      detail: `The signature is by ${signer}: ${hint} (${fault.message})`
    })
  }

  /**
   * Refuses a signer that is not allowed. If the signature was made for the other network (testnet or mainnet) by an
   * allowed signer, reports that mistake instead.
   */
  const refuseSigner = (
    body: ReadBody,
    signer: Address,
    isWanted: (signer: string) => boolean,
    refusal: () => SignerFailure
  ): SignerFailure => {
    const other = signerOnOtherNetwork(body)
    return other !== undefined && isWanted(other) ? invalid(hint, signer, other) : refusal()
  }

  /** Returns whether a signer is on the lists of the gateway and of the caller; `undefined` without lists. */
  const listed = (ofCaller: ReadonlyArray<Address> | undefined): ((signer: Address) => boolean) | undefined =>
    signers === undefined && ofCaller === undefined
      ? undefined
      : (signer) =>
        signers?.has(signer) !== false &&
        ofCaller?.some((address) => address.toLowerCase() === signer) !== false

  /** Returns the first reason to refuse the signer. */
  const findRefusal = (
    body: ReadBody,
    recovered: Recovered,
    expected: Address | undefined,
    ofCaller: ReadonlyArray<Address> | undefined
  ): SignerFailure | undefined => {
    const { canonical, signer } = recovered
    const leader = canonical.kind === "multiSig" ? canonical.action.payload.outerSigner : undefined
    if (leader !== undefined && signer !== leader) {
      const reason = "the outer signature of a multiSig must be by its outerSigner"
      return refuseSigner(body, signer, (other) => other === leader, () => invalid(reason, signer, leader))
    }
    const repeated = repeatedCosigner(recovered)
    if (repeated !== undefined) return repeated
    const named = expected?.toLowerCase()
    if (expected !== undefined && named !== signer) {
      const refusal = () => invalid("another signer was expected", signer, expected)
      return refuseSigner(body, signer, (other) => other === named, refusal)
    }
    if (signers !== undefined && !signers.has(signer)) {
      const detail = `${signer} is not on the list of signers of this gateway`
      return refuseSigner(body, signer, (other) => signers.has(other), () => new SignerNotAllowed({ signer, detail }))
    }
    return ofCaller === undefined || ofCaller.some((address) => address.toLowerCase() === signer)
      ? undefined
      : new SignerNotAllowed({ signer, detail: `${signer} is not among the signers of this caller` })
  }

  return (
    body: ReadBody,
    expected: Address | undefined,
    ofCaller: ReadonlyArray<Address> | undefined
  ): Result.Result<Passed, SignerFailure> => {
    const { action, signed } = body
    const found = recover(profile, engine, body, isExpected(body, expected) ?? listed(ofCaller))
    if (Result.isFailure(found)) {
      const isTolerable = isDocumentedForm(found.failure) || (isUnknownType(found.failure) && action === undefined)
      return !isTolerable || signers !== undefined || ofCaller !== undefined || expected !== undefined
        ? Result.fail(unhashable(body, found.failure))
        : Result.succeed({
          signer: undefined,
          fingerprint: SignerRecovery.fingerprint(canonicalText(signed), signed.signature)
        })
    }
    const { digest, signer } = found.success
    const refusal = findRefusal(body, found.success, expected, ofCaller)
    return refusal === undefined
      ? Result.succeed({ signer, fingerprint: SignerRecovery.fingerprint(digest, signed.signature) })
      : Result.fail(refusal)
  }
}
