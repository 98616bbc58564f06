/** Limits, posts and callers of `/ws`, over real sockets in front of the fake venue. */
import { assert, describe, layer as tests } from "@effect/vitest"
import { Address } from "@trigate/domain/encoding/Encoding"
import { keys as sandboxKeys } from "@trigate/sandbox/SandboxExamples"
import { get, post, send } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { isExhaustive } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { once } from "node:events"
import * as Fs from "node:fs"
import { WebSocket } from "ws"
import { keyFile } from "../../packages/server/test/keyFile.ts"
import { openEvents } from "./eventSource.ts"
import { alice, bob, epoch, keys, lab, layer, meanwhile } from "./lab.ts"
import { signedOrder } from "./signedOrder.ts"
import { TestSocket } from "./socket.ts"

const next = (socket: TestSocket, channel?: string) => Effect.promise(() => socket.next(channel))

const closed = (socket: TestSocket) => Effect.promise(() => socket.closed)

const users = Array.from({ length: 11 }, (_, index) => `0x${index.toString(16).padStart(40, "d")}`)

const postOf = (id: number, type: "action" | "info", payload: unknown) => ({
  method: "post",
  id,
  request: { type, payload }
})

/** The callers of the same subscriptions; a hundred of them take ten seconds. */
const commonCallers = isExhaustive ? 100 : 20

const listing = Array.from({ length: 50 }, (_, index) => ({ type: "trades", coin: `C${index}` }))

describe("the venue's limits", () => {
  tests(layer)((it) => {
    it.effect("of subscriptions and connections are kept, and only the caller beyond them hears of it", () =>
      Effect.gen(function*() {
        const { open, run, state } = yield* lab(
          { TRIGATE_STREAM_SUBSCRIPTIONS: "4", TRIGATE_STREAM_CONNECTIONS: "2" },
          { do: "limits", set: { subscriptions: 4, connections: 2 } }
        )
        const [first, second] = [yield* open(), yield* open()]
        for (const nSigFigs of [2, 3, 4]) first.subscribe({ type: "l2Book", coin: "BTC", nSigFigs })
        assert.strictEqual((yield* next(first, "error")).data, "Cannot open more than 2 connections.")
        for (const coin of ["BTC", "ETH", "SOL"]) second.subscribe({ type: "trades", coin })
        assert.strictEqual((yield* next(second, "error")).data, "Cannot subscribe to more than 4 channels.")
        yield* run({ until: "subscriptions", count: 4 }, { do: "trade", coin: "BTC" })
        yield* next(second, "trades")
        const { connections, violations } = yield* state
        assert.deepStrictEqual([connections.length, violations], [2, []])
        assert.lengthOf(first.of("error"), 1)
      }))

    it.effect("of messages in a minute are waited for", () =>
      Effect.gen(function*() {
        const { open, pass, state } = yield* lab(
          { TRIGATE_STREAM_MESSAGES: "5" },
          // with room for pings, which do not wait
          { do: "limits", set: { messagesPerMinute: 9 } }
        )
        const socket = yield* open()
        for (const { coin, type } of listing.slice(0, 8)) socket.subscribe({ type, coin })
        yield* Effect.promise(() => socket.until(() => socket.of("subscriptionResponse").length >= 5, "five responses"))
        assert.strictEqual((yield* state).messages, 5)
        // a ping each 20 seconds counts, too
        yield* pass(90)
        yield* Effect.promise(() => socket.until(() => socket.of("subscriptionResponse").length >= 8, "the others"))
        assert.deepStrictEqual((yield* state).violations, [])
        assert.deepStrictEqual(socket.of("error"), [])
      }))

    it.effect("of bytes that a caller receives in a second hold for all its sockets, and lose no event", () =>
      Effect.gen(function*() {
        const { open, pass, run } = yield* lab({ TRIGATE_STREAM_CALLER_KIB_OUT: "1" })
        const sockets = [yield* open(), yield* open()]
        for (const socket of sockets) {
          socket.subscribe({ type: "trades", coin: "BTC" })
          yield* next(socket, "subscriptionResponse")
        }
        for (let trade = 0; trade < 12; trade++) yield* run({ do: "trade", coin: "BTC" })
        let seconds = 0
        while (sockets.some((socket) => socket.of("trades").length < 12)) {
          assert.isBelow(seconds++, 100)
          yield* pass(1)
        }
        const received = sockets.map((socket) => socket.of("trades").map(({ text }) => text))
        const bytes = received.flat().join("").length
        // the first second has its share, too, and the last frame of each may exceed it
        assert.isAtLeast(seconds + 1, Math.floor(bytes / 1024) - 1)
        assert.isAbove(bytes, 5 * 1024)
        assert.deepStrictEqual(received[0], received[1])
        assert.strictEqual(new Set(received[0]).size, 12)
      }))

    it.effect("of bytes that a caller receives in a second hold for its event streams, which end when too much waits", () =>
      Effect.gen(function*() {
        const { pass, run, state, url } = yield* lab({
          TRIGATE_STREAM_CALLER_KIB_OUT: "1",
          TRIGATE_STREAM_QUEUE_FRAMES: "100"
        })
        const subscription = { type: "trades", coin: "BTC" }
        const stream = yield* openEvents(url, [subscription])
        yield* Effect.promise(() => stream.until(() => stream.events.length === 2, "the acknowledgement"))
        let seconds = 0
        for (let trade = 1; trade <= 12; trade++) {
          yield* run({ do: "trade", coin: "BTC" })
          // time for an event that does not have to wait
          for (let read = 0; read < 5; read++) yield* state
          while (stream.of("trades").length < trade) {
            assert.isBelow(seconds++, 100)
            yield* pass(1)
          }
        }
        const bytes = stream.events.map(({ text }) => text).join("").length
        assert.isAbove(bytes, 3 * 1024)
        // the first second has its share, too, and the last event may exceed it
        assert.isAtLeast(seconds + 1, Math.floor(bytes / 1024))
        assert.strictEqual(new Set(stream.of("trades").map(({ text }) => text)).size, 12)
        for (let left = 4; left > 0; left--) yield* run({ do: "trade", coin: "BTC" })
        yield* run({ do: "trade", coin: "BTC", count: 120 })
        yield* meanwhile(Effect.promise(() => stream.over()))
        yield* pass(2)
        const { text } = yield* get(`${url}/metrics`)
        assert.match(text, /^trigate_stream_closed_total\{reason="bytesOut"\} [1-9]/mu)
      }))

    it.effect("of bytes that a caller sends in a second hold for all its sockets", () =>
      Effect.gen(function*() {
        const { open, pass } = yield* lab({ TRIGATE_STREAM_CALLER_KIB_IN: "1" })
        const [first, second] = [yield* open(), yield* open()]
        const long = { method: "ping", padding: "x".repeat(600) }
        first.send(long)
        yield* next(first, "pong")
        second.send(long)
        assert.deepStrictEqual(yield* closed(second), {
          code: 1008,
          reason: "Too many bytes per second from this caller: send less"
        })
        yield* pass(1)
        first.send(long)
        yield* next(first, "pong")
      }))

    it.effect("of new connections in a minute are waited for, however often the venue closes", () =>
      Effect.gen(function*() {
        const { open, pass, run, state } = yield* lab(
          { TRIGATE_STREAM_NEW_CONNECTIONS: "3" },
          { do: "limits", set: { newPerMinute: 3 } }
        )
        const socket = yield* open()
        socket.subscribe({ type: "trades", coin: "BTC" })
        yield* next(socket, "subscriptionResponse")
        for (const opened of [2, 3]) {
          yield* run({ do: "drop" })
          yield* meanwhile(run({ until: "opened", count: opened }, {
            until: "subscribed",
            key: keys.trades("BTC"),
            count: 1
          }))
        }
        yield* run({ do: "drop" })
        yield* pass(70)
        yield* run({ until: "subscribed", key: keys.trades("BTC"), count: 1 }, { do: "trade", coin: "BTC" })
        yield* next(socket, "trades")
        const { opened, violations } = yield* state
        assert.deepStrictEqual([opened, violations], [4, []])
      }))

    it.effect("of users that the venue speaks of are believed, and the other callers go on", () =>
      Effect.gen(function*() {
        const { open, run, state } = yield* lab({}, { do: "limits", set: { users: 1 } })
        const [first, second] = [yield* open(), yield* open()]
        first.subscribe({ type: "userFills", user: alice })
        yield* next(first, "userFills")
        second.subscribe({ type: "userFills", user: bob })
        assert.strictEqual((yield* next(second, "error")).data, "Cannot track more than 1 total users.")
        second.subscribe({ type: "userEvents", user: bob })
        assert.strictEqual((yield* next(second, "error")).data, "Cannot track more than 1 total users.")
        yield* run({ do: "fill", user: alice, coin: "BTC" })
        yield* next(first, "userFills")
        assert.deepStrictEqual(first.of("error"), [])
        // the second refusal is the gateway's own
        assert.deepStrictEqual((yield* state).violations, ["user 2"])
      }))

    it.effect("of subscriptions that the venue speaks of are believed, and the other callers go on", () =>
      Effect.gen(function*() {
        const { open, run, state } = yield* lab({}, { do: "limits", set: { subscriptions: 2 } })
        const [first, second] = [yield* open(), yield* open()]
        for (const coin of ["BTC", "ETH"]) first.subscribe({ type: "trades", coin })
        yield* run({ until: "subscriptions", count: 2 })
        for (const coin of ["SOL", "HYPE"]) {
          second.subscribe({ type: "trades", coin })
          assert.strictEqual((yield* next(second, "error")).data, "Cannot subscribe to more than 2 channels.")
        }
        yield* run({ do: "trade", coin: "BTC" })
        yield* next(first, "trades")
        assert.deepStrictEqual(first.of("error"), [])
        // the second refusal is the gateway's own
        const { messages, violations } = yield* state
        assert.deepStrictEqual([messages, violations.length], [3, 1])
      }))

    it.effect("of connections that the venue speaks of end the subscription that needs one more, and no other", () =>
      Effect.gen(function*() {
        const { open, run, state } = yield* lab({}, { do: "limits", set: { connections: 1 } })
        const [first, second] = [yield* open(), yield* open()]
        first.subscribe({ type: "l2Book", coin: "BTC" })
        yield* next(first, "l2Book")
        second.subscribe({ type: "l2Book", coin: "BTC", fast: true })
        assert.strictEqual((yield* next(second, "error")).data, "Cannot open more than 1 connections.")
        second.subscribe({ type: "bbo", coin: "BTC" })
        yield* next(second, "bbo")
        yield* run({ do: "states", coin: "BTC" })
        yield* next(first, "l2Book")
        assert.deepStrictEqual(first.of("error"), [])
        const { connections, violations } = yield* state
        assert.deepStrictEqual([connections.length, violations], [1, ["connection 2"]])
      }))

    it.effect("of connections that the venue speaks of after a loss are waited for, and no caller hears of it", () =>
      Effect.gen(function*() {
        const { open, pass, run } = yield* lab()
        const socket = yield* open()
        socket.subscribe({ type: "trades", coin: "BTC" })
        yield* next(socket, "subscriptionResponse")
        yield* run({ do: "faults", set: { refuse: 429 } }, { do: "drop" }, { do: "trade", coin: "BTC", count: 3 })
        yield* pass(20)
        yield* run({ do: "faults", set: {} })
        yield* meanwhile(run({ until: "subscribed", key: keys.trades("BTC"), count: 1 }))
        assert.strictEqual((yield* next(socket, "trades")).text.split(`"tid"`).length - 1, 3)
        assert.deepStrictEqual(socket.of("error"), [])
      }))

    it.effect("of messages that the venue speaks of are waited for, and no caller hears of it", () =>
      Effect.gen(function*() {
        const { open, pass, run, state } = yield* lab({}, { do: "limits", set: { messagesPerMinute: 10 } })
        const socket = yield* open()
        for (const { coin, type } of listing.slice(0, 11)) socket.subscribe({ type, coin })
        yield* run({ until: "messages", count: 11 }, { do: "trade", coin: "C0" }, { do: "trade", coin: "C1" })
        // the refusal of the eleventh was read before a trade
        yield* next(socket, "trades")
        for (const { coin, type } of listing.slice(11, 14)) socket.subscribe({ type, coin })
        yield* pass(55)
        // two pings, which are refused and lengthen the pause
        assert.strictEqual((yield* state).messages, 13)
        yield* pass(90)
        assert.lengthOf(socket.of("subscriptionResponse"), 14)
        assert.deepStrictEqual(socket.of("error"), [])
      }))

    it.effect("of users are kept, by one caller's share of them and by all", () =>
      Effect.gen(function*() {
        const limit = { TRIGATE_STREAM_CALLER_USERS: "3" }
        const { open, state } = yield* lab(limit)
        const socket = yield* open()
        for (const user of users.slice(0, 4)) socket.subscribe({ type: "userFills", user })
        assert.strictEqual((yield* next(socket, "error")).data, "Cannot track more than 3 total users.")
        yield* Effect.promise(() => socket.until(() => socket.of("userFills").length >= 3, "three snapshots"))
        assert.deepStrictEqual((yield* state).violations, [])
      }))

    it.effect(`have room for ${commonCallers} callers of 50 subscriptions in common: 50 on one connection`, () =>
      Effect.gen(function*() {
        const { open, run, state } = yield* lab({ TRIGATE_STREAM_CALLER_SOCKETS: "200" })
        const sockets = yield* Effect.forEach(Array.from({ length: commonCallers }), () => open(), { concurrency: 20 })
        for (const socket of sockets) for (const subscription of listing) socket.subscribe(subscription)
        for (const socket of sockets) {
          yield* Effect.promise(() =>
            socket.until(() => socket.of("subscriptionResponse").length >= 50, "50 responses")
          )
        }
        for (const { coin } of listing) yield* run({ do: "trade", coin })
        for (const socket of sockets) {
          yield* Effect.promise(() => socket.until(() => socket.of("trades").length >= 50, "50 trades"))
        }
        const { connections, messages } = yield* state
        assert.deepStrictEqual([connections.length, connections[0]?.keys.length, messages], [1, 50, 50])
        const [one] = sockets
        assert.isTrue(
          sockets.every((socket) =>
            socket.of("trades").every(({ text }, index) => text === one?.of("trades")[index]?.text)
          )
        )
      }))
  })
})

describe("a post", () => {
  tests(layer)((it) => {
    it.effect("of an action whose reply is lost is sent once, and its outcome is unknown", () =>
      Effect.gen(function*() {
        const { open, run, state, url } = yield* lab({}, { do: "rest", set: { exchange: { mode: "hang-up" } } })
        const now = yield* Clock.currentTimeMillis
        const order = yield* signedOrder(now, "0.2")
        const socket = yield* open()
        socket.send(postOf(7, "action", order))
        const lost = yield* meanwhile(next(socket, "post"))
        assert.match(
          lost.text,
          /^\{"channel":"post","data":\{"id":7,"response":\{"type":"action","payload":\{"status":"err","response":"OutcomeUnknown: /u
        )
        assert.deepStrictEqual((yield* state).actions.map(({ nonce }) => nonce), [now])
        // as over HTTP: other bytes under its nonce are refused, the same bytes may be sent again
        yield* run({ do: "rest", set: {} })
        const other = yield* signedOrder(now, "0.3")
        socket.send(postOf(8, "action", other))
        assert.match((yield* next(socket, "post")).text, /"id":8,.+"status":"err","response":"NonceAlreadyUsed: /u)
        assert.strictEqual((yield* post(`${url}/exchange`, JSON.stringify(other))).status, 409)
        socket.send(postOf(9, "action", order))
        assert.match((yield* next(socket, "post")).text, /"id":9,.+"status":"ok"/u)
        assert.deepStrictEqual((yield* state).actions.map(({ nonce }) => nonce), [now, now])
      }))

    it.effect("of five actions under way when the venue's connections die: each is sent once, and looked up", () =>
      Effect.gen(function*() {
        const { open, pass, run, state, url } = yield* lab({}, {
          do: "rest",
          set: { exchange: { mode: "silence" } }
        }, { do: "trader", user: sandboxKeys.trader.address })
        const now = yield* Clock.currentTimeMillis
        const socket = yield* open()
        const ids = [1, 2, 3, 4, 5]
        const cloid = (id: number) => `0x${String(id).padStart(32, "0")}` as const
        for (const id of ids) socket.send(postOf(id, "action", yield* signedOrder(now + id, "0.2", cloid(id))))
        yield* run({ until: "actions", count: 5 }, { do: "hang-up-rest" })
        const replies: Array<string> = []
        for (const _ of [1, 2, 3, 4, 5]) replies.push((yield* meanwhile(next(socket, "post"))).text)
        assert.sameMembers(replies.map((text) => JsonParts.value(text, "data", "id")), [1, 2, 3, 4, 5])
        for (const text of replies) assert.include(text, `"response":"OutcomeUnknown: `)
        yield* pass(30)
        for (const id of ids) {
          const { json } = yield* get(`${url}/actions?signer=${sandboxKeys.trader.address}&nonce=${now + id}`)
          assert.deepStrictEqual(
            [JsonParts.at(json, "state"), JsonParts.at(json, "settled", "by")],
            ["accepted", "orderStatus"]
          )
        }
        assert.lengthOf((yield* state).actions, 5)
      }))

    it.effect("of queries is answered out of order, and one that never is hinders no other", () =>
      Effect.gen(function*() {
        const { open, run } = yield* lab({}, {
          do: "rest",
          set: { openOrders: { mode: "silence" }, userRole: { mode: "hold" } }
        })
        const socket = yield* open()
        socket.send(postOf(1, "info", { type: "openOrders", user: alice }))
        socket.send(postOf(2, "info", { type: "userRole", user: alice }))
        yield* run({ until: "queries", type: "userRole", count: 1 })
        socket.send(postOf(18_446_744_073_709, "info", { type: "l2Book", coin: "BTC" }))
        assert.match((yield* next(socket)).text, /"id":18446744073709,.+"type":"l2Book"/u)
        yield* run({ do: "release-rest" })
        assert.strictEqual(
          (yield* next(socket)).text,
          `{"channel":"post","data":{"id":2,"response":{"type":"info","payload":{"type":"userRole","data":{"role":"user"}}}}}`
        )
        const bogus = JSON.stringify(postOf(3, "info", { type: "bogusInfoType" }))
        socket.send(bogus)
        assert.strictEqual(
          (yield* next(socket)).data,
          `Error parsing JSON into valid websocket request: ${bogus}`
        )
      }))

    it.effect("too many is refused in the venue's words", () =>
      Effect.gen(function*() {
        const { open } = yield* lab({ TRIGATE_STREAM_POSTS: "1" }, {
          do: "rest",
          set: { userRole: { mode: "silence" } }
        })
        const socket = yield* open()
        socket.send(postOf(1, "info", { type: "userRole", user: alice }))
        socket.send(postOf(1234, "info", { type: "userRole", user: alice }))
        assert.strictEqual((yield* next(socket)).data, "too many pending post requests id=1234")
      }))
  })
})

/** Together they fill what the system buffers for a socket on this machine, about 10 MB. */
const frames = 300
const pad = "x".repeat(60_000)

describe("a caller", () => {
  tests(layer)((it) => {
    it.effect("that reads nothing is closed in time, and the others get everything", () =>
      Effect.gen(function*() {
        const { open, run } = yield* lab({ TRIGATE_STREAM_QUEUE_KIB: "256" })
        const [slow, quick] = [yield* open(), yield* open()]
        for (const socket of [slow, quick]) {
          socket.subscribe({ type: "trades", coin: "BTC" })
          yield* next(socket, "subscriptionResponse")
        }
        slow.raw.pause()
        for (let tid = 1; tid <= frames; tid++) {
          const text = `{"channel":"trades","data":[{"coin":"BTC","time":${tid},"tid":${tid},"pad":"${pad}"}]}`
          yield* run({ do: "raw", text })
          assert.strictEqual((yield* next(quick)).text, text)
        }
        slow.raw.resume()
        assert.deepStrictEqual(yield* closed(slow), {
          code: 1013,
          reason: "Frames were not read in time: connect again"
        })
        // nothing is left out of what it did receive
        const received = slow.of("trades").map(({ text }) => text)
        assert.isBelow(received.length, frames)
        assert.deepStrictEqual(received, quick.of("trades").slice(0, received.length).map(({ text }) => text))
      }))

    it.effect("that reads slowly gets the latest state of each book", () =>
      Effect.gen(function*() {
        const { open, run } = yield* lab()
        const [slow, quick] = [yield* open(), yield* open()]
        for (const socket of [slow, quick]) {
          socket.subscribe({ type: "l2Book", coin: "BTC" })
          yield* next(socket, "l2Book")
        }
        slow.raw.pause()
        const text = (time: number) =>
          `{"channel":"l2Book","data":{"coin":"BTC","time":${time},"levels":[[],[]],"pad":"${pad}"}}`
        for (let time = 1; time <= frames; time++) {
          yield* run({ do: "raw", text: text(time) })
          assert.strictEqual((yield* next(quick)).text, text(time))
        }
        slow.raw.resume()
        yield* Effect.promise(() => slow.until((seen) => seen.at(-1)?.text === text(frames), "the last book"))
        const times = slow.of("l2Book").slice(1).map(({ data }) => Number(JsonParts.at(data, "time")))
        assert.isBelow(times.length, frames)
        assert.deepStrictEqual(times, times.toSorted((left, right) => left - right))
      }))

    it.effect("whose key is revoked is closed, and no other", () =>
      Effect.gen(function*() {
        const { file, keys: issued, store } = yield* keyFile({ name: "one" }, { name: "two" })
        const { open } = yield* lab({ TRIGATE_CALLERS: file })
        const [revoked, kept] = [yield* open(`/${issued[0]}/ws`), yield* open(`/${issued[1]}/ws`)]
        for (const socket of [revoked, kept]) {
          socket.subscribe({ type: "bbo", coin: "BTC" })
          yield* next(socket, "bbo")
        }
        yield* Effect.orDie(store.revoke({ name: "one" }))
        assert.deepStrictEqual(yield* meanwhile(closed(revoked)), {
          code: 1008,
          reason: "The key is no longer valid, or its scope no longer allows these subscriptions"
        })
        kept.send({ method: "ping" })
        yield* next(kept, "pong")
      }))

    it.effect("whose key is limited to other subscriptions is closed, and one whose key still covers its own is not", () =>
      Effect.gen(function*() {
        const { file, keys: issued } = yield* keyFile({ name: "one", scope: { operations: ["trades", "bbo"] } })
        const { open } = yield* lab({ TRIGATE_CALLERS: file })
        const [book, trades] = [yield* open(`/${issued[0]}/ws`), yield* open(`/${issued[0]}/ws`)]
        book.subscribe({ type: "bbo", coin: "BTC" })
        yield* next(book, "bbo")
        trades.subscribe({ type: "trades", coin: "BTC" })
        yield* next(trades, "subscriptionResponse")
        yield* Effect.sync(() =>
          Fs.writeFileSync(file, Fs.readFileSync(file, "utf8").replace(/\[\s*"trades",\s*"bbo"\s*\]/u, `["trades"]`))
        )
        assert.deepStrictEqual(yield* meanwhile(closed(book)), {
          code: 1008,
          reason: "The key is no longer valid, or its scope no longer allows these subscriptions"
        })
        trades.subscribe({ type: "bbo", coin: "BTC" })
        assert.match(String((yield* next(trades, "error")).data), /NotPermitted/u)
      }))

    it.effect("whose key expires is closed, and no other", () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(Math.max(epoch, yield* Clock.currentTimeMillis))
        const { file, keys: issued } = yield* keyFile({ name: "short", lifetime: "1 minute" }, { name: "long" })
        const { open, pass } = yield* lab({ TRIGATE_CALLERS: file })
        const [expiring, kept] = [yield* open(`/${issued[0]}/ws`), yield* open(`/${issued[1]}/ws`)]
        for (const socket of [expiring, kept]) {
          socket.subscribe({ type: "bbo", coin: "BTC" })
          yield* next(socket, "bbo")
        }
        yield* pass(57)
        expiring.send({ method: "ping" })
        yield* next(expiring, "pong")
        assert.deepStrictEqual(yield* meanwhile(closed(expiring)), {
          code: 1008,
          reason: "The key is no longer valid, or its scope no longer allows these subscriptions"
        })
        kept.send({ method: "ping" })
        yield* next(kept, "pong")
      }))

    it.effect("whose key has signers posts their actions alone, by the key as it is now", () =>
      Effect.gen(function*() {
        const { file, keys: issued } = yield* keyFile({
          name: "desk",
          scope: { classes: ["read", "sign"], signers: [Schema.decodeSync(Address)(alice)] }
        })
        const { open, pass, state } = yield* lab({ TRIGATE_CALLERS: file })
        const socket = yield* open(`/${issued[0]}/ws`)
        const now = yield* Clock.currentTimeMillis
        socket.send(postOf(1, "action", yield* signedOrder(now, "0.2")))
        const refused = yield* next(socket, "post")
        assert.match(refused.text, /"id":1,.+"status":"err","response":"SignerNotAllowed: /u)
        assert.lengthOf((yield* state).actions, 0)
        const text = Fs.readFileSync(file, "utf8").replace(alice, sandboxKeys.trader.address)
        yield* Effect.sync(() => Fs.writeFileSync(file, text))
        // read from the file soon after, in real time
        let reply = refused.text
        for (let id = 2; id < 200 && !reply.includes(`"status":"ok"`); id++) {
          assert.include(reply, "SignerNotAllowed")
          yield* pass(1)
          socket.send(postOf(id, "action", yield* signedOrder(now + id, "0.2")))
          reply = (yield* next(socket, "post")).text
        }
        assert.lengthOf((yield* state).actions, 1)
      }))

    it.effect("appears in metrics without an address, of the account or of the machine", () =>
      Effect.gen(function*() {
        const { open, pass, run, url } = yield* lab()
        const socket = yield* open()
        for (const type of ["userFills", "orderUpdates", "userEvents"]) socket.subscribe({ type, user: alice })
        socket.send(postOf(1, "info", { type: "openOrders", user: alice }))
        socket.send(postOf(2, "action", yield* signedOrder(yield* Clock.currentTimeMillis, "0.2")))
        yield* Effect.promise(() => socket.until(() => socket.of("post").length >= 2, "two replies"))
        yield* run({ do: "fill", user: alice, coin: "BTC" }, { do: "drop" })
        yield* next(socket, "user")
        socket.raw.close()
        yield* closed(socket)
        yield* meanwhile(pass(2))
        const { text } = yield* get(`${url}/metrics`)
        assert.include(text, `trigate_stream_deliveries_total{channel="userFills"}`)
        assert.notMatch(text, /0x[0-9a-f]{8}|127\.0\.0\.1|::1/iu)
      }))

    it.effect("is pinged each 25 seconds, and its connection ends after a minute in which it sent nothing", () =>
      Effect.gen(function*() {
        const { pass, url } = yield* lab()
        const sockets = yield* Effect.acquireRelease(
          Effect.sync(() =>
            [true, false].map((autoPong) => {
              const socket = new WebSocket(url.replace("http", "ws") + "/ws", { autoPong })
              const seen = { socket, pings: 0, code: 0 }
              socket.on("ping", () => void seen.pings++)
              socket.on("close", (code) => void (seen.code = code))
              return seen
            })
          ),
          (opened) =>
            Effect.sync(() => {
              for (const { socket } of opened) socket.terminate()
            })
        )
        yield* Effect.promise(() => Promise.all(sockets.map(({ socket }) => once(socket, "open"))))
        yield* pass(24)
        assert.deepStrictEqual(sockets.map(({ pings }) => pings), [0, 0])
        yield* pass(2)
        assert.deepStrictEqual(sockets.map(({ pings }) => pings), [1, 1])
        yield* pass(54)
        assert.deepStrictEqual(sockets.map(({ code, pings }) => [code, pings]), [[0, 3], [1006, 2]])
      }))

    it.effect("is closed over the time of the drain, not all with one another", () =>
      Effect.gen(function*() {
        const { open, stop } = yield* lab({ TRIGATE_STREAM_DRAIN: "200 millis" })
        const clock = yield* Clock.Clock
        const sockets = yield* Effect.forEach(Array.from({ length: 12 }), () => open())
        const began = clock.currentTimeMillisUnsafe()
        const ends: Array<number> = []
        for (const socket of sockets) {
          socket.raw.on("close", () => void ends.push(clock.currentTimeMillisUnsafe() - began))
        }
        yield* stop
        const codes = yield* Effect.forEach(sockets, closed)
        assert.deepStrictEqual(new Set(codes.map(({ code }) => code)), new Set([1001]))
        // three each 50 milliseconds, and an end is never seen before it was sent
        for (const [index, at] of ends.entries()) assert.isAtLeast(at, Math.floor(index / 3) * 50)
      }))

    it.effect("of a foreign page is refused before the upgrade; without an origin, or with ours, it is not", () =>
      Effect.gen(function*() {
        const { open, url } = yield* lab()
        yield* open()
        yield* open("/ws", { origin: url })
        const foreign = new TestSocket(`${url}/ws`, { origin: "https://example.org" })
        assert.strictEqual((yield* Effect.promise(() => foreign.refused)).status, 403)
        const host = new TestSocket(`${url}/ws`, { host: "rebound.example.org" })
        assert.isAtLeast((yield* Effect.promise(() => host.refused)).status, 400)
        const plain = yield* send(`${url}/ws`, {})
        assert.strictEqual(plain.status, 426)
      }))

    it.effect("is told when the gateway stops", () =>
      Effect.gen(function*() {
        const { open, stop } = yield* lab()
        const socket = yield* open()
        socket.subscribe({ type: "bbo", coin: "BTC" })
        yield* next(socket, "bbo")
        yield* stop
        assert.deepStrictEqual(yield* closed(socket), {
          code: 1001,
          reason: "The gateway is restarting: connect again"
        })
      }))

    it.effect("that sends what is no text, too much or too often is closed with the code for it", () =>
      Effect.gen(function*() {
        const { open } = yield* lab({ TRIGATE_STREAM_CALLER_MESSAGES: "20" })
        const [binary, large, often] = [yield* open(), yield* open(), yield* open()]
        binary.raw.send(Buffer.from([1, 2, 3]))
        assert.strictEqual((yield* closed(binary)).code, 1003)
        large.send("x".repeat(65_537))
        assert.strictEqual((yield* closed(large)).code, 1009)
        for (let count = 0; count < 21; count++) often.send({ method: "ping" })
        assert.strictEqual((yield* closed(often)).code, 1008)
      }))
  })
})
