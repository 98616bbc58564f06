/** web3 against a gateway process with a real node behind it: only the URL is changed. */
import { assert, describe, it } from "@effect/vitest"
import { chainIds, contracts, transactions } from "@trigate/sandbox/SandboxExamples"
import * as JsonParts from "@trigate/testing/JsonParts"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import { Web3 } from "web3"
import { canRun } from "../node/anvil.ts"
import { abi, bytecode } from "../node/counter.ts"
import { chainId, firstContract, gatewayOnNode, poor, rich, routes } from "./gatewayOnNode.ts"
import { rejection } from "./rejection.ts"
import { session } from "./session.ts"

const client = "web3 4.16.0"

const gwei = 1_000_000_000n

const word = (value: number) => `0x${value.toString(16).padStart(64, "0")}`

/** The library on a route, with the keys of a rich and of a poor account in its wallet. */
const connected = Effect.fnUntraced(function*(name: string, route: typeof routes[number]) {
  const gateway = yield* gatewayOnNode(`web3/${name}-${route}`, client)
  const web3 = new Web3(`${gateway.url}/${route}`)
  web3.eth.accounts.wallet.add(rich.privateKey)
  web3.eth.accounts.wallet.add(poor.privateKey)
  return { ...gateway, web3 }
})

const deployed = (web3: Web3) =>
  Effect.promise(() => new web3.eth.Contract(abi).deploy({ data: bytecode }).send({ from: rich.address }))

/** A transaction of the rich account that carries everything it needs. */
const signed = (web3: Web3, nonce: number) =>
  Effect.promise(() =>
    web3.eth.accounts.signTransaction({
      type: 2,
      chainId,
      nonce,
      to: poor.address,
      value: 1,
      gas: 21_000,
      maxFeePerGas: 3n * gwei,
      maxPriorityFeePerGas: gwei
    }, rich.privateKey)
  )

/** The node's or the gateway's own error in one of the library's. */
const cause = (call: () => Promise<unknown>) =>
  Effect.map(rejection(call), (error) => JsonParts.at(error, "cause") ?? JsonParts.at(error, "innerError"))

const tag = (call: () => Promise<unknown>) => Effect.map(cause(call), (error) => JsonParts.at(error, "data", "_tag"))

describe("web3 over the sandbox", () => {
  it.live("reads storage, and receipts of each family", () =>
    Effect.gen(function*() {
      const url = yield* session({ name: "web3/sandbox", client })
      const evm = new Web3(`${url}/evm`)
      assert.strictEqual(yield* Effect.promise(() => evm.eth.getChainId()), BigInt(chainIds.mainnet))
      assert.strictEqual(yield* Effect.promise(() => evm.eth.getStorageAt(contracts.wrapped, 2)), word(18))
      const layer2 = new Web3(`${url}/l2`)
      const { arbitrum, creation, failed, opLegacy, opStack, zksync } = transactions
      const read = Effect.forEach([opStack, opLegacy, arbitrum, zksync, failed, creation], (hash) =>
        Effect.promise(() => layer2.eth.getTransactionReceipt(hash)))
      assert.deepStrictEqual((yield* read).map(({ status, transactionHash }) => [transactionHash, status]), [
        [opStack, 1n],
        [opLegacy, 1n],
        [arbitrum, 1n],
        [zksync, 1n],
        [failed, 0n],
        [creation, 1n]
      ])
    }))
})

describe.runIf(canRun)("web3", () => {
  for (const route of sample("routes of web3", routes, 1)) {
    it.live(`reads on /${route}`, () =>
      Effect.gen(function*() {
        const { web3 } = yield* connected("reads", route)
        const { eth } = web3
        const reads: ReadonlyArray<readonly [call: () => Promise<unknown>, answer: unknown]> = [
          [() => eth.getChainId(), BigInt(chainId)],
          [() => eth.net.getId(), BigInt(chainId)],
          [() => eth.getGasPrice(), 2n * gwei],
          [() => eth.getBalance(rich.address), 10_000n * gwei ** 2n],
          [() => eth.getTransactionCount(rich.address, "pending"), 0n],
          [() => eth.getCode(firstContract), "0x"],
          [() => eth.getStorageAt(firstContract, 0), word(0)],
          [() => eth.estimateGas({ from: rich.address, to: poor.address, value: 1 }), 21_000n],
          [() => eth.call({ to: firstContract }), "0x"],
          [() => eth.getBlock().then(({ number }) => number), 0n],
          [() => eth.getFeeHistory(1, "latest", []).then(({ oldestBlock }) => oldestBlock), 0n],
          [() => eth.isSyncing(), false],
          [() => eth.calculateFeeData().then(({ maxFeePerGas }) => maxFeePerGas), 3n * gwei]
        ]
        for (const [call, answer] of reads) assert.deepStrictEqual(yield* Effect.promise(call), answer)
      }))

    it.live(`deploys, sends and reads events on /${route}, and each transaction is sent once`, () =>
      Effect.gen(function*() {
        const { transactionsSent, web3 } = yield* connected("contract", route)
        const contract = yield* deployed(web3)
        assert.strictEqual(contract.options.address?.toLowerCase(), firstContract)
        const counted = yield* Effect.promise(() => contract.methods.count(3).send({ from: rich.address }))
        assert.deepStrictEqual([counted.status, counted.transactionIndex], [1n, 0n])
        const receipt = yield* Effect.promise(() => web3.eth.getTransactionReceipt(counted.transactionHash))
        assert.deepStrictEqual(receipt.logs.map(({ logIndex }) => logIndex), [0n, 1n, 2n])
        const events = yield* Effect.promise(() => contract.getPastEvents("allEvents", { fromBlock: 0 }))
        const logs = yield* Effect.promise(() => web3.eth.getPastLogs({ address: firstContract, fromBlock: "0x0" }))
        assert.deepStrictEqual([events.length, logs.length], [3, 3])
        assert.strictEqual(yield* Effect.promise(() => contract.methods.value().call()), 3n)
        assert.strictEqual(yield* Effect.promise(() => web3.eth.getStorageAt(firstContract, 0)), word(3))
        assert.strictEqual(transactionsSent(), 2)
      }))

    it.live(`decodes a contract's own error on /${route}, and reads the receipt of a transaction that failed`, () =>
      Effect.gen(function*() {
        const { transactionsSent, web3 } = yield* connected("revert", route)
        const contract = yield* deployed(web3)
        yield* Effect.promise(() => contract.methods.count(2).send({ from: rich.address }))
        const countTo = contract.methods.countTo(1)
        const send = (gas?: string) =>
          countTo.send({ from: rich.address, ...(gas === undefined ? {} : { gas }) }).then(String)
        for (const call of [() => countTo.call(), () => send()]) {
          const error = yield* cause(call)
          assert.strictEqual(JsonParts.at(error, "errorName"), "NotMore")
          assert.strictEqual(JsonParts.at(error, "errorArgs", "value"), 2n)
        }
        // the library decodes no error of an estimate
        const estimate = yield* cause(() => countTo.estimateGas({ from: rich.address }))
        assert.strictEqual(
          JsonParts.at(estimate, "data"),
          web3.eth.abi.encodeFunctionSignature("NotMore(uint256)") + word(2).slice(2)
        )
        const failed = yield* rejection(() => send("100000"))
        assert.deepStrictEqual(
          [JsonParts.at(failed, "receipt", "status"), JsonParts.at(failed, "receipt", "logs")],
          [0n, []]
        )
        assert.strictEqual(transactionsSent(), 3)
      }))

    it.live(`sends what is signed once on /${route}, and is told of funds and nonces in the node's words`, () =>
      Effect.gen(function*() {
        const { transactionsSent, web3 } = yield* connected("signed", route)
        const { rawTransaction, transactionHash } = yield* signed(web3, 0)
        const receipt = yield* Effect.promise(() => web3.eth.sendSignedTransaction(rawTransaction))
        assert.deepStrictEqual([receipt.status, receipt.transactionHash], [1n, transactionHash])
        assert.strictEqual(transactionsSent(), 1)
        assert.deepStrictEqual(
          yield* cause(() => web3.eth.sendSignedTransaction(rawTransaction).then(String)),
          { code: -32003, message: "nonce too low" }
        )
        assert.strictEqual(transactionsSent(), 2)
        const broke = yield* rejection(() =>
          web3.eth.sendTransaction({ from: poor.address, to: rich.address, value: 1 }).then(String)
        )
        assert.strictEqual(JsonParts.at(broke, "reason"), "Insufficient funds for gas * price + value")
        assert.strictEqual(transactionsSent(), 2)
      }))

    it.live(`sends a batch as one on /${route}, and fails those calls only that are not relayed`, () =>
      Effect.gen(function*() {
        const { asked, web3 } = yield* connected("batch", route)
        const batch = new web3.BatchRequest()
        const call = (method: string, params: ReadonlyArray<unknown> = []) =>
          batch.add({ jsonrpc: "2.0", method, params })
        const block = call("eth_blockNumber")
        const refused = call("anvil_mine").catch((error: unknown) => error)
        const balance = call("eth_getBalance", [poor.address, "latest"])
        const answers = yield* Effect.promise(() => batch.execute())
        assert.deepStrictEqual(
          answers.map((answer) => JsonParts.at(answer, "result") ?? JsonParts.at(answer, "error", "code")),
          ["0x0", -32601, "0x0"]
        )
        assert.deepStrictEqual(yield* Effect.promise(() => Promise.all([block, balance])), ["0x0", "0x0"])
        assert.strictEqual(
          JsonParts.at(yield* Effect.promise(() => refused), "data", "_tag"),
          "UnsupportedMethod"
        )
        assert.deepStrictEqual(asked(), [["eth_blockNumber", "eth_getBalance"]])
      }))

    it.live(`is told of a receipt that is not there on /${route}, and which methods are not relayed`, () =>
      Effect.gen(function*() {
        const { asked, web3 } = yield* connected("refused", route)
        const error = yield* rejection(() => web3.eth.getTransactionReceipt(word(1)))
        assert.strictEqual(JsonParts.at(error, "name"), "TransactionNotFound")
        const trace = { method: "debug_traceTransaction", params: [word(1)] }
        assert.strictEqual(yield* tag(() => web3.requestManager.send(trace)), "UnsupportedMethod")
        assert.deepStrictEqual(asked(), [["eth_getTransactionReceipt"]])
      }))
  }

  it.live("is told that /evm knows the latest block only, and reads older ones on /l2", () =>
    Effect.gen(function*() {
      const { asked, url } = yield* gatewayOnNode("web3/old-blocks", client)
      const { eth } = new Web3(`${url}/evm`)
      assert.strictEqual(yield* tag(() => eth.getBalance(rich.address, 0)), "UnsupportedBlock")
      assert.strictEqual(yield* tag(() => eth.getStorageAt(firstContract, 0, 1)), "UnsupportedBlock")
      assert.deepStrictEqual(asked(), [])
      const layer2 = new Web3(`${url}/l2`)
      assert.strictEqual(yield* Effect.promise(() => layer2.eth.getBalance(poor.address, 0)), 0n)
    }))
})
