import { assert, describe, it } from "@effect/vitest"
import { evmOperations } from "@trigate/domain/evm/EvmProtocol"
import { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import { candleSnapshot, infoOperations, spotMeta } from "@trigate/domain/info/InfoOperations"
import * as Operation from "@trigate/domain/operations/Operation"
import * as Schema from "effect/Schema"

const declaration = {
  name: "x",
  chain: "trading",
  protocol: "exchange",
  summary: "",
  sources: ["official-api"],
  cost: { weight: 1, requestUnits: 1 },
  request: Schema.Void,
  response: Schema.Void,
  failures: []
} as const

describe("the method class", () => {
  it("is in the declaration and in its type", () => {
    const read: "read" = Operation.read(declaration).class
    const once: "once" = Operation.once({ ...declaration, advice: "" }).class
    assert.deepStrictEqual([read, once], ["read", "once"])
  })

  it("of every query is read", () => {
    for (const operation of Object.values({ ...infoOperations, ...evmOperations, ...layer2Operations })) {
      assert.strictEqual(operation.class, "read", operation.name)
    }
  })
})

describe("availability", () => {
  it.each(
    [
      ["spotMeta", spotMeta, ["official-api", "node"], ["node"]],
      ["candleSnapshot", candleSnapshot, ["official-api"], []],
      ["eth_getTransactionReceipt", layer2Operations.getTransactionReceipt, ["node"], ["node"]]
    ] as const
  )("of %s on the gateway's surface and on the node's", (_name, operation, gateway, node) => {
    assert.deepStrictEqual<ReadonlyArray<string>>(Operation.sourcesOn(operation, "gateway"), gateway)
    assert.deepStrictEqual<ReadonlyArray<string>>(Operation.sourcesOn(operation, "node"), node)
  })

  it("refuses with the operation and who has it", () => {
    const error = Operation.unavailableOnNode(candleSnapshot)
    assert.strictEqual(error._tag, "UnavailableOnNode")
    assert.strictEqual(error.operation, "candleSnapshot")
    assert.deepStrictEqual(error.availableOn, ["official-api"])
    assert.strictEqual(
      error.detail,
      "Only the venue's API serves candleSnapshot; nodes do not"
    )
  })
})

describe("weight", () => {
  it.each([
    [0, 20],
    [1, 21],
    [60, 21],
    [61, 22],
    [5000, 104]
  ])("of a candle answer of %i rows is %i", (rows, weight) => {
    assert.strictEqual(Operation.responseWeight(candleSnapshot, rows), weight)
  })

  it("of an operation without rows stays what it is", () => {
    assert.strictEqual(Operation.responseWeight(spotMeta, 5000), 20)
    assert.strictEqual(Operation.responseWeight(layer2Operations.getTransactionReceipt, 1), 0)
  })
})
