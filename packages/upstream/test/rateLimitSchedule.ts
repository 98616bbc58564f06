/** Random calls against rate limits, and how much of them starts in any window. */
import { local } from "@trigate/domain/Caller"
import type { Caller } from "@trigate/domain/Caller"
import { candleSnapshot, spotMeta } from "@trigate/domain/info/InfoOperations"
import type { Cost, MethodClass } from "@trigate/domain/operations/Operation"
import { worstCost } from "@trigate/upstream/limits/RateLimiter"
import type { PermitRequest, RateLimiter } from "@trigate/upstream/limits/RateLimiter"
import type { UpstreamLabel } from "@trigate/upstream/unstable/Upstream"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"

export const action: Cost = { weight: 1, requestUnits: 1 }
export const query = spotMeta.cost
export const candles = candleSnapshot.cost

export const ask = (
  cost: Cost,
  maxWait = 0,
  upstream: UpstreamLabel = "trading-api",
  caller: Caller = local
): PermitRequest => ({
  upstream,
  class: cost === action ? "once" : "read",
  cost,
  caller,
  maxWait
})

/** A caller without limits of its own. */
export const callerOf = (id: string): Caller => ({ id, scope: {}, quota: {} })

export interface Arrival {
  readonly at: number
  readonly class: MethodClass
  readonly cost: Cost
  readonly maxWait: number
  /** How long the call takes, and what it refunds of its worst case. */
  readonly latency: number
  readonly unused: number
  /** Milliseconds after which its caller cancels it. */
  readonly leaves: number
  readonly replica: number
  readonly caller: Caller
}

const flood = [action, action, action, query, query, candles]

/**
 * Rounds of what is hardest for a limit a minute: a pause in which the window empties, candles whose responses come late and
 * short, and a flood of calls that begins about when they come.
 */
export const arrivals = (options: {
  readonly seed: number
  readonly rounds: number
  readonly replicas: number
  /** How fast time passes: 60 turns a minute into a second. */
  readonly pace?: number
  /** All times are multiples of so many milliseconds. */
  readonly grid?: number
  /** Who calls; the program itself when not given. */
  readonly callers?: NonEmptyReadonlyArray<Caller>
}) =>
  Effect.gen(function*() {
    const { callers = [local], grid = 1, pace = 1 } = options
    const onGrid = (time: number) => Math.round(time / grid) * grid
    const all: Array<Arrival> = []
    let at = 0
    const add = Effect.fnUntraced(function*(cost: Cost, latency: number, unused: number) {
      all.push({
        at: onGrid(at / pace),
        cost,
        class: cost === action ? "once" : "read",
        maxWait: yield* Random.choice([0, 1000, 20_000, 20_000]),
        latency: onGrid(latency),
        unused,
        leaves: yield* Random.choice([500, 60_000, 60_000]),
        replica: yield* Random.nextIntBetween(0, options.replicas - 1),
        // another draw would be another schedule
        caller: callers.length === 1 ? callers[0] : yield* Random.choice(callers)
      })
    })
    for (let round = 0; round < options.rounds; round++) {
      at += yield* Random.nextIntBetween(0, 30_000)
      const latency = yield* Random.nextIntBetween(2000, 16_000)
      for (let n = 0; n < 3 * options.replicas; n++) yield* add(candles, latency, 84)
      at += latency - (yield* Random.nextIntBetween(-1000, 2000))
      const end = at + 65_000
      while (at < end) {
        const cost = yield* Random.choice(flood)
        yield* add(cost, yield* Random.choice([0, 400, 3000]), cost === candles ? yield* Random.choice([0, 0, 84]) : 0)
        at += yield* Random.nextIntBetween(0, 600)
      }
    }
    return all
  }).pipe(Random.withSeed(options.seed))

export interface Start {
  readonly at: number
  readonly used: number
  readonly replica: number
}

/** Most that starts in any window, its end excluded. */
export const most = (starts: ReadonlyArray<Start>, window: number): number =>
  Math.max(
    0,
    ...starts.map(({ at }) =>
      starts.reduce((sum, other) => other.at >= at && other.at < at + window ? sum + other.used : sum, 0)
    )
  )

/** Runs arrivals on the test clock in steps; `settle` waits for what runs outside of that clock. */
export const run = Effect.fnUntraced(function*(
  replicas: ReadonlyArray<RateLimiter["Service"]>,
  schedule: ReadonlyArray<Arrival>,
  options: {
    readonly upstream: UpstreamLabel
    readonly step: number
    readonly settle: Effect.Effect<void>
    readonly during?: (at: number) => Effect.Effect<void>
    /** How a call takes its units; `take` of its replica when not given. */
    readonly take?: (
      limiter: RateLimiter["Service"],
      asked: PermitRequest
    ) => ReturnType<RateLimiter["Service"]["take"]>
  }
) {
  const starts: Array<Start> = []
  const fibers: Array<Fiber.Fiber<void>> = []
  const call = (arrival: Arrival) =>
    Effect.gen(function*() {
      const limiter = replicas[arrival.replica]
      if (limiter === undefined) return
      const worst = worstCost(options.upstream, arrival)
      const unused = Math.min(arrival.unused, worst - 1)
      const asked = { ...arrival, upstream: options.upstream }
      const permits = yield* options.take === undefined ? limiter.take(asked) : options.take(limiter, asked)
      starts.push({ at: yield* Clock.currentTimeMillis, used: worst - unused, replica: arrival.replica })
      yield* Effect.sleep(arrival.latency)
      permits.refund(unused)
    }).pipe(Effect.timeoutOption(arrival.leaves), Effect.ignore)
  let now = yield* Clock.currentTimeMillis
  const begin = now
  const until = Effect.fnUntraced(function*(end: number) {
    while (now < end) {
      // a call that is refused at the end of its wait lets the next one ask a millisecond after a step
      for (const time of [now + 1, Math.min(end, now + options.step)]) {
        yield* TestClock.setTime(time)
        yield* options.settle
      }
      now = Math.min(end, now + options.step)
      if (options.during !== undefined) yield* options.during(now - begin)
    }
  })
  for (const arrival of schedule) {
    yield* until(begin + arrival.at)
    fibers.push(yield* Effect.forkChild(call(arrival), { startImmediately: true }))
    yield* options.settle
  }
  yield* until(now + 70_000)
  yield* Effect.forEach(fibers, Fiber.join, { discard: true })
  return starts
})
