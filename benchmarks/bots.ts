/** A hundred bots that poll bars for ten minutes of a simulated clock: what that weighs at the venue, and what a query takes here. */
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { run as poll } from "../packages/trading/test/pollingBots.ts"
import { plan } from "./harness/plan.ts"
import { grouped, percentile } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const coins = { full: 50, quick: 10, smoke: 1 }[plan.name]
const minutes = { full: 10, quick: 10, smoke: 1 }[plan.name]
const bots = { bots: 100, coins, intervals: ["1m", "5m", "15m"], cycle: 20, minutes, bars: 300 } as const
const fresh = "15 seconds"

await run("bots", async () => {
  const polled = poll({ ...bots, fresh }, () => performance.now())
  const { queries, requests, times, weight, weightWithout, wrong } = await Effect.runPromise(
    Effect.provide(polled, TestClock.layer())
  )
  if (wrong > 0) throw new Error(`${wrong} answers are not those of the venue`)
  const share = weight / weightWithout * 100
  const sorted = Float64Array.from(times).toSorted()
  const who = `${bots.bots} bots, ${coins} coins, ${bots.intervals.length} intervals, ${minutes} minutes`
  const micros = (part: number) => percentile(sorted, part) * 1000
  return {
    rows: [
      {
        title: "bots: weight at the venue with the gateway between",
        beside: `${who}: ${grouped(weight)} instead of ${grouped(weightWithout)}`,
        unit: "%",
        value: share,
        values: [share],
        aim: "< 2",
        met: share < 2
      },
      {
        title: "bots: requests to the venue",
        beside: `for ${grouped(queries)} queries; the bar that is forming may be ${fresh} old`,
        unit: "requests",
        value: requests,
        values: [requests]
      },
      {
        title: "bots: time of a query, 99 of 100",
        beside: `${bots.bars} bars, without sockets; half of them take ${grouped(micros(0.5))} µs`,
        unit: "µs",
        value: micros(0.99),
        values: [micros(0.99)]
      }
    ]
  }
})
