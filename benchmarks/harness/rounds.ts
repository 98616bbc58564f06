/** Peers that take turns under the same load, so that a slow spell of the machine meets all of them. */
import { load, type Workload } from "./load.ts"
import { against, nameOfOther, pairedRounds, plan } from "./plan.ts"
import { cpuSecondsOf, pause, type Server } from "./processes.ts"
import type { Round, Row, Series, Table } from "./results.ts"
import { grouped, interval, median, spread } from "./statistics.ts"

export interface Peer {
  readonly server: Server
  /** Whether each of its answers has to come from the upstream: a relay that answers by itself measures something else. */
  readonly relays: boolean
  readonly workload: Workload
}

/** Requests that the upstream has counted so far. */
export const countedBy = async (upstream: Server): Promise<number> =>
  Number(await (await fetch(`${upstream.url}/count`)).text())

// on a shared machine the load generator may get no time at all; nothing is measured then
const attempts = 5

// short rounds, because a shared machine is slow for seconds at a time
const roundSeconds = Math.min(plan.seconds, 1)
const roundCount = pairedRounds ?? Math.round(plan.rounds * plan.seconds / roundSeconds)

// a long warm-up, because V8 compiles a server's code for seconds
const warmUpSeconds = plan.seconds * 3

/** Seconds that {@link takeTurns} loads each peer. */
export const secondsOfTurns = warmUpSeconds + roundCount * roundSeconds

const measure = async (
  { relays, server, workload }: Peer,
  upstream: Server,
  loadSeconds: number,
  attempt = 1
): Promise<Round> => {
  const counted = await countedBy(upstream)
  const cpu = cpuSecondsOf(server)
  const { p50Millis, p99Millis, requests, seconds } = await load(server.url, workload, { seconds: loadSeconds })
  const cpuSeconds = cpuSecondsOf(server) - cpu
  if (requests === 0 || cpuSeconds === 0) {
    if (attempt === attempts) throw new Error(`${server.name} was never reached`)
    return measure({ relays, server, workload }, upstream, loadSeconds, attempt + 1)
  }
  const reached = await countedBy(upstream) - counted
  if (relays && reached < requests) {
    throw new Error(`${server.name} answered ${requests} requests, of which only ${reached} reached the upstream`)
  }
  return {
    requests,
    seconds,
    cpuSeconds,
    perSecond: requests / seconds,
    perCore: requests / cpuSeconds,
    busy: cpuSeconds / seconds,
    p50Millis,
    p99Millis,
    upstream: reached
  }
}

/** Measures peers in turns, after each of them has warmed up. */
export const takeTurns = async (
  title: string,
  peers: ReadonlyArray<Peer>,
  upstream: Server
): Promise<Table> => {
  const rounds = peers.map((): Array<Round> => [])
  for (let round = 0; round <= roundCount; round++) {
    for (const turn of peers.keys()) {
      // who follows whom changes from round to round
      const index = (turn + round) % peers.length
      const peer = peers[index]
      if (peer === undefined) continue
      const measured = await measure(peer, upstream, round === 0 ? warmUpSeconds : roundSeconds)
      if (round > 0) rounds[index]?.push(measured)
      // what the last connections left behind is not the next one's to pay
      await pause(roundSeconds * 50)
    }
  }
  const table = {
    title,
    series: peers.map(({ server }, index) => ({ name: server.name, rounds: rounds[index] ?? [] }))
  }
  print(table)
  return table
}

const of = (rounds: ReadonlyArray<Round>, field: keyof Round): number => median(rounds.map((round) => round[field]))

/** The line of one peer. */
export const cells = ({ name, rounds }: Series): ReadonlyArray<string> => [
  name,
  grouped(of(rounds, "perCore")),
  `${Math.round(spread(rounds.map(({ perCore }) => perCore)) * 100)} %`,
  `${Math.round(1e6 / of(rounds, "perCore"))} µs`,
  grouped(of(rounds, "perSecond")),
  `${Math.round(of(rounds, "busy") * 100)} %`,
  `${of(rounds, "p50Millis").toFixed(1)} ms`,
  `${of(rounds, "p99Millis").toFixed(1)} ms`
]

/** What the cells of {@link cells} are. */
export const columns = ["Peer", "req/s per core", "spread", "CPU per request", "req/s", "core used", "p50", "p99"]

const print = ({ series, title }: Table): void => {
  console.log(`\n${title}`)
  const lines = [columns, ...series.map(cells)]
  const widths = columns.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  for (const line of lines) {
    const [name = "", ...figures] = line.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
    )
    console.log(`  ${[name, ...figures].join("  ")}`)
  }
}

/** The ratio of each gateway in a table to that of the other checkout, with its 95 % interval. */
export const besideOther = ({ series, title }: Table): ReadonlyArray<Row> =>
  series.flatMap(({ name, rounds }) => {
    const other = series.find((each) => each.name === nameOfOther(name))
    if (other === undefined || against === undefined) return []
    const values = rounds.map(({ perCore }, index) => perCore / (other.rounds[index]?.perCore ?? Number.NaN))
    return [{ title, beside: against, unit: "x", value: median(values), values, interval: interval(values) }]
  })

/** How many times the requests per core of another peer the first one has, as the median of the ratios of the rounds. */
export const ratio = (table: Table, ours: Server, theirs: Server, aim?: number): Row => {
  const roundsOf = (name: string) => table.series.find((series) => series.name === name)?.rounds ?? []
  const others = roundsOf(theirs.name)
  const values = roundsOf(ours.name).map(({ perCore }, index) => perCore / (others[index]?.perCore ?? Number.NaN))
  const value = median(values)
  return {
    title: table.title,
    beside: theirs.name,
    unit: "x",
    value,
    values,
    ...(aim === undefined ? {} : { aim: `>= ${aim.toFixed(2)}`, met: value >= aim })
  }
}
