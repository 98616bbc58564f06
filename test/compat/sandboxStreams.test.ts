/** A bot's user streams on the sandbox, over the gateway's `/ws` with an unchanged client: what it hears is what it reads. Not recorded. */
import { assert, describe, it } from "@effect/vitest"
import { ExchangeClient, HttpTransport, InfoClient, SubscriptionClient, WebSocketTransport } from "@nktkas/hyperliquid"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { privateKeyToAccount } from "viem/accounts"

describe("a bot written with @nktkas/hyperliquid that follows its account", () => {
  it.live("hears of its order, its fill and its cancel, once each", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway({})
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
