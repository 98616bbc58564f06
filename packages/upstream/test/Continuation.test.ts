import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Json"
import { evmOperations } from "@trigate/domain/evm/EvmOperations"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import * as Continuation from "@trigate/domain/operations/Continuation"
import type { RpcAnswer } from "@trigate/domain/operations/JsonRpc"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as Upstream from "@trigate/upstream/Upstream"
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
    Pipeline.layerNoDeps().pipe(
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
  (answer: RpcAnswer) => answer._tag === "Result" ? answer.result.text : answer.message
)

/** Runs an effect by plain calls; what is left of it, and how it is cancelled. */
const called = <A, E>(self: Effect.Effect<A, E>) =>
  Effect.map(Effect.context(), (context) => {
    const left: Array<Effect.Effect<A, E>> = []
    const cancel = Continuation.run(self, context, (rest) => left.push(rest))
    return { left, cancel }
  })

describe("a read that plain calls run", () => {
  it.effect("needs no fiber where nothing has to wait", () =>
    Effect.gen(function*() {
      const { read, script } = yield* reading(({ body }) => Scripted.late(5, word(body)))
      const { cancel, left } = yield* called(read(call("0x0")))
      assert.deepStrictEqual([script.seen.length, left.length], [1, 0])
      yield* TestClock.adjust(5)
      assert.deepStrictEqual(left.map(Exit.isExit), [true])
      assert.strictEqual(yield* resultOf(left[0] ?? Effect.never), "\"0x1\"")
      cancel()
      assert.isFalse(script.seen[0]?.isAborted)
    }))

  it.effect("needs none for the first of two addresses either", () =>
    Effect.gen(function*() {
      const { read, script } = yield* reading(({ body }) => word(body), { hosts: ["a", "b"] })
      const { left } = yield* called(read(call("0x0")))
      yield* TestClock.adjust(1)
      assert.deepStrictEqual([left.map(Exit.isExit), script.hosts()], [[true], ["a"]])
    }))

  it.effect("goes on in a fiber from where it is, once it has to wait", () =>
    Effect.gen(function*() {
      const { read, script } = yield* reading(({ body, nth }) => nth === 0 ? Scripted.answer(503, "{}") : word(body))
      const { left } = yield* called(read(call("0x0")))
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(left.map(Exit.isExit), [false])
      const fiber = yield* Effect.forkChild(resultOf(left[0] ?? Effect.never))
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* Fiber.join(fiber), "\"0x1\"")
      assert.deepStrictEqual(script.seen.map(({ body }) => idOf(body)), ["1", "1"])
    }))

  it.effect("is aborted when it is cancelled, and one of those that wait for it asks", () =>
    Effect.gen(function*() {
      const { read, script } = yield* reading(({ body }) => Scripted.late(50, word(body)))
      const { cancel, left } = yield* called(read(call("0x0")))
      const second = yield* Effect.forkChild(resultOf(read(call("0x0"))), { startImmediately: true })
      yield* TestClock.adjust(20)
      cancel()
      yield* TestClock.adjust(50)
      assert.strictEqual(yield* Fiber.join(second), "\"0x1\"")
      assert.deepStrictEqual(script.seen.map(({ at, isAborted }) => [at, isAborted]), [[0, true], [20, false]])
      assert.lengthOf(left, 0)
    }))

  it.effect("waits in a fiber for the rate limit", () =>
    Effect.gen(function*() {
      const { read, script } = yield* reading(({ body }) => word(body), { limit: 1 })
      yield* called(read(call("0x0")))
      yield* TestClock.adjust(1)
      const { left } = yield* called(read(call("0x1")))
      assert.deepStrictEqual(left.map(Exit.isExit), [false])
      const fiber = yield* Effect.forkChild(resultOf(left[0] ?? Effect.never))
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* Fiber.join(fiber), "\"0x1\"")
      assert.lengthOf(script.seen, 2)
      assert.isAbove(yield* Clock.currentTimeMillis, 1000)
    }))
})

describe("a read that a fiber runs", () => {
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

/** A resource whose release is counted, and an effect that uses it. */
const resource = <A, E>(use: Effect.Effect<A, E>, acquire: Effect.Effect<string> = Effect.succeed("it")) => {
  const released: Array<string> = []
  const step = Continuation.withContext(() => acquire)
  return {
    released,
    used: Continuation.acquireUseRelease(step, () => use, (of) =>
      Continuation.withContext(() => {
        released.push(of)
        return Exit.void
      }))
  }
}

const waiting = () => {
  const resumes: Array<(next: Effect.Effect<string>) => void> = []
  const aborts: Array<string> = []
  let isOver = false
  const effect = Continuation.callback<string>((resume) => {
    resumes.push(resume)
    return () => {
      if (!isOver) aborts.push("aborted")
    }
  })
  const resume = (value: string) => {
    isOver = true
    resumes[0]?.(Exit.succeed(value))
  }
  return { effect, aborts, resume }
}

const never = Effect.callback<string>(() => {})

describe("a resource that plain calls use", () => {
  it.effect("is released once, whether its use succeeds, fails or throws", () =>
    Effect.gen(function*() {
      const uses: ReadonlyArray<Effect.Effect<string, string>> = [
        Exit.succeed("done"),
        Exit.fail("no"),
        Continuation.withContext((): Effect.Effect<string> => {
          throw new Error("defect")
        })
      ]
      const found = []
      for (const use of uses) {
        const { released, used } = resource(use)
        const { left } = yield* called(used)
        found.push([left.map((rest) => Exit.isExit(rest) && Exit.isSuccess(rest)), released])
      }
      assert.deepStrictEqual(found, [[[true], ["it"]], [[false], ["it"]], [[false], ["it"]]])
    }))

  it.effect("is released when its use is cancelled while it waits", () =>
    Effect.gen(function*() {
      const { aborts, effect } = waiting()
      const { released, used } = resource(effect)
      const { cancel, left } = yield* called(used)
      assert.deepStrictEqual([left.length, released], [0, []])
      cancel()
      assert.deepStrictEqual([aborts, released], [["aborted"], ["it"]])
    }))

  it.effect("is released once by the fiber that runs the rest, also if that is interrupted or never starts", () =>
    Effect.gen(function*() {
      const ended = resource(Effect.sleep(1))
      const [rest = Effect.void] = (yield* called(ended.used)).left
      const fiber = yield* Effect.forkChild(rest, { startImmediately: true })
      assert.deepStrictEqual(ended.released, [])
      yield* TestClock.adjust(1)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(ended.released, ["it"])

      const interrupted = resource(never)
      const { cancel, left: [other = Effect.void] } = yield* called(interrupted.used)
      yield* Fiber.interrupt(yield* Effect.forkChild(other, { startImmediately: true }))
      cancel()
      assert.deepStrictEqual(interrupted.released, ["it"])

      const unstarted = resource(never)
      const run = yield* called(unstarted.used)
      assert.deepStrictEqual([run.left.length, unstarted.released], [1, []])
      run.cancel()
      assert.deepStrictEqual(unstarted.released, ["it"])
    }))

  it.effect("that a fiber has to acquire is used and released by that fiber", () =>
    Effect.gen(function*() {
      const { released, used } = resource(Exit.succeed("done"), Effect.as(Effect.sleep(1), "late"))
      const { left: [rest = Effect.succeed("")] } = yield* called(used)
      const fiber = yield* Effect.forkChild(rest, { startImmediately: true })
      yield* TestClock.adjust(1)
      assert.deepStrictEqual([yield* Fiber.join(fiber), released], ["done", ["late"]])
    }))
})

describe("a detached effect", () => {
  it.effect("ends although the run that waits for it is cancelled", () =>
    Effect.gen(function*() {
      const { aborts, effect, resume } = waiting()
      const ends: Array<string> = []
      const noted = Continuation.map(effect, (value) => void ends.push(value))
      const { cancel, left } = yield* called(Continuation.detached(noted))
      cancel()
      resume("done")
      assert.deepStrictEqual([left, aborts, ends], [[], [], ["done"]])
    }))

  it.effect("ends although the fiber that waits for it is interrupted, also where a fiber runs it", () =>
    Effect.gen(function*() {
      const ends: Array<string> = []
      const slow = Effect.andThen(Effect.sleep(1), Effect.sync(() => ends.push("done")))
      const fiber = yield* Effect.forkChild(Continuation.detached(slow), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(ends, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(ends, ["done"])
    }))

  it.effect("gives its result to the run that waits for it", () =>
    Effect.gen(function*() {
      const at = yield* called(Continuation.detached(Effect.succeed("at once")))
      const { effect, resume } = waiting()
      const later = yield* called(Continuation.detached(effect))
      assert.deepStrictEqual(later.left, [])
      resume("later")
      assert.deepStrictEqual([at.left, later.left], [[Exit.succeed("at once")], [Exit.succeed("later")]])
    }))
})
