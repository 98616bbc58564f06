/**
 * HyperEVM reads the venue by precompiles, sends it actions and HYPE, and has the gas limits of small and big blocks.
 */
import { assert, describe, it } from "@effect/vitest"
import { contracts, keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import { evmBlock } from "@trigate/sandbox/unstable/evm/EvmChain"
import * as VenueEvm from "@trigate/sandbox/unstable/evm/VenueEvm"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/testing/TestClock"
import {
  concat,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  pad,
  parseAbi,
  parseAbiParameters,
  parseEther,
  parseGwei,
  toHex
} from "viem"
import { call, clients, refusal, test, trader } from "./evmClients.ts"
import { act, askAt, listOf } from "./trader.ts"

const { coreWriter } = contracts
const oracle = "0x0000000000000000000000000000000000000807"
/** A precompile that the sandbox does not have. */
const vaultEquity = "0x0000000000000000000000000000000000000802"
const signed = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const
const section = "see docs/sandbox.md#what-the-evm-chains-do"

/** Calls an address without value, and ignores what it returns. */
const calling = (kind: "CALL" | "STATICCALL", to: string): Hex =>
  kind === "CALL" ? `0x5f5f5f5f5f73${to.slice(2)}5af15000` : `0x60205f60205f73${to.slice(2)}5afa5000`

/** The call of CoreWriter with an action of a number and its arguments. */
const raw = (kind: number, types: string, ...args: ReadonlyArray<unknown>): Hex =>
  encodeFunctionData({
    abi: parseAbi(["function sendRawAction(bytes data)"]),
    args: [concat(["0x01", toHex(kind, { size: 3 }), encodeAbiParameters(parseAbiParameters(types), args)])]
  })

/** Counts down from 150000, which takes 3.9 million gas. */
const counting: Hex = "0x620249f05b60019003806004570000"

const fees = { maxFeePerGas: parseGwei("10"), maxPriorityFeePerGas: 0n, chainId: 999, type: "eip1559" } as const

const sign = (to: Hex | null, data: Hex, gas = 1_000_000n, terms: { value?: bigint; nonce?: number } = {}) =>
  call(() => trader.signTransaction({ ...fees, to, data, gas, nonce: 0, ...terms }))

describe("the links of the EVM to the venue", () => {
  it.effect("that read it agree with its queries", () =>
    test(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const { evm } = yield* clients
      const user = keys.trader.address
      const [eth, hypeSpot] = [1n, 107n]
      yield* trading.playPrices("ETH", [{ time: 0, price: 2_000 }])
      yield* trading.setPosition(user, "ETH", "-1.5", "2010")
      const read = (last: string, types: string, ...args: ReadonlyArray<unknown>) =>
        Effect.map(
          call(() =>
            evm.call({
              to: `0x${"0".repeat(36)}08${last}`,
              data: encodeAbiParameters(parseAbiParameters(types), args)
            })
          ),
          ({ data = "0x" }) =>
            (data.slice(2).match(/.{64}/gu) ?? []).map((word) => BigInt.asIntN(256, BigInt(`0x${word}`)))
        )
      const [px, oraclePx] = [yield* read("06", "uint32", eth), yield* read("07", "uint32", eth)]
      assert.deepStrictEqual([px, oraclePx], [[200_000n], [200_000n]])
      assert.deepStrictEqual(yield* read("00", "address, uint16", user, eth), [-15_000n, 3_015_000_000n, 0n, 20n, 0n])
      assert.deepStrictEqual(yield* read("13", "address, uint32", user, eth), [-15_000n, 3_015_000_000n, 0n, 20n, 0n])
      const validator = keys.validator.address
      yield* act(user, "tokenDelegate", { ...signed, validator, wei: 150_000_000, isUndelegate: false, nonce: 1 })
      yield* act(user, "cWithdraw", { ...signed, wei: 50_000_000, nonce: 2 })
      assert.deepStrictEqual(yield* read("05", "address", user), [150_000_000n, 99_800_000_000n, 50_000_000n, 1n])
      assert.deepStrictEqual(yield* read("01", "address, uint64", user, 150n), [10_000_000_000n, 0n, 0n])
      const state = yield* askAt({ type: "clearinghouseState", user })
      const micro = (member: unknown) => BigInt(Math.round(Number(member) * 1e6))
      assert.deepStrictEqual(yield* read("03", "address", user), [micro(JsonParts.at(state, "withdrawable"))])
      const sums = ["accountValue", "totalMarginUsed", "totalNtlPos", "totalRawUsd"]
      assert.deepStrictEqual(
        yield* read("0f", "uint32, address", 0n, user),
        sums.map((member) => micro(JsonParts.at(state, "marginSummary", member)))
      )
      const levels = yield* askAt({ type: "l2Book", coin: "ETH" }, "levels")
      assert.deepStrictEqual(
        yield* read("0e", "uint32", eth),
        [0, 1].map((side) => BigInt(Math.round(Number(JsonParts.at(levels, side, 0, "px")) * 100)))
      )
      const hypePx = yield* askAt({ type: "activeAssetData", user, coin: "@107" }, "markPx")
      assert.deepStrictEqual(yield* read("08", "uint32", hypeSpot), [BigInt(Math.round(Number(hypePx) * 1e6))])
      assert.deepStrictEqual(
        [yield* read("10", "address", user), yield* read("10", "address", contracts.none)],
        [[1n], [0n]]
      )
      const unknown = `0x${"f".repeat(64)}` as const
      assert.include(yield* refusal(() => evm.call({ to: oracle, data: unknown })), "precompile failed")
    })))

  it.effect("that read it do so inside a contract, for the gas that the venue documents", () =>
    test(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const { evm, layer2 } = yield* clients
      yield* trading.playPrices("ETH", [{ time: 0, price: 2_000 }])
      // passes its input to the precompile with 100000 gas, and returns whether that succeeded, the gas, and the word
      const code: Hex = `0x365f5f375a60206040365f73${oracle.slice(2)}620186a0fa5a91905f520360205260605ff3`
      const to = keys.stranger.address
      const read = (id: bigint) =>
        Effect.map(
          call(() => evm.call({ to, data: toHex(id, { size: 32 }), stateOverride: [{ address: to, code }] })),
          ({ data = "0x" }) => (data.slice(2).match(/.{64}/gu) ?? []).map((word) => BigInt(`0x${word}`))
        )
      const [success, gas = 0n, px] = yield* read(1n)
      assert.deepStrictEqual([success, px], [1n, 200_000n])
      // an unknown asset uses all the gas that the call passes on, and a known one 2000 and 65 for each byte
      assert.deepStrictEqual(yield* read(9_999n), [0n, gas - 2_000n - 65n * 64n + 100_000n, 0n])

      // stores the price of asset 1 in its first slot
      const storing: Hex = `0x60015f526020602060205f73${oracle.slice(2)}5afa506020515f5500`
      const serializedTransaction = yield* sign(null, storing)
      const hash = yield* call(() => evm.sendRawTransaction({ serializedTransaction }))
      yield* TestClock.adjust("1 second")
      const { contractAddress, status } = yield* call(() => evm.getTransactionReceipt({ hash }))
      const address = contractAddress ?? assert.fail()
      assert.deepStrictEqual(
        [status, yield* call(() => evm.getStorageAt({ address, slot: "0x0" }))],
        ["success", toHex(200_000n, { size: 32 })]
      )

      // an archive also runs calls in earlier blocks, of which the venue's state is not stored
      const { evm: { state }, seed, venue } = yield* SandboxState
      const chain = VenueEvm.at({
        seed,
        profile: mainnet,
        evm: yield* Ref.get(state),
        venue: yield* Ref.get(venue.state),
        now: yield* Clock.currentTimeMillis,
        trading: () => assert.fail()
      })
      assert.deepStrictEqual(
        [chain.heads.latest, chain.heads.latest - 1].map((block) => evmBlock(chain, block).refuseMessage(oracle)),
        [undefined, `the sandbox does not support the read precompile ${oracle} in an earlier block: ${section}`]
      )
      const data = toHex(0n, { size: 32 })
      for (const last of ["02", "0a", "ff"]) {
        const unplayed = `0x${"0".repeat(37)}8${last}` as const
        assert.include(yield* refusal(() => evm.call({ to: unplayed, data })), `the read precompile ${unplayed}`)
      }
      assert.deepStrictEqual(yield* call(() => evm.call({ to: `0x${"0".repeat(37)}900`, data })), { data: undefined })
      assert.deepStrictEqual(yield* call(() => layer2.call({ to: oracle, data })), { data: undefined })
    })))

  it.effect("that write to it reach it after the block: orders, cancels and transfers", () =>
    test(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const { evm } = yield* clients
      const user = keys.trader.address
      yield* trading.playPrices("ETH", [{ time: 0, price: 2_000 }])
      let nonce = 0
      const send = Effect.fnUntraced(function*(to: Hex | null, data: Hex) {
        const serializedTransaction = yield* sign(to, data, 200_000n, { nonce: nonce++ })
        return yield* call(() => evm.sendRawTransaction({ serializedTransaction }))
      })
      const write = (kind: number, types: string, ...args: ReadonlyArray<unknown>) =>
        send(coreWriter, raw(kind, types, ...args))
      const orders = askAt({ type: "openOrders", user })
      const limit = "uint32, bool, uint64, uint64, bool, uint8, uint128"
      const hash = yield* write(1, limit, 1, true, 1_900n * 10n ** 8n, 5n * 10n ** 7n, false, 2, 7n)
      yield* TestClock.adjust("1 second")
      const [log, ...none] = (yield* call(() => evm.getTransactionReceipt({ hash }))).logs
      assert.deepStrictEqual([log?.address, log?.topics[1], none], [coreWriter, pad(user), []])
      assert.deepStrictEqual(yield* orders, [])
      yield* TestClock.adjust("2 seconds")
      const cloid = pad("0x7", { size: 16 })
      const [order, ...others] = listOf(yield* orders)
      assert.deepInclude(order, { coin: "ETH", side: "B", limitPx: "1900.0", sz: "0.5", cloid })
      assert.deepStrictEqual(others, [])
      yield* write(11, "uint32, uint128", 1, 7n)
      yield* write(7, "uint64, bool", 1_000_000_000n, false)
      // an action that the venue refuses, and bytes that are none, change nothing
      yield* write(7, "uint64, bool", 10n ** 15n, false)
      yield* write(99, "uint64", 1n)
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(yield* orders, [])
      const usd = askAt({ type: "clearinghouseState", user }, "marginSummary", "accountValue")
      assert.strictEqual(yield* usd, "9000.0")

      // USDC from spot to the first builder's dex, a supply of all that is left, and one of a token without a reserve
      const transfer = "address, address, uint32, uint32, uint64, uint64"
      yield* write(13, transfer, user, contracts.none.replace("dead", "0000"), 2 ** 32 - 1, 1, 0n, 150_000_000n)
      yield* write(15, "uint8, uint64, uint64", 0, 0n, 0n)
      yield* write(15, "uint8, uint64, uint64", 0, 1n, 0n)
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(
        yield* askAt({ type: "clearinghouseState", user, dex: "xyz" }, "marginSummary", "accountValue"),
        "1.5"
      )
      const lent = yield* askAt({ type: "borrowLendUserState", user }, "tokenToState", 0, 1, "supply", "value")
      assert.strictEqual(lent, "10998.5")

      // a contract's own address is the user of its action, and the venue does not know it
      yield* send(null, calling("CALL", coreWriter))
      yield* TestClock.adjust("3 seconds")
      assert.include(
        yield* refusal(() => evm.call({ to: coreWriter, data: "0x12345678" })),
        "revert"
      )
    })))

  it.effect("execute a hundred actions of a contract at a time if it sends them in a loop", () =>
    test(Effect.gen(function*() {
      const { info, trading } = yield* SandboxState
      const { evm } = yield* clients
      const data = raw(1, "uint32, bool, uint64, uint64, bool, uint8, uint128", 1, true, 1n, 1n, false, 2, 7n).slice(2)
      const size = toHex(data.length / 2, { size: 2 }).slice(2)
      // copies the call behind the code into memory, and makes it again while 100 000 gas are left
      const loop: Hex = `0x61${size}6100325f395b5f5f61${size}5f5f73${
        coreWriter.slice(2)
      }5af1505a620186a01060085700${data}`
      const serializedTransaction = yield* sign(null, loop, 3_000_000n)
      const hash = yield* call(() => evm.sendRawTransaction({ serializedTransaction }))
      yield* TestClock.adjust("1 second")
      const { logs, status } = yield* call(() => evm.getTransactionReceipt({ hash }))
      assert.deepStrictEqual([status, logs.length > 500], ["success", true])
      const scheduled = Effect.gen(function*() {
        const { state } = trading.at(yield* Ref.get(info.state), yield* trading.now)
        return state.scheduled.map(({ at }) => at)
      })
      const [first = 0, ...rest] = yield* scheduled
      const expected = logs.map((_, index) => first + 50 * Math.floor(index / 100))
      assert.deepStrictEqual([first, ...rest], expected)
      yield* TestClock.adjust("2100 millis")
      assert.strictEqual((yield* scheduled).length, logs.length - 300)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* scheduled, [])
    })))

  it.effect("move HYPE in both directions", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* clients
      const user = keys.trader.address
      const bridge = "0x2222222222222222222222222222222222222222"
      const spot = Effect.map(
        askAt({ type: "spotClearinghouseState", user }, "balances"),
        (balances) =>
          listOf(balances).map((each) => JsonParts.at(each, "coin") === "HYPE" && JsonParts.at(each, "total"))
      )
      const serializedTransaction = yield* sign(bridge, "0x", 100_000n, { value: parseEther("2.5") })
      yield* call(() => evm.sendRawTransaction({ serializedTransaction }))
      assert.include(yield* spot, "100.0")
      yield* TestClock.adjust("3 seconds")
      assert.include(yield* spot, "102.5")
      const balance = () => evm.getBalance({ address: user })
      const before = yield* call(balance)
      const token = "HYPE:0x0d01dc56dcaaca66ad901c959b4011ec"
      yield* act(user, "spotSend", { ...signed, time: 1, destination: bridge, token, amount: "40" })
      assert.include(yield* spot, "62.5")
      assert.strictEqual((yield* call(balance)) - before, parseEther("40"))
    })))

  it.effect("fail in a transaction that was accepted before it could be executed", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* clients
      const later = yield* sign(null, calling("STATICCALL", vaultEquity), 1_000_000n, { nonce: 1 })
      const hash = yield* call(() => evm.sendRawTransaction({ serializedTransaction: later }))
      const first = yield* sign(keys.stranger.address, "0x", 21_000n)
      yield* call(() => evm.sendRawTransaction({ serializedTransaction: first }))
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* call(() => evm.getTransactionReceipt({ hash }))).status, "reverted")
    })))
})

describe("a transaction of more gas than a small block has", () => {
  it.effect("is refused until its sender selects big blocks", () =>
    test(Effect.gen(function*() {
      const { venue } = yield* SandboxState
      const { evm } = yield* clients
      const serializedTransaction = yield* sign(null, counting, 4_200_000n)
      const estimate = () => evm.estimateGas({ account: trader, data: counting })
      assert.include(yield* refusal(estimate), "gas required exceeds allowance (3000000)")
      assert.include(
        yield* refusal(() => evm.sendRawTransaction({ serializedTransaction })),
        "exceeds block gas limit: 4200000 > 3000000, the limit of small blocks"
      )
      assert.strictEqual((yield* call(() => evm.getBlock())).gasLimit, 3_000_000n)
      yield* venue.setBigBlocks(trader.address, true)
      const needed = yield* call(estimate)
      assert.isTrue(needed > 3_900_000n && needed < 4_200_000n, String(needed))
      const hash = yield* call(() => evm.sendRawTransaction({ serializedTransaction }))
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* call(() => evm.getTransactionReceipt({ hash }))).status, "success")
      assert.strictEqual((yield* call(() => evm.getBlock())).gasLimit, 30_000_000n)
      const tooMuch = yield* sign(null, counting, 30_000_001n, { nonce: 1 })
      assert.include(
        yield* refusal(() => evm.sendRawTransaction({ serializedTransaction: tooMuch })),
        "exceeds block gas limit"
      )
    })))
})
