/** Hashes actions: the connection ID of an L1 action, and the action hash of a multi-sig wrapper. */
import { decodeFaults } from "@trigate/domain/operations/Operation"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { concat, fromHex, type Hex, isAddress, keccak256, toHex, toUint64, uint64Bytes } from "../internal/bytes.ts"
import type { VenueProfile } from "../VenueProfile.ts"
import * as MsgPack from "./MsgPack.ts"
import * as Signable from "./Signable.ts"

/**
 * The signed bytes of an action cannot be derived, so no signer can be recovered; `path` is the invalid member.
 *
 * `documentedForm`: a form that appears only in the venue's documentation. `shape`: a member is missing, of the wrong
 * type or out of range. `otherNetwork`: the action is not for the profile's network. `unknownType`: the action is
 * user-signed, and the fields of its type are unknown.
 */
export class UnsignableAction extends Schema.TaggedError<UnsignableAction>()("UnsignableAction", {
  reason: Schema.Literals(["documentedForm", "shape", "otherNetwork", "unknownType"]),
  path: Schema.Array(Schema.Union([Schema.String, Schema.Int])),
  detail: Schema.String
}) {
  get group() {
    return "fix-request" as const
  }
  override get message() {
    return this.detail
  }

  /** Prepends the path of the container to the error's path. */
  within(...prefix: ReadonlyArray<string | number>): UnsignableAction {
    return new UnsignableAction({ reason: this.reason, path: [...prefix, ...this.path], detail: this.detail })
  }
}

/** Makes a `shape` error for one member. */
export const wrongShape = (path: string, expected: string): UnsignableAction =>
  new UnsignableAction({ reason: "shape", path: [path], detail: `"${path}" must be ${expected}` })

/** Makes a `shape` error with the first decoding error of a value. */
export const undecodable = (error: Schema.SchemaError): UnsignableAction => {
  const [first] = decodeFaults(error)
  return new UnsignableAction({ reason: "shape", path: first?.path ?? [], detail: first?.message ?? error.message })
}

/** The reasons why an action cannot be hashed. */
export type Unhashable = MsgPack.MsgPackUnencodable | UnsignableAction

/** The values that are hashed with the action. `null` and absent are equivalent. */
export interface HashContext {
  /** The nonce in milliseconds since 1970, an unsigned 64-bit integer. */
  readonly nonce: number | bigint
  /** The vault or sub-account on whose behalf the action is signed, 20 bytes. */
  readonly vaultAddress?: string | null | undefined
  /** The expiry in milliseconds since 1970, an unsigned 64-bit integer. */
  readonly expiresAfter?: number | bigint | null | undefined
}

/**
 * Encodes an integer in eight bytes, big-endian. Fails with {@link UnsignableAction}, which contains the member's name.
 */
export const uint64 = (name: string, value: number | bigint): Result.Result<Uint8Array, UnsignableAction> => {
  const integer = toUint64(value)
  return integer === undefined
    ? Result.fail(wrongShape(name, "an unsigned 64-bit integer"))
    : Result.succeed(uint64Bytes(integer))
}

const absent = Uint8Array.of(0)
const nothing = new Uint8Array(0)

const vaultBytes = (vaultAddress: HashContext["vaultAddress"]): Result.Result<Uint8Array, UnsignableAction> => {
  if (vaultAddress === null || vaultAddress === undefined) return Result.succeed(absent)
  return isAddress(vaultAddress)
    ? Result.succeed(concat(Uint8Array.of(1), fromHex(vaultAddress)))
    : Result.fail(wrongShape("vaultAddress", "a 20-byte address"))
}

const expiryBytes = (expiresAfter: HashContext["expiresAfter"]): Result.Result<Uint8Array, UnsignableAction> =>
  expiresAfter === null || expiresAfter === undefined
    ? Result.succeed(nothing)
    : Result.map(uint64("expiresAfter", expiresAfter), (expiry) => concat(absent, expiry))

/**
 * Returns the bytes to hash: the value in MessagePack, the nonce, and then the vault and the expiry, each after a
 * marker byte.
 *
 * The value must already be in the venue's key order. Fails with `MsgPackUnencodable` or {@link UnsignableAction}.
 */
export const preimage = (
  value: unknown,
  { expiresAfter, nonce, vaultAddress }: HashContext
): Result.Result<Uint8Array, Unhashable> =>
  Result.flatMap(
    MsgPack.encode(value),
    (encoded) =>
      Result.flatMap(uint64("nonce", nonce), (nonce) =>
        Result.flatMap(vaultBytes(vaultAddress), (vault) =>
          Result.map(expiryBytes(expiresAfter), (expiry) =>
            concat(encoded, nonce, vault, expiry))))
  )

/** Returns the keccak-256 of the {@link preimage}. Fails with `MsgPackUnencodable` or {@link UnsignableAction}. */
export const hash = (value: unknown, context: HashContext): Result.Result<Hex, Unhashable> =>
  Result.map(preimage(value, context), (bytes) => toHex(keccak256(bytes)))

const agent = Signable.structType("Agent", [
  { name: "source", type: "string" },
  { name: "connectionId", type: "bytes32" }
])

/**
 * The signing domain of L1 actions on all networks. Its chain ID is 1337. A wallet that is connected to another chain
 * refuses to sign in this domain.
 */
const agentDomain = Signable.domain("Exchange", 1337)

/** Returns the phantom agent message that is signed for an L1 action; `connectionId` is the action's {@link hash}. */
export const agentSignable = (profile: VenueProfile, connectionId: Hex): Signable.Signable => ({
  domain: agentDomain,
  struct: agent,
  members: [
    { name: "source", type: "string", value: profile.source },
    { name: "connectionId", type: "bytes32", value: connectionId }
  ]
})

/** Returns the message to sign for an L1 action. Fails like {@link hash}. */
export const signable = (
  profile: VenueProfile,
  value: unknown,
  context: HashContext
): Result.Result<Signable.Signable, Unhashable> =>
  Result.map(hash(value, context), (connectionId) => agentSignable(profile, connectionId))
