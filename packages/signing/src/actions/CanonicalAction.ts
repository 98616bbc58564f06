/**
 * Converts an action to the form in which the venue hashes it, whatever the order and format of its JSON: L1 actions,
 * user-signed actions as EIP-712 typed data, and multi-sig wrappers. Recovers the signers of a request.
 *
 * The order, and the values that each member allows, are derived from the schemas of `ActionSchemas`.
 */
import { actionCatalog, formKeys, hasDocumentedForm, isActionType } from "@trigate/domain/actions/Action"
import type { ActionType, ActionTypeOf } from "@trigate/domain/actions/Action"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { actionSchemas } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Predicate from "effect/Predicate"
import * as Record from "effect/Record"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as Secp256k1 from "../Secp256k1.ts"
import { documentedChainField, mainnet, type VenueProfile } from "../VenueProfile.ts"
import * as ActionHash from "./ActionHash.ts"

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

/** An action as plain members, in the order in which they are hashed. */
export type Action = Readonly<Record<string, unknown>>

/** A value that is read from an action, or the reason why the action cannot be signed. */
type Checked<A> = Result.Result<A, ActionHash.UnsignableAction>

/** A value that is hashed, or the reason why it cannot be hashed. */
type Hashed<A> = Result.Result<A, ActionHash.Unhashable>

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

type Standing = "inOrder" | "otherOrder" | "notNamed"

/**
 * Compares the members of an object with the venue's order. Allocates nothing, because nearly every body is already in
 * order.
 */
const standing = (order: ActionOrder, given: Action): Standing => {
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

const putMembers = (order: ActionOrder, given: Action, combine: Combine): Action => {
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
export const arrangeMembers = (order: ActionOrder, action: Action): Action =>
  standing(order, action) === "otherOrder" ? putMembers(order, action, (known) => known) : action

/**
 * Sorts the known members of an action into the given member order, at every level. The unknown members of each object
 * are placed at index `at`, or omitted if `at` is undefined.
 */
export const arrangeAround = (order: ActionOrder, action: Action, at: number | undefined): Action =>
  putMembers(
    order,
    action,
    (known, unknown) => at === undefined ? known : [...known.slice(0, at), ...unknown, ...known.slice(at)]
  )

/** Returns whether an action has only members that the order has, at every level. */
export const isKnown = (order: ActionOrder, action: Action): boolean => standing(order, action) !== "notNamed"

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
  const members = membersIn(shape)
  // an object instead of a value or of a pair is a mistake, and its members are not unknown
  return Predicate.isReadonlyObject(given) && members.size > 0 ? findUnknown(members, given, path) : []
}

/** Returns the members and the words of an action that the order does not have. */
export const findUnknown = (
  order: ActionOrder,
  action: Action,
  path: UnknownPart["path"] = []
): ReadonlyArray<UnknownPart> =>
  Object.entries(action).flatMap(([name, item]): ReadonlyArray<UnknownPart> => {
    const place = order.get(name)
    return place === undefined
      ? [{ kind: "member", path: [...path, name] }]
      : unknownIn(place.shape, item, [...path, name])
  })

/** The declaration of a user-signed action type. In its typed data, the network field comes before `fields`. */
export interface UserSignedType {
  readonly actionType: ActionTypeOf<"userSigned">
  /** Name of the message type, without the network profile's prefix `typePrefix`. */
  readonly name: string
  readonly fields: ReadonlyArray<ActionHash.Field>
  /**
   * For each field, a map from the sent value to the signed value. Contains only the fields for which these values can
   * differ.
   */
  readonly respelled?: { readonly [field: string]: ReadonlyMap<unknown, string> }
}

type Layout = Omit<UserSignedType, "actionType">

const textType = (name: string): ActionHash.Field => ({ name, type: "string" })
const address = (name: string): ActionHash.Field => ({ name, type: "address" })
const flag = (name: string): ActionHash.Field => ({ name, type: "bool" })
const uint64 = (name: string): ActionHash.Field => ({ name, type: "uint64" })

const nonce = uint64("nonce")
const time = uint64("time")
const wei = uint64("wei")

const texts = (...names: ReadonlyArray<string>) => names.map(textType)

const define = (name: string, ...fields: ReadonlyArray<ActionHash.Field>): Layout => ({ name, fields })

/** The signed value of an optional string that is absent or null: the empty string. */
const orEmpty: ReadonlyMap<unknown, string> = new Map([[undefined, ""], [null, ""]])

/**
 * Abbreviations for values of the field `abstraction`. A multi-sig action is sent with the abbreviation and signed with
 * the full name.
 */
const abstractions: ReadonlyMap<unknown, string> = new Map([
  ["i", "disabled"],
  ["u", "unifiedAccount"],
  ["p", "portfolioMargin"]
])

/** The user-signed actions of the catalog, as the venue's documentation and client libraries sign them. */
const published: { readonly [Type in ActionTypeOf<"userSigned">]: Layout } = {
  tokenDelegate: define("TokenDelegate", address("validator"), wei, flag("isUndelegate"), nonce),
  // the addresses of this action are signed as strings, so their letter case matters
  sendAsset: {
    ...define(
      "SendAsset",
      ...texts("destination", "sourceDex", "destinationDex", "token", "amount", "fromSubAccount"),
      nonce
    ),
    respelled: { fromSubAccount: orEmpty }
  },
  usdSend: define("UsdSend", textType("destination"), textType("amount"), time),
  spotSend: define("SpotSend", textType("destination"), textType("token"), textType("amount"), time),
  withdraw3: define("Withdraw", textType("destination"), textType("amount"), time),
  usdClassTransfer: define("UsdClassTransfer", textType("amount"), flag("toPerp"), nonce),
  cDeposit: define("CDeposit", wei, nonce),
  cWithdraw: define("CWithdraw", wei, nonce),
  approveAgent: {
    ...define("ApproveAgent", address("agentAddress"), textType("agentName"), nonce),
    respelled: { agentName: orEmpty }
  },
  approveBuilderFee: define("ApproveBuilderFee", textType("maxFeeRate"), address("builder"), nonce),
  convertToMultiSigUser: define("ConvertToMultiSigUser", textType("signers"), nonce),
  sendToEvmWithData: define(
    "SendToEvmWithData",
    ...texts("token", "amount", "sourceDex", "destinationRecipient", "addressEncoding"),
    { name: "destinationChainId", type: "uint32" },
    uint64("gasLimit"),
    { name: "data", type: "bytes" },
    nonce
  ),
  linkStakingUser: define("LinkStakingUser", address("user"), flag("isFinalize"), nonce),
  stakingLinkDisableTradingUser: define("StakingLinkDisableTradingUser", address("tradingUser"), nonce),
  userDexAbstraction: define("UserDexAbstraction", address("user"), flag("enabled"), nonce),
  userPortfolioMargin: define("UserPortfolioMargin", address("user"), flag("enabled"), nonce),
  userSetAbstraction: {
    ...define("UserSetAbstraction", address("user"), textType("abstraction"), nonce),
    respelled: { abstraction: abstractions }
  }
}

/** The user-signed types of the catalog by their `type`. */
export const types: { readonly [Type in ActionTypeOf<"userSigned">]: UserSignedType } = Record.map(
  published,
  (layout, actionType) => ({ actionType, ...layout })
)

const known: ReadonlyMap<string, UserSignedType> = new Map(Object.entries(types))

/** Returns the type of a user-signed action; `undefined` if the type is not user-signed or not known. */
export const find = (actionType: unknown): UserSignedType | undefined =>
  typeof actionType === "string" ? known.get(actionType) : undefined

/** Returns the field that repeats the nonce of the body: `time` in transfers and withdrawals, otherwise `nonce`. */
export const nonceField = ({ fields }: UserSignedType): ActionHash.Field | undefined =>
  fields.find(({ name }) => name === nonce.name || name === time.name)

/** The signing scheme of an action. An L1 action is hashed as a whole, a user-signed action field by field. */
export type SigningScheme =
  | { readonly scheme: "l1" }
  | { readonly scheme: "userSigned"; readonly type: UserSignedType }

const l1Scheme: SigningScheme = { scheme: "l1" }

/**
 * Returns the signing scheme of any action except a multi-sig wrapper.
 *
 * Fails with `UnsignableAction` (`unknownType`) for an unknown action with a `signatureChainId`. Only user-signed
 * actions have that member, but the fields to sign are unknown for this type. If such an action were hashed as an L1
 * action, its signature would recover to an unrelated address.
 */
export const signingScheme = (action: Action): Checked<SigningScheme> => {
  const type = find(action["type"])
  if (type !== undefined) return Result.succeed({ scheme: "userSigned", type })
  if (!Object.hasOwn(action, "signatureChainId")) return Result.succeed(l1Scheme)
  const detail = "User-signed action of a type with unknown fields"
  return Result.fail(new ActionHash.UnsignableAction({ reason: "unknownType", path: ["type"], detail }))
}

const partyFields = [address("payloadMultiSigUser"), address("outerSigner")]

const typedStruct = (profile: VenueProfile, type: Omit<UserSignedType, "actionType">) =>
  ActionHash.structType(profile.typePrefix + type.name, [textType(profile.chainField), ...type.fields])

/**
 * Returns the EIP-712 message type of a user-signed action type on the profile's network. Types and profiles are
 * constants, so the message type of each pair is hashed only once.
 */
export const struct = memoize((profile: VenueProfile) =>
  memoize((type: Omit<UserSignedType, "actionType">) => typedStruct(profile, type))
)

const innerStruct = memoize((profile: VenueProfile) =>
  memoize((type: UserSignedType) => typedStruct(profile, { name: type.name, fields: [...partyFields, ...type.fields] }))
)

/** The names of the network field in the schemas of actions. */
const chainFields: ReadonlySet<string> = new Set([documentedChainField, mainnet.chainField])

/** The kinds of values that are signed as the text that was sent, if the field of the typed data is a string. */
const signedAsSent: ReadonlySet<Kind> = new Set(["decimal", "address"])

/**
 * Returns the members of a user-signed action with the kinds of their values, in the order in which the venue hashes
 * them inside a multi-sig wrapper.
 */
export const order = memoize((profile: VenueProfile) =>
  memoize((type: UserSignedType) => {
    const members = new Map<string, MemberPosition>()
    for (const [name, place] of declared(type.actionType)) {
      const { shape } = place
      const isText = type.fields.some((field) => field.name === name && field.type === "string")
      if (chainFields.has(name)) members.set(profile.chainField, { ...place, presence: "required" })
      else if (isText && shape._tag === "Value" && signedAsSent.has(shape.kind)) {
        members.set(name, { ...place, hashesNull: true, shape: { ...shape, kind: "text" } })
      } else members.set(name, { ...place, hashesNull: true })
    }
    return make(members)
  })
)

const domains: (profile: VenueProfile) => Map<number | bigint, ActionHash.Domain> = memoize(() => new Map())

/**
 * Maximum number of cached domains; limited, because callers choose the chain ID. A small cache is enough, because only
 * a few chains are in use.
 */
const cachedDomains = 64

/**
 * Returns the EIP-712 domain of a `signatureChainId`, which must be 0x hex of at most 64 bits. Fails with
 * `UnsignableAction`.
 */
export const domain = (profile: VenueProfile, signatureChainId: unknown): Checked<ActionHash.Domain> => {
  if (typeof signatureChainId !== "string" || !/^0x[0-9a-fA-F]{1,16}$/.test(signatureChainId)) {
    return Result.fail(ActionHash.wrongShape("signatureChainId", "a chain id of at most 64 bits in 0x hex"))
  }
  const wide = BigInt(signatureChainId)
  const chainId = wide <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(wide) : wide
  const cache = domains(profile)
  const cached = cache.get(chainId)
  if (cached !== undefined) return Result.succeed(cached)
  const made = ActionHash.domain(profile.userSignedDomain, chainId)
  if (cache.size < cachedDomains) cache.set(chainId, made)
  return Result.succeed(made)
}

/** Returns the network field, which comes first in every user-signed message. */
export const chainMember = (profile: VenueProfile): ActionHash.Member => ({
  name: profile.chainField,
  type: "string",
  value: profile.chainName
})

const checkNetwork = (profile: VenueProfile, action: Action): Checked<void> => {
  const chain = action[profile.chainField]
  if (chain === profile.chainName) return Result.succeed(undefined)
  if (typeof chain !== "string") return Result.fail(ActionHash.wrongShape(profile.chainField, `"${profile.chainName}"`))
  const detail = `The action is for "${chain}", not for "${profile.chainName}"`
  return Result.fail(new ActionHash.UnsignableAction({ reason: "otherNetwork", path: [profile.chainField], detail }))
}

const readMember = (name: string, type: ActionHash.Field["type"], value: unknown): ActionHash.Member | undefined => {
  switch (type) {
    case "string":
      return typeof value === "string" && value.isWellFormed() ? { name, type, value } : undefined
    case "bool":
      return typeof value === "boolean" ? { name, type, value } : undefined
    case "uint32":
    case "uint64": {
      const isInRange = type === "uint32"
        ? ActionHash.toUint32(value) !== undefined
        : ActionHash.toUint64(value) !== undefined
      return isInRange && (typeof value === "number" || typeof value === "bigint") ? { name, type, value } : undefined
    }
    case "address":
      return ActionHash.isAddress(value) ? { name, type, value: Encoding.lowerCase(value) } : undefined
    case "bytes32":
      return ActionHash.isWord(value) ? { name, type, value: Encoding.lowerCase(value) } : undefined
    case "bytes":
      return ActionHash.isBytes(value) ? { name, type, value } : undefined
  }
}

const expected: Readonly<Record<ActionHash.Field["type"], string>> = {
  string: "a well-formed string",
  bool: "a boolean",
  uint32: "an unsigned 32-bit integer",
  uint64: "an unsigned 64-bit integer",
  address: "a 20-byte address",
  bytes: "bytes in 0x hex",
  bytes32: "32 bytes in 0x hex"
}

const readMembers = (
  { fields, respelled }: UserSignedType,
  action: Action
): Checked<ReadonlyArray<ActionHash.Member>> =>
  Result.all(fields.map((field) => {
    const sent = action[field.name]
    const member = readMember(field.name, field.type, respelled?.[field.name]?.get(sent) ?? sent)
    return member === undefined
      ? Result.fail(ActionHash.wrongShape(field.name, expected[field.type]))
      : Result.succeed(member)
  }))

const build = (
  profile: VenueProfile,
  type: UserSignedType,
  action: Action,
  messageType: ActionHash.StructType,
  parties: ReadonlyArray<ActionHash.Member>
): Checked<ActionHash.Signable> =>
  Result.gen(function*() {
    yield* checkNetwork(profile, action)
    return {
      domain: yield* domain(profile, action["signatureChainId"]),
      struct: messageType,
      members: [chainMember(profile), ...parties, ...(yield* readMembers(type, action))]
    }
  })

/**
 * Returns the message to sign for a user-signed action as sent. Fails with `UnsignableAction` if a field is missing,
 * has the wrong type, or names a network that is not the profile's.
 */
export const signable = (profile: VenueProfile, type: UserSignedType, action: Action): Checked<ActionHash.Signable> =>
  build(profile, type, action, struct(profile)(type), [])

/** Returns the message that each inner signer of a multi-sig wrapper signs. Fails like {@link signable}. */
export const innerSignable = (
  profile: VenueProfile,
  type: UserSignedType,
  action: Action,
  { multiSigUser, outerSigner }: Pick<Wrapper["payload"], "multiSigUser" | "outerSigner">
): Checked<ActionHash.Signable> =>
  build(profile, type, action, innerStruct(profile)(type), [
    { name: "payloadMultiSigUser", type: "address", value: Encoding.lowerCase(multiSigUser) },
    { name: "outerSigner", type: "address", value: Encoding.lowerCase(outerSigner) }
  ])

/**
 * Maximum number of signatures in a `multiSig` action.
 *
 * An account has at most this number of authorized users, and the venue counts one signature of each user. Further
 * signatures would have no effect.
 */
export const maxSigners = 10

const Scalar = Schema.String.check(Schema.isPattern(/^0x[0-9a-fA-F]{1,64}$/u))

const Address = Schema.String.pipe(Schema.refine(ActionHash.isAddress))

/** The schema of a multi-sig wrapper. */
const Wrapper = Schema.Struct({
  /** A chain ID in 0x hex. The venue hashes it as text, so send it in lower case without leading zeros. */
  signatureChainId: Schema.String,
  /** One signature for each inner signer. */
  signatures: Schema.Array(Schema.Struct({ r: Scalar, s: Scalar, v: Schema.Union([Schema.Int, Schema.BigInt]) }))
    .check(Schema.isBetweenLength(1, maxSigners)),
  payload: Schema.Struct({
    multiSigUser: Address,
    /** The leader, who signs the wrapper. The wrapper has the leader's nonce. */
    outerSigner: Address,
    action: Schema.Unknown.pipe(Schema.refine(Predicate.isReadonlyObject))
  })
})
export type Wrapper = typeof Wrapper.Type

/**
 * A multi-sig wrapper in the form in which the venue hashes it: keys in order, addresses in lower case, `r` and `s`
 * without leading zeros.
 */
export interface MultiSigAction extends Wrapper {
  readonly type: "multiSig"
}

const decode = Schema.decodeUnknownResult(Wrapper)

/** Returns a multi-sig wrapper in the venue's form. The inner action is unchanged. */
export const normalize = ({ payload, signatureChainId, signatures }: Wrapper): MultiSigAction => ({
  type: "multiSig",
  signatureChainId,
  signatures: signatures.map(Secp256k1.trimmed),
  payload: {
    multiSigUser: Encoding.lowerCase(payload.multiSigUser),
    outerSigner: Encoding.lowerCase(payload.outerSigner),
    action: payload.action
  }
})

/**
 * Decodes a multi-sig wrapper and {@link normalize}s it. Fails with `UnsignableAction`, which describes the first
 * mistake.
 */
export const read = (action: unknown): Checked<MultiSigAction> =>
  Result.mapBoth(decode(action), { onFailure: ActionHash.undecodable, onSuccess: normalize })

const sendMultiSig = {
  name: "SendMultiSig",
  fields: [{ name: "multiSigActionHash", type: "bytes32" }, { name: "nonce", type: "uint64" }]
} as const

const fromInner = (error: ActionHash.UnsignableAction) => error.within("payload", "action")

/** Returns the value whose hash the leader signs: the multi-sig wrapper without its `type`. */
export const hashedWrapper = ({ payload, signatureChainId, signatures }: Wrapper) => ({
  signatureChainId,
  signatures,
  payload
})

/** Returns the value whose hash the inner signers sign for an L1 action. */
export const innerValue = ({ payload }: Wrapper) => [payload.multiSigUser, payload.outerSigner, payload.action]

/**
 * Returns the `multiSigActionHash` of a multi-sig wrapper in canonical form. Fails with `MsgPackUnencodable` or
 * `UnsignableAction`.
 */
export const actionHash = (
  action: MultiSigAction,
  context: ActionHash.HashContext
): Hashed<ActionHash.Hex> => ActionHash.hash(hashedWrapper(action), context)

/** Returns the message that the leader signs for a given `multiSigActionHash`. Fails with `UnsignableAction`. */
export const leaderSignable = (
  profile: VenueProfile,
  signatureChainId: string,
  hash: ActionHash.Hex,
  nonce: number | bigint
): Checked<ActionHash.Signable> =>
  Result.map(domain(profile, signatureChainId), (domain) => ({
    domain,
    struct: struct(profile)(sendMultiSig),
    members: [
      chainMember(profile),
      { name: "multiSigActionHash", type: "bytes32", value: hash },
      { name: "nonce", type: "uint64", value: nonce }
    ]
  }))

/**
 * Returns the message that the leader signs for a multi-sig wrapper. Fails with `MsgPackUnencodable` or
 * `UnsignableAction`.
 */
export const outerSignable = (
  profile: VenueProfile,
  action: MultiSigAction,
  context: ActionHash.HashContext
): Hashed<ActionHash.Signable> =>
  Result.flatMap(
    actionHash(action, context),
    (hash) => leaderSignable(profile, action.signatureChainId, hash, context.nonce)
  )

/**
 * Returns the message that each inner signer of a multi-sig wrapper signs. The type of the inner action determines the
 * signing scheme. The message does not depend on the signatures in the wrapper.
 *
 * An L1 inner action is signed with the wrapper's nonce, vault and expiry. Fails with `MsgPackUnencodable` or
 * `UnsignableAction`.
 */
export const cosignerSignable = (
  profile: VenueProfile,
  action: Wrapper,
  context: ActionHash.HashContext
): Hashed<ActionHash.Signable> =>
  Result.gen(function*() {
    const inner = action.payload.action
    const scheme = yield* signingScheme(inner).pipe(Result.mapError(fromInner))
    return scheme.scheme === "l1"
      ? yield* ActionHash.signable(profile, innerValue(action), context)
      : yield* innerSignable(profile, scheme.type, inner, action.payload).pipe(Result.mapError(fromInner))
  })

/** An action in the venue's form: a multi-sig wrapper, or any other action. */
export type CanonicalAction =
  | { readonly kind: "single"; readonly action: Action }
  | { readonly kind: "multiSig"; readonly action: MultiSigAction }

type KnownType = keyof typeof formKeys

const respell = (profile: VenueProfile, action: Action): Checked<Action> => {
  if (!Object.hasOwn(action, documentedChainField)) return Result.succeed(action)
  return Object.hasOwn(action, profile.chainField)
    ? Result.fail(ActionHash.wrongShape(documentedChainField, `absent where "${profile.chainField}" is present`))
    : Result.succeed(Object.fromEntries(
      Object.entries(action).map(([key, value]) => [key === documentedChainField ? profile.chainField : key, value])
    ))
}

/** Returns the member order of an action type; `undefined` for an unknown type. */
export const orderIn = (profile: VenueProfile, type: unknown): ActionOrder | undefined => {
  const userSigned = find(type)
  return userSigned === undefined ? l1(type) : order(profile)(userSigned)
}

const arrange = (profile: VenueProfile, type: KnownType, action: Action): Checked<Action> => {
  const { advice, documented, real } = formKeys[type]
  const has = (key: string) => Object.hasOwn(action, key)
  const keys = [...orderIn(profile, type) ?? []].flatMap(([key, { presence }]) =>
    presence !== "oneOf" || has(key) ? [key] : []
  )
  const forms = keys.every(has) ? real.filter(has).length : 0
  if (forms !== 1) {
    const detail = `${type} must have the members ${real.join(" or ")}`
    return Result.fail(
      forms > 1 || !has(documented)
        ? new ActionHash.UnsignableAction({ reason: "shape", path: [], detail })
        : new ActionHash.UnsignableAction({ reason: "documentedForm", path: [documented], detail: advice })
    )
  }
  return Result.succeed(Object.fromEntries(keys.map((key) => {
    const value = action[key]
    return [key, key === "validator" && Predicate.isString(value) ? value.toLowerCase() : value]
  })))
}

const single = (profile: VenueProfile, action: Action): Checked<Action> =>
  Result.flatMap(respell(profile, action), (respelled) => {
    const type = respelled["type"]
    if (!Predicate.isString(type)) return Result.succeed(respelled)
    if (hasDocumentedForm(type)) return arrange(profile, type, respelled)
    const order = l1(type)
    return Result.succeed(order === undefined ? respelled : arrangeMembers(order, respelled))
  })

const sortMembers = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sortMembers)
  return Predicate.isReadonlyObject(value)
    ? Object.fromEntries(
      Object.entries(value).toSorted(([a], [b]) => a < b ? -1 : 1).map(([name, item]) => [name, sortMembers(item)])
    )
    : value
}

const typeFirst = ({ type, ...members }: Action): Action => ({ type, ...members })

/** The index of an unknown member in its object that is tried last; most objects of actions have fewer members. */
const lastIndex = 8

/**
 * Generates forms in which an action with an unknown type or member can have been hashed, most likely first: as sent,
 * with its unknown members behind or between the known ones, without them, and with sorted members. Only the sender knows
 * the positions of unknown members. Generates nothing for any other action.
 */
const unknownForms = function*(profile: VenueProfile, action: Action): Generator<Action> {
  const order = orderIn(profile, action["type"])
  if (order !== undefined && isKnown(order, action)) return
  yield action
  if (order !== undefined) {
    yield arrangeAround(order, action, Infinity)
    yield arrangeAround(order, action, undefined)
    for (let at = lastIndex; at >= 0; at--) yield arrangeAround(order, action, at)
  }
  const sorted = sortMembers(action)
  yield typeFirst(action)
  if (Predicate.isReadonlyObject(sorted)) yield* [typeFirst(sorted), sorted]
}

/**
 * Converts an action to the form in which its multi-sig wrapper is hashed. Fails with `UnsignableAction`, also for a
 * nested wrapper.
 *
 * The key order of a user-signed action matters only inside a wrapper, which is hashed whole. Outside a wrapper, the
 * action is signed field by field.
 */
export const canonicalizeInner = (profile: VenueProfile, action: Action): Checked<Action> =>
  action["type"] === "multiSig"
    ? Result.fail(ActionHash.wrongShape("type", "an action type other than multiSig"))
    : Result.map(single(profile, action), (spelled) => {
      const type = find(spelled["type"])
      return type === undefined ? spelled : arrangeMembers(order(profile)(type), spelled)
    })

/**
 * Like {@link canonicalize}, for a decoded multi-sig wrapper.
 *
 * Also converts the inner action. Fails with `UnsignableAction`, also for a nested wrapper.
 */
export const canonicalizeMultiSig = (profile: VenueProfile, wrapper: Wrapper): Checked<CanonicalAction> =>
  Result.mapBoth(canonicalizeInner(profile, wrapper.payload.action), {
    onFailure: (error) => error.within("payload", "action"),
    onSuccess: (action): CanonicalAction => ({
      kind: "multiSig",
      action: normalize({ ...wrapper, payload: { ...wrapper.payload, action } })
    })
  })

/**
 * Converts an action to the venue's form. Fails with `UnsignableAction`, also for a wrapper inside a wrapper.
 *
 * `multiSig`, `evmUserModify`, `CSignerAction` and `tokenDelegate` get the venue's key order, lower-case addresses and
 * the profile's chain field, and lose members that the venue ignores. Actions with published members get the venue's
 * order at every level ({@link l1}). All other actions keep their own order.
 */
export const canonicalize = (profile: VenueProfile, action: unknown): Checked<CanonicalAction> => {
  if (!Predicate.isReadonlyObject(action)) return Result.fail(ActionHash.wrongShape("action", "an object"))
  return action["type"] === "multiSig"
    ? Result.flatMap(read(action), (wrapper) => canonicalizeMultiSig(profile, wrapper))
    : Result.map(single(profile, action), (action) => ({ kind: "single", action }))
}

/**
 * Generates other forms in which an action whose type or members are unknown can have been hashed, most likely first.
 * `sent` is the action as sent or, for a wrapper, its inner action. A known signer confirms a form; without one,
 * {@link canonicalize} returns the most likely form.
 */
export const otherForms = function*(
  profile: VenueProfile,
  { action, kind }: CanonicalAction,
  sent: Action
): Generator<CanonicalAction> {
  const spelled = Result.getOrElse(respell(profile, sent), () => sent)
  if (kind === "multiSig") {
    for (const form of unknownForms(profile, spelled)) {
      yield { kind, action: { ...action, payload: { ...action.payload, action: form } } }
    }
  } else if (find(spelled["type"]) === undefined) {
    for (const form of unknownForms(profile, spelled)) yield { kind, action: form }
  }
}

/** A signed request parsed from JSON. Integers in the request can be numbers or bigints. */
export interface SignedRequest extends ActionHash.HashContext {
  readonly action: unknown
  readonly signature: Secp256k1.Signature
}

/** An address (lower case) and the digest that the address signed. */
export interface Signer {
  readonly signer: ActionHash.Hex
  readonly digest: ActionHash.Hex
}

/**
 * The recovered signer; for a multi-sig wrapper, `inner` has one signer for each signature in the wrapper, in order.
 */
export type RecoveredSigner =
  | Signer & { readonly scheme: "l1" | "userSigned" }
  | Signer & { readonly scheme: "multiSig"; readonly inner: ReadonlyArray<Signer> }

/**
 * The messages that the signers of a request sign; for a multi-sig wrapper, `inner` is the message of the co-signers,
 * with their signatures.
 */
export type RequestSignable =
  | { readonly scheme: "l1" | "userSigned"; readonly outer: ActionHash.Signable }
  | {
    readonly scheme: "multiSig"
    readonly outer: ActionHash.Signable
    readonly inner: ActionHash.Signable
    readonly innerSignatures: ReadonlyArray<Secp256k1.Signature>
  }

/** Like {@link requestSignable}, for an action already in the venue's form. Fails with the same errors. */
export const toSignable = (
  profile: VenueProfile,
  { action, kind }: CanonicalAction,
  context: ActionHash.HashContext
): Hashed<RequestSignable> => {
  if (kind === "multiSig") {
    return Result.flatMap(outerSignable(profile, action, context), (outer) =>
      Result.map(
        cosignerSignable(profile, action, context),
        (inner) => ({ scheme: kind, outer, inner, innerSignatures: action.signatures })
      ))
  }
  return Result.flatMap(
    signingScheme(action),
    (scheme): Hashed<RequestSignable> =>
      Result.map(
        scheme.scheme === "l1"
          ? ActionHash.signable(profile, action, context)
          : signable(profile, scheme.type, action),
        (outer) => ({ scheme: scheme.scheme, outer })
      )
  )
}

/**
 * Returns the message to sign for a request, from its action, nonce, vault and expiry.
 *
 * Fails with `MsgPackUnencodable` or `UnsignableAction`. The reason of `UnsignableAction` is `documentedForm` for a
 * form that appears only in the venue's documentation.
 */
export const requestSignable = (
  profile: VenueProfile,
  request: Omit<SignedRequest, "signature">
): Hashed<RequestSignable> =>
  Result.flatMap(
    canonicalize(profile, request.action),
    (canonical) => toSignable(profile, canonical, request)
  )

/**
 * Recovers the signers of the messages that {@link toSignable} returns. Uses the given engine. Fails with
 * `UnrecoverableSignature`.
 */
export const recoverResult = (
  found: RequestSignable,
  signature: Secp256k1.Signature,
  engine: Secp256k1.Engine
): Result.Result<RecoveredSigner, Secp256k1.UnrecoverableSignature> => {
  const digest = ActionHash.digest(found.outer)
  const outer = Secp256k1.recoverResult(digest, signature, engine)
  if (Result.isFailure(outer)) return Result.fail(outer.failure)
  const signer = outer.success
  if (found.scheme !== "multiSig") return Result.succeed({ scheme: found.scheme, signer, digest })
  const innerDigest = ActionHash.digest(found.inner)
  const inner: Array<Signer> = []
  for (const [innerIndex, signature] of found.innerSignatures.entries()) {
    const recovered = Secp256k1.recoverResult(innerDigest, signature, engine)
    if (Result.isFailure(recovered)) {
      const { reason } = recovered.failure
      return Result.fail(new Secp256k1.UnrecoverableSignature({ reason, innerIndex }))
    }
    inner.push({ signer: recovered.success, digest: innerDigest })
  }
  return Result.succeed({ scheme: found.scheme, signer, digest, inner })
}

/** Like {@link recover}, with the given engine. */
export const recoverRequest = (
  profile: VenueProfile,
  request: SignedRequest,
  engine: Secp256k1.Engine
): Result.Result<RecoveredSigner, ActionHash.Unhashable | Secp256k1.UnrecoverableSignature> =>
  Result.flatMap(requestSignable(profile, request), (found) => recoverResult(found, request.signature, engine))

/**
 * Recovers all signers of a request with the engine of `Secp256k1.Secp256k1`. Fails with `MsgPackUnencodable`,
 * `UnsignableAction` or `UnrecoverableSignature`.
 *
 * Recovery is not authorization: a signature of another message recovers to an unrelated address. The function does not
 * check that the recovered leader is the wrapper's `outerSigner`, nor that the nonce in a user-signed action equals the
 * nonce of the request.
 */
export const recover = (
  profile: VenueProfile,
  request: SignedRequest
): Effect.Effect<RecoveredSigner, ActionHash.Unhashable | Secp256k1.UnrecoverableSignature> =>
  Effect.flatMap(
    Secp256k1.Secp256k1,
    (engine) => Effect.fromResult(recoverRequest(profile, request, engine))
  )

/**
 * Returns the ID of signed content: the keccak-256 of the content and the signature, in 0x hex of 64 digits.
 *
 * `covered` is the signed digest or, if it cannot be derived, the canonical text of the request. The format of the
 * signature does not affect the ID: neither letter case, nor leading zeros, nor `v` as 0 and 1 instead of 27 and 28.
 */
export const fingerprint = (covered: string, signature: Secp256k1.Signature): ActionHash.Hex => {
  const { r, s, v } = Secp256k1.trimmed(signature)
  return ActionHash.toHex(ActionHash.keccak256(Encoding.encode([covered, r, s, Number(v) % 27].join(" "))))
}
