/** What a gateway exports that has no collector: nothing, and it loads no exporter. */
import { assert, describe, it } from "@effect/vitest"
import { get } from "@trigate/testing/Gateway"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { ask, exporting } from "./telemetryProcess.ts"

// a bundle is one module, so the program is run as it is
const program = new URL("../../trigate/src/trigate.ts", import.meta.url).pathname

const told = `
  import { registerHooks } from "node:module"
  registerHooks({
    load(url, context, next) {
      if (/Otlp|\\/Telemetry\\.ts$/u.test(url)) console.error("loaded", url.split("/").at(-1))
      return next(url, context)
    }
  })`

/** What a gateway prints until it has ended, with each module of the exporters that it loads. */
const printedWith = Effect.fnUntraced(function*(environment: { readonly [name: string]: string }) {
  const running = yield* gatewayProcess({
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(told)}`,
    ...environment
  }, { program })
  yield* get(`${running.url}/health/live`)
  running.signal("SIGTERM")
  assert.strictEqual(yield* Effect.promise(() => running.ended), 0)
  return running.printed()
})

describe("a collector", () => {
  it.live("costs a gateway nothing that has none: the exporters are not loaded", () =>
    Effect.gen(function*() {
      assert.notInclude(yield* printedWith({}), "loaded")
      const collector = yield* recordingUpstream(() => ({ body: "{}" }))
      const printed = yield* printedWith({ OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/` })
      assert.include(printed, "loaded Telemetry.ts")
      assert.include(printed, "loaded OtlpTracer.js")
    }))

  const without = [
    ["no endpoint is set", { OTEL_EXPORTER_OTLP_ENDPOINT: "" }],
    ["telemetry is off", { OTEL_SDK_DISABLED: "true" }]
  ] as const
  for (const [what, environment] of without) {
    it.live(`gets nothing, and upstreams no traceparent, where ${what}`, () =>
      Effect.gen(function*() {
        const { collector, node, running } = yield* exporting({ ...environment, TRIGATE_TRACE_UPSTREAM: "on" }, ask)
        assert.deepStrictEqual(collector.seen, [])
        assert.strictEqual(node.seen.length, 1)
        assert.notProperty(node.seen[0]?.headers, "traceparent")
        for (const line of running.lines()) assert.notProperty(line, "traceId")
      }))
  }
})
