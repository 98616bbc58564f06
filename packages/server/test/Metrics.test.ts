import { assert, describe, it } from "@effect/vitest"
import { rows } from "@trigate/server/unstable/process/Metrics"
import { get, post } from "@trigate/testing/Gateway"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import { recordingUpstream, rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { oncePerFile } from "./oncePerFile.ts"

const gasCall = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`

/** The declared metrics of a text, `name kind`, in order. */
const typesIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/^# TYPE (?<type>\S+ \S+)$/gmu)].map((match) => match.groups?.["type"] ?? "").toSorted()

/** The name of a series, without what a histogram adds to it, and its labels in order. */
const seriesIn = (text: string) =>
  text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).map((line) => {
    const { labels = "", name = "" } = /^(?<name>\w+)(?:\{(?<labels>.*)\})? \S+$/u.exec(line)?.groups ?? {}
    const names = [...labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/gu)].map(([, label]) => label ?? "")
    const row = rows.find((each) =>
      each.name === name ||
      (each.kind === "histogram" && ["_bucket", "_sum", "_count"].some((end) => name === `${each.name}${end}`))
    )
    return { line, row, labels: names.filter((label) => label !== "le").toSorted() }
  })

const gatewayOverNodes = oncePerFile(Effect.fnUntraced(function*() {
  const node = yield* recordingUpstream(rpcReply(`"0x1"`))
  const api = yield* recordingUpstream(() => ({ body: "{}" }))
  return yield* gatewayProcess({ TRIGATE_TRADING_NODE_URL: `${node.url}/KEY`, TRIGATE_TRADING_API_URL: api.url })
}))

describe("the metrics of a running gateway", () => {
  it.live("are those of the table, with the labels that it says", () =>
    Effect.gen(function*() {
      const running = yield* gatewayOverNodes()
      yield* post(`${running.url}/evm`, gasCall)
      yield* post(`${running.url}/l2`, gasCall)
      const first = (yield* get(`${running.url}/metrics`)).text
      const { text } = yield* get(`${running.url}/metrics`)
      const declared = rows.map(({ kind, name }) => `${name} ${kind}`).toSorted()
      assert.deepStrictEqual(typesIn(first), declared)
      assert.deepStrictEqual(typesIn(text), declared)
      for (const { labels, line, row } of seriesIn(text)) {
        assert.isDefined(row, line)
        assert.deepStrictEqual(labels, row?.labels.toSorted(), line)
      }
      for (const { meaning, name } of rows) assert.include(text, `# HELP ${name} ${meaning}\n`)
    }))

  it.live("tell of the process and of what it runs", () =>
    Effect.gen(function*() {
      const running = yield* gatewayOverNodes()
      const { text } = yield* get(`${running.url}/metrics`)
      assert.include(text, `\ntrigate_build_info{version="0.1.0",node="${process.version}"} 1\n`)
      const value = (name: string) => Number(new RegExp(`^${name} (?<value>\\S+)$`, "mu").exec(text)?.groups?.["value"])
      for (
        const name of [
          "process_cpu_user_seconds_total",
          "process_cpu_seconds_total",
          "process_start_time_seconds",
          "process_resident_memory_bytes",
          "process_open_fds",
          "nodejs_heap_size_total_bytes",
          "nodejs_heap_size_used_bytes",
          "nodejs_external_memory_bytes",
          "nodejs_active_resources_total"
        ]
      ) assert.isAbove(value(name), 0, name)
      for (
        const name of [
          "process_cpu_system_seconds_total",
          "nodejs_eventloop_lag_seconds",
          "nodejs_eventloop_lag_p99_seconds",
          "nodejs_eventloop_lag_max_seconds"
        ]
      ) assert.isAtLeast(value(name), 0, name)
      assert.isAtMost(value("nodejs_eventloop_lag_seconds"), value("nodejs_eventloop_lag_max_seconds"))
    }))
})

describe("pass-through queries", () => {
  it.live("are counted by their type if it is known, and together otherwise", () =>
    Effect.gen(function*() {
      const running = yield* gatewayOverNodes()
      const before = new Set((yield* get(`${running.url}/metrics`)).text.split("\n"))
      for (const type of ["allMids", "meta", "meta", "somethingNew", "toString"]) {
        assert.strictEqual((yield* post(`${running.url}/info`, JSON.stringify({ type }))).status, 200)
      }
      const { text } = yield* get(`${running.url}/metrics`)
      const counted = text.split("\n").filter((line) =>
        line.startsWith("trigate_operations_total{") && !before.has(line)
      )
      assert.deepStrictEqual(counted.toSorted(), [
        `trigate_operations_total{operation="allMids",outcome="ok"} 1`,
        `trigate_operations_total{operation="info",outcome="ok"} 2`,
        `trigate_operations_total{operation="meta",outcome="ok"} 2`
      ])
      assert.include(text, `\ntrigate_upstream_weight_total{upstream="trading-api"} 62\n`)
      assert.include(text, `\ntrigate_upstream_weight_saved_total{upstream="trading-api",outcome="hit"} 20\n`)
    }))
})
