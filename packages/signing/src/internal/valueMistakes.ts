/** Mistakes in values that were hashed in another format or type than the venue's. */
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as Predicate from "effect/Predicate"
import type * as ActionForm from "../actions/ActionForm.ts"
import * as SignedView from "../inspection/SignedView.ts"
import type { Rewrite, View } from "../inspection/SignedView.ts"
import { keccak256, toHex } from "./bytes.ts"
import { AsDouble, standard } from "./looseEncoding.ts"
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
    const floating = edited(view, paths, (value) => Predicate.isNumber(value) ? new AsDouble(value) : value)
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
