/**
 * The latency of a relayed read at half of the gateway's highest rate, and how long garbage collections stop the thread for it,
 * beside a proxy that pipes at the same rate.
 */
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import { load, type Outcome, type Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import { pause, scratch, type Server } from "./harness/processes.ts"
import type { Row } from "./harness/results.ts"
import { grouped, median } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const workload: Workload = {
  path: "/l2",
  bodies: { template: `{"jsonrpc":"2.0","id":%d,"method":"eth_getTransactionReceipt","params":["0x%064x"]}` },
  first: 1,
  answer: { contains: "\"result\":{", echoesId: true },
  connections: 64
}

const Collections = Schema.Struct({ count: Schema.Number, millis: Schema.Number, longest: Schema.Number })
type Collections = typeof Collections.Type

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Collections))

/** A peer, where it writes what its garbage collections took, and its turns. */
interface Observed {
  readonly server: Server
  readonly file: string
  readonly turns: Array<Turn>
}

interface Turn extends Outcome {
  readonly collections: Collections
}

const observed = async (start: (env: { readonly [name: string]: string }) => Promise<Server>): Promise<Observed> => {
  const file = path.join(scratch(), "collections.json")
  const preload = path.join(import.meta.dirname, "harness/collections.ts")
  return { server: await start({ NODE_OPTIONS: `--import=${preload}`, COLLECTIONS: file }), file, turns: [] }
}

/** The collections of a peer since it was asked last. */
const collectionsOf = async ({ file, server }: Observed): Promise<Collections> => {
  fs.rmSync(file, { force: true })
  process.kill(server.pid, "SIGUSR2")
  while (!fs.existsSync(file)) await pause(5)
  return decode(fs.readFileSync(file, "utf8"))
}

const takeTurn = async (peer: Observed, perSecond: number): Promise<Turn> => {
  await collectionsOf(peer)
  const outcome = await load(peer.server.url, workload, { seconds: plan.seconds, perSecond })
  return { ...outcome, collections: await collectionsOf(peer) }
}

const figures: ReadonlyArray<readonly [title: string, unit: string, of: (turn: Turn) => number]> = [
  ["p50", "ms", ({ p50Millis }) => p50Millis],
  ["p99", "ms", ({ p99Millis }) => p99Millis],
  ["time in garbage collections", "%", ({ collections, seconds }) => collections.millis / seconds / 10],
  ["longest garbage collection", "ms", ({ collections }) => collections.longest]
]

await run("half", async () => {
  const upstream = await Peers.upstream()
  const gateway = await observed((env) => Peers.gateway(upstream, { name: "trigate", env }))
  const pipe = await observed((env) => Peers.barePipe(upstream, env))
  await load(gateway.server.url, workload, { seconds: plan.seconds })
  const most = await load(gateway.server.url, workload, { seconds: plan.seconds })
  const perSecond = Math.max(1, Math.floor(most.requests / most.seconds / 2))

  const peers = [gateway, pipe]
  for (let round = 0; round <= plan.rounds; round++) {
    for (const peer of peers) {
      const turn = await takeTurn(peer, perSecond)
      if (round > 0) peer.turns.push(turn)
    }
  }
  const rows = figures.flatMap(([title, unit, of]) =>
    peers.map(({ server, turns }): Row => {
      const values = turns.map(of)
      return {
        title: `relay at ${grouped(perSecond)} requests a second, ${title}`,
        beside: server.name,
        unit,
        value: median(values),
        values
      }
    })
  )
  return { rows }
})
