/** The fake venue behaves as the facts say: it is tested here by itself, without a gateway. */
import { assert, describe, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type FakeVenue, fakeVenue } from "./fakeVenue.ts"
import { openSocket, TestSocket } from "./socket.ts"
import type { Command, Condition } from "./venue/control.ts"

class Venue extends Context.Service<Venue, FakeVenue>()("test/streams/fakeVenue.test/Venue") {}

const alice = `0x${"aa".repeat(20)}`
const bob = `0x${"bb".repeat(20)}`
const btc = { type: "trades", coin: "BTC" }
const bookKey = `{"type":"l2Book","coin":"BTC","nSigFigs":null,"mantissa":null,"fast":false}`

/** A venue as new, and a socket of it. */
const fresh = Effect.fnUntraced(function*(...messages: ReadonlyArray<Command | Condition>) {
  const venue = yield* Venue
  yield* Effect.promise(() => venue.run({ do: "reset" }, ...messages))
  const socket = yield* openSocket(`${venue.url}/ws`)
  return { venue, socket }
})

const next = (socket: TestSocket, channel?: string) => Effect.promise(() => socket.next(channel))

const run = (venue: FakeVenue, ...messages: ReadonlyArray<Command | Condition>) =>
  Effect.promise(() => venue.run(...messages))

describe("the fake venue", () => {
  layer(Layer.effect(Venue, fakeVenue()))((it) => {
    it.effect("acknowledges with defaults, then sends the first frame", () =>
      Effect.gen(function*() {
        const { socket } = yield* fresh()
        socket.subscribe({ type: "l2Book", coin: "BTC" })
        assert.strictEqual(
          (yield* next(socket)).text,
          `{"channel":"subscriptionResponse","data":{"method":"subscribe","subscription":${bookKey}}}`
        )
        assert.strictEqual((yield* next(socket)).channel, "l2Book")
        socket.subscribe({ type: "l2Book", coin: "BTC", fast: false })
        assert.strictEqual((yield* next(socket)).data, `Already subscribed: ${bookKey}`)
        socket.unsubscribe({ type: "l2Book", coin: "BTC" })
        assert.strictEqual((yield* next(socket)).channel, "subscriptionResponse")
        socket.unsubscribe({ type: "l2Book", coin: "BTC" })
        assert.strictEqual((yield* next(socket)).data, `Already unsubscribed: ${bookKey}`)
      }))

    it.effect("quotes what it cannot parse, and stays", () =>
      Effect.gen(function*() {
        const { socket } = yield* fresh()
        const frames = [
          `{"method":"subscribe","subscription":{"type":"bbo","coin":["BTC","ETH"]}}`,
          `{"method":"subscribe","subscription":{"type":"webData2","user":"${alice}"}}`,
          `{"method":"shout"}`,
          `{"method":"post","request":{"type":"info","payload":{"type":"meta"}}}`,
          `{"method":"post","id":2,"request":{"type":"info","payload":{"type":"bogusInfoType"}}}`,
          `not JSON`
        ]
        for (const frame of frames) {
          socket.send(frame)
          assert.strictEqual(
            (yield* next(socket)).data,
            `Error parsing JSON into valid websocket request: ${frame}`
          )
        }
        socket.send({ method: "ping" })
        assert.strictEqual((yield* next(socket)).text, `{"channel":"pong"}`)
      }))

    it.effect("destroys the socket of a wrong coin, letter case or book parameter", () =>
      Effect.gen(function*() {
        for (
          const subscription of [
            { type: "trades", coin: "NOPE" },
            { type: "trades", coin: "btc" },
            { type: "bbo", coin: "XYZ:SP500" },
            { type: "l2Book", coin: "BTC", nSigFigs: 6 },
            { type: "l2Book", coin: "BTC", mantissa: 2 }
          ]
        ) {
          const { socket } = yield* fresh()
          socket.subscribe(subscription)
          assert.strictEqual((yield* Effect.promise(() => socket.closed)).code, 1006)
        }
      }))

    it.effect("closes when it has sent nothing for a minute, and not when it was pinged", () =>
      Effect.gen(function*() {
        const { socket, venue } = yield* fresh()
        yield* run(venue, { until: "connections", count: 1 }, { do: "advance", millis: 59_000 })
        socket.send({ method: "ping" })
        yield* next(socket, "pong")
        yield* run(venue, { do: "advance", millis: 59_000 })
        assert.strictEqual((yield* Effect.promise(() => venue.state())).connections.length, 1)
        yield* run(venue, { do: "advance", millis: 1000 })
        assert.strictEqual((yield* Effect.promise(() => socket.closed)).code, 1006)
      }))

    it.effect("replays 30 old trades, without a flag", () =>
      Effect.gen(function*() {
        const { socket, venue } = yield* fresh({ do: "trade", coin: "BTC", count: 40 })
        socket.subscribe(btc)
        const replay = yield* next(socket, "trades")
        yield* run(venue, { do: "trade", coin: "BTC" })
        const live = yield* next(socket, "trades")
        const ledger = yield* Effect.promise(() => venue.ledger())
        assert.deepStrictEqual(replay.data, ledger.slice(10, 40).flatMap(({ data }) => data))
        assert.deepStrictEqual(live.data, ledger[40]?.data)
      }))

    it.effect("carries orders of two users on one channel without saying whose they are", () =>
      Effect.gen(function*() {
        const { socket, venue } = yield* fresh()
        for (const user of [alice, bob]) socket.subscribe({ type: "orderUpdates", user })
        yield* run(venue, { until: "subscriptions", count: 2 }, { do: "fill", user: alice, coin: "BTC" }, {
          do: "place",
          user: bob,
          coin: "ETH"
        })
        const both = [yield* next(socket, "orderUpdates"), yield* next(socket, "orderUpdates")]
        for (const { text } of both) assert.notInclude(text, alice)
        assert.deepStrictEqual(
          both.map(({ data }) => JSON.stringify(data).match(/"status":"\w+"/gu)),
          [[`"status":"open"`, `"status":"filled"`], [`"status":"open"`]]
        )
      }))

    it.effect("sends both books of a coin on one channel", () =>
      Effect.gen(function*() {
        const { socket, venue } = yield* fresh()
        socket.subscribe({ type: "l2Book", coin: "BTC" })
        socket.subscribe({ type: "l2Book", coin: "BTC", fast: true })
        yield* Effect.promise(() => socket.until((frames) => frames.length === 4))
        yield* run(venue, { do: "states", coin: "BTC" })
        yield* Effect.promise(() => socket.until((frames) => frames.length === 6))
        assert.deepStrictEqual(
          socket.of("l2Book").map(({ text }) => [text.match(/"px"/gu)?.length, text.includes(`"fast":true`)]),
          [[40, false], [10, true], [40, false], [10, true]]
        )
      }))

    it.effect("marks a snapshot and leaves the mark out afterwards", () =>
      Effect.gen(function*() {
        const { socket, venue } = yield* fresh({ do: "fill", user: alice, coin: "BTC", count: 2 })
        socket.subscribe({ type: "userFills", user: alice.toUpperCase().replace("0X", "0x") })
        assert.include(
          (yield* next(socket)).text,
          `{"type":"userFills","user":"${alice}","aggregateByTime":false}`
        )
        assert.include((yield* next(socket)).text, `"isSnapshot":true`)
        yield* run(venue, { do: "fill", user: alice, coin: "BTC" })
        assert.notInclude((yield* next(socket)).text, "isSnapshot")
      }))

    it.effect("keeps its limits, and speaks of each", () =>
      Effect.gen(function*() {
        const { socket, venue } = yield* fresh({
          do: "limits",
          set: { connections: 1, subscriptions: 3, users: 1, messagesPerMinute: 6, posts: 1 }
        }, { do: "faults", set: { holdPosts: true } })
        const post = (id: number) => ({
          method: "post",
          id,
          request: { type: "info", payload: { type: "exchangeStatus" } }
        })
        socket.subscribe({ type: "userEvents", user: alice })
        socket.subscribe({ type: "orderUpdates", user: bob })
        assert.strictEqual((yield* next(socket, "error")).data, "Cannot track more than 1 total users.")
        socket.subscribe({ type: "bbo", coin: "BTC" })
        socket.subscribe({ type: "bbo", coin: "ETH" })
        yield* run(venue, { until: "subscriptions", count: 3 }, {
          do: "limits",
          set: { connections: 1, subscriptions: 3, messagesPerMinute: 7, posts: 1 }
        })
        socket.subscribe({ type: "bbo", coin: "SOL" })
        assert.strictEqual((yield* next(socket, "error")).data, "Cannot subscribe to more than 3 channels.")
        socket.send(post(1))
        socket.send(post(1234))
        assert.strictEqual((yield* next(socket, "error")).data, "too many pending post requests id=1234")
        socket.send(post(3))
        assert.strictEqual((yield* next(socket, "error")).data, "Cannot send more than 7 messages per minute.")
        const second = new TestSocket(`${venue.url}/ws`)
        assert.strictEqual((yield* Effect.promise(() => second.refused)).status, 429)
        assert.deepStrictEqual((yield* Effect.promise(() => venue.state())).violations, [
          "user 2",
          "subscription 4",
          "too many posts",
          "too many messages",
          "connection 2"
        ])
      }))

    it.effect("replies to posts in the order that it is told", () =>
      Effect.gen(function*() {
        const { socket, venue } = yield* fresh({ do: "faults", set: { holdPosts: true } })
        for (const id of [1, 2, 3]) {
          socket.send({ method: "post", id, request: { type: "info", payload: { type: "l2Book", coin: "NOPE" } } })
        }
        yield* run(venue, { until: "posts", count: 3 }, { do: "release-posts", order: "reversed", never: [2] })
        assert.deepStrictEqual([(yield* next(socket)).text, (yield* next(socket)).text], [
          `{"channel":"post","data":{"id":3,"response":{"type":"info","payload":{"type":"l2Book","data":null}}}}`,
          `{"channel":"post","data":{"id":1,"response":{"type":"info","payload":{"type":"l2Book","data":null}}}}`
        ])
      }))

    it.effect("writes the same ledger for the same seed and commands", () =>
      Effect.gen(function*() {
        const script: ReadonlyArray<Command> = [
          { do: "step", coins: ["BTC", "ETH"], users: [alice, bob], count: 60 },
          { do: "ledger" }
        ]
        const { venue } = yield* fresh()
        const ledgers: Array<unknown> = []
        for (const seed of [7, 7, 8]) ledgers.push((yield* run(venue, { do: "reset", seed }, ...script)).at(-1))
        assert.deepStrictEqual(ledgers[0], ledgers[1])
        assert.notDeepEqual(ledgers[0], ledgers[2])
      }))
  })
})
