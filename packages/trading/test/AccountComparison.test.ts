/** The comparison of an account's event log with the venue's responses: it notices each fill that the log lacks. */
import { assert, describe, it } from "@effect/vitest"
import { monotonicTime } from "@trigate/domain/encoding/Encoding"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import * as EventStore from "@trigate/trading/accounts/AccountEvents"
import { EventLog } from "@trigate/trading/accounts/AccountEvents"
import type { AccountEvents } from "@trigate/trading/accounts/AccountEvents"
import * as AccountComparison from "@trigate/trading/unstable/accounts/AccountChecks"
import * as AccountMirror from "@trigate/trading/unstable/accounts/AccountMirror"
import * as VenueProtocol from "@trigate/trading/unstable/streams/VenueProtocol"
import { Frame } from "@trigate/upstream/unstable/streams/Topic"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"

const user = `0x${"aa".repeat(20)}`

const dust = (coin: string, oid: number) => ({ coin, px: "1.0", sz: "0.001", time: 10_000, oid, tid: 0 })

const order = (oid: number, coin: string) => ({ coin, side: "B", limitPx: "1.0", sz: "1.0", oid, timestamp: 10_000 })

const states: Readonly<Record<string, object>> = {
  clearinghouseState: { dex: "", user, clearinghouseState: { assetPositions: [] } },
  spotState: { user, spotState: { balances: [] } },
  openOrders: { dex: "", user, orders: [] }
}

interface Case {
  readonly logged: ReadonlyArray<object>
  readonly updates?: ReadonlyArray<object>
  readonly fills: ReadonlyArray<object>
  readonly orders?: ReadonlyArray<object>
}

/** Compares an account once. Returns whether its epoch was ended. */
const compare = Effect.fnUntraced(function*({ fills, logged, orders = [], updates = [] }: Case) {
  const log = new EventLog(EventStore.defaultBounds)
  log.append({ kind: "begin", user, name: "", rows: [], seq: 1, at: 0 })
  const append = (name: string, rows: ReadonlyArray<object>, seq: number) =>
    log.append({
      kind: "event",
      user,
      name,
      rows: rows.map((row) => VenueProtocol.parseRow(name, JSON.stringify(row))),
      seq,
      at: 10_000
    })
  append("userFills", logged, 9)
  append("orderUpdates", updates.map((each) => ({ order: each, status: "open", statusTimestamp: 10_000 })), 20)
  let isEnded = false
  const events: AccountEvents = {
    log,
    backing: "memory",
    isLogged: () => true,
    watch: () => () => {},
    catchUp: () => Effect.void,
    isLive: () => true,
    isRecording: () => true,
    interrupt: () => {
      isEnded = true
    },
    status: () => ({
      backing: "memory",
      isUp: true,
      role: "writer",
      head: log.head,
      accounts: [{ user, phase: "live" }],
      unrecorded: 0
    })
  }
  const mirror = yield* AccountMirror.make(10_000)
  mirror.follow({ events, heardAt: () => undefined })
  const clock = yield* Clock.Clock
  const receive = Effect.sync(() => {
    for (const [type, data] of Object.entries({ ...states, openOrders: { dex: "", user, orders } })) {
      const topic = VenueProtocol.makeTopic(Result.getOrThrow(Subscriptions.read({ type, user })))
      const text = VenueProtocol.dataFrame(type, JSON.stringify(data))
      mirror.observer.received(user, new Frame(text, topic, topic.key, monotonicTime(clock)))
    }
  })
  const responses: Readonly<Record<string, unknown>> = {
    clearinghouseState: { assetPositions: [] },
    spotClearinghouseState: { balances: [] },
    frontendOpenOrders: orders,
    userFillsByTime: fills
  }
  const asked: Array<unknown> = []
  yield* AccountComparison.startComparison({
    events,
    mirror,
    heardAt: () => monotonicTime(clock),
    query: (query) =>
      Effect.sync(() => {
        const type = String(Object.entries(query)[0]?.[1])
        asked.push(type)
        return JSON.stringify(responses[type])
      })
  })
  yield* receive
  for (let seconds = 0; seconds < 400; seconds += 10) {
    yield* TestClock.adjust("10 seconds")
    yield* receive
  }
  assert.deepStrictEqual(
    asked,
    [...AccountMirror.servedQueries.keys(), "userFillsByTime"].filter((type) => type in responses)
  )
  return isEnded
})

const [one, other] = [dust("@1", 1), dust("@2", 2)]

const cases: Readonly<Record<string, readonly [Case, isEnded: boolean]>> = {
  "has all fills, also where the venue lists other members": [{
    logged: [one, other],
    fills: [{ twapId: null, feeToken: "USDC", ...other }, one]
  }, false],
  "lacks a fill whose trade another fill names": [{ logged: [one], fills: [one, other] }, true],
  "lacks a fill that has another's key": [{ logged: [one], fills: [one, { ...one, sz: "0.002" }] }, true],
  "has another size of a fill": [{ logged: [{ ...one, sz: "0.002" }], fills: [one] }, true],
  "lacks one of two equal fills": [{ logged: [one], fills: [one, one] }, true],
  "has the update of each open order": [{
    logged: [],
    fills: [],
    updates: [order(1, "BTC")],
    orders: [{ ...order(1, "BTC"), sz: "0.5", tif: "Gtc" }]
  }, false],
  "has the update of another order": [{
    logged: [],
    fills: [],
    updates: [order(1, "BTC")],
    orders: [order(1, "ETH")]
  }, true]
}

describe("the comparison with the venue", () => {
  for (const [what, [given, isEnded]] of Object.entries(cases)) {
    it.effect(`${isEnded ? "ends" : "continues"} the epoch of a log that ${what}`, () =>
      Effect.map(compare(given), (found) => assert.strictEqual(found, isEnded)).pipe(Effect.scoped))
  }
})
