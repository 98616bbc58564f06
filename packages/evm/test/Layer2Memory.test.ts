import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { InvalidRequest } from "@trigate/domain/errors/GatewayError"
import { getTransactionReceipt } from "@trigate/domain/evm/Layer2Operations"
import * as Layer2 from "@trigate/evm/Layer2"
import { flipReason } from "@trigate/testing/Reason"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { hash, otherHash, preconfirmed, receipt, wireText } from "./receipts.ts"

describe("Layer2Memory", () => {
  it.effect("knows nothing at first", () =>
    Effect.gen(function*() {
      const layer2 = yield* Layer2.Layer2
      assert.isNull(yield* layer2.getTransactionReceipt({ hash }))
    }).pipe(Effect.provide(Layer2.layerMemory())))

  it.effect("goes from pending over pre-confirmed to mined and back", () =>
    Effect.gen(function*() {
      const layer2 = yield* Layer2.Layer2
      const state = yield* Layer2.Layer2State
      yield* state.set(receipt, "pending")
      assert.isNull(yield* layer2.getTransactionReceipt({ hash }))
      yield* state.set(receipt, "preconfirmed")
      assert.deepStrictEqual(yield* layer2.getTransactionReceipt({ hash }), preconfirmed)
      yield* state.set(receipt)
      assert.deepStrictEqual(yield* layer2.getTransactionReceipt({ hash }), receipt)
      assert.deepStrictEqual(yield* state.get(hash), receipt)
      assert.isNull(yield* layer2.getTransactionReceipt({ hash: otherHash }))
      yield* state.remove(hash)
      assert.isNull(yield* layer2.getTransactionReceipt({ hash }))
    }).pipe(Effect.provide(Layer2.layerMemory())))

  it.effect("finds a hash in any letter case", () =>
    Effect.gen(function*() {
      const layer2 = yield* Layer2.Layer2
      const state = yield* Layer2.Layer2State
      yield* state.set(receipt)
      assert.deepStrictEqual(yield* layer2.getTransactionReceipt({ hash: `0x${"AB".repeat(32)}` }), receipt)
    }).pipe(Effect.provide(Layer2.layerMemory())))

  it.effect("relays the receipt as nodes spell it", () =>
    Effect.gen(function*() {
      const layer2 = yield* Layer2.Layer2
      const state = yield* Layer2.Layer2State
      yield* state.set(receipt)
      const answer = yield* layer2.relay({
        operation: getTransactionReceipt,
        params: Json.strict(`["${hash}"]`),
        surface: "gateway"
      })
      assert.deepStrictEqual(answer, { _tag: "Result", result: Json.of(wireText(receipt)) })
    }).pipe(Effect.provide(Layer2.layerMemory())))

  it.effect("refuses what the live layer refuses", () =>
    Effect.gen(function*() {
      const layer2 = yield* Layer2.Layer2
      const error = yield* flipReason(
        layer2.relay({ operation: getTransactionReceipt, params: Json.strict(`["0x12"]`), surface: "gateway" })
      )
      assert.instanceOf(error, InvalidRequest)
    }).pipe(Effect.provide(Layer2.layerMemory())))

  it.effect("two in one program share nothing", () =>
    Effect.gen(function*() {
      const know = Effect.gen(function*() {
        const state = yield* Layer2.Layer2State
        yield* state.set(receipt)
        return yield* Layer2.Layer2.use((layer2) => layer2.getTransactionReceipt({ hash }))
      })
      const ask = Layer2.Layer2.use((layer2) => layer2.getTransactionReceipt({ hash }))
      assert.deepStrictEqual(yield* Effect.provide(know, Layer2.layerMemory()), receipt)
      assert.isNull(yield* Effect.provide(ask, Layer2.layerMemory()))
    }))

  it.effect("a program that waits sees the transaction being mined", () =>
    Effect.gen(function*() {
      const layer2 = yield* Layer2.Layer2
      const state = yield* Layer2.Layer2State
      yield* state.set(receipt, "pending")
      const fiber = yield* Effect.forkChild(layer2.waitForReceipt({ hash }))
      yield* TestClock.adjust("1 second")
      yield* state.set(receipt, "preconfirmed")
      yield* TestClock.adjust("1 second")
      assert.isUndefined(fiber.pollUnsafe())
      yield* state.set(receipt)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), receipt)
    }).pipe(Effect.provide(Layer2.layerMemory())))
})
