/** What callers' keys and quotas, tracing and the access log add to the processor time of a relayed read. */
import * as path from "node:path"
import type { Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { outputOf, scratch, type Server } from "./harness/processes.ts"
import type { Row } from "./harness/results.ts"
import { ratio, takeTurns } from "./harness/rounds.ts"
import { run } from "./harness/suite.ts"

const workload: Workload = {
  path: "/l2",
  bodies: {
    template: "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"eth_getTransactionReceipt\",\"params\":[\"0x%064x\"]}"
  },
  first: 1,
  answer: { contains: "\"result\":{", echoesId: true },
  connections: 64
}

await run("extras", async () => {
  const upstream = await Peers.upstream()
  const plain = await Peers.gateway(upstream)
  const logging = await Peers.gateway(upstream, { name: "with the access log", env: { TRIGATE_ACCESS_LOG: "on" } })
  const tracing = await Peers.gateway(upstream, {
    name: "with tracing",
    // it takes every POST, spans too
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: upstream.url }
  })
  const sampling = await Peers.gateway(upstream, {
    name: "with 1 % of traces",
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: upstream.url,
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.01"
    }
  })
  const keyFile = path.join(scratch(), "keys.json")
  const key = await outputOf({
    name: "trigate keys create",
    core: "load",
    program: process.execPath,
    args: [
      Peers.program,
      "keys",
      "create",
      "desk",
      `--callers=${keyFile}`,
      "--requests-per-second=1000000",
      "--burst=1000",
      "--weight-per-minute=1000000",
      "--units-per-second=1000000",
      "--concurrent-calls=1000"
    ]
  })
  const keyed = await Peers.gateway(upstream, { name: "with keys and quotas", env: { TRIGATE_CALLERS: keyFile } })
  const table = await takeTurns(
    "a relayed receipt, with more turned on",
    [
      ...[plain, logging, tracing, sampling].map((server) => ({ server, relays: true, workload })),
      { server: keyed, relays: true, workload: { ...workload, path: `/${key.trim()}/l2` } }
    ],
    upstream
  )
  const beside = (server: Server, aim?: number): Row => ({
    ...ratio(table, server, plain, aim),
    title: `relay, ${server.name}`,
    beside: "without"
  })
  return { tables: [table], rows: [beside(keyed, 0.95), beside(logging), beside(tracing), beside(sampling, 0.87)] }
})
