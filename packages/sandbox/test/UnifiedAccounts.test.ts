/** Accounts whose spot balance is the collateral of their perpetuals. */
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { check } from "./randomTrading.ts"
import { act, ask, askAt, eth, hypeSpot, listOf, markOf, place, venueNow } from "./trader.ts"
import { atStart } from "./venue.ts"

const user = keys.trader.address
const other = `0x${"2".repeat(40)}` as const
const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const
const disabled = "Action disabled when unified account is active"

const setMode = (abstraction: string) => act(user, "userSetAbstraction", { ...chain, user, abstraction, nonce: 1 })

/** The USDC in spot: the total and the part that is held. */
const usdcOf = Effect.map(ask({ type: "spotClearinghouseState", user }), (state) => {
  const balance = listOf(JsonParts.at(state, "balances")).find((each) => JsonParts.at(each, "coin") === "USDC")
  return [Number(JsonParts.at(balance, "total")), Number(JsonParts.at(balance, "hold"))] as const
})

const perps = Effect.map(ask({ type: "clearinghouseState", user }), (state) => [
  Number(JsonParts.at(state, "marginSummary", "accountValue")),
  JsonParts.at(state, "withdrawable")
])

/** The sum of a member of the account's fills. */
const sumFills = (member: string) =>
  Effect.map(
    ask({ type: "userFills", user }),
    (fills) => listOf(fills).reduce((sum: number, fill) => sum + Number(JsonParts.at(fill, member)), 0)
  )

const atPrice = (price: number) =>
  Effect.gen(function*() {
    const { trading } = yield* SandboxState
    yield* trading.playPrices("ETH", [{ time: 0, price }])
    yield* TestClock.adjust("1 second")
  })

const buy = (size: string) => place(user, eth, "buy", size, "2010", { tif: "Ioc" })

describe("an account with portfolio margin", () => {
  /** An account with 1000 HYPE at 30 dollars, which lend 19 500 dollars, and 100 dollars. */
  const prepare = Effect.gen(function*() {
    const { trading } = yield* SandboxState
    yield* atPrice(2_000)
    yield* trading.playPrices("@107", [{ time: 0, price: 30 }])
    yield* trading.depositSpot(other, 150, "1000")
    yield* trading.depositSpot(other, 0, "100")
    const enable = act(other, "userPortfolioMargin", { ...chain, user: other, enabled: true, nonce: 1 })
    const threshold = "Portfolio margin requires account value of $10000 or total volume of $5000000."
    assert.strictEqual(yield* enable, threshold)
    yield* trading.setVolume(other, "5000000")
    assert.isUndefined(yield* enable)
    return trading
  })
  const balances = Effect.map(
    askAt({ type: "spotClearinghouseState", user: other }, "balances"),
    (rows) => listOf(rows).map((row) => Number(JsonParts.at(row, "total")))
  )

  it.effect("is margined by its HYPE, borrows dollars for losses and spot orders, and pays interest", () =>
    atStart(Effect.gen(function*() {
      const trading = yield* prepare
      yield* place(other, eth, "buy", "5", "2010", { tif: "Ioc" })
      yield* atPrice(1_900)
      yield* place(other, eth, "sell", "5", "1850", { tif: "Ioc", r: true })
      const [owed = 0] = yield* balances
      assert.isTrue(owed < -390 && owed > -450, String(owed))
      const bought = yield* place(other, hypeSpot, "buy", "100", "31", { tif: "Ioc" })
      assert.isDefined(JsonParts.at(bought, "filled"))
      assert.deepStrictEqual(
        yield* place(other, hypeSpot, "buy", "2000", "31", { tif: "Ioc" }),
        { error: "Insufficient spot balance asset=10107" }
      )
      const [before = 0, hype = 0] = yield* balances
      assert.isTrue(before < -3_300 && hype > 1_099, String([before, hype]))
      // neither the loan nor what backs it leaves the account
      const send = { ...chain, destination: user, time: 1 }
      const refused = [yield* act(other, "usdSend", { ...send, amount: "1" })]
      refused.push(yield* act(other, "spotSend", { ...send, token: "HYPE", amount: "1" }))
      refused.push(yield* act(other, "userPortfolioMargin", { ...chain, user: other, enabled: false, nonce: 1 }))
      assert.deepStrictEqual(refused, [
        "Insufficient balance for withdrawal.",
        "Insufficient balance for token transfer",
        "Abstraction transition not allowed"
      ])
      yield* trading.advance(3_600_000)
      assert.approximately((yield* balances)[0] ?? 0, before * (1 + 0.05 / 8_760), 0.0001)
      const state = yield* ask({ type: "spotClearinghouseState", user: other })
      assert.isTrue(JsonParts.at(state, "portfolioMarginEnabled"))
      assert.isBelow(Number(JsonParts.at(state, "portfolioMarginRatio")), 0.95)
      check((yield* venueNow).state)
    })))

  it.effect("is liquidated above a ratio of 0.95: its HYPE is taken over, a fifth at a time", () =>
    atStart(Effect.gen(function*() {
      const trading = yield* prepare
      yield* place(other, hypeSpot, "buy", "500", "31", { tif: "Ioc" })
      const [, held = 0] = yield* balances
      yield* trading.playPrices("@107", [{ time: 0, price: 12.7 }])
      yield* trading.advance(3_600_000)
      assert.closeTo((yield* balances)[1] ?? 0, held, 1e-6)
      yield* trading.playPrices("@107", [{ time: 0, price: 12.4 }])
      yield* trading.advance(3_600_000)
      const [owed = 0, left = 0] = yield* balances
      assert.isBelow(left, held)
      assert.isAbove(owed, -14_900)
      check((yield* venueNow).state)
    })))
})

describe("a unified account", () => {
  it.effect("has one balance of USDC, which backs perpetuals and pays their fees and losses", () =>
    atStart(Effect.gen(function*() {
      yield* atPrice(2_000)
      assert.isUndefined(yield* setMode("unifiedAccount"))
      assert.deepStrictEqual([yield* usdcOf, yield* perps], [[20_000, 0], [0, "0.0"]])
      // 20 000 dollars of margin, more than the perpetuals had
      yield* act(user, "updateLeverage", { asset: eth, isCross: true, leverage: 10 })
      yield* buy("80")
      const [total, hold] = yield* usdcOf
      assert.approximately(total, 20_000 - (yield* sumFills("fee")), 0.01)
      assert.approximately(hold, 16_000, 1)
      // the margin is not available for spot
      assert.deepStrictEqual(
        yield* place(user, hypeSpot, "buy", "300", yield* markOf("@107", 0.01)),
        { error: "Insufficient spot balance asset=10107" }
      )
      assert.strictEqual(yield* setMode("disabled"), "Abstraction transition not allowed")
      yield* atPrice(1_950)
      const [value] = yield* perps
      assert.isBelow(Number(value), -3_900)
      assert.approximately((yield* usdcOf)[0], total, 0.001)
      yield* place(user, eth, "sell", "80", "1900", { r: true, tif: "Ioc" })
      const closed = yield* sumFills("closedPnl")
      assert.isBelow(closed, -3_900)
      assert.approximately((yield* usdcOf)[0], 20_000 + closed - (yield* sumFills("fee")), 0.01)
      assert.deepStrictEqual(yield* perps, [0, "0.0"])
      assert.isUndefined(yield* setMode("disabled"))
    })))

  it.effect("moves nothing between spot and perpetuals, and sends from its one balance", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* setMode("unifiedAccount")
      assert.strictEqual(
        yield* act(user, "usdClassTransfer", { ...chain, amount: "1", toPerp: true, nonce: 1 }),
        disabled
      )
      const sent = { ...chain, sourceDex: "spot", destinationDex: "", token: "USDC", fromSubAccount: "", nonce: 1 }
      assert.strictEqual(yield* act(user, "sendAsset", { ...sent, destination: user, amount: "1" }), disabled)
      assert.isUndefined(yield* act(user, "usdSend", { ...chain, destination: other, amount: "15000", time: 1 }))
      yield* trading.depositUsd(user, "500")
      assert.deepStrictEqual(yield* usdcOf, [5_500, 0])
    })))

  it.effect("is liquidated when the balance does not cover the maintenance margin", () =>
    atStart(Effect.gen(function*() {
      yield* atPrice(2_000)
      yield* setMode("unifiedAccount")
      yield* act(user, "updateLeverage", { asset: eth, isCross: true, leverage: 20 })
      yield* buy("150")
      const [position] = listOf(yield* askAt({ type: "clearinghouseState", user }, "assetPositions"))
      const at = Number(JsonParts.at(position, "position", "liquidationPx"))
      // a loss of about 12 500 dollars leaves the maintenance margin
      assert.isTrue(at > 1_890 && at < 1_930, String(at))
      yield* atPrice(Math.ceil(at) + 1)
      assert.lengthOf(listOf(yield* askAt({ type: "clearinghouseState", user }, "assetPositions")), 1)
      yield* atPrice(Math.floor(at) - 1)
      assert.deepStrictEqual(yield* askAt({ type: "clearinghouseState", user }, "assetPositions"), [])
      assert.isAtLeast((yield* usdcOf)[0], 0)
    })))
})
