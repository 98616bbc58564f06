import { assert, it } from "@effect/vitest"
import { local } from "@trigate/domain/Caller"
import * as RateLimiterShared from "@trigate/upstream/unstable/limits/RateLimiterShared"
import * as SharedState from "@trigate/upstream/unstable/SharedState"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"

const away = new SharedState.SharedStoreUnreachable({ detail: "away" })

it.effect("writes what it used during an outage also if the first attempts to write get no response", () => {
  let store: "up" | "away" | "silent" = "up"
  const joined: Array<number> = []
  const step = <A>(value: () => A) =>
    Effect.suspend(() => store === "away" ? Effect.fail(away) : store === "silent" ? Effect.never : Effect.sync(value))
  const counters: RateLimiterShared.Driver["counters"] = () => ({
    take: () =>
      step((): RateLimiterShared.Taken => ({
        outcome: "taken",
        held: { read: 0, once: 0 },
        slots: [],
        isWithinShare: true,
        cap: { limit: 1000, readLimit: 1000 },
        ofCaller: [],
        level: 100,
        replicas: 2
      })),
    join: ({ own }) =>
      step(() => {
        joined.push(own.reduce((sum, { alone }) => sum + alone, 0))
        return true
      }),
    report: () => step(() => []),
    refund: () => step(() => undefined),
    refundPace: () => step(() => undefined)
  })
  return Effect.gen(function*() {
    const limiter = yield* RateLimiterShared.make({ "trading-api": 1000 }, { counters, time: Clock.currentTimeMillis })
    const call = limiter.take({
      upstream: "trading-api",
      class: "once",
      cost: { weight: 20, requestUnits: 1 },
      caller: local,
      maxWait: 10_000
    })
    const settled = (pause: number) =>
      Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(call)
        yield* TestClock.adjust(pause)
        yield* Fiber.join(fiber)
      })
    yield* settled(0)
    store = "away"
    yield* settled(0)
    store = "silent"
    // the store is used again a second after its failure; the units of the outage are written first, and the deadline
    // of 250 ms ends the attempt
    yield* TestClock.adjust(1000)
    yield* settled(250)
    yield* TestClock.adjust(1000)
    yield* settled(250)
    assert.deepStrictEqual(joined, [])
    store = "up"
    yield* TestClock.adjust(1000)
    yield* settled(0)
    assert.deepStrictEqual(joined, [60])
  }).pipe(Effect.scoped)
})
