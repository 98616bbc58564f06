import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { vi } from "vitest"

vi.mock("secp256k1/bindings.js", () => {
  throw new Error("No native build was found")
})

describe("without a native binary", () => {
  it.effect("layer falls back on noble, layerNative says why it cannot be", () =>
    Effect.gen(function*() {
      // the binding is loaded once in a process, possibly by another file
      vi.resetModules()
      const Secp256k1 = yield* Effect.promise(() => import("@trigate/signing/Secp256k1"))
      const { engine } = yield* Secp256k1.Secp256k1.pipe(Effect.provide(Secp256k1.layer))
      assert.strictEqual(engine, "noble")
      const error = yield* Effect.flip(Effect.provide(Effect.void, Secp256k1.layerNative))
      assert.strictEqual(error._tag, "Secp256k1NotLoaded")
      assert.strictEqual(
        error.message,
        "The native binding of libsecp256k1 does not load on this machine; Secp256k1.layer falls back to noble"
      )
    }))
})
