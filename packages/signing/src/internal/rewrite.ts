/** Changes to a parsed JSON value before it is hashed, as a signer with other habits would have made them. */
import * as Predicate from "effect/Predicate"
import { chainIdText } from "../SigningCaution.ts"
import { isAddress } from "./bytes.ts"

/** `sent` is the counterpart of the value in the body as it came. */
export type Rewrite = (value: unknown, sent: unknown) => unknown

type Leaf = (value: unknown, sent: unknown, key: string) => unknown

const memberOf = (value: unknown, key: string | number): unknown =>
  Predicate.isObjectOrArray(value) && Object.hasOwn(value, key) && Predicate.hasProperty(value, key)
    ? value[key]
    : undefined

const mapLeaves = (leaf: Leaf) => {
  const walk = (value: unknown, sent: unknown, key: string): unknown => {
    if (Array.isArray(value)) {
      return value.map((item: unknown, index) => walk(item, memberOf(sent, index), key))
    }
    return Predicate.isObject(value)
      ? Object.fromEntries(Object.entries(value).map(([name, item]) => [name, walk(item, memberOf(sent, name), name)]))
      : leaf(value, sent, key)
  }
  return (value: unknown, sent: unknown): unknown => walk(value, sent, "")
}

const sameHex = (a: unknown, b: unknown): boolean =>
  Predicate.isString(a) && Predicate.isString(b) && /^0x[0-9a-fA-F]+$/.test(a) && /^0x[0-9a-fA-F]+$/.test(b) &&
  chainIdText(a) === chainIdText(b)

const isScalar = (key: string): boolean => key === "r" || key === "s"

/** Addresses in the letter case in which they were sent. */
export const addressesAsSent: Rewrite = mapLeaves((value, sent) => isAddress(value) && isAddress(sent) ? sent : value)

/** Addresses in lower case. */
export const addressesLowered: Rewrite = mapLeaves((value) => isAddress(value) ? value.toLowerCase() : value)

/** Halves of inner signatures with the leading zeros that they were sent with. */
export const signaturesAsSent: Rewrite = mapLeaves((value, sent, key) =>
  isScalar(key) && sameHex(value, sent) ? sent : value
)

/** Halves of inner signatures at full length. */
export const signaturesPadded: Rewrite = mapLeaves((value, _sent, key) =>
  isScalar(key) && Predicate.isString(value) && /^0x[0-9a-f]{1,64}$/.test(value)
    ? `0x${value.slice(2).padStart(64, "0")}`
    : value
)

/** Chain ids without leading zeros, in lower case. */
export const chainIdsTrimmed: Rewrite = mapLeaves((value, _sent, key) =>
  key === "signatureChainId" && Predicate.isString(value) ? chainIdText(value) : value
)

/** Chain ids as whole bytes. */
export const chainIdsPadded: Rewrite = mapLeaves((value, _sent, key) => {
  if (key !== "signatureChainId" || !Predicate.isString(value)) return value
  const digits = chainIdText(value).slice(2)
  return `0x${digits.padStart(digits.length + digits.length % 2, "0")}`
})

/** Members in the order in which they were sent. */
export const keysAsSent: Rewrite = (value, sent) => {
  if (Array.isArray(value)) return value.map((item: unknown, index) => keysAsSent(item, memberOf(sent, index)))
  if (!Predicate.isObject(value) || !Predicate.isObject(sent)) return value
  const members = new Map(Object.entries(value))
  const order = [...new Set([...Object.keys(sent).filter((key) => members.has(key)), ...members.keys()])]
  return Object.fromEntries(order.map((key) => [key, keysAsSent(members.get(key), memberOf(sent, key))]))
}

const mapMembers = (
  change: (members: ReadonlyArray<readonly [string, unknown]>) => ReadonlyArray<readonly [string, unknown]>
): Rewrite => {
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk)
    return Predicate.isObject(value)
      ? Object.fromEntries(change(Object.entries(value)).map(([key, item]) => [key, walk(item)]))
      : value
  }
  return walk
}

/** Members in alphabetical order, as serializers with sorted maps print them. */
export const keysSorted: Rewrite = mapMembers((members) => members.toSorted(([a], [b]) => a < b ? -1 : 1))

/** Members that are null left out. */
export const nullsDropped: Rewrite = mapMembers((members) => members.filter(([, item]) => item !== null))

/** A wrapper with its `type`. */
export const typeAdded: Rewrite = (value) => Predicate.isObject(value) ? { type: "multiSig", ...value } : value
