import { assert, describe, it } from "@effect/vitest"
import { gateway, get, post } from "@trigate/testing/Gateway"
import { recordingUpstream, rpcReply } from "@trigate/testing/RecordingUpstream"
import * as SpanTree from "@trigate/testing/SpanTree"
import * as Effect from "effect/Effect"
import * as Tracer from "effect/Tracer"

const gasCall = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_gasPrice\",\"params\":[]}"
const caller = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" }
const id = { "x-request-id": "req-1" }

describe("the spans of a gateway", () => {
  it.live("are below the caller's, one for the request, its call and its attempt", () => {
    const { spans, tracer, tree } = SpanTree.make()
    return Effect.gen(function*() {
      const node = yield* recordingUpstream(rpcReply("\"0x1\""))
      const { url } = yield* gateway({ TRIGATE_TRADING_NODE_URL: `${node.url}/KEY` })
      yield* post(`${url}/evm`, gasCall, { ...id, traceparent: `00-${caller.traceId}-${caller.spanId}-01` })
      assert.deepStrictEqual(tree(caller.spanId), [
        "evm.rpc [server, ok] http.request.method=POST http.response.status_code=200 http.route=/evm " +
        "trigate.request_id=req-1",
        "  eth_gasPrice [internal, ok] trigate.operation=eth_gasPrice trigate.outcome=ok trigate.upstream=trading-node",
        "    trading-node#0 [client, ok] http.response.status_code=200 trigate.address=0 trigate.attempt=1 " +
        "trigate.operation=eth_gasPrice trigate.outcome=ok trigate.upstream=trading-node"
      ])
      for (const span of spans) assert.strictEqual(span.traceId, caller.traceId)
      assert.notProperty(node.seen[0]?.headers, "traceparent")
    }).pipe(Effect.scoped, Effect.provideService(Tracer.Tracer, tracer))
  })

  it.live("are below the caller's in each form of its headers", () => {
    const { tracer, tree } = SpanTree.make()
    return Effect.gen(function*() {
      const node = yield* recordingUpstream(rpcReply("\"0x1\""))
      const { url } = yield* gateway({ TRIGATE_TRADING_NODE_URL: `${node.url}/KEY` })
      for (
        const headers of [
          { b3: `${caller.traceId}-${caller.spanId}-1` },
          { "x-b3-traceid": caller.traceId, "x-b3-spanid": caller.spanId, "x-b3-sampled": "1" }
        ]
      ) yield* post(`${url}/evm`, gasCall, headers)
      assert.lengthOf(tree(caller.spanId).filter((line) => line.startsWith("evm.rpc ")), 2)
    }).pipe(Effect.scoped, Effect.provideService(Tracer.Tracer, tracer))
  })

  it.live("are sampled as the caller's is: one that is not has the span of the request alone", () => {
    const { spans, tracer } = SpanTree.make()
    return Effect.gen(function*() {
      const node = yield* recordingUpstream(rpcReply("\"0x1\""))
      const { url } = yield* gateway({
        TRIGATE_TRADING_NODE_URL: `${node.url}/KEY`,
        TRIGATE_TRACE_UPSTREAM: "on"
      })
      yield* post(`${url}/evm`, gasCall, { traceparent: `00-${caller.traceId}-${caller.spanId}-00` })
      assert.deepStrictEqual(spans.map(({ sampled }) => sampled), [false])
      assert.deepStrictEqual(
        node.seen.map(({ headers }) => headers["traceparent"]),
        [`00-${caller.traceId}-${spans[0]?.spanId}-00`]
      )
    }).pipe(Effect.scoped, Effect.provideService(Tracer.Tracer, tracer))
  })

  it.live("name the error of a request, and fail where the gateway or an upstream does", () => {
    const { tracer, tree } = SpanTree.make()
    return Effect.gen(function*() {
      const api = yield* recordingUpstream(() => ({ status: 404, body: "{}" }))
      const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: api.url })
      yield* post(`${url}/info`, "[]", id)
      yield* post(`${url}/exchange`, "{}", id)
      yield* get(`${url}/api/v2/getMasterchainInfo`, id)
      const request = "http.response.status_code"
      assert.deepStrictEqual(tree(), [
        `info.query [server, ok] error.type=InvalidRequest http.request.method=POST ${request}=400 http.route=/info ` +
        "trigate.request_id=req-1",
        `exchange.submit [server, ok] error.type=InvalidRequest http.request.method=POST ${request}=400 ` +
        "http.route=/exchange trigate.request_id=req-1",
        `tokens.rest [server, error] error.type=ChainNotConfigured http.request.method=GET ${request}=501 ` +
        "http.route=/api/v2/getMasterchainInfo trigate.request_id=req-1"
      ])
    }).pipe(Effect.scoped, Effect.provideService(Tracer.Tracer, tracer))
  })

  it.live("end when the caller leaves", () => {
    const { spans, tracer, tree } = SpanTree.make()
    return Effect.gen(function*() {
      const node = yield* recordingUpstream(() => "silence")
      const { url } = yield* gateway({ TRIGATE_TRADING_NODE_URL: `${node.url}/KEY` })
      const left = new AbortController()
      const call = fetch(`${url}/evm`, {
        method: "POST",
        body: gasCall,
        headers: { "content-type": "application/json" },
        signal: left.signal
      }).catch(() => undefined)
      const alive = get(`${url}/health/live`)
      yield* Effect.repeat(alive, { until: () => node.seen.length === 1 })
      left.abort()
      yield* Effect.promise(() => call)
      yield* Effect.repeat(alive, { until: () => spans.every(({ status }) => status._tag === "Ended") })
      assert.deepStrictEqual(tree(), [
        "evm.rpc [server, interrupted] http.request.method=POST http.route=/evm",
        "  eth_gasPrice [internal, interrupted] trigate.operation=eth_gasPrice trigate.outcome=abandoned " +
        "trigate.upstream=trading-node",
        "    trading-node#0 [client, interrupted] trigate.address=0 trigate.attempt=1 trigate.operation=eth_gasPrice " +
        "trigate.outcome=abandoned trigate.upstream=trading-node"
      ])
    }).pipe(Effect.scoped, Effect.provideService(Tracer.Tracer, tracer))
  })

  it.live("hold neither an upstream's key nor a caller's", () => {
    const { spans, text, tracer } = SpanTree.make()
    return Effect.gen(function*() {
      const upstream = yield* recordingUpstream(rpcReply("\"0x1\""))
      const { url } = yield* gateway({ TRIGATE_TRADING_NODE_URL: `${upstream.url}/UPSTREAM-SECRET` })
      const keyed = yield* post(`${url}/CALLER-SECRET/evm`, gasCall)
      assert.strictEqual(keyed.status, 200)
      const plain = yield* post(`${url}/evm`, gasCall)
      assert.strictEqual(plain.status, 200)
      yield* get(`${url}/CALLER-SECRET/nowhere`)
      yield* get(`${url}/api/v2/getMasterchainInfo?api_key=CALLER-SECRET`)
      yield* get(`${url}/api/v2/getMasterchainInfo?api%5Fkey=CALLER-SECRET`)
      yield* get(`${url}/api/v2/getMasterchainInfo`, { "x-api-key": "CALLER-SECRET" })
      const requests = spans.filter(({ kind }) => kind === "server").map(({ name }) => name)
      assert.deepStrictEqual(requests, ["node.evm", "evm.rpc", "tokens.rest", "tokens.rest", "tokens.rest"])
      assert.include(text(), "http.route=/:endpointKey/evm")
      assert.notInclude(text(), "CALLER-SECRET")
      assert.notInclude(text(), "UPSTREAM-SECRET")
    }).pipe(Effect.scoped, Effect.provideService(Tracer.Tracer, tracer))
  })

  it.live("are not made for probes, scrapes, and requests that no route takes", () => {
    const { spans, tracer } = SpanTree.make()
    return Effect.gen(function*() {
      const { url } = yield* gateway({})
      for (const path of ["/health/live", "/health/ready", "/metrics", "/nowhere", "/docs"]) yield* get(`${url}${path}`)
      assert.deepStrictEqual(spans, [])
    }).pipe(Effect.scoped, Effect.provideService(Tracer.Tracer, tracer))
  })
})
