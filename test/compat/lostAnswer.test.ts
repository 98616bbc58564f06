/**
 * A transaction that a real node takes, and whose answer gets lost on the way to the gateway.
 *
 * Nobody but the node knows then that it was taken: the libraries are told so, none of them sends anything again by itself,
 * and whoever sends the identical bytes again learns that the first ones landed.
 */
import { assert, describe, it } from "@effect/vitest"
import type { Reaction } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import { isError, JsonRpcProvider, keccak256, Wallet } from "ethers"
import { BaseError, createPublicClient, createWalletClient, http } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { foundry } from "viem/chains"
import { Web3 } from "web3"
import { anvil, canRun } from "../node/anvil.ts"
import { poor, rich } from "./gatewayOnNode.ts"
import { rejection } from "./rejection.ts"

/** Hands requests on to a node; of the first transaction the node's answer gets lost. */
const losing = (url: string): Reaction => {
  let lost = 0
  return (socket, { body }) => {
    const isTransaction = body.includes("eth_sendRawTransaction")
    if (isTransaction) lost += 1
    const isLost = isTransaction && lost === 1
    void fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body })
      .then((answer) => answer.text())
      .then((text) => {
        if (isLost) return socket.resetAndDestroy()
        return socket.write(
          `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`
        )
      })
  }
}

/** A gateway over a node that takes the first transaction, and whose answer to it gets lost; what the node was sent. */
const gatewayLosingAnswer = Effect.gen(function*() {
  const node = yield* anvil
  const behind = yield* faultyUpstream(losing(node.url))
  behind.reactToProbe = behind.react
  const { url } = yield* hostedGateway({ TRIGATE_LAYER2_URL: behind.url })
  /** The params of the transactions that the node was sent. */
  const transactions = () =>
    behind.requests.flatMap(({ body }) =>
      body.includes("eth_sendRawTransaction") ? [JsonParts.value(body, "params", 0)] : []
    )
  return { url: `${url}/l2`, transactions }
})

const payment = { to: poor.address, value: 1n }

/** A node's way to say that it has had a transaction. */
const landed = /nonce too low|nonce has already been used/u

/** The one transaction that was sent, after the other one was sent by hand. */
const same = (transactions: ReadonlyArray<unknown>) => {
  const [first, second, ...others] = transactions
  assert.strictEqual(first, second)
  assert.deepStrictEqual(others, [])
  return keccak256(String(first))
}

describe("a transaction whose connection breaks, straight at a node", () => {
  const transaction = `0x${"02".repeat(100)}` as const

  /** How often a node is sent a transaction whose connection it resets each time. */
  const sendings = Effect.fnUntraced(function*(send: (url: string) => Promise<unknown>) {
    const node = yield* faultyUpstream((socket) => socket.resetAndDestroy())
    yield* rejection(() => send(node.url))
    return node.requests.filter(({ body }) => body.includes("eth_sendRawTransaction")).length
  })

  it.live("is sent four times by a bare request of viem's, and once by ethers", () =>
    Effect.gen(function*() {
      const viem = (url: string) =>
        createPublicClient({ chain: foundry, transport: http(url, { retryDelay: 1 }) })
          .request({ method: "eth_sendRawTransaction", params: [transaction] })
      assert.strictEqual(yield* sendings(viem), 4)
      const ethers = async (url: string) => {
        const provider = new JsonRpcProvider(url, foundry.id, { staticNetwork: true, cacheTimeout: -1 })
        await provider.send("eth_sendRawTransaction", [transaction]).finally(() => provider.destroy())
      }
      assert.strictEqual(yield* sendings(ethers), 1)
    }))
})

describe.runIf(canRun)("a transaction whose answer is lost", () => {
  it.live("is sent once by viem", () =>
    Effect.gen(function*() {
      const { transactions, url } = yield* gatewayLosingAnswer
      const transport = http(url, { retryDelay: 1 })
      const reader = createPublicClient({ chain: foundry, transport })
      const wallet = createWalletClient({ account: privateKeyToAccount(rich.privateKey), chain: foundry, transport })
      const request = yield* Effect.promise(() => wallet.prepareTransactionRequest(payment))
      const serializedTransaction = yield* Effect.promise(() => wallet.signTransaction(request))
      const error = yield* rejection(() => wallet.sendRawTransaction({ serializedTransaction }))
      assert.instanceOf(error, BaseError)
      const cause = error.walk((each) => JsonParts.at(each, "data", "_tag") === "OutcomeUnknown")
      assert.strictEqual(JsonParts.at(cause, "code"), -32_050)
      assert.deepStrictEqual(transactions(), [serializedTransaction])
      const again = yield* rejection(() => wallet.sendRawTransaction({ serializedTransaction }))
      assert.match(String(again), landed)
      const hash = keccak256(serializedTransaction) as `0x${string}`
      assert.strictEqual(same(transactions()), hash)
      const receipt = yield* Effect.promise(() => reader.getTransactionReceipt({ hash }))
      assert.strictEqual(receipt.status, "success")
      assert.strictEqual(yield* Effect.promise(() => reader.getTransactionCount(rich)), 1)
    }))

  it.live("is sent once by a bare request of viem's, which it repeats after other failures", () =>
    Effect.gen(function*() {
      const { transactions, url } = yield* gatewayLosingAnswer
      const wallet = createWalletClient({
        account: privateKeyToAccount(rich.privateKey),
        chain: foundry,
        transport: http(url, { retryDelay: 1 })
      })
      const request = yield* Effect.promise(() => wallet.prepareTransactionRequest(payment))
      const serialized = yield* Effect.promise(() => wallet.signTransaction(request))
      const error = yield* rejection(() => wallet.request({ method: "eth_sendRawTransaction", params: [serialized] }))
      assert.instanceOf(error, BaseError)
      assert.isNotNull(error.walk((each) => JsonParts.at(each, "data", "_tag") === "OutcomeUnknown"))
      assert.deepStrictEqual(transactions(), [serialized])
    }))

  it.live("is sent once by ethers", () =>
    Effect.gen(function*() {
      const { transactions, url } = yield* gatewayLosingAnswer
      const provider = yield* Effect.acquireRelease(
        Effect.sync(() => new JsonRpcProvider(url, undefined, { cacheTimeout: -1 })),
        (provider) => Effect.sync(() => provider.destroy())
      )
      const wallet = new Wallet(rich.privateKey, provider)
      const signed = yield* Effect.promise(() =>
        wallet.populateTransaction(payment).then((transaction) => wallet.signTransaction(transaction))
      )
      const error = yield* rejection(() => provider.broadcastTransaction(signed))
      assert.isTrue(isError(error, "UNKNOWN_ERROR"), String(error))
      assert.strictEqual(JsonParts.at(error, "error", "data", "_tag"), "OutcomeUnknown")
      assert.deepStrictEqual(transactions(), [signed])
      const again = yield* rejection(() => provider.broadcastTransaction(signed))
      assert.isTrue(isError(again, "NONCE_EXPIRED"), String(again))
      const receipt = yield* Effect.promise(() => provider.getTransactionReceipt(same(transactions())))
      assert.strictEqual(receipt?.status, 1)
    }))

  it.live("is sent once by web3", () =>
    Effect.gen(function*() {
      const { transactions, url } = yield* gatewayLosingAnswer
      const { eth } = new Web3(url)
      const { rawTransaction } = yield* Effect.promise(() =>
        eth.accounts.signTransaction({
          type: 2,
          chainId: foundry.id,
          nonce: 0,
          to: poor.address,
          value: 1,
          gas: 21_000,
          maxFeePerGas: 3_000_000_000n,
          maxPriorityFeePerGas: 1_000_000_000n
        }, rich.privateKey)
      )
      const send = () => eth.sendSignedTransaction(rawTransaction).then(String)
      const error = yield* rejection(send)
      assert.strictEqual(JsonParts.at(error, "cause", "data", "_tag"), "OutcomeUnknown")
      assert.deepStrictEqual(transactions(), [rawTransaction])
      assert.match(String(yield* rejection(send)), landed)
      const receipt = yield* Effect.promise(() => eth.getTransactionReceipt(same(transactions())))
      assert.strictEqual(receipt.status, 1n)
    }))
})
