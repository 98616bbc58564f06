/**
 * Heads of an EVM chain to many subscribers: their latency over a node with a WebSocket, beside a bare relay over `ws`, and the polls
 * of a node that has HTTP only.
 */
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import { cpuSecondsOf, pause, type Server } from "./harness/processes.ts"
import type { Row } from "./harness/results.ts"
import { median } from "./harness/statistics.ts"
import * as Streams from "./harness/streams.ts"
import { run } from "./harness/suite.ts"

interface Peer {
  readonly server: Server
  readonly path: string
}

interface Turn {
  readonly p50: number
  readonly p99: number
  /** Microseconds of processor time for one delivery. */
  readonly micros: number
}

const isSmoke = plan.name === "smoke"

const counts = isSmoke ? { few: 4, many: 8 } : { few: 200, many: 1000 }

/** Heads a second: a layer 2 has up to ten. */
const perSecond = 10

const aims = { p99: 5, ratio: 1.1, polls: 1.5 }

const gateway = async (callers: Server, name: string, nodeSocket: string): Promise<Peer> => ({
  path: "/l2",
  server: await Peers.gateway(callers, {
    name,
    env: {
      TRIGATE_LAYER2_URL: `${callers.url}/node`,
      ...(nodeSocket === "" ? {} : { TRIGATE_LAYER2_WS_URL: nodeSocket }),
      TRIGATE_MAX_CONNECTIONS: "16384",
      TRIGATE_STREAM_CALLER_SOCKETS: "4096"
    }
  })
})

const turn = async ({ path, server }: Peer, callers: Server, count: number): Promise<Turn> => {
  await Streams.connect(callers, { url: server.url, paths: [path], count, coins: 1, channel: "newHeads" })
  const cpu = cpuSecondsOf(server)
  const result = await Streams.run(callers, { seconds: plan.seconds, perSecond })
  const spent = cpuSecondsOf(server) - cpu
  await Streams.close(callers)
  if (result.delivered !== result.expected) {
    throw new Error(`${server.name} delivered ${result.delivered} of ${result.expected} heads`)
  }
  return { p50: result.p50Millis, p99: result.p99Millis, micros: spent / result.delivered * 1e6 }
}

/** Both peers in turns; the first round warms up. */
const measure = async (
  [one, other]: readonly [Peer, Peer],
  callers: Server,
  count: number
): Promise<ReadonlyArray<{ readonly ours: Turn; readonly bare: Turn }>> => {
  const turns: Array<{ readonly ours: Turn; readonly bare: Turn }> = []
  for (let round = 0; round <= plan.rounds; round++) {
    const ours = await turn(one, callers, count)
    const bare = await turn(other, callers, count)
    if (round > 0) turns.push({ ours, bare })
    await pause(plan.seconds * 50)
  }
  return turns
}

const latencies = async (peers: readonly [Peer, Peer], callers: Server): Promise<ReadonlyArray<Row>> => {
  const beside = peers[1].server.name
  const rows: Array<Row> = []
  for (const count of [counts.few, counts.many]) {
    const turns = await measure(peers, callers, count)
    const title = `heads to ${count} subscribers, ${perSecond} a second`
    for (const name of ["ours", "bare"] as const) {
      const values = turns.map((each) => each[name].p99)
      const isAim = name === "ours" && count === counts.few
      rows.push({
        title: `${title}, p99`,
        beside: name === "ours" ? peers[0].server.name : beside,
        unit: "ms",
        value: median(values),
        values,
        ...(isAim ? { aim: `<= ${aims.p99.toFixed(2)}`, met: median(values) <= aims.p99 } : {})
      })
    }
    const p99s = turns.map(({ bare, ours }) => ours.p99 / bare.p99)
    rows.push({
      title: `${title}, p99`,
      beside,
      unit: "x",
      value: median(p99s),
      values: p99s,
      ...(count === counts.many ? { aim: `<= ${aims.ratio.toFixed(2)}`, met: median(p99s) <= aims.ratio } : {})
    })
    const processor = turns.map(({ bare, ours }) => ours.micros / bare.micros)
    rows.push({ title: `${title}, processor time`, beside, unit: "x", value: median(processor), values: processor })
  }
  return rows
}

/** The polls that a node gets for a block, with blocks of two seconds. */
const polls = async (peer: Peer, callers: Server): Promise<Row> => {
  const connected = {
    url: peer.server.url,
    paths: [peer.path],
    count: counts.few,
    coins: 1,
    channel: "newHeads"
  } as const
  await Streams.connect(callers, connected)
  const { polls, blocks } = await Streams.mine(callers, { blocks: isSmoke ? 1 : 10, everyMillis: isSmoke ? 200 : 2000 })
  await Streams.close(callers)
  const value = polls / blocks
  return {
    title: `polls of a node without a WebSocket for a block of 2 s, ${counts.few} subscribers`,
    beside: peer.server.name,
    unit: "",
    value,
    values: [value],
    aim: `<= ${aims.polls.toFixed(2)}`,
    met: value <= aims.polls
  }
}

await run("heads", async () => {
  const callers = await Peers.streamCallers()
  const announced = await gateway(callers, "trigate", callers.url.replace(/^http/u, "ws") + "/ws")
  const bare = { server: await Peers.bareStreamRelay(callers), path: "/ws" }
  const rows = [...await latencies([announced, bare], callers)]
  rows.push(await polls(await gateway(callers, "trigate, polls", ""), callers))
  return { rows }
})
