/**
 * The p50 of one caller of a gateway with a candle archive in SQLite, while others export a year of bars or list the archive,
 * and of one caller of the sandbox, while others call a contract that loops; beside its p50 without. Then what one caller sees
 * while another one attacks the streams, the feeds of blocks and the sandbox.
 *
 * Each round measures the calm and then the attack. Every answer of the honest caller has to be right, and each attack has to be
 * served: a gateway that refused it would only look calm.
 */
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import { openTime } from "@trigate/domain/candles/Candle"
import { defaultSeed } from "@trigate/sandbox/unstable/Seed"
import * as CandleMarket from "@trigate/sandbox/unstable/venue/Assets"
import * as CandleBars from "@trigate/sandbox/unstable/venue/CandleBars"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as http from "node:http"
import * as path from "node:path"
import { observe, type Seen } from "./harness/honest.ts"
import { load, type Workload } from "./harness/load.ts"
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import { pause, scratch, type Server, stop } from "./harness/processes.ts"
import type { Row } from "./harness/results.ts"
import { median } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const aim = 3

/** Longer than the ten seconds for which a gateway keeps what it has listed, in a full run. */
const seconds = plan.seconds * 5

const perSecond = 40

const rounds = Math.min(plan.rounds, 3)

/** Milliseconds that an attack may take to get its first answer. */
const patience = 30_000

const newest = 29_800_000
const days = plan.name === "smoke" ? 4 : 365
const page = 5000

/** Coins beside the exported one, and chunks of each: 100 000 rows. */
const others = { coins: 200, chunks: 500 }

/** Writes a year of one-minute bars of BTC, and 100 000 small chunks of other coins, which are copies of one. */
const seed = Effect.gen(function*() {
  const { write } = yield* CandleArchive
  const sql = yield* SqlClient.SqlClient
  const barsOf = (coin: string, from: number, to: number) => {
    const market = CandleMarket.markets.find((each) => each.coin === coin)
    if (market === undefined) throw new Error(`The sandbox has no ${coin}`)
    const window = { coin, interval: "1m", startTime: openTime("1m", from), endTime: openTime("1m", to) } as const
    return CandleBars.bars(defaultSeed, market, window, openTime("1m", to + 1))
  }
  for (let from = newest - days * 1440; from < newest; from += page) {
    const range = { from, to: Math.min(newest, from + page) - 1 }
    yield* write({ coin: "BTC", interval: "1m" }, range, barsOf("BTC", range.from, range.to))
  }
  const from = newest - 1000
  yield* write({ coin: "ETH", interval: "1m" }, { from, to: newest - 1 }, barsOf("ETH", from, from + 9))
  const chunks = sql.literal(String(others.chunks))
  yield* sql`WITH RECURSIVE numbers(n) AS (
      SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${others.coins * others.chunks - 1}
    )
    INSERT INTO trigate_candles (network, coin, span, chunk, known, bars, revision, body)
    SELECT network, 'OTHER' || (n / ${chunks}), span, n % ${chunks}, known, bars, revision, body
    FROM trigate_candles, numbers WHERE coin = 'ETH'`
})

/** What came of an attack. */
interface Taken {
  whole: number
  bytes: number
  refused: number
}

/** Keeps requests open, half of them from either address, until it is ended; counts what came. */
const keepOpen = (url: string, { body, open: count, target }: Attack) => {
  const taken: Taken = { whole: 0, bytes: 0, refused: 0 }
  const open = new Set<http.ClientRequest>()
  const first = Promise.withResolvers<void>()
  let isOver = false
  const ask = (localAddress: string): void => {
    if (isOver) return
    const headers = { "content-type": "application/json" }
    const how = { agent: false, localAddress, ...(body === undefined ? {} : { method: "POST", headers }) }
    const request = http.request(url + target, how, (response) => {
      if (response.statusCode !== 200) taken.refused++
      response.on("data", (chunk: Buffer) => {
        taken.bytes += chunk.length
        if (response.statusCode === 200) first.resolve()
      })
      response.on("error", () => {})
      response.on("end", () => {
        if (response.statusCode === 200) taken.whole++
      })
    })
    open.add(request)
    request.end(body)
    request.on("error", () => {})
    request.on("close", () => {
      open.delete(request)
      setTimeout(() => ask(localAddress), 20)
    })
  }
  for (let index = 0; index < count; index++) ask(index % 2 === 0 ? "127.0.0.2" : "127.0.0.3")
  return async (): Promise<Taken> => {
    // a list begins when the database was read
    await Promise.race([first.promise, pause(patience)])
    isOver = true
    for (const request of open) request.destroy()
    return { ...taken }
  }
}

interface Attack {
  readonly name: string
  readonly target: string
  readonly open: number
  /** The body of a POST to the sandbox; absent for a GET of the gateway with an archive. */
  readonly body?: string
}

/** Init code that jumps to its own beginning, with all the gas of a block. */
const loop = { data: "0x5b600056", gas: "0x1c9c380" }

const attacks: ReadonlyArray<Attack> = [
  { name: `eight exports of ${days} days of one-minute bars`, target: "/candles/BTC/1m?format=csv", open: 8 },
  { name: "lists of 100 000 chunks", target: "/candles", open: 4 },
  {
    name: "calls of a contract that loops, of the sandbox",
    target: "/l2",
    open: 8,
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_call", params: [loop, "latest"] })
  }
]

const receipts: Workload = {
  path: "/l2",
  bodies: {
    template: "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"eth_getTransactionReceipt\",\"params\":[\"0x%064x\"]}"
  },
  first: 1,
  answer: { contains: "\"result\":{", echoesId: true },
  connections: 4
}
const chainIds: Workload = {
  path: "/l2",
  bodies: { template: "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"eth_chainId\",\"params\":[]}" },
  first: 1,
  answer: { contains: "\"result\":\"0x", echoesId: true },
  connections: 4
}
const queries: Workload = {
  path: "/info",
  bodies: { template: "{\"type\":\"userFees\",\"user\":\"0x%040x\"}" },
  first: 1,
  answer: { contains: "{}" },
  connections: 4
}

/** Attacks of `harness/stream-attacker.ts`: on a gateway with its default limits, and on the sandbox. */
const streamAttacks = {
  gateway: [
    "ten variants of l2Book",
    "users joined and left",
    "accounts streamed and left",
    "churn of markets",
    "reconnects",
    "catch-up, then leaving",
    "unknown coins",
    "streams of TON accounts that expand",
    "60 streams of transactions at once",
    "filters of 1000 addresses",
    "24 000 small subscriptions",
    "24 000 subscriptions to heads",
    "headers of 3 MiB",
    "an account with 6000 fills a second"
  ],
  sandbox: ["sendBoc of cells that expand", "calls of a contract that loops", "batches of 30 such calls"]
}

const rpcCall = (method: string, params: unknown = []) => JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })

/** Requests that load the virtual machines of the sandbox: the first of each takes a second. */
const firstCalls = [
  { path: "/l2", body: rpcCall("eth_call", [{ data: "0x00" }, "latest"]) },
  { path: "/api/v2/jsonRPC", body: rpcCall("sendBoc", { boc: "te6cckEBAQEAAgAAAEysuc0=" }) }
]

const honest = {
  gateway: [{ path: "/info", body: `{"type":"allMids"}` }, { path: "/evm", body: rpcCall("eth_blockNumber") }],
  sandbox: [{ path: "/l2", body: rpcCall("eth_chainId") }, { path: "/info", body: `{"type":"allMids"}` }]
}

const format = ({ lagMillis, p50Millis, p99Millis, refused, residentMiB, retainedMiB, sent }: Seen): string =>
  `p50 ${p50Millis.toFixed(1)} ms, p99 ${p99Millis.toFixed(1)} ms, ${refused} of ${sent} refused, ` +
  `loop delay ${lagMillis.toFixed(0)} ms, ${residentMiB.toFixed(0)} MiB, retained ${retainedMiB.toFixed(1)} MiB`

/** What an honest caller sees without an attack, and beside it. */
const besideStreams = async (on: keyof typeof streamAttacks, kind: string): Promise<ReadonlyArray<Row>> => {
  const upstream = on === "gateway" ? await Peers.hostileUpstream() : undefined
  const server: Server = upstream === undefined ? await Peers.sandbox() : await Peers.besideHostile(upstream)
  const look = () => observe(server.url, honest[on], { perSecond, seconds }, on === "gateway")
  for (const { body, path } of on === "sandbox" ? firstCalls : []) {
    await (await fetch(server.url + path, { method: "POST", headers: { "content-type": "application/json" }, body }))
      .text()
  }
  // the first turn warms up
  if (plan.name !== "smoke") await look()
  const calm = await look()
  const attacker: Server = await Peers.streamAttacker(kind, server, upstream)
  const attacked = await look()
  for (const each of [attacker, server, upstream]) if (each !== undefined) await stop(each)
  console.log(`  without: ${format(calm)}\n  ${kind}: ${format(attacked)}`)
  const row = (what: string, unit: string, of: (seen: Seen) => number): Row => ({
    title: `${what} beside ${kind}`,
    beside: `without, ${of(calm).toFixed(1)} ${unit}`,
    unit,
    value: of(attacked),
    values: [of(attacked)]
  })
  return [
    row("p50", "ms", ({ p50Millis }) => p50Millis),
    row("p99", "ms", ({ p99Millis }) => p99Millis),
    {
      ...row("refused requests and subscriptions", "", ({ refused }) => refused),
      aim: "0",
      met: attacked.refused === 0
    },
    row("delay of the event loop", "ms", ({ lagMillis }) => lagMillis),
    row("resident memory", "MiB", ({ residentMiB }) => residentMiB),
    row("retained bytes", "MiB", ({ retainedMiB }) => retainedMiB)
  ]
}

await run("attacks", async () => {
  const file = path.join(scratch(), "archive.sqlite")
  const database = SqliteClient.layer({ file, mode: "create" })
  const archive = Layer.provideMerge(CandleArchiveSql.layer({ deadline: "1 minute" }), database)
  await Effect.runPromise(Effect.provide(seed, archive))
  const gateway = await Peers.gateway(await Peers.upstream(), {
    name: "trigate",
    // records nothing of what is listed or exported
    env: { TRIGATE_DATABASE_URL: `sqlite:${file}`, TRIGATE_ARCHIVE: "SOL:1d" }
  })
  const sandbox = await Peers.sandbox()
  const measured = async ({ body }: Pick<Attack, "body">): Promise<number> => {
    const arrival = { seconds, perSecond }
    const outcomes = await Promise.all(
      body === undefined
        ? [receipts, queries].map((workload) => load(gateway.url, workload, arrival))
        : [load(sandbox.url, chainIds, arrival)]
    )
    return Math.max(...outcomes.map(({ p50Millis }) => p50Millis))
  }

  for (const attack of [{}, { body: "" }]) await measured(attack)
  const rows: Array<Row> = []
  const samples: Record<string, ReadonlyArray<number>> = {}
  for (const attack of attacks) {
    const { body, name } = attack
    const calm: Array<number> = []
    const attacked: Array<number> = []
    for (let round = 0; round < rounds; round++) {
      calm.push(await measured(attack))
      const end = keepOpen(body === undefined ? gateway.url : sandbox.url, attack)
      attacked.push(await measured(attack))
      const { bytes, refused, whole } = await end()
      console.log(`  ${name}: ${(bytes / 1e6).toFixed(1)} MB taken, ${whole} whole, ${refused} refused`)
      if (bytes === 0) throw new Error(`${name}: nothing came, so nothing was measured`)
      await pause(plan.seconds * 300)
    }
    samples[`p50 without, before ${name} (ms)`] = calm
    samples[`p50 beside ${name} (ms)`] = attacked
    const values = attacked.map((millis, round) => millis / (calm[round] ?? Number.NaN))
    const value = median(values)
    const met = value <= aim
    // a run of a fraction of a second measures nothing
    if (!met && plan.name !== "smoke") process.exitCode = 1
    rows.push({
      title: `p50 beside ${name}`,
      beside: `without, ${median(calm).toFixed(1)} ms`,
      unit: "x",
      value,
      values,
      aim: `<= ${aim.toFixed(2)}`,
      met
    })
  }
  for (const on of ["gateway", "sandbox"] as const) {
    for (const kind of streamAttacks[on]) rows.push(...await besideStreams(on, kind))
  }
  return { rows, samples }
})
