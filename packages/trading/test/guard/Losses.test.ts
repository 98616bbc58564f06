/** The loss of an account since a time of day. */
import { assert, describe, it, layer } from "@effect/vitest"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import * as Guard from "@trigate/trading/guard/Guard"
import * as GuardStore from "@trigate/trading/guard/GuardStore"
import { Info } from "@trigate/trading/Info"
import * as Losses from "@trigate/trading/unstable/guard/Losses"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { act, fixPrices, govern, judge, orderOf, orders, sandbox, sign, start, trader } from "./guarded.ts"

const account = `0x${"ab".repeat(20)}`
const other = `0x${"cd".repeat(20)}`
const hour = 3_600_000

describe("the period of losses", () => {
  it("begins at a time of day in a zone, also when clocks change", () => {
    const midnight = { since: "00:00", zone: "UTC" }
    const day = Date.UTC(2026, 2, 29)
    assert.strictEqual(Losses.periodAt(midnight, day) - Losses.periodAt(midnight, day - 1), 1)
    assert.strictEqual(Losses.periodAt(midnight, day + 24 * hour - 1), Losses.periodAt(midnight, day))
    // 2026-03-29: Zurich turns from UTC+1 to UTC+2 at 01:00 UTC
    const zurich = { since: "00:30", zone: "Europe/Zurich" }
    const begins = Date.UTC(2026, 2, 28, 23, 30)
    const periods = [begins - 1, begins, begins + hour, begins + 10 * hour, begins + 23 * hour].map((at) =>
      Losses.periodAt(zurich, at) - Losses.periodAt(zurich, begins)
    )
    assert.deepStrictEqual(periods, [-1, 0, 0, 0, 1])
  })
})

describe("the ledger of an account", () => {
  const rows: ReadonlyArray<readonly [delta: Losses.Row["delta"], value: number | undefined]> = [
    [{ type: "deposit", usdc: "100.5" }, 100.5],
    [{ type: "withdraw", usdc: "50", fee: "1" }, -50],
    [{ type: "internalTransfer", usdc: "7", user: other, destination: account.toUpperCase() }, 7],
    [{ type: "internalTransfer", usdc: "7", user: account, destination: other }, -7],
    [{ type: "subAccountTransfer", usdc: "9", user: account, destination: other }, -9],
    [{ type: "send", usdcValue: "3", user: account, destination: account }, 0],
    [{ type: "spotTransfer", token: "HYPE", amount: "2", usdcValue: "60", user: other, destination: account }, 60],
    [{ type: "accountClassTransfer", usdc: "5", toPerp: true }, 0],
    [{ type: "vaultDeposit", usdc: "20" }, -20],
    [{ type: "vaultWithdraw", requestedUsd: "20", netWithdrawnUsd: "19" }, 19],
    [{ type: "cStakingTransfer", token: "HYPE", amount: "2", isDeposit: true }, -60],
    [{ type: "rewardsClaim", token: "HYPE", amount: "1" }, 30],
    [{ type: "borrowLend", token: "HYPE", operation: "withdraw", amount: "1" }, 30],
    [{ type: "liquidation", liquidatedNtlPos: "10" }, 0],
    [{ type: "newKind", usdc: "5" }, undefined]
  ]
  for (const [delta, value] of rows) {
    it(`has ${JSON.stringify(delta)} as ${value}`, () => {
      assert.strictEqual(Losses.inflow({ time: 1, delta }, account, () => 30), value)
    })
  }

  it.effect("counts from the baselines of the policies in force", () =>
    Effect.gen(function*() {
      const store = GuardStore.makeMemory()
      const [removed, kept] = [{ since: "01:00", zone: "UTC" }, { since: "02:00", zone: "UTC" }]
      const noon = Date.UTC(2026, 0, 1, 12)
      const state = { equity: 5, at: 1 }
      yield* Losses.baselines(store, account, [removed, kept], state, noon)
      const later = yield* Losses.baselines(store, account, [kept], { equity: 6, at: 2 }, noon + 60_000)
      assert.deepStrictEqual([...later ?? []], [["02:00 UTC", { period: Losses.periodAt(kept, noon), ...state }]])
    }))

  it("makes losses unknown if a row is", () => {
    const found = new Map([["00:00 UTC", { period: 1, equity: 1000, at: 10 }]])
    const deposit = (time: number) => ({ time, delta: { type: "deposit", usdc: "100" } })
    const measure = (rows: ReadonlyArray<Losses.Row>) => Losses.measure(900, found, rows, account, () => 1)
    assert.strictEqual(measure([])?.get("00:00 UTC"), 100)
    assert.strictEqual(measure([deposit(10), deposit(11)])?.get("00:00 UTC"), 200)
    assert.isUndefined(measure([{ time: 11, delta: { type: "newKind" } }]))
  })
})

const policy = { name: "desk", accounts: [trader.address], loss: { limit: 500, since: "17:55", zone: "UTC" } }

const buy = (s: string) => orders(orderOf(0, "buy", s, "66000", { tif: "Ioc" }))

const priceOfBtc = (price: number) =>
  Effect.gen(function*() {
    const { trading } = yield* SandboxState
    yield* trading.playPrices("BTC", [{ time: 0, price }])
    yield* TestClock.adjust("6 seconds")
  })

const refusedBy = (signed: object) => Effect.map(judge(signed), (violation) => violation?.rule)

layer(sandbox)("a policy with the highest loss of a day", (it) => {
  it.effect("refuses all but reduce-only orders until the time of day, whatever is deposited", () =>
    Effect.gen(function*() {
      yield* fixPrices
      yield* govern({ policies: [policy] })
      yield* TestClock.adjust("31 seconds")
      assert.isString(yield* act(trader, buy("0.2")))
      yield* TestClock.adjust("6 seconds")
      assert.isUndefined(yield* judge(yield* sign(trader, buy("0.01"))))
      // 0.2 BTC lose 600
      yield* priceOfBtc(57_000)
      const { trading } = yield* SandboxState
      yield* Effect.orDie(trading.depositUsd(trader.address, "10000"))
      yield* TestClock.adjust("6 seconds")
      const violation = yield* judge(yield* sign(trader, buy("0.01")))
      assert(violation !== undefined)
      assert.strictEqual(violation.rule, "loss")
      assert.strictEqual(violation.limit, 500)
      // the loss of the price, the spread and the fee
      assert.isAbove(violation.measured ?? 0, 600)
      assert.isBelow(violation.measured ?? 0, 640)
      const close = orders(orderOf(0, "sell", "0.01", "50000", { r: true, tif: "Ioc" }))
      assert.isUndefined(yield* judge(yield* sign(trader, close)))
      const { accounts } = yield* (yield* Guard.Guard).status
      assert.deepInclude(accounts[0]?.losses[0], { since: "17:55", zone: "UTC" })
      // 17:55 has passed
      yield* TestClock.setTime(start + 9 * 60_000)
      yield* TestClock.adjust("31 seconds")
      assert.isUndefined(yield* refusedBy(yield* sign(trader, buy("0.01"))))
    }))

  it.effect("counts on in another process that has the store, and refuses if the baseline cannot be read", () =>
    Effect.gen(function*() {
      yield* fixPrices
      const store = GuardStore.makeMemory()
      const parsed = { policies: [{ ...policy, accounts: [trader.address] }] } as const
      const guard = Effect.gen(function*() {
        return yield* Guard.make({ policies: parsed, info: yield* Info, log: yield* ActionLog, store })
      })
      yield* Effect.scoped(Effect.andThen(guard, TestClock.adjust("1 second")))
      const key = `loss ${trader.address}`
      const first = yield* store.get(key)
      assert.match(first?.text ?? "", /"17:55 UTC":\{"period":\d+,"equity":/u)
      yield* Effect.scoped(Effect.andThen(guard, TestClock.adjust("1 minute")))
      assert.deepStrictEqual(yield* store.get(key), first)
      yield* store.put(key, first?.version ?? 0, "[1]")
      yield* Effect.scoped(Effect.gen(function*() {
        const { status } = yield* guard
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual((yield* status).accounts[0]?.losses, [])
      }))
    }))
})
