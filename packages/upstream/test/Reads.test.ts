import { assert, describe, it } from "@effect/vitest"
import { local } from "@trigate/domain/Caller"
import { CurrentKeepCounted, detached } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import { evmOperations } from "@trigate/domain/evm/EvmProtocol"
import type { RpcResponse } from "@trigate/domain/evm/EvmProtocol"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as Upstream from "@trigate/upstream/unstable/Upstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"
import * as Scripted from "./scripted.ts"

const upstream = Upstream.make("layer2", ["http://a/KEY-OF-a"])

const call = (slot: string): EvmProtocol.CheckedRead => ({
  operation: evmOperations.getStorageAt,
  params: Json.of(`["0x${"00".repeat(20)}","${slot}","latest"]`),
  request: slot,
  surface: "gateway"
})

const idOf = (body: string): string => /"id":(?<id>[0-9]+)/u.exec(body)?.groups?.["id"] ?? ""
const word = (body: string) => Scripted.answer(200, `{"jsonrpc":"2.0","id":${idOf(body)},"result":"0x1"}`)

/** Reads over a scripted upstream. */
const reading = Effect.fnUntraced(function*(
  react: Parameters<typeof Scripted.make>[0],
  { hosts = ["a"], limit, protocol = EvmProtocol.reads }: {
    readonly hosts?: readonly [string, ...ReadonlyArray<string>]
    readonly limit?: number
    readonly protocol?: typeof EvmProtocol.reads
  } = {}
) {
  const script = Scripted.make(react)
  const targets = Scripted.targets(...hosts)
  const context = yield* Layer.build(
    Pipeline.layerNoDeps({ owner: local }).pipe(
      Layer.provide([
        RateLimiter.layerMemory({ layer2: limit }),
        Layer.provide(OutlierDetection.layer(), script.layer),
        ResponseCache.layer(),
        script.layer
      ])
    )
  )
  const { read } = yield* Effect.provideContext(
    Effect.flatMap(
      Pipeline.Pipeline,
      ({ reads }) => reads({ protocol, upstream, targetsOf: () => Result.succeed(targets) })
    ),
    context
  )
  return { script, read }
})

const resultOf = Effect.map(
  (answer: RpcResponse) => answer._tag === "Result" ? answer.result.text : answer.message
)

describe("a read", () => {
  it.effect("runs without waiting up to its request", () =>
    Effect.gen(function*() {
      const { read, script } = yield* reading(({ body }) => word(body), { hosts: ["a", "b"] })
      const fiber = Effect.runForkWith(yield* Effect.context())(resultOf(read(call("0x0"))))
      assert.deepStrictEqual(script.hosts(), ["a"])
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* Fiber.join(fiber), "\"0x1\"")
    }))

  it.effect("is tried again at the same address after a fault that may pass", () =>
    Effect.gen(function*() {
      const { read, script } = yield* reading(({ body, nth }) => nth === 0 ? Scripted.answer(503, "{}") : word(body))
      const fiber = yield* Effect.forkChild(resultOf(read(call("0x0"))), { startImmediately: true })
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* Fiber.join(fiber), "\"0x1\"")
      assert.deepStrictEqual(script.seen.map(({ body }) => idOf(body)), ["1", "1"])
    }))

  it.effect("waits for the rate limit", () =>
    Effect.gen(function*() {
      const { read, script } = yield* reading(({ body }) => word(body), { limit: 1 })
      yield* Effect.forkChild(read(call("0x0")), { startImmediately: true })
      yield* TestClock.adjust(1)
      const fiber = yield* Effect.forkChild(resultOf(read(call("0x1"))), { startImmediately: true })
      assert.lengthOf(script.seen, 1)
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* Fiber.join(fiber), "\"0x1\"")
      assert.lengthOf(script.seen, 2)
      assert.isAbove(yield* Clock.currentTimeMillis, 1000)
    }))

  it.effect("leads those that ask the same, and hands them its answer", () =>
    Effect.gen(function*() {
      const { read, script } = yield* reading(({ body }) => Scripted.late(50, word(body)))
      const fibers = yield* Effect.forEach([1, 2, 3], () =>
        Effect.forkChild(resultOf(read(call("0x0"))), { startImmediately: true }))
      yield* TestClock.adjust(50)
      assert.deepStrictEqual(yield* Effect.forEach(fibers, Fiber.join), ["\"0x1\"", "\"0x1\"", "\"0x1\""])
      assert.lengthOf(script.seen, 1)
    }))

  it.effect("whose caller leaves is aborted, and one of the others asks", () =>
    Effect.gen(function*() {
      const { read, script } = yield* reading(({ body }) => Scripted.late(50, word(body)))
      const [first, second] = yield* Effect.all([
        Effect.forkChild(resultOf(read(call("0x0"))), { startImmediately: true }),
        Effect.forkChild(resultOf(read(call("0x0"))), { startImmediately: true })
      ])
      yield* TestClock.adjust(20)
      yield* Fiber.interrupt(first)
      yield* TestClock.adjust(50)
      assert.strictEqual(yield* Fiber.join(second), "\"0x1\"")
      assert.deepStrictEqual(script.seen.map(({ at, isAborted }) => [at, isAborted]), [[0, true], [20, false]])
    }))

  it.effect("does not leave the others waiting when a fault of the program ends it", () =>
    Effect.gen(function*() {
      let responses = 0
      const { read, script } = yield* reading(({ body }) => Scripted.late(50, word(body)), {
        protocol: {
          ...EvmProtocol.reads,
          write: (call, id) => {
            const question = EvmProtocol.reads.write(call, id)
            return {
              ...question,
              judge: (response) => {
                if (responses++ === 0) throw new Error("a fault")
                return question.judge(response)
              }
            }
          }
        }
      })
      const [first, second] = yield* Effect.all([
        Effect.forkChild(Effect.exit(read(call("0x0"))), { startImmediately: true }),
        Effect.forkChild(resultOf(read(call("0x0"))), { startImmediately: true })
      ])
      yield* TestClock.adjust(100)
      assert.isTrue(Exit.hasDies(yield* Fiber.join(first)))
      assert.strictEqual(yield* Fiber.join(second), "\"0x1\"")
      assert.lengthOf(script.seen, 2)
    }))
})

describe("a detached effect", () => {
  it.effect("ends although the fiber that waits for it is interrupted, and keeps the request counted until then", () =>
    Effect.gen(function*() {
      const ends: Array<string> = []
      const slow = Effect.andThen(Effect.sleep(1), Effect.sync(() => ends.push("done")))
      const counted = Effect.provideService(detached(slow), CurrentKeepCounted, () => () => ends.push("released"))
      const fiber = yield* Effect.forkChild(counted, { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(ends, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(ends, ["done", "released"])
    }))

  it.effect("gives its result to the fiber that waits for it", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* detached(Effect.succeed("at once")), "at once")
      assert.deepStrictEqual(yield* Effect.flip(detached(Effect.fail("no"))), "no")
    }))
})
