/**
 * Explains why a signature was not made by the expected signer: searches for the message that this signer signed, among
 * possible mistakes.
 *
 * The venue never reports a wrong signature as such. It recovers an unrelated address from the signature, and responds
 * that no user or API wallet with that address exists.
 */
import * as Encoding from "@trigate/domain/encoding/Encoding"
import type { Mistake, SignatureDiagnosis } from "@trigate/domain/unstable/Inspection"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import type { Engine, Signature } from "@trigate/signing/Secp256k1"
import type {
  CanonicalAction,
  RecoveredSigner,
  SignedRequest,
  Wrapper
} from "@trigate/signing/unstable/actions/CanonicalAction"
import * as SignedReading from "@trigate/signing/unstable/inspection/SignedReading"
import type * as SignedView from "@trigate/signing/unstable/inspection/SignedView"
import * as SigningMistake from "@trigate/signing/unstable/inspection/SigningMistake"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { BodyNormalization, ReadBody } from "./admission/ActionDecoder.ts"

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
  readonly signer: Encoding.Address
  readonly digest: Encoding.Hash
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
 * Makes functions that recover the signer of a signature: `plain` from the unchanged signature, and `mended` from its
 * repaired forms.
 */
const makeRecoverers = (engine: Engine, suspect: Suspect) => ({
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
  const recoverers: Array<ReturnType<typeof makeRecoverers>> = []
  for (const suspect of suspects) {
    recoverers.push(makeRecoverers(engine, suspect))
    yield* Effect.yieldNow
  }
  const explained = (
    { digest, mistakes }: SignedReading.SignedReading,
    { innerIndex, wanted }: Suspect,
    signer: string | undefined,
    spoilt?: Mistake["mistake"]
  ): Explanation | undefined =>
    signer === undefined || !wanted.has(signer) ? undefined : {
      signer: Encoding.lowerCase(`0x${signer.slice(2)}`),
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

/** The input of a diagnosis. */
export interface Case {
  readonly body: ReadBody
  /** The action in canonical form; absent if it cannot be converted. */
  readonly canonical: CanonicalAction | undefined
  readonly form: BodyNormalization
  /** The recovered signers; absent if recovery fails. */
  readonly recovered: RecoveredSigner | undefined
  readonly expected: Encoding.Address | undefined
  /** Addresses to recognize as signers: the addresses on the gateway's allow-list. */
  readonly signers: ReadonlyArray<string>
  /**
   * Returns why `/exchange` refuses the body if the given signer is expected; `undefined` if `/exchange` relays the
   * body. Ignores the nonce window.
   */
  readonly refusalOf: (expected: Encoding.Address | undefined) => string | undefined
}

const named = (innerIndex: number | undefined): string =>
  innerIndex === undefined ? "The signature" : `Inner signature ${innerIndex}`

/** Joins the descriptions of mistakes into one clause that follows "but" in a sentence. */
export const listed = (profile: VenueProfile, mistakes: ReadonlyArray<Mistake>): string =>
  mistakes.map((mistake) => SigningMistake.mistakeClause(profile, mistake)).join(", and ")

/**
 * Returns the mistakes visible in the body (`shown`) and the mistakes that the search found, without duplicates. A
 * nonce mistake that the search found replaces the visible one.
 */
const distinct = (shown: ReadonlyArray<Mistake>, found: ReadonlyArray<Mistake>): ReadonlyArray<Mistake> => {
  const isNonce = ({ mistake }: Mistake) => mistake === "otherNonce"
  const seen = new Set<string>()
  return [...shown.filter((each) => !isNonce(each) || !found.some(isNonce)), ...found].filter(({ mistake, path }) => {
    const key = `${mistake} ${path.join(".")}`
    return !seen.has(key) && seen.add(key).size > 0
  })
}

const explained = (
  profile: VenueProfile,
  expectedSigner: Encoding.Address,
  { innerIndex }: SignaturePosition,
  digest: Encoding.Hash,
  mistakes: ReadonlyArray<Mistake>
): SignatureDiagnosis => {
  const clauses = listed(profile, mistakes)
  return {
    expectedSigner,
    verdict: mistakes.length === 0 ? "fits" : "explained",
    mistakes,
    ...(innerIndex === undefined ? {} : { innerIndex }),
    digest,
    detail: `${named(innerIndex)} is by ${expectedSigner}${clauses === "" ? "" : `, but ${clauses}`}`
  }
}

const findWrapper = ({ action }: ReadBody): Wrapper | undefined => action?.type === "multiSig" ? action : undefined

/**
 * Maximum number of signature recoveries in one inspection. A recovery takes about 0.05 ms, and the hashing before it
 * about 0.025 ms.
 */
const maxRecoveries = 1400

/**
 * Maximum number of recoveries for the inner signatures if the expected signer is a co-signer of a multi-sig action.
 */
const maxInnerRecoveries = 860

/** Maximum number of recoveries for the inner signatures if the outer signature of a multi-sig action is correct. */
const maxIdleRecoveries = 140

const outerGroup = ({ signed }: ReadBody, wanted: ReadonlySet<string>, most: number): Group => ({
  part: "outer",
  suspects: [{ signature: signed.signature, wanted }],
  most
})

const innerGroup = (
  wrapper: Wrapper,
  { recovered }: Case,
  wanted: ReadonlySet<string>,
  most: number
): Group => {
  const inner = recovered?.scheme === "multiSig" ? recovered.inner : []
  const settled = new Set(inner.map(({ signer }) => signer).filter((signer) => wanted.has(signer)))
  const open = new Set([...wanted].filter((signer) => !settled.has(Encoding.lowerCase(`0x${signer.slice(2)}`))))
  return {
    part: "inner",
    most: open.size === 0 ? 0 : most,
    suspects: wrapper.signatures.flatMap((signature, innerIndex) =>
      settled.has(inner[innerIndex]?.signer ?? "0x") ? [] : [{ signature, innerIndex, wanted: open }]
    )
  }
}

/** Returns the role of each address that the body names. */
const namedIn = ({ signed }: ReadBody): ReadonlyMap<string, string> => {
  const { action, vaultAddress } = signed
  const payload: unknown = action["payload"]
  const roles: ReadonlyArray<readonly [unknown, string]> = [
    [action["agentAddress"], "the API wallet that the action approves"],
    [vaultAddress, "the vault or sub-account that the body names"],
    [action["user"], "the user that the action names"],
    [Predicate.hasProperty(payload, "multiSigUser") ? payload.multiSigUser : undefined, "the multi-sig account"],
    [Predicate.hasProperty(payload, "outerSigner") ? payload.outerSigner : undefined, "the leader of the multi-sig"]
  ]
  return new Map(roles.flatMap(([address, role]) => Predicate.isString(address) ? [[address.toLowerCase(), role]] : []))
}

/**
 * Returns the role of a signer that the body names, or that is on the allow-list; `undefined` for any other signer.
 */
const findOwner = (signer: string, { body, signers }: Case): string | undefined =>
  namedIn(body).get(signer) ??
    (signers.some((known) => known.toLowerCase() === signer) ? "one of the signers of this gateway" : undefined)

const toRequest = ({ sentAction, signed }: ReadBody): SignedRequest => ({ ...signed, action: sentAction })

const explainedBy = (found: Explanation, shown: ReadonlyArray<Mistake>, profile: VenueProfile): SignatureDiagnosis =>
  explained(profile, found.signer, found, found.digest, distinct(shown, found.mistakes))

const masterOnly = "API wallets cannot sign transfers, approvals or staking: sign these with the account's own key"

const unexplained = (profile: VenueProfile, theCase: Case, expectedSigner: Encoding.Address): SignatureDiagnosis => {
  const { form: { mistakes }, recovered } = theCase
  const owner = recovered === undefined ? undefined : findOwner(recovered.signer, theCase)
  const hint = recovered?.scheme === "userSigned" ? `; ${masterOnly}` : ""
  if (recovered !== undefined && owner !== undefined) {
    const found = `${recovered.signer} (${owner})`
    const otherKey: Mistake = { mistake: "otherKey", path: [], found, expected: expectedSigner }
    return {
      expectedSigner,
      verdict: "explained",
      mistakes: [...mistakes, otherKey],
      digest: recovered.digest,
      detail: `The signature is not by ${expectedSigner}, but ${listed(profile, [otherKey, ...mistakes])}${hint}`
    }
  }
  const first = recovered === undefined
    ? `The signature could not be attributed to ${expectedSigner}`
    : `The signature is by ${recovered.signer}, not by ${expectedSigner}, and no likely mistake explains this: ` +
      "either another key signed, or the mistake is unknown. If an API wallet signed, the venue's query userRole " +
      "returns its owner" +
      hint
  return {
    expectedSigner,
    verdict: "unexplained",
    mistakes,
    ...(recovered === undefined ? {} : { digest: recovered.digest }),
    detail: mistakes.length === 0 ? first : `${first}; mistakes in the body: ${listed(profile, mistakes)}`
  }
}

const unchecked = (
  profile: VenueProfile,
  { recovered }: Case,
  mistakes: ReadonlyArray<Mistake>
): SignatureDiagnosis => ({
  verdict: "unchecked",
  mistakes,
  ...(recovered === undefined ? {} : { digest: recovered.digest }),
  detail: [
    recovered === undefined ? "No signer can be recovered" : `The signature is by ${recovered.signer}`,
    ...(mistakes.length === 0 ? [] : [`but ${listed(profile, mistakes)}`])
  ].join(", ")
})

const ownVault = ({ body: { signed: { vaultAddress } }, recovered }: Case, expected: string | undefined) =>
  Predicate.isString(vaultAddress) && [expected, recovered?.signer].includes(vaultAddress.toLowerCase())
    ? [{ mistake: "ownVault", path: ["vaultAddress"], found: vaultAddress } satisfies Mistake]
    : []

/** Returns a mistake for each co-signer that signed more than once. */
const repeated = ({ recovered }: Case): ReadonlyArray<Mistake> => {
  if (recovered?.scheme !== "multiSig") return []
  const signers = recovered.inner.map(({ signer }) => signer)
  return signers.flatMap((signer, index) =>
    signers.indexOf(signer) === index
      ? []
      : [{ mistake: "repeatedCosigner" as const, path: ["action", "signatures", index], found: signer }]
  )
}

/** Describes why `/exchange` refuses a body that has a valid signature of the expected signer. */
const otherRefusal = (refusal: string | undefined, mistakes: ReadonlyArray<Mistake>): ReadonlyArray<Mistake> =>
  mistakes.length > 0 || refusal === undefined ? mistakes : [{ mistake: "refused", path: [], found: refusal }]

const diagnoseMultiSig = Effect.fnUntraced(function*(
  profile: VenueProfile,
  engine: Engine,
  theCase: Case,
  wrapper: Wrapper,
  bases: ReadonlyArray<CanonicalAction>,
  shown: ReadonlyArray<Mistake>
): Effect.fn.Return<SignatureDiagnosis> {
  const { body, expected, recovered, refusalOf, signers } = theCase
  const leader = Encoding.lowerCase(wrapper.payload.outerSigner)
  const given = expected === undefined ? leader : Encoding.lowerCase(expected)
  const inner = recovered?.scheme === "multiSig" ? recovered.inner : []
  const known = [...new Set([given, leader, ...signers.map((signer) => signer.toLowerCase())])]
  const search = Effect.fnUntraced(function*(group: Group): Effect.fn.Return<Explanation | undefined> {
    return yield* explain(profile, engine, known, toRequest(body), bases, group)
  })
  const innerIndex = inner.findIndex(({ signer }) => signer === given)
  const outerFits = recovered?.signer === leader
  // a signer other than the leader is most likely a co-signer
  if (given !== leader && innerIndex >= 0 && recovered?.signer !== given) {
    const found = outerFits ? undefined : yield* search(outerGroup(body, new Set([leader]), maxRecoveries))
    if (found !== undefined) return explainedBy(found, shown, profile)
    const digest = inner[innerIndex]?.digest ?? "0x"
    return explained(
      profile,
      given,
      { innerIndex },
      digest,
      outerFits ? otherRefusal(refusalOf(undefined), shown) : shown
    )
  }
  if (given !== leader && recovered?.signer !== given) {
    const cosigner = yield* search(innerGroup(wrapper, theCase, new Set([given]), maxInnerRecoveries))
    if (cosigner !== undefined) return explainedBy(cosigner, shown, profile)
  }
  if (!outerFits) {
    if (recovered?.signer === given) {
      const mistake: Mistake = {
        mistake: "otherLeader",
        path: ["action", "payload", "outerSigner"],
        found: given,
        expected: leader
      }
      return explained(profile, given, {}, recovered.digest, [...shown, mistake])
    }
    const found = yield* search(
      outerGroup(body, new Set([leader, given]), maxRecoveries - (given === leader ? 0 : maxInnerRecoveries))
    )
    if (found === undefined) return unexplained(profile, theCase, given)
    const isOther = found.signer !== leader
    const other: Mistake = {
      mistake: "otherLeader",
      path: ["action", "payload", "outerSigner"],
      found: found.signer,
      expected: leader
    }
    return explainedBy(isOther ? { ...found, mistakes: [...found.mistakes, other] } : found, shown, profile)
  }
  if (given !== leader) return unexplained(profile, theCase, given)
  const cosigners = new Set(known)
  const wrong = yield* search(innerGroup(wrapper, theCase, cosigners, maxIdleRecoveries))
  if (wrong !== undefined) return explainedBy(wrong, shown, profile)
  return explained(profile, given, {}, recovered.digest, otherRefusal(refusalOf(given), shown))
})

const isShape = ({ mistake }: Mistake): boolean => mistake === "wrongShape"

/**
 * Returns the action with all members that the sender included, because the canonical form omits members that the venue
 * ignores. In a wrong shape, their order is also the sender's: two forms in one object have no canonical order.
 */
const asSent = ({ body: { signed: { action } }, form }: Case, canonical: CanonicalAction): CanonicalAction =>
  canonical.kind === "single" &&
    (form.mistakes.some(isShape) || Object.keys(action).length > Object.keys(canonical.action).length)
    ? { kind: "single", action }
    : canonical

const isSame = (one: CanonicalAction, other: CanonicalAction): boolean =>
  Encoding.stringify(one.action) === Encoding.stringify(other.action)

/**
 * Compares the recovered signer with the expected one. The default expected signer of a multi-sig body is its leader
 * (`outerSigner`).
 *
 * Without an expected signer, reports the mistakes that are visible in the body. The verdict `fits` means that
 * `/exchange` relays the body at any time inside the nonce window.
 */
export const diagnose = Effect.fnUntraced(function*(
  profile: VenueProfile,
  engine: Engine,
  theCase: Case
): Effect.fn.Return<SignatureDiagnosis> {
  const { body, canonical, expected, form, recovered, refusalOf, signers } = theCase
  const wrapper = findWrapper(body)
  const given = expected === undefined ? undefined : Encoding.lowerCase(expected)
  const shown = [...form.mistakes, ...ownVault(theCase, given), ...repeated(theCase)]
  const whose = given ?? (wrapper === undefined ? undefined : Encoding.lowerCase(wrapper.payload.outerSigner))
  if (whose === undefined) return unchecked(profile, theCase, otherRefusal(refusalOf(undefined), shown))
  if (canonical === undefined || form.mended === undefined) return unexplained(profile, theCase, whose)
  // a signer made either all mistakes found in the body, or none of them
  const isMended = form.mistakes.some(SigningMistake.changesSigner) || !isSame(form.mended, canonical)
  const bases = isMended ? [form.mended, asSent(theCase, canonical)] : [canonical]
  if (wrapper !== undefined) return yield* diagnoseMultiSig(profile, engine, theCase, wrapper, bases, shown)
  if (recovered?.signer === whose) {
    return explained(profile, whose, {}, recovered.digest, otherRefusal(refusalOf(whose), shown))
  }
  const known = [whose, ...signers.map((signer) => signer.toLowerCase()).filter((signer) => signer !== whose)]
  const group = outerGroup(body, new Set([whose]), maxRecoveries)
  const found = yield* explain(profile, engine, known, toRequest(body), bases, group)
  return found === undefined ? unexplained(profile, theCase, whose) : explainedBy(found, shown, profile)
})
