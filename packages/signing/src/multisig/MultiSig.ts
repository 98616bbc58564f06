/** Decodes multi-sig wrappers, and returns the messages that the inner signers and the leader sign. */
import { lowerCase } from "@trigate/domain/encoding/Hex"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as ActionHash from "../actions/ActionHash.ts"
import type * as Signable from "../actions/Signable.ts"
import * as UserSigned from "../actions/UserSigned.ts"
import { type Hex, isAddress } from "../internal/bytes.ts"
import { trimmed } from "../Secp256k1.ts"
import type { VenueProfile } from "../VenueProfile.ts"

/**
 * Maximum number of signatures in a `multiSig` action.
 *
 * An account has at most this number of authorized users, and the venue counts one signature of each user. Further
 * signatures would have no effect.
 */
export const maxSigners = 10

const Scalar = Schema.String.check(Schema.isPattern(/^0x[0-9a-fA-F]{1,64}$/u))

const Address = Schema.String.pipe(Schema.refine(isAddress))

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
  signatures: signatures.map(trimmed),
  payload: {
    multiSigUser: lowerCase(payload.multiSigUser),
    outerSigner: lowerCase(payload.outerSigner),
    action: payload.action
  }
})

/**
 * Decodes a multi-sig wrapper and {@link normalize}s it. Fails with `UnsignableAction`, which describes the first
 * mistake.
 */
export const read = (action: unknown): Result.Result<MultiSigAction, ActionHash.UnsignableAction> =>
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
): Result.Result<Hex, ActionHash.Unhashable> => ActionHash.hash(hashedWrapper(action), context)

/** Returns the message that the leader signs for a given `multiSigActionHash`. Fails with `UnsignableAction`. */
export const leaderSignable = (
  profile: VenueProfile,
  signatureChainId: string,
  hash: Hex,
  nonce: number | bigint
): Result.Result<Signable.Signable, ActionHash.UnsignableAction> =>
  Result.map(UserSigned.domain(profile, signatureChainId), (domain) => ({
    domain,
    struct: UserSigned.struct(profile)(sendMultiSig),
    members: [
      UserSigned.chainMember(profile),
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
): Result.Result<Signable.Signable, ActionHash.Unhashable> =>
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
export const innerSignable = (
  profile: VenueProfile,
  action: Wrapper,
  context: ActionHash.HashContext
): Result.Result<Signable.Signable, ActionHash.Unhashable> =>
  Result.gen(function*() {
    const inner = action.payload.action
    const scheme = yield* UserSigned.signingScheme(inner).pipe(Result.mapError(fromInner))
    return scheme.scheme === "l1"
      ? yield* ActionHash.signable(profile, innerValue(action), context)
      : yield* UserSigned.innerSignable(profile, scheme.type, inner, action.payload).pipe(Result.mapError(fromInner))
  })
