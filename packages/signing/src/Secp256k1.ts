/** The secp256k1 curve: keys, signatures, and signer recovery, with libsecp256k1 or with noble. */
import { secp256k1 } from "@noble/curves/secp256k1"
import type { Signature as VenueSignature } from "@trigate/domain/actions/Action"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as binding from "secp256k1"
import { fromHex, type Hex, isWord, loadKeccak, publicKeyAddress, toHex, trimmedHex } from "./actions/ActionHash.ts"

/** A signature as bytes: `r` and `s` of 32 bytes each, and the recovery bit, 0 or 1. */
export interface CompactSignature {
  readonly bytes: Uint8Array
  readonly recovery: number
}

/** The operations of a curve library. All engines return the same results for the same input. */
export interface Engine {
  /** The name of the library. */
  readonly engine: "libsecp256k1" | "noble"
  /**
   * Signs a digest with a key, 32 bytes each: deterministic (RFC 6979), in constant time, with a low `s`. Returns
   * `None` if the key is not from 1 to the group order minus 1.
   */
  readonly sign: (digest: Uint8Array, key: Uint8Array) => Option.Option<CompactSignature>
  /** Recovers the 65-byte public key that signed a digest. Returns `None` if no key matches. Accepts a high `s`. */
  readonly recover: (digest: Uint8Array, signature: CompactSignature) => Option.Option<Uint8Array>
  /**
   * Returns the 65-byte public key of a private key, or `None` for an invalid private key (see {@link Engine.sign}).
   */
  readonly publicKey: (key: Uint8Array) => Option.Option<Uint8Array>
  /**
   * Returns the sum of a public key and the product of the generator and a 32-byte scalar; `None` if the sum is not a
   * public key. See {@link recoverer}.
   */
  readonly tweak: (publicKey: Uint8Array, scalar: Uint8Array) => Option.Option<Uint8Array>
  /** Returns the negated public key, or `None` if the bytes are not a public key. */
  readonly negate: (publicKey: Uint8Array) => Option.Option<Uint8Array>
  /**
   * Applies {@link Engine.tweak} to several public keys, at little more than the cost for one public key. Returns
   * `None` for a scalar of zero.
   */
  readonly tweakAll: (
    publicKeys: ReadonlyArray<Uint8Array>,
    scalar: Uint8Array
  ) => ReadonlyArray<Option.Option<Uint8Array>>
}

/** The order of the group. */
export const order = 0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe_baae_dce6_af48_a03b_bfd2_5e8c_d036_4141n

const orderDigits = order.toString(16)

const zeroDigits = "0".repeat(64)

const scalar = /^0x[0-9a-fA-F]{1,64}$/

/**
 * Converts a scalar in 0x hex, with or without leading zeros, to 32 bytes; `undefined` if it is not from 1 to the group order
 * minus 1.
 */
export const scalarBytes = (text: string): Uint8Array | undefined => {
  if (!scalar.test(text)) return undefined
  const digits = text.slice(2).toLowerCase().padStart(64, "0")
  // digit strings of equal length compare like the numbers they represent
  return digits < orderDigits && digits !== zeroDigits ? fromHex(`0x${digits}`) : undefined
}

/** Returns whether a digest has 32 bytes. noble would accept any length; the native library does not. */
const isDigest = (digest: Uint8Array): boolean => digest.length === 32

const nobleSign = Option.liftThrowable((digest: Uint8Array, key: Uint8Array) => {
  const signature = secp256k1.sign(digest, key, { lowS: true })
  return { bytes: signature.toCompactRawBytes(), recovery: signature.recovery }
})

const nobleRecover = Option.liftThrowable((digest: Uint8Array, bytes: Uint8Array, recovery: number) =>
  secp256k1.Signature.fromCompact(bytes).addRecoveryBit(recovery).recoverPublicKey(digest).toRawBytes(false)
)

/** The JavaScript engine, which runs everywhere, including browsers, and needs no layer. */
export const noble: Engine = {
  engine: "noble",
  sign: (digest, key) => isDigest(digest) ? nobleSign(digest, key) : Option.none(),
  recover: (digest, { bytes, recovery }) => isDigest(digest) ? nobleRecover(digest, bytes, recovery) : Option.none(),
  publicKey: Option.liftThrowable((key: Uint8Array) => secp256k1.getPublicKey(key, false)),
  tweak: Option.liftThrowable((publicKey: Uint8Array, scalar: Uint8Array) =>
    secp256k1.ProjectivePoint.fromHex(publicKey)
      .add(secp256k1.ProjectivePoint.BASE.multiply(BigInt(toHex(scalar)))).toRawBytes(false)
  ),
  negate: Option.liftThrowable((publicKey: Uint8Array) =>
    secp256k1.ProjectivePoint.fromHex(publicKey).negate().toRawBytes(false)
  ),
  tweakAll: (publicKeys, scalar) => {
    const step = Option.liftThrowable(() => secp256k1.ProjectivePoint.BASE.multiply(BigInt(toHex(scalar))))()
    const sum = Option.liftThrowable((publicKey: Uint8Array, other: typeof secp256k1.ProjectivePoint.BASE) =>
      secp256k1.ProjectivePoint.fromHex(publicKey).add(other).toRawBytes(false)
    )
    return publicKeys.map((publicKey) => Option.flatMap(step, (other) => sum(publicKey, other)))
  }
}

type Binding = Pick<typeof binding, "ecdsaRecover" | "ecdsaSign" | Sum | "publicKeyTweakAdd">

type Sum = "publicKeyCreate" | "publicKeyNegate" | "publicKeyCombine"

const isBinding = (value: unknown): value is Binding =>
  ["ecdsaRecover", "ecdsaSign", "publicKeyCombine", "publicKeyCreate", "publicKeyNegate", "publicKeyTweakAdd"].every((
    name
  ) => Predicate.hasProperty(value, name) && Predicate.isFunction(value[name]))

/**
 * Reduces the digest modulo the group order; RFC 6979 derives the nonce from the reduced digest. The native library
 * does not reduce it. Without this step, the two libraries would make different signatures for about one digest in
 * 2^128.
 */
const reduced = (digest: Uint8Array): Uint8Array => {
  if (digest[0] !== 0xff || digest.length !== 32) return digest
  const value = BigInt(toHex(digest))
  return value < order ? digest : fromHex(`0x${(value - order).toString(16).padStart(64, "0")}`)
}

const native = (library: Binding): Engine => ({
  engine: "libsecp256k1",
  sign: Option.liftThrowable((digest: Uint8Array, key: Uint8Array) => {
    const { recid, signature } = library.ecdsaSign(reduced(digest), key)
    return { bytes: signature, recovery: recid }
  }),
  recover: Option.liftThrowable((digest, { bytes, recovery }) => library.ecdsaRecover(bytes, recovery, digest, false)),
  publicKey: Option.liftThrowable((key: Uint8Array) => library.publicKeyCreate(key, false)),
  tweak: Option.liftThrowable((publicKey, scalar) => library.publicKeyTweakAdd(publicKey, scalar, false)),
  negate: Option.liftThrowable((publicKey) => library.publicKeyNegate(publicKey, false)),
  tweakAll: (publicKeys, scalar) => {
    const step = Option.liftThrowable(() => library.publicKeyCreate(scalar, false))()
    const sum = Option.liftThrowable((one: Uint8Array, other: Uint8Array) =>
      library.publicKeyCombine([one, other], false)
    )
    return publicKeys.map((publicKey) => Option.flatMap(step, (other) => sum(publicKey, other)))
  }
})

/**
 * The module name, in a variable rather than in the `import` expression: bundlers for browsers would resolve a literal
 * and fail.
 */
const specifier = "secp256k1/bindings.js"

const importBinding = (): Promise<unknown> => import(specifier)

const loadNative: Effect.Effect<Option.Option<Engine>> = Effect.tryPromise(importBinding).pipe(
  Effect.map((module) => Predicate.hasProperty(module, "default") ? module.default : undefined),
  Effect.map((found) => isBinding(found) ? Option.some(native(found)) : Option.none()),
  Effect.orElseSucceed(() => Option.none())
)

let loaded: Option.Option<Engine> | undefined

/**
 * Loads the native curve together with keccak-256 in WebAssembly: hashing in JavaScript would take longer than signing
 * natively. Synchronous once they are loaded.
 */
const load = Effect.suspend(() =>
  loaded === undefined
    ? Effect.map(Effect.all([loadNative, loadKeccak], { concurrency: 2 }), ([found]) => loaded = found)
    : Effect.succeed(loaded)
)

/** The native library has no binary for this platform, or its binary does not load. */
export class Secp256k1NotLoaded extends Schema.TaggedError<Secp256k1NotLoaded>()("Secp256k1NotLoaded", {}) {
  override get message() {
    return "The native binding of libsecp256k1 does not load on this machine; Secp256k1.layer falls back to noble"
  }
}

/**
 * The engine that makes signatures and recovers signers.
 *
 * Default: {@link noble}, which needs no layer. {@link layer} provides the native engine if that loads. The native
 * engine is more than ten times as fast.
 */
export const Secp256k1 = Context.Reference<Engine>("@trigate/signing/Secp256k1", { defaultValue: () => noble })

/**
 * Provides the JavaScript engine, noble.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoble: Layer.Layer<never> = Layer.succeed(Secp256k1, noble)

/**
 * Provides libsecp256k1. Fails with {@link Secp256k1NotLoaded} if the binding does not load.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNative: Layer.Layer<never, Secp256k1NotLoaded> = Layer.effect(
  Secp256k1,
  Effect.flatMap(load, (found) => Effect.fromOption(found, () => new Secp256k1NotLoaded()))
)

/**
 * Provides libsecp256k1, or noble if libsecp256k1 does not load; the member `engine` is the library's name. Also loads
 * keccak-256 in WebAssembly.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Secp256k1 } from "@trigate/signing"
 * import { Console, Effect } from "effect"
 *
 * const program = Secp256k1.Secp256k1.use(({ engine }) => Console.log(engine))
 *
 * await Effect.runPromise(Effect.provide(program, Secp256k1.layerNoble))
 * ```
 * ```text
 * noble
 * ```
 */
export const layer: Layer.Layer<never> = Layer.effect(Secp256k1, Effect.map(load, Option.getOrElse(() => noble)))

/** `r` and `s`: 0x hex of 1 to 64 digits, with or without leading zeros. `v`: 27 or 28; 0 and 1 are also accepted. */
export interface Signature {
  readonly r: string
  readonly s: string
  readonly v: number | bigint
}

/**
 * Removes leading zeros from `r` and `s`, and returns the signature with its members in the order in which they are
 * hashed.
 *
 * The venue encodes inner multi-sig signatures this way before it hashes them. If they had leading zeros, the outer
 * signature would recover to an unrelated address.
 */
export const trimmed = <V extends Signature["v"]>({ r, s, v }: Omit<Signature, "v"> & { readonly v: V }) => ({
  r: trimmedHex(r),
  s: trimmedHex(s),
  v
})

/**
 * No address can be recovered from the signature.
 *
 * `invalidV`: not 0, 1, 27 or 28. `invalidR`, `invalidS`: not 0x hex of 1 to 64 digits, or not from 1 to the group
 * order minus 1. `invalidDigest`: not 32 bytes. `notRecoverable`: no point of the curve matches. `innerIndex` is the
 * index of the inner signature in a multi-sig wrapper; absent for the signature of the request itself.
 */
export class UnrecoverableSignature extends Schema.TaggedError<UnrecoverableSignature>()("UnrecoverableSignature", {
  reason: Schema.Literals(["invalidV", "invalidR", "invalidS", "invalidDigest", "notRecoverable"]),
  innerIndex: Schema.optionalKey(Schema.Int)
}) {
  get group() {
    return "fix-request" as const
  }
  override get message() {
    const which = this.innerIndex === undefined ? "Signature" : `Inner signature ${this.innerIndex}`
    return `${which} cannot be recovered: ${this.reason}`
  }
}

const parities: ReadonlyMap<number, 0 | 1> = new Map([[0, 0], [1, 1], [27, 0], [28, 1]])

const fail = (reason: UnrecoverableSignature["reason"]) => Result.fail(new UnrecoverableSignature({ reason }))

/** Like {@link recover}, without an effect and with an explicit engine. */
export const recoverResult = (
  digest: string,
  signature: Signature,
  engine: Engine = noble
): Result.Result<Hex, UnrecoverableSignature> => {
  const recovery = parities.get(Number(signature.v))
  if (recovery === undefined) return fail("invalidV")
  const r = scalarBytes(signature.r)
  if (r === undefined) return fail("invalidR")
  const s = scalarBytes(signature.s)
  if (s === undefined) return fail("invalidS")
  if (!isWord(digest)) return fail("invalidDigest")
  const bytes = new Uint8Array(64)
  bytes.set(r)
  bytes.set(s, 32)
  const publicKey = engine.recover(fromHex(digest), { bytes, recovery })
  return Option.isSome(publicKey) ? Result.succeed(publicKeyAddress(publicKey.value)) : fail("notRecoverable")
}

const inverse = (value: bigint): bigint => {
  let [low, high, lowFactor, highFactor] = [value % order, order, 1n, 0n]
  while (low > 1n) {
    const quotient = high / low
    ;[low, high, lowFactor, highFactor] = [high - quotient * low, low, highFactor - quotient * lowFactor, lowFactor]
  }
  return ((lowFactor % order) + order) % order
}

const zeroDigest = new Uint8Array(32)

/** Recovers, from one signature, the signer for each of many possible digests. Returns lower-case addresses. */
export interface Recoverer {
  /** Returns the signer of the digest, or `undefined` if recovery fails. */
  readonly signer: (digest: Uint8Array) => Hex | undefined
  /**
   * Returns the signers for the signature's `v` and for the other value of `v`, at little more than the cost of one
   * recovery.
   */
  readonly signers: (digest: Uint8Array) => readonly [Hex | undefined, Hex | undefined]
}

/**
 * Makes a recoverer for many digests with one signature; `undefined` if no address can be recovered from that
 * signature.
 *
 * The key for a digest `z` is `(s/r)R - (z/r)G`. Only the second term depends on the digest. So each digest costs
 * little more than half of a full recovery with the native engine, and a quarter with noble. For the other value of
 * `v`, the first term is negated.
 */
export const recoverer = (signature: Signature, engine: Engine): Recoverer | undefined => {
  const recovery = parities.get(Number(signature.v))
  const r = scalarBytes(signature.r)
  const s = scalarBytes(signature.s)
  if (recovery === undefined || r === undefined || s === undefined) return undefined
  const bytes = new Uint8Array(64)
  bytes.set(r)
  bytes.set(s, 32)
  const start = engine.recover(zeroDigest, { bytes, recovery })
  const other = Option.flatMap(start, engine.negate)
  if (Option.isNone(start) || Option.isNone(other)) return undefined
  const keys = [start.value, other.value]
  const factor = order - inverse(BigInt(toHex(r)))
  const step = (digest: Uint8Array): Uint8Array =>
    fromHex(`0x${(BigInt(toHex(digest)) * factor % order).toString(16).padStart(64, "0")}`)
  const address = (key: Option.Option<Uint8Array>): Hex | undefined =>
    Option.isSome(key) ? publicKeyAddress(key.value) : undefined
  return {
    signer: (digest) => address(engine.tweak(start.value, step(digest))),
    signers: (digest) => {
      const [one, other] = engine.tweakAll(keys, step(digest))
      return [address(one ?? Option.none()), address(other ?? Option.none())]
    }
  }
}

/**
 * Recovers the lower-case address that signed a 32-byte digest, with the engine of {@link Secp256k1}. Fails with {@link
 * UnrecoverableSignature}.
 *
 * `r` and `s` may be padded or trimmed. For a signature of a different message, the result is an unrelated address:
 * compare it with the expected address.
 */
export const recover = (digest: string, signature: Signature): Effect.Effect<Hex, UnrecoverableSignature> =>
  Effect.flatMap(Secp256k1, (engine) => Effect.fromResult(recoverResult(digest, signature, engine)))

/**
 * A signature from a wallet or key store: 65 bytes in 0x hex, or an object with `r`, `s` and an optional `v`, which key
 * stores do not return.
 */
export type GivenSignature = string | {
  readonly r: string
  readonly s: string
  readonly v?: number | bigint | undefined
}

const wire = /^0x[0-9a-fA-F]{130}$/

const parts = (given: GivenSignature) =>
  typeof given !== "string" ? given : wire.test(given)
    ? { r: given.slice(0, 66), s: `0x${given.slice(66, 130)}`, v: Number(`0x${given.slice(130)}`) }
    : undefined

const padded = (value: bigint): Hex => `0x${value.toString(16).padStart(64, "0")}`

/**
 * Returns the low `s` of a signature. Key stores return a low or a high `s`, but some verifiers accept only the low
 * one.
 */
const lowest = (s: bigint): bigint => s > order / 2n ? order - s : s

/**
 * Returns the signature in the venue's form if `address` (lower case) signed the digest. Otherwise fails with the
 * recovered address, or with `undefined` if no address can be recovered.
 *
 * The address determines `v`, so `v` may be missing or wrong.
 */
export const verified = (
  engine: Engine,
  address: Hex,
  digest: Hex,
  given: GivenSignature
): Result.Result<VenueSignature, Hex | undefined> => {
  const read = parts(given)
  if (read === undefined || !scalar.test(read.r) || !scalar.test(read.s)) return Result.fail(undefined)
  const recoverSigner = (signature: Signature) => Result.getOrUndefined(recoverResult(digest, signature, engine))
  const r = padded(BigInt(read.r))
  const s = padded(lowest(BigInt(read.s)))
  const v = ([27, 28] as const).find((v) => recoverSigner({ r, s, v }) === address)
  return v === undefined ? Result.fail(recoverSigner({ ...read, v: read.v ?? 27 })) : Result.succeed({ r, s, v })
}
