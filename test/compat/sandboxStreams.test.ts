/** A bot's user streams on the sandbox, over the gateway's `/ws` with an unchanged client: what it hears is what it reads. Not recorded. */
import { assert, describe, it } from "@effect/vitest"
import { ExchangeClient, HttpTransport, InfoClient, SubscriptionClient, WebSocketTransport } from "@nktkas/hyperliquid"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { hostedGateway, stillMarket } from "@trigate/testing/HostedGateway"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { privateKeyToAccount } from "viem/accounts"

describe("a bot written with @nktkas/hyperliquid that follows its account", () => {
  it.live("quotes, loses its connection, is filled meanwhile, and ends with the position of its fills", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway(stillMarket)
      const user = keys.trader.address
      const http = new HttpTransport({ apiUrl: url })
      const info = new InfoClient({ transport: http })
      const bot = new ExchangeClient({ transport: http, wallet: privateKeyToAccount(keys.trader.privateKey) })
      const other = privateKeyToAccount(keys.stranger.privateKey)
      const taker = new ExchangeClient({ transport: http, wallet: other })
      const call = <A>(read: () => Promise<A>) => Effect.promise(read)
      yield* call(() => bot.usdSend({ destination: other.address, amount: "2000" }))

      const socket = yield* Effect.acquireRelease(
        Effect.sync(() =>
          new WebSocketTransport({
            url: `${url.replace("http", "ws")}/ws`,
            reconnect: { reconnectionDelay: () => 100, maxRetries: 1000 }
          })
        ),
        (transport) => Effect.sync(() => transport.close())
      )
      const streams = new SubscriptionClient({ transport: socket })
      const fills = new Map<number, { readonly sz: string; readonly side: "B" | "A" }>()
      const orders = new Map<number, string>()
      const heard = yield* Queue.unbounded<"snapshot" | "fill">()
      const closed = yield* Queue.unbounded<"closed">()
      socket.socket.addEventListener("close", () => Queue.offerUnsafe(closed, "closed"))
      yield* call(() =>
        streams.orderUpdates({ user }, (rows) => {
          for (const { order, status } of rows) orders.set(order.oid, status)
        })
      )
      yield* call(() =>
        streams.userFills({ user }, (event) => {
          for (const { side, sz, tid } of event.fills) fills.set(tid, { sz, side })
          Queue.offerUnsafe(heard, event.isSnapshot === true ? "snapshot" : "fill")
        })
      )
      assert.strictEqual(yield* Queue.take(heard), "snapshot")

      const { ETH: mid = "0" } = yield* call(() => info.allMids())
      const p = Number(mid).toPrecision(5)
      const quote = { a: 1, p, r: false, t: { limit: { tif: "Gtc" as const } } }
      const placed = yield* call(() => bot.order({ orders: [{ ...quote, b: true, s: "0.5" }], grouping: "na" }))
      const [status] = placed.response.data.statuses
      const oid = typeof status === "object" && "resting" in status ? status.resting.oid : assert.fail()
      const sell = (s: string) =>
        call(() => taker.order({ orders: [{ ...quote, b: false, s, t: { limit: { tif: "Ioc" } } }], grouping: "na" }))
      yield* sell("0.2")
      assert.strictEqual(yield* Queue.take(heard), "fill")
      assert.deepStrictEqual([fills.size, orders.get(oid)], [1, "open"])

      // each socket is cut within a second; the fill happens while there is none
      const setFaults = (droppedSockets: number) =>
        call(() =>
          fetch(`${url}/admin/sandbox/faults`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ droppedSockets })
          })
        )
      assert.strictEqual((yield* setFaults(1)).status, 200)
      yield* Queue.take(closed)
      yield* sell("0.3")
      assert.strictEqual((yield* setFaults(0)).status, 200)
      // the client subscribes anew, and the snapshot has what it missed
      while (fills.size < 2) yield* Queue.take(heard)
      const bought = [...fills.values()].reduce(
        (sum, { side, sz }) => sum + (side === "B" ? 1 : -1) * Math.round(Number(sz) * 1e4),
        0
      )
      const state = yield* call(() => info.clearinghouseState({ user }))
      assert.deepStrictEqual(state.assetPositions.map(({ position }) => Math.round(Number(position.szi) * 1e4)), [
        bought
      ])
      assert.strictEqual(bought, 5_000)
      // what the stream of orders missed, the bot reads
      const ended = yield* call(() => info.orderStatus({ user, oid }))
      assert.deepNestedInclude(ended, { "order.status": "filled", "order.order.sz": "0.0" })
    }))

  it.live("hears of its order, its fill and its cancel, once each", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway(stillMarket)
      const user = keys.trader.address
      const http = new HttpTransport({ apiUrl: url })
      const info = new InfoClient({ transport: http })
      const exchange = new ExchangeClient({ transport: http, wallet: privateKeyToAccount(keys.trader.privateKey) })
      const socket = yield* Effect.acquireRelease(
        Effect.sync(() => new WebSocketTransport({ url: `${url.replace("http", "ws")}/ws` })),
        (transport) => Effect.sync(() => transport.close())
      )
      const streams = new SubscriptionClient({ transport: socket })
      const updates = yield* Queue.unbounded<readonly [oid: number, status: string, sz: string]>()
      const fills = yield* Queue.unbounded<readonly [tid: number, px: string, sz: string]>()
      const call = <A>(read: () => Promise<A>) => Effect.promise(read)
      yield* call(() =>
        streams.orderUpdates({ user }, (rows) => {
          for (const { order, status } of rows) Queue.offerUnsafe(updates, [order.oid, status, order.sz])
        })
      )
      yield* call(() =>
        streams.userFills({ user }, (event) => {
          if (event.isSnapshot !== true) {
            for (const { px, sz, tid } of event.fills) Queue.offerUnsafe(fills, [tid, px, sz])
          }
        })
      )
      const { ETH: mid = "0" } = yield* call(() => info.allMids())
      const order = (p: number, tif: "Gtc" | "Ioc", b: boolean) => ({
        orders: [{ a: 1, b, p: p.toPrecision(4), s: "0.02", r: false, t: { limit: { tif } } }],
        grouping: "na" as const
      })
      const rested = yield* call(() => exchange.order(order(Number(mid) * 0.9, "Gtc", true)))
      const [status] = rested.response.data.statuses
      const oid = typeof status === "object" && "resting" in status ? status.resting.oid : assert.fail()
      assert.deepStrictEqual(yield* Queue.take(updates), [oid, "open", "0.02"])
      yield* call(() => exchange.cancel({ cancels: [{ a: 1, o: oid }] }))
      assert.deepStrictEqual(yield* Queue.take(updates), [oid, "canceled", "0.02"])
      yield* call(() => exchange.order(order(Number(mid) * 1.05, "Ioc", true)))
      assert.deepStrictEqual(yield* Queue.take(updates), [oid + 1, "open", "0.02"])
      assert.deepStrictEqual(yield* Queue.take(updates), [oid + 1, "filled", "0.0"])
      const [heard] = [yield* Queue.take(fills)]
      const [listed] = yield* call(() => info.userFills({ user }))
      assert.deepStrictEqual<unknown>(heard, [listed?.tid, listed?.px, listed?.sz])
    }))
})

describe("a bot written with @nktkas/hyperliquid that has nothing but a socket", () => {
  it.live("trades for a day: each action and query is a post, and each stream says what the queries say", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway(stillMarket)
      const user = keys.trader.address
      const transport = yield* Effect.acquireRelease(
        Effect.sync(() => new WebSocketTransport({ url: `${url.replace("http", "ws")}/ws` })),
        (each) => Effect.sync(() => each.close())
      )
      const info = new InfoClient({ transport })
      const bot = new ExchangeClient({ transport, wallet: privateKeyToAccount(keys.trader.privateKey) })
      const other = privateKeyToAccount(keys.stranger.privateKey)
      const taker = new ExchangeClient({ transport, wallet: other })
      const streams = new SubscriptionClient({ transport })
      const call = <A>(read: () => Promise<A>) => Effect.promise(read)
      const updates = yield* Queue.unbounded<readonly [oid: number, status: string, sz: string]>()
      const heard = new Map<number, string>()
      yield* call(() =>
        streams.orderUpdates({ user }, (rows) => {
          for (const { order, status } of rows) Queue.offerUnsafe(updates, [order.oid, status, order.sz])
        })
      )
      yield* call(() =>
        streams.userFills({ user }, (event) => {
          for (const { sz, tid } of event.fills) heard.set(tid, sz)
        })
      )
      yield* call(() => bot.usdSend({ destination: other.address, amount: "2000" }))
      const before = Number((yield* call(() => info.clearinghouseState({ user }))).marginSummary.accountValue)
      const { ETH: mid = "0" } = yield* call(() => info.allMids())
      const quote = (p: number | string, b: boolean, s: string, tif: "Gtc" | "Ioc" = "Gtc", r = false) => ({
        a: 1,
        b,
        p: Number(p).toPrecision(4),
        s,
        r,
        t: { limit: { tif } }
      })
      const oidOf = ({ response }: Awaited<ReturnType<typeof bot.order>>): number => {
        const [status] = response.data.statuses
        if (typeof status !== "object") return assert.fail(status ?? "no status")
        return "resting" in status ? status.resting.oid : "filled" in status ? status.filled.oid : assert.fail()
      }
      const place = (order: ReturnType<typeof quote>) =>
        Effect.map(call(() => bot.order({ orders: [order], grouping: "na" })), oidOf)

      // a limit order rests, is amended, partly filled and canceled
      const first = yield* place(quote(Number(mid) * 0.9, true, "0.4"))
      assert.deepStrictEqual(yield* Queue.take(updates), [first, "open", "0.4"])
      yield* call(() =>
        bot.modify({ oid: first, order: { ...quote(mid, true, "0.5"), p: Number(mid).toPrecision(5) } })
      )
      const [open, ...others] = yield* call(() => info.openOrders({ user }))
      assert.deepStrictEqual([open?.sz, open?.limitPx, others], ["0.5", Number(mid).toFixed(1), []])
      const amended = open?.oid ?? assert.fail()
      assert.deepStrictEqual([yield* Queue.take(updates), yield* Queue.take(updates)], [
        [first, "canceled", "0.4"],
        [amended, "open", "0.5"]
      ])
      yield* call(() =>
        taker.order({
          orders: [{ ...quote(mid, false, "0.2", "Ioc"), p: Number(mid).toPrecision(5) }],
          grouping: "na"
        })
      )
      assert.deepStrictEqual(yield* Queue.take(updates), [amended, "open", "0.3"])
      yield* call(() => bot.cancel({ cancels: [{ a: 1, o: amended }] }))
      assert.deepStrictEqual(yield* Queue.take(updates), [amended, "canceled", "0.3"])

      // a market order adds to the position, a stop waits for the price, and closes it
      yield* place(quote(Number(mid) * 1.05, true, "0.3", "Ioc"))
      const held = yield* call(() => info.clearinghouseState({ user }))
      assert.deepStrictEqual(held.assetPositions.map(({ position }) => position.szi), ["0.5"])
      const stop = yield* call(() =>
        bot.order({
          orders: [{
            ...quote(Number(mid) * 0.8, false, "0.5", "Gtc", true),
            t: { trigger: { isMarket: true, triggerPx: (Number(mid) * 0.95).toPrecision(4), tpsl: "sl" } }
          }],
          grouping: "na"
        })
      )
      const control = (route: string, body: object) =>
        call(() =>
          fetch(`${url}/admin/sandbox/${route}`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(body)
          })
        )
      const points = [{ time: 0, price: Math.floor(Number(mid) * 0.94) }]
      assert.strictEqual((yield* control("prices", { coin: "ETH", points })).status, 200)
      assert.strictEqual((yield* control("clock", { advance: 1_000 })).status, 200)
      const closed = yield* call(() => info.clearinghouseState({ user }))
      assert.deepStrictEqual(closed.assetPositions, [])
      const stopped = yield* call(() => info.orderStatus({ user, oid: oidOf(stop) }))
      assert.deepNestedInclude(stopped, { "order.status": "filled", "order.order.sz": "0.0" })
      let last: readonly [oid: number, status: string, sz: string] = [0, "", ""]
      while (last[0] !== oidOf(stop) || last[1] !== "filled") last = yield* Queue.take(updates)

      // money, fees and fills add up, and the stream had each fill
      const fills = yield* call(() => info.userFills({ user }))
      const change = fills.reduce((sum, { closedPnl, fee }) => sum + Number(closedPnl) - Number(fee), 0)
      assert.approximately(Number(closed.marginSummary.accountValue), before + change, 1e-6)
      assert.isBelow(change, 0)
      assert.deepStrictEqual(new Map(fills.toReversed().map(({ sz, tid }) => [tid, sz])), heard)
    }))
})
