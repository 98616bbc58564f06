/**
 * Runs the suites that are named, or all of them, one after the other and each in a process of its own: what the compiler
 * learned from one must not help or hinder the next. What they measured goes to `benchmarks/results`.
 */
import * as Schema from "effect/Schema"
import { execFileSync, fork } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { generator } from "./harness/load.ts"
import { facts, root } from "./harness/machine.ts"
import { plan } from "./harness/plan.ts"
import { pause, scratch } from "./harness/processes.ts"
import { type Run, SuiteResult } from "./harness/results.ts"
import { line } from "./harness/suite.ts"

const suites: { readonly [name: string]: string } = {
  signing: "recovering and signing actions, beside viem",
  guard:
    "the processor time of an order that policies judge, and a hundred bots whose limits two guards share in Redis",
  inspector: "the processor time of one inspection of a body that no likely mistake explains",
  relay: "relaying a small JSON-RPC read, beside bare proxies, @fastify/http-proxy and nginx",
  half: "the latency of a relayed read, and garbage collection, at half of the highest rate, beside a bare proxy",
  cached: "a read that can be cached, beside a constant answer of Fastify",
  extras: "what callers' keys and quotas, tracing and the access log add to a relayed read",
  hostile: "the latency of one caller while another one attacks two replicas, beside its latency without",
  attacks:
    "the p50 of one caller while others export a year of bars, list an archive or let a contract loop; fails above three times its calm; what a caller sees beside attacks on streams, feeds and the sandbox",
  candles: "relaying 5000 candles, beside bare proxies",
  exchange: "relaying signed actions: how many, and the latency added at half of that",
  memory: "resident memory over many requests and around an answer of 100 MB",
  archive: "candle history: bytes of a bar on disk, bars written a second, the time to read 5000",
  pages: "how long the console and the API reference take to open in Chromium, and what they transfer",
  streams:
    "frames delivered over WebSocket, beside a bare relay over ws; memory of a socket; callers who reconnect at once",
  heads:
    "the latency of an EVM chain's heads to many subscribers, beside a bare relay over ws; polls of a node for a block",
  bots: "weight at the venue and time of a query of a hundred bots that poll bars; weight and age for twenty accounts",
  venue:
    "orders on the sandbox's venue from fifty accounts: how many a minute, the time of a reply, and the queue after it",
  size: "what a page, the program and its installation weigh, and the processor time of a start"
}

/** The suites that can also run the gateway of another checkout. */
const comparable = ["relay", "cached", "exchange", "candles"]

const help = `npm run bench [-- [suite...] [--quick] [--against DIR]]

Measures on this machine, prints every figure beside its aim, and keeps the raw data in benchmarks/results.

${Object.entries(suites).map(([name, what]) => `  ${name.padEnd(10)}${what}`).join("\n")}

  --quick   fewer and shorter rounds: for a look, not for figures to keep
  --rounds N
            the number of rounds in which peers take turns
  --against DIR
            runs the gateway of another checkout in the same rounds, in ${
  comparable.join(", ")
}, and prints the ratio of
            this one to it with a 95 % interval
  --smoke   a fraction of a second each: shows that everything runs, and nothing else
  --help    this text
`

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: "boolean" },
    quick: { type: "boolean" },
    smoke: { type: "boolean" },
    rounds: { type: "string" },
    against: { type: "string" }
  }
})
const { against, rounds } = values
const all = against === undefined ? Object.keys(suites) : comparable
if (rounds !== undefined && !(Number(rounds) >= 1)) throw new Error("--rounds takes a whole number")
const unknown = positionals.filter((name) => !all.includes(name))

const decode = Schema.decodeUnknownSync(SuiteResult)

const hour = 3_600_000

/** Waits for the next hour where this one is nearly over: a bar of it must not close while it is relayed. */
const awaitHour = async (suite: string): Promise<void> => {
  const left = hour - Date.now() % hour
  if (suite !== "candles" || left > 180_000) return
  console.log(`waits ${Math.ceil(left / 1000)} s for the hour to end`)
  await pause(left)
}

const build = (): ReadonlyArray<string> => {
  const run = (...args: ReadonlyArray<string>) => execFileSync(process.execPath, args, { stdio: "inherit" })
  if (against === undefined) {
    console.log("\n== the packages, as they are published")
    run(path.join(root, "scripts/packages/build.ts"))
    return []
  }
  console.log(`\n== the program, and that of ${against}`)
  const bundles = scratch()
  run(path.join(root, "scripts/packages/bundle.ts"), path.join(bundles, "ours"))
  run(path.join(path.resolve(against), "scripts/packages/bundle.ts"), path.join(bundles, "theirs"))
  return [`--against=${against}`, `--bundles=${bundles}`]
}

const measure = (suite: string, options: ReadonlyArray<string>): Promise<SuiteResult> =>
  new Promise((resolve, reject) => {
    const child = fork(path.join(import.meta.dirname, `${suite}.ts`), [`--${plan.name}`, ...options])
    let result: SuiteResult | undefined
    child.on("message", (message) => {
      result = decode(message)
    })
    child.on("exit", (code) => {
      if (result === undefined) return reject(new Error(`${suite} failed (${code})`))
      // measured, and found above a bound of its own
      if (code !== 0) process.exitCode = 1
      resolve(result)
    })
  })

const keep = (run: Run): string => {
  const folder = path.join(import.meta.dirname, "results")
  const text = `${JSON.stringify(run, undefined, 1)}\n`
  const file = path.join(folder, `${run.at.replaceAll(":", "-")}-${run.plan}.json`)
  fs.writeFileSync(file, text)
  // the document tells of whole runs only
  const isWhole = run.plan === "full" && run.suites.length === Object.keys(suites).length
  if (isWhole) fs.writeFileSync(path.join(folder, "latest.json"), text)
  return path.relative(process.cwd(), file)
}

const main = async () => {
  const at = new Date().toISOString().slice(0, 19)
  const { commit, commitDate, machine, modified, versions } = facts()
  console.log(Object.entries({ ...machine, generator }).map(([name, value]) => `${name}: ${value}`).join("\n"))
  if (plan.name !== "full") console.log(`\nThis is a ${plan.name} run: its figures are not to be kept.`)
  const options = [...build(), ...(rounds === undefined ? [] : [`--rounds=${rounds}`])]
  const results: Array<SuiteResult> = []
  for (const suite of positionals.length > 0 ? positionals : all) {
    console.log(`\n== ${suite}: ${suites[suite]}`)
    try {
      await awaitHour(suite)
      results.push(await measure(suite, options))
    } catch (error) {
      // the others can still be measured
      console.error(String(error))
      process.exitCode = 1
    }
  }
  console.log("\n== all figures")
  for (const { rows } of results) for (const row of rows) console.log(line(row))
  const run = { plan: plan.name, at, commit, commitDate, modified, machine: { ...machine, generator }, versions }
  console.log(`\nraw data: ${keep({ ...run, suites: results })}`)
}

if (values.help === true) {
  console.log(help)
} else if (unknown.length > 0) {
  console.error(`No benchmark ${unknown.join(", ")}; there are: ${all.join(", ")}`)
  process.exitCode = 1
} else {
  await main()
}
