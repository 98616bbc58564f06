/** The checks of watched accounts: what is asked of the venue, counted, and logged once. */
import { assert, describe, it } from "@effect/vitest"
import * as AccountChecks from "@trigate/trading/unstable/accounts/AccountChecks"
import { metrics } from "@trigate/trading/unstable/accounts/AccountChecks"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as TestClock from "effect/testing/TestClock"

const [alice, bob] = [`0x${"aa".repeat(20)}`, `0x${"bb".repeat(20)}`]
const agent = `0x${"cc".repeat(20)}`
const start = Date.UTC(2026, 0, 5)
const hour = 3_600_000

const value = (metric: Metric.Gauge<number>) => Effect.map(Metric.value(metric), (state) => state.value)
const expiring = Effect.forEach(
  ["7 days", "1 day", "1 hour"],
  (within) => value(metrics.accountAgentsExpiring.series({ within }))
)
const failing = Effect.forEach(
  ["extraAgents", "userRateLimit"],
  (operation) => value(metrics.accountChecksFailing.series({ operation }))
)
const low = value(metrics.accountsLowOnActions.series({}))

describe("checks of watched accounts", () => {
  it.effect("count agents that expire and addresses that run low, and log each once", () => {
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ message }) => {
      lines.push(JSON.stringify(message))
    })
    return Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const asked: Array<unknown> = []
      let isOwner = true
      let fails = false
      let used = 9_100
      yield* AccountChecks.start({
        accounts: [alice, bob],
        isOwner: () => isOwner,
        quietFor: (user) => user === alice && asked.length === 0 ? 59_999 : Number.POSITIVE_INFINITY,
        query: (query) =>
          Effect.suspend(() => {
            asked.push(query)
            if (fails) return Effect.fail("no reply")
            const { type, user }: { readonly type?: string; readonly user?: string } = query
            const validUntil = start + (user === alice ? 3 * 24 * hour : 30 * 24 * hour)
            return Effect.succeed(JSON.stringify(
              type === "extraAgents"
                ? [{ name: "bot", address: agent, validUntil }]
                : { cumVlm: "0.0", nRequestsUsed: user === bob ? used : 0, nRequestsCap: 10_000, nRequestsSurplus: 0 }
            ))
          })
      })
      yield* TestClock.adjust("3 minutes")
      assert.deepStrictEqual(asked, [
        // alice is compared with the venue in the first minute
        { type: "extraAgents", user: bob },
        { type: "extraAgents", user: alice },
        { type: "userRateLimit", user: bob },
        { type: "userRateLimit", user: alice }
      ])
      assert.deepStrictEqual([yield* expiring, yield* low], [[1, 0, 0], 1])
      assert.deepStrictEqual(lines.length, 2)
      assert.include(lines[1], "An agent of an account expires within 7 days")
      assert.include(lines[0], `"left":900`)
      // two days and 23.5 hours later it ends within the hour; the money that was traded made room for actions
      used = 8_000
      yield* TestClock.adjust(71.5 * hour)
      assert.deepStrictEqual([yield* expiring, yield* low], [[1, 1, 1], 0])
      assert.deepStrictEqual(lines.slice(2).map((line) => /within [^:]+/u.exec(line)?.[0]), [
        "within 1 day",
        "within 1 hour"
      ])
      // without a reply the last counts stay; each check that fails is counted, and logged once
      assert.deepStrictEqual(yield* failing, [0, 0])
      lines.length = 0
      fails = true
      yield* TestClock.adjust("75 minutes")
      assert.deepStrictEqual(yield* failing, [2, 2])
      assert.deepStrictEqual(
        lines.map((line) => /^\["The query (?<name>\w+) about an account fails/u.exec(line)?.groups?.["name"] ?? line)
          .toSorted(),
        ["extraAgents", "extraAgents", "userRateLimit", "userRateLimit"]
      )
      fails = false
      yield* TestClock.adjust("11 minutes")
      assert.deepStrictEqual([yield* failing, lines.length], [[0, 0], 4])
      // another replica owns the log by now, and checks
      isOwner = false
      const before = asked.length
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual([yield* expiring, asked.length], [[0, 0, 0], before])
    }).pipe(Effect.provide(Logger.layer([logger])), Effect.scoped)
  })
})
