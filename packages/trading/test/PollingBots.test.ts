import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { run } from "./pollingBots.ts"

/** A hundred bots for ten minutes. The benchmark `bots` has fifty coins. */
const hundred = { bots: 100, coins: 1, intervals: ["1m", "5m", "15m"], cycle: 20, minutes: 10, bars: 300 } as const

const counts = (options: Parameters<typeof run>[0]) =>
  Effect.map(run(options, () => 0), ({ times: _, ...counted }) => counted)

describe("a hundred bots that poll three intervals of a coin for ten minutes", () => {
  it.effect("cost one short query for each interval and each time that the setting allows", () =>
    Effect.gen(function*() {
      const outcome = yield* counts({ ...hundred, fresh: "15 seconds" })
      assert.deepStrictEqual(outcome, {
        queries: 9000,
        weightWithout: 225_000,
        // each interval is asked for once whole; then its forming bar 40 times, and once more whenever it closes
        requests: 151,
        weight: 3231,
        wrong: 0
      })
      assert.isBelow(outcome.weight / outcome.weightWithout, 0.02)
    }))

  it.effect("pay for the bar that is forming alone where nothing may be old", () =>
    Effect.gen(function*() {
      const outcome = yield* counts({ ...hundred, bots: 10 })
      assert.deepStrictEqual(outcome, {
        queries: 900,
        weightWithout: 22_500,
        requests: 900,
        // 21 for each, and 25 for the first
        weight: 18_912,
        wrong: 0
      })
    }))
})
