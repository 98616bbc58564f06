/** Gateway processes that export telemetry. */
import { assert } from "@effect/vitest"
import { post } from "@trigate/testing/Gateway"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import { recordingUpstream, rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { upstreamKeys } from "./liveGateway.ts"

export const gasCall = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`
export const caller = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" }
export const callerKey = "caller-key-9d01be"
export const collectorKey = "collector-secret-31cc"

/** A gateway process that exports to a collector, and a node behind it; `run` asks it, and then it ends. */
export const exporting = Effect.fnUntraced(function*(
  environment: { readonly [name: string]: string },
  run: (url: string) => Effect.Effect<unknown>
) {
  const collector = yield* recordingUpstream(() => ({ body: "{}" }))
  const node = yield* recordingUpstream(rpcReply(`"0x1"`))
  const running = yield* gatewayProcess({
    TRIGATE_TRADING_NODE_URL: `${node.url}/${upstreamKeys.node}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${collectorKey},x-tenant=one`,
    ...environment
  })
  yield* run(running.url)
  running.signal("SIGTERM")
  assert.strictEqual(yield* Effect.promise(() => running.ended), 0)
  return { collector, node, running }
})

export const ask = (url: string) =>
  post(`${url}/${callerKey}/evm`, gasCall, {
    "x-request-id": "req-1",
    traceparent: `00-${caller.traceId}-${caller.spanId}-01`
  })
