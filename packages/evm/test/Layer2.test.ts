import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import {
  ChainNotConfigured,
  InvalidRequest,
  Overloaded,
  QuotaExceeded,
  Unauthorized,
  UnavailableOnNode,
  UnsupportedMethod,
  UpstreamMalformed,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamUnavailable
} from "@trigate/domain/errors/GatewayError"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import type { RpcResponse } from "@trigate/domain/evm/EvmProtocol"
import { getTransactionReceipt } from "@trigate/domain/evm/Layer2Operations"
import * as Layer2 from "@trigate/evm/Layer2"
import { ReceiptTimeout } from "@trigate/evm/Layer2"
import { flipReason } from "@trigate/testing/Reason"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { hash, preconfirmed, receipt, wireText } from "./receipts.ts"

const result = (text: string): RpcResponse => ({ _tag: "Result", result: Json.of(text) })

/** A service over a transport that answers each call by its number from 1, with the params and times of its calls. */
const over = (answer: (call: number) => Effect.Effect<RpcResponse, CommonFailure>) => {
  const params: Array<string> = []
  const times: Array<number> = []
  const answered = (call: { readonly params: Json.Json }) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      params.push(call.params.text)
      times.push(now)
      return answer(times.length)
    })
  const layer2 = Layer2.make({ read: answered, once: answered, subscribe: () => ({ id: "0x1", end: () => {} }) })
  return { layer2, params, times }
}

const absent = Effect.succeed(result("null"))
const present = Effect.succeed(result(wireText(receipt)))

describe("Layer2.relay", () => {
  it.effect("sends the params as they came and gives the answer as it came", () =>
    Effect.gen(function*() {
      const { layer2, params } = over(() => Effect.succeed(result("{ \"any\" : 1 }")))
      const raw = ` [ "${hash}" ]`
      const answer = yield* layer2.relay({
        operation: getTransactionReceipt,
        params: Json.strict(raw),
        surface: "node"
      })
      assert.deepStrictEqual(answer, result("{ \"any\" : 1 }"))
      assert.deepStrictEqual(params, [raw])
    }))

  it.effect.each(
    [
      ["no hash", "[]", ["params", 0]],
      ["a short hash", `["0x1234"]`, ["params", 0]],
      ["a number", "[1]", ["params", 0]],
      ["a named object", `{"hash":"${hash}"}`, ["params"]],
      ["no JSON", "[", []],
      ["an object with a key twice", `[{"a":1,"a":2}]`, [0, "a"]]
    ] as const
  )("refuses %s without a call", ([, params, path]) =>
    Effect.gen(function*() {
      const { layer2, times } = over(() => absent)
      const error = yield* flipReason(
        layer2.relay({ operation: getTransactionReceipt, params: Json.strict(params), surface: "gateway" })
      )
      assert.instanceOf(error, InvalidRequest)
      assert.deepStrictEqual(error.errors[0]?.path, path)
      assert.strictEqual(times.length, 0)
    }))

  it.effect("refuses on the node's surface what only the venue's API serves", () =>
    Effect.gen(function*() {
      const { layer2, times } = over(() => absent)
      const error = yield* flipReason(
        layer2.relay({
          operation: { ...getTransactionReceipt, sources: ["official-api"] },
          params: Json.strict(`["${hash}"]`),
          surface: "node"
        })
      )
      assert.instanceOf(error, UnavailableOnNode)
      assert.strictEqual(error.operation, "eth_getTransactionReceipt")
      assert.deepStrictEqual(error.availableOn, ["official-api"])
      assert.strictEqual(times.length, 0)
    }))
})

describe("Layer2.getTransactionReceipt", () => {
  it.effect("reads a receipt", () =>
    Effect.gen(function*() {
      const { layer2, params } = over(() => present)
      assert.deepStrictEqual(yield* layer2.getTransactionReceipt({ hash }), receipt)
      assert.deepStrictEqual(params, [`["${hash}"]`])
    }))

  it.effect("answers null for a transaction that is not in a block", () =>
    Effect.gen(function*() {
      const { layer2 } = over(() => absent)
      assert.isNull(yield* layer2.getTransactionReceipt({ hash }))
    }))

  it.effect("refuses a hash of the wrong length without a call", () =>
    Effect.gen(function*() {
      const { layer2, times } = over(() => absent)
      const error = yield* flipReason(layer2.getTransactionReceipt({ hash: "0x1234" }))
      assert.instanceOf(error, InvalidRequest)
      assert.deepStrictEqual(error.errors[0]?.path, ["params", "hash"])
      assert.strictEqual(times.length, 0)
    }))

  it.effect("a result of another shape is the upstream's fault", () =>
    Effect.gen(function*() {
      const { layer2 } = over(() => Effect.succeed(result(`{"status":"0x1"}`)))
      const error = yield* flipReason(layer2.getTransactionReceipt({ hash }))
      assert.instanceOf(error, UpstreamMalformed)
      assert.strictEqual(error.upstream, "layer2")
    }))
})

const retryable = [
  new UpstreamUnavailable({ upstream: "layer2", attempts: 2 }),
  new UpstreamRateLimited({ upstream: "layer2", retryAfter: 1 }),
  new UpstreamTimeout({ upstream: "layer2", deadline: 10_000 }),
  new UpstreamMalformed({ upstream: "layer2", issue: "HTML (HTTP 200)" })
] as const

const lasting = [
  new InvalidRequest({ errors: [] }),
  new UnsupportedMethod({ method: "eth_getTransactionReceipt" }),
  new UnavailableOnNode({ operation: "eth_getTransactionReceipt", availableOn: [] }),
  new ChainNotConfigured({ chain: "layer2" })
] as const

describe("Layer2.waitForReceipt", () => {
  it.effect("takes a receipt that is there with one poll and no time", () =>
    Effect.gen(function*() {
      const { layer2, times } = over(() => present)
      assert.deepStrictEqual(yield* layer2.waitForReceipt({ hash }), receipt)
      assert.deepStrictEqual(times, [0])
    }))

  it.effect("polls after 200 ms, doubling up to 2 s", () =>
    Effect.gen(function*() {
      const { layer2, times } = over((call) => call < 8 ? absent : present)
      const fiber = yield* Effect.forkChild(layer2.waitForReceipt({ hash }))
      yield* TestClock.adjust("60 seconds")
      assert.deepStrictEqual(yield* Fiber.join(fiber), receipt)
      assert.deepStrictEqual(times, [0, 200, 600, 1400, 3000, 5000, 7000, 9000])
    }))

  it.effect("gives up after 60 seconds and 33 polls", () =>
    Effect.gen(function*() {
      const { layer2, times } = over(() => absent)
      const fiber = yield* Effect.forkChild(flipReason(layer2.waitForReceipt({ hash })))
      yield* TestClock.adjust(59_999)
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      const error = yield* Fiber.join(fiber)
      assert.instanceOf(error, ReceiptTimeout)
      assert.strictEqual(error.hash, hash)
      assert.strictEqual(error.waited, 60_000)
      assert.isUndefined(error.lastFailure)
      assert.strictEqual(error.message, `No receipt of ${hash} within 60000 ms`)
      assert.strictEqual(times.length, 33)
      assert.strictEqual(times.at(-1), 59_000)
      yield* TestClock.adjust("60 seconds")
      assert.strictEqual(times.length, 33)
    }))

  it.effect("gives up at its own deadline", () =>
    Effect.gen(function*() {
      const { layer2, times } = over(() => absent)
      const fiber = yield* Effect.forkChild(flipReason(layer2.waitForReceipt({ hash, deadline: "1 second" })))
      yield* TestClock.adjust("1 second")
      const error = yield* Fiber.join(fiber)
      assert.instanceOf(error, ReceiptTimeout)
      assert.strictEqual(error.waited, 1000)
      assert.deepStrictEqual(times, [0, 200, 600])
    }))

  it.effect("gives up where its schedule ends", () =>
    Effect.gen(function*() {
      const { layer2, times } = over(() => absent)
      const schedule = Schedule.max([Schedule.spaced("1 second"), Schedule.recurs(3)])
      const fiber = yield* Effect.forkChild(flipReason(layer2.waitForReceipt({ hash, schedule })))
      yield* TestClock.adjust("60 seconds")
      const error = yield* Fiber.join(fiber)
      assert.instanceOf(error, ReceiptTimeout)
      assert.strictEqual(error.waited, 3000)
      assert.deepStrictEqual(times, [0, 1000, 2000, 3000])
    }))

  it.effect("its deadline ends a poll that hangs", () =>
    Effect.gen(function*() {
      const { layer2, times } = over(() => Effect.never)
      const fiber = yield* Effect.forkChild(flipReason(layer2.waitForReceipt({ hash, deadline: "5 seconds" })))
      yield* TestClock.adjust("5 seconds")
      const error = yield* Fiber.join(fiber)
      assert.instanceOf(error, ReceiptTimeout)
      assert.strictEqual(error.waited, 5000)
      assert.deepStrictEqual(times, [0])
    }))

  it.effect.each(retryable)("goes on after $_tag", (failure) =>
    Effect.gen(function*() {
      const { layer2, times } = over((call) => call < 3 ? Effect.fail(failure) : present)
      const fiber = yield* Effect.forkChild(layer2.waitForReceipt({ hash }))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), receipt)
      assert.deepStrictEqual(times, [0, 200, 600])
    }))

  it.effect.each(lasting)("ends at once with $_tag", (failure) =>
    Effect.gen(function*() {
      const { layer2, times } = over((call) => call < 2 ? absent : Effect.fail(failure))
      const fiber = yield* Effect.forkChild(flipReason(layer2.waitForReceipt({ hash })))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(fiber), failure)
      assert.deepStrictEqual(times, [0, 200])
    }))

  it.effect("goes on after, and ends with, what a gateway refuses its caller with", () =>
    Effect.gen(function*() {
      let polls = 0
      const fiber = yield* Effect.forkChild(flipReason(Layer2.wait(
        () =>
          Effect.suspend(() =>
            Effect.fail(
              [new QuotaExceeded({ retryAfter: 1 }), new Overloaded({ retryAfter: 1 })][polls++] ?? new Unauthorized({})
            )
          ),
        { hash }
      )))
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(fiber))._tag, "Unauthorized")
      assert.strictEqual(polls, 3)
    }))

  it.effect("says what the last poll failed with, unless that one was answered", () =>
    Effect.gen(function*() {
      const [unavailable, limited] = retryable
      const failing = over((call) => Effect.fail(call < 3 ? unavailable : limited))
      const answered = over((call) => call < 3 ? Effect.fail(unavailable) : absent)
      for (const [{ layer2 }, expected] of [[failing, limited], [answered, undefined]] as const) {
        const fiber = yield* Effect.forkChild(flipReason(layer2.waitForReceipt({ hash, deadline: "1 second" })))
        yield* TestClock.adjust("1 second")
        const error = yield* Fiber.join(fiber)
        assert.instanceOf(error, ReceiptTimeout)
        assert.strictEqual(error.lastFailure, expected)
      }
    }))

  it.effect("waits for the block of a pre-confirmed receipt", () =>
    Effect.gen(function*() {
      const { layer2, times } = over((call) => call < 4 ? Effect.succeed(result(wireText(preconfirmed))) : present)
      const fiber = yield* Effect.forkChild(layer2.waitForReceipt({ hash }))
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* Fiber.join(fiber), receipt)
      assert.deepStrictEqual(times, [0, 200, 600, 1400])
    }))

  it.effect("takes a pre-confirmed receipt where that is accepted", () =>
    Effect.gen(function*() {
      const { layer2, times } = over(() => Effect.succeed(result(wireText(preconfirmed))))
      assert.deepStrictEqual(yield* layer2.waitForReceipt({ hash, acceptPreconfirmed: true }), preconfirmed)
      assert.deepStrictEqual(times, [0])
    }))

  it.effect("stops polling when it is interrupted", () =>
    Effect.gen(function*() {
      const { layer2, times } = over(() => absent)
      const fiber = yield* Effect.forkChild(layer2.waitForReceipt({ hash }))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(times, [0, 200, 600])
    }))
})
