/** The wrapper that carries an action with the signatures of several keys. */
import { faultsOf } from "@trigate/domain/Decode"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type Hex, isAddress, lowerCase } from "./internal/bytes.ts"
import * as Signature from "./Signature.ts"
import { UnsignableAction } from "./UnsignableAction.ts"

/** A wrapper as the venue prints it before hashing: keys in order, addresses lower case, `r` and `s` trimmed. */
export interface MultiSigAction {
  readonly type: "multiSig"
  /** 0x hex, hashed as the text it is: send it in lower case without leading zeros. */
  readonly signatureChainId: string
  /** One for each inner signer, at most {@link maxSigners}. */
  readonly signatures: ReadonlyArray<Signature.Signature>
  readonly payload: {
    readonly multiSigUser: Hex
    /** The leader, who signs the wrapper and whose nonce counts. */
    readonly outerSigner: Hex
    readonly action: Readonly<Record<string, unknown>>
  }
}

/**
 * An account has at most this many authorised users, and a repeated signer counts once: more signatures could add
 * nothing but the time to recover them.
 */
export const maxSigners = 10

const Scalar = Schema.String.check(Schema.isPattern(/^0x[0-9a-fA-F]{1,64}$/u))

const Address = Schema.String.pipe(Schema.refine(isAddress))

const HttpTransport = Schema.Struct({
  signatureChainId: Schema.String,
  signatures: Schema.Array(Schema.Struct({
    r: Scalar,
    s: Scalar,
    v: Schema.Union([Schema.Int, Schema.BigInt])
  })).check(Schema.isBetweenLength(1, maxSigners)),
  payload: Schema.Struct({
    multiSigUser: Address,
    outerSigner: Address,
    action: Schema.Unknown.pipe(Schema.refine(Predicate.isReadonlyObject))
  })
})

/** The first fault: a wrapper that does not read is not signed, one reason is enough. */
const refusal = (error: Schema.SchemaError): UnsignableAction => {
  const [first] = faultsOf(error)
  return new UnsignableAction({
    reason: "shape",
    path: first?.path ?? [],
    detail: first?.message ?? "Not a multiSig wrapper"
  })
}

const decodeWire = Schema.decodeUnknownResult(HttpTransport)

/** Reads a wrapper into the venue's form; the inner action is taken as it is. Fails with `UnsignableAction`. */
export const read = (action: unknown): Result.Result<MultiSigAction, UnsignableAction> =>
  Result.mapBoth(decodeWire(action), {
    onFailure: refusal,
    onSuccess: (wire): MultiSigAction => ({
      type: "multiSig",
      signatureChainId: wire.signatureChainId,
      signatures: wire.signatures.map(Signature.trimmed),
      payload: {
        multiSigUser: lowerCase(wire.payload.multiSigUser),
        outerSigner: lowerCase(wire.payload.outerSigner),
        action: wire.payload.action
      }
    })
  })
