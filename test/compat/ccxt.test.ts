/** ccxt's reads against a gateway process: only the base URL is changed. */
import { assert, describe, it } from "@effect/vitest"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { Reply } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { classified, client, exchangeAt } from "./ccxtVenue.ts"
import { rejection } from "./rejection.ts"
import { session } from "./session.ts"
import { info, venue } from "./venue.ts"

const hour = 3_600_000

const btc = "BTC/USDC:USDC"

/** ccxt twice: through a gateway and straight at the venue that the gateway has behind it. */
const connected = Effect.fnUntraced(function*(name: string) {
  const upstream = yield* venue()
  const url = yield* session({ name: `ccxt/${name}`, client, upstreams: { api: upstream.url } })
  return { upstream, url, exchange: exchangeAt(url), straight: exchangeAt(upstream.url) }
})

/** Only what the two see is compared, not how they were set up. */
const same = Effect.fnUntraced(function*<A>(
  { exchange, straight }: Effect.Success<ReturnType<typeof connected>>,
  call: (of: typeof exchange) => Promise<A>
) {
  const through = yield* Effect.promise(() => call(exchange))
  assert.deepStrictEqual(through, yield* Effect.promise(() => call(straight)))
  return through
})

describe("ccxt reads", () => {
  it.live("its markets, by queries that the gateway relays as they are", () =>
    Effect.gen(function*() {
      const connection = yield* connected("markets")
      const { exchange, upstream } = connection
      yield* Effect.promise(() => exchange.loadMarkets())
      assert.deepStrictEqual(upstream.seen.map(({ body, method, path }) => `${method} ${path} ${body}`).toSorted(), [
        `POST /info {"type":"metaAndAssetCtxs","dex":"xyz"}`,
        `POST /info {"type":"metaAndAssetCtxs"}`,
        `POST /info {"type":"perpDexs"}`,
        `POST /info {"type":"spotMeta"}`,
        `POST /info {"type":"spotMetaAndAssetCtxs"}`
      ])
      yield* same(connection, (of) => of.loadMarkets())
      assert.deepStrictEqual(Object.keys(exchange.markets ?? {}).toSorted(), [
        "BTC/USDC:USDC",
        "ETH/USDC:USDC",
        "PURR/USDC",
        "XYZ-XYZ100/USDC:USDC"
      ])
      assert.deepStrictEqual(exchange.market(btc).precision, { amount: 0.00001, price: 1 })
    }))

  it.live("candles of windows that are given by their start, by their end, by neither", () =>
    Effect.gen(function*() {
      const { exchange, upstream } = yield* connected("candles")
      yield* Effect.promise(() => exchange.loadMarkets())
      upstream.seen.length = 0
      // this upstream does not look at windows: closed bars that are held must not take its part
      exchange.headers = { "Cache-Control": "no-cache" }
      const now = yield* Clock.currentTimeMillis
      const since = Math.floor(now / hour) * hour - 48 * hour
      const until = since + 2 * hour - 1
      const read = (since?: number, limit?: number, until?: number) =>
        Effect.promise(() => exchange.fetchOHLCV(btc, "1h", since, limit, until === undefined ? {} : { until }))
      const two = [
        [since, 67001, 67100, 66900, 67010.5, 12.5],
        [since + hour, 67001, 67100, 66900, 67020, 12.5]
      ]
      assert.deepStrictEqual<unknown>(yield* read(since, undefined, until), two)
      assert.deepStrictEqual<unknown>(yield* read(undefined, 2, until + 1), two)
      assert.deepStrictEqual<unknown>(yield* read(since, 1), two.slice(0, 1))
      assert.deepStrictEqual(
        (yield* read()).map(([opened]) => opened),
        [0, hour]
      )
      const windows = upstream.seen.map(({ body }) => {
        const endTime = Number(JsonParts.value(body, "req", "endTime"))
        return [JsonParts.value(body, "req", "startTime"), endTime >= now ? "now" : endTime]
      })
      assert.deepStrictEqual<unknown>(windows, [[since, until], [since, until + 1], [since, "now"], [0, "now"]])
    }))

  it.live("tickers, a book, funding rates, the status and somebody's fills", () =>
    Effect.gen(function*() {
      const connection = yield* connected("prices")
      const { exchange, straight } = connection
      yield* Effect.promise(() => Promise.all([exchange.loadMarkets(), straight.loadMarkets()]))
      const ticker = yield* same(connection, (of) => of.fetchTicker("ETH/USDC:USDC"))
      assert.deepInclude(ticker, { last: 2381.1, bid: 2381, ask: 2381.2 })
      const tickers = yield* same(connection, (of) => of.fetchTickers(["PURR/USDC"]))
      assert.strictEqual(tickers["PURR/USDC"]?.last, 0.209265)
      const book = yield* same(connection, (of) => of.fetchOrderBook("ETH/USDC:USDC"))
      assert.deepStrictEqual([book.bids, book.asks], [[[2381, 74.0637]], [[2381.2, 70.5893]]])
      const rates = yield* same(connection, (of) => of.fetchFundingRates([btc]))
      assert.strictEqual(rates[btc]?.fundingRate, 0.0000125)
      assert.strictEqual((yield* same(connection, (of) => of.fetchStatus())).status, "ok")
      const user = { user: "0x90f79bf6eb2c4f870365e785982e1f101e93b906" }
      const [trade] = yield* same(connection, (of) => of.fetchTrades("ETH/USDC:USDC", undefined, undefined, user))
      assert.deepInclude(trade, { price: 2381.1, amount: 0.0841, side: "buy" })
      const balance = yield* same(connection, (of) => of.fetchBalance(user))
      assert.deepInclude(balance["USDC"], { total: 100 })
    }))

  const refusals: ReadonlyArray<readonly [what: string, reply: Reply, name: string, calls: number]> = [
    ["422", { status: 422, type: "text/plain", body: "Failed to deserialize" }, "ExchangeError", 1],
    ["500 null", { status: 500, body: "null" }, "ExchangeNotAvailable", 1],
    ["503", { status: 503, type: "text/html", body: "<html>maintenance</html>" }, "ExchangeNotAvailable", 3],
    ["429", { status: 429, body: "null" }, "RateLimitExceeded", 1]
  ]
  // not recorded: the pause before a read is sent again has no place under a clock that stands still
  const started = (what: string, url: string) =>
    what === "503"
      ? Effect.map(hostedGateway({ TRIGATE_TRADING_API_URL: url }), (gateway) => gateway.url)
      : session({ name: `ccxt/refused-${what.split(" ")[0]}`, client, upstreams: { api: url } })
  for (const [what, reply, name, calls] of refusals) {
    it.live(`${what} as the class that it is straight from the venue`, () =>
      Effect.gen(function*() {
        const upstream = yield* recordingUpstream((request) => request.body.includes("l2Book") ? reply : info(request))
        const url = yield* started(what, upstream.url)
        const [through, straight] = yield* Effect.forEach([url, upstream.url], (base) =>
          Effect.gen(function*() {
            const exchange = exchangeAt(base)
            yield* Effect.promise(() => exchange.loadMarkets())
            upstream.seen.length = 0
            const error = classified(yield* rejection(() => exchange.fetchOrderBook(btc)))
            return { name: error.name, asked: upstream.seen.length }
          }))
        assert.deepStrictEqual([through, straight], [{ name, asked: calls }, { name, asked: 1 }])
      }))
  }

  it.live("an unknown coin by name, and not repeated as the venue's answer is", () =>
    Effect.gen(function*() {
      const { exchange, straight, upstream } = yield* connected("unknown-coin")
      const ask = (of: typeof exchange) =>
        Effect.gen(function*() {
          yield* Effect.promise(() => of.loadMarkets())
          return classified(yield* rejection(() => of.fetchOHLCV("ETH/USDC:USDC", "1h", 1)))
        })
      const through = yield* ask(exchange)
      assert.strictEqual(upstream.seen.filter(({ body }) => body.includes("candleSnapshot")).length, 1)
      assert.strictEqual(through.name, "ExchangeError")
      assert.include(through.message, `"_tag":"UnknownAsset","coin":"ETH"`)
      assert.strictEqual((yield* ask(straight)).name, "ExchangeNotAvailable")
    }))

  // not recorded: the sandbox lists hundreds of spot pairs
  it.live("the sandbox's markets, their prices and their candles", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway({})
      const exchange = exchangeAt(url)
      const markets = yield* Effect.promise(() => exchange.loadMarkets())
      const perpetuals = Object.keys(markets).filter((symbol) => symbol.includes(":"))
      assert.strictEqual(perpetuals.length, 236)
      assert.deepStrictEqual([...perpetuals.slice(0, 14), ...perpetuals.slice(-8)], [
        "BTC/USDC:USDC",
        "ETH/USDC:USDC",
        "ATOM/USDC:USDC",
        "MATIC/USDC:USDC",
        "DYDX/USDC:USDC",
        "SOL/USDC:USDC",
        "AVAX/USDC:USDC",
        "BNB/USDC:USDC",
        "APE/USDC:USDC",
        "OP/USDC:USDC",
        "LTC/USDC:USDC",
        "ARB/USDC:USDC",
        "DOGE/USDC:USDC",
        "INJ/USDC:USDC",
        "XYZ-XYZ100/USDC:USDC",
        "XYZ-GOLD/USDC:USDC",
        "XYZ-TSLA/USDC:USDC",
        "XYZ-NVDA/USDC:USDC",
        "FLX-TSLA/USDC:USDC",
        "FLX-OIL/USDC:USDC",
        "KM-US500/USDH:USDH",
        "KM-GOOGL/USDH:USDH"
      ])
      const book = yield* Effect.promise(() => exchange.fetchOrderBook(btc))
      assert.deepStrictEqual([book.bids.length, book.asks.length], [20, 20])
      const until = Math.floor((yield* Clock.currentTimeMillis) / hour) * hour
      const candles = yield* Effect.promise(() =>
        exchange.fetchOHLCV(btc, "1h", until - 3 * hour, undefined, { until: until - 1 })
      )
      assert.deepStrictEqual(candles.map(([opened]) => opened), [until - 3 * hour, until - 2 * hour, until - hour])
      const ticker = yield* Effect.promise(() => exchange.fetchTicker("PURR/USDC"))
      assert.isAbove(ticker.last ?? 0, 0)
    }))
})
