import { hyperliquid } from "ccxt"
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import * as Bot from "../src/CcxtBot.ts"
import type { Sandbox } from "./sandbox.ts"
import { startSandbox } from "./sandbox.ts"

const symbol = "ETH/USDC:USDC"
const plan = { symbol, below: 2000, amount: 0.5, stop: 0.05 }

/** The account of every sandbox with 10000 USDC. Everybody has its key. */
const account = {
  walletAddress: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
  privateKey: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
}

let venue: Sandbox
let exchange: hyperliquid

const priceIs = (...prices: ReadonlyArray<number>) =>
  venue.control("prices", { coin: "ETH", points: prices.map((price, index) => ({ time: index * 1000, price })) })

beforeAll(async () => {
  venue = await startSandbox("--seed", "bot-test", "--clock", "2026-01-05T12:00:00Z")
  exchange = new hyperliquid({
    ...account,
    urls: { api: { public: venue.url, private: venue.url } },
    // nobody else is served: a test need not wait
    enableRateLimit: false
  })
  await exchange.loadMarkets()
})
afterAll(() => venue[Symbol.asyncDispose]())
beforeEach(async () => {
  await venue.control("reset", {})
  await venue.control("faults", { lostReplies: 0, rateLimited: 0, rejectedLegs: 0 })
})

describe("a ccxt bot", () => {
  it("buys the dip, and its stop closes the position when the price falls on", async () => {
    await priceIs(2100)
    assert.strictEqual(await Bot.step(exchange, plan), "waits")
    await priceIs(1990)
    assert.strictEqual(await Bot.step(exchange, plan), "bought")
    assert.strictEqual(await Bot.step(exchange, plan), "waits")
    await priceIs(1880)
    await venue.control("clock", { advance: 1000 })
    assert.deepStrictEqual(await exchange.fetchPositions([symbol]), [])
    // an order may take several prices of the book, a trade each
    const trades = await exchange.fetchMyTrades(symbol)
    const total = (side: string) =>
      trades.filter((trade) => trade.side === side).reduce((sum, { amount = 0 }) => sum + Math.round(amount * 1e4), 0)
    assert.deepStrictEqual([trades[0]?.side, total("buy"), total("sell")], ["buy", 5000, 5000])
  })

  it("slows down where the venue limits it", async () => {
    await venue.control("faults", { rateLimited: 1 })
    assert.strictEqual(await Bot.step(exchange, plan), "slowed down")
  })

  it("does not send an order twice whose reply is lost", async () => {
    await priceIs(2100)
    await venue.control("faults", { lostReplies: 1 })
    const order = { symbol, amount: 0.1, price: 1900 }
    assert.strictEqual(await Bot.placeSafely(exchange, order, `0x${"1".repeat(32)}`), "was placed")
    assert.strictEqual((await exchange.fetchOpenOrders(symbol)).length, 1)
  })
})
