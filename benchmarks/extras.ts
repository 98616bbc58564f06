/** What tracing and the access log add to the processor time of a relayed read. */
import type { Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import type { Server } from "./harness/processes.ts"
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
  const servers = [plain, logging, tracing]
  const table = await takeTurns(
    "a relayed receipt, with more turned on",
    servers.map((server) => ({ server, relays: true, workload })),
    upstream
  )
  const beside = (server: Server): Row => ({
    ...ratio(table, server, plain),
    title: `relay, ${server.name}`,
    beside: "without"
  })
  return { tables: [table], rows: [beside(logging), beside(tracing)] }
})
