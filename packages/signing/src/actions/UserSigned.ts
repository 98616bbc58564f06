/** User-signed actions: their fields are signed as EIP-712 typed data, instead of a hash of the action. */
import type { ActionTypeOf } from "@trigate/domain/actions/ActionCatalog"
import { lowerCase } from "@trigate/domain/encoding/Hex"
import { memoize } from "effect/Function"
import * as Record from "effect/Record"
import * as Result from "effect/Result"
import { isAddress, isBytes, isWord, toUint32, toUint64 } from "../internal/bytes.ts"
import { documentedChainField, mainnet, type VenueProfile } from "../VenueProfile.ts"
import { UnsignableAction, wrongShape } from "./ActionHash.ts"
import * as ActionOrder from "./ActionOrder.ts"
import * as Signable from "./Signable.ts"

/** The declaration of a user-signed action type. In its typed data, the network field comes before `fields`. */
export interface UserSignedType {
  readonly actionType: ActionTypeOf<"userSigned">
  /** Name of the message type, without the network profile's prefix `typePrefix`. */
  readonly name: string
  readonly fields: ReadonlyArray<Signable.Field>
  /**
   * For each field, a map from the sent value to the signed value. Contains only the fields for which these values can
   * differ.
   */
  readonly respelled?: { readonly [field: string]: ReadonlyMap<unknown, string> }
}

type Layout = Omit<UserSignedType, "actionType">

const text = (name: string): Signable.Field => ({ name, type: "string" })
const address = (name: string): Signable.Field => ({ name, type: "address" })
const flag = (name: string): Signable.Field => ({ name, type: "bool" })
const uint64 = (name: string): Signable.Field => ({ name, type: "uint64" })

const nonce = uint64("nonce")
const time = uint64("time")
const wei = uint64("wei")

const define = (name: string, ...fields: ReadonlyArray<Signable.Field>): Layout => ({ name, fields })

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
      text("destination"),
      text("sourceDex"),
      text("destinationDex"),
      text("token"),
      text("amount"),
      text("fromSubAccount"),
      nonce
    ),
    respelled: { fromSubAccount: orEmpty }
  },
  usdSend: define("UsdSend", text("destination"), text("amount"), time),
  spotSend: define("SpotSend", text("destination"), text("token"), text("amount"), time),
  withdraw3: define("Withdraw", text("destination"), text("amount"), time),
  usdClassTransfer: define("UsdClassTransfer", text("amount"), flag("toPerp"), nonce),
  cDeposit: define("CDeposit", wei, nonce),
  cWithdraw: define("CWithdraw", wei, nonce),
  approveAgent: {
    ...define("ApproveAgent", address("agentAddress"), text("agentName"), nonce),
    respelled: { agentName: orEmpty }
  },
  approveBuilderFee: define("ApproveBuilderFee", text("maxFeeRate"), address("builder"), nonce),
  convertToMultiSigUser: define("ConvertToMultiSigUser", text("signers"), nonce),
  sendToEvmWithData: define(
    "SendToEvmWithData",
    text("token"),
    text("amount"),
    text("sourceDex"),
    text("destinationRecipient"),
    text("addressEncoding"),
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
    ...define("UserSetAbstraction", address("user"), text("abstraction"), nonce),
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
export const nonceField = ({ fields }: UserSignedType): Signable.Field | undefined =>
  fields.find(({ name }) => name === nonce.name || name === time.name)

/** The signing scheme of an action. An L1 action is hashed as a whole, a user-signed action field by field. */
export type SigningScheme =
  | { readonly scheme: "l1" }
  | { readonly scheme: "userSigned"; readonly type: UserSignedType }

const l1: SigningScheme = { scheme: "l1" }

/**
 * Returns the signing scheme of any action except a multi-sig wrapper.
 *
 * Fails with `UnsignableAction` (`unknownType`) for an unknown action with a `signatureChainId`. Only user-signed
 * actions have that member, but the fields to sign are unknown for this type. If such an action were hashed as an L1
 * action, its signature would recover to an unrelated address.
 */
export const signingScheme = (
  action: Readonly<Record<string, unknown>>
): Result.Result<SigningScheme, UnsignableAction> => {
  const type = find(action["type"])
  if (type !== undefined) return Result.succeed({ scheme: "userSigned", type })
  if (!Object.hasOwn(action, "signatureChainId")) return Result.succeed(l1)
  const detail = "User-signed action of a type with unknown fields"
  return Result.fail(new UnsignableAction({ reason: "unknownType", path: ["type"], detail }))
}

/** The addresses (20 bytes each) of a multi-sig wrapper's account and leader. The inner signatures also cover them. */
export interface MultiSigParties {
  readonly multiSigUser: `0x${string}`
  readonly outerSigner: `0x${string}`
}

const partyFields = [address("payloadMultiSigUser"), address("outerSigner")]

const typedStruct = (profile: VenueProfile, type: Omit<UserSignedType, "actionType">) =>
  Signable.structType(profile.typePrefix + type.name, [text(profile.chainField), ...type.fields])

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
const signedAsSent: ReadonlySet<ActionOrder.Kind> = new Set(["decimal", "address"])

/**
 * Returns the members of a user-signed action with the kinds of their values, in the order in which the venue hashes
 * them inside a multi-sig wrapper.
 */
export const order = memoize((profile: VenueProfile) =>
  memoize((type: UserSignedType) => {
    const members = new Map<string, ActionOrder.MemberPosition>()
    for (const [name, place] of ActionOrder.declared(type.actionType)) {
      const { shape } = place
      const isText = type.fields.some((field) => field.name === name && field.type === "string")
      if (chainFields.has(name)) members.set(profile.chainField, { ...place, presence: "required" })
      else if (isText && shape._tag === "Value" && signedAsSent.has(shape.kind)) {
        members.set(name, { ...place, hashesNull: true, shape: { ...shape, kind: "text" } })
      } else members.set(name, { ...place, hashesNull: true })
    }
    return ActionOrder.make(members)
  })
)

const domains: (profile: VenueProfile) => Map<number | bigint, Signable.Domain> = memoize(() => new Map())

/**
 * Maximum number of cached domains; limited, because callers choose the chain ID. A small cache is enough, because only
 * a few chains are in use.
 */
const cachedDomains = 64

/**
 * Returns the EIP-712 domain of a `signatureChainId`, which must be 0x hex of at most 64 bits. Fails with
 * `UnsignableAction`.
 */
export const domain = (
  profile: VenueProfile,
  signatureChainId: unknown
): Result.Result<Signable.Domain, UnsignableAction> => {
  if (typeof signatureChainId !== "string" || !/^0x[0-9a-fA-F]{1,16}$/.test(signatureChainId)) {
    return Result.fail(wrongShape("signatureChainId", "a chain id of at most 64 bits in 0x hex"))
  }
  const wide = BigInt(signatureChainId)
  const chainId = wide <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(wide) : wide
  const cache = domains(profile)
  const cached = cache.get(chainId)
  if (cached !== undefined) return Result.succeed(cached)
  const made = Signable.domain(profile.userSignedDomain, chainId)
  if (cache.size < cachedDomains) cache.set(chainId, made)
  return Result.succeed(made)
}

/** Returns the network field, which comes first in every user-signed message. */
export const chainMember = (profile: VenueProfile): Signable.Member => ({
  name: profile.chainField,
  type: "string",
  value: profile.chainName
})

const checkNetwork = (
  profile: VenueProfile,
  action: Readonly<Record<string, unknown>>
): Result.Result<void, UnsignableAction> => {
  const chain = action[profile.chainField]
  if (chain === profile.chainName) return Result.succeed(undefined)
  if (typeof chain !== "string") return Result.fail(wrongShape(profile.chainField, `"${profile.chainName}"`))
  const detail = `The action is for "${chain}", not for "${profile.chainName}"`
  return Result.fail(new UnsignableAction({ reason: "otherNetwork", path: [profile.chainField], detail }))
}

const readMember = (name: string, type: Signable.Field["type"], value: unknown): Signable.Member | undefined => {
  switch (type) {
    case "string":
      return typeof value === "string" && value.isWellFormed() ? { name, type, value } : undefined
    case "bool":
      return typeof value === "boolean" ? { name, type, value } : undefined
    case "uint32":
      return (typeof value === "number" || typeof value === "bigint") && toUint32(value) !== undefined
        ? { name, type, value }
        : undefined
    case "uint64":
      return (typeof value === "number" || typeof value === "bigint") && toUint64(value) !== undefined
        ? { name, type, value }
        : undefined
    case "address":
      return isAddress(value) ? { name, type, value: lowerCase(value) } : undefined
    case "bytes32":
      return isWord(value) ? { name, type, value: lowerCase(value) } : undefined
    case "bytes":
      return isBytes(value) ? { name, type, value } : undefined
  }
}

const expected: Readonly<Record<Signable.Field["type"], string>> = {
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
  action: Readonly<Record<string, unknown>>
): Result.Result<ReadonlyArray<Signable.Member>, UnsignableAction> =>
  Result.all(fields.map((field) => {
    const sent = action[field.name]
    const member = readMember(field.name, field.type, respelled?.[field.name]?.get(sent) ?? sent)
    return member === undefined ? Result.fail(wrongShape(field.name, expected[field.type])) : Result.succeed(member)
  }))

const build = (
  profile: VenueProfile,
  type: UserSignedType,
  action: Readonly<Record<string, unknown>>,
  messageType: Signable.StructType,
  parties: ReadonlyArray<Signable.Member>
): Result.Result<Signable.Signable, UnsignableAction> =>
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
export const signable = (
  profile: VenueProfile,
  type: UserSignedType,
  action: Readonly<Record<string, unknown>>
): Result.Result<Signable.Signable, UnsignableAction> => build(profile, type, action, struct(profile)(type), [])

/** Returns the message that each inner signer of a multi-sig wrapper signs. Fails like {@link signable}. */
export const innerSignable = (
  profile: VenueProfile,
  type: UserSignedType,
  action: Readonly<Record<string, unknown>>,
  parties: MultiSigParties
): Result.Result<Signable.Signable, UnsignableAction> =>
  build(profile, type, action, innerStruct(profile)(type), [
    { name: "payloadMultiSigUser", type: "address", value: lowerCase(parties.multiSigUser) },
    { name: "outerSigner", type: "address", value: lowerCase(parties.outerSigner) }
  ])
