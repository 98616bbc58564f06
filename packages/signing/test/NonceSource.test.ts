import { assert, describe, it } from "@effect/vitest"
import { NonceAhead, NonceSource } from "@trigate/signing/NonceSource"
import * as Nonces from "@trigate/signing/NonceSource"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"

const now = 1_795_230_000_000
const hour = 3_600_000
const signer = "0x14791697260e4c9a71f18484c9f997b308e59325"
const other = "0x0000000000000000000000000000000000000001"

const next = (address: `0x${string}` = signer) => NonceSource.use((source) => source.next(address))

describe("NonceSource in memory", () => {
  it.effect("gives the time of the clock, or one more than the last", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      assert.deepStrictEqual([yield* next(), yield* next(), yield* next()], [now, now + 1, now + 2])
      yield* TestClock.setTime(now + 2)
      assert.strictEqual(yield* next(), now + 3)
      yield* TestClock.setTime(now + 10)
      assert.strictEqual(yield* next(), now + 10)
    }).pipe(Effect.provide(Nonces.layerMemory())))

  it.effect("goes on from the last one when the clock is set back", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      yield* next()
      yield* TestClock.setTime(now - 1000)
      assert.strictEqual(yield* next(), now + 1)
    }).pipe(Effect.provide(Nonces.layerMemory())))

  it.effect("counts for each signer, whatever the letter case of its address", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      assert.deepStrictEqual(
        [yield* next(), yield* next(other), yield* next(`0x${signer.slice(2).toUpperCase()}`)],
        [now, now, now + 1]
      )
    }).pipe(Effect.provide(Nonces.layerMemory())))

  it.effect("stops at the bound, says how long to wait, and uses nothing up", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      assert.deepStrictEqual([yield* next(), yield* next(), yield* next()], [now, now + 1, now + 2])
      for (const _ of [1, 2]) {
        const error = yield* Effect.flip(next())
        assert.deepStrictEqual(error, new NonceAhead({ signer, nonce: now + 3, now, wait: 1 }))
      }
      assert.strictEqual(yield* next(other), now)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* next(), now + 3)
    }).pipe(Effect.provide(Nonces.layerMemory({ ahead: 2 }))))

  it.effect("the bound is one hour unless given", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now + hour + 5)
      yield* next()
      yield* TestClock.setTime(now)
      const error = yield* Effect.flip(next())
      assert.deepStrictEqual(error, new NonceAhead({ signer, nonce: now + hour + 6, now, wait: 6 }))
      yield* TestClock.setTime(now + 6)
      assert.strictEqual(yield* next(), now + hour + 6)
    }).pipe(Effect.provide(Nonces.layerMemory())))

  it.effect("1000 concurrent fibres never get the same one", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const one = Effect.andThen(Effect.yieldNow, next())
      const taken = yield* Effect.all(Array.from({ length: 1000 }, () => one), { concurrency: "unbounded" })
      assert.deepStrictEqual(taken.toSorted((a, b) => a - b), Array.from({ length: 1000 }, (_, index) => now + index))
    }).pipe(Effect.provide(Nonces.layerMemory())))

  it.effect.prop(
    "strictly increases and stays within the bound, however the clock moves",
    [Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: -50, maximum: 50 })))],
    ([steps]) =>
      Effect.gen(function*() {
        let time = now
        let last = 0
        for (const step of steps) {
          time += step
          yield* TestClock.setTime(time)
          const nonce = yield* next().pipe(Effect.catchTag("NonceAhead", (error) => {
            assert.strictEqual(error.nonce - error.wait, time + 20)
            return Effect.void
          }))
          if (nonce === undefined) continue
          assert.isAbove(nonce, last)
          assert.isAtMost(nonce, time + 20)
          assert.isAtLeast(nonce, time)
          last = nonce
        }
      }).pipe(Effect.provide(Nonces.layerMemory({ ahead: 20 })))
  )

  it.effect("remembers signers for as long as their nonces count, however many come", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      yield* next()
      yield* TestClock.setTime(now - 1)
      const addressOf = (index: number) => `0x${index.toString(16).padStart(40, "0")}` as const
      for (let index = 0; index < 3000; index++) yield* next(addressOf(index))
      assert.strictEqual(yield* next(), now + 1)
      assert.strictEqual(yield* next(addressOf(7)), now)
      yield* TestClock.setTime(now + 3 * 24 * hour)
      for (let index = 3000; index < 10_000; index++) yield* next(addressOf(index))
      yield* TestClock.setTime(now)
      assert.strictEqual(yield* next(), now)
    }).pipe(Effect.provide(Nonces.layerMemory())))
})
