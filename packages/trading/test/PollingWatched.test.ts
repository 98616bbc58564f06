/** Bots that poll the state of one account whose streams a gateway follows: what that weighs at the venue, on a simulated clock. */
import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import { isExhaustive, sample } from "@trigate/testing/Sample"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import * as EventStore from "@trigate/trading/accounts/AccountEvents"
import { Info } from "@trigate/trading/Info"
import * as Streams from "@trigate/trading/streams/Streams"
import * as VenueSocket from "@trigate/trading/streams/StreamsMemory"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as AccountMirror from "@trigate/trading/unstable/accounts/AccountMirror"
import * as Pipeline from "@trigate/upstream/Pipeline"
import { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { mostInAMinute } from "./pollingAccounts.ts"

const user = `0x${"aa".repeat(20)}`

const weights: { readonly [type: string]: number } = { clearinghouseState: 2, spotClearinghouseState: 2 }

const polled = ["clearinghouseState", "spotClearinghouseState", "openOrders", "frontendOpenOrders", "userFills"]

const fill = (tid: number, time: number) => ({
  coin: "BTC",
  px: "1.0",
  sz: "1.0",
  side: "B",
  time,
  startPosition: "0.0",
  dir: "Open Long",
  closedPnl: "0.0",
  hash: `0x${"0".repeat(64)}`,
  oid: tid,
  crossed: true,
  fee: "0.0",
  tid
})

const margin = (time: number) => ({
  marginSummary: { accountValue: "1.0", totalNtlPos: "0.0", totalRawUsd: "1.0", totalMarginUsed: "0.0" },
  crossMarginSummary: { accountValue: "1.0", totalNtlPos: "0.0", totalRawUsd: "1.0", totalMarginUsed: "0.0" },
  withdrawable: "1.0",
  assetPositions: [],
  time
})

/** The venue with an account that has a fill every so many seconds, or none. */
const venue = (fillsEvery: number) => {
  const fills: Array<ReturnType<typeof fill>> = []
  const fillAt = (now: number) => {
    fills.push(fill(fills.length, now))
    return { user, fills: fills.slice(-1) }
  }
  const responses: { readonly [type: string]: (now: number) => unknown } = {
    clearinghouseState: margin,
    spotClearinghouseState: () => ({ balances: [] }),
    openOrders: () => [],
    frontendOpenOrders: () => [],
    userFills: () => fills.toReversed(),
    userFillsByTime: () => fills
  }
  const every = <A>(seconds: number, make: (now: number) => A) =>
    Stream.map(Stream.fromEffectSchedule(Clock.currentTimeMillis, Schedule.spaced(`${seconds} seconds`)), make)
  const frames: VenueSocket.Frames = ({ declaration: { name, rows } }) => {
    switch (name) {
      case "clearinghouseState":
        return every(4.5, (now) => ({ dex: "", user, clearinghouseState: margin(now) }))
      case "spotState":
        return every(4.5, () => ({ user, spotState: { balances: [] } }))
      case "openOrders":
        return every(4.5, () => ({ dex: "", user, orders: [] }))
      case "userFills":
        return Stream.concat(
          Stream.succeed({ user, isSnapshot: true, fills: [] }),
          fillsEvery === 0
            ? Stream.never
            : every(fillsEvery, fillAt)
        )
      default:
        return rows?.member === undefined
          ? Stream.never
          : Stream.concat(Stream.succeed({ user, isSnapshot: true, [rows.member]: [] }), Stream.never)
    }
  }
  return { responses, frames }
}

/** The responses are shared, so the number of bots changes none of the figures. */
const bots = isExhaustive ? 20 : 4

/** Lets bots poll five queries a second for ten minutes. Returns the most weight in any minute, and responses by their age in seconds. */
const run = Effect.fnUntraced(function*(fillsEvery: number) {
  const { frames, responses } = venue(fillsEvery)
  const spent: Array<readonly [at: number, weight: number]> = []
  let now = 0
  let wrong = 0
  let oldest = 0
  const transport = ScriptedTransport.make(({ body }) => {
    const type = /"type":"(?<type>\w+)"/u.exec(body)?.groups?.["type"] ?? ""
    const response = responses[type]?.(now) ?? null
    spent.push([
      now,
      (weights[type] ?? 20) +
      (type.startsWith("userFills") && Array.isArray(response) ? Math.floor(response.length / 20) : 0)
    ])
    return ScriptedTransport.response(200, JSON.stringify(response))
  })
  const mirror = yield* AccountMirror.make(10_000)
  const calls = yield* Effect.forEach(
    polled,
    (type) => InfoProtocol.parseCall(Json.write({ type, user }), "gateway", true)
  )
  yield* Effect.gen(function*() {
    const info = yield* Info
    yield* Streams.makeShared(info, { addresses: [Redacted.make("memory")], events: { accounts: [user] }, mirror })
      .pipe(
        Effect.provideService(SocketTransport, VenueSocket.makeSocket(frames)),
        Effect.provideServiceEffect(EventStore.EventStore, EventStore.makeMemory)
      )
    for (let second = 0; second < 620; second++) {
      yield* TestClock.adjust("1 second")
      now = yield* Clock.currentTimeMillis
      // the account is watched for a while before the bots begin
      for (let bot = second < 20 ? bots : 0; bot < bots; bot++) {
        for (const call of calls) {
          const { age = 0, text } = yield* info.relay(call)
          oldest = Math.max(oldest, age)
          const type = InfoProtocol.queryType(call)
          if (type !== "clearinghouseState" && text !== JSON.stringify(responses[type]?.(now))) wrong++
        }
      }
    }
  }).pipe(Effect.provide(
    TradingUpstream.layerInfo({ api: ["https://api.test"] }, { mirror }).pipe(
      Layer.provide(Pipeline.layer()),
      Layer.provide(transport.transport)
    )
  ))
  return { wrong, oldest, weight: mostInAMinute(spent), total: spent.reduce((sum, [, weight]) => sum + weight, 0) }
}, Effect.scoped)

/** Of the account's agents and its actions left, once in the ten minutes. */
const checks = 20 + 20

const scenarios = [
  [
    "one response and two comparisons while nothing happens to it",
    0,
    { wrong: 0, oldest: 4, weight: 44, total: 20 + 2 * 44 + checks }
  ],
  // a fill comes in the minute after a check
  [
    "one response of each state more for each of its fills",
    130,
    { wrong: 0, oldest: 5, weight: 24 + 20, total: 20 + 44 + 4 * 24 + checks }
  ]
] as const

describe(`${bots} bots that poll five queries about one watched account every second for ten minutes`, () => {
  for (const [what, fillEvery, expected] of sample("events of a watched account", scenarios, 1)) {
    it.effect(`weigh ${what}`, () => Effect.map(run(fillEvery), (found) => assert.deepStrictEqual(found, expected)))
  }
})
