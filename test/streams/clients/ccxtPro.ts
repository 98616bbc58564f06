/** ccxt pro: a watch is called for each event of the venue, as a bot's loop does. */
import { keys } from "@trigate/sandbox/SandboxExamples"
import { pro } from "ccxt"
import type { FakeVenue } from "../fakeVenue.ts"
import type { Command } from "../venue/control.ts"
import { begin, type Client, user } from "./play.ts"

const exchangeAt = async (baseUrl: string) => {
  const exchange = new pro.hyperliquid({
    urls: { api: { public: baseUrl, private: baseUrl, ws: { public: `${baseUrl.replace(/^http/u, "ws")}/ws` } } },
    enableRateLimit: false,
    newUpdates: true,
    walletAddress: user,
    privateKey: keys.trader.privateKey
  })
  // it asks for this once before an address that begins with ws:
  await exchange.loadHttpProxyAgent()
  return exchange
}

type Exchange = Awaited<ReturnType<typeof exchangeAt>>

const btc = "BTC/USDC:USDC"

/** One watch, what makes the venue send a frame for it, and its subscription. */
interface Watch {
  readonly name: string
  readonly watch: (exchange: Exchange) => Promise<unknown>
  readonly key: string
  /** Whether the subscription itself brings a first frame. */
  readonly hasFirst: boolean
  readonly command: Command
}

const watches: ReadonlyArray<Watch> = [
  {
    name: "watchOrderBook",
    watch: (exchange) => exchange.watchOrderBook(btc),
    key: `{"type":"l2Book","coin":"BTC","nSigFigs":null,"mantissa":null,"fast":false}`,
    hasFirst: true,
    command: { do: "states", coin: "BTC" }
  },
  {
    name: "watchTrades",
    watch: (exchange) => exchange.watchTrades(btc),
    key: `{"type":"trades","coin":"BTC"}`,
    hasFirst: true,
    command: { do: "trade", coin: "BTC" }
  },
  {
    name: "watchOHLCV",
    watch: (exchange) => exchange.watchOHLCV("ETH/USDC:USDC", "1m"),
    key: `{"type":"candle","coin":"ETH","interval":"1m"}`,
    hasFirst: true,
    command: { do: "trade", coin: "ETH" }
  },
  {
    name: "watchTickers",
    watch: (exchange) => exchange.watchTickers([btc]),
    key: `{"type":"allMids","dex":""}`,
    hasFirst: true,
    command: { do: "states", type: "allMids" }
  },
  {
    name: "watchTicker",
    watch: (exchange) => exchange.watchTicker("ETH/USDC:USDC"),
    key: `{"type":"activeAssetCtx","coin":"ETH"}`,
    hasFirst: true,
    command: { do: "states", coin: "ETH" }
  },
  {
    name: "watchOrders",
    watch: (exchange) => exchange.watchOrders(btc),
    key: `{"type":"orderUpdates","user":"${user}"}`,
    hasFirst: false,
    command: { do: "place", user, coin: "BTC" }
  },
  {
    name: "watchMyTrades",
    watch: (exchange) => exchange.watchMyTrades(btc),
    key: `{"type":"userFills","user":"${user}","aggregateByTime":false}`,
    hasFirst: true,
    command: { do: "fill", user, coin: "BTC" }
  }
]

/** A copy: ccxt returns its caches, which later frames change. */
const copy = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const rounds = 3

const play = async (exchange: Exchange, venue: FakeVenue, { command, hasFirst, key, watch }: Watch) => {
  const seen: Array<unknown> = []
  const first = watch(exchange)
  await venue.run({ until: "subscribed", key, count: 1 })
  if (!hasFirst) await venue.run(command)
  seen.push(copy(await first))
  for (let round = 0; round < rounds; round++) {
    const next = watch(exchange)
    await venue.run(command)
    seen.push(copy(await next))
  }
  return seen
}

export const ccxtPro: Client = async (baseUrl, venue, at) => {
  await begin(venue, at)
  const exchange = await exchangeAt(baseUrl)
  await exchange.loadMarkets()
  const payloads: Array<readonly [string, unknown]> = []
  for (const watch of watches) payloads.push([watch.name, await play(exchange, venue, watch)])
  payloads.push(["createOrderWs", copy(await exchange.createOrderWs(btc, "limit", "buy", 0.001, 80_000))])
  await exchange.close()
  return payloads
}
