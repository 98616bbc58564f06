/** What one caller can take from the others of an upstream's stream limits, beside a model of the upstream. */
import { assert, describe, it } from "@effect/vitest"
import { sample } from "@trigate/testing/Sample"
import { randomBy } from "@trigate/testing/SeededRandom"
import { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import * as Hub from "@trigate/upstream/unstable/streams/Hub"
import type { Limits } from "@trigate/upstream/unstable/streams/StreamSettings"
import type { Topic } from "@trigate/upstream/unstable/streams/Topic"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { TestClock } from "effect/testing"
import { scriptedSockets, stateTopic, wordProtocol } from "./scriptedSocket.ts"

/** Lets the fibres of the hub run, without any time passing. */
const settle = Effect.repeat(TestClock.adjust(0), { times: 20 })

const findUser = (key: string): string | undefined => /^fills-(?<user>\w+)/u.exec(key)?.groups?.["user"]

/** A topic of the model: `fills-alice` has a user, `book:3` and `book:4` share a route. */
const makeTopic = (key: string): Topic => {
  const user = findUser(key)
  return stateTopic(key, { route: key.split(":")[0] ?? key, ...(user === undefined ? {} : { user }) })
}

const setup = Effect.fnUntraced(function*(limits: Partial<Limits>, familiar: ReadonlySet<string> = new Set()) {
  const sockets = scriptedSockets()
  const hub = yield* Effect.provideService(
    Hub.make({ addresses: () => [Redacted.make("a")], protocol: wordProtocol, limits, familiar }),
    SocketTransport,
    sockets.transport
  )
  /** What the upstream has on each connection. */
  const there = new Map<object, Set<string>>()
  const read = new Map<object, number>()
  let messages = 0

  /** Answers what was sent since the last time, and checks the limits of the upstream. */
  const answer = (): boolean => {
    let hasAnswered = false
    for (const connection of sockets.connections) {
      const keys = there.get(connection) ?? new Set<string>()
      there.set(connection, keys)
      if (!connection.isOpen) {
        keys.clear()
        continue
      }
      for (const text of connection.sent.slice(read.get(connection) ?? 0)) {
        messages++
        hasAnswered = true
        const key = text.slice(1)
        const route = makeTopic(key).route
        if (text.startsWith("+")) {
          keys.add(key)
          connection.push(`ok ${route}`, `${route}=1`)
        } else if (text.startsWith("-")) {
          keys.delete(key)
          connection.push(`over ${route}`)
        }
      }
      read.set(connection, connection.sent.length)
    }
    const all = Array.from(there.values(), (keys) => [...keys]).flat()
    const users = new Set(all.flatMap((key) => findUser(key) ?? []))
    assert.isAtMost(all.length, limits.subscriptions ?? Number.POSITIVE_INFINITY)
    assert.isAtMost(users.size, limits.users ?? Number.POSITIVE_INFINITY)
    assert.isAtMost(sockets.open().length, limits.connections ?? Number.POSITIVE_INFINITY)
    return hasAnswered
  }

  /** Lets the hub and the upstream talk until both are silent. */
  const talk = Effect.gen(function*() {
    do yield* settle
    while (answer())
  })

  const join = (name: string) => {
    const live = new Set<string>()
    const refusals: Array<string> = []
    const subscriber = hub.join(name, {
      subscribed: ({ key }) => void live.add(key),
      deliver: () => {},
      refused: ({ key }, message) => {
        live.delete(key)
        refusals.push(`${key}: ${message}`)
      },
      flush: () => {}
    })
    return {
      name,
      live,
      refusals,
      subscribe: (...keys: ReadonlyArray<string>) => {
        for (const key of keys) if (!subscriber.has(makeTopic(key))) subscriber.subscribe(makeTopic(key))
      },
      unsubscribe: (...keys: ReadonlyArray<string>) => {
        for (const key of keys) {
          subscriber.unsubscribe(makeTopic(key))
          live.delete(key)
        }
      }
    }
  }

  return { hub, sockets, join, talk, messages: () => messages }
})

const range = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index)

describe("a caller", () => {
  it.effect("whose variants of one subscription take all connections makes place for another one", () =>
    Effect.gen(function*() {
      const { join, talk } = yield* setup({ connections: 10 })
      const greedy = join("greedy")
      const modest = join("modest")
      greedy.subscribe(...range(10).map((variant) => `book:${variant}`))
      yield* talk
      assert.strictEqual(greedy.live.size, 10)
      modest.subscribe("book:10")
      yield* talk
      assert.deepStrictEqual([...modest.live], ["book:10"])
      assert.deepStrictEqual(greedy.refusals, ["book:9: at most 10 connections"])
      // it has more than its share, so it takes nothing back
      greedy.subscribe("book:11")
      yield* talk
      assert.deepStrictEqual([...modest.live], ["book:10"])
      assert.strictEqual(greedy.refusals.at(-1), "book:11: at most 10 connections")
    }))

  it.effect("owns the users whom it has left, until the upstream has released them", () =>
    Effect.gen(function*() {
      const { hub, join, talk } = yield* setup({ users: 10, usersOfCaller: 3 })
      const churning = join("churning")
      for (const user of range(30)) {
        churning.subscribe(`fills-u${user}`)
        yield* talk
        assert.deepStrictEqual([...churning.live], [`fills-u${user}`])
        churning.unsubscribe(`fills-u${user}`)
        assert.isAtMost(hub.status().users, 3)
      }
      assert.deepStrictEqual(churning.refusals, [])
    }))

  it.effect("is refused a user beyond its own limit also where another caller has the subscription", () =>
    Effect.gen(function*() {
      const { join, talk } = yield* setup({ users: 10, usersOfCaller: 1 })
      const one = join("one")
      const two = join("two")
      one.subscribe("fills-a")
      two.subscribe("fills-b")
      yield* talk
      two.subscribe("fills-a")
      yield* talk
      assert.deepStrictEqual(two.refusals, ["fills-a: at most 1 users"])
    }))

  it.effect("gets the place of a user without callers, and none of a familiar one", () =>
    Effect.gen(function*() {
      const { join, talk } = yield* setup({ users: 3, usersOfCaller: 3 }, new Set(["known"]))
      const one = join("one")
      const two = join("two")
      one.subscribe("fills-known", "fills-a", "fills-b")
      yield* talk
      one.unsubscribe("fills-a")
      two.subscribe("fills-c")
      yield* talk
      assert.deepStrictEqual([...two.live], ["fills-c"])
      assert.deepStrictEqual([...one.live], ["fills-known", "fills-b"])
      join("three").subscribe("fills-d")
      yield* talk
      assert.deepStrictEqual([...one.live], ["fills-known"])
    }))

  it.effect("that churns leaves messages for the subscriptions of others, and for a connection that returns", () =>
    Effect.gen(function*() {
      const { join, messages, sockets, talk } = yield* setup({ messages: 200 })
      const churning = join("churning")
      const modest = join("modest")
      modest.subscribe("steady")
      yield* talk
      for (const round of range(40)) {
        const keys = range(10).map((index) => `x${round}-${index}`)
        churning.subscribe(...keys)
        yield* talk
        churning.unsubscribe(...keys)
        yield* TestClock.adjust("1 second")
      }
      yield* talk
      assert.isAtMost(messages(), 180)
      modest.subscribe("other")
      yield* talk
      assert.deepStrictEqual([...modest.live], ["steady", "other"])
      modest.live.clear()
      sockets.connections[0]?.close()
      yield* TestClock.adjust("1 second")
      yield* talk
      assert.isTrue(sockets.open()[0]?.sent.includes("+steady"))
    }))

  it.effect("that opens connections leaves some for those that return", () =>
    Effect.gen(function*() {
      const { join, sockets, talk } = yield* setup({ connections: 10, newConnections: 30 })
      const modest = join("modest")
      modest.subscribe("book:0")
      yield* talk
      const churning = join("churning")
      for (const round of range(40)) {
        churning.subscribe(`book:${1 + round}`)
        yield* talk
        churning.unsubscribe(`book:${1 + round}`)
        yield* TestClock.adjust("1 second")
      }
      assert.isAtMost(sockets.connections.length, 20)
      for (const connection of sockets.open()) connection.close()
      yield* TestClock.adjust("2 seconds")
      yield* talk
      assert.isTrue(sockets.open().some(({ sent }) => sent.includes("+book:0")))
    }))
})

describe("random callers", () => {
  for (const seed of sample("callers who share limits", range(40), 8, String)) {
    it.effect(`have their shares as soon as the upstream has answered (seed ${seed})`, () =>
      Effect.gen(function*() {
        const random = randomBy(seed)
        const limits = {
          subscriptions: 12,
          users: 6,
          usersOfCaller: 6,
          connections: 4,
          newConnections: 3000,
          messages: 90_000
        }
        const { join, talk } = yield* setup(limits)
        const callers = range(2 + random(3)).map((index) =>
          Object.assign(join(`c${index}`), { wanted: new Set<string>() })
        )
        for (let step = 0; step < 60; step++) {
          for (const _ of range(1 + random(6))) {
            const { name, subscribe, unsubscribe, wanted } = callers[random(callers.length)] ?? assert.fail()
            const kinds = [`x${random(20)}-${name}`, `fills-${name}u${random(8)}`, `book:${random(9)}-${name}`]
            const key = kinds[random(3)] ?? assert.fail()
            if (wanted.delete(key)) unsubscribe(key)
            else {
              wanted.add(key)
              subscribe(key)
            }
          }
          // a caller whose subscription was refused or ended tries again
          for (const { subscribe, wanted } of callers) subscribe(...wanted)
          yield* talk
          if (random(4) === 0) yield* TestClock.adjust("6 seconds")
          yield* talk
          const active = callers.filter(({ wanted }) => wanted.size > 0)
          for (const { live, name, wanted } of active) {
            const share = (limit: number) => Math.floor(limit / active.length)
            const hasSubscriptions = live.size >= share(limits.subscriptions)
            const isGranted = (prefix: string, limit: number) => {
              const [asked, given] = [wanted, live].map((keys) =>
                [...keys].filter((key) => key.startsWith(prefix)).length
              )
              return (given ?? 0) >= Math.min(asked ?? 0, limit) || hasSubscriptions
            }
            const where = `seed ${seed}, step ${step}, ${name}: ${[...live].join(" ")} of ${[...wanted].join(" ")}`
            assert.isTrue(isGranted("book", share(limits.connections)), where)
            assert.isTrue(isGranted("fills", share(limits.users)), where)
            assert.isTrue(isGranted("x", Number.POSITIVE_INFINITY), where)
          }
        }
      }))
  }
})
