/** Resident memory of the gateway: over many requests, and around an answer that is far too long. */
import { floodHash } from "./harness/bodies.ts"
import { load, type Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import { peakMiB, resetPeak, residentMiB } from "./harness/processes.ts"
import { grouped } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const workload: Workload = {
  path: "/l2",
  bodies: {
    template: "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"eth_getTransactionReceipt\",\"params\":[\"0x%064x\"]}"
  },
  first: 1,
  answer: { contains: "\"result\":{", echoesId: true },
  connections: 64
}

const allowed = 0.05

/** Resident memory beside that of a proxy that pipes. */
const mostBeside = 1.1

const mib = (value: number): string => `${value.toFixed(0)} MiB`

await run("memory", async () => {
  const { samples, step, warmup } = plan.memory
  const upstream = await Peers.upstream()
  const gateway = await Peers.gateway(upstream)

  await load(gateway.url, workload, { requests: warmup })
  const series = [residentMiB(gateway)]
  console.log(`\nresident after ${grouped(warmup)} requests: ${mib(series[0] ?? 0)}`)
  for (let sample = 1; sample <= samples; sample++) {
    await load(gateway.url, workload, { requests: step })
    const resident = residentMiB(gateway)
    series.push(resident)
    console.log(`  after ${grouped(step * sample)} more: ${mib(resident)}`)
  }
  const [first = 0] = series
  const deviation = Math.max(...series.map((value) => Math.abs(value / first - 1)))

  const pipe = await Peers.barePipe(upstream)
  await load(pipe.url, workload, { requests: warmup + step * samples })
  const ofPipe = residentMiB(pipe)
  const beside = residentMiB(gateway) / ofPipe
  console.log(`the bare proxy after as many: ${mib(ofPipe)}`)

  const before = residentMiB(gateway)
  resetPeak(gateway)
  const answer = await fetch(`${gateway.url}/l2`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["${floodHash}"]}`
  })
  const text = await answer.text()
  if (!text.includes("\"error\":")) throw new Error(`The long answer was not refused: ${text.slice(0, 300)}`)
  const peak = peakMiB(gateway)
  // what is no longer needed goes back with the next collections, which traffic brings about
  await load(gateway.url, workload, { requests: warmup })
  const after = residentMiB(gateway)
  console.log(`around an answer of 100 MB: before ${mib(before)}, at most ${mib(peak)}, after ${mib(after)}`)

  return {
    rows: [
      {
        title: `memory over ${grouped(step * samples)} requests`,
        beside: `largest deviation from ${mib(first)} after the first ${grouped(warmup)}`,
        unit: "%",
        value: deviation * 100,
        values: [deviation * 100],
        aim: `<= ${allowed * 100} %`,
        met: deviation <= allowed
      },
      {
        title: `memory after ${grouped(warmup + step * samples)} requests`,
        beside: pipe.name,
        unit: "x",
        value: beside,
        values: [beside],
        aim: `<= ${mostBeside.toFixed(2)}`,
        met: beside <= mostBeside
      },
      {
        title: "memory at an answer of 100 MB, refused",
        beside: "most above what it had before",
        unit: "MiB",
        value: peak - before,
        values: [peak - before]
      },
      {
        title: "memory after an answer of 100 MB, refused",
        beside: `above what it had before, ${grouped(warmup)} requests later`,
        unit: "MiB",
        value: after - before,
        values: [after - before]
      }
    ],
    samples: { "resident (MiB)": series, "around 100 MB: before, at most, after (MiB)": [before, peak, after] }
  }
})
