/** Properties of trading over random sequences of orders, transfers, prices and time. A failure prints the seed of its run. */
import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import { findAccount } from "@trigate/sandbox/unstable/venue/TradingState"
import { sampleRuns } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { crowd, play, printable, Run, Summary, users } from "./randomTrading.ts"
import { ask, markOf, venueNow } from "./trader.ts"
import { atStart } from "./venue.ts"

describe("trading", () => {
  it.effect.prop(
    "conserves value to the last digit, fills by price and time, keeps its reservations, and ends each order once",
    { run: Run },
    ({ run }) => atStart(Effect.asVoid(play(run, 120))),
    { arbitrary: { runs: sampleRuns(20) } }
  )

  it.effect.prop(
    "fills the best price first, and at one price what came first, where many rest at few prices",
    { run: Run },
    ({ run }) =>
      Effect.gen(function*() {
        assert.isAbove(yield* atStart(crowd(run, 150)), 15)
      }),
    { arbitrary: { runs: sampleRuns(20) } }
  )

  it.effect.prop(
    "values margin by the mark price, and liquidates at the first price below the maintenance margin",
    {
      thousandths: Schema.Natural.check(Schema.isLessThan(3_000)),
      leverage: Schema.Natural.check(Schema.isBetween({ minimum: 2, maximum: 25 })),
      isLong: Schema.Boolean,
      isCross: Schema.Boolean
    },
    ({ isCross, isLong, leverage, thousandths }) =>
      atStart(Effect.gen(function*() {
        const { trading } = yield* SandboxState
        const user = users[0]
        const entry = 20_000n
        const lots = BigInt(thousandths + 6) * 10n
        // prices in tenths of a dollar; amounts in millionths of a dollar
        const valueAt = (px: bigint) => lots * px * 10n
        const deposited = (valueAt(entry) + BigInt(leverage) - 1n) / BigInt(leverage)
        const worthAt = (px: bigint) => deposited + (isLong ? 1n : -1n) * (valueAt(px) - valueAt(entry))
        const isSafe = (px: bigint) => worthAt(px) >= valueAt(px) / 50n
        const step = isLong ? -1n : 1n
        let last = entry
        while (isSafe(last + step)) last += step
        const play = (px: bigint) =>
          Effect.andThen(
            trading.playPrices("ETH", [{ time: 0, price: Number(px) / 10 }]),
            TestClock.adjust("1 second")
          )
        yield* play(entry)
        yield* trading.depositUsd(user, String(Number(deposited) / 1e6))
        yield* trading.act(user, { type: "updateLeverage", asset: 1, isCross, leverage })
        yield* trading.setPosition(user, "ETH", String((isLong ? 1 : -1) * Number(lots) / 1e4), "2000")
        const read = Effect.gen(function*() {
          const { marginSummary } = yield* Effect.map(
            ask({ type: "clearinghouseState", user }),
            Schema.decodeUnknownSync(Summary)
          )
          const { ledger } = findAccount((yield* venueNow).state, user)
          return { ...marginSummary, liquidations: ledger.filter(({ delta }) => delta.type === "liquidation").length }
        })
        const micro = (text: string) => BigInt(Math.round(Number(text) * 1e6))
        yield* play(last)
        const safe = yield* read
        assert.deepStrictEqual(
          [micro(safe.accountValue), micro(safe.totalNtlPos), micro(safe.totalMarginUsed), safe.liquidations],
          [worthAt(last), valueAt(last), isCross ? valueAt(last) / BigInt(leverage) : worthAt(last), 0]
        )
        yield* play(last + step)
        assert.strictEqual((yield* read).liquidations, 1)
      })),
    { arbitrary: { runs: sampleRuns(50) } }
  )

  it.effect("ends in the same state whether time passes at once or in seconds, with prices of the seed and played ones", () =>
    Effect.gen(function*() {
      const pass = (steps: number) =>
        atStart(Effect.gen(function*() {
          const { trading } = yield* SandboxState
          const [user] = users
          yield* trading.depositUsd(user, "5000")
          yield* trading.setVolume(user, "1000000")
          const bars = [2_000, 2_010, 1_950, 1_980, 2_040].map((price, index) => ({ time: index * 700_000, price }))
          yield* trading.playPrices("ETH", bars, 5)
          const order = (a: number, p: string, t: object, r = false) => ({ a, b: !r, p, s: "0.2", r, t })
          const tif = { limit: { tif: "Gtc" } }
          const stop = { trigger: { isMarket: true, triggerPx: "2035", tpsl: "tp" } }
          const btcPx = String(Math.round(Number(yield* markOf("BTC")) * 0.999))
          const orders = [
            order(1, "1955", tif),
            order(1, "1500", stop, true),
            order(0, btcPx, tif),
            order(1, "1800", tif)
          ]
          yield* trading.act(user, { type: "order", orders, grouping: "na" })
          const twap = { a: 1, b: true, s: "2", r: false, m: 60, t: true }
          const details = { t: { p: "1960", a: false }, s: "2035" }
          yield* trading.act(user, { type: "twapOrder", twap, details })
          yield* trading.act(user, { type: "scheduleCancel", time: (yield* Clock.currentTimeMillis) + 3_000_000 })
          for (let step = 0; step < steps; step++) {
            yield* TestClock.adjust(3_600_000 / steps)
            yield* venueNow
          }
          const { state } = yield* venueNow
          const { fills, twaps } = findAccount(state, user)
          assert.deepStrictEqual([...twaps.values()].map(({ status }) => status), [{ status: "stopped" }])
          return { text: Json.stringify(printable([...state.accounts, state.house])), fills: fills.length }
        }))
      const atOnce = yield* pass(1)
      assert.isAbove(atOnce.fills, 1)
      assert.strictEqual((yield* pass(3_600)).text, atOnce.text)
      assert.strictEqual((yield* pass(7)).text, atOnce.text)
    }))

  it.effect("takes most of what is tried, and does the same under the same seed, byte for byte", () =>
    Effect.gen(function*() {
      const { outcomes, text } = yield* atStart(play(7, 120))
      const accepted = [...outcomes.keys()].filter((key) => key.endsWith("Success"))
      assert.isAbove(accepted.length, 12, [...outcomes].join(" "))
      assert.strictEqual((yield* atStart(play(7, 120))).text, text)
    }))
})
