/**
 * Generates messages that a signer could have signed by mistake instead of the correct one.
 *
 * A wrong signature recovers to an unrelated address, which does not identify the mistake. So each likely mistake is
 * reproduced. If the resulting digest recovers to the expected signer, the signer made that mistake.
 */
import type { Mistake } from "@trigate/domain/Inspection"
import * as Result from "effect/Result"
import type { CanonicalAction } from "../actions/CanonicalAction.ts"
import * as MsgPack from "../actions/MsgPack.ts"
import { toHex } from "../internal/bytes.ts"
import type { Subject } from "../internal/mistake.ts"
import { type Variation, variations } from "../internal/variations.ts"
import type { SignedRequest } from "../SignerRecovery.ts"
import type { VenueProfile } from "../VenueProfile.ts"
import * as SignedDigest from "./SignedDigest.ts"
import * as SignedView from "./SignedView.ts"
import type { Part, View } from "./SignedView.ts"

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
export const digestHex = toHex

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

type Examined = Omit<Subject, "view">

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
  readonly digestOf: SignedDigest.DigestOf
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
  Result.match(MsgPack.encode(action), {
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
    const key = digest === undefined ? undefined : toHex(digest)
    if (digest === undefined || key === undefined || seen.has(key)) return undefined
    seen.add(key)
    return { digest, mistakes, rank }
  }
  const searches = actions.map((action): Search => ({
    start: SignedView.right(profile, action, request),
    digestOf: SignedDigest.digester(part, request.action),
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
