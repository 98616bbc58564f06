/** Relaying one small JSON-RPC read, no two alike, beside proxies that read nothing of it. */
import { pendingPrefix, receipt } from "./harness/bodies.ts"
import type { Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { ratio, takeTurns } from "./harness/rounds.ts"
import { run } from "./harness/suite.ts"

const workload = (hash: string, first: number, contains: string): Workload => ({
  path: "/l2",
  bodies: {
    template: `{"jsonrpc":"2.0","id":%d,"method":"eth_getTransactionReceipt","params":["${hash}"]}`
  },
  first,
  answer: { contains, echoesId: true },
  connections: 64
})

await run("relay", async () => {
  const upstream = await Peers.upstream()
  const gateway = await Peers.gateway(upstream)
  const pipe = await Peers.barePipe(upstream)
  const dispatch = await Peers.bareDispatch(upstream)
  const fastify = await Peers.fastifyProxy(upstream)
  const nginx = await Peers.nginx(upstream)
  const peers = [gateway, pipe, dispatch, fastify, ...(nginx === undefined ? [] : [nginx])].map((server) => ({
    server,
    relays: true
  }))

  const bytes = receipt("").length + 66
  const mined = await takeTurns(
    `relay, a receipt (${bytes} bytes)`,
    peers,
    workload("0x%064x", 1, "\"result\":{"),
    upstream
  )
  const pending = await takeTurns(
    "relay, no receipt yet (null)",
    peers,
    workload(`${pendingPrefix}%060x`, 1, "\"result\":null"),
    upstream
  )
  const tables = [mined, pending]
  return {
    tables,
    rows: [
      ...tables.map((table) => ratio(table, gateway, pipe, 0.8)),
      ...tables.map((table) => ratio(table, gateway, dispatch)),
      ...tables.map((table) => ratio(table, gateway, fastify, 1.5)),
      ...(nginx === undefined ? [] : tables.map((table) => ratio(table, gateway, nginx)))
    ],
    notes: nginx === undefined ? [Peers.withoutNginx] : []
  }
})
