/** Relaying one small JSON-RPC read, no two alike, beside proxies that read nothing of it. */
import { pendingPrefix, receipt } from "./harness/bodies.ts"
import { load, type Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import type { Server } from "./harness/processes.ts"
import type { Row } from "./harness/results.ts"
import { ratio, takeTurns } from "./harness/rounds.ts"
import { median } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const workload = (hash: string, contains: string, connections = 64): Workload => ({
  path: "/l2",
  bodies: {
    template: `{"jsonrpc":"2.0","id":%d,"method":"eth_getTransactionReceipt","params":["${hash}"]}`
  },
  first: 1,
  answer: { contains, echoesId: true },
  connections
})

const receipts = ["0x%064x", "\"result\":{"] as const

/** How much later an answer comes with shared batches than without them, where few requests arrive together. */
const lowLoad = async (without: Server, batching: Server): Promise<Row> => {
  const perSecond = 200
  const requests = workload(...receipts, 32)
  const values: Array<number> = []
  for (let round = 0; round <= plan.rounds; round++) {
    const p50s: Array<number> = []
    for (const { url } of [without, batching]) {
      const { p50Millis } = await load(url, requests, { seconds: plan.seconds, perSecond })
      p50s.push(p50Millis)
    }
    const [p50 = Number.NaN, batched = Number.NaN] = p50s
    if (round > 0) values.push(batched - p50)
  }
  return {
    title: `relay in shared batches at ${perSecond} requests a second, p50`,
    beside: `above ${without.name}`,
    unit: "ms",
    value: median(values),
    values,
    aim: "<= 0.20",
    met: median(values) <= 0.2
  }
}

await run("relay", async () => {
  const upstream = await Peers.upstream()
  const measure = (title: string, workload: Workload, peers: ReadonlyArray<Server>) =>
    takeTurns(title, peers.map((server) => ({ server, relays: true, workload })), upstream)
  const gateway = await Peers.gateway(upstream)
  const other = await Peers.other(upstream)
  const batches = { name: "trigate, batches", env: { TRIGATE_LAYER2_BATCH: "50" } }
  const batching = await Peers.gateway(upstream, batches)
  const otherBatching = await Peers.other(upstream, batches)
  const pipe = await Peers.barePipe(upstream)
  const bytes = receipt("").length + 66
  const measureAll = async (peers: ReadonlyArray<Server>, batchPeers: ReadonlyArray<Server>) =>
    [
      await measure(`relay, a receipt (${bytes} bytes)`, workload(...receipts), peers),
      await measure("relay, no receipt yet (null)", workload(`${pendingPrefix}%060x`, "\"result\":null"), peers),
      await measure("relay in shared batches, 32 connections", workload(...receipts, 32), batchPeers)
    ] as const
  if (other.length > 0) {
    const tables = await measureAll([gateway, ...other, pipe], [batching, ...otherBatching, pipe])
    return { tables, rows: tables.map((table) => ratio(table, table === tables[2] ? batching : gateway, pipe)) }
  }
  const dispatch = await Peers.bareDispatch(upstream)
  const plain = await Peers.plainNode(upstream)
  const fastify = await Peers.fastifyProxy(upstream)
  const nginx = await Peers.nginx(upstream)
  const servers = [gateway, pipe, dispatch, plain, fastify, ...(nginx === undefined ? [] : [nginx])]
  const [mined, pending, batched] = await measureAll(servers, [batching, pipe, fastify])
  const tables = [mined, pending]
  return {
    tables: [...tables, batched],
    rows: [
      ...tables.map((table) => ratio(table, gateway, pipe, 0.8)),
      ...tables.map((table) => ratio(table, gateway, dispatch)),
      ...tables.map((table) => ratio(table, gateway, plain)),
      ...tables.map((table) => ({ ...ratio(table, plain, pipe), title: `${table.title}, by ${plain.name}` })),
      ...tables.map((table) => ratio(table, gateway, fastify, 1.5)),
      ratio(batched, batching, pipe, 1.2),
      ratio(batched, batching, fastify, 1.8),
      await lowLoad(gateway, batching),
      ...(nginx === undefined ? [] : tables.map((table) => ratio(table, gateway, nginx)))
    ],
    notes: nginx === undefined ? [Peers.withoutNginx] : []
  }
})
