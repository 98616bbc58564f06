/** What the venue and the network do wrong, each over real sockets, and what callers of `/ws` see of it. */
import { assert, describe, layer as tests } from "@effect/vitest"
import { get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { openEvents } from "./eventSource.ts"
import { alice, bob, keys, lab, layer, meanwhile } from "./lab.ts"
import type { Frame, TestSocket } from "./socket.ts"

const btc = { type: "trades", coin: "BTC" }
const fills = { type: "userFills", user: alice }

const next = (socket: TestSocket, channel?: string) => Effect.promise(() => socket.next(channel))

const until = (socket: TestSocket, isMet: (frames: ReadonlyArray<Frame>) => boolean, what: string) =>
  Effect.promise(() => socket.until(isMet, what))

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/** The ids of all trades or fills that a socket received, in order. */
const tids = (socket: TestSocket, channel: string): ReadonlyArray<unknown> =>
  socket.of(channel).flatMap(({ data }) => list(channel === "trades" ? data : JsonParts.at(data, "fills")))
    .map((row) => JsonParts.at(row, "tid"))

/** The orders of the fills that were received after a first frame. */
const filledOrders = ([, ...frames]: ReadonlyArray<Frame>): ReadonlyArray<unknown> =>
  frames.flatMap(({ data }) => list(JsonParts.at(data, "fills"))).map((row) => JsonParts.at(row, "oid"))

/** What a socket received of the orders of a user: id and status, in order. */
const updates = (frames: ReadonlyArray<Frame>): ReadonlyArray<string> =>
  frames.flatMap(({ data }) => list(data)).map((row) =>
    `${String(JsonParts.at(JsonParts.at(row, "order"), "oid"))} ${String(JsonParts.at(row, "status"))}`
  )

const errorsOf = (socket: TestSocket) => socket.of("error").map(({ data }) => data)

describe("a venue that", () => {
  tests(layer)((it) => {
    it.effect("acknowledges late, or after the first frame, is acknowledged once", () =>
      Effect.gen(function*() {
        const { open, run } = yield* lab({}, { do: "faults", set: { ack: 5000 } })
        const socket = yield* open()
        socket.subscribe({ type: "l2Book", coin: "BTC" })
        yield* run({ until: "subscribed", key: keys.book("BTC"), count: 1 }, { do: "advance", millis: 5000 })
        const response = `{"channel":"subscriptionResponse","data":{"method":"subscribe","subscription":`
        assert.strictEqual((yield* next(socket)).text, `${response}${keys.book("BTC")}}}`)
        assert.strictEqual((yield* next(socket)).channel, "l2Book")
        yield* run({ do: "faults", set: { ack: "after-data" } })
        socket.subscribe({ type: "bbo", coin: "BTC" })
        assert.strictEqual((yield* next(socket)).text, `${response}{"type":"bbo","coin":"BTC"}}}`)
        assert.strictEqual((yield* next(socket)).channel, "bbo")
        yield* run({ do: "states", type: "bbo" })
        assert.strictEqual((yield* next(socket)).channel, "bbo")
      }))

    // https://github.com/nautechsystems/nautilus_trader/issues/4325
    it.effect("converts dust, in fills that all have the tid 0, has each of them delivered: in one frame, in several, over a lost connection, as events and in responses", () =>
      Effect.gen(function*() {
        const watched = lab({ TRIGATE_WATCH_ACCOUNTS: alice }, { do: "dust", user: alice, coins: ["@107"] })
        const { open, run, state, url, venue } = yield* watched
        const socket = yield* open()
        socket.subscribe(fills)
        yield* meanwhile(until(socket, () => socket.of("userFills").length === 1, "a snapshot"))
        const events = yield* openEvents(url, [fills])
        yield* meanwhile(Effect.promise(() => events.until(() => events.of("userFills").length === 1, "a snapshot")))
        const dust = (...coins: ReadonlyArray<string>) => ({ do: "dust", user: alice, coins }) as const
        yield* run(dust("@107", "PURR/USDC"), dust("@107"), dust("@142"))
        yield* run({ do: "faults", set: { refuse: 503 } }, { do: "drop" }, dust("@107"), dust("@142"), {
          do: "faults",
          set: {}
        })
        const isWhole = (received: ReadonlyArray<Frame>) => filledOrders(received).length >= 6
        yield* meanwhile(until(socket, () => isWhole(socket.of("userFills")), "each fill"))
        yield* meanwhile(Effect.promise(() => events.until(() => isWhole(events.of("userFills")), "each fill")))
        const query = JSON.stringify({ type: "userFills", user: alice })
        const { json } = yield* post(`${venue.url}/info`, query)
        const known = list(json).map((row) => JsonParts.at(row, "oid")).toReversed().slice(1)
        assert.deepStrictEqual(filledOrders(socket.of("userFills")), known)
        assert.deepStrictEqual(filledOrders(events.of("userFills")), known)
        assert.deepStrictEqual((yield* post(`${url}/info`, query)).json, json)
        assert.deepStrictEqual((yield* state).violations, [])
      }))

    it.effect("would destroy the socket never sees what it cannot stand", () =>
      Effect.gen(function*() {
        const { open, run, state } = yield* lab()
        const socket = yield* open()
        const invalid = [
          { type: "trades", coin: "NOPE" },
          { type: "trades", coin: "btc" },
          { type: "bbo", coin: "XYZ:SP500" },
          { type: "bbo", coin: "SP500" },
          { type: "bbo", coin: "xyz:NOPE" },
          { type: "l2Book", coin: "BTC", nSigFigs: 6 },
          { type: "l2Book", coin: "BTC", mantissa: 2 },
          { type: "candle", coin: "BTC", interval: "7m" },
          { type: "userFills", user: "0x1234" }
        ]
        for (const subscription of invalid) {
          socket.subscribe(subscription)
          assert.match(String((yield* next(socket)).data), /^Invalid subscription \{/u, JSON.stringify(subscription))
        }
        const unreadable = [
          `{"method":"subscribe","subscription":{"type":"bbo","coin":["BTC","ETH"]}}`,
          `{"method":"subscribe","subscription":{"type":"webData2","user":"${alice}"}}`,
          // the undocumented book of differences: it may change or end at any time
          `{"method":"subscribe","subscription":{"type":"l2","c":"BTC"}}`,
          `{"method":"shout"}`,
          `{"method":"post","request":{"type":"info","payload":{"type":"meta"}}}`,
          `not JSON`,
          `${"[".repeat(40)}${"]".repeat(40)}`
        ]
        for (const text of unreadable) {
          socket.send(text)
          assert.strictEqual((yield* next(socket)).data, `Error parsing JSON into valid websocket request: ${text}`)
        }
        socket.subscribe(btc)
        yield* run({ until: "subscribed", key: keys.trades("BTC"), count: 1 })
        const { messages, queries, violations } = yield* state
        assert.deepStrictEqual([messages, violations], [1, []])
        // a list is read again for each unknown name, up to a bound
        assert.deepStrictEqual(queries.map(({ query }) => JSON.stringify(query)), [
          `{"type":"meta","dex":""}`,
          `{"type":"meta","dex":""}`,
          `{"type":"perpDexs"}`,
          `{"type":"meta","dex":""}`,
          `{"type":"meta","dex":"xyz"}`
        ])
      }))

    it.effect("lists another coin has its subscriptions at once, also a side of an outcome without a price", () =>
      Effect.gen(function*() {
        const { open, run, state } = yield* lab()
        const socket = yield* open()
        const accepted = (coin: string) => {
          socket.subscribe({ type: "trades", coin })
          return Effect.map(next(socket, "subscriptionResponse"), ({ data }) => {
            assert.deepStrictEqual(JsonParts.at(data, "subscription"), { type: "trades", coin })
          })
        }
        for (const coin of ["BTC", "#11210"]) yield* accepted(coin)
        socket.subscribe({ type: "trades", coin: "NEWC" })
        assert.strictEqual((yield* next(socket, "error")).data, `Invalid subscription {"type":"trades","coin":"NEWC"}`)
        yield* run({ do: "list", coin: "NEWC" }, { do: "list", coin: "#70" })
        for (const coin of ["NEWC", "#70", "#71"]) yield* accepted(coin)
        const { queries, violations } = yield* state
        assert.deepStrictEqual(queries.map(({ query }) => JsonParts.at(query, "type")), [
          "meta",
          "allMids",
          "outcomeMeta",
          "meta",
          "meta",
          "allMids",
          "outcomeMeta"
        ])
        assert.deepStrictEqual(violations, [])
      }))

    it.effect("acknowledges a subscription with other members is asked with those of the caller, who reads them back", () =>
      Effect.gen(function*() {
        const { open, state } = yield* lab()
        const socket = yield* open()
        const sent = { type: "spotState", user: alice, isPortfolioMargin: true }
        socket.subscribe(sent)
        const response = yield* next(socket, "subscriptionResponse")
        assert.deepStrictEqual(JsonParts.at(response.data, "subscription"), sent)
        assert.strictEqual((yield* next(socket, "spotState")).channel, "spotState")
        socket.unsubscribe(sent)
        const over = yield* next(socket, "subscriptionResponse")
        assert.deepStrictEqual(over.data, { method: "unsubscribe", subscription: sent })
        // a member that the gateway does not know would be dropped, or would take a connection of its own
        socket.subscribe({ type: "trades", coin: "BTC", later: 1 })
        assert.strictEqual(
          (yield* next(socket, "error")).data,
          `Invalid subscription {"type":"trades","coin":"BTC","later":1}: unknown member later`
        )
        const { violations } = yield* state
        assert.deepStrictEqual(violations, [])
      }))

    it.effect("does not give its lists lets nothing through", () =>
      Effect.gen(function*() {
        const { open, state } = yield* lab({}, {
          do: "rest",
          set: { "*": { mode: "status", status: 500, body: "{}" } }
        })
        const socket = yield* open()
        socket.subscribe(btc)
        const { data } = yield* meanwhile(next(socket))
        assert.match(String(data), /^Invalid subscription \{"type":"trades","coin":"BTC"\}.+/u)
        assert.strictEqual((yield* state).messages, 0)
      }))

    it.effect("destroys the socket at one subscription is not sent it again, and the others lose nothing", () =>
      Effect.gen(function*() {
        const culprit = keys.trades("ETH")
        const { open, run, state } = yield* lab({}, { do: "faults", set: { fatal: [culprit] } }, {
          do: "trade",
          coin: "BTC",
          count: 2
        })
        const [innocent, guilty] = [yield* open(), yield* open()]
        innocent.subscribe(btc)
        yield* next(innocent, "trades")
        guilty.subscribe({ type: "trades", coin: "ETH" })
        const { data } = yield* meanwhile(next(guilty, "error"))
        assert.strictEqual(data, `Invalid subscription ${culprit}`)
        yield* meanwhile(run({ until: "subscribed", key: keys.trades("BTC"), count: 1 }))
        yield* run({ do: "trade", coin: "BTC", count: 3 })
        yield* until(innocent, () => tids(innocent, "trades").length >= 5, "five trades")
        assert.strictEqual(new Set(tids(innocent, "trades")).size, 5)
        assert.deepStrictEqual(errorsOf(innocent), [])
        assert.isAtMost((yield* state).violations.filter((what) => what === `fatal ${culprit}`).length, 2)
      }))

    it.effect("closes what it has sent nothing for a minute is asked for a pong in time", () =>
      Effect.gen(function*() {
        const { open, pass, run, state } = yield* lab()
        const socket = yield* open()
        socket.subscribe({ type: "userEvents", user: alice })
        yield* next(socket, "subscriptionResponse")
        yield* pass(150)
        const { opened, pings } = yield* state
        assert.deepStrictEqual([opened, pings >= 4], [1, true])
        yield* run({ do: "notify", user: alice }, { do: "funding", user: alice })
        yield* next(socket, "user")
      }))

    it.effect("answers no pings is left for another connection within ten seconds", () =>
      Effect.gen(function*() {
        const { open, pass, run, state } = yield* lab()
        const socket = yield* open()
        socket.subscribe({ type: "userEvents", user: alice })
        yield* next(socket, "subscriptionResponse")
        yield* run({ do: "faults", set: { eatPings: true } })
        yield* pass(20)
        assert.strictEqual((yield* state).opened, 1)
        yield* pass(10)
        yield* meanwhile(run({ until: "opened", count: 2 }, { do: "faults", set: {} }, {
          until: "subscribed",
          key: keys.userEvents(alice),
          count: 1
        }))
      }))

    it.effect("greets with a text that is no JSON is understood", () =>
      Effect.gen(function*() {
        const { open } = yield* lab({}, {
          do: "faults",
          set: { greeting: "Websocket connection established." }
        }, { do: "trade", coin: "BTC" })
        const socket = yield* open()
        socket.subscribe(btc)
        yield* next(socket, "trades")
        assert.deepStrictEqual(socket.frames.map(({ channel }) => channel), ["subscriptionResponse", "trades"])
      }))

    for (const isSnapshot of ["absent", "false", "true"] as const) {
      it.effect(`sends a snapshot again after a reconnect gives callers what they missed, once (isSnapshot ${isSnapshot})`, () =>
        Effect.gen(function*() {
          const { open, run } = yield* lab(
            {},
            { do: "switches", set: { isSnapshot, snapshotOrder: isSnapshot === "false" ? "descending" : "ascending" } },
            { do: "fill", user: alice, coin: "BTC", count: 10 }
          )
          const socket = yield* open()
          socket.subscribe(fills)
          yield* next(socket, "userFills")
          yield* run({ do: "faults", set: { refuse: 503 } }, { do: "drop" }, {
            do: "fill",
            user: alice,
            coin: "ETH",
            count: 3
          }, { do: "faults", set: {} })
          yield* meanwhile(run({ until: "subscribed", key: keys.userFills(alice), count: 1 }))
          yield* run({ do: "fill", user: alice, coin: "BTC" })
          yield* until(socket, () => tids(socket, "userFills").length >= 14, "14 fills")
          const received = tids(socket, "userFills")
          assert.strictEqual(new Set(received).size, 14)
          const marked = socket.of("userFills").map(({ data }) => JsonParts.at(data, "isSnapshot") === true)
          assert.deepStrictEqual([marked[0], marked.slice(1).includes(true)], [true, false])
          const late = yield* open()
          late.subscribe(fills)
          const { data } = yield* next(late, "userFills")
          assert.strictEqual(JsonParts.at(data, "isSnapshot"), true)
          assert.sameMembers([...tids(late, "userFills")], [...received])
        }))
    }

    it.effect("loses orders over a reconnect has them asked for, and callers can tell", () =>
      Effect.gen(function*() {
        const { ledger, open, run } = yield* lab()
        const socket = yield* open()
        socket.subscribe({ type: "orderUpdates", user: alice })
        yield* next(socket, "subscriptionResponse")
        yield* run({ do: "place", user: alice, coin: "BTC" }, { do: "place", user: alice, coin: "ETH" })
        yield* until(socket, () => updates(socket.of("orderUpdates")).length >= 2, "two orders")
        yield* run(
          { do: "faults", set: { refuse: 503 } },
          { do: "drop" },
          { do: "fill", user: alice, coin: "SOL" },
          { do: "modify", user: alice, first: "open" },
          { do: "cancel", user: alice },
          { do: "faults", set: {} }
        )
        yield* meanwhile(until(socket, () => updates(socket.of("orderUpdates")).length >= 7, "what was missed"))
        yield* run({ until: "subscribed", key: keys.orderUpdates(alice), count: 1 }, {
          do: "place",
          user: alice,
          coin: "HYPE"
        })
        yield* until(socket, () => updates(socket.of("orderUpdates")).length >= 8, "the next order")
        const happened = (yield* ledger).filter(({ key }) => key === keys.orderUpdates(alice))
        const expected = happened.flatMap(({ data }) => list(data)).map((row) =>
          `${String(JsonParts.at(JsonParts.at(row, "order"), "oid"))} ${String(JsonParts.at(row, "status"))}`
        )
        assert.deepStrictEqual(updates(socket.of("orderUpdates")), expected)
        const marks = socket.of("orderUpdates").map(({ text }) => text.endsWith(`"isRefill":true}`))
        assert.deepStrictEqual(marks, [false, false, true, false])
      }))

    it.effect("sends a snapshot that does not reach back has the rest asked for", () =>
      Effect.gen(function*() {
        const { ledger, open, pass, run, url } = yield* lab({}, { do: "switches", set: { snapshotItems: 1 } })
        const socket = yield* open()
        const members = { userHistoricalOrders: "orderHistory", userTwapHistory: "history" }
        const rows = (type: keyof typeof members, frames: ReadonlyArray<{ readonly data: unknown }>) =>
          frames.flatMap(({ data }) => list(JsonParts.at(data, members[type]))).map((row) => JSON.stringify(row))
        const types = ["userHistoricalOrders", "userTwapHistory"] as const
        for (const type of types) socket.subscribe({ type, user: alice })
        yield* until(socket, () => types.every((type) => socket.of(type).length > 0), "two snapshots")
        yield* run({ do: "place", user: alice, coin: "BTC" }, { do: "twap", user: alice }, {
          do: "faults",
          set: { refuse: 503 }
        }, { do: "drop" })
        for (const coin of ["ETH", "SOL", "BTC"]) {
          // the times of TWAP orders are in seconds
          yield* run({ do: "fill", user: alice, coin }, { do: "advance", millis: 1000 }, { do: "twap", user: alice })
        }
        yield* run({ do: "faults", set: {} })
        yield* meanwhile(until(
          socket,
          () => rows("userHistoricalOrders", socket.of("userHistoricalOrders")).length >= 7,
          "what was missed of the orders"
        ))
        yield* meanwhile(
          until(socket, () => rows("userTwapHistory", socket.of("userTwapHistory")).length >= 4, "four TWAP orders")
        )
        const happened = yield* ledger
        for (const type of types) {
          assert.deepStrictEqual(
            rows(type, socket.of(type)),
            rows(type, happened.filter(({ channel }) => channel === type)),
            type
          )
        }
        yield* pass(1)
        assert.notInclude((yield* get(`${url}/metrics`)).text, "trigate_stream_gaps_total{")
      }))

    it.effect("loses events that no query has is said to have a gap, if funding was paid meanwhile or a user was liquidated", () =>
      Effect.gen(function*() {
        const hour = 3_600_000
        const now = Math.max(Date.UTC(2026, 8, 24, 12), yield* Clock.currentTimeMillis)
        yield* TestClock.setTime(Math.ceil(now / hour) * hour + hour - 60_000)
        const { open, pass, run, url } = yield* lab()
        const socket = yield* open()
        socket.subscribe({ type: "userEvents", user: alice })
        yield* next(socket, "subscriptionResponse")
        const gaps = Effect.map(
          Effect.andThen(pass(1), get(`${url}/metrics`)),
          ({ text }) => Number(/^trigate_stream_gaps_total\{channel="userEvents"\} (\d+)$/mu.exec(text)?.[1] ?? 0)
        )
        const lose = (millis: number) =>
          Effect.gen(function*() {
            const count = socket.of("user").length
            yield* run({ do: "faults", set: { refuse: 503 } }, { do: "drop" }, { do: "fill", user: alice, coin: "BTC" })
            yield* pass(millis / 1000)
            yield* run({ do: "faults", set: {} })
            yield* meanwhile(until(socket, () => socket.of("user").length > count, "the fill"))
          })
        yield* lose(2000)
        assert.strictEqual(yield* gaps, 0)
        yield* lose(70_000)
        assert.strictEqual(yield* gaps, 1)
      }))

    it.effect("replays old trades with each subscribe doubles none for callers", () =>
      Effect.gen(function*() {
        const { ledger, open, run } = yield* lab({}, { do: "trade", coin: "BTC", count: 40 })
        const first = yield* open()
        first.subscribe(btc)
        yield* next(first, "trades")
        yield* run({ do: "trade", coin: "BTC", count: 2 })
        yield* until(first, () => tids(first, "trades").length >= 32, "32 trades")
        const late = yield* open()
        late.subscribe(btc)
        yield* next(late, "trades")
        yield* run({ do: "faults", set: { refuse: 503 } }, { do: "drop" }, { do: "trade", coin: "BTC", count: 5 }, {
          do: "faults",
          set: {}
        })
        yield* meanwhile(run({ until: "subscribed", key: keys.trades("BTC"), count: 1 }))
        yield* run({ do: "trade", coin: "BTC" })
        yield* until(first, () => tids(first, "trades").length >= 38, "38 trades")
        yield* until(late, () => tids(late, "trades").length >= 36, "36 trades")
        const all = (yield* ledger).flatMap(({ data }) => list(data)).map((row) => JsonParts.at(row, "tid"))
        assert.deepStrictEqual(tids(first, "trades"), all.slice(10))
        assert.deepStrictEqual(tids(late, "trades"), all.slice(12))
      }))

    it.effect("speaks of orders in any order, or of statuses that nobody knows, is passed on as it is", () =>
      Effect.gen(function*() {
        const { ledger, open, run, url } = yield* lab({}, { do: "switches", set: { extraFields: true } })
        const socket = yield* open()
        socket.subscribe({ type: "orderUpdates", user: alice })
        yield* next(socket, "subscriptionResponse")
        yield* run(
          { do: "fill", user: alice, coin: "BTC" },
          { do: "place", user: alice, coin: "ETH" },
          { do: "modify", user: alice, first: "open" },
          { do: "modify", user: alice, first: "cancel" },
          { do: "place", user: alice, coin: "BTC", status: "statusOfTheFuture" }
        )
        yield* until(socket, () => socket.of("orderUpdates").length >= 7, "seven frames")
        const happened = (yield* ledger).filter(({ key }) => key === keys.orderUpdates(alice))
        assert.deepStrictEqual(
          socket.of("orderUpdates").map(({ text }) => text),
          happened.map(({ channel, data }) => JSON.stringify({ channel, data }))
        )
        // by the last status of each order, a caller knows which ones are open
        const last = new Map(
          updates(socket.of("orderUpdates")).map((update) => update.split(" ")).map(([oid, status]) => [oid, status])
        )
        const isOpen = new Set(["open", "statusOfTheFuture"])
        const stillOpen = [...last].flatMap(([oid = "", status = ""]) => isOpen.has(status) ? [oid] : [])
        const listed = yield* post(`${url}/info`, JSON.stringify({ type: "openOrders", user: alice }))
        const oids = list(listed.json).map((order) => String(JsonParts.at(order, "oid")))
        assert.sameMembers(stillOpen, oids)
        assert.lengthOf(oids, 2)
      }))

    it.effect("sends a channel that nobody knows has it passed on, and nothing breaks", () =>
      Effect.gen(function*() {
        const { open, pass, run, url } = yield* lab()
        const socket = yield* open()
        socket.subscribe({ type: "bbo", coin: "BTC" })
        yield* next(socket, "bbo")
        yield* run({ do: "raw", text: `{"channel":"futureChannel","data":{"a":1},"b":2}` }, { do: "raw", text: "[" }, {
          do: "states",
          coin: "BTC"
        })
        assert.strictEqual((yield* next(socket)).text, `{"channel":"futureChannel","data":{"a":1},"b":2}`)
        assert.strictEqual((yield* next(socket)).channel, "bbo")
        yield* pass(1)
        assert.include((yield* get(`${url}/metrics`)).text, "trigate_stream_unknown_frames_total 1\n")
      }))

    it.effect("sends the fast and the usual book of a coin on one channel has two connections", () =>
      Effect.gen(function*() {
        const { open, run, state } = yield* lab()
        const [usual, fast, coarse] = [yield* open(), yield* open(), yield* open()]
        usual.subscribe({ type: "l2Book", coin: "BTC" })
        fast.subscribe({ type: "l2Book", coin: "BTC", fast: true })
        coarse.subscribe({ type: "l2Book", coin: "BTC", nSigFigs: 3 })
        for (const socket of [usual, fast, coarse]) yield* next(socket, "l2Book")
        yield* run({ do: "states", coin: "BTC" }, { do: "states", coin: "BTC" })
        for (const socket of [usual, fast, coarse]) {
          yield* until(socket, () => socket.of("l2Book").length >= 3, "3 books")
        }
        const shape = (socket: TestSocket) =>
          socket.of("l2Book").map(({ text }) => `${text.match(/"px"/gu)?.length} ${text.includes("spread")}`)
        assert.deepStrictEqual(shape(usual), ["40 false", "40 false", "40 false"])
        assert.deepStrictEqual(shape(fast), ["10 false", "10 false", "10 false"])
        assert.deepStrictEqual(shape(coarse), ["40 true", "40 true", "40 true"])
        const { connections } = yield* state
        assert.deepStrictEqual(connections.map(({ keys }) => keys.length), [1, 1, 1])
      }))

    it.effect("names no user in its frames never crosses two users", () =>
      Effect.gen(function*() {
        const { ledger, open, run, state } = yield* lab()
        const sockets = new Map([[alice, yield* open()], [bob, yield* open()]])
        for (const [user, socket] of sockets) {
          for (const type of ["orderUpdates", "userEvents", "notification"]) socket.subscribe({ type, user })
          yield* until(socket, () => socket.of("subscriptionResponse").length >= 3, "three subscriptions")
        }
        yield* run(
          { do: "step", coins: [], users: [alice, bob], count: 60 },
          { do: "notify", user: alice },
          { do: "notify", user: bob }
        )
        const happened = yield* ledger
        for (const [user, socket] of sockets) {
          const expected = happened.filter(({ channel, key }) =>
            key.includes(user) && ["orderUpdates", "user", "notification"].includes(channel)
          )
          yield* until(socket, () => socket.of("notification").length > 0, "the last frame")
          for (const channel of ["orderUpdates", "user", "notification"]) {
            yield* until(
              socket,
              () => socket.of(channel).length >= expected.filter((entry) => entry.channel === channel).length,
              `all of ${channel}`
            )
            assert.deepStrictEqual(
              socket.of(channel).map(({ data }) => data),
              expected.filter((entry) => entry.channel === channel).map(({ data }) => data)
            )
          }
        }
        for (const { keys: own } of (yield* state).connections) {
          assert.isFalse(own.some((key) => key.includes(alice)) && own.some((key) => key.includes(bob)))
        }
      }))
  })
})
