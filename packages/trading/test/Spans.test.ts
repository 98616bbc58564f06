import { assert, describe, it } from "@effect/vitest"
import type { SignedAction } from "@trigate/domain/actions/Action"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import * as SpanTree from "@trigate/testing/SpanTree"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as Exchange from "@trigate/trading/Exchange"
import * as Info from "@trigate/trading/Info"
import * as TradingEvm from "@trigate/trading/TradingEvm"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import type * as Pipeline from "@trigate/upstream/Pipeline"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import * as TestClock from "effect/testing/TestClock"
import * as Tracer from "effect/Tracer"
import * as admission from "./admission.ts"

const now = 1_705_234_567_890
const minutes = 60_000
const keys = ["FIRST-SECRET-KEY", "SECOND-SECRET-KEY", "NODE-SECRET-KEY"] as const
const addresses = {
  api: [`https://first.test/${keys[0]}`, `https://second.test/${keys[1]}`],
  node: [`https://node.test/${keys[2]}`]
}
const spotMeta = `{"universe":[],"tokens":[]}`
const accepted = ScriptedTransport.response(200, `{"status":"ok","response":{"type":"default"}}`)
const signed: SignedAction = {
  action: { type: "evmUserModify", usingBigBlocks: true },
  nonce: now,
  signature: { r: "0x1", s: "0x2", v: 27 }
}

/** The services of the venue over a script, with a tracer and a log that keep what they get. */
const traced = (react: (sent: ScriptedTransport.Sent) => ScriptedTransport.Reaction, options?: Pipeline.Options) => {
  const spans = SpanTree.make()
  const log: Array<string> = []
  const transport = ScriptedTransport.make(react, options)
  const logger = Logger.layer([Logger.map(Logger.formatJson, (line) => void log.push(line))])
  const services = Layer.mergeAll(
    TradingUpstream.layerInfo(addresses),
    TradingUpstream.layerEvm(addresses),
    TradingUpstream.layerExchange(addresses)
  ).pipe(
    Layer.provide([admission.layer(), ActionLogMemory.layer(), transport.layer]),
    Layer.provideMerge(Layer.merge(logger, Layer.succeed(Tracer.Tracer, spans.tracer)))
  )
  const run = <A, E>(effect: Effect.Effect<A, E, Info.Info | TradingEvm.TradingEvm | Exchange.Exchange>) =>
    Effect.andThen(TestClock.setTime(now), effect).pipe(Effect.provide(services))
  return { ...spans, log, run, sent: transport.sent }
}

const isAtFirst = ({ url }: ScriptedTransport.Sent) => url.startsWith("https://first.test/")

const answering = (sent: ScriptedTransport.Sent) =>
  isAtFirst(sent) ? ScriptedTransport.unreachable : ScriptedTransport.response(200, spotMeta)

const meta = Info.Info.use((info) => info.spotMeta())

const call = "spotMeta [internal, ok] trigate.operation=spotMeta trigate.outcome=ok trigate.upstream=trading-api"

describe("the spans of a read", () => {
  it.effect("are its call and each attempt, also one that failed", () => {
    const { run, tree } = traced(answering)
    return run(Effect.gen(function*() {
      yield* meta
      assert.deepStrictEqual(tree(), [
        "Info.spotMeta [internal, ok]",
        `  ${call}`,
        "    trading-api#0 [client, error] trigate.address=0 trigate.attempt=1 trigate.operation=spotMeta " +
        "trigate.outcome=not_sent trigate.upstream=trading-api",
        "    trading-api#1 [client, ok] http.response.status_code=200 trigate.address=1 trigate.attempt=2 " +
        "trigate.operation=spotMeta trigate.outcome=ok trigate.upstream=trading-api"
      ])
    }))
  })

  it.effect("say that a cached response answered, and that it was refreshed in the background", () => {
    const { run, spans, tree } = traced(() => ScriptedTransport.response(200, spotMeta))
    return run(Effect.gen(function*() {
      yield* meta
      const before = spans.length
      yield* TestClock.adjust(minutes)
      yield* meta
      spans.splice(0, before)
      const hit = "spotMeta [internal, ok] trigate.cache=hit trigate.operation=spotMeta trigate.outcome=ok " +
        "trigate.upstream=trading-api"
      assert.deepStrictEqual(tree(), ["Info.spotMeta [internal, ok]", `  ${hit}`])
      spans.splice(0)
      yield* TestClock.adjust(3.5 * minutes)
      yield* meta
      yield* Effect.yieldNow
      assert.deepStrictEqual(tree(), [
        "Info.spotMeta [internal, ok]",
        `  ${hit}`,
        "    refresh [internal, ok] trigate.cache=refreshed trigate.operation=spotMeta trigate.outcome=ok " +
        "trigate.upstream=trading-api",
        "      trading-api#0 [client, ok] http.response.status_code=200 trigate.address=0 trigate.attempt=1 " +
        "trigate.operation=spotMeta trigate.outcome=ok trigate.upstream=trading-api"
      ])
    }))
  })

  it.effect("say that another call answered", () => {
    const { run, tree } = traced(() => Effect.as(Effect.sleep(1000), ScriptedTransport.response(200, spotMeta)))
    return run(Effect.gen(function*() {
      const calls = yield* Effect.forkChild(Effect.all([meta, meta], { concurrency: 2 }))
      yield* TestClock.adjust(1000)
      yield* Fiber.join(calls)
      assert.deepStrictEqual(tree(), [
        "Info.spotMeta [internal, ok]",
        `  ${call}`,
        "    trading-api#0 [client, ok] http.response.status_code=200 trigate.address=0 trigate.attempt=1 " +
        "trigate.operation=spotMeta trigate.outcome=ok trigate.upstream=trading-api",
        "Info.spotMeta [internal, ok]",
        "  spotMeta [internal, ok] trigate.cache=coalesced trigate.operation=spotMeta trigate.outcome=ok " +
        "trigate.upstream=trading-api"
      ])
    }))
  })
})

describe("the spans of a signed action", () => {
  it.effect("are its call and one attempt at each address until bytes may have left", () => {
    const { run, tree } = traced((sent) => isAtFirst(sent) ? ScriptedTransport.unreachable : accepted)
    return run(Effect.gen(function*() {
      yield* Exchange.Exchange.use((exchange) => exchange.submit(signed))
      assert.deepStrictEqual(tree(), [
        "Exchange.submit [internal, ok]",
        "  evmUserModify [internal, ok] trigate.operation=evmUserModify trigate.outcome=ok trigate.upstream=trading-api",
        "    trading-api#0 [client, error] trigate.address=0 trigate.attempt=1 trigate.operation=evmUserModify " +
        "trigate.outcome=not_sent trigate.upstream=trading-api",
        "    trading-api#1 [client, ok] http.response.status_code=200 trigate.address=1 trigate.attempt=2 " +
        "trigate.operation=evmUserModify trigate.outcome=ok trigate.upstream=trading-api"
      ])
    }))
  })

  it.effect("say that its outcome is unknown", () => {
    const { run, tree } = traced(() => ScriptedTransport.broken)
    return run(Effect.gen(function*() {
      yield* Effect.flip(Exchange.Exchange.use((exchange) => exchange.submit(signed)))
      assert.deepStrictEqual(tree(), [
        "Exchange.submit [internal, error]",
        "  evmUserModify [internal, error] trigate.operation=evmUserModify trigate.outcome=OutcomeUnknown " +
        "trigate.upstream=trading-api",
        "    trading-api#0 [client, error] trigate.address=0 trigate.attempt=1 trigate.operation=evmUserModify " +
        "trigate.outcome=broken trigate.upstream=trading-api"
      ])
    }))
  })
})

describe("an upstream", () => {
  const traceparents = (sent: ReadonlyArray<ScriptedTransport.Sent>) =>
    sent.map(({ headers }) => headers["traceparent"])

  it.effect("gets the traceparent of each attempt, if that is asked for", () => {
    const { run, sent, spans } = traced(answering, { traceUpstream: true })
    return run(Effect.gen(function*() {
      yield* meta
      const attempts = spans.filter(({ kind }) => kind === "client")
      assert.strictEqual(new Set(spans.map(({ traceId }) => traceId)).size, 1)
      assert.deepStrictEqual(traceparents(sent), attempts.map(({ spanId, traceId }) => `00-${traceId}-${spanId}-01`))
      assert.deepStrictEqual(Object.keys(sent[0]?.headers ?? {}), ["accept", "content-type", "traceparent"])
    }))
  })

  it.effect("gets none otherwise", () => {
    const { run, sent, spans } = traced(answering)
    return run(Effect.gen(function*() {
      yield* meta
      assert.strictEqual(spans.length, 4)
      assert.deepStrictEqual(traceparents(sent), [undefined, undefined])
    }))
  })
})

describe("keys of addresses", () => {
  it.effect("are in no span, log line, metric or header, whatever an upstream says or how a call ends", () => {
    const reactions: ReadonlyArray<(sent: ScriptedTransport.Sent) => ScriptedTransport.Reaction> = [
      ({ url }) => ScriptedTransport.response(404, `no route ${url}`),
      ({ url }) => ScriptedTransport.response(502, `{"error":"${url} is away"}`),
      ({ url }) => ScriptedTransport.response(200, `<p>${url}</p>`, { "content-type": "text/html" }),
      () => ScriptedTransport.broken,
      () => ScriptedTransport.unreachable,
      ({ url }) => Effect.die(new Error("a defect", { cause: new URL(url).hostname }))
    ]
    return Effect.forEach(reactions, (react) => {
      const { log, run, sent, spans, text } = traced(react, { traceUpstream: true })
      return run(Effect.gen(function*() {
        yield* Effect.exit(meta)
        yield* Effect.exit(TradingEvm.TradingEvm.use((evm) => evm.gasPrice()))
        const exit = yield* Effect.exit(Exchange.Exchange.use((exchange) => exchange.submit(signed)))
        yield* Effect.logError("An action ended", exit)
        assert.isAtLeast(spans.length, 7)
        assert.isAtLeast(log.length, 1)
        const told = [
          text(),
          ...log,
          yield* PrometheusMetrics.format(),
          JSON.stringify(sent.map(({ headers }) => headers))
        ]
        for (const key of keys) assert.notInclude(told.join("\n"), key)
      }))
    })
  })
})
