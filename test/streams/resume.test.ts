/** Streams that are resumed: what `Last-Event-ID` and `/ws?resume=` promise, and what a caller is told when it cannot be kept. */
import { assert, describe, layer as tests } from "@effect/vitest"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { openEvents, requestEvents } from "./eventSource.ts"
import type { TestEvents } from "./eventSource.ts"
import { alice, bob, lab, layer, meanwhile } from "./lab.ts"
import type { Frame } from "./socket.ts"

const fills = (user: string) => ({ type: "userFills", user })
const orders = (user: string) => ({ type: "orderUpdates", user })

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/** The ids of the fills in frames, in order. */
const tids = (frames: ReadonlyArray<Frame>): ReadonlyArray<unknown> =>
  frames.filter(({ channel }) => channel === "userFills").flatMap(({ data }) => list(JsonParts.at(data, "fills")))
    .map((row) => JsonParts.at(row, "tid"))

const isBegun = (events: ReadonlyArray<Frame>): boolean =>
  events.some(({ data }) => JsonParts.at(data, "isSnapshot") === true)

const until = (events: TestEvents, isMet: (events: ReadonlyArray<Frame>) => boolean, what: string) =>
  Effect.promise(() => events.until(isMet, what))

const resumption = ({ data, text }: Frame): unknown => data ?? JSON.parse(text)

describe("a stream of events", () => {
  tests(layer)((it) => {
    it.effect("goes on after the last event that the client received", () =>
      Effect.gen(function*() {
        const { run, state, url } = yield* lab({}, { do: "fill", user: alice, coin: "BTC", count: 2 })
        const first = yield* openEvents(url, [fills(alice), orders(alice)])
        yield* meanwhile(until(first, isBegun, "a snapshot"))
        assert.deepStrictEqual(first.events[0]?.event, "resume")
        assert.strictEqual(JsonParts.at(resumption(first.events[0] ?? assert.fail()), "recovered"), false)
        yield* run({ do: "fill", user: alice, coin: "ETH" })
        yield* meanwhile(until(first, (events) => tids(events).length === 3, "a fill"))
        yield* meanwhile(until(first, () => first.of("orderUpdates").length >= 1, "its order"))
        const { lastId } = first
        first.close()
        yield* run({ do: "fill", user: alice, coin: "SOL", count: 3 })
        const second = yield* openEvents(url, [fills(alice), orders(alice)], lastId)
        yield* meanwhile(until(second, (events) => tids(events).length >= 3, "what was missed"))
        assert.strictEqual(JsonParts.at(resumption(second.events[0] ?? assert.fail()), "recovered"), true)
        assert.isFalse(isBegun(second.events))
        assert.strictEqual(new Set([...tids(first.events), ...tids(second.events)]).size, 6)
        const ids = second.events.flatMap(({ id }) => id === undefined ? [] : [Number(id.split(":")[1])])
        assert.deepStrictEqual(ids, ids.toSorted((a, b) => a - b))
        assert.deepStrictEqual((yield* state).violations, [])
      }))

    it.effect("says that it cannot go on at an id that is unknown or malformed, and begins with a snapshot", () =>
      Effect.gen(function*() {
        const { url } = yield* lab({}, { do: "fill", user: alice, coin: "BTC", count: 2 })
        for (const id of ["nonsense", "abc:1", "abc:99999999999999999999", "-1", "abc:1:2"]) {
          const events = yield* openEvents(url, [fills(alice)], id)
          yield* meanwhile(until(events, isBegun, "a snapshot"))
          assert.strictEqual(JsonParts.at(resumption(events.events[0] ?? assert.fail()), "recovered"), false, id)
          assert.strictEqual(tids(events.events).length, 2)
        }
      }))

    it.effect("is refused with 400 without a subscription that can be read", () =>
      Effect.gen(function*() {
        const { url } = yield* lab()
        const bad = [
          [],
          ["trades"],
          [{ type: "trades" }],
          [{ type: "trades", coin: "NOPE" }],
          [fills(alice), { type: "webData2", user: alice }],
          ["[".repeat(60)]
        ]
        for (const subscriptions of bad) {
          const response = yield* Effect.promise(() => requestEvents(url, subscriptions))
          assert.strictEqual(response.status, 400, JSON.stringify(subscriptions))
          assert.match(yield* Effect.promise(() => response.text()), /urn:trigate:problem:invalid-request/u)
        }
      }))

    it.effect("has market data too, which it cannot resume", () =>
      Effect.gen(function*() {
        const { run, url } = yield* lab({}, { do: "trade", coin: "BTC", count: 3 })
        const first = yield* openEvents(url, [{ type: "trades", coin: "BTC" }])
        yield* meanwhile(until(first, () => first.of("trades").length === 1, "trades"))
        first.close()
        yield* run({ do: "trade", coin: "BTC" })
        const second = yield* openEvents(url, [{ type: "trades", coin: "BTC" }], first.lastId)
        yield* meanwhile(until(second, () => second.of("trades").length === 1, "trades"))
        assert.strictEqual(JsonParts.at(resumption(second.events[0] ?? assert.fail()), "recovered"), false)
      }))

    it.effect("is kept open while nothing happens", () =>
      Effect.gen(function*() {
        const { pass, url } = yield* lab()
        const events = yield* openEvents(url, [fills(bob)])
        yield* meanwhile(until(events, isBegun, "a snapshot"))
        yield* pass(40)
        yield* meanwhile(until(events, () => events.comments >= 2, "comments"))
        assert.isFalse(events.isOver)
      }))

    it.effect("ends when the gateway drains, spread over the time of the drain, with all events before it", () =>
      Effect.gen(function*() {
        const { run, stop, url } = yield* lab({ TRIGATE_STREAM_DRAIN: "400 millis" })
        const clock = yield* Clock.Clock
        const streams = yield* Effect.forEach(Array.from({ length: 8 }), () => openEvents(url, [fills(alice)]))
        for (const stream of streams) yield* meanwhile(until(stream, isBegun, "a snapshot"))
        yield* run({ do: "fill", user: alice, coin: "BTC", count: 2 })
        for (const stream of streams) {
          yield* meanwhile(until(stream, (events) => tids(events).length === 2, "two fills"))
        }
        const began = clock.currentTimeMillisUnsafe()
        const ends: Array<number> = []
        for (const stream of streams) void stream.over().then(() => ends.push(clock.currentTimeMillisUnsafe() - began))
        yield* stop
        yield* Effect.forEach(streams, (stream) => Effect.promise(() => stream.over()))
        assert.deepStrictEqual(streams.map(({ isCut }) => isCut), streams.map(() => false))
        assert.deepStrictEqual(new Set(streams.map(({ events }) => tids(events).length)), new Set([2]))
        // one each 50 milliseconds, and an end is never seen before it was sent
        for (const [index, at] of ends.entries()) assert.isAtLeast(at, index * 50)
      }))

    it.effect("ends if an account cannot be watched any more, and is resumed once it can", () =>
      Effect.gen(function*() {
        const { open, pass, run, url } = yield* lab({ TRIGATE_STREAM_GRACE: "1 second" })
        const [other, socket] = [yield* open(), yield* open()]
        other.subscribe(fills(alice))
        yield* meanwhile(Effect.promise(() => other.next("userFills")))
        socket.subscribe(fills(bob))
        const events = yield* openEvents(url, [fills(bob), orders(bob)])
        yield* meanwhile(until(events, isBegun, "a snapshot"))
        yield* run({ do: "limits", set: { users: 1 } }, { do: "drop" })
        yield* meanwhile(Effect.promise(() => events.over()))
        assert.deepStrictEqual(events.of("error").map(({ data }) => data), ["Cannot track more than 1 total users."])
        assert.deepStrictEqual(yield* meanwhile(Effect.promise(() => socket.closed)), {
          code: 1013,
          reason: "A subscription cannot continue: connect again"
        })
        // as EventSource does
        const again = yield* openEvents(url, [fills(bob), orders(bob)], events.lastId)
        yield* meanwhile(Effect.promise(() => again.over()))
        assert.lengthOf(again.of("error"), 2)
        other.raw.close()
        yield* run({ do: "fill", user: bob, coin: "BTC" })
        yield* pass(5)
        const last = yield* openEvents(url, [fills(bob), orders(bob)], events.lastId)
        yield* meanwhile(until(last, (frames) => tids(frames).length === 1, "the fill"))
        yield* run({ do: "fill", user: bob, coin: "ETH" })
        yield* meanwhile(until(last, (frames) => tids(frames).length === 2, "a later fill"))
        assert.isFalse(last.isOver)
      }))

    it.effect("of more accounts than a caller may have is told so", () =>
      Effect.gen(function*() {
        const { url } = yield* lab({ TRIGATE_STREAM_CALLER_USERS: "1" })
        const events = yield* openEvents(url, [fills(alice), fills(bob)])
        yield* meanwhile(until(events, () => events.of("error").length === 1, "an error"))
        assert.deepStrictEqual(events.of("error").map(({ data }) => data), ["Cannot track more than 1 total users."])
      }))
  })
})

describe("a WebSocket that resumes", () => {
  tests(layer)((it) => {
    it.effect("is told first whether it can, and gets what it missed", () =>
      Effect.gen(function*() {
        const { open, run } = yield* lab({}, { do: "fill", user: alice, coin: "BTC" })
        const first = yield* open("/ws?resume=")
        first.subscribe(fills(alice))
        yield* meanwhile(Effect.promise(() => first.until(isBegun, "a snapshot")))
        assert.strictEqual(first.frames[0]?.channel, "resume")
        assert.strictEqual(JsonParts.at(first.frames[0]?.data, "recovered"), false)
        yield* run({ do: "fill", user: alice, coin: "ETH" })
        yield* meanwhile(Effect.promise(() => first.until((frames) => tids(frames).length === 2, "a fill")))
        const last: unknown = JSON.parse(first.frames.at(-1)?.text ?? "")
        first.raw.close()
        yield* run({ do: "fill", user: alice, coin: "SOL", count: 2 })
        const second = yield* open(
          `/ws?resume=${String(JsonParts.at(last, "epoch"))}:${String(JsonParts.at(last, "seq"))}`
        )
        second.subscribe(fills(alice))
        yield* meanwhile(Effect.promise(() => second.until((frames) => tids(frames).length === 2, "what was missed")))
        assert.strictEqual(JsonParts.at(second.frames[0]?.data, "recovered"), true)
        assert.strictEqual(new Set([...tids(first.frames), ...tids(second.frames)]).size, 4)
      }))

    it.effect("without it has no new member in any frame", () =>
      Effect.gen(function*() {
        const { ledger, open, run } = yield* lab()
        const [stock, resuming] = [yield* open(), yield* open("/ws?resume=")]
        resuming.subscribe(orders(alice))
        stock.subscribe(orders(alice))
        yield* meanwhile(Effect.promise(() => stock.next("subscriptionResponse")))
        yield* meanwhile(Effect.promise(() => resuming.next("subscriptionResponse")))
        yield* run({ do: "place", user: alice, coin: "BTC" })
        const { text } = yield* meanwhile(Effect.promise(() => stock.next("orderUpdates")))
        const entry = (yield* ledger).find(({ channel }) => channel === "orderUpdates")
        assert.strictEqual(text, JSON.stringify({ channel: "orderUpdates", data: entry?.data }))
        const told = yield* meanwhile(Effect.promise(() => resuming.next("orderUpdates")))
        assert.match(told.text, /,"epoch":"[0-9a-z]+","seq":\d+\}$/u)
      }))
  })
})
