/** Recovers the signers of a request and identifies the signed message. */
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as ActionHash from "./actions/ActionHash.ts"
import * as CanonicalAction from "./actions/CanonicalAction.ts"
import * as Signable from "./actions/Signable.ts"
import * as UserSigned from "./actions/UserSigned.ts"
import { type Hex, keccak256, toHex } from "./internal/bytes.ts"
import * as MultiSig from "./multisig/MultiSig.ts"
import * as Secp256k1 from "./Secp256k1.ts"
import type { VenueProfile } from "./VenueProfile.ts"

/** A signed request parsed from JSON. Integers in the request can be numbers or bigints. */
export interface SignedRequest extends ActionHash.HashContext {
  readonly action: unknown
  readonly signature: Secp256k1.Signature
}

/** An address (lower case) and the digest that the address signed. */
export interface Signer {
  readonly signer: Hex
  readonly digest: Hex
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
  | { readonly scheme: "l1" | "userSigned"; readonly outer: Signable.Signable }
  | {
    readonly scheme: "multiSig"
    readonly outer: Signable.Signable
    readonly inner: Signable.Signable
    readonly innerSignatures: ReadonlyArray<Secp256k1.Signature>
  }

/** Like {@link signable}, for an action already in the venue's form. Fails with the same errors. */
export const toSignable = (
  profile: VenueProfile,
  { action, kind }: CanonicalAction.CanonicalAction,
  context: ActionHash.HashContext
): Result.Result<RequestSignable, ActionHash.Unhashable> => {
  if (kind === "multiSig") {
    return Result.flatMap(MultiSig.outerSignable(profile, action, context), (outer) =>
      Result.map(
        MultiSig.innerSignable(profile, action, context),
        (inner) => ({ scheme: kind, outer, inner, innerSignatures: action.signatures })
      ))
  }
  return Result.flatMap(
    UserSigned.signingScheme(action),
    (scheme): Result.Result<RequestSignable, ActionHash.Unhashable> =>
      Result.map(
        scheme.scheme === "l1"
          ? ActionHash.signable(profile, action, context)
          : UserSigned.signable(profile, scheme.type, action),
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
export const signable = (
  profile: VenueProfile,
  request: Omit<SignedRequest, "signature">
): Result.Result<RequestSignable, ActionHash.Unhashable> =>
  Result.flatMap(
    CanonicalAction.canonicalize(profile, request.action),
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
  const digest = Signable.digest(found.outer)
  const outer = Secp256k1.recoverResult(digest, signature, engine)
  if (Result.isFailure(outer)) return Result.fail(outer.failure)
  const signer = outer.success
  if (found.scheme !== "multiSig") return Result.succeed({ scheme: found.scheme, signer, digest })
  const innerDigest = Signable.digest(found.inner)
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
  Result.flatMap(signable(profile, request), (found) => recoverResult(found, request.signature, engine))

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
export const fingerprint = (covered: string, signature: Secp256k1.Signature): Hex => {
  const { r, s, v } = Secp256k1.trimmed(signature)
  return toHex(keccak256(Utf8.encode([covered, r, s, Number(v) % 27].join(" "))))
}
