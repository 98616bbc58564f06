/**
 * A gateway of its own process for `TRIGATE_SOAK_SECONDS` (60), while the venue drops and refuses connections, and callers reconnect,
 * resume, or do not read: no event is lost or doubled, and its memory does not grow. Memory is compared from 50 minutes on, because
 * the responses to refills fill the response cache (64 MiB) first; before that it is printed only.
 */
import { assert, describe, it } from "@effect/vitest"
import { get } from "@trigate/testing/Gateway"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { openEvents } from "./eventSource.ts"
import type { TestEvents } from "./eventSource.ts"
import { type Entry, fakeVenue } from "./fakeVenue.ts"
import {
  assertContinuous,
  assertWhole,
  coins,
  ending,
  type Kind,
  kinds,
  type Listener,
  rowsOf,
  users
} from "./interleavings.ts"
import { keys } from "./lab.ts"
import { openSocket } from "./socket.ts"
import { randomBy } from "./venue/clock.ts"
import type { Command, Condition } from "./venue/control.ts"

const seconds = Number(process.env["TRIGATE_SOAK_SECONDS"] ?? 60)
const callersOfKind = 3
const leastSeconds = 3000

/** Seconds between two faults of the venue, two resumptions of each follower, and two bursts for callers that do not read. */
const every = { fault: 10, resumption: 7, burst: 30 }

/** A user whose events have no rows, so that the gateway keeps none of them. */
const carol = `0x${"cc".repeat(20)}`
const slowCallers = 3
/** Together they fill what the system buffers for a socket, about 10 MB. */
const burst = { frames: 300, text: `{"channel":"user","data":{"pad":"${"x".repeat(60_000)}"}}` }

/** What happened before the callers came: the snapshots and responses of the venue, which the gateway keeps, are then as long as they get. */
const past: ReadonlyArray<Command> = [
  ...users.map((user) => ({ do: "fill", user, coin: "BTC", count: 2100 }) as const),
  { do: "step", coins, users, count: 3000 }
]

const collector = new URL("../../benchmarks/harness/collect.ts", import.meta.url).pathname

/** The memory that a gateway uses after a collection of its garbage, in MiB. */
const usedMiB = Effect.fnUntraced(function*(url: string, pid: number, collected: string) {
  yield* Effect.sync(() => {
    Fs.rmSync(collected, { force: true })
    process.kill(pid, "SIGUSR2")
  })
  while (!Fs.existsSync(collected)) yield* Effect.sleep("20 millis")
  const { text } = yield* get(`${url}/metrics`)
  const read = (name: string) => Number(new RegExp(`^${name} (?<bytes>\\S+)$`, "mu").exec(text)?.groups?.["bytes"])
  return (read("nodejs_heap_size_used_bytes") + read("nodejs_external_memory_bytes")) / 2 ** 20
})

const mean = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0) / values.length

/** A caller that resumes the fills of a user again and again. */
interface Follower {
  readonly user: string
  readonly streams: Array<TestEvents>
}

const subscriptionOf = (user: string) => ({ type: "userFills", user })

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

const fillsOf = (streams: ReadonlyArray<TestEvents>): ReadonlyArray<string> =>
  streams.flatMap((stream) => stream.of("userFills")).flatMap(({ data }) => list(JsonParts.at(data, "fills")))
    .map((row) => JSON.stringify(row))

/** Asserts that a follower was told to have missed nothing, and received each fill of the ledger once, from its snapshot on. */
const assertFollowed = async (
  { streams, user }: Follower,
  happened: ReadonlyArray<Entry>,
  printed: string
): Promise<number> => {
  const all = rowsOf(happened, keys.userFills(user))
  const last = all.at(-1) ?? ""
  await streams.at(-1)?.until(() => fillsOf(streams.slice(-1)).includes(last), `the last fill of ${user}`)
  const resumptions = streams.flatMap(({ events }) =>
    events.filter(({ event }) => event === "resume").map(({ text }) => JsonParts.at(JSON.parse(text), "recovered"))
  )
  const warnings = printed.split("\n").filter((line) => /event log of an account/u.test(line))
  assert.deepStrictEqual(resumptions, streams.map((_, index) => index > 0), [user, ...warnings].join("\n"))
  const places = new Map(all.map((row, place) => [row, place]))
  const seen = fillsOf(streams).toSorted((left, right) => (places.get(left) ?? -1) - (places.get(right) ?? -1))
  assert.deepStrictEqual(seen, all.slice(all.length - seen.length), user)
  return resumptions.length - 1
}

describe("a soak", () => {
  it.live(`of ${seconds} seconds loses no event, and memory stays flat`, () =>
    Effect.gen(function*() {
      const random = randomBy(Number(process.env["TRIGATE_TEST_SEED"] ?? 1))
      const venue = yield* fakeVenue()
      const run = (...messages: ReadonlyArray<Command | Condition>) => Effect.promise(() => venue.run(...messages))
      const startedAt = Date.now()
      yield* run({ do: "reset" }, { do: "set-clock", millis: startedAt }, ...past)
      const before = yield* Effect.promise(() => venue.ledger())
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "soak-"))),
        (made) => Effect.sync(() => Fs.rmSync(made, { recursive: true }))
      )
      const collected = Path.join(folder, "collected")
      const { pid = 0, printed, url } = yield* gatewayProcess({
        TRIGATE_TRADING_API_URL: venue.url,
        TRIGATE_STREAM_QUEUE_KIB: "256",
        TRIGATE_EVENT_LOG_ROWS: "1000",
        NODE_OPTIONS: `--import=${collector}`,
        COLLECTED: collected
      })
      const subscribed = Effect.fnUntraced(function*(subscription: unknown) {
        const socket = yield* openSocket(`${url}/ws`)
        socket.subscribe(subscription)
        yield* Effect.promise(() => socket.next("subscriptionResponse"))
        return socket
      })
      const join = (kind: Kind, from: number) =>
        Effect.map(subscribed(kind.subscription), (socket): Listener => ({ kind, socket, from }))
      const listeners: Array<Listener> = []
      for (const kind of kinds) {
        for (let caller = 0; caller < callersOfKind; caller++) {
          listeners.push(yield* join(kind, rowsOf(before, kind.key).length))
        }
      }
      // callers that reconnect, each second another one
      const rejoin = (kind: Kind) => join(kind, Number.POSITIVE_INFINITY)
      const restless = yield* Effect.forEach(kinds, rejoin)
      const left: Array<Listener> = []
      const reconnect = Effect.fnUntraced(function*(place: number) {
        const listener = restless[place]
        if (listener === undefined) return
        listener.socket.raw.close()
        left.push(listener)
        restless[place] = yield* rejoin(listener.kind)
      })
      const followers: ReadonlyArray<Follower> = users.map((user) => ({ user, streams: [] }))
      const resume = Effect.fnUntraced(function*({ streams, user }: Follower) {
        const before = streams.at(-1)
        before?.close()
        const stream = yield* openEvents(url, [subscriptionOf(user)], before?.lastId)
        streams.push(stream)
        if (before === undefined) {
          yield* Effect.promise(() => stream.until(() => stream.of("userFills").length > 0, "a snapshot"))
        }
      })
      yield* Effect.forEach(followers, resume)
      let closedSlow = 0
      /** Sends more than callers that do not read may have waiting: each is closed, and others take their places. */
      const overflow = Effect.gen(function*() {
        const slow = yield* Effect.forEach(
          Array.from({ length: slowCallers }),
          () => subscribed({ type: "userEvents", user: carol })
        )
        for (const { raw } of slow) raw.pause()
        for (let frame = 0; frame < burst.frames; frame++) {
          yield* run({ do: "raw", text: burst.text, key: keys.userEvents(carol) })
        }
        for (const { closed, raw } of slow) {
          raw.resume()
          // without a response to the close frame for three seconds, the connection is destroyed
          assert.include([1013, 1006], (yield* Effect.promise(() => closed)).code)
          closedSlow++
        }
      })
      const memory: Array<number> = []
      let faults = 0
      let clock = startedAt
      for (let passed = 1; clock < startedAt + seconds * 1000; passed++) {
        yield* Effect.sleep("1 second")
        const now = Date.now()
        yield* run({ do: "advance", millis: now - clock }, { do: "step", coins, users, count: 15 })
        clock = now
        yield* reconnect(passed % restless.length)
        if (passed % every.resumption === 0) yield* Effect.forEach(followers, resume)
        if (passed % every.burst === 0) yield* Effect.scoped(overflow)
        if (passed % every.fault === 0) {
          faults++
          const { connections } = yield* Effect.promise(() => venue.state())
          const held = connections.flatMap((each) => each.keys)
          const key = held[Math.floor(random() * held.length)]
          yield* run(
            { do: "faults", set: { refuse: random() < 0.5 ? 503 : null } },
            random() < 0.5 || key === undefined ? { do: "drop" } : { do: "drop", key },
            { do: "step", coins, users, count: 3 }
          )
          yield* Effect.sleep("500 millis")
          yield* run({ do: "faults", set: {} })
          memory.push(yield* usedMiB(url, pid, collected))
        }
        if (passed % 60 === 0) {
          console.log(
            `soak: ${Math.round((now - startedAt) / 1000)} s, ${faults} faults, ${memory.at(-1)?.toFixed(0)} MiB`
          )
        }
      }
      yield* Effect.forEach(kinds, ({ key }) => run({ until: "subscribed", key, count: 1 }), { discard: true })
      yield* run(...ending)
      const happened = yield* Effect.promise(() => venue.ledger())
      for (const listener of [...listeners, ...restless]) {
        yield* Effect.promise(() => assertWhole(listener, happened, listener.kind.key))
      }
      for (const listener of left) assertContinuous(listener, happened, listener.kind.key)
      let resumptions = 0
      for (const follower of followers) {
        resumptions += yield* Effect.promise(() => assertFollowed(follower, happened, printed()))
      }
      const quarter = Math.max(1, Math.floor(memory.length / 4))
      const second = mean(memory.slice(quarter, 2 * quarter))
      const last = mean(memory.slice(-quarter))
      const events = kinds.reduce((sum, { key }) => sum + rowsOf(happened, key).length - rowsOf(before, key).length, 0)
      console.log(
        `soak: ${seconds} s, ${listeners.length} steady callers, ${left.length} reconnects, ${resumptions} resumptions, ` +
          `${closedSlow} callers closed that did not read, ${faults} faults, ${events} events, none lost or doubled; ` +
          `memory after a collection ${second.toFixed(1)} MiB in the second quarter, ${
            last.toFixed(1)
          } MiB in the last one`
      )
      if (seconds >= leastSeconds) assert.isBelow(last, second * 1.1)
    }), { timeout: (seconds + 120) * 1000 * 2 })
})
