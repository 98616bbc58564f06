/** viem's wallet client against a gateway process with a real node behind it: only the URL of the transport is changed. */
import { assert, describe, it } from "@effect/vitest"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import {
  BaseError,
  ContractFunctionRevertedError,
  createPublicClient,
  createWalletClient,
  http,
  InsufficientFundsError,
  NonceTooLowError,
  numberToHex
} from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { foundry } from "viem/chains"
import { canRun } from "../node/anvil.ts"
import { abi, bytecode } from "../node/counter.ts"
import { firstContract, gatewayOnNode, poor, rich, routes } from "./gatewayOnNode.ts"
import { rejection } from "./rejection.ts"

const client = "viem 2.57.1"

/** The library's clients with their defaults, but for how often they look for something new. */
const clientsOf = (url: string, options: { readonly batch?: boolean } = {}) => {
  const chain = foundry
  const transport = http(url, options)
  return {
    reader: createPublicClient({ chain, transport, pollingInterval: 20, cacheTime: 0 }),
    walletOf: (key: `0x${string}`) => createWalletClient({ account: privateKeyToAccount(key), chain, transport })
  }
}

const connected = Effect.fnUntraced(function*(name: string, route: typeof routes[number]) {
  const gateway = yield* gatewayOnNode(`viem/${name}-${route}`, client)
  const { reader, walletOf } = clientsOf(`${gateway.url}/${route}`)
  const wallet = walletOf(rich.privateKey)
  /** Waits for the receipt of what a call sends. */
  const mined = (send: () => Promise<`0x${string}`>) =>
    Effect.promise(() => send().then((hash) => reader.waitForTransactionReceipt({ hash })))
  const deploy = mined(() => wallet.deployContract({ abi, bytecode }))
  const count = (times: bigint) =>
    mined(() => wallet.writeContract({ abi, address: firstContract, functionName: "count", args: [times] }))
  return { ...gateway, reader, wallet, walletOf, mined, deploy, count }
})

/** The error of a class among the causes of what a call fails with. */
const causeOf = <E extends BaseError>(kind: abstract new(...args: never) => E, call: () => Promise<unknown>) =>
  Effect.map(rejection(call), (error) => {
    const found = error instanceof BaseError ? error.walk((cause) => cause instanceof kind) : null
    if (!(found instanceof kind)) throw new Error(`Expected ${kind.name}, got ${String(error)}`)
    return found
  })

describe.runIf(canRun)("viem's wallet", () => {
  for (const route of sample("routes of viemWallet", routes, 1)) {
    it.live(`deploys, writes and sends on /${route}, and each transaction is sent once`, () =>
      Effect.gen(function*() {
        const { asked, count, deploy, mined, reader, transactionsSent, wallet } = yield* connected("wallet", route)
        const creation = yield* deploy
        assert.deepStrictEqual([creation.status, creation.to, creation.contractAddress], [
          "success",
          null,
          firstContract
        ])
        // the node is not asked to fill in what is missing, which it could do; the library does it by itself
        const methods = asked().flat()
        assert.deepStrictEqual(methods.slice(0, methods.indexOf("eth_sendRawTransaction") + 1).toSorted(), [
          "eth_estimateGas",
          "eth_getBlockByNumber",
          "eth_getTransactionCount",
          "eth_maxPriorityFeePerGas",
          "eth_sendRawTransaction"
        ])
        const counted = yield* count(3n)
        assert.deepStrictEqual([counted.status, counted.logs.map(({ logIndex }) => logIndex)], ["success", [0, 1, 2]])
        const paid = yield* mined(() => wallet.sendTransaction({ to: poor.address, value: 5n }))
        assert.deepStrictEqual([paid.status, paid.gasUsed], ["success", 21_000n])
        assert.strictEqual(yield* Effect.promise(() => reader.getBalance(poor)), 5n)
        assert.strictEqual(transactionsSent(), 3)
      }))

    it.live(`sends on /${route} and is told the receipt at once`, () =>
      Effect.gen(function*() {
        const { asked, reader, transactionsSent, wallet } = yield* connected("sync", route)
        const receipt = yield* Effect.promise(() => wallet.sendTransactionSync({ to: poor.address, value: 5n }))
        assert.deepStrictEqual([receipt.status, receipt.gasUsed], ["success", 21_000n])
        assert.strictEqual(yield* Effect.promise(() => reader.getBalance(poor)), 5n)
        const sent = asked().flat().filter((method) => method.startsWith("eth_send"))
        assert.deepStrictEqual([sent, transactionsSent()], [["eth_sendRawTransactionSync"], 1])
      }))

    it.live(`reads a contract, its events and several calls in one on /${route}`, () =>
      Effect.gen(function*() {
        const { count, deploy, reader } = yield* connected("contract", route)
        yield* deploy
        yield* count(2n)
        const value = { abi, address: firstContract, functionName: "value" } as const
        assert.strictEqual(yield* Effect.promise(() => reader.readContract(value)), 2n)
        const both = yield* Effect.promise(() =>
          reader.multicall({ contracts: [value, value], allowFailure: false, deployless: true })
        )
        assert.deepStrictEqual(both, [2n, 2n])
        assert.strictEqual(
          yield* Effect.promise(() => reader.getStorageAt({ address: firstContract, slot: "0x0" })),
          numberToHex(2, { size: 32 })
        )
        const events = yield* Effect.promise(() =>
          reader.getContractEvents({ abi, address: firstContract, eventName: "Counted", fromBlock: 0n, strict: true })
        )
        assert.deepStrictEqual(events.map(({ args }) => args.value), [1n, 2n])
        const logs = yield* Effect.promise(() => reader.getLogs({ address: firstContract, fromBlock: 2n, toBlock: 2n }))
        assert.strictEqual(logs.length, 2)
        assert.strictEqual((yield* Effect.promise(() => reader.getBlock())).number, 2n)
      }))

    it.live(`decodes a contract's own error on /${route}, and reads the receipt of a transaction that failed`, () =>
      Effect.gen(function*() {
        const { count, deploy, mined, reader, transactionsSent, wallet } = yield* connected("revert", route)
        yield* deploy
        yield* count(2n)
        const call = { abi, address: firstContract, functionName: "countTo", args: [1n] } as const
        const calls = [
          () => reader.simulateContract(call),
          () => reader.estimateContractGas({ ...call, account: rich.address }),
          () => wallet.writeContract(call)
        ]
        for (const attempt of calls) {
          const { data } = yield* causeOf(ContractFunctionRevertedError, attempt)
          assert.deepStrictEqual([data?.errorName, data?.args], ["NotMore", [2n]])
        }
        const failed = yield* mined(() => wallet.writeContract({ ...call, gas: 100_000n }))
        assert.deepStrictEqual([failed.status, failed.logs], ["reverted", []])
        assert.strictEqual(transactionsSent(), 3)
      }))

    it.live(`is told of funds and nonces in the node's words on /${route}`, () =>
      Effect.gen(function*() {
        const { transactionsSent, mined, wallet, walletOf } = yield* connected("refused-transactions", route)
        const beggar = walletOf(poor.privateKey)
        yield* causeOf(InsufficientFundsError, () =>
          beggar.sendTransaction({ to: rich.address, value: 1n, gas: 21_000n }))
        const request = yield* Effect.promise(() =>
          wallet.prepareTransactionRequest({ to: poor.address, value: 1n })
        )
        const serializedTransaction = yield* Effect.promise(() => wallet.signTransaction(request))
        yield* mined(() => wallet.sendRawTransaction({ serializedTransaction }))
        const error = yield* rejection(() => wallet.sendRawTransaction({ serializedTransaction }))
        assert.include(String(error), "Details: nonce too low")
        yield* causeOf(NonceTooLowError, () => wallet.sendTransaction({ to: poor.address, value: 1n, nonce: 0 }))
        assert.strictEqual(transactionsSent(), 4)
      }))

    it.live(`hears of events on /${route} without filters in the node`, () =>
      Effect.gen(function*() {
        const { asked, count, deploy, reader } = yield* connected("events", route)
        yield* deploy
        const heard = Promise.withResolvers<ReadonlyArray<bigint | undefined>>()
        const end = reader.watchContractEvent({
          abi,
          address: firstContract,
          eventName: "Counted",
          fromBlock: 2n,
          onLogs: (logs) => heard.resolve(logs.map(({ args }) => args.value))
        })
        yield* count(1n)
        assert.deepStrictEqual(yield* Effect.promise(() => heard.promise), [1n])
        end()
        const methods = new Set(asked().flat())
        assert.isTrue(methods.has("eth_getLogs"))
        assert.isFalse(methods.has("eth_newFilter"))
      }))

    it.live(`sends a transaction out of a batch on /${route} by itself`, () =>
      Effect.gen(function*() {
        const { asked, transactionsSent, url } = yield* gatewayOnNode(`viem/wallet-batch-${route}`, client)
        const { reader, walletOf } = clientsOf(`${url}/${route}`, { batch: true })
        const wallet = walletOf(rich.privateKey)
        const [hash, balance, code] = yield* Effect.promise(() =>
          wallet.prepareTransactionRequest({ to: poor.address, value: 1n })
            .then((request) => wallet.signTransaction(request))
            .then((serializedTransaction) =>
              Promise.all([
                reader.sendRawTransaction({ serializedTransaction }),
                reader.getBalance(rich).then((wei) => wei > 0n),
                reader.getCode({ address: firstContract })
              ])
            )
        )
        assert.deepStrictEqual([balance, code], [true, undefined])
        const receipt = yield* Effect.promise(() => reader.waitForTransactionReceipt({ hash }))
        assert.strictEqual(receipt.status, "success")
        assert.strictEqual(transactionsSent(), 1)
        assert.deepInclude(asked(), ["eth_sendRawTransaction"])
        assert.deepInclude(asked(), ["eth_getBalance", "eth_getCode"])
      }))
  }
})
