import { assert, describe, it } from "@effect/vitest"
import * as Log from "@trigate/server/unstable/process/Serve"
import { jsonLine } from "@trigate/server/unstable/requests/Observe"
import * as SpanTree from "@trigate/testing/SpanTree"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as TestClock from "effect/testing/TestClock"
import * as Tracer from "effect/Tracer"

/** Everything that an effect logs, in lines of a format. */
const logged = (format: typeof jsonLine, effect: Effect.Effect<unknown>) =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    yield* TestClock.setTime(1_705_234_567_890)
    yield* Effect.provide(effect, Logger.layer([Logger.map(Log.logger(format), (line) => void lines.push(line))]))
    return lines
  })

const request = {
  time: 1_705_234_567_890,
  level: "info",
  message: "request",
  id: "req-1",
  method: "POST",
  route: "exchange.submit",
  status: 200,
  milliseconds: 12,
  operations: ["evmUserModify", "order"],
  error: undefined,
  traceId: undefined
}

describe("a line of the log", () => {
  it.effect("has the members of the access log, then its annotations", () =>
    Effect.gen(function*() {
      const lines = yield* logged(
        jsonLine,
        Effect.andThen(
          Effect.logWarning("Redis is away", { for: "rate-limits" }),
          Effect.annotateLogs(Effect.logError("A fault", Cause.die("broken")), { id: "req-1", time: "mine" })
        )
      )
      assert.deepStrictEqual(lines.map((line): unknown => JSON.parse(line)), [
        { time: 1_705_234_567_890, level: "warn", message: `Redis is away {"for":"rate-limits"}` },
        { time: 1_705_234_567_890, level: "error", message: "A fault", id: "req-1", cause: "Error: broken" }
      ])
      for (const line of lines) assert.match(line, /^\{"time":1705234567890,"level":"\w+","message":"/u)
    }))

  it.effect("names the trace that it belongs to", () => {
    const { spans, tracer } = SpanTree.make()
    return Effect.gen(function*() {
      const [line = ""] = yield* logged(jsonLine, Effect.withSpan(Effect.logInfo("here"), "there"))
      assert.propertyVal(JSON.parse(line), "traceId", spans[0]?.traceId)
    }).pipe(Effect.provideService(Tracer.Tracer, tracer))
  })

  it.effect("is a text for people on a terminal", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        Log.peopleLine(request),
        "12:16:07.890Z INFO  request id=req-1 method=POST route=exchange.submit status=200 milliseconds=12 " +
          "operations=evmUserModify,order"
      )
      assert.strictEqual(
        Log.peopleLine({ ...request, operations: [], error: "a b" }),
        "12:16:07.890Z INFO  request id=req-1 method=POST route=exchange.submit status=200 milliseconds=12 error=\"a b\""
      )
      const lines = yield* logged(
        Log.peopleLine,
        Effect.annotateLogs(Effect.logError("A fault", Cause.fail(new Error("broken"))), { id: "req-1" })
      )
      assert.match(lines[0] ?? "", /^12:16:07.890Z ERROR A fault id=req-1\nError: broken\n {4}at /u)
    }))
})
