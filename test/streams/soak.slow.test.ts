/**
 * A gateway of its own process under faults of the venue, for `TRIGATE_SOAK_SECONDS` (60): no event is lost or doubled, and its
 * memory does not grow. Memory is compared from 10 minutes on; before that it is printed only.
 */
import { assert, describe, it } from "@effect/vitest"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { fakeVenue } from "./fakeVenue.ts"
import { assertWhole, coins, ending, kinds, type Listener, rowsOf, users } from "./interleavings.ts"
import { openSocket } from "./socket.ts"
import { randomBy } from "./venue/clock.ts"
import type { Command, Condition } from "./venue/control.ts"

const seconds = Number(process.env["TRIGATE_SOAK_SECONDS"] ?? 60)
const callersOfKind = 3
const secondsOfFault = 10
const leastSeconds = 600

const residentMiB = (pid: number | undefined): number =>
  Number(/VmRSS:\s+(?<kib>\d+)/u.exec(Fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.groups?.["kib"]) / 1024

const mean = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0) / values.length

describe("a soak", () => {
  it.live(`of ${seconds} seconds loses no event, and memory stays flat`, () =>
    Effect.gen(function*() {
      const random = randomBy(Number(process.env["TRIGATE_TEST_SEED"] ?? 1))
      const venue = yield* fakeVenue()
      const run = (...messages: ReadonlyArray<Command | Condition>) => Effect.promise(() => venue.run(...messages))
      const startedAt = Date.now()
      yield* run({ do: "reset" }, { do: "set-clock", millis: startedAt })
      const { pid, url } = yield* gatewayProcess({ TRIGATE_TRADING_API_URL: venue.url })
      const listeners: Array<Listener> = []
      for (const kind of kinds) {
        for (let caller = 0; caller < callersOfKind; caller++) {
          const socket = yield* openSocket(`${url}/ws`)
          socket.subscribe(kind.subscription)
          yield* Effect.promise(() => socket.next("subscriptionResponse"))
          listeners.push({ kind, socket, from: 0 })
        }
      }
      const memory: Array<number> = []
      let faults = 0
      let clock = startedAt
      for (let second = 1; clock < startedAt + seconds * 1000; second++) {
        yield* Effect.sleep("1 second")
        const now = Date.now()
        yield* run({ do: "advance", millis: now - clock }, { do: "step", coins, users, count: 15 })
        clock = now
        if (second % secondsOfFault === 0) {
          faults++
          const { connections } = yield* Effect.promise(() => venue.state())
          const keys = connections.flatMap((each) => each.keys)
          const key = keys[Math.floor(random() * keys.length)]
          yield* run(
            { do: "faults", set: { refuse: random() < 0.5 ? 503 : null } },
            random() < 0.5 || key === undefined ? { do: "drop" } : { do: "drop", key },
            { do: "step", coins, users, count: 3 }
          )
          yield* Effect.sleep("500 millis")
          yield* run({ do: "faults", set: {} })
          memory.push(residentMiB(pid))
        }
        if (second % 60 === 0) {
          console.log(
            `soak: ${Math.round((now - startedAt) / 1000)} s, ${faults} faults, ${memory.at(-1)?.toFixed(0)} MiB`
          )
        }
      }
      yield* Effect.forEach(kinds, ({ key }) => run({ until: "subscribed", key, count: 1 }), { discard: true })
      yield* run(...ending)
      const happened = yield* Effect.promise(() => venue.ledger())
      for (const listener of listeners) {
        yield* Effect.promise(() => assertWhole(listener, happened, listener.kind.key))
      }
      const quarter = Math.max(1, Math.floor(memory.length / 4))
      const before = mean(memory.slice(quarter, 2 * quarter))
      const after = mean(memory.slice(-quarter))
      const events = kinds.reduce((sum, { key }) => sum + rowsOf(happened, key).length, 0)
      console.log(
        `soak: ${seconds} s, ${listeners.length} callers, ${faults} faults, ${events} events, none lost or doubled; ` +
          `resident memory ${before.toFixed(1)} MiB in the second quarter, ${after.toFixed(1)} MiB in the last one`
      )
      if (seconds >= leastSeconds) assert.isBelow(after, before * 1.15)
    }), { timeout: (seconds + 120) * 1000 })
})
