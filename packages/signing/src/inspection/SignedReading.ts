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
import * as Signable from "../actions/Signable.ts"
import { type Hex, isAddress, toHex } from "../internal/bytes.ts"
import {
  addedNulls,
  chainIds,
  droppedMembers,
  keysAsSent,
  nullsDropped,
  signaturesAsSent,
  signaturesPadded,
  sortedKeys,
  swappedNeighbours,
  typeLast
} from "../internal/memberSlips.ts"
import {
  documentedHash,
  hashIn,
  lifetimes,
  nonces,
  nonceSlips,
  personal,
  withoutExpiryMarker,
  withoutVaultMarker,
  zeroAddress
} from "../internal/preimageSlips.ts"
import type { Subject, Vary } from "../internal/slip.ts"
import { isGiven, isUserSigned, leavesIn, ofText, rewriter, rewriting, sameHex, withContext } from "../internal/slip.ts"
import { chainSlips, domainSlips, fieldSets, fieldTypes, primaryTypes } from "../internal/typedDataSlips.ts"
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

/** A digest that may have been signed, and the mistakes that lead to it: at least one, told when it is asked for. */
export interface SignedReading {
  readonly mistakes: () => ReadonlyArray<Mistake>
  readonly digest: Hex
}

interface Variation {
  readonly mistake: SignatureMistake
  readonly vary: Vary
  /** Whether it is also tried together with others: only mistakes with few views are. */
  readonly pairs: boolean
}

const paired = (mistake: SignatureMistake, vary: Vary): Variation => ({ mistake, vary, pairs: true })

const alone = (mistake: SignatureMistake, vary: Vary): Variation => ({ mistake, vary, pairs: false })

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
  paired("fieldOrder", rewriting(keysAsSent, sortedKeys)),
  paired("nullDropped", rewriting(nullsDropped)),
  paired("typeHashed", ({ part, view }) =>
    view.wrapper === undefined || part === "inner" ? [] : [{
      view: SignedView.withRewrite(view, (value) => Predicate.isObject(value) ? { type: "multiSig", ...value } : value)
    }]),
  paired("notWrapped", ({ view }) => [{ view: { ...view, wrapped: false }, finding: { path: [] } }]),
  paired("documentedChainField", ({ view }) => [{
    view: SignedView.withProfile(view, { ...view.profile, chainField: documentedChainField }),
    finding: {
      path: [...SignedView.actionPath(view), view.profile.chainField],
      found: documentedChainField,
      expected: view.profile.chainField
    }
  }]),
  alone("trailingZero", spelling(decimalsIn, ...trailingZeros)),
  alone("valueType", spelling(decimalsIn, numberOf)),
  alone("valueType", spelling((view) => leavesIn(view, "integer", "id"), textOf)),
  alone("integerAsFloat", integersAsFloats),
  alone("letterCase", spelling(addressesIn, ofText(checksummed), ofText(upperCase))),
  alone("nullHashed", addedNulls),
  alone("timeUnit", nonces((nonce) => [nonce / 1000n, nonce * 1000n, nonce * 1_000_000n])),
  alone("hashSigned", ({ view }) => [{
    view: { ...view, digest: (signable) => toHex(hashIn(signable)) },
    finding: { path: [] }
  }]),
  alone("personalSign", ({ view }) => [
    { view: { ...view, digest: (signable) => personal(Signable.digestBytes(signable)) }, finding: { path: [] } },
    { view: { ...view, digest: (signable) => personal(hashIn(signable)) }, finding: { path: [] } }
  ]),
  alone("documentedPreimage", ({ view }) => [{ view: { ...view, hash: documentedHash }, finding: { path: [] } }]),
  // without a vault, the byte that is missing before an expiry may be either marker
  alone("vaultMarker", ({ view }) =>
    isGiven(view.context.expiresAfter) && !isGiven(view.context.vaultAddress)
      ? []
      : [{ view: { ...view, hash: withoutVaultMarker }, finding: { path: ["vaultAddress"] } }]),
  alone("expiresAfterMarker", ({ view }) =>
    isGiven(view.context.expiresAfter)
      ? [{ view: { ...view, hash: withoutExpiryMarker }, finding: { path: ["expiresAfter"] } }]
      : []),
  alone("otherChainId", chainSlips),
  alone(
    "otherDomain",
    domainSlips(
      ({ chainId, name }) =>
        ["HyperliquidSignTransaction", "Exchange"].flatMap((other) =>
          [Number(chainId), 421_614, 1337].map((id) => ({ name: other, chainId: id }))
        ).filter((domain) => domain.name !== name),
      ({ chainId, name }) => `${name}, chainId ${chainId}`,
      () => []
    )
  ),
  alone("primaryType", primaryTypes),
  alone("typeFields", fieldSets),
  alone("fieldType", fieldTypes),
  alone("otherScheme", ({ part, view }) =>
    isUserSigned(view) && (view.wrapper === undefined || part === "inner")
      ? [{ view: { ...view, asL1: true }, finding: { path: [] } }, {
        view: { ...SignedView.withRewrite(view, keysAsSent), asL1: true },
        finding: { path: [] }
      }]
      : []),
  alone("fieldOrder", rewriting(typeLast)),
  alone("fieldOrder", swappedNeighbours),
  alone("memberNotSigned", droppedMembers),
  alone("decimalText", spelling(decimalsIn, exponent, longExponent, ofText((text) => text.replace(/^0\./, ".")))),
  alone("jsonText", spelling((view) => leavesIn(view, "json"), jsonIn, spacedJson)),
  alone("unicodeForm", rewriting(normalized("NFC"), normalized("NFD"))),
  alone("roundedInteger", spelling((view) => leavesIn(view, "integer"), rounded)),
  alone("vaultNotSent", ({ known, view }) =>
    isGiven(view.context.vaultAddress)
      ? []
      : [...known, zeroAddress].map((vaultAddress) => ({
        view: withContext(view, { vaultAddress }),
        finding: { path: ["vaultAddress"], found: vaultAddress }
      }))),
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
  alone("roundedInteger", unrounded)
]

interface Step {
  readonly mistakes: () => ReadonlyArray<Mistake>
  readonly view: View
}

function* stepsFrom(step: Step, tried: ReadonlyArray<Variation>, subject: Omit<Subject, "view">): Generator<Step> {
  const { part, request } = subject
  for (const { mistake, vary } of tried) {
    for (const { finding, view } of vary({ ...subject, view: step.view })) {
      const found = () =>
        finding === undefined
          ? SignedView.mistakesBetween(mistake, view, step.view, part, request.action)
          : [{ mistake, ...finding }]
      yield { mistakes: () => [...step.mistakes(), ...found()], view }
    }
  }
}

/** Bytes that may be hashed in all: every reading hashes the whole action, and a caller chooses how large it is. */
const maxHashed = 512 * 1024

/** The largest action that is searched, in bytes as it is hashed; one reading of it takes some milliseconds. */
const maxSearched = 16 * 1024

const readingsOf = ({ action }: CanonicalAction): number =>
  Result.match(MsgPack.encode(action), {
    onFailure: () => 0,
    onSuccess: ({ length }) => length > maxSearched ? 0 : Math.floor(maxHashed / length)
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
  const start: Step = { mistakes: () => [], view: SignedView.right(profile, canonical, request) }
  const subject = { request, part, known }
  const seen = new Set([Result.getOrUndefined(SignedView.digestOf(start.view, part, request.action))])
  const telling = variations.filter(({ pairs }) => pairs)
  const inPairs = function*() {
    for (const [index, first] of telling.entries()) {
      for (const step of stepsFrom(start, [first], subject)) {
        yield* stepsFrom(step, telling.slice(index + 1), subject)
      }
    }
  }
  for (const steps of [stepsFrom(start, variations, subject), inPairs()]) {
    for (const { mistakes, view } of steps) {
      if (left-- <= 0) return
      const digest = Result.getOrUndefined(SignedView.digestOf(view, part, request.action))
      if (digest !== undefined && !seen.has(digest)) {
        seen.add(digest)
        yield { mistakes, digest }
      } else {
        yield undefined
      }
    }
  }
}
