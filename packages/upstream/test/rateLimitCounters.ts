/** Random operations on the counters of rate limits, with equal results in two stores. */
import { assert } from "@effect/vitest"
import * as RateLimiterShared from "@trigate/upstream/unstable/limits/RateLimiterShared"
import * as RateWindow from "@trigate/upstream/unstable/limits/RateWindow"
import type { StoreFault } from "@trigate/upstream/unstable/SharedState"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

type Operation = (counters: RateLimiterShared.Counters) => Effect.Effect<unknown, StoreFault>

// minutes long: the keys of a real Redis must not expire while an operation waits for the processor
const limits = [
  RateLimiterShared.sharedLimit("paced", RateWindow.windowBounds(300, 60_000, 60, 0.05), true),
  RateLimiterShared.sharedLimit("quota", RateWindow.windowBounds(40, 600_000, 20, 0), false)
]

/** The order of a hash in Redis is not defined. */
const sorted = <A extends object>(entries: ReadonlyArray<A>): ReadonlyArray<A> =>
  entries.toSorted((one, other) => JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)

const takenFrom = ({ level, ofCaller, slots, ...taken }: RateLimiterShared.Taken) => ({
  ...taken,
  // Redis adds refunds as decimal numbers
  level: Number(level.toFixed(9)),
  slots: sorted(slots),
  ofCaller: sorted(ofCaller)
})

const nextUnits = (most: number) => Random.nextIntBetween(0, most)

/** Returns the next operation of one of three processes, whose clocks differ. */
const nextOperation = Effect.fnUntraced(function*(
  limit: RateLimiterShared.SharedLimit,
  at: number,
  reported: ReadonlyArray<RateLimiterShared.SlotUnits>
) {
  const { bounds, ofCaller } = limit
  const process = yield* Random.choice([0, 1, 2])
  const id = `process ${process}`
  const now = at + process * bounds.width
  const slot = RateWindow.slotAt(bounds, now)
  const slotOfCaller = RateWindow.slotAt(ofCaller, now)
  const methodClass = yield* Random.choice(["read", "read", "once"] as const)
  const caller = yield* Random.choice([undefined, "key:desk", "key:a second desk", "address:127.0.0.1"])
  const kind = yield* Random.choice(
    ["take", "take", "take", "take", "take", "join", "report", "refund", "pace"] as const
  )
  const ago = yield* nextUnits(3)
  if (kind === "take") {
    const isRefresh = yield* Random.choice([true, false, false])
    const cost = yield* Random.nextIntBetween(1, yield* Random.choice([2, 20, 60]))
    const call: RateWindow.WindowCall = { class: methodClass, cost, caller, isRefresh }
    const ahead = { read: yield* Random.choice([0, 0, 20]), once: yield* Random.choice([0, 0, 3]) }
    const callers = yield* Random.nextIntBetween(1, 3)
    const since = now - (yield* Random.choice([0, 1, 10])) * bounds.width
    const taking = RateLimiterShared.makeTaking(limit, { id, now, call, callers, ahead, since })
    return ({ take }: RateLimiterShared.Counters) => Effect.map(take(taking), takenFrom)
  }
  if (kind === "join") {
    const own = yield* Effect.forEach([slot - ago - 1, slot - ago], (each) =>
      Effect.gen(function*() {
        const units = yield* nextUnits(10)
        return {
          slot: each,
          class: methodClass,
          units,
          alone: yield* nextUnits(units),
          sinceReport: yield* nextUnits(units),
          lately: yield* nextUnits(units)
        }
      }))
    const since = Math.max(0, Math.floor(now - ago * bounds.width))
    const joining = { id, now, lasts: (bounds.slots + 1) * bounds.width, since, own, all: sorted(reported) }
    return ({ join }: RateLimiterShared.Counters) => join(joining)
  }
  if (kind === "report") {
    return ({ report }: RateLimiterShared.Counters) =>
      Effect.map(report(id, now), (found) => found === undefined ? undefined : sorted(found))
  }
  const units = yield* Random.nextIntBetween(1, 30)
  if (kind === "pace") return ({ refundPace }: RateLimiterShared.Counters) => refundPace(units)
  const refunded = {
    slot: (caller === undefined ? slot : slotOfCaller) - ago,
    class: methodClass,
    caller,
    units
  }
  return ({ refund }: RateLimiterShared.Counters) => refund(refunded)
})

/** Runs 200 random operations in both stores. */
export const countEqually = Effect.fnUntraced(
  function*(real: RateLimiterShared.Driver, model: RateLimiterShared.Driver) {
    const outcomes = new Set<string>()
    for (const limit of limits) {
      const counters = [real.counters(limit), model.counters(limit)] as const
      let at = 1_000_000
      let reported: ReadonlyArray<RateLimiterShared.SlotUnits> = []
      for (let step = 0; step < 100; step++) {
        at += yield* Random.choice([
          0,
          0,
          0,
          0,
          0,
          1,
          1,
          limit.bounds.width,
          limit.bounds.width,
          20 * limit.bounds.width
        ])
        const operation: Operation = yield* nextOperation(limit, at, reported)
        const [expected, found] = [yield* operation(counters[0]), yield* operation(counters[1])]
        assert.deepStrictEqual(found, expected, `step ${step}`)
        if (Array.isArray(found)) reported = found
        if (typeof found === "object" && found !== null && "outcome" in found) outcomes.add(String(found.outcome))
      }
      assert.deepStrictEqual(yield* counters[0].report("process 0", at), yield* counters[1].report("process 0", at))
    }
    return outcomes
  }
)
