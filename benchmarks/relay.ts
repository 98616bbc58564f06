/** Relaying one small JSON-RPC read, no two alike, beside proxies that read nothing of it. */
import { pendingPrefix, receipt } from "./harness/bodies.ts"
import type { Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { ratio, takeTurns } from "./harness/rounds.ts"
import { run } from "./harness/suite.ts"

const workload = (hash: string, contains: string): Workload => ({
  path: "/l2",
  bodies: {
    template: `{"jsonrpc":"2.0","id":%d,"method":"eth_getTransactionReceipt","params":["${hash}"]}`
  },
  first: 1,
  answer: { contains, echoesId: true },
  connections: 64
})

const receipts = ["0x%064x", "\"result\":{"] as const

await run("relay", async () => {
  const upstream = await Peers.upstream()
  const gateway = await Peers.gateway(upstream)
  const pipe = await Peers.barePipe(upstream)
  const dispatch = await Peers.bareDispatch(upstream)
  const plain = await Peers.plainNode(upstream)
  const fastify = await Peers.fastifyProxy(upstream)
  const nginx = await Peers.nginx(upstream)
  const servers = [gateway, pipe, dispatch, plain, fastify, ...(nginx === undefined ? [] : [nginx])]
  const measure = (title: string, workload: Workload) =>
    takeTurns(title, servers.map((server) => ({ server, relays: true, workload })), upstream)

  const bytes = receipt("").length + 66
  const mined = await measure(`relay, a receipt (${bytes} bytes)`, workload(...receipts))
  const pending = await measure(
    "relay, no receipt yet (null)",
    workload(`${pendingPrefix}%060x`, "\"result\":null")
  )
  const tables = [mined, pending]
  return {
    tables,
    rows: [
      ...tables.map((table) => ratio(table, gateway, pipe, 0.8)),
      ...tables.map((table) => ratio(table, gateway, dispatch)),
      ...tables.map((table) => ratio(table, gateway, plain)),
      ...tables.map((table) => ({ ...ratio(table, plain, pipe), title: `${table.title}, by ${plain.name}` })),
      ...tables.map((table) => ratio(table, gateway, fastify, 1.5)),
      ...(nginx === undefined ? [] : tables.map((table) => ratio(table, gateway, nginx)))
    ],
    notes: nginx === undefined ? [Peers.withoutNginx] : []
  }
})
