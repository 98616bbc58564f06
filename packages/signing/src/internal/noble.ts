/** The curve in JavaScript: runs everywhere, a browser included. */
import { secp256k1 } from "@noble/curves/secp256k1"
import * as Option from "effect/Option"
import type { Engine } from "../Secp256k1.ts"

/** This library would sign and recover over digests of any length, the native one over 32 bytes only. */
const isDigest = (digest: Uint8Array): boolean => digest.length === 32

const sign = Option.liftThrowable((digest: Uint8Array, key: Uint8Array) => {
  const signature = secp256k1.sign(digest, key, { lowS: true })
  return { bytes: signature.toCompactRawBytes(), recovery: signature.recovery }
})

const recover = Option.liftThrowable((digest: Uint8Array, bytes: Uint8Array, recovery: number) =>
  secp256k1.Signature.fromCompact(bytes).addRecoveryBit(recovery).recoverPublicKey(digest).toRawBytes(false)
)

export const noble: Engine = {
  engine: "noble",
  sign: (digest, key) => isDigest(digest) ? sign(digest, key) : Option.none(),
  recover: (digest, { bytes, recovery }) => isDigest(digest) ? recover(digest, bytes, recovery) : Option.none(),
  publicKey: Option.liftThrowable((key: Uint8Array) => secp256k1.getPublicKey(key, false))
}
