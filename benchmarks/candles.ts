/**
 * The longest documented answer, 5000 candles, beside a proxy that pipes it: the window of a bot that rolls on, whose closed bars are
 * held, and first windows, whose bars are checked, relayed, and decoded to be held on the same thread.
 */
import * as CandleText from "@trigate/domain/unstable/candles/CandleText"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Bodies from "./harness/bodies.ts"
import type { Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import type { Row } from "./harness/results.ts"
import { ratio, takeTurns } from "./harness/rounds.ts"
import { median } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const { length } = Bodies.candles

const workload = (bodies: Workload["bodies"], first: number): Workload => ({
  path: "/info",
  bodies,
  first,
  answer: { contains: "[{\"t\":", length },
  connections: 8
})

const query = (coin: string, start: number | string): string =>
  `{"type":"candleSnapshot","req":{"coin":"${coin}","interval":"1h","startTime":${start}}}`

/** A bot's window of the 5000 newest bars, which moves on a millisecond with each query: its closed bars are held. */
const rolling = () => workload({ template: query(Bodies.coins[0] ?? "", "%d") }, Bodies.firstCandle + 1)

const windows = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "candles-")), "windows")
fs.writeFileSync(
  windows,
  Array.from(
    { length: 40_000 },
    (_, index) => query(Bodies.coins[index % Bodies.coins.length] ?? "", Bodies.firstCandle + 1 + index)
  ).join("\n")
)

/** The windows of more coins than the gateway holds bars of, in turn: each is relayed, and its bars are held afterwards. */
const first = () => workload({ file: windows }, 0)

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
      if (CandleText.indexBars([...pieces]) === null) throw new Error("The candles are not recognised")
    }
    const { system, user } = process.cpuUsage(before)
    if (round > 0) values.push((user + system) / perBatch)
  }
  return { title: "candles, the check alone", beside: "by itself", unit: "µs", value: median(values), values }
}

await run("candles", async () => {
  const upstream = await Peers.upstream()
  const gateway = await Peers.gateway(upstream)
  const other = await Peers.other(upstream)
  const pipe = await Peers.barePipe(upstream)
  const dispatch = await Peers.bareDispatch(upstream)
  const size = `${Math.round(length / 1000)} KB`
  const peers = (workload: Workload) =>
    [gateway, ...other, pipe, dispatch].map((server) => ({
      server,
      relays: server !== gateway && !other.includes(server),
      workload
    }))
  const held = await takeTurns(`candles, a rolling window of 5000 (${size})`, peers(rolling()), upstream)
  const relayed = await takeTurns(`candles, a first window of 5000 (${size})`, peers(first()), upstream)
  return {
    tables: [held, relayed],
    rows: [
      ratio(held, gateway, pipe, 0.35),
      ratio(held, gateway, dispatch),
      ratio(relayed, gateway, pipe, 0.35),
      ratio(relayed, gateway, dispatch),
      check()
    ]
  }
})
