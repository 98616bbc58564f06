import { assert, describe, it } from "@effect/vitest"
import { isExhaustive } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import { run } from "./pollingBots.ts"

/** The number of bots, and what all their queries cost. */
const { bots, ...expected } = isExhaustive
  ? { bots: 100, requests: 151, weight: 3231 }
  : { bots: 20, requests: 139, weight: 2931 }

/** Some bots for ten minutes. The benchmark `bots` has fifty coins. */
const polling = { bots, coins: 1, intervals: ["1m", "5m", "15m"], cycle: 20, minutes: 10, bars: 300 } as const

const counts = (options: Parameters<typeof run>[0]) =>
  Effect.map(run(options, () => 0), ({ times: _, ...counted }) => counted)

describe(`${bots} bots that poll three intervals of a coin for ten minutes`, () => {
  it.effect("cost one short query for each interval and each time that the setting allows", () =>
    Effect.gen(function*() {
      const outcome = yield* counts({ ...polling, fresh: "15 seconds" })
      assert.deepStrictEqual(outcome, {
        queries: 90 * bots,
        weightWithout: 2250 * bots,
        // each interval is asked for once whole; then its forming bar 40 times, and once more whenever it closes
        ...expected,
        wrong: 0
      })
    }))

  it.effect("pay for the bar that is forming alone where nothing may be old", () =>
    Effect.gen(function*() {
      const outcome = yield* counts({ ...polling, bots: 10 })
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
