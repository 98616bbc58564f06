/**
 * Streams through the gateway, with callers' keys and metrics, beside a bare relay over `ws` that writes each frame to each client:
 * deliveries for a second of processor time and their latency at half load and as fast as they go, memory of a socket, and
 * callers who all reconnect at once.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import { cpuSecondsOf, outputOf, pause, residentMiB, scratch, type Server } from "./harness/processes.ts"
import type { Row } from "./harness/results.ts"
import { grouped, median } from "./harness/statistics.ts"
import * as Streams from "./harness/streams.ts"
import { run } from "./harness/suite.ts"

interface Peer {
  readonly server: Server
  readonly paths: ReadonlyArray<string>
  /** Written after a collection of garbage. */
  readonly collected: string
}

interface Turn {
  /** Deliveries for a second of processor time. */
  readonly perCore: number
  readonly perSecond: number
  readonly p99: number
  readonly busy: number
}

interface Shape {
  readonly callers: number
  readonly coins: number
  readonly channel: "bbo" | "trades" | "l2Book"
}

const isSmoke = plan.name === "smoke"

const shapes: ReadonlyArray<Shape> = isSmoke
  ? [{ callers: 4, coins: 2, channel: "bbo" }]
  : [
    { callers: 200, coins: 40, channel: "bbo" },
    { callers: 2000, coins: 4, channel: "bbo" },
    { callers: 200, coins: 40, channel: "trades" }
  ]

const rounds = Math.min(plan.rounds, 5)

/** Half of what a bare relay delivers in a second on one core of the machine where the aim was set. */
const halfLoad = isSmoke ? 100 : 30_000

const manySockets = isSmoke ? 20 : 10_000

const aims = { perCore: 0.95, p99: 1, kilobytes: 20, servedMillis: 5000 }

const env = (collected: string) => ({
  NODE_OPTIONS: `--import=${path.join(import.meta.dirname, "harness/collect.ts")}`,
  COLLECTED: collected
})

const keys = 10

/** The gateway with ten keys, which the callers share. */
const gateway = async (callers: Server): Promise<Peer> => {
  const file = path.join(scratch(), "keys.json")
  const collected = path.join(scratch(), "collected")
  const paths: Array<string> = []
  for (let index = 0; index < keys; index++) {
    const key = await outputOf({
      name: "trigate keys create",
      core: "load",
      program: process.execPath,
      args: [Peers.program, "keys", "create", `desk${index}`, `--callers=${file}`]
    })
    paths.push(`/${key.trim()}/ws`)
  }
  const server = await Peers.gateway(callers, {
    name: "trigate",
    env: {
      ...env(collected),
      TRIGATE_CALLERS: file,
      // of which one address may have a quarter: the old sockets and the new ones, when all reconnect
      TRIGATE_MAX_CONNECTIONS: "96000",
      TRIGATE_STREAM_CALLER_SOCKETS: "20000",
      TRIGATE_STREAM_CALLER_MESSAGES: "1000000"
    }
  })
  return { server, paths, collected }
}

const relay = async (callers: Server): Promise<Peer> => {
  const collected = path.join(scratch(), "collected")
  return { server: await Peers.bareStreamRelay(callers, env(collected)), paths: ["/ws"], collected }
}

/** The resident memory of a peer after a collection. */
const collectedMiB = async ({ collected, server }: Peer): Promise<number> => {
  fs.rmSync(collected, { force: true })
  process.kill(server.pid, "SIGUSR2")
  while (!fs.existsSync(collected)) await pause(10)
  await pause(500)
  return residentMiB(server)
}

const turn = async (peer: Peer, callers: Server, request: Streams.RunRequest, connected: number): Promise<Turn> => {
  const cpu = cpuSecondsOf(peer.server)
  const result = await Streams.run(callers, request)
  const spent = cpuSecondsOf(peer.server) - cpu
  if (result.open !== connected) throw new Error(`${peer.server.name} closed ${connected - result.open} sockets`)
  if (request.perSecond !== undefined && result.delivered !== result.expected) {
    throw new Error(`${peer.server.name} delivered ${result.delivered} of ${result.expected}`)
  }
  return {
    perCore: result.delivered / spent,
    perSecond: result.within / result.seconds,
    p99: result.p99Millis,
    busy: spent / result.seconds
  }
}

/** Both peers in turns under one load; the first round warms up. */
const measure = async (
  { callers: count, channel, coins }: Shape,
  peers: readonly [Peer, Peer],
  callers: Server,
  request: Streams.RunRequest
): Promise<readonly [ReadonlyArray<Turn>, ReadonlyArray<Turn>]> => {
  const turns: readonly [Array<Turn>, Array<Turn>] = [[], []]
  for (let round = 0; round <= rounds; round++) {
    for (const index of round % 2 === 0 ? [0, 1] as const : [1, 0] as const) {
      const peer = peers[index]
      const { paths, server: { url } } = peer
      await Streams.connect(callers, { url, paths, count, coins, channel })
      const measured = await turn(peer, callers, request, count)
      await Streams.close(callers)
      await pause(plan.seconds * 50)
      if (round > 0) turns[index].push(measured)
    }
  }
  return turns
}

const of = (turns: ReadonlyArray<Turn>, field: keyof Turn): number => median(turns.map((one) => one[field]))

const print = (title: string, peers: readonly [Peer, Peer], turns: ReadonlyArray<ReadonlyArray<Turn>>): void => {
  console.log(`\n${title}`)
  for (const [index, { server: { name } }] of peers.entries()) {
    const own = turns[index] ?? []
    console.log(
      `  ${name.padEnd(20)} ${grouped(of(own, "perCore"))} deliveries per CPU s, ${grouped(of(own, "perSecond"))}/s, ` +
        `${(of(own, "busy") * 100).toFixed(0)} % of its core, p99 ${of(own, "p99").toFixed(2)} ms`
    )
  }
}

const compared = async (shape: Shape, peers: readonly [Peer, Peer], callers: Server): Promise<ReadonlyArray<Row>> => {
  const title = `streams, ${grouped(shape.callers)} callers × ${shape.coins} coins of ${shape.channel}`
  const [, bare] = peers
  const beside = bare.server.name
  const half = { seconds: plan.seconds, perSecond: halfLoad / shape.callers }
  const atHalf = await measure(shape, peers, callers, half)
  print(`${title}, ${grouped(halfLoad)} deliveries a second`, peers, atHalf)
  const full = { seconds: plan.seconds, window: Math.max(2, Math.round(8000 / shape.callers)) }
  const atFull = await measure(shape, peers, callers, full)
  print(`${title}, as fast as they go`, peers, atFull)
  const ratios = ([ours, theirs]: readonly [ReadonlyArray<Turn>, ReadonlyArray<Turn>]) =>
    ours.map(({ perCore }, index) => perCore / (theirs[index]?.perCore ?? Number.NaN))
  const added = atHalf[0].map(({ p99 }, index) => p99 - (atHalf[1][index]?.p99 ?? Number.NaN))
  const ratio = (name: string, values: ReadonlyArray<number>): Row => ({
    title: `${title}, ${name}, deliveries per processor second`,
    beside,
    unit: "x",
    value: median(values),
    values,
    aim: `>= ${aims.perCore.toFixed(2)}`,
    met: median(values) >= aims.perCore
  })
  return [
    ratio("half load", ratios(atHalf)),
    {
      title: `${title}, half load, p99`,
      beside: `above ${beside}`,
      unit: "ms",
      value: median(added),
      values: added,
      aim: `<= ${aims.p99.toFixed(2)}`,
      met: median(added) <= aims.p99
    },
    ratio("as fast as they go", ratios(atFull))
  ]
}

/** Memory of idle sockets with one subscription, and how soon all of them are served when they come at once. */
const many = async (peer: Peer, callers: Server): Promise<ReadonlyArray<Row>> => {
  const { paths, server: { name, url } } = peer
  const sockets = { url, paths, count: manySockets, coins: 1, channel: "bbo" as const }
  // resident memory that a process once had stays with it: nothing may have been connected in numbers before
  await Streams.connect(callers, { ...sockets, count: Math.ceil(manySockets / 100) })
  await Streams.close(callers)
  await pause(plan.seconds * 500)
  const without = await collectedMiB(peer)
  await Streams.connect(callers, sockets)
  const connected = await collectedMiB(peer)
  const kilobytes = (connected - without) * 1024 * 1.024 / manySockets
  const cpu = cpuSecondsOf(peer.server)
  const result = await Streams.storm(callers, sockets)
  const spent = cpuSecondsOf(peer.server) - cpu
  await Streams.close(callers)
  console.log(
    `\n${name}: ${kilobytes.toFixed(1)} kB a socket (${without.toFixed(0)} to ${connected.toFixed(0)} MiB); ` +
      `${grouped(result.sockets)} of ${grouped(manySockets)} sockets that came at once connected after ` +
      `${result.connectedMillis.toFixed(0)} ms and were served after ${result.servedMillis.toFixed(0)} ms, ` +
      `for ${spent.toFixed(2)} s of processor time; ` +
      `${result.probes} liveness probes meanwhile, the slowest ${result.slowestProbeMillis.toFixed(0)} ms`
  )
  const isServed = result.sockets === manySockets
  const isOurs = name === "trigate"
  const aim = (text: string, met: boolean) => isOurs ? { aim: text, met } : {}
  return [
    {
      title: `resident memory of a socket, of ${grouped(manySockets)}`,
      beside: name,
      unit: "kB",
      value: kilobytes,
      values: [kilobytes],
      ...aim(`<= ${aims.kilobytes}`, kilobytes <= aims.kilobytes)
    },
    {
      title: `${grouped(manySockets)} sockets that come at once are served`,
      beside: name,
      unit: "ms",
      value: isServed ? result.servedMillis : Number.POSITIVE_INFINITY,
      values: [result.servedMillis],
      ...aim(`<= ${aims.servedMillis}`, isServed && result.servedMillis <= aims.servedMillis)
    },
    {
      title: `processor time of ${grouped(manySockets)} sockets that come at once`,
      beside: name,
      unit: "s",
      value: spent,
      values: [spent]
    },
    {
      title: "slowest liveness probe meanwhile",
      beside: name,
      unit: "ms",
      value: result.slowestProbeMillis,
      values: [result.slowestProbeMillis]
    }
  ]
}

await run("streams", async () => {
  const callers = await Peers.streamCallers()
  const peers = [await gateway(callers), await relay(callers)] as const
  const rows: Array<Row> = []
  for (const peer of peers) rows.push(...await many(peer, callers))
  for (const shape of shapes) rows.push(...await compared(shape, peers, callers))
  return { rows }
})
