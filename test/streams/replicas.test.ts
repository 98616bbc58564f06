/** Replicas that share a Redis or a Postgres: one records the events of accounts, the others read its log, and one takes over when it is gone. */
import { assert, describe, layer as tests } from "@effect/vitest"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import { gateway, get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as PostgresServer from "@trigate/testing/PostgresServer"
import * as RedisServer from "@trigate/testing/RedisServer"
import { sample } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { openEvents } from "./eventSource.ts"
import type { Event, TestEvents } from "./eventSource.ts"
import { alice, bob, lab, layer, meanwhileStored as meanwhile } from "./lab.ts"
import { openSocket } from "./socket.ts"
import type { TestSocket } from "./socket.ts"

const fills = { type: "userFills", user: alice }
const orders = { type: "orderUpdates", user: alice }
const ordersKey = JSON.stringify(orders)

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

const tids = (events: ReadonlyArray<Event>): ReadonlyArray<unknown> =>
  events.filter(({ channel }) => channel === "userFills").flatMap(({ data }) => list(JsonParts.at(data, "fills")))
    .map((row) => JsonParts.at(row, "tid"))

const isBegun = (events: ReadonlyArray<Event>): boolean =>
  events.some(({ data }) => JsonParts.at(data, "isSnapshot") === true)

/** Whether each resumption was recovered, in order. */
const resumptions = (stream: TestEvents): ReadonlyArray<unknown> =>
  stream.events.filter(({ event }) => event === "resume").map(({ text }) => JsonParts.at(JSON.parse(text), "recovered"))

const until = (stream: TestEvents, isMet: (events: ReadonlyArray<Event>) => boolean, what: string) =>
  meanwhile(Effect.promise(() => stream.until(isMet, what)))

/** The use of the venue's limits by the other replicas: connections, subscriptions, users. */
type OtherUse = readonly [number, number, number]

const readOtherUse = (url: string) =>
  Effect.map(
    get(`${url}/metrics`),
    ({ text }) =>
      ["connections", "subscriptions", "users"].map((limit) =>
        Number(new RegExp(`^trigate_stream_other_replicas\\{limit="${limit}"\\} (\\d+)$`, "mu").exec(text)?.[1])
      )
  )

/** The rounds of `knows`; the last one has as many requests between two seconds of the clock. */
const mostRounds = 100

/**
 * Lets seconds pass until a gateway knows the use of the others. Each round gives the stores more real time than the one before,
 * because an exchange fails when a quarter of a second of the clock passes during it.
 */
const knows = Effect.fnUntraced(function*(url: string, expected: OtherUse) {
  let use: ReadonlyArray<number> = []
  for (let round = 1; round <= mostRounds; round++) {
    yield* TestClock.adjust("1 second")
    for (let request = 0; request < round; request++) use = yield* readOtherUse(url)
    if (use.every((value, index) => value === expected[index])) return
  }
  assert.deepStrictEqual(use, expected)
})

/** Runs an effect with a registry of metrics of its own. */
const withOwnMetrics = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(effect, Metric.MetricRegistry, new Map())

const stores = [
  {
    name: "Redis",
    variable: "TRIGATE_REDIS_URL",
    isInstalled: RedisServer.isInstalled,
    server: RedisServer.redisServer
  },
  {
    name: "Postgres",
    variable: "TRIGATE_DATABASE_URL",
    isInstalled: PostgresServer.isInstalled,
    server: PostgresServer.postgresServer
  }
]

const installed = sample("stores of two gateways", stores.filter(({ isInstalled }) => isInstalled), 1)

describe.each(installed)("two gateways on one $name", ({ server, variable }) => {
  tests(layer)((it) => {
    it.effect("have one log: a stream goes on at the other one, whichever records, and after the recorder is gone", () =>
      Effect.gen(function*() {
        const store = yield* server
        const environment = { [variable]: store.url, TRIGATE_STREAM_DRAIN: "1 second" }
        const first = yield* lab(environment, { do: "fill", user: alice, coin: "BTC", count: 2 })
        const scope = yield* Scope.make()
        // its end waits for open streams
        yield* Effect.addFinalizer(() => advancingClock(Scope.close(scope, Exit.void)))
        const second = yield* Scope.provide(
          gateway({ ...environment, TRIGATE_TRADING_API_URL: first.venue.url }),
          scope
        )
        // a follower asks the owner to watch
        const follower = yield* openEvents(second.url, [fills, orders])
        yield* until(follower, isBegun, "a snapshot")
        assert.strictEqual((yield* first.state).connections.filter(({ keys }) => keys.includes(ordersKey)).length, 1)
        yield* first.run({ do: "fill", user: alice, coin: "ETH", count: 2 })
        yield* until(follower, (events) => tids(events).length === 4, "two fills")
        const { lastId } = follower
        const other = yield* openEvents(first.url, [fills, orders], lastId)
        yield* until(other, (events) => events.length > 0, "an event")
        assert.deepStrictEqual(resumptions(other), [true])
        other.close()
        // the recorder ends, and things happen before the other one takes over
        yield* meanwhile(first.stop)
        yield* first.run({ do: "fill", user: alice, coin: "SOL", count: 3 })
        yield* meanwhile(first.run({ until: "subscribed", key: ordersKey, count: 1 }))
        yield* until(follower, (events) => tids(events).length === 7, "what nobody recorded")
        yield* first.run({ do: "fill", user: alice, coin: "BTC" })
        yield* until(follower, (events) => tids(events).length === 8, "the next fill")
        const received = tids(follower.events)
        assert.strictEqual(new Set(received).size, 8)
        const expected = (yield* first.ledger).filter(({ key }) =>
          key.startsWith(`{"type":"userFills"`) && key.includes("false")
        )
          .flatMap(({ data }) => list(JsonParts.at(data, "fills"))).map((row) => JsonParts.at(row, "tid"))
        assert.deepStrictEqual(received, expected)
        assert.deepStrictEqual(resumptions(follower), [false])
        const later = yield* openEvents(second.url, [fills, orders], lastId)
        yield* until(later, (events) => tids(events).length === 4, "what was missed")
        assert.deepStrictEqual([resumptions(later), tids(later.events)], [[true], expected.slice(4)])
        assert.deepStrictEqual((yield* first.state).violations, [])
      }))

    it.effect("answer queries about the account from the log, whichever has it: no answer is older than its streams", () =>
      Effect.gen(function*() {
        const store = yield* server
        const environment = { [variable]: store.url, TRIGATE_WATCH_ACCOUNTS: alice, TRIGATE_STREAM_DRAIN: "1 second" }
        const { run, state, venue } = yield* lab(environment)
        const scope = yield* Scope.make()
        yield* Effect.addFinalizer(() => advancingClock(Scope.close(scope, Exit.void)))
        const reader = yield* meanwhile(
          Scope.provide(gateway({ ...environment, TRIGATE_TRADING_API_URL: venue.url }), scope)
        )
        const stream = yield* meanwhile(openEvents(reader.url, [fills, orders]))
        yield* until(stream, isBegun, "a snapshot")
        const query = JSON.stringify({ type: "openOrders", user: alice })
        const ask = meanwhile(post(`${reader.url}/info`, query))
        // the recording replica renews its lease in real time
        const pass = (seconds: number) => meanwhile(Effect.sleep(seconds * 1000))
        const settle = Effect.andThen(pass(3), Effect.andThen(run({ do: "states", user: alice }), pass(1)))
        const asked = Effect.map(
          state,
          ({ queries }) => queries.filter(({ query }) => JsonParts.at(query, "type") === "openOrders").length
        )
        yield* settle
        yield* settle
        const before = yield* asked
        yield* ask
        // a Redis also shares the responses that the other replica has from its streams
        assert.strictEqual(yield* asked, before + (variable === "TRIGATE_REDIS_URL" ? 0 : 1))
        for (let count = 1; count <= 3; count++) {
          yield* run({ do: "place", user: alice, coin: "BTC" })
          yield* until(stream, () => stream.of("orderUpdates").length === count, "the order")
          const { json, headers } = yield* ask
          assert.lengthOf(list(json), count, `of age ${headers.get("age")}`)
          assert.deepStrictEqual(json, (yield* post(`${venue.url}/info`, query)).json)
        }
      }))

    it.effect("share the venue's connections, subscriptions and users, until one of them stops", () =>
      Effect.gen(function*() {
        const store = yield* server
        const environment = {
          [variable]: store.url,
          TRIGATE_STREAM_CONNECTIONS: "3",
          TRIGATE_STREAM_SUBSCRIPTIONS: "20",
          TRIGATE_STREAM_USERS: "2",
          TRIGATE_STREAM_GRACE: "1 second",
          TRIGATE_STREAM_DRAIN: "1 second"
        }
        const first = yield* withOwnMetrics(lab(environment, {
          do: "limits",
          set: { connections: 3, subscriptions: 20, users: 2 }
        }))
        const scope = yield* Scope.make()
        yield* Effect.addFinalizer(() => advancingClock(Scope.close(scope, Exit.void)))
        const second = yield* Scope.provide(
          withOwnMetrics(gateway({ ...environment, TRIGATE_TRADING_API_URL: first.venue.url })),
          scope
        )
        const [one, two] = [yield* first.open(), yield* openSocket(`${second.url}/ws`)]
        const next = (socket: TestSocket, channel?: string) => meanwhile(Effect.promise(() => socket.next(channel)))
        // a replica whose last report missed its deadline may refuse what the next report lets it accept
        const subscribe = Effect.fnUntraced(function*(socket: TestSocket, subscription: unknown) {
          for (let channel = "error"; channel !== "subscriptionResponse"; channel = (yield* next(socket)).channel) {
            if (channel === "error") socket.subscribe(subscription)
          }
        })
        // no time passes before an error, so that what a replica knows stays in force
        const refusal = (socket: TestSocket) =>
          Effect.map(Effect.promise(() => socket.next("error")), ({ data }) => data)
        yield* subscribe(one, fills)
        yield* next(one, "userFills")
        yield* subscribe(two, { ...fills, user: bob })
        yield* next(two, "userFills")
        // a user whom the other replica has is no further one, and a third one is
        yield* knows(second.url, [1, 1, 1])
        yield* subscribe(two, fills)
        yield* next(two, "userFills")
        yield* knows(first.url, [1, 2, 2])
        for (const socket of [one, two]) {
          socket.subscribe({ ...fills, user: `0x${"cc".repeat(20)}` })
          assert.strictEqual(yield* refusal(socket), "Cannot track more than 2 total users.")
        }
        // the third connection
        for (const fast of [false, true]) yield* subscribe(two, { type: "l2Book", coin: "BTC", fast })
        yield* meanwhile(Effect.promise(() => two.until(() => two.of("l2Book").length >= 2, "two books")))
        yield* subscribe(one, { type: "l2Book", coin: "BTC" })
        yield* next(one, "l2Book")
        yield* knows(first.url, [2, 4, 2])
        one.subscribe({ type: "l2Book", coin: "BTC", fast: true })
        assert.strictEqual(yield* refusal(one), "Cannot open more than 3 connections.")
        // 2 and 4 of 20 subscriptions
        for (let coin = 0; coin < 14; coin++) yield* subscribe(two, { type: "trades", coin: `C${coin}` })
        yield* knows(first.url, [2, 18, 2])
        one.subscribe({ type: "bbo", coin: "BTC" })
        assert.strictEqual(yield* refusal(one), "Cannot subscribe to more than 20 channels.")
        yield* advancingClock(Scope.close(scope, Exit.void))
        yield* knows(first.url, [0, 0, 0])
        // the venue may read the end of one connection after a message of another one that was sent later
        yield* first.run({ until: "subscriptions", count: 2 })
        yield* subscribe(one, { type: "bbo", coin: "BTC" })
        yield* next(one, "bbo")
        assert.deepStrictEqual((yield* first.state).violations, [])
      }))

    for (const gone of ["kill", "freeze"] as const) {
      it.effect(`a stream is told within 5 seconds that the store is gone (${gone}), and gets what happens then`, () =>
        Effect.gen(function*() {
          const store = yield* server
          const { adminUrl, run, url } = yield* withOwnMetrics(lab({ [variable]: store.url }))
          const stream = yield* openEvents(url, [fills])
          yield* until(stream, isBegun, "a snapshot")
          const reported = Effect.gen(function*() {
            const { json } = yield* get(`${adminUrl}/health/ready`)
            const { text } = yield* get(`${adminUrl}/metrics`)
            const degraded = /^trigate_shared_state_degraded\{use="account-events"\} (?<value>\d)$/mu.exec(text)
            const member = (name: string) => JsonParts.at(json, "eventLog", name)
            return [member("state"), member("role"), degraded?.groups?.["value"] ?? "0"].join(" ")
          })
          assert.strictEqual(yield* meanwhile(reported), "up writer 0")
          const goneAt = yield* Clock.currentTimeMillis
          yield* store[gone]
          yield* Effect.addFinalizer(() => store.thaw)
          yield* until(stream, () => resumptions(stream).length >= 2, "a resumption")
          assert.isAtMost((yield* Clock.currentTimeMillis) - goneAt, 5000)
          assert.deepStrictEqual(resumptions(stream), [false, false])
          assert.strictEqual(yield* meanwhile(reported), "away alone 1")
          yield* until(
            stream,
            (events) => events.filter(({ data }) => JsonParts.at(data, "isSnapshot") === true).length === 2,
            "a snapshot"
          )
          yield* run({ do: "fill", user: alice, coin: "BTC" })
          yield* until(stream, (events) => tids(events).length === 1, "a fill")
          yield* gone === "kill" ? store.restart : store.thaw
          yield* until(stream, () => resumptions(stream).length >= 3, "the shared log")
          yield* meanwhile(
            Effect.repeat(Effect.delay(reported, "200 millis"), { until: (found) => found === "up writer 0" })
          )
        }))
    }
  })
})
