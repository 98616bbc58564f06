/** Multi-sig wrappers: what the inner signers sign, and what the leader signs over all of it. */
import * as Result from "effect/Result"
import * as ActionHash from "./ActionHash.ts"
import type { Hex } from "./internal/bytes.ts"
import * as L1Action from "./L1Action.ts"
import type { MultiSigAction } from "./MultiSigAction.ts"
import type * as Signable from "./Signable.ts"
import * as SigningScheme from "./SigningScheme.ts"
import type { UnsignableAction } from "./UnsignableAction.ts"
import * as UserSigned from "./UserSigned.ts"
import type { VenueProfile } from "./VenueProfile.ts"

const sendMultiSig = {
  name: "SendMultiSig",
  fields: [{ name: "multiSigActionHash", type: "bytes32" }, { name: "nonce", type: "uint64" }]
} as const

const fromInner = (error: UnsignableAction): UnsignableAction => error.within("payload", "action")

/** The value whose hash the leader signs: the wrapper without its `type`. */
export const hashedWrapper = ({ payload, signatureChainId, signatures }: MultiSigAction) => ({
  signatureChainId,
  signatures,
  payload
})

/** The value whose hash the inner signers sign when the inner action is an L1 action. */
export const innerValue = ({ payload }: MultiSigAction) => [payload.multiSigUser, payload.outerSigner, payload.action]

/** `multiSigActionHash` of a wrapper in canonical form. Fails with `MsgPackUnencodable` or `UnsignableAction`. */
export const actionHash = (
  action: MultiSigAction,
  context: ActionHash.HashContext
): Result.Result<Hex, ActionHash.Unhashable> => ActionHash.hash(hashedWrapper(action), context)

/** What the leader signs for a `multiSigActionHash`. Fails with `UnsignableAction`. */
export const leaderSignable = (
  profile: VenueProfile,
  signatureChainId: string,
  hash: Hex,
  nonce: number | bigint
): Result.Result<Signable.Signable, UnsignableAction> =>
  Result.map(UserSigned.domain(profile, signatureChainId), (domain) => ({
    domain,
    struct: UserSigned.struct(profile)(sendMultiSig),
    members: [
      UserSigned.chainMember(profile),
      { name: "multiSigActionHash", type: "bytes32", value: hash },
      { name: "nonce", type: "uint64", value: nonce }
    ]
  }))

/** What the leader signs. Fails with `MsgPackUnencodable` or `UnsignableAction`. */
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
 * What each inner signer signs, by the inner action's scheme; the signatures in the wrapper play no part.
 *
 * An L1 inner action is signed with the same nonce, vault and expiry as the wrapper. Fails with `MsgPackUnencodable` or
 * `UnsignableAction`.
 */
export const innerSignable = (
  profile: VenueProfile,
  action: MultiSigAction,
  context: ActionHash.HashContext
): Result.Result<Signable.Signable, ActionHash.Unhashable> =>
  Result.gen(function*() {
    const inner = action.payload.action
    const scheme = yield* SigningScheme.of(inner).pipe(Result.mapError(fromInner))
    return scheme.scheme === "l1"
      ? L1Action.signable(profile, yield* ActionHash.hash(innerValue(action), context))
      : yield* UserSigned.innerSignable(profile, scheme.type, inner, action.payload).pipe(Result.mapError(fromInner))
  })
