/** Signs the typed data (EIP-712) of actions with test keys, as a wallet does. */
import type { Action, AnySignedAction, Signature, SignedAction } from "@trigate/domain/actions/Action"
import { trimmed } from "@trigate/signing/Secp256k1"
import { type Signable, typedData, type Unhashable } from "@trigate/signing/unstable/actions/ActionHash"
import * as SignerRecovery from "@trigate/signing/unstable/actions/CanonicalAction"
import { defaultChainId, mainnet, type VenueProfile } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import { privateKeyToAccount } from "viem/accounts"
import type { TestKey } from "./SandboxExamples.ts"

/** An unsigned action of any type with its nonce and, optionally, its vault address and its expiry. */
export type Unsigned = Omit<AnySignedAction, "signature">

/** A multi-sig action to sign, with its co-signers and its leader (the signer who sends it). */
export interface MultiSigRequest extends Omit<Unsigned, "action"> {
  readonly multiSigUser: TestKey["address"]
  /** The action that the multi-sig account executes, in the form in which it is sent. */
  readonly action: { readonly type: string; readonly [member: string]: unknown }
  /** The signer who sends the multi-sig action. The leader can also be one of the co-signers. */
  readonly leader: TestKey
  readonly cosigners: ReadonlyArray<TestKey>
}

const sign = (key: TestKey, signable: Signable): Effect.Effect<Signature> => {
  const { domain, message, primaryType, types } = typedData(signable)
  return Effect.map(
    Effect.promise(() => privateKeyToAccount(key.privateKey).signTypedData({ domain, types, primaryType, message })),
    (signed): Signature => ({
      r: `0x${signed.slice(2, 66)}`,
      s: `0x${signed.slice(66, 130)}`,
      v: signed.endsWith("1b") ? 27 : 28
    })
  )
}

/**
 * Signs an action with one key. Fails with `Unhashable` for an action that cannot be hashed, such as a variant that
 * appears only in the venue's documentation.
 */
export const signAction = Effect.fnUntraced(function*<const Request extends Unsigned>(
  key: TestKey,
  request: Request,
  profile: VenueProfile = mainnet
): Effect.fn.Return<Request & { readonly signature: Signature }, Unhashable> {
  const { outer } = yield* Effect.fromResult(SignerRecovery.requestSignable(profile, request))
  return { ...request, signature: yield* sign(key, outer) }
})

/** Formats the signature of a co-signer as clients send it: `r` and `s` without leading zeros. */
const asSent = (signature: Signature): Signature => ({ ...trimmed(signature), v: signature.v })

const placeholder: Signature = { r: "0x1", s: "0x1", v: 27 }

/**
 * Signs the executed action with each co-signer's key. Makes a multi-sig action that contains these signatures and the
 * executed action, and signs it with the leader's key. Fails like {@link signAction}.
 */
export const signMultiSig = Effect.fnUntraced(function*(
  { action, cosigners, leader, multiSigUser, ...envelope }: MultiSigRequest,
  profile: VenueProfile = mainnet
): Effect.fn.Return<SignedAction, Unhashable> {
  const wrap = (signatures: ReadonlyArray<Signature>): Extract<Action, { readonly type: "multiSig" }> => ({
    type: "multiSig",
    signatureChainId: defaultChainId,
    signatures,
    payload: { multiSigUser, outerSigner: leader.address, action }
  })
  const unsigned = yield* Effect.fromResult(
    SignerRecovery.requestSignable(profile, { ...envelope, action: wrap([placeholder]) })
  )
  if (unsigned.scheme !== "multiSig") {
    return yield* Effect.die("The signing scheme of the multi-sig action is not multiSig")
  }
  const signatures = yield* Effect.forEach(cosigners, (key) => Effect.map(sign(key, unsigned.inner), asSent))
  return yield* signAction(leader, { ...envelope, action: wrap(signatures) }, profile)
})
