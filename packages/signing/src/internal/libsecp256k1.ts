/** libsecp256k1 through its native binding, where a binary for the platform is installed. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as native from "secp256k1"
import type { Engine } from "../Secp256k1.ts"
import { fromHex, toHex } from "./bytes.ts"
import { order } from "./scalar.ts"

type Binding = Pick<typeof native, "ecdsaRecover" | "ecdsaSign" | "publicKeyCreate">

const hasFunction = (value: unknown, name: string): boolean =>
  Predicate.hasProperty(value, name) && Predicate.isFunction(value[name])

const isBinding = (value: unknown): value is Binding =>
  ["ecdsaRecover", "ecdsaSign", "publicKeyCreate"].every((name) => hasFunction(value, name))

/**
 * The digest modulo the group order: RFC 6979 derives the nonce from that, and the library that the binding is built from
 * takes the digest as it is. One digest in 2^128 is signed differently without it.
 */
const reduced = (digest: Uint8Array): Uint8Array => {
  if (digest[0] !== 0xff || digest.length !== 32) {
    return digest
  }
  const value = BigInt(toHex(digest))
  return value < order ? digest : fromHex(`0x${(value - order).toString(16).padStart(64, "0")}`)
}

const engineOf = (binding: Binding): Engine => ({
  engine: "libsecp256k1",
  sign: Option.liftThrowable((digest: Uint8Array, key: Uint8Array) => {
    const { recid, signature } = binding.ecdsaSign(reduced(digest), key)
    return { bytes: signature, recovery: recid }
  }),
  recover: Option.liftThrowable((digest, { bytes, recovery }) => binding.ecdsaRecover(bytes, recovery, digest, false)),
  publicKey: Option.liftThrowable((key: Uint8Array) => binding.publicKeyCreate(key, false))
})

/** A value, so that a bundler for browsers leaves the import alone; it fails there. */
const specifier = "secp256k1/bindings.js"

const load = (): Promise<unknown> => import(specifier)

/** Nothing where the binding cannot be loaded. */
export const libsecp256k1: Effect.Effect<Option.Option<Engine>> = Effect.tryPromise(load).pipe(
  Effect.map((module) => Predicate.hasProperty(module, "default") ? module.default : undefined),
  Effect.map((found) => isBinding(found) ? Option.some(engineOf(found)) : Option.none()),
  Effect.orElseSucceed(() => Option.none())
)
