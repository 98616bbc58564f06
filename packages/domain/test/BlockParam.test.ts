import { assert, describe, it } from "@effect/vitest"
import { checkBlock, gasPrice, getStorageAt } from "@trigate/domain/evm/EvmProtocol"
import type { Operation } from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"

const blockOf = (params: unknown, operation: Pick<Operation, "name" | "blockParam"> = getStorageAt) =>
  Result.match(Effect.runSync(Effect.result(checkBlock(operation, params))), {
    onFailure: (error) => error,
    onSuccess: () => undefined
  })

describe("checkBlock", () => {
  it("lets latest, a missing block and params of another shape pass", () => {
    for (const params of [["0x1", "0x0", "latest"], ["0x1", "0x0"], [], {}, null, undefined, "latest"]) {
      assert.isUndefined(blockOf(params))
    }
  })

  it("names the block that was asked for", () => {
    const cases: ReadonlyArray<readonly [unknown, string]> = [
      ["0x1", "0x1"],
      ["pending", "pending"],
      ["Latest", "Latest"],
      ["", ""],
      [null, "null"],
      [5, "5"],
      [{ blockNumber: "0x1" }, "{\"blockNumber\":\"0x1\"}"],
      [2n ** 64n, "18446744073709551616"]
    ]
    for (const [block, text] of cases) {
      const error = blockOf(["0x1", "0x0", block])
      assert.strictEqual(error?._tag, "UnsupportedBlock")
      assert.strictEqual(error?.block, text)
      assert.strictEqual(error?.method, "eth_getStorageAt")
      assert.deepStrictEqual(error?.supported, ["latest"])
    }
  })

  it("lets the other blocks pass that a method supports, and says which they are", () => {
    const operation = {
      name: "eth_getTransactionCount",
      blockParam: { position: 1, supported: ["latest", "pending"] }
    } as const
    assert.isUndefined(blockOf(["0x1", "pending"], operation))
    const error = blockOf(["0x1", "0x5"], operation)
    assert.deepStrictEqual(error?.supported, ["latest", "pending"])
    assert.strictEqual(
      error?.detail,
      "eth_getTransactionCount reads the latest or pending block only, not 0x5; over archive nodes, " +
        "TRIGATE_TRADING_NODE_ARCHIVE=on allows any block"
    )
  })

  it("cuts what is too long to show", () => {
    assert.strictEqual(blockOf(["0x1", "0x0", "x".repeat(10_000)])?.block.length, 128)
  })

  it("looks at methods with a block parameter only", () => {
    assert.isUndefined(blockOf(["0x1"], gasPrice))
    assert.strictEqual(
      blockOf(["0x1"], {
        name: "eth_getBalance",
        blockParam: { position: 0, supported: ["latest"] }
      })?.block,
      "0x1"
    )
  })
})
