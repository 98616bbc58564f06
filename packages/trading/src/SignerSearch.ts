/**
 * Searches for the message that the expected signer signed, among possible interpretations ("readings") of a body.
 * Makes at most a given number of signer recoveries.
 */
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

/** The position of an inner signature of a multi-sig action; absent for the outer signature. */
export interface SignaturePosition {
  readonly innerIndex?: number
}

/** A signature to explain, and its possible signers. */
export interface Suspect extends SignaturePosition {
  readonly signature: Signature
  readonly wanted: ReadonlySet<string>
}

/** Signatures that are examined together, and the maximum number of signer recoveries for them. */
export interface Group {
  readonly part: SignedView.Part
  readonly suspects: ReadonlyArray<Suspect>
  readonly most: number
}

/** The digest that was signed, and the mistakes of the sender that led to this digest. */
export interface Explanation extends SignaturePosition {
  readonly signer: Address
  readonly digest: Hash
  readonly mistakes: ReadonlyArray<Mistake>
}

const otherBit = (signature: Signature): Signature => ({ ...signature, v: Number(signature.v) % 2 === 0 ? 27 : 28 })

const swapped = ({ r, s, v }: Signature): Signature => ({ r: s, s: r, v })

/** Returns whether `s` has fewer than 64 digits. Such a signature possibly lost a leading zero. */
const isShort = ({ s }: Signature): boolean => s.length < 66

/** Restores `r` and `s` of a signature that was split in the wrong place, because `r` had lost its leading zero. */
const unshifted = ({ r, s, v }: Signature): Signature => {
  const digits = `${r.slice(2).padStart(64, "0")}${s.slice(2).padStart(63, "0").slice(-63)}`
  return { r: `0x0${digits.slice(0, 63)}`, s: `0x${digits.slice(63)}`, v }
}

type Repair = readonly [mistake: Mistake["mistake"], repair: (signature: Signature) => Signature]

/** Repairs of a signature's `r` and `s`. Each repair is tried with both values of `v`. */
const halves: ReadonlyArray<Repair> = [["swappedHalves", swapped], ["shiftedHalves", unshifted]]

/** Repairs of a damaged signature, most likely first. */
export const repairs: ReadonlyArray<Repair> = [
  ["otherRecoveryBit", otherBit],
  ...halves.flatMap(([mistake, repair]): ReadonlyArray<Repair> => [
    [mistake, repair],
    [mistake, (signature) => otherBit(repair(signature))]
  ])
]

/** The cost of trying a digest with both values of `v`, in units of one signature recovery. */
const bothCost = 1.25

/** The number of readings (interpretations of the body) that are tried between two yields to the event loop. */
const stride = 8

/**
 * Functions that recover the signer of a signature: `plain` from the unchanged signature, and `mended` from its
 * repaired forms.
 */
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
 * Finds, for one signature of a group, the mistakes with which a possible signer made that signature. The signatures
 * are examined together, so that each reading (an interpretation of the body) is hashed only once.
 *
 * `actions` are the actions that may have been signed; `known` are addresses that the signer may have signed as the
 * vault. Lets the event loop run between readings. Returns `undefined` if it finds no explanation within the maximum
 * number of recoveries.
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
  /**
   * Tries the unchanged signature. If the reading (interpretation of the body) is a likely one, also tries the
   * signature with the other value of `v`.
   */
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
  /** Tries the repaired signatures. */
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
    // repairs are tried with the likely readings, after all single mistakes have been tried
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
