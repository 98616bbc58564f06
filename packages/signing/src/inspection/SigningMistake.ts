/** What each mistake means and how it is mended: one clause, made of the mistake's data. */
import type { Mistake, SignatureMistake } from "@trigate/domain/Inspection"
import type { VenueProfile } from "../VenueProfile.ts"
import * as SigningCaution from "./SigningCaution.ts"

interface Told {
  /** Where it is, for a sentence. */
  readonly where: string
  readonly found: string
  readonly expected: string
}

type Clause = string | ((told: Told, profile: VenueProfile) => string)

/** The first of the members that stands at another place than in the venue's order. */
const outOfPlace = (found: string, expected: string): string => {
  const right = expected.split(", ")
  const signed = found.split(", ")
  const at = right.findIndex((name, index) => signed[index] !== name)
  return `"${signed[at] ?? ""}" stands where "${right[at] ?? ""}" has to`
}

/** Each clause follows "but" or "and", and is ASCII as long as the mistake's data are. */
const clauses: { readonly [M in SignatureMistake]: Clause } = {
  trailingZero: ({ expected, found, where }) =>
    `${where} has a trailing zero: it reads ${found} and has to be signed and sent as ${expected}`,
  decimalText: ({ expected, found, where }) =>
    `${where} is printed as ${found}: the venue hashes ${expected}, so sign and send that`,
  valueType: ({ expected, found, where }) => `${where} is ${found} and has to be ${expected}, signed and sent alike`,
  letterCase: ({ expected, found, where }) =>
    `${where} was hashed as text in another letter case, as ${found}: sign and send ${expected}`,
  integerAsFloat: ({ expected, found, where }) =>
    `${where} was encoded as the double ${found}: encode the integer ${expected} as an integer`,
  roundedInteger: ({ expected, found, where }) =>
    `${where} went through a double and was signed as ${found}: the body has ${expected}, so keep all its digits`,
  jsonText: ({ expected, found, where }) =>
    `the JSON in ${where} was printed again after it was signed, as ${found}: send the text that was signed, ${expected}`,
  unicodeForm: ({ expected, found, where }) =>
    `${where} was signed in another Unicode form, as ${found}: sign and send the same characters, ${expected}`,
  fieldOrder: ({ expected, found, where }) =>
    `the members of ${where} were hashed in another order than the venue's: ${outOfPlace(found, expected)}; ` +
    `the order is ${expected}`,
  nullDropped: ({ where }) => `${where} is null and was left out of what was signed: the null is hashed, so keep it`,
  nullHashed: ({ where }) => `${where} was hashed as null: leave the member out of what is signed`,
  memberNotSigned: ({ expected, where }) => `${where} was left out of what was signed: sign it as ${expected}`,
  missingMember: ({ expected, where }) => `${where} is missing: send ${expected}, and sign it`,
  unknownMember: ({ expected, where }) =>
    `${where} is no member that the venue's libraries send there: they send ${expected}`,
  documentedForm: ({ expected, found, where }) =>
    `${where} is a form that only documents show: the venue takes ${expected} instead of ${found}`,
  otherNetwork: (_told, profile) => `it is ${SigningCaution.ofNetwork(profile)}`,
  vaultNotSigned: "the body's vaultAddress was left out of what was signed: sign it too",
  vaultNotSent: ({ found }) => `a vaultAddress was signed that the body does not have, ${found}: send it too`,
  vaultMarker: "the marker byte before the vaultAddress is missing in what was hashed: 1 before an address, 0 for none",
  expiresAfterNotSigned: "the body's expiresAfter was left out of what was signed: sign it too",
  expiresAfterNotSent: ({ found }) => `an expiresAfter was signed that the body does not have, ${found}: send it too`,
  expiresAfterMarker: "the marker byte 0 before the expiresAfter is missing in what was hashed",
  timeUnit: ({ expected, found, where }) =>
    `${where} is in another unit than milliseconds, ${found}: sign and send milliseconds, ${expected}`,
  otherNonce: ({ expected, found, where }) =>
    `another nonce was signed than the body's: ${where} is ${expected}, and ${found} was signed`,
  documentedPreimage: "the hash was built as a published sample shows it: vault before nonce, without markers",
  otherChainId: ({ expected, found }) =>
    `it is signed under another chain id than the action's, ${found}: sign under ${expected}`,
  otherDomain: ({ expected, found }) => `it is signed in another domain, ${found}: the venue's is ${expected}`,
  primaryType: ({ expected, found }) => `the primary type was ${found}: it has to be ${expected}`,
  typeFields: ({ expected, found }) => `the typed data had the fields ${found}: they have to be ${expected}`,
  fieldType: ({ expected, found }) => `a field of the typed data was declared as ${found}: it has to be ${expected}`,
  otherScheme: "the action was hashed and signed as an L1 action: sign its fields as typed data",
  documentedChainField: "the chain field was signed under the documents' name venueChain: sign hyperliquidChain",
  untrimmedSignature: "inner signatures were hashed with leading zeros: hash them without",
  chainIdText: "signatureChainId was hashed in another spelling: sign and send it without leading zeros",
  typeHashed: "the wrapper was hashed with its type: hash it without",
  notWrapped: "the co-signer signed the bare action, without the multi-sig account and the leader",
  hashSigned: "the hash of the action was signed itself: put it into the typed data and sign that",
  personalSign: "the digest was signed as a plain message instead of as typed data",
  otherRecoveryBit: "its v names the other of two keys: exchange 27 and 28",
  recoveryBitForm: ({ expected, found, where }) => `${where} is ${found}: send ${expected}`,
  swappedHalves: "r and s have changed places: exchange them",
  shiftedHalves:
    "r had lost a leading zero when the signature was cut into halves: print both with 64 digits before you cut",
  otherKey: ({ expected, found }) => `it is by ${found}: sign with the key of ${expected}`
}

const quotedPath = (path: Mistake["path"]): string =>
  path.length === 0 ? "the signature" : SigningCaution.pathText(path)

/** The mistake and its repair in one clause. */
export const clauseOf = (profile: VenueProfile, { expected, found, mistake, path }: Mistake): string => {
  const clause = clauses[mistake]
  return typeof clause === "string" ? clause : clause({
    where: quotedPath(path),
    found: SigningCaution.printable(found ?? "nothing"),
    expected: SigningCaution.printable(expected ?? "nothing")
  }, profile)
}

/** Mistakes for which the venue does not blame the signature, or which do not change it. */
const besideTheSignature: ReadonlySet<SignatureMistake> = new Set([
  "missingMember",
  "unknownMember",
  "documentedForm",
  "timeUnit",
  "recoveryBitForm"
])

/** Whether the venue recovers another signer because of the mistake. */
export const changesSigner = ({ mistake }: Mistake): boolean => !besideTheSignature.has(mistake)
