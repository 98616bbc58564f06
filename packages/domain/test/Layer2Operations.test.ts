import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { Hash } from "@trigate/domain/encoding/Encoding"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import { getTransactionReceipt } from "@trigate/domain/evm/Layer2Operations"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import anvil from "./fixtures/l2-anvil.json" with { type: "json" }

const decode = Schema.decodeUnknownResult(getTransactionReceipt.request)
const hash = `0x${"aB".repeat(32)}` as const

describe("eth_getTransactionReceipt", () => {
  it("is declared as a read that only nodes serve, for one request unit", () => {
    const { chain, class: methodClass, cost, failures, name, protocol, sources } = getTransactionReceipt
    assert.deepStrictEqual<unknown>({ chain, methodClass, cost, failures, name, protocol, sources }, {
      chain: "layer2",
      methodClass: "read",
      cost: { weight: 0, requestUnits: 1 },
      failures: [],
      name: "eth_getTransactionReceipt",
      protocol: "layer2",
      sources: ["node"]
    })
  })

  it("takes one hash and keeps its letter case", () => {
    assert.deepStrictEqual(Result.getOrThrow(decode([hash])), { hash })
  })

  it.each([
    ["no params", []],
    ["two params", [hash, "latest"]],
    ["a short hash", ["0x1234"]],
    ["a hash that is not hex", ["hello"]],
    ["a hash without its prefix", [hash.slice(2)]],
    ["a number", [1]],
    ["null", [null]],
    ["a named object", { hash }],
    ["the bare hash", hash]
  ])("refuses %s", (_name, params) => {
    assert.isTrue(Result.isFailure(decode(params)))
  })

  it.effect.prop("params come back as they were", { hash: Hash }, ({ hash }) =>
    Effect.gen(function*() {
      const params = yield* Schema.encodeEffect(getTransactionReceipt.request)({ hash })
      assert.deepStrictEqual(params, [hash])
      assert.deepStrictEqual(yield* Schema.decodeEffect(getTransactionReceipt.request)(params), { hash })
    }))

  it.effect("answers a receipt, or null for a transaction that is in no block", () =>
    Effect.gen(function*() {
      const read = EvmProtocol.makeReader(getTransactionReceipt)
      assert.isNull(yield* read("layer2", { _tag: "Result", result: Json.of("null") }))
      const recorded = anvil.records.find(({ name }) => name === "call with 3 logs")
      assert.isDefined(recorded)
      const answer = yield* Effect.fromResult(
        EvmProtocol.readResponse("layer2", Json.of(JSON.stringify(recorded.body)), 1)
      )
      const receipt = yield* read("layer2", answer)
      assert.strictEqual(receipt?.status, "success")
      assert.deepStrictEqual(receipt?.logs.map(({ logIndex }) => logIndex), [0n, 1n, 2n])
    }))
})
