/** What the sandbox's streams say of trades, beside what its queries say. */
import { assert, describe, it } from "@effect/vitest"
import * as Market from "@trigate/domain/streams/MarketSubscriptions"
import * as Account from "@trigate/domain/unstable/streams/AccountSubscriptions"
import * as Subscription from "@trigate/domain/unstable/streams/Subscription"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as VenueStreams from "@trigate/sandbox/unstable/streams/VenueStreams"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { act, ask, askAt, eth, listOf, markOf, oidOf, orderOf, place } from "./trader.ts"
import { atStart, start } from "./venue.ts"

const read = Subscription.reader([
  Market.bbo,
  Market.candle,
  Market.l2Book,
  Market.trades,
  Account.notification,
  Account.userEvents,
  Account.userFundings,
  Account.userHistoricalOrders,
  Account.userTwapHistory,
  Account.webData3
])

const [maker, taker] = [`0x${"a".repeat(40)}`, `0x${"b".repeat(40)}`] as const

/** Follows a subscription, and returns the list of its frames, which grows. */
const follow = Effect.fnUntraced(function*(subscription: object) {
  const frames: Array<unknown> = []
  const feed = VenueStreams.makeFeed(yield* SandboxState)
  const normalised = Result.getOrThrow(read(subscription))
  const stream = VenueStreams.makeFrames(feed)(normalised) ?? assert.fail("the subscription is refused")
  yield* Effect.forkChild(Stream.runForEach(stream, (frame) => Effect.sync(() => frames.push(frame))))
  return frames
})

describe("the streams of a market", () => {
  it.effect("say every trade once, however many a second, and the book, the best prices and the bar after it", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.playPrices("ETH", [{ time: 0, price: 2_000 }])
      for (const user of [maker, taker]) yield* trading.depositUsd(user, "1000000")
      const trades = yield* follow({ type: "trades", coin: "ETH" })
      const events = yield* follow({ type: "userEvents", user: maker })
      const books = yield* follow({ type: "l2Book", coin: "ETH" })
      const best = yield* follow({ type: "bbo", coin: "ETH" })
      const bars = yield* follow({ type: "candle", coin: "ETH", interval: "1m" })
      yield* TestClock.adjust(1)
      const [first, ...none] = trades
      assert.deepStrictEqual([first, none], [
        listOf(yield* ask({ type: "recentTrades", coin: "ETH" })).toReversed(),
        []
      ])

      // forty orders at one price, which one order takes; a query lists thirty trades
      const quotes = Array.from({ length: 40 }, () => orderOf(eth, "sell", "0.1", "2000"))
      yield* act(maker, "order", { orders: quotes, grouping: "na" })
      yield* TestClock.adjust("6 seconds")
      assert.deepStrictEqual(JsonParts.at(best.at(-1), "bbo", 1), { px: "2000.0", sz: "4.0", n: 40 })
      assert.deepStrictEqual(JsonParts.at(books.at(-1), "levels", 1, 0), { px: "2000.0", sz: "4.0", n: 40 })
      const taken = yield* place(taker, eth, "buy", "4", "2000", { tif: "Ioc" })
      assert.strictEqual(JsonParts.at(taken, "filled", "totalSz"), "4.0")
      yield* TestClock.adjust("6 seconds")
      const isOfMaker = (trade: unknown) => listOf(JsonParts.at(trade, "users")).includes(maker)
      const told = trades.slice(1).flatMap(listOf).filter(isOfMaker)
      assert.strictEqual(told.length, 40)
      assert.strictEqual(new Set(told.map((trade) => JsonParts.at(trade, "tid"))).size, 40)
      const listed = listOf(yield* ask({ type: "recentTrades", coin: "ETH" })).filter(isOfMaker)
      assert.isAbove(listed.length, 5)
      assert.deepStrictEqual(told.slice(-listed.length).toReversed(), listed)
      const fills = events.flatMap((event) => listOf(JsonParts.at(event, "fills")))
      const own = listOf(yield* ask({ type: "userFills", user: maker }))
      assert.strictEqual(own.length, 40)
      assert.deepStrictEqual(fills, own.toReversed())
      assert.notStrictEqual(JsonParts.at(best.at(-1), "bbo", 1, "px"), "2000.0")
      assert.notStrictEqual(JsonParts.at(books.at(-1), "levels", 1, 0, "px"), "2000.0")
      const now = yield* trading.now
      const req = { coin: "ETH", interval: "1m", startTime: now, endTime: now }
      assert.deepStrictEqual(
        [JsonParts.at(bars.at(-1), "t"), JsonParts.at(bars.at(-1), "c")],
        [yield* askAt({ type: "candleSnapshot", req }, 0, "t"), yield* askAt({ type: "candleSnapshot", req }, 0, "c")]
      )

      // the trades that are not of an account come from the query, and with them a minute's trades are those of its bar
      yield* TestClock.adjust("70 seconds")
      const minute = 60_000 * Math.floor((start + 60_000) / 60_000)
      const window = { ...req, startTime: minute, endTime: minute }
      const bar = yield* askAt({ type: "candleSnapshot", req: window }, 0)
      const rows = [...listOf(first), ...trades.slice(1).flatMap(listOf)].filter((trade) =>
        Math.floor(Number(JsonParts.at(trade, "time")) / 60_000) * 60_000 === minute
      )
      const lots = rows.reduce((sum: number, trade) => sum + Math.round(Number(JsonParts.at(trade, "sz")) * 1e4), 0)
      assert.deepStrictEqual([rows.length, lots], [
        JsonParts.at(bar, "n"),
        Math.round(Number(JsonParts.at(bar, "v")) * 1e4)
      ])
      assert.isAbove(rows.length, 20)
    })))
})

describe("the streams of a deployed pair", () => {
  it.effect("have its trades, book, best prices and bars", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const deploy = (members: object) => act(maker, "spotDeploy", members)
      yield* trading.depositSpot(maker, 150, "3000")
      yield* trading.depositSpot(maker, 0, "1000")
      const spec = { name: "NEW", szDecimals: 2, weiDecimals: 8 }
      const token = yield* deploy({ registerToken2: { spec, maxGas: 300_000_000_000 } })
      const userAndWei = [[maker, "100000000000"], [`0x${"f".repeat(40)}`, "3000000000"]]
      yield* deploy({ userGenesis: { token, userAndWei, existingTokenAndWei: [] } })
      yield* deploy({ genesis: { token, maxSupply: "103000000000" } })
      const spot = yield* deploy({ registerSpot: { tokens: [token, 0] } })
      yield* deploy({ registerHyperliquidity: { spot, startPx: "2", orderSz: "10", nOrders: 5, nSeededLevels: 2 } })
      const coin = `@${String(spot)}`
      const trades = yield* follow({ type: "trades", coin })
      const books = yield* follow({ type: "l2Book", coin })
      const best = yield* follow({ type: "bbo", coin })
      const bars = yield* follow({ type: "candle", coin, interval: "1m" })
      yield* TestClock.adjust("1 second")
      yield* place(maker, 10_000 + Number(spot), "buy", "14", "2.018", { tif: "Ioc" })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(
        trades.flatMap(listOf).map((trade) => [JsonParts.at(trade, "px"), JsonParts.at(trade, "sz")]),
        [["2.012", "10.0"], ["2.018", "4.0"]]
      )
      assert.deepStrictEqual(JsonParts.at(best.at(-1), "bbo"), [{ px: "2.006", sz: "10.0", n: 1 }, {
        px: "2.018",
        sz: "6.0",
        n: 1
      }])
      yield* TestClock.adjust("6 seconds")
      assert.deepStrictEqual(JsonParts.at(books.at(-1), "levels", 0, 0), { px: "2.012", sz: "10.0", n: 1 })
      assert.deepStrictEqual(
        ["o", "c", "h", "l", "v", "n"].map((member) => JsonParts.at(bars.at(-1), member)),
        ["2.009", "2.018", "2.018", "2.009", "14.0", 2]
      )
    })))
})

describe("the streams of an account", () => {
  it.effect("say when a TWAP order begins and how it ends", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.depositUsd(maker, "100000")
      const history = yield* follow({ type: "userTwapHistory", user: maker })
      const events = yield* follow({ type: "userEvents", user: maker })
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(history, [{ isSnapshot: true, user: maker, history: [] }])
      const twap = { a: eth, b: true, s: "1", r: false, m: 5, t: false }
      const placed = yield* act(maker, "twapOrder", { twap })
      const twapId = JsonParts.at(placed, "status", "running", "twapId")
      yield* TestClock.adjust("5 minutes")
      const rows = history.slice(1).flatMap((frame) => listOf(JsonParts.at(frame, "history")))
      assert.deepStrictEqual(
        rows.map((
          row
        ) => [JsonParts.at(row, "time"), JsonParts.at(row, "status", "status"), JsonParts.at(row, "twapId")]),
        [
          [Math.floor(start / 1000), "activated", twapId],
          [Math.floor(start / 1000) + 271, "finished", twapId]
        ]
      )
      assert.deepStrictEqual(rows.at(-1), yield* askAt({ type: "twapHistory", user: maker }, 0))
      assert.deepStrictEqual(events.flatMap((event) => listOf(JsonParts.at(event, "twapHistory"))), rows)
    })))

  it.effect("notify of the fills of resting orders, as recorded, and of TWAP orders", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.depositUsd(maker, "100000")
      yield* trading.playPrices("ETH", [{ time: 0, price: 2_000 }])
      const texts = yield* follow({ type: "notification", user: maker })
      yield* TestClock.adjust(1)
      yield* place(maker, eth, "buy", "0.5", "2010", { tif: "Ioc" })
      yield* place(maker, eth, "buy", "1.5", "1900.5")
      yield* place(maker, eth, "sell", "0.25", "2100")
      yield* trading.playPrices("ETH", [{ time: 0, price: 1_900 }])
      yield* act(maker, "twapOrder", { twap: { a: eth, b: false, s: "1", r: false, m: 5, t: false } })
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(texts, [
        { notification: "Resting order filled: Bought 1.5 ETH at $1900.5" },
        { notification: "TWAP order activated: Sell 1 ETH" }
      ])
    })))

  it.effect("list funding payments in one form: those before the subscription, and later ones", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.depositUsd(maker, "100000")
      yield* place(maker, eth, "buy", "1", yield* markOf("ETH", 0.05), { tif: "Ioc" })
      yield* TestClock.adjust("1 hour")
      const frames = yield* follow({ type: "userFundings", user: maker })
      yield* TestClock.adjust("1 hour")
      const decode = Schema.decodeUnknownSync(Account.userFundings.item)
      for (const frame of frames) decode(frame)
      const rows = frames.flatMap((frame) => listOf(JsonParts.at(frame, "fundings")))
      const paid = listOf(yield* ask({ type: "userFunding", user: maker }))
      assert.deepStrictEqual([frames.length, rows.length, paid.length], [2, 2, 2])
      assert.deepStrictEqual(
        rows,
        paid.map((row) => {
          const [coin, usdc, szi, fundingRate] = ["coin", "usdc", "szi", "fundingRate"].map((member) =>
            JsonParts.at(row, "delta", member)
          )
          return { time: JsonParts.at(row, "time"), coin, usdc, szi, fundingRate, nSamples: null }
        })
      )
    })))

  it.effect("list an order in one form: when it rests and when it ends, each as a row of its own", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.depositUsd(maker, "100000")
      const early = yield* follow({ type: "userHistoricalOrders", user: maker })
      yield* TestClock.adjust(1)
      const oid = oidOf(yield* place(maker, eth, "buy", "0.1", yield* markOf("ETH", -0.1)))
      yield* act(maker, "cancel", { cancels: [{ a: eth, o: oid }] })
      yield* place(maker, eth, "buy", "0.1", yield* markOf("ETH", 0.05), { tif: "Ioc" })
      yield* TestClock.adjust("1 second")
      const history = listOf(yield* ask({ type: "historicalOrders", user: maker }))
      assert.deepStrictEqual(history.map((row) => JsonParts.at(row, "status")), ["filled", "canceled", "open"])
      const told = early.slice(1).flatMap((frame) => listOf(JsonParts.at(frame, "orderHistory")))
      assert.deepStrictEqual(told, history.toReversed())
      const late = yield* follow({ type: "userHistoricalOrders", user: maker })
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(late, [{ isSnapshot: true, user: maker, orderHistory: history.toReversed() }])
    })))

  it.effect("show an account in all dexes as the queries do", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.depositUsd(maker, "100000")
      const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" }
      yield* act(maker, "approveAgent", { ...chain, agentAddress: taker, agentName: "", nonce: 1 })
      yield* act(maker, "createVault", { name: "v", description: "", initialUsd: 100_000_000, nonce: 1 })
      const frames = yield* follow({ type: "webData3", user: maker })
      yield* TestClock.adjust(1)
      const data = yield* ask({ type: "webData2", user: maker })
      const [agentAddress, agentValidUntil, leadingVaults] = ["agentAddress", "agentValidUntil", "leadingVaults"].map(
        (member) => JsonParts.at(data, member)
      )
      assert.deepStrictEqual([agentAddress, listOf(leadingVaults).length], [taker, 1])
      assert.deepStrictEqual(frames[0], {
        userState: {
          agentAddress,
          agentValidUntil,
          cumLedger: "99900.0",
          serverTime: start,
          isVault: false,
          user: maker
        },
        perpDexStates: [
          { totalVaultEquity: "100.0", perpsAtOpenInterestCap: [], leadingVaults },
          { totalVaultEquity: "0.0", perpsAtOpenInterestCap: [] },
          { totalVaultEquity: "0.0", perpsAtOpenInterestCap: [] },
          { totalVaultEquity: "0.0", perpsAtOpenInterestCap: [] }
        ]
      })
    })))
})
