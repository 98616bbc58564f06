/** The table of signing mistakes and warnings: the meaning, detection, message and correction of each. */
import type { Mistake, SignatureMistake } from "@trigate/domain/unstable/Inspection"
import * as Predicate from "effect/Predicate"
import { chainIdFault } from "../actions/ActionForm.ts"
import { isAddress } from "../actions/ActionHash.ts"
import { otherThan, type VenueProfile } from "../VenueProfile.ts"

/**
 * A warning about one part of an action. `path` locates the part; `message` is one ASCII sentence with the correction.
 */
export interface SigningWarning {
  readonly kind: "mixedCaseAddress" | "chainIdText" | "untrimmedSignature" | "fieldOrder"
  readonly path: ReadonlyArray<string | number>
  readonly message: string
}

const otherNetworkAdvice =
  "SDKs for Python, Go, Rust and Java sign for testnet unless the base URL is their own mainnet constant: " +
  "see docs/guides/from-python-go-rust.md"

/** Returns a warning that a signature is not for the profile's network: one or two sentences of ASCII. */
export const ofNetwork = (profile: VenueProfile): string => {
  const { name } = otherThan(profile)
  const fact = `signed for ${name}; this gateway sends to ${profile.name}`
  return name === "mainnet" ? fact : `${fact}. ${otherNetworkAdvice}`
}

type Path = SigningWarning["path"]

interface Leaf {
  readonly path: Path
  readonly value: unknown
}

const maxDepth = 16

const leaves = (value: unknown, path: Path = []): ReadonlyArray<Leaf> => {
  if (!Predicate.isObjectOrArray(value) || path.length === maxDepth) return [{ path, value }]
  return Array.isArray(value)
    ? value.flatMap((item: unknown, index) => leaves(item, [...path, index]))
    : Object.entries(value).flatMap(([key, item]) => leaves(item, [...path, key]))
}

const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`

/** Escapes text for a message: leaves printable ASCII unchanged, and escapes every other UTF-16 unit as JSON does. */
export const printable = (text: string): string => text.replaceAll(/[^ -~]/g, escaped)

const maxSegments = 16
const maxSegment = 64

/** Formats a path with dots between its segments. Truncates long paths and long segments. */
export const pathText = (path: ReadonlyArray<string | number>): string =>
  path.slice(0, maxSegments).map((segment) => printable(String(segment).slice(0, maxSegment))).join(".")

const ofLeaf = ({ path, value }: Leaf): ReadonlyArray<SigningWarning> => {
  const where = pathText(path)
  const chainId = path.at(-1) === "signatureChainId" ? chainIdFault(value, true) : undefined
  if (chainId !== undefined) {
    const right = Predicate.isString(chainId.repaired) ? chainId.repaired : chainId.expected
    return [{
      kind: "chainIdText",
      path,
      message: `The chain ID at ${where} is signed as text, and this text is not canonical: sign and send ${right}`
    }]
  }
  if (!Predicate.isString(value)) return []
  if (isAddress(value) && value !== value.toLowerCase()) {
    const message = `The address at ${where} is in mixed case: sign and send it in lower case`
    return [{ kind: "mixedCaseAddress", path, message }]
  }
  if (path[0] === "signatures" && (path[2] === "r" || path[2] === "s") && /^0x0[0-9a-fA-F]/.test(value)) {
    const message =
      `The inner signature at ${where} has leading zeros: remove them before you sign the wrapper and send it`
    return [{ kind: "untrimmedSignature", path, message }]
  }
  return []
}

/** Returns warnings about the values in a sent action. */
export const ofValues = (action: unknown): ReadonlyArray<SigningWarning> => leaves(action).flatMap(ofLeaf)

const maxKeys = 16

/**
 * Returns a warning for each object of the sent action whose keys are in another order than in the canonical action.
 */
export const ofOrder = (sent: unknown, canonical: unknown, path: Path = []): ReadonlyArray<SigningWarning> => {
  if (!Predicate.isReadonlyObject(sent) || !Predicate.isReadonlyObject(canonical)) return []
  const keys = Object.keys(canonical)
  const found = Object.keys(sent).filter((key) => Object.hasOwn(canonical, key))
  const hashed = keys.filter((key) => Object.hasOwn(sent, key))
  const here: ReadonlyArray<SigningWarning> = found.every((key, index) => key === hashed[index]) ? [] : [{
    kind: "fieldOrder",
    path,
    message:
      `The fields of ${
        path.length === 0 ? "the action" : pathText(path)
      } must be in the order in which they are hashed: ` +
      hashed.slice(0, maxKeys).map((key) => printable(key.slice(0, 64))).join(", ")
  }]
  return here.concat(keys.flatMap((key) => ofOrder(sent[key], canonical[key], [...path, key])))
}

interface MistakeTexts {
  /** The location of the mistake, as text for a message. */
  readonly where: string
  readonly found: string
  readonly expected: string
  /** Whether `found` and `expected` are known. */
  readonly shown: boolean
}

/** The location of a mistake without a path. */
const whole = "the signature"

/** A text in which `{where}`, `{found}` and `{expected}` are replaced, or a function that makes the text. */
type Clause = string | ((texts: MistakeTexts, profile: VenueProfile) => string)

/** A kind of mistake. */
export interface Kind {
  /** A description of the mistake, for the documentation. */
  readonly made: string
  /**
   * How the mistake is detected.
   *
   * - `body`: from the body alone.
   * - `search`: by reproducing the message with the mistake, and comparing the recovered signer.
   * - `signature`: by repairing the numbers of the signature.
   * - `signers`: from the recovered signers.
   */
  readonly by: "body" | "search" | "signature" | "signers"
  /** Whether the venue recovers a wrong address because of the mistake. */
  readonly changesSigner: boolean
  /**
   * A clause that names the mistake and its correction; it can follow "but" or "and". It is in ASCII: `mistakeClause`
   * escapes the values that it inserts.
   */
  readonly clause: Clause
}

/** Describes the first member whose position differs from the venue's order. */
const outOfPlace = (found: string, expected: string): string => {
  const right = expected.split(", ")
  const signed = found.split(", ")
  const at = right.findIndex((name, index) => signed[index] !== name)
  return `"${signed[at] ?? ""}" is in the position of "${right[at] ?? ""}"`
}

const detected = (by: Kind["by"]) => (made: string, clause: Clause, changesSigner = true): Kind => ({
  made,
  by,
  changesSigner,
  clause
})

const inBody = detected("body")
const searched = detected("search")
const inSignature = detected("signature")
const ofSigners = detected("signers")

/** Every kind of mistake. */
export const kinds: { readonly [M in SignatureMistake]: Kind } = {
  wrappedBody: inBody(
    "the body is nested in another object, or is JSON inside a string",
    "the body is nested in {found}: send the object with action, nonce and signature itself",
    false
  ),
  trailingZero: inBody(
    "a decimal has redundant zeros",
    "{where} has a trailing zero: it reads {found} and has to be signed and sent as {expected}"
  ),
  decimalText: inBody(
    "a decimal has an exponent or a sign, or lacks its leading zero",
    "{where} is written as {found}: sign and send {expected}, as the venue hashes it"
  ),
  valueType: inBody(
    "a value has another JSON type: a number instead of a string, or a string instead of an integer or a flag",
    "{where} is {found}: sign and send {expected}"
  ),
  letterCase: inBody(
    "an address or a client order id is hashed in upper or mixed case",
    ({ expected, found, shown, where }) =>
      shown
        ? `${where} was hashed as text in another letter case, as ${found}: sign and send ${expected}`
        : "an address was hashed in another letter case than the venue's: sign and send addresses in lower case"
  ),
  integerAsFloat: searched(
    "an integer is encoded as a MessagePack double",
    "{where} was encoded as the double {found}: encode the integer {expected} as an integer"
  ),
  integerWidth: searched(
    "integers are encoded wider than needed, or with signed types",
    ({ found, where }) =>
      `${where === whole ? "integers were" : `${where} was`} encoded as ${found}: ` +
      "encode each integer in the smallest unsigned form of MessagePack that fits it"
  ),
  textWidth: searched(
    "text is encoded with a wider header, or as bytes",
    "text was encoded as {found}: encode it as MessagePack text with the shortest header (fixstr, then str8)"
  ),
  sizeWidth: searched(
    "maps and arrays are encoded with a wider header",
    "maps and arrays were encoded as {found}: use fixmap and fixarray up to 15 members"
  ),
  otherEncoding: searched(
    "JSON is hashed instead of MessagePack",
    "{found} was hashed: encode the action as MessagePack, then append nonce and vault, and hash the result"
  ),
  otherHash: searched(
    "a hash other than keccak-256 is used",
    "the action was hashed with {found}: the venue uses keccak-256 with the padding of Ethereum"
  ),
  roundedInteger: searched(
    "an integer above 2^53 was converted to a double",
    "{where} was converted to a double and signed as {found}: the body has {expected}, so keep all its digits"
  ),
  jsonText: searched(
    "JSON inside a string is serialized again after signing",
    "the JSON in {where} was serialized again after it was signed, as {found}: send the text that was signed, {expected}"
  ),
  unicodeForm: searched(
    "a name is signed in another Unicode form",
    "{where} was signed in another Unicode form, as {found}: sign and send the same characters, {expected}"
  ),
  fieldOrder: searched(
    "members are hashed in another order: as sent, sorted, reversed or shuffled",
    ({ expected, found, where }) =>
      `the members of ${where} were hashed in another order than the venue's: ${outOfPlace(found, expected)}; ` +
      `the order is ${expected}`
  ),
  nullDropped: searched(
    "a null that must be hashed is omitted",
    "{where} is null and was omitted from the signed data: the null is hashed, so keep it"
  ),
  nullHashed: searched(
    "an absent member is hashed as null",
    "{where} was hashed as null: omit the member from the signed data"
  ),
  falseHashed: searched(
    "a flag that is hashed only if it is true is hashed as false",
    "{where} was hashed as false: omit the member from the signed data unless it is true"
  ),
  memberNotSigned: searched(
    "one or two members are missing from the signed data",
    "{where} is missing from the signed data: sign it as {expected}"
  ),
  memberAdded: searched(
    "members of the body are hashed with the action",
    ({ found, where }) =>
      `${where === whole ? found : where} was hashed: ` +
      "hash the action alone, and append the body's nonce, vaultAddress and expiresAfter"
  ),
  otherType: searched(
    "the action is hashed with the type of another action, or with another spelling of its type",
    "{where} was hashed as {found}: sign it as {expected}"
  ),
  missingMember: inBody(
    "a member is missing",
    "{where} is missing: send {expected}, and sign it",
    false
  ),
  misplacedMember: inBody(
    "a member is one level too deep or too high, or has another name",
    "{where} is not where the venue reads it: move it to {expected}, and sign the changed action"
  ),
  wrongShape: inBody(
    "a value has another shape: text instead of an object, or an object instead of a list",
    "{where} is {found}: sign and send {expected}"
  ),
  emptyList: inBody(
    "a list is empty",
    "{where} is an empty list, which the venue refuses: send {expected}",
    false
  ),
  unsortedList: inBody(
    "a list of pairs is not sorted by its keys",
    "{where} is in the order {found}: sign and send it sorted by key, as {expected}"
  ),
  unknownWord: inBody(
    "a value is not one of the words that the member allows",
    "{where} is {found}, which the venue does not know: sign and send {expected}"
  ),
  unknownType: inBody(
    "the type of the action is unknown, but resembles a known type",
    "{where} is {found}, which the venue does not know: sign and send {expected}"
  ),
  unacceptedValue: inBody(
    "a value has the right type, but is outside of its valid range",
    "{where} is {found}: sign and send {expected}"
  ),
  documentedForm: inBody(
    "the action has a form that appears only in the venue's documentation",
    "{where} is a form that appears only in the documentation: the venue accepts {expected} instead of {found}",
    false
  ),
  otherNetwork: searched(
    "the action is signed for the other network",
    (_told, profile) => `it is ${ofNetwork(profile)}`
  ),
  vaultNotSigned: searched(
    "vaultAddress is sent and not signed",
    "the body's vaultAddress is missing from the signed data: sign it too"
  ),
  vaultNotSent: searched(
    "vaultAddress is signed and not sent, or another one is sent",
    ({ expected, found, shown }) =>
      expected === "none"
        ? `${found}, the account's own address, was signed as vaultAddress: sign without vaultAddress`
        : shown
        ? `vaultAddress ${found} was signed, but the body has ${expected}: sign and send the same address`
        : `vaultAddress ${found} was signed, but is missing from the body: send it too`
  ),
  vaultMarker: searched(
    "the marker byte of the vault is missing",
    "the marker byte before the vaultAddress is missing from the hashed bytes: 1 before an address, 0 for none"
  ),
  ownVault: inBody(
    "vaultAddress is the signer's own address",
    "vaultAddress is {found}, the account itself: omit vaultAddress, also from the signed data"
  ),
  expiresAfterNotSigned: searched(
    "expiresAfter is sent and not signed",
    "the body's expiresAfter is missing from the signed data: sign it too"
  ),
  expiresAfterNotSent: searched(
    "expiresAfter is signed and not sent, or another one is sent",
    ({ expected, found, shown }) =>
      shown
        ? `expiresAfter ${found} was signed, but the body has ${expected}: sign and send the same time`
        : `expiresAfter ${found} was signed, but is missing from the body: send it too`
  ),
  expiresAfterMarker: searched(
    "the marker byte of expiresAfter is missing",
    "the marker byte 0 before the expiresAfter is missing from the hashed bytes"
  ),
  timeUnit: inBody(
    "a time is not in milliseconds",
    "{where} is {found}, which is not in milliseconds: sign and send {expected}",
    false
  ),
  otherNonce: searched(
    "the nonces of the body, of the action and of the signed data differ",
    ({ expected, found, where }) =>
      where === whole
        ? `another nonce was signed, ${found}: sign again with the nonce of the body, ${expected}`
        : `the nonces differ: ${where} is ${found}, but everything signed and sent must have ${expected}`
  ),
  documentedPreimage: searched(
    "the hash is built as in a published code sample",
    "the hash was built as in a published code sample, vault before nonce and without markers: append the nonce " +
      "(8 bytes, big-endian), then the vault's marker and address"
  ),
  preimageOrder: searched(
    "action, nonce, vault and expiry are hashed in another order, or one of them is omitted",
    "the hashed bytes were concatenated as {found}: " +
      "the order is action, nonce, vault (0, or 1 and its 20 bytes) and, if set, expiresAfter (0 and its 8 bytes)"
  ),
  byteOrder: searched(
    "the nonce or expiry is hashed in another byte order or width",
    "{found} was hashed: write nonce and expiry as 8 bytes each, big-endian, and a vault as its 20 bytes"
  ),
  otherChainId: searched(
    "the action is signed in the domain of another chain",
    "it is signed with another chain id, {found}, most likely that of the network to which the wallet is " +
      "connected: sign with {expected}"
  ),
  otherDomain: searched(
    "the domain has another name, version or contract",
    "it is signed in another EIP-712 domain ({found}): the venue's domain is {expected}"
  ),
  sourceLetter: searched(
    "the agent's source or the network's name is not the venue's",
    "it was signed with {found}: sign it with {expected}"
  ),
  primaryType: searched(
    "the typed data have another primary type",
    "the primary type was {found}: it has to be {expected}"
  ),
  typeFields: searched(
    "the typed data have other fields, or another order of them",
    "the typed data had the fields {found}: they have to be {expected}"
  ),
  fieldType: searched(
    "a field of the typed data has another type",
    "a field of the typed data was declared as {found}: it has to be {expected}"
  ),
  otherScheme: searched(
    "a user-signed action is signed as an L1 action, or the reverse",
    ({ expected, found, shown }) =>
      shown
        ? `the action was signed as ${found}: sign it as ${expected}`
        : `the action was hashed and signed as ${found}: sign its fields as typed data`
  ),
  olderTypedData: searched(
    "the typed data are those of an SDK of before May 2024",
    "it is signed as SDKs of before May 2024 did, as {found}: sign {expected}"
  ),
  absentSigned: searched(
    "an absent value is signed as text (null, None, undefined), or an absent text as another",
    ({ expected, found, shown, where }) =>
      `${where} has no value, and was signed as ${found}: ${shown ? `sign it as ${expected}` : "omit it"}`
  ),
  documentedChainField: searched(
    "the chain field is signed under the name that the documentation uses",
    "the chain field was signed as venueChain, its name in the documentation: sign it as hyperliquidChain"
  ),
  untrimmedSignature: searched(
    "a co-signer's r or s is hashed with leading zeros",
    "r or s of a co-signer's signature was hashed with leading zeros: hash and send r and s without leading zeros"
  ),
  chainIdText: inBody(
    "signatureChainId is a number, decimal text, or has leading zeros",
    ({ expected, found, shown, where }) =>
      shown
        ? `${where} is ${found}: sign and send ${expected}`
        : "signatureChainId was hashed with leading zeros: sign and send it without leading zeros"
  ),
  typeHashed: searched(
    "a wrapper is hashed with its type",
    "the wrapper was hashed with its type: hash it without the type"
  ),
  notWrapped: searched(
    "a co-signer signs the bare action",
    "the co-signer signed the bare action, without the multi-sig account and the leader: sign it with both addresses"
  ),
  otherParties: searched(
    "a co-signer signs for another multi-sig account or leader",
    "the co-signer signed for another account or leader: {where} was {found}, but has to be {expected}"
  ),
  otherPart: searched(
    "the leader signs the message for co-signers, or the reverse",
    "{found} was signed: sign {expected}"
  ),
  otherLeader: ofSigners(
    "the outer signature is not outerSigner's",
    "the wrapper is signed by {found} and names {expected} as outerSigner: sign the wrapper with that key, or set " +
      "outerSigner to the signing key and let all co-signers sign again"
  ),
  repeatedCosigner: ofSigners(
    "a co-signer signs twice",
    "{where} is the second signature of {found}: a co-signer counts once, so omit it"
  ),
  hashSigned: searched(
    "the hash is signed without typed data",
    "{found} was signed without typed data: sign typed data (eth_signTypedData_v4)"
  ),
  personalSign: searched(
    "the action's JSON, or a hash of the action, is signed as a plain message",
    "{found} was signed as a plain message (personal_sign): sign typed data (eth_signTypedData_v4)"
  ),
  otherRecoveryBit: inSignature(
    "v selects the wrong one of two possible keys",
    "v selects the wrong one of two possible keys: swap 27 and 28"
  ),
  recoveryBitForm: inSignature(
    "v is 0 or 1",
    "{where} is {found}: send {expected}",
    false
  ),
  swappedHalves: inSignature("r and s are swapped", "r and s are swapped: swap them back"),
  shiftedHalves: inSignature(
    "a signature without its leading zero is split after 64 digits",
    "r lost a leading zero when the signature was split into halves: print r and s with 64 digits each before splitting"
  ),
  otherKey: ofSigners(
    "another key signed",
    "it is by {found}: sign with the key of {expected}"
  ),
  refused: ofSigners(
    "the gateway refuses the request for a reason other than a signing mistake",
    "POST /exchange refuses it: {found}"
  )
}

const quotedPath = (path: Mistake["path"]): string => path.length === 0 ? whole : pathText(path)

/** Returns the mistake and its correction as one clause. */
export const mistakeClause = (profile: VenueProfile, { expected, found, mistake, path }: Mistake): string => {
  const { clause } = kinds[mistake]
  const texts = {
    where: quotedPath(path),
    found: printable(found ?? "nothing"),
    expected: printable(expected ?? "nothing"),
    shown: found !== undefined && expected !== undefined
  }
  return typeof clause === "string"
    ? clause
      .replaceAll(
        /\{where\}|\{found\}|\{expected\}/g,
        (name) => name === "{where}" ? texts.where : name === "{found}" ? texts.found : texts.expected
      )
    : clause(texts, profile)
}

/** Returns whether the venue recovers a wrong address because of the mistake. */
export const changesSigner = ({ mistake }: Mistake): boolean => kinds[mistake].changesSigner
