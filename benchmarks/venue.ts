/**
 * The sandbox's venue over HTTP: signed orders of fifty accounts, each over a connection of its own. Half of them rest, a quarter buys,
 * a quarter sells; resting ones are canceled in batches. All are signed before.
 *
 * First as fast as replies arrive, to warm up. Then at a fixed rate: a reply's time counts from when its request was due, so a stall
 * is not hidden. Then at the same rate, while a hundred sockets subscribe to books and trades of different coins. Then as fast as replies arrive, for the highest rate, in turns with the same requests to a constant response of
 * Fastify: the ratio of the processor times depends less on the machine than either.
 */
import * as Json from "@trigate/domain/encoding/Encoding"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { signAction } from "@trigate/sandbox/SandboxSigner"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Client } from "undici"
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import { cpuSecondsOf, pause, peakMiB, residentMiB, serve, type Server } from "./harness/processes.ts"
import { grouped, median, percentile } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const connections = 50
/** Orders a minute at which the time of a reply is measured, and at which the queue may not grow. */
const usual = 60_000
const most = 100_000
const seconds = { full: 60, quick: 15, smoke: 1 }[plan.name]

/** Orders of an account that warm up, in a round, and at the fixed rate. */
const warming = { full: 600, quick: 140, smoke: 20 }[plan.name]
const perRound = { full: 140, quick: 140, smoke: 20 }[plan.name]
const countAt = (perMinute: number): number => Math.ceil(perMinute / 60 * seconds / connections)
const orders = warming + 2 * countAt(usual) + countAt(most) + perRound * plan.rounds

/** Sockets that subscribe to the prices, and to the book, the best prices and the trades of a coin each. */
const subscribers = 100

/** Orders between two cancels of those that rest. */
const perCancel = 20

const eth = 1

const keyOf = (index: number): `0x${string}` => `0x${(index + 1).toString(16).padStart(4, "0").repeat(16)}`

const cloidOf = (index: number, order: number): `0x${string}` =>
  `0x${index.toString(16).padStart(16, "0")}${order.toString(16).padStart(16, "0")}`

interface Prices {
  readonly low: string
  readonly buy: string
  readonly sell: string
}

/** The signed requests of an account, in their order; `order` counts its orders from 0, a cancel has that of the order before it. */
type Requests = ReadonlyArray<{ readonly body: string; readonly order: number; readonly isOrder: boolean }>

const requestsOf = (index: number, { buy, low, sell }: Prices, firstNonce: number) =>
  Effect.gen(function*() {
    const signer = yield* Signer.makePrivateKey(Redacted.make(keyOf(index)))
    const made: Array<Requests[number]> = []
    let nonce = firstNonce
    const add = Effect.fnUntraced(function*<E, R>(signed: Effect.Effect<object, E, R>, order: number, isOrder = true) {
      made.push({ body: Json.stringify(yield* signed), order, isOrder })
    })
    const sizeInBase = "0.02"
    let resting: Array<{ asset: number; cloid: `0x${string}` }> = []
    for (let order = 0; order < orders; order++) {
      const cloid = cloidOf(index, order)
      const isResting = order % 2 === 0
      const shape = isResting
        ? { side: "buy", priceInQuote: low, timeInForce: "Alo", cloid } as const
        : order % 4 === 1
        ? { side: "buy", priceInQuote: buy, timeInForce: "Ioc" } as const
        : { side: "sell", priceInQuote: sell, timeInForce: "Ioc" } as const
      yield* add(
        ActionBuilder.placeOrders({ orders: [{ asset: eth, sizeInBase, ...shape }] }, { nonce: nonce++ }),
        order
      )
      if (isResting) resting.push({ asset: eth, cloid })
      if (order % perCancel === perCancel - 1) {
        yield* add(ActionBuilder.cancelOrdersByCloid(resting, { nonce: nonce++ }), order, false)
        resting = []
      }
    }
    return { address: signer.address, requests: made satisfies Requests }
  }).pipe(Effect.provide(Signer.layerPrivateKey(Redacted.make(keyOf(index)))))

/** Sends one request on a connection; the client of Node itself would cost the load generator three times as much. */
const post = (client: Client, path: "/exchange" | "/info", body: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ""
    client.dispatch({ path, method: "POST", headers: { "content-type": "application/json" }, body }, {
      onRequestStart: () => {},
      onResponseStart: () => {},
      onResponseData: (_controller, chunk) => (text += chunk.toString("utf8")),
      onResponseEnd: () => resolve(text),
      onResponseError: (_controller, error) => reject(error)
    })
  })

const usdSend = (destination: string, nonce: number) =>
  signAction(keys.trader, {
    nonce,
    action: {
      type: "usdSend",
      signatureChainId: "0x66eee",
      hyperliquidChain: "Mainnet",
      destination,
      amount: "190",
      time: nonce
    }
  }).pipe(Effect.map(Json.stringify), Effect.runPromise)

/** Opens the subscribers' sockets. Returns the function that closes them and returns the number of their frames. */
const subscribe = async (url: string, coins: ReadonlyArray<string>): Promise<() => number> => {
  let frames = 0
  const sockets = await Promise.all(
    Array.from({ length: subscribers }, (_, index) =>
      new Promise<WebSocket>((resolve, reject) => {
        const socket = new WebSocket(`${url.replace("http", "ws")}/ws`)
        const coin = coins[index % coins.length]
        socket.addEventListener("message", () => frames++)
        socket.addEventListener("error", () => reject(new Error("A subscriber is refused")))
        socket.addEventListener("open", () => {
          for (
            const subscription of [{ type: "allMids" }, ...["l2Book", "bbo", "trades"].map((type) => ({ type, coin }))]
          ) {
            socket.send(JSON.stringify({ method: "subscribe", subscription }))
          }
          resolve(socket)
        })
      }))
  )
  return () => {
    for (const socket of sockets) socket.close()
    return frames
  }
}

await run("venue", async () => {
  const server = await serve({
    name: "trigate",
    core: "peer",
    program: process.execPath,
    args: [Peers.program, "serve"],
    env: { TRIGATE_PORT: "0", TRIGATE_ACCESS_LOG: "off" }
  })
  const constant = await Peers.fastifyConstant(`{"status":"ok"}`)
  const funds = new Client(server.url)
  const mids: unknown = JSON.parse(await post(funds, "/info", `{"type":"allMids"}`))
  const mid = Number(Reflect.get(Object(mids), "ETH"))
  const px = (part: number) => String(Number((mid * part).toPrecision(4)))
  const prices = { low: px(0.5), buy: px(1.05), sell: px(0.95) }
  console.log(`venue: signing ${grouped(orders * connections)} orders`)
  const firstNonce = Date.now() - 3_600_000
  const accounts = await Effect.runPromise(
    Effect.forEach(
      Array.from({ length: connections }, (_, index) => index),
      (index) => requestsOf(index, prices, firstNonce)
    ).pipe(
      Effect.provide(Layer.merge(Secp256k1.layer, VenueProfile.layer("mainnet")))
    )
  )
  for (const [index, { address }] of accounts.entries()) {
    const reply = await post(funds, "/exchange", await usdSend(address, Date.now() + index))
    if (!reply.includes(`"ok"`)) throw new Error(reply)
  }
  await funds.close()
  const before = residentMiB(server)

  const wrong = new Map<string, number>()
  let filled = 0
  let shed = 0
  let done = 0
  const send = async (own: Client, { body, isOrder }: Requests[number]): Promise<boolean> => {
    const reply = await post(own, "/exchange", body)
    if (reply.includes(`"Overloaded"`)) {
      shed++
      return false
    }
    if (isOrder) done++
    if (reply.includes(`"filled"`)) filled++
    if (!reply.startsWith(`{"status":"ok"`) || reply.includes(`"error"`)) wrong.set(reply, (wrong.get(reply) ?? 0) + 1)
    return true
  }

  /** Lets every account send a part of its requests, and measures the processor time of both sides. */
  const trade = async (
    peer: Server,
    isPart: (request: Requests[number]) => boolean,
    sendOne: (own: Client, request: Requests[number], index: number) => Promise<unknown>
  ) => {
    const [cpu, ownCpu, begin] = [cpuSecondsOf(peer), process.cpuUsage(), performance.now()]
    await Promise.all(accounts.map(async ({ requests }, index) => {
      const own = new Client(peer.url)
      for (const request of requests) if (isPart(request)) await sendOne(own, request, index)
      await own.close()
    }))
    const count = accounts[0]?.requests.filter((request) => request.isOrder && isPart(request)).length ?? 0
    const { system, user } = process.cpuUsage(ownCpu)
    return {
      perMinute: count * connections / ((performance.now() - begin) / 60_000),
      micros: (cpuSecondsOf(peer) - cpu) * 1e6 / (count * connections),
      loadMicros: (user + system) / (count * connections)
    }
  }

  await trade(server, ({ order }) => order < warming, send)
  /** Sends the orders from a number on at a fixed rate. */
  const atFixedRate = async (from: number, ordersPerMinute: number) => {
    const paced = countAt(ordersPerMinute)
    const every = seconds * 1000 / paced
    const times: Array<number> = []
    const begin = performance.now() + 200
    const rate = await trade(
      server,
      ({ order }) => order >= from && order < from + paced,
      async (own, request, index) => {
        const due = begin + (request.order - from + index / connections) * every
        const wait = due - performance.now()
        if (wait > 0) await pause(wait)
        if (await send(own, request) && request.isOrder) times.push(performance.now() - due)
      }
    )
    const sorted = Float64Array.from(times).toSorted()
    return {
      rate,
      overrun: performance.now() - (begin + seconds * 1000),
      perMinute: times.length / ((performance.now() - begin) / 60_000),
      p50: percentile(sorted, 0.5),
      p99: percentile(sorted, 0.99)
    }
  }

  const calm = await atFixedRate(warming, usual)
  const alone = await atFixedRate(warming + countAt(usual), most)
  const coins = typeof mids === "object" && mids !== null ? Object.keys(mids) : []
  const close = await subscribe(server.url, coins)
  const watched = await atFixedRate(warming + countAt(usual) + countAt(most), usual)
  const frames = close()
  const peak = peakMiB(server)
  const fastest: Array<Awaited<ReturnType<typeof trade>>> = []
  const ratios: Array<number> = []
  for (let round = 0; round < plan.rounds; round++) {
    const from = warming + 2 * countAt(usual) + countAt(most) + round * perRound
    const isPart = ({ order }: Requests[number]) => order >= from && order < from + perRound
    const ready = await trade(constant, isPart, (own, { body }) => post(own, "/info", body))
    const ours = await trade(server, isPart, send)
    fastest.push(ours)
    ratios.push(ours.micros / ready.micros)
  }
  const errors = [...wrong.values()].reduce((sum, count) => sum + count, 0)
  if (errors > done / 100) throw new Error(`${errors} refused: ${[...wrong.keys()][0]}`)
  const who = `${connections} accounts and connections, ${seconds} s`
  const row = (
    title: string,
    beside: string,
    unit: string,
    values: ReadonlyArray<number>,
    limit?: readonly [">=" | "<=", number]
  ) => {
    const value = median(values)
    return {
      title: `venue: ${title}`,
      beside,
      unit,
      value,
      values: [...values],
      ...(limit === undefined
        ? {}
        : { aim: `${limit[0]} ${grouped(limit[1])}`, met: limit[0] === "<=" ? value <= limit[1] : value >= limit[1] })
    }
  }
  return {
    rows: [
      row(
        "orders a minute",
        `${who}; ${grouped(filled)} of ${grouped(done)} filled, ${grouped(shed)} shed`,
        "orders",
        [alone.perMinute],
        [">=", 99_000]
      ),
      row(
        "time of a reply, 99 of 100",
        `${grouped(usual)} orders a minute, from when it was due; half of them take ${grouped(calm.p50)} ms`,
        "ms",
        [calm.p99],
        ["<=", 50]
      ),
      row(
        "time of a reply beside subscribers, 99 of 100",
        `${subscribers} sockets, ${coins.length} coins, ${grouped(frames)} frames; ${
          grouped(watched.perMinute)
        } orders a minute, ` +
          `the last reply ${grouped(watched.overrun)} ms after the last order was due`,
        "ms",
        [watched.p99],
        ["<=", 50]
      ),
      row("last reply after the last order was due", who, "ms", [alone.overrun], ["<=", 1000]),
      row("processor time of an order", "Fastify constant", "x", ratios),
      row(
        "processor time of an order",
        `cancels included; the load generator's at the fixed rate: ${grouped(alone.rate.loadMicros)} µs`,
        "µs",
        fastest.map(({ micros }) => micros)
      ),
      row(
        "orders a minute as fast as replies arrive",
        `${connections} connections`,
        "orders",
        fastest.map(({ perMinute }) => perMinute)
      ),
      row(
        "memory at its peak",
        `${grouped(before)} MiB before; at most 2000 orders and 20 000 fills of an account are remembered`,
        "MiB",
        [peak]
      )
    ]
  }
})
