/**
 * Sends requests from a seed to two gateways, over sockets, and says what is wrong with their answers.
 *
 * One gateway serves its sandbox, the other stands over upstreams that misbehave. Both are processes of their own. A wrong answer
 * is asked for again, made as small as it can be, and kept in `corpus`; what is kept there is sent first in every run.
 */
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import type { GatewayProcess } from "@trigate/testing/GatewayProcess"
import * as Effect from "effect/Effect"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { compare } from "./against.ts"
import type { FuzzAnswer, Missing } from "./connection.ts"
import { Connection, send } from "./connection.ts"
import { read, write } from "./corpus.ts"
import { generator } from "./generate.ts"
import { complaintOf } from "./judge.ts"
import { upstreams } from "./plan.ts"
import type { FuzzRequest, Target } from "./request.ts"
import { bytesOf, minimised } from "./request.ts"

const help = `npm run fuzz [-- options]

Sends requests from a seed to a gateway over the sandbox and to one over upstreams that misbehave, until it is stopped.

  --requests N     end after so many requests
  --seed S         the seed (default: one of the time, which is printed); with --against a list such as 1,2,3
  --against DIR    instead, compares the gateway of this checkout with that of another one: sends both the same requests, also
                   valid ones, and fails if an answer or what reaches an upstream differs; --requests is for each seed
  --connections C  to each gateway (default: 16)
  --help           this text
`

const { values } = parseArgs({
  options: {
    help: { type: "boolean" },
    requests: { type: "string" },
    seed: { type: "string" },
    against: { type: "string" },
    connections: { type: "string", default: "16" }
  }
})
if (values.help === true) {
  console.log(help)
  process.exit()
}
if (values.against !== undefined) {
  const seeds = (values.seed ?? "1").split(",").map(Number)
  const requests = Number(values.requests ?? 20_000)
  if (![requests, ...seeds].every(Number.isSafeInteger)) {
    console.error("fuzz: --requests and --seed take whole numbers")
    process.exit(2)
  }
  const options = { folder: path.resolve(values.against), seeds, requests }
  process.exit(await Effect.runPromise(compare(options)) ? 0 : 1)
}
const limit = values.requests === undefined ? Infinity : Number(values.requests)
const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed)
const connections = Number(values.connections)
if (![seed, connections].every(Number.isSafeInteger) || Number.isNaN(limit)) {
  console.error("fuzz: --requests, --seed and --connections take whole numbers")
  process.exit(2)
}

/** Requests between two readings of memory. */
const between = 10_000

interface Reading {
  readonly requests: number
  readonly heap: number
  readonly resident: number
}

/** One gateway under fire. */
class Fuzzed {
  readonly target: Target
  readonly process: GatewayProcess
  readonly readings: Array<Reading> = []
  readonly statuses = new Map<number, number>()
  readonly found = new Map<string, number>()
  slowestHealth = 0
  healthChecks = 0
  hasEnded = false

  constructor(target: Target, process: GatewayProcess) {
    this.target = target
    this.process = process
    void this.#watch()
  }

  async #watch() {
    await this.process.ended
    this.hasEnded = true
  }

  complaint(request: FuzzRequest, answer: FuzzAnswer | Missing): string | undefined {
    const complaint = complaintOf(request, answer, this.target)
    if (complaint !== undefined) this.found.set(complaint, (this.found.get(complaint) ?? 0) + 1)
    return complaint
  }

  count(answer: FuzzAnswer | Missing) {
    const status = typeof answer === "string" ? 0 : answer.status
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
  }

  async checkHealth(isOver: () => boolean) {
    while (!isOver() && !this.hasEnded) {
      const before = performance.now()
      const response = await fetch(`${this.process.url}/health/live`)
      await response.text()
      this.slowestHealth = Math.max(this.slowestHealth, performance.now() - before)
      this.healthChecks++
      if (response.status !== 200) this.found.set(`health answers ${response.status}`, 1)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  async read(requests: number) {
    const text = await fetch(`${this.process.url}/metrics`).then((response) => response.text())
    const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "mu").exec(text)?.[1])
    this.readings.push({
      requests,
      heap: value("nodejs_heap_size_used_bytes"),
      resident: value("process_resident_memory_bytes")
    })
  }
}

type Requests = readonly [FuzzRequest, ...ReadonlyArray<FuzzRequest>]

/** Whether the requests get some complaint when they are sent on a connection of their own. */
const persists = async (fuzzed: Fuzzed, complaint: string, requests: Requests): Promise<boolean> => {
  const connection = new Connection(fuzzed.process.url)
  const answers = await send(connection, ...requests)
  connection.close()
  return answers.some(([asked, answer]) => complaintOf(asked, answer, fuzzed.target) === complaint)
}

/** The request alone and small if it has the complaint again; else all that was sent with it. */
const smallest = async (fuzzed: Fuzzed, complaint: string, asked: FuzzRequest, all: Requests): Promise<Requests> => {
  const again = (request: FuzzRequest) => persists(fuzzed, complaint, [request])
  return await again(asked) ? [await minimised(asked, again)] : all
}

/** Keeps what got a wrong answer. */
const keep = async (fuzzed: Fuzzed, complaint: string, index: number, asked: FuzzRequest, all: Requests) => {
  const requests = await smallest(fuzzed, complaint, asked, all)
  const file = write({ complaint, target: fuzzed.target, seed, index, requests })
  console.log(`fuzz: ${fuzzed.target}, request ${index}: ${complaint}; kept as ${path.relative(process.cwd(), file)}`)
}

const replay = async (all: ReadonlyArray<Fuzzed>) => {
  const findings = read()
  for (const { requests, target } of findings) {
    const fuzzed = all.find((each) => each.target === target)
    if (fuzzed === undefined) continue
    const connection = new Connection(fuzzed.process.url)
    for (const [asked, answer] of await send(connection, ...requests)) fuzzed.complaint(asked, answer)
    connection.close()
  }
  console.log(`fuzz: ${findings.length} kept requests sent again`)
}

const megabytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MB`

/** The least heap in a part of the readings: what is garbage does not count. */
const leastHeap = (readings: ReadonlyArray<Reading>): number => Math.min(...readings.map(({ heap }) => heap))

/** Whether the heap has grown since the warm-up; a run that is short says nothing about it. */
const hasGrown = ({ readings }: Fuzzed): boolean => {
  if (readings.length < 12) return false
  const quarter = readings.length >> 2
  return leastHeap(readings.slice(-quarter)) > 1.5 * leastHeap(readings.slice(quarter, 2 * quarter)) + 8 * 2 ** 20
}

const report = (fuzzed: Fuzzed): boolean => {
  const { found, healthChecks, readings, slowestHealth, statuses, target } = fuzzed
  const counts = [...statuses].toSorted(([one], [other]) => one - other).map(([status, count]) => `${status} x${count}`)
  console.log(`fuzz: ${target}: ${counts.join(", ")}`)
  const last = readings.at(-1)
  if (last !== undefined) {
    console.log(
      `fuzz: ${target}: heap ${megabytes(leastHeap(readings.slice(0, Math.max(1, readings.length >> 2))))} at first, ` +
        `${megabytes(leastHeap(readings.slice(-Math.max(1, readings.length >> 2))))} at last; resident ${
          megabytes(last.resident)
        }; ` +
        `slowest of ${healthChecks} health checks ${slowestHealth.toFixed(0)} ms`
    )
  }
  if (hasGrown(fuzzed)) found.set("a heap that grows", 1)
  if (fuzzed.hasEnded) found.set("a gateway that ended", 1)
  const faults = fuzzed.process.printed().split("\n").filter((line) =>
    /fault of the gateway|"level":"(?:error|fatal)"/u.test(line)
  )
  if (faults.length > 0) found.set(`in its log: ${faults[0]?.slice(0, 2000)}`, faults.length)
  for (const [complaint, count] of found) console.log(`fuzz: ${target}: WRONG x${count}: ${complaint}`)
  return found.size === 0
}

// a machine that is busy with other things refuses nothing
const environment = { TRIGATE_ACCESS_LOG: "off", TRIGATE_MAX_LAG: "10 minutes" }

const main = Effect.gen(function*() {
  const plan = yield* upstreams(seed)
  const all = [
    new Fuzzed("sandbox", yield* gatewayProcess(environment)),
    new Fuzzed(
      "upstreams",
      yield* gatewayProcess({
        ...environment,
        ...plan.environment,
        TRIGATE_TRADING_API_WEIGHT: "1000000000",
        TRIGATE_RELAY_ACTIONS: "*",
        TRIGATE_READ_DEADLINE: "30 seconds",
        TRIGATE_ONCE_DEADLINE: "30 seconds"
      })
    )
  ]
  console.log(`fuzz: seed ${seed}, ${limit === Infinity ? "until it is stopped" : `${limit} requests`}`)
  const started = performance.now()
  let next = 0
  let asked = 0
  let isStopped = false
  process.once("SIGINT", () => {
    isStopped = true
  })
  const isOver = () => isStopped || next >= limit || all.some(({ hasEnded }) => hasEnded)
  const make = generator(seed, Date.now(), bytesOf)

  const work = async (fuzzed: Fuzzed, connection: Connection) => {
    while (!isOver()) {
      const index = next++
      const request = make(index)
      // some are sent before the answers to the ones before them
      const further = index % 8 === 0 ? [next++, next++, next++].map(make).filter(({ raw }) => raw === undefined) : []
      const requests: Requests = [request, ...further]
      for (const [asked, answer] of await send(connection, ...requests)) {
        fuzzed.count(answer)
        const complaint = fuzzed.complaint(asked, answer)
        if (complaint === undefined || fuzzed.found.get(complaint) !== 1) continue
        const excerpt = typeof answer === "string"
          ? `${answer}: ${connection.ending}`
          : answer.body.toString("utf8").slice(0, 200)
        console.log(`fuzz: ${complaint}: ${JSON.stringify(excerpt)}`)
        await keep(fuzzed, complaint, index, asked, requests)
      }
      if (index % between === 0) {
        asked += plan.takeCount()
        for (const each of all) await each.read(index)
        if (index > 0) {
          console.log(`fuzz: ${index} requests, ${Math.round(index / (performance.now() - started) * 1000)} a second`)
        }
      }
    }
    connection.close()
  }

  yield* Effect.promise(() => replay(all))
  yield* Effect.promise(() =>
    Promise.all(all.flatMap((fuzzed) => [
      fuzzed.checkHealth(isOver),
      ...Array.from({ length: connections }, () => work(fuzzed, new Connection(fuzzed.process.url)))
    ]))
  )
  asked += plan.takeCount()
  const isSound = all.map(report)
  console.log(
    `fuzz: ${Math.min(next, limit)} requests in ${
      ((performance.now() - started) / 1000).toFixed(1)
    } s; ${asked} reached an upstream`
  )
  return isSound.every(Boolean)
})

const isSound = await Effect.runPromise(Effect.scoped(main))
process.exit(isSound ? 0 : 1)
