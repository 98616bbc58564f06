/**
 * The sandbox's venue over HTTP: signed orders of fifty accounts at a fixed rate, each account over a connection of its own. Half of
 * them rest, a quarter buys, a quarter sells; resting ones are canceled in batches. A reply's time counts from when its request was
 * due, so a stall is not hidden.
 */
import * as Json from "@trigate/domain/encoding/Json"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { signAction } from "@trigate/sandbox/SandboxSigner"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as http from "node:http"
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import { pause, peakMiB, residentMiB, serve } from "./harness/processes.ts"
import { grouped, percentile } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const connections = 50
const ordersPerMinute = 100_000
const seconds = { full: 60, quick: 15, smoke: 1 }[plan.name]
const orders = Math.ceil(ordersPerMinute / 60 * seconds / connections)

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

type Requests = ReadonlyArray<{ readonly body: string; readonly isOrder: boolean }>

/** The signed requests of an account, in their order. */
const requestsOf = (index: number, { buy, low, sell }: Prices, firstNonce: number) =>
  Effect.gen(function*() {
    const signer = yield* Signer.makePrivateKey(Redacted.make(keyOf(index)))
    const made: Array<Requests[number]> = []
    let nonce = firstNonce
    const add = Effect.fnUntraced(function*<E, R>(signed: Effect.Effect<object, E, R>, isOrder: boolean) {
      made.push({ body: Json.stringify(yield* signed), isOrder })
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
        true
      )
      if (isResting) resting.push({ asset: eth, cloid })
      if (order % perCancel === perCancel - 1) {
        yield* add(ActionBuilder.cancelOrdersByCloid(resting, { nonce: nonce++ }), false)
        resting = []
      }
    }
    return { address: signer.address, requests: made satisfies Requests }
  }).pipe(Effect.provide(Signer.layerPrivateKey(Redacted.make(keyOf(index)))))

const post = (agent: http.Agent, url: string, body: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const request = http.request(
      url,
      { agent, method: "POST", headers: { "content-type": "application/json", "content-length": body.length } },
      (response) => {
        const chunks: Array<Buffer> = []
        response.on("data", (chunk: Buffer) => chunks.push(chunk))
        response.on("end", () => resolve(Buffer.concat(chunks).toString("utf8")))
      }
    )
    request.on("error", reject)
    request.end(body)
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

await run("venue", async () => {
  const server = await serve({
    name: "trigate",
    core: "peer",
    program: process.execPath,
    args: [Peers.program, "serve"],
    env: { TRIGATE_PORT: "0", TRIGATE_ACCESS_LOG: "off" }
  })
  const agent = new http.Agent({ keepAlive: true, maxSockets: connections })
  const mids: unknown = JSON.parse(await post(agent, `${server.url}/info`, `{"type":"allMids"}`))
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
    const reply = await post(agent, `${server.url}/exchange`, await usdSend(address, Date.now() + index))
    if (!reply.includes(`"ok"`)) throw new Error(reply)
  }
  const before = residentMiB(server)

  const times: Array<number> = []
  const wrong = new Map<string, number>()
  const every = seconds * 1000 / orders
  const begin = performance.now() + 200
  let filled = 0
  let shed = 0
  const trade = async ({ requests }: { readonly requests: Requests }, index: number): Promise<void> => {
    const own = new http.Agent({ keepAlive: true, maxSockets: 1 })
    let order = 0
    for (const { body, isOrder } of requests) {
      const due = begin + (order + index / connections) * every
      if (isOrder) order++
      const wait = due - performance.now()
      if (wait > 0) await pause(wait)
      const reply = await post(own, `${server.url}/exchange`, body)
      if (reply.includes(`"Overloaded"`)) {
        shed++
        continue
      }
      if (isOrder) times.push(performance.now() - due)
      if (reply.includes(`"filled"`)) filled++
      if (!reply.startsWith(`{"status":"ok"`) || reply.includes(`"error"`)) {
        wrong.set(reply, (wrong.get(reply) ?? 0) + 1)
      }
    }
  }
  await Promise.all(accounts.map(trade))
  const last = performance.now()
  const overrun = last - (begin + seconds * 1000)
  const sorted = Float64Array.from(times).toSorted()
  const perMinute = times.length / ((last - begin) / 60_000)
  const p99 = percentile(sorted, 0.99)
  const errors = [...wrong.values()].reduce((sum, count) => sum + count, 0)
  if (errors > times.length / 100) throw new Error(`${errors} refused: ${[...wrong.keys()][0]}`)
  const who = `${connections} accounts and connections, ${seconds} s`
  return {
    rows: [
      {
        title: "venue: orders a minute",
        beside: `${who}; ${grouped(filled)} of ${grouped(times.length)} filled, ${grouped(shed)} shed`,
        unit: "orders",
        value: perMinute,
        values: [perMinute],
        aim: ">= 99 000",
        met: perMinute >= 99_000
      },
      {
        title: "venue: time of a reply, 99 of 100",
        beside: `from when it was due; half of them take ${grouped(percentile(sorted, 0.5))} ms`,
        unit: "ms",
        value: p99,
        values: [p99],
        aim: "<= 50",
        met: p99 <= 50
      },
      {
        title: "venue: last reply after the last order was due",
        beside: who,
        unit: "ms",
        value: overrun,
        values: [overrun],
        aim: "<= 1000",
        met: overrun <= 1000
      },
      {
        title: "venue: memory at its peak",
        beside: `${grouped(before)} MiB before; at most 2000 orders and 20 000 fills of an account are remembered`,
        unit: "MiB",
        value: peakMiB(server),
        values: [peakMiB(server)]
      }
    ]
  }
})
