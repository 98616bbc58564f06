/** The curve that keys are on: signing, recovering and deriving, by whichever library is at hand. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { loadWasm } from "./internal/Keccak256.ts"
import { libsecp256k1 } from "./internal/libsecp256k1.ts"
import { noble } from "./internal/noble.ts"

/** A signature as bytes: `r` and `s`, 32 bytes each, and which of the two points with that `r` was meant, 0 or 1. */
export interface CompactSignature {
  readonly bytes: Uint8Array
  readonly recovery: number
}

/** What a library has to do; two of them give the same answers to the same bytes. */
export interface Engine {
  /** Which library it is. */
  readonly engine: "libsecp256k1" | "noble"
  /**
   * The signature of a key over a digest, 32 bytes each: deterministic (RFC 6979), in constant time, with the low one of
   * the two values that `s` can have. Nothing when the key is not from 1 to the group order minus 1.
   */
  readonly sign: (digest: Uint8Array, key: Uint8Array) => Option.Option<CompactSignature>
  /** The public key that signed a digest, 65 bytes; nothing when no key can have. A high `s` is understood. */
  readonly recover: (digest: Uint8Array, signature: CompactSignature) => Option.Option<Uint8Array>
  /** The public key of a key, 65 bytes; nothing when {@link Engine.sign} would give nothing. */
  readonly publicKey: (key: Uint8Array) => Option.Option<Uint8Array>
}

/** The native library has no binary for this platform, or its binary does not load. */
export class Secp256k1NotLoaded extends Schema.TaggedError<Secp256k1NotLoaded>()("Secp256k1NotLoaded", {}) {
  override get message() {
    return "The native binding of libsecp256k1 cannot be loaded here"
  }
}

/**
 * The engine that signatures are made and recovered with.
 *
 * It is noble where nothing else is provided, so that pure callers need no layer. {@link layer} makes it the native one
 * where that loads, more than ten times as fast.
 */
export const Secp256k1 = Context.Reference<Engine>("@trigate/signing/Secp256k1", { defaultValue: () => noble })

/** The engine in JavaScript. */
export const layerNoble: Layer.Layer<never> = Layer.succeed(Secp256k1, noble)

/** Loaded together: with the native curve, hashing in JavaScript would take longer than the signature. */
const native = Effect.map(Effect.all([libsecp256k1, loadWasm], { concurrency: 2 }), ([found]) => found)

/** libsecp256k1; fails with {@link Secp256k1NotLoaded} where the binding does not load. */
export const layerNative: Layer.Layer<never, Secp256k1NotLoaded> = Layer.effect(
  Secp256k1,
  Effect.flatMap(native, (found) => Effect.fromOption(found, () => new Secp256k1NotLoaded()))
)

/** libsecp256k1 where it loads, noble elsewhere; `engine` says which it is. Also loads keccak-256 as WebAssembly. */
export const layer: Layer.Layer<never> = Layer.effect(
  Secp256k1,
  Effect.map(native, Option.getOrElse(() => noble))
)

export {
  /** The engine in JavaScript, for code that has no layers. */
  noble
}
