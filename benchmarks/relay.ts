/** Relaying one small JSON-RPC read, no two alike, beside proxies that read nothing of it. */
import * as fs from "node:fs"
import * as path from "node:path"
import { pendingPrefix, receipt } from "./harness/bodies.ts"
import { load, type Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import { cpuSecondsOf, scratch, type Server, stop } from "./harness/processes.ts"
import { formatShares, readShares } from "./harness/profile.ts"
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

/** Prints what each step of a relayed call costs: its share of a profile, of the processor time of a request. */
const printSteps = async (upstream: Server) => {
  const folder = scratch()
  const gateway = await Peers.profiled(upstream, folder)
  const seconds = plan.seconds * 2
  const asked = workload(...receipts)
  await load(gateway.url, asked, { seconds })
  const before = cpuSecondsOf(gateway)
  const { requests } = await load(gateway.url, asked, { seconds })
  const micros = (cpuSecondsOf(gateway) - before) / requests * 1e6
  await stop(gateway)
  const [file] = fs.readdirSync(folder)
  if (file === undefined) return
  console.log(`\nrelay, a receipt: the steps of a call, ${micros.toFixed(0)} µs with the profiler`)
  for (const line of formatShares(readShares(path.join(folder, file), seconds + 1), micros)) console.log(line)
}

await run("relay", async () => {
  const upstream = await Peers.upstream()
  const measure = (title: string, workload: Workload, peers: ReadonlyArray<Server>) =>
    takeTurns(title, peers.map((server) => ({ server, relays: true, workload })), upstream)
  const gateway = await Peers.gateway(upstream)
  const other = await Peers.other(upstream)
  const pipe = await Peers.barePipe(upstream)
  const bytes = receipt("").length + 66
  const measureAll = async (peers: ReadonlyArray<Server>) => [
    await measure(`relay, a receipt (${bytes} bytes)`, workload(...receipts), peers),
    await measure("relay, no receipt yet (null)", workload(`${pendingPrefix}%060x`, "\"result\":null"), peers)
  ]
  if (other.length > 0) {
    const tables = await measureAll([gateway, ...other, pipe])
    return { tables, rows: tables.map((table) => ratio(table, gateway, pipe)) }
  }
  const dispatch = await Peers.bareDispatch(upstream)
  const plain = await Peers.plainNode(upstream)
  const fastify = await Peers.fastifyProxy(upstream)
  const nginx = await Peers.nginx(upstream)
  await printSteps(upstream)
  const tables = await measureAll([gateway, pipe, dispatch, plain, fastify, ...(nginx === undefined ? [] : [nginx])])
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
