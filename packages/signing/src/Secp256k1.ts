/** The curve that keys are on: signing, recovering and deriving, by the fastest library that loads. */
import { secp256k1 } from "@noble/curves/secp256k1"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as binding from "secp256k1"
import { fromHex, toHex } from "./internal/bytes.ts"
import { loadWasm } from "./internal/Keccak256.ts"

/** A signature as bytes: `r` and `s`, 32 bytes each, and which of the two points with that `r` was meant, 0 or 1. */
export interface CompactSignature {
  readonly bytes: Uint8Array
  readonly recovery: number
}

/** What a library has to do; both libraries give the same answers to the same bytes. */
export interface Engine {
  /** The name of the library. */
  readonly engine: "libsecp256k1" | "noble"
  /**
   * The signature of a key over a digest, 32 bytes each: deterministic (RFC 6979), in constant time, with the lower of
   * the two values that `s` can have. None when the key is not from 1 to the group order minus 1.
   */
  readonly sign: (digest: Uint8Array, key: Uint8Array) => Option.Option<CompactSignature>
  /** The public key that signed a digest, 65 bytes; none when no key can have. A high `s` is accepted. */
  readonly recover: (digest: Uint8Array, signature: CompactSignature) => Option.Option<Uint8Array>
  /** The public key of a private key, 65 bytes; none when {@link Engine.sign} would give none. */
  readonly publicKey: (key: Uint8Array) => Option.Option<Uint8Array>
}

/** The number of points in the group. */
export const order = 0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe_baae_dce6_af48_a03b_bfd2_5e8c_d036_4141n

const orderDigits = order.toString(16)

const zeroDigits = "0".repeat(64)

/**
 * The 32 bytes of a scalar in 0x hex, with or without leading zeros; `undefined` when it is not from 1 to the group order
 * minus 1.
 */
export const scalarBytes = (text: string): Uint8Array | undefined => {
  if (!/^0x[0-9a-fA-F]{1,64}$/.test(text)) return undefined
  const digits = text.slice(2).toLowerCase().padStart(64, "0")
  // digits of equal length are ordered as the numbers that they spell
  return digits < orderDigits && digits !== zeroDigits ? fromHex(`0x${digits}`) : undefined
}

/** This library would sign and recover over digests of any length, the native one over 32 bytes only. */
const isDigest = (digest: Uint8Array): boolean => digest.length === 32

const nobleSign = Option.liftThrowable((digest: Uint8Array, key: Uint8Array) => {
  const signature = secp256k1.sign(digest, key, { lowS: true })
  return { bytes: signature.toCompactRawBytes(), recovery: signature.recovery }
})

const nobleRecover = Option.liftThrowable((digest: Uint8Array, bytes: Uint8Array, recovery: number) =>
  secp256k1.Signature.fromCompact(bytes).addRecoveryBit(recovery).recoverPublicKey(digest).toRawBytes(false)
)

/** The engine in JavaScript: runs everywhere, a browser included, and needs no layer. */
export const noble: Engine = {
  engine: "noble",
  sign: (digest, key) => isDigest(digest) ? nobleSign(digest, key) : Option.none(),
  recover: (digest, { bytes, recovery }) => isDigest(digest) ? nobleRecover(digest, bytes, recovery) : Option.none(),
  publicKey: Option.liftThrowable((key: Uint8Array) => secp256k1.getPublicKey(key, false))
}

type Binding = Pick<typeof binding, "ecdsaRecover" | "ecdsaSign" | "publicKeyCreate">

const isBinding = (value: unknown): value is Binding =>
  ["ecdsaRecover", "ecdsaSign", "publicKeyCreate"].every((name) =>
    Predicate.hasProperty(value, name) && Predicate.isFunction(value[name])
  )

/**
 * The digest modulo the group order: RFC 6979 derives the nonce from that, and the library that the binding is built from
 * takes the digest as it is. One digest in 2^128 is signed differently without it.
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
  publicKey: Option.liftThrowable((key: Uint8Array) => library.publicKeyCreate(key, false))
})

/** A value, so that a bundler for browsers leaves the import alone; it fails there. */
const specifier = "secp256k1/bindings.js"

const importBinding = (): Promise<unknown> => import(specifier)

const loadNative: Effect.Effect<Option.Option<Engine>> = Effect.tryPromise(importBinding).pipe(
  Effect.map((module) => Predicate.hasProperty(module, "default") ? module.default : undefined),
  Effect.map((found) => isBinding(found) ? Option.some(native(found)) : Option.none()),
  Effect.orElseSucceed(() => Option.none())
)

/** Both at once: beside the native curve, hashing in JavaScript would take longer than the signature. */
const load = Effect.map(Effect.all([loadNative, loadWasm], { concurrency: 2 }), ([found]) => found)

/** The native library has no binary for this platform, or its binary does not load. */
export class Secp256k1NotLoaded extends Schema.TaggedError<Secp256k1NotLoaded>()("Secp256k1NotLoaded", {}) {
  override get message() {
    return "The native binding of libsecp256k1 cannot be loaded here"
  }
}

/**
 * The engine that makes and recovers signatures.
 *
 * The default is {@link noble}, so that code without layers works. {@link layer} provides the native one where it loads,
 * which is more than ten times as fast.
 */
export const Secp256k1 = Context.Reference<Engine>("@trigate/signing/Secp256k1", { defaultValue: () => noble })

/** The engine in JavaScript. */
export const layerNoble: Layer.Layer<never> = Layer.succeed(Secp256k1, noble)

/** libsecp256k1; fails with {@link Secp256k1NotLoaded} where the binding does not load. */
export const layerNative: Layer.Layer<never, Secp256k1NotLoaded> = Layer.effect(
  Secp256k1,
  Effect.flatMap(load, (found) => Effect.fromOption(found, () => new Secp256k1NotLoaded()))
)

/** libsecp256k1 where it loads, else noble; `engine` says which it is. It also loads keccak-256 in WebAssembly. */
export const layer: Layer.Layer<never> = Layer.effect(Secp256k1, Effect.map(load, Option.getOrElse(() => noble)))
