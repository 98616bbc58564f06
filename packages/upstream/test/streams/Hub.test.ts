import { assert, describe, it } from "@effect/vitest"
import { makeMonotonicTime } from "@trigate/domain/encoding/Encoding"
import { settableClock } from "@trigate/testing/AdvancingClock"
import * as ReplicaUse from "@trigate/upstream/streams/ReplicaUse"
import { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import * as SharedState from "@trigate/upstream/unstable/SharedState"
import * as Hub from "@trigate/upstream/unstable/streams/Hub"
import type { Limits } from "@trigate/upstream/unstable/streams/StreamSettings"
import type { Row, Topic } from "@trigate/upstream/unstable/streams/Topic"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { TestClock } from "effect/testing"
import { rowTopic, scriptedSockets, stateTopic, wordProtocol } from "./scriptedSocket.ts"

/** A caller who writes down what happens. */
const caller = (hub: Hub.Hub, name: string) => {
  const seen: Array<string> = []
  const subscriber = hub.join(name, {
    subscribed: ({ key }) => void seen.push(`subscribed ${key}`),
    deliver: ({ text }) => void seen.push(text),
    refused: ({ key }, message, wasSubscribed) =>
      void seen.push(`${wasSubscribed ? "ended" : "refused"} ${key}: ${message}`),
    flush: () => {}
  })
  return { subscriber, seen }
}

/** A topic whose rows are decoded to other rows. */
const changedRows = (topic: Topic, change: (row: Row) => Row): Topic => ({
  ...topic,
  ...(topic.rows === undefined ? {} : {
    rows: {
      ...topic.rows,
      read: (text) => {
        const read = topic.rows?.read(text)
        return read && { ...read, rows: read.rows.map(change) }
      }
    }
  })
})

/** Lets the fibres of the hub run, without any time passing. */
const settle = Effect.repeat(TestClock.adjust(0), { times: 20 })

const setup = Effect.fnUntraced(function*(
  limits: Partial<Limits> = {},
  addresses: ReadonlyArray<string> = ["a"],
  familiar: ReadonlySet<string> = new Set(),
  replicas: ReplicaUse.ReplicaUse["Service"] = { exchange: () => Effect.succeed(ReplicaUse.alone) }
) {
  const sockets = scriptedSockets()
  const hub = yield* Effect.provideService(
    Hub.make({
      addresses: () => addresses.map((each) => Redacted.make(each)),
      protocol: wordProtocol,
      limits,
      familiar,
      replicas
    }),
    SocketTransport,
    sockets.transport
  )
  return { hub, sockets, at: (place: number) => sockets.connections[place] ?? assert.fail(`no connection ${place}`) }
})

describe("sharing", () => {
  it.effect("connects with the first subscription, and asks the upstream once for all callers", () =>
    Effect.gen(function*() {
      const { at, hub, sockets } = yield* setup()
      const one = caller(hub, "one")
      const two = caller(hub, "two")
      yield* settle
      assert.strictEqual(sockets.connections.length, 0)
      one.subscriber.subscribe(stateTopic("btc"))
      two.subscriber.subscribe(stateTopic("btc"))
      yield* settle
      assert.deepStrictEqual(at(0).sent, ["+btc"])
      at(0).push("ok btc", "btc=1")
      yield* settle
      assert.deepStrictEqual(one.seen, ["subscribed btc", "btc=1"])
      assert.deepStrictEqual(two.seen, one.seen)
    }))

  it.effect("takes the first frame for the acknowledgement where that comes later", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      one.subscriber.subscribe(stateTopic("btc"))
      yield* settle
      at(0).push("btc=1", "ok btc")
      yield* settle
      assert.deepStrictEqual(one.seen, ["subscribed btc", "btc=1"])
    }))

  it.effect("gives a late joiner the last state, the rows of a snapshot and the last events", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const topics = [stateTopic("state"), rowTopic("fills", "snapshot", 3), rowTopic("trades", "events", 2)]
      const one = caller(hub, "one")
      for (const topic of topics) one.subscriber.subscribe(topic)
      yield* settle
      at(0).push("ok state", "ok fills", "ok trades", "state=1", "state=2", "fills=*1,2", "fills=3,4", "trades=1,2,3")
      yield* settle
      const late = caller(hub, "late")
      for (const topic of topics) late.subscriber.subscribe(topic)
      assert.deepStrictEqual(late.seen, [
        "subscribed state",
        "state=2",
        "subscribed fills",
        "fills=*2,3,4",
        "subscribed trades",
        "trades=2,3"
      ])
    }))

  it.effect("keeps a subscription for the grace period, and ends it with the last caller's", () =>
    Effect.gen(function*() {
      const { at, hub, sockets } = yield* setup({ grace: Duration.seconds(10) })
      const one = caller(hub, "one")
      one.subscriber.subscribe(stateTopic("btc"))
      yield* settle
      at(0).push("ok btc", "btc=1")
      yield* settle
      assert.isTrue(one.subscriber.unsubscribe(stateTopic("btc")))
      yield* TestClock.adjust("9 seconds")
      assert.deepStrictEqual(at(0).sent, ["+btc"])
      const two = caller(hub, "two")
      two.subscriber.subscribe(stateTopic("btc"))
      assert.deepStrictEqual(two.seen, ["subscribed btc", "btc=1"])
      two.subscriber.leave()
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(at(0).sent.filter((text) => text !== "ping"), ["+btc", "-btc"])
      assert.strictEqual(sockets.open().length, 1)
      at(0).push("over btc")
      yield* settle
      assert.strictEqual(sockets.open().length, 0)
    }))

  it.effect("puts topics whose frames look alike on different connections, and never mixes them", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      const two = caller(hub, "two")
      one.subscriber.subscribe(stateTopic("orders of a", { route: "orders", user: "a" }))
      two.subscriber.subscribe(stateTopic("orders of b", { route: "orders", user: "b" }))
      yield* settle
      assert.deepStrictEqual([at(0).sent, at(1).sent], [["+orders of a"], ["+orders of b"]])
      at(0).push("orders=1")
      at(1).push("orders=2")
      yield* settle
      assert.deepStrictEqual(one.seen, ["subscribed orders of a", "orders=1"])
      assert.deepStrictEqual(two.seen, ["subscribed orders of b", "orders=2"])
    }))

  it.effect("leaves the route of an ended topic alone until the upstream has confirmed the end", () =>
    Effect.gen(function*() {
      const { at, hub, sockets } = yield* setup({ grace: Duration.zero })
      const one = caller(hub, "one")
      one.subscriber.subscribe(stateTopic("orders-a", { route: "orders", user: "a" }))
      yield* settle
      at(0).push("ok orders")
      yield* settle
      one.subscriber.leave()
      yield* TestClock.adjust("1 second")
      const two = caller(hub, "two")
      two.subscriber.subscribe(stateTopic("orders-b", { route: "orders", user: "b" }))
      yield* settle
      // a late frame of the first user
      at(0).push("orders=of a")
      yield* settle
      assert.strictEqual(sockets.connections.length, 2)
      assert.deepStrictEqual(at(1).sent, ["+orders-b"])
      assert.deepStrictEqual(two.seen, [])
    }))

  it.effect("forwards frames of an unknown channel, unless the connection carries a user", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      one.subscriber.subscribe(stateTopic("btc"))
      yield* settle
      at(0).push("ok btc", "new channel")
      yield* settle
      assert.deepStrictEqual(one.seen, ["subscribed btc", "new channel"])
      caller(hub, "two").subscriber.subscribe(stateTopic("fills", { user: "a" }))
      yield* settle
      at(0).push("new other")
      yield* settle
      assert.strictEqual(one.seen.length, 2)
      assert.strictEqual(hub.counts.unknown, 2)
    }))
})

describe("limits", () => {
  it.effect("refuse what goes beyond them, the caller concerned alone, and send nothing", () =>
    Effect.gen(function*() {
      const { at, hub, sockets } = yield* setup({ subscriptions: 2, users: 2, usersOfCaller: 1, connections: 1 })
      const one = caller(hub, "one")
      const two = caller(hub, "two")
      one.subscriber.subscribe(stateTopic("fills-a", { user: "a" }))
      one.subscriber.subscribe(stateTopic("fills-b", { user: "b" }))
      two.subscriber.subscribe(stateTopic("other-a", { user: "a", route: "fills-a" }))
      two.subscriber.subscribe(stateTopic("x"))
      two.subscriber.subscribe(stateTopic("y"))
      yield* settle
      assert.deepStrictEqual(at(0).sent, ["+fills-a", "+x"])
      assert.strictEqual(sockets.connections.length, 1)
      assert.deepStrictEqual(one.seen, ["refused fills-b: at most 1 users"])
      assert.deepStrictEqual(two.seen, [
        "refused other-a: at most 1 connections",
        "refused y: at most 2 subscriptions"
      ])
    }))

  it.effect("are lowered to what the upstream says, and only the subscription that it refused ends", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup({ users: 10 })
      const one = caller(hub, "one")
      for (const user of ["a", "b"]) one.subscriber.subscribe(stateTopic(`fills-${user}`, { user }))
      yield* settle
      at(0).push("ok fills-a", "full users 1")
      yield* settle
      assert.deepStrictEqual(one.seen, ["subscribed fills-a", "refused fills-b: full users 1"])
      caller(hub, "two").subscriber.subscribe(stateTopic("fills-c", { user: "c" }))
      yield* settle
      assert.deepStrictEqual(at(0).sent, ["+fills-a", "+fills-b"])
    }))

  it.effect("of messages delay what goes beyond them for a minute", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup({ messages: 3 })
      const one = caller(hub, "one")
      for (const key of ["a", "b", "c", "d"]) one.subscriber.subscribe(stateTopic(key))
      yield* settle
      assert.deepStrictEqual(at(0).sent, ["+a", "+b", "+c"])
      at(0).push("ok a", "ok b", "ok c")
      for (let second = 0; second < 58; second++) {
        at(0).push("a=1")
        yield* TestClock.adjust("1 second")
      }
      assert.deepStrictEqual(at(0).sent, ["+a", "+b", "+c"])
      at(0).push("a=1")
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(at(0).sent, ["+a", "+b", "+c", "+d"])
    }))

  it.effect("leave the last tenth to callers who have less than their share", () =>
    Effect.gen(function*() {
      const { hub } = yield* setup({ subscriptions: 20 })
      const modest = caller(hub, "modest")
      const greedy = caller(hub, "greedy")
      modest.subscriber.subscribe(stateTopic("m0"))
      for (let place = 0; place < 18; place++) greedy.subscriber.subscribe(stateTopic(`g${place}`))
      assert.deepStrictEqual(greedy.seen, ["refused g17: at most 20 subscriptions"])
      for (const key of ["m1", "m2"]) modest.subscriber.subscribe(stateTopic(key))
      assert.deepStrictEqual(modest.seen, [])
      assert.strictEqual(greedy.seen.length, 1)
    }))
})

describe("limits that replicas share", () => {
  it.effect("of a minute are divided by the replicas", () =>
    Effect.gen(function*() {
      const others: ReplicaUse.OtherUse = { ...ReplicaUse.alone, replicas: 2 }
      const { at, hub } = yield* setup({ messages: 9 }, ["a"], new Set(), { exchange: () => Effect.succeed(others) })
      yield* TestClock.adjust("1 second")
      for (const key of ["a", "b", "c", "d"]) caller(hub, key).subscriber.subscribe(stateTopic(key))
      yield* settle
      assert.deepStrictEqual(at(0).sent, ["+a", "+b", "+c"])
    }))

  it.effect("leave each replica an equal share of what was free, while their store is unreachable", () =>
    Effect.gen(function*() {
      let others: ReplicaUse.OtherUse = {
        connections: 3,
        subscriptions: 10,
        users: ["a", "b"],
        replicas: 2,
        isCurrent: true
      }
      const { hub, sockets } = yield* setup(
        { connections: 10, subscriptions: 100, users: 10, usersOfCaller: 9 },
        ["a"],
        new Set(),
        {
          exchange: () => Effect.succeed(others)
        }
      )
      const one = caller(hub, "one")
      // one route, so that each topic needs a connection
      const open = (key: string, user?: string) =>
        one.subscriber.subscribe(stateTopic(key, { route: "same", ...(user === undefined ? {} : { user }) }))
      open("1", "c")
      yield* settle
      others = { ...others, isCurrent: false }
      yield* TestClock.adjust("1 second")
      // of the six free connections, two for each replica
      for (const key of ["2", "3", "4"]) open(key)
      assert.deepStrictEqual(one.seen, ["refused 4: at most 10 connections"])
      // users of the other replicas are no further ones; of the seven free places, two for each replica
      const ask = (user: string) =>
        one.subscriber.subscribe(stateTopic(`fills-${user}`, { route: `fills-${user}`, user }))
      for (const user of ["a", "d", "e", "f"]) ask(user)
      assert.deepStrictEqual(one.seen.slice(1), ["refused fills-f: at most 10 users"])
      others = { ...others, isCurrent: true }
      yield* TestClock.adjust("1 second")
      open("4")
      ask("f")
      yield* settle
      assert.deepStrictEqual(one.seen.slice(2), [])
      assert.strictEqual(sockets.open().length, 4)
    }))

  it.effect("are those that were last known until each replica can have reported to a store that lost its data", () =>
    Effect.gen(function*() {
      let reports: ReadonlyArray<string> | undefined = [`{"connections":4,"subscriptions":9,"users":["a"]}`]
      const { exchange } = yield* ReplicaUse.make({
        name: "a store",
        exchange: () =>
          reports === undefined
            ? Effect.fail(new SharedState.SharedStoreUnreachable({ detail: "gone" }))
            : Effect.succeed(reports)
      })
      const known = { connections: 4, subscriptions: 9, users: ["a"], replicas: 1 }
      const ask = Effect.andThen(TestClock.adjust("1 second"), Effect.suspend(() => exchange(ReplicaUse.none)))
      assert.deepStrictEqual(yield* ask, { ...known, isCurrent: true })
      reports = undefined
      assert.deepStrictEqual(yield* ask, { ...known, isCurrent: false })
      reports = []
      for (let second = 1; second < 5; second++) assert.deepStrictEqual(yield* ask, { ...known, isCurrent: false })
      assert.deepStrictEqual(yield* ask, ReplicaUse.alone)
    }))
})

describe("a system clock that is set", () => {
  for (const hours of [-1, 2]) {
    it.effect(`by ${hours} hours neither delays nor ends a stream`, () =>
      Effect.gen(function*() {
        const { clock, set } = yield* settableClock
        const { at, hub, sockets } = yield* Effect.provideService(
          setup({ messages: 3, grace: Duration.seconds(10) }),
          Clock.Clock,
          clock
        )
        const one = caller(hub, "one")
        one.subscriber.subscribe(stateTopic("a"))
        one.subscriber.subscribe(stateTopic("b"))
        yield* settle
        at(0).push("ok a", "ok b", "a=1")
        yield* settle
        one.subscriber.unsubscribe(stateTopic("b"))
        set.shift = hours * 3_600_000
        yield* TestClock.adjust("9 seconds")
        assert.deepStrictEqual(at(0).sent, ["+a", "+b"])
        yield* TestClock.adjust("2 seconds")
        assert.deepStrictEqual(at(0).sent, ["+a", "+b", "-b"])
        // a connection is lost once the upstream has been silent for 28 seconds
        assert.strictEqual(sockets.connections.length, 1)
        one.subscriber.subscribe(stateTopic("c"))
        for (let second = 0; second < 49; second++) {
          at(0).push("a=1")
          yield* TestClock.adjust("1 second")
        }
        // the fourth message of a minute
        assert.deepStrictEqual(at(0).sent, ["+a", "+b", "-b"])
        yield* TestClock.adjust("2 seconds")
        assert.deepStrictEqual(at(0).sent, ["+a", "+b", "-b", "+c"])
        at(0).close()
        yield* TestClock.adjust("62 seconds")
        assert.isTrue(at(1).sent.includes("+a"))
      }))
  }
})

describe("places for users", () => {
  it.effect("are left free for familiar users who have none yet, three at most, and for nobody else", () =>
    Effect.gen(function*() {
      const familiar = new Set<string>()
      const { hub } = yield* setup({ users: 4, usersOfCaller: 10 }, ["a"], familiar)
      const one = caller(hub, "one")
      const ask = (user: string) => one.subscriber.subscribe(stateTopic(user, { user }))
      ask("a")
      ask("b")
      familiar.add("known").add("b")
      ask("c")
      ask("d")
      ask("known")
      ask("e")
      assert.deepStrictEqual(one.seen, ["refused d: at most 4 users", "refused e: at most 4 users"])
    }))
})

describe("a lost connection", () => {
  it.effect("ends a subscription that the upstream then refuses, and tells its caller that it was one", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      one.subscriber.subscribe(stateTopic("a"))
      yield* settle
      at(0).push("ok a")
      yield* settle
      at(0).close(1000)
      yield* TestClock.adjust("2 seconds")
      one.subscriber.subscribe(stateTopic("b"))
      yield* settle
      at(1).push("no a", "no b")
      yield* settle
      assert.deepStrictEqual(one.seen, ["subscribed a", "ended a: no a", "refused b: no b"])
    }))

  it.effect("is refilled by rank, one after another, and a row of a refill that comes later is dropped", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      const asked: Array<string> = []
      const refill = (name: string, rank: number) => ({
        rank,
        load: () => Effect.as(Effect.delay(Effect.sync(() => asked.push(name)), "1 second"), { texts: [`${name}=6,7`] })
      })
      for (const [name, rank] of [["first", 5], ["late", 9], ["early", 1]] as const) {
        one.subscriber.subscribe(rowTopic(name, "events", 0, { refill: refill(name, rank) }))
      }
      yield* settle
      at(0).push("ok first", "ok late", "ok early")
      yield* TestClock.adjust("3 seconds")
      at(0).close()
      yield* TestClock.adjust("1 second")
      at(1).push("ok first", "ok late", "ok early")
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(asked, ["first", "early", "late"])
      at(1).push("early=7,8", "late=9")
      yield* settle
      assert.deepStrictEqual(one.seen.slice(3), ["first=!6,7", "early=!6,7", "late=!6,7", "early=8", "late=9"])
    }))

  it.effect("again and again is blamed on a subscription that names something, and on no other one", () =>
    Effect.gen(function*() {
      const { hub, sockets } = yield* setup({ newConnections: 100 })
      const one = caller(hub, "one")
      const two = caller(hub, "two")
      one.subscriber.subscribe(stateTopic("orders", { isHarmless: true }))
      for (let lost = 0; lost < 8; lost++) {
        yield* TestClock.adjust("11 seconds")
        if (lost === 1) two.subscriber.subscribe(stateTopic("coin"))
        yield* settle
        const last = sockets.connections.at(-1) ?? assert.fail("no connection")
        last.push("ok orders", "ok coin")
        yield* settle
        last.close()
      }
      assert.deepStrictEqual(one.seen, ["subscribed orders"])
      assert.deepStrictEqual(two.seen, ["subscribed coin", "refused coin: invalid coin"])
    }))

  it.effect("twice in turn is not blamed on a silent subscription that was accepted before", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      one.subscriber.subscribe(stateTopic("coin"))
      yield* settle
      at(0).push("ok coin")
      yield* settle
      at(0).close()
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(at(1).sent, ["+coin"])
      at(1).close()
      yield* TestClock.adjust("1 second")
      at(2).push("ok coin", "coin=1")
      yield* settle
      assert.deepStrictEqual(one.seen, ["subscribed coin", "coin=1"])
    }))

  it.effect("is counted where nothing can find what it missed", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      caller(hub, "one").subscriber.subscribe(rowTopic("notes", "events", 0))
      yield* settle
      at(0).push("ok notes")
      yield* TestClock.adjust("3 seconds")
      at(0).close()
      yield* TestClock.adjust("1 second")
      at(1).push("ok notes")
      yield* settle
      assert.deepStrictEqual([...hub.counts.gaps], [["events", 1]])
    }))

  it.effect("is opened again, with its subscriptions, and callers see one stream without duplicates", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      one.subscriber.subscribe(stateTopic("book"))
      one.subscriber.subscribe(rowTopic("fills", "snapshot", 100))
      one.subscriber.subscribe(rowTopic("trades", "events", 30))
      yield* settle
      at(0).push("ok book", "ok fills", "ok trades", "book=1", "fills=*1,2", "trades=1,2,3")
      yield* TestClock.adjust("3 seconds")
      at(0).close()
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(at(1).sent, ["+book", "+fills", "+trades"])
      at(1).push("ok book", "ok fills", "ok trades", "book=2", "fills=*1,2,3", "trades=2,3,4,5", "trades=6")
      yield* settle
      assert.deepStrictEqual(one.seen, [
        "subscribed book",
        "subscribed fills",
        "subscribed trades",
        "book=1",
        "fills=*1,2",
        "trades=1,2,3",
        "book=2",
        "fills=3",
        "trades=4,5",
        "trades=6"
      ])
      assert.deepStrictEqual([...hub.counts.gaps], [])
    }))

  it.effect("repeats no row of a snapshot with more rows than are compared", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      one.subscriber.subscribe(rowTopic("fills", "snapshot", 100))
      yield* settle
      const rows = (count: number) => Array.from({ length: count }, (_, index) => index + 1).join(",")
      at(0).push("ok fills", `fills=*${rows(600)}`)
      for (const row of [601, 602]) {
        yield* TestClock.adjust("3 seconds")
        assert.isDefined(hub.heardAt("fills"))
        at(row - 601).close()
        yield* TestClock.adjust("2 seconds")
        at(row - 600).push("ok fills")
        yield* settle
        // the rows that were missed come with the snapshot
        assert.strictEqual(hub.heardAt("fills"), undefined)
        at(row - 600).push(`fills=*${rows(row)}`)
        yield* settle
      }
      assert.deepStrictEqual(one.seen, ["subscribed fills", `fills=*${rows(600)}`, "fills=601", "fills=602"])
      assert.deepStrictEqual([...hub.counts.gaps], [])
    }))

  it.effect("loses no row that has the time of the oldest rows, which are no longer compared", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      one.subscriber.subscribe(changedRows(rowTopic("fills", "snapshot", 100), (row) => ({ ...row, time: 1000 })))
      yield* settle
      const rows = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => index + from).join(",")
      at(0).push("ok fills", `fills=*${rows(0, 600)}`)
      yield* TestClock.adjust("3 seconds")
      at(0).close()
      yield* TestClock.adjust("2 seconds")
      at(1).push("ok fills", `fills=*${rows(10, 603)}`)
      yield* settle
      assert.deepStrictEqual(one.seen.slice(2), ["fills=600,601,602"])
    }))

  it.effect("delivers and counts a row that has only the ID of another row", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      one.subscriber.subscribe(changedRows(rowTopic("fills", "snapshot", 100), (row) => ({ ...row, id: "7" })))
      yield* settle
      at(0).push("ok fills", "fills=*1", "fills=2,3")
      yield* TestClock.adjust("3 seconds")
      at(0).close()
      yield* TestClock.adjust("2 seconds")
      at(1).push("ok fills", "fills=*1,2,3,4", "fills=4", "fills=5")
      yield* settle
      assert.deepStrictEqual(one.seen.slice(1), ["fills=*1", "fills=2,3", "fills=4", "fills=5"])
      assert.deepStrictEqual([...hub.counts.collisions], [["snapshot", 4]])
    }))

  it.effect("counts a hole where nothing overlaps", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      one.subscriber.subscribe(rowTopic("trades", "events", 30))
      yield* settle
      at(0).push("ok trades", "trades=1,2")
      yield* TestClock.adjust("3 seconds")
      at(0).close()
      yield* TestClock.adjust("1 second")
      at(1).push("ok trades", "trades=8,9")
      yield* settle
      assert.deepStrictEqual(one.seen.slice(1), ["trades=1,2", "trades=8,9"])
      assert.deepStrictEqual([...hub.counts.gaps], [["events", 1]])
    }))

  it.effect("is refilled by a query, before the frames that came meanwhile", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      const asked: Array<number> = []
      const refill = {
        rank: 0,
        load: ({ since }: { readonly since: number }) =>
          Effect.as(Effect.delay(Effect.sync(() => asked.push(since)), "2 seconds"), { texts: ["orders=6,7,8"] })
      }
      one.subscriber.subscribe(rowTopic("orders", "events", 0, { refill }))
      yield* settle
      at(0).push("ok orders", "orders=6")
      yield* TestClock.adjust("3 seconds")
      at(0).close()
      yield* TestClock.adjust("1 second")
      at(1).push("ok orders", "orders=8,9")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(one.seen, ["subscribed orders", "orders=6"])
      // what the connection has received says nothing about the topic, as long as its missed rows are being queried
      assert.strictEqual(hub.heardAt("orders"), undefined)
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(one.seen, ["subscribed orders", "orders=6", "orders=!7,8", "orders=9"])
      assert.strictEqual(hub.heardAt("orders"), makeMonotonicTime(4000))
      assert.deepStrictEqual(asked, [1000])
      assert.deepStrictEqual([...hub.counts.refilled], [["events", 2]])
    }))

  it.effect("is refilled without a duplicate by more rows than a late joiner receives, however many came meanwhile", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      const missed = Array.from({ length: 1200 }, (_, index) => index + 7)
      const refill = {
        rank: 0,
        load: () => Effect.delay(Effect.succeed({ texts: [`orders=${missed.join(",")}`] }), "10 seconds")
      }
      one.subscriber.subscribe(rowTopic("orders", "events", 0, { refill }))
      yield* settle
      at(0).push("ok orders", "orders=6")
      yield* TestClock.adjust("3 seconds")
      at(0).close()
      yield* TestClock.adjust("1 second")
      at(1).push("ok orders", ...missed.slice(100).map((row) => `orders=${row}`))
      yield* TestClock.adjust("11 seconds")
      at(1).push("orders=1207")
      yield* settle
      assert.deepStrictEqual(one.seen.slice(1), ["orders=6", `orders=!${missed.join(",")}`, "orders=1207"])
    }))

  it.effect("is refilled, and a later row that has the id of a refilled one is delivered", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      one.subscriber.subscribe(
        rowTopic("orders", "events", 0, { refill: { rank: 0, load: () => Effect.succeed({ texts: ["orders=7"] }) } })
      )
      yield* settle
      at(0).push("ok orders", "orders=6")
      yield* TestClock.adjust("3 seconds")
      at(0).close()
      yield* TestClock.adjust("1 second")
      at(1).push("ok orders")
      yield* settle
      at(1).push("orders=8", "orders=7")
      yield* settle
      assert.deepStrictEqual(one.seen.slice(1), ["orders=6", "orders=!7", "orders=8", "orders=7"])
    }))

  it.effect("fails over to the next address", () =>
    Effect.gen(function*() {
      const { at, hub, sockets } = yield* setup({}, ["a", "b"])
      sockets.unreachable.add("a")
      caller(hub, "one").subscriber.subscribe(stateTopic("x"))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(at(0).address, "b")
    }))

  it.effect("waits longer each time while no address can be reached, and not more than the allowed connections", () =>
    Effect.gen(function*() {
      const { hub, sockets } = yield* setup({}, ["a"])
      sockets.unreachable.add("a")
      caller(hub, "one").subscriber.subscribe(stateTopic("x"))
      yield* TestClock.adjust("1 minute")
      sockets.unreachable.clear()
      yield* TestClock.adjust("11 seconds")
      assert.strictEqual(sockets.connections.length, 1)
    }))
})

describe("supervision", () => {
  it.effect("pings a quiet connection, and opens another one where no answer comes", () =>
    Effect.gen(function*() {
      const { at, hub, sockets } = yield* setup()
      caller(hub, "one").subscriber.subscribe(stateTopic("x"))
      yield* settle
      at(0).push("ok x")
      yield* TestClock.adjust("21 seconds")
      assert.deepStrictEqual(at(0).sent, ["+x", "ping"])
      at(0).push("pong")
      yield* TestClock.adjust("22 seconds")
      assert.deepStrictEqual(at(0).sent, ["+x", "ping", "ping"])
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(sockets.connections.length, 2)
      assert.deepStrictEqual(at(1).sent, ["+x"])
      assert.deepStrictEqual([...hub.counts.reconnects], [["silent", 1]])
    }))

  it.effect("subscribes again to a steady topic that has become silent", () =>
    Effect.gen(function*() {
      const { at, hub } = yield* setup()
      const one = caller(hub, "one")
      one.subscriber.subscribe(stateTopic("mids", { isSteady: true }))
      one.subscriber.subscribe(stateTopic("other"))
      yield* settle
      at(0).push("ok mids", "ok other")
      for (let frame = 0; frame < 4; frame++) {
        at(0).push(`mids=${frame}`)
        yield* TestClock.adjust("5 seconds")
      }
      for (let second = 0; second < 12; second++) {
        at(0).push("other=1")
        yield* TestClock.adjust("1 second")
      }
      assert.deepStrictEqual(at(0).sent, ["+mids", "+other", "-mids", "+mids"])
    }))

  it.effect("finds the subscription for which the upstream closes the connection, and resumes the others", () =>
    Effect.gen(function*() {
      const { at, hub, sockets } = yield* setup()
      const good = caller(hub, "good")
      const bad = caller(hub, "bad")
      good.subscriber.subscribe(stateTopic("good"))
      yield* settle
      at(0).push("ok good", "good=1")
      yield* TestClock.adjust("3 seconds")
      good.subscriber.subscribe(stateTopic("young"))
      bad.subscriber.subscribe(stateTopic("bad"))
      // the upstream closes each connection on which it finds the bad one
      for (let turn = 0; turn < 12; turn++) {
        yield* TestClock.adjust("1 second")
        const connection = sockets.connections.at(-1)
        if (connection?.sent.includes("+bad") === true) connection.close()
        else connection?.push(...connection.sent.map((text) => text.replace("+", "ok ")), "good=2", "young=1")
      }
      assert.deepStrictEqual(bad.seen, ["refused bad: invalid bad"])
      assert.include(good.seen, "subscribed young")
      assert.deepStrictEqual(sockets.connections.at(-1)?.sent.includes("+bad"), false)
    }))
})
