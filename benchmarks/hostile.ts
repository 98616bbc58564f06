/**
 * The latency of one caller at two replicas that share Redis, while another one attacks both, beside its latency without; and how
 * long health checks take meanwhile.
 *
 * Each round measures the calm and then the attack. Both callers come at fixed rates, and every answer of the honest one has to be
 * right: a single refusal ends the suite.
 */
import { load, type Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import { pause, type Server, stop } from "./harness/processes.ts"
import type { Row } from "./harness/results.ts"
import { median, percentile } from "./harness/statistics.ts"
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

const healthAim = 100

/** Asks for the health of servers ten times a second each, until it is stopped; gives how long the answers took, in ms. */
const watching = (servers: ReadonlyArray<Server>) => {
  const times: Array<number> = []
  const asking = new Set<Promise<void>>()
  const ask = async (url: string): Promise<void> => {
    const began = performance.now()
    const { status } = await fetch(`${url}/health/live`)
    if (status !== 200) throw new Error(`${url} answered its health check with ${status}`)
    times.push(performance.now() - began)
  }
  const timer = setInterval(() => {
    for (const { url } of servers) {
      const asked = ask(url).finally(() => asking.delete(asked))
      asking.add(asked)
    }
  }, 100)
  return async (): Promise<ReadonlyArray<number>> => {
    clearInterval(timer)
    await Promise.all(asking)
    return times
  }
}

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
    const health: Array<number> = []
    for (let round = 0; round < rounds; round++) {
      calm.push(await measured())
      const attacker: Server = await Peers.attacker(kind, replicas)
      const healthOf = watching(replicas)
      attacked.push(await measured())
      health.push(percentile([...await healthOf()].toSorted((one, other) => one - other), 0.99))
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
    const checks = median(health)
    rows.push(row, {
      title: `p99 of health checks beside ${kind}`,
      beside: "by itself",
      unit: "ms",
      value: checks,
      values: health,
      aim: `<= ${healthAim}`,
      met: checks <= healthAim
    })
  }
  return { rows, samples }
})
