/**
 * Why a signature is not the expected signer's: likely mistakes are tried one by one, and in pairs, until one explains it.
 *
 * The venue never says that a signature is wrong. It recovers an address that nobody holds and answers that this "User or
 * API Wallet does not exist".
 */
import type { Address, Hash } from "@trigate/domain/Hex"
import type { SignatureDiagnosis, SignatureMistake } from "@trigate/domain/Inspection"
import type { CanonicalAction } from "@trigate/signing/CanonicalAction"
import type { Wrapper } from "@trigate/signing/MultiSig"
import type { Signature } from "@trigate/signing/Secp256k1"
import type { Engine } from "@trigate/signing/Secp256k1"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as SignedReading from "@trigate/signing/SignedReading"
import type { RecoveredSigner } from "@trigate/signing/SignerRecovery"
import * as SigningCaution from "@trigate/signing/SigningCaution"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { ReadBody } from "./ActionShape.ts"

/** What each mistake means, in words that follow the name of the signer. */
const meaning: { readonly [Mistake in Exclude<SignatureMistake, "otherNetwork">]: string } = {
  vaultNotSigned: "but the body's vaultAddress was left out of what was signed",
  vaultNotSent: "but a vaultAddress was signed that the body does not have",
  expiresAfterNotSigned: "but the body's expiresAfter was left out of what was signed",
  expiresAfterNotSent: "but an expiresAfter was signed that the body does not have",
  otherNonce: "but another nonce was signed than the body's",
  otherChainId: "but it is signed under another chain id than the action's signatureChainId",
  mixedCaseAddress: "but an address was hashed as text in another letter case: sign and send lower case",
  untrimmedSignature: "but inner signatures were hashed with leading zeros: hash them without",
  chainIdText: "but signatureChainId was hashed in another spelling: sign and send it without leading zeros",
  fieldOrder: "but the fields were hashed in another order than the venue's",
  nullDropped: "but members that are null were left out of what was signed",
  typeHashed: "but the wrapper was hashed with its type: hash it without",
  notWrapped: "but the co-signer signed the bare action, without the multi-sig account and the leader",
  documentedChainField: "but the chain field was signed under the documents' name venueChain",
  documentedPreimage: "but the hash was built as a published sample shows it: vault before nonce, without markers",
  personalSign: "but the digest was signed as a plain message instead of as typed data",
  otherRecoveryBit: "but its v names the other of two keys: exchange 27 and 28"
}

const meaningOf = (profile: VenueProfile, mistake: SignatureMistake): string =>
  mistake === "otherNetwork" ? `but it is ${SigningCaution.ofNetwork(profile)}` : meaning[mistake]

const lowerCase = (address: Address): Address => `0x${address.slice(2).toLowerCase()}`

/** A signature to explain; `digest` is what it should cover, where that can be derived. */
interface Suspect {
  readonly signature: Signature
  readonly digest: Hash | undefined
  readonly innerIndex?: number
}

const named = (innerIndex: number | undefined): string =>
  innerIndex === undefined ? "The signature" : `Inner signature ${innerIndex}`

const told = (
  profile: VenueProfile,
  expectedSigner: Address,
  { innerIndex }: Pick<Suspect, "innerIndex">,
  digest: Hash,
  mistakes: ReadonlyArray<SignatureMistake>
): SignatureDiagnosis => ({
  expectedSigner,
  verdict: mistakes.length === 0 ? "fits" : "explained",
  mistakes,
  ...(innerIndex === undefined ? {} : { innerIndex }),
  digest,
  detail: [`${named(innerIndex)} is by ${expectedSigner}`, ...mistakes.map((mistake) => meaningOf(profile, mistake))]
    .join(", ")
})

/** The signature with the other recovery bit. */
const otherBit = (signature: Signature): Signature => ({ ...signature, v: Number(signature.v) % 2 === 0 ? 27 : 28 })

type Recovers = (digest: string, signature: Signature) => boolean

/** A recovery takes up to a millisecond, and a wrapper has up to ten signatures to recover. */
const maxRecoveries = 512

type Readings = (part: SignedReading.Part) => Iterable<SignedReading.SignedReading | undefined>

/** Examines all signatures of one part together, so that each reading is hashed once. Others run between two readings. */
const explain = Effect.fnUntraced(function*(
  profile: VenueProfile,
  recovers: Recovers,
  readings: Readings,
  expected: Address,
  part: SignedReading.Part,
  suspects: ReadonlyArray<Suspect>
): Effect.fn.Return<SignatureDiagnosis | undefined> {
  for (const suspect of suspects) {
    if (suspect.digest !== undefined && recovers(suspect.digest, otherBit(suspect.signature))) {
      return told(profile, expected, suspect, suspect.digest, ["otherRecoveryBit"])
    }
  }
  yield* Effect.yieldNow
  let left = Math.floor(maxRecoveries / Math.max(1, suspects.length))
  for (const reading of readings(part)) {
    yield* Effect.yieldNow
    if (reading === undefined) continue
    if (left-- <= 0) return undefined
    const { digest, mistakes } = reading
    const found = suspects.find(({ signature }) => recovers(digest, signature))
    if (found !== undefined) return told(profile, expected, found, digest, mistakes)
  }
  return undefined
})

const wrapperOf = ({ action }: ReadBody): Wrapper | undefined => action?.type === "multiSig" ? action : undefined

type Group = readonly [part: SignedReading.Part, suspects: ReadonlyArray<Suspect>]

const groupsOf = (
  { signed }: ReadBody,
  wrapper: Wrapper | undefined,
  recovered: RecoveredSigner | undefined,
  expected: Address
): ReadonlyArray<Group> => {
  const outer: Group = ["outer", [{ signature: signed.signature, digest: recovered?.digest }]]
  if (wrapper === undefined || lowerCase(wrapper.payload.outerSigner) === expected) return [outer]
  const digests = recovered?.scheme === "multiSig" ? recovered.inner : []
  const inner = wrapper.signatures.map((signature, innerIndex): Suspect => ({
    signature,
    digest: digests[innerIndex]?.digest,
    innerIndex
  }))
  // a signer other than the leader is most likely a co-signer
  return [["inner", inner], outer]
}

const fitting = (
  profile: VenueProfile,
  recovered: RecoveredSigner | undefined,
  expected: Address
): SignatureDiagnosis | undefined => {
  if (recovered === undefined) return undefined
  if (recovered.signer === expected) return told(profile, expected, {}, recovered.digest, [])
  const inner = recovered.scheme === "multiSig" ? recovered.inner : []
  const innerIndex = inner.findIndex(({ signer }) => signer === expected)
  const found = inner[innerIndex]
  return found === undefined ? undefined : told(profile, expected, { innerIndex }, found.digest, [])
}

const unexplained = (expectedSigner: Address, recovered: RecoveredSigner | undefined): SignatureDiagnosis => ({
  expectedSigner,
  verdict: "unexplained",
  mistakes: [],
  detail: recovered === undefined
    ? `The signature cannot be shown to be by ${expectedSigner}`
    : `The signature is by ${recovered.signer}, not by ${expectedSigner}, and no likely mistake explains it`
})

/**
 * Compares who signed with who should have: the `expected` signer, or else the leader that a multi-sig body names.
 *
 * `canonical` is absent for an action without a canonical form, `recovered` where no signer can be recovered. The result is
 * `undefined` when no signer is expected.
 */
export const diagnose = Effect.fnUntraced(function*(
  profile: VenueProfile,
  engine: Engine,
  body: ReadBody,
  canonical: CanonicalAction | undefined,
  recovered: RecoveredSigner | undefined,
  expected: Address | undefined
): Effect.fn.Return<SignatureDiagnosis | undefined> {
  const wrapper = wrapperOf(body)
  const named = expected ?? wrapper?.payload.outerSigner
  if (named === undefined) return undefined
  const given = lowerCase(named)
  const fit = fitting(profile, recovered, given)
  if (fit !== undefined) return fit
  if (canonical === undefined) return unexplained(given, recovered)
  const recovers: Recovers = (digest, signature) =>
    Result.getOrUndefined(Secp256k1.recoverResult(digest, signature, engine)) === given
  const readings: Readings = (part) =>
    SignedReading.readings(profile, canonical, { ...body.signed, action: body.sentAction }, part, given)
  for (const [part, suspects] of groupsOf(body, wrapper, recovered, given)) {
    const found = yield* explain(profile, recovers, readings, given, part, suspects)
    if (found !== undefined) return found
  }
  return unexplained(given, recovered)
})
