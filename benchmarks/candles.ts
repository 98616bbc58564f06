/** Relaying the longest documented answer, 5000 candles, every one of them checked, beside a proxy that pipes it. */
import * as Bodies from "./harness/bodies.ts"
import type { Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { ratio, takeTurns } from "./harness/rounds.ts"
import { run } from "./harness/suite.ts"

const { length } = Bodies.candles

const workload: Workload = {
  path: "/info",
  bodies: {
    template: "{\"type\":\"candleSnapshot\",\"req\":{\"coin\":\"kPEPE\",\"interval\":\"1h\",\"startTime\":%d}}"
  },
  // windows up to now that begin a millisecond apart, all of them before the second candle opens
  first: Bodies.firstCandle,
  answer: { contains: "[{\"t\":", length },
  connections: 8
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
    rows: [ratio(table, gateway, pipe, 0.75), ratio(table, gateway, dispatch)]
  }
})
