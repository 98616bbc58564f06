import { assert, describe, it } from "@effect/vitest"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { day, now, sending, settled, suite } from "./actionLogSuite.ts"

describe("the action log in memory", () => {
  suite((options) => Effect.succeed(ActionLogMemory.layer(options)))

  it.effect("forgets thousands one by one, in the order of their answers, with all their names", () =>
    Effect.gen(function*() {
      const count = 3_000
      const text = (index: number) => `action ${index}`
      const trace = (index: number) => ({
        legs: [{ cloid: `0x${(index % 2).toString().padStart(32, "0")}`, isBuy: true, price: "1", size: "1" } as const]
      })
      for (let index = 0; index < count; index++) {
        yield* settled("accepted", { text: text(index), nonce: now + index, trace: trace(index) })
      }
      const log = yield* ActionLog.ActionLog
      const remembered = Effect.forEach(
        Array.from({ length: count }, (_, index) => index),
        (index) => Effect.map(log.find({ id: sending({ text: text(index) }).fingerprint }), ({ length }) => length)
      )
      // the next claim drops what is over the capacity
      const expected = Array.from({ length: count }, (_, index) => index < count - 6 ? 0 : 1)
      assert.deepStrictEqual(yield* remembered, expected)
      const named = yield* log.find({ cloid: `0x${"0".repeat(32)}` })
      assert.deepStrictEqual(named.map(({ nonce }) => nonce - now), [count - 6, count - 4, count - 2])
    }).pipe(Effect.provide(ActionLogMemory.layer({ settledCapacity: 5 }))))

  it.effect("reports an action of unknown outcome that expired", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
      yield* TestClock.setTime(now)
      yield* Effect.gen(function*() {
        yield* settled("unknown")
        yield* TestClock.adjust(2 * day)
        yield* settled("released", { nonce: now + 2 * day })
      }).pipe(Effect.provide(Layer.merge(ActionLogMemory.layer(), logger)))
      assert.deepStrictEqual(lines, [
        "1 actions of unknown outcome expired from the action log: their nonces are too old to execute"
      ])
    }))

  it.effect("claims in one synchronous step", () =>
    Effect.gen(function*() {
      const log = yield* ActionLogMemory.make()
      const claim = () => Effect.runSyncExit(log.claim(sending()))
      assert.isTrue(Exit.isSuccess(claim()))
      const again = claim()
      assert(Exit.isFailure(again))
      assert.strictEqual(Option.getOrUndefined(Cause.findErrorOption(again.cause))?._tag, "NonceAlreadyUsed")
    }))
})
