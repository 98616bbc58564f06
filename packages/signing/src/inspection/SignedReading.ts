/**
 * Messages that a signer may have signed by mistake, instead of the message that belongs to a request.
 *
 * A wrong signature recovers to an address that nobody holds, which says nothing about the mistake. So each likely mistake
 * is made here on purpose. If the resulting digest recovers to the expected signer, the signer made that mistake.
 */
import type { Mistake, SignatureMistake } from "@trigate/domain/Inspection"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { CanonicalAction } from "../actions/CanonicalAction.ts"
import * as MsgPack from "../actions/MsgPack.ts"
import { isAddress, toHex } from "../internal/bytes.ts"
import {
  addedNulls,
  chainIds,
  droppedMembers,
  droppedPairs,
  keysAsSent,
  keysByLength,
  movedMembers,
  nullsDropped,
  permutedMembers,
  reversedKeys,
  signaturesAsSent,
  signaturesPadded,
  sortedInside,
  sortedKeys,
  sortedOutside,
  swappedNeighbours,
  typeLast
} from "../internal/memberSlips.ts"
import {
  arranged,
  byteOrders,
  documentedPreimage,
  hashIn,
  integerWidths,
  jsonEncodings,
  lifetimes,
  nonces,
  nonceSlips,
  otherHashes,
  plainMessages,
  preimageOrders,
  sizeWidths,
  textWidths,
  times,
  withoutExpiryMarker,
  withoutVaultMarker
} from "../internal/preimageSlips.ts"
import type { Slip, Subject, Vary } from "../internal/slip.ts"
import { isGiven, isUserSigned, leavesIn, ofText, rewriter, rewriting, sameHex, withContext } from "../internal/slip.ts"
import {
  agentSlips,
  chainSlips,
  domainSlips,
  fieldSets,
  fieldTypes,
  primaryTypes,
  typedActions
} from "../internal/typedDataSlips.ts"
import {
  addressesIn,
  checksummed,
  decimalsIn,
  exponent,
  integersAsFloats,
  jsonIn,
  longExponent,
  normalized,
  numberOf,
  rounded,
  spacedJson,
  spelling,
  textOf,
  trailingZeros,
  unrounded,
  upperCase
} from "../internal/valueSlips.ts"
import type { SignedRequest } from "../SignerRecovery.ts"
import { documentedChainField, otherThan, type VenueProfile } from "../VenueProfile.ts"
import * as SignedView from "./SignedView.ts"
import type { Part, View } from "./SignedView.ts"

/** A digest that may have been signed, and the mistakes that lead to it: at least one, made when it is asked for. */
export interface SignedReading {
  readonly mistakes: () => ReadonlyArray<Mistake>
  readonly digest: Uint8Array
  /** Whether it is likely enough to be tried with a signature that was spoilt itself. */
  readonly likely: boolean
  /** Whether pairs begin here: all single mistakes came before. */
  readonly isLast: boolean
}

/** A digest in 0x hex. */
export const hexOf = toHex

interface Variation {
  readonly mistake: SignatureMistake
  readonly vary: Vary
  /** How many of its views are also tried together with those of others. */
  readonly pairs: number
  /** How many of its views are tried before pairs are; the others after the likeliest pairs. */
  readonly early: number
}

const paired = (mistake: SignatureMistake, vary: Vary, pairs = 2, early = Infinity): Variation => ({
  mistake,
  vary,
  pairs,
  early
})

/** Some of the views, which are in pairs by themselves. */
const between = (vary: Vary, from: number, to = Infinity): Vary =>
  function*(subject) {
    let at = 0
    for (const found of vary(subject)) {
      if (at >= to) return
      if (at++ >= from) yield found
    }
  }

/** Rarely the only mistake, and never one of two. */
const alone = (mistake: SignatureMistake, vary: Vary, early = 0): Variation => ({ mistake, vary, pairs: 0, early })

const isWrapperOf = ({ part, view }: Subject): boolean => view.wrapper !== undefined && part === "outer"

const isWrapped = ({ part, view }: Subject): boolean => view.wrapper !== undefined && part === "inner"

/** Other parties than the wrapper's, whom a co-signer may have named: another leader, the account itself, both exchanged. */
const otherParties: Vary = function*(subject) {
  const { known, view } = subject
  const { wrapper } = view
  if (wrapper === undefined || !isWrapped(subject)) return
  const { multiSigUser, outerSigner } = wrapper.payload
  const named = (
    change: Partial<typeof wrapper.payload>,
    member: keyof typeof wrapper.payload,
    found: string
  ): Slip => ({
    view: { ...view, wrapper: { ...wrapper, payload: { ...wrapper.payload, ...change } } },
    finding: {
      path: ["action", "payload", member],
      found,
      expected: member === "action" ? "" : wrapper.payload[member]
    }
  })
  yield named({ multiSigUser: outerSigner, outerSigner: multiSigUser }, "outerSigner", multiSigUser)
  for (const other of [...known, multiSigUser]) {
    if (!isAddress(other)) continue
    if (other !== outerSigner) yield named({ outerSigner: other }, "outerSigner", other)
    if (other !== multiSigUser) yield named({ multiSigUser: other }, "multiSigUser", other)
  }
}

/** Most likely first. */
const variations: ReadonlyArray<Variation> = [
  paired("otherNetwork", ({ view }) => {
    const other = otherThan(view.profile)
    const finding = { path: [], found: other.name, expected: view.profile.name }
    const whole = { view: SignedView.withProfile(view, other), finding }
    // the leader alone may be wrong about the network
    return view.wrapper === undefined ? [whole] : [whole, { view: { ...view, profile: other }, finding }]
  }),
  paired("vaultNotSigned", ({ view }) =>
    isGiven(view.context.vaultAddress)
      ? [{
        view: withContext(view, { vaultAddress: null }),
        finding: { path: ["vaultAddress"], expected: view.context.vaultAddress }
      }]
      : []),
  paired("expiresAfterNotSigned", ({ view }) =>
    isGiven(view.context.expiresAfter)
      ? [{
        view: withContext(view, { expiresAfter: null }),
        finding: { path: ["expiresAfter"], expected: String(view.context.expiresAfter) }
      }]
      : []),
  paired("fieldOrder", rewriting(sortedKeys, keysAsSent)),
  paired("untrimmedSignature", rewriting(signaturesAsSent, signaturesPadded)),
  paired(
    "letterCase",
    rewriting(
      rewriter({ leaf: (value, sent) => sameHex(value, sent) && isAddress(value) ? sent : value }),
      rewriter({ leaf: (value) => isAddress(value) ? value.toLowerCase() : value })
    )
  ),
  paired(
    "chainIdText",
    // as whole bytes, in the second
    rewriting(chainIds((id) => id), chainIds((id) => id.length % 2 === 0 ? id : `0x0${id.slice(2)}`))
  ),
  paired("nullDropped", rewriting(nullsDropped)),
  paired("typeHashed", ({ part, view }) =>
    view.wrapper === undefined || part === "inner" ? [] : [{
      view: SignedView.withRewrite(view, (value) => Predicate.isObject(value) ? { type: "multiSig", ...value } : value)
    }]),
  paired("notWrapped", ({ view }) => [{ view: { ...view, wrapped: false }, finding: { path: [] } }]),
  // co-signers work at other times, and with nonces of their own
  paired(
    "otherNonce",
    (subject) =>
      nonces((nonce) => subject.part === "inner" ? [nonce, ...nonceSlips(nonce)] : [nonce, nonce + 1n, nonce - 1n])(
        subject
      ),
    1,
    4
  ),
  paired("documentedChainField", ({ view }) => [{
    view: SignedView.withProfile(view, { ...view.profile, chainField: documentedChainField }),
    finding: {
      path: [...SignedView.actionPath(view), view.profile.chainField],
      found: documentedChainField,
      expected: view.profile.chainField
    }
  }]),
  paired("trailingZero", spelling(decimalsIn, ...trailingZeros), 2),
  paired("valueType", spelling(decimalsIn, numberOf), 1),
  paired("valueType", spelling((view) => leavesIn(view, "integer", "id"), textOf), 1),
  paired("integerAsFloat", integersAsFloats),
  paired("otherChainId", between(chainSlips, 0, 1)),
  paired("otherChainId", between(chainSlips, 1, 2)),
  paired("otherChainId", between(chainSlips, 2), 3, 8),
  paired("letterCase", spelling(addressesIn, ofText(checksummed), ofText(upperCase)), 2),
  paired("timeUnit", times((nonce) => [nonce / 1000n, nonce * 1000n, nonce * 1_000_000n]), 1),
  paired("hashSigned", ({ view }) => [{
    view: { ...view, digest: (signable) => hashIn(signable) },
    finding: { path: [] }
  }], 1),
  paired("personalSign", plainMessages, 1, 2),
  paired(
    "documentedPreimage",
    ({ view }) => [{ view: { ...view, arrange: documentedPreimage }, finding: { path: [] } }],
    1
  ),
  // without a vault, the byte that is missing before an expiry may be either marker
  paired("vaultMarker", ({ view }) =>
    isGiven(view.context.expiresAfter) && !isGiven(view.context.vaultAddress)
      ? []
      : [{ view: { ...view, arrange: withoutVaultMarker }, finding: { path: ["vaultAddress"] } }]),
  paired("expiresAfterMarker", ({ view }) =>
    isGiven(view.context.expiresAfter)
      ? [{ view: { ...view, arrange: withoutExpiryMarker }, finding: { path: ["expiresAfter"] } }]
      : []),
  paired("integerWidth", integerWidths, 2),
  paired("textWidth", textWidths, 3),
  paired("sizeWidth", sizeWidths, 1),
  paired("otherDomain", domainSlips, 2, 12),
  paired("primaryType", primaryTypes, 1, 4),
  paired("sourceLetter", agentSlips, 1, 2),
  paired("otherScheme", (subject) => {
    const { view } = subject
    if (isWrapperOf(subject)) return [{ view: { ...view, asL1: true }, finding: { path: [], found: "an L1 action" } }]
    return isUserSigned(view)
      ? [{ view: { ...view, asL1: true }, finding: { path: [], found: "an L1 action" } }, {
        view: { ...SignedView.withRewrite(view, keysAsSent), asL1: true },
        finding: { path: [], found: "an L1 action" }
      }]
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
            : "the action for the account and the leader"
        }
      }], 1),
  paired("otherParties", otherParties, 1),
  paired("fieldOrder", rewriting(reversedKeys, typeLast, sortedInside, sortedOutside, keysByLength), 2),
  paired("byteOrder", arranged(byteOrders), 1, 2),
  paired("preimageOrder", arranged(preimageOrders), 3, 6),
  paired("otherHash", otherHashes, 2, 2),
  paired("otherEncoding", jsonEncodings, 1, 2),
  paired("typeFields", fieldSets, 4),
  paired("fieldType", fieldTypes, 4),
  paired("vaultNotSent", ({ known, view }) =>
    isGiven(view.context.vaultAddress)
      ? []
      : known.map((vaultAddress) => ({
        view: withContext(view, { vaultAddress }),
        finding: { path: ["vaultAddress"], found: vaultAddress }
      })), 1),
  paired("memberNotSigned", droppedMembers, 2, 6),
  alone("nullHashed", addedNulls, 2),
  alone("fieldOrder", swappedNeighbours),
  alone("decimalText", spelling(decimalsIn, exponent, longExponent, ofText((text) => text.replace(/^0\./, ".")))),
  alone("jsonText", spelling((view) => leavesIn(view, "json"), jsonIn, spacedJson)),
  alone("unicodeForm", rewriting(normalized("NFC"), normalized("NFD"))),
  alone("roundedInteger", spelling((view) => leavesIn(view, "integer"), rounded)),
  alone("expiresAfterNotSent", ({ request: { nonce }, view }) =>
    isGiven(view.context.expiresAfter)
      ? []
      : lifetimes.map((seconds) => {
        const expiresAfter = BigInt(nonce) + BigInt(seconds) * 1000n
        return {
          view: withContext(view, { expiresAfter }),
          finding: { path: ["expiresAfter"], found: String(expiresAfter) }
        }
      })),
  alone("otherNonce", nonces((nonce) => [nonce, ...nonceSlips(nonce)])),
  alone("otherScheme", typedActions),
  alone("memberNotSigned", droppedPairs),
  alone("fieldOrder", permutedMembers),
  alone("fieldOrder", movedMembers),
  alone("roundedInteger", unrounded)
]

interface Step {
  readonly mistakes: () => ReadonlyArray<Mistake>
  readonly view: View
  /** Whether it is the likeliest way to make its mistake. */
  readonly isFirst: boolean
}

type Examined = Omit<Subject, "view">

/** The views of one variation, from a place to another. */
function* stepsFrom(
  step: Step,
  { mistake, vary }: Variation,
  subject: Examined,
  from: number,
  to: number
): Generator<Step> {
  const { part, request } = subject
  let at = 0
  for (const { finding, view } of vary({ ...subject, view: step.view })) {
    if (at >= to) return
    if (at++ < from) continue
    const found = () =>
      finding === undefined
        ? SignedView.mistakesBetween(mistake, view, step.view, part, request.action)
        : [{ mistake, ...finding }]
    yield { isFirst: at === 1, mistakes: () => [...step.mistakes(), ...found()], view }
  }
}

function* early(start: Step, subject: Examined): Generator<Step> {
  for (const variation of variations) yield* stepsFrom(start, variation, subject, 0, variation.early)
}

function* late(start: Step, subject: Examined): Generator<Step> {
  for (const variation of variations) yield* stepsFrom(start, variation, subject, variation.early, Infinity)
}

/** Two mistakes at once, each in the way that has a rank of likelihood among those of its kind. */
const inPairs = (firstRank: number, secondRank: number) =>
  function*(start: Step, subject: Examined): Generator<Step> {
    for (const [at, first] of variations.entries()) {
      if (firstRank >= first.pairs) continue
      for (const step of stepsFrom(start, first, subject, firstRank, firstRank + 1)) {
        for (const [then, second] of variations.entries()) {
          if (then === at || secondRank >= second.pairs || (firstRank === secondRank && then < at)) continue
          yield* stepsFrom(step, second, subject, secondRank, secondRank + 1)
        }
      }
    }
  }

/** What is tried, in this order. */
const rounds = [early, inPairs(0, 0), late, inPairs(0, 1), inPairs(1, 1), inPairs(0, 2), inPairs(0, 3)]

/** Bytes that may be hashed in all: every reading hashes the whole action, and a caller chooses how large it is. */
const maxHashed = 512 * 1024

/** The largest action that is searched, in bytes as it is hashed; one reading of it takes some milliseconds. */
const maxSearched = 16 * 1024

/** Readings of a small action. */
const maxReadings = 1500

const readingsOf = ({ action }: CanonicalAction): number =>
  Result.match(MsgPack.encode(action), {
    onFailure: () => 0,
    onSuccess: ({ length }) => length > maxSearched ? 0 : Math.min(maxReadings, Math.floor(maxHashed / length))
  })

/**
 * The readings of a request, most likely first: every mistake alone, then some in pairs. Each digest comes once, and never
 * the right one. The larger the action, the fewer readings. A step without a new digest gives `undefined`: whoever reads can
 * let others run after each.
 *
 * `canonical` is the action in the venue's form; the action of `request` is the one that was sent, with its order of keys.
 * `known` are addresses that may have been signed as the vault: that of an API wallet's owner.
 */
export function* readings(
  profile: VenueProfile,
  canonical: CanonicalAction,
  request: SignedRequest,
  part: Part,
  known: ReadonlyArray<string>
): Generator<SignedReading | undefined> {
  let left = readingsOf(canonical)
  if (left === 0) return
  const start: Step = { isFirst: false, mistakes: () => [], view: SignedView.right(profile, canonical, request) }
  const subject = { request, part, known }
  const seen = new Set<string>()
  const digestOf = SignedView.digester(start.view, part, request.action)
  const right = Result.getOrUndefined(digestOf(start.view))
  if (right !== undefined) seen.add(toHex(right))
  for (const [round, steps] of rounds.entries()) {
    let isLast = round === 1
    for (const { isFirst, mistakes, view } of steps(start, subject)) {
      if (left-- <= 0) return
      const digest = Result.getOrUndefined(digestOf(view))
      const key = digest === undefined ? undefined : toHex(digest)
      if (digest !== undefined && key !== undefined && !seen.has(key)) {
        seen.add(key)
        yield { mistakes, digest, likely: round === 0 && isFirst, isLast }
        isLast = false
      } else {
        yield undefined
      }
    }
  }
}
