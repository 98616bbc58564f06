/** ethers against a gateway process with a real node behind it: only the URL of the provider is changed. */
import { assert, describe, it } from "@effect/vitest"
import { chainIds, contracts, transactions } from "@trigate/sandbox/SandboxExamples"
import * as JsonParts from "@trigate/testing/JsonParts"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import type { Contract, ErrorCode, EthersError } from "ethers"
import { ContractFactory, isError, JsonRpcProvider, Network, toBeHex, Wallet } from "ethers"
import { canRun } from "../node/anvil.ts"
import { abi, bytecode } from "../node/counter.ts"
import { chainId, firstContract, gatewayOnNode, poor, rich, routes } from "./gatewayOnNode.ts"
import { rejection } from "./rejection.ts"
import { session } from "./session.ts"

const client = "ethers 6.17.0"

const gwei = 1_000_000_000n

/** The provider; without its own cache, which would answer for a quarter of a second without asking. */
const providerOf = (url: string, network?: Network) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      new JsonRpcProvider(url, network, {
        cacheTimeout: -1,
        pollingInterval: 20,
        ...(network === undefined ? {} : { staticNetwork: network })
      })
    ),
    (provider) => Effect.sync(() => provider.destroy())
  )

/** A provider of a route and the wallet of a rich account, over a gateway of their own. */
const connected = Effect.fnUntraced(function*(name: string, route: typeof routes[number]) {
  const gateway = yield* gatewayOnNode(`ethers/${name}-${route}`, client)
  const provider = yield* providerOf(`${gateway.url}/${route}`)
  return { ...gateway, provider, wallet: new Wallet(rich.privateKey, provider) }
})

const deployed = (wallet: Wallet) =>
  Effect.promise(() =>
    new ContractFactory(abi, bytecode, wallet).deploy().then((contract) => contract.waitForDeployment())
  )

/** Sends a transaction to a method of a contract and gives the receipt. */
const sent = (contract: Pick<Contract, "getFunction">, method: string, ...args: ReadonlyArray<unknown>) =>
  Effect.promise(() => contract.getFunction(method).send(...args).then((transaction) => transaction.wait()))

/** What a call fails with, when it is an error of the library with this code. */
const failure = <Code extends ErrorCode>(code: Code, call: () => Promise<unknown>) =>
  Effect.map(rejection(call), (error) => {
    if (!isError(error, code)) throw new Error(`Expected ${code}, got ${String(error)}`)
    return error
  })

/** The gateway's own error in one of the library's. */
const told = (error: EthersError) => {
  const path = error.info === undefined ? [] : ["info"]
  return JsonParts.at(error, ...path, "error", "data")
}

const tag = (error: EthersError) => JsonParts.at(told(error), "_tag")

describe("ethers over the sandbox", () => {
  it.live("finds the networks, reads storage, and receipts of each family", () =>
    Effect.gen(function*() {
      const url = yield* session({ name: "ethers/sandbox", client })
      const evm = yield* providerOf(`${url}/evm`)
      assert.strictEqual((yield* Effect.promise(() => evm.getNetwork())).chainId, BigInt(chainIds.mainnet))
      assert.strictEqual(yield* Effect.promise(() => evm.getStorage(contracts.wrapped, 2)), toBeHex(18, 32))
      const layer2 = yield* providerOf(`${url}/l2`)
      const { arbitrum, creation, failed, opStack, unknown, zksync } = transactions
      const receipts = yield* Effect.promise(() =>
        Promise.all(
          [opStack, arbitrum, zksync, failed, creation, unknown].map((hash) => layer2.getTransactionReceipt(hash))
        )
      )
      assert.deepStrictEqual(receipts.map((receipt) => receipt?.hash ?? null), [
        opStack,
        arbitrum,
        zksync,
        failed,
        creation,
        null
      ])
      assert.deepStrictEqual(receipts.map((receipt) => receipt?.status ?? null), [1, 1, 1, 0, 1, null])
    }))
})

describe.runIf(canRun)("ethers", () => {
  for (const route of sample("routes of ethers", routes, 1)) {
    it.live(`finds the network of /${route}, and sends what is asked at once as one batch`, () =>
      Effect.gen(function*() {
        const { asked, provider } = yield* connected("batch", route)
        assert.strictEqual((yield* Effect.promise(() => provider.getNetwork())).chainId, BigInt(chainId))
        const answers = yield* Effect.promise(() =>
          Promise.all([
            provider.getBlockNumber(),
            provider.getBalance(rich.address),
            provider.getTransactionCount(rich.address),
            provider.getCode(firstContract),
            provider.getStorage(firstContract, 0),
            provider.call({ to: firstContract }),
            provider.estimateGas({ from: rich.address, to: poor.address, value: 1n })
          ])
        )
        assert.deepStrictEqual(answers, [0, 10_000n * gwei ** 2n, 0, "0x", toBeHex(0, 32), "0x", 21_000n])
        assert.deepStrictEqual(asked().map((methods) => methods.toSorted()), [
          ["eth_chainId"],
          [
            "eth_blockNumber",
            "eth_call",
            "eth_chainId",
            "eth_estimateGas",
            "eth_getBalance",
            "eth_getCode",
            "eth_getStorageAt",
            "eth_getTransactionCount"
          ]
        ])
      }))

    it.live(`reads fees and blocks on /${route}`, () =>
      Effect.gen(function*() {
        const { provider } = yield* connected("fees", route)
        const { gasPrice, maxFeePerGas, maxPriorityFeePerGas } = yield* Effect.promise(() => provider.getFeeData())
        assert.deepStrictEqual(
          { gasPrice, maxFeePerGas, maxPriorityFeePerGas },
          { gasPrice: 2n * gwei, maxFeePerGas: 3n * gwei, maxPriorityFeePerGas: gwei }
        )
        const block = yield* Effect.promise(() => provider.getBlock("latest"))
        assert.strictEqual(block?.number, 0)
        assert.strictEqual((yield* Effect.promise(() => provider.getBlock(block?.hash ?? "")))?.hash, block?.hash)
      }))

    it.live(`deploys, sends and reads events on /${route}, and each transaction is sent once`, () =>
      Effect.gen(function*() {
        const { provider, transactionsSent, wallet } = yield* connected("contract", route)
        const contract = yield* deployed(wallet)
        assert.strictEqual((yield* Effect.promise(() => contract.getAddress())).toLowerCase(), firstContract)
        const creation = yield* Effect.promise(() =>
          provider.getTransactionReceipt(contract.deploymentTransaction()?.hash ?? "")
        )
        assert.deepStrictEqual(
          [creation?.to, creation?.contractAddress?.toLowerCase(), creation?.status],
          [null, firstContract, 1]
        )
        const receipt = yield* sent(contract, "count", 3)
        assert.deepStrictEqual([receipt?.status, receipt?.logs.map(({ index }) => index)], [1, [0, 1, 2]])
        const [value, word, logs, events] = yield* Effect.promise(() =>
          Promise.all([
            contract.getFunction("value").staticCall().then(String),
            provider.getStorage(firstContract, 0),
            provider.getLogs({ address: firstContract, fromBlock: 0, toBlock: "latest" }),
            contract.queryFilter("Counted", 0)
          ])
        )
        assert.deepStrictEqual([value, word, logs.length, events.length], ["3", toBeHex(3, 32), 3, 3])
        assert.strictEqual(transactionsSent(), 2)
      }))

    it.live(`decodes a contract's own error on /${route}`, () =>
      Effect.gen(function*() {
        const { transactionsSent, wallet } = yield* connected("revert", route)
        const contract = yield* deployed(wallet)
        yield* sent(contract, "count", 2)
        const countTo = contract.getFunction("countTo")
        for (const call of [() => countTo.staticCall(1), () => countTo.estimateGas(1), () => countTo.send(1)]) {
          const { data } = yield* failure("CALL_EXCEPTION", call)
          const error = contract.interface.parseError(data ?? "0x")
          assert.deepStrictEqual([error?.name, error?.args.toArray()], ["NotMore", [2n]])
        }
        const failed = yield* failure("CALL_EXCEPTION", () =>
          countTo.send(1, { gasLimit: 100_000 }).then((transaction) => transaction.wait()))
        assert.deepStrictEqual([failed.receipt?.status, failed.receipt?.logs], [0, []])
        assert.strictEqual(transactionsSent(), 3)
      }))

    it.live(`is told of funds and nonces in the node's words on /${route}`, () =>
      Effect.gen(function*() {
        const { provider, transactionsSent, wallet } = yield* connected("refused-transactions", route)
        const beggar = new Wallet(poor.privateKey, provider)
        yield* failure("INSUFFICIENT_FUNDS", () =>
          beggar.sendTransaction({ to: rich.address, value: 1n, gasLimit: 21_000n }))
        const signed = yield* Effect.promise(() =>
          wallet.populateTransaction({ to: poor.address, value: 1n }).then((transaction) =>
            wallet.signTransaction(transaction)
          )
        )
        const first = yield* Effect.promise(() =>
          provider.broadcastTransaction(signed)
        )
        const receipt = yield* Effect.promise(() => first.wait())
        assert.deepStrictEqual([receipt?.hash, receipt?.status], [first.hash, 1])
        yield* failure("NONCE_EXPIRED", () => provider.broadcastTransaction(signed))
        assert.strictEqual(transactionsSent(), 3)
      }))

    it.live(`is told which methods are not relayed on /${route}, and gets null for an unknown receipt`, () =>
      Effect.gen(function*() {
        const { asked, provider } = yield* connected("refused-methods", route)
        const hash = toBeHex(1, 32)
        for (const method of ["debug_traceTransaction", "anvil_mine"]) {
          const error = yield* failure("UNSUPPORTED_OPERATION", () => provider.send(method, [hash]))
          assert.deepStrictEqual([error.operation, tag(error)], [method, "UnsupportedMethod"])
        }
        assert.deepStrictEqual(asked().flat().filter((method) => method !== "eth_chainId"), [])
        assert.isNull(yield* Effect.promise(() => provider.getTransactionReceipt(hash)))
      }))

    it.live(`hears of events on /${route} without filters in the node`, () =>
      Effect.gen(function*() {
        const { asked, wallet } = yield* connected("events", route)
        const contract = yield* deployed(wallet)
        const heard = Promise.withResolvers<unknown>()
        yield* Effect.promise(() => contract.on("Counted", heard.resolve))
        yield* sent(contract, "count", 1)
        assert.strictEqual(yield* Effect.promise(() => heard.promise), 1n)
        yield* Effect.promise(() => contract.off("Counted"))
        const methods = new Set(asked().flat())
        assert.isTrue(methods.has("eth_getLogs"))
        assert.isFalse(methods.has("eth_newFilter"))
      }))
  }

  it.live("asks for no chain id when it is told the network", () =>
    Effect.gen(function*() {
      const { asked, url } = yield* gatewayOnNode("ethers/static-network", client)
      const provider = yield* providerOf(`${url}/evm`, Network.from(chainId))
      assert.strictEqual(yield* Effect.promise(() => provider.getBalance(poor.address)), 0n)
      assert.deepStrictEqual(asked(), [["eth_getBalance"]])
    }))

  it.live("is told that /evm knows the latest block only, and reads older ones on /l2", () =>
    Effect.gen(function*() {
      const { asked, url } = yield* gatewayOnNode("ethers/old-blocks", client)
      const provider = yield* providerOf(`${url}/evm`, Network.from(chainId))
      const error = yield* failure("UNKNOWN_ERROR", () => provider.getBalance(rich.address, 0))
      assert.strictEqual(tag(error), "UnsupportedBlock")
      // the library says of every failed call that it reverted, and keeps why
      const call = yield* failure("CALL_EXCEPTION", () => provider.call({ to: poor.address, blockTag: "pending" }))
      assert.strictEqual(tag(call), "UnsupportedBlock")
      assert.deepStrictEqual(asked(), [])
      const layer2 = yield* providerOf(`${url}/l2`, Network.from(chainId))
      assert.strictEqual(yield* Effect.promise(() => layer2.getBalance(poor.address, 0)), 0n)
    }))
})
