import { hyperliquid } from "ccxt"
import { afterAll, assert, beforeAll, beforeEach, describe, expect, it } from "vitest"
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

let ids = 0
const newId = () => `0x${String(ids += 1).padStart(32, "0")}`

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
  // here ccxt approves its builder fee, once: the venue's initial state lacks the approval
  await exchange.loadMarkets()
  await venue.control("snapshots", {})
})
afterAll(() => venue[Symbol.asyncDispose]())
beforeEach(async () => {
  await venue.control("reset", { snapshot: "1" })
  await venue.control("faults", { lostReplies: 0, lostRequests: 0, rateLimited: 0, rejectedLegs: 0 })
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

  /** All orders of the account, open or not, and the oids of its fills. */
  const seen = async () => {
    const orders = await exchange.fetchOrders(symbol)
    const trades = await exchange.fetchMyTrades(symbol)
    return {
      orders: orders.map(({ side, status }) => `${side} ${status}`).toSorted(),
      filled: new Set(trades.map(({ order }) => order)).size
    }
  }

  it.each([
    ["rests", 1900, "buy open", 0],
    ["is filled", 2200, "buy closed", 1]
  ])("places an order once whose reply is lost, and that %s", async (_, price, order, filled) => {
    await priceIs(2100)
    await venue.control("faults", { lostReplies: 1 })
    const id = newId()
    assert.strictEqual(await Bot.placeSafely(exchange, { symbol, amount: 0.1, price }, id), "was placed")
    assert.deepStrictEqual(await seen(), { orders: [order], filled })
    assert.deepStrictEqual((await exchange.fetchOrder(id, symbol)).clientOrderId, id)
  })

  it("places an order once that did not arrive, with the bytes that it signed first", async () => {
    await priceIs(2100)
    await venue.control("faults", { lostRequests: 1 })
    const order = { symbol, amount: 0.1, price: 2200 }
    const id = newId()
    for (const _ of "12") assert.strictEqual(await Bot.placeSafely(exchange, order, id), "unknown")
    assert.deepStrictEqual(await seen(), { orders: [], filled: 0 })
    await venue.control("faults", { lostRequests: 0 })
    assert.strictEqual(await Bot.placeSafely(exchange, order, id), "placed")
    assert.deepStrictEqual(await seen(), { orders: ["buy closed"], filled: 1 })
  })

  it("places each of a dozen orders once where half of the requests and replies are lost", async () => {
    await priceIs(2100)
    await venue.control("faults", { lostReplies: 0.5, lostRequests: 0.5 })
    exchange.options["maxRetriesOnFailure"] = 2
    const outcomes = new Set<Bot.Placed>()
    for (let at = 0; at < 12; at++) {
      const order = { symbol, amount: 0.01, price: at % 2 === 0 ? 1900 : 2200 }
      const id = newId()
      let outcome = await Bot.placeSafely(exchange, order, id)
      while (outcome === "unknown") outcome = await Bot.placeSafely(exchange, order, id)
      outcomes.add(outcome)
    }
    delete exchange.options["maxRetriesOnFailure"]
    assert.deepStrictEqual([...outcomes].toSorted(), ["placed", "was placed"])
    const orders = ["buy closed", "buy open"].flatMap((order) => Array.from({ length: 6 }, () => order))
    assert.deepStrictEqual(await seen(), { orders, filled: 6 })
  })

  it("says that an order is refused, also if the reply is lost", async () => {
    await priceIs(2100)
    await venue.control("faults", { rejectedLegs: 1 })
    const order = { symbol, amount: 0.1, price: 1900 }
    await expect(Bot.placeSafely(exchange, order, newId())).rejects.toThrow("Insufficient margin")
    await venue.control("faults", { lostReplies: 1 })
    assert.strictEqual(await Bot.placeSafely(exchange, order, newId()), "refused")
    assert.deepStrictEqual(await seen(), { orders: ["buy rejected", "buy rejected"], filled: 0 })
  })

  it.each(["lostReplies", "lostRequests"])("buys once and stops once under %s", async (fault) => {
    await priceIs(1990)
    await venue.control("faults", { [fault]: 1 })
    const first = await Bot.step(exchange, plan)
    assert.strictEqual(first, fault === "lostReplies" ? "bought" : "unknown")
    assert.strictEqual(await Bot.step(exchange, plan), fault === "lostReplies" ? "waits" : "unknown")
    await venue.control("faults", { [fault]: 0 })
    assert.strictEqual(await Bot.step(exchange, plan), fault === "lostReplies" ? "waits" : "bought")
    assert.strictEqual(await Bot.step(exchange, plan), "waits")
    assert.deepStrictEqual(await seen(), { orders: ["buy closed", "sell open"], filled: 1 })
  })
})
