/** Relaying the longest documented answer, 5000 candles, every one of them checked, beside a proxy that pipes it. */
import * as CandleAnswer from "@trigate/domain/candles/CandleAnswer"
import * as Bodies from "./harness/bodies.ts"
import type { Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import type { Row } from "./harness/results.ts"
import { ratio, takeTurns } from "./harness/rounds.ts"
import { median } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const { length } = Bodies.candles

const workload: Workload = {
  path: "/info",
  bodies: {
    template: "{\"type\":\"candleSnapshot\",\"req\":{\"coin\":\"kPEPE\",\"interval\":\"1h\",\"startTime\":%d}}"
  },
  // windows that begin a millisecond apart in the candle that is forming: none of them holds a closed one that could be held.
  // the upstream answers them all with 5000
  first: Bodies.formingCandle,
  answer: { contains: "[{\"t\":", length },
  connections: 8
}

/** The answer in pieces as long as those that undici hands on. */
const pieces = Array.from(
  { length: Math.ceil(length / 65_536) },
  (_, index) => Buffer.from(Bodies.candles.slice(index * 65_536, (index + 1) * 65_536))
)

const perBatch = 50

/** Processor time of the check alone, in this process: what the pipe does not do. */
const check = (): Row => {
  const values: Array<number> = []
  for (let round = 0; round <= plan.rounds; round++) {
    const before = process.cpuUsage()
    for (let each = 0; each < perBatch; each++) {
      if (CandleAnswer.barsIn(pieces) === undefined) throw new Error("The candles are not recognised")
    }
    const { system, user } = process.cpuUsage(before)
    if (round > 0) values.push((user + system) / perBatch)
  }
  return { title: "candles, the check alone", beside: "by itself", unit: "µs", value: median(values), values }
}

await run("candles", async () => {
  const upstream = await Peers.upstream()
  const gateway = await Peers.gateway(upstream)
  const pipe = await Peers.barePipe(upstream)
  const dispatch = await Peers.bareDispatch(upstream)
  const table = await takeTurns(
    `candles, 5000 of them (${Math.round(length / 1000)} KB)`,
    [gateway, pipe, dispatch].map((server) => ({ server, relays: true, workload })),
    upstream
  )
  return {
    tables: [table],
    rows: [ratio(table, gateway, pipe, 0.55), ratio(table, gateway, dispatch), check()]
  }
})
