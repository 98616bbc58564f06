/** Signers: a private key in this process, a wallet, or an external key store. */
import type { Signature } from "@trigate/domain/actions/Action"
import { Address, lowerCase } from "@trigate/domain/encoding/Encoding"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as ActionHash from "./actions/ActionHash.ts"
import * as Secp256k1 from "./Secp256k1.ts"

/** A signature from an external signer, as {@link makeExternal} accepts it. */
export type GivenSignature = Secp256k1.GivenSignature

/**
 * The signature is not by the requested key. `recovered` is the recovered address; absent if recovery fails.
 *
 * Usual causes: another account is selected in the wallet, the key store hashes the digest again, or the key ID names
 * another key.
 */
export class SignerMismatch extends Schema.TaggedError<SignerMismatch>()("SignerMismatch", {
  expected: Address,
  recovered: Schema.optionalKey(Address)
}) {
  get group() {
    return "fix-setup" as const
  }
  override get message() {
    return `Not a signature of ${this.expected}: it recovers to ${this.recovered ?? "no address"}`
  }
}

/** The wallet or key store did not sign; `detail` is its message, without any text that could be a key. */
export class SignerUnavailable extends Schema.TaggedError<SignerUnavailable>()("SignerUnavailable", {
  signer: Address,
  detail: Schema.String
}) {
  get group() {
    return "retry-later" as const
  }
  override get message() {
    return `${this.signer} did not sign: ${this.detail}`
  }
}

/** The text is not a private key; the error does not contain the text. */
export class InvalidPrivateKey extends Schema.TaggedError<InvalidPrivateKey>()("InvalidPrivateKey", {}) {
  get group() {
    return "fix-setup" as const
  }
  override get message() {
    return "Not a private key: 32 bytes in hex, from 1 to the group order minus 1"
  }
}

/** The reasons why a signer returns no signature. */
export type SignerFailure = SignerMismatch | SignerUnavailable

/**
 * A signing key.
 *
 * Provided by `Signer.layerPrivateKey`, `Signer.layerViem` or `Signer.layerExternal`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Signer } from "@trigate/signing"
 * import { Console, Effect, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = Signer.Signer.use(({ address }) => Console.log(address))
 *
 * await Effect.runPromise(Effect.provide(program, Signer.layerPrivateKey(key)))
 * ```
 * ```text
 * 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266
 * ```
 */
export class Signer extends Context.Service<Signer, {
  /** The address of the key, lower case. */
  readonly address: ActionHash.Hex
  /**
   * Signs a message: `r` and `s` of 32 bytes, low `s`, `v` 27 or 28. Fails with `SignerMismatch` if another key made
   * the signature, and with `SignerUnavailable` if there is no signature.
   */
  readonly sign: (signable: ActionHash.Signable) => Effect.Effect<Signature, SignerFailure>
}>()("@trigate/signing/Signer") {}

const privateKey = /^(?:0x)?([0-9a-fA-F]{64})$/

const keyBytes = (text: string): Uint8Array | undefined => {
  const digits = privateKey.exec(text)?.[1]
  return digits === undefined ? undefined : Secp256k1.scalarBytes(`0x${digits}`)
}

/** Matches 32 or more bytes in hex, which could be a key in a wallet's error message. */
const keyLike = /(?:0x)?[0-9a-fA-F]{64,}/g

const maxDetail = 300

const formatCause = (cause: unknown): string => {
  const text = Predicate.hasProperty(cause, "message") && Predicate.isString(cause.message) && cause.message !== ""
    ? cause.message
    : Predicate.hasProperty(cause, "_tag") && Predicate.isString(cause._tag)
    ? cause._tag
    : "no reason given"
  return text.replace(keyLike, "<redacted>").slice(0, maxDetail)
}

const spelled = ({ bytes, recovery }: Secp256k1.CompactSignature): Signature => ({
  r: ActionHash.toHex(bytes.subarray(0, 32)),
  s: ActionHash.toHex(bytes.subarray(32)),
  v: recovery === 0 ? 27 : 28
})

const verified = (engine: Secp256k1.Engine, address: ActionHash.Hex, digest: ActionHash.Hex, given: GivenSignature) =>
  Result.mapError(
    Secp256k1.verified(engine, address, digest, given),
    (recovered) => new SignerMismatch({ expected: address, ...(recovered === undefined ? {} : { recovered }) })
  )

/**
 * Makes the signer for a private key, 32 bytes in hex, with the engine of `Secp256k1`.
 *
 * Signs once at creation, and fails with {@link SignerMismatch} if the signature does not recover to the signer's
 * address. Fails with {@link InvalidPrivateKey} if `key` is not a valid private key.
 */
export const makePrivateKey = Effect.fnUntraced(function*(
  key: Redacted.Redacted
): Effect.fn.Return<Signer["Service"], InvalidPrivateKey | SignerFailure> {
  const engine = yield* Secp256k1.Secp256k1
  const secret = keyBytes(Redacted.value(key))
  if (secret === undefined) return yield* new InvalidPrivateKey()
  const publicKey = yield* Effect.fromOption(engine.publicKey(secret), () => new InvalidPrivateKey())
  const address = ActionHash.publicKeyAddress(publicKey)
  const signDigest = (digest: Uint8Array) =>
    Effect.fromOption(
      Option.map(engine.sign(digest, secret), spelled),
      () => new SignerUnavailable({ signer: address, detail: "no signature" })
    )
  const probe = ActionHash.keccak256(publicKey)
  const signature = yield* signDigest(probe)
  yield* Effect.fromResult(verified(engine, address, ActionHash.toHex(probe), signature))
  return Signer.of({ address, sign: (signable) => Effect.suspend(() => signDigest(ActionHash.digestBytes(signable))) })
})

/**
 * Provides the signer of {@link makePrivateKey}, with libsecp256k1 if it loads.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerPrivateKey = (
  key: Redacted.Redacted
): Layer.Layer<Signer, InvalidPrivateKey | SignerFailure> =>
  Layer.effect(Signer, makePrivateKey(key)).pipe(Layer.provide(Secp256k1.layer))

/**
 * A key outside this process, for example in a key store or a wallet. The key signs the digest or, if the wallet
 * displays the message, the typed data.
 */
export type External<E = never, R = never> =
  & { readonly address: Address }
  & (
    | { readonly signDigest: (digest: ActionHash.Hex) => Effect.Effect<GivenSignature, E, R> }
    | { readonly signTypedData: (data: ActionHash.TypedData) => Effect.Effect<GivenSignature, E, R> }
  )

/**
 * Makes a signer that runs an effect for each signature. The effect can call a key management service or a remote
 * machine, or prompt a person.
 *
 * The effect may return `r` and `s` without `v`, padded or trimmed, and a high `s`. The result is converted to the
 * venue's form and must recover to `address`; otherwise the call fails with {@link SignerMismatch}. A failure of the
 * effect becomes {@link SignerUnavailable}.
 */
export const makeExternal = Effect.fnUntraced(function*<E, R>(
  external: External<E, R>
): Effect.fn.Return<Signer["Service"], never, R> {
  const engine = yield* Secp256k1.Secp256k1
  const context = yield* Effect.context<R>()
  const address = lowerCase(external.address)
  const sign = Effect.fn("Signer.sign")(function*(signable: ActionHash.Signable) {
    const digest = ActionHash.digest(signable)
    const signing = "signDigest" in external
      ? external.signDigest(digest)
      : external.signTypedData(ActionHash.typedData(signable))
    const given = yield* Effect.mapError(
      signing,
      (cause) => new SignerUnavailable({ signer: address, detail: formatCause(cause) })
    )
    return yield* Effect.fromResult(verified(engine, address, digest, given))
  }, Effect.provide(context))
  return Signer.of({ address, sign })
})

/**
 * Provides the signer of {@link makeExternal}, with libsecp256k1 if it loads.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Signer } from "@trigate/signing"
 * import { Console, Effect } from "effect"
 *
 * // a key management service signs the digest
 * const kms = Signer.layerExternal({
 *   address: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
 *   signDigest: () => Effect.fail({ message: "The key is disabled" })
 * })
 *
 * const program = Signer.Signer.use(({ address }) => Console.log(address))
 *
 * await Effect.runPromise(Effect.provide(program, kms))
 * ```
 * ```text
 * 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266
 * ```
 */
export const layerExternal = <E, R>(external: External<E, R>): Layer.Layer<Signer, never, R> =>
  Layer.effect(Signer, makeExternal(external)).pipe(Layer.provide(Secp256k1.layer))

/** A viem account, or a viem wallet client with its account. */
export type ViemSigner =
  & ({ readonly address: Address } | { readonly account: { readonly address: Address } })
  & { signTypedData(data: ActionHash.TypedData): Promise<string> }

/** Makes a signer from a viem account or wallet client. Its signatures are verified as by {@link makeExternal}. */
export const makeViem = (wallet: ViemSigner): Effect.Effect<Signer["Service"]> =>
  makeExternal({
    address: "address" in wallet ? wallet.address : wallet.account.address,
    signTypedData: (data) =>
      Effect.tryPromise({ try: () => wallet.signTypedData(data), catch: (cause) => ({ message: formatCause(cause) }) })
  })

/**
 * Provides the signer of {@link makeViem}, with libsecp256k1 if it loads.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Signer } from "@trigate/signing"
 * import { Console, Effect } from "effect"
 * import { privateKeyToAccount } from "viem/accounts"
 *
 * const account = privateKeyToAccount("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = Signer.Signer.use(({ address }) => Console.log(address))
 *
 * await Effect.runPromise(Effect.provide(program, Signer.layerViem(account)))
 * ```
 * ```text
 * 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266
 * ```
 */
export const layerViem = (wallet: ViemSigner): Layer.Layer<Signer> =>
  Layer.effect(Signer, makeViem(wallet)).pipe(Layer.provide(Secp256k1.layer))
