/** The sandbox's answers and frames during random trading, decoded by the declared schemas. */
import { assert } from "@effect/vitest"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import { readAcknowledged } from "@trigate/domain/unstable/streams/Subscriptions"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as VenueStreams from "@trigate/sandbox/unstable/streams/VenueStreams"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { play, users } from "./randomTrading.ts"
import { ask } from "./trader.ts"
import { start } from "./venue.ts"

const [user] = users
const coin = "ETH"

/** The members of the queries: those about a user have no others. */
const members: { readonly [type: string]: object } = {
  spotMeta: {},
  candleSnapshot: { req: { coin, interval: "15m", startTime: start - 3_600_000 } },
  meta: { dex: "xyz" },
  allPerpMetas: {},
  outcomeMeta: {},
  metaAndAssetCtxs: {},
  perpDexs: {},
  allMids: {},
  l2Book: { coin },
  recentTrades: { coin },
  fundingHistory: { coin, startTime: start - 86_400_000 },
  orderStatus: { user, oid: 77_738_310 },
  userFillsByTime: { user, startTime: 0 }
}

const requests = Object.entries(infoOperations).map(([type, { response }]) => ({
  type,
  query: { type, ...members[type] ?? { user } },
  decode: Schema.decodeUnknownResult(response)
}))

const ofUser = [
  "notification",
  "webData3",
  "clearinghouseState",
  "allDexsClearinghouseState",
  "openOrders",
  "spotState",
  "twapStates",
  "orderUpdates",
  "userEvents",
  "userFills",
  "userFundings",
  "userNonFundingLedgerUpdates",
  "userHistoricalOrders",
  "userTwapHistory",
  "userTwapSliceFills"
]
const ofCoin = ["l2Book", "bbo", "trades", "activeAssetCtx"]

const subscriptions: ReadonlyArray<object> = [
  ...ofUser.map((type) => ({ type, user })),
  ...ofCoin.map((type) => ({ type, coin })),
  { type: "activeAssetData", user, coin },
  { type: "candle", coin, interval: "1m" },
  { type: "assetCtxs", dex: "" },
  { type: "allMids" }
]

/** Subscriptions to the prices of all coins, whose frames are large. */
const large = ["spotAssetCtxs", "allDexsAssetCtxs", "fastAssetCtxs"].map((type) => ({ type }))

/**
 * Plays a run of random trading, and decodes each answer after each step and each frame. Returns the differences, and
 * the number of decoded answers and frames.
 */
export const decodeRun = Effect.fnUntraced(function*(run: number, steps: number, isLong = false) {
  const mistakes = new Set<string>()
  let [answers, frames] = [0, 0]
  const made = VenueStreams.makeFrames(VenueStreams.makeFeed(yield* SandboxState))
  for (const request of isLong ? [...subscriptions, ...large] : subscriptions) {
    const subscription = Result.getOrThrow(readAcknowledged(request))
    const { declaration: { item, name } } = subscription
    const decode = Schema.decodeUnknownResult(item)
    const stream = made(subscription) ?? assert.fail(`${name} is refused`)
    yield* Effect.forkChild(
      Stream.runForEach(stream, (frame) =>
        Effect.sync(() => {
          // a frame of trades or of orders is a list of items
          for (const each of Array.isArray(frame) ? frame : [frame]) {
            frames++
            const decoded = decode(each)
            if (Result.isFailure(decoded)) mistakes.add(`${name}: ${String(decoded.failure)}`)
          }
        }))
    )
  }
  yield* play(
    run,
    steps,
    Effect.gen(function*() {
      for (const { decode, query, type } of requests) {
        answers++
        const decoded = decode(yield* ask(query))
        if (Result.isFailure(decoded)) mistakes.add(`${type}: ${String(decoded.failure)}`)
      }
    }),
    // the streams poll, so that their clock passes only a few seconds of a longer time
    Effect.fnUntraced(function*(milliseconds) {
      const polled = Math.min(milliseconds, isLong ? 5_000 : 1_000)
      const { trading } = yield* SandboxState
      yield* trading.advance(milliseconds - polled)
      yield* TestClock.adjust(polled)
    })
  )
  return { mistakes: [...mistakes], answers, frames }
})
