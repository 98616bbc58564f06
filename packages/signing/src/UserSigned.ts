/** User-signed actions: the action's own fields are the typed data. */
import { memoize } from "effect/Function"
import * as Result from "effect/Result"
import { isAddress, isWord, lowerCase } from "./internal/bytes.ts"
import { toUint64 } from "./internal/uint64.ts"
import * as Signable from "./Signable.ts"
import { UnsignableAction, wrongShape } from "./UnsignableAction.ts"
import type { UserSignedType } from "./UserSignedType.ts"
import type { VenueProfile } from "./VenueProfile.ts"

/** The account and the leader that an inner signature of a multi-sig wrapper names; 20-byte addresses. */
export interface MultiSigParties {
  readonly multiSigUser: `0x${string}`
  readonly outerSigner: `0x${string}`
}

const partyFields: ReadonlyArray<Signable.Field> = [
  { name: "payloadMultiSigUser", type: "address" },
  { name: "outerSigner", type: "address" }
]

const structOf = (profile: VenueProfile, type: Omit<UserSignedType, "actionType">) =>
  Signable.structType(profile.typePrefix + type.name, [{ name: profile.chainField, type: "string" }, ...type.fields])

/** The message type of a user-signed type under a profile; both are constants, so each pair is hashed once. */
export const struct = memoize((profile: VenueProfile) =>
  memoize((type: Omit<UserSignedType, "actionType">) => structOf(profile, type))
)

const innerStruct = memoize((profile: VenueProfile) =>
  memoize((type: UserSignedType) => structOf(profile, { name: type.name, fields: [...partyFields, ...type.fields] }))
)

const domains: (profile: VenueProfile) => Map<number | bigint, Signable.Domain> = memoize(() => new Map())

/** Callers choose the chain id, so the cache has to stop somewhere; real ones are a handful. */
const cachedDomains = 64

/** The domain that a `signatureChainId` names: 0x hex of at most 64 bits. Fails with `UnsignableAction`. */
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
  const known = cache.get(chainId)
  if (known !== undefined) {
    return Result.succeed(known)
  }
  const made = Signable.domain(profile.userSignedDomain, chainId)
  if (cache.size < cachedDomains) {
    cache.set(chainId, made)
  }
  return Result.succeed(made)
}

/** The field that names the network, first in every user-signed message. */
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
  return chain === profile.chainName ? Result.succeed(undefined) : Result.fail(
    typeof chain === "string"
      ? new UnsignableAction({
        reason: "otherNetwork",
        path: [profile.chainField],
        detail: `The action is for "${chain}", not for "${profile.chainName}"`
      })
      : wrongShape(profile.chainField, `"${profile.chainName}"`)
  )
}

const readMember = (name: string, type: Signable.Field["type"], value: unknown): Signable.Member | undefined => {
  switch (type) {
    case "string":
      return typeof value === "string" && value.isWellFormed() ? { name, type, value } : undefined
    case "bool":
      return typeof value === "boolean" ? { name, type, value } : undefined
    case "uint64":
      return (typeof value === "number" || typeof value === "bigint") && toUint64(value) !== undefined
        ? { name, type, value }
        : undefined
    case "address":
      return isAddress(value) ? { name, type, value: lowerCase(value) } : undefined
    case "bytes32":
      return isWord(value) ? { name, type, value: lowerCase(value) } : undefined
  }
}

const expected: Readonly<Record<Signable.Field["type"], string>> = {
  string: "a well-formed string",
  bool: "a boolean",
  uint64: "an unsigned 64-bit integer",
  address: "a 20-byte address",
  bytes32: "32 bytes in 0x hex"
}

const readMembers = (
  type: UserSignedType,
  action: Readonly<Record<string, unknown>>
): Result.Result<ReadonlyArray<Signable.Member>, UnsignableAction> =>
  Result.all(type.fields.map((field) => {
    const member = readMember(field.name, field.type, action[field.name])
    return member === undefined
      ? Result.fail(wrongShape(field.name, expected[field.type]))
      : Result.succeed(member)
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
 * What signs a user-signed action in its wire spelling. Fails with `UnsignableAction` where a field is missing, of the
 * wrong type, or names another network.
 */
export const signable = (
  profile: VenueProfile,
  type: UserSignedType,
  action: Readonly<Record<string, unknown>>
): Result.Result<Signable.Signable, UnsignableAction> => build(profile, type, action, struct(profile)(type), [])

/** What each inner signer of a multi-sig wrapper signs; fails as {@link signable} does. */
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
