/** A read that the gateway may answer from its cache, beside a route that answers with a constant. */
import * as Bodies from "./harness/bodies.ts"
import type { Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { ratio, takeTurns } from "./harness/rounds.ts"
import { run } from "./harness/suite.ts"

const { length } = Bodies.spotMeta

const workload: Workload = {
  path: "/info",
  // the one suite in which all requests are the same
  bodies: { template: "{\"type\":\"spotMeta\"}" },
  first: 1,
  answer: { contains: "\"universe\":", length },
  connections: 64
}

await run("cached", async () => {
  const upstream = await Peers.upstream()
  const gateway = await Peers.gateway(upstream)
  const other = await Peers.other(upstream)
  const fastify = await Peers.fastifyConstant(Bodies.spotMeta)
  const table = await takeTurns(
    `cached, spotMeta (${length} bytes)`,
    [gateway, ...other, fastify].map((server) => ({ server, relays: false, workload })),
    upstream
  )
  const rounds = table.series[0]?.rounds ?? []
  const all = rounds.reduce((sum, { requests }) => sum + requests, 0)
  const reached = rounds.reduce((sum, { upstream }) => sum + upstream, 0)
  return {
    tables: [table],
    rows: [ratio(table, gateway, fastify, 0.9)],
    notes: [`of ${all} answers of the gateway, ${reached} came from the upstream`]
  }
})
