import { assert, describe, it } from "@effect/vitest"
import * as EvmChain from "@trigate/testing/EvmChain"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { call, gateway, nodeOf } from "./nodes.ts"

describe("eth_getLogs", () => {
  it.effect("of 100 000 blocks is exact with a raised bound, and cached but for its newest blocks", () => {
    const chain = new EvmChain.EvmChain("wide", { blocks: 100_001, span: 50 })
    const transport = nodeOf(chain)
    return Effect.gen(function*() {
      const backend = yield* gateway({ logBlocks: 50, logRequests: 2000 })
      const expected = chain.logs({ address: EvmChain.contracts[1] }, 1, 100_000)
      const filter = { fromBlock: "0x1", toBlock: "0x186a0", address: EvmChain.contracts[1] }
      assert.deepStrictEqual(yield* call(backend, "eth_getLogs", filter), expected)
      assert.deepStrictEqual([chain.ranges.length, Math.max(...chain.ranges)], [2001, 50])
      assert.strictEqual(transport.seen.length, 2003)
      assert.deepStrictEqual(yield* call(backend, "eth_getLogs", filter), expected)
      // the newest block, the newest settled one, and the three parts that a reorganisation could still change
      assert.strictEqual(transport.seen.length, 2008)
    }).pipe(Effect.provide(Layer.provide(Pipeline.layer({ attempts: 1 }), transport.layer)))
  })
})
