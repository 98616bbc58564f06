/**
 * The latency of one caller at two replicas that share Redis, while another one attacks both, beside its latency without.
 *
 * Each round measures the calm and then the attack. Both callers come at fixed rates, and every answer of the honest one has to be
 * right: a single refusal ends the suite.
 */
import { load, type Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import { pause, type Server, stop } from "./harness/processes.ts"
import type { Row } from "./harness/results.ts"
import { median } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const attacks = [
  "expensive queries",
  "random signatures",
  "answers of 500",
  "oversized answers",
  "stalled uploads",
  "batches of 1000"
]

const aim = 3

const seconds = plan.seconds * 2

const perSecond = 20

const rounds = Math.min(plan.rounds, 3)

const workloads = (): ReadonlyArray<Workload> => [
  {
    path: "/info",
    bodies: { template: "{\"type\":\"userFees\",\"user\":\"0x%040x\"}" },
    first: 1,
    answer: { contains: "{}" },
    connections: 4
  },
  {
    path: "/evm",
    bodies: {
      template: "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"eth_getTransactionReceipt\",\"params\":[\"0x%064x\"]}"
    },
    first: 1,
    answer: { contains: "\"result\":{", echoesId: true },
    connections: 4
  }
]

await run("hostile", async () => {
  const redis = await Peers.redis()
  if (redis === undefined) return { rows: [], notes: ["redis-server is not installed: nothing was measured"] }
  const upstream = await Peers.upstream()
  const env = {
    TRIGATE_REDIS_URL: redis,
    TRIGATE_TRADING_NODE_URL: `${upstream.url}/0123456789abcdef0123456789abcdef`,
    // small enough that the attacker uses up its share within a round, large enough for what the other one asks
    TRIGATE_TRADING_API_WEIGHT: "120000",
    TRIGATE_TRADING_NODE_RPS: "400",
    TRIGATE_BATCH_LIMIT: "1000"
  }
  const replicas = [
    await Peers.gateway(upstream, { name: "first replica", env }),
    await Peers.gateway(upstream, { name: "second replica", env })
  ]
  const honest = replicas.flatMap(({ url }, index) =>
    workloads().map((workload) => ({ url, workload: { ...workload, first: 1 + index * 1e6 } }))
  )
  const measured = async (): Promise<number> => {
    const outcomes = await Promise.all(honest.map(({ url, workload }) => load(url, workload, { seconds, perSecond })))
    return Math.max(...outcomes.map(({ p99Millis }) => p99Millis))
  }

  await measured()
  const rows: Array<Row> = []
  const samples: Record<string, ReadonlyArray<number>> = {}
  for (const kind of attacks) {
    const calm: Array<number> = []
    const attacked: Array<number> = []
    for (let round = 0; round < rounds; round++) {
      calm.push(await measured())
      const attacker: Server = await Peers.attacker(kind, replicas)
      attacked.push(await measured())
      await stop(attacker)
      await pause(plan.seconds * 300)
    }
    samples[`p99 without, before ${kind} (ms)`] = calm
    samples[`p99 beside ${kind} (ms)`] = attacked
    const values = attacked.map((millis, round) => millis / (calm[round] ?? Number.NaN))
    const value = median(values)
    const row: Row = {
      title: `p99 beside ${kind}`,
      beside: `without, ${median(calm).toFixed(1)} ms`,
      unit: "x",
      value,
      values,
      aim: `<= ${aim.toFixed(2)}`,
      met: value <= aim
    }
    console.log(`  ${row.title}: ${median(attacked).toFixed(1)} ms, ${value.toFixed(2)} x`)
    rows.push(row)
  }
  return { rows, samples }
})
