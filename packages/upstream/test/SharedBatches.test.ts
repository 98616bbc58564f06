/** Batches of different callers' reads over a scripted node. */
import { assert, describe, it } from "@effect/vitest"
import { CurrentCaller, local } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Json"
import { getLogs } from "@trigate/domain/evm/EvmReads"
import { getTransactionReceipt, serving } from "@trigate/domain/evm/Layer2Operations"
import type { RpcAnswer } from "@trigate/domain/operations/JsonRpc"
import * as SpanTree from "@trigate/testing/SpanTree"
import type { AttemptedRead } from "@trigate/upstream/attempts/Attempts"
import * as Batching from "@trigate/upstream/Batching"
import * as Pipeline from "@trigate/upstream/Pipeline"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Tracer from "effect/Tracer"
import * as Scripted from "./scripted.ts"

const Sent = Schema.Struct({ id: Schema.Number, method: Schema.String, params: Schema.Unknown })
const decodeSent = Schema.decodeUnknownSync(Schema.fromJsonString(Sent))
const decodeBatch = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Sent)))

const targets = Scripted.targets("a")
const both = Scripted.targets("a", "b")

const result = (id: number, value: string) => `{"jsonrpc":"2.0","id":${id},"result":${value}}`
const failure = (id: number | null, code: number, message: string) =>
  `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code, message })}}`
const array = (...items: ReadonlyArray<string>) => Scripted.answer(200, `[${items.join(",")}]`)

const over = (transport: ReturnType<typeof Scripted.make>, options: Pipeline.Options = {}) =>
  Layer.provide(Pipeline.layer({ attempts: 1, ...options }), transport.layer)

const values = (answers: ReadonlyArray<Result.Result<RpcAnswer, { readonly _tag: string }>>) =>
  answers.map((answer) =>
    Result.isFailure(answer)
      ? answer.failure._tag
      : answer.success._tag === "Result"
      ? answer.success.result.text
      : "error"
  )

/** Makes the reads of receipts, each of its own transaction and caller, over batches of up to 50 calls. */
const reader = Effect.gen(function*() {
  const { attempt } = yield* Pipeline.Pipeline
  let id = 0
  const read = Batching.make(attempt, () => ++id, { most: 50, context: yield* Effect.context() })
  return (count: number, at: AttemptedRead["targets"] = targets) =>
    Effect.forEach(Array.from({ length: count }, (_, index) => index), (index) => {
      const params = Json.of(`["0x${index.toString(16).padStart(64, "0")}"]`)
      const call = { operation: getTransactionReceipt, params, request: undefined, surface: "gateway" } as const
      return Effect.result(read(call, at)).pipe(
        Effect.provideService(CurrentCaller, { ...local, id: `caller-${index % 50}` })
      )
    }, { concurrency: "unbounded" })
})

const receipts = (count: number) => Effect.flatMap(reader, (read) => read(count))

/** The number of calls of each request. */
const sizes = (seen: ReadonlyArray<Scripted.Seen>) =>
  seen.map(({ body }) => body.startsWith("[") ? decodeBatch(body).length : 1)

/** Answers each call with the last four digits of its hash. */
const answers = (body: string): Scripted.Reaction => {
  const one = ({ id, params }: typeof Sent.Type) => result(id, JSON.stringify(hashIn(params).slice(-4)))
  return body.startsWith("[")
    ? array(...decodeBatch(body).map(one).toReversed())
    : Scripted.answer(200, one(decodeSent(body)))
}
const hashIn = (params: unknown): string => Array.isArray(params) ? String(params[0]) : ""
const expectedOf = (index: number) => JSON.stringify(index.toString(16).padStart(4, "0"))
const poisoned = "00000000000001f4"

describe("cheap reads of different callers", () => {
  it.effect("that arrive together go out in few requests, each with its own answer", () => {
    const transport = Scripted.make(({ body }) => answers(body))
    return Effect.gen(function*() {
      assert.deepStrictEqual(
        values(yield* receipts(1000)),
        Array.from({ length: 1000 }, (_, index) => expectedOf(index))
      )
      assert.strictEqual(transport.seen.length, 20)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("harm no other: an error is its own call's", () => {
    const transport = Scripted.make(({ body }) =>
      array(
        ...decodeBatch(body).map(({ id, params }) =>
          hashIn(params).endsWith(poisoned)
            ? failure(id, -32000, "poison")
            : result(id, JSON.stringify(hashIn(params).slice(-4)))
        )
      )
    )
    return Effect.gen(function*() {
      assert.deepStrictEqual(
        values(yield* receipts(1000)),
        Array.from({ length: 1000 }, (_, index) => index === 500 ? "error" : expectedOf(index))
      )
      assert.strictEqual(transport.seen.length, 20)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("harm no other: the call on which a node hangs up is found by halves, and fails alone", () => {
    const transport = Scripted.make(({ body }) => body.includes(poisoned) ? Scripted.reset : answers(body))
    return Effect.gen(function*() {
      assert.deepStrictEqual(
        values(yield* receipts(1000)),
        Array.from({ length: 1000 }, (_, index) => index === 500 ? "UpstreamUnavailable" : expectedOf(index))
      )
      // six halvings of fifty calls, two requests each; the node is probed besides
      const sent = transport.seen.filter(({ body }) => body.includes("eth_getTransactionReceipt"))
      assert.strictEqual(sent.length, 20 + 12)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("ask a node that is down less than single calls would", () => {
    const transport = Scripted.make(() => Scripted.refused)
    return Effect.gen(function*() {
      assert.deepStrictEqual(values(yield* receipts(50)), Array.from({ length: 50 }, () => "UpstreamUnavailable"))
      assert.isAtMost(transport.seen.length, 13)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("that one batch serves have one attempt, in a trace of its own", () => {
    const transport = Scripted.make(({ body }) => answers(body))
    const { spans, tracer, tree } = SpanTree.make()
    return Effect.gen(function*() {
      const read = yield* reader
      const requests = ["one", "other"].map((name) => Effect.withSpan(read(1), name, { kind: "server" }))
      yield* Effect.all(requests, { concurrency: "unbounded" })
      assert.deepStrictEqual(tree(), [
        "one [server, ok]",
        "other [server, ok]",
        "layer2#0 [client, ok] http.response.status_code=200 trigate.address=0 trigate.attempt=1 " +
        "trigate.operation=batch trigate.outcome=ok trigate.upstream=layer2"
      ])
      assert.strictEqual(new Set(spans.map(({ traceId }) => traceId)).size, 3)
      assert.deepStrictEqual(sizes(transport.seen), [2])
    }).pipe(Effect.provide(over(transport)), Effect.provideService(Tracer.Tracer, tracer))
  })

  it.effect("are one call where only one arrives, and calls that are not cheap are never put together", () => {
    const transport = Scripted.make(({ body }) => answers(body))
    return Effect.gen(function*() {
      assert.deepStrictEqual(values(yield* receipts(1)), [expectedOf(0)])
      const { attempt } = yield* Pipeline.Pipeline
      let id = 10
      const read = Batching.make(attempt, () => ++id, { most: 50, context: yield* Effect.context() })
      const call = {
        operation: getLogs(serving),
        params: Json.of(`[{}]`),
        request: undefined,
        surface: "gateway"
      } as const
      yield* Effect.all([read(call, targets), read(call, targets)], { concurrency: "unbounded" })
      assert.deepStrictEqual(transport.seen.map(({ body }) => decodeSent(body).id), [1, 11, 12])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("are given up when all of their callers have left, and not before", () => {
    const transport = Scripted.make(() => Scripted.silence)
    return Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(receipts(2), { startImmediately: true })
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(transport.seen.map(({ isAborted }) => isAborted), [false])
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(transport.seen.map(({ isAborted }) => isAborted), [true])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("do not wait for a batch whose callers have all left before it is sent", () => {
    const transport = Scripted.make(({ body }) => answers(body))
    return Effect.gen(function*() {
      const read = yield* reader
      yield* Fiber.interrupt(yield* Effect.forkChild(read(2), { startImmediately: true }))
      assert.deepStrictEqual(values(yield* read(1)), [expectedOf(0)])
      assert.deepStrictEqual(sizes(transport.seen), [1])
    }).pipe(Effect.provide(over(transport)))
  })
})

describe("cheap reads that arrive while the node has requests in flight", () => {
  const start = Effect.fnUntraced(function*(read: Effect.Success<typeof reader>, count: number) {
    const fiber = yield* Effect.forkChild(read(count), { startImmediately: true })
    yield* TestClock.adjust(0)
    return fiber
  })
  const sent = (seen: ReadonlyArray<Scripted.Seen>) => seen.map(({ at }, index) => [at, sizes(seen)[index]])

  it.effect("wait a millisecond for others, so that they go out as one batch", () => {
    const transport = Scripted.make(({ body }) => Scripted.late(10, answers(body)))
    return Effect.gen(function*() {
      const read = yield* reader
      const fibers = [yield* start(read, 2), yield* start(read, 1), yield* start(read, 2)]
      assert.deepStrictEqual(sent(transport.seen), [[0, 2]])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(sent(transport.seen), [[0, 2], [1, 3]])
      yield* TestClock.adjust(10)
      const results = yield* Effect.forEach(fibers, Fiber.join)
      assert.deepStrictEqual(results.map(values), [2, 1, 2].map((count) => [0, 1].slice(0, count).map(expectedOf)))
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("are sent as soon as the batch in flight ends", () => {
    const transport = Scripted.make(({ body }) => Scripted.late(4, answers(body)))
    return Effect.gen(function*() {
      const read = yield* reader
      yield* start(read, 2)
      yield* TestClock.adjust(3.5)
      yield* start(read, 2)
      assert.deepStrictEqual(sent(transport.seen), [[0, 2]])
      yield* TestClock.adjust(0.5)
      assert.deepStrictEqual(sent(transport.seen), [[0, 2], [4, 2]])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("are sent at once when the batch is full", () => {
    const transport = Scripted.make(({ body }) => Scripted.late(10, answers(body)))
    return Effect.gen(function*() {
      const read = yield* reader
      yield* start(read, 2)
      yield* start(read, 60)
      assert.deepStrictEqual(sent(transport.seen), [[0, 2], [0, 50]])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(sent(transport.seen), [[0, 2], [0, 50], [1, 10]])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("are sent at once while only single calls are in flight", () => {
    const transport = Scripted.make(({ body }) => Scripted.late(10, answers(body)))
    return Effect.gen(function*() {
      const read = yield* reader
      yield* start(read, 1)
      yield* start(read, 1)
      assert.deepStrictEqual(sent(transport.seen), [[0, 1], [0, 1]])
    }).pipe(Effect.provide(over(transport)))
  })
})

describe("a late batch", () => {
  const slow = "0000000000000003"

  /** A node that never answers a request with the slow call, nor a batch after the first 20. */
  const node = (isSlow: (request: { readonly body: string; readonly host: string }) => boolean) => {
    let batches = 0
    return Scripted.make(({ body, host }) => {
      const isLate = body.startsWith("[") && ++batches > 20
      return isLate || (batches > 20 && isSlow({ body, host })) ? Scripted.silence : answers(body)
    })
  }

  /** Sends 20 batches, by which the delay is known, and then one of five calls. */
  const late = Effect.fnUntraced(function*(at: AttemptedRead["targets"], delay: Duration.Input = 20) {
    const read = yield* reader
    for (let each = 0; each < 20; each++) yield* read(2, at)
    const fiber = yield* Effect.forkChild(read(5, at), { startImmediately: true })
    yield* TestClock.adjust(delay)
    return fiber
  })

  it.effect("has its calls sent singly after the delay of a hedge: a slow one delays no other", () => {
    const transport = node(({ body }) => body.includes(slow))
    return Effect.gen(function*() {
      const fiber = yield* late(targets, 19)
      assert.deepStrictEqual(sizes(transport.seen).slice(20), [5])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(sizes(transport.seen).slice(20), [5, 1, 1, 1, 1, 1])
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(
        values(yield* Fiber.join(fiber)),
        [0, 1, 2, 3, 4].map((index) => index === 3 ? "UpstreamTimeout" : expectedOf(index))
      )
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("is aborted once each of its calls has a response, and has them sent to another address first", () => {
    const transport = node(({ host }) => host === "a")
    return Effect.gen(function*() {
      const fiber = yield* late(both)
      const [batch] = transport.seen.slice(20)
      assert.isTrue(batch?.isAborted)
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(values(yield* Fiber.join(fiber)), [0, 1, 2, 3, 4].map(expectedOf))
      const last = transport.seen.slice(20)
      assert.deepStrictEqual(last.map(({ host }) => host), ["a", "b", "b", "b", "b", "b"])
      assert.deepStrictEqual(last.map(({ isAborted }) => isAborted), [true, false, false, false, false, false])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("has only as many calls sent as the retry budget permits", () => {
    const transport = node(() => false)
    return Effect.gen(function*() {
      const fiber = yield* late(targets)
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(
        values(yield* Fiber.join(fiber)),
        [0, 1, 2, 3, 4].map((index) => index < 2 ? expectedOf(index) : "UpstreamTimeout")
      )
      assert.deepStrictEqual(sizes(transport.seen).slice(20), [5, 1, 1])
    }).pipe(Effect.provide(over(transport, { retries: { share: 0, floor: 2 } })))
  })

  it.effect("that fails leaves its calls to the requests that were sent for them", () => {
    let batches = 0
    const transport = Scripted.make(({ body }) => {
      if (body.startsWith("[")) return ++batches > 20 ? Scripted.silence : answers(body)
      // after the deadline of the batch, before their own
      return Scripted.late(9990, body.includes(slow) ? Scripted.reset : answers(body))
    })
    return Effect.gen(function*() {
      const fiber = yield* late(targets)
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(
        values(yield* Fiber.join(fiber)),
        [0, 1, 2, 3, 4].map((index) => index === 3 ? "UpstreamTimeout" : expectedOf(index))
      )
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("that is answered first aborts the requests that were sent for its calls", () => {
    let batches = 0
    const transport = Scripted.make(({ body }) => {
      if (body.startsWith("[")) return ++batches > 20 ? Scripted.late(30, answers(body)) : answers(body)
      return Scripted.silence
    })
    return Effect.gen(function*() {
      const fiber = yield* late(targets)
      yield* TestClock.adjust(11)
      assert.deepStrictEqual(values(yield* Fiber.join(fiber)), [0, 1, 2, 3, 4].map(expectedOf))
      assert.deepStrictEqual(
        transport.seen.slice(21).map(({ isAborted }) => isAborted),
        Array.from({ length: 5 }, () => true)
      )
    }).pipe(Effect.provide(over(transport)))
  })
})

describe("a node that accepts smaller batches", () => {
  const refusals: ReadonlyArray<
    readonly [string, (ids: ReadonlyArray<number>) => Scripted.Reaction, ReadonlyArray<number>]
  > = [
    // geth: an error of the first call alone
    ["without its limit", ([first = 0]) => array(failure(first, -32600, "batch too large")), [50, 25, 12]],
    // Erigon
    ["with its limit", (ids) => {
      const message = `batch limit 20 exceeded: ${ids.length} requests given`
      return Scripted.answer(200, failure(null, -32600, message))
    }, [50, 20]],
    // Nethermind: the code of a rate limit
    ["as a limit", () => Scripted.answer(200, failure(null, -32005, "Batch size limit exceeded")), [50, 25, 12]],
    ["by its status", () => Scripted.answer(413, `{"message":"too large"}`), [50, 25, 12]]
  ]
  for (const [how, refusal, expected] of refusals) {
    it.effect(`and refuses larger ones ${how} gets smaller ones for an hour`, () => {
      const transport = Scripted.make(({ body }) => {
        const ids = body.startsWith("[") ? decodeBatch(body).map(({ id }) => id) : []
        return ids.length > 20 ? refusal(ids) : answers(body)
      })
      return Effect.gen(function*() {
        const read = yield* reader
        const largest: Array<number> = []
        for (let round = 0; round < 4; round++) {
          const before = transport.seen.length
          assert.deepStrictEqual(values(yield* read(50)), Array.from({ length: 50 }, (_, index) => expectedOf(index)))
          largest.push(Math.max(...sizes(transport.seen.slice(before))))
        }
        assert.deepStrictEqual(largest, Array.from({ length: 4 }, (_, round) => expected[round] ?? expected.at(-1)))
        // another node may accept larger ones
        yield* TestClock.adjust("1 hour")
        const before = transport.seen.length
        yield* read(50)
        assert.strictEqual(Math.max(...sizes(transport.seen.slice(before))), 50)
      }).pipe(Effect.provide(over(transport)))
    })
  }

  it.effect("gets single calls for a minute if it accepts none, and then batches again", () => {
    const transport = Scripted.make(({ body }) =>
      body.startsWith("[") ? Scripted.answer(200, failure(null, -32600, "no batches")) : answers(body)
    )
    return Effect.gen(function*() {
      const read = yield* reader
      const largest = Effect.fnUntraced(function*() {
        const before = transport.seen.length
        assert.deepStrictEqual(values(yield* read(3)), [0, 1, 2].map(expectedOf))
        return Math.max(...sizes(transport.seen.slice(before)))
      })
      assert.deepStrictEqual([yield* largest(), yield* largest()], [3, 1])
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* largest(), 3)
    }).pipe(Effect.provide(over(transport)))
  })
})
