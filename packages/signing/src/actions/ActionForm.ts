/**
 * Converts an action to the venue's form, and reports the differences as mistakes.
 *
 * Finding these mistakes requires no signature. The members and their types are declared in `ActionOrder`.
 */
import * as Json from "@trigate/domain/encoding/Json"
import type { Mistake } from "@trigate/domain/Inspection"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ActionNames from "./ActionNames.ts"
import type { ActionOrder, Kind, MemberPosition, Shape } from "./ActionOrder.ts"
import { itemShape } from "./ActionOrder.ts"
import * as ActionValues from "./ActionValues.ts"

/** The path of a value in a body. */
export type Path = Mistake["path"]

/**
 * An action or a part of it, with only the members that the venue would serialize, and the mistakes that were found.
 */
export interface Form {
  readonly value: unknown
  readonly faults: ReadonlyArray<Mistake>
}

/** A value of an action, the value's path, and the kind that `ActionOrder` declares for the value. */
export interface Leaf {
  readonly path: Path
  readonly kind: Kind
  readonly value: unknown
}

const longest = 80

/** Formats a value for a message: JSON, truncated if too long. */
export const quoted = (value: unknown): string => {
  const text = value === undefined ? "nothing" : Json.stringify(value)
  return text.length > longest ? `${text.slice(0, longest)}...` : text
}

/** Describes the expected content of a member. */
const described = (shape: Shape): string => {
  switch (shape._tag) {
    case "List":
      return "a list"
    case "Tuple":
      return `a list of ${shape.items.length} values`
    case "Value":
      return ActionValues.described(shape.kind)
    case "Words":
      return ActionValues.listed(shape.words)
    case "Members": {
      if (shape.otherwise !== undefined) return described(shape.otherwise)
      const names = [...shape.order.keys()]
      return names.length === 0 ? "an object" : `an object with ${names.slice(0, 8).join(", ")}`
    }
  }
}

/** The type of the action to normalize, and whether the exact format of its values is hashed. */
interface Reading {
  readonly type: unknown
  readonly isHashed: boolean
}

const faulty = (value: unknown, path: Path, { expected, mistake, repaired }: ActionValues.ValueFault): Form => ({
  value: repaired === undefined ? value : repaired,
  faults: [{ mistake, path, found: quoted(value), expected: repaired === undefined ? expected : quoted(repaired) }]
})

const joined = (forms: ReadonlyArray<readonly [key: string, form: Form]>): Form => ({
  value: Object.fromEntries(forms.map(([key, { value }]) => [key, value])),
  faults: forms.flatMap(([, { faults }]) => faults)
})

const listForm = (items: ReadonlyArray<unknown>, formOf: (item: unknown, index: number) => Form): Form => {
  const forms = items.map(formOf)
  return { value: forms.map(({ value }) => value), faults: forms.flatMap(({ faults }) => faults) }
}

const wrongShape = (shape: Shape, value: unknown, path: Path, repaired?: unknown): Form => ({
  value: repaired === undefined ? value : repaired,
  faults: [{ mistake: "wrongShape", path, found: quoted(value), expected: described(shape) }]
})

/** Adds the mistake that a value has another shape to the form of the value that it contains. */
const reshaped = (shape: Shape, value: unknown, path: Path, inner: Form): Form => ({
  value: inner.value,
  faults: [...wrongShape(shape, value, path).faults, ...inner.faults]
})

/** Parses a string as JSON if an object or a list is expected. */
const parsed = (value: unknown): unknown =>
  Predicate.isString(value) && /^\s*[[{]/.test(value)
    ? Result.getOrUndefined(Json.parseStrict(value, { maxDepth: 16, maxValues: 1000 }))
    : undefined

/** Returns the item of a list that has exactly one; otherwise `undefined`. */
const onlyItem = (items: ReadonlyArray<unknown>): unknown => items.length === 1 ? items[0] : undefined

type Given = Readonly<Record<string, unknown>>

const sound = (value: unknown): Form => ({ value, faults: [] })

const kindForm = (reading: Reading, shape: Shape & { readonly _tag: "Value" }, value: unknown, path: Path): Form => {
  if (shape.kind === "any" || (value === null && shape.orNull)) return sound(value)
  const name = String(path.findLast(Predicate.isString))
  if (name !== "signatureChainId" && Predicate.isObjectOrArray(value)) {
    const only = onlyItem(Object.values(value))
    const isWrapped = only !== undefined && !Predicate.isObjectOrArray(only)
    return wrongShape(shape, value, path, isWrapped ? only : undefined)
  }
  const fault = name === "signatureChainId"
    ? ActionValues.chainIdFault(value, reading.isHashed)
    : ActionValues.valueFault(shape.kind, value, { name, path, type: reading.type })
  return fault === undefined ? sound(value) : faulty(value, path, fault)
}

const wordForm = (words: ReadonlyArray<string>, value: unknown, path: Path): Form => {
  const fault = ActionValues.wordFault(words, value)
  return fault === undefined ? sound(value) : faulty(value, path, fault)
}

const objectForm = (
  reading: Reading,
  shape: Shape & { readonly _tag: "Members" },
  value: unknown,
  path: Path
): Form => {
  if (Predicate.isReadonlyObject(value)) return membersForm(reading, shape.order, value, path)
  if (shape.otherwise !== undefined && !Array.isArray(value) && parsed(value) === undefined) {
    return valueForm(reading, shape.otherwise, value, path)
  }
  const only = Array.isArray(value) ? onlyItem(value) : parsed(value)
  return Predicate.isReadonlyObject(only)
    ? reshaped(shape, value, path, membersForm(reading, shape.order, only, path))
    // the value is a word, such as "Limit" or "limit", instead of an object with that member
    : wrongShape(shape, value, path)
}

/** The correct form of a list with an {@link unsortedPair}. */
export const sortedList = "the list sorted by key"

const readKey = (pair: unknown): string => Array.isArray(pair) ? String(pair[0]) : ""

/** Returns a list of pairs, sorted by the first values of the pairs. */
export const sortedByKey = (pairs: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  pairs.toSorted((one, other) => {
    const [first, second] = [readKey(one), readKey(other)]
    return first < second ? -1 : first > second ? 1 : 0
  })

/** Describes the first pair of a list that is not in the order of the keys; `undefined` if the list is sorted. */
export const unsortedPair = (pairs: ReadonlyArray<unknown>): string | undefined => {
  const keys = pairs.map(readKey)
  const at = keys.findIndex((key, index) => key < (keys[index - 1] ?? ""))
  return at < 0 ? undefined : `${quoted(keys[at])} after ${quoted(keys[at - 1])}`
}

const listValueForm = (
  reading: Reading,
  shape: Shape & { readonly _tag: "List" },
  value: unknown,
  path: Path
): Form => {
  const { item } = shape
  if (Array.isArray(value)) {
    const isFlat = item._tag === "Tuple" && value.length === item.items.length &&
      value.every((each) => !Predicate.isObjectOrArray(each))
    if (isFlat) {
      const inner = valueForm(reading, item, value, path)
      return reshaped(shape, value, path, { ...inner, value: [inner.value] })
    }
    const form = listForm(value, (each, index) => valueForm(reading, item, each, [...path, index]))
    const found = shape.isSorted ? unsortedPair(value) : undefined
    return found === undefined || !Array.isArray(form.value) ? form : {
      value: sortedByKey(form.value),
      faults: [...form.faults, { mistake: "unsortedList", path, found, expected: sortedList }]
    }
  }
  const text = parsed(value)
  if (Array.isArray(text)) return reshaped(shape, value, path, valueForm(reading, shape, text, path))
  if (
    Predicate.isReadonlyObject(value) ||
    (item._tag === "Value" && !Predicate.isObjectOrArray(value) && value !== null)
  ) {
    const keys = Predicate.isReadonlyObject(value) ? Object.keys(value) : []
    const isIndexed = keys.length > 0 && keys.every((key, index) => key === String(index))
    const list = isIndexed && Predicate.isReadonlyObject(value) ? Object.values(value) : [value]
    return reshaped(shape, value, path, valueForm(reading, shape, list, path))
  }
  return wrongShape(shape, value, path)
}

const valueForm = (reading: Reading, shape: Shape, value: unknown, path: Path): Form => {
  switch (shape._tag) {
    case "List":
      return listValueForm(reading, shape, value, path)
    case "Tuple":
      return Array.isArray(value) && value.length === shape.items.length
        ? listForm(value, (each, index) => valueForm(reading, itemShape(shape, index), each, [...path, index]))
        : wrongShape(shape, value, path)
    case "Words":
      return wordForm(shape.words, value, path)
    case "Value":
      return kindForm(reading, shape, value, path)
    case "Members":
      return objectForm(reading, shape, value, path)
  }
}

/** Returns a mistake if an object has several of the members of which it can have one. */
const several = (order: ActionOrder, given: Given, path: Path): ReadonlyArray<Mistake> => {
  const names = [...order].flatMap(([name, { presence }]) =>
    presence === "oneOf" && Object.hasOwn(given, name) ? [name] : []
  )
  return names.length < 2 ? [] : [{
    mistake: "wrongShape",
    path,
    found: `an object with ${names.slice(0, 8).join(" and ")}`,
    expected: `an object with one of ${names.slice(0, 8).join(", ")}`
  }]
}

/** Describes the value to send for an absent member. */
const absentValue = ({ presence, shape }: MemberPosition): string =>
  presence === "nullable" ? `null or ${described(shape)}` : described(shape)

const missing = (order: ActionOrder, given: Given, path: Path): ReadonlyArray<Mistake> => {
  const absent = [...order].filter(([name]) => !Object.hasOwn(given, name))
  const ones = absent.filter(([, { presence }]) => presence === "oneOf").map(([name]) => name)
  // an unknown member can be a further form of the object
  const isNone = ones.length > 0 && unknownIn(order, given).length === 0 &&
    [...order].every(([name, { presence }]) => presence !== "oneOf" || ones.includes(name))
  return [
    ...absent.flatMap(([name, place]): ReadonlyArray<Mistake> =>
      place.presence === "required" || place.presence === "nullable"
        ? [{ mistake: "missingMember", path: [...path, name], expected: absentValue(place) }]
        : []
    ),
    ...(isNone ? [{ mistake: "missingMember" as const, path, expected: `one of ${ones.slice(0, 8).join(", ")}` }] : [])
  ]
}

const isNull = ({ presence }: MemberPosition, value: unknown): boolean =>
  value === null && (presence === "nullable" || presence === "optional")

interface Moved {
  readonly given: Given
  readonly faults: ReadonlyArray<Mistake>
}

const moveFault = (path: Path, from: string, to: string): Mistake => ({
  mistake: "misplacedMember",
  path: [...path, from],
  found: from,
  expected: to
})

const needed = (order: ActionOrder, given: Given): ReadonlyArray<string> =>
  [...order].filter(([name, { presence }]) => !Object.hasOwn(given, name) && presence !== "optional").map(([name]) =>
    name
  )

const unknownIn = (order: ActionOrder, given: Given): ReadonlyArray<string> =>
  Object.keys(given).filter((name) => !order.has(name))

const without = (given: Given, names: ReadonlyArray<string>): Given =>
  Object.fromEntries(Object.entries(given).filter(([name]) => !names.includes(name)))

/** Moves members out of an unknown wrapper object into the object that contains it. */
const lifted = (order: ActionOrder, { faults, given }: Moved, path: Path): Moved => {
  const wants = needed(order, given)
  for (const name of unknownIn(order, given)) {
    const inner = given[name]
    const only = Array.isArray(inner) ? onlyItem(inner) : inner
    if (!Predicate.isReadonlyObject(only)) continue
    const held = Object.keys(only).filter((key) => wants.includes(key))
    if (held.length === 0) continue
    const moved = Object.fromEntries(Object.entries(only).filter(([key]) => order.has(key)))
    return {
      given: { ...without(given, [name]), ...moved },
      faults: [
        ...faults,
        ...held.slice(0, 4).map((key) => moveFault([...path, name], key, [...path, key].join(".")))
      ]
    }
  }
  return { faults, given }
}

/** Moves members into the object to which they belong, if the action lacks that object. */
const lowered = (order: ActionOrder, { faults, given }: Moved, path: Path): Moved => {
  const unknown = unknownIn(order, given)
  for (const [name, place] of order) {
    if (place.members.size === 0 || (Object.hasOwn(given, name) && Predicate.isObjectOrArray(given[name]))) continue
    const held = unknown.filter((key) => place.members.has(key))
    const isOne = [...place.members.values()].some(({ presence }) => presence === "oneOf")
    const isWhole = held.length > 0 &&
      (isOne || [...place.members].every(([key, { presence }]) => presence === "optional" || held.includes(key)))
    if (!isWhole) continue
    const object = Object.fromEntries(held.map((key) => [key, given[key]]))
    return {
      given: { ...without(given, [...held, name]), [name]: place.shape._tag === "List" ? [object] : object },
      faults: [...faults, ...held.slice(0, 4).map((key) => moveFault(path, key, [...path, name, key].join(".")))]
    }
  }
  // the action has the members of a nested object directly, without the member that contains the object
  const ones = [...order].filter(([, { members, presence }]) => presence === "oneOf" && members.size > 0)
  for (const [name, place] of ones) {
    const held = unknown.filter((key) => place.members.has(key))
    const isWhole = held.length > 0 && !ones.some(([key]) => Object.hasOwn(given, key)) &&
      [...place.members].every(([key, { presence }]) => presence === "optional" || held.includes(key))
    if (!isWhole) continue
    return {
      given: { ...without(given, held), [name]: Object.fromEntries(held.map((key) => [key, given[key]])) },
      faults: [...faults, ...held.slice(0, 4).map((key) => moveFault(path, key, [...path, name, key].join(".")))]
    }
  }
  return { faults, given }
}

/** Renames members that were sent under a known alternative name. */
const renamed = (order: ActionOrder, { faults, given }: Moved, path: Path): Moved => {
  const wants = [...order.keys()].filter((name) => !Object.hasOwn(given, name))
  const names = new Map<string, string>()
  for (const name of unknownIn(order, given)) {
    const meant = ActionNames.nearestMember(name, wants.filter((each) => ![...names.values()].includes(each)))
    if (meant !== undefined) names.set(name, meant)
  }
  return names.size === 0 ? { faults, given } : {
    given: Object.fromEntries(Object.entries(given).map(([name, value]) => [names.get(name) ?? name, value])),
    faults: [...faults, ...[...names].slice(0, 8).map(([from, to]) => moveFault(path, from, [...path, to].join(".")))]
  }
}

const inOrder = (order: ActionOrder, given: Given): Given =>
  Object.fromEntries([
    ...[...order.keys()].filter((name) => Object.hasOwn(given, name)).map((
      name
    ): [string, unknown] => [name, given[name]]),
    ...unknownIn(order, given).map((name): [string, unknown] => [name, given[name]])
  ])

const placed = (order: ActionOrder, given: Given, path: Path): Moved => {
  const start: Moved = { given, faults: [] }
  if (unknownIn(order, given).length === 0) return start
  const found = renamed(order, lowered(order, lifted(order, start, path), path), path)
  return found.faults.length === 0 ? start : { ...found, given: inOrder(order, found.given) }
}

const membersForm = (reading: Reading, order: ActionOrder, sent: Given, path: Path): Form => {
  const { faults, given } = placed(order, sent, path)
  const read = joined(
    Object.entries(given).flatMap(([name, value]): ReadonlyArray<readonly [string, Form]> => {
      const place = order.get(name)
      const at = [...path, name]
      if (place === undefined || isNull(place, value)) return [[name, sound(value)]]
      const form = valueForm(reading, place.shape, value, at)
      const isEmpty = Array.isArray(value) && value.length === 0 && mayNotBeEmpty.has(name)
      const empty: Mistake = { mistake: "emptyList", path: at, found: "[]", expected: "at least one item" }
      return [[name, isEmpty ? { ...form, faults: [empty] } : form]]
    })
  )
  const members = Object.entries(Predicate.isReadonlyObject(read.value) ? read.value : {})
  const nulls = [...order].flatMap(([name, { presence }]): ReadonlyArray<[string, unknown]> =>
    presence === "nullable" && !Object.hasOwn(given, name) ? [[name, null]] : []
  )
  return {
    // the venue hashes an absent value as null
    value: Object.fromEntries([...members, ...nulls]),
    faults: [...faults, ...read.faults, ...missing(order, given, path), ...several(order, given, path)]
  }
}

/** Lists that the venue refuses if empty. */
const mayNotBeEmpty = new Set(["orders", "cancels", "modifies", "marginTiers", "tokens", "outcomeSettlements"])

/**
 * Returns an object of an action in the venue's form, and its mistakes. Unknown members are not mistakes.
 *
 * `isHashed` means that the exact text of each value is hashed, as inside a multi-sig wrapper. If it is false, a chain
 * ID is accepted in any 0x hex format, because only its numeric value is signed.
 */
export const normalizeAction = (order: ActionOrder, given: Given, path: Path, isHashed = true): Form =>
  membersForm({ type: given["type"], isHashed }, order, given, path)

const listShapeLeaves = (shape: Shape, value: unknown, path: Path): ReadonlyArray<Leaf> => {
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) => listShapeLeaves(itemShape(shape, index), item, [...path, index]))
  }
  if (shape._tag === "Value") return [{ path, kind: shape.kind, value }]
  if (shape._tag === "Tuple") return []
  return shape._tag === "Members" && Predicate.isObject(value)
    ? listLeaves(shape.order, value, path)
    : [{ path, kind: "text", value }]
}

/** Returns every value of an action that `order` declares, in the venue's member order. */
export const listLeaves = (order: ActionOrder, given: unknown, path: Path = []): ReadonlyArray<Leaf> =>
  Predicate.isReadonlyObject(given)
    ? [...order].flatMap(([name, { shape }]) =>
      Object.hasOwn(given, name) ? listShapeLeaves(shape, given[name], [...path, name]) : []
    )
    : []
