/** keccak-256: the original padding, as Ethereum has it, not that of SHA-3. */
import { keccak_256 } from "@noble/hashes/sha3"
import * as Effect from "effect/Effect"

/** Replaced by {@link loadWasm}; both libraries give the same digests. */
let hash: (bytes: Uint8Array) => Uint8Array = keccak_256

/** The 32-byte hash of bytes of any length, by noble until {@link loadWasm} has run. */
export const keccak256 = (bytes: Uint8Array): Uint8Array => hash(bytes)

const createHasher = Effect.tryPromise(() => import("hash-wasm").then(({ createKeccak }) => createKeccak(256)))

/** Makes {@link keccak256} about ten times as fast; noble stays where WebAssembly is missing or forbidden. */
export const loadWasm: Effect.Effect<void> = Effect.match(createHasher, {
  onFailure: () => undefined,
  onSuccess: (hasher) => {
    // Hashing is synchronous, so one hasher serves every call.
    hash = (bytes) => hasher.init().update(bytes).digest("binary")
  }
})
