import { assert, describe, it } from "@effect/vitest"
import { isLogRefusal, readLogRefusal } from "@trigate/domain/evm/LogRefusal"
import * as JsonRpc from "@trigate/domain/operations/JsonRpc"

describe("a node's refusal of logs", () => {
  const told: ReadonlyArray<readonly [message: string, expected: ReturnType<typeof readLogRefusal>]> = [
    ["query exceeds max block range 100", { reason: "blocks", blocks: 100 }],
    ["eth_getLogs is limited to a 1,000 blocks range", { reason: "blocks", blocks: 1000 }],
    ["block range too large", { reason: "blocks", blocks: undefined }],
    ["ranges over 2k blocks are not supported on freetier", { reason: "blocks", blocks: 2000 }],
    ["query exceeds max results 20000, retry with the range 1-2", { reason: "results" }],
    ["query returned more than 10000 results", { reason: "results" }],
    // of reth, geth and Nethermind: a smaller range fails too
    ["block range extends beyond current head block", undefined],
    ["invalid block range params", undefined],
    ["invalid block range", undefined],
    ["One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found.", undefined],
    ["header not found", undefined]
  ]
  for (const [message, expected] of told) {
    it(`is ${expected?.reason ?? "not seen"} in: ${message}`, () => {
      assert.deepStrictEqual(readLogRefusal(JsonRpc.error(-32602, message), 5000), expected)
      assert.strictEqual(isLogRefusal({ message }), expected !== undefined)
    })
  }
})
