/**
 * What in an action is not in the venue's form, and the form that it has to have.
 *
 * Anybody can see these faults without a signature. The table of members (`ActionOrder`) says what each value has to be.
 */
import * as Json from "@trigate/domain/encoding/Json"
import type { Mistake } from "@trigate/domain/Inspection"
import * as Predicate from "effect/Predicate"
import * as Decimal from "../Decimal.ts"
import { isAddress } from "../internal/bytes.ts"
import type { ActionOrder, Kind, Place, Shape } from "./ActionOrder.ts"

/** A place in a body. */
export type Path = Mistake["path"]

/** An action, or a part of it, with the members that the venue would print and what was wrong. */
export interface Form {
  readonly value: unknown
  readonly faults: ReadonlyArray<Mistake>
}

/** A value of an action at its path, with what the table says of it. */
export interface Leaf {
  readonly path: Path
  readonly kind: Kind
  readonly value: unknown
}

const longest = 80

/** A value as a sentence quotes it: JSON, cut where it is too long. */
export const quoted = (value: unknown): string => {
  const text = value === undefined ? "nothing" : Json.stringify(value)
  return text.length > longest ? `${text.slice(0, longest)}...` : text
}

const kinds: { readonly [K in Kind]: string } = {
  integer: "an integer",
  decimal: "a decimal number as text",
  text: "text",
  flag: "true or false",
  address: "0x and 40 hex digits",
  cloid: "0x and 32 hex digits",
  id: "an order id, or 0x and 32 hex digits",
  json: "JSON as text",
  null: "null"
}

const isInteger = (value: unknown): boolean => Predicate.isBigInt(value) || Number.isInteger(value)

const isCloid = (value: unknown): value is string => Predicate.isString(value) && /^0x[0-9a-fA-F]{32}$/.test(value)

/** An integer that was written as text. */
const integerIn = (value: unknown): unknown => {
  if (!Predicate.isString(value) || !/^-?[0-9]{1,20}$/.test(value)) return undefined
  const integer = BigInt(value)
  return Number.isSafeInteger(Number(integer)) ? Number(integer) : integer
}

/** The value that was meant; `undefined` where nothing can be made of what is there. */
const repairs: { readonly [K in Kind]: (value: unknown) => unknown } = {
  integer: (value) => isInteger(value) ? value : integerIn(value),
  decimal: (value) =>
    Predicate.isString(value) || Predicate.isNumber(value) || Predicate.isBigInt(value)
      ? Decimal.canonical(String(value))
      : undefined,
  text: (value) => Predicate.isString(value) ? value : isInteger(value) ? String(value) : undefined,
  flag: (value) => Predicate.isBoolean(value) ? value : value === "true" ? true : value === "false" ? false : undefined,
  // an empty text stands for no address
  address: (value) => isAddress(value) || value === "" ? value.toLowerCase() : undefined,
  cloid: (value) => isCloid(value) ? value.toLowerCase() : undefined,
  id: (value) => isInteger(value) ? value : isCloid(value) ? value.toLowerCase() : integerIn(value),
  json: (value) => Predicate.isString(value) ? value : undefined,
  null: (value) => value === null ? value : undefined
}

const mistakeIn = (kind: Kind, value: unknown, repaired: unknown): Mistake["mistake"] => {
  if (!Predicate.isString(value) || repaired === undefined || kind === "integer") return "valueType"
  if (kind !== "decimal") return Predicate.isString(repaired) ? "letterCase" : "valueType"
  return /^[^eE]*\.[0-9]*0$|\.$/.test(value) ? "trailingZero" : "decimalText"
}

const leafForm = (kind: Kind, value: unknown, path: Path): Form => {
  const repaired = repairs[kind](value)
  if (repaired === value) return { value, faults: [] }
  const fault: Mistake = {
    mistake: mistakeIn(kind, value, repaired),
    path,
    found: quoted(value),
    expected: repaired === undefined ? kinds[kind] : quoted(repaired)
  }
  return { value: repaired === undefined ? value : repaired, faults: [fault] }
}

const isTuple = (shape: Shape): shape is ReadonlyArray<Shape> => Array.isArray(shape)

const joined = (forms: ReadonlyArray<readonly [key: string, form: Form]>): Form => ({
  value: Object.fromEntries(forms.map(([key, { value }]) => [key, value])),
  faults: forms.flatMap(([, { faults }]) => faults)
})

const listForm = (items: ReadonlyArray<unknown>, formOf: (item: unknown, index: number) => Form): Form => {
  const forms = items.map(formOf)
  return { value: forms.map(({ value }) => value), faults: forms.flatMap(({ faults }) => faults) }
}

const valueForm = ({ members, shape }: Pick<Place, "members" | "shape">, value: unknown, path: Path): Form => {
  if (isTuple(shape) && Array.isArray(value)) {
    const isList = value.every((item) => Array.isArray(item))
    return listForm(value, (item, index) => {
      const inner = isList ? shape : shape[index]
      return inner === undefined
        ? { value: item, faults: [] }
        : valueForm({ members, shape: inner }, item, [...path, index])
    })
  }
  if (Array.isArray(value)) {
    return listForm(value, (item, index) => valueForm({ members, shape }, item, [...path, index]))
  }
  if (Predicate.isString(shape)) return leafForm(shape, value, path)
  // a member that is an object or a plain value, such as a grouping
  return Predicate.isReadonlyObject(value) && !isTuple(shape) ? formOf(members, value, path) : { value, faults: [] }
}

const missing = (order: ActionOrder, given: Readonly<Record<string, unknown>>, path: Path): ReadonlyArray<Mistake> => {
  const absent = [...order].filter(([name]) => !Object.hasOwn(given, name))
  const ones = absent.filter(([, { presence }]) => presence === "oneOf").map(([name]) => name)
  const isNone = ones.length > 0 &&
    [...order].every(([name, { presence }]) => presence !== "oneOf" || ones.includes(name))
  return [
    ...absent.flatMap(([name, { presence, shape }]): ReadonlyArray<Mistake> =>
      presence === "required" || presence === "nullable"
        ? [{
          mistake: "missingMember",
          path: [...path, name],
          expected: Predicate.isString(shape) ? kinds[shape] : "an object"
        }]
        : []
    ),
    ...(isNone ? [{ mistake: "missingMember" as const, path, expected: `one of ${ones.slice(0, 8).join(", ")}` }] : [])
  ]
}

const isNull = ({ presence }: Place, value: unknown): boolean => value === null && presence === "nullable"

/** An object in the venue's form, as far as the table knows its members; members that it does not know stay. */
export const formOf = (order: ActionOrder, given: Readonly<Record<string, unknown>>, path: Path): Form => {
  const read = joined(
    Object.entries(given).map(([name, value]): readonly [string, Form] => {
      const place = order.get(name)
      const at = [...path, name]
      if (place === undefined) {
        const expected = [...order.keys()].slice(0, 16).join(", ")
        return [name, { value, faults: [{ mistake: "unknownMember", path: at, expected }] }]
      }
      return [name, isNull(place, value) ? { value, faults: [] } : valueForm(place, value, at)]
    })
  )
  return { ...read, faults: [...read.faults, ...missing(order, given, path)] }
}

/** Every value that the table knows, in order. */
export const leavesOf = (order: ActionOrder, given: unknown, path: Path = []): ReadonlyArray<Leaf> => {
  const ofValue = (
    { members, shape }: Pick<Place, "members" | "shape">,
    value: unknown,
    at: Path
  ): ReadonlyArray<Leaf> => {
    if (Array.isArray(value)) {
      const isList = value.every((item) => Array.isArray(item))
      return value.flatMap((item: unknown, index) => {
        const inner = isTuple(shape) && !isList ? shape[index] : shape
        return inner === undefined ? [] : ofValue({ members, shape: inner }, item, [...at, index])
      })
    }
    if (Predicate.isString(shape)) return [{ path: at, kind: shape, value }]
    return isTuple(shape) ? [] : leavesOf(members, value, at)
  }
  return Predicate.isReadonlyObject(given)
    ? [...order].flatMap(([name, place]) =>
      Object.hasOwn(given, name) ? ofValue(place, given[name], [...path, name]) : []
    )
    : []
}
