/**
 * Why a signature is not the expected signer's: likely mistakes are tried one by one, and in pairs, until one explains it.
 *
 * The venue never says that a signature is wrong. It recovers an address that nobody holds and answers that this "User or
 * API Wallet does not exist".
 */
import type { Address, Hash } from "@trigate/domain/encoding/Hex"
import type { Mistake, SignatureDiagnosis } from "@trigate/domain/Inspection"
import type { CanonicalAction } from "@trigate/signing/actions/CanonicalAction"
import * as SignedReading from "@trigate/signing/inspection/SignedReading"
import * as SignedView from "@trigate/signing/inspection/SignedView"
import * as SigningMistake from "@trigate/signing/inspection/SigningMistake"
import type { Wrapper } from "@trigate/signing/multisig/MultiSig"
import type { Engine, Signature } from "@trigate/signing/Secp256k1"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import type { RecoveredSigner } from "@trigate/signing/SignerRecovery"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { ReadBody } from "./admission/ActionShape.ts"
import type { BodyForm } from "./admission/BodyForm.ts"

const lowerCase = (address: Address): Address => `0x${address.slice(2).toLowerCase()}`

/** What is examined. */
export interface Case {
  readonly body: ReadBody
  /** The action as it is hashed here; absent without a canonical form. */
  readonly canonical: CanonicalAction | undefined
  readonly form: BodyForm
  /** Who signed; absent where no signer can be recovered. */
  readonly recovered: RecoveredSigner | undefined
  readonly expected: Address | undefined
  /** Addresses whose signature is recognized: those on a gateway's list. */
  readonly signers: ReadonlyArray<string>
}

const named = (innerIndex: number | undefined): string =>
  innerIndex === undefined ? "The signature" : `Inner signature ${innerIndex}`

const listed = (profile: VenueProfile, mistakes: ReadonlyArray<Mistake>): string =>
  mistakes.map((mistake) => SigningMistake.clauseOf(profile, mistake)).join(", and ")

interface Place {
  readonly innerIndex?: number
}

/** A mistake is told once, however it was found. */
const distinct = (mistakes: ReadonlyArray<Mistake>): ReadonlyArray<Mistake> => {
  const seen = new Set<string>()
  return mistakes.filter(({ mistake, path }) => {
    const key = `${mistake} ${path.join(".")}`
    return !seen.has(key) && seen.add(key).size > 0
  })
}

const told = (
  verdict: "fits" | "explained",
  profile: VenueProfile,
  expectedSigner: Address,
  { innerIndex }: Place,
  digest: Hash,
  found: ReadonlyArray<Mistake>
): SignatureDiagnosis => {
  const mistakes = distinct(found)
  const clauses = listed(profile, mistakes)
  return {
    expectedSigner,
    verdict,
    mistakes,
    ...(innerIndex === undefined ? {} : { innerIndex }),
    digest,
    detail: `${named(innerIndex)} is by ${expectedSigner}${clauses === "" ? "" : `, but ${clauses}`}`
  }
}

/** A signature to explain. */
interface Suspect extends Place {
  readonly signature: Signature
}

type Recovers = (digest: string, signature: Signature) => boolean

const otherBit = (signature: Signature): Signature => ({ ...signature, v: Number(signature.v) % 2 === 0 ? 27 : 28 })

const swapped = ({ r, s, v }: Signature): Signature => ({ r: s, s: r, v })

/** The halves as they were before `r` without its leading zero took the first digit of `s`. */
const unshifted = ({ r, s, v }: Signature): Signature => {
  const digits = `${r.slice(2).padStart(64, "0")}${s.slice(2).padStart(63, "0").slice(-63)}`
  return { r: `0x0${digits.slice(0, 63)}`, s: `0x${digits.slice(63)}`, v }
}

/** What can be wrong with the signature itself, most likely first. */
const repairs: ReadonlyArray<readonly [Mistake["mistake"], (signature: Signature) => Signature]> = [
  ["otherRecoveryBit", otherBit],
  ["swappedHalves", swapped],
  ["swappedHalves", (signature) => otherBit(swapped(signature))],
  ["shiftedHalves", unshifted],
  ["shiftedHalves", (signature) => otherBit(unshifted(signature))]
]

const wrapperOf = ({ action }: ReadBody): Wrapper | undefined => action?.type === "multiSig" ? action : undefined

type Group = readonly [part: SignedView.Part, suspects: ReadonlyArray<Suspect>]

const groupsOf = ({ signed }: ReadBody, wrapper: Wrapper | undefined, expected: Address): ReadonlyArray<Group> => {
  const outer: Group = ["outer", [{ signature: signed.signature }]]
  if (wrapper === undefined || lowerCase(wrapper.payload.outerSigner) === expected) return [outer]
  const inner = wrapper.signatures.map((signature, innerIndex): Suspect => ({ signature, innerIndex }))
  // a signer other than the leader is most likely a co-signer
  return [["inner", inner], outer]
}

/** Who an address is that a body names. */
const namedIn = ({ signed }: ReadBody): ReadonlyMap<string, string> => {
  const { action, vaultAddress } = signed
  const payload: unknown = action["payload"]
  const roles: ReadonlyArray<readonly [unknown, string]> = [
    [action["agentAddress"], "the API wallet that the action approves"],
    [vaultAddress, "the vault or sub-account that is acted for"],
    [action["user"], "the user that the action names"],
    [Predicate.hasProperty(payload, "multiSigUser") ? payload.multiSigUser : undefined, "the multi-sig account"],
    [Predicate.hasProperty(payload, "outerSigner") ? payload.outerSigner : undefined, "the leader of the multi-sig"]
  ]
  return new Map(roles.flatMap(([address, role]) => Predicate.isString(address) ? [[address.toLowerCase(), role]] : []))
}

/** Whose key it is, as far as that can be known without asking anybody. */
const ownerOf = (signer: string, { body, signers }: Case): string | undefined =>
  namedIn(body).get(signer) ??
    (signers.some((known) => known.toLowerCase() === signer) ? "one of the signers of this gateway" : undefined)

/** A recovery takes up to a millisecond, and a wrapper has up to ten signatures to recover. */
const maxRecoveries = 512

interface Base {
  readonly canonical: CanonicalAction
  /** What the body shows already. */
  readonly mistakes: ReadonlyArray<Mistake>
}

/** Examines all signatures of one part together, so that each reading is hashed once. Others run between two readings. */
const explain = Effect.fnUntraced(function*(
  profile: VenueProfile,
  recovers: Recovers,
  known: ReadonlyArray<string>,
  { body }: Case,
  expected: Address,
  base: Base,
  [part, suspects]: Group
): Effect.fn.Return<SignatureDiagnosis | undefined> {
  const request = { ...body.signed, action: body.sentAction }
  const right = Result.getOrUndefined(
    SignedView.digestOf(SignedView.right(profile, base.canonical, request), part, request.action)
  )
  let left = Math.floor(maxRecoveries / Math.max(1, suspects.length))
  if (right !== undefined) {
    for (const suspect of suspects) {
      if (recovers(right, suspect.signature)) return told("explained", profile, expected, suspect, right, base.mistakes)
      for (const [mistake, repair] of repairs) {
        if (recovers(right, repair(suspect.signature))) {
          return told("explained", profile, expected, suspect, right, [...base.mistakes, { mistake, path: [] }])
        }
      }
      yield* Effect.yieldNow
    }
  }
  for (const reading of SignedReading.readings(profile, base.canonical, request, part, known)) {
    yield* Effect.yieldNow
    if (reading === undefined) continue
    if (left-- <= 0) return undefined
    const { digest, mistakes } = reading
    const found = suspects.find(({ signature }) => recovers(digest, signature))
    if (found !== undefined) {
      return told("explained", profile, expected, found, digest, [...base.mistakes, ...mistakes()])
    }
  }
  return undefined
})

/** A right signature over a body whose mistakes the venue mends before it hashes is a stranger's there. */
const fitting = (
  profile: VenueProfile,
  { form, recovered }: Case,
  expected: Address
): SignatureDiagnosis | undefined => {
  if (recovered === undefined) return undefined
  const verdict = form.mistakes.some(SigningMistake.changesSigner) ? "explained" : "fits"
  if (recovered.signer === expected) return told(verdict, profile, expected, {}, recovered.digest, form.mistakes)
  const inner = recovered.scheme === "multiSig" ? recovered.inner : []
  const innerIndex = inner.findIndex(({ signer }) => signer === expected)
  const found = inner[innerIndex]
  return found === undefined ? undefined : told(verdict, profile, expected, { innerIndex }, found.digest, form.mistakes)
}

const unexplained = (profile: VenueProfile, theCase: Case, expectedSigner: Address): SignatureDiagnosis => {
  const { form: { mistakes }, recovered } = theCase
  const owner = recovered === undefined ? undefined : ownerOf(recovered.signer, theCase)
  if (recovered !== undefined && owner !== undefined) {
    const found = `${recovered.signer} (${owner})`
    const otherKey: Mistake = { mistake: "otherKey", path: [], found, expected: expectedSigner }
    return {
      expectedSigner,
      verdict: "explained",
      mistakes: [...mistakes, otherKey],
      digest: recovered.digest,
      detail: `The signature is not by ${expectedSigner}, but ${listed(profile, [otherKey, ...mistakes])}`
    }
  }
  const first = recovered === undefined
    ? `The signature cannot be shown to be by ${expectedSigner}`
    : `The signature is by ${recovered.signer}, not by ${expectedSigner}, and no likely mistake explains it: ` +
      "that is the address of another key, or of nobody; the venue's query userRole tells whose API wallet it is, if it is one"
  return {
    expectedSigner,
    verdict: "unexplained",
    mistakes,
    detail: mistakes.length === 0 ? first : `${first}; what the body shows: ${listed(profile, mistakes)}`
  }
}

const unchecked = (profile: VenueProfile, { form: { mistakes }, recovered }: Case): SignatureDiagnosis => ({
  verdict: "unchecked",
  mistakes,
  ...(recovered === undefined ? {} : { digest: recovered.digest }),
  detail: [
    recovered === undefined ? "No signer can be recovered" : `The signature is by ${recovered.signer}`,
    ...(mistakes.length === 0 ? [] : [`but ${listed(profile, mistakes)}`])
  ].join(", ")
})

/**
 * Compares who signed with who should have: the expected signer, or else the leader that a multi-sig body names.
 *
 * Where nobody is expected, it tells the mistakes that the body shows.
 */
export const diagnose = Effect.fnUntraced(function*(
  profile: VenueProfile,
  engine: Engine,
  theCase: Case
): Effect.fn.Return<SignatureDiagnosis> {
  const { body, canonical, expected, form, signers } = theCase
  const wrapper = wrapperOf(body)
  const whose = expected ?? wrapper?.payload.outerSigner
  if (whose === undefined) return unchecked(profile, theCase)
  const given = lowerCase(whose)
  const fit = fitting(profile, theCase, given)
  if (fit !== undefined) return fit
  if (canonical === undefined || form.mended === undefined) return unexplained(profile, theCase, given)
  const recovers: Recovers = (digest, signature) =>
    Result.getOrUndefined(Secp256k1.recoverResult(digest, signature, engine)) === given
  const known = [given, ...signers.map((signer) => signer.toLowerCase()).filter((signer) => signer !== given)]
  // what was signed had either the mistakes that the body has, or none of them
  const bases = form.mistakes.some(SigningMistake.changesSigner) ? [form.mended, canonical] : [form.mended]
  for (const base of bases) {
    for (const group of groupsOf(body, wrapper, given)) {
      const mistakes = form.mistakes
      const found = yield* explain(profile, recovers, known, theCase, given, { canonical: base, mistakes }, group)
      if (found !== undefined) return found
    }
  }
  return unexplained(profile, theCase, given)
})
