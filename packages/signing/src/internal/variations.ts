/**
 * The variations of signing mistakes. A variation has the name of its mistake, and the forms of the mistake ordered by
 * likelihood.
 */
import type { SignatureMistake } from "@trigate/domain/Inspection"
import * as Predicate from "effect/Predicate"
import * as SignedView from "../inspection/SignedView.ts"
import { documentedChainField, otherThan } from "../VenueProfile.ts"
import { isAddress } from "./bytes.ts"
import { chainMistakes, domainMistakes } from "./domainMistakes.ts"
import {
  absentMembers,
  addedFalses,
  addedNulls,
  bodyMembers,
  bodyNulls,
  chainIds,
  droppedMembers,
  droppedNulls,
  droppedPairs,
  keysAsSent,
  keysByLength,
  movedMembers,
  otherTypes,
  permutedMembers,
  reversedKeys,
  signaturesAsSent,
  signaturesPadded,
  sortedInside,
  sortedKeys,
  sortedOutside,
  swappedNeighbours,
  typeLast,
  unsortedLists
} from "./memberMistakes.ts"
import type { MistakenView, Subject, Vary } from "./mistake.ts"
import { isGiven, isUserSigned, leavesIn, ofText, rewriter, rewriting, sameHex, withContext } from "./mistake.ts"
import {
  arranged,
  byteOrders,
  documentedPreimage,
  hashIn,
  jsonEncodings,
  jsonHashes,
  jsonMessages,
  nonceMistakes,
  nonces,
  otherExpiries,
  otherHashes,
  otherReadings,
  plainMessages,
  preimageOrders,
  sizeWidths,
  textWidths,
  times,
  withoutExpiryMarker,
  withoutVaultMarker
} from "./preimageMistakes.ts"
import {
  absentFields,
  amountTypesSigned,
  fieldSets,
  fieldTypes,
  networkNames,
  olderTypedData,
  otherActionTypes,
  primaryTypes,
  typedActions
} from "./typedDataMistakes.ts"
import {
  addressesIn,
  checksummed,
  decimalsIn,
  exponent,
  integersAsFloats,
  integerWidths,
  jsonIn,
  longExponent,
  normalized,
  rounded,
  spacedJson,
  spelling,
  toNumber,
  toText,
  trailingZeros,
  unrounded,
  upperCase
} from "./valueMistakes.ts"

/** A signing mistake and the forms in which it occurs. */
export interface Variation {
  readonly mistake: SignatureMistake
  readonly vary: Vary
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

const paired = (mistake: SignatureMistake, vary: Vary, pairs = 2, early = Infinity): Variation => ({
  mistake,
  vary,
  pairs,
  early,
  isSeldomPaired: false
})

/** Makes a variation for a mistake that is often the only mistake, and rarely combined with another one. */
const seldomPaired = (mistake: SignatureMistake, vary: Vary, pairs = 2, early = Infinity): Variation => ({
  ...paired(mistake, vary, pairs, early),
  isSeldomPaired: true
})

/**
 * Limits a generator of signing hypotheses (`vary`) to a range of its results. The range can then be a variation that
 * has its own rank in pairs.
 */
const between = (vary: Vary, from: number, to = Infinity): Vary =>
  function*(subject) {
    let at = 0
    for (const found of vary(subject)) {
      if (at >= to) return
      if (at++ >= from) yield found
    }
  }

/** Makes a variation for an unlikely mistake. The search does not combine it with other mistakes. */
const alone = (mistake: SignatureMistake, vary: Vary, early = 0): Variation => paired(mistake, vary, 0, early)

const isOuterPart = ({ part, view }: Subject): boolean => view.wrapper !== undefined && part === "outer"

const isWrapped = ({ part, view }: Subject): boolean => view.wrapper !== undefined && part === "inner"

/**
 * Generates signing hypotheses in which the inner signatures name another leader or account than the wrapper does, or
 * the same two in exchanged roles.
 */
const otherParties: Vary = function*(subject) {
  const { known, view } = subject
  const { wrapper } = view
  if (wrapper === undefined || !isWrapped(subject)) return
  const { multiSigUser, outerSigner } = wrapper.payload
  const named = (
    change: Partial<typeof wrapper.payload>,
    member: keyof typeof wrapper.payload,
    found: string
  ): MistakenView => ({
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

/** All variations, most likely first. */
export const variations: ReadonlyArray<Variation> = [
  paired("otherNetwork", ({ view }) => {
    const other = otherThan(view.profile)
    const finding = { path: [], found: other.name, expected: view.profile.name }
    const whole = { view: SignedView.withProfile(view, other), finding }
    // possibly only the leader has the wrong network
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
  seldomPaired(
    "chainIdText",
    // the second variant pads the ID to an even number of digits
    rewriting(chainIds((id) => id), chainIds((id) => id.length % 2 === 0 ? id : `0x0${id.slice(2)}`))
  ),
  seldomPaired("nullDropped", droppedNulls),
  paired("typeHashed", ({ part, view }) =>
    view.wrapper === undefined || part === "inner" ? [] : [{
      view: SignedView.withRewrite(view, (value) => Predicate.isObject(value) ? { type: "multiSig", ...value } : value)
    }]),
  paired("notWrapped", ({ view }) => [{ view: { ...view, wrapped: false }, finding: { path: [] } }]),
  // co-signers do not sign at the same time as the leader, and can use their own time as the nonce
  seldomPaired(
    "otherNonce",
    (subject) =>
      nonces((nonce) => subject.part === "inner" ? [nonce, ...nonceMistakes(nonce)] : [nonce, nonce + 1n, nonce - 1n])(
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
  paired("trailingZero", spelling(decimalsIn, ...trailingZeros), 2),
  paired("valueType", spelling(decimalsIn, toNumber), 1),
  paired("valueType", spelling((view) => leavesIn(view, "integer", "id"), toText), 1),
  seldomPaired("integerAsFloat", integersAsFloats),
  paired("otherChainId", between(chainMistakes, 0, 1)),
  paired("otherChainId", between(chainMistakes, 1, 2)),
  seldomPaired("otherChainId", between(chainMistakes, 2), 6, 8),
  paired("letterCase", spelling(addressesIn, ofText(checksummed), ofText(upperCase)), 2),
  paired("timeUnit", times((nonce) => [nonce / 1000n, nonce * 1000n, nonce * 1_000_000n]), 1),
  seldomPaired("hashSigned", ({ view }) => [{
    view: { ...view, digest: (signable) => hashIn(signable) },
    finding: { path: [], found: "the hash of the action" }
  }], 1),
  paired("personalSign", plainMessages, 1, 2),
  seldomPaired(
    "documentedPreimage",
    ({ view }) => [{ view: { ...view, arrange: documentedPreimage }, finding: { path: [] } }],
    1
  ),
  // without a vault, the one missing byte could be the marker of the vault or of the expiry
  seldomPaired("vaultMarker", ({ view }) =>
    isGiven(view.context.expiresAfter) && !isGiven(view.context.vaultAddress)
      ? []
      : [{ view: { ...view, arrange: withoutVaultMarker }, finding: { path: ["vaultAddress"] } }]),
  seldomPaired("expiresAfterMarker", ({ view }) =>
    isGiven(view.context.expiresAfter)
      ? [{ view: { ...view, arrange: withoutExpiryMarker }, finding: { path: ["expiresAfter"] } }]
      : []),
  paired("integerWidth", integerWidths, 3, 8),
  paired("textWidth", textWidths, 3),
  paired("sizeWidth", sizeWidths, 1),
  paired("otherDomain", domainMistakes, 4, 12),
  paired("primaryType", primaryTypes, 3, 4),
  paired("sourceLetter", networkNames, 2, 2),
  seldomPaired("otherScheme", (subject) => {
    const { view } = subject
    if (isOuterPart(subject)) return [{ view: { ...view, asL1: true }, finding: { path: [], found: "an L1 action" } }]
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
            : "the action with the addresses of the account and the leader"
        }
      }], 1),
  paired("otherParties", otherParties, 1),
  paired("fieldOrder", rewriting(reversedKeys, typeLast, sortedInside, sortedOutside, keysByLength), 5),
  paired("byteOrder", arranged(byteOrders), 3, 4),
  paired("preimageOrder", arranged(preimageOrders), 6, 8),
  paired("otherHash", otherHashes, 2, 2),
  paired("otherEncoding", jsonEncodings, 2, 4),
  paired("typeFields", fieldSets, 4),
  paired("fieldType", fieldTypes, 4),
  seldomPaired("vaultNotSent", ({ known, view }) => {
    const sent = view.context.vaultAddress?.toLowerCase()
    return known.filter((each) => each !== sent).map((vaultAddress, index) => ({
      view: withContext(view, { vaultAddress }),
      finding: {
        path: ["vaultAddress"],
        found: vaultAddress,
        // index 0 is the expected signer, whose own address is not a vault
        ...(sent !== undefined ? { expected: sent } : index === 0 ? { expected: "none" } : {})
      }
    }))
  }, 1),
  paired("memberNotSigned", droppedMembers, 2, 6),
  alone("nullHashed", addedNulls, 2),
  alone("falseHashed", addedFalses, 2),
  alone("unsortedList", unsortedLists, 2),
  alone("fieldOrder", swappedNeighbours),
  alone("decimalText", spelling(decimalsIn, exponent, longExponent, ofText((text) => text.replace(/^0\./, ".")))),
  alone("jsonText", spelling((view) => leavesIn(view, "json"), jsonIn, spacedJson)),
  alone("unicodeForm", rewriting(normalized("NFC"), normalized("NFD"))),
  alone("roundedInteger", spelling((view) => leavesIn(view, "integer"), rounded)),
  alone("expiresAfterNotSent", otherExpiries),
  alone("personalSign", jsonMessages, 4),
  alone("primaryType", otherActionTypes),
  alone("olderTypedData", olderTypedData),
  alone("fieldType", amountTypesSigned),
  alone("absentSigned", absentFields),
  alone("absentSigned", absentMembers),
  alone("nullHashed", bodyNulls),
  alone("memberAdded", bodyMembers),
  alone("otherType", otherTypes),
  alone("hashSigned", jsonHashes),
  alone("otherNonce", nonces((nonce) => [nonce, ...nonceMistakes(nonce)])),
  alone("otherScheme", typedActions),
  alone("memberNotSigned", droppedPairs),
  alone("fieldOrder", permutedMembers),
  alone("fieldOrder", movedMembers),
  alone("roundedInteger", unrounded),
  alone("otherNonce", nonces(otherReadings))
]
