import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { evmOperations } from "@trigate/domain/evm/EvmProtocol"
import type { RpcResponse } from "@trigate/domain/evm/EvmProtocol"
import type { ReadOperation } from "@trigate/domain/operations/Operation"
import * as EvmUpstream from "@trigate/evm/unstable/EvmUpstream"
import * as Pipeline from "@trigate/upstream/Pipeline"
import type { AttemptedRead } from "@trigate/upstream/unstable/attempts/Attempts"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Scripted from "../../upstream/test/scripted.ts"

const Sent = Schema.Struct({ id: Schema.Number, method: Schema.String, params: Schema.Unknown })
const decodeSent = Schema.decodeUnknownSync(Schema.fromJsonString(Sent))
const decodeBatch = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Sent)))

const { gasPrice, getStorageAt, usingBigBlocks } = evmOperations
const targets = Scripted.targets("a")
const both = Scripted.targets("a", "b")

const result = (id: number, value: string) => `{"jsonrpc":"2.0","id":${id},"result":${value}}`
const array = (...items: ReadonlyArray<string>) => Scripted.answer(200, `[${items.join(",")}]`)

const over = (transport: ReturnType<typeof Scripted.make>) =>
  Layer.provide(Pipeline.layer({ attempts: 1 }), transport.layer)

/** Asks for calls with ids from 1. */
const asking = Pipeline.Pipeline.useSync(({ attempt }) => {
  let id = 0
  const read = EvmUpstream.makeBatched(attempt, () => ++id)
  return (
    { operation, targets }: { readonly operation: ReadOperation; readonly targets: AttemptedRead["targets"] },
    params: string
  ) => read({ operation, params: Json.of(params), request: undefined, surface: "gateway" }, targets)
})

/** Three calls of one caller's batch. */
const three = (at: typeof targets) =>
  Effect.flatMap(asking, (ask) =>
    EvmUpstream.batched(Effect.all([
      Effect.result(ask({ operation: gasPrice, targets: at }, "[]")),
      Effect.result(ask({ operation: getStorageAt, targets: at }, `["0xab","0x0","latest"]`)),
      Effect.result(ask({ operation: usingBigBlocks, targets: at }, `["0xcd"]`))
    ], { concurrency: "unbounded" })))

const values = (answers: ReadonlyArray<Result.Result<RpcResponse, { readonly _tag: string }>>) =>
  answers.map((answer) =>
    Result.isFailure(answer)
      ? answer.failure._tag
      : answer.success._tag === "Result"
      ? answer.success.result.text
      : "error"
  )

describe("a single call", () => {
  it.effect("has an id of its own, and an answer with another one is not its answer", () => {
    const transport = Scripted.make(({ body }) => {
      const { id } = decodeSent(body)
      return Scripted.answer(200, result(id === 2 ? 1 : id, "\"0x1\""))
    })
    return Effect.gen(function*() {
      const ask = yield* asking
      const call = ask({ operation: gasPrice, targets }, "[]")
      assert.deepStrictEqual(yield* call, { _tag: "Result", result: Json.of("\"0x1\"") })
      assert.strictEqual((yield* Effect.flip(call))._tag, "UpstreamMalformed")
      assert.deepStrictEqual(transport.seen.map(({ body }) => body), [
        `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`,
        `{"jsonrpc":"2.0","id":2,"method":"eth_gasPrice","params":[]}`
      ])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("does not give the endpoint key away in an error's words", () => {
    const transport = Scripted.make(({ body }) =>
      Scripted.answer(
        200,
        `{"jsonrpc":"2.0","id":${decodeSent(body).id},"error":{"code":-32601,"message":"no /KEY-OF-a"}}`
      )
    )
    return Effect.gen(function*() {
      const ask = yield* asking
      assert.deepStrictEqual(yield* ask({ operation: gasPrice, targets }, "[]"), {
        _tag: "Error",
        code: -32601,
        message: "no /…",
        error: Json.of(`{"code":-32601,"message":"no /…"}`)
      })
    }).pipe(Effect.provide(over(transport)))
  })
})

describe("a batch", () => {
  it.effect("is one request, answered by id in any order, digits and all", () => {
    const transport = Scripted.make(({ body }) => {
      const sent = decodeBatch(body)
      assert.deepStrictEqual(sent.map(({ method }) => method), [
        "eth_gasPrice",
        "eth_getStorageAt",
        "eth_usingBigBlocks"
      ])
      return array(...sent.map(({ id, method }) => result(id, `"${method}"`)).toReversed())
    })
    return Effect.gen(function*() {
      assert.deepStrictEqual(values(yield* three(targets)), [
        "\"eth_gasPrice\"",
        "\"eth_getStorageAt\"",
        "\"eth_usingBigBlocks\""
      ])
      assert.deepStrictEqual(transport.seen.map(({ body }) => body), [
        `[{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]},` +
        `{"jsonrpc":"2.0","id":2,"method":"eth_getStorageAt","params":["0xab","0x0","latest"]},` +
        `{"jsonrpc":"2.0","id":3,"method":"eth_usingBigBlocks","params":["0xcd"]}]`
      ])
    }).pipe(Effect.provide(over(transport)))
  })

  for (
    const [fault, answersOf, expected] of [
      ["missing", ([, two, three]) => [two, three], ["UpstreamMalformed", "2", "3"]],
      ["doubled", ([one, two, three]) => [one, two, two, three], ["1", "UpstreamMalformed", "3"]],
      ["nobody's", ([one, two, three]) => [one, two, three, result(99, "9")], ["1", "2", "3"]],
      ["an error", ([one, two]) => [one, two, `{"jsonrpc":"2.0","id":3,"error":{"code":3,"message":"reverted"}}`], [
        "1",
        "2",
        "error"
      ]]
    ] satisfies ReadonlyArray<
      readonly [string, (answers: ReadonlyArray<string>) => ReadonlyArray<string | undefined>, ReadonlyArray<string>]
    >
  ) {
    it.effect(`keeps the other answers when one is ${fault}`, () => {
      const transport = Scripted.make(({ body }) =>
        array(
          ...answersOf(decodeBatch(body).map(({ id }) => result(id, String(id)))).filter((each) => each !== undefined)
        )
      )
      return Effect.gen(function*() {
        assert.deepStrictEqual(values(yield* three(targets)), expected)
        assert.strictEqual(transport.seen.length, 1)
      }).pipe(Effect.provide(over(transport)))
    })
  }

  it.effect("goes to the next address when one answers too little", () => {
    const transport = Scripted.make(({ body, host }) =>
      array(...decodeBatch(body).slice(host === "a" ? 1 : 0).map(({ id }) => result(id, Json.stringify(host))))
    )
    return Effect.gen(function*() {
      assert.deepStrictEqual(values(yield* three(both)), ["\"b\"", "\"b\"", "\"b\""])
      assert.deepStrictEqual(transport.hosts(), ["a", "b"])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("is counted with what it costs itself, whatever the first one cost", () => {
    const transport = Scripted.make(({ body }) => array(...decodeBatch(body).map(({ id }) => result(id, "1"))))
    return Effect.gen(function*() {
      const ask = yield* asking
      const call = ask({ operation: gasPrice, targets }, "[]")
      const batchOf = (length: number) =>
        EvmUpstream.batched(Effect.all(Array.from({ length }, () => call), { concurrency: "unbounded" }))
      yield* batchOf(2)
      yield* batchOf(5)
      const units = (yield* Metric.snapshot).find(({ id }) => id === "trigate_upstream_request_units_total")
      assert.strictEqual(units?.type === "Counter" ? units.state.count : undefined, 7)
    }).pipe(Effect.provide(over(transport)), Effect.provideService(Metric.MetricRegistry, new Map()))
  })

  it.effect("is asked call by call of a node that takes none", () => {
    const transport = Scripted.make(({ body }) =>
      body.startsWith("[")
        ? Scripted.answer(200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches"}}`)
        : Scripted.answer(200, result(decodeSent(body).id, "1"))
    )
    return Effect.gen(function*() {
      assert.deepStrictEqual(values(yield* three(targets)), ["1", "1", "1"])
      assert.strictEqual(transport.seen.length, 4)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("does not open the circuit of a node that takes none", () => {
    const transport = Scripted.make(({ body }) =>
      Scripted.late(
        1,
        body.startsWith("[")
          ? Scripted.answer(200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches"}}`)
          : Scripted.answer(200, result(decodeSent(body).id, "1"))
      )
    )
    return Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(
        Effect.all(Array.from({ length: 6 }, () => three(targets)), { concurrency: "unbounded" }),
        { startImmediately: true }
      )
      yield* TestClock.adjust(2)
      for (const answers of yield* Fiber.join(fiber)) assert.deepStrictEqual(values(answers), ["1", "1", "1"])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("that a reached rate limit refuses in one object is not asked call by call", () => {
    const full = `{"code":-32005,"message":"limit exceeded for /KEY-OF-a"}`
    const transport = Scripted.make(() => Scripted.answer(200, `{"jsonrpc":"2.0","id":null,"error":${full}}`))
    return Effect.gen(function*() {
      const error = {
        _tag: "Error",
        code: -32005,
        message: "limit exceeded for /…",
        error: Json.of(`{"code":-32005,"message":"limit exceeded for /…"}`)
      }
      assert.deepStrictEqual<unknown>(
        (yield* three(targets)).map(Result.getSuccess),
        Array.from({ length: 3 }, () => Option.some(error))
      )
      assert.strictEqual(transport.seen.length, 1)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("fails as a whole with what its request ended in", () => {
    const transport = Scripted.make(() => Scripted.reset)
    return Effect.gen(function*() {
      assert.deepStrictEqual(values(yield* three(targets)), Array.from({ length: 3 }, () => "UpstreamUnavailable"))
      assert.strictEqual(transport.seen.length, 1)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("of one call is that call", () => {
    const transport = Scripted.make(({ body }) => Scripted.answer(200, result(decodeSent(body).id, "1")))
    return Effect.gen(function*() {
      const ask = yield* asking
      yield* EvmUpstream.batched(ask({ operation: gasPrice, targets }, "[]"))
      assert.strictEqual(transport.seen[0]?.body, `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`)
    }).pipe(Effect.provide(over(transport)))
  })
})

describe("what batches cost", () => {
  it.effect("is what their calls cost, however many the first one had", () => {
    const transport = Scripted.make(({ body }) => array(...decodeBatch(body).map(({ id }) => result(id, "1"))))
    const units = Effect.map(
      Metric.snapshot,
      (metrics) => metrics.filter(({ id }) => id === "trigate_upstream_request_units_total").map(({ state }) => state)
    )
    return Effect.gen(function*() {
      const ask = yield* asking
      const prices = (count: number) =>
        EvmUpstream.batched(Effect.all(
          Array.from({ length: count }, (_, index) => ask({ operation: gasPrice, targets }, `[${index}]`)),
          { concurrency: "unbounded" }
        ))
      yield* prices(2)
      yield* prices(5)
      assert.deepStrictEqual(yield* units, [{ count: 7, incremental: true }])
    }).pipe(Effect.provide(over(transport)), Effect.provideService(Metric.MetricRegistry, new Map()))
  })
})
