/** viem's public client against a gateway process: only the URL of the transport is changed. */
import { assert, describe, it } from "@effect/vitest"
import { contracts, transactions } from "@trigate/sandbox/SandboxExamples"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Recordings from "@trigate/testing/Recordings"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import type { Chain } from "viem"
import {
  createPublicClient,
  createTestClient,
  http,
  InvalidParamsRpcError,
  MethodNotFoundRpcError,
  TransactionReceiptNotFoundError
} from "viem"
import { arbitrum, optimism, zksync } from "viem/chains"
import { rejection } from "./rejection.ts"
import { session } from "./session.ts"

const client = "viem 2.57.1"

// the library would ask again by itself, and the numbers of calls below would say nothing
const once = { retryCount: 0 }

/** Recorded receipts, a chain of the library that has formatters for their family or needs none, and how many it can format. */
const families: ReadonlyArray<readonly [file: string, chain: Chain, formatted: number]> = [
  ["l2-op-stack.json", optimism, 17],
  ["l2-zksync.json", zksync, 3],
  ["l2-arbitrum.json", arbitrum, 3]
]

/** The recorded receipts of a file, each as the text that the node sent. */
const recorded = (file: string) => {
  const json = Recordings.text(file)
  return new Map(
    JsonParts.rows(json, ["receipts"]).map((row) => {
      const hash = JsonParts.value(row, "request", "params", 0)
      assert.match(String(hash), /^0x[0-9a-f]{64}$/u)
      return [String(hash), JsonParts.raw(row, ["response", "result"])] as const
    })
  )
}

const isHash = (text: string): text is `0x${string}` => text.startsWith("0x")

describe("viem", () => {
  it.live("reads a contract's storage and the gas price on /evm", () =>
    Effect.gen(function*() {
      const url = yield* session({ name: "viem/storage", client })
      const evm = createPublicClient({ transport: http(`${url}/evm`, once) })
      const word = yield* Effect.promise(() => evm.getStorageAt({ address: contracts.wrapped, slot: "0x2" }))
      assert.strictEqual(word, `0x${"12".padStart(64, "0")}`)
      assert.isAbove(Number(yield* Effect.promise(() => evm.getGasPrice())), 0)
    }))

  it.live("is told that a block other than the latest is refused on /evm", () =>
    Effect.gen(function*() {
      const url = yield* session({ name: "viem/old-block", client })
      const evm = createPublicClient({ transport: http(`${url}/evm`, once) })
      const error = yield* rejection(() =>
        evm.getStorageAt({ address: contracts.wrapped, slot: "0x0", blockNumber: 1n })
      )
      assert.instanceOf(error, InvalidParamsRpcError)
      assert.include(
        error.message,
        "Details: eth_getStorageAt reads the latest block only, not 0x1; over archive nodes, "
      )
    }))

  it.live("is told which methods are not relayed", () =>
    Effect.gen(function*() {
      const url = yield* session({ name: "viem/refused-methods", client })
      for (const path of ["/evm", "/l2"]) {
        const error = yield* rejection(() =>
          createTestClient({ mode: "anvil", transport: http(url + path, once) }).dropTransaction({
            hash: transactions.failed
          })
        )
        assert.instanceOf(error, MethodNotFoundRpcError)
        assert.strictEqual(JsonParts.at(error, "cause", "data", "_tag"), "UnsupportedMethod")
      }
    }))

  it.live("reads receipts on /l2, and is told of a transaction without one", () =>
    Effect.gen(function*() {
      const url = yield* session({ name: "viem/receipts", client })
      const layer2 = createPublicClient({ transport: http(`${url}/l2`, once) })
      const receipts = yield* Effect.promise(() =>
        Promise.all([transactions.opStack, transactions.failed, transactions.creation].map((hash) =>
          layer2.getTransactionReceipt({ hash })
        ))
      )
      assert.deepStrictEqual(receipts.map(({ status, to }) => ({ status, created: to === null })), [
        { status: "success", created: false },
        { status: "reverted", created: false },
        { status: "success", created: true }
      ])
      const error = yield* rejection(() =>
        layer2.getTransactionReceipt({ hash: transactions.unknown })
      )
      assert.instanceOf(error, TransactionReceiptNotFoundError)
    }))

  it.live("sends its calls as one batch", () =>
    Effect.gen(function*() {
      const url = yield* session({ name: "viem/batch", client })
      const layer2 = createPublicClient({ transport: http(`${url}/l2`, { ...once, batch: true }) })
      const hashes = [transactions.zksync, transactions.arbitrum, transactions.linea]
      const receipts = yield* Effect.promise(() =>
        Promise.all(hashes.map((hash) => layer2.getTransactionReceipt({ hash })))
      )
      assert.deepStrictEqual(receipts.map(({ transactionHash }) => transactionHash), hashes)
    }))

  it.live("leaves the fields of Arbitrum in its receipts", () =>
    Effect.gen(function*() {
      const url = yield* session({ name: "viem/arbitrum", client })
      const layer2 = createPublicClient({ chain: arbitrum, transport: http(`${url}/l2`, once) })
      const receipt = yield* Effect.promise(() => layer2.getTransactionReceipt({ hash: transactions.arbitrum }))
      assert.containsAllKeys(receipt, ["gasUsedForL1", "l1BlockNumber", "timeboosted"])
      assert.strictEqual(receipt.gasUsed, 96_113n)
    }))

  for (const [file, chain, formatted] of families) {
    it.live(`formats the receipts of ${file} as it does straight from the node`, () =>
      Effect.gen(function*() {
        const receipts = recorded(file)
        const node = yield* recordingUpstream(({ body }) => ({
          body: `{"jsonrpc":"2.0","id":${JsonParts.raw(body, ["id"])},"result":${
            receipts.get(String(JsonParts.value(body, "params", 0))) ?? "null"
          }}`
        }))
        // not a session: RpcRelay.test.ts has these receipts, and compares their bytes
        const gateway = yield* hostedGateway({ TRIGATE_LAYER2_URL: node.url })
        const clientOf = (url: string) => createPublicClient({ chain, transport: http(url, once) })
        // two zkSync receipts were recorded by a tool that drops fields of logs; the library can format them from nowhere
        const read = (url: string) =>
          Effect.forEach([...receipts.keys()].filter(isHash), (hash) =>
            Effect.promise(() =>
              clientOf(url).getTransactionReceipt({ hash }).then(
                (receipt) => ({ receipt }),
                (error: unknown) => ({ error: String(error) })
              )
            ))
        const through = yield* read(`${gateway.url}/l2`)
        assert.strictEqual(node.seen.length, receipts.size)
        assert.deepStrictEqual(through, yield* read(node.url))
        assert.strictEqual(
          through.filter((outcome) =>
            "receipt" in outcome
          ).length,
          formatted
        )
      }))
  }
})
