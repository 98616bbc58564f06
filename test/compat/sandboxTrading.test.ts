/**
 * A bot's day on the sandbox with unchanged clients: a limit order rests, is amended, partly filled and canceled; a market order
 * opens a position, and a stop closes it; balance, fees and fills add up. Not recorded.
 */
import { assert, describe, it } from "@effect/vitest"
import { ExchangeClient, HttpTransport, InfoClient } from "@nktkas/hyperliquid"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { hostedGateway, stillMarket } from "@trigate/testing/HostedGateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import { Hyperliquid } from "hyperliquid"
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts"
import { replace } from "../streams/clients/hyperliquid.ts"
import { classified, exchangeAt } from "./ccxtVenue.ts"
import { rejection } from "./rejection.ts"

const btc = "BTC/USDC:USDC"

const micro = (text: unknown): number => Math.round(Number(text) * 1e6)

/** A member of what ccxt gives, whose types say little. */
const at = (value: unknown, ...path: ReadonlyArray<string>): unknown => JsonParts.at(value, ...path)
const idOf = (order: { readonly id?: string | undefined }): string => order.id ?? ""

describe("a bot written with ccxt", () => {
  it.live("trades for a day", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway(stillMarket)
      const exchange = exchangeAt(url, keys.trader)
      const call = <A>(read: (of: typeof exchange) => Promise<A>) => Effect.promise(() => read(exchange))
      yield* call((of) => of.loadMarkets())
      const { last = 0 } = yield* call((of) => of.fetchTicker(btc))
      const low = Math.round(last * 0.9)

      const placed = yield* call((of) => of.createOrder(btc, "limit", "buy", 0.01, low))
      const [resting, ...others] = yield* call((of) => of.fetchOpenOrders(btc))
      assert.deepStrictEqual([resting?.id, resting?.price, resting?.remaining, others.length], [
        placed.id,
        low,
        0.01,
        0
      ])
      const { bids } = yield* call((of) => of.fetchOrderBook(btc))
      assert.isAbove(Number(bids[0]?.[0]), low)

      const amended = yield* call((of) => of.editOrder(idOf(placed), btc, "limit", "buy", 0.02, low - 10))
      const open = yield* call((of) => of.fetchOpenOrders(btc))
      assert.deepStrictEqual(open.map(({ amount, id, price }) => [id, amount, price]), [[amended.id, 0.02, low - 10]])
      assert.strictEqual((yield* call((of) => of.fetchOrder(idOf(placed), btc))).status, "canceled")
      yield* call((of) => of.cancelOrder(idOf(amended), btc))
      assert.deepStrictEqual(yield* call((of) => of.fetchOpenOrders(btc)), [])
      const gone = classified(yield* rejection(() => exchange.cancelOrder(idOf(amended), btc)))
      assert.strictEqual(gone.name, "OrderNotFound")

      const bought = yield* call((of) => of.createOrder(btc, "market", "buy", 0.05, last))
      assert.strictEqual(bought.filled, 0.05)
      const [position] = yield* call((of) => of.fetchPositions([btc]))
      assert.deepStrictEqual([position?.side, position?.contracts], ["long", 0.05])

      const stop = { stopLossPrice: Math.round(last * 0.95), reduceOnly: true }
      const stopped = yield* call((of) => of.createOrder(btc, "market", "sell", 0.05, last, stop))
      const [waiting] = yield* call((of) => of.fetchOpenOrders(btc))
      assert.deepStrictEqual([waiting?.id, waiting?.triggerPrice, waiting?.reduceOnly], [
        stopped.id,
        stop.stopLossPrice,
        true
      ])
      yield* call((of) => of.createOrder(btc, "market", "sell", 0.05, last, { reduceOnly: true }))
      assert.deepStrictEqual(yield* call((of) => of.fetchPositions([btc])), [])
      // the stop has nothing left to close
      assert.deepStrictEqual(yield* call((of) => of.fetchOpenOrders(btc)), [])
      assert.strictEqual((yield* call((of) => of.fetchOrder(idOf(stopped), btc))).status, "canceled")

      const fills = yield* call((of) => of.fetchMyTrades(btc))
      const change = fills.reduce(
        (total, fill) => total + micro(at(fill, "info", "closedPnl")) - micro(at(fill, "info", "fee")),
        0
      )
      const balance = yield* call((of) => of.fetchBalance())
      assert.strictEqual(micro(at(balance, "total", "USDC")), 10_000_000_000 + change)
      assert.isBelow(change, 0)

      const few = classified(yield* rejection(() => exchange.createOrder(btc, "limit", "buy", 0.00001, low)))
      assert.deepStrictEqual([few.name, /Order must have minimum value of \$10\. asset=0/u.test(few.message)], [
        "InvalidOrder",
        true
      ])
      const much = classified(yield* rejection(() => exchange.createOrder(btc, "limit", "buy", 100, low)))
      assert.strictEqual(much.name, "InsufficientFunds")
    }))

  it.live("trades spot", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway(stillMarket)
      const exchange = exchangeAt(url, keys.trader)
      const call = <A>(read: (of: typeof exchange) => Promise<A>) => Effect.promise(() => read(exchange))
      const pair = "HYPE/USDC"
      yield* call((of) => of.loadMarkets())
      const { last = 0 } = yield* call((of) => of.fetchTicker(pair))
      const sold = yield* call((of) => of.createOrder(pair, "market", "sell", 2, last))
      assert.strictEqual(sold.filled, 2)
      yield* call((of) => of.createOrder(pair, "limit", "buy", 10, Number((last / 2).toPrecision(4))))
      const balance = yield* call((of) => of.fetchBalance({ type: "spot" }))
      assert.strictEqual(at(balance, "total", "HYPE"), 98)
      assert.approximately(Number(at(balance, "used", "USDC")), 10 * last / 2, 0.1)
      assert.isAbove(Number(at(balance, "free", "USDC")), 9_000)
      const short = classified(yield* rejection(() => exchange.createOrder(pair, "limit", "sell", 1_000, last)))
      assert.strictEqual(short.name, "InsufficientFunds")
    }))
})

describe("a bot written with hyperliquid", () => {
  it.live("places, cancels by both ids, buys, and reads what became of it", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway(stillMarket)
      const user = keys.trader.address
      const sdk = new Hyperliquid({
        enableWs: false,
        disableAssetMapRefresh: true,
        privateKey: keys.trader.privateKey,
        walletAddress: user
      })
      for (
        const part of [["exchange"], ["info"], ["info", "generalAPI"], ["info", "perpetuals"], ["symbolConversion"]]
      ) {
        replace(sdk, [...part, "httpApi", "client", "defaults"], "baseURL", url)
      }
      const call = <A>(read: () => Promise<A>) => Effect.promise(read)
      const coin = "ETH-PERP"
      const mid = Number(at(yield* call(() => sdk.info.getAllMids()), coin))
      const cloid = `0x${"c".repeat(32)}`
      const order = (part: number, tif: "Gtc" | "Ioc") => ({
        coin,
        is_buy: true,
        sz: "0.1",
        limit_px: (mid * part).toPrecision(4),
        order_type: { limit: { tif } },
        reduce_only: false
      })
      const statusOf = (reply: unknown) => JsonParts.at(reply, "response", "data", "statuses", 0)
      const rested = statusOf(yield* call(() => sdk.exchange.placeOrder(order(0.9, "Gtc"))))
      const oid = Number(at(rested, "resting", "oid"))
      const named = statusOf(yield* call(() => sdk.exchange.placeOrder({ ...order(0.8, "Gtc"), cloid })))
      assert.deepStrictEqual(at(named, "resting", "cloid"), cloid)
      const open = yield* call(() => sdk.info.getUserOpenOrders(user))
      assert.sameDeepMembers(open.map((each) => [each.coin, each.oid]), [[coin, oid], [coin, oid + 1]])
      const cancel = () => sdk.exchange.cancelOrder({ coin, o: oid })
      assert.strictEqual(statusOf(yield* call(cancel)), "success")
      assert.strictEqual(statusOf(yield* call(() => sdk.exchange.cancelOrderByCloid(coin, cloid))), "success")
      assert.deepStrictEqual(statusOf(yield* call(cancel)), {
        error: "Order was never placed, already canceled, or filled. asset=1"
      })
      const bought = statusOf(yield* call(() => sdk.exchange.placeOrder(order(1.05, "Ioc"))))
      assert.strictEqual(at(bought, "filled", "totalSz"), "0.1")
      const state = yield* call(() => sdk.info.perpetuals.getClearinghouseState(user))
      assert.deepStrictEqual(state.assetPositions.map(({ position }) => [position.coin, Number(position.szi)]), [
        [coin, 0.1]
      ])
      const fills = yield* call(() => sdk.info.getUserFills(user))
      assert.deepStrictEqual(
        new Set(fills.map((fill) => `${fill.coin} ${fill.oid}`)),
        new Set([`${coin} ${Number(at(bought, "filled", "oid"))}`])
      )
      assert.approximately(fills.reduce((sum, fill) => sum + Number(fill.sz), 0), 0.1, 1e-9)
    }))
})

describe("two bots written with @nktkas/hyperliquid", () => {
  it.live("trade with each other inside the spread, and see it everywhere", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway(stillMarket)
      const transport = new HttpTransport({ apiUrl: url })
      const info = new InfoClient({ transport })
      const maker = new ExchangeClient({ transport, wallet: privateKeyToAccount(keys.trader.privateKey) })
      const other = privateKeyToAccount(generatePrivateKey())
      const taker = new ExchangeClient({ transport, wallet: other })
      const [user, stranger] = [keys.trader.address, other.address.toLowerCase() as `0x${string}`]
      const call = <A>(read: () => Promise<A>) => Effect.promise(read)

      yield* call(() => maker.usdSend({ destination: stranger, amount: "1000" }))
      yield* call(() => taker.updateLeverage({ asset: 1, isCross: true, leverage: 5 }))
      const { ETH: mid = "0" } = yield* call(() => info.allMids())
      const p = Number(mid).toPrecision(5)
      const cloid = `0x${"a".repeat(32)}` as const
      const [, before] = yield* call(() => info.metaAndAssetCtxs())
      const order = { a: 1, p, s: "0.5", r: false, t: { limit: { tif: "Gtc" as const } } }
      const rested = yield* call(() => maker.order({ orders: [{ ...order, b: true, c: cloid }], grouping: "na" }))
      assert.deepInclude(rested.response.data.statuses[0], { resting: { oid: 77_738_308, cloid } })
      const sold = yield* call(() =>
        taker.order({ orders: [{ ...order, b: false, s: "0.2", t: { limit: { tif: "Ioc" } } }], grouping: "na" })
      )
      assert.deepNestedInclude(sold.response.data.statuses[0], { "filled.totalSz": "0.2" })

      const [mine] = yield* call(() => info.userFills({ user }))
      const [theirs] = yield* call(() => info.userFills({ user: stranger }))
      assert.deepStrictEqual([mine?.crossed, theirs?.crossed, mine?.tid], [false, true, theirs?.tid])
      assert.deepStrictEqual([mine?.dir, theirs?.dir, mine?.cloid], ["Open Long", "Open Short", cloid])
      const status = yield* call(() => info.orderStatus({ user, oid: cloid }))
      assert.deepNestedInclude(status, { "order.status": "open", "order.order.sz": "0.3", "order.order.origSz": "0.5" })
      const [trade] = yield* call(() => info.recentTrades({ coin: "ETH" }))
      assert.deepStrictEqual([trade?.tid, trade?.side, trade?.sz, trade?.users], [mine?.tid, "A", "0.2", [
        user,
        stranger
      ]])
      const state = yield* call(() => info.clearinghouseState({ user: stranger }))
      assert.deepStrictEqual(state.assetPositions.map(({ position }) => [position.szi, position.leverage]), [
        ["-0.2", { type: "cross", value: 5 }]
      ])
      const [, contexts] = yield* call(() => info.metaAndAssetCtxs())
      const [added = 0, interest = 0] = [contexts, before].map((each) => Number(each[1]?.openInterest))
      assert.approximately(added - interest, 0.4, 1e-6)

      const canceled = yield* call(() => maker.cancelByCloid({ cancels: [{ asset: 1, cloid }] }))
      assert.deepStrictEqual(canceled.response.data.statuses, ["success"])
      assert.deepStrictEqual(yield* call(() => info.openOrders({ user })), [])
    }))
})
