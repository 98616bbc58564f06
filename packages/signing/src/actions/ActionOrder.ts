/**
 * The order in which the venue hashes the members of an action, independent of their order in the body.
 *
 * The order, and the values that each member allows, are derived from the schemas of `ActionSchemas`.
 */
import { actionCatalog, type ActionType, isActionType } from "@trigate/domain/actions/ActionCatalog"
import { actionSchemas } from "@trigate/domain/actions/ActionSchemas"
import * as Predicate from "effect/Predicate"
import * as Record from "effect/Record"
import * as AST from "effect/SchemaAST"

/**
 * The type of a value. `mark` is a flag that is hashed only if it is true, `id` an order ID or a client order ID, `json`
 * a string that contains JSON, and `any` a value of any form, whose members are hashed in the sender's order.
 */
export type Kind =
  | "integer"
  | "decimal"
  | "percent"
  | "text"
  | "flag"
  | "mark"
  | "address"
  | "cloid"
  | "id"
  | "json"
  | "null"
  | "any"

/**
 * The content of a member: a value, one of some words, an object (or something else instead of it), a list of fixed
 * length, or a list of any length, which can be a list of pairs that are sorted by their first values.
 */
export type Shape =
  | { readonly _tag: "Value"; readonly kind: Kind; readonly orNull: boolean }
  | { readonly _tag: "Words"; readonly words: ReadonlyArray<string> }
  | { readonly _tag: "Members"; readonly order: ActionOrder; readonly otherwise?: Shape | undefined }
  | { readonly _tag: "Tuple"; readonly items: ReadonlyArray<Shape> }
  | { readonly _tag: "List"; readonly item: Shape; readonly isSorted: boolean }

/**
 * Whether a member can be absent or null: `optional` (either), `nullable` (null, but not absent), or `oneOf` (the object
 * has one of the members marked this way).
 */
export type Presence = "required" | "optional" | "nullable" | "oneOf"

/** The position of a member, and its content. */
export interface MemberPosition {
  readonly at: number
  readonly presence: Presence
  readonly shape: Shape
  /** Whether a null is hashed. Otherwise, the member is omitted from the hashed action. */
  readonly hashesNull: boolean
  /** The members of the object, or of each object of the list, that the member contains; empty for other content. */
  readonly members: ActionOrder
}

/** The position of each member of an object, in the venue's order of the members. */
export type ActionOrder = ReadonlyMap<string, MemberPosition>

const none: ActionOrder = new Map()

/** Returns the members of an object, or of each object of a list. */
const membersIn = (shape: Shape): ActionOrder =>
  shape._tag === "Members" ? shape.order : shape._tag === "List" ? membersIn(shape.item) : none

/** Returns the shape of an item of a list; a value that is not declared as a list has the same shape in a list. */
export const itemShape = (shape: Shape, index: number): Shape =>
  shape._tag === "List" ? shape.item : shape._tag === "Tuple" ? shape.items[index] ?? text : shape

/** Makes an order of members from the members in this order. */
export const make = (
  members: Iterable<readonly [name: string, member: Omit<MemberPosition, "at" | "members">]>
): ActionOrder =>
  new Map([...members].map(([name, member], at) => [name, { ...member, at, members: membersIn(member.shape) }]))

const value = (kind: Kind, orNull = false): Shape => ({ _tag: "Value", kind, orNull })
const text = value("text")

/** The kinds of the schemas that have an identifier. */
const kinds: ReadonlyMap<string | undefined, Kind> = new Map([
  ["Decimal", "decimal"],
  ["SignedDecimal", "decimal"],
  ["Percent", "percent"],
  ["Mark", "mark"],
  ["Address", "address"],
  ["Cloid", "cloid"],
  ["OrderName", "id"],
  ["JsonText", "json"]
])

const isNamed = (ast: AST.AST): boolean => kinds.has(AST.resolveIdentifier(ast))

const readPresence = (type: AST.AST): Presence =>
  AST.isOptional(type) ? "optional" : AST.isUnion(type) && type.types.some(AST.isNull) ? "nullable" : "required"

/** Joins the members of the forms of an object. A member that some of the forms lack is one of several. */
const joined = (forms: ReadonlyArray<AST.Objects>): ActionOrder => {
  const members = new Map<string, Omit<MemberPosition, "at" | "members">>()
  for (const { propertySignatures } of forms) {
    for (const { name, type } of propertySignatures) {
      const isInAll = forms.every((form) => form.propertySignatures.some((other) => other.name === name))
      const presence = isInAll ? readPresence(type) : "oneOf"
      members.set(String(name), { presence, shape: toShape(type), hashesNull: presence !== "optional" })
    }
  }
  return make(members)
}

/** Returns the types of a union, also of unions in it, without null. */
const alternatives = ({ types }: AST.Union): ReadonlyArray<AST.AST> =>
  types.flatMap((type) => AST.isUnion(type) && !isNamed(type) ? alternatives(type) : AST.isNull(type) ? [] : [type])

const toShape = (ast: AST.AST): Shape => {
  const kind = kinds.get(AST.resolveIdentifier(ast))
  if (kind !== undefined) return value(kind)
  if (AST.isObjects(ast)) return { _tag: "Members", order: joined([ast]) }
  if (AST.isArrays(ast)) {
    const [item] = ast.rest
    return item === undefined
      ? { _tag: "Tuple", items: ast.elements.map(toShape) }
      : { _tag: "List", item: toShape(item), isSorted: ast.annotations?.["sortedByKey"] === true }
  }
  if (AST.isUnion(ast)) {
    const types = alternatives(ast)
    const forms = types.filter(AST.isObjects)
    const words = types.filter(AST.isLiteral).map(({ literal }) => String(literal))
    const other = types.find((type) => !AST.isLiteral(type) && !AST.isObjects(type))
    const shape: Shape | undefined = other !== undefined
      ? toShape(other)
      : words.length > 0
      ? { _tag: "Words", words }
      : undefined
    if (forms.length > 0) return { _tag: "Members", order: joined(forms), otherwise: shape }
    return shape?._tag === "Value" ? value(shape.kind, ast.types.some(AST.isNull)) : shape ?? text
  }
  if (AST.isLiteral(ast)) return { _tag: "Words", words: [String(ast.literal)] }
  if (AST.isNull(ast)) return value("null")
  if (AST.isBoolean(ast)) return value("flag")
  if (AST.isUnknown(ast)) return value("any")
  return AST.isNumber(ast) || AST.isBigInt(ast) ? value("integer") : text
}

/** The member order of each action of the catalog, by the action's type. */
const orders = new Map<ActionType, ActionOrder>()

/** Returns the member order of an action type of the catalog, as its schema declares the members. */
export const declared = (type: ActionType): ActionOrder => {
  const known = orders.get(type)
  if (known !== undefined) return known
  const order = membersIn(toShape(actionSchemas[type].ast))
  orders.set(type, order)
  return order
}

/** The types of the L1 actions of the catalog. */
export const l1Types: ReadonlyArray<ActionType> = Record.keys(actionCatalog).filter((type) =>
  actionCatalog[type].scheme === "l1"
)

/** Returns the member order of an L1 action; `undefined` for any other action, and for an unknown type. */
export const l1 = (type: unknown): ActionOrder | undefined =>
  Predicate.isString(type) && isActionType(type) && actionCatalog[type].scheme === "l1" ? declared(type) : undefined

/** Returns whether the value of a member is a flag that is hashed only if it is true. */
export const isMark = ({ shape }: MemberPosition): boolean => shape._tag === "Value" && shape.kind === "mark"

const isLeftOut = (place: MemberPosition, item: unknown): boolean =>
  item === null ? !place.hashesNull : item === false && isMark(place)

type Members = Readonly<Record<string, unknown>>

type Standing = "inOrder" | "otherOrder" | "notNamed"

/**
 * Compares the members of an object with the venue's order. Allocates nothing, because nearly every body is already in
 * order.
 */
const standing = (order: ActionOrder, given: Members): Standing => {
  let found: Standing = "inOrder"
  let last = -1
  for (const name of Object.keys(given)) {
    const place = order.get(name)
    if (place === undefined) return "notNamed"
    const item = given[name]
    const inner = standingIn(place.shape, item)
    if (inner === "notNamed") return inner
    if (inner === "otherOrder" || place.at < last || isLeftOut(place, item)) found = "otherOrder"
    last = place.at
  }
  return found
}

const isAny = (shape: Shape): boolean => shape._tag === "Value" && shape.kind === "any"

const standingIn = (shape: Shape, given: unknown): Standing => {
  if (isAny(shape)) return "inOrder"
  if (!Array.isArray(given)) return Predicate.isReadonlyObject(given) ? standing(membersIn(shape), given) : "inOrder"
  let found: Standing = "inOrder"
  for (let index = 0; index < given.length; index++) {
    const inner = standingIn(itemShape(shape, index), given[index])
    if (inner === "notNamed") return inner
    if (inner === "otherOrder") found = inner
  }
  return found
}

type Entries = ReadonlyArray<readonly [name: string, value: unknown]>

/** Combines the known members of an object, in the venue's order, with its unknown members, in the sender's order. */
type Combine = (known: Entries, unknown: Entries) => Entries

const put = (shape: Shape, given: unknown, combine: Combine): unknown => {
  if (Array.isArray(given)) return given.map((item: unknown, index) => put(itemShape(shape, index), item, combine))
  return Predicate.isReadonlyObject(given) && !isAny(shape) ? putMembers(membersIn(shape), given, combine) : given
}

const putMembers = (order: ActionOrder, given: Members, combine: Combine): Members => {
  const members: Array<readonly [string, unknown]> = []
  for (const [name, place] of order) {
    const item = given[name]
    if (Object.hasOwn(given, name) && !isLeftOut(place, item)) members.push([name, put(place.shape, item, combine)])
  }
  return Object.fromEntries(combine(members, Object.entries(given).filter(([name]) => !order.has(name))))
}

/**
 * Sorts the members of an action into the given member order, at every level.
 *
 * An action with an unknown member is returned unchanged: the venue might support that member, and only the sender
 * knows its position.
 */
export const arrange = (order: ActionOrder, action: Members): Members =>
  standing(order, action) === "otherOrder" ? putMembers(order, action, (known) => known) : action

/**
 * Sorts the known members of an action into the given member order, at every level. The unknown members of each object
 * are placed at index `at`, or omitted if `at` is undefined.
 */
export const arrangeAround = (order: ActionOrder, action: Members, at: number | undefined): Members =>
  putMembers(
    order,
    action,
    (known, unknown) => at === undefined ? known : [...known.slice(0, at), ...unknown, ...known.slice(at)]
  )

/** Returns whether an action has only members that the order has, at every level. */
export const isKnown = (order: ActionOrder, action: Members): boolean => standing(order, action) !== "notNamed"

/** A member, or a word of a closed set, that the schemas do not have. */
export interface UnknownPart {
  readonly kind: "member" | "word"
  readonly path: ReadonlyArray<string | number>
}

const unknownIn = (shape: Shape, given: unknown, path: UnknownPart["path"]): ReadonlyArray<UnknownPart> => {
  if (Array.isArray(given)) {
    return given.flatMap((item: unknown, index) => unknownIn(itemShape(shape, index), item, [...path, index]))
  }
  if (Predicate.isString(given)) {
    const words = shape._tag === "Members" ? shape.otherwise : shape
    return words?._tag !== "Words" || words.words.includes(given) ? [] : [{ kind: "word", path }]
  }
  return Predicate.isReadonlyObject(given) && !isAny(shape) ? findUnknown(membersIn(shape), given, path) : []
}

/** Returns the members and the words of an action that the order does not have. */
export const findUnknown = (
  order: ActionOrder,
  action: Members,
  path: UnknownPart["path"] = []
): ReadonlyArray<UnknownPart> =>
  Object.entries(action).flatMap(([name, item]): ReadonlyArray<UnknownPart> => {
    const place = order.get(name)
    return place === undefined
      ? [{ kind: "member", path: [...path, name] }]
      : unknownIn(place.shape, item, [...path, name])
  })
