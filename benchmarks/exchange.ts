/**
 * Relaying signed actions, whose signer is recovered and whose nonce is claimed, each of them for the first time.
 *
 * First as many as the gateway takes; then half as many, at a fixed rate, for what it adds to the latency of the upstream.
 */
import * as path from "node:path"
import { accepted } from "./harness/bodies.ts"
import { load, type Outcome, type Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import { scratch } from "./harness/processes.ts"
import type { Row } from "./harness/results.ts"
import { ratio, secondsOfTurns, takeTurns } from "./harness/rounds.ts"
import * as SignedBodies from "./harness/signedBodies.ts"
import { grouped, median } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

// more than one core can relay in a second: recovering a signer alone takes it 60 µs
const mostPerSecond = 7000

const workloadOf = (file: string, repeats: boolean): Workload => ({
  path: "/exchange",
  bodies: { file },
  first: 0,
  repeats,
  answer: { contains: accepted, length: accepted.length },
  connections: 64
})

const added = (
  title: string,
  through: ReadonlyArray<Outcome>,
  direct: ReadonlyArray<Outcome>,
  field: "p50Millis" | "p99Millis"
): Row => {
  const values = through.map((outcome, index) => outcome[field] - (direct[index]?.[field] ?? Number.NaN))
  return { title, beside: "over the upstream itself", unit: "ms", value: median(values), values }
}

await run("exchange", async () => {
  const file = path.join(scratch(), "bodies")
  const turns = plan.rounds + 1
  console.log("exchange: signing the actions")
  // as many as it takes in all turns, and half as many in the turns at half the rate
  await SignedBodies.write(file, Math.ceil((secondsOfTurns + plan.seconds * turns / 2) * mostPerSecond))
  // the gateway refuses a nonce that it has relayed; the others keep nothing
  const fresh = workloadOf(file, false)
  const repeated = workloadOf(file, true)

  const upstream = await Peers.upstream()
  const gateway = await Peers.gateway(upstream)
  const other = await Peers.other(upstream)
  const pipe = await Peers.barePipe(upstream)
  const table = await takeTurns(
    "exchange, signer recovered",
    [
      { server: gateway, relays: true, workload: fresh },
      ...other.map((server) => ({ server, relays: true, workload: workloadOf(file, false) })),
      { server: pipe, relays: true, workload: repeated }
    ],
    upstream
  )

  if (other.length > 0) return { tables: [table], rows: [ratio(table, gateway, pipe)] }
  const rounds = table.series[0]?.rounds ?? []
  const perSecond = Math.max(1, Math.floor(median(rounds.map(({ perSecond }) => perSecond)) / 2))
  const through: Array<Outcome> = []
  const direct: Array<Outcome> = []
  for (let round = 0; round < turns; round++) {
    const outcomes = [
      await load(gateway.url, fresh, { seconds: plan.seconds, perSecond }),
      await load(upstream.url, repeated, { seconds: plan.seconds, perSecond })
    ] as const
    if (round > 0) {
      through.push(outcomes[0])
      direct.push(outcomes[1])
    }
  }

  const perCore = rounds.map(({ perCore }) => perCore)
  const half = `exchange, latency added at ${grouped(perSecond)} requests a second`
  return {
    tables: [table],
    rows: [
      {
        title: table.title,
        beside: "by itself",
        unit: "requests a second per core",
        value: median(perCore),
        values: perCore
      },
      ratio(table, gateway, pipe, 0.3),
      added(`${half}, p50`, through, direct, "p50Millis"),
      added(`${half}, p99`, through, direct, "p99Millis")
    ],
    samples: {
      "p50 through the gateway (ms)": through.map(({ p50Millis }) => p50Millis),
      "p50 of the upstream (ms)": direct.map(({ p50Millis }) => p50Millis),
      "p99 through the gateway (ms)": through.map(({ p99Millis }) => p99Millis),
      "p99 of the upstream (ms)": direct.map(({ p99Millis }) => p99Millis)
    }
  }
})
