import { assert, describe, it } from "@effect/vitest"
import { runTolkCompiler } from "@ton/tolk-js"
import { minterCode, walletCode } from "@trigate/sandbox/unstable/tokens/JettonCode"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"

const folder = path.resolve(import.meta.dirname, "../contracts")

const compiled = (name: string) =>
  Effect.promise(() =>
    runTolkCompiler({
      entrypointFileName: `${name}.tolk`,
      fsReadCallback: (file) => fs.readFileSync(path.join(folder, file.replace(/(?:\.tolk)?$/u, ".tolk")), "utf8")
    })
  ).pipe(Effect.map((result) => result.status === "ok" ? result.codeBoc64 : result.message))

describe("the code of the sandbox's jettons", () => {
  it.effect("is what its sources compile to", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* compiled("jetton-minter"), minterCode)
      assert.strictEqual(yield* compiled("jetton-wallet"), walletCode)
    }))
})
