/** Looks among the readings of a body for one whose digest is an expected signer's, within a budget of recoveries. */
import { type Address, type Hash, lowerCase } from "@trigate/domain/encoding/Hex"
import type { Mistake } from "@trigate/domain/Inspection"
import type { CanonicalAction } from "@trigate/signing/actions/CanonicalAction"
import * as SignedReading from "@trigate/signing/inspection/SignedReading"
import type * as SignedView from "@trigate/signing/inspection/SignedView"
import type { Engine, Signature } from "@trigate/signing/Secp256k1"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import type { SignedRequest } from "@trigate/signing/SignerRecovery"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"

/** Which of the inner signatures of a wrapper; absent for the signature of the body. */
export interface SignaturePosition {
  readonly innerIndex?: number
}

/** A signature to explain, and whose it may be. */
export interface Suspect extends SignaturePosition {
  readonly signature: Signature
  readonly wanted: ReadonlySet<string>
}

/** The signatures of one part, and the recoveries that the search among them may cost. */
export interface Group {
  readonly part: SignedView.Part
  readonly suspects: ReadonlyArray<Suspect>
  readonly most: number
}

/** What explains a signature: the digest that was signed, and by which mistakes. */
export interface Explanation extends SignaturePosition {
  readonly signer: Address
  readonly digest: Hash
  readonly mistakes: ReadonlyArray<Mistake>
}

const otherBit = (signature: Signature): Signature => ({ ...signature, v: Number(signature.v) % 2 === 0 ? 27 : 28 })

const swapped = ({ r, s, v }: Signature): Signature => ({ r: s, s: r, v })

/** Whether a digit can be missing: the second half is then shorter than the first. */
const isShort = ({ s }: Signature): boolean => s.length < 66

/** The halves as they were before `r` without its leading zero took the first digit of `s`. */
const unshifted = ({ r, s, v }: Signature): Signature => {
  const digits = `${r.slice(2).padStart(64, "0")}${s.slice(2).padStart(63, "0").slice(-63)}`
  return { r: `0x0${digits.slice(0, 63)}`, s: `0x${digits.slice(63)}`, v }
}

type Repair = readonly [mistake: Mistake["mistake"], repair: (signature: Signature) => Signature]

/** The repairs of the halves; the other `v` of each is tried with it. */
const halves: ReadonlyArray<Repair> = [["swappedHalves", swapped], ["shiftedHalves", unshifted]]

/** What can be wrong with the signature itself, most likely first, and how it is mended. */
export const repairs: ReadonlyArray<Repair> = [
  ["otherRecoveryBit", otherBit],
  ...halves.flatMap(([mistake, repair]): ReadonlyArray<Repair> => [
    [mistake, repair],
    [mistake, (signature) => otherBit(repair(signature))]
  ])
]

/** The recoveries that a digest costs by both values of `v`. */
const bothCost = 1.25

/** How many readings may pass before others run. */
const stride = 8

/** What recovers the signers of a signature, as it is and mended. */
interface Recoverers {
  readonly suspect: Suspect
  readonly plain: Secp256k1.Recoverer | undefined
  readonly mended: ReadonlyArray<{
    readonly mistake: Mistake["mistake"]
    readonly recoverer: Secp256k1.Recoverer | undefined
  }>
}

const makeRecoverers = (engine: Engine) => (suspect: Suspect): Recoverers => ({
  suspect,
  plain: Secp256k1.recoverer(suspect.signature, engine),
  mended: halves.filter(([mistake]) => mistake !== "shiftedHalves" || isShort(suspect.signature)).map((
    [mistake, repair]
  ) => ({ mistake, recoverer: Secp256k1.recoverer(repair(suspect.signature), engine) }))
})

/**
 * Explains a signature of a part: all its signatures are examined together, so that each reading is hashed once.
 *
 * `actions` are those that may have been signed; `known` are addresses that may have been signed as the vault. Others run
 * between readings. Returns `undefined` where the budget ends first.
 */
export const explain = Effect.fnUntraced(function*(
  profile: VenueProfile,
  engine: Engine,
  known: ReadonlyArray<string>,
  request: SignedRequest,
  actions: ReadonlyArray<CanonicalAction>,
  { most, part, suspects }: Group
): Effect.fn.Return<Explanation | undefined> {
  if (suspects.length === 0 || most === 0) return undefined
  let left = most
  let yieldedAt = left
  let steps = 0
  const pause = Effect.suspend(() => {
    yieldedAt = left
    return Effect.yieldNow
  })
  const recoverers: Array<Recoverers> = []
  for (const suspect of suspects) {
    recoverers.push(makeRecoverers(engine)(suspect))
    yield* Effect.yieldNow
  }
  const explained = (
    { digest, mistakes }: SignedReading.SignedReading,
    { innerIndex, wanted }: Suspect,
    signer: string | undefined,
    spoilt?: Mistake["mistake"]
  ): Explanation | undefined =>
    signer === undefined || !wanted.has(signer) ? undefined : {
      signer: lowerCase(`0x${signer.slice(2)}`),
      digest: SignedReading.digestHex(digest),
      ...(innerIndex === undefined ? {} : { innerIndex }),
      mistakes: [...mistakes(), ...(spoilt === undefined ? [] : [{ mistake: spoilt, path: [] }])]
    }
  /** By the signature as it is, and by the other `v` where that is likely enough. */
  const asSent = (reading: SignedReading.SignedReading): Explanation | undefined => {
    for (const { plain, suspect } of recoverers) {
      if (plain === undefined) continue
      if (reading.rank === "pair" || reading.rank === "unlikely") {
        left--
        const found = explained(reading, suspect, plain.signer(reading.digest))
        if (found !== undefined) return found
        continue
      }
      left -= bothCost
      const [one, other] = plain.signers(reading.digest)
      const found = explained(reading, suspect, one) ?? explained(reading, suspect, other, "otherRecoveryBit")
      if (found !== undefined) return found
    }
    return undefined
  }
  /** By the mended signature. */
  const asMended = (reading: SignedReading.SignedReading): Explanation | undefined => {
    for (const { mended, suspect } of recoverers) {
      for (const { mistake, recoverer } of mended) {
        if (recoverer === undefined) continue
        left -= bothCost
        for (const signer of recoverer.signers(reading.digest)) {
          const found = explained(reading, suspect, signer, mistake)
          if (found !== undefined) return found
        }
      }
    }
    return undefined
  }
  const likely: Array<SignedReading.SignedReading> = []
  for (const reading of SignedReading.readings(profile, actions, request, part, known)) {
    if (++steps % stride === 0 || yieldedAt - left >= stride) yield* pause
    if (reading === undefined) continue
    if (left <= 0) return undefined
    // the likely readings are tried with a spoilt signature once the single mistakes are through
    for (const each of reading.rank === "pair" ? likely.splice(0) : []) {
      const found = asMended(each)
      if (found !== undefined) return found
      if (left <= 0) return undefined
      if (yieldedAt - left >= stride) yield* pause
    }
    const found = asSent(reading) ?? (reading.rank === "right" ? asMended(reading) : undefined)
    if (found !== undefined) return found
    if (reading.rank === "likely") likely.push(reading)
  }
  return undefined
})
