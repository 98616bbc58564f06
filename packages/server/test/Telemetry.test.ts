import { assert, describe, it } from "@effect/vitest"
import * as Settings from "@trigate/server/settings/SettingsSources"
import { rows } from "@trigate/server/unstable/process/Metrics"
import * as Telemetry from "@trigate/server/unstable/process/Telemetry"
import { gateway, get, post } from "@trigate/testing/Gateway"
import type { Seen } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream, refusingUrl, rpcReply } from "@trigate/testing/RecordingUpstream"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Zlib from "node:zlib"
import { upstreamKeys } from "./liveGateway.ts"
import { ask, caller, callerKey, collectorKey, exporting, gasCall } from "./telemetryProcess.ts"

const Attributes = Schema.Array(Schema.Struct({
  key: Schema.String,
  value: Schema.Struct({ stringValue: Schema.optionalKey(Schema.String) })
}))
const Resource = Schema.Struct({ attributes: Attributes })
const Traces = Schema.fromJsonString(Schema.Struct({
  resourceSpans: Schema.Array(Schema.Struct({
    resource: Resource,
    scopeSpans: Schema.Array(Schema.Struct({
      spans: Schema.Array(Schema.Struct({
        traceId: Schema.String,
        spanId: Schema.String,
        parentSpanId: Schema.optionalKey(Schema.String),
        name: Schema.String,
        kind: Schema.Number
      }))
    }))
  }))
}))
const Metrics = Schema.fromJsonString(Schema.Struct({
  resourceMetrics: Schema.Array(Schema.Struct({
    resource: Resource,
    scopeMetrics: Schema.Array(Schema.Struct({ metrics: Schema.Array(Schema.Struct({ name: Schema.String })) }))
  }))
}))

const collected = (seen: ReadonlyArray<Seen>, path: string) => seen.filter((each) => each.path === path)

const spansIn = (seen: ReadonlyArray<Seen>) =>
  collected(seen, "/v1/traces").flatMap(({ body }) =>
    Schema.decodeSync(Traces)(body).resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
  )

const attributesIn = ({ body }: Seen) =>
  Object.fromEntries(
    Schema.decodeSync(Traces)(body).resourceSpans[0]?.resource.attributes.map(({ key, value }) => [
      key,
      value.stringValue
    ]) ?? []
  )

const metricsIn = (seen: ReadonlyArray<Seen>) =>
  new Set(
    collected(seen, "/v1/metrics").flatMap(({ body }) =>
      Schema.decodeSync(Metrics)(body).resourceMetrics.flatMap(({ scopeMetrics }) =>
        scopeMetrics.flatMap(({ metrics }) => metrics.map(({ name }) => name))
      )
    )
  )

/** As `exporting`, with a gateway in this process: for what the exporters alone decide. */
const exportingHere = Effect.fnUntraced(function*(
  environment: { readonly [name: string]: string },
  run: (url: string) => Effect.Effect<unknown>
) {
  const collector = yield* recordingUpstream(() => ({ body: "{}" }))
  const node = yield* recordingUpstream(rpcReply(`"0x1"`))
  const given = {
    TRIGATE_TRADING_NODE_URL: `${node.url}/KEY`,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    ...environment
  }
  const settings = yield* Effect.provideService(
    Settings.load,
    ConfigProvider.ConfigProvider,
    ConfigProvider.fromUnknown(given)
  )
  yield* Effect.scoped(Effect.flatMap(gateway(given), ({ url }) => run(url))).pipe(
    Effect.provide(Telemetry.layer(settings, Redacted.make(collector.url)))
  )
  return collector
})

describe("a collector", () => {
  it.live("gets the spans of a request below the caller's, and every metric that has a value; neither it nor the log is told a key", () =>
    Effect.gen(function*() {
      const { collector, node, running } = yield* exporting({
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test,team=a%2Cb"
      }, (url) =>
        Effect.all([
          ask(url),
          get(`${url}/api/v2/getMasterchainInfo?api_key=${callerKey}`, { "x-api-key": callerKey }),
          post(`${url}/${callerKey}/info`, `{"type":"spotMeta"}`),
          get(`${url}/${callerKey}/nowhere`)
        ]))
      const spans = spansIn(collector.seen).filter(({ traceId }) => traceId === caller.traceId)
      const told = spans.map(({ kind, name, parentSpanId, traceId }) => ({
        name,
        kind,
        isOfCaller: traceId === caller.traceId,
        parent: parentSpanId === caller.spanId ? "caller" : spans.find(({ spanId }) => spanId === parentSpanId)?.name
      }))
      assert.deepStrictEqual(told, [
        { name: "trading-node#0", kind: 3, isOfCaller: true, parent: "eth_gasPrice" },
        { name: "eth_gasPrice", kind: 1, isOfCaller: true, parent: "node.evm" },
        { name: "node.evm", kind: 2, isOfCaller: true, parent: "caller" }
      ])
      const [traces] = collected(collector.seen, "/v1/traces")
      assert.isDefined(traces)
      if (traces === undefined) return
      assert.strictEqual(traces.headers["authorization"], `Bearer ${collectorKey}`)
      assert.strictEqual(traces.headers["x-tenant"], "one")
      assert.include(attributesIn(traces), {
        "service.name": "trigate",
        "service.version": "0.1.0",
        "deployment.environment": "test",
        team: "a,b"
      })
      const metrics = metricsIn(collector.seen)
      assert.isTrue(metrics.isSubsetOf(new Set(rows.map(({ name }) => name))))
      for (const name of ["trigate_requests_total", "trigate_build_info", "process_cpu_seconds_total"]) {
        assert.isTrue(metrics.has(name), name)
      }
      assert.notProperty(node.seen[0]?.headers, "traceparent")
      const entry = running.lines().find((line) => JSON.stringify(line).includes("node.evm"))
      assert.propertyVal(entry, "traceId", caller.traceId)
      assert.isAtLeast(collector.seen.length, 2)
      const all = [...collector.seen.map(({ body, path }) => `${path} ${body}`), running.printed()].join("\n")
      for (const secret of [callerKey, upstreamKeys.node, collectorKey]) assert.notInclude(all, secret)
    }))

  it.live("is given by the settings that other services have: name, sampler, exporters, compression", () =>
    Effect.gen(function*() {
      const { collector, node } = yield* exporting({
        TRIGATE_TRACE_UPSTREAM: "on",
        OTEL_SERVICE_NAME: "gateway-1",
        OTEL_RESOURCE_ATTRIBUTES: "service.name=other",
        OTEL_METRICS_EXPORTER: "none",
        OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
        OTEL_TRACES_SAMPLER: "parentbased_always_off"
      }, (url) => Effect.all([ask(url), post(`${url}/evm`, gasCall.replace("gasPrice", "blockNumber"))]))
      assert.deepStrictEqual(collector.seen.map(({ path }) => path), ["/v1/traces"])
      const [traces] = collector.seen
      assert.isDefined(traces)
      if (traces === undefined) return
      assert.strictEqual(traces.headers["content-encoding"], "gzip")
      const plain = { ...traces, body: Zlib.gunzipSync(traces.bytes).toString("utf8") }
      assert.strictEqual(attributesIn(plain)["service.name"], "gateway-1")
      const spans = spansIn([plain])
      assert.deepStrictEqual(spans.map(({ traceId }) => traceId), [caller.traceId, caller.traceId, caller.traceId])
      assert.deepStrictEqual(
        node.seen.map(({ headers }) =>
          /^00-[0-9a-f]{32}-[0-9a-f]{16}-(?<flags>..)$/u.exec(headers["traceparent"]?.toString() ?? "")?.groups
            ?.["flags"]
        ),
        ["01", "00"]
      )
      assert.strictEqual(node.seen[0]?.headers["traceparent"], `00-${caller.traceId}-${spans[0]?.spanId}-01`)
    }))

  it.live("gets protobuf unless told otherwise", () =>
    Effect.gen(function*() {
      const collector = yield* exportingHere({}, ask)
      const [traces] = collected(collector.seen, "/v1/traces")
      assert.strictEqual(traces?.headers["content-type"], "application/x-protobuf")
      assert.include(traces?.body, "eth_gasPrice")
    }))

  it.live("gets the share of traces that a sampler takes by their ids", () =>
    Effect.gen(function*() {
      const ids = [
        "00000000000000000000000000000001",
        "fffffffffffffffffff7ffffffffffff",
        "00000000000000000008000000000000"
      ]
      const collector = yield* exportingHere({
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_TRACES_SAMPLER: "traceidratio",
        OTEL_TRACES_SAMPLER_ARG: "0.5"
      }, (url) =>
        Effect.forEach(ids, (id, index) =>
          post(
            `${url}/evm`,
            JSON.stringify({
              jsonrpc: "2.0",
              id: 1,
              method: "eth_getStorageAt",
              params: [`0x${"11".repeat(20)}`, `0x${index}`, "latest"]
            }),
            { traceparent: `00-${id}-${caller.spanId}-01` }
          )))
      assert.deepStrictEqual(spansIn(collector.seen).map(({ traceId }) => traceId), [ids[2], ids[2], ids[2]])
    }))

  it.live("that is away delays nobody, and the log says so once, without its address", () =>
    Effect.gen(function*() {
      const away = yield* refusingUrl
      const { running } = yield* exporting({
        OTEL_EXPORTER_OTLP_ENDPOINT: `${away}/COLLECTOR-KEY`,
        OTEL_BSP_SCHEDULE_DELAY: "1"
      }, (url) => Effect.all([ask(url), ask(url)]))
      const told = running.lines().filter((line) => JSON.stringify(line).includes("collector"))
      assert.strictEqual(told.length, 1)
      assert.include(JSON.stringify(told), "Telemetry is not exported: the collector cannot be reached")
      assert.notInclude(running.printed(), "COLLECTOR-KEY")
      assert.notInclude(running.printed(), away)
    }))
})
