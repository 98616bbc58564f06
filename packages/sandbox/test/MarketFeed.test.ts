/** A sandbox that follows the market of another sandbox: the same prices and books, orders on paper, and the loss of the feed. */
import { assert, describe, it } from "@effect/vitest"
import { background } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { isOutcome } from "@trigate/domain/info/Market"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as State from "@trigate/sandbox/SandboxState"
import * as VenueStreams from "@trigate/sandbox/unstable/streams/VenueStreams"
import * as MarketFeed from "@trigate/sandbox/unstable/venue/MarketFeed"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as JsonParts from "@trigate/testing/JsonParts"
import { SocketLost, SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import { HttpTransport, TransportError } from "@trigate/upstream/transport/HttpTransport"
import * as Arr from "effect/Array"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { btc, eth, listOf, place } from "./trader.ts"
import { start } from "./venue.ts"

type State = SandboxState["Service"]

const user = `0x${"a".repeat(40)}` as const
const url = "http://venue.example"

const make = (options: State.Options) =>
  Effect.map(Layer.build(State.layer(options)), (context) => Context.get(context, SandboxState))

/** Asks a sandbox over its relay, as a client does. */
const ask = (state: State, query: object) =>
  Sandbox.serveVenue("/info", Encoding.encode(JSON.stringify(query))).pipe(
    Effect.map(({ json }) => json.valueOrUndefined),
    Effect.provideService(SandboxState, state),
    Effect.provideService(VenueProfile.Venue, VenueProfile.mainnet)
  )

const decodeMids = Schema.decodeUnknownEffect(Schema.Record(Schema.String, Schema.String))

const mids = (state: State) => Effect.flatMap(ask(state, { type: "allMids" }), decodeMids)

/** A followed sandbox, and its transports. While `isDown`, queries find no connection. */
const makeFollowed = Effect.gen(function*() {
  const state = yield* make({ seed: "followed" })
  const down = { isDown: false }
  const frames = { change: (text: string) => text }
  const http = HttpTransport.of({
    send: ({ body = new Uint8Array() }) =>
      down.isDown
        ? Effect.fail(new TransportError({ sent: "no", reason: "Connect", detail: "down" }))
        : Sandbox.serveVenue("/info", body).pipe(
          Effect.map(({ pieces, status }) => ({ status, headers: {}, body: pieces })),
          Effect.provideService(SandboxState, state),
          Effect.provideService(VenueProfile.Venue, VenueProfile.mainnet)
        )
  })
  const { open } = VenueStreams.make(state)
  const socket = SocketTransport.of({
    open: (address) =>
      down.isDown
        ? Effect.fail(new SocketLost({ code: 1006, reason: "down" }))
        : Effect.map(open(address), (connection) => ({
          ...connection,
          receive: Effect.map(connection.receive, Arr.map((text) => frames.change(text)))
        }))
  })
  const source = MarketFeed.makeSource(url).pipe(
    Effect.provideService(HttpTransport, http),
    Effect.provideService(SocketTransport, socket)
  )
  return { state, down, frames, feed: Effect.map(source, MarketFeed.make) }
})

const bookOf = (state: State, coin: string) =>
  Effect.map(ask(state, { type: "l2Book", coin }), (book) => JsonParts.at(book, "levels"))

const placeIn = (
  state: State,
  ...[asset, side, size, px, rest]: Parameters<typeof place> extends [unknown, ...infer Rest] ? Rest : never
) => Effect.provideService(place(user, asset, side, size, px, rest), SandboxState, state)

describe("a sandbox that follows another venue", () => {
  it.effect("has its listing, prices, books and bars, fills on paper, and goes on when the venue is lost", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const { down, feed, state: followed } = yield* makeFollowed
      yield* followed.trading.playPrices("BTC", [{ time: 0, price: 70_000 }])
      yield* followed.trading.setBook("BTC", {
        bids: [{ px: "69990", sz: "1" }, { px: "69900", sz: "2" }],
        asks: [{ px: "70010", sz: "1" }, { px: "70100", sz: "2" }]
      })
      const own = yield* make({ seed: "own", feed: yield* feed })
      const status = () => own.feed?.status().state
      assert.strictEqual(status(), "following")
      assert.deepStrictEqual(yield* ask(own, { type: "meta" }), yield* ask(followed, { type: "meta" }))
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(yield* bookOf(own, "BTC"), yield* bookOf(followed, "BTC"))
      assert.deepStrictEqual(yield* bookOf(own, "ETH"), yield* bookOf(followed, "ETH"))
      // outcomes about the sandbox's own prices are not listed beside real ones
      assert.deepStrictEqual(
        yield* mids(own),
        Record.filter(yield* mids(followed), (_, coin) => !isOutcome(coin))
      )
      assert.strictEqual(JsonParts.at(yield* mids(own), "BTC"), "70000.0")
      const bars = { type: "candleSnapshot", req: { coin: "BTC", interval: "1h", startTime: start - 86_400_000 } }
      assert.deepStrictEqual(yield* ask(own, bars), yield* ask(followed, bars))
      yield* TestClock.adjust("2 seconds")
      const trades = listOf(yield* ask(own, { type: "recentTrades", coin: "ETH" }))
      assert.deepStrictEqual(
        trades.slice(-5),
        listOf(yield* ask(followed, { type: "recentTrades", coin: "ETH" })).slice(-5)
      )

      // an order at the best ask of the followed venue is filled at its price, and nobody trades there
      yield* own.trading.depositUsd(user, "1000000")
      const taken = yield* placeIn(own, btc, "buy", "1.5", "70100", { tif: "Ioc" })
      assert.strictEqual(JsonParts.at(taken, "filled", "avgPx"), "70040.0")
      assert.deepStrictEqual(yield* ask(followed, { type: "userFills", user }), [])
      assert.strictEqual(JsonParts.at(yield* bookOf(followed, "BTC"), 1, 0, "sz"), "1.0")

      // a resting order is filled when a trade of the followed venue passes its price, and not before
      const resting = yield* placeIn(own, btc, "buy", "0.5", "69995", {})
      const oid = JsonParts.at(resting, "resting", "oid")
      const statusOf = Effect.map(
        ask(own, { type: "orderStatus", user, oid }),
        (found) => JsonParts.at(found, "order", "status")
      )
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* statusOf, "open")
      yield* followed.trading.depositUsd(user, "1000000")
      yield* placeIn(followed, btc, "sell", "0.7", "69990", { tif: "Ioc" })
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* statusOf, "filled")

      // the venue is lost
      down.isDown = true
      yield* followed.faults.cutSockets(1)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(status(), "lost")
      const before = Number(JsonParts.at(yield* mids(own), "BTC"))
      assert.closeTo(before, 70_000, 70)
      yield* TestClock.adjust("20 seconds")
      const later = Number(JsonParts.at(yield* mids(own), "BTC"))
      assert.notStrictEqual(later, before)
      assert.closeTo(later, 70_000, 3_500)
      const book = yield* bookOf(own, "BTC")
      assert.strictEqual(listOf(JsonParts.at(book, 0)).length, 20)
      const alone = yield* placeIn(own, eth, "buy", "0.1", "3000", { tif: "Ioc" })
      assert.strictEqual(JsonParts.at(alone, "filled", "totalSz"), "0.1")

      // it returns
      down.isDown = false
      yield* TestClock.adjust("15 seconds")
      assert.strictEqual(status(), "following")
      assert.strictEqual(JsonParts.at(yield* mids(own), "BTC"), "70000.0")
      assert.deepStrictEqual(yield* bookOf(own, "BTC"), yield* bookOf(followed, "BTC"))
    }))

  it.effect("starts with its own listing if the venue does not respond, and follows it once it does", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const { down, feed, state: followed } = yield* makeFollowed
      yield* followed.trading.playPrices("BTC", [{ time: 0, price: 70_000 }])
      down.isDown = true
      const starting = yield* Effect.forkChild(make({ feed: yield* feed }))
      yield* TestClock.adjust("6 seconds")
      const own = yield* Fiber.join(starting)
      assert.strictEqual(own.feed?.status().state, "unreachable")
      assert.notStrictEqual(JsonParts.at(yield* mids(own), "BTC"), "70000.0")
      down.isDown = false
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(own.feed?.status().state, "following")
      assert.deepStrictEqual(yield* bookOf(own, "BTC"), yield* bookOf(followed, "BTC"))
    }))
})

describe("a followed venue that lies", () => {
  it.effect("changes no price to one that cannot be, and its books are bounded", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const { feed, frames, state: followed } = yield* makeFollowed
      yield* followed.trading.playPrices("BTC", [{ time: 0, price: 70_000 }])
      yield* followed.trading.setBook("BTC", { bids: [{ px: "69990", sz: "1" }], asks: [{ px: "70010", sz: "1" }] })
      const own = yield* make({ seed: "own", feed: yield* feed })
      yield* TestClock.adjust("3 seconds")
      const sides = [-1, 1].map((sign) =>
        Array.from({ length: 500 }, (_, index) => ({
          px: `${70_000 + sign * (index + 1)}.0`,
          sz: index === 0 ? "-1.0" : "1.0",
          n: 1
        }))
      )
      for (const price of ["-1.0", "0.0", "999999999999999999999.0"]) {
        frames.change = (text) =>
          text.replace(/"levels":\[\[.*?\]\]/u, `"levels":${JSON.stringify(sides)}`)
            .replaceAll(/"markPx":"[^"]*"/gu, `"markPx":"${price}"`)
        yield* bookOf(own, "BTC")
        yield* followed.trading.setBook("BTC", { bids: [{ px: "69980", sz: "1" }], asks: [{ px: "70020", sz: "1" }] })
        yield* followed.trading.playPrices("BTC", [{ time: 0, price: 71_000 }])
        yield* TestClock.adjust("5 seconds")
        assert.strictEqual(JsonParts.at(yield* mids(own), "BTC"), "70000.0")
      }
      const { info, trading } = own
      const { quotes } = trading.at(yield* Ref.get(info.state), yield* trading.now).state.markets.get("BTC") ?? {}
      assert.strictEqual(quotes?.bids.length, 99)
      assert.strictEqual(quotes?.asks.length, 99)
      assert.deepStrictEqual(JsonParts.at(yield* bookOf(own, "BTC"), 0, 0), { px: "69998.0", sz: "1.0", n: 1 })
    }))
})

describe("the transports of the feed", () => {
  it.effect("send queries and subscriptions only", () =>
    Effect.gen(function*() {
      const sent: Array<string> = []
      const http = MarketFeed.queriesOnly({
        send: ({ url }) => {
          sent.push(Redacted.value(url))
          return Effect.succeed({ status: 200, headers: {}, body: new Uint8Array() })
        }
      })
      const send = (method: "GET" | "POST", path: string) =>
        Effect.result(http.send({
          owner: background("test"),
          method,
          url: Redacted.make(`${url}${path}`),
          headers: {},
          body: Encoding.encode(`{"type":"allMids"}`),
          maxAnswerBytes: 1,
          timeout: 1
        }))
      for (const path of ["/exchange", "/info/../exchange", "/exchange?/info", "/evm"]) yield* send("POST", path)
      yield* send("GET", "/info")
      assert.deepStrictEqual(sent, [])
      yield* send("POST", "/info")
      assert.deepStrictEqual(sent, [`${url}/info`])

      const texts: Array<string> = []
      const socket = MarketFeed.subscriptionsOnly({
        open: () => Effect.succeed({ receive: Effect.never, send: (text) => Effect.sync(() => void texts.push(text)) })
      })
      const connection = yield* socket.open(Redacted.make("ws://venue.example/ws"))
      const post = { method: "post", id: 1, request: { type: "action", payload: { action: { type: "noop" } } } }
      for (const text of [JSON.stringify(post), `[${JSON.stringify(post)}]`, "order", ""]) {
        assert.strictEqual((yield* Effect.flip(connection.send(text)))._tag, "SocketLost")
      }
      assert.deepStrictEqual(texts, [])
      yield* connection.send(`{"method":"ping"}`)
      assert.deepStrictEqual(texts, [`{"method":"ping"}`])
    }))
})
