/** A gateway in this process over the fake venue, both on clocks that only the test moves. */
import { realTime } from "@trigate/testing/AdvancingClock"
import type { Environment } from "@trigate/testing/Gateway"
import { gateway } from "@trigate/testing/Gateway"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { type FakeVenue, fakeVenue } from "./fakeVenue.ts"
import { openSocket } from "./socket.ts"
import type { Command, Condition } from "./venue/control.ts"

/** The venue of a file. */
export class Venue extends Context.Service<Venue, FakeVenue>()("test/streams/lab/Venue") {}

export const layer = Layer.effect(Venue, fakeVenue())

export const alice = `0x${"aa".repeat(20)}`
export const bob = `0x${"bb".repeat(20)}`

/** The key of a subscription: its JSON with defaults filled in. */
export const keys = {
  trades: (coin: string) => `{"type":"trades","coin":"${coin}"}`,
  book: (coin: string, fast = false) =>
    `{"type":"l2Book","coin":"${coin}","nSigFigs":null,"mantissa":null,"fast":${fast}}`,
  orderUpdates: (user: string) => `{"type":"orderUpdates","user":"${user}"}`,
  userEvents: (user: string) => `{"type":"userEvents","user":"${user}"}`,
  userFills: (user: string) => `{"type":"userFills","user":"${user}","aggregateByTime":false}`
}

/** 2026-09-24, when the venue's clock begins. */
export const epoch = 1_790_232_236_546

type Messages = ReadonlyArray<Command | Condition>

/** A venue as new, and a gateway over it. */
export const lab = Effect.fnUntraced(function*(environment: Environment = {}, ...before: Messages) {
  const venue = yield* Venue
  const now = Math.max(epoch, yield* Clock.currentTimeMillis)
  yield* TestClock.setTime(now)
  const run = (...messages: Messages) => Effect.promise(() => venue.run(...messages))
  yield* run({ do: "reset" }, { do: "set-clock", millis: now }, ...before)
  const scope = yield* Scope.make()
  // its end waits for open sockets, and for the store that replicas share
  const stop = Effect.provideService(meanwhileStored(Scope.close(scope, Exit.void)), Venue, venue)
  yield* Effect.addFinalizer(() => stop)
  const running = yield* Scope.provide(gateway({ TRIGATE_TRADING_API_URL: venue.url, ...environment }), scope)
  const state = Effect.promise(() => venue.state())
  /** Lets time pass at the gateway and at the venue, in steps of some seconds between which both send and read. */
  const pass = Effect.fnUntraced(function*(seconds: number, step = 1) {
    for (let left = seconds; left > 0; left -= step) {
      yield* TestClock.adjust(1000 * step)
      yield* run({ do: "advance", millis: 1000 * step })
      yield* state
    }
  })
  return {
    ...running,
    /** Stops the gateway, as the end of the test does. */
    stop,
    venue,
    run,
    state,
    pass,
    open: (path = "/ws", headers: Readonly<Record<string, string>> = {}) =>
      openSocket(`${running.url}${path}`, headers),
    ledger: Effect.promise(() => venue.ledger())
  }
})

/** The steps of a wait. What a step waits for beside the clock, such as a connection to a database, may take many of them. */
const mostSteps = 2400

/** The length of a step in milliseconds. A wait that is not short is for a pause of the gateway, which may take a minute. */
const stepLength = (step: number) => step < 40 ? 50 : 500

const waiting = Effect.fnUntraced(
  function*<A, E, R>(
    effect: Effect.Effect<A, E, R>,
    length: (step: number) => number,
    most: number,
    between: Effect.Effect<void> = Effect.void
  ) {
    const venue = yield* Venue
    const state = Effect.promise(() => venue.state())
    const over = new AbortController()
    const ticking = Effect.gen(function*() {
      for (let step = 0; !over.signal.aborted; step++) {
        if (step > most) return yield* Effect.die(new Error(`nothing came of it: ${JSON.stringify(yield* state)}`))
        yield* Effect.promise(() => venue.run({ do: "advance", millis: length(step) }))
        yield* between
        yield* TestClock.adjust(length(step))
      }
    })
    const [result] = yield* Effect.all([
      Effect.ensuring(effect, Effect.sync(() => over.abort())),
      ticking
    ], { concurrency: 2 })
    return result
  }
)

/**
 * Returns what an effect ends with while time passes, with a request to the venue after each step: for a wait that ends after a
 * pause of the gateway, such as that before it connects again. It dies after {@link mostSteps}.
 */
export const meanwhile = <A, E, R>(effect: Effect.Effect<A, E, R>) => waiting(effect, stepLength, mostSteps)

/**
 * The same for gateways over a store, whose replies have to come before their deadlines: in short steps, and with a clock that is at
 * most five times as fast as the real one.
 */
export const meanwhileStored = <A, E, R>(effect: Effect.Effect<A, E, R>, most = mostSteps) =>
  waiting(effect, () => 50, most, realTime(10))
