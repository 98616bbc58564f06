import { assert, describe, it } from "@effect/vitest"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as Signer from "@trigate/signing/Signer"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import { bid } from "../src/EffectBot.ts"

const quote = { asset: 1, coin: "ETH", distance: 0.01, sizeInBase: "0.5" }

/** The bot's services over a venue in this process, on the clock of the test. */
const venue = () => Layer.merge(Sandbox.layer(), Signer.layerPrivateKey(Redacted.make(keys.trader.privateKey)))

const start = Effect.gen(function*() {
  yield* TestClock.setTime(Date.UTC(2026, 0, 1, 12))
  const state = yield* SandboxState
  yield* state.trading.playPrices("ETH", [{ time: 0, price: 2000 }, { time: 60_000, price: 2000 }, {
    time: 120_000,
    price: 1900
  }])
  return state
})

describe("an Effect bot", () => {
  it.effect("rests below the price, and is filled at its own price when the price falls", () =>
    Effect.gen(function*() {
      const { trading } = yield* start
      assert.strictEqual(yield* bid(quote), "resting")
      yield* TestClock.adjust("2 minutes")
      yield* trading.tick
      const { state } = yield* trading.snapshot
      const [fill] = state.accounts.get(keys.trader.address)?.fills ?? []
      assert.deepStrictEqual([fill?.px, fill?.sz, fill?.dir], ["1980.0", "0.5", "Open Long"])
    }).pipe(Effect.provide(venue())))

  it.effect("is told why where it is refused", () =>
    Effect.gen(function*() {
      yield* start
      assert.deepStrictEqual(yield* bid({ ...quote, sizeInBase: "0.001" }), { refused: "MinimumNotional" })
    }).pipe(Effect.provide(venue())))

  it.effect.each(
    [
      ["0.01", "resting", 1, 0],
      // above the market
      ["-0.01", "filled", 0, 1]
    ] as const
  )(
    "finds an order whose reply is lost, %s below the price: %s",
    ([distance, outcome, open, filled]) =>
      Effect.gen(function*() {
        const { faults, trading } = yield* start
        yield* faults.set({ lostReplies: 1 })
        assert.strictEqual(yield* bid({ ...quote, distance: Number(distance) }), outcome)
        const { state } = yield* trading.snapshot
        const account = state.accounts.get(keys.trader.address)
        const oids = new Set(account?.fills.map(({ oid }) => oid))
        assert.deepStrictEqual([account?.open.size, oids.size, account?.orders.size], [open, filled, 1])
      }).pipe(Effect.provide(venue()))
  )

  it.effect("says that an order never arrived only once it has expired", () =>
    Effect.gen(function*() {
      const { faults, trading } = yield* start
      yield* faults.set({ lostRequests: 1 })
      const signedAt = yield* Clock.currentTimeMillis
      const bidding = yield* Effect.forkChild(bid(quote))
      while (bidding.pollUnsafe() === undefined) yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(bidding), "neverArrived")
      assert.isAbove(yield* Clock.currentTimeMillis, signedAt + 15_000)
      const { state } = yield* trading.snapshot
      assert.strictEqual(state.accounts.get(keys.trader.address)?.orders.size, 0)
    }).pipe(Effect.provide(venue())))

  it.effect("prints a price above 100000 without an exponent", () =>
    Effect.gen(function*() {
      const { trading } = yield* start
      yield* trading.playPrices("BTC", [{ time: 0, price: 113_800 }])
      assert.strictEqual(yield* bid({ asset: 0, coin: "BTC", distance: 0.1, sizeInBase: "0.001" }), "resting")
      const { state } = yield* trading.snapshot
      const [order] = state.accounts.get(keys.trader.address)?.open.values() ?? []
      assert.strictEqual(order?.px, 102_420_0n)
    }).pipe(Effect.provide(venue())))
})
