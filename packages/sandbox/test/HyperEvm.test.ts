/**
 * HyperEVM reads the venue by precompiles, sends it actions and HYPE, and has the gas limits of small and big blocks.
 */
import { assert, describe, it } from "@effect/vitest"
import { contracts, keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState, wrappedToken } from "@trigate/sandbox/SandboxState"
import { readEffects } from "@trigate/sandbox/unstable/evm/CoreWriter"
import { evmBlock } from "@trigate/sandbox/unstable/evm/EvmChain"
import * as VenueEvm from "@trigate/sandbox/unstable/evm/VenueEvm"
import { zeroHash } from "@trigate/sandbox/unstable/venue/Venue"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/testing/TestClock"
import {
  concat,
  decodeAbiParameters,
  encodeAbiParameters,
  encodeFunctionData,
  erc20Abi,
  getAddress,
  getContractAddress,
  type Hex,
  keccak256,
  pad,
  parseAbi,
  parseAbiParameters,
  parseEther,
  parseGwei,
  parseUnits,
  size,
  toHex,
  zeroAddress
} from "viem"
import { call, clients, refusal, test, trader } from "./evmClients.ts"
import { check } from "./randomTrading.ts"
import { act, askAt, listOf, venueNow } from "./trader.ts"
import { start } from "./venue.ts"

const { coreWriter } = contracts
const oracle = "0x0000000000000000000000000000000000000807"
/** A precompile that the venue does not have. */
const unknownPrecompile = "0x0000000000000000000000000000000000000815"
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

/** Passes its input to a precompile, and returns whether it succeeded, the gas of the call, and the result. */
const forwarding = (to: Hex): Hex =>
  concat(["0x365f5f375a5f5f365f73", to, "0x620186a0fa5a91905f52036020523d5f60403e3d6040015ff3"])

/** Calls read precompiles by `eth_call` and inside a contract, which must return the same for the documented gas. */
const precompiles = Effect.gen(function*() {
  const { evm } = yield* clients
  const forwarder = keys.stranger.address
  const toPrecompile = (last: string): Hex => `0x${"0".repeat(37)}8${last}`
  const encode = (types: string, args: ReadonlyArray<unknown>): Hex =>
    types === "" ? "0x" : encodeAbiParameters(parseAbiParameters(types), args)
  const inside = (to: Hex, data: Hex) =>
    Effect.map(
      call(() => evm.call({ to: forwarder, data, stateOverride: [{ address: forwarder, code: forwarding(to) }] })),
      ({ data: all = "0x" }) => ({
        success: BigInt(`0x${all.slice(2, 66)}`) === 1n,
        gas: BigInt(`0x${all.slice(66, 130)}`),
        result: `0x${all.slice(130)}`
      })
    )
  const around = (yield* inside(oracle, toHex(0n, { size: 32 }))).gas - 2_000n - 65n * 64n
  const read = Effect.fnUntraced(function*(
    last: string,
    types: string,
    args: ReadonlyArray<unknown>,
    returned: string
  ) {
    const [to, data] = [toPrecompile(last), encode(types, args)]
    const { data: result = "0x" } = yield* call(() => evm.call({ to, data }))
    const bytes = BigInt(data.length + result.length - 4) / 2n
    assert.deepStrictEqual(yield* inside(to, data), { success: true, gas: around + 2_000n + 65n * bytes, result }, last)
    return decodeAbiParameters(parseAbiParameters(returned), result)
  })
  return {
    read,
    /** Reads a structure. */
    readOne: (last: string, types: string, args: ReadonlyArray<unknown>, members: string) =>
      Effect.map(read(last, types, args, `(${members}) value`), ([value]) => value),
    /** Whether the call fails, and uses all its gas. */
    fails: Effect.fnUntraced(function*(last: string, types: string, ...args: ReadonlyArray<unknown>) {
      const [to, data] = [toPrecompile(last), encode(types, args)]
      assert.include(yield* refusal(() => evm.call({ to, data })), "precompile failed")
      const { gas, success } = yield* inside(to, data)
      return !success && gas === around + 100_000n
    })
  }
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

  it.effect("that read it describe deposits, delegations, perpetuals, pairs and tokens", () =>
    test(Effect.gen(function*() {
      const user = keys.trader.address
      const validator = keys.validator.address
      const { fails, read, readOne } = yield* precompiles
      yield* act(user, "tokenDelegate", { ...signed, validator, wei: 150_000_000, isUndelegate: false, nonce: 1 })
      const vaultTerms = { name: "A vault", description: "A vault of a test", initialUsd: 200_000_000, nonce: 1 }
      yield* act(user, "createVault", vaultTerms)
      const vault = [...(yield* venueNow).state.vaults.keys()].at(-1) ?? assert.fail()
      const equityOf = (depositor: string) =>
        readOne("02", "address, address", [depositor, vault], "uint64 equity, uint64 lockedUntil")
      const lockedUntil = yield* askAt({ type: "userVaultEquities", user }, 0, "lockedUntilTimestamp")
      assert.isAbove(Number(lockedUntil), start)
      assert.deepStrictEqual(yield* equityOf(user), { equity: 200_000_000n, lockedUntil: BigInt(String(lockedUntil)) })
      assert.deepStrictEqual(yield* equityOf(validator), { equity: 0n, lockedUntil: 0n })
      const delegations = "(address validator, uint64 amount, uint64 lockedUntil)[] all"
      assert.deepStrictEqual(yield* read("04", "address", [user], delegations), [
        [{ validator: getAddress(validator), amount: 150_000_000n, lockedUntil: BigInt(start + 86_400_000) }]
      ])
      assert.deepStrictEqual(yield* read("04", "address", [validator], delegations), [[]])
      const block = BigInt((start - Date.UTC(2023, 1, 26)) / 100)
      assert.deepStrictEqual(yield* read("09", "", [], "uint64 number"), [block])
      const { evm } = yield* clients
      const without = yield* call(() => evm.call({ to: `0x${"0".repeat(37)}809` }))
      assert.deepStrictEqual(without.data, toHex(block, { size: 32 }))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* read("09", "", [], "uint64 number"), [block + 10n])

      const terms = "string coin, uint32 table, uint8 szDecimals, uint8 maxLeverage, bool onlyIsolated"
      const universe = yield* askAt({ type: "meta" }, "universe")
      const delisted = listOf(universe).findIndex((each) => JsonParts.at(each, "isDelisted") === true)
      assert.deepStrictEqual(yield* Effect.forEach([1, 110_000], (id) => readOne("0a", "uint32", [id], terms)), [
        { coin: "ETH", table: 55, szDecimals: 4, maxLeverage: 25, onlyIsolated: false },
        { coin: "xyz:XYZ100", table: 20, szDecimals: 4, maxLeverage: 20, onlyIsolated: true }
      ])
      assert.strictEqual(
        JsonParts.at(yield* readOne("0a", "uint32", [delisted], terms), "coin"),
        JsonParts.at(universe, delisted, "name")
      )
      const listed = "string name, uint64[2] tokens"
      assert.deepStrictEqual(yield* Effect.forEach([0, 107], (index) => readOne("0b", "uint32", [index], listed)), [
        { name: "PURR/USDC", tokens: [1n, 0n] },
        { name: "@107", tokens: [150n, 0n] }
      ])
      const described = "string name, uint64[] spots, uint64 feeShare, address deployer, address evmContract, " +
        "uint8 szDecimals, uint8 weiDecimals, int8 evmExtraWeiDecimals"
      const { spotMeta } = yield* Effect.flatMap(SandboxState, ({ info }) => Ref.get(info.state))
      const pairsOf = (token: number) =>
        spotMeta.universe.flatMap(({ index, tokens: [base] }) => base === token ? [BigInt(index)] : [])
      const tokens = yield* Effect.forEach([0, 5, 150], (token) => readOne("0c", "uint32", [token], described))
      const contract = spotMeta.tokens.find(({ index }) => index === 5)?.evmContract?.address ?? assert.fail()
      const common = { feeShare: 0n, deployer: zeroAddress, weiDecimals: 8 }
      assert.deepStrictEqual(tokens, [
        { ...common, name: "USDC", spots: [], szDecimals: 8, evmContract: zeroAddress, evmExtraWeiDecimals: 0 },
        {
          ...common,
          name: "ZAKA",
          spots: pairsOf(5),
          feeShare: 100_000n,
          szDecimals: 0,
          weiDecimals: 7,
          evmContract: getAddress(contract),
          evmExtraWeiDecimals: -1
        },
        {
          ...common,
          name: "HYPE",
          spots: pairsOf(150),
          szDecimals: 2,
          evmContract: `0x${"2".repeat(40)}`,
          evmExtraWeiDecimals: 10
        }
      ])
      assert.include(pairsOf(150), 107n)
      const supply =
        "uint64 max, uint64 total, uint64 circulating, uint64 futureEmissions, (address user, uint64 balance)[] others"
      const hype = 30_000_000_000n
      assert.deepStrictEqual(yield* readOne("0d", "uint32", [150], supply), {
        max: hype,
        total: hype,
        circulating: hype,
        futureEmissions: 0n,
        others: []
      })
      const refused = [
        fails("02", "address, address", user, user),
        fails("0a", "uint32", 9_999),
        fails("0a", "uint32", 990_000),
        fails("0b", "uint32", 9_999),
        fails("0c", "uint32", 9_999),
        fails("0d", "uint32", 9_999),
        fails("09", "uint32", 0)
      ]
      assert.deepStrictEqual(yield* Effect.all(refused), refused.map(() => true))
    })))

  it.effect("that read it know reserves, and outcomes until they are settled", () =>
    test(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const user = keys.trader.address
      const { fails, read, readOne } = yield* precompiles
      const balances = "uint64 borrowBasis, uint64 borrowValue, uint64 supplyBasis, uint64 supplyValue"
      assert.isTrue(yield* fails("11", "address, uint64", user, 0n))
      yield* act(user, "borrowLend", { operation: "supply", token: 0, amount: "15.5" })
      assert.deepStrictEqual(yield* readOne("11", "address, uint64", [user, 0n], balances), {
        borrowBasis: 0n,
        borrowValue: 0n,
        supplyBasis: 1_550_000_000n,
        supplyValue: 1_550_000_000n
      })
      const reserve =
        "uint64 borrowRate, uint64 supplyRate, uint64 balance, uint64 utilization, uint64 px, uint64 ltv, " +
        "uint64 supplied, uint64 borrowed"
      assert.deepStrictEqual(yield* readOne("12", "uint64", [0n], reserve), {
        borrowRate: 500n,
        supplyRate: 0n,
        balance: 1_550_000_000n,
        utilization: 0n,
        px: 1n,
        ltv: 0n,
        supplied: 1_550_000_000n,
        borrowed: 0n
      })
      assert.isTrue(yield* fails("12", "uint64", 150n))

      yield* trading.playPrices("BTC", [{ time: 0, price: 1 }])
      const active = [...(yield* venueNow).outcomes.active.values()]
      const alone = active.find(({ question }) => question === undefined)?.spec.outcome ?? assert.fail()
      const { question, spec } = active.find((each) => each.question !== undefined) ?? assert.fail()
      const status = (outcome: number | bigint) =>
        readOne("14", "uint32", [outcome], "uint8 status, uint64 settledValue, uint32 question")
      const [none, number] = [2 ** 32 - 1, question?.question]
      assert.deepStrictEqual(yield* Effect.forEach([1, alone, spec.outcome, none], status), [
        { status: 0, settledValue: 0n, question: none },
        { status: 1, settledValue: 0n, question: none },
        { status: 1, settledValue: 0n, question: number },
        { status: 0, settledValue: 0n, question: none }
      ])
      assert.isTrue(yield* fails("14", "uint64", 2n ** 32n))
      yield* act(user, "userOutcome", { splitOutcome: { outcome: alone, amount: "12.345678" } })
      const token = 100_000_001n + 10n * BigInt(alone)
      const balance = (of: bigint) =>
        read("01", "address, uint64", [user, of], "uint64 total, uint64 hold, uint64 entry")
      assert.deepStrictEqual((yield* balance(token)).slice(0, 2), [1_234_567n, 0n])
      const px = yield* askAt({ type: "activeAssetData", user, coin: `#${token - 100_000_000n}` }, "markPx")
      assert.deepStrictEqual(yield* read("08", "uint64", [token], "uint64 px"), [BigInt(Math.round(Number(px) * 1e8))])
      yield* TestClock.adjust("1 day")
      assert.deepStrictEqual(yield* Effect.forEach([alone, question?.namedOutcomes[0] ?? 0], status), [
        { status: 2, settledValue: 0n, question: none },
        { status: 2, settledValue: 100_000_000n, question: number }
      ])
      assert.isTrue(yield* fails("01", "address, uint64", user, token))
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
      for (const last of ["15", "ff"]) {
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

  it.effect("that write to it exchange outcomes and set the mode of the account, if all unused members are zero", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* clients
      const user = keys.trader.address
      const { question, spec: { outcome } } = [...(yield* venueNow).outcomes.active.values()].find((each) =>
        each.question !== undefined
      ) ?? assert.fail()
      const { namedOutcomes = [], question: number = 0 } = question ?? {}
      const [first = 0] = namedOutcomes
      assert.strictEqual(outcome, question?.fallbackOutcome)
      let nonce = 0
      const write = Effect.fnUntraced(function*(kind: number, types: string, ...args: ReadonlyArray<unknown>) {
        const serializedTransaction = yield* sign(coreWriter, raw(kind, types, ...args), 200_000n, { nonce: nonce++ })
        yield* call(() => evm.sendRawTransaction({ serializedTransaction }))
        yield* TestClock.adjust("3 seconds")
      })
      const exchange = (...args: readonly [kind: number, question: number, outcome: number, wei: bigint]) =>
        write(17, "uint8, uint32, uint32, uint64", ...args)
      const owned = Effect.map(
        askAt({ type: "spotClearinghouseState", user }, "balances"),
        (rows) =>
          Object.fromEntries<unknown>(
            listOf(rows).map((row) => [String(JsonParts.at(row, "coin")), JsonParts.at(row, "total")] as const)
              .filter(([coin]) => coin !== "HYPE")
          )
      )
      const coins = (...outcomes: ReadonlyArray<number>) => outcomes.map((each) => `+${10 * each}`)
      const [yes = ""] = coins(first)
      const no = `+${10 * first + 1}`
      yield* exchange(0, 0, first, 1_000_000n)
      assert.deepStrictEqual(yield* owned, { USDC: "9990.0", [yes]: "10.0", [no]: "10.0" })
      // dropped: an unused member, a part of a token, an unknown operation, and a split of nothing
      yield* exchange(0, number, first, 100_000n)
      yield* exchange(2, number, first, 0n)
      yield* exchange(0, 0, first, 150_000n)
      yield* exchange(4, 0, first, 100_000n)
      yield* exchange(0, 0, first, 0n)
      assert.deepStrictEqual(yield* owned, { USDC: "9990.0", [yes]: "10.0", [no]: "10.0" })
      yield* exchange(3, number, first, 400_000n)
      const others = coins(outcome, ...namedOutcomes.slice(1))
      const four = Object.fromEntries(others.map((coin) => [coin, "4.0"]))
      assert.deepStrictEqual(yield* owned, { USDC: "9990.0", [yes]: "10.0", [no]: "6.0", ...four })
      // an amount of an outcome's token has five decimals in any action
      yield* write(6, "address, uint64, uint64", keys.validator.address, 100_000_001 + 10 * first, 200_000n)
      yield* exchange(2, number, 0, 100_000n)
      const three = Object.fromEntries(others.map((coin) => [coin, "3.0"]))
      assert.deepStrictEqual(yield* owned, { USDC: "9991.0", [yes]: "9.0", [no]: "4.0", ...three })
      yield* exchange(2, number, 0, 0n)
      yield* exchange(1, 0, first, 0n)
      assert.deepStrictEqual(yield* owned, { USDC: "9998.0", [yes]: "2.0" })

      const mode = askAt({ type: "userAbstraction", user })
      for (const [kind, expected] of [[2, "unifiedAccount"], [4, "unifiedAccount"], [1, "disabled"]] as const) {
        yield* write(16, "address, uint8", user, kind)
        assert.strictEqual(yield* mode, expected)
      }
      yield* write(16, "address, uint8", keys.validator.address, 2)
      assert.strictEqual(yield* askAt({ type: "userAbstraction", user: keys.validator.address }), "default")
    })))

  it.effect("that write to it are read as the actions that a user would sign", () =>
    test(Effect.gen(function*() {
      const venue = yield* venueNow
      const user = keys.trader.address
      const read = (kind: number, types: string, ...args: ReadonlyArray<unknown>) => {
        const bytes = concat(["0x01", toHex(kind, { size: 3 }), encodeAbiParameters(parseAbiParameters(types), args)])
        const log = {
          address: coreWriter,
          topics: ["0x8c7f585fb295f7eb1e6aeb8fba61b23a4fe60beda405f0045073b185c74412e3", pad(user)],
          data: encodeAbiParameters([{ type: "bytes" }], [bytes])
        } as const
        return readEffects(venue, { hash: zeroHash, logs: [log] }, start).map(({ action }) => action)
      }
      const finalize = (variant: number) => read(8, "uint64, uint8, uint64", 5n, variant, 7n)
      const type = "finalizeEvmContract"
      assert.deepStrictEqual([1, 2, 3, 4].map(finalize), [
        [{ type, token: 5, input: { create: { nonce: 7 } } }],
        [{ type, token: 5, input: "firstStorageSlot" }],
        [{ type, token: 5, input: "customStorageSlot" }],
        []
      ])
      // the venue does not document the action any more
      assert.deepStrictEqual(read(14, "uint64, uint64, bool", 5n, 7n, true), [])
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
      const later = yield* sign(null, calling("STATICCALL", unknownPrecompile), 1_000_000n, { nonce: 1 })
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

describe("a token with a contract", () => {
  const user = keys.trader.address
  const systemAddress = (token: number): Hex => `0x20${token.toString(16).padStart(38, "0")}`
  const hex = (bytes: number): Hex => toHex(bytes, { size: 2 })
  const balanceSlot = (owner: Hex) => keccak256(concat([pad(owner), pad("0x3")]))

  /** Creates a contract with the code of the wrapped token and a balance. */
  const creation = (owner: Hex, balance: bigint): Hex => {
    const stored = concat(["0x7f", toHex(balance, { size: 32 }), "0x7f", balanceSlot(owner), "0x55"])
    const length = hex(size(wrappedToken))
    return concat([stored, "0x61", length, "0x61", hex(size(stored) + 13), "0x5f3961", length, "0x5ff3", wrappedToken])
  }

  /** Creates a contract that creates another one, and then calls CoreWriter. */
  const factory = (created: Hex, data: Hex): Hex => {
    const [length, called] = [hex(size(created)), hex(size(data))]
    return concat([
      ...["0x61", length, "0x61", hex(55), "0x5f3961", length, "0x5f5ff05061", called, "0x61"] as const,
      ...[hex(55 + size(created)), "0x5f395f5f61", called, "0x5f5f73", coreWriter, "0x5af15000", created, data] as const
    ])
  }

  const core = (owner: Hex, token: number) =>
    Effect.map(
      askAt({ type: "spotClearinghouseState", user: owner }, "balances"),
      (rows) => JsonParts.at(listOf(rows).find((row) => JsonParts.at(row, "token") === token), "total")
    )

  const erc20 = Effect.fnUntraced(function*(address: Hex) {
    const { evm } = yield* clients
    let nonce = yield* call(() => evm.getTransactionCount({ address: user }))
    return {
      balance: (owner: Hex) =>
        call(() => evm.readContract({ address, abi: erc20Abi, functionName: "balanceOf", args: [owner] })),
      transfer: Effect.fnUntraced(function*(to: Hex, value: bigint) {
        const data = encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [to, value] })
        const serializedTransaction = yield* sign(address, data, 200_000n, { nonce: nonce++ })
        yield* call(() => evm.sendRawTransaction({ serializedTransaction }))
      }),
      deposit: Effect.fnUntraced(function*(value: bigint) {
        const serializedTransaction = yield* sign(address, "0xd0e30db0", 200_000n, { nonce: nonce++, value })
        yield* call(() => evm.sendRawTransaction({ serializedTransaction }))
      })
    }
  })

  const send = (token: string, destination: Hex, amount: string) =>
    act(user, "spotSend", { ...signed, time: 1, destination, token, amount })

  it.effect("that its deployer requests is linked by the contract that created it, and moves in both directions", () =>
    test(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const { evm } = yield* clients
      const { fails, read, readOne } = yield* precompiles
      const deploy = (members: object) => act(user, "spotDeploy", members)
      yield* trading.depositSpot(user, 150, "3000")
      const spec = { name: "NEW", szDecimals: 2, weiDecimals: 8 }
      const token = Number(yield* deploy({ registerToken2: { spec, maxGas: 300_000_000_000, fullName: "New token" } }))
      const system = systemAddress(token)
      yield* deploy({ userGenesis: { token, userAndWei: [[user, "100000000000"]], existingTokenAndWei: [] } })
      yield* deploy({ genesis: { token, maxSupply: "100000000000", noHyperliquidity: true } })
      yield* deploy({ setDeployerTradingFeeShare: { token, share: "40%" } })
      const spot = Number(yield* deploy({ registerSpot: { tokens: [token, 0] } }))
      yield* deploy({ registerHyperliquidity: { spot, startPx: "0.5", orderSz: "0", nOrders: 0, nSeededLevels: 0 } })

      // before the link the system address is like any other account
      const name = String(JsonParts.at(listOf(yield* askAt({ type: "spotMeta" }, "tokens")).at(-1), "tokenId"))
      yield* send(name, system, "10")
      assert.deepStrictEqual((yield* venueNow).state.bridged, [])
      const maker = getContractAddress({ from: user, nonce: 0n })
      const address = getContractAddress({ from: maker, nonce: 1n })
      yield* send(name, maker, "1")
      yield* deploy({ requestEvmContract: { token, address, evmExtraWeiDecimals: 10 } })
      const supply = parseEther("500")
      const finalize = raw(8, "uint64, uint8, uint64", BigInt(token), 1, 1n)
      const create = yield* sign(null, factory(creation(system, supply), finalize), 3_000_000n)
      yield* call(() => evm.sendRawTransaction({ serializedTransaction: create }))
      const described = "string name, uint64[] spots, uint64 feeShare, address deployer, address evmContract, " +
        "uint8 szDecimals, uint8 weiDecimals, int8 evmExtraWeiDecimals"
      const terms = {
        name: "NEW",
        spots: [BigInt(spot)],
        feeShare: 40_000n,
        deployer: getAddress(user),
        evmContract: zeroAddress,
        szDecimals: 2,
        weiDecimals: 8,
        evmExtraWeiDecimals: 0
      }
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* readOne("0c", "uint32", [token], described), terms)
      yield* TestClock.adjust("1 second")
      const linked = { ...terms, evmContract: address, evmExtraWeiDecimals: 10 }
      assert.deepStrictEqual(yield* readOne("0c", "uint32", [token], described), linked)
      assert.deepStrictEqual(JsonParts.at(listOf(yield* askAt({ type: "spotMeta" }, "tokens")).at(-1), "evmContract"), {
        address: address.toLowerCase(),
        evm_extra_wei_decimals: 10
      })

      const { balance, transfer } = yield* erc20(address)
      const both = Effect.gen(function*() {
        return [yield* core(user, token), yield* core(system, token), yield* balance(user), yield* balance(system)]
      })
      assert.deepStrictEqual(yield* both, ["989.0", "10.0", 0n, supply])
      // the credit is in the newest block and in the pending one
      yield* transfer(maker, 0n)
      assert.isUndefined(yield* send(name, system, "40.5"))
      const first = ["948.5", "50.5", parseEther("40.5"), parseEther("459.5")]
      assert.deepStrictEqual(yield* both, first)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* both, first)
      // the contract reverts if the system address has less there, and the amount remains at this address
      assert.isUndefined(yield* send(name, system, "459.50000001"))
      assert.deepStrictEqual(yield* both, ["488.99999999", "510.00000001", parseEther("40.5"), parseEther("459.5")])
      const asset = { sourceDex: "spot", destinationDex: "spot", token: name, fromSubAccount: "" }
      yield* act(user, "sendAsset", { ...signed, ...asset, nonce: 1, destination: system, amount: "1" })
      assert.deepStrictEqual(yield* both, ["487.99999999", "511.00000001", parseEther("41.5"), parseEther("458.5")])
      // a part of a wei is burned
      yield* transfer(system, parseEther("15") + 9_999_999_999n)
      yield* TestClock.adjust("2 seconds")
      const [before] = yield* both
      assert.strictEqual(before, "487.99999999")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* both, [
        "502.99999999",
        "496.00000001",
        parseEther("26.5") - 9_999_999_999n,
        parseEther("473.5") + 9_999_999_999n
      ])
      // a transfer to another token's system address moves neither token on the venue
      yield* trading.depositSpot(user, 1, "2")
      yield* send("PURR", systemAddress(1), "2")
      yield* transfer(systemAddress(1), parseEther("1"))
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(
        [yield* core(user, token), yield* core(user, 1), yield* core(systemAddress(1), 1)],
        ["502.99999999", undefined, "2.0"]
      )

      const supplies =
        "uint64 max, uint64 total, uint64 circulating, uint64 futureEmissions, (address user, uint64 balance)[] others"
      assert.deepStrictEqual(yield* readOne("0d", "uint32", [token], supplies), {
        max: 100_000_000_000n,
        total: 100_000_000_000n,
        circulating: 100_000_000_000n,
        futureEmissions: 0n,
        others: []
      })
      const uints = "uint64, uint64, uint64"
      assert.deepStrictEqual(yield* read("01", "address, uint64", [user, BigInt(token)], uints), [
        50_299_999_999n,
        0n,
        0n
      ])
      assert.deepStrictEqual(yield* read("01", "address, uint64", [system, BigInt(token)], uints), [
        49_600_000_001n,
        0n,
        0n
      ])
      // prices have 8 decimals without those of sizes
      assert.deepStrictEqual(yield* read("08", "uint32", [spot], "uint64"), [500_000n])
      assert.deepStrictEqual(yield* readOne("0b", "uint32", [spot], "string name, uint64[2] tokens"), {
        name: `@${spot}`,
        tokens: [BigInt(token), 0n]
      })
      assert.isTrue(yield* fails("0c", "uint32", token + 1))
      check((yield* venueNow).state)
    })))

  it.effect("that the sandbox lists belongs to its system address, which credits only the amount that was sent to it", () =>
    test(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const { tokens } = yield* Effect.map(venueNow, ({ listing }) => listing)
      // a token with a decimal less in its contract
      const [zaka, purr] = [tokens.get(5) ?? assert.fail(), tokens.get(1) ?? assert.fail()]
      assert.deepStrictEqual([zaka.weiDecimals, zaka.evmContract?.evm_extra_wei_decimals], [7, -1])
      const { balance, transfer } = yield* erc20(zaka.evmContract?.address ?? assert.fail())
      yield* trading.depositSpot(user, 5, "10")
      assert.strictEqual(yield* send(zaka.tokenId, systemAddress(5), "1.0000001"), "Invalid number of decimals")
      assert.isUndefined(yield* send(zaka.tokenId, systemAddress(5), "1.000001"))
      assert.deepStrictEqual([yield* core(user, 5), yield* balance(user)], ["8.999999", 1_000_001n])
      yield* transfer(systemAddress(5), 400_000n)
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual([yield* core(user, 5), yield* balance(user)], ["9.399999", 600_001n])

      const wrapped = yield* erc20(purr.evmContract?.address ?? assert.fail())
      yield* wrapped.deposit(parseEther("3"))
      yield* trading.depositSpot(user, 1, "2")
      yield* send(purr.tokenId, systemAddress(1), "2")
      yield* wrapped.transfer(systemAddress(1), parseUnits("2.00001", 18))
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual([yield* core(user, 1), yield* core(systemAddress(1), 1)], [undefined, "2.0"])
      assert.strictEqual(yield* wrapped.balance(user), parseUnits("2.99999", 18))
      check((yield* venueNow).state)
    })))
})
