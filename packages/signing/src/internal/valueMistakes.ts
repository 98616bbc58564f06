/** Mistakes in values that were hashed in another format or type than the venue's. */
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as Predicate from "effect/Predicate"
import type * as ActionForm from "../actions/ActionForm.ts"
import * as SignedView from "../inspection/SignedView.ts"
import type { Rewrite, View } from "../inspection/SignedView.ts"
import { keccak256, toHex } from "./bytes.ts"
import { type IntegerStyle, Packed, standard } from "./looseEncoding.ts"
import type { Edit, MistakenView, Subject, Vary } from "./mistake.ts"
import { edited, leavesIn, maxLeaves, ofText, rewriter } from "./mistake.ts"

/**
 * Returns the decimal numbers in the action of a signing hypothesis (view), including the amounts of user-signed
 * actions, which are text.
 */
export const decimalsIn = (view: View): ReadonlyArray<ActionForm.Leaf> => [
  ...leavesIn(view, "decimal"),
  ...leavesIn(view, "text").filter(({ path }) => path.at(-1) === "amount")
]

/**
 * Generates signing hypotheses for each edit: first one in which all given values are edited, then one for each edited
 * value.
 */
export const spelling = (leaves: (view: View) => ReadonlyArray<ActionForm.Leaf>, ...edits: ReadonlyArray<Edit>): Vary =>
  function*({ view }) {
    const paths = leaves(view).map(({ path }) => path)
    for (const edit of edits) {
      yield { view: edited(view, paths, edit) }
      if (paths.length > 1) { for (const path of paths.slice(0, maxLeaves)) yield { view: edited(view, [path], edit) } }
    }
  }

const fraction = (text: string): string => text.split(".")[1] ?? ""

/** Pads the number to at least `count` decimal places, as programs with fixed-point output print it. */
const places = (count: number): Edit =>
  ofText((text) =>
    fraction(text).length >= count ? text : `${text.split(".")[0] ?? ""}.${fraction(text).padEnd(count, "0")}`
  )

export const trailingZeros: ReadonlyArray<Edit> = [
  places(1),
  ofText((text) => text.includes(".") ? `${text}0` : `${text}.0`),
  ...[2, 3, 4, 5, 6, 7, 8].map(places)
]

export const exponent: Edit = ofText((text) => {
  const digits = /^0\.(0*)([1-9][0-9]*)$/.exec(text)
  const [, zeros = "", [first = "", ...rest] = ""] = digits ?? []
  if (digits === null) return text
  return `${first}${rest.length === 0 ? "" : `.${rest.join("")}`}e-${zeros.length + 1}`
})

/** Formats the exponent with two digits, as Python does. */
export const longExponent: Edit = (value) => {
  const text = exponent(value)
  return Predicate.isString(text) ? text.replace(/e-([0-9])$/, "e-0$1") : text
}

export const checksummed = (address: string): string => {
  const digits = address.slice(2).toLowerCase()
  const hash = toHex(keccak256(Utf8.encode(digits))).slice(2)
  return `0x${
    Array.from(digits, (digit, at) => Number(`0x${hash[at] ?? "0"}`) >= 8 ? digit.toUpperCase() : digit).join("")
  }`
}

export const upperCase = (hex: string): string => `0x${hex.slice(2).toUpperCase()}`

export const addressesIn = (view: View): ReadonlyArray<ActionForm.Leaf> =>
  leavesIn(view, "address", "cloid", "id", "text").filter(({ value }) =>
    Predicate.isString(value) && /^0x[0-9a-f]{32,40}$/.test(value)
  )

export const toNumber: Edit = ofText((text) => /^-?[0-9]+(?:\.[0-9]+)?$/.test(text) ? Number(text) : text)

export const toText: Edit = (value) => Predicate.isNumber(value) || Predicate.isBigInt(value) ? value.toString() : value

export const rounded: Edit = (value) => Predicate.isBigInt(value) ? BigInt(Number(value)) : value

/**
 * Generates signing hypotheses in which an integer of the body was signed with its exact value, and sent after rounding
 * to a double. Tries the integers that round to the sent integer.
 */
export const unrounded = function*({ view }: Subject): Iterable<MistakenView> {
  for (const { path, value } of leavesIn(view, "integer").slice(0, maxLeaves)) {
    if (!Predicate.isBigInt(value) || BigInt(Number(value)) !== value) continue
    const step = 2n ** BigInt(Math.max(0, value.toString(2).length - 53))
    for (let off = 1n; off <= step / 2n && off <= 64n; off++) {
      yield { view: edited(view, [path], () => value + off) }
      yield { view: edited(view, [path], () => value - off) }
    }
  }
}

export const normalized = (form: "NFC" | "NFD"): Rewrite =>
  rewriter({ leaf: (value) => Predicate.isString(value) ? value.normalize(form) : value })

export const jsonIn = ofText((text) => text.replaceAll(/\s*([,:])\s*/g, "$1"))
export const spacedJson = ofText((text) => text.replaceAll(/\s*([,:])\s*/g, "$1 "))

const halvable = 2 ** 51

/**
 * Generates signing hypotheses in which integers are encoded as doubles: first only the large integers, as JavaScript
 * libraries do, then all integers, then one integer at a time.
 */
export const integersAsFloats: Vary = function*({ view }) {
  const leaves = leavesIn(view, "integer", "id").flatMap(({ path, value }) =>
    Predicate.isNumber(value) && Math.abs(value) < halvable ? [{ path, value }] : []
  )
  const large = leaves.filter(({ value }) => value > 0xffff_ffff)
  for (const group of [large, leaves, ...leaves.slice(0, maxLeaves).map((leaf) => [leaf])]) {
    const [first] = group
    if (first === undefined) continue
    const paths = group.map(({ path }) => path)
    const floating = edited(view, paths, (value) => Predicate.isNumber(value) ? new Packed(value, "double") : value)
    yield {
      view: { ...floating, encoding: view.encoding ?? standard },
      finding: {
        path: [...SignedView.actionPath(view), ...first.path],
        found: `${first.value}.0`,
        expected: String(first.value)
      }
    }
  }
}

const inType = (least: IntegerStyle["least"], signed: boolean): IntegerStyle => ({ least, signed, fixed: false })

/** The types in which programs encode all integers, most likely first. */
const integerTypes: ReadonlyArray<IntegerStyle> = [
  inType(8, true),
  inType(8, false),
  { least: 1, signed: true, fixed: true },
  inType(4, true),
  inType(4, false),
  inType(2, false),
  inType(2, true),
  ...([8, 4, 2] as const).flatMap((least) => [true, false].map((signed) => ({ least, signed, fixed: true }))),
  inType(1, false),
  inType(1, true),
  ...([4, 2, 1] as const).flatMap((least) =>
    [false, true].map((fixed) => ({ least, signed: true, fixed, onlyLeast: true }))
  )
]

/** The types of one member, or of the small and of the large integers. */
const ownTypes = ([8, 4, 2, 1] as const).flatMap((least) => [true, false].map((signed) => inType(least, signed)))

const typeName = ({ fixed, least, onlyLeast = false, signed }: IntegerStyle): string => {
  if (signed && least === 1 && fixed && !onlyLeast) return "signed types (0xd0 to 0xd3)"
  const code = (signed ? 0xd0 : 0xcc) + Math.log2(least)
  const range = `${fixed ? " above 127" : ""}${onlyLeast ? ", if they fit" : ""}`
  return `${signed ? "int" : "uint"}${least * 8} (0x${code.toString(16)})${range}`
}

/** Integers from this value on do not fit into 16 bits. */
const large = 65_536

/**
 * Generates signing hypotheses in which integers have wider or signed types: first all integers, then the integers of
 * one member, then the small and the large integers in two types, as the fields of a struct have.
 */
export const integerWidths: Vary = function*({ view }) {
  for (const integer of integerTypes) {
    yield {
      view: { ...view, encoding: { ...(view.encoding ?? standard), integer } },
      finding: { path: [], found: typeName(integer) }
    }
  }
  const members = new Map<string, Array<ActionForm.Path>>()
  const bySize: { readonly [size in "small" | "large"]: Array<ActionForm.Path> } = { small: [], large: [] }
  for (const { path, value } of leavesIn(view, "integer", "id")) {
    if (!Predicate.isNumber(value) && !Predicate.isBigInt(value)) continue
    const name = path.filter(Predicate.isString).join(".")
    members.set(name, [...(members.get(name) ?? []), path])
    bySize[value < large ? "small" : "large"].push(path)
  }
  if (members.size < 2) return
  const packed = (from: View, paths: ReadonlyArray<ActionForm.Path>, style: IntegerStyle): View => ({
    ...edited(
      from,
      paths,
      (value) => Predicate.isNumber(value) || Predicate.isBigInt(value) ? new Packed(value, style) : value
    ),
    encoding: from.encoding ?? standard
  })
  for (const paths of [...members.values()].slice(0, maxLeaves)) {
    for (const style of ownTypes) {
      yield {
        view: packed(view, paths, style),
        finding: { path: [...SignedView.actionPath(view), ...paths[0] ?? []], found: typeName(style) }
      }
    }
  }
  if (bySize.small.length === 0 || bySize.large.length === 0) return
  for (const small of [inType(4, false), inType(4, true), inType(2, false)]) {
    for (const wide of [inType(8, false), inType(8, true)]) {
      yield {
        view: packed(packed(view, bySize.small, small), bySize.large, wide),
        finding: { path: [], found: `${typeName(small)} and ${typeName(wide)}` }
      }
    }
  }
}
