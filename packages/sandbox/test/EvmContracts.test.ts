/** Contracts on the sandbox's two EVM chains: those that it starts with, and one that a test deploys. */
import { assert, describe, it } from "@effect/vitest"
import { contracts, keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/testing/TestClock"
import type { Address, Hex } from "viem"
import {
  BaseError,
  ContractFunctionRevertedError,
  createWalletClient,
  custom,
  encodeAbiParameters,
  encodeFunctionData,
  erc20Abi,
  getContractAddress,
  keccak256,
  multicall3Abi,
  numberToHex,
  padHex,
  parseAbi,
  parseEther,
  parseEventLogs
} from "viem"
import { call, clients, refusal, test, trader } from "./evmClients.ts"
import { counterCode } from "./fixtures/counter.ts"

const counterAbi = parseAbi([
  "constructor(uint256 start)",
  "function count() view returns (uint256)",
  "function add(uint256 step) returns (uint256)",
  "event Counted(address indexed by, uint256 count)",
  "error TooLarge(uint256 step, uint256 most)"
])

/** Both chains, each with a client that reads, one that signs for the trader, and the time that a block takes. */
const chains = Effect.map(
  clients,
  ({ evm, layer2 }) =>
    ([{ client: evm, blockTime: "1 second" }, { client: layer2, blockTime: "2 seconds" }] as const).map(
      ({ blockTime, client }) => ({
        client,
        blockTime,
        wallet: createWalletClient({ account: trader, transport: custom(client.transport, { retryCount: 0 }) })
      })
    )
)

type Chain = Effect.Success<typeof chains>[number]

/** The receipt of a transaction once its block is there. */
const mined = ({ blockTime, client }: Chain, send: () => Promise<Hex>) =>
  Effect.gen(function*() {
    const hash = yield* call(send)
    yield* TestClock.adjust(blockTime)
    return yield* call(() => client.getTransactionReceipt({ hash }))
  })

const deploy = (chain: Chain, start: bigint) =>
  mined(
    chain,
    () => chain.wallet.deployContract({ chain: null, abi: counterAbi, bytecode: counterCode, args: [start] })
  )

describe("a contract that is deployed", () => {
  it.effect("has code and storage, is called, and logs its events", () =>
    test(Effect.gen(function*() {
      for (const [position, chain] of (yield* chains).entries()) {
        const earlier = ["refused", 7n][position]
        const { client, wallet } = chain
        const created = yield* deploy(chain, 7n)
        const address = getContractAddress({ from: trader.address, nonce: 0n })
        assert.deepStrictEqual(
          [created.status, created.to, created.contractAddress],
          ["success", null, address.toLowerCase()]
        )
        const counter = { address, abi: counterAbi } as const
        const count = () => call(() => client.readContract({ ...counter, functionName: "count" }))
        const word = () => call(() => client.getStorageAt({ address, slot: "0x0" }))
        assert.deepStrictEqual([yield* count(), yield* word()], [7n, padHex("0x7")])
        assert.strictEqual(((yield* call(() => client.getCode({ address }))) ?? "").length, 2 + 2 * 288)

        // a call changes nothing
        assert.strictEqual(
          (yield* call(() => client.simulateContract({ ...counter, functionName: "add", args: [3n] }))).result,
          10n
        )
        assert.strictEqual(yield* count(), 7n)
        const receipt = yield* mined(
          chain,
          () => wallet.writeContract({ ...counter, chain: null, functionName: "add", args: [3n] })
        )
        assert.deepStrictEqual([yield* count(), yield* word()], [10n, padHex("0xa")])
        const [event] = parseEventLogs({ abi: counterAbi, logs: receipt.logs })
        assert.deepStrictEqual([receipt.status, event?.args], ["success", { by: trader.address, count: 10n }])
        const { blockNumber } = receipt
        assert.deepStrictEqual(
          yield* call(() =>
            client.getContractEvents({ ...counter, eventName: "Counted", fromBlock: 0n, toBlock: blockNumber })
          ),
          parseEventLogs({ abi: counterAbi, logs: receipt.logs })
        )
        // only the layer 2 answers from the state of an earlier block
        assert.deepStrictEqual(
          yield* call(() =>
            client.readContract({ ...counter, functionName: "count", blockNumber: blockNumber - 1n })
              .catch(() => "refused")
          ),
          earlier
        )
      }
    })))

  it.effect("reverts with its error, in a call, an estimate and a transaction", () =>
    test(Effect.gen(function*() {
      for (const chain of yield* chains) {
        const { client, wallet } = chain
        yield* deploy(chain, 0n)
        const address = getContractAddress({ from: trader.address, nonce: 0n })
        const tooMuch = { address, abi: counterAbi, functionName: "add", args: [101n] } as const
        const error = yield* call(() =>
          client.simulateContract(tooMuch).then(() => assert.fail("It did not revert"), (cause: unknown) => cause)
        )
        assert.instanceOf(error, BaseError)
        const reverted = error.walk((cause) => cause instanceof ContractFunctionRevertedError)
        assert.instanceOf(reverted, ContractFunctionRevertedError)
        assert.deepStrictEqual([reverted.data?.errorName, reverted.data?.args], ["TooLarge", [101n, 100n]])
        assert.include(
          yield* refusal(() => client.estimateContractGas(tooMuch)),
          "TooLarge(uint256 step, uint256 most)"
        )
        const receipt = yield* mined(chain, () => wallet.writeContract({ ...tooMuch, chain: null, gas: 100_000n }))
        assert.deepStrictEqual([receipt.status, receipt.logs], ["reverted", []])
        assert.strictEqual(yield* call(() => client.getTransactionCount({ address: trader.address })), 2)
      }
    })))

  it.effect("is created by the block that is run again for a replacement", () =>
    test(Effect.gen(function*() {
      const { client, wallet } = (yield* chains)[0] ?? assert.fail()
      const create = (start: bigint, maxFeePerGas: bigint) =>
        call(() =>
          wallet.deployContract({
            chain: null,
            abi: counterAbi,
            bytecode: counterCode,
            args: [start],
            nonce: 0,
            gas: 200_000n,
            maxFeePerGas,
            maxPriorityFeePerGas: 0n
          })
        )
      const address = getContractAddress({ from: trader.address, nonce: 0n })
      const replaced = yield* create(1n, 10n ** 10n)
      yield* call(() =>
        wallet.writeContract({
          chain: null,
          address,
          abi: counterAbi,
          functionName: "add",
          args: [5n],
          nonce: 1,
          gas: 100_000n
        })
      )
      yield* create(20n, 11n * 10n ** 9n)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(
        yield* call(() => client.readContract({ address, abi: counterAbi, functionName: "count" })),
        25n
      )
      assert.include(yield* refusal(() => client.getTransaction({ hash: replaced })), "could not be found")
    })))
})

describe("a call", () => {
  it.effect("runs on a state with overrides", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* clients
      const address: Address = "0x00000000000000000000000000000000000000aa"
      const runtime: Hex = `0x${counterCode.slice(-2 * 288)}`
      const stateOverride = [{
        address,
        code: runtime,
        stateDiff: [{ slot: padHex("0x0"), value: padHex("0x2a") }]
      }]
      assert.strictEqual(
        yield* call(() => evm.readContract({ address, abi: counterAbi, functionName: "count", stateOverride })),
        42n
      )
      assert.isUndefined(yield* call(() => evm.getCode({ address })))
    })))

  it.effect("that never ends runs out of gas", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* clients
      const address: Address = "0x00000000000000000000000000000000000000aa"
      // JUMPDEST PUSH0 JUMP
      const stateOverride = [{ address, code: "0x5b5f56" }] as const
      assert.include(
        yield* refusal(() => evm.call({ to: address, gas: 100_000n, stateOverride: [...stateOverride] })),
        "out of gas"
      )
    })))

  it.effect("sees the block that it runs in", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* clients
      yield* TestClock.adjust("5 seconds")
      const block = yield* call(() => evm.getBlock())
      const multicall = { address: contracts.multicall, abi: multicall3Abi } as const
      assert.strictEqual(
        yield* call(() => evm.readContract({ ...multicall, functionName: "getCurrentBlockTimestamp" })),
        block.timestamp
      )
      const getBlockHash = parseAbi(["function getBlockHash(uint256) view returns (bytes32)"])
      assert.strictEqual(
        yield* call(() =>
          evm.readContract({
            address: contracts.multicall,
            abi: getBlockHash,
            functionName: "getBlockHash",
            args: [block.number - 1n]
          })
        ),
        block.parentHash
      )
    })))
})

describe("Multicall3", () => {
  it.effect("is the one of public chains, on both chains", () =>
    test(Effect.gen(function*() {
      const { evm, layer2 } = yield* clients
      for (const client of [evm, layer2]) {
        const code = yield* call(() => client.getCode({ address: contracts.multicall }))
        assert.strictEqual(
          keccak256(code ?? "0x"),
          "0xd5c15df687b16f2ff992fc8d767b4216323184a2bbc6ee2f9c398c318e770891"
        )
        assert.strictEqual(
          yield* call(() =>
            client.readContract({
              address: contracts.multicall,
              abi: multicall3Abi,
              functionName: "getEthBalance",
              args: [trader.address]
            })
          ),
          parseEther("10000")
        )
      }
    })))

  it.effect("makes several calls at once, of which one may fail", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* clients
      const of = { address: contracts.wrapped, abi: erc20Abi } as const
      assert.deepStrictEqual(
        yield* call(() =>
          evm.multicall({
            multicallAddress: contracts.multicall,
            contracts: [
              { ...of, functionName: "symbol" },
              { ...of, functionName: "decimals" },
              { ...of, functionName: "totalSupply" },
              { ...of, functionName: "balanceOf", args: [keys.stranger.address] }
            ]
          }).then((results) => results.map(({ result }) => result))
        ),
        ["WHYPE", 18, 0n, 0n]
      )
      const [failed] = yield* call(() =>
        evm.multicall({
          multicallAddress: contracts.multicall,
          contracts: [{ ...of, functionName: "transfer", args: [keys.agent.address, 1n] }]
        })
      )
      assert.include(String(failed?.error), "insufficient balance")
    })))
})

describe("the wrapped token", () => {
  it.effect("wraps, transfers and unwraps the native coin", () =>
    test(Effect.gen(function*() {
      const chain = (yield* chains)[0] ?? assert.fail()
      const { client, wallet } = chain
      const token = { address: contracts.wrapped, abi: erc20Abi } as const
      const balances = (...accounts: ReadonlyArray<Address>) =>
        call(() =>
          Promise.all(
            accounts.map((account) => client.readContract({ ...token, functionName: "balanceOf", args: [account] }))
          )
        )
      const wrapped = yield* mined(
        chain,
        () => wallet.sendTransaction({ chain: null, to: contracts.wrapped, value: 100n })
      )
      assert.strictEqual(wrapped.logs.length, 1)
      const { stranger } = keys
      const moved = yield* mined(
        chain,
        () => wallet.writeContract({ ...token, chain: null, functionName: "transfer", args: [stranger.address, 40n] })
      )
      const [transfer] = parseEventLogs({ abi: erc20Abi, eventName: "Transfer", logs: moved.logs })
      assert.strictEqual(transfer?.args.value, 40n)
      assert.deepStrictEqual(yield* balances(trader.address, stranger.address), [60n, 40n])
      yield* mined(chain, () =>
        wallet.sendTransaction({
          chain: null,
          to: contracts.wrapped,
          data: encodeFunctionData({ abi: parseAbi(["function withdraw(uint256)"]), args: [60n] })
        }))
      assert.deepStrictEqual(yield* balances(trader.address, stranger.address), [0n, 40n])
      assert.strictEqual(yield* call(() => client.readContract({ ...token, functionName: "totalSupply" })), 40n)
      assert.strictEqual(yield* call(() => client.getBalance({ address: contracts.wrapped })), 40n)
      assert.include(
        yield* refusal(() =>
          client.simulateContract({
            ...token,
            account: stranger.address,
            functionName: "transfer",
            args: [trader.address, 41n]
          })
        ),
        "insufficient balance"
      )
    })))

  it.effect("keeps its words where storage reads find them", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* clients
      const state = yield* SandboxState
      const of = { address: contracts.wrapped, abi: erc20Abi } as const
      assert.deepStrictEqual(
        yield* call(() =>
          Promise.all([
            evm.readContract({ ...of, functionName: "name" }),
            evm.readContract({ ...of, functionName: "symbol" }),
            evm.readContract({ ...of, functionName: "decimals" })
          ])
        ),
        ["Wrapped HYPE", "WHYPE", 18]
      )
      yield* state.evm.putStorageWord(contracts.wrapped, "0x2", padHex("0x6"))
      assert.strictEqual(yield* call(() => evm.readContract({ ...of, functionName: "decimals" })), 6)
      const balance = keccak256(
        encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [trader.address, 3n])
      )
      yield* state.evm.putStorageWord(contracts.wrapped, balance, padHex(numberToHex(9n)))
      assert.strictEqual(
        yield* call(() => evm.readContract({ ...of, functionName: "balanceOf", args: [trader.address] })),
        9n
      )
    })))

  it.effect("and every linked spot token tell their metadata", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* clients
      const { tokens } = (yield* Ref.get((yield* SandboxState).info.state)).spotMeta
      const purr = tokens.find(({ name }) => name === "PURR")?.evmContract ?? assert.fail()
      const of = { address: purr.address, abi: erc20Abi } as const
      assert.deepStrictEqual(
        yield* call(() =>
          Promise.all([
            evm.readContract({ ...of, functionName: "symbol" }),
            evm.readContract({ ...of, functionName: "decimals" })
          ])
        ),
        ["PURR", 18]
      )
    })))
})
