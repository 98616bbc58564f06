/** The node that the other tests use: it starts, answers, and is gone with its scope. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { createPublicClient, http } from "viem"
import { rejection } from "../compat/rejection.ts"
import { anvil, canRun, withEvmPath } from "./anvil.ts"

const chainId = (url: string) => createPublicClient({ transport: http(url, { retryCount: 0 }) }).getChainId()

describe.runIf(canRun)("a real node", () => {
  it.live("answers at its URL and below /evm, until its scope ends", () =>
    Effect.gen(function*() {
      const url = yield* Effect.scoped(Effect.gen(function*() {
        const node = yield* anvil
        assert.strictEqual(yield* Effect.promise(() => chainId(node.url)), 31_337)
        const evm = yield* withEvmPath(node)
        assert.strictEqual(yield* Effect.promise(() => chainId(`${evm}/evm`)), 31_337)
        return node.url
      }))
      yield* rejection(() => chainId(url))
    }))
})
