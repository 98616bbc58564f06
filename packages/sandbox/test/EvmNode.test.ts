/** The sandbox's two EVM chains, asked by viem as a node is asked. */
import { assert, describe, it } from "@effect/vitest"
import { standardMethods } from "@trigate/domain/unstable/evm/EvmMethods"
import { contracts, keys, transactions } from "@trigate/sandbox/SandboxExamples"
import { firstBlock as firstLayer2Block } from "@trigate/sandbox/unstable/evm/Layer2Chain"
import { baseFee, firstBlock } from "@trigate/sandbox/unstable/evm/VenueEvm"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import type { Hex, TransactionSerializableEIP1559 } from "viem"
import { keccak256, parseEther, serializeTransaction, toHex, zeroHash } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { call, clients, refusal, test, trader } from "./evmClients.ts"
import { start } from "./venue.ts"

/** A transfer of the trader's that is good on the venue. */
const transfer: TransactionSerializableEIP1559 & { readonly type: "eip1559" } = {
  type: "eip1559",
  chainId: 999,
  nonce: 0,
  to: keys.stranger.address,
  value: parseEther("1"),
  gas: 21_000n,
  maxFeePerGas: 10_000_000_000n,
  maxPriorityFeePerGas: 0n
}

const sign = (fields: Partial<Omit<TransactionSerializableEIP1559, "type">>) =>
  call(() => trader.signTransaction({ ...transfer, ...fields }))

describe("blocks", () => {
  it.effect("come with the clock, are linked, and are found by number and by hash", () =>
    test(Effect.gen(function*() {
      const { evm, layer2 } = yield* clients
      assert.deepStrictEqual(
        yield* call(() => Promise.all([evm.getChainId(), evm.getBlockNumber(), layer2.getChainId()])),
        [999, BigInt(firstBlock), 31337]
      )
      yield* TestClock.adjust("4 seconds")
      for (const [client, number] of [[evm, firstBlock + 4], [layer2, firstLayer2Block + 2]] as const) {
        const newest = yield* call(() => client.getBlock())
        assert.deepStrictEqual([newest.number, newest.timestamp], [BigInt(number), BigInt(start / 1_000 + 4)])
        const parent = yield* call(() => client.getBlock({ blockHash: newest.parentHash }))
        assert.deepStrictEqual([parent.number, parent.hash], [BigInt(number - 1), newest.parentHash])
        yield* refusal(() => client.getBlock({ blockNumber: BigInt(number + 1) }))
      }
    })))

  it.effect("hold the transactions that receipts tell of, and their logs are found", () =>
    test(Effect.gen(function*() {
      const { layer2 } = yield* clients
      const hash = transactions.linea
      const receipt = yield* call(() => layer2.getTransactionReceipt({ hash }))
      const transaction = yield* call(() => layer2.getTransaction({ hash }))
      assert.deepStrictEqual(
        [transaction.blockHash, transaction.gasPrice, transaction.from],
        [receipt.blockHash, receipt.effectiveGasPrice, receipt.from]
      )
      const block = yield* call(() => layer2.getBlock({ blockHash: receipt.blockHash }))
      assert.deepStrictEqual(block.transactions, [hash])
      const [log] = receipt.logs
      const { blockHash } = receipt
      assert.deepStrictEqual(yield* call(() => layer2.getLogs({ blockHash })), [...receipt.logs])
      assert.deepStrictEqual(
        yield* call(() =>
          layer2.getLogs({
            fromBlock: receipt.blockNumber - 1n,
            toBlock: receipt.blockNumber,
            ...(log === undefined ? {} : { address: log.address })
          })
        ),
        [...receipt.logs]
      )
      assert.deepStrictEqual(yield* call(() => layer2.getLogs({ blockHash, address: contracts.none })), [])
    })))

  it.effect.prop(
    "change the base fee as EIP-1559 allows, and slowly enough for what wallets offer",
    [
      Schema.String,
      Schema.Literals(["small", "big"]),
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1e8 }))
    ],
    ([seed, kind, first]) =>
      Effect.sync(() => {
        const every = kind === "small" ? 1_000 : 60_000
        const feeAfter = (blocks: number) => Number(baseFee(seed, { fees: {} }, kind, (first + blocks) * every))
        const change = feeAfter(1) / feeAfter(0)
        assert.isTrue(change > 0.875 && change < 1.125, `${change} in a block`)
        for (let blocks = 1; blocks <= 20; blocks++) {
          assert.isBelow(feeAfter(blocks) / feeAfter(0), 1.2, `after ${blocks} blocks`)
        }
      })
  )
})

describe("a transaction", () => {
  it.effect("moves value with the next block, and its sender pays for its gas", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* clients
      const serializedTransaction = yield* sign({})
      const { address } = trader
      const counts = () =>
        call(() =>
          Promise.all([
            evm.getTransactionCount({ address }),
            evm.getTransactionCount({ address, blockTag: "pending" })
          ])
        )
      const hash = yield* call(() => evm.sendRawTransaction({ serializedTransaction }))
      assert.strictEqual(hash, keccak256(serializedTransaction))
      assert.deepStrictEqual(yield* counts(), [0, 1])
      yield* refusal(() => evm.getTransactionReceipt({ hash }))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* counts(), [1, 1])
      const receipt = yield* call(() => evm.getTransactionReceipt({ hash }))
      const { baseFeePerGas } = yield* call(() => evm.getBlock({ blockHash: receipt.blockHash }))
      assert.deepStrictEqual(
        [receipt.status, receipt.blockNumber, receipt.gasUsed, receipt.effectiveGasPrice],
        ["success", BigInt(firstBlock + 1), 21_000n, baseFeePerGas]
      )
      const [mine, theirs] = yield* call(() =>
        Promise.all([evm.getBalance({ address }), evm.getBalance({ address: keys.stranger.address })])
      )
      assert.deepStrictEqual(
        [mine, theirs],
        [parseEther("9999") - 21_000n * receipt.effectiveGasPrice, parseEther("1")]
      )
      const told = yield* call(() => evm.getTransaction({ hash }))
      const { r, s, yParity } = told
      assert.isDefined(yParity)
      assert.strictEqual(
        serializeTransaction(transfer, { r, s, yParity: yParity ?? assert.fail() }),
        serializedTransaction
      )
    })))

  it.effect("of the old type is told as it was signed", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* clients
      const legacy = {
        type: "legacy",
        chainId: 999,
        nonce: 0,
        to: contracts.none,
        gas: 21_000n,
        gasPrice: 10n ** 10n
      } as const
      const serializedTransaction = yield* call(() => trader.signTransaction(legacy))
      const inCapitals: Hex = `0x${serializedTransaction.slice(2).toUpperCase()}`
      const hash = yield* call(() => evm.sendRawTransaction({ serializedTransaction: inCapitals }))
      yield* TestClock.adjust("1 second")
      const { r, s, v } = yield* call(() => evm.getTransaction({ hash }))
      assert.strictEqual(serializeTransaction(legacy, { r, s, v }), serializedTransaction)
    })))

  it.effect("is refused in a node's words", () =>
    test(Effect.gen(function*() {
      const { evm, layer2 } = yield* clients
      const good = yield* sign({})
      const said = (serializedTransaction: Hex, client = evm) =>
        refusal(() => client.sendRawTransaction({ serializedTransaction }))
      yield* call(() => evm.sendRawTransaction({ serializedTransaction: good }))
      assert.include(yield* said(good), "already known")
      assert.include(yield* said(yield* sign({ value: parseEther("2") })), "replacement transaction underpriced")
      assert.include(yield* said(yield* sign({ nonce: 65 })), "nonce too high: next nonce 1, tx nonce 65")
      const next = { nonce: 1 }
      assert.include(yield* said(yield* sign({ ...next, value: parseEther("20000") })), "insufficient funds for gas")
      assert.include(
        yield* said(yield* sign({ ...next, gas: 20_999n })),
        "intrinsic gas too low: have 20999, want 21000"
      )
      assert.include(
        yield* said(yield* sign({ ...next, maxFeePerGas: 1n })),
        "max fee per gas less than block base fee"
      )
      assert.include(yield* said(yield* sign({ ...next, gas: 30_000_001n })), "exceeds block gas limit")
      assert.include(yield* said(good, layer2), "invalid chain id for signer: have 999 want 31337")
      assert.include(yield* said("0x02c0"), "the transaction cannot be read")
      const beyond: Hex = `0x${"f".repeat(64)}`
      assert.include(
        yield* said(serializeTransaction(transfer, { r: beyond, s: beyond, yParity: 0 })),
        "invalid sender"
      )
      assert.include(yield* said("0x7f01"), "transaction type not supported")
      yield* TestClock.adjust("1 second")
      assert.include(yield* said(yield* sign({ value: 1n })), "nonce too low: next nonce 1, tx nonce 0")
    })))

  it.effect("stands behind those of its block that came before it", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* clients
      const cosigner = privateKeyToAccount(keys.cosigner.privateKey)
      const later = yield* call(() => cosigner.signTransaction({ ...transfer, data: "0x01", gas: 30_000n }))
      const hashes = yield* Effect.forEach(
        [yield* sign({}), later],
        (serializedTransaction) => call(() => evm.sendRawTransaction({ serializedTransaction }))
      )
      yield* TestClock.adjust("1 second")
      const receipts = yield* Effect.forEach(hashes, (hash) => call(() => evm.getTransactionReceipt({ hash })))
      assert.deepStrictEqual(
        receipts.map(({ cumulativeGasUsed, transactionIndex }) => [transactionIndex, cumulativeGasUsed]),
        [[0, 21_000n], [1, 42_016n]]
      )
      const block = yield* call(() => evm.getBlock({ includeTransactions: true }))
      assert.deepStrictEqual(
        block.transactions.map(({ hash, transactionIndex }) => [hash, transactionIndex]),
        hashes.map((hash, index) => [hash, index])
      )
      assert.strictEqual(block.gasUsed, 42_016n)
    })))

  it.effect("of which only one fits a nonce is taken once, however many come together", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* clients
      const both = yield* Effect.all([sign({}), sign({ value: 1n })])
      const outcomes = yield* Effect.forEach(
        both,
        (serializedTransaction) =>
          call(() => evm.sendRawTransaction({ serializedTransaction }).then(() => "taken", () => "refused")),
        {
          concurrency: "unbounded"
        }
      )
      assert.deepStrictEqual(outcomes.toSorted(), ["refused", "taken"])
    })))
})

describe("the standard methods", () => {
  it.effect("are known, but for those that docs/sandbox.md leaves out", () =>
    test(Effect.gen(function*() {
      const { evm, layer2 } = yield* clients
      for (const client of [evm, layer2]) {
        const unknown = yield* Effect.filter(
          Object.keys(standardMethods),
          (method) =>
            call(() =>
              client.transport.request({ method, params: [] }).then(
                () => false,
                (error: unknown) => String(error).includes("does not exist")
              )
            )
        )
        assert.deepStrictEqual(unknown, [
          "eth_protocolVersion",
          "eth_blobBaseFee",
          "eth_getProof",
          "eth_simulateV1"
        ])
      }
    })))
})

describe("transactions of one sender", () => {
  const value = (nonce: number) => BigInt(nonce + 1)

  it.effect("may come in any order, and fill one block in that of their nonces", () =>
    test(Effect.gen(function*() {
      const { layer2 } = yield* clients
      const { address } = trader
      const before = yield* call(() => layer2.getBalance({ address }))
      const send = (nonce: number) =>
        Effect.flatMap(
          sign({ chainId: 31337, nonce, value: value(nonce) }),
          (serializedTransaction) => call(() => layer2.sendRawTransaction({ serializedTransaction }))
        )
      const late = yield* Effect.forEach([3, 2, 1], send)
      const pending = () => call(() => layer2.getTransactionCount({ address, blockTag: "pending" }))
      assert.strictEqual(yield* pending(), 0)
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(
        yield* Effect.forEach(
          late,
          (hash) => call(() => layer2.getTransaction({ hash }).then((told) => JSON.stringify(told.blockHash)))
        ),
        ["null", "null", "null"]
      )
      const first = yield* send(0)
      assert.strictEqual(yield* pending(), 4)
      yield* TestClock.adjust("2 seconds")
      const inOrder = [first, ...late.toReversed()]
      const block = yield* call(() => layer2.getBlock())
      assert.deepStrictEqual([block.transactions, block.gasUsed], [inOrder, 84_000n])
      const receipts = yield* Effect.forEach(inOrder, (hash) => call(() => layer2.getTransactionReceipt({ hash })))
      assert.deepStrictEqual(
        receipts.map(({ cumulativeGasUsed, transactionIndex }) => [transactionIndex, cumulativeGasUsed]),
        [[0, 21_000n], [1, 42_000n], [2, 63_000n], [3, 84_000n]]
      )
      assert.strictEqual(
        yield* call(() => layer2.getTransaction({ blockHash: block.hash, index: 2 }).then(({ hash }) => hash)),
        late[1]
      )
      // an OP-stack chain charges for the bytes as well
      const fees = yield* Effect.forEach(inOrder, (hash) =>
        call(() =>
          layer2.request<{ ReturnType: { readonly l1Fee: Hex } }>({
            method: "eth_getTransactionReceipt",
            params: [hash]
          })
        ))
      const spent = receipts.reduce((sum, { effectiveGasPrice, gasUsed }) =>
        sum + gasUsed * effectiveGasPrice, 10n)
      assert.strictEqual(
        before - (yield* call(() =>
          layer2.getBalance({ address })
        )),
        fees.reduce((sum, { l1Fee }) => sum + BigInt(l1Fee), spent)
      )
    })))

  it.effect("are replaced by one that offers a tenth more, as long as they are in no block", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* clients
      const send = (fields: Partial<TransactionSerializableEIP1559>) =>
        Effect.flatMap(
          sign(fields),
          (serializedTransaction) => call(() => evm.sendRawTransaction({ serializedTransaction }))
        )
      const replaced = yield* send({})
      const next = yield* send({ nonce: 1 })
      const waiting = yield* send({ nonce: 5 })
      const by = { maxFeePerGas: 11_000_000_000n }
      const winner = yield* send({ ...by, value: 7n })
      yield* send({ ...by, nonce: 5, value: 7n })
      for (const hash of [replaced, waiting]) yield* refusal(() => evm.getTransaction({ hash }))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual((yield* call(() => evm.getBlock())).transactions, [winner, next])
      assert.strictEqual(
        yield* call(() => evm.getBalance({ address: keys.stranger.address })),
        parseEther("1") + 7n
      )
    })))
})

describe("state", () => {
  it.effect("is told of a block by number and by hash, and of none that is not there", () =>
    test(Effect.gen(function*() {
      const { evm, layer2 } = yield* clients
      const { address } = trader
      const balance = parseEther("10000")
      const { hash, number } = yield* call(() => layer2.getBlock())
      const at = (block: object | string) =>
        layer2.request<{ ReturnType: Hex }>({ method: "eth_getBalance", params: [address, block] })
      for (const block of [{ blockHash: hash }, { blockNumber: toHex(number) }, toHex(number), "earliest"]) {
        assert.strictEqual(yield* call(() => at(block)), toHex(balance))
      }
      for (const block of [{ blockHash: transactions.unknown }, toHex(number + 1n)]) {
        assert.include(yield* refusal(() => at(block)), "header not found")
      }
      assert.include(
        yield* refusal(() => layer2.getFeeHistory({ blockCount: 1, blockNumber: number + 1n, rewardPercentiles: [] })),
        "request beyond head block"
      )
      assert.strictEqual((yield* call(() => layer2.getBlock({ blockTag: "earliest" }))).parentHash, zeroHash)
      assert.include(
        yield* refusal(() => evm.estimateGas({ account: address, to: contracts.none, value: balance + 1n })),
        "insufficient funds for transfer"
      )
      assert.deepStrictEqual(
        yield* call(() => evm.createAccessList({ account: address, to: contracts.none, value: 1n })),
        { accessList: [], gasUsed: 21_000n }
      )
    })))

  it.effect("prices agree: of gas, of the next block, of the history", () =>
    test(Effect.gen(function*() {
      const { evm, layer2 } = yield* clients
      const price = yield* call(() => evm.getGasPrice())
      const history = yield* call(() => evm.getFeeHistory({ blockCount: 2, rewardPercentiles: [50] }))
      assert.strictEqual(history.baseFeePerGas.length, 3)
      assert.strictEqual(history.baseFeePerGas[2], price)
      assert.deepStrictEqual(history.reward, [[0n], [0n]])
      const block = yield* call(() => evm.getBlock())
      assert.strictEqual(history.baseFeePerGas[1], block.baseFeePerGas)
      assert.strictEqual(yield* call(() => layer2.getGasPrice()), 1_200_000n)
      const most = yield* call(() =>
        evm.getFeeHistory({ blockCount: 5_000, rewardPercentiles: Array.from({ length: 100 }, () => 50) })
      )
      assert.deepStrictEqual([most.baseFeePerGas.length, most.reward?.length], [1_025, 1_024])
      // blocks times percentiles is what a few bytes could ask for
      assert.include(
        yield* refusal(() =>
          evm.getFeeHistory({ blockCount: 1, rewardPercentiles: Array.from({ length: 101 }, () => 50) })
        ),
        "invalid params"
      )
      assert.strictEqual(
        yield* call(() => evm.estimateGas({ account: trader, to: contracts.none, data: "0x0001" })),
        21_020n
      )
    })))
})
