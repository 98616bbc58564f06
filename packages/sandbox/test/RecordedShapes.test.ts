/** Responses have the members and the forms of those that were recorded at the venue, and follow the state. */
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import { findAccount } from "@trigate/sandbox/venue/TradingState"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { act, ask, askAt, eth, listOf, markOf, oidOf, orderOf, place, venueNow } from "./trader.ts"
import { atStart } from "./venue.ts"

const user = keys.trader.address
const other = `0x${"2".repeat(40)}` as const
const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const
const builderCoin = "xyz:XYZ100"
const builderAsset = 110_000

/** Returns the kind of each value in a response. */
const formOf = (value: unknown): unknown => {
  if (value === null || typeof value !== "string") {
    return Array.isArray(value)
      ? value.slice(0, 1).map(formOf)
      : value !== null && typeof value === "object"
      ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, formOf(item)]))
      : value === null
      ? null
      : typeof value
  }
  if (/^0x[0-9a-f]{40}$/u.test(value)) return "address"
  if (/^0x[0-9a-f]{64}$/u.test(value)) return "hash"
  return /^-?[0-9]+\.[0-9]+$/u.test(value) ? "decimal" : "text"
}

describe("staking", () => {
  it.effect("lists deposits, and withdrawals in both phases, beside delegations", () =>
    atStart(Effect.gen(function*() {
      yield* act(user, "cDeposit", { ...chain, wei: 250_000_000, nonce: 1 })
      yield* TestClock.adjust("1 second")
      yield* act(user, "cWithdraw", { ...chain, wei: 50_000_000, nonce: 2 })
      const pending = yield* ask({ type: "delegatorSummary", user })
      assert.deepInclude(pending, { totalPendingWithdrawal: "0.5", nPendingWithdrawals: 1 })
      const history = listOf(yield* ask({ type: "delegatorHistory", user }))
      assert.deepStrictEqual(history.map((row) => JsonParts.at(row, "delta")), [
        { withdrawal: { amount: "0.5", phase: "initiated" } },
        { cDeposit: { amount: "2.5" } }
      ])
      assert.deepStrictEqual(formOf(history[1]), {
        time: "number",
        hash: "hash",
        delta: { cDeposit: { amount: "decimal" } }
      })
      yield* TestClock.adjust("7 days")
      const [newest] = listOf(yield* ask({ type: "delegatorHistory", user }))
      assert.deepStrictEqual(JsonParts.at(newest, "delta"), { withdrawal: { amount: "0.5", phase: "finalized" } })
      assert.deepInclude(yield* ask({ type: "delegatorSummary", user }), {
        totalPendingWithdrawal: "0.0",
        nPendingWithdrawals: 0
      })
    })))
})

describe("the dex of a builder", () => {
  it.effect("states its limits and what was moved into it", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      assert.deepStrictEqual(formOf(yield* ask({ type: "perpDexLimits", dex: "xyz" })), {
        totalOiCap: "decimal",
        oiSzCapPerPerp: "decimal",
        maxTransferNtl: "decimal",
        coinToOiCap: [["text"]]
      })
      assert.deepStrictEqual(yield* askAt({ type: "perpDexLimits", dex: "xyz" }, "coinToOiCap"), [
        [builderCoin, "100000000.0"]
      ])
      assert.isNull(yield* ask({ type: "perpDexLimits", dex: "" }))
      const status = (dex: string) => ask({ type: "perpDexStatus", dex })
      const before = Number(JsonParts.at(yield* status(""), "totalNetDeposit"))
      assert.deepStrictEqual(yield* status("xyz"), { totalNetDeposit: "0.0" })
      const send = { ...chain, destination: user, token: "USDC", fromSubAccount: "", nonce: 1 }
      yield* act(user, "sendAsset", { ...send, sourceDex: "", destinationDex: "xyz", amount: "120.5" })
      yield* trading.depositUsd(other, "7")
      assert.deepStrictEqual(yield* status("xyz"), { totalNetDeposit: "120.5" })
      assert.deepStrictEqual(Number(JsonParts.at(yield* status(""), "totalNetDeposit")), before - 113.5)
    })))

  it.effect("has perpetuals without cross margin, with a tenth of the fees, and with a cap that stops growth", () =>
    atStart(Effect.gen(function*() {
      const { info } = yield* SandboxState
      const [listed] = listOf(yield* askAt({ type: "meta", dex: "xyz" }, "universe"))
      assert.deepStrictEqual(listed, {
        szDecimals: 4,
        name: builderCoin,
        maxLeverage: 20,
        marginTableId: 20,
        onlyIsolated: true,
        marginMode: "noCross",
        growthMode: "enabled",
        lastGrowthModeChangeTime: "2025-11-23T00:00:00"
      })
      const leverage = (isCross: boolean) => act(user, "updateLeverage", { asset: builderAsset, isCross, leverage: 5 })
      assert.strictEqual(yield* leverage(true), "Cross margin is not allowed for this asset.")
      assert.isUndefined(yield* leverage(false))
      const send = { ...chain, destination: user, token: "USDC", fromSubAccount: "", nonce: 1 }
      yield* act(user, "sendAsset", { ...send, sourceDex: "", destinationDex: "xyz", amount: "5000" })
      yield* place(user, builderAsset, "buy", "0.1", yield* markOf(builderCoin, 0.05), { tif: "Ioc" })
      const fills = listOf(yield* ask({ type: "userFills", user }))
      assert.isAbove(fills.length, 0)
      for (const fill of fills) {
        const value = Number(JsonParts.at(fill, "px")) * Number(JsonParts.at(fill, "sz"))
        assert.approximately(Number(JsonParts.at(fill, "fee")), value * 0.000_045, 1e-6)
      }
      assert.deepStrictEqual(yield* ask({ type: "perpsAtOpenInterestCap", dex: "xyz" }), [])
      yield* info.listCoin({
        coin: builderCoin,
        asset: "XYZ100",
        price: 24_900,
        volatility: 0.012,
        tradeRate: 9,
        tradeLots: 700,
        sizeDecimals: 4,
        priceDecimals: 2,
        listedAt: 0,
        openInterestCap: 100
      })
      assert.deepStrictEqual(yield* ask({ type: "perpsAtOpenInterestCap", dex: "xyz" }), [builderCoin])
      assert.deepStrictEqual(
        yield* place(user, builderAsset, "buy", "0.1", yield* markOf(builderCoin, 0.05), { tif: "Ioc" }),
        { error: "Order would increase open interest while open interest is capped. asset=110000" }
      )
      const closed = yield* place(user, builderAsset, "sell", "0.1", yield* markOf(builderCoin, -0.05), { tif: "Ioc" })
      assert.isNumber(oidOf(closed))
    })))
})

describe("a delisted coin", () => {
  it.effect("keeps its number; its orders end, its positions are closed, and its price stands still", () =>
    atStart(Effect.gen(function*() {
      const { info, trading } = yield* SandboxState
      yield* trading.setPosition(user, "ETH", "1")
      const oid = oidOf(yield* place(user, eth, "buy", "1", yield* markOf("ETH", -0.1)))
      yield* info.delistCoin("BTC")
      yield* info.delistCoin("ETH")
      const universe = listOf(yield* askAt({ type: "meta" }, "universe"))
      assert.deepStrictEqual(universe.map((each) => [JsonParts.at(each, "name"), JsonParts.at(each, "isDelisted")]), [
        ["BTC", true],
        ["ETH", true],
        ["SOL", undefined],
        ["HYPE", undefined],
        ["kPEPE", undefined]
      ])
      const account = findAccount((yield* venueNow).state, user)
      assert.deepStrictEqual([account.open.size, account.orders.get(Number(oid))?.status], [0, "delistedCanceled"])
      assert.deepStrictEqual(yield* askAt({ type: "clearinghouseState", user }, "assetPositions"), [])
      const delisted = () => askAt({ type: "metaAndAssetCtxs" }, 1, 1)
      const context = yield* delisted()
      assert.deepStrictEqual(formOf(context), {
        prevDayPx: "decimal",
        dayNtlVlm: "decimal",
        markPx: "decimal",
        midPx: null,
        dayBaseVlm: "decimal",
        oraclePx: "decimal",
        funding: "decimal",
        openInterest: "decimal",
        premium: null,
        impactPxs: null
      })
      yield* TestClock.adjust("1 day")
      assert.deepStrictEqual(yield* delisted(), context)
      assert.deepStrictEqual(
        JsonParts.at(
          yield* act(user, "order", { orders: [orderOf(2, "buy", "1", yield* markOf("SOL", -0.1))], grouping: "na" }),
          "statuses",
          0,
          "error"
        ),
        undefined
      )
      assert.isUndefined(yield* askAt({ type: "allMids" }, "ETH"))
    })))
})

describe("the auction of the right to deploy", () => {
  it.effect("falls with the clock from the price of the seed, and begins anew", () =>
    atStart(Effect.gen(function*() {
      const status = ask({ type: "perpDeployAuctionStatus" })
      const first = yield* status
      assert.deepStrictEqual(formOf(first), {
        startTimeSeconds: "number",
        durationSeconds: "number",
        startGas: "decimal",
        currentGas: "decimal",
        endGas: null
      })
      yield* TestClock.adjust("1 minute")
      const later = yield* status
      assert.isBelow(Number(JsonParts.at(later, "currentGas")), Number(JsonParts.at(first, "currentGas")))
      yield* TestClock.adjust("31 hours")
      const next = yield* status
      assert.strictEqual(
        Number(JsonParts.at(next, "startTimeSeconds")) - Number(JsonParts.at(first, "startTimeSeconds")),
        111_600
      )
    })))
})
