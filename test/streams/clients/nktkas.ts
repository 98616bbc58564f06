/** `@nktkas/hyperliquid`: all subscriptions, and posts. Nothing but the address of its transport is changed. */
import { ExchangeClient, InfoClient, SubscriptionClient, WebSocketTransport } from "@nktkas/hyperliquid"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { privateKeyToAccount } from "viem/accounts"
import { acts, begin, type Client, last, user } from "./play.ts"

const address = (baseUrl: string): string => `${baseUrl.replace(/^http/u, "ws")}/ws`

type Listen = (client: SubscriptionClient, listener: (data: unknown) => void) => Promise<unknown>

const subscriptions: Readonly<Record<string, Listen>> = {
  trades: (client, listener) => client.trades({ coin: "BTC" }, listener),
  allMids: (client, listener) => client.allMids(listener),
  "allMids xyz": (client, listener) => client.allMids({ dex: "xyz" }, listener),
  l2Book: (client, listener) => client.l2Book({ coin: "BTC" }, listener),
  "l2Book aggregated": (client, listener) => client.l2Book({ coin: "ETH", nSigFigs: 5, mantissa: 2 }, listener),
  bbo: (client, listener) => client.bbo({ coin: "BTC" }, listener),
  candle: (client, listener) => client.candle({ coin: "BTC", interval: "1m" }, listener),
  activeAssetCtx: (client, listener) => client.activeAssetCtx({ coin: "BTC" }, listener),
  activeSpotAssetCtx: (client, listener) => client.activeSpotAssetCtx({ coin: "@107" }, listener),
  assetCtxs: (client, listener) => client.assetCtxs(listener),
  spotAssetCtxs: (client, listener) => client.spotAssetCtxs(listener),
  allDexsAssetCtxs: (client, listener) => client.allDexsAssetCtxs(listener),
  notification: (client, listener) => client.notification({ user }, listener),
  webData3: (client, listener) => client.webData3({ user }, listener),
  clearinghouseState: (client, listener) => client.clearinghouseState({ user }, listener),
  allDexsClearinghouseState: (client, listener) => client.allDexsClearinghouseState({ user }, listener),
  openOrders: (client, listener) => client.openOrders({ user }, listener),
  spotState: (client, listener) => client.spotState({ user }, listener),
  twapStates: (client, listener) => client.twapStates({ user }, listener),
  orderUpdates: (client, listener) => client.orderUpdates({ user }, listener),
  userEvents: (client, listener) => client.userEvents({ user }, listener),
  userFills: (client, listener) => client.userFills({ user }, listener),
  userFundings: (client, listener) => client.userFundings({ user }, listener),
  userNonFundingLedgerUpdates: (client, listener) => client.userNonFundingLedgerUpdates({ user }, listener),
  userHistoricalOrders: (client, listener) => client.userHistoricalOrders({ user }, listener),
  userTwapHistory: (client, listener) => client.userTwapHistory({ user }, listener),
  userTwapSliceFills: (client, listener) => client.userTwapSliceFills({ user }, listener),
  activeAssetData: (client, listener) => client.activeAssetData({ user, coin: "BTC" }, listener)
}

export const nktkas: Client = async (baseUrl, venue, at) => {
  const payloads: Array<readonly [string, unknown]> = []
  // it connects at once, and a venue made anew ends connections
  await begin(venue, at)
  const transport = new WebSocketTransport({ url: address(baseUrl), timeout: null })
  const client = new SubscriptionClient({ transport })
  const isOver = Promise.withResolvers<void>()
  let isPlaying = false
  for (const [name, listen] of Object.entries(subscriptions)) {
    await listen(client, (data) => payloads.push([name, data]))
  }
  await client.trades({ coin: "SOL" }, () => {
    if (isPlaying) isOver.resolve()
  })
  const wallet = privateKeyToAccount(keys.trader.privateKey)
  const info = new InfoClient({ transport })
  const exchange = new ExchangeClient({ transport, wallet })
  payloads.push(["post of a query", await info.openOrders({ user })])
  const order = { a: 1, b: true, p: "2700", s: "0.2", r: false, t: { limit: { tif: "Gtc" } } } as const
  payloads.push(["post of an order", await exchange.order({ orders: [order], grouping: "na" })])
  payloads.push([
    "post of a refused order",
    await exchange.order({ orders: [{ ...order, a: 999 }], grouping: "na" }).catch((error: unknown) => String(error))
  ])
  isPlaying = true
  await venue.run(...acts, last)
  await isOver.promise
  transport.close()
  return payloads
}
