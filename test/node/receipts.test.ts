/** Receipts of a real node through the gateway: by viem, by the typed client, and digit for digit. */
import { assert, describe, it } from "@effect/vitest"
import { makeClient } from "@trigate/testing/Client"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { recordingUpstream, rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import type { Hash } from "viem"
import { createPublicClient, http, TransactionReceiptNotFoundError } from "viem"
import { rejection } from "../compat/rejection.ts"
import { session } from "../compat/session.ts"
import { anvil, canRun } from "./anvil.ts"
import { answerOf, deployCounter, resultOf } from "./writer.ts"

const readerOf = (url: string) => createPublicClient({ transport: http(url, { retryCount: 0 }) })

/** What of a receipt the tests tell apart. */
const outlineOf = (
  receipt: { readonly status: string; readonly logs: ReadonlyArray<unknown>; readonly to?: string | null | undefined }
) => ({ status: receipt.status, logs: receipt.logs.length, created: receipt.to === null })

/** A node with three transactions: one that counts, one that reverts, and the creation of the contract. */
const counted = Effect.gen(function*() {
  const node = yield* anvil
  const counter = yield* deployCounter(node.url)
  const success = yield* counter.count(2n)
  const failure = yield* counter.countTo(1n)
  return { node, hashes: [success.transactionHash, failure.transactionHash, counter.created] }
})

describe.runIf(canRun)("a receipt of a real node", () => {
  it.live("is read by viem as it is directly: success, failure, creation", () =>
    Effect.gen(function*() {
      const { hashes, node } = yield* counted
      const url = yield* session({ name: "node/receipts", client: "viem 2.57.1", upstreams: { layer2: node.url } })
      const read = (at: string) =>
        Effect.forEach(hashes, (hash) => Effect.promise(() => readerOf(at).getTransactionReceipt({ hash })))
      const through = yield* read(`${url}/l2`)
      assert.deepStrictEqual(through.map(outlineOf), [
        { status: "success", logs: 2, created: false },
        { status: "reverted", logs: 0, created: false },
        { status: "success", logs: 0, created: true }
      ])
      assert.deepStrictEqual(through, yield* read(node.url))
    }))

  // what is asked for again is looked into beside the answers, which no recording can tell in order
  it.live("comes in the node's own text, and to the typed client", () =>
    Effect.gen(function*() {
      const { hashes, node } = yield* counted
      const { url } = yield* hostedGateway({ TRIGATE_LAYER2_URL: node.url })
      const { layer2 } = yield* makeClient(url)
      const typed = yield* Effect.forEach(hashes, (hash) => layer2.getTransactionReceipt({ hash }))
      assert.deepStrictEqual(typed.map((receipt) => receipt === null ? null : outlineOf(receipt)), [
        { status: "success", logs: 2, created: false },
        { status: "failure", logs: 0, created: false },
        { status: "success", logs: 0, created: true }
      ])
      const direct = yield* Effect.forEach(hashes, (hash) =>
        Effect.promise(() => readerOf(node.url).getTransactionReceipt({ hash })))
      assert.deepStrictEqual(
        typed.map((receipt) => [receipt?.gasUsed, receipt?.effectiveGasPrice, receipt?.blockHash, receipt?.type]),
        direct.map(({ blockHash, effectiveGasPrice, gasUsed }) => [gasUsed, effectiveGasPrice, blockHash, "0x2"])
      )
      for (const hash of hashes) {
        assert.strictEqual(
          yield* resultOf(`${url}/l2`, "eth_getTransactionReceipt", `["${hash}"]`),
          yield* resultOf(node.url, "eth_getTransactionReceipt", `["${hash}"]`)
        )
      }
    }))

  it.live("of an unknown transaction is none", () =>
    Effect.gen(function*() {
      const node = yield* anvil
      const url = yield* session({ name: "node/unknown", client: "viem 2.57.1", upstreams: { layer2: node.url } })
      const hash: Hash = `0x${"ab".repeat(32)}`
      const error = yield* rejection(() => readerOf(`${url}/l2`).getTransactionReceipt({ hash }))
      assert.instanceOf(error, TransactionReceiptNotFoundError)
      assert.isNull(yield* (yield* makeClient(url)).layer2.getTransactionReceipt({ hash }))
      assert.strictEqual(
        yield* answerOf(`${url}/l2`, "eth_getTransactionReceipt", `["${hash}"]`),
        `{"jsonrpc":"2.0","id":1,"result":null}`
      )
    }))

  // too much for a recording: a tenth of a megabyte, each time that it passes
  it.live("keeps all of two hundred logs", () =>
    Effect.gen(function*() {
      const node = yield* anvil
      const { transactionHash: hash } = yield* (yield* deployCounter(node.url)).count(200n)
      const { url } = yield* hostedGateway({ TRIGATE_LAYER2_URL: node.url })
      const raw = yield* resultOf(`${url}/l2`, "eth_getTransactionReceipt", `["${hash}"]`)
      assert.strictEqual(raw, yield* resultOf(node.url, "eth_getTransactionReceipt", `["${hash}"]`))
      assert.isAbove(raw.length, 100_000)
      const { logs } = yield* Effect.promise(() => readerOf(`${url}/l2`).getTransactionReceipt({ hash }))
      assert.deepStrictEqual(
        logs.map(({ topics }) => Number(topics[1])),
        Array.from({ length: 200 }, (_, index) => index + 1)
      )
      const typed = yield* (yield* makeClient(url)).layer2.getTransactionReceipt({ hash })
      assert.deepStrictEqual(typed?.logs.map(({ logIndex }) => logIndex), logs.map(({ logIndex }) => BigInt(logIndex)))
    }))

  it.live("keeps what nobody knows: fields, integers of any size, and the caller's id", () =>
    Effect.gen(function*() {
      const node = yield* anvil
      const { transactionHash: hash } = yield* (yield* deployCounter(node.url)).count(1n)
      const params = `["${hash}"]`
      const own = yield* resultOf(node.url, "eth_getTransactionReceipt", params)
      // the node's own receipt with what a future one may have more
      const more = `${
        own.slice(0, -1)
      }, "weight" : 123456789012345678901234567890 ,"note":"\\u00e9","nested":{"z":[1.0,1e400]}}`
      const future = yield* recordingUpstream(rpcReply(more))
      const { url } = yield* hostedGateway({ TRIGATE_LAYER2_URL: future.url })
      for (const id of ["12345678901234567890", `"a\\u00e9"`, "-0.50"]) {
        assert.strictEqual(
          yield* answerOf(`${url}/l2`, "eth_getTransactionReceipt", params, id),
          `{"jsonrpc":"2.0","id":${id},"result":${more}}`
        )
      }
      const typed = yield* (yield* makeClient(url)).layer2.getTransactionReceipt({ hash })
      assert.strictEqual(JsonParts.at(typed, "weight"), 123_456_789_012_345_678_901_234_567_890n)
      assert.strictEqual(JsonParts.at(typed, "note"), "é")
    }))
})
