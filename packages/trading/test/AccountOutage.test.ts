/** Replicas on one store of the event log that is lost: their callers get every later row, or a stream that ends. */
import { assert, describe, it } from "@effect/vitest"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import { settableClock } from "@trigate/testing/AdvancingClock"
import * as EventStore from "@trigate/trading/accounts/AccountEvents"
import * as Streams from "@trigate/trading/streams/Streams"
import type { SharedStreams } from "@trigate/trading/streams/Streams"
import * as VenueSocket from "@trigate/trading/streams/StreamsMemory"
import * as ResumableSubscriber from "@trigate/trading/unstable/streams/ResumableSubscriber"
import * as VenueProtocol from "@trigate/trading/unstable/streams/VenueProtocol"
import * as ReplicaUse from "@trigate/upstream/streams/ReplicaUse"
import { SocketLost, SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import { SharedStoreUnreachable } from "@trigate/upstream/unstable/SharedState"
import type { Limits } from "@trigate/upstream/unstable/streams/StreamSettings"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as PubSub from "effect/PubSub"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"

interface Stored {
  readonly epoch: string
  seq: number
  lease: { readonly owner: string; readonly token: number; readonly until: number } | undefined
  readonly begun: Map<string, { readonly seq: number; readonly at: number }>
  readonly entries: Array<EventStore.Entry>
  readonly wanted: Map<string, number>
  readonly reports: Map<string, { readonly text: string; readonly until: number }>
}

/**
 * A store as the one in Redis: it can be unreachable, and be started again without its data. `latency` is the time that
 * an append takes. Meanwhile, each replica checks the accounts of its callers.
 */
const makeStore = (latency: Duration.Input = "1200 millis") => {
  let starts = 0
  let token = 0
  const empty = (): Stored => ({
    epoch: `epoch${++starts}`,
    seq: 0,
    lease: undefined,
    begun: new Map(),
    entries: [],
    wanted: new Map(),
    reports: new Map()
  })
  let stored = empty()
  /** The replicas that cannot reach the store, and those that cannot read the log in it. */
  const cut = new Set<object>()
  const blind = new Set<object>()
  const connect = (replica: object) => {
    const step = <A, E = never>(run: (now: number) => Effect.Effect<A, E>) =>
      Effect.flatMap(
        Clock.currentTimeMillis,
        (now): Effect.Effect<A, E | EventStore.EventStoreUnavailable> =>
          cut.has(replica) ? Effect.fail(new EventStore.EventStoreUnavailable({ detail: "down" })) : run(now)
      )
    const read = <A>(run: (now: number) => A) => step((now) => Effect.sync(() => run(now)))
    const service = EventStore.EventStore.of({
      backing: "Redis",
      lease: (owner) =>
        read((now) => {
          const { lease } = stored
          const held = lease !== undefined && lease.until > now ? lease : undefined
          if (held !== undefined && held.owner !== owner) return undefined
          stored.lease = { owner, token: held?.token ?? ++token, until: now + EventStore.leaseFor }
          return stored.lease.token
        }),
      release: (released) =>
        read(() => {
          if (stored.lease?.token === released) stored.lease = undefined
        }),
      append: (by, after, entries) =>
        Effect.delay(
          step((at) => {
            if (stored.lease?.token !== by || stored.seq !== after) return Effect.fail(new EventStore.LeaseLost())
            for (const entry of entries) {
              stored.seq += EventStore.span(entry)
              stored.entries.push({ ...entry, seq: stored.seq, at })
              if (entry.kind === "begin") stored.begun.set(entry.user, { seq: stored.seq, at })
              if (entry.kind === "end") stored.begun.delete(entry.user)
            }
            return Effect.succeed({ epoch: stored.epoch, seq: stored.seq, at })
          }),
          latency
        ),
      readAfter: (seq) =>
        blind.has(replica)
          ? Effect.fail(new EventStore.EventStoreUnavailable({ detail: "not decoded" }))
          : read(() => ({
            // a store without a log has no epoch before an owner begins one
            epoch: stored.lease === undefined && stored.seq === 0 ? "" : stored.epoch,
            seq: stored.seq,
            start: 0,
            begun: new Map(stored.begun),
            entries: stored.entries.filter((entry) => entry.seq > seq)
          })),
      want: (user) => read((now) => void stored.wanted.set(user, now + EventStore.wantFor)),
      wanted: read((now) => [...stored.wanted].filter(([, until]) => until > now).map(([user]) => user))
    })
    const exchange = (name: string, report: string) =>
      cut.has(replica)
        ? Effect.fail(new SharedStoreUnreachable({ detail: "down" }))
        : Effect.map(Clock.currentTimeMillis, (now) => {
          stored.reports.set(name, { text: report, until: now + ReplicaUse.expiresAfter })
          return [...stored.reports].flatMap(([other, { text, until }]) => other !== name && until > now ? [text] : [])
        })
    return { service, exchange }
  }
  const replicas = new Set<object>()
  return {
    connect: () => {
      const replica = {}
      replicas.add(replica)
      return {
        ...connect(replica),
        reach: () => cut.delete(replica),
        cut: () => cut.add(replica),
        blind: () => blind.add(replica),
        see: () => blind.delete(replica)
      }
    },
    stop: () => {
      for (const replica of replicas) cut.add(replica)
    },
    /** Starts the server again: that ends the lease and begins an epoch, also with its data. */
    restart: (isEmpty: boolean) => {
      stored = isEmpty ? empty() : { ...stored, epoch: `epoch${++starts}`, lease: undefined }
    }
  }
}

/**
 * A venue that sends the rows of `send` to each of its connections, and the newest rows so far as a snapshot; the snapshots of
 * fundings after some time.
 */
const makeVenue = Effect.fnUntraced(function*(listed = Number.POSITIVE_INFINITY, fundingsAfter: Duration.Input = 0) {
  const sent = new Map<string, Array<unknown>>()
  const live = yield* PubSub.unbounded<{ readonly key: string; readonly row: unknown }>()
  const refused = new Set<string>()
  const open = new Set<() => void>()
  const data = (
    { declaration, request }: Parameters<VenueSocket.Frames>[0],
    rows: ReadonlyArray<unknown>,
    isSnapshot = false
  ) => {
    const { member } = declaration.rows ?? {}
    return member === undefined ? rows : { isSnapshot, user: request["user"], [member]: rows }
  }
  const venue = VenueSocket.makeSocket((subscription) => {
    const { declaration, key } = subscription
    const first = declaration.delivery === "snapshot"
      ? Stream.fromEffect(
        Effect.delay(
          Effect.sync(() => data(subscription, (sent.get(key) ?? []).slice(-listed), true)),
          declaration.name === "userFundings" ? fundingsAfter : 0
        )
      )
      : Stream.empty
    const later = Stream.fromPubSub(live).pipe(
      Stream.filter((event) => event.key === key),
      Stream.map(({ row }) => data(subscription, [row]))
    )
    return Stream.merge(first, later)
  })
  let last = 0
  return {
    transport: SocketTransport.of({
      open: Effect.fnUntraced(function*(address) {
        const connection = yield* venue.open(address)
        const texts = yield* Queue.unbounded<string, SocketLost>()
        yield* Effect.forkScoped(
          Effect.forever(Effect.flatMap(connection.receive, (all) => Queue.offerAll(texts, all)))
        )
        const drop = () => Queue.failCauseUnsafe(texts, Cause.fail(new SocketLost({ code: 1000, reason: "" })))
        yield* Effect.acquireRelease(Effect.sync(() => open.add(drop)), () => Effect.sync(() => open.delete(drop)))
        return {
          receive: Queue.takeAll(texts),
          send: (text) =>
            [...refused].some((user) => text.includes(user)) && text.includes("\"subscribe\"")
              ? Effect.asVoid(Queue.offer(texts, VenueProtocol.errorFrame(`Invalid subscription ${text}`)))
              : connection.send(text)
        }
      })
    }),
    connections: () => open.size,
    /** Refuses subscriptions that name a user, and ends all connections. */
    refuse: (user: string) => {
      refused.add(user)
      for (const drop of open) drop()
    },
    accept: (user: string) => refused.delete(user),
    /** Sends a fill and an order update of a user; returns their number, which both rows contain. */
    send: Effect.fnUntraced(function*(user: string) {
      const number = ++last
      const time = yield* Clock.currentTimeMillis
      const rows = [
        [fills(user), { tid: number, time }],
        [orders(user), { order: { oid: number }, statusTimestamp: time }]
      ] as const
      for (const [topic, row] of rows) {
        const { key } = read(topic)
        sent.set(key, [...sent.get(key) ?? [], row])
        yield* PubSub.publish(live, { key, row })
      }
      return number
    })
  }
})

const read = (subscription: unknown) =>
  Result.getOrElse(Subscriptions.read(subscription), () => assert.fail("not a subscription"))
const fills = (user: string) => ({ type: "userFills", user })
const orders = (user: string) => ({ type: "orderUpdates", user })

const nothing = (): { readonly fills: Array<number>; readonly orders: Array<number> } => ({ fills: [], orders: [] })

/** A caller that reads an account at a replica, and what it received since its stream last began anew. */
const follow = ({ events, join, topicOf }: SharedStreams, user: string, caller = user) => {
  const state = {
    received: nothing(),
    beginnings: 0,
    /** Whether the subscription that ended was acknowledged before; `undefined` if none ended. */
    ended: undefined as boolean | undefined
  }
  const topics = [topicOf(read(fills(user))), topicOf(read(orders(user)))]
  const subscriber = ResumableSubscriber.join({ events, join }, caller, {
    resumed: ({ recovered }) => {
      if (recovered) return
      state.beginnings++
      state.received = nothing()
    },
    subscribed: () => {},
    deliver: ({ text, topic: { name } }) => {
      const numbers = Array.from(text.matchAll(/"(?:tid|oid)":(\d+)/gu), ([, number]) => Number(number))
      state.received[name === "userFills" ? "fills" : "orders"].push(...numbers)
    },
    refused: (_topic, _message, wasSubscribed) => {
      state.ended ??= wasSubscribed
    },
    flush: () => {}
  }, { from: undefined, topics })
  for (const topic of topics) subscriber.subscribe(topic)
  return state
}

const account = (byte: number): string => `0x${byte.toString(16).padStart(2, "0").repeat(20)}`

/** A replica over a store and a venue, with metrics of its own. */
const replica = Effect.fnUntraced(function*(
  store: ReturnType<typeof makeStore>,
  { transport }: Effect.Success<ReturnType<typeof makeVenue>>,
  accounts: ReadonlyArray<string> = [],
  limits: Partial<Limits> = {},
  queries?: Streams.Queries
) {
  const { exchange, service, ...connection } = store.connect()
  const registry: typeof Metric.MetricRegistry.Service = new Map()
  const shared = yield* Effect.gen(function*() {
    const replicas = yield* ReplicaUse.make({ name: "the store", exchange })
    return yield* Streams.makeShared(queries, {
      addresses: [Redacted.make("venue")],
      limits,
      replicas,
      events: { accounts }
    })
  }).pipe(
    Effect.provideService(Metric.MetricRegistry, registry),
    Effect.provideService(SocketTransport, transport),
    Effect.provideService(EventStore.EventStore, service)
  )
  const gauge = (name: string) =>
    Effect.map(
      Effect.provideService(Metric.snapshot, Metric.MetricRegistry, registry),
      (all) =>
        all.flatMap(({ attributes, id, state }) =>
          id === name && (attributes?.["use"] ?? "account-events") === "account-events" && "value" in state
            ? [state.value]
            : []
        ).at(-1) ?? 0
    )
  return {
    ...shared,
    connection,
    /** What readiness and the alerts read: the role, whether the store is up, and the two metrics of the alerts. */
    health: Effect.map(
      Effect.all([gauge("trigate_shared_state_degraded"), gauge("trigate_accounts_unrecorded")]),
      ([degraded, unrecorded]) => {
        const { isUp, role } = shared.events.status()
        return `${role} ${isUp ? "up" : "away"} ${String(degraded)} ${String(unrecorded)}`
      }
    )
  }
})

/** Lets time pass in steps between which the replicas and the venue work. */
const pass = Effect.fnUntraced(function*(seconds: number) {
  for (let left = seconds * 1000; left > 0; left -= 1000) yield* TestClock.adjust(Math.min(left, 1000))
})

/** Queries of missed events that wait a minute for the rate limit by default, and return nothing. */
const slowQueries = (asked: Array<unknown>, wait: Duration.Input = "60 seconds"): Streams.Queries => ({
  meta: () => Effect.never,
  outcomeMeta: () => Effect.never,
  perpDexs: () => Effect.never,
  allMids: () => Effect.never,
  spotMeta: () => Effect.never,
  relay: (call) =>
    Effect.as(
      Effect.delay(Effect.sync(() => asked.push(call.operation.name)), wait),
      UpstreamResponse.make({
        upstream: "trading-api",
        status: 200,
        contentType: "application/json",
        body: Encoding.encode("[]")
      })
    )
})

const [configured, ofFirst, ofSecond] = [account(1), account(2), account(3)]

const health = (replicas: ReadonlyArray<Effect.Success<ReturnType<typeof replica>>>) =>
  Effect.forEach(replicas, (each) => each.health)

describe("an outage of the store of account events", () => {
  for (const seconds of [0.3, 4, 30]) {
    for (const isEmpty of [true, false]) {
      const after = isEmpty ? "empty" : "with its data"
      it.effect(`of ${seconds} s, after which it is ${after}, ends no stream, and no later row is lost`, () =>
        Effect.gen(function*() {
          yield* TestClock.setTime(1_000_000)
          const store = makeStore()
          const venue = yield* makeVenue()
          const first = yield* replica(store, venue, [configured])
          const second = yield* replica(store, venue, [configured])
          const users = [configured, ofFirst, configured, ofSecond]
          const followers = [
            ...[configured, ofFirst].map((user) => follow(first, user, "a caller")),
            ...[configured, ofSecond].map((user) => follow(second, user, "another caller"))
          ]
          // longer than a caller waits for an account that is not recorded
          yield* pass(25)
          assert.deepStrictEqual(yield* health([first, second]), ["writer up 0 0", "reader up 0 0"])
          store.stop()
          yield* pass(seconds)
          if (seconds > 3) {
            const found = yield* health([first, second])
            assert.deepStrictEqual(found.map((text) => text.slice(0, 12)), ["alone away 1", "alone away 1"])
          }
          store.restart(isEmpty)
          // the last owner, which has the subscriptions, writes the log again, although it reaches the store last
          second.connection.reach()
          yield* pass(seconds > 3 ? 2 : 0.1)
          first.connection.reach()
          yield* pass(10)
          assert.deepStrictEqual(yield* health([first, second]), ["writer up 0 0", "reader up 0 0"])
          const phases = [first, second].flatMap(({ events }) => events.status().accounts.map(({ phase }) => phase))
          assert.deepStrictEqual(phases, ["live", "live", "live", "live", "live"])
          const sent = new Map<string, ReadonlyArray<number>>()
          for (let round = 0; round < 3; round++) {
            for (const user of new Set(users)) sent.set(user, [...sent.get(user) ?? [], yield* venue.send(user)])
            yield* pass(3)
          }
          for (const [index, user] of users.entries()) {
            const { beginnings, ended, received } = followers[index] ?? assert.fail("no follower")
            assert.deepStrictEqual([ended, received.fills, received.orders], [
              undefined,
              sent.get(user),
              sent.get(user)
            ])
            assert.isAbove(beginnings, 1)
          }
        }))
    }
  }

  it.effect("lets a replica that did not write the log record what its callers read, within its share of the limits", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      const store = makeStore()
      const venue = yield* makeVenue()
      const accounts = [1, 2, 3, 4, 5, 6].map(account)
      const first = yield* replica(store, venue, accounts)
      const second = yield* replica(store, venue, accounts)
      const followers = accounts.slice(3).map((user) => follow(second, user))
      yield* pass(25)
      // order updates do not name their account, so each account has a connection
      assert.strictEqual(venue.connections(), 6)
      store.stop()
      yield* pass(30)
      // of the four connections that are left, each replica takes at most two
      assert.strictEqual(venue.connections(), 8)
      assert.deepStrictEqual(followers.map(({ ended }) => ended), [undefined, undefined, true])
      const phases = second.events.status().accounts.map(({ phase }) => phase)
      assert.deepStrictEqual(phases, ["waiting", "waiting", "waiting", "live", "live", "waiting"])
      assert.deepStrictEqual(yield* health([first, second]), ["alone away 1 0", "alone away 1 4"])
      // the caller connects again
      const again = follow(second, account(6))
      assert.strictEqual(again.ended, false)
      store.restart(true)
      for (const { connection } of [first, second]) connection.reach()
      yield* pass(20)
      assert.deepStrictEqual(yield* health([first, second]), ["writer up 0 0", "reader up 0 0"])
      assert.strictEqual(venue.connections(), 6)
      followers[2] = follow(second, account(6))
      const sent: Array<ReadonlyArray<number>> = []
      for (const user of accounts.slice(3)) sent.push([yield* venue.send(user)])
      yield* pass(3)
      assert.deepStrictEqual(followers.map(({ received }) => received.orders), sent)
    }))

  it.effect("that one replica sees, because it cannot read the log, is told, and its callers lose no later row", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      const store = makeStore()
      const venue = yield* makeVenue()
      const first = yield* replica(store, venue)
      const second = yield* replica(store, venue)
      const follower = follow(second, ofSecond)
      yield* pass(5)
      second.connection.blind()
      yield* pass(10)
      const sent = [yield* venue.send(ofSecond)]
      yield* pass(10)
      const found = yield* health([first, second])
      assert.deepStrictEqual(found.map((text) => text.slice(0, 12)), ["writer up 0 ", "alone away 1"])
      // it went on alone once
      assert.deepStrictEqual([follower.received.orders, follower.beginnings], [sent, 2])
      second.connection.see()
      yield* pass(10)
      assert.deepStrictEqual(yield* health([first, second]), ["writer up 0 0", "reader up 0 0"])
      sent.push(yield* venue.send(ofSecond))
      yield* pass(3)
      assert.deepStrictEqual(follower.received.fills, sent)
    }))

  it.effect("is bridged by an own log after three seconds, also when the system clock was set back", () =>
    Effect.gen(function*() {
      const { clock, set } = yield* settableClock
      yield* TestClock.setTime(10_000_000)
      const venue = yield* makeVenue()
      const writer = yield* Effect.provideService(replica(makeStore(), venue, [configured]), Clock.Clock, clock)
      yield* pass(5)
      writer.connection.cut()
      yield* pass(2)
      set.shift = -3_600_000
      yield* pass(5)
      assert.deepStrictEqual(yield* health([writer]), ["alone away 1 0"])
    }))

  it.effect("in which another process takes the place of the owner has the accounts requested from it", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      const store = makeStore()
      const venue = yield* makeVenue()
      const scope = yield* Scope.make()
      yield* Scope.provide(replica(store, venue), scope)
      const second = yield* replica(store, venue)
      const follower = follow(second, ofSecond)
      yield* pass(5)
      store.stop()
      yield* Scope.close(scope, Exit.void)
      yield* pass(5)
      store.restart(true)
      const third = yield* replica(store, venue)
      second.connection.reach()
      yield* pass(10)
      assert.deepStrictEqual(yield* health([third, second]), ["writer up 0 0", "reader up 0 0"])
      const number = yield* venue.send(ofSecond)
      yield* pass(3)
      assert.deepStrictEqual(follower.received, { fills: [number], orders: [number] })
    }))
})

describe("the accounts that a caller has left", () => {
  it.effect("count to it while they are recorded, and end before a further one is refused", () =>
    Effect.gen(function*() {
      const venue = yield* makeVenue()
      const one = yield* replica(makeStore(), venue, [], { usersOfCaller: 2 })
      const users = () => one.events.status().accounts.map(({ user }) => user)
      const watcher = { caller: "churning", refused: () => assert.fail("refused") }
      for (let byte = 1; byte <= 8; byte++) {
        const leave = one.events.watch(account(byte), watcher)
        yield* pass(2)
        leave()
        assert.deepStrictEqual(users(), byte === 1 ? [account(1)] : [account(byte - 1), account(byte)])
      }
      one.events.watch(account(8), watcher)
      one.events.watch(account(9), watcher)
      let refusal = ""
      one.events.watch(account(10), {
        ...watcher,
        refused: (message) => {
          refusal = message
        }
      })
      assert.strictEqual(refusal, "Cannot track more than 2 total users.")
      one.events.watch(account(11), { ...watcher, caller: "other" })
      assert.deepStrictEqual(users(), [account(8), account(9), account(11)])
    }))
})

describe("an account that the owner of the log cannot record", () => {
  it.effect("ends its streams at each replica, and is recorded as soon as it can be", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      const store = makeStore()
      const venue = yield* makeVenue()
      const first = yield* replica(store, venue, [configured])
      const second = yield* replica(store, venue)
      const followers = [follow(first, configured), follow(second, configured)]
      yield* pass(5)
      venue.refuse(configured)
      yield* pass(5)
      assert.deepStrictEqual(followers.map(({ ended }) => ended), [true, true])
      assert.deepStrictEqual(yield* health([first, second]), ["writer up 0 1", "reader up 0 0"])
      yield* pass(60)
      assert.deepStrictEqual(yield* health([first, second]), ["writer up 0 1", "reader up 0 0"])
      venue.accept(configured)
      yield* pass(15)
      assert.deepStrictEqual(yield* health([first, second]), ["writer up 0 0", "reader up 0 0"])
      const later = [follow(first, configured), follow(second, configured)]
      const number = yield* venue.send(configured)
      yield* pass(3)
      assert.deepStrictEqual(later.map(({ received }) => received.fills), [[number], [number]])
    }))

  it.effect("is recorded again within 15 seconds, also when the system clock was set back", () =>
    Effect.gen(function*() {
      const { clock, set } = yield* settableClock
      yield* TestClock.setTime(10_000_000)
      const venue = yield* makeVenue()
      const writer = yield* Effect.provideService(replica(makeStore(), venue, [configured]), Clock.Clock, clock)
      yield* pass(5)
      venue.refuse(configured)
      yield* pass(20)
      assert.deepStrictEqual(yield* health([writer]), ["writer up 0 1"])
      set.shift = -3_600_000
      venue.accept(configured)
      yield* pass(15)
      assert.deepStrictEqual(yield* health([writer]), ["writer up 0 0"])
    }))

  it.effect("begins a log in which no row is missing, although an older log of the account ended before", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      const store = makeStore()
      const venue = yield* makeVenue(3)
      const first = yield* replica(store, venue, [configured])
      const second = yield* replica(store, venue)
      yield* pass(5)
      const sent: Array<number> = []
      for (let count = 0; count < 3; count++) sent.push(yield* venue.send(configured))
      yield* pass(5)
      venue.refuse(configured)
      yield* pass(5)
      for (let count = 0; count < 5; count++) sent.push(yield* venue.send(configured))
      venue.accept(configured)
      yield* pass(15)
      const followers = [follow(first, configured), follow(second, configured)]
      yield* pass(5)
      for (const { received } of followers) assert.deepStrictEqual(received.fills, sent.slice(-3))
    }))

  it.effect("tells callers that rows are missing, and sends them a snapshot without a hole", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      const store = makeStore()
      const venue = yield* makeVenue(3)
      const scope = yield* Scope.make()
      yield* Scope.provide(replica(store, venue, [configured]), scope)
      const second = yield* replica(store, venue)
      const follower = follow(second, configured)
      yield* pass(5)
      const sent: Array<number> = []
      for (let count = 0; count < 3; count++) sent.push(yield* venue.send(configured))
      yield* pass(5)
      assert.deepStrictEqual(follower.received.fills, sent)
      yield* Scope.close(scope, Exit.void)
      // more than a snapshot lists, and there is no query of older rows here
      for (let count = 0; count < 5; count++) sent.push(yield* venue.send(configured))
      yield* pass(10)
      sent.push(yield* venue.send(configured))
      yield* pass(5)
      assert.deepStrictEqual(follower.received.fills, sent.slice(-4))
      const later = follow(second, configured)
      yield* pass(5)
      assert.deepStrictEqual(later.received.fills, sent.slice(-4))
    }))
})

describe("the replica that writes the log", () => {
  for (const end of ["stops", "is killed"] as const) {
    it.effect(`${end}: the next one has events of each account within ${end === "stops" ? 2 : 12} seconds, and queries no topic without events`, () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(1_000_000)
        const store = makeStore("20 millis")
        const venue = yield* makeVenue()
        const accounts = [1, 2, 3, 4, 5, 6].map(account)
        const scope = yield* Scope.make()
        const asked: Array<unknown> = []
        const first = yield* Scope.provide(replica(store, venue, accounts, {}, slowQueries([])), scope)
        const second = yield* replica(store, venue, accounts, {}, slowQueries(asked))
        const followers = accounts.map((user) => follow(second, user))
        yield* pass(25)
        for (const user of accounts) yield* venue.send(user)
        yield* pass(5)
        if (end === "is killed") first.connection.cut()
        yield* Scope.close(scope, Exit.void)
        yield* TestClock.adjust(end === "stops" ? "800 millis" : "10 seconds")
        const sent: Array<number> = []
        for (const user of accounts) sent.push(yield* venue.send(user))
        yield* TestClock.adjust("600 millis")
        yield* TestClock.adjust("600 millis")
        assert.deepStrictEqual(followers.map(({ received }) => received.fills.at(-1)), sent)
        assert.deepStrictEqual(
          followers.map(({ beginnings, ended }) => [beginnings, ended]),
          accounts.map(() => [1, undefined])
        )
        yield* pass(70)
        const last = [yield* venue.send(account(1)), yield* venue.send(account(6))]
        yield* pass(1)
        assert.deepStrictEqual([followers[0], followers[5]].map((each) => each?.received.orders.at(-1)), last)
        assert.deepStrictEqual([...new Set(asked)], ["historicalOrders"])
      }))
  }

  it.effect("stops: the next one has the orders of an account before the venue has sent what comes after them", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      const store = makeStore("20 millis")
      const venue = yield* makeVenue(Number.POSITIVE_INFINITY, "8 seconds")
      const scope = yield* Scope.make()
      yield* Scope.provide(replica(store, venue, [configured]), scope)
      const asked: Array<unknown> = []
      const second = yield* replica(store, venue, [configured], {}, slowQueries(asked, "100 millis"))
      const follower = follow(second, configured)
      yield* pass(25)
      yield* venue.send(configured)
      yield* pass(5)
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("800 millis")
      const sent = yield* venue.send(configured)
      yield* TestClock.adjust("600 millis")
      yield* TestClock.adjust("600 millis")
      assert.deepStrictEqual([asked, second.events.isRecording(configured)], [["historicalOrders"], false])
      assert.deepStrictEqual([follower.received.fills.at(-1), follower.received.orders.at(-1)], [sent, sent])
    }))
})
