/** A receipt is kept when its block is final at the node, and not before: what a reorganisation takes is gone at once. */
import { assert, describe, it } from "@effect/vitest"
import { post } from "@trigate/testing/Gateway"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import { forwarder } from "../compat/forwarder.ts"
import { anvil, canRun } from "./anvil.ts"
import { deployCounter, resultOf } from "./writer.ts"

const isReceipt = (method: unknown): boolean => method === "eth_getTransactionReceipt"

/** A gateway before a node with one more transaction; what passes between them is counted. */
const started = Effect.gen(function*() {
  const node = yield* anvil
  const counter = yield* deployCounter(node.url)
  const { transactionHash } = yield* counter.count(1n)
  const between = yield* forwarder(node.url)
  const { url } = yield* hostedGateway({ TRIGATE_LAYER2_URL: between.url })
  const asked = () => between.exchanges.map(({ body }) => JsonParts.value(body, "method"))
  const call = `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["${transactionHash}"]}`
  /** The receipt as the gateway answers it, the answer's age, and how often the node has been asked for it. */
  const receipt = Effect.map(post(`${url}/l2`, call), ({ headers, text }) => ({
    result: JsonParts.raw(text, ["result"]),
    age: headers.get("age"),
    asked: asked().filter(isReceipt).length
  }))
  return {
    node,
    receipt,
    direct: resultOf(node.url, "eth_getTransactionReceipt", `["${transactionHash}"]`),
    /** Asks for it until the gateway, which does so beside the answer, has looked for the finalized block. */
    looked: Effect.gen(function*() {
      const answers = [yield* receipt, yield* receipt]
      while (!asked().includes("eth_getBlockByNumber")) answers.push(yield* receipt)
      return answers
    })
  }
})

describe.runIf(canRun)("a receipt", () => {
  it.live("that a reorganisation takes back is gone at once, however often it was asked for", () =>
    Effect.gen(function*() {
      const { direct, looked, node, receipt } = yield* started
      const result = yield* direct
      const answers = yield* looked
      assert.deepStrictEqual(answers, answers.map((_, index) => ({ result, age: null, asked: index + 1 })))
      assert.strictEqual(yield* resultOf(node.url, "anvil_reorg", "[1,[]]"), "null")
      assert.strictEqual(yield* direct, "null")
      assert.deepStrictEqual(yield* receipt, { result: "null", age: null, asked: answers.length + 1 })
    }))

  it.live("that is safe but not final is asked for each time", () =>
    Effect.gen(function*() {
      const { direct, looked, node, receipt } = yield* started
      yield* resultOf(node.url, "anvil_mine", `["0x28"]`)
      assert.match(yield* resultOf(node.url, "eth_getBlockByNumber", `["safe",false]`), /"number":"0x[1-9a-f]/u)
      const result = yield* direct
      const { length } = yield* looked
      assert.deepStrictEqual(yield* receipt, { result, age: null, asked: length + 1 })
      assert.deepStrictEqual(yield* receipt, { result, age: null, asked: length + 2 })
    }))

  it.live("that is final at the node is kept, and the node is asked no more", () =>
    Effect.gen(function*() {
      const { direct, looked, node, receipt } = yield* started
      // the node takes a block for final when 64 more have come
      yield* resultOf(node.url, "anvil_mine", `["0x60"]`)
      const result = yield* direct
      assert.deepStrictEqual((yield* looked)[0], { result, age: null, asked: 1 })
      const first = yield* Effect.repeat(receipt, { until: ({ age }) => age !== null })
      yield* node.kill
      for (let time = 0; time < 3; time++) {
        const kept = yield* receipt
        assert.strictEqual(kept.result, result)
        assert.match(kept.age ?? "", /^[0-9]+$/u)
        assert.strictEqual(kept.asked, first.asked)
      }
    }))
})
