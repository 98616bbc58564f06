/** The npm package `hyperliquid`: its subscriptions. It takes no address, so those of the venue in it are replaced. */
import { Hyperliquid } from "hyperliquid"
import { setImmediate } from "node:timers/promises"
import { acts, begin, type Client, last, user } from "./play.ts"

type Listen = (sdk: Hyperliquid, listener: (data: unknown) => void) => Promise<void>

const ofUser = (type: string): string => `{"type":"${type}","user":"${user}"}`

/** Each subscription with its key at the venue: the client does not wait for acknowledgements. */
const subscriptions: ReadonlyArray<readonly [key: string, listen: Listen]> = [
  [
    `{"type":"trades","coin":"BTC"}`,
    ({ subscriptions }, listener) => subscriptions.subscribeToTrades("BTC-PERP", listener)
  ],
  [`{"type":"allMids","dex":""}`, ({ subscriptions }, listener) => subscriptions.subscribeToAllMids(listener)],
  [
    `{"type":"l2Book","coin":"BTC","nSigFigs":null,"mantissa":null,"fast":false}`,
    ({ subscriptions }, listener) => subscriptions.subscribeToL2Book("BTC-PERP", listener)
  ],
  [`{"type":"bbo","coin":"BTC"}`, ({ subscriptions }, listener) => subscriptions.subscribeToBbo("BTC-PERP", listener)],
  [
    `{"type":"candle","coin":"BTC","interval":"1m"}`,
    ({ subscriptions }, listener) => subscriptions.subscribeToCandle("BTC-PERP", "1m", listener)
  ],
  [
    `{"type":"activeAssetCtx","coin":"BTC"}`,
    ({ subscriptions }, listener) => subscriptions.subscribeToActiveAssetCtx("BTC-PERP", listener)
  ],
  [ofUser("notification"), ({ subscriptions }, listener) => subscriptions.subscribeToNotification(user, listener)],
  [ofUser("orderUpdates"), ({ subscriptions }, listener) => subscriptions.subscribeToOrderUpdates(user, listener)],
  [
    `{"type":"userFills","user":"${user}","aggregateByTime":false}`,
    ({ subscriptions }, listener) => subscriptions.subscribeToUserFills(user, listener)
  ],
  [ofUser("userFundings"), ({ subscriptions }, listener) => subscriptions.subscribeToUserFundings(user, listener)],
  [
    ofUser("userNonFundingLedgerUpdates"),
    ({ subscriptions }, listener) => subscriptions.subscribeToUserNonFundingLedgerUpdates(user, listener)
  ],
  [
    ofUser("userTwapHistory"),
    ({ subscriptions }, listener) => subscriptions.subscribeToUserTwapHistory(user, listener)
  ],
  [
    ofUser("userTwapSliceFills"),
    ({ subscriptions }, listener) => subscriptions.subscribeToUserTwapSliceFills(user, listener)
  ]
]

const isObject = (value: unknown): value is object =>
  (typeof value === "object" && value !== null) || typeof value === "function"

/** Sets a member at a path of the client that it does not let its users set. */
export const replace = (sdk: Hyperliquid, path: ReadonlyArray<string>, member: string, value: string): void => {
  let found: unknown = sdk
  for (const step of path) found = isObject(found) ? Reflect.get(found, step) : undefined
  if (!isObject(found) || !(member in found)) throw new Error(`The client has no ${path.join(".")}.${member}`)
  Reflect.set(found, member, value)
}

export const hyperliquid: Client = async (baseUrl, venue, millis) => {
  const frames: Array<readonly [string, unknown]> = []
  const payloads: Array<readonly [string, unknown]> = []
  await begin(venue, millis)
  const sdk = new Hyperliquid({ enableWs: true, disableAssetMapRefresh: true })
  replace(sdk, ["ws"], "url", `${baseUrl.replace(/^http/u, "ws")}/ws`)
  replace(sdk, ["symbolConversion", "httpApi", "client", "defaults"], "baseURL", baseUrl)
  await sdk.connect()
  sdk.ws.on("message", ({ channel, data }: { readonly channel: string; readonly data: unknown }) => {
    if (channel !== "pong") frames.push([channel, data])
  })
  const isOver = Promise.withResolvers<void>()
  let isPlaying = false
  for (const [key, listen] of subscriptions) {
    await listen(sdk, (data) => payloads.push([key, data]))
    await venue.run({ until: "subscribed", key, count: 1 })
  }
  await sdk.subscriptions.subscribeToTrades("SOL-PERP", () => {
    if (isPlaying) isOver.resolve()
  })
  await venue.run({ until: "subscribed", key: `{"type":"trades","coin":"SOL"}`, count: 1 })
  isPlaying = true
  await venue.run(...acts, last)
  await isOver.promise
  // larger frames take the client more steps
  await setImmediate()
  sdk.disconnect()
  // it converts frames at the same time, and so it gives small ones to listeners before large ones
  return [...frames, ...payloads.toSorted((left, right) => JSON.stringify(left) < JSON.stringify(right) ? -1 : 1)]
}
