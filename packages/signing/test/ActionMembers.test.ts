import { assert, describe, it } from "@effect/vitest"
import { actionSchemas } from "@trigate/domain/actions/ActionSchemas"
import * as ActionOrder from "@trigate/signing/actions/ActionOrder"
import * as UserSigned from "@trigate/signing/actions/UserSigned"
import { mainnet } from "@trigate/signing/VenueProfile"
import type * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"

/** A value as both declarations have it: its JSON type, its closed set of words, its items, or its members in order. */
type Shape = string | { readonly [name: string]: Shape } | ReadonlyArray<Shape>

const sorted = (names: Iterable<string>): ReadonlyArray<string> =>
  [...new Set(names)].toSorted((one, other) => one < other ? -1 : 1)

const wordsOf = (words: ReadonlyArray<string>): string => sorted(words).join("|")

const isObject = (shape: Shape): shape is { readonly [name: string]: Shape } =>
  typeof shape === "object" && !Array.isArray(shape)

const isWords = (shape: Shape): shape is string => typeof shape === "string" && shape.includes("'")

const merged = (shapes: ReadonlyArray<Shape>): Shape => {
  const [first = "null", ...rest] = shapes
  if (rest.length === 0) return first
  const objects = shapes.filter(isObject)
  const words = shapes.filter(isWords)
  if (objects.length > 0) {
    const members = objects.flatMap((each) => Object.entries(each))
    return Object.fromEntries(words.length === 0 ? members : [["", wordsOf(words)], ...members])
  }
  const others = shapes.flatMap((shape) => typeof shape === "string" && !isWords(shape) ? [shape] : [])
  return others.length === 0 ? wordsOf(words) : sorted(others).join(" or ")
}

/** From a schema. A null is a matter of presence, except where nothing else may be there. */
const ofSchema = (ast: AST.AST): Shape => {
  if (AST.isObjects(ast)) {
    return Object.fromEntries(ast.propertySignatures.map(({ name, type }) => [String(name), ofSchema(type)]))
  }
  if (AST.isArrays(ast)) {
    const [item] = ast.rest
    return item === undefined ? ast.elements.map(ofSchema) : { "[]": ofSchema(item) }
  }
  if (AST.isUnion(ast)) return merged(ast.types.filter((type) => !AST.isNull(type)).map(ofSchema))
  if (AST.isLiteral(ast)) return `'${String(ast.literal)}'`
  if (AST.isNull(ast)) return "null"
  if (AST.isBoolean(ast)) return "flag"
  if (AST.isNumber(ast) || AST.isBigInt(ast)) return "integer"
  const name = AST.resolveIdentifier(ast)
  return name === "Decimal" || name === "SignedDecimal"
    ? "decimal"
    : name === "Address"
    ? "address"
    : name === "Cloid"
    ? "cloid"
    : "text"
}

const ofKind = (shape: ActionOrder.Shape): Shape => {
  if (typeof shape !== "string") {
    return ActionOrder.isMembers(shape) ? ofMembers(shape) : shape.map(ofKind)
  }
  if (shape.includes("|")) return wordsOf(shape.split("|").map((word) => `'${word}'`))
  return shape === "id" ? "cloid or integer" : shape === "json" ? "text" : shape
}

const inLists = (shape: Shape, lists: number): Shape => lists === 0 ? shape : { "[]": inLists(shape, lists - 1) }

const ofOrder = (order: ActionOrder.ActionOrder): { readonly [name: string]: Shape } =>
  Object.fromEntries([...order].map(([name, { lists, shape }]) => [name, inLists(ofKind(shape), lists)]))

const ofMembers = (members: ActionOrder.Members): Shape => {
  const alternative = members[""]
  return { ...(alternative === undefined ? {} : { "": ofKind(alternative) }), ...ofOrder(ActionOrder.places(members)) }
}

const inOrder = (shape: Shape): unknown =>
  typeof shape === "string"
    ? shape
    : Array.isArray(shape)
    ? shape.map(inOrder)
    : Object.entries(shape).map(([name, inner]) => [name, inOrder(inner)])

/** The members in order, without the type, which comes first in each action. */
const withoutType = (shape: Shape): unknown =>
  isObject(shape) ? inOrder(Object.fromEntries(Object.entries(shape).filter(([name]) => name !== "type"))) : shape

const schemas: { readonly [type: string]: Schema.Top } = actionSchemas

const declared = (type: string): Shape => ofSchema(schemas[type]?.ast ?? AST.null)

describe("the order in which the venue hashes members", () => {
  for (const [type, order] of ActionOrder.l1) {
    it(`has the members, the values and the words of the action's schema: ${type}`, () => {
      assert.deepStrictEqual(withoutType(ofOrder(order)), withoutType(declared(type)))
    })
  }

  for (const [name, type] of Object.entries(UserSigned.types)) {
    it(`has the members and the words of the schema of a user-signed action: ${name}`, () => {
      const [hashed, schema] = [ofOrder(UserSigned.order(mainnet)(type)), declared(name)]
      assert.isTrue(isObject(schema))
      if (!isObject(schema)) return
      const chain = (member: string) => member === "venueChain" ? "hyperliquidChain" : member
      assert.deepStrictEqual(Object.keys(hashed), [...new Set(Object.keys(schema).map(chain))])
      for (const [member, shape] of Object.entries(schema)) {
        // the profile names its own network
        if (isWords(shape) && member !== "type") assert.strictEqual(hashed[chain(member)], shape)
      }
    })
  }

  it("is there for every action of the catalog that wraps no other", () => {
    const hashed = new Set([...ActionOrder.l1.keys(), ...Object.keys(UserSigned.types)])
    assert.deepStrictEqual(Object.keys(schemas).filter((type) => !hashed.has(type)), ["multiSig"])
  })
})
