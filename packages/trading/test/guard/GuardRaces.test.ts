/**
 * Random bots of one account race behind random policies, at fixed prices: the venue's state never exceeds a limit, and
 * when everything has settled, an order within the limits passes. A failure prints the seed of its run.
 */
import { assert, describe, it } from "@effect/vitest"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import { sampleRuns } from "@trigate/testing/Sample"
import { randomBy } from "@trigate/testing/SeededRandom"
import { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import { Info } from "@trigate/trading/Info"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { act, agent, fixPrices, govern, orderOf, orders, sandbox, trader } from "./guarded.ts"

const mids = { BTC: 60_000, ETH: 3000 } as const
const coins = ["BTC", "ETH"] as const
type Coin = (typeof coins)[number]
const isCoin = (coin: string): coin is Coin => coin in mids

/** What the venue says of the account: per coin, the notional of its orders by side, and its position. */
const measure = Effect.gen(function*() {
  const { clearinghouseState, frontendOpenOrders } = yield* Info
  const user = trader.address
  const { assetPositions } = yield* clearinghouseState({ user })
  const sums = { BTC: { position: 0, buys: 0, sells: 0 }, ETH: { position: 0, buys: 0, sells: 0 } }
  for (const { position: { coin, szi } } of assetPositions) {
    if (isCoin(coin)) sums[coin].position = Number(szi) * mids[coin]
  }
  for (const { coin, limitPx, reduceOnly, side, sz, triggerPx } of yield* frontendOpenOrders({ user })) {
    if (!isCoin(coin) || reduceOnly) continue
    sums[coin][side === "B" ? "buys" : "sells"] += Number(sz) * Math.max(Number(limitPx), Number(triggerPx), mids[coin])
  }
  const worst = coins.map((coin) => {
    const { buys, position, sells } = sums[coin]
    return Math.max(Math.max(position, 0) + buys, Math.max(-position, 0) + sells)
  })
  return {
    open: coins.reduce((sum, coin) => sum + sums[coin].buys + sums[coin].sells, 0),
    position: Math.max(...worst),
    total: worst.reduce((sum, each) => sum + each, 0),
    worst
  }
})

describe("Guard", () => {
  for (let seed = 1; seed <= sampleRuns(24); seed++) {
    it.effect(`bots that race, seed ${seed}`, () =>
      Effect.gen(function*() {
        const below = randomBy(seed)
        const limits = {
          openNotional: 2000 + below(20_000),
          positionNotional: 2000 + below(15_000),
          totalNotional: 3000 + below(25_000)
        }
        yield* fixPrices
        yield* govern({ policies: [{ name: "desk", accounts: [trader.address], coins, ...limits }] })
        const { faults } = yield* SandboxState
        const size = (asset: number) =>
          ((200 + below(4000)) / (asset === 0 ? 60_000 : 3000)).toFixed(asset === 0 ? 5 : 4)
        const order = () => {
          const asset = below(2)
          const isBuy = below(2) === 0
          const mid = asset === 0 ? 60_000 : 3000
          // a third crosses the book, the rest rests
          const away = below(3) === 0 ? 1.01 : 0.9 + below(80) / 1000
          const price = String(Math.round(isBuy ? mid * away : mid / away))
          const t = below(6) === 0 ? { trigger: { isMarket: true, triggerPx: price, tpsl: "sl" } } : undefined
          return orderOf(asset, isBuy ? "buy" : "sell", size(asset), price, {
            r: below(6) === 0,
            tif: below(3) === 0 ? "Ioc" : "Gtc",
            // by which a lost reply is settled
            c: `0x${(++sentOrders).toString(16).padStart(32, "0")}`,
            ...(t === undefined ? {} : { t })
          })
        }
        const step = () => {
          const kind = below(10)
          if (kind === 0) return { type: "cancel", cancels: [0, 1].map((a) => ({ a, o: 1 + below(40) })) }
          if (kind === 1) return { type: "modify", oid: 1 + below(40), order: order() }
          return orders(...Array.from({ length: 1 + below(3) }, order))
        }
        let sentOrders = 0
        let passed = 0
        let refused = 0
        for (let round = 0; round < 25; round++) {
          yield* faults.set({ lostReplies: below(4) === 0 ? 0.5 : 0, lostRequests: below(6) === 0 ? 0.5 : 0 })
          const bots = Array.from({ length: 1 + below(5) }, () => [below(2) === 0 ? trader : agent, step()] as const)
          const sent = yield* Effect.forEach(bots, ([key, action]) => act(key, action), { concurrency: "unbounded" })
          for (const answer of sent) {
            if (typeof answer !== "string" && answer._tag === "PolicyViolation") refused++
            else passed++
          }
          const { open, position, total } = yield* measure
          assert.isAtMost(open, limits.openNotional * (1 + 1e-9), `open orders after round ${round}`)
          assert.isAtMost(position, limits.positionNotional * (1 + 1e-9), `a position after round ${round}`)
          assert.isAtMost(total, limits.totalNotional * (1 + 1e-9), `all positions after round ${round}`)
          yield* TestClock.adjust(below(3) === 0 ? 5000 : below(1500))
        }
        assert.isAbove(passed, 10)
        assert.isAbove(refused, 3)
        // all outcomes are settled, and all reservations end
        yield* faults.set({ lostReplies: 0, lostRequests: 0 })
        yield* TestClock.adjust("5 minutes")
        // an operator removes the replaced orders whose replies were lost: the venue cannot be asked for their outcomes
        const log = yield* ActionLog
        yield* Effect.forEach(yield* log.unanswered, ({ fingerprint }) => log.forget(fingerprint))
        const { open, total, worst: [btc = 0] } = yield* measure
        const free = Math.min(
          limits.openNotional - open,
          limits.totalNotional - total,
          limits.positionNotional - btc
        )
        if (free > 300) {
          const fits = orders(orderOf(0, "buy", (Math.floor((free / 60_000) * 1e5) / 1e5).toFixed(5), "54000"))
          let answer = yield* act(trader, fits)
          if (typeof answer !== "string" && answer._tag === "PolicyViolation") {
            assert.strictEqual(answer.retryAfter, 3)
            yield* TestClock.adjust("3 seconds")
            answer = yield* act(trader, fits)
          }
          assert.include(String(answer), "\"resting\"", `${free} is free`)
        }
      }).pipe(Effect.provide(sandbox)))
  }
})
