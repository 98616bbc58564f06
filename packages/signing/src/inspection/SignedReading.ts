/**
 * Generates messages that a signer could have signed by mistake instead of the correct one.
 *
 * A wrong signature recovers to an unrelated address, which does not identify the mistake. So each likely mistake is
 * reproduced. If the resulting digest recovers to the expected signer, the signer made that mistake.
 */
import type { Mistake, SignatureMistake } from "@trigate/domain/unstable/Inspection"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ActionHash from "../actions/ActionHash.ts"
import type { CanonicalAction, SignedRequest } from "../actions/CanonicalAction.ts"
import * as Members from "../internal/memberMistakes.ts"
import * as PreimageMistakes from "../internal/preimageMistakes.ts"
import * as TypedDataMistakes from "../internal/typedDataMistakes.ts"
import { documentedChainField, otherThan, type VenueProfile } from "../VenueProfile.ts"
import * as SignedView from "./SignedView.ts"
import type { Part, View } from "./SignedView.ts"

/** A signing mistake and the forms in which it occurs. */
export interface Variation {
  readonly mistake: SignatureMistake
  readonly vary: Members.Vary
  /** The number of the mistake's forms that are also combined with other mistakes. */
  readonly pairs: number
  /**
   * The number of the mistake's forms that are tried before pairs of mistakes. The other forms are tried after the most
   * likely pairs.
   */
  readonly early: number
  /**
   * Whether the mistake is rarely combined with another one. Pairs with this mistake are tried after the pairs of other
   * mistakes.
   */
  readonly isSeldomPaired: boolean
}

const paired = (mistake: SignatureMistake, vary: Members.Vary, pairs = 2, early = Infinity): Variation => ({
  mistake,
  vary,
  pairs,
  early,
  isSeldomPaired: false
})

/** Makes a variation for a mistake that is often the only mistake, and rarely combined with another one. */
const seldomPaired = (mistake: SignatureMistake, vary: Members.Vary, pairs = 2, early = Infinity): Variation => ({
  ...paired(mistake, vary, pairs, early),
  isSeldomPaired: true
})

/**
 * Limits a generator of signing hypotheses (`vary`) to a range of its results. The range can then be a variation that
 * has its own rank in pairs.
 */
const between = (vary: Members.Vary, from: number, to = Infinity): Members.Vary =>
  function*(subject) {
    let at = 0
    for (const found of vary(subject)) {
      if (at >= to) return
      if (at++ >= from) yield found
    }
  }

/** Makes a variation for an unlikely mistake. The search does not combine it with other mistakes. */
const alone = (mistake: SignatureMistake, vary: Members.Vary, early = 0): Variation => paired(mistake, vary, 0, early)

const isOuterPart = ({ part, view }: Members.Subject): boolean => view.wrapper !== undefined && part === "outer"

const isWrapped = ({ part, view }: Members.Subject): boolean => view.wrapper !== undefined && part === "inner"

/**
 * Generates signing hypotheses in which the inner signatures name another leader or account than the wrapper does, or
 * the same two in exchanged roles.
 */
const otherParties: Members.Vary = function*(subject) {
  const { known, view } = subject
  const { wrapper } = view
  if (wrapper === undefined || !isWrapped(subject)) return
  const { multiSigUser, outerSigner } = wrapper.payload
  const named = (
    change: Partial<typeof wrapper.payload>,
    member: keyof typeof wrapper.payload,
    found: string
  ): Members.MistakenView => ({
    view: { ...view, wrapper: { ...wrapper, payload: { ...wrapper.payload, ...change } } },
    finding: {
      path: ["action", "payload", member],
      found,
      expected: member === "action" ? "" : wrapper.payload[member]
    }
  })
  yield named({ multiSigUser: outerSigner, outerSigner: multiSigUser }, "outerSigner", multiSigUser)
  for (const other of [...known, multiSigUser]) {
    if (!ActionHash.isAddress(other)) continue
    if (other !== outerSigner) yield named({ outerSigner: other }, "outerSigner", other)
    if (other !== multiSigUser) yield named({ multiSigUser: other }, "multiSigUser", other)
  }
}

/** Generates the signing hypothesis that a member of the body was not signed. */
const notSigned = (name: "vaultAddress" | "expiresAfter"): Members.Vary => ({ view }) =>
  Members.isGiven(view.context[name])
    ? [{
      view: Members.withContext(view, { [name]: null }),
      finding: { path: [name], expected: String(view.context[name]) }
    }]
    : []

/** Makes a hypothesis in which the action is hashed as a whole. */
const hashedWhole = (view: View): Members.MistakenView => ({
  view: { ...view, asL1: true },
  finding: { path: [], found: "an L1 action" }
})

/** All variations, most likely first. */
export const variations: ReadonlyArray<Variation> = [
  paired("otherNetwork", ({ view }) => {
    const other = otherThan(view.profile)
    const finding = { path: [], found: other.name, expected: view.profile.name }
    const whole = { view: SignedView.withProfile(view, other), finding }
    // possibly only the leader has the wrong network
    return view.wrapper === undefined ? [whole] : [whole, { view: { ...view, profile: other }, finding }]
  }),
  paired("vaultNotSigned", notSigned("vaultAddress")),
  paired("expiresAfterNotSigned", notSigned("expiresAfter")),
  paired("fieldOrder", Members.rewriting(Members.sortedKeys, Members.keysAsSent)),
  paired("untrimmedSignature", Members.rewriting(Members.signaturesAsSent, Members.signaturesPadded)),
  paired(
    "letterCase",
    Members.rewriting(
      Members.rewriter({
        leaf: (value, sent) => Members.sameHex(value, sent) && ActionHash.isAddress(value) ? sent : value
      }),
      Members.rewriter({ leaf: (value) => ActionHash.isAddress(value) ? value.toLowerCase() : value })
    )
  ),
  seldomPaired(
    "chainIdText",
    // the second variant pads the ID to an even number of digits
    Members.rewriting(
      Members.chainIds((id) => id),
      Members.chainIds((id) => id.length % 2 === 0 ? id : `0x0${id.slice(2)}`)
    )
  ),
  seldomPaired("nullDropped", Members.droppedNulls),
  paired("typeHashed", ({ part, view }) =>
    view.wrapper === undefined || part === "inner" ? [] : [{
      view: SignedView.withRewrite(view, (value) => Predicate.isObject(value) ? { type: "multiSig", ...value } : value)
    }]),
  paired("notWrapped", ({ view }) => [{ view: { ...view, wrapped: false }, finding: { path: [] } }]),
  // co-signers do not sign at the same time as the leader, and can use their own time as the nonce
  seldomPaired(
    "otherNonce",
    (subject) =>
      PreimageMistakes.nonces((nonce) =>
        subject.part === "inner" ? [nonce, ...PreimageMistakes.nonceMistakes(nonce)] : [nonce, nonce + 1n, nonce - 1n]
      )(
        subject
      ),
    1,
    4
  ),
  seldomPaired("documentedChainField", ({ view }) => [{
    view: SignedView.withProfile(view, { ...view.profile, chainField: documentedChainField }),
    finding: {
      path: [...SignedView.actionPath(view), view.profile.chainField],
      found: documentedChainField,
      expected: view.profile.chainField
    }
  }]),
  paired("trailingZero", Members.spelling(Members.decimalsIn, ...Members.trailingZeros), 2),
  paired("valueType", Members.spelling(Members.decimalsIn, Members.toNumber), 1),
  paired("valueType", Members.spelling((view) => Members.leavesIn(view, "integer", "id"), Members.toText), 1),
  seldomPaired("integerAsFloat", Members.integersAsFloats),
  paired("otherChainId", between(TypedDataMistakes.chainMistakes, 0, 1)),
  paired("otherChainId", between(TypedDataMistakes.chainMistakes, 1, 2)),
  seldomPaired("otherChainId", between(TypedDataMistakes.chainMistakes, 2), 6, 8),
  paired(
    "letterCase",
    Members.spelling(Members.addressesIn, Members.ofText(Members.checksummed), Members.ofText(Members.upperCase)),
    2
  ),
  paired("timeUnit", PreimageMistakes.times((nonce) => [nonce / 1000n, nonce * 1000n, nonce * 1_000_000n]), 1),
  seldomPaired("hashSigned", ({ view }) => [{
    view: { ...view, digest: (signable) => PreimageMistakes.hashIn(signable) },
    finding: { path: [], found: "the hash of the action" }
  }], 1),
  paired("personalSign", PreimageMistakes.plainMessages, 1, 2),
  seldomPaired(
    "documentedPreimage",
    ({ view }) => [{ view: { ...view, arrange: PreimageMistakes.documentedPreimage }, finding: { path: [] } }],
    1
  ),
  // without a vault, the one missing byte could be the marker of the vault or of the expiry
  seldomPaired(
    "vaultMarker",
    ({ view }) =>
      Members.isGiven(view.context.expiresAfter) && !Members.isGiven(view.context.vaultAddress)
        ? []
        : [{ view: { ...view, arrange: PreimageMistakes.withoutVaultMarker }, finding: { path: ["vaultAddress"] } }]
  ),
  seldomPaired("expiresAfterMarker", ({ view }) =>
    Members.isGiven(view.context.expiresAfter)
      ? [{ view: { ...view, arrange: PreimageMistakes.withoutExpiryMarker }, finding: { path: ["expiresAfter"] } }]
      : []),
  paired("integerWidth", Members.integerWidths, 3, 8),
  paired("textWidth", PreimageMistakes.textWidths, 3),
  paired("sizeWidth", PreimageMistakes.sizeWidths, 1),
  paired("otherDomain", TypedDataMistakes.domainMistakes, 4, 12),
  paired("primaryType", TypedDataMistakes.primaryTypes, 3, 4),
  paired("sourceLetter", TypedDataMistakes.networkNames, 2, 2),
  seldomPaired("otherScheme", (subject) => {
    const { view } = subject
    if (isOuterPart(subject)) return [hashedWhole(view)]
    return Members.isUserSigned(view)
      ? [hashedWhole(view), hashedWhole(SignedView.withRewrite(view, Members.keysAsSent))]
      : []
  }, 1),
  paired("otherPart", ({ part, view }) =>
    view.wrapper === undefined
      ? []
      : [{
        view: { ...view, otherPart: true },
        finding: {
          path: [],
          found: part === "outer" ? "the message of a co-signer" : "the message of the leader",
          expected: part === "outer"
            ? "the wrapper with all its signatures"
            : "the action with the addresses of the account and the leader"
        }
      }], 1),
  paired("otherParties", otherParties, 1),
  paired(
    "fieldOrder",
    Members.rewriting(
      Members.reversedKeys,
      Members.typeLast,
      Members.sortedInside,
      Members.sortedOutside,
      Members.keysByLength
    ),
    5
  ),
  paired("byteOrder", PreimageMistakes.arranged(PreimageMistakes.byteOrders), 3, 4),
  paired("preimageOrder", PreimageMistakes.arranged(PreimageMistakes.preimageOrders), 6, 8),
  paired("otherHash", PreimageMistakes.otherHashes, 2, 2),
  paired("otherEncoding", PreimageMistakes.jsonEncodings, 2, 4),
  paired("typeFields", TypedDataMistakes.fieldSets, 4),
  paired("fieldType", TypedDataMistakes.fieldTypes, 4),
  seldomPaired("vaultNotSent", ({ known, view }) => {
    const sent = view.context.vaultAddress?.toLowerCase()
    return known.filter((each) => each !== sent).map((vaultAddress, index) => ({
      view: Members.withContext(view, { vaultAddress }),
      finding: {
        path: ["vaultAddress"],
        found: vaultAddress,
        // index 0 is the expected signer, whose own address is not a vault
        ...(sent !== undefined ? { expected: sent } : index === 0 ? { expected: "none" } : {})
      }
    }))
  }, 1),
  paired("memberNotSigned", Members.droppedMembers, 2, 6),
  alone("nullHashed", Members.addedNulls, 2),
  alone("falseHashed", Members.addedFalses, 2),
  alone("unsortedList", Members.unsortedLists, 2),
  alone("fieldOrder", Members.swappedNeighbours),
  alone(
    "decimalText",
    Members.spelling(
      Members.decimalsIn,
      Members.exponent,
      Members.longExponent,
      Members.ofText((text) => text.replace(/^0\./, "."))
    )
  ),
  alone("jsonText", Members.spelling((view) => Members.leavesIn(view, "json"), Members.jsonIn, Members.spacedJson)),
  alone("unicodeForm", Members.rewriting(Members.normalized("NFC"), Members.normalized("NFD"))),
  alone("roundedInteger", Members.spelling((view) => Members.leavesIn(view, "integer"), Members.rounded)),
  alone("expiresAfterNotSent", PreimageMistakes.otherExpiries),
  alone("personalSign", PreimageMistakes.jsonMessages, 4),
  alone("primaryType", TypedDataMistakes.otherActionTypes),
  alone("olderTypedData", TypedDataMistakes.olderTypedData),
  alone("fieldType", TypedDataMistakes.amountTypesSigned),
  alone("absentSigned", TypedDataMistakes.absentFields),
  alone("absentSigned", Members.absentMembers),
  alone("nullHashed", Members.bodyNulls),
  alone("memberAdded", Members.bodyMembers),
  alone("otherType", Members.otherTypes),
  alone("hashSigned", PreimageMistakes.jsonHashes),
  alone("otherNonce", PreimageMistakes.nonces((nonce) => [nonce, ...PreimageMistakes.nonceMistakes(nonce)])),
  alone("otherScheme", TypedDataMistakes.typedActions),
  alone("memberNotSigned", Members.droppedPairs),
  alone("fieldOrder", Members.permutedMembers),
  alone("fieldOrder", Members.movedMembers),
  alone("roundedInteger", Members.unrounded),
  alone("otherNonce", PreimageMistakes.nonces(PreimageMistakes.otherReadings))
]

/** A digest that the signer could have signed, and the mistakes that produce it. */
export interface SignedReading {
  /** Returns the mistakes, computed on demand; an empty list for the correct digest. */
  readonly mistakes: () => ReadonlyArray<Mistake>
  readonly digest: Uint8Array
  /**
   * The class of the digest, which determines the variants of the signature that the search tries with it. `unlikely`,
   * `pair`: only the unchanged signature. `single`: also the signature with the other `v`. `right`, `likely`: also
   * repaired signatures.
   */
  readonly rank: "right" | "likely" | "single" | "unlikely" | "pair"
}

/** Converts a digest to 0x hex. */
export const digestHex = ActionHash.toHex

/** A view with one mistake, in one of the forms in which the mistake occurs. */
interface Single {
  readonly view: View
  readonly mistakes: () => ReadonlyArray<Mistake>
  readonly variation: Variation
  /** The index of this view among the views that the variation generates. */
  readonly index: number
  /** The position of this form among the mistake's forms with distinct digests, most likely first. */
  readonly form: number
}

type Examined = Omit<Members.Subject, "view">

/** Generates the views of one variation (a mistake with its forms), from the index `from` to before the index `to`. */
function* singleMistakes(
  start: View,
  variation: Variation,
  subject: Examined,
  from: number,
  to: number
): Generator<Single> {
  let index = -1
  for (const { finding, view } of variation.vary({ ...subject, view: start })) {
    index++
    if (index >= to) return
    if (index < from) continue
    const { mistake } = variation
    yield {
      index,
      form: 0,
      variation,
      view,
      mistakes: () =>
        finding === undefined
          ? SignedView.mistakesBetween(mistake, view, start, subject.part, subject.request.action)
          : [{ mistake, ...finding }]
    }
  }
}

/**
 * Combines two mistakes; `undefined` if they cannot be combined, for example because both change the same part of the
 * view.
 */
const combineMistakes = (start: View, subject: Examined, first: Single, second: Single): View | undefined => {
  if (first.view.action === start.action || second.view.action === start.action) {
    return SignedView.combined(start, first.view, second.view)
  }
  const both = SignedView.combined(start, first.view, second.view)
  if (both !== undefined) return both
  // both change the same part of the action: apply the second mistake to the result of the first
  for (const { view } of singleMistakes(first.view, second.variation, subject, second.index, second.index + 1)) {
    return view
  }
  return undefined
}

/** The state of the search for the mistakes in one action that could have been signed. */
interface Search {
  readonly start: View
  readonly digestOf: SignedView.DigestOf
  /** The single mistakes tried so far that have distinct digests. */
  readonly singles: Array<Single>
}

/**
 * Maximum number of bytes of all hashed data in one inspection. Each digest that is tried hashes the whole action,
 * whose size the caller chooses.
 */
const maxHashed = 768 * 1024

/**
 * Maximum number of bytes of an encoded action for which the inspector reproduces mistakes. At this size, computing one
 * digest takes some milliseconds.
 */
const maxSearched = 16 * 1024

/** Maximum number of digests that are tried per action. For a large action, fewer are tried: see `maxHashed`. */
const maxReadings = 2400

const countReadings = ({ action }: CanonicalAction): number =>
  Result.match(ActionHash.encode(action), {
    onFailure: () => 0,
    onSuccess: ({ length }) => length > maxSearched ? 0 : Math.min(maxReadings, Math.floor(maxHashed / length))
  })

/**
 * The difference between the ranks of two successive forms of one mistake. Pairs are ordered by these ranks; a lower
 * rank is more likely.
 */
const formCost = 16

/** The rank of each variation when pairs of mistakes are ordered; a lower rank is more likely. */
const pairPlaces = new Map(
  variations.map((variation, place) => [variation, variation.isSeldomPaired ? place + variations.length : place])
)

const pairPlace = ({ form, variation }: Single): number => form * formCost + (pairPlaces.get(variation) ?? 0)

/**
 * Returns the cost by which pairs are ordered: the rank of the less likely mistake. If these ranks are equal, the rank
 * of the more likely mistake decides.
 */
const pairCost = (first: Single, second: Single): number => {
  const places = [pairPlace(first), pairPlace(second)]
  return Math.max(...places) + Math.min(...places) / 1000
}

/** Returns pairs of different mistakes, most likely first. */
const pairsIn = (singles: ReadonlyArray<Single>): ReadonlyArray<readonly [Single, Single]> => {
  const paired = singles.filter(({ form, variation }) => form < variation.pairs)
  return paired
    .flatMap((first, at) =>
      paired.slice(at + 1)
        .filter(({ variation }) => variation.mistake !== first.variation.mistake)
        .map((second) => ({ pair: [first, second] as const, cost: pairCost(first, second) }))
    )
    .toSorted((one, other) => one.cost - other.cost)
    .map(({ pair }) => pair)
}

/** The number of most likely forms of each mistake that are also tried with repaired signatures. */
const likelyForms = 2

const readingRank = (isEarly: boolean, form: number): SignedReading["rank"] =>
  !isEarly ? "unlikely" : form < likelyForms ? "likely" : "single"

/** The number of most likely pairs that are tried before the unlikely single mistakes. */
const earlyPairs = 110

/**
 * Generates the digests that the signer of a request could have signed, most likely first: single mistakes, then pairs.
 * Each digest occurs once. The larger the action, the fewer digests are generated. A step without a new digest yields
 * `undefined`, so that the caller can let the event loop run.
 *
 * `actions` are the actions that could have been signed, in the venue's form. `request` contains the action that was
 * sent, with its key order. `known` are addresses that the signer could have signed as the vault, such as the owner of
 * an API wallet.
 */
export function* readings(
  profile: VenueProfile,
  actions: ReadonlyArray<CanonicalAction>,
  request: SignedRequest,
  part: Part,
  known: ReadonlyArray<string>
): Generator<SignedReading | undefined> {
  let left = Math.min(...actions.map(countReadings))
  const subject = { request, part, known }
  const seen = new Set<string>()
  const read = (
    { digestOf }: Search,
    view: View,
    mistakes: SignedReading["mistakes"],
    rank: SignedReading["rank"]
  ): SignedReading | undefined => {
    left--
    const digest = Result.getOrUndefined(digestOf(view))
    const key = digest === undefined ? undefined : ActionHash.toHex(digest)
    if (digest === undefined || key === undefined || seen.has(key)) return undefined
    seen.add(key)
    return { digest, mistakes, rank }
  }
  const searches = actions.map((action): Search => ({
    start: SignedView.right(profile, action, request),
    digestOf: SignedView.digester(part, request.action),
    singles: []
  }))
  for (const search of searches) yield read(search, search.start, () => [], "right")
  const alone = function*(search: Search, isEarly: boolean): Generator<SignedReading | undefined> {
    for (const variation of variations) {
      let form = search.singles.filter((single) => single.variation === variation).length
      const [from, to] = isEarly ? [0, variation.early] : [variation.early, Infinity]
      for (const single of singleMistakes(search.start, variation, subject, from, to)) {
        if (left <= 0) return
        const found = read(search, single.view, single.mistakes, readingRank(isEarly, form))
        if (found !== undefined) search.singles.push({ ...single, form: form++ })
        yield found
      }
    }
  }
  const inPairs = function*(
    search: Search,
    pairs: ReadonlyArray<readonly [Single, Single]>
  ): Generator<SignedReading | undefined> {
    for (const [first, second] of pairs) {
      if (left <= 0) return
      const view = combineMistakes(search.start, subject, first, second)
      if (view === undefined) continue
      yield read(search, view, () => [...first.mistakes(), ...second.mistakes()], "pair")
    }
  }
  for (const search of searches) yield* alone(search, true)
  const [likeliest] = searches
  if (likeliest === undefined) return
  const pairs = pairsIn(likeliest.singles)
  yield* inPairs(likeliest, pairs.slice(0, earlyPairs))
  for (const search of searches) yield* alone(search, false)
  yield* inPairs(likeliest, pairs.slice(earlyPairs))
}
