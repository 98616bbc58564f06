/**
 * Warns about parts of an action that the venue converts to a different format before it hashes them. Without the
 * warning, a signer could sign the parts as sent, and the signature would recover to an unrelated address.
 */
import * as Predicate from "effect/Predicate"
import { chainIdFault } from "../actions/ActionValues.ts"
import { isAddress } from "../internal/bytes.ts"
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
