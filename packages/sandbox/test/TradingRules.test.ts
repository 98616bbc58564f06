/** What an order has to obey, in the venue's words, and what becomes of orders, triggers, TWAPs, margin and transfers. */
import { assert, describe, it } from "@effect/vitest"
import { actionCatalog } from "@trigate/domain/actions/Action"
import type { Address } from "@trigate/domain/encoding/Encoding"
import { actionSchemas } from "@trigate/domain/unstable/actions/ActionSchemas"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as PricePaths from "@trigate/sandbox/unstable/venue/TradingControls"
import * as PriceTimeBook from "@trigate/sandbox/unstable/venue/TradingState"
import { playedTypes } from "@trigate/sandbox/unstable/venue/VenueExchange"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { act, ask, askAt, btc, eth, hypeSpot, listOf, markOf, oidOf, orderOf, place, sol, triggerAt } from "./trader.ts"
import { atStart } from "./venue.ts"

const user = keys.trader.address
const other = `0x${"2".repeat(40)}` as const
const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const

const statusOf = (oid: unknown, of: string = user) => askAt({ type: "orderStatus", user: of, oid }, "order", "status")
const valueOf = (of: string) => askAt({ type: "clearinghouseState", user: of }, "marginSummary", "accountValue")
const sizeOf = (of: string) => askAt({ type: "clearinghouseState", user: of }, "assetPositions", 0, "position", "szi")

describe("an order is refused", () => {
  it.effect("in the venue's words, leg by leg", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const below = yield* markOf("BTC", -0.05)
      const above = yield* markOf("BTC", 0.05)
      const cases: ReadonlyArray<readonly [order: object, words: string]> = [
        [orderOf(btc, "buy", "0.01", `${below}.55`), "Price must be divisible by tick size. asset=0"],
        [orderOf(eth, "buy", "1", "2000.51"), "Price must be divisible by tick size. asset=1"],
        [orderOf(btc, "buy", "0.01", "0"), "Order has invalid price."],
        [orderOf(btc, "buy", "0.000001", below), "Order has invalid size."],
        [orderOf(btc, "buy", "0", below), "Order has zero size."],
        [orderOf(btc, "buy", "0.0001", below), "Order must have minimum value of $10. asset=0"],
        [orderOf(btc, "buy", "100", below), "Insufficient margin to place order. asset=0"],
        [orderOf(btc, "buy", "0.01", "200000"), "Order price cannot be more than 80% away from the reference price"],
        [orderOf(btc, "sell", "0.01", above, { r: true }), "Reduce only order would increase position. asset=0"],
        [
          orderOf(btc, "buy", "0.01", below, { tif: "Ioc" }),
          "Order could not immediately match against any resting orders. asset=0"
        ],
        [
          orderOf(btc, "buy", "0.01", below, { tif: "FrontendMarket" }),
          "No liquidity available for market order. asset=0"
        ],
        [orderOf(btc, "sell", "0.01", below, { t: triggerAt("sl", above) }), "Invalid TP/SL price. asset=0"],
        [orderOf(hypeSpot, "sell", "1000", yield* markOf("@107")), "Insufficient spot balance asset=10107"],
        [
          orderOf(hypeSpot, "buy", "0.1", yield* markOf("@107")),
          "Order must have minimum value of 10 USDC. asset=10107"
        ],
        [orderOf(999, "buy", "1", below), "Unknown asset. asset=999"]
      ]
      const data = yield* act(user, "order", { orders: cases.map(([order]) => order), grouping: "na" })
      assert.deepStrictEqual(data, { statuses: cases.map(([, error]) => ({ error })) })
      const crossing = yield* place(user, btc, "buy", "0.01", above, { tif: "Alo" })
      assert.match(
        String(JsonParts.at(crossing, "error")),
        /^Post only order would have immediately matched, bbo was [0-9.]+@[0-9.]+\. asset=0$/u
      )
      assert.deepStrictEqual(yield* act(user, "cancel", { cancels: [{ a: btc, o: 1 }] }), {
        statuses: [{ error: "Order was never placed, already canceled, or filled. asset=0" }]
      })
      assert.strictEqual(
        yield* act(user, "modify", { oid: 1, order: orderOf(btc, "buy", "0.01", below) }),
        "Cannot modify canceled or filled order"
      )
      assert.deepStrictEqual(
        yield* act(user, "order", {
          orders: [orderOf(btc, "buy", "0.01", below, { t: triggerAt("tp", above) })],
          grouping: "normalTpsl"
        }),
        { statuses: [{ error: "Main order cannot be trigger order." }] }
      )
      assert.deepStrictEqual(
        yield* act(user, "order", {
          orders: [orderOf(btc, "buy", "0.01", below)],
          grouping: "na",
          builder: { b: other, f: 5 }
        }),
        { statuses: [{ error: "Builder fee has not been approved." }] }
      )
      // those that reach the book have an id and a status
      const history = yield* ask({ type: "historicalOrders", user })
      const statuses = new Set(listOf(history).map((row) => JsonParts.at(row, "status")))
      for (
        const status of [
          "minTradeNtlRejected",
          "perpMarginRejected",
          "oracleRejected",
          "reduceOnlyRejected",
          "iocCancelRejected",
          "badTriggerPxRejected",
          "insufficientSpotBalanceRejected",
          "badAloPxRejected"
        ]
      ) assert.isTrue(statuses.has(status), status)
      yield* trading.depositUsd(user, "10000000")
      const batch = Array.from({ length: 1_000 }, () => orderOf(btc, "buy", "0.001", below))
      yield* act(user, "order", { orders: batch, grouping: "na" })
      assert.deepStrictEqual(yield* place(user, btc, "buy", "0.001", below), { error: "Too many open orders. asset=0" })
    })))
})

describe("matching", () => {
  it.effect("is by price, then by time, and cancels the older order of one's own", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const makers = [1, 2, 3].map((index) => `0x${String(index).repeat(40)}` as const)
      for (const maker of makers) yield* trading.depositUsd(maker, "100000")
      // orders inside the spread come before the made ones
      const kPepe = 15
      const at = Number(yield* markOf("kPEPE"))
      const asks = yield* Effect.forEach(
        makers,
        (maker) => place(maker, kPepe, "sell", "5000", String(at))
      )
      assert.deepStrictEqual(asks.map((status) => oidOf(status) !== undefined), [true, true, true])
      const own = yield* place(user, kPepe, "sell", "2000", String(at))
      const taken = yield* place(user, kPepe, "buy", "12000", String(at), { tif: "Ioc" })
      assert.strictEqual(JsonParts.at(taken, "filled", "totalSz"), "12000.0")
      const left = yield* Effect.forEach(makers, (maker) => askAt({ type: "openOrders", user: maker }, 0, "sz"))
      assert.deepStrictEqual(left, [undefined, undefined, "3000.0"])
      // it was behind all others, so nothing reached it
      assert.strictEqual(yield* statusOf(oidOf(own)), "open")
      yield* place(user, kPepe, "buy", "4000", String(at), { tif: "Ioc" })
      assert.strictEqual(yield* statusOf(oidOf(own)), "selfTradeCanceled")
    })))

  it.effect("of an order that takes a whole side leaves a book with both sides, and its interest and volume count", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.depositUsd(user, "100000000")
      const contexts = Effect.map(
        askAt({ type: "metaAndAssetCtxs" }, 1, 0),
        (context) =>
          [Number(JsonParts.at(context, "openInterest")), Number(JsonParts.at(context, "dayBaseVlm"))] as const
      )
      const levelsOf = (side: number) =>
        Effect.map(
          askAt({ type: "l2Book", coin: "BTC" }, "levels", side),
          (levels) => listOf(levels).map((level) => Number(JsonParts.at(level, "px")))
        )
      const [before, bids, asks] = [yield* contexts, yield* levelsOf(0), yield* levelsOf(1)]
      assert.isAbove(before[0], 100)
      const filled = yield* place(user, btc, "buy", "500", yield* markOf("BTC", 0.05), { tif: "Ioc" })
      const size = Number(JsonParts.at(filled, "filled", "totalSz"))
      // the twenty levels of a side are worth about 14 million dollars
      assert.isAbove(size, 50)
      assert.isBelow(size, 500)
      const [after, left] = [yield* contexts, yield* levelsOf(1)]
      assert.deepStrictEqual([yield* levelsOf(0), left.length], [bids, 20])
      assert.isAbove(Math.min(...left), Math.max(...asks))
      assert.closeTo(after[0] - before[0], size, 1e-6)
      assert.closeTo(after[1] - before[1], size, 1e-6)
      const next = yield* place(user, btc, "buy", "2", yield* markOf("BTC", 0.05), { tif: "Ioc" })
      assert.strictEqual(JsonParts.at(next, "filled", "totalSz"), "2.0")
    })))

  it.effect("ends none of the account's own orders that the market order does not reach", () =>
    atStart(Effect.gen(function*() {
      const own = yield* place(user, eth, "sell", "0.3", yield* markOf("ETH", 0.01))
      const bought = yield* place(user, eth, "buy", "0.05", yield* markOf("ETH", 0.05), { tif: "Ioc" })
      assert.strictEqual(JsonParts.at(bought, "filled", "totalSz"), "0.05")
      assert.strictEqual(yield* statusOf(oidOf(own)), "open")
    })))

  it.effect.prop(
    "keeps the order of a naive book",
    {
      run: Schema.Array(Schema.Struct({ px: Schema.Natural.check(Schema.isLessThan(9)), remove: Schema.Boolean })),
      isBid: Schema.Boolean
    },
    ({ isBid, run }) =>
      Effect.sync(() => {
        const side = PriceTimeBook.makeBook<PriceTimeBook.Resting>(isBid)
        let naive: Array<PriceTimeBook.Resting> = []
        for (const [oid, { px, remove }] of run.entries()) {
          const gone = naive[px]
          if (remove && gone !== undefined) {
            assert.isTrue(PriceTimeBook.remove(side, gone))
            naive = naive.filter((each) => each !== gone)
          } else {
            const order = { oid, px: BigInt(px), timestamp: 0 }
            PriceTimeBook.add(side, order)
            naive = [...naive, order].toSorted((a, b) => Number(isBid ? b.px - a.px : a.px - b.px) || a.oid - b.oid)
          }
          assert.deepStrictEqual([...PriceTimeBook.iterateOrders(side)], naive)
          assert.strictEqual(PriceTimeBook.best(side), naive[0])
        }
      })
  )
})

describe("triggers", () => {
  it.effect("a stop closes the position when the mark price reaches it, and its sibling ends", () =>
    atStart(Effect.gen(function*() {
      const p = yield* markOf("ETH", 0.01)
      const data = yield* act(user, "order", {
        orders: [
          orderOf(eth, "buy", "1", p, { tif: "Ioc" }),
          orderOf(eth, "sell", "1", yield* markOf("ETH", -0.1), {
            r: true,
            t: triggerAt("sl", yield* markOf("ETH", -0.03))
          }),
          orderOf(eth, "sell", "1", yield* markOf("ETH", 0.01), {
            r: true,
            t: triggerAt("tp", yield* markOf("ETH", 0.03))
          })
        ],
        grouping: "normalTpsl"
      })
      assert.deepStrictEqual(listOf(JsonParts.at(data, "statuses")).slice(1), [
        "waitingForTrigger",
        "waitingForTrigger"
      ])
      const oids = listOf(yield* ask({ type: "openOrders", user })).map((order) => JsonParts.at(order, "oid"))
      assert.strictEqual(oids.length, 2)
      assert.strictEqual(yield* sizeOf(user), "1.0")
      for (let day = 0; day < 20 && (yield* sizeOf(user)) !== undefined; day++) yield* TestClock.adjust("1 day")
      assert.isUndefined(yield* sizeOf(user))
      const statuses = yield* Effect.forEach(oids, (oid) => statusOf(oid))
      assert.deepStrictEqual(statuses.map(String).toSorted(), ["filled", "siblingFilledCanceled"])
      const [closing] = listOf(yield* ask({ type: "userFills", user }))
      assert.strictEqual(JsonParts.at(closing, "dir"), "Close Long")
    })))

  it.effect("those of an order that never fills wait in it, and end with it", () =>
    atStart(Effect.gen(function*() {
      const data = yield* act(user, "order", {
        orders: [
          orderOf(eth, "buy", "1", yield* markOf("ETH", -0.2)),
          orderOf(eth, "sell", "1", yield* markOf("ETH", -0.4), {
            r: true,
            t: triggerAt("sl", yield* markOf("ETH", -0.3))
          })
        ],
        grouping: "normalTpsl"
      })
      const oid = oidOf(JsonParts.at(data, "statuses", 0))
      assert.strictEqual(JsonParts.at(data, "statuses", 1), "waitingForFill")
      const open = yield* ask({ type: "frontendOpenOrders", user })
      assert.deepStrictEqual(
        [JsonParts.at(open, 0, "oid"), JsonParts.at(open, 0, "children", 0, "orderType"), JsonParts.at(open, 1)],
        [oid, "Stop Market", undefined]
      )
      yield* act(user, "cancel", { cancels: [{ a: eth, o: oid }] })
      assert.strictEqual(yield* statusOf(JsonParts.at(open, 0, "children", 0, "oid")), "canceled")
    })))

  it.effect("those without a trigger, with a wrong price or of an unknown asset are refused, leg by leg", () =>
    atStart(Effect.gen(function*() {
      const [entry, stop] = [yield* markOf("ETH", -0.2), yield* markOf("ETH", -0.3)]
      const t = triggerAt("sl", stop)
      const data = yield* act(user, "order", {
        orders: [
          orderOf(eth, "buy", "1", entry),
          orderOf(eth, "sell", "1", stop, { r: true }),
          orderOf(eth, "sell", "1", "0", { r: true, t }),
          orderOf(999, "sell", "1", stop, { r: true, t }),
          orderOf(eth, "sell", "1", stop, { r: true, t })
        ],
        grouping: "normalTpsl"
      })
      assert.deepStrictEqual(listOf(JsonParts.at(data, "statuses")).slice(1), [
        { error: "Invalid TP/SL price. asset=1" },
        { error: "Order has invalid price." },
        { error: "Unknown asset. asset=999" },
        "waitingForFill"
      ])
      assert.lengthOf(listOf(yield* askAt({ type: "frontendOpenOrders", user }, 0, "children")), 1)
    })))

  /** Plays a constant price of ETH, at which the venue then fills and triggers orders. */
  const playEth = (price: number) =>
    Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.playPrices("ETH", [{ time: 0, price }])
      yield* TestClock.adjust("1 second")
    })
  const tp = (px: string, rest: object = {}) =>
    orderOf(eth, "sell", "1", px, { r: true, t: triggerAt("tp", px), ...rest })
  const sl = (px: string, rest: object = {}) =>
    orderOf(eth, "sell", "1", px, { r: true, t: triggerAt("sl", px), ...rest })
  const bracket = (px: string, ...children: ReadonlyArray<object>) =>
    Effect.map(
      act(user, "order", { orders: [orderOf(eth, "buy", "1", px), ...children], grouping: "normalTpsl" }),
      (data) => oidOf(JsonParts.at(data, "statuses", 0))
    )
  const modify = (oid: unknown, order: object) =>
    Effect.map(
      act(user, "batchModify", { modifies: [{ oid, order }], a: true }),
      (data) => JsonParts.at(data, "statuses", 0)
    )
  const triggerPrices = Effect.map(
    ask({ type: "frontendOpenOrders", user }),
    (open) => listOf(open).map((order) => JsonParts.at(order, "triggerPx"))
  )
  const childPrices = Effect.map(
    askAt({ type: "frontendOpenOrders", user }, 0, "children"),
    (children) => listOf(children).map((order) => JsonParts.at(order, "triggerPx"))
  )
  const cloids = ["0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "0xbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"] as const

  it.effect("one that is canceled before the order fills stays canceled, and is never executed", () =>
    atStart(Effect.gen(function*() {
      const [, cloid] = cloids
      yield* playEth(2_000)
      yield* bracket("1990", tp("2200"), sl("1800", { c: cloid }))
      assert.deepStrictEqual(yield* childPrices, ["2200.0", "1800.0"])
      assert.deepStrictEqual(yield* act(user, "cancelByCloid", { cancels: [{ asset: eth, cloid }] }), {
        statuses: ["success"]
      })
      assert.deepStrictEqual(yield* childPrices, ["2200.0"])
      yield* playEth(1_985)
      assert.deepStrictEqual(yield* triggerPrices, ["2200.0"])
      yield* playEth(1_790)
      assert.deepStrictEqual([yield* statusOf(cloid), yield* sizeOf(user)], ["canceled", "1.0"])
    })))

  it.effect("one that is modified before the order fills is replaced, and waits in the order", () =>
    atStart(Effect.gen(function*() {
      const [, cloid] = cloids
      yield* playEth(2_000)
      yield* bracket("1990", tp("2200"), sl("1800", { c: cloid }))
      assert.deepStrictEqual(yield* modify(cloid, orderOf(eth, "sell", "1", "1700", { r: true })), {
        error: "Invalid TP/SL price. asset=1"
      })
      assert.deepStrictEqual(yield* childPrices, ["2200.0", "1800.0"])
      assert.strictEqual(yield* modify(cloid, sl("1700", { c: cloid })), "waitingForFill")
      assert.deepStrictEqual([yield* triggerPrices, yield* childPrices], [["0.0"], ["2200.0", "1700.0"]])
      yield* playEth(1_985)
      assert.deepStrictEqual(yield* triggerPrices, ["1700.0", "2200.0"])
      yield* playEth(1_790)
      assert.strictEqual(yield* sizeOf(user), "1.0")
      yield* playEth(1_690)
      assert.deepStrictEqual([yield* sizeOf(user), yield* triggerPrices], [undefined, []])
    })))

  it.effect("those of an order that fills because it is modified are open; of one that is refused they end", () =>
    atStart(Effect.gen(function*() {
      const [target, stop] = cloids
      yield* playEth(2_000)
      const oid = yield* bracket("1900", tp("2200", { c: target }), sl("1800", { c: stop }))
      assert.deepStrictEqual(yield* modify(oid, tp("2300")), { error: "Main order cannot be trigger order." })
      const resting = oidOf(yield* modify(oid, orderOf(eth, "buy", "1", "1910")))
      assert.deepStrictEqual(yield* childPrices, ["2200.0", "1800.0"])
      const filled = yield* modify(resting, orderOf(eth, "buy", "1", "2010"))
      assert.strictEqual(JsonParts.at(filled, "filled", "totalSz"), "1.0")
      assert.deepStrictEqual(yield* triggerPrices, ["1800.0", "2200.0"])
      yield* playEth(1_790)
      assert.deepStrictEqual(
        [yield* sizeOf(user), yield* statusOf(stop), yield* statusOf(target)],
        [undefined, "filled", "siblingFilledCanceled"]
      )
      const other = yield* bracket("1700", sl("1600", { c: stop }))
      assert.deepStrictEqual(yield* modify(other, orderOf(eth, "buy", "1000", "1700")), {
        error: "Error placing new order during modify: Insufficient margin to place order. asset=1"
      })
      assert.deepStrictEqual([yield* triggerPrices, yield* statusOf(stop)], [[], "canceled"])
    })))

  it.effect("the sibling of one that is modified ends when the new one is filled", () =>
    atStart(Effect.gen(function*() {
      const [target, stop] = cloids
      yield* playEth(2_000)
      yield* bracket("2010", tp("2200", { c: target }), sl("1800", { c: stop }))
      // the position remains, so that only the siblings end each other
      yield* place(user, eth, "buy", "1", "2010", { tif: "Ioc" })
      assert.isNumber(oidOf(yield* modify(stop, sl("1850", { c: stop }))))
      assert.isNumber(oidOf(yield* modify(target, tp("2100", { c: target }))))
      yield* playEth(2_150)
      assert.deepStrictEqual(
        [yield* sizeOf(user), yield* statusOf(target), yield* statusOf(stop)],
        ["1.0", "filled", "siblingFilledCanceled"]
      )
    })))
})

describe("time", () => {
  it.effect("fills a TWAP order slice by slice, and stops when it is canceled", () =>
    atStart(Effect.gen(function*() {
      const twap = { a: eth, b: true, s: "2", r: false, m: 10, t: false }
      assert.deepStrictEqual(yield* act(user, "twapOrder", { twap: { ...twap, m: 4 } }), {
        status: { error: "Invalid TWAP duration: 4 min(s)" }
      })
      assert.deepStrictEqual(yield* act(user, "twapOrder", { twap: { ...twap, s: "0.02" } }), {
        status: { error: "TWAP order value too small. Min is $100, which is $10 per minute." }
      })
      const running = yield* act(user, "twapOrder", { twap })
      const twapId = JsonParts.at(running, "status", "running", "twapId")
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual(yield* sizeOf(user), "1.1")
      assert.deepStrictEqual(yield* act(user, "twapCancel", { a: eth, t: twapId }), { status: "success" })
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(yield* sizeOf(user), "1.1")
      assert.strictEqual(yield* askAt({ type: "twapHistory", user }, 0, "status", "status"), "terminated")
      assert.deepStrictEqual(yield* ask({ type: "userFills", user }), [])
      assert.strictEqual(yield* askAt({ type: "userTwapSliceFills", user }, 0, "twapId"), twapId)
    })))

  it.effect("pays funding each hour, and cancels when it was told to", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.setPosition(user, "ETH", "-2")
      yield* place(user, btc, "buy", "0.01", yield* markOf("BTC", -0.5))
      assert.strictEqual(
        yield* act(user, "scheduleCancel", { time: 1 }),
        "Scheduled cancel time too early, must be at least 5 seconds from now."
      )
      const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
      assert.isUndefined(yield* act(user, "scheduleCancel", { time: now + 60_000 }))
      yield* TestClock.adjust("30 minutes")
      assert.deepStrictEqual(yield* ask({ type: "openOrders", user }), [])
      assert.strictEqual(yield* askAt({ type: "historicalOrders", user }, 0, "status"), "scheduledCancel")
      const funding = yield* ask({ type: "userFunding", user, startTime: 0 })
      const paid = JsonParts.at(funding, 0, "delta")
      assert.deepStrictEqual([listOf(funding).length, JsonParts.at(paid, "coin"), JsonParts.at(paid, "szi")], [
        1,
        "ETH",
        "-2.0"
      ])
      assert.match(String(JsonParts.at(paid, "usdc")), /^0\.0[67][0-9]+$/u)
    })))

  it.effect("liquidates an account below its maintenance margin, and its orders with it", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.depositUsd(other, "180")
      yield* trading.setPosition(other, "ETH", "1")
      yield* place(other, btc, "buy", "0.0005", yield* markOf("BTC", -0.6))
      yield* trading.playPrices("ETH", [{ time: 0, price: Number(yield* markOf("ETH", -0.05)) }])
      yield* TestClock.adjust("1 second")
      assert.isUndefined(yield* sizeOf(other))
      assert.isBelow(Number(yield* valueOf(other)), 100)
      const orders = listOf(yield* ask({ type: "historicalOrders", user: other }))
      assert.include(orders.map((order) => JsonParts.at(order, "status")), "liquidatedCanceled")
      const fill = yield* askAt({ type: "userFills", user: other }, 0)
      assert.strictEqual(JsonParts.at(fill, "liquidation", "liquidatedUser"), other)
      const ledger = listOf(yield* ask({ type: "userNonFundingLedgerUpdates", user: other, startTime: 0 }))
      assert.include(ledger.map((entry) => JsonParts.at(entry, "delta", "type")), "liquidation")
    })))

  it.effect("reports a liquidation once something of the position is closed", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const liquidations = Effect.map(
        ask({ type: "userNonFundingLedgerUpdates", user: other, startTime: 0 }),
        (ledger) => listOf(ledger).filter((entry) => JsonParts.at(entry, "delta", "type") === "liquidation").length
      )
      yield* trading.depositUsd(other, "180")
      yield* trading.setPosition(other, "ETH", "1")
      yield* trading.setBook("ETH", { bids: [], asks: [] })
      // what is left is 0.85 of the maintenance margin, 2 % of the position: more than two thirds, so no takeover
      const price = Math.round((Number(yield* markOf("ETH")) - 180) / (1 - 0.85 * 0.02))
      yield* trading.playPrices("ETH", [{ time: 0, price }])
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual([yield* sizeOf(other), yield* liquidations], ["1.0", 0])
      yield* trading.setBook("ETH", undefined)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([yield* sizeOf(other), yield* liquidations], [undefined, 1])
    })))
})

describe("money", () => {
  it.effect("moves between accounts, balances, dexes and sub-accounts, and never twice", () =>
    atStart(Effect.gen(function*() {
      assert.isUndefined(yield* act(user, "usdSend", { ...chain, destination: other, amount: "100.5", time: 1 }))
      assert.deepStrictEqual([yield* valueOf(user), yield* valueOf(other)], ["9899.5", "100.5"])
      assert.strictEqual(
        yield* act(user, "usdSend", { ...chain, destination: other, amount: "9899.500001", time: 1 }),
        "Insufficient balance for withdrawal."
      )
      yield* act(user, "usdClassTransfer", { ...chain, amount: "99.5", toPerp: false, nonce: 1 })
      yield* act(user, "sendAsset", {
        ...chain,
        destination: user,
        sourceDex: "",
        destinationDex: "xyz",
        token: "USDC",
        amount: "300",
        fromSubAccount: "",
        nonce: 1
      })
      assert.strictEqual(yield* askAt({ type: "clearinghouseState", user, dex: "xyz" }, "withdrawable"), "300.0")
      assert.strictEqual(yield* askAt({ type: "spotClearinghouseState", user }, "balances", 0, "total"), "10099.5")
      const sub = yield* act(user, "createSubAccount", { name: "two" })
      yield* act(user, "subAccountTransfer", { subAccountUser: sub, isDeposit: true, usd: 25_000_000 })
      assert.strictEqual(yield* valueOf(String(sub)), "25.0")
      assert.deepStrictEqual(yield* ask({ type: "userRole", user: sub }), {
        role: "subAccount",
        data: { master: user }
      })
      assert.strictEqual(yield* askAt({ type: "subAccounts", user }, 0, "name"), "two")
      yield* act(user, "withdraw3", { ...chain, destination: user, amount: "10", time: 1 })
      assert.strictEqual(yield* valueOf(user), "9465.0")
      const ledger = listOf(yield* ask({ type: "userNonFundingLedgerUpdates", user, startTime: 0 }))
      assert.deepStrictEqual(ledger.map((entry) => JsonParts.at(entry, "delta", "type")), [
        "internalTransfer",
        "accountClassTransfer",
        "send",
        "subAccountTransfer",
        "withdraw"
      ])
    })))

  it.effect("in a vault belongs to its depositors by their shares", () =>
    atStart(Effect.gen(function*() {
      yield* act(user, "usdSend", { ...chain, destination: other, amount: "1000", time: 1 })
      const vaultAddress = yield* act(user, "createVault", {
        name: "v",
        description: "",
        initialUsd: 300_000_000,
        nonce: 1
      })
      assert.strictEqual(
        yield* act(other, "vaultTransfer", { vaultAddress, isDeposit: true, usd: 1_000_000 }),
        "Vault deposits must be at least $5."
      )
      assert.isUndefined(yield* act(other, "vaultTransfer", { vaultAddress, isDeposit: true, usd: 100_000_000 }))
      assert.strictEqual(yield* askAt({ type: "userVaultEquities", user: other }, 0, "equity"), "100.0")
      assert.strictEqual(
        yield* act(other, "vaultTransfer", { vaultAddress, isDeposit: false, usd: 1_000_000 }),
        "Cannot withdraw during lockup period after depositing."
      )
      yield* TestClock.adjust("2 days")
      assert.isUndefined(yield* act(other, "vaultTransfer", { vaultAddress, isDeposit: false, usd: 100_000_000 }))
      assert.strictEqual(yield* valueOf(other), "1000.0")
      assert.strictEqual(
        yield* act(other, "vaultTransfer", { vaultAddress, isDeposit: false, usd: 1 }),
        "Cannot withdraw with zero balance in vault."
      )
    })))

  it.effect("in a vault is distributed in full or not at all; all of it closes the vault, and the leader keeps 5 %", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.playPrices("ETH", [{ time: 0, price: 2_000 }])
      yield* trading.depositUsd(other, "1000")
      const created = { name: "v", description: "", initialUsd: 100_000_000, nonce: 1 }
      const vaultAddress = `0x${String(yield* act(user, "createVault", created)).slice(2)}` as const
      const transfer = (of: Address, isDeposit: boolean, usd: number) =>
        act(of, "vaultTransfer", { vaultAddress, isDeposit, usd: usd * 1_000_000 })
      const distribute = (usd: number) => act(user, "vaultDistribute", { vaultAddress, usd: usd * 1_000_000 })
      const values = Effect.all([valueOf(user), valueOf(other), valueOf(vaultAddress)])
      assert.isUndefined(yield* transfer(other, true, 500))
      yield* trading.setPosition(vaultAddress, "ETH", "2", "2000")
      // 200 of the 600 dollars are the margin of the position
      assert.deepStrictEqual(yield* values, ["9900.0", "500.0", "600.0"])
      for (const usd of [550, 0]) assert.strictEqual(yield* distribute(usd), "Insufficient balance for withdrawal.")
      assert.deepStrictEqual(yield* values, ["9900.0", "500.0", "600.0"])
      assert.isUndefined(yield* distribute(150))
      assert.deepStrictEqual(yield* values, ["9925.0", "625.0", "450.0"])
      yield* trading.setPosition(vaultAddress, "ETH", "0", "2000")
      yield* TestClock.adjust("2 days")
      assert.strictEqual(yield* transfer(user, false, 70), "Withdrawal causes leader share to drop below 5%.")
      assert.isUndefined(yield* transfer(user, false, 30))
      assert.deepStrictEqual(yield* values, ["9955.0", "625.0", "420.0"])
      assert.isUndefined(yield* distribute(0))
      assert.deepStrictEqual(yield* values, ["10000.0", "1000.0", "0.0"])
      assert.deepStrictEqual(yield* ask({ type: "userVaultEquities", user: other }), [])
      assert.strictEqual(yield* transfer(other, true, 500), "Vault is not accepting deposits")
      assert.strictEqual(yield* distribute(0), "Cannot withdraw with zero balance in vault.")
      // a vault that has a value but no depositor: the first one owns all of it
      yield* act(other, "usdSend", { ...chain, destination: vaultAddress, amount: "10", time: 1 })
      yield* act(user, "vaultModify", { vaultAddress, allowDeposits: true, alwaysCloseOnWithdraw: null })
      assert.isUndefined(yield* transfer(user, true, 100))
      assert.strictEqual(yield* askAt({ type: "userVaultEquities", user }, 0, "equity"), "110.0")
    })))

  it.effect("pays fees by tier, referrer and builder", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.depositUsd(other, "1000")
      yield* trading.setVolume(other, "10000")
      assert.isUndefined(yield* act(other, "registerReferrer", { code: "REF" }))
      assert.isUndefined(yield* act(user, "setReferrer", { code: "REF" }))
      assert.strictEqual(yield* act(user, "setReferrer", { code: "REF" }), "Referrer already set")
      assert.isUndefined(
        yield* act(user, "approveBuilderFee", { ...chain, builder: other, maxFeeRate: "0.01%", nonce: 1 })
      )
      assert.strictEqual(yield* ask({ type: "maxBuilderFee", user, builder: other }), 10)
      const data = yield* act(user, "order", {
        orders: [orderOf(btc, "buy", "0.001", yield* markOf("BTC", 0.01), { tif: "Ioc" })],
        grouping: "na",
        builder: { b: other, f: 10 }
      })
      const px = BigInt(Number(JsonParts.at(data, "statuses", 0, "filled", "avgPx")) * 10)
      const notional = px * 100n
      const fee = notional * 45_000n / 100_000_000n * 96n / 100n
      const share = notional * 10n / 100_000n
      const fill = yield* askAt({ type: "userFills", user }, 0)
      assert.deepStrictEqual(
        [JsonParts.at(fill, "fee"), JsonParts.at(fill, "builderFee")].map((text) =>
          BigInt(Math.round(Number(text) * 1e6))
        ),
        [fee + share, share]
      )
      const rewards = Effect.map(ask({ type: "referral", user: other }), (referral) =>
        ["unclaimedRewards", "builderRewards", "claimedRewards"].map((name) =>
          BigInt(Math.round(Number(JsonParts.at(referral, name)) * 1e6))
        ))
      assert.deepStrictEqual(yield* rewards, [fee / 10n, share, 0n])
      assert.isUndefined(yield* act(other, "claimRewards"))
      assert.deepStrictEqual(yield* rewards, [0n, 0n, share + fee / 10n])
      assert.strictEqual(yield* act(other, "claimRewards"), "No rewards to claim")
      assert.strictEqual(
        BigInt(Math.round(Number(yield* valueOf(other)) * 1e6)) - 1_000_000_000n,
        share + fee / 10n
      )
    })))
})

describe("margin", () => {
  it.effect("is cross or isolated, within the bounds of leverage", () =>
    atStart(Effect.gen(function*() {
      const leverage = (isCross: boolean, value: number) =>
        act(user, "updateLeverage", { asset: eth, isCross, leverage: value })
      assert.strictEqual(yield* leverage(true, 26), "Invalid leverage value")
      assert.isUndefined(yield* leverage(false, 10))
      yield* place(user, eth, "buy", "2", yield* markOf("ETH", 0.01), { tif: "Ioc" })
      assert.strictEqual(yield* leverage(true, 10), "Cannot switch leverage type with open position.")
      const position = () => askAt({ type: "clearinghouseState", user }, "assetPositions", 0, "position")
      assert.deepInclude(JsonParts.at(yield* position(), "leverage"), { type: "isolated", value: 10 })
      const before = Number(JsonParts.at(yield* position(), "marginUsed"))
      assert.isUndefined(yield* act(user, "updateIsolatedMargin", { asset: eth, isBuy: true, ntli: 50_000_000 }))
      assert.approximately(Number(JsonParts.at(yield* position(), "marginUsed")), before + 50, 1e-6)
      assert.strictEqual(
        yield* act(user, "updateIsolatedMargin", { asset: eth, isBuy: true, ntli: -500_000_000 }),
        "Position does not have sufficient margin for reduction."
      )
      assert.strictEqual(
        yield* act(user, "updateIsolatedMargin", { asset: btc, isBuy: true, ntli: 1 }),
        "Cannot update margin for empty position."
      )
      assert.strictEqual(
        yield* leverage(false, 1),
        "Isolated position does not have sufficient margin available to decrease leverage. To decrease leverage, add margin " +
          "to the position."
      )
    })))

  it.effect("can be withdrawn down to a tenth of the positions' value, and traded down to the initial margin", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.playPrices("ETH", [{ time: 0, price: 2_000 }])
      yield* trading.setPosition(user, "ETH", "30", "2000")
      const amounts = Effect.all([
        askAt({ type: "clearinghouseState", user }, "withdrawable"),
        askAt({ type: "activeAssetData", user, coin: "ETH" }, "availableToTrade", 0)
      ])
      // the position is worth 60 000 dollars, with an initial margin of 3000
      assert.deepStrictEqual(yield* amounts, ["4000.0", "7000.0"])
      const toSpot = (amount: string) => act(user, "usdClassTransfer", { ...chain, amount, toPerp: false, nonce: 1 })
      assert.strictEqual(yield* toSpot("4000.000001"), "Insufficient balance for withdrawal.")
      assert.isUndefined(yield* toSpot("4000"))
      assert.deepStrictEqual(yield* amounts, ["0.0", "3000.0"])
      yield* trading.depositUsd(user, "7000")
      yield* act(user, "updateLeverage", { asset: eth, isCross: true, leverage: 5 })
      assert.deepStrictEqual(yield* amounts, ["1000.0", "1000.0"])
    })))
})

describe("strict isolation", () => {
  it.effect("takes margin up to a leverage, and gives none back", () =>
    atStart(Effect.gen(function*() {
      const { info, trading } = yield* SandboxState
      const { markets } = yield* Ref.get(info.state)
      for (const coin of ["ETH", "SOL"]) {
        const market = markets.get(coin) ?? assert.fail(coin)
        yield* info.listCoin({ ...market, marginMode: "strictIsolated" })
      }
      yield* trading.playPrices("ETH", [{ time: 0, price: 2_000 }])
      yield* trading.setPosition(user, "ETH", "-1", "2000")
      const topUp = (asset: number, leverage: string) => act(user, "topUpIsolatedOnlyMargin", { asset, leverage })
      const money = Effect.gen(function*() {
        const state = yield* ask({ type: "clearinghouseState", user })
        return [
          JsonParts.at(state, "assetPositions", 0, "position", "marginUsed"),
          JsonParts.at(state, "withdrawable"),
          JsonParts.at(state, "marginSummary", "accountValue")
        ]
      })
      assert.deepStrictEqual(yield* money, ["100.0", "9900.0", "10000.0"])
      const refusals = [
        [eth, "20", "Update to isolated margin cannot be zero."],
        [eth, "25", "Update to isolated margin cannot be zero."],
        [eth, "0", "Invalid leverage value"],
        [eth, "0.00001", "Invalid leverage value"],
        // 10 526 dollars, and 100 are there already
        [eth, "0.19", "Account does not have sufficient margin available for increase."],
        [btc, "5", "Asset not strict isolated"],
        [sol, "5", "Cannot update margin for empty position."],
        [999, "5", "Unknown asset. asset=999"]
      ] as const
      for (const [asset, leverage, words] of refusals) {
        assert.strictEqual(yield* topUp(asset, leverage), words, `${asset} at ${leverage}`)
      }
      assert.deepStrictEqual(yield* money, ["100.0", "9900.0", "10000.0"])
      assert.isUndefined(yield* topUp(eth, "6.4"))
      assert.deepStrictEqual(yield* money, ["312.5", "9687.5", "10000.0"])
      assert.strictEqual(
        yield* act(user, "updateIsolatedMargin", { asset: eth, isBuy: false, ntli: -1 }),
        "Cannot remove isolated margin for this asset. To remove margin, reduce the position."
      )
      // the margin follows the price: 100 dollars less after a rise by 100
      yield* trading.playPrices("ETH", [{ time: 0, price: 2_100 }])
      assert.deepStrictEqual(yield* money, ["212.5", "9687.5", "9900.0"])
      assert.isUndefined(yield* topUp(eth, "0.3"))
      assert.deepStrictEqual(yield* money, ["7000.0", "2900.0", "9900.0"])
    })))
})

describe("prices that are played", () => {
  it.effect("move books and marks at their speed, fill and trigger orders, and a snapshot takes trading back", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const bar = { t: 0, T: 3_599_999, o: "2000", h: "2200", l: "1900", c: "2100" }
      yield* trading.playPrices("ETH", PricePaths.pricePoints([bar]), 60)
      assert.strictEqual(yield* markOf("ETH"), "2000")
      const snapshot = yield* trading.snapshot
      const oid = oidOf(yield* place(user, eth, "buy", "0.1", "1950"))
      yield* TestClock.adjust("9 seconds")
      assert.strictEqual(yield* statusOf(oid), "open")
      yield* TestClock.adjust("16 seconds")
      assert.strictEqual(yield* statusOf(oid), "filled")
      const stop = oidOf(yield* place(user, eth, "sell", "0.1", "1500", { r: true, t: triggerAt("tp", "2150") }))
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(yield* statusOf(stop), "filled")
      yield* TestClock.adjust("15 seconds")
      assert.strictEqual(yield* markOf("ETH"), "2100")
      yield* trading.restore(snapshot)
      assert.isUndefined(yield* statusOf(oid))
      assert.strictEqual(yield* valueOf(user), "10000.0")
    })))
})

describe("a trailing stop", () => {
  /** Plays a constant price of ETH. */
  const playEth = (price: number) =>
    Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.playPrices("ETH", [{ time: 0, price }])
      yield* TestClock.adjust("1 second")
    })
  const stop = { asset: eth, isBuy: false, sz: "1", reduceOnly: true, activationPx: null }
  const placeStop = (members: object) =>
    Effect.map(act(user, "trailingStop", { ...stop, ...members }), (data) => JsonParts.at(data, "statuses", 0) ?? data)
  const listed = Effect.map(
    askAt({ type: "frontendOpenOrders", user }, 0),
    (order) => [JsonParts.at(order, "orderType"), JsonParts.at(order, "triggerPx")]
  )

  it.effect("follows the price up, and sells when it falls by the retracement", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* playEth(2_000)
      yield* trading.setPosition(user, "ETH", "1")
      const oid = oidOf(yield* placeStop({ retracement: { pct: "1.5000%" } }))
      assert.deepStrictEqual(yield* listed, ["Trailing Stop Market", "1970.0"])
      yield* playEth(2_200)
      assert.deepStrictEqual(yield* listed, ["Trailing Stop Market", "2167.0"])
      yield* playEth(2_168)
      assert.deepStrictEqual([yield* statusOf(oid), yield* sizeOf(user)], ["open", "1.0"])
      yield* playEth(2_166)
      assert.deepStrictEqual([yield* statusOf(oid), yield* sizeOf(user)], ["filled", undefined])
    })))

  it.effect("starts at its activation price, and has valid members", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* playEth(2_000)
      yield* trading.setPosition(user, "ETH", "1")
      const oid = oidOf(yield* placeStop({ retracement: { px: "10" }, activationPx: "2100" }))
      yield* playEth(1_900)
      assert.strictEqual(yield* statusOf(oid), "open")
      yield* playEth(2_110)
      assert.deepStrictEqual(yield* listed, ["Trailing Stop Market", "2100.0"])
      yield* playEth(2_099)
      assert.deepStrictEqual([yield* statusOf(oid), yield* sizeOf(user)], ["filled", undefined])
      assert.deepStrictEqual(
        [
          yield* placeStop({ retracement: { px: "0" } }),
          yield* placeStop({ retracement: { pct: "100.0000%" } }),
          yield* placeStop({ retracement: { px: "0.001" } }),
          yield* placeStop({ retracement: { px: "1" }, sz: "0" })
        ].map((status) => JsonParts.at(status, "error")),
        [
          "Invalid TP/SL price. asset=1",
          "Invalid TP/SL price. asset=1",
          "Price must be divisible by tick size. asset=1",
          "Order has zero size."
        ]
      )
    })))
})

describe("actions", () => {
  it("are all of the catalog", () => {
    const types = Object.keys(actionCatalog)
    const missing = types.filter((type) => !playedTypes.has(type))
    assert.deepStrictEqual(missing, [])
    assert.deepStrictEqual([types.length, Object.keys(actionSchemas).length, playedTypes.size], [62, 62, 62])
  })
})
