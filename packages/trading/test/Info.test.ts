import { assert, describe, it } from "@effect/vitest"
import { CandleInterval } from "@trigate/domain/candles/Candle"
import * as Json from "@trigate/domain/encoding/Encoding"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import type { InfoCall } from "@trigate/domain/info/InfoOperations"
import * as SpotLookup from "@trigate/domain/info/Market"
import { flipReason } from "@trigate/testing/Reason"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import * as Info from "@trigate/trading/Info"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import spotMeta from "../../domain/test/fixtures/spotMeta-testnet-full.json" with { type: "json" }
import kpepe from "./fixtures/candleSnapshot-kPEPE-1h.json" with { type: "json" }

const api = "https://api.test"
const node = "https://node.test/KEY"
const both = { api: [api], node: [node] }
const hour = 3_600_000

const json = { accept: "application/json", "content-type": "application/json" }

const over = (transport: ReturnType<typeof ScriptedTransport.make>, addresses: TradingUpstream.Addresses = both) =>
  TradingUpstream.layerInfo(addresses).pipe(Layer.provide(transport.layer))
const answering = (status: number, body: string, type = "application/json") =>
  ScriptedTransport.make(() => ScriptedTransport.response(status, body, { "content-type": type }))
const info = Info.Info
const meta = info.use((service) => service.spotMeta())
const window = { coin: "kPEPE", interval: "1h", startTime: 1_684_702_007_000, endTime: 1_684_784_807_000 } as const
const snapshot = info.use((service) => service.candleSnapshot(window))

const metaCall = (surface: "gateway" | "node", body = "{\"type\":\"spotMeta\"}"): InfoCall => ({
  operation: infoOperations.spotMeta,
  request: undefined,
  body: Json.of(body),
  surface
})
const candleCall = (surface: "gateway" | "node", body: string): InfoCall => ({
  operation: infoOperations.candleSnapshot,
  request: window,
  body: Json.of(body),
  surface
})
const relay = (call: InfoCall) => info.use((service) => service.relay(call))

describe("cached responses", () => {
  it.effect("of one node's network are not given to a gateway of another's", () => {
    const transport = ScriptedTransport.make(({ url }) =>
      ScriptedTransport.response(200, JSON.stringify({ ...spotMeta, from: url }))
    )
    const testnet = "https://testnet.test/KEY"
    return Effect.gen(function*() {
      // one process here; what replicas keep in Redis has the same keys
      const shared = Layer.succeedContext(yield* Layer.build(transport.layer))
      const ask = (address: string) =>
        Effect.provide(
          relay(metaCall("gateway")),
          Layer.provide(TradingUpstream.layerInfo({ node: [address] }), shared)
        )
      yield* ask(node)
      yield* ask(testnet)
      yield* ask(node)
      assert.deepStrictEqual(transport.sent.map(({ url }) => url), [`${node}/info`, `${testnet}/info`])
    })
  })
})

describe("spotMeta", () => {
  it.effect("reads the recorded respond from the venue's API", () => {
    const transport = answering(200, JSON.stringify(spotMeta))
    return Effect.gen(function*() {
      const read = yield* meta
      assert.deepStrictEqual<unknown>(read, spotMeta)
      assert.strictEqual(Option.getOrThrow(SpotLookup.make(read).token(1105)).name, "HYPE")
      assert.deepStrictEqual(transport.sent, [{
        method: "POST",
        url: `${api}/info`,
        headers: json,
        body: "{\"type\":\"spotMeta\"}"
      }])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("falls back to the node when the venue's API cannot be reached, faults or is full", () =>
    Effect.forEach(
      [
        ScriptedTransport.unreachable,
        ScriptedTransport.broken,
        ScriptedTransport.response(503, "null"),
        ScriptedTransport.response(429, "null")
      ],
      (reaction) => {
        const transport = ScriptedTransport.make(({ url }) =>
          url.startsWith(api) ? reaction : ScriptedTransport.response(200, "{\"universe\":[],\"tokens\":[]}")
        )
        return Effect.gen(function*() {
          assert.deepStrictEqual(yield* meta, { universe: [], tokens: [] })
          assert.deepStrictEqual(transport.sent.map(({ url }) => url), [`${api}/info`, `${node}/info`])
        }).pipe(Effect.provide(over(transport)))
      }
    ))

  it.effect("is served by the node alone on the node surface, and by the node where there is no other", () => {
    const transport = answering(200, "{ }")
    return Effect.gen(function*() {
      yield* relay(metaCall("node")).pipe(Effect.provide(over(transport)))
      yield* relay(metaCall("gateway")).pipe(Effect.provide(over(transport, { node: [node] })))
      assert.deepStrictEqual(transport.sent.map(({ url }) => url), [`${node}/info`, `${node}/info`])
    })
  })

  it.effect("relays body and respond as they are", () => {
    const transport = answering(200, "{ \"universe\": [] ,\"x\":18446744073709551616}")
    return Effect.gen(function*() {
      const body = "{\n  \"type\" : \"spotMeta\" , \"more\": 1.50}"
      const respond = yield* relay(metaCall("gateway", body))
      assert.strictEqual(transport.sent[0]?.body, body)
      assert.strictEqual(respond.text, "{ \"universe\": [] ,\"x\":18446744073709551616}")
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("fails with typed errors", () =>
    Effect.forEach(
      [
        [ScriptedTransport.response(200, "{\"universe\":[]}"), "UpstreamMalformed"],
        [ScriptedTransport.response(200, "<html>", { "content-type": "text/html" }), "UpstreamMalformed"],
        [ScriptedTransport.response(422, "Failed to deserialize", { "content-type": "text/plain" }), "InvalidRequest"],
        [ScriptedTransport.response(429, ""), "UpstreamRateLimited"],
        [ScriptedTransport.response(500, "null"), "UpstreamUnavailable"],
        [ScriptedTransport.unreachable, "UpstreamUnavailable"]
      ] as const,
      ([reaction, tag]) =>
        Effect.gen(function*() {
          assert.strictEqual((yield* flipReason(meta))._tag, tag)
        }).pipe(Effect.provide(over(ScriptedTransport.make(() => reaction))))
    ))

  it.effect("is not configured where nothing is", () => {
    const transport = answering(200, "{}")
    return Effect.gen(function*() {
      assert.strictEqual((yield* flipReason(meta))._tag, "ChainNotConfigured")
      assert.deepStrictEqual(transport.sent, [])
    }).pipe(Effect.provide(over(transport, {})))
  })
})

describe("candleSnapshot", () => {
  it.effect("reads the recorded window and tells what it holds", () => {
    const transport = answering(200, JSON.stringify(kpepe.response))
    return Effect.gen(function*() {
      yield* TestClock.setTime(window.endTime)
      const { candles, coverage, forming } = yield* snapshot
      assert.deepStrictEqual<unknown>(candles, kpepe.response)
      assert.strictEqual(coverage, "complete")
      assert.strictEqual(forming?.t, 1_684_782_000_000)
      assert.deepStrictEqual(transport.sent, [{
        method: "POST",
        url: `${api}/info`,
        headers: json,
        body: JSON.stringify(kpepe.request)
      }])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("an empty respond has aged out when the clock says so", () => {
    const transport = answering(200, "[]")
    return Effect.gen(function*() {
      yield* TestClock.setTime(window.endTime + 5001 * hour)
      assert.deepStrictEqual(yield* snapshot, { candles: [], coverage: "agedOut", forming: undefined })
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("HTTP 500 null is an unknown coin, from the relay as well, and costs one request", () => {
    const transport = answering(500, "null")
    return Effect.gen(function*() {
      for (const call of [Effect.asVoid(snapshot), Effect.asVoid(relay(candleCall("gateway", "{}")))]) {
        const error = yield* flipReason(call)
        assert.strictEqual(error._tag, "UnknownAsset")
        if (error._tag === "UnknownAsset") assert.strictEqual(error.coin, "kPEPE")
      }
      assert.strictEqual(transport.sent.length, 2)
    }).pipe(Effect.provide(over(transport, { api: [api, "https://second.test"] })))
  })

  it.effect("the relay gives every other respond as it is", () =>
    Effect.forEach([[422, "Failed to deserialize"], [200, "[]"], [429, "null"], [400, "bad"], [500, "[]"]] as const, (
      [status, text]
    ) =>
      Effect.gen(function*() {
        const respond = yield* relay(candleCall("gateway", "{}"))
        assert.deepStrictEqual([respond.status, respond.text], [status, text])
      }).pipe(Effect.provide(over(answering(status, text, "text/plain"))))))

  it.effect("spotMeta answered 500 null is a server fault, not an unknown coin", () =>
    Effect.gen(function*() {
      const respond = yield* relay(metaCall("gateway"))
      assert.strictEqual(respond.status, 500)
    }).pipe(Effect.provide(over(answering(500, "null"), { api: [api] }))))

  it.effect("no node serves it: neither on the node surface nor where only a node is configured", () => {
    const transport = answering(200, "[]")
    return Effect.gen(function*() {
      const keyed = yield* flipReason(relay(candleCall("node", "{}"))).pipe(Effect.provide(over(transport)))
      const alone = yield* flipReason(snapshot).pipe(Effect.provide(over(transport, { node: [node] })))
      const keyedWithoutNode = yield* flipReason(relay(candleCall("node", "{}"))).pipe(
        Effect.provide(over(transport, { api: [api] }))
      )
      for (const error of [keyed, alone, keyedWithoutNode]) {
        assert.strictEqual(error._tag, "UnavailableOnNode")
        if (error._tag === "UnavailableOnNode") {
          assert.deepStrictEqual([error.operation, error.availableOn], ["candleSnapshot", ["official-api"]])
        }
      }
      assert.deepStrictEqual(transport.sent, [])
    })
  })

  it.effect("a request outside its ranges is refused here", () => {
    const transport = answering(200, "[]")
    return Effect.gen(function*() {
      const error = yield* flipReason(info.use((service) => service.candleSnapshot({ ...window, startTime: -1 })))
      assert.strictEqual(error._tag, "InvalidRequest")
      assert.deepStrictEqual(transport.sent, [])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("all 14 intervals are sent as they are spelled", () => {
    const transport = answering(200, "[]")
    return Effect.gen(function*() {
      const service = yield* info
      for (const interval of CandleInterval.literals) yield* service.candleSnapshot({ ...window, interval })
      assert.deepStrictEqual(
        transport.sent.map(({ body }) => /"interval":"(?<i>\w+)"/u.exec(body)?.groups?.["i"]),
        [...CandleInterval.literals]
      )
    }).pipe(Effect.provide(over(transport)))
  })
})

describe("in memory", () => {
  const bar = (t: number) => ({
    t,
    T: t + hour - 1,
    s: "BTC",
    i: "1h" as const,
    o: "1.0",
    c: "1.0",
    h: "1.0",
    l: "1.0",
    v: "0.0",
    n: 0
  })

  it.effect("answers what was set, as the venue would", () =>
    Effect.gen(function*() {
      const service = yield* info
      const state = yield* Info.InfoState
      const unset = yield* flipReason(service.spotMeta())
      assert.strictEqual(unset._tag, "InvalidRequest")
      assert.include(unset.message, "no response to spotMeta was set with InfoState.respond")
      const listed = { universe: [{ name: "@1", tokens: [2, 0], index: 1, isCanonical: false }], tokens: [] } as const
      yield* state.respond(infoOperations.spotMeta, () => Effect.succeed(listed))
      assert.strictEqual((yield* service.spotMeta()).universe[0]?.name, "@1")

      const unknown = yield* flipReason(service.candleSnapshot({ ...window, coin: "BTC" }))
      assert.strictEqual(unknown._tag, "UnknownAsset")
      yield* TestClock.setTime(6000.5 * hour)
      const minute = { ...bar(6000 * hour), i: "1m" as const }
      yield* Ref.set(
        state.candles,
        new Map([["BTC", [minute, ...Array.from({ length: 6002 }, (_, i) => bar((6001 - i) * hour))]]])
      )
      const read = yield* service.candleSnapshot({ coin: "BTC", interval: "1h", startTime: 0 })
      assert.strictEqual(read.candles.length, 5000)
      assert.strictEqual(read.candles[0]?.t, 1001 * hour)
      assert.strictEqual(read.coverage, "truncated")
      assert.strictEqual(read.forming?.t, 6000 * hour)
      const exact = yield* service.candleSnapshot({
        coin: "BTC",
        interval: "1h",
        startTime: 2001 * hour - 1,
        endTime: 2002 * hour
      })
      assert.deepStrictEqual(exact.candles.map(({ t }) => t / hour), [2000, 2001, 2002])
      const walked = yield* Stream.runCollect(
        service.candles({ coin: "BTC", interval: "1h", startTime: 2000 * hour }, { barsPerStretch: 1500 })
      )
      assert.deepStrictEqual(walked.map(({ candles }) => candles.length), [1500, 1500, 1001])
    }).pipe(Effect.provide(Info.layerMemory())))

  it.effect("has no candles on the node surface", () =>
    Effect.gen(function*() {
      const error = yield* flipReason(relay(candleCall("node", "{}")))
      assert.strictEqual(error._tag, "UnavailableOnNode")
      const { respond } = yield* Info.InfoState
      yield* respond(infoOperations.spotMeta, () => Effect.succeed({ universe: [], tokens: [] }))
      assert.strictEqual((yield* relay(metaCall("node"))).status, 200)
    }).pipe(Effect.provide(Info.layerMemory())))
})

class Second extends Context.Service<Second, Info.Info["Service"]>()("@trigate/trading/test/SecondInfo") {}

describe("two of a kind in one program", () => {
  it.effect("ask their own addresses", () => {
    const transport = ScriptedTransport.make(({ url }) =>
      ScriptedTransport.response(200, JSON.stringify({ universe: [], tokens: [], from: url }))
    )
    const second = Layer.effect(Second, info).pipe(Layer.provide(over(transport, { api: ["https://two.test"] })))
    return Effect.gen(function*() {
      assert.strictEqual((yield* meta)["from"], "https://one.test/info")
      assert.strictEqual((yield* Second.use((service) => service.spotMeta()))["from"], "https://two.test/info")
    }).pipe(Effect.provide(Layer.merge(over(transport, { api: ["https://one.test"] }), second)))
  })

  it.effect("in memory have their own state", () => {
    const second = Layer.effect(Second, info).pipe(Layer.provide(Info.layerMemory()))
    return Effect.gen(function*() {
      const { respond } = yield* Info.InfoState
      yield* respond(infoOperations.spotMeta, () => Effect.succeed({ universe: [], tokens: [], mine: true }))
      assert.isTrue((yield* meta)["mine"])
      assert.strictEqual((yield* flipReason(Second.use((service) => service.spotMeta())))._tag, "InvalidRequest")
    }).pipe(Effect.provide(Layer.merge(Info.layerMemory(), second)))
  })
})

describe("the addresses of the configuration", () => {
  it.effect("are of both kinds", () => {
    const transport = ScriptedTransport.make(({ url }) =>
      url.startsWith(node)
        ? ScriptedTransport.response(200, "{\"universe\":[],\"tokens\":[]}")
        : ScriptedTransport.unreachable
    )
    const environment = { TRIGATE_TRADING_API_URL: api, TRIGATE_TRADING_NODE_URL: `${node}/` }
    return Effect.gen(function*() {
      yield* meta
      assert.deepStrictEqual(transport.sent.map(({ url }) => url), [`${api}/info`, `${node}/info`])
    }).pipe(
      Effect.provide(
        Layer.unwrap(Effect.map(TradingUpstream.config, TradingUpstream.layerInfo)).pipe(
          Layer.provide([transport.layer, ConfigProvider.layer(ConfigProvider.fromUnknown(environment))])
        )
      )
    )
  })
})
