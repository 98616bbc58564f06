/** A hundred bots that poll bars for ten minutes of a simulated clock: what that weighs at the venue, and what a query takes here. */
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { run as poll } from "../packages/trading/test/pollingBots.ts"
import { poll as pollAccounts } from "./harness/accounts.ts"
import { gateway, venue } from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import { grouped, percentile } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const coins = { full: 50, quick: 10, smoke: 1 }[plan.name]
const minutes = { full: 10, quick: 10, smoke: 1 }[plan.name]
const bots = { bots: 100, coins, intervals: ["1m", "5m", "15m"], cycle: 20, minutes, bars: 300 } as const
const fresh = "15 seconds"

const accounts = {
  accounts: 20,
  every: 300,
  ...{
    full: { warmUp: 60, seconds: 120 },
    quick: { warmUp: 60, seconds: 20 },
    smoke: { warmUp: 0, seconds: 1 }
  }[plan.name]
}

/** Twenty accounts poll a gateway with the defaults over HTTP, in real time. */
const accountRows = async () => {
  const api = await venue()
  const { url } = await gateway(api, { name: "trigate", env: { TRIGATE_TRADING_API_WEIGHT: "1200" } })
  const { account, market, requests, statuses, weight } = await pollAccounts(url, api.url, accounts)
  const refused = [...statuses].reduce((sum, [status, count]) => status === 200 ? sum : sum + count, 0)
  const p99 = (list: typeof account, member: 0 | 1) =>
    percentile(Float64Array.from(list, (read) => read[member]).toSorted(), 0.99)
  const who = `20 accounts, each 6 queries every 0.3 s for ${accounts.seconds} s`
  const beside = (list: typeof account) =>
    `${grouped(list.length)} responses; 99 of 100 were written ${grouped(p99(list, 0))} ms ago at most`
  const row = (title: string, beside: string, unit: string, value: number, aim: number) => ({
    title,
    beside,
    unit,
    value,
    values: [value],
    aim: `<= ${aim}`,
    met: value <= aim
  })
  return [
    row("accounts: refused", who, "responses", refused, 0),
    row("accounts: most weight in a minute", `${grouped(requests)} requests to the venue`, "weight", weight, 1200),
    row("accounts: Age of books and prices, 99 of 100", beside(market), "s", p99(market, 1), 2),
    row("accounts: Age of their state, 99 of 100", beside(account), "s", p99(account, 1), 6)
  ]
}

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
      },
      ...await accountRows()
    ]
  }
})
